"""Methods of a fitted estimator on Dask collections, chunk by chunk, when somebody asks."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute._arrays import is_collection
from kernelmetric.compute.backends.dask._chunks import (
    counted,
    pieces_of,
    share_of_worker,
    together,
)

_BY_ROWS = (
    "transform", "predict", "predict_proba", "predict_log_proba", "decision_function",
    "predict_interval", "score_samples",
)  # fmt: skip
_OF_PAIRS = ("pair_distance", "pair_score")
_OF_ALL_PAIRS = ("pairwise_distances", "pairwise_kernels")
LAZY = (*_BY_ROWS, *_OF_PAIRS, *_OF_ALL_PAIRS, "kneighbors")


def by_chunks(estimator: Any, method: str, given: dict[str, Any]) -> Any:
    """A method of a fitted estimator as a lazy Dask array; a later fit does not change it."""
    check_is_fitted(estimator)
    fitted = copy.copy(estimator)
    X = given.pop("X", None)
    if method in _BY_ROWS:
        return _of_rows(fitted, method, X, given)
    if method in _OF_PAIRS:
        if X is None:
            return _of_rows(fitted, method, given["pairs"])
        return _of_chosen_pairs(fitted, method, given["pairs"], X)
    if method in _OF_ALL_PAIRS:
        return _of_all_pairs(fitted, method, given["A"], given.get("B"))
    raise TypeError(
        f"Got a Dask collection for {method}, which returns more than one array, but expected one "
        f"in memory: try {method}(chunk) for every chunk, as X.to_delayed() gives them."
    )


def placed_rows(fitted: Any, X: Any, places: Any, sample_weight: Any) -> Any:
    """Where a fit has its rows, in chunks; rows without weight, which it has not seen, as new."""
    as_new = fitted.transform(X)
    known = not any(map(math.isnan, as_new.shape))
    chunks = as_new.chunks if known else "auto"
    if sample_weight is None:
        return da.from_array(np.asarray(places), chunks=chunks)
    (weights,) = dask.compute(sample_weight)
    rows = np.flatnonzero(np.asarray(weights))
    found = np.array(as_new)
    found[rows] = places
    return da.from_array(found, chunks=chunks)


def _of_rows(fitted: Any, method: str, X: Any, options: dict[str, Any] | None = None) -> da.Array:
    """What a method gives for the rows of X, in their chunks."""
    options = options or {}
    like = _example(fitted, method, _sample(X), **options)[:0]
    pieces = pieces_of(X, "X")
    estimator, rows_of = _once(fitted), dask.delayed(_rows_of, pure=False)
    parts = [rows_of(estimator, method, part, options, like) for part in pieces.delayed]
    name, across = f"kernelmetric-{method}-{uuid4().hex}", (0,) * (like.ndim - 1)
    keys = {(name, number, *across): part.key for number, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, keys, dependencies=parts)
    return da.Array(graph, name, (pieces.lengths, *((size,) for size in like.shape[1:])), meta=like)


def _once(estimator: Any) -> Any:
    """An estimator that many tasks share."""
    return dask.delayed(estimator, pure=False, traverse=False)


def _rows_of(
    estimator: Any, method: str, block: Any, options: dict[str, Any], like: np.ndarray
) -> np.ndarray:
    """What a method gives for some rows, also for none."""
    if block.shape[0] == 0:
        return like
    with share_of_worker():
        values = _plain(getattr(estimator, method)(block, **options))
    return values.astype(like.dtype, copy=False)


def _plain(values: Any) -> np.ndarray:
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)


def _sample(X: Any) -> Any:
    """Two rows like those of a collection, which tell what comes out."""
    if isinstance(X, da.Array):
        return np.ones((2, *X.shape[1:]), dtype=X.dtype)
    return X._meta_nonempty


def _example(estimator: Any, method: str, *args: Any, **options: Any) -> np.ndarray:
    """What a method gives for a sample, of which nothing is said: it is none of the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _plain(getattr(estimator, method)(*args, **options))


def _of_chosen_pairs(fitted: Any, method: str, pairs: Any, X: Any) -> da.Array:
    """Distances of pairs of row numbers: of every chunk, only the rows in question travel."""
    dtype = _example(fitted, method, np.array([[0, 1]]), _sample(X)).dtype
    n_pairs = pairs.shape[0] if is_collection(pairs) else len(pairs)
    if is_collection(pairs):
        pairs = dask.delayed(np.concatenate)(pieces_of(pairs, "pairs").delayed)
    else:
        pairs = dask.delayed(np.asarray(pairs), pure=False)
    pieces = counted(pieces_of(X, "X"))
    starts = np.cumsum([0, *pieces.lengths]).tolist()
    chosen = [
        _chosen_rows(part, start, pairs)
        for part, start in zip(pieces.delayed, starts, strict=False)
    ]
    result = _pairs_of(_once(fitted), method, chosen, pairs, starts[-1])
    return da.from_delayed(result, shape=(n_pairs,), dtype=dtype)


@dask.delayed(pure=False)
def _chosen_rows(part: Any, start: int, pairs: np.ndarray) -> tuple[np.ndarray, Any]:
    rows = np.unique(pairs)
    rows = rows[(rows >= start) & (rows < start + part.shape[0])]
    return rows, _safe_indexing(part, rows - start)


@dask.delayed(pure=False)
def _pairs_of(
    estimator: Any, method: str, chosen: list[Any], pairs: np.ndarray, n_rows: int
) -> np.ndarray:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"Got pairs of shape {pairs.shape} and dtype {pairs.dtype}, but expected (n_pairs, 2): "
            "row numbers of X."
        )
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < n_rows:
        raise ValueError(
            f"Got row numbers from {pairs.min()} to {pairs.max()}, but expected 0 to {n_rows - 1}."
        )
    if not pairs.size:
        return np.empty(0)
    numbers, parts = zip(*chosen, strict=True)
    places = np.searchsorted(np.concatenate(numbers), pairs)
    with share_of_worker():
        return _plain(getattr(estimator, method)(places, together(list(parts))))


def _of_all_pairs(fitted: Any, method: str, A: Any, B: Any) -> da.Array:
    """Values between all rows of A and of B: a block for every two chunks."""
    left, right = (_blocks(points) for points in (A, A if B is None else B))
    dtype = _example(fitted, method, _sample(A if is_collection(A) else B)).dtype
    estimator = _once(fitted)

    def block(i: int, j: int) -> da.Array:
        (a, height), (b, width) = left[i], right[j]
        part = _between_chunks(estimator, method, a, None if B is None and i == j else b, dtype)
        return da.from_delayed(part, shape=(height, width), dtype=dtype)

    blocks = [[block(i, j) for j in range(len(right))] for i in range(len(left))]
    return da.block(blocks, allow_unknown_chunksizes=True)


@dask.delayed(pure=False)
def _between_chunks(estimator: Any, method: str, a: Any, b: Any, dtype: Any) -> np.ndarray:
    if a.shape[0] == 0 or (b is not None and b.shape[0] == 0):
        return np.empty((a.shape[0], a.shape[0] if b is None else b.shape[0]), dtype=dtype)
    with share_of_worker():
        return _plain(getattr(estimator, method)(a, b)).astype(dtype, copy=False)


def _blocks(points: Any) -> list[tuple[Any, Any]]:
    """Delayed chunks, and their numbers of rows."""
    if not is_collection(points):
        points = np.asarray(points)
        return [(dask.delayed(points, pure=False), len(points))]
    pieces = pieces_of(points, "the points")
    return list(zip(pieces.delayed, pieces.lengths, strict=True))
