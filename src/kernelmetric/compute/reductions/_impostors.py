"""The LMNN hinge over all impostors, or over a list of those that matter.

A triplet (i, j, l) costs when the impostor l of another class comes nearer to i than its target
neighbour j plus a margin. :func:`lmnn_hinge` looks at every impostor, block by block.
:func:`mine_impostors` lists the pairs (i, l) that are near enough to cost something, and
:func:`lmnn_hinge_on` looks at such a list alone: a lower bound of the objective, exact when the
list holds every active pair, and far cheaper.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kernelmetric.compute._arrays import is_sparse, like, namespace, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import over_tiles, sum_tiles, worth_keeping
from kernelmetric.compute._threads import calm_if_small
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._differences import robust_center, squared_lengths
from kernelmetric.compute.reductions._hinge_there import hinge_there, huber_hinge
from kernelmetric.compute.reductions._products import BlockProduct
from kernelmetric.compute.reductions._selection import k_smallest, true_entries
from kernelmetric.compute.reductions._softmax import class_slices

_TILE_BYTES = 8 * 2**20
_SPARSE_BELOW = 0.1  # share of active pairs under which a sparse product beats the dense one
_PAIR_CHUNK_BYTES = 2**20
_WORTH_SHARING = 1e7  # operations of a sparse product
_FLOPS_OF_ONE = 100.0  # what takes as long as one number of a gathered row
_LARGE = 8  # a class with this part of all points is worth a table of the others
_SHARED_ROWS = 128  # of small classes in one block
_WHOLE_BYTES = 60.0  # for each pair of points, where all cost something
_WHOLE_ROWS = 1000  # up to here all pairs at once: no block or list is worth its cost


class Block(NamedTuple):
    """Some rows, and the rows that these do not look at: those of their class, or none."""

    rows: slice
    unseen: slice

    def spans(self, n: int) -> list[tuple[slice, slice]]:
        """The other rows of n in one or two runs: where they are in the block, and of all."""
        first, width = self.unseen.start, self.unseen.stop - self.unseen.start
        runs = [(slice(0, first), slice(0, first))] if first else []
        if first + width < n:
            runs.append((slice(first, n - width), slice(first + width, n)))
        return runs

    def of_all(self, columns: np.ndarray) -> np.ndarray:
        """Which of all rows columns of the block stand for."""
        return columns + (self.unseen.stop - self.unseen.start) * (columns >= self.unseen.start)


class Points(NamedTuple):
    """Embedded points about a centre: ``left @ right.T`` are their squared distances."""

    left: Any
    right: Any
    codes: np.ndarray


class Triplets(NamedTuple):
    """What the triplets (i, j, l) of a point, a target and an impostor count: ``parts_ij w_l``."""

    parts: np.ndarray  # (n, k): of target pairs, the weight of the point included
    counts: np.ndarray  # (n,): of impostors

    def of(self, rows: slice, others: np.ndarray) -> Triplets:
        """Those of some points, and of some impostors."""
        return Triplets(self.parts[rows], self.counts[others])


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
    targets : array of shape (n, k)
        Row numbers of the target neighbours, -1 where missing; in NumPy or where E lies.
    codes : array of shape (n,)
        Class codes, ascending, likewise.
    c : float
        Weight of the hinge.
    smoothing : float, default=0
        Width μ of the quadratic corner.
    weighed : Triplets, default=None
        What each target pair and each impostor counts, where points have weights.

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
    if not backend_of(E).host:
        return hinge_there(E, V, targets, codes, c, smoothing, weighed)
    class_slices(codes)  # refuses unsorted rows
    value, thresholds, pull = _targets_part(E, targets, weighed)
    n, p = V.shape
    i, slot = np.nonzero(targets >= 0)
    if n <= _WHOLE_ROWS and worth_keeping(_WHOLE_BYTES * n * n):
        with calm_if_small(2.0 * n * n * (E.shape[1] + p)):
            D2 = _distances(_points(E, codes), Block(slice(0, n), slice(0, 0)))
            found = _active_weights(D2, thresholds, c, smoothing, weighed)
            hinge, rows, others, values, per_target = found
            weights = (pull + per_target)[i, slot]
            lists = (i, rows), (targets[i, slot], others), (weights, -values)
            first, second, both = map(np.concatenate, lists)
            product = _laplacian_product(first, second, both, V)
        return value + hinge, product
    hinge, per_target, product = sum_tiles(
        partial(_hinge_sums, _points(E, codes), V, thresholds, c, smoothing, weighed),
        _impostor_blocks(codes, E),
        flops=2.0 * n * n * E.shape[1],
        entries=n * p,
    )
    product += _laplacian_product(i, targets[i, slot], (pull + per_target)[i, slot], V)
    return value + hinge, product


def mine_impostors(
    E: Any,
    targets: np.ndarray,
    codes: np.ndarray,
    c: float,
    *,
    slack: float = 0.5,
    most: int = 200,
    weighed: Triplets | None = None,
) -> tuple[float, np.ndarray]:
    """The exact LMNN objective, and the pairs (point, impostor) that a descent should watch.

    Parameters
    ----------
    E : array of shape (n, r)
        The embedded points, rows sorted by class.
    targets : ndarray of shape (n, k)
        Row numbers of the target neighbours, -1 where missing.
    codes : ndarray of shape (n,)
        Class codes, ascending.
    c : float
        Weight of the hinge.
    slack : float, default=0.5
        A pair is listed when its squared distance is below (1 + slack) times the row's margin.
    most : int, default=200
        The nearest impostors of a row to list, at most; with 0, the objective is all.
    weighed : Triplets, default=None
        What each target pair and each impostor counts, where points have weights.

    Returns
    -------
    value : float
        The objective with the plain hinge, over all triplets.
    pairs : ndarray of shape (n_pairs, 2), dtype int32
        Sorted by point.

    Notes
    -----
    O(n² r) time, one block of rows × n and the pairs in memory.
    """
    value, thresholds, _ = _targets_part(E, targets, weighed)
    reach = (1.0 + slack) * thresholds.max(axis=1)
    found = over_tiles(
        partial(_mined, _points(E, codes), thresholds, reach, c, most, weighed),
        _impostor_blocks(codes, E),
        flops=2.0 * len(codes) ** 2 * E.shape[1],
        host=backend_of(E).host,
    )
    value += sum(loss for loss, _ in found)
    return value, np.concatenate([pairs for _, pairs in found])


def lmnn_at_lengths(
    E: Any,
    targets: np.ndarray,
    codes: np.ndarray,
    c: float,
    squares: np.ndarray,
    *,
    every: int = 1,
    weighed: Triplets | None = None,
) -> np.ndarray:
    """The LMNN objective of longer and shorter maps, in one look at the distances.

    Parameters
    ----------
    E : array of shape (n, r)
        The embedded points, rows sorted by class.
    targets : ndarray of shape (n, k)
        Row numbers of the target neighbours, -1 where missing.
    codes : ndarray of shape (n,)
        Class codes, ascending.
    c : float
        Weight of the hinge.
    squares : ndarray of shape (m,)
        What squared distances are multiplied with, positive.
    every : int, default=1
        Look at one block of rows in so many, and count its hinge so many times: an estimate.
    weighed : Triplets, default=None
        What each target pair and each impostor counts, where points have weights.

    Returns
    -------
    ndarray of shape (m,)
        The objective with the plain hinge for each of them.

    Notes
    -----
    ``[1 + s d_ij - s d_il]_+ = s [1/s + d_ij - d_il]_+``: only the margin differs.
    """
    pulled, thresholds, _ = _targets_part(E, targets, weighed)
    found = over_tiles(
        partial(_hinges, _points(E, codes), thresholds - 1.0, 1.0 / squares, weighed),
        _impostor_blocks(codes, E)[::every],
        flops=2.0 * len(codes) ** 2 * E.shape[1] / every,
        host=backend_of(E).host,
    )
    return squares * (pulled + c * every * np.sum(found, axis=0))


def _hinges(
    points: Points,
    near: np.ndarray,
    margins: np.ndarray,
    weighed: Triplets | None,
    block: Block,
) -> np.ndarray:
    """The tile: the plain hinges of some rows, for every margin beyond the target distances."""
    D2 = to_numpy(_distances(points, block))
    near = near[block.rows]
    farthest = near.max(axis=1, keepdims=True) + margins.max()
    i, impostor = true_entries(D2 < farthest.astype(D2.dtype))
    excess = near[i] - D2[i, impostor][:, None]
    counted = _of_block(weighed, block, D2)
    count = 1.0 if counted is None else counted.parts[i] * counted.counts[impostor][:, None]
    return np.array([np.sum(np.maximum(excess + margin, 0.0) * count) for margin in margins])


def _mined(
    points: Points,
    thresholds: np.ndarray,
    reach: np.ndarray,
    c: float,
    most: int,
    weighed: Triplets | None,
    block: Block,
) -> tuple[float, np.ndarray]:
    """The tile: the hinge of some rows, and their near pairs."""
    rows = block.rows
    D2 = to_numpy(_distances(points, block))
    loss = _plain_hinge(D2, thresholds[rows], c, _of_block(weighed, block, D2))
    if not most:
        return loss, np.empty((0, 2), dtype=np.int32)
    near = D2 < reach[rows][:, None].astype(D2.dtype)
    crowded = np.flatnonzero(np.count_nonzero(near, axis=1) > most)
    if len(crowded):
        nearest, _ = k_smallest(D2[crowded], most)
        near[crowded] = False
        near[crowded[:, None], nearest] = True
    i, impostor = true_entries(near)
    return loss, np.stack([i + rows.start, block.of_all(impostor)], axis=1).astype(np.int32)


def lmnn_hinge_on(
    pairs: np.ndarray,
    E: Any,
    V: Any,
    targets: np.ndarray,
    c: float,
    smoothing: float = 0.0,
    weighed: Triplets | None = None,
) -> tuple[float, Any]:
    """The LMNN objective over listed impostors alone; see :func:`lmnn_hinge`.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Points and impostors, sorted by point.
    E : array of shape (n, r)
        The embedded points.
    V : array of shape (n, p)
        What the Laplacian is multiplied with.
    targets : ndarray of shape (n, k)
        Row numbers of the target neighbours, -1 where missing.
    c : float
        Weight of the hinge.
    smoothing : float, default=0
        Width of the quadratic corner.
    weighed : Triplets, default=None
        What each target pair and each impostor counts, where points have weights.

    Returns
    -------
    value : float
        The objective; at most the one over all impostors.
    product : array of shape (n, p)
        ``Lap(ω) V``.

    Notes
    -----
    O(n_pairs (r + p)) time and memory for the pairs.
    """
    n, k = targets.shape
    value, thresholds, pull = _targets_part(E, targets, weighed)
    i, impostor = pairs[:, 0], pairs[:, 1]
    d = _pair_distances(E, i, impostor)
    active = np.flatnonzero(d < thresholds.max(axis=1)[i])
    i, impostor = i[active], impostor[active]
    margin = thresholds[i] - d[active][:, None]
    h, slope = _counted(huber_hinge(margin, smoothing, np), i, impostor, weighed)
    value += c * float(h.sum())
    for j in range(k):
        pull[:, j] += c * np.bincount(i, weights=slope[:, j], minlength=n)
    ti, slot = np.nonzero(targets >= 0)
    weights = pull[ti, slot], -c * slope.sum(axis=1)
    lists = (ti, i), (targets[ti, slot], impostor), weights
    first, second, both = map(np.concatenate, lists)
    return value, _laplacian_product(first, second, both, V)


def _targets_part(
    E: Any, targets: np.ndarray, weighed: Triplets | None = None
) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum of target distances, the margins 1 + d_ij (-inf where missing), and weights of pairs."""
    i, slot = np.nonzero(targets >= 0)
    d = _pair_distances(E, i, targets[i, slot])
    thresholds = np.full(targets.shape, -np.inf)
    thresholds[i, slot] = 1.0 + d
    if weighed is not None:
        pull = np.where(targets >= 0, weighed.parts, 0.0)
        return float(pull[i, slot] @ d), thresholds, pull
    return float(d.sum()), thresholds, (targets >= 0).astype(np.float64)


def _of_block(weighed: Triplets | None, block: Block, D2: Any) -> Triplets | None:
    """What the triplets of a block count, by its rows and columns."""
    return None if weighed is None else weighed.of(block.rows, block.of_all(np.arange(D2.shape[1])))


def _counted(
    both: tuple[np.ndarray, np.ndarray], i: np.ndarray, j: np.ndarray, weighed: Triplets | None
) -> tuple[np.ndarray, np.ndarray]:
    """Hinges and slopes of pairs (i, j), a column for each target, times what triplets count."""
    if weighed is None:
        return both
    count = weighed.parts[i] * weighed.counts[j][:, None]
    return both[0] * count, both[1] * count


def _impostor_blocks(codes: np.ndarray, E: Any) -> list[Block]:
    """Blocks of rows, each with the slice of rows that are not looked at: those of its class.

    Small classes share blocks, which look at all rows: a block and a table of others for each
    would cost more than the distances within them.
    """
    n = len(codes)
    most = tile_rows(E, n, _TILE_BYTES)

    def cut(first: int, last: int, unseen: slice, most: int) -> list[Block]:
        parts = row_blocks(last - first, 8 * n * itemsize_of(E), most=most)
        return [Block(slice(first + part.start, first + part.stop), unseen) for part in parts]

    blocks: list[Block] = []
    covered = 0
    for start, stop in [*class_slices(codes), (n, n)]:
        if stop - start >= n / _LARGE or start == n:
            blocks += cut(covered, start, slice(0, 0), min(most, _SHARED_ROWS))
            blocks += cut(start, stop, slice(start, stop), most)
            covered = stop
    return blocks


def _points(E: Any, codes: np.ndarray) -> Points:
    xp = namespace(E)
    E = E - robust_center(E)
    squares, one = squared_lengths(E)[:, None], xp.ones_like(E[:, :1])
    # One product gives |a|² - 2ab + |b|²: passes over its result cost as much again.
    left, right = xp.concat([-2.0 * E, squares, one], axis=1), xp.concat([E, one, squares], axis=1)
    return Points(left, right, codes)


def _distances(points: Points, block: Block) -> Any:
    """Squared distances of a block to what it looks at; infinite within a class."""
    left, right, codes = points
    rows, unseen = block
    others = [right[other, :].T for _, other in block.spans(len(codes))]
    D2 = backend_of(left).times_each(left[rows, :], others)
    if unseen.start == unseen.stop:
        for start, stop in class_slices(codes[rows]):
            own = np.searchsorted(codes, codes[rows.start + start], side="left")
            last = np.searchsorted(codes, codes[rows.start + start], side="right")
            D2[start:stop, int(own) : int(last)] = np.inf
    return D2


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
        D2 = _distances(points, block)
        counted = _of_block(weighed, block, D2)
        found = _block_weights(D2, thresholds[rows], c, smoothing, block, counted)
        loss, weights, per_target[rows] = found
        total += loss
        V_rows = V[rows, :]
        product[rows, :] -= like(per_target[rows].sum(axis=1), V)[:, None] * V_rows
        for part, others in weights:
            columns = part.sum(axis=0) if is_sparse(part) else namespace(V).sum(part, axis=0)
            product[rows, :] += part @ V[others, :]
            product[others, :] += part.T @ V_rows - columns[:, None] * V[others, :]
    return total, per_target, product


def _plain_hinge(
    D2: np.ndarray, thresholds: np.ndarray, c: float, weighed: Triplets | None = None
) -> float:
    """Plain hinge of a block."""
    i, impostor = true_entries(D2 < thresholds.max(axis=1, keepdims=True).astype(D2.dtype))
    margin = thresholds[i] - D2[i, impostor][:, None]
    if weighed is not None:
        count = weighed.parts[i] * weighed.counts[impostor][:, None]
        return c * float(np.sum(np.maximum(margin, 0.0) * count))
    return c * float(np.sum(margin, where=margin > 0))


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
    h, slope = _counted(huber_hinge(margin, smoothing, np), i, impostor, weighed)
    per_target = np.empty((n_rows, k))
    for j in range(k):
        per_target[:, j] = c * np.bincount(i, weights=slope[:, j], minlength=n_rows)
    values = (c * slope.sum(axis=1)).astype(D2.dtype)
    return c * float(h.sum()), i, impostor, values, per_target


def _laplacian_product(i: np.ndarray, j: np.ndarray, weights: np.ndarray, V: Any) -> Any:
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


def _pair_distances(E: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Squared distances of listed pairs, in float64, a bounded number of them at a time."""
    step = max(1, _PAIR_CHUNK_BYTES // (itemsize_of(E) * max(E.shape[1], 1)))
    chunks = [slice(start, start + step) for start in range(0, len(i), step)]
    flops, host = _FLOPS_OF_ONE * len(i) * E.shape[1], backend_of(E).host
    parts = over_tiles(partial(_some_distances, E, i, j), chunks, flops=flops, host=host)
    return np.concatenate([np.empty(0), *parts])


def _some_distances(E: Any, i: np.ndarray, j: np.ndarray, chunk: slice) -> np.ndarray:
    """The tile: some of the pairs."""
    a, b = take_rows(E, i[chunk]), take_rows(E, j[chunk])
    return backend_of(E).squares_between(a, b, wide=False)
