"""Queries and the documents found for them: ranks, and scores with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from kernelmetric.compute import backend_of, map_rows, namespace, take_rows, to_numpy
from kernelmetric.compute.reductions import k_smallest
from kernelmetric.evaluation._thresholds import Estimate, wilson
from kernelmetric.graphs import Matches
from kernelmetric.inputs._parameters import COUNT, SHARE, require_word
from kernelmetric.inputs._points import as_floats, as_points
from kernelmetric.kernels._dot import unit_rows as directions

_CONFIDENCE = 0.95
DEPTH = 10  # of nDCG: how far a list is looked at
_TEMPORARIES = 4  # arrays as large as the scores of a block


class Found(NamedTuple):
    """Of some queries the rank of their first match, nDCG at ten, and what each counts."""

    ranks: np.ndarray
    gains: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class RetrievalScores:
    """How well documents are found, with intervals over queries.

    Parameters
    ----------
    recall : dict of int to Estimate
        For each k, how often one of the k first documents matches.
    mrr : Estimate
        Mean of 1 / rank of the first match.
    ndcg : Estimate
        Normalised discounted cumulative gain of the first ten documents.
    n_queries : int
        Queries that have a match.
    """

    recall: dict[int, Estimate]
    mrr: Estimate
    ndcg: Estimate
    n_queries: int

    def __str__(self) -> str:
        recalls = ", ".join(f"recall@{k} {_short(e)}" for k, e in self.recall.items())
        return f"{recalls}, MRR {_short(self.mrr)}, nDCG@10 {_short(self.ndcg)}"


def _short(estimate: Estimate) -> str:
    return "{:.3f} ({:.3f} to {:.3f})".format(*estimate)


def retrieval_scores(
    queries: Any,
    documents: Any,
    pairs: Any,
    *,
    k: Sequence[int] = (1, 5, 10),
    similarity: str = "cosine",
    confidence: float = 0.95,
) -> RetrievalScores:
    """How well the documents of queries are found among all documents.

    Parameters
    ----------
    queries, documents : array-like of shape (n_queries, d) and (n_documents, d)
        Vectors, or what a fitted adapter makes of them.
    pairs : array-like of shape (n_pairs, 2)
        Row numbers (query, document) of what belongs together. Queries in no pair are not asked.
    k : sequence of int, default=(1, 5, 10)
        Lengths of lists for the recall.
    similarity : {'cosine', 'euclidean'}, default='cosine'
        How documents are ranked.
    confidence : float, default=0.95
        How often intervals hold the value of all such queries: Wilson's for recall, normal ones for
        means.

    Returns
    -------
    RetrievalScores
        Documents that tie with the match count half as ranked before it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.evaluation import retrieval_scores
    >>> documents = np.eye(4)
    >>> scores = retrieval_scores(documents[:3] + 0.1, documents, [[0, 0], [1, 1], [2, 3]])
    >>> round(scores.recall[1].value, 3)
    0.667
    """
    Q, D = (as_floats(as_points(X)) for X in (queries, documents))
    if Q.shape[1] != D.shape[1]:
        raise ValueError(
            f"Got queries of {Q.shape[1]} features and documents of {D.shape[1]}, but expected "
            "as many: map either first."
        )
    require_word("similarity", similarity, ("cosine", "euclidean"))
    for each in k:
        COUNT.require("k", each)
    SHARE.require("confidence", confidence)
    matches = Matches.of_pairs(pairs, Q.shape[0], D.shape[0])
    Q, D = (directions(X) if similarity == "cosine" else X for X in (Q, D))
    asked = take_rows(Q, matches.queries)
    found = find_matches(asked, D, matches, matches.queries, cosine=similarity == "cosine")
    return scores_of(found, k, confidence)


def similarities(Q: Any, D: Any, *, cosine: bool) -> Any:
    """Inner products of directions; of points, what falls as the distance grows."""
    S = Q @ D.T
    return S if cosine else S - 0.5 * namespace(D).sum(D * D, axis=1)[None, :]


def find_matches(
    Q: Any, D: Any, matches: Matches, queries: np.ndarray, documents: Any = None, *, cosine: bool
) -> Found:
    """Ranks of the first match of some queries, the rows of Q, among some documents, those of D."""
    documents = np.arange(matches.shape[1]) if documents is None else documents

    def work(rows: slice) -> Any:
        S = similarities(Q[rows, :], D, cosine=cosine)
        xp, asked = namespace(S), queries[rows]
        same, own = (of(asked, documents, S) for of in (matches.relevant, matches.themselves))
        lowest = -xp.inf * xp.ones_like(S[:1, :1])
        if own is not None:
            S, same = xp.where(own, lowest, S), same & ~own
        best = xp.max(xp.where(same, S, lowest), axis=1, keepdims=True)
        before, ties, matches_there = (
            to_numpy(xp.sum(there, axis=1, dtype=xp.int32)).astype(np.float64)
            for there in (S > best, (S == best) & ~same, same)
        )
        return np.column_stack([1.0 + before + 0.5 * ties, _ndcg(-S, same, matches_there)])

    cells = 2**23 if backend_of(D).host else 2**27  # scores of 64 MB; a device takes larger blocks
    most = max(16, cells // max(D.shape[0], 1))
    both = map_rows(work, len(queries), 8.0 * _TEMPORARIES * D.shape[0], most=most)
    return Found(both[:, 0], both[:, 1], matches.query_weights(queries))


def _ndcg(negative: Any, same: Any, counts: np.ndarray) -> np.ndarray:
    """Discounted gains of the first ten, beside those of an ideal list of as many matches."""
    depth = min(DEPTH, same.shape[1])
    first = k_smallest(negative, depth)[0]
    places = first + np.arange(len(first))[:, None] * same.shape[1]
    hits = take_rows(namespace(same).reshape(same, (-1,)), places.ravel())
    discounts = 1.0 / np.log2(np.arange(2, depth + 2))
    ideal = np.append(0.0, np.cumsum(discounts))[np.minimum(counts, depth).astype(np.intp)]
    return to_numpy(hits).reshape(first.shape) @ discounts / np.maximum(ideal, discounts[0])


def scores_of(
    found: Found, k: Sequence[int] = (1, 5, 10), confidence: float = _CONFIDENCE
) -> RetrievalScores:
    """Means and their intervals."""
    z = float(norm.ppf(0.5 + confidence / 2))
    w = found.weights / np.sum(found.weights)
    n = 1.0 / np.sum(w**2)  # queries that equal weights would be worth

    return RetrievalScores(
        {int(each): wilson(min(float(w @ (found.ranks <= each)), 1.0), n, z) for each in k},
        mean_of(1.0 / found.ranks, w, z),
        mean_of(found.gains, w, z),
        len(w),
    )


def mean_of(values: np.ndarray, w: np.ndarray, z: float) -> Estimate:
    """A weighted mean and its normal interval; weights add up to one."""
    mean = float(w @ values)
    error = z * float(np.sqrt(w**2 @ (values - mean) ** 2))
    return Estimate(mean, mean - error, mean + error)


@dataclass(frozen=True)
class Comparison:
    """What a map makes of retrieval, on queries that it has not learned from.

    Parameters
    ----------
    before, after : RetrievalScores
        Of the vectors as they are, and of the map.
    gain : dict of int to Estimate
        For each k the recall after less that before, with the interval of the difference.
    mended, broken : int
        Queries whose first document matches after and not before, and the other way round.
    """

    before: RetrievalScores
    after: RetrievalScores
    gain: dict[int, Estimate]
    mended: int
    broken: int

    def __str__(self) -> str:
        words = [f"on {self.before.n_queries} queries left out", f"before  {self.before}"]
        gains = ", ".join(f"@{k} {e.value:+.3f}" for k, e in self.gain.items())
        end = f"recall {gains}; {self.mended} queries mended, {self.broken} broken"
        return "\n".join([*words, f"after   {self.after}", end])


def compared(before: Found, after: Found) -> Comparison:
    """The comparison of two maps by the same queries."""
    z, w = float(norm.ppf(0.5 + _CONFIDENCE / 2)), before.weights / np.sum(before.weights)
    old, new = (scores_of(found) for found in (before, after))
    gain = {k: mean_of((after.ranks <= k) * 1.0 - (before.ranks <= k), w, z) for k in old.recall}
    was, is_now = before.ranks <= 1, after.ranks <= 1
    return Comparison(old, new, gain, int(np.sum(is_now & ~was)), int(np.sum(was & ~is_now)))
