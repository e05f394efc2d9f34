"""Attributes of a linker of records that must agree, before a file gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmetric.linkage import (
    EqualKeys,
    NearestPoints,
    NearestText,
    RecordComparison,
    RecordLinker,
    SortedNeighborhood,
)
from kernelmetric.linkage._comparisons import KINDS
from kernelmetric.linkage._evidence import N_LEVELS, Agreement, Doubt, MatchModel
from kernelmetric.shipping._require import check_array, is_count, require
from kernelmetric.spaces import Space

RULES = (EqualKeys, NearestPoints, NearestText, SortedNeighborhood)
LINKAGE = (*RULES, RecordComparison, RecordLinker, Agreement, Doubt, MatchModel)


def _number(value: Any, attribute: str, low: float = -np.inf, high: float = np.inf) -> None:
    found = vars(value).get(attribute)
    good = isinstance(found, float | int | np.floating) and low <= found <= high
    require(bool(good and np.isfinite(found)), value, attribute, found, f"from {low} to {high}")


def _check_rule(rule: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(rule)
    for attribute in ("n_neighbors", "window", "ngram", "most"):
        found = state.get(attribute, 1)
        require(is_count(found) and found > 0, rule, attribute, found, "a number from 1 on")
    keys = state.get("keys", state.get("columns"))
    good = keys is None or all(isinstance(key, str) for key in keys)
    require(good, rule, "keys", keys, "names of columns: a function is code")


def _check_comparison(comparison: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(comparison)
    for attribute in ("kinds", "kinds_"):
        kinds = state.get(attribute)
        good = kinds is None or (
            isinstance(kinds, dict) and all(kind in KINDS for kind in kinds.values())
        )
        require(good, comparison, attribute, kinds, f"kinds of columns, of {', '.join(KINDS)}")
    kinds = state.get("kinds_")
    if kinds is not None:
        fields, scales = state.get("fields_"), state.get("scales_")
        require(fields == list(kinds), comparison, "fields_", fields, "the columns of kinds_")
        numbers = {name for name, kind in kinds.items() if kind == "number"}
        good = isinstance(scales, dict) and set(scales) == numbers
        good = good and all(np.isfinite(scale) and scale > 0 for scale in scales.values())
        require(good, comparison, "scales_", scales, "positive numbers")


def _check_agreement(found: Any, name: str, sides: dict[str, int]) -> None:
    check_array(f"{name}.weights", vars(found).get("weights"), f"finite f {N_LEVELS}", sides)
    _number(found, "constant")
    _number(found, "match_share", 0, 1)


def _check_doubt(found: Any, name: str, sides: dict[str, int]) -> None:
    for attribute in ("evidence", "alike"):
        check_array(f"{name}.{attribute}", vars(found).get(attribute), "finite f", sides)


def _check_model(model: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(model)
    for attribute, kind in (("agreement", Agreement), ("doubt", Doubt)):
        part = state.get(attribute)
        require(isinstance(part, kind), model, attribute, part, f"of class {kind.__name__}")
    sides["f"] = len(state["agreement"].weights)
    for attribute in ("weights", "alike_weights"):
        check_array(f"{name}.{attribute}", state.get(attribute), "finite f", sides)
    good = len(state["doubt"].alike) == sides["f"]
    require(good, model, "doubt", len(state["doubt"].alike), f"{sides['f']} fields")
    _number(model, "constant")
    _number(model, "match_share", 0, 1)
    space = state.get("space")
    require(space is None or isinstance(space, Space), model, "space", space, "a space")
    if space is not None:
        sides["g"] = getattr(space, "_n_features_out", -1)
        check_array(f"{name}.space_weights", state.get("space_weights"), "finite g", sides)


def _check_linker(linker: Any, name: str, sides: dict[str, int]) -> None:
    state = vars(linker)
    rules = state.get("rules")
    listed = isinstance(rules, list | tuple)
    good = rules is None or (listed and all(isinstance(rule, RULES) for rule in rules))
    require(good, linker, "rules", rules, "rules of candidates of this library")
    given = state.get("comparison")
    good = given is None or isinstance(given, RecordComparison)
    require(good, linker, "comparison", given, "a RecordComparison")
    if "model_" not in state:
        return
    model, comparison = state["model_"], state.get("comparison_")
    require(isinstance(model, MatchModel), linker, "model_", model, "a MatchModel")
    good = isinstance(comparison, RecordComparison)
    good = good and "kinds_" in vars(comparison)
    good = good and len(vars(comparison).get("fields_", ())) == len(model.weights)
    require(good, linker, "comparison_", comparison, f"{len(model.weights)} fields")
    _number(linker, "match_share_", 0, 1)
    left, right = state.get("n_left_"), state.get("n_right_")
    good = is_count(left) and (right is None or is_count(right))
    require(good, linker, "n_left_", (left, right), "numbers of records")
    for pairs, along in (("candidates_", "probability_"), ("labelled_pairs_", "labelled_same_")):
        check_array(f"{name}.{pairs}", state.get(pairs), f"count {pairs} 2", sides)
        kind = "finite" if along == "probability_" else "any"
        check_array(f"{name}.{along}", state.get(along), f"{kind} {pairs}", sides)
        good = bool(np.all(state[pairs] < (left, left if right is None else right)))
        require(good, linker, pairs, state[pairs], "row numbers of the tables")
    found = state.get("labelled_probability_")
    if found is not None:
        check_array(f"{name}.labelled_probability_", found, "finite labelled_pairs_", sides)


LINKAGE_CHECKS: tuple[tuple[Any, Callable[[Any, str, dict[str, int]], None]], ...] = (
    (RULES, _check_rule),
    (RecordComparison, _check_comparison),
    (Agreement, _check_agreement),
    (Doubt, _check_doubt),
    (MatchModel, _check_model),
    (RecordLinker, _check_linker),
)
