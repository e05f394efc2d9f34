"""Squared Euclidean distances between two blocks of points."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kernelmetric.compute._arrays import (
    is_numpy,
    is_sparse,
    namespace,
    set_entries,
    take_rows,
    to_numpy,
)

# Where |a-b|² is this small beside |a|² + |b|², float32 cancellation would show in a narrow kernel.
_NEAR = 1e-2


def squared_distances(A: Any, B: Any | None = None) -> Any:
    """Squared Euclidean distances between the rows of A and of B.

    One GEMM on points moved to the mean of B, so that large offsets do not cancel; in float32 the
    few near pairs are computed again from their differences.

    Parameters
    ----------
    A : array of shape (n, d)
        Points; sparse CSR is accepted.
    B : array of shape (m, d), default=None
        Other points; None means A, and makes the diagonal exactly zero.

    Returns
    -------
    array of shape (n, m)
        Never negative. O(n m d) time, one n × m array.
    """
    if is_sparse(A) or is_sparse(B):
        return _sparse_squared_distances(A, A if B is None else B, same=B is None)
    xp = namespace(A, B)
    same = B is None
    B = A if B is None else B
    center = xp.mean(B, axis=0, keepdims=True)
    a = A - center
    b = a if same else B - center
    a2 = xp.sum(a * a, axis=1)
    b2 = a2 if same else xp.sum(b * b, axis=1)
    D2 = a @ (-2.0 * b).T
    D2 += a2[:, None]
    D2 += b2[None, :]
    if D2.dtype == xp.float32 and is_numpy(D2):
        _refine_near(D2, a, b, a2, b2)
    D2 = np.maximum(D2, 0, out=D2) if is_numpy(D2) else xp.clip(D2, 0.0, None)
    if same:
        D2 = set_entries(D2, np.arange(D2.shape[0]), 0.0)
    return D2


def median_squared_distance(X: Any, *, n_pairs: int = 20_000, random_state: Any = 0) -> float:
    """Median of the squared distances between different points, from random pairs of rows.

    All pairs are used while there are few of them. Zero distances (duplicates) are left out,
    so the result is positive unless all points coincide, in which case it is 1.
    """
    values = sampled_squared_distances(X, n_pairs=n_pairs, random_state=random_state)
    return float(np.median(values)) if len(values) else 1.0


def sampled_squared_distances(
    X: Any, *, n_pairs: int = 20_000, random_state: Any = 0
) -> np.ndarray:
    """Squared distances between different points: all while they are few, else random ones."""
    n = X.shape[0]
    if n * (n - 1) // 2 <= 4 * n_pairs:
        i, j = np.triu_indices(n, 1)
    else:
        rng = check_random_state(random_state)
        i = rng.randint(n, size=n_pairs)
        j = (i + rng.randint(1, n, size=n_pairs)) % n
    if is_sparse(X):
        difference = X[i] - X[j]
        values = row_norms(difference, squared=True)
    else:
        xp = namespace(X)
        values = np.empty(len(i))
        step = max(1, 4_000_000 // max(X.shape[1], 1))
        for start in range(0, len(i), step):
            block = slice(start, start + step)
            difference = take_rows(X, i[block]) - take_rows(X, j[block])
            values[block] = to_numpy(xp.sum(difference * difference, axis=1))
    return values[values > 0]


def _refine_near(
    D2: np.ndarray, a: np.ndarray, b: np.ndarray, a2: np.ndarray, b2: np.ndarray
) -> None:
    rows, columns = np.nonzero(D2 < _NEAR * (a2[:, None] + b2[None, :]))
    step = max(1, 8_000_000 // max(a.shape[1], 1))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        difference = a[i] - b[j]
        D2[i, j] = np.einsum("ij,ij->i", difference, difference)


def _sparse_squared_distances(A: Any, B: Any, *, same: bool) -> np.ndarray:
    D2 = -2.0 * safe_sparse_dot(A, B.T, dense_output=True)
    D2 += row_norms(A, squared=True)[:, None]
    D2 += row_norms(B, squared=True)[None, :]
    np.maximum(D2, 0, out=D2)
    if same:
        np.fill_diagonal(D2, 0)
    return D2
