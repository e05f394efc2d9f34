"""Symmetric matrices: their positive part, signs of eigenvectors that repeat; singular vectors."""

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import namespace
from kernelmetric.compute._threads import unlocked

_LARGE = 2**26  # bytes of a matrix of which copies count
_BLOCKS = 4  # times as many rows as columns


def positive_part(M: np.ndarray) -> np.ndarray:
    """The positive semi-definite matrix nearest to a symmetric M."""
    # NumPy's, as the products around it are: SciPy's BLAS has threads of its own, and either's spin
    # for 25 ms after a call, on the core that the other's next call waits for.
    values, V = np.linalg.eigh(M)
    V = V[:, values > 0]
    return (V * values[values > 0]) @ V.T


def column_signs(V: Any) -> Any:
    """1 or -1 for every column: times these, its largest absolute entry is positive."""
    xp = namespace(V)
    positive = xp.max(V, axis=0) >= -xp.min(V, axis=0)
    return 2.0 * xp.astype(positive, V.dtype) - 1.0


def right_singular(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values of A, largest first, and the right singular vectors in rows."""
    n, d = A.shape
    if A.nbytes > _LARGE and n > 2 * _BLOCKS * d:
        # The triangular factor has the same ones; by blocks of rows, A is not copied as a whole.
        R = A[:0]
        for start in range(0, n, _BLOCKS * d):
            rows = np.concatenate([R, A[start : start + _BLOCKS * d]])
            R = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0][:d]
        A = R
    try:
        return unlocked(lambda: np.linalg.svd(A, full_matrices=False), 8.0 * n * d * min(n, d))[1:]
    except linalg.LinAlgError:  # divide and conquer fails now and then; the older method is slower
        return linalg.svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")[1:]
