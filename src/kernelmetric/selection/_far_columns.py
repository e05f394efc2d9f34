"""Columns and cells whose numbers leave the range in which kernels can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute import namespace, take_rows, to_numpy
from kernelmetric.compute.reductions import overflow_error
from kernelmetric.inputs import farthest_column
from kernelmetric.solvers import evenly

_ROWS = 200  # tell the spread of a column
_BEYOND = 1e30  # of another column: rounding leaves nothing so small, and no unit is so large
_RANGE = 1e-100, 1e100  # of a spread, whose square and inverse are numbers
_FARTHEST = 1e5  # usual distances, beyond which every kernel that is tried is zero


def units_of(X: Any) -> np.ndarray | None:
    """Scales that bring columns 10³⁰ times as wide, or narrow, as others to the spread of these."""
    with np.errstate(all="ignore"):
        some = to_numpy(take_rows(X, evenly(X.shape[0], _ROWS))).astype(np.float64)
        wide = np.max(np.abs(some - some[:1]), axis=0)
        used = np.flatnonzero(wide > 0)
        if not len(used):
            return None
        least, most = wide[used].min(), wide[used].max()
        if _RANGE[0] < least and most < _RANGE[1] and most < _BEYOND * least:
            return None
        spreads = np.array([_spread(some[:, j]) for j in used])
        amid = np.sort(spreads)[[(len(spreads) - 1) // 2, len(spreads) // 2]]
        middle = float(amid[np.argmin(np.abs(np.log(amid)))])
        off = (spreads > _BEYOND * middle) | (spreads < middle / _BEYOND)
        units = np.ones(X.shape[1])
        units[used[off]] = middle / spreads[off]
    return units if off.any() and _RANGE[0] < middle < _RANGE[1] else None


def _spread(values: np.ndarray) -> float:
    """The median distance from the median, of values that are not the median."""
    away = np.abs(values - np.median(values))
    return float(np.median(away[away > 0]))


def without_gaps(X: np.ndarray, usual: float) -> np.ndarray:
    """Points whose far values are drawn nearer, to where every kernel is still zero."""
    most = _FARTHEST * usual
    wide = np.flatnonzero(np.ptp(X, axis=0) > most)
    if not len(wide):
        return X
    X = X.copy()
    for j in wide:
        order = np.argsort(X[:, j], kind="stable")
        values, middle = X[order, j], len(X) // 2
        steps = np.append(0.0, np.cumsum(np.minimum(np.diff(values), most)))
        X[order, j] = values[middle] + (steps - steps[middle])
    return X


def refuse_overflow(X: Any) -> None:
    """Refuse points whose squared distances overflow, and name the column."""
    xp = namespace(X)
    with np.errstate(all="ignore"):
        wide = 0.5 * xp.max(X, axis=0) - 0.5 * xp.min(X, axis=0)
        if not float(xp.max(wide)) < (float(xp.finfo(X.dtype).max) / (8 * X.shape[1])) ** 0.5:
            raise ValueError(f"{overflow_error(X.dtype)} It is {farthest_column(X)}.")
