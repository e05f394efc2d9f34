"""The page of an adapter: retrieval before and after, and queries that were mended or broken."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import take_rows, to_numpy
from kernelmetric.compute.reductions import k_smallest
from kernelmetric.evaluation import Estimate
from kernelmetric.evaluation._retrieval import directions, similarities
from kernelmetric.inputs._points import as_floats
from kernelmetric.report._page import filled
from kernelmetric.report._page_html import line, section, table
from kernelmetric.report._text import html_text
from kernelmetric.retrieval import Adapter

_SHOWN = 12  # queries of each kind
_NEAREST = 5


def adapter_page(
    adapter: Adapter,
    queries: Any,
    documents: Any,
    pairs: Any,
    *,
    query_names: Sequence[Any] | None = None,
    document_names: Sequence[Any] | None = None,
    title: str = "Retrieval before and after",
    command: str = "",
) -> str:
    """Write the page of a fitted adapter.

    Parameters
    ----------
    adapter : Adapter
        Fitted to these queries, documents and pairs.
    queries, documents : array-like of shape (n_queries, d) and (n_documents, d)
        Vectors.
    pairs : array-like of shape (n_pairs, 2)
        Row numbers (query, document) that belong together.
    query_names, document_names : sequence, default=None
        What to call them; None counts rows.
    title, command : str
        Title of the page, and the command that made it.

    Returns
    -------
    str
        The text of an HTML file. In a notebook, the page shows itself.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import Adapter
    >>> from kernelmetric.report import adapter_page
    >>> rng = np.random.RandomState(0)
    >>> things = rng.standard_normal((60, 4))
    >>> Q, D = (things + 0.2 * rng.standard_normal((60, 4)) for _ in range(2))
    >>> pairs = np.c_[np.arange(60), np.arange(60)]
    >>> page = adapter_page(Adapter(softmax=False).fit(Q, documents=D, pairs=pairs), Q, D, pairs)
    >>> "recall@1" in page
    True
    """
    names = [
        np.arange(len(X)) if given is None else np.asarray(given, dtype=object)
        for X, given in ((queries, query_names), (documents, document_names))
    ]
    found = adapter.evaluation_
    ranks = adapter._before[0], adapter._after[0]
    mended = np.flatnonzero((ranks[0] > 1) & (ranks[1] <= 1))
    broken = np.flatnonzero((ranks[0] <= 1) & (ranks[1] > 1))
    lists = _Lists(adapter, queries, documents, np.asarray(pairs), names, ranks)
    if adapter.adapted_:
        n, gain = found.before.n_queries, [f"{100 * part:+.1f}" for part in found.gain[1]]
        lead = (
            f"The first document is right for {found.after.recall[1].value:.1%} of {n:,} queries "
            f"left out, beside {found.before.recall[1].value:.1%} of the vectors as they are: "
            f"{gain[0]} points ({gain[1]} to {gain[2]})."
        )
    else:
        lead = "No map was surely better. The vectors stay as they are."
    sections = [
        section("How much is found", "Queries left out, with 95 % intervals.", _scores(found)),
        lists.section("Mended", mended, "wrong before, right after"),
        lists.section("Broken", broken, "right before, wrong after"),
        section("How it was chosen", html_text(adapter.recipe_["why"]), _tried(adapter, command)),
    ]
    return filled("adapter.html", title, {"lead": lead, "sections": "\n".join(sections)})


def _scores(found: Any) -> str:
    """Recall, MRR and nDCG before and after, a line for each."""
    rows = [(f"recall@{k}", found.before.recall[k], found.after.recall[k]) for k in found.gain]
    rows.append(("MRR", found.before.mrr, found.after.mrr))
    rows.append(("nDCG@10", found.before.ndcg, found.after.ndcg))
    lines = "".join(line([name], [_said(before), _said(after)]) for name, before, after in rows)
    count = f"<p>{found.mended:,} queries were mended, and {found.broken:,} broken.</p>"
    return table(["score"], ["before", "after"], lines) + count


def _said(estimate: Estimate) -> str:
    return "{:.3f} <small>({:.3f} to {:.3f})</small>".format(*estimate)


def _tried(adapter: Adapter, command: str) -> str:
    order = sorted(adapter.candidates_.items(), key=lambda item: -item[1])
    lines = "".join(line([name], [f"{mean:.4f}"]) for name, mean in order)
    said = f"<p>Map: {html_text(adapter.recipe_['map'], most=300)}.</p>"
    said += f"<pre>{html_text(command, most=2_000)}</pre>" if command else ""
    return said + table(["candidate"], ["mean of 1/√rank"], lines)


class _Lists(NamedTuple):
    """The nearest documents of some queries, before and after, side by side."""

    adapter: Adapter
    queries: Any
    documents: Any
    pairs: np.ndarray
    names: list[np.ndarray]
    ranks: tuple[np.ndarray, np.ndarray]

    def section(self, title: str, places: np.ndarray, what: str) -> str:
        """Some of the queries of a kind, those whose rank changed most first."""
        order = places[np.argsort(-np.abs(np.subtract(*self.ranks))[places], kind="stable")]
        some = order[:_SHOWN]
        note = (
            f"{len(places):,} queries left out that were {what}; {len(some)} are shown. Ranks are "
            "those without the query. Lists are those of the saved map, which knows it; right "
            "documents are bold."
        )
        if not len(some):
            return section(title, f"No query was {what}.", "")
        rows = self.adapter._judged[some]
        before, after = self._nearest(rows)
        lines = ""
        for place, row, old, new in zip(some, rows, before, after, strict=True):
            right = self.pairs[self.pairs[:, 0] == row, 1]
            cells = "".join(f"<td>{self._listed(found, right)}</td>" for found in (old, new))
            changed = f"{self.ranks[0][place]:g} → {self.ranks[1][place]:g}"
            lines += f"<tr><td>{html_text(self.names[0][row], most=80)}</td>{cells}"
            lines += f'<td class="n">{changed}</td></tr>'
        return section(title, note, table(["query", "before", "after"], ["rank"], lines))

    def _nearest(self, rows: np.ndarray) -> list[np.ndarray]:
        cosine, found = self.adapter.geometry == "cosine", []
        Q, D = (as_floats(X) for X in (take_rows(self.queries, rows), self.documents))
        plain = (directions(Q), directions(D)) if cosine else (Q, D)
        mapped = self.adapter.transform(Q), self.adapter.transform_documents(D)
        for q, d in (plain, mapped):
            S = similarities(to_numpy(q), to_numpy(d), cosine=cosine)
            found.append(k_smallest(-S, min(_NEAREST, S.shape[1]))[0])
        return found

    def _listed(self, found: np.ndarray, right: np.ndarray) -> str:
        texts = ((row, html_text(self.names[1][row], most=80)) for row in found)
        return "<br>".join(f"<b>{text}</b>" if row in right else text for row, text in texts)
