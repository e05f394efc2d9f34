"""NumPy arrays, and sparse matrices made of them."""

from typing import Any

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

from kernelmetric.compute.backends._array_api import ArrayAPI
from kernelmetric.compute.lapack import eigh

_MOST_LEVELS = 6  # of a column: as many products take as long as differences
_LEAST_ROWS = 64  # of both blocks: for fewer, to look for such columns takes longer
_CLEAR = 1e10  # rounding units that the gaps of such a column are at least


class NumPy(ArrayAPI):
    """In place wherever possible: a pass over memory costs as much as the arithmetic."""

    host = True

    def tile_bytes(self, cache_bytes: int, X: Any = None) -> int:
        """What stays in the cache: elementwise steps read a tile again."""
        return cache_bytes

    def take_rows(self, X: Any, rows: np.ndarray) -> Any:
        """Rows of X, which may be sparse."""
        compact = isinstance(X, np.ndarray) and X.flags.c_contiguous
        if compact and np.asarray(rows).dtype.kind == "i":
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
        """L1 distances by SciPy, added up in float64; columns of few values by one product."""
        if min(len(A), len(B)) < _LEAST_ROWS:
            return cdist(A, B, "cityblock").astype(A.dtype, copy=False)
        few, cuts, halves, others = _levels(A, B)
        D = np.where(A[:, few] < cuts, halves, -halves) @ np.where(B[:, few] < cuts, -1.0, 1.0).T
        D += np.sum(halves)
        if len(others):
            D += cdist(A[:, others], B[:, others], "cityblock")
        return D.astype(A.dtype, copy=False)

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


@np.errstate(all="ignore")
def _levels(A: np.ndarray, B: np.ndarray) -> tuple[Any, ...]:
    """Columns of few values, once for each cut between two, the cuts, half their gaps; the others.

    ``|a - b|`` is the sum of the gaps whose cuts lie between a and b. They are rounded to whole
    numbers of a unit that any sum of them has room for: equal rows are exactly zero apart.
    """
    ranges = np.maximum(A.max(axis=0), B.max(axis=0)) - np.minimum(A.min(axis=0), B.min(axis=0))
    unit = 2.0 * np.spacing(np.sum(ranges, dtype=np.float64))
    few: list[int] = []
    others: list[int] = []
    found: list[Any] = [np.empty((2, 0))]
    for j in range(A.shape[1]):
        values = np.unique(np.concatenate([A[:, j], B[:, j]]).astype(np.float64))
        gaps = np.diff(values)
        if len(values) <= _MOST_LEVELS and np.all(gaps > _CLEAR * unit):  # not beside huge ones
            few += len(gaps) * [j]
            found.append([values[1:], unit * np.round(0.5 * gaps / unit)])
        else:
            others.append(j)
    cuts, halves = np.hstack(found)
    return few, cuts, halves, others
