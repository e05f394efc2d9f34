"""What the fit of a kernelized learner, and of a search for one, gets besides X and y."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics._scorer import _PassthroughScorer
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from kernelmetric import inputs
from kernelmetric.compute import take_rows
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs._weights import refuse_partial_gram
from kernelmetric.learners import Learner
from kernelmetric.learners._checks import some_rows, weights_of_classes
from kernelmetric.selection._ridge_solution import LEAST_OF_CLASS

_LISTED = ("similar", "dissimilar")  # row numbers of pairs
_COMPARED = "does not learn from them: try LSML, SCML, LMNN or IdealizedKernel."
_NOT_TAKEN = {  # what to say where a learner's fit does not take it
    "gram": "Got {space} with {learner}, which cannot take the Gram matrix of its basis; expected "
    "an orthonormal basis: use KPCA() instead.",
    "neighbors": "Got neighbors, but {learner} looks for no neighbours: leave it out.",
    "pairs": "Got pairs, but {learner} learns from labels: pass y.",
    "similar": "Got similar pairs, but {learner} learns from labels: pass y.",
    "dissimilar": "Got dissimilar pairs, but {learner} learns from labels: pass y.",
    "triplets": "Got triplets, but {learner} " + _COMPARED,
    "quadruplets": "Got quadruplets, but {learner} " + _COMPARED,
}


def learner_arguments(metric: Any, space: Any, X: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Everything the learner's fit gets besides Z and y, refused where it has no meaning."""
    name = type(metric.learner).__name__
    known = signature(metric.learner.fit).parameters
    listed = {key: given[key] for key in _LISTED if given.get(key) is not None}
    arguments = {key: value for key, value in given.items() if key not in _LISTED}
    if get_config()["enable_metadata_routing"]:
        arguments = dict(process_routing(metric, "fit", **arguments)["learner"]["fit"])
    arguments |= listed
    if getattr(space, "gram_", None) is not None:
        arguments["gram"] = space.gram_
    if metric.neighbors == "input":
        arguments["neighbors"] = X.toarray() if hasattr(X, "toarray") else X
    for key, refusal in _NOT_TAKEN.items():
        if arguments.get(key) is not None and key not in known:
            raise ValueError(refusal.format(learner=name, space=type(space).__name__))
    if metric.neighbors == "input" and (space.kernel_.pairwise or inputs.is_objects(X)):
        raise ValueError(
            "Got neighbors='input' with objects or a precomputed kernel, but expected rows of "
            "numbers: there is no input space to look in."
        )
    return arguments


def boundary_part(
    learner: Any, space: Any, Z: Any, y: Any, arguments: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """What a learner is fitted on: all rows, or those of them that suffice."""
    if set(arguments) - {"sample_weight"}:
        return Z, y, arguments
    # Margins are those of the rows between classes; few coordinates need some thousand rows.
    rows = getattr(space, "boundary_rows", None)
    suffices = getattr(learner, "_boundary_suffices", None)
    if rows is None or suffices is None or not suffices(LEAST_OF_CLASS):
        enough = getattr(learner, "_enough_rows", None)
        if enough is None or not getattr(space, "knows_labels", False) or Z.shape[0] <= enough:
            return Z, y, arguments
        rows = coded_targets(y, Z).sample_of_all(enough, LEAST_OF_CLASS)
    weights = arguments.get("sample_weight")
    part = {} if weights is None else {"sample_weight": inputs.rows_of(np.asarray(weights), rows)}
    return take_rows(Z, rows), inputs.rows_of(y, rows), part


def weighted_rows(
    learner: Any, kernel: Any, X: Any, y: Any, given: dict[str, Any]
) -> tuple[Any, Any, inputs.Weights | None, dict[str, Any]]:
    """The rows that have weight, their weights, and what else the fit was given of these rows."""
    given = {k: part for k, part in given.items() if k != "sample_weight" or part is not None}
    sample_weight = given.get("sample_weight")
    ours = isinstance(learner, Learner)
    class_weight = vars(learner).get("class_weight") if ours else None
    if sample_weight is None and class_weight is None:
        return X, y, None, given
    if sample_weight is not None and not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"Got sample_weight, but {type(learner).__name__}.fit takes none: expected a learner "
            "that does, or all rows to count alike."
        )
    inputs.refuse_streams(X)
    rows, weights = inputs.rows_and_weights(sample_weight, X)
    if ours:
        weights = weights_of_classes(learner, X, y, rows, weights)
    if weights is None and (ours or rows is None):  # all rows that have weight have weight one
        given.pop("sample_weight", None)
    if rows is None:
        return X, y, weights, given
    refuse_partial_gram(rows, kernel.pairwise)
    kept = {**given, **some_rows({**given, "X": X, "y": y}, X, y, rows)}
    if "sample_weight" in kept:
        kept["sample_weight"] = inputs.check_weights(sample_weight, _num_samples(X))[rows]
    return kept.pop("X"), kept.pop("y"), weights, kept


def refuse_zeros(sample_weight: Any, n: int) -> None:
    """Refuse weights of zero where every row must have an answer."""
    if sample_weight is not None and not np.all(inputs.check_weights(sample_weight, n) > 0):
        raise ValueError(
            "Got sample_weight of zero, but expected some for every row, as each gets an answer: "
            "leave these rows out, or call fit."
        )


def search_arguments(search: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the learner's fit gets in every fold of a search, and what the splitter gets."""
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(search, "fit", **params)
        return dict(routed["learner"]["fit"]), dict(routed["splitter"]["split"])
    for name in ("similar", "dissimilar"):
        if params.get(name) is not None:
            raise ValueError(
                f"Got {name} pairs, but expected labels: the row numbers of pairs mean nothing in "
                "a fold."
            )
    return {k: v for k, v in params.items() if k != "groups"}, {"groups": params.get("groups")}


def counted_rows(
    search: Any, judge: Any, X: Any, y: Any, scorer: Any, sample_weight: Any
) -> np.ndarray | None:
    """The rows of a search that have weight; None for all; refused where nobody judges by it."""
    if sample_weight is None:
        return None
    passes_on = isinstance(scorer, _PassthroughScorer)
    judges = signature(judge.score if passes_on else scorer).parameters.values()
    if not any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in judges):
        raise ValueError(
            f"Got sample_weight, but {judge if passes_on else scorer!r} scores without: "
            "expected a score that takes sample_weight, such as scoring='accuracy'."
        )
    rows = np.flatnonzero(inputs.check_weights(sample_weight, _num_samples(X)) > 0)
    if len(rows) == _num_samples(X):
        return None
    if get_tags(search).input_tags.pairwise or not (
        isinstance(search.cv, Integral | None)
        or (hasattr(search.cv, "split") and not isinstance(search.cv, PredefinedSplit))
    ):
        raise ValueError(
            "Got sample_weight of zero with a precomputed kernel, or with folds that are row "
            "numbers, but expected some for every row: leave these rows out."
        )
    if isinstance(search.learner, Learner):
        weights_of_classes(search.learner, X, y, rows, None)
    return rows


@contextmanager
def naming(arguments: dict[str, Any], learner: Any) -> Iterator[None]:
    """Say beside the learner's own words which further arguments it was given."""
    try:
        with inputs.silent_about_far_cells():  # the kernel has seen the cells
            yield
    except ValueError as error:
        if not arguments:
            raise
        names = ", ".join(arguments)
        raise ValueError(f"{type(learner).__name__}.fit with {names}: {error}") from error
