"""What a table of shapes cannot say: attributes of a fitted estimator that must agree.

Indices stay below what they number, lists are as long as what they go along, and the parts of a
metric take what the part before them gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import decomposition, preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from kernelmetric.compute import is_sparse
from kernelmetric.evaluation import PairVerifier
from kernelmetric.graphs import IndexTuples, Pairs
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.shipping._linkage_checks import LINKAGE_CHECKS
from kernelmetric.shipping._require import check_array, is_count, require
from kernelmetric.spaces import Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.tables._frames import NAMES, QUANTITIES
from kernelmetric.transductive import TransductiveDistance


def _check_encoder(encoder: Any, name: str, sides: dict[str, int]) -> None:
    """Categories, and what follows from them: indices that compiled code will not look at again."""
    state = vars(encoder)
    categories = state.get("categories_")
    if categories is None:
        return
    d = sides.get("d", -1)
    good = isinstance(categories, list) and len(categories) == d
    good = good and all(isinstance(c, np.ndarray) and c.ndim == 1 for c in categories)
    require(good, encoder, "categories_", categories, f"{d} arrays of categories")
    for found in categories:
        if found.dtype.kind in "biuf":  # searched by bisection
            ordered = found[:-1] if np.isnan(found[-1:]).any() else found  # NaN comes last
            good = bool(np.all(ordered[:-1] < ordered[1:])) and not np.isnan(ordered).any()
            require(good, encoder, "categories_", found, "categories in ascending order")
    sizes = [len(found) for found in categories]
    enabled = state.get("_infrequent_enabled", False)
    require(type(enabled) is bool, encoder, "_infrequent_enabled", enabled, "true or false")
    if enabled:
        sizes = _sizes_of_groups(encoder, sizes)
    if not isinstance(encoder, preprocessing.OneHotEncoder):
        return
    dropped = state.get("_drop_idx_after_grouping")
    if dropped is not None:
        good = isinstance(dropped, np.ndarray) and dropped.shape == (d,)
        good = good and all(
            i is None or (is_count(i) and i < n) for i, n in zip(dropped, sizes, strict=True)
        )
        require(good, encoder, "_drop_idx_after_grouping", dropped, "one category of each feature")
        sizes = [n - (i is not None) for i, n in zip(dropped, sizes, strict=True)]
    made = state.get("_n_features_outs")
    good = isinstance(made, list) and all(map(is_count, made)) and made == sizes
    require(good, encoder, "_n_features_outs", made, f"{sizes}, the numbers of categories")


def _sizes_of_groups(encoder: Any, sizes: list[int]) -> list[int]:
    """Numbers of categories, when the rare ones have become one."""
    rare, mappings = (
        vars(encoder).get(name)
        for name in ("_infrequent_indices", "_default_to_infrequent_mappings")
    )
    for name, found in (
        ("_infrequent_indices", rare),
        ("_default_to_infrequent_mappings", mappings),
    ):
        good = isinstance(found, list) and len(found) == len(sizes)
        require(good, encoder, name, found, "an entry for each feature")
    grouped = []
    for n, indices, mapping in zip(sizes, rare, mappings, strict=True):
        if indices is None:
            require(mapping is None, encoder, "_default_to_infrequent_mappings", mapping, "None")
            grouped.append(n)
            continue
        good = isinstance(indices, np.ndarray) and indices.ndim == 1 and indices.dtype.kind in "iu"
        good = good and len(indices) > 0 and 0 <= indices.min() and indices.max() < n
        good = good and len(np.unique(indices)) == len(indices)
        require(good, encoder, "_infrequent_indices", indices, f"different ones below {n}")
        frequent = np.setdiff1d(np.arange(n), indices)
        expected = np.full(n, len(frequent))
        expected[frequent] = np.arange(len(frequent))
        good = isinstance(mapping, np.ndarray) and np.array_equal(mapping, expected)
        good = good and mapping.dtype.kind in "iu"
        require(good, encoder, "_default_to_infrequent_mappings", mapping, f"{expected}")
        grouped.append(len(frequent) + 1)
    return grouped


def _check_anchors(space: Any, name: str, sides: dict[str, int]) -> None:
    landmarks = vars(space).get("n_landmarks_", 0)
    good = is_count(landmarks) and landmarks <= sides.get("n", landmarks)
    require(good, space, "n_landmarks_", landmarks, "a number of its anchors")
    anchors = vars(space).get("anchors_")
    if anchors is None:
        return
    if is_sparse(anchors):
        check_array(f"{name}.anchors_", anchors.data, "finite *", {})
        good = anchors.shape == (sides.setdefault("n", anchors.shape[0]), sides.get("d"))
        require(good, space, "anchors_", f"sparse of shape {anchors.shape}", f"{sides}")
        return
    numbered = isinstance(anchors, np.ndarray) and anchors.dtype.kind in "iu"
    check_array(f"{name}.anchors_", anchors, "count n" if numbered else "finite n d", sides)
    kernel = vars(space).get("kernel_")
    good = not isinstance(kernel, Kernel) or kernel.pairwise == numbered
    require(good, space, "anchors_", anchors.dtype, "points, or columns of a precomputed kernel")
    if numbered:
        good = bool(np.all(anchors < sides.get("d", 0)))
        require(good, space, "anchors_", anchors, f"numbers of columns below {sides.get('d')}")


def _check_learner(learner: Any, name: str, sides: dict[str, int]) -> None:
    """The map is one of the features, or of the coordinates of a space of its own."""
    if "k" in sides:
        space = vars(learner).get("space_")
        width = sides.get("d") if space is None else _width(space)
        require(sides["k"] == width, learner, "components_", sides["k"], f"{width} columns")


def _check_kernelized(metric: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(metric)
    space, learner, kernel = (state.get(part) for part in ("space_", "learner_", "kernel_"))
    for part in ("space_", "learner_", "kernel_"):
        good = "d" not in sides or state.get(part) is not None
        require(good, metric, part, None, "what a fit leaves")
    if space is not None:
        require(isinstance(space, Space), metric, "space_", space, "a space")
        found, width = getattr(space, "n_features_in_", None), sides.get("d")
        schema = state.get("schema_")
        if schema is not None:
            require(isinstance(schema, TableSchema), metric, "schema_", schema, "a TableSchema")
            require(schema.n_features_in_ == width, metric, "schema_", schema, f"{width} columns")
            width = len(schema.groups_)
        require(found == width, metric, "space_", found, f"{width} features")
    if kernel is not None:
        require(isinstance(kernel, Kernel), metric, "kernel_", kernel, "a kernel")
    if space is not None and learner is not None:
        found, width = getattr(learner, "n_features_in_", None), _width(space)
        require(found == width, metric, "learner_", found, f"{width} features, those of its space")


def _check_search(search: Any, name: str, sides: dict[str, int]) -> None:
    """A metric and what judges its coordinates, and a table with a row for each candidate."""
    state = vars(search)
    if "best_estimator_" not in state:
        return
    metric, judge = state["best_estimator_"], state.get("estimator_")
    require(isinstance(metric, Kernelized), search, "best_estimator_", metric, "a Kernelized")
    width, found = metric._n_features_out, getattr(judge, "n_features_in_", None)
    require(found == width, search, "estimator_", judge, f"an estimator of {width} coordinates")
    table, best = state.get("cv_results_"), state.get("best_index_")
    good = isinstance(table, dict) and isinstance(table.get("params"), list)
    require(good, search, "cv_results_", table, "a table of candidates")
    good = all(
        isinstance(c, list | np.ndarray) and len(c) == len(table["params"]) for c in table.values()
    )
    require(good, search, "cv_results_", table, "a row for each candidate")
    good = is_count(best) and best < len(table["params"])
    require(good, search, "best_index_", best, "the number of a candidate")


def _check_neighbors(neighbors: Any, name: str, sides: dict[str, int]) -> None:
    y, n = vars(neighbors).get("_y"), sides.get("n")
    if y is None or n is None:
        return
    if isinstance(neighbors, KNeighborsClassifier):
        good = bool(np.all(y < sides.get("c", 0)))
        require(good, neighbors, "_y", y, f"numbers of {sides.get('c', 0)} classes")
    else:
        kind = "finite n" if getattr(y, "ndim", 0) == 1 else "finite n k"
        check_array(f"{name}._y", np.asarray(y, dtype=np.float64), kind, sides)


def _width(space: Any) -> int | None:
    """Number of coordinates that a space gives."""
    state = vars(space)
    made = state.get("projection_", state.get("anchors_"))
    return None if made is None else made.shape[1 if "projection_" in state else 0]


def _check_table(encoder: Any, name: str, sides: dict[str, int]) -> None:
    """Names of columns are texts, and what encodes them is what a fit leaves."""
    state = vars(encoder)
    for part in ("numbers", "categories", "commas", "unused"):
        found = state.get(part)
        good = found is None or (isinstance(found, list | tuple) and _are_texts(found))
        require(good, encoder, part, found, "names of columns")
    missing = state.get("missing")
    good = missing is None or (
        isinstance(missing, dict)
        and _are_texts(missing)
        and all(isinstance(words, list | tuple) and _are_texts(words) for words in missing.values())
    )
    require(good, encoder, "missing", missing, "words for what is missing, by column")
    columns = state.get("columns_")
    good = columns is None or isinstance(columns, ColumnTransformer)
    require(good, encoder, "columns_", columns, "a ColumnTransformer")


def _check_schema(schema: Any, name: str, sides: dict[str, int]) -> None:
    """A kind, a median, a spread and names for every column, and features that follow from them."""
    state, d = vars(schema), sides.get("d")
    if d is None:
        return
    for part in ("centres_", "scales_"):
        require(state.get(part) is not None, schema, part, None, "an array")
    for part in ("kinds_", "names_", "rare_", "gaps_", "notes_"):
        found = state.get(part)
        good = isinstance(found, list) and (len(found) == d or part == "notes_")
        require(good, schema, part, found, f"an entry for each of {d} columns")
    good = set(state["kinds_"]) <= {"", NAMES, *QUANTITIES}
    require(good, schema, "kinds_", state["kinds_"], "kinds of columns")
    for part in ("names_", "rare_"):
        good = all(isinstance(names, list) and _are_texts(names) for names in state[part])
        require(good, schema, part, state[part], "lists of texts")
    good = all(isinstance(gap, bool) for gap in state["gaps_"]) and _are_texts(state["notes_"])
    require(good, schema, "gaps_", state["gaps_"], "true or false")
    good = "feature_names_in_" in state and len(set(state["feature_names_in_"])) == d
    require(good, schema, "feature_names_in_", state.get("feature_names_in_"), "different names")
    expected = schema.groups()
    good = isinstance(state.get("groups_"), np.ndarray)
    good = good and np.array_equal(state["groups_"], expected)
    require(good, schema, "groups_", state.get("groups_"), f"{expected}")


def _are_texts(items: Any) -> bool:
    return all(isinstance(item, str) for item in items)


def _check_transductive(metric: Any, name: str, sides: dict[str, int]) -> None:
    asked = vars(metric).get("n_neighbors_", 1)
    require(is_count(asked) and asked > 0, metric, "n_neighbors_", asked, "a positive integer")
    if vars(metric).get("graph_") == "points":
        expected = f"{sides.get('p')} columns"
        require(sides.get("r") == sides.get("p"), metric, "embedding_", sides.get("r"), expected)
    codes = vars(metric).get("_codes")
    if codes is not None:
        good = bool(np.all(codes < sides.get("c", 0)))
        require(good, metric, "_codes", codes, f"numbers of {sides.get('c', 0)} classes")
    space = vars(metric).get("space_")
    if space is not None and "k" in sides:
        width = _width(space)
        require(sides["k"] == width, metric, "components_", sides["k"], f"{width} columns")


def _check_imputer(imputer: Any, name: str, sides: dict[str, int]) -> None:
    found = vars(imputer).get("indicator_")
    require(
        found is None or isinstance(found, MissingIndicator),
        imputer, "indicator_", found, "a MissingIndicator or None",
    )  # fmt: skip


def _check_indicator(indicator: Any, name: str, sides: dict[str, int]) -> None:
    found, d = vars(indicator).get("features_"), vars(indicator).get("_n_features", 0)
    require(found is not None or "d" not in sides, indicator, "features_", found, "an array")
    if found is not None:
        require(is_count(d), indicator, "_n_features", d, "a number of features")
        good = bool(np.all(found < d))
        require(good, indicator, "features_", found, f"numbers of features below {d}")


def _check_quantiles(transformer: Any, name: str, sides: dict[str, int]) -> None:
    found = vars(transformer).get("quantiles_")
    if found is not None:
        good = not np.any(np.diff(found, axis=0) < 0)
        require(good, transformer, "quantiles_", found, "each column in ascending order")


def _check_whitening(pca: Any, name: str, sides: dict[str, int]) -> None:
    found = vars(pca).get("explained_variance_")
    if found is not None:
        require(bool(np.all(found >= 0)), pca, "explained_variance_", found, "none below zero")


def _check_steps(composed: Any, name: str, sides: dict[str, int]) -> None:
    for attribute in ("steps", "transformer_list", "transformers", "transformers_"):
        if attribute not in vars(composed):
            continue
        steps = vars(composed)[attribute]
        length = 3 if attribute.startswith("transformers") else 2
        good = isinstance(steps, list) and all(
            isinstance(step, tuple | list)
            and len(step) == length
            and isinstance(step[0], str)
            and (step[1] is None or isinstance(step[1], str | BaseEstimator))
            for step in steps
        )
        require(good, composed, attribute, steps, "names with estimators")


def _check_factors(composed: Any, name: str, sides: dict[str, int]) -> None:
    found = vars(composed).get("transformer_weights")
    good = found is None or isinstance(found, dict)
    require(good, composed, "transformer_weights", found, "factors by name, or None")


def _check_columns(composed: Any, name: str, sides: dict[str, int]) -> None:
    table, d = vars(composed).get("_transformer_to_input_indices"), sides.get("d", 0)
    for _, _, columns in vars(composed).get("transformers_", ()) if d else ():
        listed = columns if isinstance(columns, list | np.ndarray) else [columns]
        good = all(-d <= i < d for i in listed if isinstance(i, int | np.integer))
        require(good, composed, "transformers_", columns, f"columns below {d}")
    if table is not None:
        good = isinstance(table, dict) and all(
            isinstance(columns, list | np.ndarray) and all(is_count(i) and i < d for i in columns)
            for columns in table.values()
        )
        require(good, composed, "_transformer_to_input_indices", table, f"columns below {d}")


def _check_pairs(pairs: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(pairs)
    for attribute in ("similar", "dissimilar"):
        found = state.get(attribute)
        good = isinstance(found, np.ndarray) and found.dtype.kind == "i"
        require(good, pairs, attribute, found, "row numbers")
    Pairs(state["similar"], state["dissimilar"], state.get("n_samples"))  # which looks at them


def _check_tuples(tuples: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(tuples)
    found = state.get("rows")
    good = isinstance(found, np.ndarray) and found.dtype.kind == "i"
    require(good, tuples, "rows", found, "row numbers")
    type(tuples)(found, state.get("n_samples"))  # which looks at them


def _check_verifier(verifier: Any, name: str, sides: dict[str, int]) -> None:
    for attribute in ("threshold_", "criterion_value_"):
        found = vars(verifier).get(attribute, 0.0)
        good = isinstance(found, float | int | np.floating) and not np.isnan(found)
        require(good, verifier, attribute, found, "a number")


def _check_predictor(model: Any, name: str, sides: dict[str, int]) -> None:
    """The metric maps to the coordinates of the training points, and numbers are what fit finds."""
    state = vars(model)
    index = state.get("index")
    require(index is None or isinstance(index, str), model, "index", index, "a text or None")
    if "metric_" not in state:
        return
    metric, n = state["metric_"], sides.get("n", 0)
    own = ("_codes", "classes_") if isinstance(model, MetricClassifier) else ("targets_",)
    for attribute in ("embedding_", "coef_", "intercept_", "weights_", *own):
        require(state.get(attribute) is not None, model, attribute, None, "an array")
    require(hasattr(metric, "transform"), model, "metric_", metric, "a metric")
    width = getattr(metric, "_n_features_out", None)
    good = width is None or sides.get("r") == width
    require(good, model, "embedding_", sides.get("r"), f"{width} columns, those of its metric")
    k = state.get("n_neighbors_")
    require(is_count(k) and 1 <= k <= n, model, "n_neighbors_", k, f"a number from 1 to {n}")
    for attribute in ("temperature_", "usual_distance_", "floor_", "bias_"):
        optional = attribute in ("floor_", "bias_") and isinstance(model, MetricClassifier)
        found = state.get(attribute, 1.0 if optional else None)
        good = isinstance(found, float) and np.isfinite(found)
        good = good and (attribute == "bias_" or found > 0)
        require(good, model, attribute, found, "a number that a fit leaves")
    codes = state.get("_codes")
    if codes is not None:
        good = bool(np.all(codes < sides.get("c", 0)))
        require(good, model, "_codes", codes, f"numbers of {sides.get('c', 0)} classes")
    residuals = state.get("residuals_")
    if residuals is not None:
        good = not np.any(np.diff(residuals) < 0)
        require(good, model, "residuals_", residuals, "ascending numbers")


# Which checks a class is given, beside the table of its attributes.
FURTHER: tuple[tuple[Any, Callable[[Any, str, dict[str, int]], None]], ...] = (
    ((preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder), _check_encoder),
    (preprocessing.QuantileTransformer, _check_quantiles),
    (decomposition.PCA, _check_whitening),
    (SimpleImputer, _check_imputer),
    (MissingIndicator, _check_indicator),
    ((Pipeline, FeatureUnion, ColumnTransformer), _check_steps),
    ((FeatureUnion, ColumnTransformer), _check_factors),
    (ColumnTransformer, _check_columns),
    (Space, _check_anchors),
    (Learner, _check_learner),
    (Kernelized, _check_kernelized),
    (KernelizedCV, _check_search),
    ((KNeighborsClassifier, KNeighborsRegressor), _check_neighbors),
    (TransductiveDistance, _check_transductive),
    (TableEncoder, _check_table),
    (TableSchema, _check_schema),
    (Pairs, _check_pairs),
    (IndexTuples, _check_tuples),
    (PairVerifier, _check_verifier),
    ((MetricClassifier, MetricRegressor), _check_predictor),
    *LINKAGE_CHECKS,
)
