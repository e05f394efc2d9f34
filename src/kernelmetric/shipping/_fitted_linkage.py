"""What a fit leaves in a linker of records: kinds and sides of attributes, and what agrees."""

from typing import Any

import numpy as np

from kernelmetric import linkage
from kernelmetric.linkage._bags import Frequencies
from kernelmetric.linkage._comparisons import KINDS
from kernelmetric.linkage._decision import Line, LinkModel, TextModel, Trees
from kernelmetric.linkage._evidence import N_LEVELS, Agreement, Doubt, MatchModel
from kernelmetric.linkage._text import WHOLE, TextEvidence
from kernelmetric.shipping._attributes import Attributes, are_texts, lead_forward
from kernelmetric.spaces import Space

LINKAGE_RULES = (linkage.EqualKeys, linkage.NearestPoints, linkage.NearestText)
LINKAGE = (
    linkage.RecordComparison, linkage.RecordLinker, Agreement, Doubt, MatchModel, TextModel, Line,
    Trees, TextEvidence, Frequencies,
)  # fmt: skip
_RULE = {"whole": "n_neighbors ngram most", "texts": "keys columns"}
LINKAGE_TABLE: dict[type, dict[Any, str]] = {
    **dict.fromkeys(LINKAGE_RULES, _RULE),
    Agreement: {f"finite f {N_LEVELS}": "weights", "real": "constant", "share": "match_share"},
    Doubt: {"finite f": "evidence alike"},
    MatchModel: {
        Agreement: "agreement",
        Doubt: "doubt",
        Space: "space",
        "finite f": "weights alike_weights",
        "finite g": "space_weights",
        "real": "constant",
        "share": "match_share",
    },
    Line: {
        "quantile q c": "knots",
        "finite c": "centre coef",
        "scale c": "scale",
        "real": "intercept",
    },
    Trees: {"count m 3": "nodes", "count<m t": "roots", "finite m": "cuts values", "real": "start"},
    TextModel: {
        Line: "line",
        Trees: "trees",
        MatchModel: "fields",
        "finite 3": "counts",
        "real": "constant",
        "share": "match_share",
        "whole": "n_fields",
        "texts": "names",
    },
    Frequencies: {"any k": "codes", "count k": "counts", "count": "n_texts"},
    TextEvidence: {dict: "scopes", "texts": "columns parted listed"},
    linkage.RecordComparison: {dict: "kinds kinds_ scales_", TextEvidence: "text_"},
    linkage.RecordLinker: {
        linkage.RecordComparison: "comparison comparison_",
        LinkModel: "model_",
        "share": "match_share_",
        "count": "n_left_ n_right_",
        "count c 2": "candidates_",
        "finite c": "probability_",
        "count k 2": "labelled_pairs_",
        "any k": "labelled_same_",
        "finite k": "labelled_probability_",
    },
}


def _check_comparison(comparison: Attributes) -> None:
    for name in ("kinds", "kinds_"):
        good = set((comparison.get(name) or {}).values()) <= set(KINDS)
        comparison.require(good, name, f"kinds of columns, of {', '.join(KINDS)}")
    kinds, scales = comparison.get("kinds_"), comparison.get("scales_", {})
    if kinds is not None:
        good = comparison.get("fields_") == list(kinds)
        comparison.require(good, "fields_", "the columns of kinds_")
        good = set(scales) == {name for name, kind in kinds.items() if kind == "number"}
        good = good and all(np.isfinite(scale) and scale > 0 for scale in scales.values())
        comparison.require(good, "scales_", "positive numbers")


def _check_linker(linker: Attributes) -> None:
    rules = linker.get("rules") or []
    good = isinstance(rules, list | tuple)
    good = good and all(isinstance(rule, LINKAGE_RULES) for rule in rules)
    linker.require(good, "rules", "rules of candidates of this library")
    if "model_" not in linker.state:
        return
    compared, model = linker.get("comparison_"), linker.get("model_")
    fields, text = getattr(compared, "fields_", ()), getattr(compared, "text_", None)
    if isinstance(model, TextModel):
        names = [f"{scope}: {said}" for scope, said in text.names] if text is not None else []
        names = [*fields, *names, *(f"{name} missing" for name in fields)]
        good = model.names == names and model.n_fields == len(fields)
        linker.require(good, "model_", "a column for each piece of evidence of comparison_")
    else:
        n_fields = len(model.weights)
        linker.require(len(fields) == n_fields, "comparison_", f"{n_fields} fields")
    left, right = linker.get("n_left_"), linker.get("n_right_")
    for pairs in ("candidates_", "labelled_pairs_"):
        beyond = linker.get(pairs) >= (left, left if right is None else right)
        linker.require(not beyond.any(), pairs, "row numbers of the tables")


def _check_evidence(evidence: Attributes) -> None:
    scopes = evidence.get("scopes")
    good = WHOLE in scopes and are_texts(list(scopes))
    for both in scopes.values():
        good = good and isinstance(both, tuple) and len(both) == 2
        good = good and all(isinstance(each, Frequencies) for each in both)
    evidence.require(good, "scopes", "two frequencies for each scope")
    for name in ("parted", "listed"):
        evidence.require(set(evidence.get(name)) <= set(scopes), name, "names of scopes")


def _check_frequencies(found: Attributes) -> None:
    codes = found.get("codes")
    evenly = codes.dtype == np.uint64 and bool(np.all(codes[1:] > codes[:-1]))
    found.require(evenly, "codes", "ascending hashes of 64 bits")


def _check_text_model(model: Attributes) -> None:
    width = len(model.get("names"))
    good = len(model.get("line").coef) == width and model.get("n_fields") <= width
    model.require(good, "line", f"{width} weights, one for each name")
    trees, fields = model.get("trees"), model.get("fields")
    good = trees is None or bool(np.all(trees.nodes[:, 2] < width))
    model.require(good, "trees", f"trees on {width} columns")
    good = fields is None or len(fields.weights) == model.get("n_fields")
    model.require(good, "fields", f"a model of {model.get('n_fields')} fields")


LINKAGE_CHECKS = (
    (linkage.RecordComparison, _check_comparison),
    (linkage.RecordLinker, _check_linker),
    (TextEvidence, _check_evidence),
    (Frequencies, _check_frequencies),
    (TextModel, _check_text_model),
    (Trees, lambda t: t.require(lead_forward(t.get("nodes")), "nodes", "nodes that lead forward")),
)
