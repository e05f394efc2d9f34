"""The LMNN hinge over all impostors, or over a list of those that matter.

A triplet (i, j, l) costs when the impostor l of another class comes nearer to i than its target
neighbour j plus a margin. :func:`lmnn_hinge` looks at every impostor, block by block.
:func:`mine_impostors` lists the pairs (i, l) that are near enough to cost something, and
:func:`lmnn_hinge_on` looks at such a list alone: a lower bound of the objective, exact when the
list holds every active pair, and far cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute._arrays import is_numpy, like, namespace, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._threads import over_threads, own_threads
from kernelmetric.compute.reductions._differences import robust_center
from kernelmetric.compute.reductions._selection import true_entries
from kernelmetric.compute.reductions._softmax import class_slices
from kernelmetric.compute.reductions._table import Ranges

_TILE_BYTES = 8 * 2**20
_SPARSE_BELOW = 0.1  # share of active pairs under which a sparse product beats the dense one
_PAIR_CHUNK_BYTES = 2**20
_LARGE = 8  # a class with this part of all points is worth a table of the others
_SHARED_ROWS = 128  # of small classes in one block
_WHOLE_ROWS = 600  # up to here all pairs at once: no block, list or sparse matrix is worth its cost


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
    class_slices(codes)  # refuses unsorted rows
    value, thresholds, pull = _targets_part(E, targets, xp)
    if is_numpy(E) and len(E) <= _WHOLE_ROWS:
        hinge, product = _whole_hinge(E, V, targets, codes, thresholds, pull, c, smoothing)
        return value + hinge, product
    product = xp.zeros_like(V)
    for rows, others, D2 in _distances_in_turn(E, codes, _impostor_blocks(codes, E), xp):
        loss, weights, per_target = _block_weights(D2, thresholds[rows], c, smoothing, xp)
        value += loss
        pull[rows] += per_target
        for_rows, for_others = _push(weights, V[rows, :], take_rows(V, others), xp)
        product[rows, :] -= for_rows
        _add_runs(product, others, for_others)
    i, slot = np.nonzero(targets >= 0)
    product += _laplacian_product(i, targets[i, slot], pull[i, slot], V, xp)
    return value, product


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
    xp = namespace(E)
    value, thresholds, _ = _targets_part(E, targets, xp)
    reach = (1.0 + slack) * thresholds.max(axis=1)

    def work(blocks: list[tuple[slice, slice]]) -> list[tuple[int, float, np.ndarray]]:
        """The hinge and the near pairs of some blocks, with the first row of each."""
        out = []
        for rows, others, D2 in _distances_in_turn(E, codes, blocks, xp):
            D2 = to_numpy(D2)
            near = D2 < reach[rows][:, None]
            loss = _hinge_of_near(D2, near, thresholds[rows], c)
            crowded = np.flatnonzero(np.count_nonzero(near, axis=1) > most)
            if len(crowded):
                nearest = np.argpartition(D2[crowded], most, axis=1)[:, :most]
                near[crowded] = False
                near[crowded[:, None], nearest] = True
            i, impostor = true_entries(near)
            pairs = np.stack([i + rows.start, others[impostor]], axis=1).astype(np.int32)
            out.append((rows.start, loss, pairs))
        return out

    with own_threads(2.0 * len(codes) ** 2 * E.shape[1]):
        blocks = _impostor_blocks(codes, E)[::every]
        shares = over_threads(work, blocks, threads=is_numpy(E))
    found = sorted((part for share in shares for part in share), key=lambda part: part[0])
    hinge = every * sum(loss for _, loss, _ in found)
    return value + hinge, np.concatenate([pairs for _, _, pairs in found])


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
    xp = namespace(E, V)
    n, k = targets.shape
    value, thresholds, pull = _targets_part(E, targets, xp)
    i, impostor = pairs[:, 0], pairs[:, 1]
    margin = thresholds[i] - _pair_distances(E, i, impostor, xp)[:, None]
    active = np.flatnonzero(margin.max(axis=1) > 0) if len(i) else np.empty(0, dtype=np.intp)
    i, impostor = i[active], impostor[active]
    h, slope = _hinge(margin[active], smoothing, np)
    value += c * float(h.sum())
    for j in range(k):
        pull[:, j] += c * np.bincount(i, weights=slope[:, j], minlength=n)
    ti, slot = np.nonzero(targets >= 0)
    product = _laplacian_product(
        np.concatenate([ti, i]),
        np.concatenate([targets[ti, slot], impostor]),
        np.concatenate([pull[ti, slot], -c * slope.sum(axis=1)]),
        V,
        xp,
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


def _targets_part(E: Any, targets: np.ndarray, xp: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum of target distances, the margins 1 + d_ij (-inf where missing), and weights of one."""
    i, slot = np.nonzero(targets >= 0)
    d = _pair_distances(E, i, targets[i, slot], xp)
    thresholds = np.full(targets.shape, -np.inf)
    thresholds[i, slot] = 1.0 + d
    return float(d.sum()), thresholds, (targets >= 0).astype(np.float64)


def _impostor_blocks(codes: np.ndarray, E: Any) -> list[tuple[slice, slice]]:
    """Blocks of rows, each with the slice of rows that are not looked at: those of its class.

    Small classes share blocks, which look at all rows: a block and a table of others for each
    would cost more than the distances within them.
    """
    n = len(codes)
    most = tile_rows(E, n, _TILE_BYTES)

    def cut(first: int, last: int, unseen: slice, most: int) -> list[tuple[slice, slice]]:
        parts = row_blocks(last - first, 8 * n * itemsize_of(E), most=most)
        return [(slice(first + part.start, first + part.stop), unseen) for part in parts]

    blocks: list[tuple[slice, slice]] = []
    covered = 0
    for start, stop in [*class_slices(codes), (n, n)]:
        if stop - start >= n / _LARGE or start == n:
            blocks += cut(covered, start, slice(0, 0), min(most, _SHARED_ROWS))
            blocks += cut(start, stop, slice(start, stop), most)
            covered = stop
    return blocks


def _distances_in_turn(
    E: Any, codes: np.ndarray, blocks: list[tuple[slice, slice]], xp: Any
) -> Iterator[tuple[slice, np.ndarray, Any]]:
    """For each block its rows, the row numbers of others, the distances; infinite in a class."""
    E = E - robust_center(E)
    squares = xp.sum(E * E, axis=1)
    seen: slice | None = None
    for rows, members in blocks:
        if members != seen:  # blocks of one class come together
            others = np.r_[0 : members.start, members.stop : E.shape[0]]
            columns = (-2.0 * take_rows(E, others)).T
            squares_others = take_rows(squares, others)[None, :]
            seen = members
        D2 = E[rows, :] @ columns
        D2 += squares_others
        D2 += squares[rows][:, None]
        if members.start == members.stop:
            own = codes[rows]
            start, stop = np.searchsorted(codes, own), np.searchsorted(codes, own, side="right")
            D2 = Ranges(start, stop).forbid(D2)
        yield rows, others, D2


def _hinge_of_near(D2: np.ndarray, near: np.ndarray, thresholds: np.ndarray, c: float) -> float:
    """Plain hinge of a block, from the pairs that can have one."""
    i, impostor = true_entries(near)
    margin = thresholds[i] - D2[i, impostor][:, None]
    return c * float(np.sum(margin, where=margin > 0))


def _block_weights(
    D2: Any, thresholds: np.ndarray, c: float, smoothing: float, xp: Any
) -> tuple[float, Any, np.ndarray]:
    """Hinge value, weight of each pair (i, l), and weight each target pair collects."""
    if is_numpy(D2):
        loss, i, impostor, values, per_target = _active_weights(D2, thresholds, c, smoothing)
        if len(i) > _SPARSE_BELOW * D2.shape[0] * D2.shape[1]:
            weights = np.zeros_like(D2)
            weights[i, impostor] = values
        else:
            weights = sparse.csr_array((values, (i, impostor)), shape=D2.shape)
        return loss, weights, per_target
    n_rows, k = thresholds.shape
    loss, weights, per_target = 0.0, xp.zeros_like(D2), np.empty((n_rows, k))
    for j in range(k):
        column = like(thresholds[:, j], D2)
        h, slope = _hinge(column[:, None] - D2, smoothing, xp)
        loss += c * float(xp.sum(h))
        weights += c * slope
        per_target[:, j] = c * to_numpy(xp.sum(slope, axis=1))
    return loss, weights, per_target


def _active_weights(
    D2: np.ndarray, thresholds: np.ndarray, c: float, smoothing: float
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hinge value, the pairs that have one, their weights, and weight each target pair collects."""
    n_rows, k = thresholds.shape
    i, impostor = true_entries(D2 < thresholds.max(axis=1)[:, None])
    margin = thresholds[i] - D2[i, impostor][:, None]
    h, slope = _hinge(margin, smoothing, np)
    per_target = np.empty((n_rows, k))
    for j in range(k):
        per_target[:, j] = c * np.bincount(i, weights=slope[:, j], minlength=n_rows)
    values = (c * slope.sum(axis=1)).astype(D2.dtype)
    return c * float(h.sum()), i, impostor, values, per_target


def _hinge(margin: Any, smoothing: float, xp: Any) -> tuple[Any, Any]:
    """Huber-smoothed hinge and its slope."""
    positive = xp.clip(margin, 0.0, None)
    if smoothing <= 0:
        return positive, xp.where(margin > 0, xp.ones_like(margin), xp.zeros_like(margin))
    slope = xp.clip(positive / smoothing, 0.0, 1.0)
    return slope * (positive - 0.5 * smoothing * slope), slope


def _push(weights: Any, V_rows: Any, V_others: Any, xp: Any) -> tuple[Any, Any]:
    """Laplacian of impostor weights times V: the part of the rows, and minus that of the others."""
    row, column = (
        (np.asarray(weights.sum(axis=1)), np.asarray(weights.sum(axis=0)))
        if is_numpy(V_rows)
        else (xp.sum(weights, axis=1), xp.sum(weights, axis=0))
    )
    for_rows = row[:, None] * V_rows - weights @ V_others
    return for_rows, weights.T @ V_rows - column[:, None] * V_others


def _laplacian_product(i: np.ndarray, j: np.ndarray, weights: np.ndarray, V: Any, xp: Any) -> Any:
    """Laplacian of the symmetric graph with these pair weights, times V."""
    n = V.shape[0]
    W = sparse.coo_array(
        (np.concatenate([weights, weights]), (np.concatenate([i, j]), np.concatenate([j, i]))),
        shape=(n, n),
    ).tocsr()
    degrees = np.asarray(W.sum(axis=1))
    values = to_numpy(V)
    product = degrees[:, None].astype(values.dtype) * values - W.astype(values.dtype) @ values
    return product if is_numpy(V) else like(product, V)


def _pair_distances(E: Any, i: np.ndarray, j: np.ndarray, xp: Any) -> np.ndarray:
    """Squared distances of listed pairs, in float64, a bounded number of them at a time."""
    out = np.empty(len(i))
    step = max(1, _PAIR_CHUNK_BYTES // (itemsize_of(E) * max(E.shape[1], 1)))
    chunks = [slice(start, start + step) for start in range(0, len(i), step)]

    def work(chunks: list[slice]) -> None:
        for chunk in chunks:
            difference = take_rows(E, i[chunk]) - take_rows(E, j[chunk])
            out[chunk] = (
                np.einsum("ij,ij->i", difference, difference)
                if is_numpy(difference)
                else to_numpy(xp.sum(difference * difference, axis=1))
            )

    over_threads(work, chunks, threads=is_numpy(E))
    return out


def _add_runs(product: Any, rows: np.ndarray, addition: Any) -> None:
    """Add to all rows but those of one class: two runs, before it and after it."""
    gap = np.flatnonzero(np.diff(rows) > 1)
    first = int(gap[0]) + 1 if len(gap) else (len(rows) if len(rows) and rows[0] == 0 else 0)
    product[:first, :] += addition[:first, :]
    product[product.shape[0] - (len(rows) - first) :, :] += addition[first:, :]
