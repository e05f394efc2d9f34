"""Any size: the default metric and classifier from a thousand rows to a million.

``python benchmarks/size.py --out size.jsonl`` draws tables of 30 columns and five classes, fits
``Kernelized(LMNN())`` and ``MetricClassifier()`` to more and more of their rows, and scikit-learn's
boosting and an SVM beside them. Every fit runs in a process of its own, on as many threads as
``--threads`` says, and tells seconds, the peak of its memory and its accuracy on 20,000 new rows,
the same for all. The SVM takes at most 30,000 rows. Every result is appended to the file at once,
and what is there is not run again. ``--page FILE`` writes the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES, N_CLASSES, N_HEAPS, N_NEW = 30, 5, 4, 20_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)
METHODS = ("metric", "classifier", "boosting", "svm")
TITLES = {
    "metric": "`Kernelized(LMNN())`",
    "classifier": "`MetricClassifier()`",
    "boosting": "HistGradientBoosting",
    "svm": "SVM",
}


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of classes that are several overlapping heaps each, the same for every seed."""
    shape = (N_CLASSES, N_HEAPS, N_FEATURES)
    centres = 0.5 * np.random.default_rng(0).normal(size=shape)
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n)
    heap = rng.integers(N_HEAPS, size=n)
    X = np.empty((n, N_FEATURES), np.float32)
    for start in range(0, n, 100_000):
        rows = slice(start, start + 100_000)
        noise = rng.normal(size=(len(y[rows]), N_FEATURES))
        X[rows] = centres[y[rows], heap[rows]] + noise
    return X, y


def model_of(method: str) -> Any:
    """What is fitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.svm import SVC

    from kernelmetric import LMNN, Kernelized, MetricClassifier

    return {
        "metric": lambda: Kernelized(LMNN()),
        "classifier": MetricClassifier,
        "boosting": HistGradientBoostingClassifier,
        "svm": lambda: SVC(C=2.0),
    }[method]()


def accuracy(model: Any, method: str, X: Any, y: Any) -> float:
    """Accuracy on new rows; of the metric, by as many neighbours as it chose."""
    if method != "metric":
        return float(model.score(X, y))
    from kernelmetric.compute.reductions import nearest_neighbors

    places = np.asarray(model.embedding_)
    queries = np.asarray(model.transform(X), dtype=places.dtype)
    found = nearest_neighbors(places, model.n_neighbors_, queries=queries)[0]
    votes = np.stack([np.sum(LABELS[0][found] == c, axis=1) for c in range(N_CLASSES)], axis=1)
    return float(np.mean(votes.argmax(axis=1) == y))


LABELS: list[np.ndarray] = []  # of the training rows


def measure(method: str, n: int) -> dict[str, Any]:
    """Fit once in this process."""
    (X, y), (X_new, y_new) = drawn(n, 1), drawn(N_NEW, 2)
    LABELS[:] = [y]
    model = model_of(method)
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    peak = int(status["VmHWM"].split()[0]) / 1024
    row = {"method": method, "n": n, "seconds": round(seconds, 2), "peak_mb": round(peak)}
    row["accuracy"] = round(accuracy(model, method, X_new, y_new), 4)
    recipe = getattr(model, "recipe_", None) or getattr(
        getattr(model, "metric_", None), "recipe_", None
    )
    return row if recipe is None else row | {"rows": recipe.reasons["rows"]}


def run(out: Path, sizes: list[int], methods: list[str], threads: int) -> None:
    """Measure what is not in the file, each fit in a process of its own."""
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(row["method"], row["n"]) for row in done}
    limits = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
    )
    for n in sizes:
        for method in methods:
            if (method, n) in known or (method == "svm" and n > 30_000):
                continue
            command = [sys.executable, __file__, "--one", method, str(n)]
            told = subprocess.run(
                command, env=os.environ | limits, capture_output=True, text=True, check=True
            )
            row = json.loads(told.stdout.splitlines()[-1])
            print(row, flush=True)
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")


def page(out: Path, target: Path) -> None:
    """The results as a table."""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = {(row["method"], row["n"]): row for row in rows}
    lines = ["# Any size", "", "`python benchmarks/size.py` makes this table.", ""]
    lines += [
        "| rows | | seconds | peak MB | accuracy | learned from |",
        "|---|---|---|---|---|---|",
    ]
    for n in sorted({row["n"] for row in rows}):
        for method in METHODS:
            row = found.get((method, n))
            if row is not None:
                cells = f"{row['seconds']:.1f} | {row['peak_mb']:,} | {row['accuracy']:.4f}"
                lines.append(f"| {n:,} | {TITLES[method]} | {cells} | {row.get('rows', '')} |")
    target.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("size.jsonl"))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "ROWS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]))))
    elif given.page:
        page(given.out, given.page)
    else:
        run(given.out, given.sizes, given.methods, given.threads)


if __name__ == "__main__":
    main()
