"""torch, on the CPU or on a device: methods of tensors alone, so torch is not imported here."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from kernelmetric.compute.backends import cuda
from kernelmetric.compute.backends._array_api import ArrayAPI

# The file in cuda/ of each fused reduction, and which points it takes.
_FUSED = {
    "softmax_sums": ("_softmax", lambda E: cuda.suits(E)),
    "hinge_sums": ("_hinge", lambda E: cuda.suits(E)),
    "bounds_from": ("_bounds", cuda.single_on_device),
    "ranked": ("_nearest", lambda Q: cuda.suits(Q[:, :1])),  # any number of coordinates
}


def _dense() -> Any:
    return import_module(f"{cuda.__name__}._dense")


class Torch(ArrayAPI):
    """Tensors stay on their device."""

    def tile_bytes(self, cache_bytes: int, X: Any = None) -> int:
        """A gigabyte, or an eighth of what is free on the device."""
        room = None if X is None else cuda.room(X.device)
        free = self._tile_bytes if room is None else max(room.free // 8, 2**24)
        return min(self._tile_bytes, free)

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

    def positive_solver(self, A: Any, lowest: float = 0.0) -> Any:
        """Where the tensor is, unless it has too few digits."""
        there = A.is_cuda and A.element_size() == 8
        return _dense().PositiveSolver(A) if there else super().positive_solver(A, lowest)

    def orthonormal_columns(self, B: Any) -> Any:
        """By Cholesky's factor on a CUDA device, whose Householder reflections are slow."""
        Q = _dense().orthonormal_columns(B) if B.is_cuda else None
        return super().orthonormal_columns(B) if Q is None else Q

    def column_products(self, F: Any) -> Any:
        """On a CUDA device, half of it by symmetry."""
        return _dense().column_products(F) if F.is_cuda else super().column_products(F)

    def fused(self, reduction: str, X: Any) -> Callable[..., Any] | None:
        """By tensor cores or Triton, for float32 on a CUDA device; None elsewhere."""
        module, suits = _FUSED[reduction]
        if not suits(X):
            return None
        return getattr(import_module(f"{cuda.__name__}.{module}"), reduction)

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
