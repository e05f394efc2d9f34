"""The papers' figures: what they show is computed here, and drawn by ``report``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric.datasets import make_close_moons, make_toy004
from kernelmetric.demo import N_DRAWN, fig2_panels
from kernelmetric.evaluation import measured
from kernelmetric.graphs import Pairs, gaussian_graph
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels import Kernel, Polynomial
from kernelmetric.learners import DNE, MMC, IdealizedKernel
from kernelmetric.report import Panel, plot_fig2
from kernelmetric.spaces import KernelTrick
from kernelmetric.transductive import PaperCost, TransductiveDistance
from reproduction.pictures import TrickPoint, plot_grams, plot_tricks
from reproduction.problems import GROUPS, Problem, Split, split_of

_WELL, _ILL = ("pima", "m_usps"), ("ionosphere", "glass")


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    Parameters
    ----------
    name : str
        Name for the command line, such as "000-fig2".
    title : str
        What it shows.
    compute : callable
        ``compute(smoke) -> data``; with smoke, little of it.
    draw : callable
        ``draw(data) -> axes``.

    Examples
    --------
    >>> from reproduction.figures import FIGURES
    >>> FIGURES["000-fig2"].title
    'two synthetic examples that no linear map can learn'
    """

    name: str
    title: str
    compute: Callable[[bool], Any]
    draw: Callable[[Any], Any]


def trick_panels(smoke: bool = False) -> list[Panel]:
    """Fig. 3 of 000: ionosphere in the plane that KDNE finds, by either trick.

    Parameters
    ----------
    smoke : bool, default=False
        Whether to take few points.

    Returns
    -------
    list of Panel
        The KPCA trick, the kernel trick.
    """
    problem = _raw("ionosphere", 40 if smoke else 150)
    split = split_of(problem, 0)
    panels: list[Panel] = []
    for name, space in _TRICKS.items():
        metric = Kernelized(DNE(2), Polynomial(degree=2), space)
        # What is wrong with a basis, and warned about, is what the figure shows.
        Z = measured(metric.fit_transform, split.X_train, split.y_train).value
        Z_test = metric.transform(split.X_test[:N_DRAWN])
        if panels:  # eigenvectors have no sign: take that of the other trick
            sign = np.sign(np.sum((Z - Z.mean(axis=0)) * panels[0].Z_train, axis=0))
            Z, Z_test = Z * sign, Z_test * sign
        predicted = KNeighborsClassifier(1).fit(Z, split.y_train).predict(Z_test)
        truth = split.y_test[:N_DRAWN]
        panels.append(Panel("ionosphere", name, Z, split.y_train, Z_test, truth, predicted))
    return panels


def trick_points(names: tuple[str, ...], smoke: bool = False) -> list[TrickPoint]:
    """Figs. 4 and 5 of 000: accuracies of KDNE by the KPCA trick and by the kernel trick.

    Polynomial kernels of degrees 2 to 5, 50, 100 and 150 training points, 1 to 5 neighbours. The
    kernel trick solves the generalized eigenproblem as it is, as the paper does.

    Parameters
    ----------
    names : tuple of str
        Data sets.
    smoke : bool, default=False
        Whether to take two degrees, 50 points and one neighbour only.

    Returns
    -------
    list of TrickPoint
        One for each setting.
    """
    points = []
    for name in names:
        for n in (50,) if smoke else (50, 100, 150):
            split = split_of(_raw(name, n), 0)
            for degree in (2, 5) if smoke else (2, 3, 4, 5):
                kernel = Polynomial(degree=degree, gamma="auto", coef0=0.0)
                condition = _condition(kernel, split.X_train)
                for k in (1,) if smoke else range(1, 6):
                    kpca, trick = (_dne_accuracy(split, kernel, s, k) for s in _TRICKS.values())
                    points.append(TrickPoint(name, degree, n, k, kpca, trick, condition))
    return points


def idealized_grams(smoke: bool = False) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Fig. 1 of 004: Gram matrices of the toy data before and after learning from similar pairs.

    Parameters
    ----------
    smoke : bool, default=False
        Whether to take few points.

    Returns
    -------
    list of (str, ndarray, ndarray)
        Title, Gram matrix, labels.
    """
    X, y = make_toy004(40 if smoke else 100, random_state=0)
    pairs = Pairs.from_labels(y, components=0.7, random_state=0)
    learned = IdealizedKernel().fit(X, pairs=pairs.select(X))
    xing = MMC(power=1.0).fit(X, pairs=pairs)
    views = {
        "linear kernel": X,
        "idealized": learned.transform(X),
        "Xing et al.": xing.transform(X),
    }
    return [(title, Z @ Z.T, y) for title, Z in views.items()]


def moon_panels(smoke: bool = False) -> list[Panel]:
    """Fig. 1 of 001: moons that are too near for Laplacian Eigenmaps.

    Parameters
    ----------
    smoke : bool, default=False
        Whether to take few points.

    Returns
    -------
    list of Panel
        The points, Laplacian Eigenmaps, and with the labels of ten points of each moon.
    """
    X, y = make_close_moons(80 if smoke else 200, random_state=0)
    rng = np.random.RandomState(0)
    some = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:10] for c in (0, 1)])
    known = np.full(len(y), -1)
    known[some] = y[some]
    W = gaussian_graph(X, width=0.25)
    panels = [_panel("the data", X, y, some)]
    for title, lam in (("Laplacian Eigenmaps", np.inf), ("TDL", 16.0)):
        model = TransductiveDistance(
            2, lam, penalty="normalized", graph=W, cost=PaperCost(5), random_state=0
        )
        panels.append(_panel(title, model.fit(X, known).embedding_, y, some))
    return panels


def _panel(title: str, Z: np.ndarray, y: np.ndarray, some: np.ndarray) -> Panel:
    rest = np.setdiff1d(np.arange(len(y)), some)
    # One dimension classifies, as in the paper; two are drawn.
    used = Z if title == "the data" else Z[:, :1]
    predicted = KNeighborsClassifier(1).fit(used[some], y[some]).predict(used[rest])
    return Panel("two moons", title, Z[some], y[some], Z[rest], y[rest], predicted)


def _raw(name: str, n_train: int) -> Problem:
    problem = next(problem for problem in GROUPS["ten"] if problem.name == name)
    return problem._replace(n_train=n_train, scaling="raw", n_test=1000)


def _condition(kernel: Kernel, X: np.ndarray) -> float:
    """Condition number of the Gram matrix, at most what round-off lets one see."""
    return float(np.linalg.cond(kernel.bind(X)(X)))


def _dne_accuracy(split: Split, kernel: Kernel, space: Any, n_neighbors: int) -> float:
    metric = Kernelized(DNE(n_neighbors=n_neighbors), kernel, space)
    try:
        Z = measured(metric.fit_transform, split.X_train, split.y_train).value
        Z_test = measured(metric.transform, split.X_test).value
    except np.linalg.LinAlgError:  # the eigenproblem has no solution to this accuracy
        Z = Z_test = np.array([np.nan])
    if not (np.all(np.isfinite(Z)) and np.all(np.isfinite(Z_test))):
        return float(np.bincount(split.y_train).max() / len(split.y_train))
    return float(KNeighborsClassifier(1).fit(Z, split.y_train).score(Z_test, split.y_test))


_TRICKS = {"KPCA trick": "auto", "kernel trick": KernelTrick(singular="raw")}

#: All figures, by name.
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "000-fig2",
            "two synthetic examples that no linear map can learn",
            lambda smoke: fig2_panels(),
            plot_fig2,
        ),
        Figure("000-fig3", "ionosphere: two tricks, one subspace", trick_panels, plot_fig2),
        Figure(
            "000-fig4",
            "KPCA trick and kernel trick where K is well-conditioned",
            lambda smoke: trick_points(_WELL, smoke),
            plot_tricks,
        ),
        Figure(
            "000-fig5",
            "KPCA trick and kernel trick where K is ill-conditioned",
            lambda smoke: trick_points(_ILL, smoke),
            plot_tricks,
        ),
        Figure("001-fig1", "two moons: Laplacian Eigenmaps and TDL", moon_panels, plot_fig2),
        Figure("004-fig1", "Gram matrices of the toy data", idealized_grams, plot_grams),
    )
}
