"""Tables 1-3 of 000 and of 003: linear learners, and their kernel versions, by 1-NN.

What the papers leave open is settled once for all tables and data sets, in ``PROTOCOL``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Delta, Kernel, as_kernel, polynomial_degrees, rbf_widths
from kernelmetric.learners import DNE, LMNN, NCA
from kernelmetric.selection import KernelAlignment
from reproduction.classifiers import nearest
from reproduction.problems import GROUPS, Problem, folds
from reproduction.table import Method, Smoke, Table

#: The learners, each to the tolerance of its final fit and to that of a search.
LEARNERS = {"NCA": (NCA(), NCA(tol=1e-4)), "LMNN": (LMNN(), LMNN(tol=1e-2)), "DNE": (DNE(), DNE())}

#: ρ of K + ρI, in the order in which the first of equals wins.
RIDGES = (1.0, 0.1, 0.0)

_SAME = 1e-6  # centred Gram matrices at a cosine of one less this are one kernel to a learner
_PIXELS = "m_usps"
_N_PCA = 100

PROTOCOL = (
    "Random splits, seed = number of the split; 200 training points (100 for glass and iris), "
    "at most 2000 others are the test set; 1-NN.",
    "Features as they are: the papers name no scaling, and their widths from 0.01 to 1000 make "
    "sense for raw features only.",
    "3 neighbours in LMNN and DNE; c = 1 in LMNN; DNE keeps all negative eigenvalues; full rank.",
    "M-USPS has more features than training points: linear learners see the 100 leading "
    "principal components, as remark 4 in section 3.2 of 000 recommends.",
)
_SEARCH = (
    "3-fold cross-validation, stratified, over 21 RBF widths (polynomial degrees 1-5 for M-USPS) "
    "and a ridge ρ in {0, 0.1, 1} added to the diagonal of the Gram matrix; searched with NCA to "
    "1e-4 and LMNN to 1e-2, then fitted to the default tolerance."
)
_ALIGNED = (
    "The sum of 21 RBF widths (polynomial degrees 1-5 for M-USPS) aligned with the labels by the "
    "QP of eq. (11)-(12), uncentred, as printed."
)


class SearchedKernel(ClassifierMixin, BaseEstimator):
    """1-NN in a kernelized metric whose kernel was found by cross-validation.

    Kernels that are multiples of each other on the training points are tried once.

    Parameters
    ----------
    learner : estimator
        The learner.
    quick : estimator
        The learner as the search fits it, often.
    kernels : list of Kernel
        Candidates; the first of equals wins.

    Attributes
    ----------
    kernel_ : Kernel
        The one found.
    n_tried_ : int
        Number of candidates that differ.
    model_ : Pipeline
        The metric with that kernel, and 1-NN.

    Examples
    --------
    >>> from kernelmetric import DNE, RBF
    >>> from kernelmetric.datasets import make_fig2_circles
    >>> from reproduction.kernelization import SearchedKernel
    >>> X, y = make_fig2_circles(60, random_state=0)
    >>> kernels = [RBF(sigma=sigma) for sigma in (1e4, 1e3, 1.0)]
    >>> SearchedKernel(DNE(), DNE(), kernels).fit(X, y).n_tried_
    2
    """

    def __init__(self, learner, quick, kernels):
        self.learner = learner
        self.quick = quick
        self.kernels = kernels

    def fit(self, X: Any, y: Any) -> SearchedKernel:
        """Search, then fit with the kernel found."""
        kernels = distinct_kernels(self.kernels, X)
        search = KernelizedCV(self.quick, kernels, folds(), refit=False).fit(X, y)
        self.classes_ = np.unique(y)
        self.n_tried_ = len(kernels)
        self.kernel_ = search.best_params_["kernel"]
        self.model_ = nearest(Kernelized(clone(self.learner), self.kernel_)).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X."""
        return self.model_.predict(X)


def distinct_kernels(kernels: list[Kernel], X: np.ndarray) -> list[Kernel]:
    """Leave out kernels whose centred Gram matrix is a multiple of that of one before.

    The learners here give the same metric for both, but for its length. Of 21 widths, the
    narrowest are all the identity, the widest all the linear kernel.

    Parameters
    ----------
    kernels : list of Kernel
        Kernels.
    X : ndarray of shape (n, d)
        Points; O(m² n²) time for m kernels.

    Returns
    -------
    list of Kernel
        Those kept, in their order.
    """
    kept: list[Kernel] = []
    grams: list[np.ndarray] = []
    for kernel in kernels:
        K = as_kernel(kernel).bind(X)(X)
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1, keepdims=True)
        length = np.linalg.norm(K)
        K = K.ravel() / (length if length > 0 else 1.0)
        if length > 0 and not any(K @ other > 1 - _SAME for other in grams):
            kept.append(kernel)
            grams.append(K)
    return kept or list(kernels[:1])


def base_kernels(problem: Problem) -> list[Kernel]:
    """The base kernels of 000: 21 widths, or five degrees for images.

    Parameters
    ----------
    problem : Problem
        The data set.

    Returns
    -------
    list of Kernel
        The smoothest first.
    """
    return [*polynomial_degrees()] if problem.name == _PIXELS else rbf_widths()[::-1]


def searched(learner: str) -> Callable[[Problem], Any]:
    """The classifier of the columns KNCA, KLMNN and KDNE of 000."""

    def build(problem: Problem) -> SearchedKernel:
        kernels = [
            kernel + ridge * Delta() if ridge else kernel
            for ridge in RIDGES
            for kernel in base_kernels(problem)
        ]
        return SearchedKernel(*LEARNERS[learner], kernels)

    return build


def aligned(learner: str, neighbors: str = "feature") -> Callable[[Problem], Any]:
    """The classifier of the columns AKNCA, AKLMNN and AKDNE of 000."""

    def build(problem: Problem) -> Pipeline:
        kernel = KernelAlignment(base_kernels(problem)[::-1])
        return nearest(Kernelized(clone(LEARNERS[learner][0]), kernel, neighbors=neighbors))

    return build


def linear(learner: str) -> Callable[[Problem], Any]:
    """The classifier of the columns NCA, LMNN and DNE."""

    def build(problem: Problem) -> Pipeline:
        model = nearest(clone(LEARNERS[learner][0]))
        if problem.name == _PIXELS:
            reduction = PCA(min(_N_PCA, problem.n_train - 1), random_state=0)
            model.steps.insert(0, ("pca", reduction))
        return model

    return build


_RAW = tuple(problem._replace(scaling="raw") for problem in GROUPS["ten"])
_SMOKE = Smoke(("iris", "m_usps"))


def _table_of_000(number: int, learner: str) -> Table:
    names = learner, f"K{learner}", f"AK{learner}"
    return Table(
        name=f"000-table{number}",
        title=f"{learner} and its kernel versions, accuracy of 1-NN",
        problems=_RAW,
        methods=(
            Method(names[0], f"{learner} on the features.", linear(learner)),
            Method(names[1], _SEARCH, searched(learner)),
            Method(names[2], _ALIGNED, aligned(learner)),
        ),
        n_splits=40,
        protocol=PROTOCOL,
        smoke=_SMOKE,
        against={names[1]: names[0], names[2]: names[0]},
    )


def _table_of_003(number: int, learner: str) -> Table:
    where = "input" if learner == "DNE" else "feature"
    text = _ALIGNED + (" Neighbours from the input space." if where == "input" else "")
    return Table(
        name=f"003-table{number}",
        title=f"{learner} and its kernel version, accuracy of 1-NN",
        problems=tuple(problem for problem in _RAW if problem.name != _PIXELS),
        methods=(
            Method(learner, f"{learner} on the features.", linear(learner)),
            Method(f"K{learner}", text, aligned(learner, where)),
        ),
        n_splits=40,
        protocol=PROTOCOL[:-1],
        smoke=Smoke(("iris",)),
        against={f"K{learner}": learner},
    )


TABLES_OF_000 = tuple(_table_of_000(i, name) for i, name in enumerate(LEARNERS, start=1))
TABLES_OF_003 = tuple(_table_of_003(i, name) for i, name in enumerate(LEARNERS, start=1))
