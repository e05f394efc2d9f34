"""Data on many machines: found by their type, and handed to the backend that knows them.

A Dask array or data frame stands for chunks that lie on the workers of a cluster, or nowhere yet.
No public method of ours works on it as on an array, so the outermost one hands its arguments over.
Nothing of Dask is imported before such an argument comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import isfunction
from typing import Any

from kernelmetric.compute._refusals import refuse_masked

_LIBRARIES = {"dask", "dask_expr"}
_METHODS = (
    "fit", "transform", "fit_transform", "inverse_transform", "predict", "fit_predict",
    "predict_proba", "predict_log_proba", "predict_interval", "score_samples", "kneighbors",
    "pair_distance", "pair_score", "pairwise_distances", "pairwise_kernels", "score",
)  # fmt: skip


def is_collection(*values: Any) -> bool:
    """Whether the type of one of some values is a Dask collection."""
    return any(type(value).__module__.partition(".")[0] in _LIBRARIES for value in values)


def on_cluster(estimator: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a method of an estimator with Dask collections: ``fit`` runs, others stay lazy."""
    backend = import_module("kernelmetric.compute.backends.dask")
    return backend.call(estimator, method, args, options)


class CollectionsMixin:
    """Methods that take Dask collections too, of a class whose parts do the rest."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _METHODS:
            method = cls.__dict__.get(name)
            if isfunction(method):
                setattr(cls, name, anywhere(method))


def anywhere(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes Dask collections too, and refuses masked arrays."""

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if is_collection(*args, *options.values()):
            return on_cluster(self, method.__name__, args, options)
        refuse_masked(*args, *options.values())
        return method(self, *args, **options)

    return call
