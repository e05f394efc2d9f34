"""Ridge regression on the Gram matrix of a kernel whose ridge is a narrow Gaussian, ``λ Delta()``.

Points that almost coincide share that ridge, and the difference of their labels has next to none:
the fewer the other points between them, the wilder a regression by K + λΔ becomes. So the regression
is one by K + λC, with the row sums C of Δ on the diagonal. For points by themselves that is the
ridge λ. For c copies of a point it is the regression of one point with their mean label. And
between the two nothing is singular. The solution then has its place in the feature space of
the kernel as it is, Δ and all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import Weights, over_rows, take_rows, to_numpy
from kernelmetric.kernels import Kernel
from kernelmetric.solvers import solve_in_place
from kernelmetric.spaces._centred_gram import CentredGram

JITTER = 1e-8  # of the mean eigenvalue: for copies of a point, which make K singular
_TILE_ROWS = 512
_CROWDED = 1e-6  # of Delta: a point that others give less than this is by itself
_RELATIVE_CUT = 1e-10


class SharedRidge:
    """The matrix λΔ of training points, most of which are by themselves.

    Parameters
    ----------
    ridge : float
        λ.
    delta : Kernel
        Δ, bound.
    X : array of shape (n, d)
        Training points.
    weights : Weights or None
        Of the points: rows and columns are then times their roots.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
        λC: row sums, where a point that stands for several rows counts as often.
    means : ndarray of shape (1, n)
        Column means.
    """

    def __init__(self, ridge: float, delta: Kernel, X: Any, weights: Weights | None):
        n = X.shape[0]
        self._ridge, self._delta = ridge, delta
        self._counts = np.ones(n) if weights is None else weights.counts
        sums = np.zeros(n)

        def add(rows: slice) -> None:  # below the diagonal it is the same again
            tile = to_numpy(delta(X[rows, :], delta.anchors(X)[rows.start :, :]))
            size = rows.stop - rows.start
            sums[rows] += tile @ self._counts[rows.start :]
            sums[rows.stop :] += self._counts[rows] @ tile[:, size:]

        over_rows(add, n, 8 * (3 * n + X.shape[1]), most=_TILE_ROWS)
        crowd = np.flatnonzero(sums - self._counts > _CROWDED)
        self._crowd, self._points = crowd, take_rows(X, crowd)
        self.diagonal = ridge * sums
        total = float(self._counts.sum())
        self.means = self.diagonal[None, :] / total
        self._constant = np.sqrt(self._counts / total)[:, None]

    @property
    def variance(self) -> float:
        """Trace of the centred matrix."""
        return float(self._counts @ (self._ridge - self.means[0]))

    def centred_times(self, B: np.ndarray) -> np.ndarray:
        """The centred matrix times some columns."""
        return self.centre(self._times(self.centre(B)))

    def _times(self, B: np.ndarray) -> np.ndarray:
        product, crowd = (self._ridge * self._counts)[:, None] * B, self._crowd
        roots = np.sqrt(self._counts[crowd])[:, None]
        some = roots * B[crowd]

        def part(rows: slice) -> None:
            tile = to_numpy(self._delta(self._points[rows, :], self._delta.anchors(self._points)))
            product[crowd[rows]] = self._ridge * roots[rows] * (tile @ some)

        if len(crowd):
            width = 8 * (3 * len(crowd) + self._points.shape[1])
            over_rows(part, len(crowd), width, most=_TILE_ROWS)
        return product

    def centre(self, B: np.ndarray) -> np.ndarray:
        """Columns less their means, by weights where there are any."""
        return B - self._constant @ (self._constant.T @ B)


def centred(gram: CentredGram, diagonal: np.ndarray | None = None) -> np.ndarray:
    """A copy of H K H, or of H (K + D) H with a diagonal D."""
    if gram.roots is not None:
        K = to_numpy(gram.K).copy()
        K[np.diag_indices_from(K)] += 0.0 if diagonal is None else diagonal
        q = to_numpy(gram.constant)
        K -= q @ (q.T @ K)
        K -= (K @ q) @ q.T
        return K
    K, means = to_numpy(gram.K), _means(gram, diagonal)
    K = K - means
    K -= means.T - means.mean()
    if diagonal is not None:
        K[np.diag_indices_from(K)] += diagonal
    return K


def _means(gram: CentredGram, diagonal: np.ndarray | None) -> np.ndarray:
    means = to_numpy(gram.column_means)
    return means if diagonal is None else means + (diagonal / gram.n).astype(means.dtype)


def solution(gram: CentredGram, Y: np.ndarray, shared: SharedRidge | None) -> np.ndarray:
    """Ridge regression of the centred columns of Y, in float64; shape (n, p).

    Without a ridge of the kernel, K has a little added for copies of a point.
    """
    Kc = centred(gram, None if shared is None else shared.diagonal)
    level = max(float(np.trace(Kc)) / gram.n, np.finfo(float).tiny)
    if gram.roots is None:
        Kc += level / gram.n  # the constant vector, which centring left without an eigenvalue
    else:
        Kc += level * to_numpy(gram.constant) @ to_numpy(gram.constant).T
    Kc[np.diag_indices_from(Kc)] += JITTER * level
    factor = linalg.cho_factor(Kc, lower=True, overwrite_a=True, check_finite=False)
    Y = Y - Y.mean(axis=0) if gram.roots is None else to_numpy(gram.centre(gram.scaled(Y)))
    alpha = linalg.cho_solve(factor, Y, check_finite=False)
    if shared is not None:
        return alpha
    # Copies of a point with other labels have weights against each other that mean nothing. What
    # is fitted does not have them, nor its own solution.
    fitted = Y - JITTER * level * alpha
    return linalg.cho_solve(factor, fitted, overwrite_b=True, check_finite=False)


def solution_in_place(
    gram: CentredGram, Y: np.ndarray, shared: SharedRidge
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression of columns that span those of Y, and HKH times it, without the ridge.

    K, in float32, is no more.
    """
    U, values, _ = linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    Y = U[:, values > _RELATIVE_CUT * max(values[0], np.finfo(float).tiny)]
    means, diagonal = _means(gram, shared.diagonal), shared.diagonal.astype(np.float32)
    K, gram.K = np.ascontiguousarray(to_numpy(gram.K)), None
    K -= means
    K -= means.T - means.mean()
    K.reshape(-1)[:: gram.n + 1] += diagonal
    level = max(gram.centred_trace + float(shared.diagonal.sum()), np.finfo(float).tiny)
    K += np.float32(level / gram.n**2)
    alpha, image = solve_in_place(K, Y)
    return alpha, image - shared.centre(shared.diagonal[:, None] * alpha)
