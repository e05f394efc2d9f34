"""Rules for records worth a comparison: they need no labels, and never list all pairs."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelmetric._warnings import warn
from kernelmetric.compute import require_memory, to_numpy
from kernelmetric.compute.reductions import most_alike, nearest_neighbors
from kernelmetric.inputs._parameters import COUNT
from kernelmetric.linkage import _fields
from kernelmetric.linkage._bags import hashed
from kernelmetric.linkage._fields import Key
from kernelmetric.linkage._ngrams import TextWeights

STRICTER = "take a stricter rule of candidates."
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Rule:
    """Which records are worth a comparison; classes define ``_pairs(left, right)``."""

    _pairs: Any

    def pairs(self, left: Any, right: Any = None) -> np.ndarray:
        """The pairs of two tables, or of one.

        Parameters
        ----------
        left, right : DataFrame
            The tables; without ``right`` pairs are inside ``left``.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Row numbers, each pair once, in ascending order.
        """
        pairs, width = self._pairs(left, right), max(1, len(left if right is None else right))
        return np.column_stack(np.divmod(distinct(pairs[:, 0] * width + pairs[:, 1]), width))


class NearestRule(Rule):
    """For every record those nearest.

    Classes define ``_points(left, right)``, the records of both tables as points, those of one
    table twice, and ``_nearest(A, B, one=...)``: pairs of every point of A and the nearest of B.
    """

    _points: Any
    _nearest: Any

    def _pairs(self, left: Any, right: Any) -> np.ndarray:
        A, B = self._points(left, right)
        if right is None:
            pairs = self._nearest(A, A, one=True)
            return np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        return self._nearest_of_both(A, B)  # one of the two asks for the other, whichever it is

    def _nearest_of_both(self, A: Any, B: Any) -> np.ndarray:
        asked = self._nearest(B, A, one=False)[:, ::-1]
        return np.concatenate([self._nearest(A, B, one=False), asked])


class EqualKeys(Rule):
    """Records whose keys are equal: a blocking rule.

    Parameters
    ----------
    *keys : str or callable
        Columns, or functions from a table to one value for each record. All must be equal. A
        record without one of them is in no pair. A single key may give a list of values for each
        record, such as its words: records that share one of them are pairs.
    most : int, default=100_000
        Maximum number of pairs of one key; a key with more is left out, with a warning.

    See Also
    --------
    kernelmetric.linkage.NearestText : For texts that differ by letters.
    kernelmetric.linkage.candidate_pairs : Takes the rule.

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

    def _pairs(self, left: Any, right: Any) -> np.ndarray:
        whole: dict[Key, bool] = {}
        sides = [self.coded(table, whole, {}) for table in (left, right) if table is not None]
        return self.joined(sides).to_numpy(np.intp)

    def coded(self, table: Any, whole: dict[Key, bool], hashes: Any, first: int = 0) -> Any:
        """Codes of the keys, 64 bits, of each record that has all of them; and its row number.

        What is kept from one call to the next: which columns hold whole numbers, of all pieces of
        a table, and the hashes of columns, of one piece. Rows are numbered from ``first`` on.
        """
        import pandas as pd

        rows, columns = lines_of(self.keys, table)
        code, there = np.zeros(len(rows), np.uint64), np.ones(len(rows), bool)
        for key, column in zip(self.keys, columns, strict=True):
            if key not in hashes:
                column = _fields.as_series(column)
                if column.dtype.kind == "f" and column.notna().any():
                    exact = _fields.is_whole(column)
                    if whole.setdefault(key, exact) != exact:
                        raise ValueError(
                            f"Got numbers, some with fractions, as the key {key!r}, but expected "
                            "texts or whole numbers: round them first, or write them as texts."
                        )
                at, texts = _fields.coded_texts(column)
                hashes[key] = hashed(np.append(texts, ""))[at], at >= 0
            more, known = hashes[key]
            there &= known
            code = (code * _MIX) ^ more
        return pd.DataFrame({"code": code[there], "row": rows[there].astype(np.int64) + first})

    def joined(self, sides: list[Any]) -> Any:
        """Rows of equal codes; of one table, or two: data frames of pandas, or those of Dask."""
        one = len(sides) == 1
        n, m = (sides[k].groupby("code").size().to_frame(f"n{k}") for k in (0, -1))
        both = n.join(m, how="inner")
        both = both.compute() if hasattr(both, "compute") else both
        counts = both["n0"] * both["n-1"]
        pairs = (counts - both["n0"]) // 2 if one else counts
        large = pairs > self.most
        if n_large := int(large.sum()):
            warn(self.too_large(n_large, int(pairs[large].sum())))
        n_joined = int(counts[~large].sum())
        require_memory(64.0 * n_joined, f"A list of {n_joined} candidates", STRICTER)
        kept = sides[0].merge(both[~large][[]], left_on="code", right_index=True)
        found = kept.merge(sides[-1], on="code")[["row_x", "row_y"]]
        return found[found["row_x"] < found["row_y"]] if one else found

    def too_large(self, n_keys: int, n_pairs: int) -> str:
        """What to say of keys that are left out."""
        names = [key if isinstance(key, str) else "a function" for key in self.keys]
        return (
            f"Left out {n_keys} keys of {', '.join(names)} that more than most={self.most} pairs "
            f"share, {n_pairs} pairs in all: add a key, or raise most."
        )


@dataclass(eq=False, repr=False)
class NearestText(NearestRule):
    """For every record those whose letters are most alike, by n-grams weighted by rarity.

    The fields of a record are one text, whose unit vector has TF-IDF weights of its n-grams;
    nearest means the largest product, of equal ones the first. O(n · n-grams · most) time at most.

    Parameters
    ----------
    columns : sequence of str, default=None
        What the text is made of; None means all that the tables share.
    n_neighbors : int, default=10
        How many others each record asks for. A pair is a candidate where one of the two asks for
        the other.
    ngram : int, default=3
        Letters of the shortest pieces; the longest have two more.
    most : int, default=1000
        N-grams that more records have are left out: they say little, and take long.

    See Also
    --------
    kernelmetric.linkage.NearestPoints : For numbers.
    kernelmetric.linkage.candidate_pairs : Takes the rule.

    Examples
    --------
    >>> from kernelmetric.linkage import NearestText, candidate_pairs
    >>> left = [{"name": "Anna Berg"}, {"name": "Paul Stone"}]
    >>> right = [{"name": "Pawl Stone"}, {"name": "Anna Burg"}, {"name": "Eve Hill"}]
    >>> candidate_pairs(left, right, [NearestText(n_neighbors=1)]).tolist()
    [[0, 1], [1, 0]]
    """

    columns: Sequence[str] | None = None
    n_neighbors: int = 10
    _: KW_ONLY
    ngram: int = 3
    most: int = 1000

    def __post_init__(self) -> None:
        for name in ("n_neighbors", "ngram", "most"):
            COUNT.check(self, name)

    def _points(self, left: Any, right: Any) -> tuple[Any, Any]:
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
                more = _fields.texts_of(_fields.column_of(table, column))
                texts = [" ".join(filter(None, both)) for both in zip(texts, more, strict=True)]
            lines += texts
        if not any(line and len(line) + 2 >= self.ngram for line in lines):
            raise ValueError(
                f"Got records without a text of {self.ngram} letters, but expected some in the "
                f"columns {list(columns)}: take another rule, or a smaller ngram."
            )
        weights = TextWeights(lines, range(self.ngram, self.ngram + 3), self.most)
        Q = weights.rows(lines[: len(left)])
        return Q, Q if right is None else weights.rows(lines[len(left) :])

    def _nearest(self, A: Any, B: Any, *, one: bool) -> np.ndarray:
        return most_alike(A, B, self.n_neighbors, one=one)

    def _nearest_of_both(self, A: Any, B: Any) -> np.ndarray:
        return most_alike(A, B, self.n_neighbors, both=True)


@dataclass(eq=False, repr=False)
class NearestPoints(NearestRule):
    """For every record those nearest under a fitted metric.

    Parameters
    ----------
    metric : fitted metric
        Anything with ``transform`` that takes the tables, such as a pipeline.
    n_neighbors : int, default=10
        How many others each record asks for. A pair is a candidate where one of the two asks for
        the other.
    columns : sequence of str, default=None
        What the metric is given; None means the whole tables.

    See Also
    --------
    kernelmetric.linkage.NearestText : For texts.
    kernelmetric.linkage.candidate_pairs : Takes the rule.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from kernelmetric.linkage import NearestPoints, candidate_pairs
    >>> rule = NearestPoints(FunctionTransformer(), n_neighbors=1)
    >>> candidate_pairs([{"x": 0.0}, {"x": 5.0}], [{"x": 4.0}, {"x": 1.0}], [rule]).tolist()
    [[0, 1], [1, 0]]
    """

    metric: Any
    n_neighbors: int = 10
    _: KW_ONLY
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        COUNT.check(self, "n_neighbors")

    def _points(self, left: Any, right: Any) -> tuple[Any, Any]:
        A = self._embedded(left)
        return A, A if right is None else self._embedded(right)

    def _nearest(self, A: Any, B: Any, *, one: bool) -> np.ndarray:
        k, queries = (max(1, len(A) - 1), None) if one else (len(B), A)
        near, _ = nearest_neighbors(B, min(self.n_neighbors, k), queries=queries)
        rows, slots = np.nonzero(near >= 0)
        return np.column_stack([rows, near[rows, slots]])

    def _embedded(self, table: Any) -> np.ndarray:
        Z = self.metric.transform(table if self.columns is None else table[list(self.columns)])
        Z = to_numpy(Z.to_numpy() if hasattr(Z, "to_numpy") else Z)
        if Z.dtype.kind not in "fiu" or not np.all(np.isfinite(Z)):
            raise ValueError(
                f"Got points of dtype {Z.dtype} from {type(self.metric).__name__}, but expected "
                "finite numbers: fill in what is missing first."
            )
        return Z.astype(Z.dtype if Z.dtype.kind == "f" else np.float64)


def require_keys(rules: Sequence[Any] | None) -> None:
    """Refuse rules of tables that are not in memory, unless they are of keys."""
    wrong = [rule for rule in rules or [None] if not isinstance(rule, EqualKeys)]
    if wrong:
        raise ValueError(
            f"Got the rule {wrong[0]!r} for files or a cluster, but expected EqualKeys alone: "
            "other rules need tables in memory, as kernelmetric.tables.read_table reads them."
        )


def lines_of(keys: Sequence[Key], table: Any) -> tuple[np.ndarray, list[Any]]:
    """Columns of keys, and which record each of their lines is of: a list has a line each value."""
    import pandas as pd

    columns = [_fields.column_of(table, key) for key in keys]
    objects = [each for each in columns if getattr(each, "dtype", "object") == "object"]
    if not any(_fields.holds_numbers(value) for each in objects for value in each):
        return np.arange(len(table)), columns
    if len(keys) > 1:
        raise ValueError(
            f"Got lists of values in a rule of {len(keys)} keys, but expected them as its only "
            "key: write what else must be equal into the values."
        )
    values = pd.Series(columns[0]).reset_index(drop=True).explode()
    codes, texts = _fields.coded_texts(values)
    lines = values.index.to_numpy() * (len(texts) + 1) + codes + 1
    rows, codes = np.divmod(distinct(lines), len(texts) + 1)  # each value of a record once
    return rows, [np.append(np.array([None]), texts)[codes]]


def distinct(codes: np.ndarray) -> np.ndarray:
    """Whole numbers, each once, ascending."""
    return np.unique(codes, return_counts=True)[0]  # sorted: without counts NumPy hashes, slower
