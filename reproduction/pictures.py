"""Pictures of the papers' other figures, and of how our numbers agree with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kernelmetric.report import plot_gram
from kernelmetric.report._plots import PALETTE, _pyplot
from reproduction.comparison import TOLERANCE, Compared


class TrickPoint(NamedTuple):
    """Accuracies of one learner, kernelized in two ways.

    Parameters
    ----------
    dataset : str
        Data set.
    degree, n_train, n_neighbors : int
        Degree of the polynomial kernel, training points, neighbours in the learner.
    kpca, trick : float
        Accuracies by the KPCA trick and by the kernel trick.
    condition : float
        Condition number of the Gram matrix.
    """

    dataset: str
    degree: int
    n_train: int
    n_neighbors: int
    kpca: float
    trick: float
    condition: float


def plot_tricks(points: Sequence[TrickPoint]) -> np.ndarray:
    """Draw accuracies by one trick over those by the other, one plot per data set.

    Parameters
    ----------
    points : sequence of TrickPoint
        Settings; their colour is the condition number.

    Returns
    -------
    ndarray of matplotlib axes
        One per data set.
    """
    plt = _pyplot()
    names = list(dict.fromkeys(point.dataset for point in points))
    figure, grid = plt.subplots(
        1, len(names), figsize=(3.6 * len(names) + 0.8, 3.7), squeeze=False, layout="constrained"
    )
    axes = grid[0]
    shades = np.log10([point.condition for point in points])
    limits = float(np.min(shades)), float(np.max(shades))
    for ax, name in zip(axes, names, strict=True):
        of_name = [i for i, point in enumerate(points) if point.dataset == name]
        x, y = (100 * np.array([getattr(points[i], k) for i in of_name]) for k in ("kpca", "trick"))
        low, high = min(x.min(), y.min()) - 2, max(x.max(), y.max()) + 2
        ax.plot([low, high], [low, high], color="#BBBBBB", lw=1, zorder=1)
        drawn = ax.scatter(
            x, y, c=shades[of_name], cmap="viridis", s=34, vmin=limits[0], vmax=limits[1],
            edgecolors="white", linewidths=0.5, zorder=2,
        )  # fmt: skip
        ax.set(xlim=(low, high), ylim=(low, high), xlabel="KPCA trick, accuracy in %")
        ax.set_aspect("equal")
        ax.set_title(name, fontsize=11)
    axes[0].set_ylabel("kernel trick, accuracy in %")
    figure.colorbar(drawn, ax=list(axes), label="condition number of K, log₁₀", shrink=0.85)
    return axes


def plot_grams(grams: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Draw Gram matrices beside each other, points sorted by class.

    Parameters
    ----------
    grams : sequence of (str, ndarray, ndarray)
        Title, Gram matrix, labels.

    Returns
    -------
    ndarray of matplotlib axes
        One per matrix.
    """
    plt = _pyplot()
    axes = plt.subplots(
        1, len(grams), figsize=(3.4 * len(grams), 3.6), squeeze=False, layout="constrained"
    )[1][0]
    for ax, (title, K, y) in zip(axes, grams, strict=True):
        plot_gram(K, y=y, ax=ax, title=title)
    return axes


def plot_agreement(groups: Mapping[str, Sequence[Compared]]) -> np.ndarray:
    """Draw our accuracies over the papers', one plot per group.

    Parameters
    ----------
    groups : mapping of str to sequence of Compared
        Titles and cells; those that only one side has are left out.

    Returns
    -------
    ndarray of matplotlib axes
        One per group; the band is as wide as the tolerance.
    """
    plt = _pyplot()
    figure, grid = plt.subplots(
        1, len(groups), figsize=(2.9 * len(groups) + 0.3, 3.6), squeeze=False, layout="constrained"
    )
    looks = {"within": (PALETTE[6], "o"), "above": (PALETTE[2], "^"), "below": (PALETTE[5], "v")}
    for ax, (title, cells) in zip(grid[0], groups.items(), strict=True):
        known = [(c.paper.value, c.ours.mean, c.verdict) for c in cells if c.paper and c.ours]
        ends = np.array([min(min(p, o) for p, o, _ in known) - 0.03, 1.02]) if known else [0.0, 1.0]
        ends, near = 100 * np.asarray(ends), 100 * TOLERANCE
        ax.fill_between(ends, ends - near, ends + near, color="#EEEEEE", lw=0, zorder=0)
        ax.plot(ends, ends, color="#BBBBBB", lw=1, zorder=1)
        for name, (colour, marker) in looks.items():
            x, y = ([100 * cell[i] for cell in known if cell[2] == name] for i in (0, 1))
            ax.scatter(x, y, s=26, color=colour, marker=marker, alpha=0.75, lw=0, zorder=2)
        ax.set(xlim=ends, ylim=ends, xlabel="the paper, accuracy in %")
        ax.set_aspect("equal")
        ax.set_title(f"{title}, {len(known)} cells", fontsize=11)
        ax.spines[["top", "right"]].set_visible(False)
    grid[0][0].set_ylabel("ours, accuracy in %")
    figure.legend(
        handles=[
            plt.Line2D([], [], ls="", marker=marker, ms=7, color=colour, label=name)
            for name, (colour, marker) in looks.items()
        ],
        loc="outside upper center",
        ncols=len(looks),
        frameon=False,
    )
    return grid[0]
