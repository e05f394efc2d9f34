"""Series: problems of the UCR and UEA archives, with their published splits.

``python benchmarks/series.py --out series.jsonl`` learns to classify the series that come with aeon
(``pip install aeon==1.6.0``), and prints the accuracy on the test series: the nearest neighbour by
Euclidean distance and by dynamic time warping (window chosen by leaving out one training series
after the other), MiniRocket with ridge regression, a support vector machine on the kernel of global
alignments, and metrics learned in two kernels. Every result is appended to the file at once, and
what is there is not run again. ``--quick`` takes two problems, ``--page`` prints the table of a
file. Nothing is chosen on these problems: that is what ``benchmarks/series_choice.py`` is for.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from aeon.datasets import load_classification
from aeon.distances import dtw_pairwise_distance, euclidean_pairwise_distance
from aeon.transformations.collection.convolution_based import MiniRocket
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelmetric import LDA, NCA, Kernelized, MetricClassifier
from kernelmetric.kernels import GlobalAlignment

PROBLEMS = {  # the least first
    "ItalyPowerDemand": "",
    "BasicMotions": "",
    "JapaneseVowels": "_eq",
    "GunPoint": "",
    "PickupGestureWiimoteZ": "_eq",
    "ArrowHead": "",
    "ACSF1": "",
    "OSULeaf": "",
}
METHODS = (
    "1-NN, Euclidean",
    "1-NN, DTW",
    "MiniRocket, ridge",
    "SVM, alignment kernel",
    "LDA, alignment kernel",
    "LDA, convolutions",
    "NCA, convolutions",
)
LEARNERS = {"LDA": LDA(), "NCA": NCA()}  # the first one that was tried, and the default one
WINDOWS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)


def loaded(name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Series (n, n_channels, length) and labels of a part of a problem."""
    path = Path(load_classification.__globals__["__file__"]).parent / "data"
    return load_classification(name + PROBLEMS[name], split=part, extract_path=str(path))


def nearest(D: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels of the nearest."""
    return y[np.argmin(D, axis=1)]


def by_warping(X: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Predictions by dynamic time warping, the window chosen on training series."""
    best, chosen = -1.0, 0.0
    for window in WINDOWS:
        D = dtw_pairwise_distance(X, window=window)
        np.fill_diagonal(D, np.inf)
        right = float(np.mean(nearest(D, y) == y))
        best, chosen = (right, window) if right > best else (best, chosen)
    return nearest(dtw_pairwise_distance(asked, X, window=chosen), y)


def by_machine(X: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Predictions by a support vector machine, its C chosen by folds."""
    kernel = GlobalAlignment().bind(X)
    model = GridSearchCV(SVC(kernel="precomputed"), {"C": [1.0, 10.0, 100.0, 1000.0]}, cv=3)
    return model.fit(kernel(X), y).predict(kernel(asked, X))


def predictions(name: str, X: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """What a method says of series."""
    if name == "1-NN, Euclidean":
        return nearest(euclidean_pairwise_distance(asked, X), y)
    if name == "1-NN, DTW":
        return by_warping(X, y, asked)
    if name == "MiniRocket, ridge":
        ridge = RidgeClassifierCV(np.logspace(-3, 3, 10))
        parts = MiniRocket(random_state=0), StandardScaler(with_mean=False), ridge
        return make_pipeline(*parts).fit(X, y).predict(asked)
    if name == "SVM, alignment kernel":
        return by_machine(X, y, asked)
    learner, _, words = name.partition(", ")
    kernel = "convolutions" if words == "convolutions" else "globalalignment"
    metric = Kernelized(LEARNERS[learner], kernel=kernel)
    return MetricClassifier(metric).fit(X, y).predict(asked)


def cell(problem: str, name: str) -> dict:
    """Accuracy of one method on one problem."""
    (X, y), (asked, truth) = (loaded(problem, part) for part in ("train", "test"))
    started = time.process_time()
    right = float(np.mean(predictions(name, X, y, asked) == truth))
    seconds = round(time.process_time() - started, 2)
    return {"problem": problem, "method": name, "right": right, "seconds": seconds}


def read(path: Path) -> list[dict]:
    """Finished cells."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Every cell that is not there yet."""
    warnings.simplefilter("ignore")
    done = {(c["problem"], c["method"]) for c in read(arguments.out)}
    (X, y), (asked, _) = (loaded("ItalyPowerDemand", part) for part in ("train", "test"))
    for name in arguments.methods:  # what is compiled at its first use is not counted
        predictions(name, X, y, asked[:2])
    for problem in list(PROBLEMS)[: 2 if arguments.quick else None]:
        for name in arguments.methods:
            if (problem, name) not in done:
                new = json.dumps(cell(problem, name))
                with arguments.out.open("a") as file:
                    file.write(new + "\n")
                print(new, flush=True)


def page(cells: list[dict]) -> str:
    """Accuracy in percent, and seconds."""
    values = defaultdict(dict)
    for c in cells:
        values[c["method"]][c["problem"]] = c
    problems = [name for name in PROBLEMS if any(c["problem"] == name for c in cells)]
    lines = ["| | " + " | ".join(problems) + " | mean | s |", "|---" * (len(problems) + 3) + "|"]
    for name in [method for method in METHODS if method in values]:
        own = values[name]
        row = [f"{100 * own[p]['right']:.1f}" if p in own else "" for p in problems]
        whole = set(own) == set(problems)
        row.append(f"{100 * np.mean([c['right'] for c in own.values()]):.1f}" if whole else "")
        row.append(f"{sum(c['seconds'] for c in own.values()):.1f}" if whole else "")
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("series.jsonl"))
    parser.add_argument("--quick", action="store_true", help="two problems")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--page", action="store_true", help="print the table, run nothing")
    arguments = parser.parse_args()
    if not arguments.page:
        run(arguments)
    print(page(read(arguments.out)))


if __name__ == "__main__":
    main()
