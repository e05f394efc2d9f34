"""Few labels: Tables 1 and 2 of 001, the cliff at small λ, and semi-supervised peers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import minmax_scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from kernelmetric import datasets
from kernelmetric.evaluation import measured
from kernelmetric.graphs import gaussian_graph, neighbor_graph
from kernelmetric.kernelized import Kernelized
from kernelmetric.report import Cell
from kernelmetric.transductive import TransductiveDistance, tangent_neighbors
from reproduction.cells import resumed_cells
from reproduction.problems import Problem, stored
from reproduction.table import Method, Smoke, Table, by_seed

_MNIST_ROWS = 10_000  # of the study of the cliff
_ALL_DIGITS = 70_000


class FewLabels(NamedTuple):
    """A data set of which a few points are labelled.

    Parameters
    ----------
    name : str
        Name, as the table shows it.
    share : float
        Share of the points whose labels are known.
    settings : dict
        Parameters of ``TransductiveDistance`` that the paper sets by hand.
    """

    name: str
    share: float
    settings: dict[str, Any]

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Points with features in [0, 1], and class codes.

        Returns
        -------
        X : ndarray of shape (n, d)
            Points; 10,000 of MNIST.
        y : ndarray of shape (n,)
            Codes from 0.
        """
        X, y = _loaded(self.name.split(",")[0])
        return X, y

    def partial_labels(self, seed: int) -> np.ndarray:
        """Labels of a stratified random share, -1 elsewhere.

        Parameters
        ----------
        seed : int
            The only source of randomness.

        Returns
        -------
        ndarray of shape (n,)
            Partial labels.
        """
        y = self.points()[1]
        some = max(round(self.share * len(y)), int(y.max()) + 1)
        labelled = train_test_split(
            np.arange(len(y)), train_size=some, stratify=y, random_state=seed
        )
        known = np.full(len(y), -1)
        known[labelled[0]] = y[labelled[0]]
        return known


@lru_cache(maxsize=1)
def _loaded(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load(name, return_X_y=True)
    y = np.unique(y, return_inverse=True)[1]
    if name == "mnist":
        rows = np.random.RandomState(0).permutation(len(y))[:_MNIST_ROWS]
        return X[rows].astype(np.float32) / 255.0, y[rows]
    return minmax_scale(X), y


_FULL = partial(gaussian_graph, width=0.25)
_DIGITS = {"n_components": 60, "penalty": "normalized", "n_votes": 10}

#: The sets of Table 1 of 001, as it sets them: full Gaussian graph, 1-NN in 10 dimensions.
TABLE1 = tuple(
    FewLabels(name, 0.1, {"n_components": 5 if name == "breast" else 10, "graph": _FULL})
    for name in ("breast", "ionosphere", "sonar", "wine")
)
#: 10,000 digits of MNIST: twenty neighbours, 60 dimensions, 10-NN; 1-NN where labels are few.
MNIST = (
    FewLabels("mnist", 0.05, _DIGITS),
    FewLabels("mnist, 1 %", 0.01, {**_DIGITS, "n_votes": 1}),
)

#: λ of the study of the cliff.
LAMS = tuple(4**i for i in range(7))


def _transductive(**options: Any) -> Callable[..., np.ndarray]:
    def run(X: np.ndarray, known: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
        given = {"n_neighbors": 20, **settings, **options}
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


#: Every method: a function of points, partial labels and the problem's settings.
FEW_LABEL_METHODS: dict[str, Callable[..., np.ndarray]] = {
    "TDL": _transductive(cost="paper", lam=1024),
    "LE": _transductive(lam=np.inf),
    "TDL, automatic": _transductive(),
    "1-NN": _supervised(lambda: KNeighborsClassifier(1)),
    "SVM": _supervised(lambda: SVC(C=100.0)),
    "KFDA": _supervised(
        lambda: Kernelized(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), kernel="rbf")
    ),
    "KNM": _supervised(lambda: Kernelized(NearestCentroid(), kernel="rbf")),
    "LabelSpreading": _semisupervised(lambda: LabelSpreading(kernel="knn", n_neighbors=20)),
    "SelfTraining": _semisupervised(lambda: SelfTrainingClassifier(KNeighborsClassifier(5))),
    **{f"paper, λ={lam}": _transductive(cost="paper", lam=lam) for lam in LAMS},
    **{f"robust, λ={lam}": _transductive(cost="robust", lam=lam) for lam in LAMS},
}


def _run(problem: FewLabels, method: str, seed: int) -> Cell:
    X, y = problem.points()
    known = problem.partial_labels(seed)
    # Warnings of graphs in parts and of classes of one label are no news.
    found, seconds, *_ = measured(FEW_LABEL_METHODS[method], X, known, problem.settings)
    rest = known < 0
    return Cell(problem.name, method, seed, float(np.mean(found[rest] == y[rest])), seconds)


#: Accuracies of ``FEW_LABEL_METHODS`` on the unlabelled points, as :func:`resumed_cells` runs and
#: keeps them: ``few_label_cells(problems, methods, n_splits, out)``.
few_label_cells = partial(resumed_cells, run=_run)


# --- the tables ---------------------------------------------------------------------------------


def _few_label_method(name: str) -> Callable[[Problem], Any]:
    def build(problem: Problem) -> Callable[[int], float]:
        task = next(task for task in TABLE1 if task.name == problem.name)
        return lambda seed: _run(task, name, seed).accuracy

    return build


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
    evaluate=by_seed,
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
