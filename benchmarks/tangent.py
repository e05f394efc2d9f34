"""The pictures of the page on tangent distance: tangents of a digit, and neighbours of digits.

``python benchmarks/tangent.py --out docs/_static`` draws both from the first images of MNIST and
prints how often the nearest neighbour has the right label, by either distance.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.transductive import TANGENTS, tangent_neighbors, tangent_vectors
from reproduction.datasets import load

SHAPE = (28, 28)


def draw_tangents(image: np.ndarray):
    """The digit, its tangents, and the digit moved along each of them in both directions."""
    tangents = tangent_vectors(image[None], shape=SHAPE)[0]
    figure, axes = plt.subplots(3, 1 + len(TANGENTS), figsize=(10, 4.2), layout="constrained")
    for ax in axes.flat:
        ax.axis("off")
    for ax, label in zip(axes[:, 0], ("a - t", "a", "a + t"), strict=True):
        ax.text(0.5, 0.5, label, ha="center", va="center", fontsize=14, transform=ax.transAxes)
    axes[1, 0].texts[0].remove()
    show(axes[1, 0], image, "digit a")
    for column, (name, tangent) in enumerate(zip(TANGENTS, tangents, strict=True), start=1):
        step = 0.35 * np.linalg.norm(image) / np.linalg.norm(tangent)
        show(axes[0, column], image - step * tangent, name.replace(" of the ", "\n"))
        axes[1, column].imshow(
            tangent.reshape(SHAPE), cmap="RdBu_r", norm=mpl.colors.CenteredNorm()
        )
        show(axes[2, column], image + step * tangent)
    return figure


def draw_neighbors(X: np.ndarray, y: np.ndarray, queries: np.ndarray, lists: dict):
    """Each digit in a row with its nearest ones by either distance; wrong labels are framed."""
    figure, axes = plt.subplots(
        len(queries), 12, figsize=(10, 0.95 * len(queries) + 0.4), layout="constrained"
    )
    for ax in axes.flat:
        ax.axis("off")
    for row, query in zip(axes, queries, strict=True):
        show(row[0], X[query])
        for offset, found in zip((2, 7), lists.values(), strict=True):
            for ax, neighbor in zip(row[offset : offset + 5], found[query], strict=True):
                show(ax, X[neighbor])
                if y[neighbor] != y[query]:
                    ax.axis("on")
                    ax.set(xticks=[], yticks=[])
                    for side in ax.spines.values():
                        side.set(color="#D55E00", linewidth=2.5)
    axes[0, 0].set_title("digit", fontsize=11)
    for column, name in zip((4, 9), lists, strict=True):
        axes[0, column].set_title(f"nearest by {name} distance", fontsize=11)
    return figure


def show(ax, image: np.ndarray, title: str = "") -> None:
    ax.imshow(image.reshape(SHAPE), cmap="gray_r", vmin=0, vmax=1)
    ax.set_title(title, fontsize=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/_static"))
    parser.add_argument("--n", type=int, default=4000)
    arguments = parser.parse_args()
    X, y = load("mnist", return_X_y=True)
    X, y = X[: arguments.n].astype(np.float32) / 255, y[: arguments.n].astype(int)
    lists = {
        "Euclidean": nearest_neighbors(X, 5)[0],
        "tangent": tangent_neighbors(X, 5, shape=SHAPE, n_candidates=50)[1],
    }
    for name, found in lists.items():
        print(f"{name}: {100 * np.mean(y[found[:, 0]] != y):.2f} % of nearest neighbours are wrong")
    wrong = {name: np.sum(y[found] != y[:, None], axis=1) for name, found in lists.items()}
    gain = wrong["Euclidean"] - wrong["tangent"]
    order = np.argsort(-gain, kind="stable")  # where the two differ most
    best = order[np.unique(y[order], return_index=True)[1]]  # one of each digit
    chosen = best[np.argsort(-gain[best], kind="stable")][:5]
    draw_neighbors(X, y, chosen, lists).savefig(arguments.out / "tangent-neighbors.png", dpi=80)
    draw_tangents(X[np.flatnonzero(y == 2)[2]]).savefig(arguments.out / "tangents.png", dpi=80)


if __name__ == "__main__":
    main()
