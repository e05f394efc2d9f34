"""torch, on the CPU or on a device: methods of tensors alone, so torch is not imported here.

On a CUDA device, with Triton, reductions over all pairs are fused kernels (``cuda/``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from kernelmetric.compute.backends import cuda
from kernelmetric.compute.backends._array_api import ArrayAPI


class Torch(ArrayAPI):
    """Tensors stay on their device."""

    def tile_bytes(self, cache_bytes: int, X: Any = None) -> int:
        """A gigabyte, or an eighth of what is free on the device."""
        room = None if X is None else cuda.room(X.device)
        return (
            self._tile_bytes if room is None else min(self._tile_bytes, max(room.free // 8, 2**24))
        )

    def to_numpy(self, X: Any) -> np.ndarray:
        """NumPy copy or view, off the graph and the device."""
        return np.asarray(X.detach().cpu())

    def set_entries(self, A: Any, columns: np.ndarray, value: Any) -> Any:
        """Put a value, or one of each row, at ``A[i, columns[i]]``, in place."""
        values = value[:, None] if hasattr(value, "shape") else value
        A.scatter_(1, self.on_device(columns, A)[:, None], values)
        return A

    def add_rows(self, A: Any, rows: Any, values: Any) -> Any:
        """In place; sorted first on a device, so the order is fixed."""
        return A.index_put_((rows,), values, accumulate=True)

    def lists_help(self, X: Any) -> bool:
        """On the CPU alone: a device is as fast with all pairs as with the way to a list."""
        return not X.is_cuda

    def wide_is_fast(self, X: Any) -> bool:
        """On the cards of data centres."""
        return X.is_cuda and cuda.wide_is_fast(X)

    def positive_solver(self, A: Any) -> Any:
        """Where the tensor is."""
        if not A.is_cuda:
            return super().positive_solver(A)
        from kernelmetric.compute.backends.cuda._dense import PositiveSolver

        return PositiveSolver(A)

    def orthonormal_columns(self, B: Any) -> Any:
        """By Cholesky's factor on a CUDA device, whose Householder reflections are slow."""
        if B.is_cuda:
            from kernelmetric.compute.backends.cuda._dense import orthonormal_columns

            Q = orthonormal_columns(B)
            if Q is not None:
                return Q
        return super().orthonormal_columns(B)

    def column_products(self, F: Any) -> Any:
        """On a CUDA device, half of it by symmetry."""
        if not F.is_cuda:
            return super().column_products(F)
        from kernelmetric.compute.backends.cuda._dense import column_products

        return column_products(F)

    def softmax_sums(self, E: Any, codes: Any) -> tuple[Any, Any] | None:
        """Fused, where Triton is."""
        if not cuda.suits(E):
            return None
        from kernelmetric.compute.backends.cuda._softmax import softmax_sums

        return softmax_sums(E, codes)

    def hinge_sums(
        self, E: Any, thresholds: Any, codes: Any, smoothing: float, *, gradient: bool
    ) -> tuple[Any, Any, Any] | None:
        """Fused, where Triton is."""
        if not cuda.suits(E):
            return None
        from kernelmetric.compute.backends.cuda._hinge import hinge_sums

        return hinge_sums(E, thresholds, codes, smoothing, gradient=gradient)

    def bounds_from(self, points: Any) -> Any:
        """By tensor cores, where rows are of a like size."""
        if not cuda.single_there(points):
            return None
        from kernelmetric.compute.backends.cuda._bounds import bounds_from

        return bounds_from(points)

    def ranked(self, low: Any, base: np.ndarray, Q: Any, points: Any, k: int) -> Any:
        """All of it on the device, where names are in the order of the rows."""
        if not cuda.suits(Q[:, :1]):
            return None
        from kernelmetric.compute.backends.cuda._nearest import ranked

        return ranked(low, base, Q, points, k)

    def squares_between(self, a: Any, b: Any, *, wide: bool) -> np.ndarray:
        """Squared lengths of the rows of ``a - b``, in float64 where ``wide``."""
        difference = (a.double() if wide else a) - b
        return self.to_numpy((difference * difference).sum(dim=1))

    def set_pairs(self, A: Any, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Any:
        """Put ``values[p]`` at ``A[rows[p], columns[p]]``, in place."""
        i, j = self.on_device(rows, A), self.on_device(columns, A)
        A[i, j] = self.on_device(values, A).to(A.dtype)
        return A

    def l1_distances(self, A: Any, B: Any) -> Any:
        """L1 distances on the device."""
        return array_namespace(A, B).cdist(A, B, p=1.0)

    def k_smallest(self, D2: Any, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """On the device, without a full sort."""
        values, found = D2.topk(k, dim=1, largest=False)
        return self.to_numpy(found), self.to_numpy(values)
