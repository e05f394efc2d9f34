"""The picture of docs/guide/why.md: ``python benchmarks/why_picture.py`` draws it anew.

A tree's fruit depends on its weight and height together, and on the field it stands in; its age
and a fourth measurement say nothing. The picture shows what the metric made of them.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kernelmetric import NCA, Kernelized
from kernelmetric.inspection import explain_pair, feature_importance
from kernelmetric.report import plot_shares

STATIC = Path(__file__).parents[1] / "docs" / "_static"


def make_trees(n_rows=300, seed=0):
    """A table of trees, and which of two fruits each bears."""
    rng = np.random.RandomState(seed)
    trees = pd.DataFrame(
        {
            "weight": rng.standard_normal(n_rows),
            "height": rng.standard_normal(n_rows),
            "field": rng.choice(["river", "hill", "wood"], n_rows),
            "age": rng.randint(1, 60, n_rows),
            "sugar": rng.standard_normal(n_rows),
        }
    )
    pears = (trees["weight"] * trees["height"] > 0) ^ (trees["field"] == "river")
    return trees, np.where(pears, "pear", "apple")


def main():
    """Fit, explain, draw."""
    trees, fruit = make_trees()
    model = Kernelized(NCA()).fit(trees, fruit)
    new = pd.DataFrame(
        {
            "weight": [1.0, 1.0],
            "height": [0.8, 0.7],
            "field": ["river", "hill"],
            "age": [12, 40],
            "sugar": [0.3, -0.2],
        }
    )
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.7), layout="constrained")
    found = feature_importance(model, trees)
    plot_shares(found, ax=axes[0], title="what shapes the metric")
    why = explain_pair(model, new.iloc[[0]], new.iloc[[1]])
    plot_shares(why, ax=axes[1], title="what parts two trees")
    figure.savefig(STATIC / "why.png", dpi=90)


if __name__ == "__main__":
    main()
