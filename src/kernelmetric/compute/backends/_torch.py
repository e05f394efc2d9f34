"""torch, on the CPU or on a device: methods of tensors alone, so nothing is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from kernelmetric.compute.backends._array_api import ArrayAPI


class Torch(ArrayAPI):
    """Tensors stay on their device."""

    def to_numpy(self, X: Any) -> np.ndarray:
        """NumPy copy or view, off the graph and the device."""
        return np.asarray(X.detach().cpu())

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
