"""What a fit of scikit-learn leaves: arrays by kind and sides, parts by class, and what agrees.

"finite r d" are finite numbers of shape (r, d), see ``_attributes.py``. The letter d is the number
of features, * any number; every other letter stands for one number in all attributes of an object.
NaN is allowed where a column without values leaves it.
"""

from __future__ import annotations

import numpy as np
from sklearn import neighbors, preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline

from kernelmetric.shipping._attributes import Attributes, Checks, Table, is_count

_DECOMPOSITION = {
    "finite r d": "components_",
    "variance r": "explained_variance_",
    "number r": "explained_variance_ratio_",
    "finite r": "singular_values_",
}
ATTRIBUTES: Table = {
    preprocessing.StandardScaler: {"number d": "mean_ var_", "scale d": "scale_"},
    preprocessing.MinMaxScaler: {
        "number d": "min_ data_min_ data_max_ data_range_",
        "scale d": "scale_",
    },
    preprocessing.MaxAbsScaler: {"number d": "max_abs_", "scale d": "scale_"},
    preprocessing.RobustScaler: {"number d": "center_", "scale d": "scale_"},
    preprocessing.PowerTransformer: {"number d": "lambdas_"},
    preprocessing.QuantileTransformer: {"finite q": "references_", "quantile q d": "quantiles_"},
    preprocessing.LabelEncoder: {"any c": "classes_"},
    PCA: {"finite d": "mean_"} | _DECOMPOSITION,
    TruncatedSVD: _DECOMPOSITION,
    LinearDiscriminantAnalysis: {
        "any c": "classes_",
        "finite d": "xbar_",
        "finite d r": "scalings_",
        "finite c d": "means_",
        "finite c": "priors_",
        "finite b d": "coef_",
        "finite b": "intercept_",
    },
    LogisticRegression: {"finite b d": "coef_", "finite b": "intercept_", "any c": "classes_"},
    neighbors.KNeighborsClassifier: {
        "finite n r": "_fit_X",
        "any c": "classes_",
        "count<c n": "_y",
    },
    neighbors.KNeighborsRegressor: {"finite n r": "_fit_X"},
    neighbors.NeighborhoodComponentsAnalysis: {"finite r d": "components_"},
    SimpleImputer: {"any d": "statistics_", MissingIndicator: "indicator_"},
    MissingIndicator: {"count m": "features_"},
    preprocessing.OneHotEncoder: {bool: "_infrequent_enabled"},
    preprocessing.OrdinalEncoder: {bool: "_infrequent_enabled"},
    FeatureUnion: {dict: "transformer_weights"},
    ColumnTransformer: {dict: "transformer_weights"},
}
# What takes any numbers.
NUMERIC = (
    preprocessing.StandardScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler,
    preprocessing.PowerTransformer,
    preprocessing.QuantileTransformer,
    PCA,
    TruncatedSVD,
    LinearDiscriminantAnalysis,
    neighbors.NeighborhoodComponentsAnalysis,
)


def _check_encoder(encoder: Attributes) -> None:
    """Categories, and what follows from them: indices that compiled code will not look at again."""
    categories, d = encoder.get("categories_"), encoder.sides.get("d", -1)
    if categories is None:
        return
    good = isinstance(categories, list) and len(categories) == d
    good = good and all(isinstance(c, np.ndarray) and c.ndim == 1 for c in categories)
    encoder.require(good, "categories_", f"{d} arrays of categories")
    for found in categories:
        if found.dtype.kind in "biuf":  # searched by bisection
            ordered = found[:-1] if np.isnan(found[-1:]).any() else found  # NaN comes last
            good = not np.isnan(ordered).any() and bool(np.all(ordered[:-1] < ordered[1:]))
            encoder.require(good, "categories_", "categories in ascending order")
    sizes = [len(found) for found in categories]
    if encoder.get("_infrequent_enabled"):
        sizes = _sizes_of_groups(encoder, sizes)
    if not isinstance(encoder.value, preprocessing.OneHotEncoder):
        return
    dropped = encoder.get("_drop_idx_after_grouping")
    if dropped is not None:
        good = isinstance(dropped, np.ndarray) and dropped.shape == (d,)
        good = good and all(
            i is None or (is_count(i) and i < n) for i, n in zip(dropped, sizes, strict=True)
        )
        encoder.require(good, "_drop_idx_after_grouping", "one category of each feature")
        sizes = [n - (i is not None) for i, n in zip(dropped, sizes, strict=True)]
    made = encoder.get("_n_features_outs")
    good = isinstance(made, list) and all(map(is_count, made)) and made == sizes
    encoder.require(good, "_n_features_outs", f"{sizes}, the numbers of categories")


def _sizes_of_groups(encoder: Attributes, sizes: list[int]) -> list[int]:
    """Numbers of categories, when the rare ones have become one."""
    rare, mapped = "_infrequent_indices", "_default_to_infrequent_mappings"
    for name in (rare, mapped):
        good = isinstance(encoder.get(name), list) and len(encoder.get(name)) == len(sizes)
        encoder.require(good, name, "an entry for each feature")
    grouped = []
    for n, indices, mapping in zip(sizes, encoder.get(rare), encoder.get(mapped), strict=True):
        if indices is None:
            encoder.require(mapping is None, mapped, "None without rare categories")
            grouped.append(n)
            continue
        good = isinstance(indices, np.ndarray) and indices.ndim == 1 and indices.dtype.kind in "iu"
        good = good and len(indices) > 0 and 0 <= indices.min() and indices.max() < n
        good = good and len(np.unique(indices)) == len(indices)
        encoder.require(good, rare, f"different ones below {n}")
        frequent = np.setdiff1d(np.arange(n), indices)
        expected = np.full(n, len(frequent))
        expected[frequent] = np.arange(len(frequent))
        good = isinstance(mapping, np.ndarray) and mapping.dtype.kind in "iu"
        encoder.require(good and np.array_equal(mapping, expected), mapped, f"{expected}")
        grouped.append(len(frequent) + 1)
    return grouped


def _check_indicator(indicator: Attributes) -> None:
    if "d" in indicator.sides:
        indicator.require_all(["features_"])
    found, d = indicator.get("features_"), indicator.get("_n_features", 0)
    if found is not None:
        indicator.require(is_count(d), "_n_features", "a number of features")
        indicator.require(np.all(found < d), "features_", f"numbers of features below {d}")


def _check_steps(composed: Attributes) -> None:
    for name in ("steps", "transformer_list", "transformers", "transformers_"):
        if name not in composed.state:
            continue
        steps, length = composed.get(name), 3 if name.startswith("transformers") else 2
        good = isinstance(steps, list) and all(
            isinstance(step, tuple | list)
            and len(step) == length
            and isinstance(step[0], str)
            and (step[1] is None or isinstance(step[1], str | BaseEstimator))
            for step in steps
        )
        composed.require(good, name, "names with estimators")


def _check_columns(composed: Attributes) -> None:
    table, d = composed.get("_transformer_to_input_indices"), composed.sides.get("d", 0)
    for _, _, columns in composed.get("transformers_", ()) if d else ():
        listed = columns if isinstance(columns, list | np.ndarray) else [columns]
        good = all(-d <= i < d for i in listed if isinstance(i, int | np.integer))
        composed.require(good, "transformers_", f"columns below {d}")
    good = table is None or (
        isinstance(table, dict)
        and all(
            isinstance(columns, list | np.ndarray) and all(is_count(i) and i < d for i in columns)
            for columns in table.values()
        )
    )
    composed.require(good, "_transformer_to_input_indices", f"columns below {d}")


def _check_targets(regressor: Attributes) -> None:
    y = regressor.get("_y")
    if y is not None and "n" in regressor.sides:
        kind = "finite n" if getattr(y, "ndim", 0) == 1 else "finite n k"
        regressor.array("_y", kind, np.asarray(y, dtype=np.float64))


CHECKS: Checks = (
    ((preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder), _check_encoder),
    (MissingIndicator, _check_indicator),
    ((Pipeline, FeatureUnion, ColumnTransformer), _check_steps),
    (ColumnTransformer, _check_columns),
    (neighbors.KNeighborsRegressor, _check_targets),
)
