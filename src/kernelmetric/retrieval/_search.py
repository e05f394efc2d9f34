"""The search for a map: candidates, and what they give queries left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import backend_of, like, map_rows, namespace, precise, rough, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.reductions import k_smallest, product
from kernelmetric.compute.watch import ended_by_limit, stage, time_kept, time_left, until_limit
from kernelmetric.evaluation._retrieval import Found, directions, find_matches, similarities
from kernelmetric.graphs import Matches
from kernelmetric.retrieval import _forms
from kernelmetric.retrieval._choice import LEAST, Choice, choose
from kernelmetric.retrieval._softmax import Task, operations, refined
from kernelmetric.solvers import column_signs

_JUDGED = 2_000  # queries left out, at most
_DOCUMENTS = 20_000  # documents that these are looked for among; of larger tables a draw
_ROWS = 20_000  # of each table, whose covariance is taken
_MINED, _NEAREST = 2_000, 10  # queries whose nearest wrong documents are looked at, and how many
_MINED_AT_ONCE = 256
_PAIRS = 5_000  # of a softmax
_FEWEST, _FORMS, _CELLS = 500, 20, 4  # documents that a limit leaves, closed forms, and passes
_ON_DEVICE = 10  # times as many, where a device computes
_WORK = 2e12  # operations that softmax="auto" may take: some twenty seconds; a hundredfold there


class Result(NamedTuple):
    """The map, why it was chosen, what all gave, and what queries left out got before and after."""

    form: _forms.Form
    choice: Choice
    means: dict[str, float]
    before: Found
    after: Found
    queries: np.ndarray  # that were left out, in the order of these


class Judged(NamedTuple):
    """What candidates, in columns, gave queries left out, in rows."""

    names: list[str]
    ranks: np.ndarray
    gains: np.ndarray
    weights: np.ndarray

    def column(self, of: Any) -> Found:
        """What each query got from the candidate of that number."""
        rows = np.arange(len(self.weights))
        return Found(self.ranks[rows, of], self.gains[rows, of], self.weights)

    def beside(self, more: Judged) -> Judged:
        """With the columns of other candidates, if these were judged by all queries."""
        if len(more.weights) < len(self.weights):
            return self
        ranks, gains = (np.hstack([a, b]) for a, b in zip(self[1:3], more[1:3], strict=True))
        return Judged(self.names + more.names, ranks, gains, self.weights)


class Search:
    """Two tables, their matches, and draws from them where they are large."""

    def __init__(self, Q: Any, D: Any, matches: Matches, adapter: Any):
        self.settings, self.matches = adapter, matches
        self.cosine = adapter.geometry == "cosine"
        self.Q, self.D = (_forms.Table(X, self.cosine) for X in (Q, D))
        self.rng = check_random_state(adapter.random_state)
        self.seed = int(self.rng.randint(2**31 - 1))
        self._last: tuple[Any, Any] = None, None
        self.scale = 1 if backend_of(D).host else _ON_DEVICE
        self.judged = self.rng.permutation(matches.queries)[: self.scale * _JUDGED]
        self.documents = self._drawn_documents()
        if not self.cosine:
            self._near_the_origin()
        self.drawn = rough(self.D.take(self.documents))
        tables = (self.Q,) if matches.one_table else (self.Q, self.D)
        self.T = _forms.covariance(*(self._some_rows(table) for table in tables))
        self.whitener = None if adapter.side == "query" else _forms.whitener(self.T)

    def run(self) -> Result:
        """Judge candidates on queries left out, choose, and fit the one chosen to all."""
        cv = min(self.settings.cv, len(self.judged))
        parts = [self.judged[k::cv] for k in range(cv)] if len(self.judged) >= LEAST else []
        parts = [held for held in parts if len(self.matches.without(held).pairs)]
        base = int(self.settings.n_components is not None)  # the column to be better than
        if not parts:
            plain = self._components() if base else _forms.IDENTITY
            found, after = (self._found(form, self.judged) for form in (_forms.IDENTITY, plain))
            few = choose(found.ranks[:, None], found.weights, self.settings.confidence, 0)
            return Result(self._finished(plain), few, {}, found, after, self.judged)
        with stage("Adapter", shown=self.settings.verbose):
            last = self._seconds(len(self.documents)) if math.isfinite(time_left()) else 0.0
            with time_kept(last):
                judged = self._judge(parts, lambda known: (make() for make in self._closed(known)))
            start, n_closed = self._choice(judged, base).best + base, len(judged.names)
            if self._worth_softmax(len(parts) + 1) and not ended_by_limit(
                "the search before the softmax", lambda: self._softmax_work(2) * rates().product
            ):
                more = self._judge(parts, lambda known: self._descended(known, start))
                judged = judged.beside(more)
            choice = self._choice(judged, base)
            number = choice.best + base
            if number < n_closed:
                form = _nth(self._closed(self.matches), number)()
            else:
                form = _nth(self._descended(self.matches, start), number - n_closed)
        means = judged.weights @ judged.ranks**-0.5 / np.sum(judged.weights)
        return Result(
            self._finished(form),
            choice,
            dict(zip(judged.names, means.tolist(), strict=True)),
            judged.column(0),
            judged.column(choice.honest + base),
            np.concatenate(parts)[: len(judged.weights)],
        )

    def _seconds(self, n_documents: int) -> float:
        """Seconds in which closed forms are made and judged without a part of the queries."""
        looked = 2.0 * _MINED + _FORMS * len(self.judged) / self.settings.cv
        rate, d = rates(), self.Q.X.shape[1]
        return looked * n_documents * (d * rate.product + _CELLS * rate.cell)

    def _choice(self, judged: Judged, base: int) -> Choice:
        return choose(judged.ranks[:, base:], judged.weights, self.settings.confidence, self.seed)

    def _judge(
        self, parts: list[np.ndarray], candidates: Callable[[Matches], Iterator[_forms.Form]]
    ) -> Judged:
        """What candidates, fitted without a part of the queries, give these."""
        names, columns, weights = [], [], []
        for held in until_limit(parts, "the map"):
            known = self.matches.without(held)
            found = [(form.name, self._found(form, held)) for form in candidates(known)]
            names = [name for name, _ in found]
            columns.append([np.column_stack([f[i] for _, f in found]) for i in (0, 1)])
            weights.append(self.matches.query_weights(held))
        ranks, gains = (np.concatenate(part) for part in zip(*columns, strict=True))
        return Judged(names, ranks, gains, np.concatenate(weights))

    def _found(self, form: _forms.Form, queries: np.ndarray) -> Found:
        """What a form gives some queries."""
        Q, D = self._both_mapped(form, queries)
        return find_matches(Q, D, self.matches, queries, self.documents, cosine=self.cosine)

    def _mapped(self, Z: Any, L: np.ndarray | None) -> Any:
        return Z if L is None else self._directions(product(Z, like(L, Z).T))

    def _both_mapped(self, form: _forms.Form, queries: np.ndarray) -> tuple[Any, Any]:
        """Some queries and the documents, in coordinates that the last form may have left here."""
        Q = self._mapped(rough(self.Q.take(queries)), form.queries)
        if form.axes is None:
            return Q, self._mapped(self.drawn, form.documents)
        B, scales = form.axes
        if self._last[0] is not B:
            self._last = B, product(self.drawn, like(B, self.drawn).T)
        return Q, self._directions(self._last[1] * like(scales, self.drawn)[None, :])

    def _directions(self, Z: Any) -> Any:
        return directions(Z) if self.cosine else Z

    def _components(self) -> _forms.Form:
        return self._ordered(_forms.IDENTITY._replace(name="principal components"))

    def _closed(self, known: Matches, cut: bool = True) -> Iterator[_forms.Maker]:
        """What makes the vectors as they are, and all closed forms of some matches.

        With n_components they are cut to so many, beside principal components, if ``cut``.
        """
        yield lambda: _forms.IDENTITY
        if self.settings.n_components is None:
            cut = False
        else:
            yield self._components if cut else lambda: _forms.IDENTITY
        if not np.trace(self.T) > 0:
            return
        moments = _forms.Moments.of(self.Q, self.D, known.pairs, known.weights)
        mine = partial(self._mined, known)
        for make in _forms.forms(self.settings.side, moments, self.T, self.whitener, mine):
            yield partial(lambda make: self._ordered(make()), make) if cut else make

    def _mined(self, known: Matches, form: _forms.Form) -> np.ndarray:
        """E δδᵀ of queries and the nearest documents under a map that do not match."""
        queries = known.queries
        if len(queries) > self.scale * _MINED:
            queries = queries[:: -(-len(queries) // (self.scale * _MINED))]
        Q, D = self._both_mapped(form, queries)
        count = min(_NEAREST, len(self.documents))

        def work(rows: slice) -> np.ndarray:
            S = similarities(Q[rows, :], D, cosine=self.cosine)
            asked = queries[rows], self.documents, S
            out, own = known.relevant(*asked), known.themselves(*asked)
            out = out if own is None else out | own
            S = namespace(S).where(out, -namespace(S).inf * namespace(S).ones_like(S[:1, :1]), S)
            found, values = k_smallest(-S, count)
            return np.where(np.isfinite(values), found, -1)

        found = map_rows(work, len(queries), 16.0 * len(self.documents), most=_MINED_AT_ONCE)
        there = found >= 0
        wrong = np.column_stack(
            [np.repeat(queries, there.sum(axis=1)), self.documents[found[there]]]
        )
        wrong = np.concatenate([wrong, known.apart])
        return _forms.differences(self.Q, self.D, wrong) if len(wrong) else np.zeros_like(self.T)

    def _worth_softmax(self, fits: int) -> bool:
        if self.settings.side == "query":
            return False  # queries left out found less by it, on three sets of products
        if not isinstance(self.settings.softmax, str):
            return bool(self.settings.softmax)
        return self._softmax_work(fits) <= self.scale**2 * _WORK

    def _softmax_work(self, fits: int) -> float:
        return operations(len(self.T)) * fits

    def _descended(self, known: Matches, start: int) -> Iterator[_forms.Form]:
        """The maps that a softmax makes of a closed form in all its coordinates."""
        form = _nth(self._closed(known, cut=False), start)()
        some = slice(None, None, -(-len(known.pairs) // (self.scale * _PAIRS)))
        pairs, weights = known.pairs[some], known.weights[some]
        maps = form.queries, form.documents
        Q, D = (
            self._mapped(rough(table.take(rows)), L)
            for table, rows, L in zip((self.Q, self.D), pairs.T, maps, strict=True)
        )
        for steps, B in refined(Task(Q, D, pairs, weights, known, self.cosine), self.seed):
            A, C = (B if L is None else B @ L for L in maps)
            name = f"{form.name}; then {steps} steps of a softmax over batches"
            made = _forms.Form(name, A, C)
            yield made if self.settings.n_components is None else self._ordered(made)

    def _ordered(self, form: _forms.Form) -> Any:
        """The form with its coordinates by the variance of documents, the first of them."""
        A, B = (np.eye(len(self.T)) if L is None else L for L in (form.queries, form.documents))
        V = eigh(B @ self.T @ B.T)[1][:, ::-1][:, : self.settings.n_components]
        B = V.T @ B
        signs = column_signs(B.T)[:, None]
        return _forms.Form(form.name, signs * (V.T @ A), signs * B)

    def _finished(self, form: _forms.Form) -> _forms.Form:
        """The form in the order of its coordinates, as large as the vectors it is for."""
        if form.documents is None:
            return form
        _, A, B, _ = self._ordered(form)
        before, after = np.trace(self.T), np.trace(B @ self.T @ B.T)
        size = np.sqrt(before / after) if after > 0 else 1.0
        return form._replace(queries=size * A, documents=size * B)

    def _near_the_origin(self) -> None:
        """Count rows from a mean, which one map does not mind; refuse those that are far else."""
        if self.settings.side == "symmetric":
            mean = to_numpy(precise(self.D.take(self.documents))).mean(axis=0)
            self.Q, self.D = (table._replace(origin=mean) for table in (self.Q, self.D))
        _forms.require_digits(self.D.take(self.documents), "documents")
        _forms.require_digits(self.Q.take(self.judged), "queries")

    def _some_rows(self, table: _forms.Table) -> Any:
        rows = self.rng.permutation(table.X.shape[0])[: self.scale * _ROWS]
        return table.take(np.sort(rows))

    def _drawn_documents(self) -> np.ndarray:
        """All documents; of many the matches of judged queries, of others some, and any."""
        n, rng = self.matches.shape[1], self.rng
        most = min(n, self.scale * _DOCUMENTS)
        if self.scale == 1:  # twice: without a part of the queries, and then with all
            most = most_in_time(lambda m: 2.0 * self._seconds(m), most, _FEWEST, "Adapter")
        if n <= most:
            return np.arange(n)
        pairs, of_judged = self.matches.pairs, np.isin(self.matches.pairs[:, 0], self.judged)
        wanted = [rng.permutation(pairs[some, 1]) for some in (of_judged, ~of_judged)]
        half = np.unique(np.concatenate(wanted)[: most // 2])
        rest = np.setdiff1d(rng.permutation(n)[:most], half)
        return np.union1d(half, rng.permutation(rest)[: most - len(half)])


def _nth(items: Iterator[Any], number: int) -> Any:
    return next(islice(items, number, None))
