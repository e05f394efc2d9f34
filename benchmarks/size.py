"""Any size: the default metric and classifier from a thousand rows to ten million.

``python benchmarks/size.py --out size.jsonl`` measures, ``--page FILE`` then writes the table.
Tables of 30 columns and five classes are drawn; letter, shuttle and covtype are real, where
``reproduction.datasets`` finds them. ``Kernelized(LMNN())`` and ``MetricClassifier()`` get all;
scikit-learn's boosting and an SVM learn from as many of them as they can in the time of
``MetricClassifier()``, and boosting also from all. Every fit runs in a process of its own, on as
many threads as ``--threads`` says, and tells seconds, those that ``estimate_time`` foretold, the
peak of its memory and its accuracy on new rows, up to 20,000. The last row of the table is
``kernelmetric fit`` on a Parquet file of ten million rows, with everything that the command does.
``--csv big.csv --parquet 1000000`` writes such a table for ``tools/record_terminal.py``.
``--embeddings`` measures drawn embeddings instead: of 50 classes that overlap, of length one. Every
result is appended to the file at once, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES, N_CLASSES, N_HEAPS, N_NEW = 30, 5, 4, 20_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)
REAL = {"letter": 16_000, "shuttle": 46_400, "covtype": 561_012}  # rows to learn from
PARQUET_ROWS = 10_000_000
PIECE = 100_000  # rows that are drawn at once
METHODS = ("metric", "classifier", "boosting", "svm", "boosting of all")
EMBEDDINGS = {10_000: 384, 50_000: 768}  # columns by rows
EMBEDDED = ("lmnn", "nca", "metric", "classifier")  # methods for them
N_OF_EMBEDDINGS, HIDDEN = 50, 40  # classes, and directions in which they differ
TITLES = {
    "lmnn": "`LMNN(64)`",
    "nca": "`NCA(64)`",
    "metric": "`Kernelized(LMNN())`",
    "classifier": "`MetricClassifier()`",
    "boosting": "HistGradientBoosting",
    "svm": "SVM",
    "boosting of all": "HistGradientBoosting, all rows",
    "command": "`kernelmetric fit`, from Parquet",
}
PAGE = """# Any size

`python benchmarks/size.py --out size.jsonl`, then `--page FILE`, makes this table.

Drawn tables have 30 columns and five classes, each of four overlapping heaps. The others are real.
Every fit runs in a process of its own on two threads. Boosting and the SVM learn from as many rows
as they can in about the time of `MetricClassifier()`, and boosting also from all. Accuracies are
those of up to 20,000 new rows; those of `kernelmetric fit` are on rows that the command holds out.
Its seconds are those of all that it does: it reads the file, compares, learns, judges and saves.
The seconds foretold are those of `estimate_time`.
"""


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of classes that are several overlapping heaps each, the same for every seed."""
    shape = (N_CLASSES, N_HEAPS, N_FEATURES)
    centres = 0.5 * np.random.default_rng(0).normal(size=shape)
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n)
    heap = rng.integers(N_HEAPS, size=n)
    X = np.empty((n, N_FEATURES), np.float32)
    for start in range(0, n, PIECE):
        rows = slice(start, start + PIECE)
        noise = rng.normal(size=(len(y[rows]), N_FEATURES))
        X[rows] = centres[y[rows], heap[rows]] + noise
    return X, y


def embeddings(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length one: classes in few directions, and noise in all."""
    rng, d = np.random.default_rng(0), EMBEDDINGS[n]
    y = rng.integers(N_OF_EMBEDDINGS, size=n + N_NEW // 10)
    centres = 0.9 * rng.normal(size=(N_OF_EMBEDDINGS, HIDDEN))
    X = (centres[y] + rng.normal(size=(len(y), HIDDEN))) @ rng.normal(size=(HIDDEN, d))
    X += 2.0 * rng.normal(size=X.shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(np.float32), y


def data(table: str, n: int) -> tuple[np.ndarray, ...]:
    """Rows to learn from and new rows, with their classes."""
    if table == "embeddings":
        X, y = embeddings(n)
        return X[:n], y[:n], X[n:], y[n:]
    if table == "drawn":
        return *drawn(n, 1), *drawn(N_NEW, 2)
    from sklearn.preprocessing import StandardScaler

    from reproduction.datasets import load

    found = load(table)
    order = np.random.default_rng(0).permutation(len(found.target))
    train, test = order[:n], order[n : n + N_NEW]
    scaler = StandardScaler().fit(found.data[train])
    X, X_new = (scaler.transform(found.data[rows]).astype(np.float32) for rows in (train, test))
    return X, found.target[train], X_new, found.target[test]


def model_of(method: str) -> Any:
    """What is fitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.svm import SVC

    from kernelmetric import LMNN, NCA, Kernelized, MetricClassifier

    return {
        "lmnn": lambda: LMNN(64),
        "nca": lambda: NCA(64),
        "metric": lambda: Kernelized(LMNN()),
        "classifier": MetricClassifier,
        "boosting": HistGradientBoostingClassifier,
        "svm": lambda: SVC(C=2.0),
        "boosting of all": HistGradientBoostingClassifier,
    }[method]()


def fitted(method: str, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """A fitted model, and the seconds that it took."""
    model = model_of(method)
    started = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - started


def within(method: str, X: np.ndarray, y: np.ndarray, limit: float) -> tuple[Any, float, int]:
    """A model of as many rows as take no longer than the limit, which fits of fewer tell."""
    n, power = len(y) if limit == np.inf else min(2_000, len(y)), 2.0
    model, seconds = fitted(method, X[:n], y[:n])
    while n < len(y) and seconds < limit / 2:
        more = min(len(y), 8 * n, int(n * (0.9 * limit / seconds) ** (1 / power)))
        before = seconds
        model, seconds = fitted(method, X[:more], y[:more])
        power = np.clip(np.log(seconds / before) / np.log(more / n), 1.0, 3.0)
        n = more
    return model, seconds, n


def accuracy(
    model: Any, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray
) -> float:
    """Accuracy on new rows; of a metric, by as many neighbours as it chose, or five."""
    if hasattr(model, "predict"):  # score of a metric is that of the new rows among each other
        return float(model.score(X_new, y_new))
    from kernelmetric.compute.reductions import nearest_neighbors

    places = np.asarray(model.embedding_ if hasattr(model, "embedding_") else model.transform(X))
    queries = np.asarray(model.transform(X_new), dtype=places.dtype)
    found = nearest_neighbors(places, getattr(model, "n_neighbors_", 5), queries=queries)[0]
    classes = np.unique(y)
    votes = np.stack([np.sum(y[found] == c, axis=1) for c in classes], axis=1)
    return float(np.mean(classes[votes.argmax(axis=1)] == y_new))


def measure(table: str, n: int, method: str, limit: float) -> dict[str, Any]:
    """Fit in this process."""
    X, y, X_new, y_new = data(table, n)
    warnings.simplefilter("ignore")
    row: dict[str, Any] = {"table": table, "n": n, "method": method}
    if method in ("metric", "classifier"):
        row["estimate"] = round(model_of(method).estimate_time(*X.shape), 1)
        model, seconds = fitted(method, X, y)
        recipe = model.recipe_ if method == "metric" else model.metric_.recipe_
        row["rows"] = recipe.reasons["rows"]
    elif method in EMBEDDED:
        model, seconds = fitted(method, X, y)
        row["rows"] = f"all {n:,} rows, {X.shape[1]} columns"
    else:
        limit = np.inf if method == "boosting of all" else limit
        model, seconds, n_rows = within(method, X, y, limit)
        row["rows"] = f"{n_rows:,} rows"
    row["seconds"] = round(seconds, 2)
    row["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    row["accuracy"] = round(accuracy(model, X, y, X_new, y_new), 4)
    return row


def write_parquet(path: Path, n: int) -> None:
    """Draw a table into a file, some rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for k in range(0, n, PIECE):
        X, y = drawn(min(PIECE, n - k), 10 + k)
        columns = {f"x{j}": X[:, j] for j in range(N_FEATURES)}
        piece = pa.table(columns | {"y": pa.array([f"c{c}" for c in y])})
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


def write_csv(path: Path, n: int) -> None:
    """Draw a table into a file of text, some rows at a time."""
    import pandas as pd

    for k in range(0, n, PIECE):
        X, y = drawn(min(PIECE, n - k), 10 + k)
        piece = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(N_FEATURES)])
        piece = piece.assign(y=[f"c{c}" for c in y])
        piece.to_csv(path, mode="a" if k else "w", header=not k, index=False)


def measure_command(n: int) -> dict[str, Any]:
    """The command line on a Parquet file: reading, comparing, learning, judging and saving."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.parquet"
        write_parquet(path, n)
        command = [sys.executable, "-m", "kernelmetric", "fit", str(path), "--label", "y"]
        command += ["--learner", "lmnn", "--out", str(Path(folder) / "model.km"), "--json"]
        started = time.perf_counter()
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - started
    found = json.loads(told.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    learned = list(found["scores"])[-1]
    row = {"table": "drawn", "n": n, "method": "command", "seconds": round(seconds, 1)}
    row |= {"peak_mb": round(peak), "accuracy": round(found["scores"][learned][0], 4)}
    return row | {"rows": f"{learned}, of {found['rows']:,}; judged on {found['compared'][1]:,}"}


def run(out: Path, wanted: list[tuple[str, int, str]], threads: int) -> None:
    """Measure what is not in the file, each fit in a process of its own."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    found = {(row["table"], row["n"], row["method"]): row for row in rows}
    limits = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
    )
    for table, n, method in wanted:
        if (table, n, method) in found:
            continue
        ours = found.get((table, n, "classifier"), {"seconds": 60.0})
        command = [sys.executable, __file__, "--one", table, str(n), method, str(ours["seconds"])]
        told = subprocess.run(command, env=os.environ | limits, stdout=subprocess.PIPE, text=True)
        if told.returncode:
            print(f"{method} on {n:,} rows of {table}: no result", flush=True)
            continue
        row = found[table, n, method] = json.loads(told.stdout.splitlines()[-1])
        print(row, flush=True)
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")


def page(out: Path, target: Path) -> None:
    """The results as a table."""
    head = "| table | rows | | seconds | foretold | peak MB | accuracy | learned from |"
    lines = [PAGE, head, "|---" * 8 + "|"]
    for row in map(json.loads, out.read_text().splitlines()):
        cells = [row["table"], f"{row['n']:,}", TITLES[row["method"]], f"{row['seconds']:.1f}"]
        cells += [f"{row['estimate']:.1f}" if "estimate" in row else ""]
        cells += [f"{row['peak_mb']:,}", f"{row['accuracy']:.4f}", row["rows"]]
        lines.append("| " + " | ".join(cells) + " |")
    target.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("size.jsonl"))
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="of drawn tables")
    parser.add_argument("--real", nargs="*", choices=REAL, default=list(REAL))
    parser.add_argument("--parquet", type=int, default=PARQUET_ROWS, help="rows; 0 for none")
    parser.add_argument("--methods", nargs="+", choices={*METHODS, *EMBEDDED})
    parser.add_argument("--embeddings", type=int, nargs="*", metavar="ROWS", choices=EMBEDDINGS,
                        help="measure these alone")  # fmt: skip
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", type=Path, help="write a drawn table of --parquet rows, no more")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        table, n, method, limit = given.one
        many = method == "command"
        row = measure_command(int(n)) if many else measure(table, int(n), method, float(limit))
        print(json.dumps(row))
    elif given.csv:
        write_csv(given.csv, given.parquet)
    elif given.page:
        page(given.out, given.page)
    else:
        tables = [
            *(("drawn", n) for n in given.sizes),
            *((name, REAL[name]) for name in given.real),
        ]
        methods = given.methods or METHODS
        wanted = [(table, n, method) for table, n in tables for method in methods]
        wanted += [("drawn", given.parquet, "command")] * (given.parquet > 0)
        if given.embeddings is not None:
            sizes, methods = given.embeddings or EMBEDDINGS, given.methods or EMBEDDED
            wanted = [("embeddings", n, method) for n in sizes for method in methods]
        run(given.out, wanted, given.threads)


if __name__ == "__main__":
    main()
