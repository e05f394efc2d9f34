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
from kernelmetric.compute._execute import over_tiles, sum_tiles
from kernelmetric.compute._threads import calm_if_small
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._differences import robust_center, squared_lengths
from kernelmetric.compute.reductions._hinge_there import hinge_there, huber_hinge
from kernelmetric.compute.reductions._products import BlockProduct
from kernelmetric.compute.reductions._selection import true_entries
from kernelmetric.compute.reductions._softmax import class_slices
from kernelmetric.compute.reductions._table import Ranges

_TILE_BYTES = 8 * 2**20
_SPARSE_BELOW = 0.1  # share of active pairs under which a sparse product beats the dense one
_PAIR_CHUNK_BYTES = 2**20
_FLOPS_OF_ONE = 100.0  # what takes as long as one number of a gathered row
_LARGE = 8  # a class with this part of all points is worth a table of the others
_SHARED_ROWS = 128  # of small classes in one block
_WHOLE_ROWS = 600  # up to here all pairs at once: no block, list or sparse matrix is worth its cost


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


class Points(NamedTuple):
    """Embedded points about a centre, their squared lengths, and class codes."""

    E: Any
    squares: Any
    codes: np.ndarray


def lmnn_hinge(
    E: Any, V: Any, targets: Any, codes: Any, c: float, smoothing: float = 0.0
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
        return hinge_there(E, V, targets, codes, c, smoothing)
    class_slices(codes)  # refuses unsorted rows
    value, thresholds, pull = _targets_part(E, targets)
    n, p = V.shape
    if n <= _WHOLE_ROWS:
        with calm_if_small(2.0 * n * n * (E.shape[1] + p)):
            hinge, product = _whole_hinge(E, V, targets, codes, thresholds, pull, c, smoothing)
        return value + hinge, product
    hinge, per_target, product = sum_tiles(
        partial(_hinge_sums, _points(E, codes), V, thresholds, c, smoothing),
        _impostor_blocks(codes, E),
        flops=2.0 * n * n * E.shape[1],
        entries=n * p,
    )
    i, slot = np.nonzero(targets >= 0)
    weights = (pull + per_target)[i, slot]
    product += _laplacian_product(i, targets[i, slot], weights, V)
    return value + hinge, product


def mine_impostors(
    E: Any,
    targets: np.ndarray,
    codes: np.ndarray,
    c: float,
    *,
    slack: float = 0.5,
    most: int = 200,
    every: int = 1,
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
        The nearest impostors of a row to list, at most.
    every : int, default=1
        Look at one block of rows in so many, and count its hinge so many times: an estimate.

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
    value, thresholds, _ = _targets_part(E, targets)
    reach = (1.0 + slack) * thresholds.max(axis=1)
    found = over_tiles(
        partial(_mined, _points(E, codes), thresholds, reach, c, most),
        _impostor_blocks(codes, E)[::every],
        flops=2.0 * len(codes) ** 2 * E.shape[1] / every,
        host=backend_of(E).host,
    )
    hinge = every * sum(loss for loss, _ in found)
    return value + hinge, np.concatenate([pairs for _, pairs in found])


def _mined(
    points: Points, thresholds: np.ndarray, reach: np.ndarray, c: float, most: int, block: Block
) -> tuple[float, np.ndarray]:
    """The tile: the hinge of some rows, and their near pairs."""
    rows, unseen = block
    D2 = to_numpy(_distances(points, block))
    near = D2 < reach[rows][:, None]
    loss = _hinge_of_near(D2, near, thresholds[rows], c)
    crowded = np.flatnonzero(np.count_nonzero(near, axis=1) > most)
    if len(crowded):
        nearest = np.argpartition(D2[crowded], most, axis=1)[:, :most]
        near[crowded] = False
        near[crowded[:, None], nearest] = True
    i, impostor = true_entries(near)
    impostor += (unseen.stop - unseen.start) * (impostor >= unseen.start)
    return loss, np.stack([i + rows.start, impostor], axis=1).astype(np.int32)


def lmnn_hinge_on(
    pairs: np.ndarray, E: Any, V: Any, targets: np.ndarray, c: float, smoothing: float = 0.0
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
    value, thresholds, pull = _targets_part(E, targets)
    i, impostor = pairs[:, 0], pairs[:, 1]
    margin = thresholds[i] - _pair_distances(E, i, impostor)[:, None]
    active = np.flatnonzero(margin.max(axis=1) > 0) if len(i) else np.empty(0, dtype=np.intp)
    i, impostor = i[active], impostor[active]
    h, slope = huber_hinge(margin[active], smoothing, np)
    value += c * float(h.sum())
    for j in range(k):
        pull[:, j] += c * np.bincount(i, weights=slope[:, j], minlength=n)
    ti, slot = np.nonzero(targets >= 0)
    product = _laplacian_product(
        np.concatenate([ti, i]),
        np.concatenate([targets[ti, slot], impostor]),
        np.concatenate([pull[ti, slot], -c * slope.sum(axis=1)]),
        V,
    )
    return value, product


def _whole_hinge(
    E: np.ndarray,
    V: np.ndarray,
    targets: np.ndarray,
    codes: np.ndarray,
    thresholds: np.ndarray,
    pull: np.ndarray,
    c: float,
    smoothing: float,
) -> tuple[float, np.ndarray]:
    """The hinge, and the whole Laplacian times V, for few points."""
    E = E - robust_center(E)
    squares = np.einsum("ij,ij->i", E, E)
    D2 = E @ E.T
    D2 *= -2.0
    D2 += squares
    D2 += squares[:, None]
    D2[codes[:, None] == codes] = np.inf  # farther than any margin
    hinge, row, impostor, values, per_target = _active_weights(D2, thresholds, c, smoothing)
    weights = np.zeros_like(D2)
    weights[row, impostor] = -values
    i, slot = np.nonzero(targets >= 0)
    weights[i, targets[i, slot]] += (pull + per_target)[i, slot]
    weights += weights.T
    return hinge, weights.sum(axis=1)[:, None] * V - weights @ V


def _targets_part(E: Any, targets: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum of target distances, the margins 1 + d_ij (-inf where missing), and weights of one."""
    i, slot = np.nonzero(targets >= 0)
    d = _pair_distances(E, i, targets[i, slot])
    thresholds = np.full(targets.shape, -np.inf)
    thresholds[i, slot] = 1.0 + d
    return float(d.sum()), thresholds, (targets >= 0).astype(np.float64)


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
    E = E - robust_center(E)
    return Points(E, squared_lengths(E), codes)


def _distances(points: Points, block: Block) -> Any:
    """Squared distances of a block to what it looks at; infinite within a class."""
    E, squares, codes = points
    rows, unseen = block
    others = [other for _, other in block.spans(len(codes))]
    D2 = backend_of(E).times_each(-2.0 * E[rows, :], [E[other, :].T for other in others])
    D2 += namespace(E).concat([squares[other] for other in others])[None, :]
    D2 += squares[rows][:, None]
    if unseen.start == unseen.stop:
        own = codes[rows]
        start, stop = np.searchsorted(codes, own), np.searchsorted(codes, own, side="right")
        D2 = Ranges(start, stop).forbid(D2)
    return D2


def _hinge_sums(
    points: Points,
    V: Any,
    thresholds: np.ndarray,
    c: float,
    smoothing: float,
    blocks: list[Block],
) -> tuple[float, np.ndarray, Any]:
    """Hinge of some blocks, weight each target pair collects, Laplacian of the others times V."""
    total, per_target, product = 0.0, np.zeros(thresholds.shape), namespace(V).zeros_like(V)
    for block in blocks:
        rows = block.rows
        D2 = _distances(points, block)
        loss, weights, per_target[rows] = _block_weights(D2, thresholds[rows], c, smoothing)
        total += loss
        V_rows = V[rows, :]
        product[rows, :] -= _sums(weights, 1)[:, None] * V_rows
        columns = _sums(weights, 0)
        for seen, others in block.spans(V.shape[0]):
            part = weights[:, seen]
            product[rows, :] += part @ V[others, :]
            product[others, :] += part.T @ V_rows - columns[seen][:, None] * V[others, :]
    return total, per_target, product


def _sums(weights: Any, axis: int) -> Any:
    if is_sparse(weights):
        return weights.sum(axis=axis)
    return namespace(weights).sum(weights, axis=axis)


def _hinge_of_near(D2: np.ndarray, near: np.ndarray, thresholds: np.ndarray, c: float) -> float:
    """Plain hinge of a block, from the pairs that can have one."""
    i, impostor = true_entries(near)
    margin = thresholds[i] - D2[i, impostor][:, None]
    return c * float(np.sum(margin, where=margin > 0))


def _block_weights(
    D2: np.ndarray, thresholds: np.ndarray, c: float, smoothing: float
) -> tuple[float, Any, np.ndarray]:
    """Hinge value, weight of each pair (i, l), and weight each target pair collects."""
    loss, i, impostor, values, per_target = _active_weights(D2, thresholds, c, smoothing)
    if len(i) > _SPARSE_BELOW * D2.shape[0] * D2.shape[1]:
        weights: Any = np.zeros_like(D2)
        weights[i, impostor] = values
    else:
        weights = sparse.csr_array((values, (i, impostor)), shape=D2.shape)
    return loss, weights, per_target


def _active_weights(
    D2: np.ndarray, thresholds: np.ndarray, c: float, smoothing: float
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hinge value, the pairs that have one, their weights, and weight each target pair collects."""
    n_rows, k = thresholds.shape
    i, impostor = true_entries(D2 < thresholds.max(axis=1)[:, None])
    margin = thresholds[i] - D2[i, impostor][:, None]
    h, slope = huber_hinge(margin, smoothing, np)
    per_target = np.empty((n_rows, k))
    for j in range(k):
        per_target[:, j] = c * np.bincount(i, weights=slope[:, j], minlength=n_rows)
    values = (c * slope.sum(axis=1)).astype(D2.dtype)
    return c * float(h.sum()), i, impostor, values, per_target


def _laplacian_product(i: np.ndarray, j: np.ndarray, weights: np.ndarray, V: Any) -> Any:
    """Laplacian of the symmetric graph with these pair weights, times V."""
    n = V.shape[0]
    W = sparse.coo_array(
        (np.concatenate([weights, weights]), (np.concatenate([i, j]), np.concatenate([j, i]))),
        shape=(n, n),
    ).tocsr()
    values = to_numpy(V)
    product = W.sum(axis=1)[:, None].astype(values.dtype) * values
    product -= BlockProduct(W, values.dtype)(values)
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
