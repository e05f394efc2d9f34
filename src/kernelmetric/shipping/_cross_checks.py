"""What a table of shapes cannot say: attributes of a fitted estimator that must agree.

Indices stay below what they number, lists are as long as what they go along, and the parts of a
metric take what the part before them gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from kernelmetric.compute import is_sparse
from kernelmetric.evaluation import PairVerifier
from kernelmetric.graphs import IndexTuples, Pairs
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.shipping._attributes import Attributes, are_texts, is_count
from kernelmetric.shipping._linkage_checks import LINKAGE_CHECKS
from kernelmetric.spaces import Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.tables._frames import NAMES, QUANTITIES
from kernelmetric.transductive import TransductiveDistance

# --- scikit-learn's -----------------------------------------------------------------------------


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
    if not isinstance(encoder.value, OneHotEncoder):
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


def _check_numbers_of_neighbors(neighbors: Attributes) -> None:
    y = neighbors.get("_y")
    if y is not None and "n" in neighbors.sides:
        kind = "finite n" if getattr(y, "ndim", 0) == 1 else "finite n k"
        neighbors.array("_y", kind, np.asarray(y, dtype=np.float64))


# --- metrics ------------------------------------------------------------------------------------


def _check_anchors(space: Attributes) -> None:
    anchors, sides, landmarks = space.get("anchors_"), space.sides, space.get("n_landmarks_", 0)
    good = is_count(landmarks) and landmarks <= sides.get("n", landmarks)
    space.require(good, "n_landmarks_", "a number of its anchors")
    if anchors is None:
        return
    if is_sparse(anchors):
        space.array("anchors_", "finite *", anchors.data)
        good = anchors.shape == (sides.setdefault("n", anchors.shape[0]), sides.get("d"))
        space.require(good, "anchors_", f"a sparse matrix with {sides}")
        return
    numbered = isinstance(anchors, np.ndarray) and anchors.dtype.kind in "iu"
    space.array("anchors_", "count<d n" if numbered else "finite n d")
    kernel = space.get("kernel_")
    good = not isinstance(kernel, Kernel) or kernel.pairwise == numbered
    space.require(good, "anchors_", "points, or columns of a precomputed kernel")


def _width(space: Any) -> int | None:
    """Number of coordinates that a space gives."""
    state = vars(space)
    made = state.get("projection_", state.get("anchors_"))
    return None if made is None else made.shape[1 if "projection_" in state else 0]


def _check_map(metric: Attributes) -> None:
    """The map is one of the features, or of the coordinates of a space of its own."""
    if "k" in metric.sides:
        space = metric.get("space_")
        width = metric.sides.get("d") if space is None else _width(space)
        metric.require(metric.sides["k"] == width, "components_", f"{width} columns")


def _check_kernelized(metric: Attributes) -> None:
    if "d" in metric.sides:
        metric.require_all(["space_", "learner_", "kernel_"])
    space, learner, schema = (metric.get(name) for name in ("space_", "learner_", "schema_"))
    if space is None:
        return
    width = metric.sides.get("d")
    if schema is not None:
        metric.require(schema.n_features_in_ == width, "schema_", f"{width} columns")
        width = len(schema.groups_)
    good = getattr(space, "n_features_in_", None) == width
    metric.require(good, "space_", f"a space of {width} features")
    if learner is not None:
        good = getattr(learner, "n_features_in_", None) == _width(space)
        metric.require(good, "learner_", f"{_width(space)} features, those of its space")


def _check_search(search: Attributes) -> None:
    """A metric and what judges its coordinates, and a table with a row for each candidate."""
    if "best_estimator_" not in search.state:
        return
    search.require_all(["best_estimator_"])
    width = search.get("best_estimator_")._n_features_out
    good = getattr(search.get("estimator_"), "n_features_in_", None) == width
    search.require(good, "estimator_", f"an estimator of {width} coordinates")
    table, best = search.get("cv_results_"), search.get("best_index_")
    good = isinstance(table, dict) and isinstance(table.get("params"), list)
    search.require(good, "cv_results_", "a table of candidates")
    n = len(table["params"])
    good = all(isinstance(c, list | np.ndarray) and len(c) == n for c in table.values())
    search.require(good, "cv_results_", "a row for each candidate")
    search.require(is_count(best) and best < n, "best_index_", "the number of a candidate")


def _check_transductive(metric: Attributes) -> None:
    asked = metric.get("n_neighbors_", 1)
    metric.require(is_count(asked) and asked > 0, "n_neighbors_", "a positive integer")
    if metric.get("graph_") == "points":
        width = metric.sides.get("p")
        metric.require(metric.sides.get("r") == width, "embedding_", f"{width} columns")


def _check_verifier(verifier: Attributes) -> None:
    for name in ("threshold_", "criterion_value_"):
        if name in verifier.state:
            verifier.number(name)


def _check_predictor(model: Attributes) -> None:
    """The metric maps to the coordinates of the training points, and numbers are what fit finds."""
    if "metric_" not in model.state:
        return
    metric, n = model.get("metric_"), model.sides.get("n", 0)
    classifies = isinstance(model.value, MetricClassifier)
    own = ("_codes", "classes_") if classifies else ("targets_",)
    model.require_all(["embedding_", "coef_", "intercept_", "weights_", *own])
    model.require(hasattr(metric, "transform"), "metric_", "a metric")
    width = getattr(metric, "_n_features_out", None)
    good = width is None or model.sides.get("r") == width
    model.require(good, "embedding_", f"{width} columns, those of its metric")
    k = model.get("n_neighbors_")
    model.require(is_count(k) and 1 <= k <= n, "n_neighbors_", f"a number from 1 to {n}")
    for name in ("temperature_", "usual_distance_", "floor_", "bias_"):
        optional = name in ("floor_", "bias_") and classifies
        found = model.get(name, 1.0 if optional else None)
        good = isinstance(found, float) and np.isfinite(found)
        model.require(good and (name == "bias_" or found > 0), name, "a number that a fit leaves")


# --- tables and tuples --------------------------------------------------------------------------


def _check_table(encoder: Attributes) -> None:
    """Names of columns are texts, and so are the words for what is missing."""
    missing = encoder.get("missing")
    for name in ("numbers", "categories", "commas", "unused"):
        found = encoder.get(name)
        encoder.require(found is None or _lists_texts(found), name, "names of columns")
    good = missing is None or (
        isinstance(missing, dict)
        and are_texts(missing)
        and all(_lists_texts(words) for words in missing.values())
    )
    encoder.require(good, "missing", "words for what is missing, by column")


def _lists_texts(found: Any) -> bool:
    return isinstance(found, list | tuple) and are_texts(found)


def _check_schema(schema: Attributes) -> None:
    """A kind, a median, a spread and names for every column, and features that follow from them."""
    state, d = schema.state, schema.sides.get("d")
    if d is None:
        return
    schema.require_all(["centres_", "scales_"])
    for name in ("kinds_", "names_", "rare_", "gaps_", "notes_"):
        found = schema.get(name)
        good = isinstance(found, list) and (len(found) == d or name == "notes_")
        schema.require(good, name, f"an entry for each of {d} columns")
    good = set(state["kinds_"]) <= {"", NAMES, *QUANTITIES}
    schema.require(good, "kinds_", "kinds of columns")
    for name in ("names_", "rare_"):
        good = all(isinstance(names, list) and are_texts(names) for names in state[name])
        schema.require(good, name, "lists of texts")
    good = all(isinstance(gap, bool) for gap in state["gaps_"])
    schema.require(good, "gaps_", "true or false")
    schema.require(are_texts(state["notes_"]), "notes_", "texts")
    good = "feature_names_in_" in state and len(set(state["feature_names_in_"])) == d
    schema.require(good, "feature_names_in_", "different names")
    groups, expected = schema.get("groups_"), schema.value.groups()
    good = isinstance(groups, np.ndarray) and np.array_equal(groups, expected)
    schema.require(good, "groups_", f"{expected}")


def _check_tuples(tuples: Attributes) -> None:
    """Row numbers, which the constructor of the class looks at."""
    names = ["similar", "dissimilar"] if isinstance(tuples.value, Pairs) else ["rows"]
    for name in names:
        found = tuples.get(name)
        good = isinstance(found, np.ndarray) and found.dtype.kind == "i"
        tuples.require(good, name, "row numbers")
    type(tuples.value)(*map(tuples.get, names), tuples.get("n_samples"))


# Which checks a class is given, beside the tables of its attributes.
FURTHER: tuple[tuple[Any, Callable[[Attributes], None]], ...] = (
    ((OneHotEncoder, OrdinalEncoder), _check_encoder),
    (MissingIndicator, _check_indicator),
    ((Pipeline, FeatureUnion, ColumnTransformer), _check_steps),
    (ColumnTransformer, _check_columns),
    (KNeighborsRegressor, _check_numbers_of_neighbors),
    (Space, _check_anchors),
    ((Learner, TransductiveDistance), _check_map),
    (Kernelized, _check_kernelized),
    (KernelizedCV, _check_search),
    (TransductiveDistance, _check_transductive),
    (PairVerifier, _check_verifier),
    ((MetricClassifier, MetricRegressor), _check_predictor),
    (TableEncoder, _check_table),
    (TableSchema, _check_schema),
    ((Pairs, IndexTuples), _check_tuples),
    *LINKAGE_CHECKS,
)
