"""Cells that lie far from all others of their column, as a sentinel such as 9999 does."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np

from kernelmetric._warnings import warn
from kernelmetric.compute import namespace
from kernelmetric.compute.watch import within

_GAP = 100.0  # times as far from the median as the others: a Cauchy column has it once in a hundred
_SHARE = 0.1  # of the cells, at most; more are no exception
_LEAST_CELLS = 20
_MOST_ROWS = 20_000  # are looked at, evenly spaced
_CENTRE_ROWS = 64  # whose median is near that of all
_LEAST_DIFFERENCE = float(np.finfo(np.float64).tiny) ** 0.5
_SHOWN = 3
_SILENT: ContextVar[bool] = ContextVar("silent_about_far_cells", default=False)


class FarCellWarning(UserWarning):
    """A few cells of a column lie far from all others, as what stands for a missing value does."""


def far_cells(values: np.ndarray) -> np.ndarray:
    """Which cells of a column, a tenth at most, are 100 times as far from its median as others."""
    n = len(values)
    if n < _LEAST_CELLS:
        return np.zeros(n, dtype=bool)
    with np.errstate(over="ignore"):
        away = np.abs(values - np.median(values))
        order = np.sort(away)
        others = order[int(np.ceil((1.0 - _SHARE) * n)) - 1 : -1]
        gaps = np.flatnonzero((others > 0) & (order[-len(others) :] > _GAP * others))
    return away > (others[gaps[0]] if len(gaps) else np.inf)


def far_columns(X: Any) -> list[tuple[int, float]]:
    """Columns with cells far from all others, and the farthest value of each, of a NumPy array."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiu"  # without a mask
    if not plain or len(X) < _LEAST_CELLS or not X.shape[1]:
        return []
    X = X[:: -(-len(X) // _MOST_ROWS)]
    with np.errstate(over="ignore", invalid="ignore"):
        away = np.abs(X - np.median(X[:: -(-len(X) // _CENTRE_ROWS)], axis=0))
        # of a tenth at the gap, and the others a hundredth as far, the mean is no more
        suspects = np.flatnonzero(away.max(axis=0) * (_SHARE + 2.0 / _GAP) > away.mean(axis=0))
    found = []
    for j in suspects.tolist():
        far = X[far_cells(X[:, j]), j]
        if len(far):
            found.append((j, float(far[np.argmax(np.abs(far))])))
    return found


def warn_of_far_cells(X: Any) -> None:
    """Warn of cells that lie far from all others of their column, with the column and the value."""
    if _SILENT.get():
        return
    found = [f"column {j} holds {value:.6g}" for j, value in far_columns(X)]
    if not found:
        return
    more = f" and {len(found) - _SHOWN} more columns likewise" if len(found) > _SHOWN else ""
    said = ", ".join(found[:_SHOWN]) + more
    warn(
        f"{said[0].upper()}{said[1:]}: {_GAP:.0f} times as far from the median as other values of "
        "the column. Such rows are near to none. If it stands for a missing value, try NaN in a "
        "data frame; if it is true, try clipping it.",
        FarCellWarning,
    )


def refuse_tiny_columns(X: Any) -> None:
    """Refuse columns that differ by so little that every square is zero, beside others."""
    if _SILENT.get() or not isinstance(X, np.ndarray):
        return
    wide = 0.5 * X.max(axis=0) - 0.5 * X.min(axis=0)
    tiny = np.flatnonzero((wide > 0) & (wide < _LEAST_DIFFERENCE))
    if len(tiny):
        j = int(tiny[0])
        raise ValueError(
            f"Got column {j} with values that differ by {2.0 * wide[j]:.3g} at most, whose squares "
            "are zero in float64, but expected differences that count: rescale it, e.g. with "
            "StandardScaler, or leave it out."
        )


def farthest_column(X: Any) -> str:
    """The column of the widest range and its extreme, for a message: "column 3, with 1e+300"."""
    xp = namespace(X)
    with np.errstate(all="ignore"):
        wide = 0.5 * xp.max(X, axis=0) - 0.5 * xp.min(X, axis=0)
    j = int(xp.argmax(wide))
    value = X[int(xp.argmax(xp.abs(X[:, j]))), j]
    return f"column {j}, with {float(value):.3g}"


def silent_about_far_cells() -> AbstractContextManager[Any]:
    """Within it, nothing is said: the points are coordinates, no cells of a table."""
    return within(_SILENT, True)
