"""Exact k nearest neighbours as a reduction over row blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import is_numpy, take_rows
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._threads import over_threads, own_threads
from kernelmetric.compute.reductions._pruned import lower_bounds, pays, pruned_search
from kernelmetric.compute.reductions._table import Ranges, Table

_GROUP_ROWS = 256  # rows of small classes that are searched together
_LARGE = 8  # a class with this part of all points is worth a table of the others
_TILE_BYTES = 8 * 2**20  # a block of distances beyond this leaves the shared cache


def nearest_neighbors(
    X: Any, k: int, *, queries: Any | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Exact k nearest neighbours among the rows of X, in Euclidean distance.

    Parameters
    ----------
    X : array of shape (n, d)
        The points to search.
    k : int
        Number of neighbours.
    queries : array of shape (m, d), default=None
        The points to search for; None means X, without each point itself.

    Returns
    -------
    indices : ndarray of shape (m, k), dtype intp
        Nearest first; -1 where there are fewer than k points.
    distances : ndarray of shape (m, k)
        The squared distances; inf where there is no neighbour.

    Notes
    -----
    Exact means: as if computed in float64 from differences, whatever the dtype, the offset of the
    points and the other points; equal distances go to the earlier row, and equal points are at
    distance zero. O(m n d) time, one block of rows × n in memory, some times as long where most
    points are too near each other to be told apart by products. For 10,000 points or more with 256
    features or more, whose variance lies in few directions, O(m n 128): the others are looked at
    only where those cannot rule a point out.
    """
    Q = X if queries is None else queries
    indices, distances = _empty(Q.shape[0], k)
    if is_numpy(X) and is_numpy(Q) and 1 <= k < X.shape[0]:
        bounds = lower_bounds(X, Q)
        if bounds is not None and pays(X, Q, k, bounds, queries is None):
            pruned_search(X, Q, bounds, queries is None, indices, distances)
            return indices, distances
    rows = np.arange(Q.shape[0])
    apart = Ranges(rows, rows + 1) if queries is None else None
    _search(X, Q, np.arange(X.shape[0]), rows, apart, indices, distances)
    return indices, distances


def class_neighbors(
    X: Any, codes: np.ndarray, k: int, *, same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Exact k nearest neighbours of every point inside its class, or outside it.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    codes : ndarray of shape (n,)
        Their class codes.
    k : int
        Number of neighbours.
    same : bool
        True: neighbours of the same class, the point itself left out. False: of other classes.

    Returns
    -------
    indices : ndarray of shape (n, k), dtype intp
        Nearest first; -1 where the class has too few points.
    distances : ndarray of shape (n, k)
        The squared distances; inf where there is no neighbour.
    """
    indices, distances = _empty(X.shape[0], k)
    order = np.argsort(codes, kind="stable")
    sizes = np.unique(codes, return_counts=True)[1]
    stops = np.cumsum(sizes)
    starts = stops - sizes
    start, stop = np.repeat(starts, sizes), np.repeat(stops, sizes)
    if not same:
        large = sizes >= len(order) / _LARGE
        for low, high in zip(starts[large].tolist(), stops[large].tolist(), strict=True):
            others = np.sort(np.concatenate([order[:low], order[high:]]))
            _search(X, X, others, order[low:high], None, indices, distances)
        small = np.flatnonzero(np.repeat(~large, sizes))
        apart = Ranges(start[small], stop[small])
        _search(X, X, order, order[small], apart, indices, distances)
        return indices, distances
    with own_threads(2.0 * float(np.sum(sizes.astype(np.float64) ** 2)) * X.shape[1]):
        for low, high in _groups(sizes):
            members, own = order[low:high], np.arange(high - low)
            if stop[low] == high:
                apart = Ranges(own, own + 1)
            else:
                apart = Ranges(start[low:high] - low, stop[low:high] - low, own)
            _search(X, X, members, members, apart, indices, distances)
    return indices, distances


def _groups(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Small classes searched together: alone, each would cost more in Python than in products."""
    groups, first, stop = [], 0, 0
    for size in sizes.tolist():
        if first < stop and stop + size - first > _GROUP_ROWS:
            groups.append((first, stop))
            first = stop
        stop += size
    return [*groups, (first, stop)]


def _empty(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full((n, k), -1, dtype=np.intp), np.full((n, k), np.inf)


def _search(
    X: Any,
    Q: Any,
    points: np.ndarray,
    rows: np.ndarray,
    apart: Ranges | None,
    indices: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Write the neighbours of Q[rows] among X[points] into the rows of the two results."""
    k = min(indices.shape[1], len(points))
    if k < 1 or len(rows) == 0:
        return
    table = Table(_select(X, points), points)
    per_row = (3 * len(points) + Q.shape[1]) * itemsize_of(X)
    most = tile_rows(X, len(points), _TILE_BYTES)

    def work(blocks: list[slice]) -> None:
        for block in blocks:
            where = rows[block]
            within = None if apart is None else apart.of(block)
            indices[where, :k], distances[where, :k] = table.nearest(take_rows(Q, where), k, within)

    blocks = list(row_blocks(len(rows), 2 * per_row, most=most))
    with own_threads(2.0 * len(rows) * len(points) * X.shape[1]):
        over_threads(work, blocks, threads=is_numpy(X))


def _select(X: Any, rows: np.ndarray) -> Any:
    everything = len(rows) == X.shape[0] and np.array_equal(rows, np.arange(len(rows)))
    return X if everything else take_rows(X, rows)
