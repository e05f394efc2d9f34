"""What a user may set, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

LARGEST = 1e100  # of amounts: products with it remain numbers
_NEIGHBORS = 5  # unless the user, or labels, ask for others


def check_parameters(metric: Any) -> None:
    """Refuse parameters of a TransductiveDistance that mean nothing."""
    check_n_neighbors(metric.n_neighbors)
    check_count("n_votes", metric.n_votes)
    check_count("cv", metric.cv, 2)
    check_amount("tol", metric.tol)
    check_flag("warm_start", metric.warm_start)
    check_lam(metric.lam)
    if metric.n_components is not None:
        check_count("n_components", metric.n_components)


def check_count(name: str, value: Any, low: int = 1, *, hint: str = "") -> None:
    """Refuse what is no integer from ``low`` on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise ValueError(f"Got {name}={value!r}, but expected an integer >= {low}{hint}.")


def check_amount(name: str, value: Any, *, zero: bool = False) -> None:
    """Refuse what is no positive number; zero is one where the caller says so."""
    if not is_amount(value) and not (zero and is_number(value) and value == 0):
        kind = "a number >= 0" if zero else "a positive number"
        raise ValueError(f"Got {name}={value!r}, but expected {kind}, {LARGEST:g} at most.")


def is_number(value: Any) -> bool:
    """Whether a value is a real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_amount(value: Any) -> bool:
    """Whether a value is a positive number that can be multiplied."""
    return is_number(value) and 0 < value <= LARGEST  # compared as it is: 10**400 has no float


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"Got {name}={value!r}, but expected True or False.")


def check_n_neighbors(value: Any) -> None:
    """Refuse what is neither a number of neighbours nor 'auto'."""
    if not (isinstance(value, str) and value == "auto"):
        check_count("n_neighbors", value, hint=", or 'auto'")


def check_lam(lam: Any) -> None:
    """Refuse a λ that is neither positive nor 'auto'."""
    automatic = isinstance(lam, str) and lam == "auto"
    if not automatic and not is_amount(lam) and not (is_number(lam) and lam == np.inf):
        raise ValueError(
            f"Got lam={lam!r}, but expected a positive number up to {LARGEST:g}, infinity for "
            "no cost, or 'auto': without a penalty only labelled points would have a place."
        )


def neighbors_among(n_neighbors: Any, n_samples: int) -> int:
    """How many neighbours a point has among so many ('auto' is 5): from one to all others."""
    wanted = _NEIGHBORS if isinstance(n_neighbors, str) else n_neighbors
    return int(max(1, min(wanted, n_samples - 1)))
