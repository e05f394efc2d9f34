"""Exact k nearest neighbours as a reduction over row blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import is_numpy, namespace, set_entries, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._threads import over_threads, own_threads

_TILE_BYTES = 8 * 2**20  # a block of distances beyond this leaves the shared cache
_GROUP_ROWS = 32  # columns that share one minimum when the k smallest of many are sought


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
    O(m n d) time, one block of rows × n in memory.
    """
    Q = X if queries is None else queries
    everything = np.arange(X.shape[0])
    exclude = everything if queries is None else None
    indices, distances = _empty(Q.shape[0], k)
    _search(X, Q, everything, np.arange(Q.shape[0]), exclude, indices, distances)
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
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        points = members if same else np.flatnonzero(codes != code)
        exclude = np.arange(len(members)) if same else None
        _search(X, X, points, members, exclude, indices, distances)
    return indices, distances


def _empty(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full((n, k), -1, dtype=np.intp), np.full((n, k), np.inf)


def _search(
    X: Any,
    Q: Any,
    points: np.ndarray,
    rows: np.ndarray,
    exclude: np.ndarray | None,
    indices: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Write the neighbours of Q[rows] among X[points] into the rows of the two results.

    ``exclude[i]`` is the position in ``points`` that query i may not find: itself.
    """
    k = min(indices.shape[1], len(points) - (exclude is not None))
    if k < 1 or len(rows) == 0:
        return
    xp = namespace(X, Q)
    P = _select(X, points)
    center = xp.mean(P, axis=0, keepdims=True)
    P = P - center
    P2 = xp.sum(P * P, axis=1)[None, :]
    columns = (-2.0 * P).T
    per_row = (3 * len(points) + Q.shape[1]) * itemsize_of(P)
    most = tile_rows(P, len(points), _TILE_BYTES)

    def work(blocks: list[slice]) -> None:
        for block in blocks:
            q = take_rows(Q, rows[block]) - center
            D2 = q @ columns
            D2 += P2
            if exclude is not None:
                D2 = set_entries(D2, exclude[block], np.inf)
            found, values = _k_smallest(D2, k)
            where = rows[block]
            indices[where, :k] = points[found]
            values = values + to_numpy(xp.sum(q * q, axis=1))[:, None]
            distances[where, :k] = np.maximum(values, 0)

    blocks = list(row_blocks(len(rows), 2 * per_row, most=most))
    with own_threads(2.0 * len(rows) * len(points) * X.shape[1]):
        over_threads(work, blocks, threads=is_numpy(P))


def _select(X: Any, rows: np.ndarray) -> Any:
    everything = len(rows) == X.shape[0] and np.array_equal(rows, np.arange(len(rows)))
    return X if everything else take_rows(X, rows)


def _k_smallest(D2: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values of the k smallest entries of each row, ascending."""
    if hasattr(D2, "topk"):  # torch: on the device, without a full sort
        values, found = D2.topk(k, dim=1, largest=False)
        return to_numpy(found), to_numpy(values)
    D2 = to_numpy(D2)
    if k * _GROUP_ROWS * 4 < D2.shape[1]:
        return _k_smallest_wide(D2, k)
    if k < D2.shape[1]:
        found = np.argpartition(D2, k - 1, axis=1)[:, :k]
    else:
        found = np.broadcast_to(np.arange(k), D2.shape).copy()
    values = np.take_along_axis(D2, found, axis=1)
    order = np.lexsort((found, values), axis=1)  # ties go to the earlier row
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(values, order, axis=1)


def _k_smallest_wide(D2: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for many columns: the k-th smallest of group minima bounds the k-th smallest.

    k groups with a minimum up to the bound hold at least k entries up to it, so the few entries
    not beyond the bound contain the k smallest. Two passes over memory instead of a partition.
    """
    n_rows, n_columns = D2.shape
    width = n_columns // _GROUP_ROWS
    grouped = D2[:, : width * _GROUP_ROWS].reshape(n_rows, _GROUP_ROWS, width)
    minima = grouped.min(axis=1)
    bound = np.partition(minima, k - 1, axis=1)[:, k - 1]
    rows, columns = np.nonzero(D2 <= bound[:, None])
    values = D2[rows, columns]
    order = np.lexsort((columns, values, rows))
    first = np.searchsorted(rows, np.arange(n_rows))  # np.nonzero lists rows in order
    chosen = order[first[:, None] + np.arange(k)]
    return columns[chosen], values[chosen]
