"""Dense linear algebra for arrays of any library, the quickest way that NumPy's allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from scipy import linalg

from kernelmetric.compute._arrays import to_numpy


def symmetric_eigenpairs(A: Any) -> tuple[np.ndarray, Any]:
    """Eigenvalues, ascending and in NumPy, and eigenvectors of a symmetric matrix.

    The matrix is no more afterwards. In Fortran order LAPACK needs no copy of it.
    """
    if is_numpy_array(A):
        # Divide and conquer is the fastest; SciPy before 1.13 fails with it on 1 × 1.
        return linalg.eigh(A, overwrite_a=True, driver="evd" if len(A) > 1 else None)
    values, V = array_namespace(A).linalg.eigh(A)
    return to_numpy(values), V


def orthonormal_columns(B: Any) -> Any:
    """Columns with the span of B: by Cholesky, a fifth of the time of QR, where they are clear."""
    if is_numpy_array(B):
        length = np.sqrt(np.einsum("ij,ij->j", B, B))
        if np.all(length > 0):
            B = B / length
            G = (B.T @ B).astype(np.float64)
            try:
                R = linalg.cholesky(G)
                return B @ linalg.solve_triangular(R, np.eye(len(R))).astype(B.dtype)
            except linalg.LinAlgError:
                pass
    return array_namespace(B).linalg.qr(B)[0]
