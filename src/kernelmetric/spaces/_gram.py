"""The centred Gram matrix, in memory or recomputed block by block."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kernelmetric.compute import device_of, is_numpy, is_sparse, namespace, row_blocks, to_numpy
from kernelmetric.kernels import Kernel


class CentredGram:
    """H K H with H = I - 11ᵀ/n, as something to multiply by.

    Parameters
    ----------
    kernel : Kernel
        Bound kernel.
    X : array of shape (n, d)
        Training points.
    hold : bool
        Whether to keep the n × n matrix K; otherwise every product computes its blocks anew, in
        O(n² d) time and one block of rows of memory.
    dtype : dtype
        In which K is held and multiplied.
    """

    def __init__(self, kernel: Kernel, X: Any, *, hold: bool, dtype: Any):
        self.kernel = kernel
        self.X = X
        self.n = X.shape[0]
        self.anchors = kernel.anchors(X)
        self.xp = namespace(X)
        self.device = None if is_sparse(X) else device_of(X)
        self.dtype = dtype
        self.K = self._filled() if hold else None

    def _blocks(self) -> Any:
        for rows in row_blocks(self.n, 8 * (3 * self.n + self.X.shape[1])):
            block = self.X[rows] if is_sparse(self.X) else self.X[rows, :]
            K = self.kernel(block, self.anchors)
            yield rows, self.xp.astype(K, self.dtype, copy=False)

    def _filled(self) -> Any:
        if not (is_sparse(self.X) or is_numpy(self.X)):
            return self.xp.concat([K for _, K in self._blocks()], axis=0)
        K = np.empty((self.n, self.n), dtype=self.dtype)
        for rows, block in self._blocks():
            K[rows] = block
        return K

    def times(self, M: Any) -> Any:
        """Return K M."""
        if self.K is not None:
            return self.K @ M
        return self.xp.concat([K @ M for _, K in self._blocks()], axis=0)

    def centred_times(self, M: Any) -> Any:
        """Return H K H M."""
        R = self.times(self.centre(M))
        return self.centre(R)

    def centre(self, M: Any) -> Any:
        """Return H M."""
        return M - self.xp.mean(M, axis=0, keepdims=True)

    @cached_property
    def column_means(self) -> Any:
        """Mean of every column of K: an array of shape (1, n)."""
        ones = self.xp.ones((self.n, 1), dtype=self.dtype, device=self.device)
        return self.times(ones).T / self.n

    @cached_property
    def trace(self) -> float:
        """Trace of K: the sum of squared norms in the feature space."""
        return float(np.sum(to_numpy(self.kernel.diag(self.X)), dtype=np.float64))

    @property
    def centred_trace(self) -> float:
        """Trace of H K H: n times the total variance."""
        return self.trace - float(np.sum(to_numpy(self.column_means), dtype=np.float64))
