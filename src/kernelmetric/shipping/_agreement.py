"""What the table of ``_fitted.py`` cannot say of attributes: parts, and indices that agree.

Compiled code will not look at such indices again. Each function looks at one object, whose own
parts were looked at before.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from kernelmetric.graphs import IndexTuples, Pairs
from kernelmetric.inputs import is_objects
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.prediction._features import FeatureScores
from kernelmetric.shipping._attributes import Attributes, are_texts, is_count, lead_forward
from kernelmetric.shipping._fitted_linkage import LINKAGE_CHECKS
from kernelmetric.spaces import Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.tables._frames import NAMES, QUANTITIES, TEXT, width_of


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
        good = isinstance(steps, list)
        for step in steps if good else ():
            good = good and isinstance(step, tuple | list) and len(step) == length
            good = good and isinstance(step[0], str)
            good = good and isinstance(step[1], str | BaseEstimator | None)
        composed.require(good, name, "names with estimators")


def _check_columns(composed: Attributes) -> None:
    table, d = composed.get("_transformer_to_input_indices"), composed.sides.get("d", 0)
    for name in ("transformers_", "sparse_output_") if d else ():
        composed.require(name in composed.state, name, "what a fit leaves")
    for _, _, columns in composed.get("transformers_", ()) if d else ():
        listed = columns if isinstance(columns, list | np.ndarray) else [columns]
        good = all(-d <= i < d for i in listed if isinstance(i, int | np.integer))
        composed.require(good, "transformers_", f"columns below {d}")
    good = table is None or isinstance(table, dict)
    for columns in table.values() if isinstance(table, dict) else ():
        good = good and isinstance(columns, list | np.ndarray)
        good = good and all(is_count(i) and i < d for i in columns)
    composed.require(good, "_transformer_to_input_indices", f"columns below {d}")


def _check_anchors(space: Attributes) -> None:
    anchors, d = space.get("anchors_"), space.sides.get("d")
    if is_objects(anchors):
        n = len(anchors)
        good = space.sides.setdefault("n", n) == n and anchors.shape[1] == d
        space.require(good, "anchors_", "as many objects as there are rows of the projection")
        space.get("kernel_").points(anchors)  # refuses what it does not read
    elif anchors is not None:
        pairwise = getattr(space.get("kernel_"), "pairwise", False)
        space.array("anchors_", "count<d n" if pairwise else "points n d")
    n_rows = space.sides.get("n")
    good = space.get("n_landmarks_", 0) in (0, n_rows)
    space.require(good, "n_landmarks_", f"all {n_rows} anchors, or none of them")


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
    for name in ("n_neighbors_", "_feature_neighbors"):
        good = (model.get(name) or 1) <= sides.get("n", 0)
        model.require(good, name, "no more than the training points")
    features = model.get("_features")
    n_weights = 2 if features is None else 5
    model.require(sides.get("f", n_weights) == n_weights, "weights_", f"{n_weights} numbers")
    if features is not None:
        good = sides.get("q") == len(features.coef)
        model.require(good, "_points", f"{len(features.coef)} columns")
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


def _check_trees(forest: Attributes) -> None:
    """Nodes lead forward, so that every row ends in a leaf; and features are there."""
    for name in vars(FeatureScores)["__dataclass_fields__"]:
        forest.require(forest.get(name) is not None, name, "an array")
    nodes, scale = forest.get("nodes"), forest.get("location")[1]
    good = lead_forward(nodes) and bool(np.all(nodes[:, 2] < len(scale)))
    forest.require(good, "nodes", f"nodes of trees on {len(scale)} features")
    forest.require(bool(np.all(scale > 0)), "location", "positive scales")


def _check_missing(encoder: Attributes) -> None:
    encoder.require("columns_" not in encoder.state, "columns_", "a schema_ in its place")
    words = encoder.get("missing") or {}
    good = are_texts(list(words)) and all(map(are_texts, words.values()))
    encoder.require(good, "missing", "words for what is missing, by column")


def _check_schema(schema: Attributes) -> None:
    """A kind and names for every column, and features that follow from them."""
    d, kinds = schema.get("n_features_in_"), schema.get("kinds_")
    if d is None:
        return
    for name in ("centres_", "rests_", "scales_", "limits_", "cycles_"):
        schema.require(schema.get(name) is not None, name, "what a fit leaves")
    good = kinds is not None and len(kinds) == d and set(kinds) <= {"", NAMES, TEXT, *QUANTITIES}
    schema.require(good, "kinds_", "kinds of columns")
    for name in ("names_", "rare_", "gaps_"):
        found, flags = schema.get(name, []), name == "gaps_"
        good = len(found) == d
        good = good and all(isinstance(f, bool) if flags else are_texts(f) for f in found)
        schema.require(good, name, f"an entry for each of {d} columns")
    good = len(set(schema.get("feature_names_in_", ()))) == d
    schema.require(good, "feature_names_in_", "different names")
    groups, expected = schema.get("groups_"), schema.value.groups()
    good = isinstance(groups, np.ndarray) and np.array_equal(groups, expected)
    schema.require(good, "groups_", f"{expected}")


# Which functions look at the attributes of which classes besides.
CHECKS: tuple[tuple[Any, Callable[[Attributes], None]], ...] = (
    ((preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder), _check_encoder),
    ((Pipeline, FeatureUnion, ColumnTransformer), _check_steps),
    (ColumnTransformer, _check_columns),
    (Space, _check_anchors),
    (Kernelized, _check_space),
    (KernelizedCV, _check_search),
    ((MetricClassifier, MetricRegressor), _check_predictor),
    (FeatureScores, _check_trees),
    (TableEncoder, _check_missing),
    (TableSchema, _check_schema),
    ((Pairs, IndexTuples), _check_tuples),
    *LINKAGE_CHECKS,
)
