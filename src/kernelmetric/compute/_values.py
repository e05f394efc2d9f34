"""Steps of kernels that every library of arrays does in a way of its own.

In place only in NumPy, where no gradient can flow: torch needs the factors as they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from kernelmetric.compute._arrays import is_numpy, is_single, namespace

# exp below this is zero for every purpose, but makes denormal numbers, and a GEMM on denormals
# runs an order of magnitude slower.
_LEAST_EXPONENT, _LEAST_SINGLE_EXPONENT = -300.0, -40.0


def added(K: Any, other: Any) -> Any:
    """``K + other``, in the memory of K where that is safe."""
    return np.add(K, other, out=K) if is_numpy(K) else K + other


def multiplied(K: Any, other: Any) -> Any:
    """``K * other``, in the memory of K where that is safe."""
    return np.multiply(K, other, out=K) if is_numpy(K) else K * other


def exp_of_negative(D: Any, gamma: float, *, overwrite: bool = False) -> Any:
    """exp(-gamma D), in the memory of D where that is wanted and safe."""
    xp = namespace(D)
    least = _LEAST_SINGLE_EXPONENT if is_single(D) else _LEAST_EXPONENT
    gamma = min(gamma, float(xp.finfo(D.dtype).max))  # infinity times zero is not a number
    if not is_numpy(D):
        return xp.exp(xp.clip(D * -gamma, least, None))
    with np.errstate(over="ignore"):
        out = np.multiply(D, -gamma, out=D if overwrite else None)
    np.maximum(out, least, out=out)
    return np.exp(out, out=out)


def l1_distances(A: Any, B: Any = None) -> Any:
    """L1 distances between the rows of A and of B (None: A); O(n m d) time, O(n m) memory."""
    B = A if B is None else B
    if is_numpy(A):
        return cdist(A, B, "cityblock").astype(A.dtype, copy=False)
    xp = namespace(A, B)
    if hasattr(xp, "cdist"):  # torch
        return xp.cdist(A, B, p=1.0)
    D1 = xp.abs(A[:, 0][:, None] - B[:, 0][None, :])
    for column in range(1, A.shape[1]):  # one feature at a time: never an n × m × d array
        D1 = D1 + xp.abs(A[:, column][:, None] - B[:, column][None, :])
    return D1
