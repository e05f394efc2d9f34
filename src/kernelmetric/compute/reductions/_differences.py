"""What keeps squared distances right whatever else is in a batch: differences, and where to centre.

``|a - b|² = |a|² + |b|² - 2ab`` is one product for all pairs, but its rounding error grows with
``|a|² + |b|²``, not with the distance. :func:`rounding` bounds that error,
:func:`robust_center` keeps the squares small, and :func:`pair_squares` computes the pairs for which
neither is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms

from kernelmetric.compute._arrays import is_sparse, namespace, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of
from kernelmetric.compute.backends import backend_of

_CENTER_ROWS = 64  # a median of so many does not follow outliers, and costs little
_CHUNK_BYTES = 2**19  # differences that stay in the cache
_SPARSE_CHUNK_BYTES = 2**24
GATHER_COST = 5  # a difference of listed rows takes so many times one of a whole row


def robust_center(X: Any) -> Any:
    """The median (1, d) of some rows of X, which, unlike a mean, one huge row does not move."""
    sample = X[:: max(1, X.shape[0] // _CENTER_ROWS), :]
    middle = sample.shape[0] // 2
    return namespace(X).sort(sample, axis=0)[middle : middle + 1, :]


def squared_lengths(X: Any) -> Any:
    """Squared lengths of the rows of a dense array, summed in float64 and in its dtype again."""
    return backend_of(X).squared_lengths(X)


def rounding(X: Any, n_terms: int | None = None) -> float:
    """How far ``|a|² + |b|² - 2ab`` may be off, in units of ``|a|² + |b|²``.

    The worst case for up to 64 terms; beyond, eight standard deviations of the sum of errors.
    """
    n_terms = X.shape[1] if n_terms is None else n_terms
    return (0.5 * min(n_terms, 8.0 * n_terms**0.5) + 8) * float(namespace(X).finfo(X.dtype).eps)


def require_squares(*squares: Any) -> None:
    """Refuse points whose squared lengths overflow: they would silently pass for "far away"."""
    for values in squares:
        if values.shape[0] == 0:
            continue
        xp = namespace(values)
        top = float(to_numpy(xp.max(values)))
        if not top < float(xp.finfo(values.dtype).max) / 8:
            raise overflow_error(values.dtype)


def overflow_error(dtype: Any) -> ValueError:
    """The refusal, in the words that every distance uses."""
    return ValueError(
        f"Got points so far apart that squared distances overflow {dtype}, but expected finite "
        "numbers: try rescaling the features, for instance with StandardScaler."
    )


def pair_squares(A: Any, B: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Squared distances of the pairs ``A[i], B[j]``, from their differences, in float64.

    To a few units in the last place for NumPy arrays of either dtype, sparse CSR too; refused where
    the dtype of A cannot hold them. A bounded number of differences is in memory.
    """
    if is_sparse(A) or is_sparse(B):
        squares = _sparse_pair_squares(sparse.csr_array(A), sparse.csr_array(B), i, j)
    else:
        squares = _dense_pair_squares(A, B, i, j)
    if np.any(squares > float(namespace(A).finfo(A.dtype).max)):
        raise overflow_error(A.dtype)
    return squares


def _dense_pair_squares(A: Any, B: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    out, backend = np.empty(len(i)), backend_of(A)
    step = max(1, backend.chunk_bytes(_CHUNK_BYTES) // (itemsize_of(A) * max(A.shape[1], 1)))
    with np.errstate(over="ignore"):
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            a, b = take_rows(A, i[part]), take_rows(B, j[part])
            out[part] = backend.squares_between(a, b, wide=True)
    return out


def all_pair_squares(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared distances between all rows, from their differences: O(n m d) time without BLAS.

    In float64, to a few units in the last place.
    """
    return cdist(A, B, "sqeuclidean")


def _sparse_pair_squares(A: Any, B: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    out = np.empty(len(i))
    per_row = 12.0 * (A.nnz / max(A.shape[0], 1) + B.nnz / max(B.shape[0], 1)) + 1.0
    step = max(1, int(_SPARSE_CHUNK_BYTES / per_row))
    with np.errstate(over="ignore"):
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            difference = A[i[part]].astype(np.float64) - B[j[part]]
            out[part] = row_norms(difference, squared=True)
    return out
