"""Points of a metric, checked: arrays as they are, and tables as the features of their schema."""

from __future__ import annotations

from typing import Any

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


def fit_points(metric: Any, X: Any, kernel: Kernel) -> tuple[Any, Kernel]:
    """Points to fit to, and the kernel that knows their columns; the schema is left in the metric.

    A frame of numbers without gaps is an array, unless the kernel takes columns.
    """
    vars(metric).pop("schema_", None)
    schema = None
    refuse_objects(kernel, X)
    if not kernel.pairwise and (is_table(X) or (is_frame(X) and reads_columns(kernel))):
        schema = TableSchema().fit(X)
        X, kernel = schema.transform(X), with_schema(kernel, schema)
    X = check_points(
        metric, X, reset=True, accept_sparse=kernel.accepts_sparse, ensure_min_samples=2
    )
    if schema is not None:
        metric.schema_ = schema
        metric.n_features_in_ = schema.n_features_in_
        metric.feature_names_in_ = schema.feature_names_in_
    return X, kernel


def points_like_fitted(metric: Any, X: Any) -> Any:
    """Other points, which must be like those of the fit."""
    schema = getattr(metric, "schema_", None)
    if schema is not None:
        return there(schema.transform(X))
    return check_points(metric, X, reset=False, accept_sparse=metric.kernel_.accepts_sparse)
