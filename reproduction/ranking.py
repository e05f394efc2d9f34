"""Many methods on many data sets: who is ahead of whom, and at what price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from kernelmetric.report import Cell, summarize
from kernelmetric.report._plots import PALETTE, _pyplot
from reproduction.comparison import signed_rank_p, win_draw_loss

_SPAN = 10.0  # points of accuracy at which a colour is full


class Ranked(NamedTuple):
    """How a method does on all data sets together.

    Parameters
    ----------
    method : str
        Name of the method.
    rank : float
        Mean over the data sets of its rank, one for the best; methods that are equal share theirs.
    accuracy : float
        Mean accuracy over the data sets.
    seconds : float
        Median over the data sets of the mean time of a fit.
    counts : tuple of int
        Data sets on which it is better than, equal to and worse than the reference, as printed
        with two digits: together, the data sets that have all methods.
    p : float
        Two-sided p-value of Wilcoxon's signed-rank test against the reference, over the data
        sets; one for the reference itself.
    """

    method: str
    rank: float
    accuracy: float
    seconds: float
    counts: tuple[int, int, int]
    p: float


def rank_methods(cells: Iterable[Cell], reference: str) -> list[Ranked]:
    """Rank methods over the data sets that have all of them.

    Parameters
    ----------
    cells : iterable of Cell
        Finished fits.
    reference : str
        The method that the others are counted against.

    Returns
    -------
    list of Ranked
        The best mean rank first; empty where no data set has all methods, the reference included.

    Examples
    --------
    >>> from kernelmetric.report import Cell
    >>> from reproduction.ranking import rank_methods
    >>> cells = [Cell(d, m, 0, a, 0.1) for d in ("iris", "wine")
    ...          for m, a in (("NCA", 0.95), ("kNN", 0.9))]
    >>> [(row.method, row.rank, row.counts) for row in rank_methods(cells, "kNN")]
    [('NCA', 1.0, (2, 0, 0)), ('kNN', 2.0, (0, 2, 0))]
    """
    cells = list(cells)
    table = summarize(cells)
    methods = list(dict.fromkeys(cell.method for cell in cells))
    datasets = [name for name, row in table.items() if len(row) == len(methods)]
    if not datasets or reference not in methods:
        return []
    means = np.array([[table[name][m].mean for m in methods] for name in datasets])
    ranks = stats.rankdata(-np.round(means, 4), axis=1).mean(axis=0)
    values = {(d, m): table[d][m].mean for d in datasets for m in methods}
    against = means[:, methods.index(reference)]
    ranked = [
        Ranked(
            method,
            float(ranks[i]),
            float(means[:, i].mean()),
            _typical_seconds(cells, method, datasets),
            win_draw_loss(values, method, reference),
            signed_rank_p(means[:, i] - against),
        )
        for i, method in enumerate(methods)
    ]
    return sorted(ranked, key=lambda row: row.rank)


def plot_ranking(
    cells: Sequence[Cell], reference: str, families: Mapping[str, str] | None = None
) -> np.ndarray:
    """Draw mean ranks, and beside them the accuracies on every data set.

    Parameters
    ----------
    cells : sequence of Cell
        Finished fits.
    reference : str
        The method whose accuracies are subtracted from the others'.
    families : mapping of str to str, default=None
        Kinds of methods, each with a colour of its own.

    Returns
    -------
    ndarray of matplotlib axes
        Ranks, differences of accuracy.
    """
    plt = _pyplot()
    ranked = rank_methods(cells, reference)
    if not ranked:
        raise ValueError(
            "Got no data set that all methods were run on, but expected one: run more of the table."
        )
    table, methods = summarize(cells), [row.method for row in ranked]
    datasets = [name for name, row in table.items() if len(row) == len(methods)]
    means = np.array([[table[d][m].mean for d in datasets] for m in methods])
    gains = 100 * (means - means[methods.index(reference)])
    kinds = list(dict.fromkeys((families or {}).values()))
    colours = {m: PALETTE[kinds.index(f) % len(PALETTE)] for m, f in (families or {}).items()}
    height = 0.27 * len(methods) + 1.9
    figure, axes = plt.subplots(
        1, 2, figsize=(11.5, height), width_ratios=(1, 2.4), sharey=True, layout="constrained"
    )
    for row, one in enumerate(ranked):
        colour = colours.get(one.method, PALETTE[0])
        axes[0].plot([0, one.rank], [row, row], color="#D5D5D5", lw=1.2, zorder=1)
        axes[0].plot(one.rank, row, "o", ms=8, color=colour, zorder=2)
        axes[0].annotate(
            f"{one.rank:.1f}",
            (one.rank, row),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes[0].set(xlim=(0, 1.15 * ranked[-1].rank + 1), xlabel="mean rank (less is better)")
    labels = [f"{one.method}   {one.seconds:.2g} s" for one in ranked]
    axes[0].set_yticks(range(len(methods)), labels=labels)
    axes[0].invert_yaxis()
    axes[0].tick_params(axis="y", length=0)
    axes[0].spines[["top", "right", "left"]].set_visible(False)
    drawn = axes[1].imshow(gains, cmap="PuOr_r", vmin=-_SPAN, vmax=_SPAN, aspect="auto")
    axes[1].set_xticks(range(len(datasets)), labels=datasets, rotation=60, ha="right")
    axes[1].tick_params(length=0)
    axes[1].spines[:].set_visible(False)
    figure.colorbar(drawn, ax=axes[1], extend="both", label=f"points of accuracy above {reference}")
    dots = {kind: PALETTE[i % len(PALETTE)] for i, kind in enumerate(kinds)}
    figure.legend(
        handles=[
            plt.Line2D([], [], ls="", marker="o", ms=8, color=colour, label=kind)
            for kind, colour in dots.items()
        ],
        loc="outside upper center",
        ncols=max(1, len(dots)),
        frameon=False,
    )
    return axes


def _typical_seconds(cells: list[Cell], method: str, datasets: list[str]) -> float:
    times = [[c.seconds for c in cells if c.method == method and c.dataset == d] for d in datasets]
    return float(np.median([np.mean(seconds) for seconds in times]))
