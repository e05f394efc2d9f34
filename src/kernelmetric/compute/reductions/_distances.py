"""Squared Euclidean distances, each right whatever else is in a batch.

``|a - b|² = |a|² + |b|² - 2ab`` is one product for all pairs, but its rounding error grows with
``|a|² + |b|²``, not with the distance. :func:`rounding` bounds that error, :func:`robust_center`
keeps the squares small, and :func:`pair_squares` computes the pairs for which neither is enough.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kernelmetric.compute._arrays import in_memory, is_sparse, namespace, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._products import out_of_range, product
from kernelmetric.compute.reductions._smallest import true_entries

# Where |a-b|² is a smaller share of |a|² + |b|², the product is not exact enough: the relative
# error of the others is rounding(X) over this share.
_NEAR = {4: 1e-2, 8: 1e-5}
_PAIRS = 20_000  # whose distances tell those of all
_TILE_BYTES = 2**20
_CENTER_ROWS = 64  # a median of so many does not follow outliers, and costs little
_CHUNK_BYTES = 2**19  # differences that stay in the cache,
_LARGE_CHUNK_BYTES = 2**28  # and those of other libraries
_SPARSE_CHUNK_BYTES = 2**24
# exp below this is zero for every purpose, but makes denormal numbers, and a GEMM on denormals
# runs an order of magnitude slower.
_LEAST_EXPONENT = {4: -40.0, 8: -300.0}
_NARROWEST = 1e-12  # of the sum of counts: values that a quantile is the mean of, at least
GATHER_COST = 5  # a difference of listed rows takes so many times one of a whole row


# What rows count, and their shares of an objective; see inputs.Weights.
CountsAndShares = tuple[np.ndarray, np.ndarray]


def squared_distances(A: Any, B: Any | None = None) -> Any:
    """Squared Euclidean distances (n, m) between the rows of A and of B, refused if they overflow.

    One GEMM, and pairs too near for that again from their differences. Never negative, zero for
    equal rows; relative errors are below 1e-8 in float64, 1e-3 in float32, for a few hundred
    features.
    """
    same = B is None
    B = A if B is None else B
    if is_sparse(A) or is_sparse(B):
        return _sparse_squared_distances(A, B, same=same)
    with np.errstate(over="ignore", invalid="ignore"):
        center = robust_center(B)
        a = A - center
        b = a if same else B - center
        a2 = squared_lengths(a)
        b2 = a2 if same else squared_lengths(b)
    require_squares(a2, b2)
    # |a|² + |b|² - 2ab as one product of (a, |a|², 1) and (-2b, 1, |b|²).
    xp, of_a, of_b = namespace(a, b), a2[:, None], b2[:, None]
    left = xp.concat([a, of_a, xp.ones_like(of_a)], axis=1)
    right = xp.concat([-2.0 * b, xp.ones_like(of_b), of_b], axis=1)
    D2 = product(left, right.T)
    backend = backend_of(D2)
    if backend.host:
        return _repaired(D2, A, B, a2, b2, same=same)
    D2 = _repaired_on_device(D2, A, B, a2, b2)
    return backend.set_entries(D2, np.arange(D2.shape[0]), 0.0) if same else D2


def exp_of_negative(D: Any, gamma: float, *, overwrite: bool = False) -> Any:
    """exp(-gamma D); may overwrite D where that is said."""
    backend = backend_of(D)
    gamma = min(gamma, float(namespace(D).finfo(D.dtype).max))  # inf times zero is not a number
    with np.errstate(over="ignore"):
        S = backend.multiplied(D, -gamma) if overwrite else D * -gamma
    return backend.exponential(S, _LEAST_EXPONENT[itemsize_of(D)])


def l1_distances(A: Any, B: Any = None) -> Any:
    """L1 distances between the rows of A and of B (None: A); O(n m d) time, O(n m) memory."""
    return backend_of(A).l1_distances(A, A if B is None else B)


def median_squared_distance(X: Any, *, weights: CountsAndShares | None = None) -> float:
    """Median of the squared distances of different points, of random pairs; 1 if none differ."""
    values, counts = sampled_squared_distances(X, weights)
    if not len(values):
        return 1.0
    return float(np.median(values) if counts is None else weighted_quantiles(values, counts, 0.5))


def sampled_squared_distances(
    X: Any, weights: CountsAndShares | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Squared distances of different points, all or random ones; counts, None without weights."""
    i, j = _sampled_pairs(X.shape[0])
    counts = None if weights is None else weights[0][i] * weights[0][j]
    if not in_memory(X):
        rows, both = np.unique(np.concatenate([i, j]), return_inverse=True)
        X, (i, j) = take_rows(X, rows), np.split(both, 2)
    values = pair_squares(X, X, i, j)
    return values[values > 0], None if counts is None else counts[values > 0]


def weighted_quantiles(values: np.ndarray, counts: np.ndarray, shares: Any) -> np.ndarray:
    """Quantiles of values that count more or less than once, continuous in the counts.

    For whole counts they are those that :func:`numpy.quantile` gives of repeated values.
    """
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    ends = np.cumsum(counts)
    width = max(min(1.0, ends[-1] / len(values)), _NARROWEST * ends[-1])

    def mean(share: float) -> float:
        start = (ends[-1] - width) * share
        inside = np.minimum(ends, start + width) - np.maximum(ends - counts, start)
        inside = np.maximum(inside, 0.0)
        if not inside.any():  # counts of which one is next to all
            return float(values[min(np.searchsorted(ends, start), len(values) - 1)])
        return float(np.average(values, weights=inside))

    return np.vectorize(mean, otypes=[np.float64])(shares)


def _sampled_pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of rows while they are few, else random ones."""
    if n * (n - 1) // 2 <= 4 * _PAIRS:
        i, j = np.triu_indices(n, 1)
    else:
        rng = np.random.RandomState(0)
        i = rng.randint(n, size=_PAIRS)
        j = (i + rng.randint(1, n, size=_PAIRS)) % n
    return i, j


def _repaired(
    D2: np.ndarray, A: Any, B: Any, a2: np.ndarray, b2: np.ndarray, *, same: bool
) -> np.ndarray:
    """Compute near pairs again, from differences."""
    farthest = float(np.max(b2, initial=0.0))
    step = max(1, _TILE_BYTES // max(D2[:1].nbytes, 1))
    for start in range(0, len(D2), step):
        rows = np.arange(start, min(start + step, len(D2)))
        tile = D2[start : start + step]
        if same:
            tile[rows - start, rows] = np.inf
        i, j = _near_pairs(tile, a2[rows], b2, farthest)
        counts = np.bincount(i, minlength=len(tile))
        crowded = np.flatnonzero(GATHER_COST * counts > tile.shape[1])
        if len(crowded) and not (is_sparse(A) or is_sparse(B)):
            some = A[rows[crowded]]
            if tile.dtype == np.float32:
                tile[crowded] = squared_distances(some.astype(np.float64), B.astype(np.float64))
            else:
                tile[crowded] = cdist(some, B, "sqeuclidean")
            others = GATHER_COST * counts[i] <= tile.shape[1]
            i, j = i[others], j[others]
        tile[i, j] = pair_squares(A, B, rows[i], j)
        if same:
            tile[rows - start, rows] = 0.0
    return D2


def _near_pairs(
    tile: np.ndarray, a2: np.ndarray, b2: np.ndarray, farthest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose squared distance is too small a share of the squares."""
    near = _NEAR[tile.itemsize]
    # As if all of B were the farthest point: rarely true of a pair, and no array of limits.
    i, j = true_entries(tile < (near * (a2 + farthest))[:, None])
    if GATHER_COST * len(i) > tile.size:
        i, j = true_entries(tile < near * (a2[:, None] + b2))
    chosen = tile[i, j] < near * (a2[i] + b2[j])
    return i[chosen], j[chosen]


def _repaired_on_device(D2: Any, A: Any, B: Any, a2: Any, b2: Any) -> Any:
    """The same for arrays of other libraries, which have no tiles."""
    xp, near = namespace(D2), _NEAR[itemsize_of(D2)]
    if not D2.shape[1]:
        return D2
    # As if all of B were the farthest point: what is not near is computed again, too.
    found = xp.nonzero(D2 < (near * (a2 + xp.max(b2)))[:, None])
    if GATHER_COST * found[0].shape[0] > D2.shape[0] * D2.shape[1]:
        found = xp.nonzero(D2 < near * (a2[:, None] + b2[None, :]))
    i, j = (to_numpy(part) for part in found)
    if not len(i):
        return D2
    if GATHER_COST * len(i) > D2.shape[0] * D2.shape[1] and itemsize_of(D2) == 4:
        wide = squared_distances(xp.astype(A, xp.float64), xp.astype(B, xp.float64))
        return xp.astype(wide, D2.dtype)
    return backend_of(D2).set_pairs(D2, i, j, pair_squares(A, B, i, j))


def _sparse_squared_distances(A: Any, B: Any, *, same: bool) -> np.ndarray:
    with np.errstate(over="ignore"):
        a2 = row_norms(A, squared=True)
        b2 = a2 if same else row_norms(B, squared=True)
    require_squares(a2, b2)
    D2 = np.asarray(-2.0 * safe_sparse_dot(A, B.T, dense_output=True))
    D2 += a2[:, None]
    D2 += b2
    return _repaired(D2, A, B, a2, b2, same=same)


def robust_center(X: Any) -> Any:
    """The median (1, d) of some rows of X, which, unlike a mean, one huge row does not move."""
    sample = X[:: max(1, X.shape[0] // _CENTER_ROWS), :]
    middle = sample.shape[0] // 2
    return namespace(X).sort(sample, axis=0)[middle : middle + 1, :]


def squared_lengths(X: Any) -> Any:
    """Squared lengths of the rows of a dense array, summed in float64 and in its dtype again."""
    return backend_of(X).squared_lengths(X)


def rounding(X: Any) -> float:
    """How far ``|a|² + |b|² - 2ab`` may be off, in units of ``|a|² + |b|²``."""
    n_terms = X.shape[1]
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
    return out_of_range(f"points so far apart that squared distances overflow {dtype}")


def pair_squares(A: Any, B: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Squared distances of the pairs ``A[i], B[j]``, dense or sparse, from float64 differences."""
    backend = backend_of(A)
    some_sparse = is_sparse(A) or is_sparse(B)
    if some_sparse:
        A, B = sparse.csr_array(A), sparse.csr_array(B)
        per_row = 12.0 * (A.nnz / max(A.shape[0], 1) + B.nnz / max(B.shape[0], 1)) + 1.0
        step = int(_SPARSE_CHUNK_BYTES / per_row)
    else:
        most = _CHUNK_BYTES if backend.host else _LARGE_CHUNK_BYTES
        step = most // (itemsize_of(A) * max(A.shape[1], 1))
    squares, step = np.empty(len(i)), max(1, step)
    with np.errstate(over="ignore"):
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            a, b = take_rows(A, i[part]), take_rows(B, j[part])
            if some_sparse:
                squares[part] = row_norms(a.astype(np.float64) - b, squared=True)
            else:
                squares[part] = backend.squares_between(a, b, wide=True)
    if np.any(squares > float(namespace(A).finfo(A.dtype).max)):
        raise overflow_error(A.dtype)
    return squares
