"""What a user may set, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelmetric.learners._checks import LARGEST, check_flags, check_number

_NEIGHBORS = 5  # unless the user, or labels, ask for others


def check_parameters(metric: Any) -> None:
    """Refuse parameters of a TransductiveDistance that mean nothing."""
    check_flags(metric)
    check_number(metric, "n_votes", Integral, low=1)
    check_number(metric, "cv", Integral, low=2)
    check_number(metric, "tol", Real, low=0, high=LARGEST, above=True)
    if not is_auto(metric.n_neighbors):
        check_number(metric, "n_neighbors", Integral, low=1)
    if not is_auto(metric.lam) and not (isinstance(metric.lam, Real) and metric.lam == np.inf):
        check_number(metric, "lam", Real, low=0, high=LARGEST, above=True)
    if metric.n_components is not None:
        check_number(metric, "n_components", Integral, low=1)


def is_auto(value: Any) -> bool:
    """Whether a parameter is left open."""
    return isinstance(value, str) and value == "auto"


def neighbors_among(n_neighbors: Any, n_samples: int) -> int:
    """How many neighbours a point has among so many ('auto' is 5): from one to all others."""
    wanted = _NEIGHBORS if is_auto(n_neighbors) else n_neighbors
    return int(max(1, min(wanted, n_samples - 1)))
