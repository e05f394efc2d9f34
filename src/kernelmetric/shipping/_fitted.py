"""What a fit leaves, by class: kinds and sides of attributes, parts by class, and what agrees.

In the table, "finite r d" are finite numbers of shape (r, d), see ``_attributes.py``. The letter d
is the number of features, * any number; every other letter stands for one number in all attributes
of an object. NaN is allowed where a column without values leaves it. What the table cannot say,
such as indices that compiled code will not look at again, the functions below look at. Sides that
do not fit, and parts that are missing, show where the object is asked about a point
(``_checks.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline

from kernelmetric.compute import is_sparse
from kernelmetric.evaluation import PairVerifier
from kernelmetric.graphs import IndexTuples, Pairs
from kernelmetric.inputs import is_objects
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.prediction._features import N_SCORES, FeatureScores
from kernelmetric.retrieval import PLDA, Adapter, Drift
from kernelmetric.selection import AlignedSum
from kernelmetric.shipping._attributes import (
    Attributes,
    check_missing,
    check_schema,
    check_trees,
    is_count,
)
from kernelmetric.shipping._fitted_linkage import LINKAGE_CHECKS, LINKAGE_TABLE
from kernelmetric.spaces import Gram, RandomFeatures, Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.tables._mixed import width_of
from kernelmetric.transductive import TransductiveDistance

_DECOMPOSITION = {
    "finite r d": "components_",
    "variance r": "explained_variance_",
    "number r": "explained_variance_ratio_",
    "finite r": "singular_values_",
}
_PREDICTOR: dict[Any, str] = {
    "finite n r": "embedding_",
    "finite f": "weights_",
    FeatureScores: "_features",
    "finite n": "_mass",
    "count n": "_kept",
    "whole": "n_neighbors_",
    "positive": "temperature_ usual_distance_ floor_",
}
# What attributes must be like where an object has them, by its class and those it derives from.
TABLE: dict[type, dict[Any, str]] = {
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
    preprocessing.OneHotEncoder: {bool: "_infrequent_enabled"},
    preprocessing.OrdinalEncoder: {bool: "_infrequent_enabled"},
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
    KNeighborsClassifier: {"finite n r": "_fit_X", "any c": "classes_", "count<c n": "_y"},
    NeighborhoodComponentsAnalysis: {"finite r d": "components_"},
    SimpleImputer: {"any d": "statistics_", MissingIndicator: "indicator_"},
    MissingIndicator: {"count m": "features_", "count": "_n_features"},
    FeatureUnion: {dict: "transformer_weights"},
    ColumnTransformer: {dict: "transformer_weights"},
    Space: {
        "finite n r": "projection_",
        "finite 1 r": "offset_",
        "finite r": "eigenvalues_",
        "finite n n": "basis_gram_",
        "count": "n_landmarks_",
    },
    RandomFeatures: {
        "finite d p": "frequencies_",
        "finite 1 p": "amplitudes_",
        "finite 2 d": "_location",
    },
    Learner: {
        "finite r k": "components_",
        "finite 2 d": "_location",
        "sign r": "signature_",
        "number *": "eigenvalues_",
        "finite p": "alpha_ upper_",
        "finite *": "slacks_",
        "code *": "chunks_",
    },
    AlignedSum: {"finite m m": "S_", "finite m": "b_ weights_", "number m": "base_alignments_"},
    TransductiveDistance: {
        "finite n r": "embedding_",
        "finite r": "eigenvalues_",
        "number r": "label_mass_",
        "finite r k": "components_",
        "finite n p": "_points",
        "any c": "classes_",
        "code<c n": "_codes",
        "any n": "transduction_",
        "whole": "n_neighbors_",
    },
    MetricClassifier: _PREDICTOR
    | {
        "any c": "classes_",
        "count<c n": "_codes",
        "finite r c": "coef_",
        "finite c": "intercept_ biases_",
    },
    MetricRegressor: _PREDICTOR
    | {
        "finite n": "targets_ _mass",
        "finite r 1": "coef_",
        "finite 1": "intercept_",
        "ascending m": "residuals_",
        "finite m": "_residual_mass",
        "real": "bias_",
    },
    FeatureScores: {
        "finite q p": "coef",
        "finite p": "intercept",
        "finite 2 q": "location",
        "count m 3": "nodes",
        "count<m t": "roots",
        "finite m": "cuts",
        "finite m p": "votes",
    },
    Adapter: {
        "finite r d": "components_ document_components_",
        "finite 3 n": "_before _after",
        "count n": "_judged",
        bool: "adapted_ _plain_queries _plain_documents",
        dict: "recipe_ candidates_",
    },
    Drift: {
        "finite r d": "components_",
        "finite r": "intercept_",
        "finite m 3": "_recalls",
        dict: "recipe_ candidates_",
    },
    PLDA: {
        "finite r d": "components_",
        "finite d": "mean_",
        "variance r": "spread_",
        "real": "shrinkage_ log_likelihood_",
        "count": "n_iter_",
    },
    PairVerifier: {"real": "threshold_ criterion_value_"},
    Gram: {"finite n n": "matrix"},
    TableSchema: {
        "finite d": "centres_ rests_",
        "scale d": "scales_",
        "finite d 2": "limits_",
        "texts": "kinds_ notes_",
        list: "names_ rare_ gaps_ cycles_",
        dict: "letters_",
    },
    Kernelized: {Space: "space_", Kernel: "kernel_", TableSchema: "schema_"},
    KernelizedCV: {Kernelized: "best_estimator_", dict: "cv_results_", "count": "best_index_"},
    TableEncoder: {
        ColumnTransformer: "columns_",
        TableSchema: "schema_",
        "texts": "numbers categories commas texts unused",
        dict: "missing marks units dates spellings",
    },
    **LINKAGE_TABLE,
}


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
            good = np.array_equal(found, np.unique(found), equal_nan=True)
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


def _check_steps(composed: Attributes) -> None:
    for name in ("steps", "transformer_list", "transformers", "transformers_"):
        steps, length = composed.get(name, []), 3 if name.startswith("transformers") else 2
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


def _check_anchors(space: Attributes) -> None:
    anchors, d = space.get("anchors_"), space.sides.get("d")
    if is_objects(anchors):
        n = len(anchors)
        good = space.sides.setdefault("n", n) == n and anchors.shape[1] == d
        space.require(good, "anchors_", "as many objects as there are rows of the projection")
        space.get("kernel_").points(anchors)  # refuses what it does not read
    elif is_sparse(anchors):
        space.array("anchors_", "finite *", anchors.data)
        space.require(anchors.shape[1] == d, "anchors_", f"points of {d} features")
    elif anchors is not None:
        pairwise = getattr(space.get("kernel_"), "pairwise", False)
        space.array("anchors_", "count<d n" if pairwise else "finite n d")


def _check_space(metric: Attributes) -> None:
    space, schema = metric.get("space_"), metric.get("schema_")
    if space is not None:
        width = metric.sides.get("d") if schema is None else width_of(schema)
        good = getattr(space, "n_features_in_", None) == width
        metric.require(good, "space_", f"a space of {width} features")


def _check_search(search: Attributes) -> None:
    candidates = search.get("cv_results_", {}).get("params", ())
    good = search.get("best_index_", -1) < len(candidates)
    search.require(good, "best_index_", "the number of a candidate")


def _check_predictor(model: Attributes) -> None:
    """The metric maps to the coordinates of the training points, of which neighbours are some."""
    metric, sides = model.get("metric_"), model.sides
    if "metric_" not in model.state:
        return
    model.require(hasattr(metric, "transform"), "metric_", "a metric")
    width = getattr(metric, "_n_features_out", None)
    good = width is None or sides.get("r") == width
    model.require(good, "embedding_", f"{width} columns, those of its metric")
    good = model.get("n_neighbors_", 1) <= sides.get("n", 0)
    model.require(good, "n_neighbors_", "no more than the training points")
    features = model.get("_features")
    n_weights = 2 if features is None else 2 + N_SCORES
    model.require(sides.get("f", n_weights) == n_weights, "weights_", f"{n_weights} numbers")
    if features is not None:
        width = sides.get("c", 1)
        model.require(features.coef.shape[1] == width, "_features", f"scores for {width} columns")


def _check_tuples(tuples: Attributes) -> None:
    """Row numbers, which the constructor of the class looks at."""
    names = ["similar", "dissimilar"] if isinstance(tuples.value, Pairs) else ["rows"]
    for name in names:
        found = tuples.get(name)
        good = isinstance(found, np.ndarray) and found.dtype.kind == "i"
        tuples.require(good, name, "row numbers")
    type(tuples.value)(*map(tuples.get, names), tuples.get("n_samples"))


# Which functions look at the attributes of which classes besides.
CHECKS: tuple[tuple[Any, Callable[[Attributes], None]], ...] = (
    ((preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder), _check_encoder),
    ((Pipeline, FeatureUnion, ColumnTransformer), _check_steps),
    (ColumnTransformer, _check_columns),
    (Space, _check_anchors),
    (Kernelized, _check_space),
    (KernelizedCV, _check_search),
    ((MetricClassifier, MetricRegressor), _check_predictor),
    (FeatureScores, check_trees),
    (TableEncoder, check_missing),
    (TableSchema, check_schema),
    ((Pairs, IndexTuples), _check_tuples),
    *LINKAGE_CHECKS,
)
