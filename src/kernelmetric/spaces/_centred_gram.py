"""The centred Gram matrix, in memory or recomputed block by block."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from kernelmetric.compute import backend_of, like, map_rows, namespace, precise, take_rows, to_numpy
from kernelmetric.compute._threads import unlocked
from kernelmetric.inputs import Weights
from kernelmetric.kernels import Kernel
from kernelmetric.spaces._base import block_size, refuse_rank_zero, round_off, times

_SKETCH = 4  # points per column of a sketch
_MIRRORED = 1024  # rows of the lower half that are written at once


class CentredGram:
    """H K H with H = I - 11ᵀ/n, as something to multiply by; without ``hold``, K is computed anew.

    K is held and multiplied in the digits of the array ``kind``, and its values are right up to
    ``rounding``, relative. With weights, K is ``S K S`` with their roots on the diagonal of S.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        *,
        hold: bool,
        kind: Any,
        trace: float,
        rounding: float,
        weights: Weights | None = None,
    ):
        self.kernel = kernel
        self.X = X
        self.trace = trace
        self.rounding = rounding
        self.n = X.shape[0]
        self.anchors = kernel.anchors(X)
        self.xp = namespace(X)
        self.kind, self.dtype = kind, kind.dtype
        self.counts = np.ones(self.n) if weights is None else weights.counts
        self.roots: Any = None if weights is None else self.array(np.sqrt(self.counts))
        # The vector of length one that centring leaves nothing of
        self.constant = self.array(np.sqrt(self.counts / np.sum(self.counts)))[:, None]
        self.K = self._held() if hold else None
        self.refuse_coincident()

    def _rows(self, work: Callable[[Any], Any]) -> Any:
        """An array from a function of some rows of K."""
        size = block_size(self.X, self.n)
        return map_rows(lambda rows: work(self._block(rows, 0)), self.n, **size)

    def _block(self, rows: slice, first: int) -> Any:
        """Some rows of K, from one of its columns on."""
        anchors = self.anchors[first:, :] if first else self.anchors
        K = self.kernel(self.X[rows, :], anchors)
        K = self.xp.astype(K, self.dtype, copy=False)
        return K if self.roots is None else self.roots[rows][:, None] * K * self.roots[None, first:]

    def _held(self) -> Any:
        """K, of which every pair is computed once."""
        if self.kernel.pairwise or not backend_of(self.X).host:
            return self._rows(lambda K: K)
        whole = self.xp.empty((self.n, self.n), dtype=self.dtype)

        def of_rows(rows: slice) -> Any:
            whole[rows, rows.start :] = self._block(rows, rows.start)
            for first in range(rows.stop, self.n, _MIRRORED):  # Ctrl-C comes between
                some = slice(first, first + _MIRRORED)
                whole[some, rows] = whole[rows, some].T
            return whole[rows, :0]

        map_rows(of_rows, self.n, **block_size(self.X, self.n))
        return whole

    def times(self, M: Any) -> Any:
        """Return K M."""
        if self.K is None:
            return self._rows(lambda K: K @ M)
        return unlocked(lambda: self.K @ M, self.n**2 * M.shape[1])

    def sketch(self, width: int, rng: np.random.RandomState) -> Any:
        """Columns that span nearly what the leading eigenvectors do, from some points alone."""
        m = min(_SKETCH * width, self.n // 10)
        if m < width or self.roots is not None:
            return self.array(rng.standard_normal((self.n, width)))
        chosen = np.sort(rng.permutation(self.n)[:m])
        some = take_rows(self.anchors, chosen)
        K_mm = precise(self.kernel(take_rows(self.X, chosen), some))
        V = backend_of(K_mm).symmetric_eigenpairs(K_mm)[1][:, -width:]
        V = self.xp.astype(V, self.dtype, copy=False)

        def part(rows: slice) -> Any:
            product = times(self.kernel(self.X[rows, :], some), V)
            return self.xp.astype(product, self.dtype, copy=False)

        return map_rows(part, self.n, 8 * (3 * m + self.X.shape[1]))

    def array(self, values: np.ndarray) -> Any:
        """Numbers in the library and dtype of K, and on its device."""
        return like(values, self.kind)

    def eigenpairs(self) -> tuple[np.ndarray, Any]:
        """All eigenpairs of H K H, ascending: O(n³) time, 3 n × n arrays. K is no more."""
        c = self.constant
        Kc, self.K = self.K - c @ (c.T @ self.K), None  # a copy: the kernel may keep what it gave
        Kc -= (Kc @ c) @ c.T
        return backend_of(Kc).symmetric_eigenpairs(Kc.T)  # transposed it lies as LAPACK wants it

    def centred_times(self, M: Any) -> Any:
        """Return H K H M."""
        return self.centre(self.times(self.centre(M)))

    def centre(self, M: Any) -> Any:
        """Return H M."""
        return M - self.constant @ (self.constant.T @ M)

    def unscaled(self, Z: Any) -> Any:
        """Rows without the roots of their weights."""
        return Z if self.roots is None else Z / like(to_numpy(self.roots), Z)[:, None]

    def scaled(self, Z: Any) -> Any:
        """Rows times the roots of their weights."""
        return Z if self.roots is None else Z * like(to_numpy(self.roots), Z)[:, None]

    @cached_property
    def column_means(self) -> Any:
        """Mean of every column of K, by weights where there are any: an array of shape (1, n)."""
        means = self.unscaled(self.times(self.constant)).T
        return means / float(np.sqrt(np.sum(self.counts)))

    @property
    def centred_trace(self) -> float:
        """Trace of H K H: n times the total variance."""
        return self.trace - float(np.sum(self.counts * to_numpy(self.column_means)))

    @property
    def round_off(self) -> float:
        """What rounding of K may make of an eigenvalue that is zero."""
        n_features = 1 if self.kernel.pairwise else self.X.shape[1]
        return round_off(self.trace, n_features, eps=self.rounding)

    def refuse_coincident(self) -> None:
        """Refuse points that centring leaves no variance but rounding."""
        if abs(self.centred_trace) <= self.round_off:
            refuse_rank_zero(self.n, self.kernel)
