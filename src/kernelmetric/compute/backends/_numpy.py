"""NumPy arrays, and sparse matrices made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

from kernelmetric.compute.backends._array_api import ArrayAPI
from kernelmetric.compute.lapack import eigh


class NumPy(ArrayAPI):
    """In place wherever possible: a pass over memory costs as much as the arithmetic."""

    host = True

    def tile_bytes(self, cache_bytes: int, X: Any = None) -> int:
        """What stays in the cache: elementwise steps read a tile again."""
        return cache_bytes

    def take_rows(self, X: Any, rows: np.ndarray) -> Any:
        """Rows of X, which may be sparse."""
        if (
            isinstance(X, np.ndarray)
            and X.flags.c_contiguous
            and np.asarray(rows).dtype.kind == "i"
        ):
            return X.take(rows, axis=0)  # in two thirds of the time
        return X[rows]

    def set_entries(self, A: Any, columns: np.ndarray, value: Any) -> Any:
        """Put a value, or one of each row, at ``A[i, columns[i]]``."""
        A[np.arange(len(columns)), columns] = value
        return A

    def squared_lengths(self, X: Any) -> Any:
        """Squared lengths of the rows, summed in float64 and in the dtype of X again."""
        return np.einsum("ij,ij->i", X, X, dtype=np.float64).astype(X.dtype, copy=False)

    def squares_between(self, a: Any, b: Any, *, wide: bool) -> np.ndarray:
        """Squared lengths of the rows of ``a - b``, in float64 where ``wide``."""
        difference = np.subtract(a, b, dtype=np.float64 if wide else None)
        return np.einsum("ij,ij->i", difference, difference)

    def exponential(self, S: Any, lowest: float) -> Any:
        """``exp`` of S, clipped below, in place."""
        return np.exp(np.maximum(S, lowest, out=S), out=S)

    def added(self, K: Any, other: Any) -> Any:
        """``K + other`` in place."""
        return np.add(K, other, out=K)

    def multiplied(self, K: Any, other: Any) -> Any:
        """``K * other`` in place."""
        return np.multiply(K, other, out=K)

    def l1_distances(self, A: Any, B: Any) -> Any:
        """L1 distances by SciPy, which adds up in float64."""
        return cdist(A, B, "cityblock").astype(A.dtype, copy=False)

    def symmetric_eigenpairs(self, A: Any) -> tuple[np.ndarray, Any]:
        """By divide and conquer, the fastest; in Fortran order it needs no copy."""
        driver = "evd" if len(A) > 1 else None  # SciPy before 1.13 fails with it on 1 × 1
        return eigh(A, overwrite=True, driver=driver)

    def on_device(self, values: np.ndarray, X: Any) -> Any:
        """As they are."""
        return values

    def fewer_rows(self, A: Any) -> Any:
        """A itself."""
        return A

    def orthonormal_columns(self, B: Any) -> Any:
        """By Cholesky, a fifth of the time of QR, where the columns are clear."""
        length = np.sqrt(np.einsum("ij,ij->j", B, B))
        if np.all(length > 0):
            B = B / length
            try:
                R = linalg.cholesky((B.T @ B).astype(np.float64))
                return B @ linalg.solve_triangular(R, np.eye(len(R))).astype(B.dtype)
            except linalg.LinAlgError:
                pass
        return np.linalg.qr(B)[0]
