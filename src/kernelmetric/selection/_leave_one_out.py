"""Kernel and ridge by the leave-one-out error of ridge regression, which has a closed form."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from kernelmetric.compute import (
    is_sparse,
    l1_distances,
    one_thread,
    squared_distances,
    take_rows,
    to_numpy,
)
from kernelmetric.kernels import RBF, Delta, Kernel, Laplacian, Rescaled
from kernelmetric.selection._relevance import relevances
from kernelmetric.selection._targets import coded_targets, few_columns

RIDGES = 10.0 ** np.arange(-4, 2)
FALLBACK_RIDGE = 0.1  # where labels cannot choose
_GAIN = 0.9  # scales must lower the error this far on points they were not learned from
_LEAST_ROWS = 40  # for learning scales: half of them must still say something
_FEWEST_ROWS = 8  # for choosing anything at all
_ROWS_OF_ONE_THREAD = 250  # more are worth all threads of BLAS


class Family(NamedTuple):
    """Kernels that are functions of one distance, apart from their width.

    Parameters
    ----------
    kernel : type
        Class of the kernel.
    distances : callable
        ``distances(X) -> D``; the kernel is exp(-γ D).
    widths : ndarray
        Widths 1 / γ to try, in units of the median of D.
    """

    kernel: type
    distances: Callable[[Any], np.ndarray]
    widths: np.ndarray


class Grid(NamedTuple):
    """Leave-one-out errors of one family.

    Parameters
    ----------
    gammas : ndarray of shape (g,)
        Inverse widths.
    errors : ndarray of shape (g, r)
        Mean squared errors, a row for each width, a column for each ridge.
    """

    gammas: np.ndarray
    errors: np.ndarray

    @property
    def best(self) -> tuple[float, float, float]:
        """Inverse width, ridge and error at the smallest error."""
        i, j = np.unravel_index(np.argmin(self.errors), self.errors.shape)
        return float(self.gammas[i]), float(RIDGES[j]), float(self.errors[i, j])

    @property
    def starts(self) -> list[tuple[float, float]]:
        """Where the descent on scales begins: at the best width, and at the narrowest.

        Where noise fills the distance, the best common width is so wide that the error is flat
        around it, and only a narrow one has a slope to go down.
        """
        narrowest = float(RIDGES[np.argmin(self.errors[0])])
        return [self.best[:2], (float(self.gammas[0]), narrowest)]


class Choice(NamedTuple):
    """What was chosen, and from what.

    Parameters
    ----------
    kernel : Kernel
        The kernel with its ridge, still to be bound.
    candidates : dict of str to float
        Error of each family, and of each on rescaled features, on points that neither the
        regression nor the scales have seen.
    grid : Grid
        Errors of the chosen family, with the scales chosen.
    """

    kernel: Kernel
    candidates: dict[str, float]
    grid: Grid


FAMILIES = (
    Family(RBF, squared_distances, 2.0 ** np.arange(-4, 5)),
    Family(Laplacian, l1_distances, 2.0 ** np.arange(-2, 5)),
)


class LeaveOneOutRidge(Kernel):
    r"""The kernel, width and ridge with which ridge regression predicts points left out best.

    RBF and Laplacian kernels are tried. For each width one eigendecomposition
    :math:`K + 1 = U \Lambda U^\top` gives the residuals of all points left out, one at a time, for
    every ridge λ:

    .. math:: r_i = \frac{(GY)_i}{G_{ii}}, \qquad G = U (\Lambda + \lambda)^{-1} U^\top,

    where Y holds a column of ±1 for each class, or the standardized target. ``bind`` returns
    ``kernel + λ Delta()`` with the smallest mean squared residual. Where a scale for each feature,
    learned on one half of the points, lowers the error on the other half by a tenth, it returns
    that kernel on rescaled features. m³ time and some m × m arrays for m rows.

    Parameters
    ----------
    max_samples : int, default=500
        The most rows to look at; of more, a stratified sample is drawn.
    random_state : int, RandomState or None, default=0
        For the sample.

    Notes
    -----
    Without y, ``bind`` returns the RBF of median width. Where labels cannot choose (one class,
    fewer than eight points, or points that coincide) it returns ``RBF("median") + 0.1 Delta()``.
    A floating-point y with fractions, or with fewer than four rows per value, is a continuous
    target. For sparse X only the RBF is tried, on common scales. The ridge chosen on a sample is
    kept for all rows: it is the noise of one target beside the variance of the function.

    What ``bind`` returns carries what was tried: ``candidates_`` (the error of each family, and of
    each with scales, by name), and for the chosen one ``gammas_``, ``ridges_`` and the grid
    ``loo_errors_``.

    Examples
    --------
    >>> from kernelmetric.datasets import make_checkerboard
    >>> from kernelmetric.selection import LeaveOneOutRidge
    >>> X, y = make_checkerboard(200, n_noise=2, random_state=0)
    >>> kernel = LeaveOneOutRidge().bind(X, y)
    >>> bool(kernel.scales[:2].min() > 2 * kernel.scales[2:].max())  # the noise is found out
    True
    """

    accepts_sparse = True
    is_bound = False

    def __init__(self, max_samples: int = 500, random_state: Any = 0):
        self.max_samples = max_samples
        self.random_state = random_state

    def bind(self, X: Any, y: Any = None) -> Kernel:
        """Return the chosen kernel.

        Parameters
        ----------
        X : array of shape (n, d)
            Training points.
        y : array of shape (n,) or (n, p), default=None
            Labels or targets.

        Returns
        -------
        Kernel
            A concrete kernel, or the median-width RBF where y is None.
        """
        median = RBF(gamma="median").bind(X)  # also refuses points whose distances overflow
        if y is None:
            return median
        targets = coded_targets(y, X)
        rows = self._rows(targets.key)
        Y = targets.columns(rows)
        sample = take_rows(X, rows)
        if not is_sparse(sample):
            sample = to_numpy(sample).astype(np.float64)
        unlike = np.ptp(Y, axis=0).any() and squared_distances(sample).any()
        if len(rows) < _FEWEST_ROWS or not unlike:
            return median + FALLBACK_RIDGE * Delta().bind(X)
        # Threads that wait for each other cost more than they give on matrices of few rows.
        threads = one_thread() if len(rows) <= _ROWS_OF_ONE_THREAD else nullcontext()
        with np.errstate(all="ignore"), threads:  # far points may underflow, and are seen later
            choice = choose(sample, Y, targets.key[rows])
        bound = choice.kernel.bind(X)
        bound.__dict__.update(
            candidates_=choice.candidates,
            gammas_=choice.grid.gammas,
            ridges_=RIDGES.copy(),
            loo_errors_=choice.grid.errors,
        )
        return bound

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that ``bind`` takes at its peak, besides the data.

        Parameters
        ----------
        n_samples : int
            Number of training points.
        n_features : int
            Number of features.

        Returns
        -------
        int
            An estimate, within a factor of two.
        """
        m = min(n_samples, self._most_rows())
        return 8 * m * (7 * m + 5 * n_features)

    def _most_rows(self) -> int:
        most = self.max_samples
        good = isinstance(most, Integral) and not isinstance(most, bool)
        if not good or int(most) < _FEWEST_ROWS:
            raise ValueError(
                f"Got max_samples={most!r}, but expected an integer of at least {_FEWEST_ROWS}: "
                "try 500."
            )
        return int(most)

    def _rows(self, key: np.ndarray) -> np.ndarray:
        """All rows, or a sample in proportion to the classes (or spread over the target)."""
        n = len(key)
        m = min(n, self._most_rows())
        if m == n:
            return np.arange(n)
        shuffled = check_random_state(self.random_state).permutation(n)
        by_key = shuffled[np.argsort(key[shuffled], kind="stable")]
        return by_key[np.linspace(0, n - 1, m).round().astype(np.intp)]


def leave_one_out_errors(K: np.ndarray, Y: np.ndarray, ridges: Any = RIDGES) -> np.ndarray:
    """Mean squared error of ridge regression on points left out, for each ridge.

    The intercept is a constant added to the kernel, K + 1. Centring K instead would let the mean
    of the other targets tell that of the point left out.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    Y : ndarray of shape (n, p)
        Targets.
    ridges : array-like of shape (r,)
        Ridges λ, positive.

    Returns
    -------
    ndarray of shape (r,)
        Mean over points and columns. O(n³ + r n² p) time; of p classes, only those of several
        points cost more than one.
    """
    values, U = linalg.eigh(K + 1.0, check_finite=False)
    values = np.maximum(values, 0.0)  # round-off of a singular Gram matrix
    F, signs, own = few_columns(Y)
    targets, squares = U.T @ F, U**2
    errors = []
    for ridge in ridges:
        shrunk = 1.0 / (values + ridge)
        diagonal = squares @ shrunk
        residuals = (U @ (shrunk[:, None] * targets)) / diagonal[:, None]
        total = np.sum(residuals**2 * signs) + own * np.sum(squares @ shrunk**2 / diagonal**2)
        errors.append(total / Y.size)
    return np.array(errors)


def search(X: Any, Y: np.ndarray, family: Family) -> Grid:
    """Leave-one-out errors of a family of kernels, from one block of distances.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    Y : ndarray of shape (n, p)
        Targets.
    family : Family
        The kernels.

    Returns
    -------
    Grid
        Their errors.
    """
    D = family.distances(X)
    different = D[D > 0]
    median = float(np.median(different)) if len(different) else 1.0
    gammas = 1.0 / (median * family.widths)
    return Grid(gammas, np.stack([leave_one_out_errors(np.exp(-g * D), Y) for g in gammas]))


def choose(X: Any, Y: np.ndarray, key: np.ndarray) -> Choice:
    """The kernel with the smallest error on points left out.

    Parameters
    ----------
    X : array of shape (n, d)
        Points, dense float64 or sparse.
    Y : ndarray of shape (n, p)
        Targets.
    key : ndarray of shape (n,)
        Class codes, or the target, for halves that resemble each other.

    Returns
    -------
    Choice
        The kernel and what it was compared with.
    """
    families = FAMILIES[:1] if is_sparse(X) else FAMILIES
    grids = [search(X, Y, family) for family in families]
    common = [grid.best[2] for grid in grids]
    names = [family.kernel.__name__ for family in families]
    candidates = dict(zip(names, common, strict=True))
    best = int(np.argmin(common))
    scales = None
    if not is_sparse(X) and X.shape[0] >= _LEAST_ROWS and X.shape[1] > 1:
        gains = _gains_of_scales(X, Y, key, grids[0].starts)
        scaled = [error * gain for error, gain in zip(common, gains, strict=True)]
        candidates |= {f"{name}, rescaled": e for name, e in zip(names, scaled, strict=True)}
        if min(scaled) < _GAIN * min(common):
            best = int(np.argmin(scaled))
            scales = np.sqrt(relevances(X, Y, grids[0].starts))
    family = families[best]
    grid = grids[best] if scales is None else search(X * scales, Y, family)
    gamma, ridge, _ = grid.best
    kernel: Kernel = family.kernel(gamma=gamma) + ridge * Delta()
    if scales is not None:
        kernel = Rescaled(kernel, scales)
    return Choice(kernel, candidates, grid)


def _gains_of_scales(
    X: np.ndarray, Y: np.ndarray, key: np.ndarray, starts: list[tuple[float, float]]
) -> list[float]:
    """Error with scales learned on the other half of the points, relative to common scales.

    The error on the points that scales were learned from is far too good where features are
    many.
    """
    # Alternating along a fixed direction within each class, classes in the order of their first
    # points there: neither the order of rows nor the names of classes matter.
    along = X @ np.random.RandomState(0).standard_normal(X.shape[1])
    if key.dtype.kind == "i":
        first = np.full(key.max() + 1, np.inf)
        np.minimum.at(first, key, along)
        order = np.lexsort((along, key, np.bincount(key)[key], first[key]))
    else:
        order = np.lexsort((along, key))
    halves = order[::2], order[1::2]
    learned = [np.sqrt(relevances(X[half], Y[half], starts)) for half in halves]
    gains = []
    for family in FAMILIES:
        after = before = 0.0
        for half, scales in zip(halves, learned[::-1], strict=True):
            after += search(X[half] * scales, Y[half], family).best[2]
            before += search(X[half], Y[half], family).best[2]
        gains.append(after / before if before > 0 else 1.0)
    return gains
