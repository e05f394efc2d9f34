"""The page of links: how many at which probability, and why pairs are linked or refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from kernelmetric.evaluation._thresholds import Estimate, _precision_at, _recall_at, _sample
from kernelmetric.linkage import Links, RecordLinker
from kernelmetric.report._page import filled
from kernelmetric.report._page_html import chart, columns, curve, figure, line, table, upright
from kernelmetric.report._text import html_text, percent, short

_SHOWN = 4  # pairs of each kind
_MOST_COLUMNS = 12  # with a line each
_BEFORE = "before comparing"
_PARTS = 20  # of the probabilities
_LISTED = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)  # thresholds
_CUTS = np.linspace(0.01, 0.99, 99)  # thresholds, in the curve
_BAND = "stroke: none; opacity: 0.15; fill"  # of the area between two curves
_Z = 1.96  # of intervals that hold the truth 95 times of 100
_COUNTED = (
    "Counted on {:,} labelled pairs, each judged without its own label. Bands are 95 % intervals. "
    "They speak for all candidates if the pairs were not labelled for being in doubt."
)
_EXPECTED = (
    "Expected from the probabilities: no pair was labelled, or too few. Before you rely on them, "
    "label some pairs with <code>kernelmetric label</code>."
)


def link_page(
    linker: RecordLinker,
    links: Links,
    left: Any,
    right: Any = None,
    *,
    cut: Any = (),
    left_names: Sequence[Any] | None = None,
    right_names: Sequence[Any] | None = None,
    title: str = "Which records mean the same",
    command: str = "",
) -> str:
    """Write the page of links: how many, how sure, and why.

    A pair's log odds are split over the columns: they are shown to the linker one after another,
    and what each adds is its part, in the mean of the order of the table and of its reverse.

    Parameters
    ----------
    linker : RecordLinker
        Fitted to these tables.
    links : Links
        What it found.
    left, right : DataFrame or list of dict
        The tables that were compared; ``right`` None for one.
    cut : array-like of shape (n_cut, 2), default=()
        Links that clusters have cut.
    left_names, right_names : sequence, default=None
        What to call records; None counts rows.
    title, command : str
        Title of the page, and the command that made it.

    Returns
    -------
    str
        The text of an HTML file. In a notebook, the page shows itself.

    Examples
    --------
    >>> from kernelmetric.datasets import make_records
    >>> from kernelmetric.linkage import RecordLinker
    >>> from kernelmetric.report import link_page
    >>> people, _ = make_records(60, random_state=0)
    >>> linker = RecordLinker().fit(people)  # doctest: +SKIP
    >>> page = link_page(linker, linker.links(), people)  # doctest: +SKIP
    """
    import pandas as pd

    tables = pd.DataFrame(left), pd.DataFrame(left if right is None else right)
    code = np.array([len(tables[1]), 1])  # one number for each pair
    gone = np.isin(links.pairs @ code, np.reshape(cut, (-1, 2)).astype(int) @ code)
    pairs, p, t = links.pairs[~gone], links.probability[~gone], links.threshold
    every = np.concatenate([links.probability, links.other_probability])
    lead = (
        f"<b>{len(pairs):,} links</b> of probability {t:.3g} or more, of {len(every):,} "
        f"candidates. About {percent(linker.match_share_)} of the candidates match. "
    )
    if len(pairs):
        lead += (
            f"By their probabilities, {percent(p.mean())} of the links are right, and "
            f"{percent(p.sum() / every.sum())} of the matching candidates are linked."
        )
    surest = np.argsort(-p, kind="stable")
    likely = np.argsort(-links.other_probability, kind="stable")
    n_lost = int(np.sum(links.other_probability >= t))
    lost, below = likely[:n_lost][:_SHOWN], likely[n_lost:][:_SHOWN]
    some = np.unique(np.linspace(0, len(p) - 1, min(_SHOWN, len(p))).astype(int))
    linked, last = ([(pairs[k], "linked") for k in surest[at]] for at in (some, slice(-2, None)))
    under = [(links.others[k], "below the threshold") for k in below]
    refused = [(pair, "other pairs contradict it") for pair in links.pairs[gone][:_SHOWN]]
    refused += [(links.others[k], "a record has a likelier partner") for k in lost]
    names = left_names, left_names if right is None else right_names
    near, far = last + under[:2], refused[:_SHOWN] + under[2:]
    told = _Pairs(linker, tables, names, right is not None)
    told.explain([pair for pair, _ in (*linked, *near, *far)])
    kinds = ", ".join(f"{name} ({kind})" for name, kind in linker.comparison_.kinds_.items())
    values = {
        "lead": lead,
        "histogram": _histogram(every, t),
        "why": told.side_by_side(linked),
        "near": told.side_by_side(near),
        "refused": told.side_by_side(far),
        "command": html_text(command, most=2_000),
        "kinds": html_text(kinds, most=2_000),
    } | _thresholds(linker, every, t, right is not None)
    return filled("link.html", title, values)


def _histogram(p: np.ndarray, threshold: float) -> str:
    counts, _ = np.histogram(p, _PARTS, (0, 1))
    heights, ends = np.log1p(counts), ("0 %", "100 %", "0", f"{counts.max():,}")
    names = ("probability of a match", "candidates, log scale")
    drawn = chart(columns(heights / heights.max(), threshold), ends, names)
    middle = int(np.sum((p > 0.1) & (p < 0.9)))
    return f"<figure>{drawn}</figure><p>{middle:,} candidates are between 10 % and 90 %.</p>"


def _thresholds(linker: RecordLinker, p: np.ndarray, threshold: float, two: bool) -> dict[str, str]:
    """Precision and recall by threshold, of labels where there are some; first, whence they are."""
    known, cuts = linker.labelled_probability_, np.unique([*_CUTS, *_LISTED, threshold])
    order = -np.sort(-p)
    n = np.searchsorted(-order, -cuts, side="right")  # of each cut, so many are accepted
    if known is None:
        note, sums = _EXPECTED, np.cumsum([0.0, *order])
        values = np.where(n, sums[n] / np.maximum(n, 1), np.nan), sums[n] / sums[-1]
        curves = [[Estimate(value, np.nan, np.nan) for value in each] for each in values]
    else:
        note, labels = _COUNTED.format(len(known)), (linker.labelled_same_, linker.labelled_pairs_)
        sample = _sample(known, *labels, two, linker.match_share_)
        curves = [[at(sample, cut, _Z) for cut in cuts] for at in (_precision_at, _recall_at)]
    drawn, heads = upright(threshold), []
    for estimates, colour, name in zip(curves, ("c0", "c1"), ("precision", "recall"), strict=True):
        some = (n > 0) | (name == "recall")  # of no pairs there is no precision
        x, (values, low, high) = cuts[some], np.array(estimates)[some].T
        known_ends = np.isfinite(low)
        x_ends, low, high = x[known_ends], low[known_ends], high[known_ends]
        drawn += curve(np.append(x_ends, x_ends[::-1]), np.append(low, high[::-1]), colour, _BAND)
        drawn += curve(x, values, colour)
        heads.append(f'<span class="swatch" style="background: var(--{colour})"></span> {name}')
    drawn = chart(drawn, ("0 %", "100 %", "0 %", "100 %"), ("threshold", "precision and recall"))
    lines = ""
    for cut, accepted, *both in zip(cuts, n, *curves, strict=True):
        if cut == threshold or cut in _LISTED:
            name = f"{cut:.3g} (chosen)" if cut == threshold else f"{cut:.3g}"
            lines += line([name], [f"{accepted:,}", *map(_said, both)])
    listed = table(["threshold"], ["candidates", *heads], lines)
    drawn = f'<div class="two"><figure>{drawn}</figure>{listed}</div>'
    return {"judged": note, "thresholds": drawn}


def _said(estimate: Estimate) -> str:
    value, low, high = estimate
    if np.isnan(low):
        return percent(value)
    return f"{percent(value)} <small>({100 * low:.0f} to {100 * high:.0f})</small>"


class _Pairs:
    """Pairs of records, side by side, with what each piece of evidence counts."""

    def __init__(
        self, linker: RecordLinker, tables: tuple[Any, Any], names: tuple[Any, Any], two: bool
    ):
        self.linker, self.tables, self.names, self.two = linker, tables, names, two
        self.columns = list(dict.fromkeys(name for each in tables for name in each.columns))
        self.reasons: dict[tuple[int, int], Any] = {}

    def explain(self, pairs: list[Any]) -> None:
        """Ask the linker what adds to the log odds of pairs."""
        rows = np.reshape(pairs, (-1, 2)).astype(int)
        found = self.linker.reasons(self.tables[0], self.tables[1] if self.two else None, rows)
        parts: list[list[Any]] = [[] for _ in rows]
        for k, *part in found[["pair", "evidence", "adds", "says"]].itertuples(index=False):
            parts[k].append(tuple(part))
        self.reasons = dict(zip(map(tuple, rows.tolist()), parts, strict=True))

    def side_by_side(self, pairs: list[Any]) -> str:
        """Pairs, and why they are linked or not."""
        boxes = [self._waterfall(tuple(pair.tolist()), why) for pair, why in pairs]
        return "".join(boxes) or "<p>There are no such pairs.</p>"

    def _waterfall(self, rows: tuple[int, int], why: str) -> str:
        """One pair: values of both records, and the log odds as evidence after evidence adds."""
        called, reasons = [], self.reasons[rows]
        for row, given in zip(rows, self.names, strict=True):
            called.append(f"row {row}" if given is None else str(given[row]))
        listed = sorted(reasons, key=lambda reason: -abs(reason[1]))[:_MOST_COLUMNS]
        cells = [(_BEFORE, adds, [""]) for name, adds, _ in reasons if name == _BEFORE]
        for name, adds, says in reasons if len(reasons) <= _MOST_COLUMNS else listed:
            values = self._values(rows, name) if name in self.columns else [says]
            cells += [(name, adds, values)] * (name != _BEFORE)
        rest = sum(adds for _, adds, _ in reasons) - sum(adds for _, adds, _ in cells)
        if others := len(reasons) - len(cells):
            cells.append((f"{others} others", rest, [""]))
        reached = np.cumsum([0.0, *(adds for _, adds, _ in cells)])
        low, wide = reached.min(), max(np.ptp(reached), 1e-12)
        lines = ""
        for (name, adds, values), begin, end in zip(cells, reached[:-1], reached[1:], strict=True):
            kind, span = "share" if adds >= 0 else "share against", 3 - len(values)
            at, width = 100 * (min(begin, end) - low) / wide, 100 * abs(end - begin) / wide
            said = "".join(f'<td colspan="{span}">{html_text(v, most=60)}</td>' for v in values)
            bar = f'<span class="{kind}" style="margin-left:{at:.1f}%;width:{width:.1f}%"></span>'
            lines += f'<tr><td>{html_text(name, most=90)}</td>{said}<td class="n">{adds:+.1f}</td>'
            lines += f'<td class="fall">{bar}</td></tr>'
        lines += line(["sum", "", ""], [f"{reached[-1]:+.1f}", ""])
        heads = ["evidence", *(html_text(name, most=60) for name in called)]
        title = f"{' and '.join(called)}: {percent(expit(reached[-1]))}, {why}"
        whole = ""
        if not {name for name, *_ in reasons} <= {_BEFORE, *self.columns}:
            for name, each, row in zip(heads[1:], self.tables, rows, strict=True):
                texts = " · ".join(filter(None, map(short, each.iloc[row])))
                whole += f'<p class="note"><b>{name}</b>: {html_text(texts, most=300)}</p>'
        return figure(title, whole + table(heads, ["adds", "log odds so far"], lines, "falls"))

    def _values(self, rows: tuple[int, int], name: Any) -> list[str]:
        both = zip(self.tables, rows, strict=True)
        return [short(each[name].iloc[row]) if name in each else "" for each, row in both]
