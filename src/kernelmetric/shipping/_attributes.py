"""The attributes of one object of a file: kinds of values, sides that agree, a sentence if not."""

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from kernelmetric.compute import is_sparse, to_numpy


def is_count(value: Any) -> bool:
    """Whether a value is a whole number from 0 on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= 0)


def are_texts(items: Any) -> bool:
    """Whether this is a list or a tuple of strings."""
    return isinstance(items, list | tuple) and all(isinstance(item, str) for item in items)


def _is_real(value: Any) -> bool:
    return isinstance(value, float | int | np.floating) and bool(np.isfinite(value))


def _ascending(a: np.ndarray) -> bool:
    return not np.any(np.diff(a, axis=0) < 0)


def lead_forward(nodes: np.ndarray) -> bool:
    """Whether every node of trees lies before its children, so that a walk ends in a leaf."""
    ahead = (nodes[:, :1] <= 0) | (nodes[:, :2] > np.arange(len(nodes))[:, None])
    return bool(np.all(ahead) and np.all(nodes[:, :2] < len(nodes)))


# Kinds of single values: words for the message, and what must hold.
_VALUES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "count": ("a whole number from 0 on", is_count),
    "whole": ("a whole number from 1 on", lambda v: is_count(v) and v > 0),
    "real": ("a finite number", _is_real),
    "positive": ("a positive number", lambda v: _is_real(v) and v > 0),
    "share": ("a number from 0 to 1", lambda v: _is_real(v) and 0 <= v <= 1),
    "texts": ("a list of texts: a function is code", are_texts),
}
# Kinds of arrays: words for the message, kinds of dtypes, and what must hold for the numbers.
_ARRAYS: dict[str, tuple[str, str, Callable[[np.ndarray], Any]]] = {
    "finite": ("finite numbers", "f", np.isfinite),
    "points": ("finite numbers", "f", np.isfinite),  # sparse ones too
    "number": ("numbers, none of them infinite", "f", lambda a: ~np.isinf(a)),
    "scale": ("positive numbers", "f", lambda a: ~np.isinf(a) & ~(a <= 0)),
    "variance": ("finite numbers from 0 on", "f", lambda a: np.isfinite(a) & (a >= 0)),
    "ascending": ("ascending numbers", "f", lambda a: np.isfinite(a) & _ascending(a)),
    "quantile": ("ascending columns", "f", lambda a: ~np.isinf(a) & _ascending(a)),
    "count": ("integers from 0 on", "iu", lambda a: a >= 0),
    "code": ("integers from -1 on", "iu", lambda a: a >= -1),
    "sign": ("numbers 1 and -1", "fi", lambda a: np.abs(a) == 1),
    "any": ("an array", "biufUO", lambda a: True),
}


class Attributes:
    """The attributes of an object; ``sides`` are the lengths of arrays known so far, by letter."""

    def __init__(self, value: Any):
        self.value, self.state = value, vars(value)
        self.sides: dict[str, int] = {}

    def get(self, name: str, default: Any = None) -> Any:
        """One attribute."""
        return self.state.get(name, default)

    def require(self, good: Any, name: str, expected: str) -> None:
        """Refuse an attribute that is not good, with a word on what was expected."""
        if not good:
            got = self.get(name)
            got = f"array of shape {got.shape}" if getattr(got, "ndim", 0) == 2 else got
            shown = " ".join(str(got).split())[:80]
            where = f"{type(self.value).__name__}.{name}"
            raise ValueError(f"Got {where}={shown}, but expected {expected}.")

    def check(self, name: str, wanted: str | type) -> None:
        """Refuse an attribute of another class, of another kind, or of other sides than wanted."""
        if isinstance(wanted, type):
            self.require(isinstance(self.get(name), wanted), name, f"one of {wanted.__name__}")
        elif wanted in _VALUES:
            words, holds = _VALUES[wanted]
            self.require(holds(self.get(name)), name, words)
        else:
            self.array(name, wanted)

    def array(self, name: str, wanted: str) -> None:
        """Refuse an array of other numbers than wanted, or of other sides than those known.

        "finite r d" are finite numbers of shape (r, d), "count<c n" integers from 0 below side c.
        """
        where, sides = f"{type(self.value).__name__}.{name}", self.sides
        kind, *letters = wanted.split()
        kind, _, bound = kind.partition("<")
        words, dtypes, holds = _ARRAYS[kind]
        array = self.get(name)
        array = to_numpy(array) if is_array_api_obj(array) else array  # of any library, to save
        lengths = getattr(array, "shape", ())
        if kind == "points" and is_sparse(array):
            array = array.data
        if not isinstance(array, np.ndarray) or array.dtype.kind not in dtypes:
            got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"Got {where} of {got}, but expected an array of {words}.")
        if array.dtype.kind == "f" and array.dtype.itemsize < 4:
            raise ValueError(f"Got {where} of {array.dtype}, but expected float32 or float64.")
        shape = tuple(map(self._side, letters, lengths))
        if len(lengths) != len(letters) or shape != lengths:
            raise ValueError(
                f"Got {where} of shape {lengths}, but expected {' x '.join(letters)} with "
                f"{sides}, the sides of its other attributes."
            )
        limit = sides.get(bound, 0) if bound else np.inf
        if not np.all(holds(array)) or (bound and np.any(array >= limit)):
            below = f" below {limit}" if bound else ""
            raise ValueError(f"Got {where} with other values, but expected {words}{below}.")

    def _side(self, letter: str, got: int) -> int:
        """The length that a letter stands for; any where it is * or not known yet."""
        if letter == "*":
            return got
        return int(letter) if letter.isdigit() else self.sides.setdefault(letter, got)
