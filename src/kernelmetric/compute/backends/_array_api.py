"""Any library that follows the array API standard."""

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy import linalg

from kernelmetric.compute.backends._refined import RefinedSolver, squares_of_columns
from kernelmetric.compute.lapack import factor, inverse_factor


def for_other_library(values: np.ndarray) -> np.ndarray:
    """The array, or a copy where torch takes none: it is read-only or runs backwards."""
    backwards = min(values.strides, default=0) < 0
    return values.copy() if backwards or not values.flags.writeable else values


class PositiveSolver:
    """Solves ``A X = B`` by the Cholesky factor of A, which may be overwritten."""

    def __init__(self, A: np.ndarray):
        # Transposed, a matrix in C order needs no copy.
        self._factor = factor(np.asfortranarray(A.T, np.float64))

    def __call__(self, B: np.ndarray) -> np.ndarray:
        return linalg.cho_solve((self._factor, True), B, check_finite=False)

    def inverse_diagonal(self) -> np.ndarray:
        """Diagonal of the inverse of A. The factor is no more."""
        return squares_of_columns(inverse_factor(self._factor))


class ArrayAPI:
    """What reductions ask of an array library; here by the means of the standard alone.

    ``host``: arrays are NumPy's, and our threads share tiles that fit the cache.
    """

    host = False
    _tile_bytes = 2**30

    def tile_bytes(self, cache_bytes: int, X: Any = None) -> int:
        """Bytes of a tile where X lives, if one in the cache has ``cache_bytes``."""
        return self._tile_bytes

    def to_numpy(self, X: Any) -> np.ndarray:
        """NumPy copy or view."""
        return np.asarray(X)

    def take_rows(self, X: Any, rows: np.ndarray) -> Any:
        """Rows of X by a NumPy index array."""
        return array_namespace(X).take(X, self.on_device(rows, X), axis=0)

    def on_device(self, values: np.ndarray, X: Any) -> Any:
        """A NumPy array as one of the library, where X lies."""
        return array_namespace(X).asarray(for_other_library(values), device=device(X))

    def set_entries(self, A: Any, columns: np.ndarray, value: Any) -> Any:
        """Put a value, or one of each row, at ``A[i, columns[i]]``."""
        xp = array_namespace(A)
        mask = xp.arange(A.shape[1], device=device(A)) == self.on_device(columns, A)[:, None]
        values = value[:, None] if hasattr(value, "shape") else xp.full_like(A, value)
        return xp.where(mask, values, A)

    def set_pairs(self, A: Any, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Any:
        """Put ``values[p]`` at ``A[rows[p], columns[p]]``."""
        copy = np.array(self.to_numpy(A))
        copy[rows, columns] = values
        return self.on_device(copy, A)

    def fill(
        self,
        A: Any,
        columns: slice,
        start: np.ndarray,
        stop: np.ndarray,
        value: float,
        own: np.ndarray | None = None,
    ) -> None:
        """Put a value from column ``start[i]`` up to ``stop[i]`` of every row i, in place.

        With ``own``: outside of that range, and at column ``own[i]``; only in ``columns``.
        """
        xp, part = array_namespace(A), A[:, columns]
        numbers = xp.arange(columns.start, columns.stop, device=device(A))[None, :]
        low, high = (self.on_device(bound, A)[:, None] for bound in (start, stop))
        mask = (numbers >= low) & (numbers < high)
        if own is not None:
            mask = ~mask | (numbers == self.on_device(own, A)[:, None])
        A[:, columns] = xp.where(mask, xp.full_like(part, value), part)

    def squared_lengths(self, X: Any) -> Any:
        """Squared lengths of the rows, summed in float64 and in the dtype of X again."""
        xp = array_namespace(X)
        return xp.astype(xp.sum(X * X, axis=1, dtype=xp.float64), X.dtype)

    def squares_between(self, a: Any, b: Any, *, wide: bool) -> np.ndarray:
        """Squared lengths of the rows of ``a - b``, of NumPy arrays in float64 where ``wide``."""
        difference = a - b
        return self.to_numpy(array_namespace(a).sum(difference * difference, axis=1))

    def exponential(self, S: Any, lowest: float) -> Any:
        """``exp`` of S, clipped below; may overwrite it."""
        xp = array_namespace(S)
        return xp.exp(xp.clip(S, lowest, None))

    def added(self, K: Any, other: Any) -> Any:
        """``K + other``; may overwrite K, unless a gradient may need it."""
        return K + other

    def multiplied(self, K: Any, other: Any) -> Any:
        """``K * other``; may overwrite K, unless a gradient may need it."""
        return K * other

    def l1_distances(self, A: Any, B: Any) -> Any:
        """L1 distances, one feature after the other: never an n × m × d array."""
        xp = array_namespace(A, B)
        D1 = xp.abs(A[:, 0][:, None] - B[:, 0][None, :])
        for column in range(1, A.shape[1]):
            D1 = D1 + xp.abs(A[:, column][:, None] - B[:, column][None, :])
        return D1

    def symmetric_eigenpairs(self, A: Any) -> tuple[np.ndarray, Any]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix; may overwrite it."""
        values, V = array_namespace(A).linalg.eigh(A)
        return self.to_numpy(values), V

    def positive_solver(self, A: Any, lowest: float = 0.0) -> Any:
        """Solves equations with a positive definite A on the host, to the digits of float64.

        No eigenvalue of A is below ``lowest``, but for rounding.
        """
        A = self.to_numpy(A)
        return RefinedSolver(A, lowest) if A.dtype == np.float32 else PositiveSolver(A)

    def orthonormal_columns(self, B: Any) -> Any:
        """Orthonormal columns with the span of B."""
        return array_namespace(B).linalg.qr(B)[0]

    def column_products(self, F: Any) -> Any:
        """``Fᵀ F``."""
        return F.T @ F

    def fewer_rows(self, A: Any) -> Any:
        """The triangular factor of A: what is small enough to leave a device."""
        return array_namespace(A).linalg.qr(A)[1] if A.shape[0] > A.shape[1] else A

    def add_rows(self, A: Any, rows: Any, values: Any) -> Any:
        """Add ``values[p]`` to ``A[rows[p]]``, in an order that is the same every time."""
        copy = np.array(self.to_numpy(A))
        np.add.at(copy, self.to_numpy(rows), self.to_numpy(values))
        return self.on_device(copy, A)

    def lists_help(self, X: Any) -> bool:
        """Whether looking at listed pairs alone saves time over looking at all."""
        return True

    def wide_is_fast(self, X: Any) -> bool:
        """Whether products in float64 are as fast as in float32."""
        return False

    def fused(self, reduction: str, X: Any) -> Callable[..., Any] | None:
        """The library's own function for a reduction of X, by its name; None leaves it to ours."""
        return None

    def k_smallest(self, D2: Any, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Columns and values of the k smallest entries of each row; None leaves it to NumPy."""
        return None
