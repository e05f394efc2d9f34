"""Values that would become numbers only by a guess: what a mask hides, dates, durations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# How the types of dates and durations begin, in NumPy, pandas, polars and Arrow.
_TIMES = ("date", "time", "duration", "period")
_EXACT = 2**53  # up to which float64 has every integer


def refuse_masked(*values: Any) -> None:
    """Refuse masked arrays that hide something: NumPy would go on with what lies below the mask.

    Parameters
    ----------
    *values : object
        Arguments of a method.
    """
    for value in values:
        if isinstance(value, np.ma.MaskedArray) and (hidden := int(np.ma.count_masked(value))):
            raise ValueError(
                f"Got a masked array with {hidden} masked entries of {value.size}, but expected "
                "values everywhere: leave these rows out, or fill the gaps, such as by "
                "SimpleImputer of scikit-learn after array.filled(numpy.nan)."
            )


def refuse_unsaid(values: Any, name: str) -> None:
    """Refuse what is hidden by a mask, and dates or durations, whose unit nobody has said.

    Parameters
    ----------
    values : array, data frame or series
        What is to be read as numbers.
    name : str
        Its name, for the message.
    """
    refuse_masked(values)
    kinds = getattr(values, "dtypes", getattr(values, "dtype", ()))
    for kind in kinds if isinstance(kinds, Iterable) else (kinds,):
        if str(kind).lower().startswith(_TIMES):
            raise ValueError(
                f"Got {name} of type {kind}, but expected numbers: say what counts as one. Try "
                "(times - times.min()) / numpy.timedelta64(1, 'D') for days, or Kernelized with a "
                "data frame, whose columns of dates it knows."
            )


def refuse_merged(X: Any) -> None:
    """Refuse columns of integers that float64 does not tell apart.

    Parameters
    ----------
    X : array, list or data frame
        Points that are to become float64.
    """
    if hasattr(X, "iloc"):
        columns = [(name, X[name].to_numpy()) for name in X.columns]
    elif isinstance(X, np.ndarray | list):
        try:
            rows = np.asarray(X)
        except ValueError:  # rows of several lengths, which others refuse
            return
        columns = list(enumerate(rows.T)) if rows.ndim == 2 else []
    else:
        return
    for name, values in columns:
        if values.dtype.kind not in "iu" or not len(values):
            continue
        if max(int(values.max()), -int(values.min())) <= _EXACT:
            continue
        there, told = len(np.unique(values)), len(np.unique(values.astype(np.float64)))
        if told < there:
            raise ValueError(
                f"Got integers beyond 2**53 in column {name!r}, of whose {there} values float64 "
                f"tells {told} apart, but expected numbers that it has: try subtracting the "
                "smallest of them first."
            )
