"""Predictors on real tables as people have them, beside their peers.

``python benchmarks/tables.py --out tables.jsonl`` fits ``MetricClassifier()`` and
``MetricRegressor()`` to the frames of ``real_tables.py`` as they are and to one-hot columns, beside
CatBoost, LightGBM, HistGradientBoosting, a random forest, an SVM from a grid, logistic regression,
RealMLP, TabM and xRFM. A table belongs to one of two parts, by its name alone: settings may be
chosen on "choose", and "judge" is there to be looked at afterwards. Every result is appended to the
file at once, and what is there is not run again. A method whose package is missing is skipped, and
a sentence says so.

``--page FILE`` writes the means and ranks, ``--against METHOD`` wins and losses per table beside
that method, and ``--robust`` tries what happens to tables in use: columns in another order, names
never seen, a column without values, a single row. Seconds are those of the processor, so run it
with ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)

from real_tables import SIZES, kind_of, names_of, split
from table_methods import METHODS, NEEDS, OF_NUMBERS
from table_page import duels, page
from table_robust import robust

COVERAGE = 0.9


def scores(model: Any, X: pd.DataFrame, y: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Every measure of a classifier fitted to known labels; no probability is below 1 / (2 n).

    "decided" is the balanced accuracy of the class that is most above its share of these labels,
    which ``MetricClassifier(decision="balanced")`` predicts.
    """
    n = len(known)
    labels = np.asarray(model.predict(X)).ravel()
    P = np.maximum(np.asarray(model.predict_proba(X), dtype=np.float64), 0.5 / n)
    P /= P.sum(axis=1, keepdims=True)
    classes = np.asarray(model.classes_)
    shares = np.array([np.mean(known == c) for c in classes])
    true = y[:, None] == classes[None, :]
    cell = {
        "accuracy": np.mean(labels == y),
        "balanced": balanced_accuracy_score(y, labels),
        "decided": balanced_accuracy_score(y, classes[(P / shares).argmax(axis=1)]),
        "log_loss": log_loss(y, P, labels=classes),
    }
    if len(classes) == 2:
        rarest = int(np.argmin(true.sum(axis=0)))
        cell["auc"] = roc_auc_score(true[:, 1], P[:, 1])
        cell["precision"] = average_precision_score(true[:, rarest], P[:, rarest])
    else:
        cell["auc"] = roc_auc_score(true, P, average="macro")
        cell["precision"] = average_precision_score(true, P, average="macro")
    return {measure: round(float(value), 5) for measure, value in cell.items()}


def errors(model: Any, X: pd.DataFrame, y: np.ndarray) -> dict[str, float]:
    """Root mean squared error, and the coverage and width of intervals where a model has them."""
    cell = {"rmse": float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))}
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "predict_interval"):
        rows = model[:-1].transform(X) if hasattr(model, "steps") else X
        low, high = last.predict_interval(rows, coverage=COVERAGE).T
        cell["coverage"] = float(np.mean((low <= y) & (y <= high)))
        cell["width"] = float(np.mean(high - low))
    return cell


def measured(method: str, name: str, size: int, seed: int) -> dict[str, Any]:
    """One fit and its measures, or the error it ended in."""
    kind = kind_of(name)
    a, y, b, y_test = split(name, size, seed)
    cell: dict[str, Any] = {"n": len(y), "n_test": len(y_test)}
    model = METHODS[method](kind)
    try:
        started, clock = time.process_time(), time.perf_counter()
        model.fit(a, y)
        cell["seconds"] = round(time.process_time() - started, 3)
        cell["clock"] = round(time.perf_counter() - clock, 3)
        started = time.process_time()
        cell |= scores(model, b, y_test, y) if kind == "classes" else errors(model, b, y_test)
        cell["predict_seconds"] = round(time.process_time() - started, 3)
    except Exception as problem:
        cell["error"] = f"{type(problem).__name__}: {problem}"[:300]
    return cell


def limited(limit: int, *what: Any) -> dict[str, Any]:
    """``measured`` in a process of its own, which is ended when the limit is over."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(measured(*what)))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else {"error": f"stopped after {limit} s"}
    except EOFError:
        return {"error": "the process died"}
    finally:
        process.kill()
        process.join()


def key_of(cell: dict) -> tuple:
    """What a cell is a result of."""
    return cell["table"], cell["size"], cell["seed"], cell["method"]


def read(path: Path) -> list[dict]:
    """What a file of results holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def usable(methods: list[str]) -> list[str]:
    """The methods whose packages are there; a sentence about each of the others."""
    found = []
    for method in methods:
        try:
            METHODS[method]("classes")
        except ImportError as problem:
            needed = NEEDS.get(method, "kernelmetric")
            print(f"{method} is skipped ({problem}): pip install {needed}")
        else:
            found.append(method)
    return found


def run(arguments: argparse.Namespace) -> None:
    """Every cell that is not there yet."""
    done = {key_of(cell) for cell in read(arguments.out)}
    methods = usable(arguments.methods)
    for seed in arguments.seeds:
        for size in arguments.sizes:
            for kind in arguments.kinds:
                for name in names_of(kind, arguments.part, size):
                    if arguments.tables and name not in arguments.tables:
                        continue
                    for method in methods:
                        if kind == "numbers" and method not in OF_NUMBERS:
                            continue
                        cell = {"table": name, "size": size, "seed": seed, "method": method}
                        if key_of(cell) in done:
                            continue
                        cell |= limited(arguments.limit, method, name, size, seed)
                        with arguments.out.open("a") as file:
                            file.write(json.dumps(cell) + "\n")
                        shown = cell.get("error") or cell.get("log_loss") or cell.get("rmse")
                        print(name, size, seed, method, shown, cell.get("seconds"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON lines, appended to")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--kinds", nargs="*", default=["classes", "numbers"])
    parser.add_argument("--part", default="all", choices=["all", "choose", "judge"])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--tables", nargs="*", help="only these")
    parser.add_argument("--limit", type=int, default=600, help="seconds of one fit at most")
    parser.add_argument("--page", type=Path, help="where to write the tables; nothing is run")
    parser.add_argument("--against", choices=list(METHODS), help="print wins and losses beside it")
    parser.add_argument("--robust", action="store_true", help="try tables as they come in use")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.robust:
        raise SystemExit(bool(robust("metric", arguments.tables)))
    if arguments.out is None:
        parser.error("--out is needed: a file of JSON lines, for instance tables.jsonl")
    if arguments.page is None and arguments.against is None:
        run(arguments)
    cells = read(arguments.out)
    if arguments.against:
        print(duels(cells, arguments.against))
    if arguments.page:
        arguments.page.write_text(page(cells), encoding="utf-8")


if __name__ == "__main__":
    main()
