"""Ridge regression on the Gram matrix of a kernel whose ridge is a narrow Gaussian, ``λ Delta()``.

Points that almost coincide share that ridge, and the difference of their labels has next to none:
where they differ, a regression by K + λΔ becomes wild. So the regression is one by K + λC, with the
row sums C of Δ on the diagonal. For points by themselves that is the ridge λ. For copies of a point
it is the regression of one point with their mean label. Between the two nothing is singular. The
solution then has its place in the feature space of the kernel as it is, Δ and all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, sparse

from kernelmetric.compute import (
    Weights,
    entries_above,
    like,
    map_rows,
    namespace,
    over_rows,
    positive_solver,
    take_rows,
    to_numpy,
)
from kernelmetric.kernels import Kernel
from kernelmetric.solvers import cholesky_factor, evenly, solve_in_place
from kernelmetric.spaces._base import block_size
from kernelmetric.spaces._centred_gram import CentredGram

JITTER = 1e-8  # of the mean eigenvalue: for copies of a point, which make K singular
_TILE_ROWS = 512
_NEAR = 1e-9  # of Delta: points that give each other less are apart
_MOST_NEAR = 256  # of a point, on average; of more, Delta is computed again for every product
_RELATIVE_CUT = 1e-10
LEAST_OF_CLASS = 10  # rows that tell classes apart: of each class so many, or all it has


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
        self._X, self._near = X, None
        sums, counts = np.zeros(n), like(self._counts, X)
        found: list[tuple[np.ndarray, ...]] = []

        def few() -> bool:
            return sum(len(values) for _, _, values in found) <= _MOST_NEAR * n

        def add(rows: slice) -> None:
            tile = self._tile(rows)
            sums[rows] += to_numpy(tile @ counts[rows.start :])
            sums[rows.stop :] += to_numpy(counts[rows] @ tile[:, rows.stop - rows.start :])
            if few():
                i, j, values = entries_above(tile, _NEAR)
                other = j > i
                start = rows.start
                found.append((i[other] + start, j[other] + start, values[other]))

        self._over_tiles(add)
        if few():
            i, j, values = (np.concatenate(part) for part in zip(*found, strict=True))
            half = sparse.coo_array((values, (i, j)), shape=(n, n)).tocsr()
            # In one matrix, its columns in order, copies have rows of the same bits.
            self._near = (half + half.T + sparse.eye_array(n)).tocsr()
            self._near.sort_indices()
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
        roots = np.sqrt(self._counts)[:, None]
        B = roots * B
        if self._near is not None:
            return self._ridge * roots * (self._near @ B)
        product = np.zeros_like(B)

        def add(rows: slice) -> None:
            tile = to_numpy(self._tile(rows))
            product[rows] += tile @ B[rows.start :]
            product[rows.stop :] += tile[:, rows.stop - rows.start :].T @ B[rows]

        self._over_tiles(add)
        return self._ridge * roots * product

    def _tile(self, rows: slice) -> Any:
        """Some rows of Δ from the diagonal on; below it, it is the same again."""
        anchors = self._delta.anchors(self._X)
        return self._delta(self._X[rows, :], anchors[rows.start :, :])

    def _over_tiles(self, work: Callable[[slice], None]) -> None:
        n, d = self._X.shape
        over_rows(work, n, 8 * (3 * n + d), most=_TILE_ROWS)

    def centre(self, B: np.ndarray) -> np.ndarray:
        """Columns less their means, by weights where there are any."""
        return B - self._constant @ (self._constant.T @ B)


def centred(gram: CentredGram, diagonal: np.ndarray | None = None) -> Any:
    """A copy of H K H, or of H (K + D) H with a diagonal D, where K is."""
    if gram.roots is not None:
        K = gram.xp.asarray(gram.K, copy=True)
        if diagonal is not None:
            _add_to_diagonal(K, gram.array(diagonal))
        q = gram.constant
        K -= q @ (q.T @ K)
        K -= (K @ q) @ q.T
        return K
    means = _means(gram, diagonal)
    K = gram.K - means
    K -= means.T - gram.xp.mean(means)
    if diagonal is not None:
        _add_to_diagonal(K, gram.array(diagonal))
    return K


def _add_to_diagonal(K: Any, values: Any) -> None:
    namespace(K).reshape(K, (-1,), copy=False)[:: K.shape[0] + 1] += values


def _means(gram: CentredGram, diagonal: np.ndarray | None) -> Any:
    means = gram.column_means
    return means if diagonal is None else means + gram.array(diagonal / gram.n)


def solution(gram: CentredGram, Y: np.ndarray, shared: SharedRidge | None) -> np.ndarray:
    """Ridge regression of the centred columns of Y, in float64; shape (n, p).

    Without a ridge of the kernel, K has a little added for copies of a point.
    """
    Kc = centred(gram, None if shared is None else shared.diagonal)
    level = max(float(gram.xp.linalg.trace(Kc)) / gram.n, np.finfo(float).tiny)
    if gram.roots is None:
        Kc += level / gram.n  # the constant vector, which centring left without an eigenvalue
    else:
        Kc += level * gram.constant @ gram.constant.T
    _add_to_diagonal(Kc, JITTER * level)
    solve = positive_solver(Kc)
    Y = (
        Y - Y.mean(axis=0)
        if gram.roots is None
        else to_numpy(gram.centre(gram.array(gram.scaled(Y))))
    )
    alpha = solve(Y)
    if shared is not None:
        return alpha
    # Copies of a point with other labels have weights against each other that mean nothing. What
    # is fitted does not have them, nor its own solution.
    return solve(Y - JITTER * level * alpha)


def solution_in_place(
    gram: CentredGram, Y: np.ndarray, shared: SharedRidge
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression of columns that span those of Y, and HKH times it, without the ridge.

    K, in float32, is no more.
    """
    U, values, _ = linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    Y = U[:, values > _RELATIVE_CUT * max(values[0], np.finfo(float).tiny)]
    means, diagonal = to_numpy(_means(gram, shared.diagonal)), shared.diagonal.astype(np.float32)
    K, gram.K = np.ascontiguousarray(to_numpy(gram.K)), None
    K -= means
    K -= means.T - means.mean()
    K.reshape(-1)[:: gram.n + 1] += diagonal
    level = max(gram.centred_trace + float(shared.diagonal.sum()), np.finfo(float).tiny)
    K += np.float32(level / gram.n**2)
    alpha, image = solve_in_place(K, Y)
    return alpha, image - shared.centre(shared.diagonal[:, None] * alpha)


def telling_rows(
    smooth: Kernel, ridge: float, X: Any, Y: np.ndarray, n_evenly: int, n_nearest: int
) -> np.ndarray:
    """Rows that ridge regression needs where classes are easily told apart, ascending.

    Rows that resemble all are taken first, ten or more of each class that has them. Those of the
    others that a regression of the first predicts worst, or least surely, come beside them. What is
    left is predicted right by far.

    Parameters
    ----------
    smooth : Kernel
        The kernel without its ridge.
    ridge : float
        The ridge.
    X : array of shape (n, d)
        Training points.
    Y : ndarray of shape (n, p)
        Columns of targets, by which classes are told apart.
    n_evenly, n_nearest : int
        How many to take of the ones and of the others.

    Returns
    -------
    ndarray of int
        Row numbers.
    """
    n = len(Y)
    order = np.lexsort(Y.T)  # by class; within one, in the order of the rows
    begins = np.append(True, np.any(np.diff(Y[order], axis=0), axis=1))
    place = np.arange(n) - np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    few, rest = order[place < LEAST_OF_CLASS], order[place >= LEAST_OF_CLASS]
    first = np.append(few, rest[evenly(len(rest), n_evenly - len(few))])
    some = take_rows(X, first)
    factor = cholesky_factor(to_numpy(smooth(some)).astype(np.float64) + 1.0, ridge)
    alpha = linalg.cho_solve((factor, True), Y[first], check_finite=False)

    def squares(rows: slice) -> np.ndarray:
        return np.sum((Y[rows] - (to_numpy(smooth(X[rows, :], some)) + 1.0) @ alpha) ** 2, axis=1)

    wrong = map_rows(squares, n, **block_size(X, n_evenly))
    wrong[first] = np.inf
    taken = len(first) + n_nearest
    return np.sort(np.argpartition(wrong, n - taken)[-taken:])
