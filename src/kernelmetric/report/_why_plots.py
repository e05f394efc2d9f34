"""Pictures of reasons: how much each feature counts, for a metric or for the distance of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelmetric.inspection import FeatureImportance, PairExplanation
from kernelmetric.report._plots import PALETTE, _pyplot
from kernelmetric.report._text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 30  # characters of a name


def plot_shares(
    explanation: FeatureImportance | PairExplanation,
    *,
    most: int = 12,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw shares of features as bars, the largest on top.

    Parameters
    ----------
    explanation : FeatureImportance or PairExplanation
        What :func:`feature_importance` or :func:`explain_pair` returned.
    most : int, default=12
        How many features to draw; the others are one bar.
    ax : matplotlib axes, default=None
        Where to draw; None makes a new figure.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib axes
        The axes. Shares that bring two rows nearer go to the left, in another colour.

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
    plt = _pyplot()
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
    if ax is None:
        ax = plt.subplots(figsize=(5, 0.8 + 0.28 * len(ranked)), layout="constrained")[1]
    places = range(len(ranked))
    ax.barh(places, shares, color=[PALETTE[0 if s >= 0 else 5] for s in shares], zorder=2)
    ax.set_yticks(places, names, parse_math=False)
    ax.invert_yaxis()
    pair = isinstance(explanation, PairExplanation)
    ax.set_xlabel("share of the squared distance" if pair else "share of the metric")
    ax.axvline(0.0, color="#666666", lw=0.8)
    ax.grid(axis="x", color="#E4E4E4", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=11)
    return ax
