"""Few labels: Table 1 of 001, the cliff at small λ, and semi-supervised peers; stops and resumes.

``python benchmarks/transductive.py --out cells.jsonl --methods TDL LE 1-NN`` runs Table 1; sets and
methods by name, ``--splits`` as many as wanted. Several processes may share the work, each with a
file of its own; ``--out`` with all the files only prints the table of them.
``--pictures FOLDER`` draws those of the guide.
"""

import argparse
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from kernelmetric import TransductiveDistance
from reproduction.cells import read_cells
from reproduction.transductive import FEW_LABEL_METHODS, LAMS, MNIST, TABLE1, few_label_cells

PROBLEMS = {problem.name: problem for problem in (*TABLE1, *MNIST)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=[], nargs="+", help="JSON lines")
    parser.add_argument("--pictures", type=Path, help="folder for the pictures of the guide")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--sets", nargs="*", default=[p.name for p in TABLE1], choices=PROBLEMS)
    parser.add_argument("--methods", nargs="*", default=["TDL", "LE", "1-NN"])
    arguments = parser.parse_args()
    if arguments.pictures:
        draw_cliff(arguments.pictures / "transductive-cliff.png")
    if len(arguments.out) == 1:
        problems = [PROBLEMS[name] for name in arguments.sets]
        cells = few_label_cells(problems, arguments.methods, arguments.splits, arguments.out[0])
        for cell in cells:
            print(*cell, flush=True)
    print(table([cell for path in arguments.out for cell in read_cells(path)]))


def table(cells):
    """Markdown: mean accuracy in percent, and the paired difference from LE with its error."""
    scores = defaultdict(dict)
    for cell in cells:
        scores[cell.dataset, cell.method][cell.split] = 100 * cell.accuracy
    names = [name for name in PROBLEMS if any(name == dataset for dataset, _ in scores)]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for method in FEW_LABEL_METHODS:
        row = [_entry(scores.get((n, method)), scores.get((n, "LE"))) for n in names]
        if any(row):
            lines.append(f"| {method} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def _entry(found, baseline):
    if not found:
        return ""
    text = f"{np.mean(list(found.values())):.2f}"
    if baseline and baseline is not found and set(found) <= set(baseline):
        gain = np.array([found[split] - baseline[split] for split in found])
        text += f" ({gain.mean():+.2f} ± {gain.std() / np.sqrt(len(gain)):.2f})"
    return text


def draw_cliff(path):
    """Accuracy and label mass over λ, of the paper's cost and of the bounded one."""
    import matplotlib.pyplot as plt

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
