"""Products of points with a map, and of a large matrix with vectors on several threads."""

from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute._arrays import all_finite, is_sparse, namespace, to_numpy
from kernelmetric.compute._budget import row_blocks
from kernelmetric.compute._device import matrix_to_device
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute._threads import repeatable, worth_threads
from kernelmetric.compute.backends import backend_of

# SciPy's sparse product waits for memory: an operation takes as long as some ten of a GEMM, so
# that many fewer of them are worth a thread.
_FLOPS_OF_ONE = 10.0
_LEAST_ROWS = 128  # of a part of a dense product: fewer slow it down
_PARTS = 16  # more than threads, since rows differ in their number of entries


def map_points(X: Any, L: Any) -> Any:
    """``X Lᵀ``, refused where coordinates overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        Z = product(X, L.T)
    if not all_finite(Z):
        xp = namespace(Z)
        top = float(to_numpy(xp.max(xp.abs(X))))
        raise out_of_range(f"points up to {top:.3g}, whose coordinates overflow {Z.dtype}")
    return Z


def out_of_range(what: str) -> ValueError:
    """The refusal of numbers that leave the range of their dtype."""
    return ValueError(
        f"Got {what}, but expected finite numbers: try rescaling the features, for instance with "
        "StandardScaler."
    )


def product(A: Any, B: Any) -> Any:
    """``A @ B`` of dense matrices, the same on any number of threads, unlike that of a BLAS."""
    if not backend_of(A).host:
        return A @ B
    flops = 2.0 * A.shape[0] * A.shape[1] * B.shape[1]
    if not worth_threads(flops):
        with repeatable():
            return A @ B
    rows = row_blocks(A.shape[0], 0, most=max(_LEAST_ROWS, -(-A.shape[0] // _PARTS)))
    return np.concatenate(over_tiles(partial(_times, B), [A[some] for some in rows], flops=flops))


class BlockProduct:
    """The product ``A @ V``, rows of a sparse A shared among threads.

    ``rough``: in half of the digits. ``far``: matrix and vectors are on the device in use.
    """

    def __init__(self, A: Any, *, rough: bool = False, far: bool = False):
        self.dtype = np.dtype(np.float32 if rough else np.float64)
        self.shape = A.shape
        if is_sparse(A):
            A = _short_indices(sparse.csr_array(A, dtype=self.dtype))
        elif isinstance(A, np.ndarray):
            A = A.astype(self.dtype, copy=False)
        self._A = matrix_to_device(A) if far else A

    def __call__(self, V: Any) -> Any:
        """``A @ V`` for a block of vectors (n, p), with as many digits."""
        if not isinstance(V, np.ndarray):
            return self._A @ V
        if not (is_sparse(self._A) or isinstance(self._A, np.ndarray)):
            return np.asarray(self._A @ V.astype(np.float64, copy=False), dtype=self.dtype)
        flops = 2 * _FLOPS_OF_ONE * getattr(self._A, "nnz", 0) * V.shape[1]
        if not worth_threads(flops):
            return self._A @ V
        return np.concatenate(over_tiles(partial(_times, V), self._parts, flops=flops))

    @cached_property
    def _parts(self) -> list[Any]:
        n = self.shape[0]
        return [self._A[rows] for rows in row_blocks(n, 0, most=-(-n // _PARTS))]


def _times(V: np.ndarray, part: Any) -> np.ndarray:
    """The tile: some rows of the matrix."""
    return part @ V


def _short_indices(A: sparse.csr_array) -> sparse.csr_array:
    """The same matrix with 32-bit indices where they suffice: less to read."""
    if max(A.nnz, A.shape[1]) >= 2**31:
        return A
    indices, pointers = (part.astype(np.int32, copy=False) for part in (A.indices, A.indptr))
    return sparse.csr_array((A.data, indices, pointers), shape=A.shape)
