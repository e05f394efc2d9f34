"""Tables 1 and 2 of 001 (transductive distances) and 2-4 of 004 (idealized kernels), as data."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric import datasets
from kernelmetric.compute import nearest_neighbors
from kernelmetric.experiments._idealized import Task
from kernelmetric.experiments._idealized import _run as run_idealized
from kernelmetric.experiments._problems import Problem, stored
from kernelmetric.experiments._table import Method, Smoke, Table
from kernelmetric.experiments._transductive import TABLE1
from kernelmetric.experiments._transductive import _run as run_few_labels
from kernelmetric.transductive import TransductiveDistance, tangent_neighbors

_DIGITS = (28, 28)
_MNIST_ROWS = 70_000


# --- 001 ----------------------------------------------------------------------------------------


def _few_label_method(name: str) -> Callable[[Problem], Any]:
    def build(problem: Problem) -> Callable[[int], float]:
        task = next(task for task in TABLE1 if task.name == problem.name)
        return lambda seed: run_few_labels(task, name, seed).accuracy

    return build


def _of_seed(problem: Problem, method: Method, seed: int) -> float:
    """For methods that are functions of the seed: they draw their own splits."""
    return method.build(problem)(seed)


_FEW_LABELS = {
    "TDL": "The paper's cost, k = 20, λ = 1024, Laplacian D - W; 1-NN in the embedding.",
    "LE": "Laplacian Eigenmaps: the same without labels.",
    "KFDA": "Fisher's discriminant, shrunk by 0.1, in the feature space of an RBF of median width.",
    "SVM": "RBF-SVM, C = 100.",
    "KNM": "The nearest class mean in the feature space of an RBF of median width.",
    "1-NN": "The nearest labelled point.",
}

TABLE1_OF_001 = Table(
    name="001-table1",
    title="few labels: 10 % of the points are labelled, accuracy on the others",
    problems=tuple(
        Problem(name, n // 10, stored(name), "unit", n - n // 10)
        for name, n in {"breast": 683, "ionosphere": 351, "sonar": 208, "wine": 178}.items()
    ),
    methods=tuple(
        Method(name, text, _few_label_method(name)) for name, text in _FEW_LABELS.items()
    ),
    n_splits=100,
    protocol=(
        "Features in [0, 1]; 10 % labelled, by stratified random choice, seed = number of the "
        "split; full graph with weights exp(-d²/0.25), no loops; 10 eigenvectors, 5 for breast.",
        "The paper says normalized Laplacian; with it and λ = 1024 labels have no effect, so the "
        "Laplacian D - W is used.",
        "GWPC and KTDA are quoted by the paper from elsewhere, and here from the paper.",
    ),
    smoke=Smoke(("wine",)),
    evaluate=_of_seed,
    printed="percent",
    against={"TDL": "LE"},
)


@lru_cache(maxsize=1)
def _digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load("mnist", return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))[:n] if n < len(y) else np.arange(len(y))
    return X[order].astype(np.float32) / 255.0, np.unique(y[order], return_inverse=True)[1]


@lru_cache(maxsize=2)  # the table goes from one prior to the other and back
def _digit_graph(tangent: bool, n: int) -> Any:
    """Weight one between two digits when either is among the 20 neighbours of the other."""
    X, _ = _digits(n)
    if tangent:
        _, indices = tangent_neighbors(X, 20, shape=_DIGITS)
    else:
        indices, _ = nearest_neighbors(X, 20)
    rows = np.repeat(np.arange(n), indices.shape[1])
    W = sparse.csr_array((np.ones(indices.size), (rows, indices.ravel())), shape=(n, n))
    return W.maximum(W.T)


def _on_digits(lam: float) -> Callable[[Problem], Any]:
    def build(problem: Problem) -> Callable[[int], float]:
        n, tangent = problem.n_train + problem.n_test, problem.name.endswith("tangent")

        def run(seed: int) -> float:
            X, y = _digits(n)
            known = np.full(len(y), -1)
            some = np.random.RandomState(seed).permutation(len(y))[: problem.n_train]
            known[some] = y[some]
            model = TransductiveDistance(
                min(60, n // 4),
                lam,
                penalty="normalized",
                graph=_digit_graph(tangent, n),
                cost="paper",
                n_votes=10,
                random_state=0,
            )
            found = model.fit(X, known).transduction_
            return float(np.mean(found[known < 0] == y[known < 0]))

        return run

    return build


TABLE2_OF_001 = Table(
    name="001-table2",
    title="MNIST, all 70,000 digits, 5 % labelled, accuracy on the others",
    problems=tuple(
        Problem(name, _MNIST_ROWS // 20, stored("mnist"), "raw", _MNIST_ROWS - _MNIST_ROWS // 20)
        for name in ("mnist", "mnist, tangent")
    ),
    methods=(
        Method("TDL", "The paper's cost, k = 20, λ = 128.", _on_digits(128.0)),
        Method("LE", "Laplacian Eigenmaps: the same without labels.", _on_digits(np.inf)),
    ),
    n_splits=10,
    protocol=(
        "5 % labelled at random, seed = number of the split; graph of 20 neighbours, either way, "
        "weights one; normalized Laplacian; 60 eigenvectors; 10-NN in the embedding.",
    ),
    smoke=Smoke(("mnist",), n_train=60, n_test=540),
    evaluate=_of_seed,
    printed="percent",
    against={"TDL": "LE"},
)

# --- 004 ----------------------------------------------------------------------------------------

# What 004's columns are called in experiments._idealized.
_IDEALIZED = {
    "Euclidean": ("kernel", "The kernel's own metric."),
    "idealized": ("solve, auto", "C by cross-validation on pairs, M kept positive semi-definite."),
    "idealized, dual": ("none", "C = 1000, the dual as printed, which lets M be indefinite."),
    "Xing": ("Xing", "MMC with a full matrix."),
}
_SIZES = {"toy": 60, "colon": 50, "lymphoma": 60, "soybean": 30, "wine": 118}
_XING = ("toy, linear", "soybean, linear", "wine, linear")


def _idealized(number: int, theirs: str) -> Callable[[Problem], Any]:
    def build(problem: Problem) -> Callable[[int], float]:
        return lambda seed: run_idealized(Task(number, problem.name), theirs, seed).accuracy

    return build


def _toy(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_toy004(max(n, 100), random_state=rng)


def _table_of_004(number: int, title: str, source: str) -> Table:
    names = [f"{data}, {kernel}" for data in _SIZES for kernel in ("linear", "rbf")]
    draws = {data: stored(data) for data in _SIZES} | {"toy": _toy}
    draws["soybean"] = stored("soybean_small")
    return Table(
        name=f"004-table{number}",
        title=title,
        problems=tuple(
            Problem(name, _SIZES[name.split(",")[0]], draws[name.split(",")[0]], "raw")
            for name in names
        ),
        methods=tuple(
            Method(name, text, _idealized(number, theirs))
            for name, (theirs, text) in _IDEALIZED.items()
        ),
        n_splits=50,
        protocol=(
            source,
            "ν = 0.2; pairs of 5 nearest points within the median distance; RBF "
            "exp(-d²/β) with β the mean squared distance. Wine and soybean raw; logarithms of "
            "colon standardized by rows, then columns; lymphoma standardized, 62 + 34 points.",
        ),
        smoke=Smoke(("toy, linear", "wine, linear")),
        evaluate=_of_seed,
        printed="error",
        against={"idealized": "Euclidean"},
        left_out=frozenset((name, "Xing") for name in names if name not in _XING),
    )


TABLES_OF_004 = (
    _table_of_004(
        2,
        "similar pairs only, error of 1-NN",
        "Similar pairs: random ones of a class until the connected components are 70 % of the "
        "points; dissimilar pairs: pairs of different classes.",
    ),
    _table_of_004(
        3,
        "similar pairs only, error of k-means on pairs of points",
        "Similar pairs as in Table 2; k-means with the number of classes, on all points.",
    ),
    _table_of_004(4, "labels, error of 1-NN", "Pairs from the labels of the training points."),
)
