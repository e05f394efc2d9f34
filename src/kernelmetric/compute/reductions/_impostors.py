"""The LMNN hinge over all impostors, block by block.

A triplet (i, j, l) costs when the impostor l of another class comes nearer to i than its target
neighbour j plus a margin.
"""

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute._arrays import device_of, in_library_of, like, namespace, to_numpy
from kernelmetric.compute._budget import fits_budget, itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute._threads import small_steps
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._distances import robust_center, squared_lengths
from kernelmetric.compute.reductions._products import BlockProduct
from kernelmetric.compute.reductions._smallest import true_entries
from kernelmetric.compute.reductions._softmax import class_slices
from kernelmetric.compute.reductions._triplets import (
    Block,
    Margins,
    Points,
    Triplets,
    distances,
    huber_hinge,
    impostor_blocks,
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

    With ``ω_ij = ∂f/∂d_ij``, the gradient is ``2 Lap(ω) E`` with respect to E, ``Xᵀ Lap(ω) X`` with
    respect to M. O(n² r) time plus O(active pairs · p); one block of rows × n in memory.
    """
    if not backend_of(E).host:
        return _on_device(E, V, targets, codes, c, smoothing, weighed)
    class_slices(codes)  # refuses unsorted rows
    value, margins, pull = targets_part(E, targets, weighed, smoothing)
    n, p = V.shape
    i, slot = np.nonzero(targets >= 0)
    if n <= _WHOLE_ROWS and fits_budget(_WHOLE_BYTES * n * n):
        with small_steps(2.0 * n * n * (E.shape[1] + p)):
            D2 = distances(points_of(E, codes), Block(slice(0, n), slice(0, 0)))
            rows, others, hinge, values, slopes = _active(D2, margins)
            weights = (pull + c * slopes)[i, slot]
            lists = (i, rows), (targets[i, slot], others), (weights, -c * values)
            first, second, both = map(np.concatenate, lists)
            return value + c * hinge, laplacian_product(first, second, both, V)
    hinge, slopes, product = sum_tiles(
        partial(_hinge_sums, points_of(E, codes), V, margins),
        impostor_blocks(codes, E),
        flops=2.0 * n * n * E.shape[1],
        entries=n * p,
    )
    product *= c
    product += laplacian_product(i, targets[i, slot], (pull + c * slopes)[i, slot], V)
    return value + c * hinge, product


def _hinge_sums(
    points: Points, V: np.ndarray, margins: Margins, blocks: list[Block]
) -> tuple[float, np.ndarray, np.ndarray]:
    """The tile: the hinge of some blocks, slopes of targets, the impostors' Laplacian times V."""
    total, slopes, product = 0.0, np.zeros(margins.thresholds.shape), np.zeros_like(V)
    for block in blocks:
        rows = block.rows
        D2 = distances(points, block)
        i, impostor, loss, values, slopes[rows] = _active(D2, margins.of(block))
        total += loss
        V_rows = V[rows]
        product[rows] -= slopes[rows].sum(axis=1, dtype=V.dtype)[:, None] * V_rows
        for part, others in _weights(D2, i, impostor, values, block, len(V)):
            product[rows] += part @ V[others]
            product[others] += part.T @ V_rows - part.sum(axis=0)[:, None] * V[others]
    return total, slopes, product


def _weights(
    D2: np.ndarray, i: np.ndarray, impostor: np.ndarray, values: np.ndarray, block: Block, n: int
) -> list[tuple[Any, slice]]:
    """Weights of pairs for runs of impostors; in one sparse matrix where few have one."""
    if len(i) <= _SPARSE_BELOW * D2.size:
        parts = values, block.of_all(impostor), np.searchsorted(i, np.arange(len(D2) + 1))
        return [(sparse.csr_array(parts, shape=(len(D2), n)), slice(0, n))]
    weights = np.zeros_like(D2)
    weights[i, impostor] = values
    return [(weights[:, seen], others) for seen, others in block.spans(n)]


def _active(D2: np.ndarray, margins: Margins) -> tuple[Any, ...]:
    """Pairs that cost something, and what :meth:`Margins.costs` says of them."""
    # rounded: a cost of nothing
    farthest = margins.thresholds.max(axis=1, keepdims=True).astype(D2.dtype)
    i, impostor = true_entries(D2 < farthest)
    hinge, values, slopes = margins.costs(i, impostor, D2[i, impostor])
    return i, impostor, hinge, values.astype(D2.dtype), slopes


def _on_device(
    E: Any, V: Any, targets: Any, codes: Any, c: float, smoothing: float, weighed: Any
) -> tuple[float, Any]:
    """The same for other libraries: all pairs in the time of a list, and none leaves the device."""
    xp, backend = namespace(E), backend_of(E)
    targets, codes = in_library_of(targets, E), in_library_of(codes, E)
    itself = V is E
    E = E - robust_center(E)
    V = E if itself else V  # a Laplacian does not see where the origin is
    there = targets >= 0
    rows = xp.arange(E.shape[0], dtype=targets.dtype, device=device_of(E))
    targets = xp.where(there, targets, rows[:, None])  # a missing one is the point: no difference
    slots = range(targets.shape[1])
    differences = (E - xp.take(E, targets[:, t], axis=0) for t in slots)
    squares = xp.stack([xp.sum(D * D, axis=1) for D in differences], axis=1)
    missing = xp.full_like(squares[:1, :1], -xp.inf)
    thresholds = xp.where(there, 1.0 + squares, missing)
    wanted = V.shape[1] > 0
    fused = backend.fused("hinge_sums", E)
    if weighed is not None:
        weighed = type(weighed)(*(like(part, E) for part in weighed))
    if fused and weighed is None and (itself or not wanted):
        sums = fused(E, thresholds, codes, smoothing, gradient=wanted)
    else:
        sums = _all_impostors(E, V, thresholds, codes, smoothing, weighed)
    loss, per_target, product = sums
    parts = xp.ones_like(squares) if weighed is None else weighed.parts
    value = float(xp.sum(parts * squares, dtype=xp.float64) + c * loss)
    product = -c * product
    for t in slots if wanted else ():
        weight = parts[:, t] + c * per_target[:, t]
        pull = weight[:, None] * (V - xp.take(V, targets[:, t], axis=0))
        product = backend.add_rows(product + pull, targets[:, t], -pull)
    return value, product


def _all_impostors(
    E: Any, V: Any, thresholds: Any, codes: Any, smoothing: float, weighed: Any = None
) -> tuple[Any, Any, Any]:
    """Hinge, slopes that target pairs collect, and the impostors' Laplacian times V."""
    xp, n = namespace(E), E.shape[0]
    squares = squared_lengths(E)
    loss, product = xp.zeros((), dtype=xp.float64, device=device_of(E)), xp.zeros_like(V)
    per_target = []
    for rows in row_blocks(n, 8 * n * itemsize_of(E), most=tile_rows(E, 4 * n, 0)):
        D2 = (-2.0 * E[rows, :]) @ E.T
        D2 += squares[None, :]
        D2 += squares[rows][:, None]
        same = codes[rows][:, None] == codes[None, :]
        D2 = xp.where(same, xp.full_like(D2[:1, :1], xp.inf), D2)
        W, collected = xp.zeros_like(D2), []
        for t in range(thresholds.shape[1]):
            h, slope = huber_hinge(thresholds[rows, t][:, None] - D2, smoothing, xp)
            if weighed is not None:
                count = weighed.parts[rows, t][:, None] * weighed.counts[None, :]
                h, slope = h * count, slope * count
            loss += xp.sum(h, dtype=xp.float64)
            collected.append(xp.sum(slope, axis=1))
            W += slope
        per_target.append(xp.stack(collected, axis=1))
        V_rows = V[rows, :]
        product[rows, :] += xp.sum(W, axis=1)[:, None] * V_rows - W @ V
        product += xp.sum(W, axis=0)[:, None] * V - W.T @ V_rows
    return loss, xp.concat(per_target), product


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
            rough = values.dtype == np.float32
            product -= A @ values if small else BlockProduct(A, rough=rough)(values)
    return product if backend_of(V).host else like(product, V)
