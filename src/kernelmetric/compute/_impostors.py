"""The LMNN hinge: impostors found block by block, and the Laplacian of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute._arrays import is_numpy, namespace, take_rows, to_numpy
from kernelmetric.compute._budget import row_blocks
from kernelmetric.compute._softmax import class_slices

_TILE_BYTES = 8 * 2**20
_SPARSE_BELOW = 0.1  # share of active pairs under which a sparse product beats the dense one


def lmnn_hinge(
    E: Any, V: Any, targets: np.ndarray, codes: np.ndarray, c: float, smoothing: float = 0.0
) -> tuple[float, Any]:
    """LMNN objective on embedded points, and the Laplacian of its pair weights times V.

    ``f = Σ_ij w_ij d_ij + c Σ_ijl w_ij (1 - y_il) h(1 + d_ij - d_il)``, with ``d`` the squared
    distances between rows of E, ``w_ij`` marking target neighbours and ``h`` the hinge. Where
    ``smoothing`` = μ > 0, ``h(t) = t²/2μ`` for 0 < t < μ and ``t - μ/2`` beyond: at most μ/2
    below the hinge, with a continuous gradient.

    f depends on the points through ``d`` alone, so ``df = Σ_ij ω_ij dd_ij`` with pair weights
    ``ω``; the gradient follows from the graph Laplacian of ω: ``2 Lap(ω) E`` with respect to E,
    ``Xᵀ Lap(ω) X`` with respect to M.

    Parameters
    ----------
    E : array of shape (n, r)
        The embedded points, **rows sorted by class**.
    V : array of shape (n, p)
        What the Laplacian is multiplied with.
    targets : ndarray of shape (n, k)
        Row numbers of the target neighbours, -1 where missing.
    codes : ndarray of shape (n,)
        Class codes, ascending.
    c : float
        Weight of the hinge.
    smoothing : float, default=0
        Width μ of the quadratic corner.

    Returns
    -------
    value : float
        The objective.
    product : array of shape (n, p)
        ``Lap(ω) V``.

    Notes
    -----
    O(n² r) time for the distances, plus O(active pairs · p); one block of rows × n in memory,
    never the list of all active triplets.
    """
    xp = namespace(E, V)
    E = E - xp.mean(E, axis=0, keepdims=True)
    squares = xp.sum(E * E, axis=1)
    rows, slots = np.nonzero(targets >= 0)
    pull_d = to_numpy(_pair_distances(E, rows, targets[rows, slots], xp)).astype(np.float64)
    thresholds = np.full(targets.shape, -np.inf)
    thresholds[rows, slots] = 1.0 + pull_d
    value = float(pull_d.sum())
    pull = np.zeros(targets.shape)
    pull[rows, slots] = 1.0
    product = xp.zeros((V.shape[0], V.shape[1]), dtype=V.dtype, device=V.device)
    itemsize = 4 if E.dtype == xp.float32 else 8
    n = E.shape[0]
    most = max(32, _TILE_BYTES // (n * itemsize))
    for start, stop in class_slices(codes):
        others = np.r_[0:start, stop:n]
        E_others = take_rows(E, others)
        V_others = take_rows(V, others)
        squares_others = take_rows(squares, others)
        pushed = xp.zeros_like(V_others)
        for block in row_blocks(stop - start, 4 * n * itemsize, most=most):
            own = slice(start + block.start, start + block.stop)
            D2 = E[own, :] @ (-2.0 * E_others).T
            D2 += squares_others[None, :]
            D2 += squares[own][:, None]
            loss, weights, per_target = _block_weights(D2, thresholds[own], c, smoothing, xp)
            value += loss
            pull[own] += per_target
            row_sums, back = _push(product, own, weights, V[own, :], V_others, xp)
            pushed += back
            product[own, :] -= row_sums
        _add_rows(product, others, pushed, xp)
    product += _pull(pull, targets, V, xp)
    return value, product


def _block_weights(
    D2: Any, thresholds: np.ndarray, c: float, smoothing: float, xp: Any
) -> tuple[float, Any, np.ndarray]:
    """Hinge value, weight of each pair (i, l), and weight each target pair collects."""
    n_rows, k = thresholds.shape
    if is_numpy(D2):
        i, impostor = np.nonzero(D2 < thresholds.max(axis=1)[:, None])
        margin = thresholds[i] - D2[i, impostor][:, None]
        h, slope = _hinge(margin, smoothing)
        per_target = np.empty((n_rows, k))
        for j in range(k):
            per_target[:, j] = c * np.bincount(i, weights=slope[:, j], minlength=n_rows)
        weights = sparse.csr_matrix(
            ((c * slope.sum(axis=1)).astype(D2.dtype), (i, impostor)), shape=D2.shape
        )
        return c * float(h.sum()), weights, per_target
    loss, weights, per_target = 0.0, xp.zeros_like(D2), np.empty((n_rows, k))
    for j in range(k):
        column = xp.asarray(thresholds[:, j], dtype=D2.dtype, device=D2.device)
        h, slope = _hinge(column[:, None] - D2, smoothing, xp)
        loss += c * float(xp.sum(h))
        weights += c * slope
        per_target[:, j] = c * to_numpy(xp.sum(slope, axis=1))
    return loss, weights, per_target


def _hinge(margin: Any, smoothing: float, xp: Any = np) -> tuple[Any, Any]:
    """Huber-smoothed hinge and its slope."""
    positive = xp.clip(margin, 0, None) if xp is not np else np.maximum(margin, 0)
    if smoothing <= 0:
        return positive, xp.where(margin > 0, xp.ones_like(margin), xp.zeros_like(margin))
    slope = xp.clip(positive / smoothing, 0, 1)
    return slope * (positive - 0.5 * smoothing * slope), slope


def _push(product: Any, own: slice, weights: Any, V_own: Any, V_others: Any, xp: Any):
    """Laplacian of the negative impostor weights: its part for the rows, and for the others."""
    if is_numpy(V_own):
        if weights.nnz > _SPARSE_BELOW * weights.shape[0] * weights.shape[1]:
            weights = weights.toarray()
        row = np.asarray(weights.sum(axis=1)).reshape(-1, 1)
        column = np.asarray(weights.sum(axis=0)).reshape(-1, 1)
    else:
        row = xp.sum(weights, axis=1)[:, None]
        column = xp.sum(weights, axis=0)[:, None]
    return row * V_own - weights @ V_others, weights.T @ V_own - column * V_others


def _pull(pull: np.ndarray, targets: np.ndarray, V: Any, xp: Any) -> Any:
    """Laplacian of the target weights times V."""
    n = targets.shape[0]
    i, slot = np.nonzero(targets >= 0)
    omega = sparse.csr_matrix((pull[i, slot], (i, targets[i, slot])), shape=(n, n))
    omega = omega + omega.T
    laplacian = sparse.diags(np.asarray(omega.sum(axis=1)).ravel()) - omega
    product = laplacian @ to_numpy(V)
    return xp.asarray(product, dtype=V.dtype, device=V.device) if not is_numpy(V) else product


def _pair_distances(E: Any, i: np.ndarray, j: np.ndarray, xp: Any) -> Any:
    difference = take_rows(E, i) - take_rows(E, j)
    return xp.sum(difference * difference, axis=1)


def _add_rows(product: Any, rows: np.ndarray, addition: Any, xp: Any) -> None:
    if is_numpy(product):
        product[rows] += addition
    else:  # the rows are two runs, before and after one class
        gap = np.flatnonzero(np.diff(rows) > 1)
        first = int(gap[0]) + 1 if len(gap) else (len(rows) if rows[0] == 0 else 0)
        product[:first, :] += addition[:first, :]
        product[product.shape[0] - (len(rows) - first) :, :] += addition[first:, :]
