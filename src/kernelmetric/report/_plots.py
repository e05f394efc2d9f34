"""Pictures of embeddings and of accuracies; matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.report._records import Cell, Panel
from kernelmetric.report._tables import summarize
from kernelmetric.shipping import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind eyes and, by their lightness, in grey.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#111111")
_MARKERS = "os^Dvp<>"
_GREY = "#666666"


def _pyplot() -> Any:
    return require("matplotlib.pyplot", "plot", "Plots need matplotlib")


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
    of the class predicted for it, and a black cross where that is wrong.

    Parameters
    ----------
    Z : array of shape (n, d)
        Embedded training points.
    y : array of shape (n,)
        Their labels.
    Z_test : array of shape (m, d), default=None
        Embedded test points.
    y_pred : array of shape (m,), default=None
        Labels predicted for the test points.
    y_test : array of shape (m,), default=None
        Their true labels, to mark the errors.
    ax : matplotlib axes, default=None
        Where to draw; None makes a new figure.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib axes
        The axes, of equal scale.

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
    plt = _pyplot()
    if ax is None:
        ax = plt.subplots(figsize=(4, 4), layout="constrained")[1]
    Z, Z_test = _in_a_plane(np.asarray(Z), None if Z_test is None else np.asarray(Z_test))
    y = np.asarray(y)
    classes = np.unique(y if y_pred is None else np.concatenate([y, np.asarray(y_pred)]))
    if Z_test is not None:
        if y_pred is None:
            raise ValueError("Got Z_test without y_pred, but expected the labels predicted for it.")
        y_pred = np.asarray(y_pred)
        right = np.ones(len(y_pred), bool) if y_test is None else y_pred == np.asarray(y_test)
        colours = np.array(PALETTE)[np.searchsorted(classes, y_pred) % len(PALETTE)]
        ax.scatter(
            Z_test[right, 0],
            Z_test[right, 1],
            s=5,
            c=colours[right].tolist(),
            lw=0,
            alpha=0.5,
            zorder=1,
        )
        if not right.all():
            ax.scatter(
                Z_test[~right, 0],
                Z_test[~right, 1],
                s=16,
                c="#111111",
                marker="x",
                lw=0.8,
                zorder=2,
            )
    for i, label in enumerate(classes):
        ax.scatter(
            Z[y == label, 0],
            Z[y == label, 1],
            s=46,
            c=PALETTE[i % len(PALETTE)],
            marker=_MARKERS[i % len(_MARKERS)],
            edgecolors="white",
            linewidths=0.8,
            label=str(label),
            zorder=3,
        )
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)
    if title is not None:
        ax.set_title(title, fontsize=11)
    return ax


def plot_fig2(panels: Sequence[Panel]) -> np.ndarray:
    """Draw a grid of embeddings: one row per data set, one column per method."""
    plt = _pyplot()
    rows = list(dict.fromkeys(panel.dataset for panel in panels))
    columns = list(dict.fromkeys(panel.method for panel in panels))
    figure, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(3.3 * len(columns), 3.35 * len(rows) + 0.35),
        squeeze=False,
        layout="constrained",
    )
    for panel in panels:
        i, j = rows.index(panel.dataset), columns.index(panel.method)
        ax = axes[i, j]
        plot_embedding(
            panel.Z_train,
            panel.y_train,
            Z_test=panel.Z_test,
            y_pred=panel.y_pred,
            y_test=panel.y_test,
            ax=ax,
            title=f"{panel.method}\n1-NN accuracy {100 * panel.accuracy:.0f} %",
        )
        ax.set_box_aspect(1)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_color("#BBBBBB")
        if j == 0:
            ax.set_ylabel(panel.dataset, fontsize=11)
    _explain_symbols(figure)
    return axes


def plot_accuracies(cells: Iterable[Cell], *, columns: int = 3) -> np.ndarray:
    """Draw mean accuracies with standard deviations over the splits, one plot per data set.

    A method whose name is another's with a K before it is its kernel version: the two share a line,
    and a bar between their dots shows what the kernel changed.
    """
    plt = _pyplot()
    table = summarize(cells)
    columns = min(columns, len(table))
    n_rows = -(-len(table) // columns)
    figure, grid = plt.subplots(
        n_rows,
        columns,
        figsize=(3.3 * columns, 2.1 * n_rows + 0.5),
        squeeze=False,
        layout="constrained",
    )
    for ax in grid.ravel()[len(table) :]:
        ax.remove()
    axes = grid.ravel()[: len(table)]
    for ax, (dataset, row) in zip(axes, table.items(), strict=True):
        linear = [m for m in row if not (m.startswith("K") and m[1:] in row)]
        for height, method in enumerate(reversed(linear)):
            colour = _GREY if f"K{method}" not in row else PALETTE[0]
            mean, std, _ = row[method]
            _dot(ax, mean, std, height + 0.12 * (f"K{method}" in row), colour, filled=False)
            if f"K{method}" in row:
                kernel_mean, kernel_std, _ = row[f"K{method}"]
                ends = [100 * mean, 100 * kernel_mean]
                ax.plot(ends, [height] * 2, c="#C9DCEA", lw=7, solid_capstyle="butt", zorder=1)
                _dot(ax, kernel_mean, kernel_std, height - 0.12, PALETTE[5], filled=True)
        ax.set_yticks(range(len(linear)), labels=reversed(linear))
        ax.set_ylim(-0.6, len(linear) - 0.4)
        ax.set_title(dataset, fontsize=11)
        ax.grid(axis="x", color="#E4E4E4", lw=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    figure.supxlabel(
        "1-NN accuracy in %, mean and standard deviation over splits (each plot has its own scale)",
        fontsize=10,
    )
    dot = {"ls": "", "marker": "o", "ms": 7}
    figure.legend(
        handles=[
            plt.Line2D([], [], mfc="white", mec=PALETTE[0], mew=1.6, label="linear", **dot),
            plt.Line2D([], [], c=PALETTE[5], label="kernelized", **dot),
        ],
        loc="outside upper center",
        ncols=2,
        frameon=False,
    )
    return axes


def png_bytes(axes: Any, *, dpi: int = 150) -> bytes:
    """The figure of some axes as a PNG image; the figure is closed."""
    plt = _pyplot()
    figure = np.ravel(axes)[0].figure
    stream = io.BytesIO()
    # No name of the software, whose version would change the bytes of an equal picture.
    figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None})
    plt.close(figure)
    return stream.getvalue()


def _dot(ax: Any, mean: float, std: float, height: float, colour: str, *, filled: bool) -> None:
    ax.errorbar(
        100 * mean,
        height,
        xerr=[[100 * std], [100 * min(std, 1 - mean)]],  # no accuracy is above 100 %
        fmt="o",
        ms=7,
        c=colour,
        mfc=colour if filled else "white",
        mew=1.6,
        elinewidth=1,
        zorder=3,
    )


def _explain_symbols(figure: Any) -> None:
    plt = _pyplot()
    figure.legend(
        handles=[
            plt.Line2D([], [], ls="", marker=_MARKERS[0], ms=7, c=PALETTE[0], label="class 1"),
            plt.Line2D([], [], ls="", marker=_MARKERS[1], ms=7, c=PALETTE[1], label="class 2"),
            plt.Line2D([], [], ls="", marker=".", ms=4, c=_GREY, label="test point, as predicted"),
            plt.Line2D([], [], ls="", marker="x", ms=5, c="#111111", label="predicted wrongly"),
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
        handletextpad=0.3,
        columnspacing=1.6,
    )


def _in_a_plane(Z: np.ndarray, Z_test: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Two coordinates of every point: its own, or those on the first two principal axes of Z."""

    def plane(points: np.ndarray) -> np.ndarray:
        if points.shape[1] == 2:
            return points
        if points.shape[1] == 1:
            return np.column_stack([points, np.zeros(len(points))])
        return (points - mean) @ axes.T

    if Z.ndim != 2:
        raise ValueError(f"Got Z of shape {Z.shape}, but expected one row per point.")
    mean = Z.mean(axis=0)
    axes = np.linalg.svd(Z - mean, full_matrices=False)[2][:2]
    return plane(Z), None if Z_test is None else plane(Z_test)
