"""Dask arrays and data frames: fits that run on a cluster, and maps that wait to be computed.

A fit is one pure task on a worker, which gets the chunks and calls the ordinary ``fit`` of a copy
of the estimator. Its tiles are shared among all workers, and put together in their order, so the
numbers are those of a fit on one machine. The tasks of a worker that dies are run again::

    _chunks.py    collections as pieces of rows, each checked where it lies
    _driver.py    a fit as one task on a worker, its result put into the user's estimator
    _tiles.py     tiles of that fit shared among all workers, by way of _pickles.py
    _rows.py      rows that no worker has room for, gone through chunk by chunk
    _lazy.py      transform, predict and distances, chunk by chunk, when somebody asks
"""

from __future__ import annotations

from typing import Any

from kernelmetric.compute.backends.dask._driver import run_there
from kernelmetric.compute.backends.dask._lazy import LAZY, by_chunks, placed_rows


def call(estimator: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a method with Dask collections: ``fit`` and ``score`` run, others give Dask arrays."""
    if method in ("fit_transform", "fit_predict"):
        last = "transform" if method == "fit_transform" else "predict"
        X = args[0] if args else options["X"]
        fitted = run_there(estimator, "fit", args, options)
        if last == "predict" and hasattr(fitted, "labels_"):
            return fitted.labels_
        placed = getattr(getattr(fitted, "best_estimator_", fitted), "embedding_", None)
        if last == "transform" and placed is not None:  # rows as if they were left out
            weights = options.get("sample_weight")
            return placed_rows(fitted, X, placed, weights)
        return getattr(fitted, last)(X)
    if method in LAZY:
        return by_chunks(estimator, method, args, options)
    return run_there(estimator, method, args, options)


__all__ = ["call"]
