"""Attributes of a linker of records that must agree, before a file gives them."""

from __future__ import annotations

import numpy as np

from kernelmetric import linkage
from kernelmetric.linkage._comparisons import KINDS
from kernelmetric.linkage._evidence import N_LEVELS, Agreement, Doubt, MatchModel
from kernelmetric.shipping._attributes import Attributes, Checks, Table, are_texts, is_count
from kernelmetric.spaces import Space

RULES = (linkage.EqualKeys, linkage.NearestPoints, linkage.NearestText, linkage.SortedNeighborhood)
LINKAGE = (*RULES, linkage.RecordComparison, linkage.RecordLinker, Agreement, Doubt, MatchModel)
ATTRIBUTES: Table = {
    MatchModel: {Agreement: "agreement", Doubt: "doubt", Space: "space"},
    linkage.RecordLinker: {
        linkage.RecordComparison: "comparison comparison_",
        MatchModel: "model_",
    },
}


def _check_rule(rule: Attributes) -> None:
    for name in ("n_neighbors", "window", "ngram", "most"):
        found = rule.get(name, 1)
        rule.require(is_count(found) and found > 0, name, "a number from 1 on")
    name = "keys" if "keys" in rule.state else "columns"
    keys = rule.get(name)
    rule.require(keys is None or are_texts(keys), name, "names of columns: a function is code")


def _check_comparison(comparison: Attributes) -> None:
    for name in ("kinds", "kinds_"):
        kinds = comparison.get(name)
        good = kinds is None or (
            isinstance(kinds, dict) and all(kind in KINDS for kind in kinds.values())
        )
        comparison.require(good, name, f"kinds of columns, of {', '.join(KINDS)}")
    kinds, scales = comparison.get("kinds_"), comparison.get("scales_")
    if kinds is not None:
        good = comparison.get("fields_") == list(kinds)
        comparison.require(good, "fields_", "the columns of kinds_")
        numbers = {name for name, kind in kinds.items() if kind == "number"}
        good = isinstance(scales, dict) and set(scales) == numbers
        good = good and all(np.isfinite(scale) and scale > 0 for scale in scales.values())
        comparison.require(good, "scales_", "positive numbers")


def _check_agreement(agreement: Attributes) -> None:
    agreement.array("weights", f"finite f {N_LEVELS}")
    agreement.number("constant")
    agreement.number("match_share", 0, 1)


def _check_doubt(doubt: Attributes) -> None:
    doubt.array("evidence", "finite f")
    doubt.array("alike", "finite f")


def _check_model(model: Attributes) -> None:
    model.require_all(["agreement", "doubt"])
    n_fields = model.sides["f"] = len(model.get("agreement").weights)
    model.array("weights", "finite f")
    model.array("alike_weights", "finite f")
    model.require(len(model.get("doubt").alike) == n_fields, "doubt", f"{n_fields} fields")
    model.number("constant")
    model.number("match_share", 0, 1)
    if model.get("space") is not None:
        model.sides["g"] = getattr(model.get("space"), "_n_features_out", -1)
        model.array("space_weights", "finite g")


def _check_linker(linker: Attributes) -> None:
    rules = linker.get("rules")
    listed = isinstance(rules, list | tuple)
    good = rules is None or (listed and all(isinstance(rule, RULES) for rule in rules))
    linker.require(good, "rules", "rules of candidates of this library")
    if "model_" not in linker.state:
        return
    linker.require_all(["model_", "comparison_"])
    compared, n_fields = vars(linker.get("comparison_")), len(linker.get("model_").weights)
    good = "kinds_" in compared and len(compared.get("fields_", ())) == n_fields
    linker.require(good, "comparison_", f"{n_fields} fields")
    linker.number("match_share_", 0, 1)
    left, right = linker.get("n_left_"), linker.get("n_right_")
    linker.require(is_count(left), "n_left_", "a number of records")
    linker.require(right is None or is_count(right), "n_right_", "a number of records")
    for pairs, along, kind in (
        ("candidates_", "probability_", "finite"),
        ("labelled_pairs_", "labelled_same_", "any"),
    ):
        linker.array(pairs, f"count {pairs} 2")
        linker.array(along, f"{kind} {pairs}")
        beyond = linker.get(pairs) >= (left, left if right is None else right)
        linker.require(not beyond.any(), pairs, "row numbers of the tables")
    if linker.get("labelled_probability_") is not None:
        linker.array("labelled_probability_", "finite labelled_pairs_")


CHECKS: Checks = (
    (RULES, _check_rule),
    (linkage.RecordComparison, _check_comparison),
    (Agreement, _check_agreement),
    (Doubt, _check_doubt),
    (MatchModel, _check_model),
    (linkage.RecordLinker, _check_linker),
)
