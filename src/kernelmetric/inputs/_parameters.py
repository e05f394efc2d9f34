"""Parameters that are numbers within bounds, or words; others are refused in a sentence."""

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

LARGEST = 1e100  # weights beyond leave the range of floating point once squares are summed
_FLAGS = ("centered", "diagonal", "refit", "verbose", "warm_start")


class Numbers(NamedTuple):
    """What a parameter may be: a finite number of a kind within bounds, or one of some words."""

    kind: type = Real
    low: float = -np.inf
    high: float = np.inf
    above: bool = False  # the lower bound itself is refused,
    below: bool = False  # and the upper one
    words: tuple[str | None, ...] = ()

    def require(self, name: str, value: Any, owner: str = "", *, hint: str = "") -> None:
        """Refuse a value that is none of these, with a hint of what to try."""
        if value is None or isinstance(value, str):
            good = value in self.words
        else:
            good = isinstance(value, self.kind) and not isinstance(value, bool | np.bool_)
            good = good and self._bounds(as_float(value))
        if not good:
            bounds = f" {'>' if self.above else '>='} {self.low:g}" if self.low > -np.inf else ""
            bounds += f" and {'<' if self.below else '<='} {self.high:g}" * (self.high < np.inf)
            infinite = isinstance(value, Real) and not np.isfinite(as_float(value))
            number = "a finite number" if infinite and self.high == np.inf else "a number"
            kind = "an integer" if self.kind is Integral else number
            names = [repr(word) for word in self.words if word is not None]
            expected = either([*names, kind + bounds, *["None"] * (None in self.words)])
            owner = f"{owner} expected" if owner else "expected"
            hint = f": {hint}" if hint else ""
            raise ValueError(f"Got {name}={value!r}, but {owner} {expected}{hint}.")

    def check(self, estimator: Any, name: str) -> None:
        """The same of a parameter of an estimator."""
        self.require(name, getattr(estimator, name), type(estimator).__name__)

    def _bounds(self, number: float) -> bool:
        low = self.low < number if self.above else self.low <= number
        high = number < self.high if self.below else number <= self.high
        return low and high and bool(np.isfinite(number))


COUNT = Numbers(Integral, low=1)
COUNT_OR_NONE = Numbers(Integral, low=1, words=(None,))
POSITIVE = Numbers(low=0, above=True)
PRICE = Numbers(low=0, high=LARGEST)
SHARE = Numbers(low=0, high=1, above=True, below=True)


def check_parameters(estimator: Any) -> None:
    """Refuse what the classes of a learner do not allow (``_allowed``): numbers, or words."""
    check_flags(estimator)
    allowed: dict[str, Any] = {}
    for cls in reversed(type(estimator).__mro__):
        allowed |= vars(cls).get("_allowed", {})
    for name, values in allowed.items():
        if isinstance(values, Numbers) and hasattr(estimator, name):
            values.check(estimator, name)
        elif hasattr(estimator, name):
            require_word(name, getattr(estimator, name), values)


def check_flags(estimator: Any) -> None:
    """Refuse a switch that is neither on nor off."""
    for name in _FLAGS:
        is_on(name, getattr(estimator, name, False))


def is_on(name: str, value: Any) -> bool:
    """Whether a switch is on; a value that is neither on nor off is refused."""
    if not isinstance(value, bool | np.bool_ | Integral):
        raise ValueError(f"Got {name}={value!r}, but expected True or False.")
    return bool(value)


def require_flag(name: str, value: Any) -> None:
    """Refuse what is neither on nor off, nor left to be chosen."""
    if not (is_auto(value) or isinstance(value, bool | np.bool_)):
        raise ValueError(f"Got {name}={value!r}, but expected True, False or 'auto'.")


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to be chosen."""
    return isinstance(value, str) and value == "auto"


def require_word(name: str, value: Any, words: Collection[str]) -> None:
    """Refuse a value that is none of some words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"Got {name}={value!r}, but expected {either([*map(repr, words)])}.")


def either(words: list[str]) -> str:
    """Words with commas, and "or" before the last."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def as_float(value: Any) -> float:
    """A number as a float; infinity for an integer that no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return np.inf
