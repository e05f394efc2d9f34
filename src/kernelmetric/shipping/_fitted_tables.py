"""What a fit leaves of tables: the schema of their columns, their gaps, and trees on features."""

from __future__ import annotations

import numpy as np

from kernelmetric.prediction._features import FeatureScores
from kernelmetric.shipping._attributes import Attributes, are_texts
from kernelmetric.tables._frames import NAMES, QUANTITIES, TEXT


def check_trees(forest: Attributes) -> None:
    """Nodes lead forward, so that every row ends in a leaf; and features are there."""
    for name in vars(FeatureScores)["__dataclass_fields__"]:
        forest.require(forest.get(name) is not None, name, "an array")
    nodes, scale = forest.get("nodes"), forest.get("location")[1]
    m, d = len(nodes), len(scale)
    ahead = np.where(nodes[:, :1] > 0, nodes[:, :2] > np.arange(m)[:, None], True)
    good = bool(np.all(ahead) and np.all(nodes[:, :2] < m) and np.all(nodes[:, 2] < d))
    forest.require(good, "nodes", f"nodes of trees on {d} features")
    forest.require(bool(np.all(scale > 0)), "location", "positive scales")


def check_missing(encoder: Attributes) -> None:
    words = encoder.get("missing") or {}
    good = are_texts(list(words)) and all(map(are_texts, words.values()))
    encoder.require(good, "missing", "words for what is missing, by column")


def check_schema(schema: Attributes) -> None:
    """A kind and names for every column, and features that follow from them."""
    d, kinds = schema.get("n_features_in_"), schema.get("kinds_")
    if d is None:
        return
    schema.check("centres_", "finite d")
    schema.check("scales_", "scale d")
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
