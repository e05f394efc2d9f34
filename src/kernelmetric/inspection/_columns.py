"""From a user's rows to the features of a metric, and from features back to columns."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import is_sparse, to_numpy
from kernelmetric.inputs import is_objects
from kernelmetric.tables import Table, TableEncoder
from kernelmetric.transductive import TransductiveDistance


@dataclass(frozen=True)
class Shares:
    """Shares of features, or of the columns of a table, by name."""

    names: tuple[str, ...]
    shares: np.ndarray

    def ranked(self) -> list[tuple[str, float]]:
        """Names and shares, the largest first.

        Returns
        -------
        list of (str, float)
            By absolute value, descending.
        """
        order = np.argsort(-np.abs(self.shares), kind="stable")
        return [(self.names[j], float(self.shares[j])) for j in order]


@dataclass(frozen=True)
class Reading:
    """A metric, its encoders, the names of the columns, and the column of every feature."""

    encoders: tuple[Any, ...]
    metric: Any
    names: tuple[str, ...]
    groups: np.ndarray

    def features(self, X: Any) -> np.ndarray:
        """Features of rows, as float64."""
        for encoder in self.encoders:
            X = encoder.transform(X)
        if is_objects(X):
            raise ValueError(
                "Got objects, but shares of features need rows of numbers: try part_shares, which "
                "leaves out parts of an object."
            )
        X = X.toarray() if is_sparse(X) else to_numpy(getattr(X, "to_numpy", lambda: X)())
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.groups):
            raise ValueError(
                f"Got rows of shape {X.shape}, but expected {len(self.groups)} features, those "
                "that the metric was fitted to."
            )
        if not np.isfinite(X).all():
            raise ValueError(
                "Got rows with NaN or infinity, but expected finite numbers: fill them, for "
                "instance with SimpleImputer in a pipeline before the metric."
            )
        return X

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Sums over the features of every column."""
        return np.bincount(self.groups, weights=values, minlength=len(self.names))


def read(metric: Any) -> Reading:
    """Encoders, columns and metric of a fitted metric, pipeline or search."""
    encoders: list[Any] = []
    core = metric
    while (inner := _inner(core)) is not None:
        before, core = inner
        encoders += before
    if isinstance(core, TransductiveDistance):
        raise ValueError(
            "Got TransductiveDistance, but expected a metric that is a function of the features: "
            "it places the points it was given, and others between them. Try Kernelized(LMNN())."
        )
    if not hasattr(core, "transform") or not hasattr(core, "fit"):
        raise ValueError(
            f"Got {core!r}, but expected a fitted metric with transform: try Kernelized(LMNN())."
        )
    check_is_fitted(core)
    if getattr(getattr(core, "kernel_", None), "pairwise", False):
        raise ValueError(
            "Got a metric of a precomputed kernel, but expected one of features: a matrix of "
            "kernel values has none that could be told. Try a kernel that is a function."
        )
    if getattr(core, "schema_", None) is not None:
        schema, core = core.schema_, _on_features(core)
        encoders.append(schema)
    names = _names(encoders[0] if encoders else core)
    groups = np.arange(len(names))
    for encoder in encoders:
        groups = groups[_sources(encoder)]
    return Reading(tuple(encoders), core, names, groups)


def feature_columns(encoder: Any) -> list[str]:
    """The column that every feature of a fitted encoder is of.

    Parameters
    ----------
    encoder : fitted transformer
        Such as :class:`~kernelmetric.tables.TableEncoder`, fitted to a table with names.

    Returns
    -------
    list of str
        A name for each feature; those of one category are the same.

    See Also
    --------
    kernelmetric.inspection.feature_importance : What the columns count.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import TableEncoder
    >>> from kernelmetric.inspection import feature_columns
    >>> frame = pd.DataFrame({"kg": [1.0, 3.0, 2.0, 5.0], "code": ["a", "b", "a", "b"]})
    >>> feature_columns(TableEncoder(["kg"], ["code"]).fit(frame))
    ['kg', 'kg', 'code', 'code', 'code']
    """
    names, sources = _names(encoder), _sources(encoder)
    return [names[j] for j in sources]


def as_row(x: Any) -> Any:
    """One row as a table of one row."""
    if hasattr(x, "to_frame"):  # a row of a data frame
        return x.to_frame().T
    if not (isinstance(x, Table) or hasattr(x, "columns")):
        x = x if hasattr(x, "ndim") else np.asarray(x)
        x = x.reshape(1, -1) if x.ndim == 1 else x
    n = len(x.frame) if isinstance(x, Table) else x.shape[0]
    if n != 1:
        raise ValueError(f"Got {n} rows, but expected one: try X[[3]] or frame.iloc[[3]].")
    return x


def _names(step: Any) -> tuple[str, ...]:
    """Names of the columns that a fitted estimator takes."""
    step = step.schema_ if isinstance(step, TableEncoder) else step
    names = getattr(step, "feature_names_in_", None)
    if names is None and not hasattr(step, "n_features_in_"):
        raise ValueError(
            f"Got {step!r}, which does not say how many features it takes, but expected an "
            "estimator with n_features_in_."
        )
    return tuple(f"x{j}" for j in range(step.n_features_in_)) if names is None else tuple(names)


def _inner(metric: Any) -> tuple[list[Any], Any] | None:
    """What a wrapper does first, and the metric within; None where there is no wrapper."""
    if isinstance(metric, Pipeline):
        steps = [step for _, step in metric.steps if step not in (None, "passthrough")]
        if len(steps) > 1 and not hasattr(steps[-1], "transform"):  # a classifier after the metric
            last = _inner(steps[-1])
            steps = steps if last is not None else steps[:-1]
        return steps[:-1], steps[-1]
    for name in ("best_estimator_", "metric_"):
        if hasattr(metric, name):
            return [], getattr(metric, name)
    return None


def _on_features(metric: Any) -> Any:
    """A metric of tables, as one of the features that its schema makes of them."""
    bare = copy(metric)
    bare.n_features_in_ = len(metric.schema_.get_feature_names_out())
    for name in ("schema_", "feature_names_in_"):
        vars(bare).pop(name, None)
    return bare


def _sources(step: Any) -> np.ndarray:
    """The input column of every output of a fitted transformer."""
    if hasattr(step, "groups_"):  # the schema of a table, which counts the columns it uses
        used = np.array([j for j, kind in enumerate(step.kinds_) if kind], dtype=np.intp)
        return used[step.groups_]
    if isinstance(step, TableEncoder):
        return _sources(step.schema_)
    if isinstance(step, Pipeline):
        found = None
        for _, part in step.steps:
            if part not in (None, "passthrough"):
                found = _sources(part) if found is None else found[_sources(part)]
        return np.arange(step.n_features_in_) if found is None else found
    if isinstance(step, ColumnTransformer):
        parts = []
        for name, transformer, _ in step.transformers_:
            columns = np.array(step._transformer_to_input_indices.get(name, []), dtype=int)
            if isinstance(transformer, str):  # what is dropped has no features
                parts.append(columns[: 0 if transformer == "drop" else None])
            elif len(columns):
                parts.append(columns[_sources(transformer)])
        return np.concatenate(parts)
    if isinstance(step, OneHotEncoder):
        return np.repeat(np.arange(step.n_features_in_), step._n_features_outs)
    alike = getattr(step, "feature_names_out", None) == "one-to-one"  # of a FunctionTransformer
    if isinstance(step, OneToOneFeatureMixin) or alike:
        return np.arange(step.n_features_in_)
    if isinstance(step, SimpleImputer) and not step.add_indicator:
        numeric = step.statistics_.dtype.kind == "f" and not step.keep_empty_features
        kept = ~np.isnan(step.statistics_) if numeric else np.ones(step.n_features_in_, bool)
        return np.flatnonzero(kept)
    raise ValueError(
        f"Got {type(step).__name__} before the metric, but expected scalers, imputers and one-hot "
        "encoders, whose features are of one column each: try the metric alone, pipeline[-1], on "
        "rows as it takes them, pipeline[:-1].transform(rows)."
    )
