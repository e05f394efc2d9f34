"""Pictures of embeddings and of fits; matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.inspection import FeatureImportance, PairExplanation
from kernelmetric.report._tables import Panel
from kernelmetric.report._text import visible
from kernelmetric.shipping import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind eyes and, by their lightness, in grey.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#111111")
_MARKERS = "os^Dvp<>"


def _pyplot() -> Any:
    return require("matplotlib.pyplot", "plot", "Plots need matplotlib")


def _axes(ax: Any, width: float, height: float) -> Any:
    """The given axes, or those of a new figure."""
    plt = _pyplot()
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def _finished(ax: Any, title: str | None, *, grid: str | None = None) -> Any:
    """The axes with their title, and with lines across one axis instead of a frame."""
    if grid is not None:
        ax.grid(axis=grid, color="#E4E4E4", lw=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=11)
    return ax


def plot_embedding(
    Z: Any,
    y: Any,
    *,
    Z_test: Any = None,
    y_pred: Any = None,
    y_test: Any = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw labelled points in a plane, and test points around them.

    Points of more than two dimensions are shown along the first two principal axes of the
    training points. A class is a colour and a marker; a test point is a small dot in the colour
    of the class predicted for it, and a black cross where that is wrong. Returns the axes.

    Parameters
    ----------
    Z, y : array of shape (n, d) and (n,)
        Embedded training points, and their labels.
    Z_test, y_pred, y_test : array of shape (m, d), (m,) and (m,), default=None
        Embedded test points, labels predicted for them, and true ones, to mark the errors.
    ax, title : matplotlib axes and str, default=None
        Where to draw, None makes a new figure; and the title of the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.report import plot_embedding
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_embedding(NCA(2).fit_transform(X, y), y, title="iris")
    >>> ax.get_title()
    'iris'
    """
    axes: Any = _axes(ax, 4, 4)
    Z, Z_test = _in_a_plane(np.asarray(Z), None if Z_test is None else np.asarray(Z_test))
    y = np.asarray(y)
    classes = np.unique(y if y_pred is None else np.concatenate([y, np.asarray(y_pred)]))
    if Z_test is not None:
        if y_pred is None:
            raise ValueError("Got Z_test without y_pred, but expected the labels predicted for it.")
        y_pred = np.asarray(y_pred)
        right = np.ones(len(y_pred), bool) if y_test is None else y_pred == np.asarray(y_test)
        colours = [PALETTE[k % len(PALETTE)] for k in np.searchsorted(classes, y_pred[right])]
        axes.scatter(*Z_test[right].T, s=5, c=colours, lw=0, alpha=0.5, zorder=1)
        if not right.all():
            axes.scatter(*Z_test[~right].T, s=16, c="#111111", marker="x", lw=0.8, zorder=2)
    look: dict[str, Any] = {"s": 46, "edgecolors": "white", "linewidths": 0.8, "zorder": 3}
    for i, label in enumerate(classes):
        colour, marker = PALETTE[i % len(PALETTE)], _MARKERS[i % len(_MARKERS)]
        axes.scatter(*Z[y == label].T, c=colour, marker=marker, label=str(label), **look)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.06)
    return _finished(axes, title)


def plot_fig2(panels: Sequence[Panel]) -> np.ndarray:
    """Draw a grid of embeddings: one row per data set, one column per method."""
    rows = list(dict.fromkeys(panel.dataset for panel in panels))
    columns = list(dict.fromkeys(panel.method for panel in panels))
    size = (3.3 * len(columns), 3.35 * len(rows) + 0.35)
    shape: dict[str, Any] = {"figsize": size, "squeeze": False, "layout": "constrained"}
    figure, axes = _pyplot().subplots(len(rows), len(columns), **shape)
    for panel in panels:
        i, j = rows.index(panel.dataset), columns.index(panel.method)
        ax = axes[i, j]
        title = f"{panel.method}\n1-NN accuracy {100 * panel.accuracy:.0f} %"
        tested: Any = {"Z_test": panel.Z_test, "y_pred": panel.y_pred, "y_test": panel.y_test}
        plot_embedding(panel.Z_train, panel.y_train, ax=ax, title=title, **tested)
        ax.set_box_aspect(1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("#BBBBBB")
        if j == 0:
            ax.set_ylabel(panel.dataset, fontsize=11)
    symbols: list[dict[str, Any]] = [
        {"marker": _MARKERS[0], "ms": 7, "c": PALETTE[0], "label": "class 1"},
        {"marker": _MARKERS[1], "ms": 7, "c": PALETTE[1], "label": "class 2"},
        {"marker": ".", "ms": 4, "c": "#666666", "label": "test point, as predicted"},
        {"marker": "x", "ms": 5, "c": "#111111", "label": "predicted wrongly"},
    ]
    handles = [_pyplot().Line2D([], [], ls="", **symbol) for symbol in symbols]
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": len(symbols)}
    figure.legend(handles=handles, frameon=False, handletextpad=0.3, columnspacing=1.6, **place)
    return axes


def png_bytes(axes: Any, *, dpi: int = 150) -> bytes:
    """The figure of some axes as a PNG image; the figure is closed."""
    figure = np.ravel(axes)[0].figure
    stream = io.BytesIO()
    # No name of the software, whose version would change the bytes of an equal picture.
    figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None})
    _pyplot().close(figure)
    return stream.getvalue()


def _in_a_plane(Z: np.ndarray, Z_test: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Two coordinates of every point: its own, or those on the first two principal axes of Z."""
    if Z.ndim != 2:
        raise ValueError(f"Got Z of shape {Z.shape}, but expected one row per point.")
    d = Z.shape[1]
    mean, axes = np.zeros(d), np.eye(2, d)
    if d > 2:
        mean = Z.mean(axis=0)
        axes = np.linalg.svd(Z - mean, full_matrices=False)[2][:2]
    return (Z - mean) @ axes.T, None if Z_test is None else (Z_test - mean) @ axes.T


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
