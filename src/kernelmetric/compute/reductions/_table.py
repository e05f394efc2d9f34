r"""Points to search among, and a search that knows what rounding may have done.

One product gives every distance from below: with s the bound of :func:`rounding`,

.. math:: \ell = (1 - s)(|p|^2 + |q|^2) - 2pq \;\le\; |p - q|^2 \;\le\; \ell + 2s(|p|^2 + |q|^2).

Where the k nearest are apart by more than that, nothing is left to do: in float64 nearly always.
Else they are ranked by their differences, and a row is settled when the next point is beyond the
k-th of these. What is left is searched in float64, and at last from differences alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from kernelmetric.compute._arrays import namespace, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions import _distances
from kernelmetric.compute.reductions._smallest import k_smallest, true_entries

_SPARE = 2  # further candidates, one of which is nearly always beyond doubt
# Relative errors of a squared distance beyond which it is computed from the difference.
_ACCURACY = {4: 1e-3, 8: 1e-9}

Found = tuple[np.ndarray, np.ndarray]  # columns, or rows of X; squared distances


@dataclass(frozen=True)
class Ranges:
    """For each query, positions that it may not find; with ``own``, those outside, and this one."""

    start: np.ndarray
    stop: np.ndarray
    own: np.ndarray | None = None

    def of(self, rows: Any) -> Self:
        """Those of some queries."""
        own = None if self.own is None else self.own[rows]
        return replace(self, start=self.start[rows], stop=self.stop[rows], own=own)

    def forbid(self, low: Any) -> Any:
        """Infinity where a query may not look."""
        backend = backend_of(low)
        if self.own is None and np.all(self.stop == self.start + 1):
            return backend.set_entries(low, self.start, np.inf)
        first, last = 0, low.shape[1]
        if self.own is None:  # ranges of neighbouring queries are near each other
            first, last = int(np.min(self.start)), int(np.max(self.stop))
        backend.fill(low, slice(first, last), self.start, self.stop, np.inf, self.own)
        return low


class Bounds:
    """``b_j - 2 q a_j`` for centred points a and queries q, by one product."""

    slack = 1.0  # rounding of the product, in units of that of the dtype

    def __init__(self, points: Any):
        self.columns = -2.0 * points

    def add(self, b: Any) -> None:
        """Take the numbers b of the points into the product."""
        self.columns = namespace(b).concat([self.columns, b[:, None]], axis=1).T

    def __call__(self, q: Any) -> Any:
        """The numbers (m, n) for some queries about the same centre, in a new array."""
        xp = namespace(q)
        return xp.concat([q, xp.ones_like(q[:, :1])], axis=1) @ self.columns


class Table:
    """Points in the order in which they are searched; ties go to the lesser name."""

    def __init__(self, points: Any, names: np.ndarray):
        self.points, self.names = points, names
        self.ordered = bool(np.all(names[1:] > names[:-1]))
        with np.errstate(over="ignore", invalid="ignore"):
            self.center = _distances.robust_center(points)
            centred = points - self.center
            squares = _distances.squared_lengths(centred)
            _distances.require_squares(squares)
        self.squares = to_numpy(squares).astype(np.float64)
        fused = backend_of(points).fused("bounds_from", centred)
        self.bounds = (fused(centred) if fused else None) or Bounds(centred)
        self.error = self.bounds.slack * _distances.rounding(points)
        self.bounds.add(squares * (1.0 - self.error))

    @cached_property
    def wide(self) -> Self:
        """The same points in float64."""
        xp = namespace(self.points)
        return type(self)(xp.astype(self.points, xp.float64), self.names)

    def nearest(self, Q: Any, k: int, apart: Ranges | None) -> Found:
        """Names and squares of the k nearest points of each query; -1 and inf where none."""
        low, base = self._lower(Q)
        if apart is not None:
            low = apart.forbid(low)
        fused = backend_of(Q).fused("ranked", Q) if self.ordered else None
        ranked = fused(low, base, Q, self.points, k) if fused else self._ranked(Q, k, low, base)
        found, squares, left = ranked
        names = self.names[found]
        if len(left):
            names[left], squares[left] = self._settled(
                take_rows(Q, left),
                k,
                to_numpy(take_rows(low, left)),
                squares[left, -1] - base[left],
                None if apart is None else apart.of(left),
            )
        return np.where(np.isinf(squares), -1, names), squares

    def _lower(self, Q: Any) -> tuple[Any, np.ndarray]:
        """Lower bounds of the squared distances, less a part of each row: ``(1 - s) |q|²``."""
        with np.errstate(over="ignore", invalid="ignore"):
            q = Q - self.center
            squares = _distances.squared_lengths(q)
            _distances.require_squares(squares)
        return self.bounds(q), to_numpy(squares).astype(np.float64) * (1 - self.error)

    def _ranked(
        self, Q: Any, k: int, low: Any, base: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns and squares of the nearest, by differences where in doubt; rows left open."""
        columns, least = k_smallest(low, min(k + _SPARE, len(self.names)))
        least = least.astype(np.float64) + base[:, None]
        width = 2 * self.error * (self.squares[columns] + base[:, None] / (1 - self.error))
        found, squares = columns[:, :k].copy(), least[:, :k] + 0.5 * width[:, :k]
        doubtful = np.flatnonzero(~_beyond_doubt(least, width, k, _ACCURACY[itemsize_of(low)]))
        if not len(doubtful):
            return found, squares, doubtful
        columns, least = columns[doubtful], least[doubtful]
        m, n_candidates = columns.shape
        each = np.repeat(np.arange(m), n_candidates)
        exact = _distances.pair_squares(take_rows(Q, doubtful), self.points, each, columns.ravel())
        exact = np.where(np.isinf(least), np.inf, exact.reshape(columns.shape))
        order = np.lexsort((self.names[columns], exact), axis=1)[:, :k]
        found[doubtful] = np.take_along_axis(columns, order, axis=1)
        squares[doubtful] = exact = np.take_along_axis(exact, order, axis=1)
        settled = (least[:, -1] > exact[:, -1]) | np.isinf(least[:, -1])
        return found, squares, doubtful[~settled & (n_candidates < len(self.names))]

    def _settled(
        self, Q: Any, k: int, low: np.ndarray, bound: np.ndarray, apart: Ranges | None
    ) -> Found:
        """The nearest for sure, of queries for which many points may be."""
        mask = low <= bound[:, None]
        counts = np.count_nonzero(mask, axis=1)
        crowded = _distances.GATHER_COST * counts > low.shape[1]
        names, squares = np.empty((len(low), k), dtype=np.intp), np.empty((len(low), k))
        if itemsize_of(self.points) == 4 and crowded.any():
            rows = np.flatnonzero(crowded)
            xp = namespace(Q)
            q = xp.astype(take_rows(Q, rows), xp.float64)
            within = None if apart is None else apart.of(rows)
            names[rows], squares[rows] = self.wide.nearest(q, k, within)
            mask[rows] = False
            crowded[:] = False
        exact = np.full(low.shape, np.inf)
        if backend_of(Q).host and crowded.any():
            exact[crowded] = cdist(Q[crowded], self.points, "sqeuclidean")
            exact[~mask] = np.inf
            mask[crowded] = False
        i, j = true_entries(mask)
        exact[i, j] = _distances.pair_squares(Q, self.points, i, j)
        rows = np.flatnonzero(np.isfinite(exact).any(axis=1))
        by_name = np.argsort(self.names)
        found, values = k_smallest(exact[rows][:, by_name], k)
        names[rows], squares[rows] = self.names[by_name[found]], values
        return names, squares


def _beyond_doubt(least: np.ndarray, width: np.ndarray, k: int, accuracy: float) -> np.ndarray:
    """Rows whose k nearest, and their order, no rounding can have changed."""
    accurate = np.all(width[:, :k] <= accuracy * least[:, :k], axis=1)
    least = least[:, : k + 1]
    with np.errstate(invalid="ignore"):  # infinity less infinity: there is no such neighbour
        apart = np.diff(least, axis=1) > width[:, : least.shape[1] - 1]
    return accurate & np.all(apart | np.isinf(least[:, :-1]), axis=1)
