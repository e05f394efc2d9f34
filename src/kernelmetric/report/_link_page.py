"""The page of links: how many at which probability, and why pairs are linked or refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, logit

from kernelmetric.evaluation._thresholds import Estimate, _precision_at, _recall_at, _sample
from kernelmetric.linkage import Links, RecordLinker
from kernelmetric.report._page import Page, _read, versions
from kernelmetric.report._page_html import chart, columns, curve, figure, line, table, upright
from kernelmetric.report._text import html_text, percent, short

_SHOWN = 4  # pairs of each kind
_MOST_COLUMNS = 12  # with a line each
_PARTS = 20  # of the probabilities
_LISTED = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)  # thresholds
_CUTS = np.linspace(0.01, 0.99, 99)  # thresholds, in the curve
_WHOLE = "whole record"  # of texts: what no column has alone
_Z = 1.96  # of intervals that hold the truth 95 times of 100
_COUNTED = (
    "Counted on {:,} labelled pairs, each judged without its own label, with 95 % intervals. They "
    "speak for all candidates if the pairs were not labelled for being in doubt."
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
    told = _Pairs(linker, tables, (left_names, left_names if right is None else right_names))
    judged, thresholds = _thresholds(linker, every, t, right is not None)
    kinds = ", ".join(f"{name} ({kind})" for name, kind in linker.comparison_.kinds_.items())
    values = {
        "title": html_text(title),
        "version": html_text(versions()["kernelmetric"]),
        "lead": lead,
        "css": _read("page.css"),
        "histogram": _histogram(every, t),
        "judged": judged,
        "thresholds": thresholds,
        "why": told.side_by_side(linked),
        "near": told.side_by_side(last + under[:2]),
        "refused": told.side_by_side(refused[:_SHOWN] + under[2:]),
        "command": html_text(command, most=2_000),
        "kinds": html_text(kinds, most=2_000),
    }
    return Page(re.sub(r"\{\{(\w+)\}\}", lambda place: values[place[1]], _read("link.html")))


def _histogram(p: np.ndarray, threshold: float) -> str:
    counts, _ = np.histogram(p, _PARTS, (0, 1))
    heights, ends = np.log1p(counts), ("0 %", "100 %", "0", f"{counts.max():,}")
    names = ("probability of a match", "candidates, log scale")
    drawn = chart(columns(heights / heights.max(), threshold), ends, names)
    middle = int(np.sum((p > 0.1) & (p < 0.9)))
    return f"<figure>{drawn}</figure><p>{middle:,} candidates are between 10 % and 90 %.</p>"


def _thresholds(linker: RecordLinker, p: np.ndarray, threshold: float, two: bool) -> list[str]:
    """Precision and recall by threshold, of labels where there are some; first, whence they are."""
    known, cuts = linker.labelled_probability_, np.unique([*_CUTS, *_LISTED, threshold])
    order = -np.sort(-p)
    n = np.searchsorted(-order, -cuts, side="right")  # of each cut, so many are accepted
    if known is None:
        note, sums = _EXPECTED, np.cumsum([0.0, *order])
        values = sums[n] / np.maximum(n, 1), sums[n] / sums[-1]
        curves = [[Estimate(value, np.nan, np.nan) for value in each] for each in values]
    else:
        note, labels = _COUNTED.format(len(known)), (linker.labelled_same_, linker.labelled_pairs_)
        sample = _sample(known, *labels, two, linker.match_share_)
        curves = [[at(sample, cut, _Z) for cut in cuts] for at in (_precision_at, _recall_at)]
    drawn, heads = upright(threshold), []
    for estimates, colour, name in zip(curves, ("c0", "c1"), ("precision", "recall"), strict=True):
        some = (n > 0) | (name == "recall")  # of no pairs there is no precision
        drawn += curve(cuts[some], np.array([e.value for e in estimates])[some], colour)
        heads.append(f'<span class="swatch" style="background: var(--{colour})"></span> {name}')
    drawn = chart(drawn, ("0 %", "100 %", "0 %", "100 %"), ("threshold", "precision and recall"))
    lines = ""
    for cut, accepted, *both in zip(cuts, n, *curves, strict=True):
        if cut == threshold or cut in _LISTED:
            name = f"{cut:.3g} (chosen)" if cut == threshold else f"{cut:.3g}"
            lines += line([name], [f"{accepted:,}", *map(_said, both)])
    listed = table(["threshold"], ["candidates", *heads], lines)
    return [note, f'<div class="two"><figure>{drawn}</figure>{listed}</div>']


def _said(estimate: Estimate) -> str:
    value, low, high = estimate
    if np.isnan(low):
        return percent(value)
    return f"{percent(value)} <small>({100 * low:.0f} to {100 * high:.0f})</small>"


class _Pairs:
    """Pairs of records, side by side, with what their columns count."""

    def __init__(self, linker: RecordLinker, tables: tuple[Any, Any], names: tuple[Any, Any]):
        self.linker, self.tables, self.names = linker, tables, names
        self.given = tables if linker.n_right_ is not None else (tables[0], None)
        self.columns = list(dict.fromkeys(name for each in tables for name in each.columns))

    def side_by_side(self, pairs: list[Any]) -> str:
        """Pairs, and why they are linked or not."""
        if not pairs:
            return "<p>There are no such pairs.</p>"
        rows = np.array([pair for pair, _ in pairs])
        parts = zip(rows, self.shares(rows), pairs, strict=True)
        return "".join(self._waterfall(row, shares, why) for row, shares, (_, why) in parts)

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """Log odds of pairs before any column is compared, and what each column adds."""
        if self.linker.comparison_.text_ is not None:
            return self._of_texts(rows)
        steps = len(self.columns) + 1
        step = np.tile(np.arange(steps), len(rows))
        each, parts = np.column_stack([np.arange(len(step))] * 2), []
        for order in (self.columns, self.columns[::-1]):
            sides = [
                shown.iloc[np.repeat(side, steps)].reset_index(drop=True)
                for shown, side in zip(self.tables, rows.T, strict=True)
            ]
            for side, (k, name) in product(sides, enumerate(order)):
                if name in side:
                    whole = side[name].dtype.kind in "iub"  # which knows no gaps
                    column = side[name].astype(object) if whole else side[name]
                    side[name] = column.where(step > k)
            p = np.clip(self.linker.predict_proba(sides[0], sides[1], each)[:, 1], 1e-12, 1 - 1e-12)
            parts.append(np.diff(logit(p).reshape(-1, steps), prepend=0))
        there, back = parts
        return np.column_stack([there[:, 0], (there[:, 1:] + back[:, :0:-1]) / 2])

    def _of_texts(self, rows: np.ndarray) -> np.ndarray:
        """What the evidence of each column adds, and that of the whole record, as in reasons."""
        if _WHOLE not in self.columns:
            self.columns = [*self.columns, _WHOLE]
        place = {str(name): k for k, name in enumerate(self.columns, start=1)}
        left, right = self.given
        found = self.linker.reasons(left, right, rows)
        adds = np.zeros((len(rows), 1 + len(self.columns)))
        for pair, evidence, share in zip(
            found["pair"], found["evidence"], found["adds"], strict=True
        ):
            scope = evidence.rpartition(": ")[0] or evidence.removesuffix(" missing")
            adds[pair, place.get(evidence, place.get(scope, 0))] += share
        return adds

    def _waterfall(self, rows: np.ndarray, adds: np.ndarray, why: str) -> str:
        """One pair: values of both records, and the log odds as column after column adds to it."""
        called = [
            f"row {row}" if given is None else str(given[row])
            for row, given in zip(rows, self.names, strict=True)
        ]
        listed = np.sort(np.argsort(-np.abs(adds[1:]), kind="stable")[:_MOST_COLUMNS])
        cells = [["before comparing", "", "", adds[0]]]
        for name, share in ((self.columns[j], adds[j + 1]) for j in listed):
            both = zip(self.tables, rows, strict=True)
            values = [short(each[name].iloc[k]) if name in each else "" for each, k in both]
            cells.append([name, *values, share])
        if others := len(self.columns) - len(listed):
            rest = adds[1:].sum() - adds[listed + 1].sum()
            cells.append([f"{others} other columns", "", "", rest])
        reached = np.cumsum([0.0, *(cell[3] for cell in cells)])
        low, wide = reached.min(), max(np.ptp(reached), 1e-12)
        lines = ""
        for (*texts, share), begin, end in zip(cells, reached[:-1], reached[1:], strict=True):
            kind = "share" if share >= 0 else "share against"
            at, width = 100 * (min(begin, end) - low) / wide, 100 * abs(end - begin) / wide
            said = "".join(f"<td>{html_text(text, most=60)}</td>" for text in texts)
            bar = f'<span class="{kind}" style="margin-left:{at:.1f}%;width:{width:.1f}%"></span>'
            lines += f'<tr>{said}<td class="n">{share:+.1f}</td><td class="fall">{bar}</td></tr>'
        lines += line(["sum", "", ""], [f"{reached[-1]:+.1f}", ""])
        heads = ["column", *(html_text(name, most=60) for name in called)]
        title = f"{' and '.join(called)}: {percent(expit(reached[-1]))}, {why}"
        return figure(title, table(heads, ["adds", "log odds so far"], lines, "falls"))
