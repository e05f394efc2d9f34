"""Pictures of a fit: learning curves, and shares of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.inspection import FeatureImportance, PairExplanation
from kernelmetric.report._plots import PALETTE, _axes, _finished
from kernelmetric.report._text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 30  # characters of a name


def plot_learning_curve(
    n_labels: Any,
    scores: Mapping[str, Any],
    *,
    xlabel: str = "labels",
    ylabel: str | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw how scores grow with the number of labels.

    Parameters
    ----------
    n_labels : array-like of shape (n_marks,)
        Numbers of labels.
    scores : mapping of str to array-like of shape (n_marks,) or (n_runs, n_marks)
        A curve for each name; of several runs their mean, in a band of one standard error.
    xlabel, ylabel : str
        What the axes are called; the scores have a name of their own in the legend.
    ax, title : matplotlib axes and str, default=None
        Where to draw, None makes a new figure; and the title of the axes.

    Examples
    --------
    >>> from kernelmetric.report import plot_learning_curve
    >>> curves = {"chosen": [[0.8, 0.9], [0.7, 0.9]], "drawn": [0.6, 0.7]}
    >>> ax = plot_learning_curve([10, 20], curves)
    >>> ax.lines[0].get_ydata().round(2).tolist()
    [0.75, 0.9]
    """
    ax = _axes(ax, 4.4, 3)
    n = np.asarray(n_labels, dtype=float)
    for k, (name, values) in enumerate(scores.items()):
        runs = np.atleast_2d(np.asarray(values, dtype=float))
        if n.ndim != 1 or runs.ndim != 2 or runs.shape[1] != len(n):
            raise ValueError(
                f"Got scores of shape {runs.shape} for {name!r}, but expected one for each of the "
                f"{n.size} numbers of labels."
            )
        color, mean = PALETTE[k % len(PALETTE)], runs.mean(axis=0)
        ax.plot(n, mean, "o-", color=color, lw=2, ms=4, label=name)
        if len(runs) > 1:
            error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            ax.fill_between(n, mean - error, mean + error, color=color, alpha=0.2, lw=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if len(scores) > 1 or ylabel is None:
        ax.legend(frameon=False, fontsize=9)
    return _finished(ax, title, grid="y")


def plot_shares(
    explanation: FeatureImportance | PairExplanation,
    *,
    most: int = 12,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw shares of features as bars, the largest on top.

    Shares that bring two rows nearer go to the left, in another colour.

    Parameters
    ----------
    explanation : FeatureImportance or PairExplanation
        What :func:`feature_importance` or :func:`explain_pair` returned.
    most : int, default=12
        How many features to draw; the others are one bar.
    ax, title : matplotlib axes and str, default=None
        Where to draw, None makes a new figure; and the title of the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.inspection import explain_pair
    >>> from kernelmetric.report import plot_shares
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_shares(explain_pair(NCA().fit(X, y), X[0], X[140]))
    >>> len(ax.patches)
    4
    """
    if not isinstance(explanation, FeatureImportance | PairExplanation):
        raise ValueError(
            f"Got {explanation!r}, but expected what feature_importance or explain_pair returns."
        )
    ranked: list[tuple[str, Any]] = list(explanation.ranked())
    if len(ranked) > most:
        rest = ranked[most:]
        ranked = [*ranked[:most], (f"{len(rest)} others", sum(share for _, share in rest))]
    names = [visible(name, most=_LONGEST) for name, _ in ranked]
    shares = [share for _, share in ranked]
    ax = _axes(ax, 5, 0.8 + 0.28 * len(ranked))
    places = range(len(ranked))
    ax.barh(places, shares, color=[PALETTE[0 if s >= 0 else 5] for s in shares], zorder=2)
    ax.set_yticks(places, names, parse_math=False)
    ax.invert_yaxis()
    pair = isinstance(explanation, PairExplanation)
    ax.set_xlabel("share of the squared distance" if pair else "share of the metric")
    ax.axvline(0.0, color="#666666", lw=0.8)
    return _finished(ax, title, grid="x")
