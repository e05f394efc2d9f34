"""Few labels: Table 1 of 001, the cliff at small λ and its cure, and semi-supervised peers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import minmax_scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from threadpoolctl import ThreadpoolController

from kernelmetric import datasets
from kernelmetric.experiments._cells import resumed_cells
from kernelmetric.graphs import gaussian_graph
from kernelmetric.kernelized import Kernelized
from kernelmetric.report import Cell
from kernelmetric.transductive import TransductiveDistance

_MNIST_ROWS = 10_000


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


def _tdl(**options: Any) -> Callable[..., np.ndarray]:
    def run(X: np.ndarray, known: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
        model = TransductiveDistance(**{**settings, **options}, random_state=0)
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
    "TDL": _tdl(cost="paper", lam=1024),
    "LE": _tdl(lam=np.inf),
    "TDL, automatic": _tdl(),
    "1-NN": _supervised(lambda: KNeighborsClassifier(1)),
    "SVM": _supervised(lambda: SVC(C=100.0)),
    "KFDA": _supervised(
        lambda: Kernelized(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), kernel="rbf")
    ),
    "KNM": _supervised(lambda: Kernelized(NearestCentroid(), kernel="rbf")),
    "LabelSpreading": _semisupervised(lambda: LabelSpreading(kernel="knn", n_neighbors=20)),
    "SelfTraining": _semisupervised(lambda: SelfTrainingClassifier(KNeighborsClassifier(5))),
    **{f"paper, λ={lam}": _tdl(cost="paper", lam=lam) for lam in LAMS},
    **{f"robust, λ={lam}": _tdl(cost="robust", lam=lam) for lam in LAMS},
}


def few_label_cells(
    problems: Iterable[FewLabels], methods: Iterable[str], n_splits: int, out: Path
) -> Iterator[Cell]:
    """Run what is not in the file yet, append each finished cell to it, and yield it.

    Parameters
    ----------
    problems : iterable of FewLabels
        Data sets, of ``TABLE1`` or ``MNIST``.
    methods : iterable of str
        Names in ``FEW_LABEL_METHODS``.
    n_splits : int
        Random choices of the labelled points.
    out : Path
        A file of JSON lines; made if missing.

    Returns
    -------
    iterator of Cell
        Those run now: accuracy on the unlabelled points.
    """
    return resumed_cells(problems, methods, n_splits, out, _run)


def _run(problem: FewLabels, method: str, seed: int) -> Cell:
    X, y = problem.points()
    known = problem.partial_labels(seed)
    begin = time.perf_counter()
    with ThreadpoolController().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # graphs in parts, classes of one label
        found = FEW_LABEL_METHODS[method](X, known, problem.settings)
    seconds = round(time.perf_counter() - begin, 3)
    rest = known < 0
    return Cell(problem.name, method, seed, float(np.mean(found[rest] == y[rest])), seconds)
