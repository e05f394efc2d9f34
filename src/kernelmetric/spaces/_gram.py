"""The centred Gram matrix, in memory or recomputed block by block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from kernelmetric.compute import (
    device_of,
    is_numpy,
    is_sparse,
    namespace,
    row_blocks,
    take_rows,
    to_numpy,
)
from kernelmetric.kernels import Kernel
from kernelmetric.spaces._base import refuse_rank_zero, round_off, times

_TILE_ROWS = 512  # the upper half of K costs (1 + 512 / n) / 2 of the whole
_SKETCH = 4  # points per column of a sketch


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
    trace : float
        Trace of K: the sum of squared norms in the feature space.
    single : bool
        Whether the kernel values have no more than the digits of float32.
    """

    def __init__(
        self, kernel: Kernel, X: Any, *, hold: bool, dtype: Any, trace: float, single: bool
    ):
        self.kernel = kernel
        self.X = X
        self.trace = trace
        self.single = single
        self.n = X.shape[0]
        self.anchors = kernel.anchors(X)
        self.xp = namespace(X)
        self.device = None if is_sparse(X) else device_of(X)
        self.dtype = dtype
        # Whether tiles start at the diagonal: what lies below it follows by symmetry.
        self.half = is_numpy(X) and not kernel.pairwise
        self.K = self._filled() if hold else None

    def _tiles(self) -> Iterator[tuple[slice, int, Any]]:
        """Rows of K from a column on: from the diagonal on for half of K, else from column 0."""
        most = _TILE_ROWS if self.half else None
        for rows in row_blocks(self.n, 8 * (3 * self.n + self.X.shape[1]), most=most):
            block = self.X[rows] if is_sparse(self.X) else self.X[rows, :]
            first = rows.start if self.half else 0
            K = self.kernel(block, self.anchors[first:] if first else self.anchors)
            yield rows, first, self.xp.astype(K, self.dtype, copy=False)

    def _filled(self) -> Any:
        if not (is_sparse(self.X) or is_numpy(self.X)):
            return self.xp.concat([K for _, _, K in self._tiles()], axis=0)
        K = np.empty((self.n, self.n), dtype=self.dtype)
        for rows, first, tile in self._tiles():
            K[rows, first:] = tile
            if self.half:
                K[rows.stop :, rows] = tile[:, rows.stop - first :].T
        return K

    def times(self, M: Any) -> Any:
        """Return K M."""
        if self.K is not None:
            return self.K @ M
        if "column_means" in vars(self) or M.shape[1] == 1:
            return self._times(M)
        # Every product computes K anew: the first one brings the column means along.
        product = self._times(self.xp.concat([M, self.xp.ones_like(M[:, :1])], axis=1))
        self.column_means = product[:, -1:].T / self.n
        return product[:, :-1]

    def _times(self, M: Any) -> Any:
        if not is_numpy(M):
            return self.xp.concat([K @ M for _, _, K in self._tiles()], axis=0)
        product = np.zeros((self.n, M.shape[1]), dtype=np.result_type(self.dtype, M))
        for rows, first, tile in self._tiles():
            product[rows] += tile @ M[first:]
            if self.half:
                product[rows.stop :] += tile[:, rows.stop - first :].T @ M[rows]
        return product

    def sketch(self, width: int, rng: np.random.RandomState) -> Any:
        """Columns that span nearly what the leading eigenvectors do, from some points alone.

        The n × m kernel values with m random points, times the leading eigenvectors of the m × m
        ones: O(n m d) time, less than the tenth part of a product with K.
        """
        m = min(_SKETCH * width, self.n // 10)
        if m < width:
            start = rng.standard_normal((self.n, width))
            return self.xp.asarray(start, dtype=self.dtype, device=self.device)
        chosen = np.sort(rng.permutation(self.n)[:m])
        some = take_rows(self.anchors, chosen)
        K_mm = to_numpy(self.kernel(take_rows(self.X, chosen), some)).astype(np.float64)
        H = np.eye(m) - 1.0 / m
        V = np.linalg.eigh(H @ K_mm @ H)[1][:, -width:]
        V = self.xp.asarray(V, dtype=self.dtype, device=self.device)
        parts = [
            times(self.kernel(take_rows(self.X, np.arange(r.start, r.stop)), some), V)
            for r in row_blocks(self.n, 8 * (3 * m + self.X.shape[1]))
        ]
        return self.xp.astype(self.xp.concat(parts, axis=0), self.dtype, copy=False)

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

    @property
    def centred_trace(self) -> float:
        """Trace of H K H: n times the total variance."""
        return self.trace - float(np.sum(to_numpy(self.column_means), dtype=np.float64))

    @property
    def round_off(self) -> float:
        """What rounding of K may make of an eigenvalue that is zero."""
        n_features = 1 if self.kernel.pairwise else self.X.shape[1]
        return round_off(self.trace, n_features, single=self.single)

    def refuse_coincident(self) -> None:
        """Refuse points that centring leaves no variance but rounding."""
        if abs(self.centred_trace) <= self.round_off:
            refuse_rank_zero(self.n, self.kernel)
