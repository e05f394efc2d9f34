"""Methods of a fitted estimator on Dask collections, chunk by chunk, when somebody asks."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute._arrays import is_collection
from kernelmetric.compute.backends.dask._chunks import (
    checked_chunk,
    pieces_of,
    require_rows,
    share_of_worker,
)
from kernelmetric.compute.reductions._distances import pair_squares

_BY_ROWS = (
    "transform", "inverse_transform", "predict", "predict_proba", "predict_log_proba",
    "decision_function", "predict_interval", "score_samples",
)  # fmt: skip
_OF_PAIRS = ("pair_distance", "pair_score")
_OF_ALL_PAIRS = ("pairwise_distances", "pairwise_kernels")
LAZY = (*_BY_ROWS, *_OF_PAIRS, *_OF_ALL_PAIRS, "kneighbors")


def by_chunks(estimator: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A method of a fitted estimator as a lazy Dask array; a later fit does not change it."""
    check_is_fitted(estimator)
    fitted = dask.delayed(copy.copy(estimator), pure=False, traverse=False)
    if method in _BY_ROWS:
        X, *rest = args or (options.pop("X"),)
        return _of_rows(estimator, fitted, method, X, tuple(rest), options)
    if method in _OF_PAIRS:
        pairs, X = _bound(("pairs", "X"), args, options)
        if X is None:
            return _of_rows(estimator, fitted, method, pairs, (), {})
        return _of_chosen_pairs(estimator, fitted, method, pairs, X)
    if method in _OF_ALL_PAIRS:
        return _of_all_pairs(estimator, fitted, method, *_bound(("A", "B"), args, options))
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


def _bound(names: tuple[str, str], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    given = {**dict(zip(names, args, strict=False)), **options}
    return given.get(names[0]), given.get(names[1])


def _of_rows(
    estimator: Any, fitted: Any, method: str, X: Any, rest: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    example = _example(estimator, method, _sample(X), *rest, **options)
    shape, dtype = example.shape[1:], example.dtype
    how = method, rest, options, shape, dtype
    if isinstance(X, da.Array):
        require_rows(X, "X")
        wide, wider = 1 + len(shape), X.ndim
        check = "X", np.cumsum([0.0, *X.chunks[0]]), X.shape[1:], X.dtype
        return da.map_blocks(
            _rows_of_block,
            X,
            **{"estimator": fitted, "check": check, "how": how},
            dtype=dtype,
            meta=np.empty((0,) * wide, dtype=dtype),
            chunks=(X.chunks[0], *((size,) for size in shape)),
            drop_axis=list(range(wide, wider)),
            new_axis=list(range(wider, wide)) or None,
        )
    rows_of = dask.delayed(_rows_of, pure=False)
    parts = [rows_of(fitted, part, how) for part in pieces_of(X, "X").delayed]
    meta = np.empty((0,) * (1 + len(shape)), dtype=dtype)
    arrays = [
        da.from_delayed(part, shape=(math.nan, *shape), dtype=dtype, meta=meta) for part in parts
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _rows_of_block(
    block: Any, *, estimator: Any, check: tuple[Any, ...], how: tuple[Any, ...], block_id: Any
) -> np.ndarray:
    name, starts, *like = check
    block = checked_chunk(block, block_id[0], name, starts[block_id[0]], *like)
    return _rows_of(estimator, block, how)


def _rows_of(estimator: Any, block: Any, how: tuple[Any, ...]) -> np.ndarray:
    """What a method gives for some rows, also for none."""
    method, rest, options, shape, dtype = how
    if block.shape[0] == 0:
        return np.empty((0, *shape), dtype=dtype)
    with share_of_worker():
        values = _plain(getattr(estimator, method)(block, *rest, **options))
    return values.astype(dtype, copy=False)


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


def _of_chosen_pairs(estimator: Any, fitted: Any, method: str, pairs: Any, X: Any) -> Any:
    """Distances of pairs of row numbers: of every chunk, only the rows in question travel."""
    if is_collection(pairs):
        require_rows(pairs, "pairs")
        n_pairs = pairs.shape[0]
        pairs = dask.delayed(np.concatenate)(pairs.to_delayed().ravel().tolist())
    else:
        n_pairs = len(pairs)
        pairs = dask.delayed(np.asarray(pairs), pure=False)
    E = _of_rows(estimator, fitted, "transform", X, (), {})
    if any(math.isnan(length) for length in E.chunks[0]):
        E = E.compute_chunk_sizes()  # which rows a chunk has must be known
    starts = np.cumsum([0, *E.chunks[0]])
    blocks = E.to_delayed().ravel().tolist()
    chosen = [
        _chosen_rows(block, int(start), pairs) for block, start in zip(blocks, starts, strict=False)
    ]
    sample = np.ones((2, 2, E.shape[1]), dtype=E.dtype)
    dtype = _plain(_between(estimator, method, sample)).dtype
    result = _pairs_of(fitted, method, chosen, pairs, E.shape[0])
    return da.from_delayed(result, shape=(n_pairs,), dtype=dtype)


@dask.delayed(pure=False)
def _chosen_rows(E: np.ndarray, start: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.unique(pairs)
    rows = rows[(rows >= start) & (rows < start + len(E))]
    return rows, E[rows - start]


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
    rows, E = (np.concatenate(part) for part in zip(*chosen, strict=True))
    return _between(estimator, method, E[np.searchsorted(rows, pairs)])


def _between(estimator: Any, method: str, ends: np.ndarray) -> np.ndarray:
    """What a method says of pairs of embedded points."""
    rows = np.arange(len(ends))
    E, F = ends[:, 0], ends[:, 1]
    distances = estimator._root(lambda E, F: pair_squares(E, F, rows, rows).astype(E.dtype), E, F)
    return -distances if method == "pair_score" else distances


def _of_all_pairs(estimator: Any, fitted: Any, method: str, A: Any, B: Any) -> Any:
    """Values between all rows of A and of B: a block for every two chunks."""
    left, right = (_blocks(points) for points in (A, A if B is None else B))
    sample = _sample(A if is_collection(A) else B)
    dtype = _example(estimator, method, sample).dtype
    rows = []
    for i, (a, height) in enumerate(left):
        row = []
        for j, (b, width) in enumerate(right):
            own = B is None and i == j
            part = _between_chunks(fitted, method, a, None if own else b, dtype)
            row.append(da.from_delayed(part, shape=(height, width), dtype=dtype))
        rows.append(da.concatenate(row, axis=1, allow_unknown_chunksizes=True))
    return da.concatenate(rows, axis=0, allow_unknown_chunksizes=True)


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
    parts = pieces_of(points, "the points").delayed
    lengths = points.chunks[0] if isinstance(points, da.Array) else (math.nan,) * len(parts)
    return list(zip(parts, lengths, strict=True))
