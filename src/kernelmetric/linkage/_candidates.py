"""Which records to compare at all: rules that need no labels, and never list all pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelmetric.compute import nearest_neighbors, require_memory, to_numpy
from kernelmetric.linkage._fields import Key, as_table, column_of, texts_of
from kernelmetric.linkage._ngrams import TextWeights, most_alike

_EMPTY = np.empty((0, 2), dtype=np.intp)


class EqualKeys:
    """Records whose keys are equal: a blocking rule.

    Parameters
    ----------
    *keys : str or callable
        Columns, or functions from a table to one value for each record. All must be equal. A
        record without one of them is in no pair.
    most : int, default=100_000
        The most pairs of one key. A key that many records have tells little and costs most: it is
        left out, with a warning that says how many pairs that were.

    Examples
    --------
    >>> from kernelmetric.linkage import EqualKeys, candidate_pairs
    >>> people = [{"name": "Ann", "born": 1950}, {"name": "ann ", "born": 1950}, {"name": "Bob"}]
    >>> candidate_pairs(people, rules=[EqualKeys("name", "born")]).tolist()
    [[0, 1]]
    """

    def __init__(self, *keys: Key, most: int = 100_000):
        if not keys:
            raise ValueError("Got no keys, but expected at least one column or function.")
        self.keys = keys
        self.most = most

    def pairs(self, left: Any, right: Any = None) -> np.ndarray:
        """The pairs of two tables, or of one.

        Parameters
        ----------
        left, right : DataFrame
            The tables; without ``right`` pairs are inside ``left``.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Row numbers.
        """
        import pandas as pd

        tables = [left] if right is None else [left, right]
        n_left = len(left)
        codes = np.zeros(sum(map(len, tables)), dtype=np.int64)
        for key in self.keys:
            texts = np.concatenate([texts_of(column_of(table, key)) for table in tables])
            found = pd.factorize(texts)[0]
            missing = (found < 0) | (codes < 0)
            both = codes * (int(found.max(initial=0)) + 1) + found
            codes = np.where(missing, -1, pd.factorize(both)[0])
        own, other = (codes, codes) if right is None else (codes[:n_left], codes[n_left:])
        return self._joined(own, other, one=right is None)

    def _joined(self, own: np.ndarray, other: np.ndarray, *, one: bool) -> np.ndarray:
        n_keys = int(max(own.max(initial=-1), other.max(initial=-1))) + 1
        counts = np.bincount(other[other >= 0], minlength=n_keys)
        pairs_of_key = np.bincount(own[own >= 0], minlength=n_keys) * counts
        if one:
            pairs_of_key = counts * (counts - 1) // 2
        large = pairs_of_key > self.most
        if large.any():
            warnings.warn(
                f"Left out {large.sum()} keys of {_named(self.keys)} that more than "
                f"most={self.most} pairs share, {pairs_of_key[large].sum()} pairs in all: add a "
                "key, or raise most.",
                UserWarning,
                stacklevel=4,
            )
        rows = np.flatnonzero((own >= 0) & ~np.append(large, False)[own])
        ordered = np.argsort(other, kind="stable")
        starts = np.searchsorted(other[ordered], np.arange(n_keys))
        lengths = counts[own[rows]]
        _require_pairs(int(lengths.sum()))
        begin = np.repeat(starts[own[rows]] - np.cumsum(lengths) + lengths, lengths)
        pairs = np.column_stack(
            [np.repeat(rows, lengths), ordered[begin + np.arange(int(lengths.sum()))]]
        )
        return pairs[pairs[:, 0] < pairs[:, 1]] if one else pairs


class SortedNeighborhood:
    """Records near each other in an order: what was mistyped at the end is still near.

    Parameters
    ----------
    key : str or callable
        A column, or a function from a table to one value for each record, to sort by.
    window : int, default=5
        How many places two records may be apart.

    Examples
    --------
    >>> from kernelmetric.linkage import SortedNeighborhood, candidate_pairs
    >>> people = [{"name": "Miller"}, {"name": "Adams"}, {"name": "Millar"}]
    >>> candidate_pairs(people, rules=[SortedNeighborhood("name", 1)]).tolist()
    [[0, 2], [1, 2]]
    """

    def __init__(self, key: Key, window: int = 5):
        self.key = key
        self.window = _checked_count("window", window)

    def pairs(self, left: Any, right: Any = None) -> np.ndarray:
        """The pairs of two tables, or of one.

        Parameters
        ----------
        left, right : DataFrame
            The tables; without ``right`` pairs are inside ``left``.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Row numbers.
        """
        own = texts_of(column_of(left, self.key))
        if right is None:
            return self._near(own)
        # Of equal keys those of one table come first: once of the one, once of the other.
        n, other = (len(left), len(right)), texts_of(column_of(right, self.key))
        first, second = (
            pairs[(pairs[:, 0] < size) & (pairs[:, 1] >= size)] - [0, size]
            for pairs, size in (
                (self._near(np.concatenate([own, other])), n[0]),
                (self._near(np.concatenate([other, own])), n[1]),
            )
        )
        return np.unique(np.concatenate([first, second[:, ::-1]]), axis=0)

    def _near(self, texts: np.ndarray) -> np.ndarray:
        """Places of texts at most a window apart, the smaller one first."""
        there = np.flatnonzero([text is not None for text in texts])
        order = there[np.argsort(texts[there].astype(str), kind="stable")]
        _require_pairs(self.window * len(order))
        steps = [
            np.sort(np.column_stack([order[:-step], order[step:]]), axis=1)
            for step in range(1, min(self.window, len(order) - 1) + 1)
        ]
        return np.concatenate([_EMPTY, *steps])


class NearestText:
    """For every record those whose letters are most alike, by n-grams weighted by rarity.

    The fields of a record are one text, so names in each other's field are found as well. The
    texts become unit vectors of TF-IDF weights of their n-grams; nearest means the largest
    product.

    Parameters
    ----------
    columns : sequence of str, default=None
        What the text is made of; None means all that the tables share.
    n_neighbors : int, default=10
        How many others each record asks for, those of the right table as those of the left. A
        pair is a candidate where one of the two asks for the other.
    ngram : int, default=3
        Letters of the shortest pieces; the longest have two more.
    most : int, default=1000
        N-grams that more records have are left out: they say little, and without them the time
        grows with the number of records and not with its square. In large tables the longer
        pieces remain.

    Notes
    -----
    O(n · n-grams · most) time at most. Memory: the texts, every different n-gram once, those of
    each record that two to ``most`` records have, and one block of texts or products under the
    memory budget. Of records that are equally near, the first are taken.

    Examples
    --------
    >>> from kernelmetric.linkage import NearestText, candidate_pairs
    >>> left = [{"name": "Anna Berg"}, {"name": "Paul Stone"}]
    >>> right = [{"name": "Pawl Stone"}, {"name": "Anna Burg"}, {"name": "Eve Hill"}]
    >>> candidate_pairs(left, right, [NearestText(n_neighbors=1)]).tolist()
    [[0, 1], [1, 0]]
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        n_neighbors: int = 10,
        *,
        ngram: int = 3,
        most: int = 1000,
    ):
        self.columns = columns
        self.n_neighbors = _checked_count("n_neighbors", n_neighbors)
        self.ngram = _checked_count("ngram", ngram)
        self.most = _checked_count("most", most)

    def pairs(self, left: Any, right: Any = None) -> np.ndarray:
        """The pairs of two tables, or of one.

        Parameters
        ----------
        left, right : DataFrame
            The tables; without ``right`` pairs are inside ``left``.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Row numbers.
        """
        Q, X = self._weights(left, right)
        if Q.nnz == 0 or X.nnz == 0:
            return _EMPTY
        if right is None:
            return _inside(most_alike(Q, X, self.n_neighbors, one=True))
        return _of_both(lambda A, B, n: most_alike(A, B, n, one=False), Q, X, self.n_neighbors)

    def _weights(self, left: Any, right: Any) -> tuple[Any, Any]:
        columns = self.columns
        if columns is None:
            columns = [c for c in left.columns if right is None or c in right.columns]
        if not len(columns):
            raise ValueError(
                "Got two tables without a common column: rename them, or name columns= of both."
            )
        lines = []
        for table in [left] if right is None else [left, right]:
            texts = [""] * len(table)
            for column in columns:  # one at a time: texts of all columns would be held twice
                more = texts_of(column_of(table, column))
                texts = [
                    f"{old} {new}" if old and new else old or new or ""
                    for old, new in zip(texts, more, strict=True)
                ]
            lines += texts
        if not any(line and len(line) + 2 >= self.ngram for line in lines):
            raise ValueError(f"Got records without a text of {self.ngram} letters.")
        weights = TextWeights(lines, range(self.ngram, self.ngram + 3), self.most)
        Q = weights.rows(lines[: len(left)])
        return Q, Q if right is None else weights.rows(lines[len(left) :])


class NearestPoints:
    """For every record those nearest under a fitted metric.

    Parameters
    ----------
    metric : fitted metric
        Anything with ``transform`` that takes the tables, such as a pipeline that ends in a metric
        of the library.
    n_neighbors : int, default=10
        How many others each record asks for, those of the right table as those of the left. A
        pair is a candidate where one of the two asks for the other.
    columns : sequence of str, default=None
        What the metric is given; None means the whole tables.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from kernelmetric.linkage import NearestPoints, candidate_pairs
    >>> rule = NearestPoints(FunctionTransformer(), n_neighbors=1)
    >>> candidate_pairs([{"x": 0.0}, {"x": 5.0}], [{"x": 4.0}, {"x": 1.0}], [rule]).tolist()
    [[0, 1], [1, 0]]
    """

    def __init__(self, metric: Any, n_neighbors: int = 10, *, columns: Sequence[str] | None = None):
        self.metric = metric
        self.n_neighbors = _checked_count("n_neighbors", n_neighbors)
        self.columns = columns

    def pairs(self, left: Any, right: Any = None) -> np.ndarray:
        """The pairs of two tables, or of one.

        Parameters
        ----------
        left, right : DataFrame
            The tables; without ``right`` pairs are inside ``left``.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Row numbers.
        """
        A = self._points(left)
        if right is None:
            return _inside(_nearest(A, A, self.n_neighbors, own=True))
        return _of_both(_nearest, A, self._points(right), self.n_neighbors)

    def _points(self, table: Any) -> np.ndarray:
        Z = self.metric.transform(table if self.columns is None else table[list(self.columns)])
        Z = to_numpy(Z.to_numpy() if hasattr(Z, "to_numpy") else Z)
        if Z.dtype.kind not in "fiu" or not np.all(np.isfinite(Z)):
            raise ValueError(
                f"Got points of dtype {Z.dtype} from {type(self.metric).__name__}, but expected "
                "finite numbers: fill in what is missing first."
            )
        return Z.astype(Z.dtype if Z.dtype.kind == "f" else np.float64)


def candidate_pairs(left: Any, right: Any = None, rules: Sequence[Any] | None = None) -> np.ndarray:
    """Pairs of records worth a comparison: all that one of the rules names.

    Parameters
    ----------
    left : DataFrame or list of dict
        Records.
    right : DataFrame or list of dict, default=None
        Records of another table; None looks for pairs inside ``left``.
    rules : sequence, default=None
        :class:`EqualKeys`, :class:`SortedNeighborhood`, :class:`NearestText`,
        :class:`NearestPoints`, or anything with ``pairs(left, right)``. None means
        ``[NearestText()]``.

    Returns
    -------
    ndarray of shape (n_pairs, 2), dtype intp
        Row numbers of the left and of the right table, each pair once, in ascending order. Inside
        one table the first is smaller.

    Examples
    --------
    >>> from kernelmetric.linkage import EqualKeys, SortedNeighborhood, candidate_pairs
    >>> left = [{"name": "Ann", "city": "Rome"}, {"name": "Bob", "city": "Bern"}]
    >>> right = [{"name": "Anne", "city": "Oslo"}, {"name": "Rob", "city": "Bern"}]
    >>> candidate_pairs(left, right, [EqualKeys("city"), SortedNeighborhood("name", 1)]).tolist()
    [[0, 0], [1, 0], [1, 1]]
    """
    left = as_table(left)
    right = None if right is None else as_table(right)
    width = len(left if right is None else right)
    codes = np.empty(0, dtype=np.int64)
    for rule in [NearestText()] if rules is None else rules:
        if not hasattr(rule, "pairs"):
            raise ValueError(
                f"Got the rule {rule!r}, but expected one with pairs(left, right), such as "
                "EqualKeys('name')."
            )
        pairs = np.asarray(rule.pairs(left, right), dtype=np.int64)
        codes = np.union1d(codes, pairs[:, 0] * width + pairs[:, 1])
    return np.column_stack(np.divmod(codes, max(width, 1))).astype(np.intp)


@dataclass(frozen=True)
class CandidateScores:
    """How good candidates are, where it is known which pairs match.

    Parameters
    ----------
    recall : float
        The part of the true matches among the candidates: no later step finds the others.
    reduction : float
        The part of all pairs that need not be compared.
    n_pairs : int
        Number of candidates.
    match_share : float
        The part of the candidates that are matches.
    """

    recall: float
    reduction: float
    n_pairs: int
    match_share: float


def score_candidates(
    pairs: Any, truth: Any, n_left: int, n_right: int | None = None
) -> CandidateScores:
    """Recall and reduction of candidates whose truth is known.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
        Candidates, each once.
    truth : array-like of shape (n_matches, 2)
        The pairs that match.
    n_left, n_right : int
        Number of records of the tables; without ``n_right`` pairs are inside one.

    Returns
    -------
    CandidateScores
        Recall, reduction, number of pairs, share of matches.

    Examples
    --------
    >>> from kernelmetric.linkage import score_candidates
    >>> score_candidates([[0, 1], [1, 1]], [[0, 1], [2, 2]], 3, 4)
    CandidateScores(recall=0.5, reduction=0.8333333333333334, n_pairs=2, match_share=0.5)
    """
    width = n_left if n_right is None else n_right
    found, true = (np.unique(_codes(each, width, one=n_right is None)) for each in (pairs, truth))
    if not len(true):
        raise ValueError("Got truth without a pair, but expected the pairs that match.")
    hits = int(np.isin(true, found).sum())
    total = n_left * (n_left - 1) // 2 if n_right is None else n_left * n_right
    return CandidateScores(
        hits / len(true), 1 - len(found) / total, len(found), hits / max(len(found), 1)
    )


def known_as(pairs: np.ndarray, truth: Any, n_left: int, n_right: int | None = None) -> np.ndarray:
    """Which pairs are among the true ones."""
    width, one = (n_left if n_right is None else n_right), n_right is None
    return np.isin(_codes(pairs, width, one=one), _codes(truth, width, one=one))


def _codes(pairs: Any, width: int, *, one: bool) -> np.ndarray:
    array = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    array = np.sort(array, axis=1) if one else array
    return array[:, 0] * width + array[:, 1]


def _nearest(A: np.ndarray, B: np.ndarray, n_neighbors: int, *, own: bool = False) -> np.ndarray:
    """Pairs of every point of A and the nearest of B, of its own with others."""
    if own:
        near, _ = nearest_neighbors(A, min(n_neighbors, max(1, len(A) - 1)))
    else:
        near, _ = nearest_neighbors(B, min(n_neighbors, len(B)), queries=A)
    rows, slots = np.nonzero(near >= 0)
    return np.column_stack([rows, near[rows, slots]])


def _of_both(near: Callable[..., np.ndarray], A: Any, B: Any, n_neighbors: int) -> np.ndarray:
    """Pairs in which a row of one table asks for one of the other, whichever it is."""
    pairs = np.concatenate([near(A, B, n_neighbors), near(B, A, n_neighbors)[:, ::-1]])
    return np.unique(pairs, axis=0)


def _inside(pairs: np.ndarray) -> np.ndarray:
    """Pairs of one table, each record with others, the smaller number first."""
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0)


def _require_pairs(n_pairs: int) -> None:
    require_memory(
        4 * 16.0 * n_pairs, f"A list of {n_pairs} candidates", "take a stricter rule of candidates."
    )


def _checked_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"Got {name}={value!r}, but expected an integer from 1 on.")
    return int(value)


def _named(keys: Sequence[Key]) -> str:
    return ", ".join(key if isinstance(key, str) else "a function" for key in keys)
