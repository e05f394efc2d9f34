"""The centred Gram matrix, in memory or recomputed block by block."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device as device_of

from kernelmetric.compute import (
    backend_of,
    in_float64,
    is_sparse,
    like,
    map_rows,
    namespace,
    over_rows,
    sum_rows,
    take_rows,
    to_numpy,
)
from kernelmetric.inputs import Weights
from kernelmetric.kernels import Kernel
from kernelmetric.spaces._base import refuse_rank_zero, round_off, times

_TILE_ROWS = 512  # the upper half of K costs (1 + 512 / n) / 2 of the whole
_SKETCH = 4  # points per column of a sketch


class CentredGram:
    """H K H with H = I - 11ᵀ/n, as something to multiply by; without ``hold``, K is computed anew.

    ``narrow``: K is held and multiplied in float32. ``single``: its values have only the digits of
    float32. With weights, K is ``S K S`` with their roots on the diagonal of S.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        *,
        hold: bool,
        narrow: bool,
        trace: float,
        single: bool,
        weights: Weights | None = None,
    ):
        self.kernel = kernel
        self.X = X
        self.trace = trace
        self.single = single
        self.n = X.shape[0]
        self.anchors = kernel.anchors(X)
        self.xp = namespace(X)
        self.device = None if is_sparse(X) else device_of(X)
        self.narrow = narrow
        self.dtype = self.xp.float32 if narrow else self.xp.float64
        self.roots: Any = None if weights is None else self.array(np.sqrt(weights.counts))
        # Whether tiles start at the diagonal: what lies below it follows by symmetry.
        self.half = not (is_sparse(X) or kernel.pairwise)
        self.K = self._filled() if hold else None
        if hold:
            self.refuse_coincident()

    def _tiles(self, reduction: Callable, work: Callable[[slice, int, Any], Any]) -> Any:
        """Reduce work on rows of K from a column on: the diagonal for half of K, else the first."""

        def on_tile(rows: slice) -> Any:
            first = rows.start if self.half else 0
            anchors = self.anchors[first:, :] if first else self.anchors
            K = self.xp.astype(self.kernel(self.X[rows, :], anchors), self.dtype, copy=False)
            if self.roots is not None:
                K = self.roots[rows][:, None] * K * self.roots[first:][None, :]
            return work(rows, first, K)

        cached = 8 * _TILE_ROWS * self.n
        most = backend_of(self.X).tile_bytes(cached, self.X) // (8 * self.n) if self.half else None
        return reduction(on_tile, self.n, 8 * (3 * self.n + self.X.shape[1]), most=most)

    def _filled(self) -> Any:
        whole = self.xp.empty((self.n, self.n), dtype=self.dtype, device=self.device)

        def fill(rows: slice, first: int, K: Any) -> None:  # no two tiles write the same entries
            whole[rows, first:] = K
            if self.half:
                whole[rows.stop :, rows] = K[:, rows.stop - first :].T

        self._tiles(over_rows, fill)
        return whole

    def times(self, M: Any) -> Any:
        """Return K M."""
        if self.K is not None:
            return self.K @ M
        if "column_means" in vars(self) or M.shape[1] == 1 or self.roots is not None:
            return self._times(M)
        # Every product computes K anew: the first one brings the column means along.
        product = self._times(self.xp.concat([M, self.xp.ones_like(M[:, :1])], axis=1))
        self.column_means = product[:, -1:].T / self.n
        self.refuse_coincident()
        return product[:, :-1]

    def _times(self, M: Any) -> Any:
        def part(rows: slice, first: int, K: Any) -> Any:
            if not self.half:
                return K @ M
            product = self.xp.zeros(M.shape, dtype=M.dtype, device=self.device)
            product[rows, :] = K @ M[first:, :]
            product[rows.stop :, :] = K[:, rows.stop - first :].T @ M[rows, :]
            return product

        return self._tiles(sum_rows if self.half else map_rows, part)

    def sketch(self, width: int, rng: np.random.RandomState) -> Any:
        """Columns that span nearly what the leading eigenvectors do, from some points alone."""
        m = min(_SKETCH * width, self.n // 10)
        if m < width or self.roots is not None:
            return self.array(rng.standard_normal((self.n, width)))
        chosen = np.sort(rng.permutation(self.n)[:m])
        some = take_rows(self.anchors, chosen)
        K_mm = in_float64(self.kernel(take_rows(self.X, chosen), some))
        K_mm = self.centre(self.centre(K_mm).T)
        V = backend_of(K_mm).symmetric_eigenpairs(K_mm)[1][:, -width:]
        V = self.xp.astype(V, self.dtype, copy=False)

        def part(rows: slice) -> Any:
            product = times(self.kernel(self.X[rows, :], some), V)
            return self.xp.astype(product, self.dtype, copy=False)

        return map_rows(part, self.n, 8 * (3 * m + self.X.shape[1]))

    def array(self, values: np.ndarray) -> Any:
        """Numbers in the library and dtype of K, and on its device."""
        return self.xp.asarray(values, dtype=self.dtype, device=self.device)

    def eigenpairs(self) -> tuple[np.ndarray, Any]:
        """All eigenpairs of H K H, ascending: O(n³) time, 3 n × n arrays. K is no more."""
        Kc, self.K = self.K, None
        if self.roots is not None:
            return backend_of(Kc).symmetric_eigenpairs(self.centre(self.centre(Kc).T))
        Kc -= self.column_means
        Kc -= self.xp.mean(Kc, axis=1, keepdims=True)
        return backend_of(Kc).symmetric_eigenpairs(Kc.T)  # transposed it lies as LAPACK wants it

    def centred_times(self, M: Any) -> Any:
        """Return H K H M."""
        R = self.times(self.centre(M))
        return self.centre(R)

    def centre(self, M: Any) -> Any:
        """Return H M."""
        if self.roots is not None:
            return M - self.constant @ (self.constant.T @ M)
        return M - self.xp.mean(M, axis=0, keepdims=True)

    @cached_property
    def constant(self) -> Any:
        """The vector of length one that centring leaves nothing of; shape (n, 1)."""
        return (self.roots / self.xp.sqrt(self.xp.sum(self.roots**2)))[:, None]

    def unscaled(self, Z: Any) -> Any:
        """Rows without the roots of their weights."""
        return Z if self.roots is None else Z / like(to_numpy(self.roots), Z)[:, None]

    def scaled(self, Z: Any) -> Any:
        """Rows times the roots of their weights."""
        return Z if self.roots is None else Z * like(to_numpy(self.roots), Z)[:, None]

    @cached_property
    def column_means(self) -> Any:
        """Mean of every column of K, by weights where there are any: an array of shape (1, n)."""
        if self.roots is not None:
            size = self.xp.sqrt(self.xp.sum(self.roots**2))
            return self.unscaled(self.times(self.constant)).T / size
        return self.times(self.array(np.ones((self.n, 1)))).T / self.n

    @property
    def centred_trace(self) -> float:
        """Trace of H K H: n times the total variance."""
        if self.roots is not None:
            return self.trace - float(self.xp.sum(self.roots**2 * self.column_means))
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
