"""Methods of a fitted estimator on Dask collections, chunk by chunk, when somebody asks."""

import copy
import math
import warnings
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute.backends.dask._chunks import pieces_of, share_of_worker

_BY_ROWS = (
    "transform", "predict", "predict_proba", "predict_log_proba", "decision_function",
    "predict_interval", "score_samples",
)  # fmt: skip
_BY_PAIRS = ("pair_distance", "pair_score")
LAZY = (*_BY_ROWS, *_BY_PAIRS, "pairwise_distances", "pairwise_kernels", "kneighbors")


def by_chunks(estimator: Any, method: str, given: dict[str, Any]) -> Any:
    """A method of a fitted estimator as a lazy Dask array; a later fit does not change it."""
    check_is_fitted(estimator)
    fitted = copy.copy(estimator)
    X = given.pop("X", None)
    if method in _BY_ROWS:
        return _of_rows(fitted, method, X, given)
    if method in _BY_PAIRS and X is None:
        return _of_rows(fitted, method, given["pairs"], {})
    raise TypeError(
        f"Got a Dask collection for {method}, but expected rows in memory: try {method} for every "
        "chunk, as X.to_delayed() gives them, or the distances between rows of transform(X)."
    )


def placed_rows(fitted: Any, X: Any, places: Any, sample_weight: Any) -> Any:
    """Where a fit has its rows, in chunks; rows without weight, which it has not seen, as new."""
    as_new = fitted.transform(X)
    chunks = "auto" if any(map(math.isnan, as_new.shape)) else as_new.chunks
    if sample_weight is None:
        return da.from_array(np.asarray(places), chunks=chunks)
    (weights,) = dask.compute(sample_weight)
    rows = np.flatnonzero(np.asarray(weights))
    found = np.array(as_new)
    found[rows] = places
    return da.from_array(found, chunks=chunks)


def _of_rows(fitted: Any, method: str, X: Any, options: dict[str, Any]) -> da.Array:
    """What a method gives for the rows of X, in their chunks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a sample, which is none of the user's
        like = _plain(getattr(fitted, method)(_sample(X), **options))[:0]
    pieces = pieces_of(X, "X")
    estimator = dask.delayed(fitted, pure=False, traverse=False)  # one for all tasks
    rows_of = dask.delayed(_rows_of, pure=False)
    parts = [rows_of(estimator, method, part, options, like) for part in pieces.delayed]
    name, across = f"kernelmetric-{method}-{uuid4().hex}", (0,) * (like.ndim - 1)
    keys = {(name, number, *across): part.key for number, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, keys, dependencies=parts)
    return da.Array(graph, name, (pieces.lengths, *((size,) for size in like.shape[1:])), meta=like)


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
