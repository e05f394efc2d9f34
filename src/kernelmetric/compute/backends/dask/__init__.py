"""Dask arrays and data frames: fits that run on a cluster, and maps that wait to be computed.

A fit is one pure task on a worker, which gets the chunks and calls the ordinary ``fit`` of a copy
of the estimator. Its tiles are shared among all workers, and put together in their order, so the
numbers are those of a fit on one machine. The tasks of a worker that dies are run again::

    _chunks.py    collections as pieces of rows, each checked where it lies
    _driver.py    a fit as one task on a worker, its result put into the user's estimator
    _tiles.py     tiles of that fit shared among all workers, by way of _pickles.py
    _rows.py      rows that no worker has room for, gone through chunk by chunk
    _lazy.py      transform and predict, chunk by chunk, when somebody asks
"""

from inspect import signature
from typing import Any

from kernelmetric.compute.backends.dask._driver import run_on_worker
from kernelmetric.compute.backends.dask._lazy import LAZY, by_chunks, placed_rows


def call(estimator: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a method with Dask collections: ``fit`` and ``score`` run, others give Dask arrays."""
    form = signature(getattr(estimator, method))
    form.bind(*args, **options)  # refuses what the method does not take
    given = {**dict(zip(form.parameters, args, strict=False)), **options}
    if method in LAZY:
        return by_chunks(estimator, method, given)
    if method not in ("fit_transform", "fit_predict"):
        return run_on_worker(estimator, method, given)
    X, fitted = given["X"], run_on_worker(estimator, "fit", given)
    if method == "fit_predict":
        return fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(X)
    placed = getattr(getattr(fitted, "best_estimator_", fitted), "embedding_", None)
    if placed is None:
        return fitted.transform(X)
    return placed_rows(fitted, X, placed, given.get("sample_weight"))  # as if they were left out


__all__ = ["call"]
