"""Exact k nearest neighbours as a reduction over row blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import is_numpy, namespace, set_entries, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._pruned import lower_bounds, pays, pruned_search
from kernelmetric.compute._selection import k_smallest
from kernelmetric.compute._threads import over_threads, own_threads

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
    O(m n d) time, one block of rows × n in memory. For 10,000 points or more with 256 features or
    more, whose variance lies in few directions, O(m n 128): the others are looked at only where
    those cannot rule a point out.
    """
    Q = X if queries is None else queries
    everything = np.arange(X.shape[0])
    exclude = everything if queries is None else None
    indices, distances = _empty(Q.shape[0], k)
    if is_numpy(X) and is_numpy(Q) and 1 <= k < X.shape[0]:
        bounds = lower_bounds(X, Q)
        if bounds is not None and pays(X, Q, k, bounds, queries is None):
            pruned_search(X, Q, bounds, queries is None, indices, distances)
            return indices, distances
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
            found, values = k_smallest(D2, k)
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
