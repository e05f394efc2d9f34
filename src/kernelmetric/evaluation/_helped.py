"""Whether a learner from pairs finds more than the points as they are."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from kernelmetric.compute import take_rows
from kernelmetric.evaluation._pair_cv import _pairs_argument, check_pairs
from kernelmetric.evaluation._retrieval import Comparison, Found, compared, find_matches
from kernelmetric.graphs import IndexTuples, Matches, Pairs
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.kernelized._places import NotBetterWarning
from kernelmetric.metric import refuse_signed


def compare_with_plain(
    estimator: Any,
    X: Any,
    pairs: Pairs | IndexTuples,
    *,
    documents: Any = None,
    plain: Any = None,
    cv: int = 5,
    random_state: Any = 0,
) -> Comparison:
    """Whether a learner from pairs finds more than the points as they are.

    The points of similar pairs are cut into parts. Without a part, and all pairs that touch it, the
    learner is fitted. Then each point of the part is a query: at which rank among all other points
    is the first one that it belongs with? A warning says so where the metric is clearly worse.

    Parameters
    ----------
    estimator : estimator
        A learner whose ``fit`` takes ``pairs``, ``triplets`` or ``quadruplets``; or a pipeline that
        ends in one.
    X : array-like of shape (n_samples, n_features)
        Points.
    pairs : Pairs, Triplets or Quadruplets
        What is known of them. Similar pairs belong together, or those that should be nearer.
    documents : array-like of int, default=None
        Row numbers among which is searched, such as those of the second of two tables. Other
        points of pairs are the queries then. None: all rows but the query.
    plain : transformer, default=None
        What to compare with, such as ``Normalizer()``; None is the Euclidean distance of X.
    cv : int, default=5
        Number of parts.
    random_state : int, RandomState or None, default=0
        For the parts.

    Returns
    -------
    Comparison
        Recall, MRR and nDCG before and after, with intervals over queries.

    See Also
    --------
    cross_validate_pairs : Whether similar pairs are nearer than dissimilar ones.

    Notes
    -----
    ``cv`` fits, and O(n_queries n_samples n_features) time; a block of queries in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import ITML, Pairs
    >>> from kernelmetric.evaluation import compare_with_plain
    >>> rng = np.random.RandomState(0)
    >>> things = rng.standard_normal((60, 4))
    >>> X = np.vstack([things + rng.standard_normal((60, 4)) * [3, 0.1, 0.1, 0.1] for _ in "ab"])
    >>> rows = np.arange(60)
    >>> pairs = Pairs(np.c_[rows, rows + 60], np.c_[rows, 60 + (rows + 1) % 60], n_samples=120)
    >>> found = compare_with_plain(ITML(), X, pairs)
    >>> found.gain[1].low > 0
    True
    """
    check_pairs(pairs, X)
    n = pairs.n_samples
    rows, matches = _matches(pairs, documents, n)
    asked = check_random_state(random_state).permutation(matches.queries)
    hint = "folds of the points that are in a similar pair"
    Numbers(Integral, 2, len(asked)).require("cv", cv, hint=hint)
    before, after = (np.empty((3, len(asked))) for _ in range(2))
    for k in range(cv):
        held, part = asked[k::cv], slice(k, None, cv)
        teach = ~np.any(np.isin(pairs.rows, held), axis=1)
        metric = clone(estimator)
        metric.fit(X, **_pairs_argument(metric, pairs.take(np.flatnonzero(teach))))
        refuse_signed(metric)
        base = None if plain is None else clone(plain).fit(X)
        for found, of in ((before, base), (after, metric)):
            Z = X if of is None else of.transform(X)
            Z = Z if hasattr(Z, "take") and not hasattr(Z, "columns") else np.asarray(Z, float)
            Q, D = take_rows(Z, held), take_rows(Z, rows)
            found[:, part] = find_matches(Q, D, matches, held, rows, cosine=False)
    gain = 1 / after[0] - 1 / before[0]
    if np.mean(gain) < -2 * np.std(gain, ddof=1) / np.sqrt(len(gain)):
        new, old = (float(np.mean(found[0] <= 1)) for found in (after, before))
        warnings.warn(
            f"{type(estimator).__name__} finds fewer of the pairs left out than the points as they "
            f"are: recall at one {new:.3f} beside {old:.3f}. Try Adapter, which "
            "keeps the points as they are where nothing is better.",
            NotBetterWarning,
            stacklevel=2,
        )
    return compared(Found(*before), Found(*after))


def _matches(pairs: Pairs | IndexTuples, documents: Any, n: int) -> tuple[np.ndarray, Matches]:
    """The rows that are searched, and which queries match which of them."""
    near = pairs.near if isinstance(pairs, IndexTuples) else pairs.similar
    both = np.unique(np.concatenate([near, near[:, ::-1]]), axis=0)
    rows = np.arange(n)
    if documents is not None:
        rows = np.unique(np.asarray(documents))
        if rows.dtype.kind not in "iu" or not len(rows) or rows[0] < 0 or rows[-1] >= n:
            raise ValueError(
                f"Got documents of {rows.dtype}, from {min(rows, default=None)} to "
                f"{max(rows, default=None)}, but expected row numbers of {n} rows, as integers."
            )
        found = np.isin(both, rows)
        both = both[found[:, 1] & ~found[:, 0]]
    return rows, Matches.of_pairs(both, n)
