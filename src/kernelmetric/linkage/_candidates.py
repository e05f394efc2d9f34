"""Which records to compare at all, by rules, and how good that choice is."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelmetric.linkage._duckdb import file_candidates
from kernelmetric.linkage._fields import as_tables
from kernelmetric.linkage._rules import NearestText, distinct, require_keys


def candidate_pairs(left: Any, right: Any = None, rules: Sequence[Any] | None = None) -> np.ndarray:
    """Pairs of records worth a comparison: all that one of the rules names.

    Parameters
    ----------
    left, right : DataFrame, list of dict, or path-like
        Records of two tables; without ``right``, pairs are inside ``left``. For
        :class:`EqualKeys` alone, Parquet files, whose keys DuckDB joins within the memory budget,
        or data frames of Dask, whose keys the workers of its cluster join.
    rules : sequence, default=None
        :class:`EqualKeys`, :class:`NearestText`, :class:`NearestPoints`, or anything with
        ``pairs(left, right)``. None means ``[NearestText()]``.

    Returns
    -------
    ndarray of shape (n_pairs, 2), dtype intp
        Row numbers of the left and of the right table, each pair once, in ascending order. Inside
        one table the first is smaller.

    See Also
    --------
    kernelmetric.linkage.score_candidates : How many true pairs they hold.
    kernelmetric.linkage.EqualKeys : A rule.
    kernelmetric.linkage.NearestText : A rule.

    Examples
    --------
    >>> from kernelmetric.linkage import EqualKeys, candidate_pairs
    >>> left = [{"name": "Ann", "city": "Rome"}, {"name": "Bob", "city": "Bern"}]
    >>> right = [{"name": "Anne", "city": "Oslo"}, {"name": "Rob", "city": "Bern"}]
    >>> initial = EqualKeys(lambda table: table["name"].str[0])
    >>> candidate_pairs(left, right, [EqualKeys("city"), initial]).tolist()
    [[0, 0], [1, 1]]
    """
    if isinstance(left, str | os.PathLike) or isinstance(right, str | os.PathLike):
        with tempfile.TemporaryDirectory() as folder:
            return file_candidates(left, right, rules, folder)
    if any(hasattr(each, "to_delayed") for each in (left, right)):
        return _of_cluster([each for each in (left, right) if each is not None], rules)
    left, right = as_tables(left, right)
    width = len(left if right is None else right)
    codes = np.empty(0, dtype=np.int64)
    for rule in [NearestText()] if rules is None else rules:
        if not hasattr(rule, "pairs"):
            raise ValueError(f"Got the rule {rule!r}, but expected one with pairs(left, right).")
        pairs = np.asarray(rule.pairs(left, right), dtype=np.int64)
        codes = distinct(np.append(codes, pairs[:, 0] * width + pairs[:, 1]))
    return np.column_stack(np.divmod(codes, max(width, 1))).astype(np.intp)


def _of_cluster(tables: list[Any], rules: Sequence[Any] | None) -> np.ndarray:
    """Candidates of data frames of Dask, whose keys are made and joined where the rows lie."""
    from dask import dataframe, delayed

    require_keys(rules)
    if not all(isinstance(table, dataframe.DataFrame) for table in tables):
        raise ValueError("Got one table of Dask, but expected data frames of Dask alone.")
    first = [np.cumsum([0, *table.map_partitions(len).compute()]).tolist() for table in tables]
    found = []
    for rule in rules or ():
        # Whether numbers are whole must not depend on the partition: those with fractions are none.
        coded, whole = delayed(rule.coded), dict.fromkeys(rule.keys, True)
        codes = [
            [coded(part, whole, {}, n) for part, n in zip(table.to_delayed(), begin, strict=False)]
            for table, begin in zip(tables, first, strict=True)
        ]
        sides = [dataframe.from_delayed(parts, meta={"code": "u8", "row": "i8"}) for parts in codes]
        found.append(rule.joined(sides).drop_duplicates().compute().to_numpy(np.intp))
    return np.unique(np.concatenate(found), axis=0)


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

    See Also
    --------
    kernelmetric.linkage.score_candidates : Computes them.

    Examples
    --------
    >>> from kernelmetric.linkage import CandidateScores
    >>> CandidateScores(recall=0.5, reduction=0.8, n_pairs=2, match_share=0.5).recall
    0.5
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
    pairs, truth : array-like of shape (n_pairs, 2) and (n_matches, 2)
        Candidates, each once, and the pairs that match.
    n_left, n_right : int
        Number of records of the tables; without ``n_right`` pairs are inside one.

    Returns
    -------
    CandidateScores
        Recall, reduction, number of pairs, share of matches.

    See Also
    --------
    kernelmetric.linkage.candidate_pairs : The pairs.
    kernelmetric.linkage.CandidateScores : What it returns.

    Examples
    --------
    >>> from kernelmetric.linkage import score_candidates
    >>> score_candidates([[0, 1], [1, 1]], [[0, 1], [2, 2]], 3, 4)
    CandidateScores(recall=0.5, reduction=0.8333333333333334, n_pairs=2, match_share=0.5)
    """
    found, true = (np.unique(_codes(each, n_left, n_right)) for each in (pairs, truth))
    if not len(true):
        raise ValueError("Got truth without a pair, but expected the pairs that match.")
    hits = int(np.isin(true, found).sum())
    total = n_left * (n_left - 1) // 2 if n_right is None else n_left * n_right
    return CandidateScores(
        hits / len(true), 1 - len(found) / total, len(found), hits / max(len(found), 1)
    )


def _codes(pairs: Any, n_left: int, n_right: int | None) -> np.ndarray:
    array = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if n_right is None:
        array = np.sort(array, axis=1)
    return array[:, 0] * (n_right or n_left) + array[:, 1]
