"""Points of a metric, checked: arrays as they are, and tables as the features of their schema."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from kernelmetric.compute import check_points, there
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
    """Points to fit to, and the schema of their table, which is left in the metric.

    A frame of numbers without gaps is an array, unless the kernel takes columns or the recipe has
    a schema: its kernel then speaks of the features of that schema.
    """
    vars(metric).pop("schema_", None)
    refuse_objects(kernel, X)
    schema = None if metric.recipe is None else metric.recipe.schema
    if schema is not None:
        X = schema.transform(X)
    elif not kernel.pairwise and (is_table(X) or (is_frame(X) and reads_columns(kernel))):
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


def with_columns(kernel: Kernel, schema: TableSchema | None) -> Kernel:
    """A copy of a kernel that knows the columns of its table, where there is one."""
    return clone(kernel) if schema is None else with_schema(kernel, schema)


def points_like_fitted(metric: Any, X: Any) -> Any:
    """Other points, which must be like those of the fit."""
    schema = getattr(metric, "schema_", None)
    if schema is not None:
        return there(schema.transform(X))
    return check_points(metric, X, reset=False, accept_sparse=metric.kernel_.accepts_sparse)
