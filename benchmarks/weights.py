"""Uneven classes: what ``class_weight="balanced"`` does to balanced accuracy.

``KERNELMETRIC_DATA=... python benchmarks/weights.py`` fits classifiers in a learned metric, with
and without weights of classes, to real sets whose classes are of very different size: stored ones
of the library, and scikit-learn's wine with a class thinned out. Rows are scaled, and split 70 / 30
within classes. Each line is a mean over splits of balanced accuracy (the mean over classes of the
share that is found) and of accuracy, without and with weights. ``--splits`` says how many,
``--sets`` and ``--methods`` name some, ``--most`` limits the training rows. A line takes seconds to
minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import LDA, LMNN, NCA, Kernelized, MetricClassifier
from reproduction import datasets

SETS = ("balance", "glass", "yeast", "pima", "musk2", "shuttle", "wine")
MOST_TEST = 3000
FEWEST, LEAST_SHARE = 8, 0.01  # of a class: smaller ones say nothing of a split


def default(class_weight: str | None) -> MetricClassifier:
    """The classifier as it comes, with weights in the metric and in the votes."""
    return MetricClassifier(class_weight=class_weight)


def kernel_nca(class_weight: str | None) -> MetricClassifier:
    """NCA in the feature space."""
    return MetricClassifier(Kernelized(NCA(class_weight=class_weight)), class_weight=class_weight)


def lmnn(class_weight: str | None) -> MetricClassifier:
    """LMNN on the features."""
    return MetricClassifier(LMNN(class_weight=class_weight), class_weight=class_weight)


def lda(class_weight: str | None) -> MetricClassifier:
    """LDA on the features."""
    return MetricClassifier(LDA(class_weight=class_weight), class_weight=class_weight)


METHODS: dict[str, Callable[[str | None], MetricClassifier]] = {
    "LDA": lda,
    "LMNN": lmnn,
    "MetricClassifier": default,
    "Kernelized(NCA)": kernel_nca,
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and classes, those of a handful of rows left out."""
    if name == "wine":
        X, y = load_wine(return_X_y=True)
        kept = (y != 2) | (np.cumsum(y == 2) <= 12)
        return X[kept], y[kept]
    found = datasets.load(name)
    X, y = np.asarray(found.data, dtype=float), np.asarray(found.target)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = counts[codes] >= max(FEWEST, LEAST_SHARE * len(y))
    return X[kept], y[kept]


def measured(name: str, make: Callable, splits: int, most: int) -> tuple[np.ndarray, float]:
    """Means of balanced accuracy and accuracy, without and with weights; seconds of CPU."""
    X, y = load(name)
    scores, start = [], time.process_time()
    for seed in range(splits):
        few = min(most, int(0.7 * len(y)))
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=few, test_size=min(len(y) - few, MOST_TEST), stratify=y,
            random_state=seed,
        )  # fmt: skip
        row = []
        for weight in (None, "balanced"):
            model = make_pipeline(StandardScaler(), make(weight))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of small classes, and of iterations
                predicted = model.fit(X_train, y_train).predict(X_test)
                row.append(
                    [balanced_accuracy_score(y_test, predicted), np.mean(predicted == y_test)]
                )
        scores.append(row)
    return np.array(scores), time.process_time() - start


def main() -> None:
    """Print a line for every set and method."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--most", type=int, default=500)
    options = parser.parse_args()
    print("| set | classes | method | balanced accuracy | accuracy | gained on | CPU |")
    print("|---|---|---|---|---|---|---|")
    for name in options.sets:
        sizes = np.sort(np.unique(load(name)[1], return_counts=True)[1])[::-1]
        for method in options.methods:
            scores, seconds = measured(name, METHODS[method], options.splits, options.most)
            plain, even = scores.mean(axis=0)
            gained = np.sum(scores[:, 1, 0] > scores[:, 0, 0])
            print(
                f"| {name} | {' : '.join(map(str, sizes))} | {method} | "
                f"{plain[0]:.3f} → {even[0]:.3f} | {plain[1]:.3f} → {even[1]:.3f} | "
                f"{gained} of {len(scores)} | {seconds:.0f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
