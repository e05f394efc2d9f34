"""
Series with aeon, and the series behind a prediction
====================================================

``python series.py GunPoint --picture series.png`` loads a problem that comes with aeon, learns a
metric from the training series, and prints the accuracy on the test series beside that of an aeon
classifier. :class:`kernelmetric.MetricClassifier` takes aeon's arrays ``(n, n_channels, length)``
as they are, and its lists of series of unequal lengths.

.. image:: /_static/fields-series.png
   :alt: Three test series of GunPoint, each beside the three nearest training series.

In each row, a test series in black, and the training series that are nearest in the learned metric,
coloured by class. It is classified by those and by ridge regression.

It needs ``pip install aeon matplotlib``.
"""

# sphinx_gallery_thumbnail_path = '_static/fields-series.png'

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier
from aeon.datasets import load_classification

from kernelmetric import NCA, Kernelized, MetricClassifier

DATA = Path(load_classification.__globals__["__file__"]).parent / "data"


def draw(model: MetricClassifier, X: Any, y: Any, asked: Any, truth: Any, path: Path) -> None:
    """Some new series, and the training series that are nearest."""
    from matplotlib import pyplot as plt

    sure = model.predict_proba(asked).max(axis=1)
    chosen = np.argsort(sure)[[0, len(sure) // 2, len(sure) - 1]]  # the least sure one first
    distances, rows = model.kneighbors(asked[chosen], 3)
    said = model.predict(asked[chosen])
    figure, axes = plt.subplots(3, 4, figsize=(10, 5), layout="constrained", sharey="row")
    for i, line in zip(range(3), axes, strict=True):
        new = chosen[i]
        line[0].plot(asked[new, 0], color="black")
        line[0].set_title(f"class {truth[new]}, predicted {said[i]} ({sure[new]:.0%})", fontsize=9)
        for ax, j, distance in zip(line[1:], rows[i], distances[i], strict=True):
            ax.plot(X[j, 0], color=f"C{list(model.classes_).index(y[j])}")
            ax.set_title(f"class {y[j]}, distance {distance:.2f}", fontsize=9)
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=90)


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Learn both; their accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("problem", nargs="?", default="ItalyPowerDemand")
    parser.add_argument("--picture", type=Path, help="where to draw some series and the nearest")
    given = parser.parse_args(arguments)
    X, y = load_classification(given.problem, split="train", extract_path=str(DATA))
    X_new, y_new = load_classification(given.problem, split="test", extract_path=str(DATA))
    models = {
        "learned metric": MetricClassifier(Kernelized(NCA(), kernel="convolutions")),
        "1-NN, DTW": KNeighborsTimeSeriesClassifier(distance="dtw"),
    }
    found = {name: float(model.fit(X, y).score(X_new, y_new)) for name, model in models.items()}
    for name, right in found.items():
        print(f"{name}: {right:.3f} of the test series of {given.problem}")
    if given.picture is not None:
        draw(models["learned metric"], X, y, X_new, y_new, given.picture)
    return found


if __name__ == "__main__":
    main()
