"""Values that would become numbers only by a guess: what a mask hides, dates, durations, text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# How the types of dates and durations begin, in NumPy, pandas, polars and Arrow.
_TIMES = ("date", "time", "duration", "period")


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


def refuse_text(targets: Any) -> None:
    """Refuse targets that are words, where numbers are predicted.

    Parameters
    ----------
    targets : array, data frame, series or list
        What is to be predicted.
    """
    kind = getattr(targets.dtype, "kind", "") if hasattr(targets, "dtype") else "O"
    for value in np.ravel(np.asarray(targets, dtype=object)) if kind in tuple("OUS") else ():
        try:
            float(value)
        except (TypeError, ValueError):
            if isinstance(value, str | bytes):
                raise ValueError(
                    f"Got y with text, such as {str(value)!r}, but expected numbers to predict: "
                    "try a learner from labels, or MetricClassifier, for classes."
                ) from None
