"""The LMNN hinge over all impostors, block by block.

A triplet (i, j, l) costs when the impostor l of another class comes nearer to i than its target
neighbour j plus a margin.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute._arrays import is_sparse, like, namespace, to_numpy
from kernelmetric.compute._execute import sum_tiles, worth_keeping
from kernelmetric.compute._threads import calm_if_small
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._hinge_there import hinge_there, huber_hinge
from kernelmetric.compute.reductions._products import BlockProduct
from kernelmetric.compute.reductions._selection import true_entries
from kernelmetric.compute.reductions._softmax import class_slices
from kernelmetric.compute.reductions._triplets import (
    Block,
    Points,
    Triplets,
    distances,
    impostor_blocks,
    of_block,
    points_of,
    targets_part,
)

_SPARSE_BELOW = 0.1  # share of active pairs under which a sparse product beats the dense one
_WORTH_SHARING = 1e7  # operations of a sparse product
_WHOLE_BYTES = 60.0  # for each pair of points, where all cost something
_WHOLE_ROWS = 1000  # up to here all pairs at once: no block or list is worth its cost


def lmnn_hinge(
    E: Any,
    V: Any,
    targets: Any,
    codes: Any,
    c: float,
    smoothing: float = 0.0,
    weighed: Triplets | None = None,
) -> tuple[float, Any]:
    """LMNN objective on embedded points, and the Laplacian of its pair weights times V.

    ``f = Σ_ij w_ij d_ij + c Σ_ijl w_ij (1 - y_il) h(1 + d_ij - d_il)``, with ``d`` the squared
    distances between rows of E, **sorted by class**, ``w_ij`` marking target neighbours
    (``targets``, -1 where missing) and ``h`` the hinge. Where ``smoothing`` = μ > 0,
    ``h(t) = t²/2μ`` for 0 < t < μ and ``t - μ/2`` beyond: at most μ/2 below the hinge, with a
    continuous gradient.

    f depends on the points through ``d`` alone, so ``df = Σ_ij ω_ij dd_ij`` with pair weights
    ``ω``; the gradient is ``2 Lap(ω) E`` with respect to E, ``Xᵀ Lap(ω) X`` with respect to M.
    O(n² r) time plus O(active pairs · p); one block of rows × n in memory.
    """
    if not backend_of(E).host:
        return hinge_there(E, V, targets, codes, c, smoothing, weighed)
    class_slices(codes)  # refuses unsorted rows
    value, thresholds, pull = targets_part(E, targets, weighed)
    n, p = V.shape
    i, slot = np.nonzero(targets >= 0)
    if n <= _WHOLE_ROWS and worth_keeping(_WHOLE_BYTES * n * n):
        with calm_if_small(2.0 * n * n * (E.shape[1] + p)):
            D2 = distances(points_of(E, codes), Block(slice(0, n), slice(0, 0)))
            found = _active_weights(D2, thresholds, c, smoothing, weighed)
            hinge, rows, others, values, per_target = found
            weights = (pull + per_target)[i, slot]
            lists = (i, rows), (targets[i, slot], others), (weights, -values)
            first, second, both = map(np.concatenate, lists)
            product = laplacian_product(first, second, both, V)
        return value + hinge, product
    hinge, per_target, product = sum_tiles(
        partial(_hinge_sums, points_of(E, codes), V, thresholds, c, smoothing, weighed),
        impostor_blocks(codes, E),
        flops=2.0 * n * n * E.shape[1],
        entries=n * p,
    )
    product += laplacian_product(i, targets[i, slot], (pull + per_target)[i, slot], V)
    return value + hinge, product


def counted(
    both: tuple[np.ndarray, np.ndarray], i: np.ndarray, j: np.ndarray, weighed: Triplets | None
) -> tuple[np.ndarray, np.ndarray]:
    """Hinges and slopes of pairs (i, j), a column for each target, times what triplets count."""
    if weighed is None:
        return both
    count = weighed.parts[i] * weighed.counts[j][:, None]
    return both[0] * count, both[1] * count


def _hinge_sums(
    points: Points,
    V: Any,
    thresholds: np.ndarray,
    c: float,
    smoothing: float,
    weighed: Triplets | None,
    blocks: list[Block],
) -> tuple[float, np.ndarray, Any]:
    """Hinge of some blocks, weight each target pair collects, Laplacian of the others times V."""
    total, per_target, product = 0.0, np.zeros(thresholds.shape), namespace(V).zeros_like(V)
    for block in blocks:
        rows = block.rows
        D2 = distances(points, block)
        of_these = of_block(weighed, block, D2)
        found = _block_weights(D2, thresholds[rows], c, smoothing, block, of_these)
        loss, weights, per_target[rows] = found
        total += loss
        V_rows = V[rows, :]
        product[rows, :] -= like(per_target[rows].sum(axis=1), V)[:, None] * V_rows
        for part, others in weights:
            columns = part.sum(axis=0) if is_sparse(part) else namespace(V).sum(part, axis=0)
            product[rows, :] += part @ V[others, :]
            product[others, :] += part.T @ V_rows - columns[:, None] * V[others, :]
    return total, per_target, product


def _block_weights(
    D2: np.ndarray,
    thresholds: np.ndarray,
    c: float,
    smoothing: float,
    block: Block,
    weighed: Triplets | None = None,
) -> tuple[float, list[tuple[Any, slice]], np.ndarray]:
    """Hinge value, weights of the pairs (i, l) for runs of l, and what each target pair collects.

    Where few pairs have a weight, they are in one sparse matrix for all l.
    """
    n_rows, n = len(thresholds), D2.shape[1] + block.unseen.stop - block.unseen.start
    found = _active_weights(D2, thresholds, c, smoothing, weighed)
    loss, i, impostor, values, per_target = found
    if len(i) <= _SPARSE_BELOW * D2.size:
        ends = np.searchsorted(i, np.arange(n_rows + 1))
        parts = values, block.of_all(impostor), ends
        return loss, [(sparse.csr_array(parts, shape=(n_rows, n)), slice(0, n))], per_target
    weights = np.zeros_like(D2)
    weights[i, impostor] = values
    return loss, [(weights[:, seen], others) for seen, others in block.spans(n)], per_target


def _active_weights(
    D2: np.ndarray,
    thresholds: np.ndarray,
    c: float,
    smoothing: float,
    weighed: Triplets | None = None,
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hinge value, the pairs that have one, their weights, and weight each target pair collects."""
    n_rows, k = thresholds.shape
    farthest = thresholds.max(axis=1, keepdims=True).astype(D2.dtype)  # rounded: a cost of nothing
    i, impostor = true_entries(D2 < farthest)
    margin = thresholds[i] - D2[i, impostor][:, None]
    h, slope = counted(huber_hinge(margin, smoothing, np), i, impostor, weighed)
    per_target = np.empty((n_rows, k))
    for j in range(k):
        per_target[:, j] = c * np.bincount(i, weights=slope[:, j], minlength=n_rows)
    values = (c * slope.sum(axis=1)).astype(D2.dtype)
    return c * float(h.sum()), i, impostor, values, per_target


def laplacian_product(i: np.ndarray, j: np.ndarray, weights: np.ndarray, V: Any) -> Any:
    """Laplacian of the symmetric graph with these pair weights, times V."""
    n = V.shape[0]
    values = to_numpy(V)
    degrees = np.bincount(i, weights, n) + np.bincount(j, weights, n)
    product = degrees[:, None].astype(values.dtype) * values
    weights = weights.astype(values.dtype)
    if len(i) > _SPARSE_BELOW * n * n:
        W = np.zeros((n, n), dtype=values.dtype)
        np.add.at(W, (i, j), weights)
        product -= W @ values + W.T @ values
    else:
        order = np.argsort(i, kind="stable")
        ends = np.searchsorted(i[order], np.arange(n + 1))
        index = np.int32 if len(i) < 2**31 else np.int64
        parts = weights[order], j[order].astype(index), ends.astype(index)
        W = sparse.csr_array(parts, shape=(n, n))
        for A in (W, W.T):
            small = A.nnz * values.shape[1] < _WORTH_SHARING
            product -= A @ values if small else BlockProduct(A, values.dtype)(values)
    return product if backend_of(V).host else like(product, V)
