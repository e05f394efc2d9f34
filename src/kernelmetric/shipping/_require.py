"""What one attribute of a fitted estimator must be like: kinds of numbers, sides, a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy

# Kinds of numbers: a word for the message, kinds of dtypes, and what must hold for all of them.
_KINDS: dict[str, tuple[str, str, Callable[[np.ndarray], Any]]] = {
    "finite": ("finite numbers", "f", np.isfinite),
    "number": ("numbers, none of them infinite", "f", lambda a: ~np.isinf(a)),
    "scale": ("positive numbers", "f", lambda a: ~np.isinf(a) & ~(a <= 0)),
    "count": ("integers from 0 on", "iu", lambda a: a >= 0),
    "code": ("integers from -1 on", "iu", lambda a: a >= -1),
    "sign": ("numbers 1 and -1", "fi", lambda a: np.abs(a) == 1),
    "any": ("an array", "biufUO", lambda a: True),
}


def check_array(where: str, array: Any, wanted: str, sides: dict[str, int]) -> None:
    """Refuse an array of other numbers than ``wanted``, or of sides other than those known."""
    kind, *letters = wanted.split()
    words, dtypes, holds = _KINDS[kind]
    array = to_numpy(array) if hasattr(array, "detach") else array  # a torch tensor, to be saved
    if not isinstance(array, np.ndarray) or array.dtype.kind not in dtypes:
        got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"Got {where} of {got}, but expected an array of {words}.")
    if array.dtype.kind == "f" and array.dtype.itemsize < 4:
        raise ValueError(f"Got {where} of {array.dtype}, but expected float32 or float64.")
    shape = tuple(
        got if letter == "*" else int(letter) if letter.isdigit() else sides.setdefault(letter, got)
        for letter, got in zip(letters, array.shape, strict=False)
    )
    if array.ndim != len(letters) or shape != array.shape:
        raise ValueError(
            f"Got {where} of shape {array.shape}, but expected {' x '.join(letters)} with {sides}, "
            "the sides of its other attributes."
        )
    if not np.all(holds(array)):
        raise ValueError(f"Got {where} with other values, but expected {words}.")


def require(good: bool, value: Any, attribute: str, got: Any, expected: str) -> None:
    """Refuse an attribute that is not ``good``, with what was got and what was expected."""
    if not good:
        shown = " ".join(str(got).split())[:80]
        raise ValueError(
            f"Got {type(value).__name__}.{attribute}={shown}, but expected {expected}."
        )


def is_count(value: Any) -> bool:
    """Whether a value is a whole number from 0 on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= 0)
