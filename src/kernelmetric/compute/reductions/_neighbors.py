"""Exact k nearest neighbours as a reduction over row blocks."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import take_rows
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._table import Found, Ranges, Table

_GROUP_ROWS = 256  # rows of small classes that are searched together
_LARGE = 8  # a class with this part of all points is worth a table of the others
_TILE_BYTES = 8 * 2**20  # a block of distances beyond this leaves the shared cache


class Search(NamedTuple):
    """The points to search among, those to search for, and what these may not find."""

    points: np.ndarray
    rows: np.ndarray
    apart: Ranges | None


class Tile(NamedTuple):
    """Some of the rows to search for, the table to search in, and what these may not find."""

    table: Table
    rows: np.ndarray
    apart: Ranges | None


def nearest_neighbors(X: Any, k: int, *, queries: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Exact k nearest neighbours among the rows of X, nearest first, and squared distances.

    Without queries, those of every point, itself left out. Rows are -1 and squares inf where there
    are too few. Exact: as if computed in float64 from differences; ties go to the earlier row.
    """
    Q = X if queries is None else queries
    rows = np.arange(Q.shape[0])
    apart = Ranges(rows, rows + 1) if queries is None else None
    return _search(X, Q, k, [Search(np.arange(X.shape[0]), rows, apart)])


def class_neighbors(
    X: Any, codes: np.ndarray, k: int, *, same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Exact k nearest neighbours inside the class of every point (``same``), or outside it."""
    order = np.argsort(codes, kind="stable")
    sizes = np.unique(codes, return_counts=True)[1]
    stops = np.cumsum(sizes)
    start, stop = np.repeat(stops - sizes, sizes), np.repeat(stops, sizes)
    searches = list((_inside if same else _outside)(order, sizes, start, stop))
    # Tables of classes take no more room than the points. A table of the others is as large itself.
    return _search(X, X, k, searches, at_once=len(searches) if same else 1)


def _outside(
    order: np.ndarray, sizes: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> Iterator[Search]:
    """A table of the others for each large class; the small ones look at all points."""
    large = np.repeat(sizes >= len(order) / _LARGE, sizes)
    for low in np.unique(start[large]).tolist():
        high = stop[low]
        others = np.sort(np.concatenate([order[:low], order[high:]]))
        yield Search(others, order[low:high], None)
    small = np.flatnonzero(~large)
    yield Search(order, order[small], Ranges(start[small], stop[small]))


def _inside(
    order: np.ndarray, sizes: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> Iterator[Search]:
    """A table for each large class, and for some small ones together."""
    for low, high in _groups(sizes):
        members, own = order[low:high], np.arange(high - low)
        if stop[low] == high:
            apart = Ranges(own, own + 1)
        else:
            apart = Ranges(start[low:high] - low, stop[low:high] - low, own)
        yield Search(members, members, apart)


def _groups(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Small classes searched together: alone, each would cost more in Python than in products."""
    groups, first, stop = [], 0, 0
    for size in sizes.tolist():
        if first < stop and stop + size - first > _GROUP_ROWS:
            groups.append((first, stop))
            first = stop
        stop += size
    return [*groups, (first, stop)]


def _search(X: Any, Q: Any, k: int, searches: list[Search], *, at_once: int = 1) -> Found:
    """The neighbours of all rows of Q, of some searches at once."""
    indices = np.full((Q.shape[0], k), -1, dtype=np.intp)
    squares = np.full((Q.shape[0], k), np.inf)
    for i in range(0, len(searches), at_once):
        tiles = [tile for search in searches[i : i + at_once] for tile in _tiles(X, Q, k, search)]
        found = over_tiles(
            partial(_nearest, Q, k),
            tiles,
            flops=2.0 * X.shape[1] * sum(len(t.rows) * len(t.table.names) for t in tiles),
            host=backend_of(X).host,
        )
        for tile, (some, values) in zip(tiles, found, strict=True):
            indices[tile.rows, : some.shape[1]] = some
            squares[tile.rows, : some.shape[1]] = values
    return indices, squares


def _tiles(X: Any, Q: Any, k: int, search: Search) -> list[Tile]:
    """The tiles of a search; none where there is nothing to find."""
    points, rows, apart = search
    if min(k, len(points), len(rows)) < 1:
        return []
    table = Table(_select(X, points), points)
    per_row = (3 * len(points) + Q.shape[1]) * itemsize_of(X)
    blocks = row_blocks(len(rows), 2 * per_row, most=tile_rows(X, len(points), _TILE_BYTES))
    return [Tile(table, rows[b], None if apart is None else apart.of(b)) for b in blocks]


def _nearest(Q: Any, k: int, tile: Tile) -> Found:
    """The tile: some of the queries, all points."""
    table, rows, apart = tile
    return table.nearest(take_rows(Q, rows), min(k, len(table.names)), apart)


def _select(X: Any, rows: np.ndarray) -> Any:
    everything = len(rows) == X.shape[0] and np.array_equal(rows, np.arange(len(rows)))
    return X if everything else take_rows(X, rows)
