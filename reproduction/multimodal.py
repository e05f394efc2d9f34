"""Alignment for classes of several clusters, under features of noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from kernelmetric.datasets import make_checkerboard
from kernelmetric.demo import Split
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import RBF, Delta, Kernel, Rescaled, rbf_widths
from kernelmetric.learners import LMNN
from kernelmetric.selection import AlignedScales, KernelAlignment, LeaveOneOutRidge
from reproduction.classifiers import nearest
from reproduction.problems import (
    Problem,
    folds,
    make_gaussians,
    moons_in_noise,
    split_of,
    stored,
)
from reproduction.table import Method, Smoke, Table, accuracy

_MOST_CLUSTERS = 8  # of a class
_LEAST_SILHOUETTE = 0.1  # of clusters worth the name
_SINGLE_WIDTHS = (0.25, 0.5, 1.0, 2.5)  # σ of the kernels of single features


class Clustered(Kernel):
    """A kernel that is told the clusters of the classes instead of the classes.

    Each class is cut by k-means, with the number of clusters that has the best silhouette.

    Parameters
    ----------
    kernel : Kernel
        A kernel that learns from labels.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.multimodal import Clustered
    >>> from kernelmetric import KernelAlignment
    >>> X = np.random.RandomState(0).standard_normal((40, 1)) + 20 * (np.arange(40) % 4)[:, None]
    >>> kernel = Clustered(KernelAlignment(centered=True)).bind(X, np.arange(40) % 2)
    >>> bool(kernel.alignment_ > 0.9)  # four clusters are what it sees
    True
    """

    is_bound = False

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def bind(self, X: Any, y: Any = None) -> Kernel:
        """Cut the classes and bind the kernel."""
        codes = np.zeros(len(y), dtype=np.intp)
        for label in np.unique(y):
            members = np.flatnonzero(y == label)
            codes[members] = codes.max() + 1 + _clusters(X[members])
        return self.kernel.bind(X, codes)


def _clusters(X: np.ndarray) -> np.ndarray:
    best, labels = _LEAST_SILHOUETTE, np.zeros(len(X), dtype=np.intp)
    for k in range(2, min(_MOST_CLUSTERS, len(X) // 4) + 1):
        found = KMeans(k, n_init=3, random_state=0).fit_predict(X)
        score = silhouette_score(X, found)
        if score > best:
            best, labels = score, found
    return labels


def _checkerboard(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return make_checkerboard(n, n_noise=4, n_cells=3, random_state=rng)


def _xor(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return make_checkerboard(n, n_noise=4, n_cells=2, random_state=rng)


def _clean_xor(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return make_checkerboard(n, n_cells=2, random_state=rng)


def _rings(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Four rings in turn of two classes."""
    ring = rng.randint(4, size=n)
    radius, angle = 1 + ring + 0.15 * rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring % 2


_SMALL = ("glass", "sonar", "wine")
_UCI = "pima glass ionosphere balance yeast sonar wine satellite"

#: Many clusters under noise; without noise; and sets of 000 and others with its training sizes.
PROBLEMS: dict[str, tuple[Problem, ...]] = {
    "noisy": (
        Problem("checkerboard, 4 noise", 300, _checkerboard),
        Problem("XOR, 4 noise", 200, _xor),
        Problem("Gaussians, 4 noise", 200, make_gaussians),
        Problem("moons, 6 noise", 200, moons_in_noise),
    ),
    "clean": (Problem("rings", 200, _rings), Problem("XOR", 200, _clean_xor)),
    "uci": tuple(Problem(k, 100 if k in _SMALL else 200, stored(k)) for k in _UCI.split()),
}


def _bases() -> list[Kernel]:
    return [*rbf_widths(), Delta()]


def _single_features(d: int) -> list[Kernel]:
    """A few widths on each feature alone, scaled as :class:`RBF` scales one feature."""
    widths = [RBF(gamma=0.5 / sigma**2) for sigma in _SINGLE_WIDTHS]
    return [Rescaled(kernel, row) for row in np.eye(d) for kernel in widths]


# Each a kernel, as a function of the number of features, and what it is.
_ALIGNMENTS: dict[str, tuple[Callable[[int], Any], str]] = {
    "global": (lambda d: KernelAlignment(), "21 widths aligned, as printed."),
    "centred": (
        lambda d: KernelAlignment(_bases(), centered=True),
        "21 widths and the identity aligned, centred.",
    ),
    "clusters": (
        lambda d: Clustered(KernelAlignment(_bases(), centered=True)),
        "The same with the clusters of the classes instead of the classes.",
    ),
    "local": (
        lambda d: KernelAlignment(_bases(), centered=True, local=RBF()),
        "The same with a target of near points only.",
    ),
    "features": (
        lambda d: KernelAlignment([*_bases(), *_single_features(d)], centered=True),
        "The same, and four widths on each feature alone.",
    ),
    "scales, centred": (
        lambda d: AlignedScales(KernelAlignment(_bases(), centered=True)),
        "Scales of the features, then centred.",
    ),
    "scales, local": (
        lambda d: AlignedScales(KernelAlignment(_bases(), centered=True, local=RBF(gamma=1.0))),
        "Scales of the features, then local.",
    ),
    "scales": (lambda d: AlignedScales(), "Scales of the features, and the default kernel."),
    "scales, ridge": (
        lambda d: AlignedScales(LeaveOneOutRidge()),
        "Scales of the features, then the best leave-one-out ridge regression.",
    ),
    "median": (lambda d: RBF() + 0.1 * Delta(), "An RBF of median width, and 0.1."),
    "auto": (lambda d: "auto", "kernel='auto'."),
}


def _aligned(kernel: Callable[[int], Any]) -> Callable[[Problem], Callable[[int], Any]]:
    return lambda problem: lambda d: nearest(Kernelized(LMNN(), kernel=kernel(d)))


_METHODS = (
    *(Method(name, text, _aligned(kernel)) for name, (kernel, text) in _ALIGNMENTS.items()),
    Method(
        "CV width",
        "An RBF whose width 3-fold cross-validation chose.",
        lambda problem: lambda d: KernelizedCV(LMNN(), cv=folds()),
    ),
)


def later_split(problem: Problem, seed: int) -> Split:
    """A split that was not looked at when the prior of AlignedScales was set."""
    return split_of(problem, 100 + seed)


def classify_later(problem: Problem, method: Method, seed: int) -> float:
    """Accuracy on a later split.

    Parameters
    ----------
    problem : Problem
        The data set.
    method : Method
        Builds a function that makes a classifier for a number of features.
    seed : int
        Number of the split.

    Returns
    -------
    float
        Accuracy.
    """
    split = later_split(problem, seed)
    return accuracy(method.build(problem)(split.X_train.shape[1]), split)


#: One table for each group of data sets.
MULTIMODAL = tuple(
    Table(
        name=f"multimodal-{group}",
        title="alignment where classes have several clusters, accuracy of kernelized LMNN",
        problems=problems,
        methods=_METHODS,
        n_splits=4,
        protocol=(
            "Features standardized by the training points; at most 2000 test points; random "
            "splits, seed = 100 + number of the split.",
        ),
        smoke=Smoke((problems[-1].name,), n_train=20),
        evaluate=classify_later,
        printed="percent",
        reference="median",
    )
    for group, problems in PROBLEMS.items()
)


def noise_curve(
    n_noise: Iterable[int] = (0, 2, 4, 8, 12, 16, 24, 32), *, n_train: int = 300, n_splits: int = 5
) -> list[tuple[int, int, dict[str, float]]]:
    """Accuracy of the nearest neighbour on XOR beside more and more features of noise.

    Parameters
    ----------
    n_noise : iterable of int
        Numbers of irrelevant features.
    n_train : int, default=300
        Training points; 1000 others are the test set.
    n_splits : int, default=5
        Draws for each number.

    Returns
    -------
    list of (int, int, dict)
        Number of features of noise, number of the draw, and the accuracy on "all features", on
        "rescaled features" and on the "two that matter".
    """
    rows = []
    for noise in n_noise:
        for seed in range(n_splits):
            X, y = make_checkerboard(n_train + 1000, noise, n_cells=2, random_state=200 + seed)
            X = StandardScaler().fit(X[:n_train]).transform(X)
            scales = AlignedScales(RBF()).bind(X[:n_train], y[:n_train]).scales
            views = {
                "all features": X,
                "rescaled features": X * scales,
                "two that matter": X[:, :2],
            }
            rows.append((noise, seed, {k: _nearest(Z, y, n_train) for k, Z in views.items()}))
    return rows


def _nearest(Z: np.ndarray, y: np.ndarray, n_train: int) -> float:
    neighbour = KNeighborsClassifier(1).fit(Z[:n_train], y[:n_train])
    return float(neighbour.score(Z[n_train:], y[n_train:]))
