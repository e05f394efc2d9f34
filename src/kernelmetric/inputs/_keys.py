"""Rows and columns told apart by what they hold."""

from typing import Any

import numpy as np

from kernelmetric.compute import is_sparse, map_rows, to_numpy
from kernelmetric.compute._objects import is_objects

_TOLD_APART = 10_000  # rows: columns that are equal in so many may change places


def keys_of(X: Any, seed: int = 0) -> np.ndarray:
    """A number for each row, the same for equal rows: sums of bits, in which no digit is lost."""
    if is_objects(X):
        return X.keys()
    drawn = np.random.RandomState(seed).randint(2**62, size=X.shape[1]).astype(np.uint64)

    def mixed(cells: np.ndarray, factors: np.ndarray) -> np.ndarray:
        bits = (cells.astype(np.float64) + 0.0).view(np.uint64)  # of zero, one sign
        bits = (bits ^ (bits >> np.uint64(32))) * (2 * factors + np.uint64(1))
        return bits ^ (bits >> np.uint64(29))

    if is_sparse(X):
        sums = np.append(np.uint64(0), np.cumsum(mixed(X.data, drawn[X.indices])))
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    A = to_numpy(X)
    return map_rows(lambda rows: mixed(A[rows], drawn).sum(axis=1), len(A), 32 * A.shape[1])


def column_order(X: Any) -> np.ndarray:
    """Columns in an order that goes by what they hold, by the order of rows only where it must."""
    A = np.ascontiguousarray(to_numpy(X[: min(X.shape[0], _TOLD_APART), :]).T)
    values = keys_of(A.reshape(-1, 1)).reshape(A.shape).sum(axis=1)
    return np.lexsort((keys_of(A), values))
