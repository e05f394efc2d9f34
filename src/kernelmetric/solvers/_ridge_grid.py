"""Errors of ridge regression on points left out, over the widths of a kernel and the ridge."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from kernelmetric.compute import rough

RIDGES = 10.0 ** np.arange(-4, 2)
FARTHEST = 40.0  # exp(-40) is nothing beside one, and no denormal number
_NEAR = 1.04  # a width whose error is within this factor may be better with another ridge
_WIDEST_START = 4  # wider kernels are nearly linear, and say little of scales
_GUESSING = 0.7  # of the variance: more is little better than the mean
_OTHER_VALLEY = 1.15  # narrower widths within this factor may be better with more points
_COLUMNS_FOR_MEDIAN = 100


class Family(NamedTuple):
    """Kernels exp(-γ D) of one distance, apart from their width, in units of the median of D."""

    kernel: Any
    distances: Callable[..., np.ndarray]
    widths: np.ndarray


class Grid:
    """Leave-one-out errors of one family over widths and ridges, computed where they are needed.

    ``errors`` and ``dimensions`` (effective ones) have a row for each of ``gammas``, from narrow to
    wide, a column for each ridge, and NaN where not computed. ``judged`` evenly spaced points are
    left out; ``roots`` are square roots of the points' weights.
    """

    def __init__(
        self,
        X: Any,
        Y: np.ndarray,
        family: Family,
        judged: int | None = None,
        roots: np.ndarray | None = None,
    ):
        self.family, self._judged = family, min(judged or len(Y), len(Y))
        if self._judged < len(Y):
            last = evenly(len(Y), self._judged)
            order = np.append(np.delete(np.arange(len(Y)), last), last)
            X, Y, roots = X[order], Y[order], None if roots is None else roots[order]
        self._roots = roots
        self._Y, D = Y, family.distances(X)
        some = D[:, :: 1 + len(Y) // _COLUMNS_FOR_MEDIAN]
        different = some[some > 0]
        median = float(np.median(different)) if len(different) else 1.0
        self.gammas = 1.0 / (median * family.widths)
        self._D = D / median
        self.errors, self.dimensions = np.full((2, len(self.gammas), len(RIDGES)), np.nan)

    @property
    def name(self) -> str:
        """Name of the family."""
        return self.family.kernel.__name__

    @property
    def best(self) -> tuple[int, int]:
        """Where the error is smallest, of those computed: a width and a ridge."""
        i, j = np.unravel_index(np.nanargmin(self.errors), self.errors.shape)
        return int(i), int(j)

    @property
    def error(self) -> float:
        """The smallest error computed."""
        return float(self.errors[self.best])

    @property
    def valleys(self) -> list[tuple[int, int]]:
        """The best, and a narrower one nearly as good: more points may prefer it."""
        i = max(self.best[0] - 1, 0)
        narrower = np.argwhere(self.errors[:i] < _OTHER_VALLEY * self.error).tolist()
        other = min(narrower, key=lambda place: self.errors[tuple(place)], default=self.best)
        return [self.best, (other[0], other[1])]

    def starts(self, n_features: int) -> list[np.ndarray]:
        """Where the descent on scales begins: at the best width, perhaps also at the narrowest."""
        # Where noise fills the distance, the error is flat around the best common width, and only a
        # narrow one has a slope to go down.
        in_the_dark = self.error > _GUESSING * np.mean(np.var(self._Y, axis=0))
        widths = {min(self.best[0], _WIDEST_START), *([0] if in_the_dark else [])}
        found = ((self.gammas[i], RIDGES[np.nanargmin(self.errors[i])]) for i in sorted(widths))
        return [np.log([gamma] * n_features + [ridge]) for gamma, ridge in found]

    def sweep(self, ridges: Iterable[int] = range(1, len(RIDGES), 2)) -> Self:
        """Compute every second width, with every second ridge or those given, and climb."""
        return self.look((i, j) for i in range(0, len(self.gammas), 2) for j in ridges).climb()

    def look(self, places: Iterable[tuple[int, int]]) -> Self:
        """Compute the errors of some widths and ridges; those off the grid are passed over."""
        K, of = np.empty(0), (-1, None)
        for i, j in places:
            inside = 0 <= i < len(self.gammas) and 0 <= j < len(RIDGES)
            if inside and np.isnan(self.errors[i, j]):
                D = rough(self._D, RIDGES[j] / (8 * len(self._Y)))
                if of != (i, D.dtype):
                    K, of = self._gram(i, D), (i, D.dtype)
                how = self._Y, RIDGES[j], self._judged, self._roots
                try:
                    found = left_out(K, *how)
                except linalg.LinAlgError:  # rounding beyond the ridge
                    found = left_out(self._gram(i, self._D), *how)
                self.errors[i, j], self.dimensions[i, j] = found
        return self

    def climb(self, max_steps: int = 10) -> Self:
        """Go to the best neighbour, until there is none."""
        for _ in range(max_steps):
            i, j = before = self.best
            self.look([(i, j - 1), (i, j + 1), (i - 1, j), (i + 1, j)])
            near = np.flatnonzero(self.errors[:, j] < _NEAR * self.error).tolist()
            self.look([(k, j + s) for k in near if abs(k - i) == 1 for s in (-1, 1)])
            if self.best == before:
                break
        return self

    def settle(self) -> Self:
        """Compute the best again, in all digits and for every point."""
        i, j = self.best
        found = left_out(self._gram(i, self._D), self._Y, RIDGES[j], roots=self._roots)
        if self.errors[i, j] > 0:  # the others are told from some points: relative to the best
            self.errors *= found[0] / self.errors[i, j]
        self.errors[i, j], self.dimensions[i, j] = found
        return self

    def mistakes(self) -> float:
        """Share of the points left out that the best gives another class; NaN for numbers."""
        if not np.all(np.abs(self._Y) == 1.0):
            return np.nan
        i, j = self.best
        K = with_intercept(self._gram(i, self._D), self._roots)
        R = inverse_of(cholesky_factor(K, RIDGES[j]), "trtri")
        roots = np.ones(len(R)) if self._roots is None else self._roots
        alpha = R.T @ (R @ (roots[:, None] * self._Y))
        left = alpha / (np.einsum("ij,ij->j", R, R) * roots)[:, None]
        wrong = np.argmax(self._Y - left, axis=1) != np.argmax(self._Y, axis=1)
        return float(np.average(wrong, weights=roots**2))

    def _gram(self, i: int, D: np.ndarray) -> np.ndarray:
        return np.exp(np.maximum(-1.0 / float(self.family.widths[i]) * D, -FARTHEST))


def left_out(
    K: np.ndarray,
    Y: np.ndarray,
    ridge: float,
    judged: int | None = None,
    roots: np.ndarray | None = None,
) -> tuple[float, float]:
    """Mean squared error of ridge regression on points left out, and its effective dimension.

    The last ``judged`` points are left out one at a time; ``roots`` are square roots of weights.
    The dimension is Σ w / (w + λ) over the eigenvalues w of K + 1; NaN where not all are left out.
    """
    F = (Y if roots is None else roots[:, None] * Y).astype(K.dtype)
    first = 0 if judged is None else max(0, len(K) - judged)
    # G = RᵀR; of the last rows, the last rows and columns of R are enough.
    factor = cholesky_factor(with_intercept(K, roots), ridge)
    R = inverse_of(factor[first:, first:], "trtri")
    diagonal = np.einsum("ij,ij->j", R, R)
    alpha = linalg.cho_solve((factor, True), F)[first:] if first else R.T @ (R @ F)
    total = np.sum((alpha / diagonal[:, None]) ** 2)
    dimension = np.nan if first else float(len(K) - ridge * diagonal.sum())
    count = len(R) if roots is None else float(np.sum(roots[first:] ** 2))
    return float(total / (count * Y.shape[1])), dimension


def with_intercept(K: np.ndarray, roots: np.ndarray | None = None) -> np.ndarray:
    """A new array K + 1, its rows and columns times the roots of weights."""
    if roots is None:
        return K + 1.0
    roots = roots.astype(K.dtype)
    return roots[:, None] * (K + K.dtype.type(1.0)) * roots


def ridge_solution(
    K: np.ndarray, Y: np.ndarray, ridge: float, roots: np.ndarray | None = None
) -> np.ndarray:
    """Coefficients of ridge regression: predictions are ``(K + 1) alpha``."""
    factor = cholesky_factor(with_intercept(K, roots), ridge), True
    each = 1.0 if roots is None else roots[:, None]
    return each * linalg.cho_solve(factor, each * Y)


def cholesky_factor(K: np.ndarray, ridge: float) -> np.ndarray:
    """The lower factor of K + λI; K is overwritten."""
    K.reshape(-1)[:: len(K) + 1] += ridge
    (potrf,) = linalg.get_lapack_funcs(("potrf",), (K,))
    factor, fault = potrf(K.T, lower=1, overwrite_a=1)
    if fault:
        raise linalg.LinAlgError(
            f"Got ridge={ridge:g}, but expected a larger one for a Gram matrix of {len(K)} points."
        )
    return factor


def inverse_of(factor: np.ndarray, what: str) -> np.ndarray:
    """The inverse of a lower factor ("trtri"), or the lower half of that of K ("potri")."""
    (invert,) = linalg.get_lapack_funcs((what,), (factor,))
    return invert(factor, lower=1)[0]


def evenly(n: int, most: int) -> np.ndarray:
    """At most so many of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)
