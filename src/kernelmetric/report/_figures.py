"""Pictures of the papers' other figures: the two tricks, and Gram matrices side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernelmetric.report._kernel_plots import plot_gram
from kernelmetric.report._plots import _pyplot


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
