"""Elementwise steps of kernels, in place where the library can."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import is_single, namespace
from kernelmetric.compute.backends import backend_of

# exp below this is zero for every purpose, but makes denormal numbers, and a GEMM on denormals
# runs an order of magnitude slower.
_LEAST_EXPONENT, _LEAST_SINGLE_EXPONENT = -300.0, -40.0


def added(K: Any, other: Any) -> Any:
    """``K + other``; may overwrite K."""
    return backend_of(K).added(K, other)


def multiplied(K: Any, other: Any) -> Any:
    """``K * other``; may overwrite K."""
    return backend_of(K).multiplied(K, other)


def exp_of_negative(D: Any, gamma: float, *, overwrite: bool = False) -> Any:
    """exp(-gamma D); may overwrite D where that is said."""
    gamma = min(gamma, float(namespace(D).finfo(D.dtype).max))  # inf times zero is not a number
    with np.errstate(over="ignore"):
        S = multiplied(D, -gamma) if overwrite else D * -gamma
    least = _LEAST_SINGLE_EXPONENT if is_single(D) else _LEAST_EXPONENT
    return backend_of(S).exponential(S, least)


def l1_distances(A: Any, B: Any = None) -> Any:
    """L1 distances between the rows of A and of B (None: A); O(n m d) time, O(n m) memory."""
    return backend_of(A).l1_distances(A, A if B is None else B)
