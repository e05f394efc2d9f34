"""Pictures of a fit: loss and learning curves, neighbours before and after, shares of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inspection import FeatureImportance, PairExplanation
from kernelmetric.metric import places_of, refuse_signed
from kernelmetric.report._plots import PALETTE, _axes, _colours, _finished, _in_a_plane, _pyplot
from kernelmetric.report._text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 30  # characters of a name


def plot_loss_curve(metric: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the loss of an iterative learner by iteration, on a log scale if it spans a decade.

    Parameters
    ----------
    metric : fitted metric or sequence of float
        A learner with ``loss_curve_``, a :class:`Kernelized` one, or the values themselves.
    ax, title : matplotlib axes and str, default=None
        Where to draw, None makes a new figure; and the title of the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.report import plot_loss_curve
    >>> nca = NCA().fit(*load_iris(return_X_y=True))
    >>> ax = plot_loss_curve(nca)
    >>> len(ax.lines[0].get_ydata()) == len(nca.loss_curve_)
    True
    """
    learner = getattr(metric, "learner_", metric)
    loss = getattr(learner, "loss_curve_", None if hasattr(learner, "fit") else learner)
    if loss is None or len(loss) == 0:
        raise ValueError(
            f"Got {type(learner).__name__} without a loss curve, but expected an iterative "
            "learner, fitted and not at its optimum from the start: try NCA or LMNN."
        )
    loss = np.asarray(loss, dtype=float)
    ax = _axes(ax, 4.4, 3)
    ax.plot(np.arange(1, len(loss) + 1), loss, color=PALETTE[0], lw=2)
    ax.plot(len(loss), loss[-1], "o", color=PALETTE[0], ms=5)
    if loss.min() > 0 and loss.max() > 10 * loss.min():
        ax.set_yscale("log")
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="iteration", ylabel="loss")
    return _finished(ax, title, grid="y")


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


def plot_neighbors(
    metric: Any,
    X: Any,
    y: Any,
    point: int,
    *,
    n_neighbors: int = 5,
    axes: Any = None,
) -> np.ndarray:
    """Draw a point with lines to its nearest others, before the metric and after it.

    Both axes, which are returned, show the first two principal axes; the neighbours are those of
    all dimensions.

    Parameters
    ----------
    metric : fitted metric
        Anything with ``transform``.
    X, y : array of shape (n, d) and (n,)
        Points, and their labels; lines to other classes are dashed and of another colour.
    point, n_neighbors : int
        Row number of the point, and how many neighbours to find.
    axes : two matplotlib axes, default=None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.report import plot_neighbors
    >>> X, y = load_iris(return_X_y=True)
    >>> before, after = plot_neighbors(NCA(2).fit(X, y), X, y, point=70)
    >>> len(before.lines), after.get_title()
    (5, 'learned metric')
    """
    plt = _pyplot()
    refuse_signed(metric)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    if not 0 <= point < len(X):
        raise ValueError(f"Got point={point}, but expected a row number from 0 to {len(X) - 1}.")
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")[1]
    colours = _colours(y, np.unique(y))
    clouds = {"Euclidean distance": X, "learned metric": to_numpy(places_of(metric, X))}
    for ax, (title, Z) in zip(axes, clouds.items(), strict=True):
        plane, _ = _in_a_plane(Z, None)
        found = nearest_neighbors(Z, min(n_neighbors + 1, len(Z)), queries=Z[[point]])[0][0]
        others = [i for i in found if i != point][:n_neighbors]
        ax.scatter(*plane.T, s=14, c=colours.tolist(), lw=0, alpha=0.45, zorder=1)
        for i in others:
            same = y[i] == y[point]
            line = {"color": "#111111" if same else PALETTE[5], "ls": "-" if same else "--"}
            ax.plot(*plane[[point, i]].T, lw=1.1, zorder=2, **line)
        near, sizes = [point, *others], [90, *[40] * len(others)]
        marks: dict[str, Any] = {"s": sizes, "c": colours[near].tolist()}
        ax.scatter(*plane[near].T, edgecolors="#111111", zorder=3, **marks)
        _finished(ax, title).set_aspect("equal", adjustable="datalim")
        ax.set(xticks=[], yticks=[])
    return np.asarray(axes)


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
