"""Relevance of features: the scales under which ridge regression predicts best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, optimize

from kernelmetric.compute.watch import time_left
from kernelmetric.kernels import rescaled
from kernelmetric.solvers import (
    FARTHEST,
    Family,
    Grid,
    cholesky_factor,
    inverse_of,
    with_intercept,
)

_PRIOR = 1.0  # weight of a squared log-relevance; it is one sample against n
_LOG_BOUNDS = (-8.0, 4.0)  # of a relevance, around the common one
_LOG_RIDGE_BOUNDS = (np.log(1e-3), np.log(30.0))  # a smaller one would ask for float64
_ROWS_OF_FLOAT32 = 1000  # of more, the smallest ridge is lost in its rounding
_SQUARE_OF_FLOAT32 = 1e4  # likewise of larger ones: distances are differences of squares


class Sample(NamedTuple):
    """Points, a column of targets for each class, and roots of the weights where there are any."""

    X: Any
    Y: np.ndarray
    roots: np.ndarray | None = None

    def take(self, rows: Any) -> Sample:
        """Some rows of it."""
        roots = None if self.roots is None else self.roots[rows]
        return Sample(self.X[rows], self.Y[rows], roots)

    def mapped(self, scales: np.ndarray | None) -> Sample:
        """The same of rescaled, or mapped points; of the points themselves where None."""
        return self if scales is None else self._replace(X=rescaled(self.X, scales))

    def grid(self, family: Family, judged: int | None = None) -> Grid:
        """Errors of a family of kernels, on some of the points."""
        return Grid(self.X, self.Y, family, judged, self.roots)


def relevance_loss(
    parameters: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    dtype: type = np.float64,
    roots: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """Logarithm of the leave-one-out error of ridge regression, and its gradient.

    With ``K_ij = exp(-Σ_f w_f (x_if - x_jf)²)``, ``G = (K + 1 + λI)⁻¹`` and the residuals
    ``r_i = (GY)_i / G_ii`` of points left out, it is ``log mean r²``; the parameters are the
    logarithms of w and λ. O(n³ + n² d) time, some n × n arrays.
    """
    ridge = float(np.exp(parameters[-1]))
    Z = ((X - X.mean(axis=0)) * np.exp(0.5 * parameters[:-1])).astype(dtype)
    K = np.exp(-np.clip(_squared_distances(Z), 0.0, FARTHEST))
    G = inverse_of(cholesky_factor(with_intercept(K, roots), ridge), "potri")
    np.copyto(G, G.T, where=np.tri(len(G), k=-1, dtype=bool).T)
    if roots is not None:
        Y, K = roots[:, None] * Y, (roots[:, None] * K * roots).astype(dtype)
    alpha, diagonal = G @ Y.astype(dtype), np.diag(G)[:, None]
    residuals = alpha / diagonal
    squares = np.sum(residuals**2, axis=1)
    syrk, syr2k, symm = linalg.get_blas_funcs(("syrk", "syr2k", "symm"), (G,))
    # d mean r² = tr(M dK): the first term through the diagonal of G, the others through GY. Of M,
    # which is symmetric, only the lower half is computed.
    M = syrk(1.0, G * np.sqrt(2.0 * squares / diagonal[:, 0]), lower=1)
    second = G @ (residuals / diagonal)
    M = syr2k(-1.0, alpha, second, beta=1.0, c=M, lower=1, overwrite_c=1)
    trace = np.trace(M)
    M *= K.T
    around = symm(2.0, M, np.column_stack([Z, np.ones_like(Z[:, :1])]), lower=1)
    moved = np.einsum("if,if->f", Z, around[:, :-1]) - around[:, -1] @ Z**2
    gradient = np.append(moved, ridge * trace).astype(np.float64) / squares.sum()
    return float(np.log(squares.sum() / Y.size)), gradient


def relevances(
    blocks: Sequence[tuple[Any, ...]],
    start: np.ndarray,
    max_iter: int,
    groups: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """Logarithms of relevances and ridge, by descent on the leave-one-out error."""
    n = sum(len(block[1]) for block in blocks)

    scales = np.exp(0.5 * start[:-1])
    far = max(np.max(np.abs((X - X.mean(axis=0)) * scales)) for X, *_ in blocks) ** 2
    narrow = n <= _ROWS_OF_FLOAT32 and far <= _SQUARE_OF_FLOAT32

    def loss_of_block(parameters: np.ndarray, *block: Any) -> tuple[float, np.ndarray]:
        X, Y, *roots = block
        if narrow:
            try:
                return relevance_loss(parameters, X, Y, np.float32, *roots)
            except linalg.LinAlgError:  # relevances may have grown on the way
                pass
        return relevance_loss(parameters, X, Y, np.float64, *roots)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        values, gradients = zip(
            *(loss_of_block(parameters, *block) for block in blocks), strict=True
        )
        return float(np.mean(values)), np.mean(gradients, axis=0)

    groups = np.arange(len(start) - 1) if groups is None else groups
    return descend(loss, start, groups, prior=_PRIOR / n, max_iter=max_iter)


def descend(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    groups: np.ndarray,
    *,
    prior: float,
    max_iter: int = 30,
) -> tuple[float, np.ndarray]:
    """The least of a loss of log-relevances from a start, with a prior that they are alike."""
    n_groups = int(groups.max()) + 1
    # every parameter of the loss is one of these; the ridge is of no group
    place = np.append(groups, np.full(len(start) - len(groups), n_groups)).astype(np.intp)

    def objective(few: np.ndarray) -> tuple[float, np.ndarray]:
        value, by_feature = loss(few[place])
        gradient = np.bincount(place, by_feature, minlength=len(few))
        away = few[:n_groups] - few[:n_groups].mean()
        gradient[:n_groups] += 2.0 * prior * away
        return value + prior * float(away @ away), gradient

    first = np.empty(place.max() + 1)
    first[place] = start  # those of one group begin alike
    middle = float(np.mean(first[:n_groups]))
    bounds = [(middle + _LOG_BOUNDS[0], middle + _LOG_BOUNDS[1])] * n_groups
    bounds += [_LOG_RIDGE_BOUNDS] * (len(first) - n_groups)

    def in_time(intermediate_result: Any) -> None:
        if time_left() <= 0:
            raise StopIteration

    options: Any = {"method": "L-BFGS-B", "bounds": bounds, "options": {"maxiter": max_iter}}
    found = optimize.minimize(objective, first, jac=True, callback=in_time, **options)
    return float(found.fun), found.x[place]


def checked_groups(groups: Any, n_features: int) -> np.ndarray:
    """The group of each feature, from 0 on without gaps; each its own where None are given."""
    if groups is None:
        return np.arange(n_features)
    found = np.asarray(groups)
    if found.shape != (n_features,) or found.dtype.kind not in "iu":
        raise ValueError(
            f"Got groups={groups!r} for points with {n_features} features, but expected the number "
            "of a group for each: try groups=None."
        )
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _squared_distances(Z: np.ndarray) -> np.ndarray:
    """For a descent; those of ``compute`` are exact where points nearly coincide, and slower."""
    norms = np.einsum("ij,ij->i", Z, Z)
    D = Z @ (-2.0 * Z.T)
    D += norms
    D += norms[:, None]
    return D
