"""Tuples given as arrays of points, as metric-learn takes them, told apart into row numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.graphs._pairs import Pairs
from kernelmetric.graphs._tuples import IndexTuples, Quadruplets, Triplets

_CACHED = 2**14  # numbers of a block
_FIRST = 3  # entries of a row that are looked at first


def are_tuples(X: Any) -> bool:
    """Whether X is an array of tuples of points, or lists of them: three-dimensional."""
    if not isinstance(X, list | tuple):
        return getattr(X, "ndim", 2) == 3
    for _ in range(2):
        if not isinstance(X, list | tuple) or not X:
            return False
        X = X[0]
    return getattr(X, "ndim", 1 if isinstance(X, list | tuple) else 0) == 1


def points_of_tuples(T: Any) -> tuple[np.ndarray, np.ndarray]:
    """The different points X in an array of tuples T, and rows with ``X[rows]`` equal to T."""
    T = to_numpy(T) if hasattr(T, "dtype") else np.asarray(T)
    X, rows = _different(T.reshape(-1, T.shape[2]))
    return X, rows.reshape(T.shape[:2])


def _different(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ``np.unique`` says of rows, which compares them entry by entry as it sorts: slowly.

    Here a number made of each row is sorted. Two rows may have the same one: that is looked for.
    Both go through blocks of rows that stay in the cache.
    """
    if P.dtype in (np.float64, np.float32) and P.size:
        size = 1 + _CACHED // P.shape[1]
        blocks = [slice(k, k + size) for k in range(0, len(P), size)]
        keys = np.concatenate([_keys(P[rows]) for rows in blocks])
        order = np.argsort(keys)
        ordered = keys[order]
        new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        X = P[order[new]]
        place = _sorted_rows(X)
        rows = np.empty_like(order)
        rows[order] = np.argsort(place)[np.cumsum(new) - 1]
        X = X[place]
        if all(np.array_equal(X.take(rows[block], axis=0), P[block]) for block in blocks):
            return X, rows
    X, rows = np.unique(P, axis=0, return_inverse=True)
    return X, rows


def _keys(P: np.ndarray) -> np.ndarray:
    """A number of each row, the same for equal ones."""
    words = (P.astype(np.float64, order="C") + 0).view(np.uint64)  # 0 added: -0.0 is 0.0
    words ^= words >> np.uint64(32)  # round numbers differ in their upper bits alone
    return np.einsum("ij,j->i", words, _odd_numbers(words.shape[1]))


def _sorted_rows(X: np.ndarray) -> np.ndarray:
    """The order of different rows: by the first entries, which nearly always suffice."""
    order = np.lexsort(X.T[_FIRST - 1 :: -1])
    ordered = X[order, :_FIRST]
    if X.shape[1] <= _FIRST or np.all(np.any(ordered[1:] != ordered[:-1], axis=1)):
        return order
    return np.lexsort(X.T[::-1])


@lru_cache
def _odd_numbers(n: int) -> np.ndarray:
    """Random ones, always the same."""
    return np.random.RandomState(0).randint(2**62, size=n, dtype=np.int64).astype(np.uint64) * 2 + 1


def signed_pairs(rows: np.ndarray, y: Any, n_samples: int) -> Pairs:
    """Pairs from row numbers and signs (1 similar, -1 not); warns of contradictions, left out."""
    rows = np.asarray(rows)
    signs = np.asarray([] if y is None else y)
    good = rows.ndim == 2 and rows.shape[1] == 2 and signs.shape == (len(rows),)
    if not good or not np.all(np.isin(signs, (-1, 1))):
        values = np.unique(signs)[:5].tolist() if signs.dtype.kind in "iufb" else signs.dtype
        raise ValueError(
            f"Got tuples of shape {rows.shape} with y of shape {signs.shape} and values {values}, "
            "but expected pairs of points, and y with 1 for each similar and -1 for each "
            "dissimilar one."
        )
    return Pairs(rows[signs == 1], rows[signs == -1], n_samples, faults="drop")


def ordered_tuples(rows: np.ndarray, n_samples: int) -> IndexTuples:
    """Triplets or quadruplets from row numbers; contradictions are left out with a warning."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(
            f"Got tuples of shape {rows.shape}, but expected triplets or quadruplets: three or "
            "four points each."
        )
    return (Triplets if rows.shape[1] == 3 else Quadruplets)(rows, n_samples, faults="drop")
