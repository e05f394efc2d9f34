"""Lists of row-number pairs: checked, compared, measured. Pure functions."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from kernelmetric.compute import pair_squares, refuse_masked, to_numpy

_SHOWN = 5  # offending rows that a message names


def check_rows(rows: Any, name: str, n_samples: int, width: int = 2) -> np.ndarray:
    """A copy of the tuples as an intp array (n_pairs, 2), refused where they do not number points.

    None and an empty list mean no pairs; ``width`` is the length of a tuple.
    """
    kind, count = (f"{name} pair", "two") if width == 2 else (name, str(width))
    refuse_masked(rows)
    array = np.asarray([] if rows is None else rows)
    if array.size == 0:
        return np.empty((0, width), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iu":
        raise ValueError(
            f"Got {kind}s of shape {array.shape} and dtype {array.dtype}, but expected "
            f"integers of shape (n_{kind.split()[-1]}s, {width}): {count} row numbers of X each."
        )
    if array.min() < 0 or array.max() >= n_samples:
        outside = np.flatnonzero(np.any((array < 0) | (array >= n_samples), axis=1))
        raise ValueError(
            f"Got {len(outside)} {kind}(s) outside the data ({listed_rows(array, outside)}), but "
            f"expected row numbers from 0 to {n_samples - 1}."
        )
    return array.astype(np.intp)


def unordered_keys(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """One integer for each pair, whichever of its two points comes first."""
    i, j = rows.T
    return np.minimum(i, j) * n_samples + np.maximum(i, j)


def unique_pairs(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """The pairs without repetitions, in the order in which they first occur."""
    first = np.unique(unordered_keys(rows, n_samples), return_index=True)[1]
    return rows[np.sort(first)]


def find_faults(
    similar: np.ndarray, dissimilar: np.ndarray, n_samples: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Self pairs, duplicates, and pairs that are said to be both similar and dissimilar.

    A sentence for each kind of fault, with the first offending rows, and two masks of what
    remains: no self pair, the first of duplicates, neither side of a contradiction.
    """
    rows = np.concatenate([similar, dissimilar])
    ordered = np.sort(unordered_keys(rows, n_samples))
    if np.all(rows[:, 0] != rows[:, 1]) and np.all(ordered[1:] != ordered[:-1]):
        return [], np.ones(len(similar), dtype=bool), np.ones(len(dissimilar), dtype=bool)
    faults, kept, keys = [], [], []
    for name, rows in (("similar", similar), ("dissimilar", dissimilar)):
        key = unordered_keys(rows, n_samples)
        selves = rows[:, 0] == rows[:, 1]
        repeated = np.ones(len(rows), dtype=bool)
        repeated[np.unique(key, return_index=True)[1]] = False
        for kind, found in (("of a point with itself", selves), ("listed before", repeated)):
            if found.any():
                where = np.flatnonzero(found)
                faults.append(f"{len(where)} {name} pair(s) {kind} ({listed_rows(rows, where)})")
        kept.append(~selves & ~repeated)
        keys.append(key)
    both = np.isin(keys[0], keys[1])
    if both.any():
        where = np.flatnonzero(both)
        faults.append(
            f"{len(where)} similar pair(s) also dissimilar ({listed_rows(similar, where)})"
        )
    return faults, kept[0] & ~both, kept[1] & ~np.isin(keys[1], keys[0])


def components_of(similar: np.ndarray, n_samples: int) -> np.ndarray:
    """Component of every point in the graph of similar pairs, numbered from 0."""
    ones = np.ones(len(similar), dtype=np.int8)
    links = sparse.coo_array((ones, (similar[:, 0], similar[:, 1])), shape=(n_samples, n_samples))
    return connected_components(links.tocsr(), directed=False)[1]


def pair_distances(X: Any, rows: np.ndarray, *, precomputed: bool = False) -> np.ndarray:
    """Euclidean distance of every pair, one block of pairs in memory; X may hold the distances."""
    if precomputed:
        return to_numpy(X)[rows[:, 0], rows[:, 1]].astype(np.float64)
    return np.sqrt(pair_squares(X, X, rows[:, 0], rows[:, 1]))


def nearest_of(rows: np.ndarray, distances: np.ndarray, k: int) -> np.ndarray:
    """Which pairs are among the k nearest of at least one of their two points."""
    points = rows.ravel()  # each pair twice: once for each of its points
    lengths = np.repeat(distances, 2)
    order = np.lexsort((lengths, points))
    starts = np.flatnonzero(np.diff(points[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[order[rank < k] // 2] = True
    return chosen


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"Got {name}={value!r}, but expected an integer >= 1.")


def check_length(n_rows: int, n_samples: int) -> None:
    """Refuse points that are not as many as the pairs number."""
    if n_rows != n_samples:
        raise ValueError(
            f"Got pairs of n_samples={n_samples} points, but X has {n_rows} rows: expected the X "
            "that the pairs number. For some rows of it, use pairs.subset(rows)."
        )


def check_radius(radius: Any) -> float:
    """A length; infinity for None."""
    if radius is None:
        return np.inf
    if not isinstance(radius, Real) or not float(radius) > 0:
        raise ValueError(
            f"Got radius={radius!r}, but expected a positive number, 'median' or None."
        )
    return float(radius)


def listed_rows(rows: np.ndarray, where: np.ndarray) -> str:
    """'row 3 is (5, 5), row 7 is (9, 9), ...'."""
    shown = [f"row {i} is {tuple(rows[i].tolist())}" for i in where[:_SHOWN].tolist()]
    return ", ".join(shown) + (", ..." if len(where) > _SHOWN else "")


def points_of(X: Any, n_samples: int) -> Any:
    """X as an array, refused where the pairs number other rows than it has."""
    X = X if hasattr(X, "dtype") else np.asarray(X)  # lists, data frames
    check_length(X.shape[0], n_samples)
    return X


def refuse_as_array(name: str) -> NoReturn:
    """Refuse tuples of rows where an array is wanted, as for class labels."""
    raise ValueError(
        f"Got {name} in place of an array, but expected labels or numbers: pass tuples by name, "
        f"fit(X, {name.lower()}=...), to a learner that takes them."
    )
