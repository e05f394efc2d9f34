"""The picture of docs/guide/transductive.md: the cliff at small λ.

``python benchmarks/transductive.py docs/_static/transductive-cliff.png``; the tables are run by
``python -m reproduction few-labels``.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelmetric import TransductiveDistance
from reproduction.transductive import LAMS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path, help="file to write")
    draw_cliff(parser.parse_args().picture)


def draw_cliff(path):
    """Accuracy and label mass over λ, of the paper's cost and of the bounded one."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:1000] / 16.0, truth[:1000]
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.0), layout="constrained")
    for cost, colour in (("paper", "tab:red"), ("robust", "tab:green")):
        rows = np.array([[_digits(X, truth, seed, cost, lam) for lam in LAMS] for seed in range(3)])
        for axis, values in zip(axes, np.moveaxis(rows.mean(axis=0), 1, 0), strict=True):
            axis.semilogx(LAMS, values, "o-", color=colour, base=2, label=cost)
    alone = np.mean([_digits(X, truth, seed, "robust", np.inf) for seed in range(3)], axis=0)
    for axis, value, title in zip(axes, alone, ("accuracy, %", "mass on labels, %"), strict=True):
        axis.axhline(value, color="gray", linestyle=":", label="no labels (LE)")
        axis.set_xlabel("λ")
        axis.set_title(title, fontsize=10)
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def _digits(X, truth, seed, cost, lam):
    """Accuracy, and median share of the eigenvectors on labelled points, in percent."""
    labelled = np.random.RandomState(seed).permutation(len(X)) < 100
    known = np.where(labelled, truth, -1)
    model = TransductiveDistance(20, lam, 10, penalty="normalized", cost=cost, n_votes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cliff is warned of
        model.fit(X, known)
    right = np.mean(model.transduction_[~labelled] == truth[~labelled])
    return 100 * right, 100 * np.median(model.label_mass_)


if __name__ == "__main__":
    main()
