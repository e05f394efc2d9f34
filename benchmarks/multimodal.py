"""The picture of docs/guide/multimodal.md: noise beside XOR, and the accuracies of the study.

``python -m reproduction multimodal-noisy --out FOLDER`` runs the study, then
``python benchmarks/multimodal.py FOLDER docs/_static/multimodal.png`` draws.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt

from reproduction.multimodal import noise_curve
from reproduction.tables import STUDIES

TABLE = STUDIES["multimodal-noisy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="cells of python -m reproduction")
    parser.add_argument("picture", type=Path, help="file to write")
    arguments = parser.parse_args()
    picture(TABLE.file_in(arguments.folder).read(), arguments.picture)


def picture(cells, path):
    """Two panels: accuracy against the number of features of noise, and method by method."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    rows = noise_curve()
    numbers = sorted({noise for noise, _, _ in rows})
    for view, marker in zip(rows[0][2], "so^", strict=True):
        found = [[a[view] for n, _, a in rows if n == number] for number in numbers]
        left.plot(numbers, [sum(f) / len(f) for f in found], marker=marker, label=view)
    left.axhline(0.5, color="0.7", linewidth=0.8)
    left.set(xlabel="features of noise beside XOR", ylabel="accuracy of the nearest neighbour")
    left.legend(frameon=False)
    methods = [m.name for m in TABLE.methods if any(c.method == m.name for c in cells)]
    for i, (problem, marker) in enumerate(zip(TABLE.problems, "os^D", strict=True)):
        for height, method in enumerate(reversed(methods)):
            found = [c.accuracy for c in cells if (c.dataset, c.method) == (problem.name, method)]
            if found:
                label = problem.name if height == len(methods) - 1 else None
                mean = sum(found) / len(found)
                right.plot(mean, height, marker, color=f"C{i}", label=label, alpha=0.8)
    right.set_yticks(range(len(methods)), methods[::-1])
    right.set(xlabel="accuracy, kernelized LMNN")
    right.grid(axis="y", color="0.9")
    right.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
