"""Few labels: Tables 1 and 2 of 001, the cliff at small λ, and semi-supervised peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import minmax_scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from kernelmetric.graphs import gaussian_graph, neighbor_graph
from kernelmetric.kernelized import Kernelized
from kernelmetric.transductive import TransductiveDistance, tangent_neighbors
from reproduction.datasets import load
from reproduction.problems import Problem, stored
from reproduction.table import Method, Smoke, Table, by_seed

_MNIST_ROWS = 10_000  # of the study of the cliff
_ALL_DIGITS = 70_000


@lru_cache(maxsize=1)
def points(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Points with features in [0, 1], and class codes; of MNIST as many as the problem has."""
    if problem.name.startswith("mnist"):
        return _digits(problem.n_train + problem.n_test)
    X, y = load(problem.name, return_X_y=True)
    return minmax_scale(X), np.unique(y, return_inverse=True)[1]


def partial_labels(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Labels of a stratified random share, -1 elsewhere.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Class codes from 0.
    share : float
        Share of the points whose labels are known; at least one of each class is.
    seed : int
        The only source of randomness.

    Returns
    -------
    ndarray of shape (n,)
        Partial labels.
    """
    some = max(round(share * len(y)), int(y.max()) + 1)
    labelled, _ = train_test_split(
        np.arange(len(y)), train_size=some, stratify=y, random_state=seed
    )
    known = np.full(len(y), -1)
    known[labelled] = y[labelled]
    return known


@lru_cache(maxsize=1)
def _digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load("mnist", return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))[:n] if n < len(y) else np.arange(len(y))
    return X[order].astype(np.float32) / 255.0, np.unique(y[order], return_inverse=True)[1]


_FULL: dict[str, Any] = {"n_components": 10, "graph": partial(gaussian_graph, width=0.25)}
_DIGITS: dict[str, Any] = {"n_components": 60, "penalty": "normalized", "n_votes": 10}

#: The share of points with labels, and what the paper sets by hand: a full Gaussian graph and 1-NN
#: in 10 dimensions for small sets; 60 dimensions and 10-NN for digits, 1-NN where labels are few.
SETTINGS: dict[str, tuple[float, dict[str, Any]]] = {
    "breast": (0.1, _FULL | {"n_components": 5}),
    "ionosphere": (0.1, _FULL),
    "sonar": (0.1, _FULL),
    "wine": (0.1, _FULL),
    "mnist": (0.05, _DIGITS),
    "mnist, 1 %": (0.01, _DIGITS | {"n_votes": 1}),
}

#: λ of the study of the cliff.
LAMS = tuple(4**i for i in range(7))


def _transductive(**options: Any) -> Callable[..., np.ndarray]:
    def run(X: np.ndarray, known: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
        given = {"graph": "neighbors", "n_neighbors": 20, **settings, **options}
        model = TransductiveDistance(**given, random_state=0)
        return model.fit(X, known).transduction_

    return run


def _supervised(make: Callable[[], Any]) -> Callable[..., np.ndarray]:
    """Learn from the labelled points alone."""

    def run(X: np.ndarray, known: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
        labelled = known >= 0
        return make().fit(X[labelled], known[labelled]).predict(X)

    return run


def _semisupervised(make: Callable[[], Any]) -> Callable[..., np.ndarray]:
    def run(X: np.ndarray, known: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
        return make().fit(X, known).predict(X)

    return run


def _few_labels(name: str, text: str, predict: Callable[..., np.ndarray]) -> Method:
    """A method, judged by its accuracy on the points without labels."""

    def build(problem: Problem) -> Callable[[int], float]:
        def run(seed: int) -> float:
            share, settings = SETTINGS[problem.name]
            X, y = points(problem)
            known = partial_labels(y, share, seed)
            found = predict(X, known, settings)
            rest = known < 0
            return float(np.mean(found[rest] == y[rest]))

        return run

    return Method(name, text, build)


_METHODS_OF_001 = (
    _few_labels(
        "TDL",
        "The paper's cost, k = 20, λ = 1024, Laplacian D - W; 1-NN in the embedding.",
        _transductive(cost="paper", lam=1024),
    ),
    _few_labels(
        "LE",
        "Laplacian Eigenmaps: the same without labels.",
        _transductive(lam=np.inf),
    ),
    _few_labels(
        "KFDA",
        "Fisher's discriminant, shrunk by 0.1, in the feature space of an RBF of median width.",
        _supervised(
            lambda: Kernelized(
                LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), kernel="rbf"
            )
        ),
    ),
    _few_labels("SVM", "RBF-SVM, C = 100.", _supervised(lambda: SVC(C=100.0))),
    _few_labels(
        "KNM",
        "The nearest class mean in the feature space of an RBF of median width.",
        _supervised(lambda: Kernelized(NearestCentroid(), kernel="rbf")),
    ),
    _few_labels(
        "1-NN", "The nearest labelled point.", _supervised(lambda: KNeighborsClassifier(1))
    ),
)
_FURTHER_METHODS = (
    _few_labels("TDL, automatic", "The library's defaults, k = 20.", _transductive()),
    _few_labels(
        "LabelSpreading",
        "scikit-learn's, 20 neighbours.",
        _semisupervised(lambda: LabelSpreading(kernel="knn", n_neighbors=20)),
    ),
    _few_labels(
        "SelfTraining",
        "scikit-learn's, with five neighbours.",
        _semisupervised(lambda: SelfTrainingClassifier(KNeighborsClassifier(5))),
    ),
    *(
        _few_labels(
            f"{cost}, λ={lam}",
            f"Transductive distance, {kind} cost, k = 20.",
            _transductive(cost=cost, lam=lam),
        )
        for cost, kind in (("paper", "the paper's"), ("robust", "the bounded"))
        for lam in LAMS
    ),
)

TABLE1_OF_001 = Table(
    name="001-table1",
    title="few labels: 10 % of the points are labelled, accuracy on the others",
    problems=tuple(
        Problem(name, n // 10, stored(name), "unit", n - n // 10)
        for name, n in {"breast": 683, "ionosphere": 351, "sonar": 208, "wine": 178}.items()
    ),
    methods=_METHODS_OF_001,
    n_splits=100,
    protocol=(
        "Features in [0, 1]; 10 % labelled, by stratified random choice, seed = number of the "
        "split; full graph with weights exp(-d²/0.25), no loops; 10 eigenvectors, 5 for breast.",
        "The paper says normalized Laplacian; with it and λ = 1024 labels have no effect, so the "
        "Laplacian D - W is used.",
        "GWPC and KTDA are quoted by the paper from elsewhere, and here from the paper.",
    ),
    smoke=Smoke(("wine",)),
    evaluate=by_seed,
    printed="percent",
    against={"TDL": "LE"},
)


@lru_cache(maxsize=2)  # the table goes from one prior to the other and back
def _digit_graph(tangent: bool, n: int) -> Any:
    """Weight one between two digits when either is among the 20 neighbours of the other."""
    X, _ = _digits(n)
    found = tangent_neighbors(X, 20, shape=(28, 28)) if tangent else None
    return neighbor_graph(X, 20, neighbors=found)


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
                20,
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
        Problem(name, _ALL_DIGITS // 20, stored("mnist"), "raw", _ALL_DIGITS - _ALL_DIGITS // 20)
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
    evaluate=by_seed,
    printed="percent",
    against={"TDL": "LE"},
)

_ALL_METHODS = (*_METHODS_OF_001, *_FURTHER_METHODS)

#: Table 1 with the cliff at small λ and semi-supervised peers; the same on 10,000 digits.
FEW_LABELS = tuple(
    replace(
        TABLE1_OF_001,
        name=name,
        title=f"few labels: every method, {what}, accuracy on the others",
        problems=problems,
        methods=_ALL_METHODS,
        protocol=protocol,
        smoke=smoke,
        against={method.name: "LE" for method in _ALL_METHODS if method.name != "LE"},
    )
    for name, what, problems, protocol, smoke in (
        (
            "few-labels",
            "10 % of the points are labelled",
            TABLE1_OF_001.problems,
            TABLE1_OF_001.protocol[:1],
            TABLE1_OF_001.smoke,
        ),
        (
            "few-labels-mnist",
            "5 % or 1 % of 10,000 digits are labelled",
            tuple(
                Problem(name, n, stored("mnist"), "raw", _MNIST_ROWS - n)
                for name, n in {"mnist": 500, "mnist, 1 %": 100}.items()
            ),
            (
                "10,000 digits; 5 % or 1 % labelled, by stratified random choice, seed = number of "
                "the split; graph of 20 neighbours; normalized Laplacian; 60 eigenvectors; 10-NN "
                "in the embedding, 1-NN for 1 %.",
            ),
            Smoke(("mnist",), n_train=60, n_test=540),
        ),
    )
)
