"""Series with aeon: its data, and the protocol of its classifiers.

``python series.py GunPoint`` loads a problem that comes with aeon, learns a metric from the
training series, and prints the accuracy on the test series beside that of an aeon classifier.
:class:`kernelmetric.MetricClassifier` takes aeon's arrays ``(n, n_channels, length)`` as they are,
and its lists of series of unequal lengths.

It needs ``pip install aeon``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier
from aeon.datasets import load_classification

from kernelmetric import LDA, Kernelized, MetricClassifier

DATA = Path(load_classification.__globals__["__file__"]).parent / "data"


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Learn both; their accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", nargs="?", default="ItalyPowerDemand")
    given = parser.parse_args(arguments)
    X, y = load_classification(given.problem, split="train", extract_path=str(DATA))
    X_new, y_new = load_classification(given.problem, split="test", extract_path=str(DATA))
    models = {
        "learned metric": MetricClassifier(Kernelized(LDA(), kernel="convolutions")),
        "1-NN, DTW": KNeighborsTimeSeriesClassifier(distance="dtw"),
    }
    found = {name: float(model.fit(X, y).score(X_new, y_new)) for name, model in models.items()}
    for name, right in found.items():
        print(f"{name}: {right:.3f} of the test series of {given.problem}")
    return found


if __name__ == "__main__":
    main()
