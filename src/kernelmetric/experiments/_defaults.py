"""How good the default is: ``kernel="auto"`` beside classifiers that were tuned."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import ThreadpoolController

from kernelmetric import datasets
from kernelmetric.experiments._cells import resumed_cells
from kernelmetric.experiments._demo import Split
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import RBF, Delta
from kernelmetric.learners import LMNN
from kernelmetric.report import Cell
from kernelmetric.selection import LeaveOneOutRidge

N_TEST = 2000


class Problem(NamedTuple):
    """A data set, as the comparison uses it.

    Parameters
    ----------
    name : str
        Name, as the table shows it.
    n_train : int
        Training points; up to 2000 others are the test set.
    draw : callable
        ``draw(n, random_state) -> X, y``: at least n points in random order.
    pixels : bool
        Whether all features share one scale; else each is standardized.
    """

    name: str
    n_train: int
    draw: Callable[[int, np.random.RandomState], tuple[np.ndarray, np.ndarray]]
    pixels: bool = False

    def split(self, seed: int) -> Split:
        """Training and test points of one split, scaled as the training points say.

        Parameters
        ----------
        seed : int
            The only source of randomness.

        Returns
        -------
        Split
            Class codes as labels.
        """
        n = self.n_train
        X, y = self.draw(n + N_TEST, np.random.RandomState(seed))
        X, y = X[: n + N_TEST].astype(np.float64), np.unique(y, return_inverse=True)[1]
        if self.pixels:
            X = (X - X[:n].mean()) / X[:n].std()
        else:
            X = StandardScaler().fit(X[:n]).transform(X)
        return Split(X[:n], y[:n], X[n:], y[n : n + N_TEST])


def _stored(name: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    return _shuffled(lambda: datasets.load(name, return_X_y=True))


def _shuffled(load: Callable[[], Any]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def draw(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        X, y = load()
        order = rng.permutation(len(y))[:n]
        return X[order], y[order]

    return draw


def make_gaussians(
    n_samples: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of three Gaussians each in the plane, and four features of noise.

    Parameters
    ----------
    n_samples : int
        Number of points.
    random_state : RandomState
        Source of the points; the nine centres are always the same.

    Returns
    -------
    X : ndarray of shape (n_samples, 6)
        Points.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    centres = np.random.RandomState(7).uniform(-4.0, 4.0, size=(9, 2))
    which = random_state.randint(9, size=n_samples)
    signal = centres[which] + 0.7 * random_state.standard_normal((n_samples, 2))
    noise = 3.0 * random_state.standard_normal((n_samples, 4))
    return np.hstack([signal, noise]), which % 3


def _checkerboard(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_checkerboard(n, n_noise=4, random_state=rng)


def _moons(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(n, noise=0.25, random_state=rng)
    return np.hstack([X, rng.standard_normal((n, 6))]), y


def _problems(sizes: dict[str, int]) -> tuple[Problem, ...]:
    pixels = {"m_usps", "usps", "mnist", "digits"}
    return tuple(Problem(k, n, _stored(k), pixels=k in pixels) for k, n in sizes.items())


_SMALL = dict.fromkeys(("glass", "iris", "sonar", "wine"), 100)
_TEN = "balance breast glass ionosphere iris musk2 pima satellite yeast m_usps"
_FRESH = "sonar wine letter usps mnist shuttle covtype"

#: The sets of 000 with its numbers of training points; sets at 400 points; many modes under
#: noise; and sets that played no part in the making of the default.
GROUPS: dict[str, tuple[Problem, ...]] = {
    "ten": _problems({name: _SMALL.get(name, 200) for name in _TEN.split()}),
    "fresh": _problems({name: _SMALL.get(name, 400) for name in _FRESH.split()}),
    "noisy": (
        Problem("checkerboard", 300, _checkerboard),
        Problem("gaussians", 200, make_gaussians),
    ),
    "unseen": (
        *_problems({"digits": 400, "colon": 40, "soybean_small": 24}),
        Problem("wdbc", 200, _shuffled(lambda: load_breast_cancer(return_X_y=True))),
        Problem("moons", 200, _moons),
    ),
}


class SelectingRidge(ClassifierMixin, BaseEstimator):
    """The ridge classifier whose leave-one-out error chooses the automatic kernel.

    Attributes
    ----------
    kernel_ : Kernel
        The chosen kernel with its ridge.
    classes_ : ndarray
        Classes.
    """

    def fit(self, X: Any, y: Any) -> SelectingRidge:
        """Choose the kernel, then solve for the coefficients.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        SelectingRidge
            The fitted classifier.
        """
        self.kernel_ = LeaveOneOutRidge().bind(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self.points_ = X
        # Repeated points share their ridge, so the matrix may be singular.
        self.coefficients_ = linalg.pinvh(self.kernel_(X) + 1.0) @ Y
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        scores = (self.kernel_(X, self.points_) + 1.0) @ self.coefficients_
        return self.classes_[scores.argmax(axis=1)]


def _nearest(metric: Any) -> Pipeline:
    return make_pipeline(metric, KNeighborsClassifier(1))


def _folds() -> StratifiedKFold:
    return StratifiedKFold(3, shuffle=True, random_state=0)


def _searched_svm(n_features: int) -> GridSearchCV:
    grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": 2.0 ** np.arange(-5, 3) / n_features}
    return GridSearchCV(SVC(), grid, cv=_folds())


#: Each a function of the number of features. "CV width" takes a minute per split.
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "auto": lambda d: _nearest(Kernelized(LMNN(), kernel="auto")),
    "selecting ridge": lambda d: SelectingRidge(),
    "Euclidean": lambda d: KNeighborsClassifier(1),
    "SVC": lambda d: SVC(),
    "SVM, grid of 40": _searched_svm,
    "median + 0.1": lambda d: _nearest(Kernelized(LMNN(), kernel=RBF() + 0.1 * Delta())),
    "CV width": lambda d: KernelizedCV(LMNN(), cv=_folds()),
}


def default_cells(
    problems: Iterable[Problem], methods: Iterable[str], n_splits: int, out: Path
) -> Iterator[Cell]:
    """Run what is not in the file yet, append each finished cell to it, and yield it.

    Parameters
    ----------
    problems : iterable of Problem
        Data sets.
    methods : iterable of str
        Names in ``CLASSIFIERS``.
    n_splits : int
        Splits of each data set; they are the outer loop.
    out : Path
        A file of JSON lines; made if missing.

    Returns
    -------
    iterator of Cell
        Those run now.
    """
    return resumed_cells(problems, methods, n_splits, out, _run)


@lru_cache(maxsize=1)
def split_of(problem: Problem, seed: int) -> Split:
    """A split of a problem, kept for the methods that are compared on it."""
    return problem.split(seed)


def _run(problem: Problem, method: str, seed: int) -> Cell:
    split = split_of(problem, seed)
    model = CLASSIFIERS[method](split.X_train.shape[1])
    begin = time.perf_counter()
    with ThreadpoolController().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer members than folds or neighbours
        accuracy = float(model.fit(split.X_train, split.y_train).score(split.X_test, split.y_test))
    seconds = round(time.perf_counter() - begin, 3)
    return Cell(problem.name, method, seed, accuracy, seconds)
