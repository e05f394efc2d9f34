"""Pictures of kernels: the weights of an aligned sum, and Gram matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.compute import map_rows, to_numpy
from kernelmetric.kernels import RBF, Kernel, Polynomial, Sum
from kernelmetric.report._plots import PALETTE, _axes, _finished
from kernelmetric.selection import AlignedSum

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST_GRAM = 2_000  # rows; a picture has no more pixels


def plot_kernel_weights(kernel: Sum, *, labels: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the weights of a sum of kernels, one bar per base kernel.

    For an aligned sum the bars are the weights of base kernels of equal norm, as shares of their
    total, and open dots show how well each base kernel is aligned by itself.

    Parameters
    ----------
    kernel : AlignedSum or Sum
        What ``KernelAlignment.bind`` returned; for any other sum, its own weights are drawn.
    labels : list of str, default=None
        Names of the base kernels; None means the γ of RBFs, and the kind of the others.
    ax : matplotlib axes, default=None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import KernelAlignment
    >>> from kernelmetric.report import plot_kernel_weights
    >>> kernel = KernelAlignment(centered=True).bind(*load_iris(return_X_y=True))
    >>> len(plot_kernel_weights(kernel).patches)
    21
    """
    learned = isinstance(kernel, AlignedSum) and hasattr(kernel, "weights_")
    bases = kernel.base_kernels_ if learned else kernel.kernels
    weights = np.asarray(kernel.weights_ if learned else kernel._weights(), dtype=float)
    names, below = _names(bases)
    labels = names if labels is None else list(labels)
    if len(labels) != len(bases):
        raise ValueError(
            f"Got {len(labels)} labels for {len(bases)} base kernels, but expected one each."
        )
    ax = _axes(ax, max(3.6, 0.9 + 0.3 * len(bases)), 3.0)
    places = np.arange(len(bases))
    shares = weights / max(weights.sum(), np.finfo(float).tiny) if learned else weights
    ax.bar(places, shares, color=PALETTE[0], width=0.7, zorder=2, label="share of the weight")
    if learned:
        dots: dict[str, Any] = {"mfc": "white", "mec": PALETTE[5], "mew": 1.4, "ms": 5}
        seen = np.diagonal(kernel.S_) > 0  # others were left out: their alignment is unknown
        heights = np.where(seen, kernel.base_alignments_, np.nan)
        ax.plot(places, heights, "o", zorder=3, label="alignment by itself", **dots)
        ax.axhline(kernel.alignment_, color=PALETTE[5], lw=1, ls="--", zorder=1)
        ax.set_title(f"Alignment of the sum {kernel.alignment_:.3f} (dashed)", fontsize=11)
        ax.legend(frameon=False, fontsize=9)
    turned: dict[str, Any] = {"rotation": 60, "rotation_mode": "anchor", "ha": "right"}
    ax.set_xticks(places, labels, fontsize=8, **(turned if len(bases) > 4 else {}))
    ax.set_xlabel(below if labels is names else "")
    ax.set_xlim(-0.7, len(bases) - 0.3)
    ax.set_ylim(bottom=0)
    return _finished(ax, None, grid="y")


def plot_gram(
    K: Any,
    X: Any = None,
    y: Any = None,
    *,
    centered: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a Gram matrix with the points ordered by class, and lines between the classes.

    A kernel that suits the labels shows bright squares along the diagonal.

    Parameters
    ----------
    K : array of shape (n, n) or Kernel
        The Gram matrix, or a bound kernel to evaluate on X.
    X : array of shape (n, d), default=None
        The points, for a kernel.
    y : array of shape (n,), default=None
        Labels; None leaves the points in their order.
    centered : bool, default=False
        Whether to draw HKH, what distances see, with colours that are even about zero.
    ax, title : matplotlib axes and str, default=None
        Where to draw, None makes a new figure; and the title of the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric.kernels import RBF
    >>> from kernelmetric.report import plot_gram
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_gram(RBF(gamma=0.5), X, y, title="RBF")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0', '1', '2']
    """
    K = _gram(K, X)
    if centered:
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    ax = _axes(ax, 4, 4)
    if y is not None:
        y = np.asarray(y)
        if len(y) != len(K):
            raise ValueError(
                f"Got {len(y)} labels for a Gram matrix of {len(K)} points, but expected one each."
            )
        order = np.argsort(y, kind="stable")
        K = K[np.ix_(order, order)]
        _mark_classes(ax, y[order])
    else:
        ax.set(xticks=[], yticks=[])
    low, high = np.quantile(K, [0.005, 0.995])  # a few extreme pairs must not hide the others
    if centered:
        high = max(abs(low), abs(high))
        low = -high
    colours = "RdBu_r" if centered else "viridis"
    ax.imshow(K, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    ax.tick_params(length=0)
    ax.spines[:].set_color("#BBBBBB")
    return _finished(ax, title)


def _gram(K: Any, X: Any) -> np.ndarray:
    if isinstance(K, Kernel) and X is None:
        raise ValueError("Got a kernel without X, but expected points to evaluate it on.")
    points = X if isinstance(K, Kernel) else to_numpy(K)
    n = np.shape(points)[0]
    if n > _LARGEST_GRAM:
        raise ValueError(
            f"Got {n} points, but expected at most {_LARGEST_GRAM}, more than a picture can show: "
            "try a random subset of the rows."
        )
    if isinstance(K, Kernel):
        anchors = K.anchors(X)
        return map_rows(lambda rows: to_numpy(K(X[rows], anchors)), n, 64 * n)
    if points.shape != (n, n):
        raise ValueError(
            f"Got a matrix of shape {points.shape}, but expected a square Gram matrix: try a "
            "kernel and X."
        )
    return points


def _mark_classes(ax: Any, y: np.ndarray) -> None:
    """Lines between the classes of sorted labels, their names beside them."""
    classes, counts = np.unique(y, return_counts=True)
    ends = np.cumsum(counts) - 0.5
    for end in ends[:-1]:
        for colour, width in (("white", 1.6), ("#111111", 0.6)):
            ax.axhline(end, color=colour, lw=width)
            ax.axvline(end, color=colour, lw=width)
    names = [str(label) for label in classes]
    ax.set_xticks(ends - counts / 2, names, fontsize=9)
    ax.set_yticks(ends - counts / 2, names, fontsize=9)


def _names(kernels: list[Kernel]) -> tuple[list[str], str]:
    """Names that fit under bars, and what to write below them all."""
    shared = sum(isinstance(kernel, RBF) for kernel in kernels) > len(kernels) / 2
    names = []
    for kernel in kernels:
        name = type(kernel).__name__
        if isinstance(kernel, RBF):
            number = kernel.gamma
            if isinstance(number, int | float):  # two digits
                whole = np.format_float_positional(number, 2, fractional=False, trim="-")
                number = whole if number > 1e-3 else f"{number:.2g}"
            name = str(number) if shared else f"{name} {number}"
        elif isinstance(kernel, Polynomial):
            name = f"degree {kernel.degree}"
        names.append(name)
    return names, "γ of RBF" if shared else ""
