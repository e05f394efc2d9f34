"""What the fit of a kernelized learner, and of a search for one, gets besides X and y."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing


def learner_arguments(
    metric: Any, space: Any, X: Any, similar: Any, dissimilar: Any, fit_params: dict[str, Any]
) -> dict[str, Any]:
    """Everything the learner's fit gets besides Z and y, refused where it has no meaning."""
    name = type(metric.learner).__name__
    signature = inspect.signature(metric.learner.fit).parameters
    arguments = dict(fit_params)
    if get_config()["enable_metadata_routing"]:
        arguments = dict(process_routing(metric, "fit", **fit_params)["learner"]["fit"])
    gram = getattr(space, "gram_", None)
    if gram is not None:
        if "gram" not in signature:
            raise ValueError(
                f"Got {type(space).__name__} with {name}, which cannot take the Gram "
                "matrix of its basis; expected an orthonormal basis: use KPCA() instead."
            )
        arguments["gram"] = gram
    if metric.neighbors == "input":
        if "neighbors" not in signature:
            raise ValueError(
                f"Got neighbors='input', but {name} looks for no neighbours: leave it out."
            )
        if space.kernel_.pairwise:
            raise ValueError(
                "Got neighbors='input' with a precomputed kernel, but expected points: there "
                "is no input space to look in."
            )
        arguments["neighbors"] = X.toarray() if hasattr(X, "toarray") else X
    given = {"similar": similar, "dissimilar": dissimilar, "pairs": arguments.get("pairs")}
    for key, pairs in given.items():
        if pairs is not None:
            if key not in signature:
                kind = "pairs" if key == "pairs" else f"{key} pairs"
                raise ValueError(f"Got {kind}, but {name} learns from labels: pass y.")
            arguments[key] = pairs
    return arguments


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


@contextmanager
def naming(arguments: dict[str, Any], learner: Any) -> Iterator[None]:
    """Say beside the learner's own words which further arguments it was given."""
    try:
        yield
    except ValueError as error:
        if not arguments:
            raise
        names = ", ".join(arguments)
        raise ValueError(f"{type(learner).__name__}.fit with {names}: {error}") from error
