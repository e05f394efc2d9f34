"""What a fit of this library leaves: arrays by kind and sides, parts by class, and what agrees.

Indices stay below what they number, lists are as long as what they go along, and the parts of a
metric take what the part before them gives. ``_sklearn_checks.py`` says how to read the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer

from kernelmetric.compute import is_sparse
from kernelmetric.evaluation import PairVerifier
from kernelmetric.graphs import IndexTuples, Pairs
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.selection import AlignedSum
from kernelmetric.shipping._attributes import Attributes, Checks, Table, are_texts, is_count
from kernelmetric.spaces import Gram, RandomFeatures, Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.tables._frames import NAMES, QUANTITIES
from kernelmetric.transductive import TransductiveDistance

ATTRIBUTES: Table = {
    Space: {
        "finite n r": "projection_",
        "finite 1 r": "offset_",
        "finite r": "eigenvalues_",
        "finite n n": "basis_gram_",
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
    },
    MetricClassifier: {
        "finite n r": "embedding_",
        "any c": "classes_",
        "count<c n": "_codes",
        "finite r c": "coef_",
        "finite c": "intercept_ biases_",
        "finite 2": "weights_",
        "finite n": "_mass",
        "count n": "_kept",
        str: "index",
    },
    MetricRegressor: {
        "finite n r": "embedding_",
        "finite n": "targets_ _mass",
        "finite r 1": "coef_",
        "finite 1": "intercept_",
        "finite 2": "weights_",
        "ascending m": "residuals_",
        "finite m": "_residual_mass",
        "count n": "_kept",
        str: "index",
    },
    Gram: {"finite n n": "matrix"},
    TableSchema: {"finite d": "centres_ rests_", "scale d": "scales_", "finite d 2": "limits_"},
    Kernelized: {Space: "space_", Kernel: "kernel_", TableSchema: "schema_"},
    KernelizedCV: {Kernelized: "best_estimator_"},
    TableEncoder: {ColumnTransformer: "columns_"},
}


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


CHECKS: Checks = (
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
)
