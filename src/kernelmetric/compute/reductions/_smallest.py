"""The smallest entries of the rows of a block."""

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import to_numpy
from kernelmetric.compute.backends import backend_of

_GROUP_ROWS = 32  # columns that share one minimum when the k smallest of many are sought
_FEWEST_ROWS = 4  # a group of fewer tells too little
_GROUPS_FOR_EACH = 1.5  # of the k: with fewer groups, their minima bound little


def k_smallest(D2: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values of the k smallest entries of each row, ascending, ties by column."""
    there = backend_of(D2).k_smallest(D2, k)
    if there is not None:
        return there
    D2 = to_numpy(D2)
    if _GROUPS_FOR_EACH * k * _GROUP_ROWS < D2.shape[1]:
        return _up_to(D2, upper_bounds(D2, k)[:, None], k)  # two passes, and no partition
    if k < D2.shape[1]:
        found = np.argpartition(D2, k - 1, axis=1)[:, :k]
    else:
        found = np.broadcast_to(np.arange(k), D2.shape).copy()
    values = np.take_along_axis(D2, found, axis=1)
    order = np.lexsort((found, values), axis=1)  # ties go to the earlier column
    found, values = (np.take_along_axis(part, order, axis=1) for part in (found, values))
    # A partition takes any of those that tie with the last one.
    last = values[:, -1:]
    tied = np.flatnonzero((np.count_nonzero(D2 <= last, axis=1) > k) & np.isfinite(last[:, 0]))
    if len(tied):
        found[tied] = _up_to(D2[tied], last[tied], k)[0]
    return found, values


def upper_bounds(D2: np.ndarray, k: int) -> np.ndarray:
    """For each row a number that k or more entries do not exceed; infinite for few columns."""
    n_rows, n_columns = D2.shape
    size = min(_GROUP_ROWS, int(n_columns / (_GROUPS_FOR_EACH * k)))
    if size < _FEWEST_ROWS:
        return np.full(n_rows, np.inf, dtype=D2.dtype)
    width = n_columns // size
    grouped = D2[:, : width * size].reshape(n_rows, size, width)
    return np.partition(grouped.min(axis=1), k - 1, axis=1)[:, k - 1]


def _up_to(D2: np.ndarray, bound: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest of each row, out of at least k entries that are not beyond a bound."""
    rows, columns = true_entries(D2 <= bound)
    values = D2[rows, columns]
    chosen = first_of_rows(rows, values, len(D2), k)
    return columns[chosen], values[chosen]


def true_entries(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``np.nonzero`` of a contiguous mask, many times as fast where little is true."""
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1] or 1)
    return rows, columns


def first_of_rows(rows: np.ndarray, values: np.ndarray, n_rows: int, k: int) -> np.ndarray:
    """Positions (n_rows, k) of the k smallest of each row in a list by rows; ties by place."""
    counts = np.bincount(rows, minlength=n_rows)
    first = np.cumsum(counts) - counts
    table = np.full((n_rows, counts.max(initial=k)), np.inf, dtype=values.dtype)
    table[rows, np.arange(len(rows)) - first[rows]] = values
    return first[:, None] + np.argsort(table, axis=1, kind="stable")[:, :k]


def smallest_of_rows(rows: np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
    """Ascending positions of entries among the k smallest of their row, in a list."""
    counts = np.bincount(rows)
    crowded = np.flatnonzero(counts[rows] > k)
    order = crowded[np.lexsort((values[crowded], rows[crowded]))]
    sizes = counts[counts > k]
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.ones(len(rows), dtype=bool)
    kept[order[rank >= k]] = False
    return np.flatnonzero(kept)
