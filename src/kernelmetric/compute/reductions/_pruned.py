r"""Exact nearest neighbours in many dimensions, most of them ruled out in few.

In orthonormal coordinates whose first r carry most of the variance, with :math:`t` the length of
the rest, :math:`\|a - b\|^2 \ge \|a_{1..r} - b_{1..r}\|^2 + (t_a - t_b)^2`. Points near in these
bound the k-th smallest distance; only those whose lower distance is within are looked at.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from kernelmetric.compute._budget import row_blocks, tile_rows
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.reductions._distances import (
    dense_pair_squares,
    pair_squares,
    require_squares,
    robust_center,
    rounding,
    squared_lengths,
)
from kernelmetric.compute.reductions._selection import first_of_rows, k_smallest, true_entries

_N_LEADING = 128
_MIN_FEATURES = 2 * _N_LEADING
_MIN_ROWS = 10_000
_SAMPLE = 5_000  # rows from which the coordinates are learned
_TRIALS = 64  # queries on which it is tried whether it is worth it
_WORTH = 0.01  # share of points left to look at: each costs many times its part of a GEMM
_HOPELESS = 0.1  # that share among the sample, beyond which the others are not even asked
_TILE_BYTES = 8 * 2**20  # a block of distances beyond this leaves the shared cache
_SHORTENED_ROWS = 1024


class LowerBounds(NamedTuple):
    """Points and queries in few coordinates: their product plus ``squares`` is at most |p - q|²."""

    points: np.ndarray
    queries: np.ndarray
    squares: np.ndarray


def lower_bounds(P: np.ndarray, Q: np.ndarray, k: int) -> LowerBounds | None:
    """Coordinates that rule most points out, or None where plain search is faster."""
    if len(P) < _MIN_ROWS or P.shape[1] < _MIN_FEATURES or len(Q) < _MIN_ROWS:
        return None
    sample = P[:: max(1, len(P) // _SAMPLE)].astype(np.float64)
    center = robust_center(sample)
    with np.errstate(over="ignore", invalid="ignore"):
        sample -= center
        require_squares(squared_lengths(sample))
    U = np.linalg.eigh(sample.T @ sample)[1][:, -_N_LEADING:]
    among = _bounds(sample, sample, np.zeros_like(center), U)
    nearest = min(max(1, round(k * len(sample) / len(P))), len(sample) - 1)
    if _share_left(sample, sample, nearest, among, same=True) > _HOPELESS:
        return None
    return _bounds(P, Q, center, U)


def _bounds(P: np.ndarray, Q: np.ndarray, center: np.ndarray, U: np.ndarray) -> LowerBounds:
    queries = _shortened(Q, center, U)
    points = queries.copy() if Q is P else _shortened(P, center, U)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = [squared_lengths(F[:, :-1]) for F in (points, queries)]
    require_squares(*lengths)
    part = 1.0 - rounding(points) - 4 * P.shape[1] * float(np.finfo(np.float64).eps)
    points[:, :-1] *= -2
    points[:, -1] = part * lengths[0]
    return LowerBounds(points, queries, part * lengths[1].astype(np.float64))


def worth_pruning(P: np.ndarray, Q: np.ndarray, k: int, bounds: LowerBounds, same: bool) -> bool:
    """Whether few enough points are left to look at, tried on some queries."""
    return _share_left(P, Q, k, bounds, same) <= _WORTH


def _share_left(P: np.ndarray, Q: np.ndarray, k: int, bounds: LowerBounds, same: bool) -> float:
    """What part of all points some queries have to look at."""
    rows = np.linspace(0, len(Q) - 1, _TRIALS).astype(np.intp)
    left, _ = _left_to_look_at(P, Q, rows, k, bounds, same)
    return len(left) / (len(rows) * len(P))


def pruned_search(
    P: np.ndarray, Q: np.ndarray, k: int, bounds: LowerBounds, same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of Q among P, and squared distances; ``same``: none is its own neighbour."""
    per_row = 3 * len(P) * P.itemsize
    tiles = over_tiles(
        partial(_nearest, P, Q, k, bounds, same),
        list(row_blocks(len(Q), 2 * per_row, most=tile_rows(P, len(P), _TILE_BYTES))),
        flops=2.0 * len(P) * len(Q) * bounds.points.shape[1],
    )
    indices, distances = (np.concatenate(part) for part in zip(*tiles, strict=True))
    return indices, distances.astype(np.float64, copy=False)


def _nearest(
    P: np.ndarray, Q: np.ndarray, k: int, bounds: LowerBounds, same: bool, block: slice
) -> tuple[np.ndarray, np.ndarray]:
    """The tile: some of the queries, all points."""
    rows = np.arange(block.start, block.stop)
    left, columns = _left_to_look_at(P, Q, rows, k, bounds, same)
    values = dense_pair_squares(Q, P, rows[left], columns, wide=False)  # there are many
    chosen = first_of_rows(left, values, columns, len(rows), k)
    if P.itemsize < 8:  # what may be among the nearest once more, in float64
        nearest = values[chosen[:, -1]] * (1 + 2 * rounding(P))
        kept = values <= nearest[left]
        left, columns = left[kept], columns[kept]
        values = pair_squares(Q, P, rows[left], columns)
        chosen = first_of_rows(left, values, columns, len(rows), k)
    return columns[chosen], values[chosen]


def _left_to_look_at(
    P: np.ndarray, Q: np.ndarray, rows: np.ndarray, k: int, bounds: LowerBounds, same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Positions in ``rows``, ascending, and points that may be among the k nearest of those."""
    q = bounds.queries[rows]
    lower = q @ bounds.points.T
    if same:
        lower[np.arange(len(rows)), rows] = np.inf
    near, _ = k_smallest(lower, k)
    each = np.repeat(rows, k)
    bound = pair_squares(Q, P, each, near.ravel()).reshape(near.shape).max(axis=1)
    bound -= bounds.squares[rows]
    left, columns = true_entries(lower <= bound[:, None])
    return left, columns


def _shortened(X: np.ndarray, center: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Leading coordinates and the length of the rest, computed in float64, and a one."""
    blocks = list(row_blocks(len(X), 2 * 8 * X.shape[1], most=_SHORTENED_ROWS))
    flops = 4.0 * U.size * len(X)
    return np.concatenate(over_tiles(partial(_some_shortened, X, center, U), blocks, flops=flops))


def _some_shortened(X: np.ndarray, center: np.ndarray, U: np.ndarray, block: slice) -> np.ndarray:
    """The tile: some of the points."""
    F = np.ones((block.stop - block.start, U.shape[1] + 2), dtype=X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = X[block] - center
        leading = centred @ U
        centred -= leading @ U.T
        F[:, :-2], F[:, -2] = leading, np.linalg.norm(centred, axis=1)
    return F
