"""Points of a metric, checked: arrays as they are, and tables as the features of their schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from kernelmetric.compute import check_points, far_columns
from kernelmetric.kernelized._parts import is_auto
from kernelmetric.kernels import (
    Kernel,
    TableSchema,
    is_frame,
    is_table,
    reads_columns,
    refuse_objects,
    with_schema,
)


def fit_points(metric: Any, X: Any, kernel: Kernel) -> tuple[Any, TableSchema | None]:
    """Points to fit to, and the schema of their table, which is left in the metric."""
    vars(metric).pop("schema_", None)
    refuse_objects(kernel, X)
    schema = None if metric.recipe is None else metric.recipe.schema
    if schema is not None:
        X = schema.transform(X)
    # A schema reads cells such as 9999, far from all others, as missing, and says so.
    elif not kernel.pairwise and (
        is_table(X)
        or (is_frame(X) and reads_columns(kernel))
        or (is_auto(metric.kernel) and far_columns(_plain(X)))
    ):
        X = X if is_frame(X) else np.asarray(X)
        schema = TableSchema().fit(X)
        X = schema.transform(X)
    X = check_points(
        metric, X, reset=True, accept_sparse=kernel.accepts_sparse, ensure_min_samples=2
    )
    if schema is not None:
        metric.schema_ = schema
        metric.n_features_in_ = schema.n_features_in_
        metric.feature_names_in_ = schema.feature_names_in_
    return X, schema


def _plain(X: Any) -> Any:
    """Numbers of a list or a frame as an array; what is none of these as it is."""
    if is_frame(X) and hasattr(X, "to_numpy"):
        return X.to_numpy()
    try:
        return np.asarray(X) if isinstance(X, list | tuple) else X
    except ValueError:  # rows of several lengths, of which others tell
        return X


def with_columns(kernel: Kernel, schema: TableSchema | None) -> Kernel:
    """A copy of a kernel that knows the columns of its table, where there is one."""
    return clone(kernel) if schema is None else with_schema(kernel, schema)
