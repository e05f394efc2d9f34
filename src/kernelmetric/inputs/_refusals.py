"""Values that would become numbers only by a guess or a loss: what a mask hides, dates, digits."""

import math
from collections.abc import Iterable
from numbers import Rational
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import refuse_masked

# How the types of dates and durations begin, in NumPy, pandas, polars and Arrow.
_TIMES = ("date", "time", "duration", "period")
_LONG = ("int64", "uint64", "int128", "uint128", "object")  # with more digits than floats
_ROUNDED = 1e-6  # of the spread of a column: rounding beyond this is a loss


def refuse_ambiguous(values: Any, name: str) -> None:
    """Refuse what a mask hides, dates or durations without a unit, and numbers that floats lose."""
    refuse_masked(values)
    if (column := rounded_column(values)) is not None:
        raise ValueError(
            f"Got whole numbers in {name}, column {column!r}, that 64-bit floats cannot hold or "
            "tell apart, but expected smaller ones: subtract the smallest of them first, or use a "
            "larger unit."
        )
    kinds = getattr(values, "dtypes", getattr(values, "dtype", ()))
    for kind in kinds if isinstance(kinds, Iterable) else (kinds,):
        if str(kind).lower().startswith(_TIMES):
            raise ValueError(
                f"Got {name} of type {kind}, but expected numbers: say what counts as one. Try "
                "(times - times.min()) / numpy.timedelta64(1, 'D') for days, or Kernelized with a "
                "data frame, whose columns of dates it knows."
            )


def rounded_column(values: Any) -> Any:
    """The first column (place or name) of whole numbers that floats cannot tell apart, or None."""
    if isinstance(values, list | tuple):
        try:
            values = np.asarray(values)
        except ValueError:  # rows of several lengths, of which others tell
            return None
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iuO" or values.dtype.itemsize < 8 or not values.size:
            return None
        columns = values.reshape(len(values), -1).T if values.ndim else values.reshape(1, 1)
        return next((j for j, column in enumerate(columns) if _is_rounded(column)), None)
    if hasattr(values, "iter_columns"):  # of polars and narwhals
        named = [(column.name, column) for column in values.iter_columns()]
    elif hasattr(values, "iloc"):
        named = list(values.items()) if values.ndim == 2 else [(values.name, values)]
    else:
        named = []
    for name, column in named:
        if str(column.dtype).lower().startswith(_LONG) and _is_rounded(column.to_numpy()):
            return name
    return None


def _is_rounded(column: np.ndarray) -> bool:
    """Whether floats lose whole numbers of a column: more than a small part of its spread."""
    found: list[Any] = []
    if column.dtype.kind == "O":
        found = [value for value in column.tolist() if isinstance(value, Rational)]
    elif column.dtype.kind in "iu" and column.size:
        found = [column.min(), column.max()]
    if not found:
        return False
    low, high = int(min(found)), int(max(found))
    try:
        step = math.ulp(max(-low, high, 0))
        return step > 1 and step / 2 > _ROUNDED * (high - low) > 0
    except OverflowError:  # beyond all floats
        return True


def refuse_text(targets: Any) -> None:
    """Refuse targets that are words, where numbers are predicted."""
    kind = getattr(targets.dtype, "kind", "") if hasattr(targets, "dtype") else "O"
    for value in np.ravel(np.asarray(targets, dtype=object)) if kind in tuple("OUS") else ():
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            if isinstance(value, str | bytes):
                raise ValueError(
                    f"Got y with text, such as {str(value)!r}, but expected numbers to predict: "
                    "try a learner from labels, or MetricClassifier, for classes."
                ) from None
