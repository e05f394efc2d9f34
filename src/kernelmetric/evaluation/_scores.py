"""Scores of retrieval and of clustering."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import rand_score
from sklearn.metrics.cluster import contingency_matrix

from kernelmetric import compute
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inputs import check_weights
from kernelmetric.kernelized._places import other_neighbors
from kernelmetric.metric import places_of, refuse_signed


def recall_at_k(
    metric: Any, X: Any, y: Any, k: int | Sequence[int] = 1, *, sample_weight: Any = None
) -> float | np.ndarray:
    """How often one of the k nearest other points is of the same class.

    Parameters
    ----------
    metric : fitted metric or None
        Anything with ``transform``; None where X are learned coordinates already.
    X : array-like of shape (n_samples, n_features)
        Points; each is a query among all others.
    y : array-like of shape (n_samples,)
        Their labels. Points alone in their class find nothing, and are no queries.
    k : int or sequence of int, default=1
        How many nearest points to look at.
    sample_weight : array-like of shape (n_samples,), default=None
        What the queries count. All points are there to be found.

    Returns
    -------
    float or ndarray
        The fraction of queries that succeed; one for each k.

    See Also
    --------
    map_at_r : Counts all of the class, not only the first.
    to_faiss : An index to search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import recall_at_k
    >>> recall_at_k(None, *load_iris(return_X_y=True))
    0.96
    """
    lengths = np.atleast_1d(np.asarray(k))
    if lengths.dtype.kind not in "iu" or lengths.ndim != 1 or np.any(lengths < 1):
        raise ValueError(f"Got k={k!r}, but expected an integer >= 1, or several.")
    Z, codes, sizes = _retrieval(metric, X, y)
    lengths = np.minimum(lengths, len(codes) - 1)  # a longer list has nothing more to show
    neighbors = nearest_neighbors(Z, int(lengths.max()))[0]
    hits = (codes[neighbors] == codes[:, None]) & (neighbors >= 0)
    found = np.logical_or.accumulate(hits, axis=1)
    found = np.average(found, axis=0, weights=_query_weights(sample_weight, sizes))[lengths - 1]
    return float(found[0]) if isinstance(k, Integral) else found


def map_at_r(metric: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
    r"""Mean average precision at R, where R is the number of others of the query's class.

    The mean over queries of

    .. math:: \frac{1}{R} \sum_{k=1}^{R} P(k) \, h(k),

    where P(k) is the share of the query's class among its k nearest others, and h(k) is one where
    the k-th is of its class and zero elsewhere: 1 where all of the class come first.

    Parameters
    ----------
    metric, X, y, sample_weight : fitted metric and array-likes
        As in :func:`recall_at_k`.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    recall_at_k : Whether one of the first k is right.

    References
    ----------
    .. [1] Musgrave, Belongie and Lim, "A metric learning reality check", ECCV 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import LMNN, map_at_r
    >>> X, y = load_iris(return_X_y=True)
    >>> map_at_r(LMNN().fit(X, y), X, y) > map_at_r(None, X, y)
    True
    """
    Z, codes, sizes = _retrieval(metric, X, y)
    classes = (np.flatnonzero(codes == code) for code in np.unique(codes[sizes > 1]))
    weights = _query_weights(sample_weight, sizes)
    total = 0.0
    for members in classes:
        precisions = partial(_precisions, Z, codes, weights, members)
        total += compute.sum_rows(precisions, len(members), 6 * 8 * len(members))
    return total / float(np.sum(weights))


def _query_weights(sample_weight: Any, sizes: np.ndarray) -> np.ndarray:
    """What the points count as queries; those that are alone in their class count nothing."""
    weights = 1.0 if sample_weight is None else check_weights(sample_weight, len(sizes))
    weights = np.where(sizes > 1, weights, 0.0)
    if not weights.any():
        raise ValueError("Got sample_weight of zero for all queries, but expected some weight.")
    return weights


def _precisions(
    Z: Any, codes: np.ndarray, weights: np.ndarray, members: np.ndarray, rows: slice
) -> float:
    """Sum, over some members of a class, of the precisions at their R nearest points."""
    queries, R = members[rows], len(members) - 1
    hits = codes[other_neighbors(Z, queries, R)[0]] == codes[members[0]]
    precision = np.cumsum(hits, axis=1) / np.arange(1, R + 1)
    return float(weights[queries] @ np.sum(precision * hits, axis=1)) / R


def pair_counting_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Part of all pairs of points on which two clusterings agree: together in both, or in neither.

    The accuracy of the clustering experiments of [1]_ and [2]_, which is the Rand index. With many
    clusters it is near 1 without merit: see ``adjusted_rand_score`` of scikit-learn.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The two clusterings; the names of the clusters do not matter.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    .. [1] Kwok and Tsang, "Learning with idealized kernels", ICML 2003, section 4.1.
    .. [2] Xing, Ng, Jordan and Russell, "Distance metric learning, with application to
       clustering with side-information", NIPS 2002.

    Examples
    --------
    >>> from kernelmetric.evaluation import pair_counting_accuracy
    >>> pair_counting_accuracy([0, 0, 1, 1], [0, 0, 0, 0])  # two of six pairs
    0.333...
    """
    return float(rand_score(labels_true, labels_pred))


def _retrieval(metric: Any, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Coordinates, class codes, and the size of every point's class."""
    refuse_signed(metric)
    Z = X if metric is None else places_of(metric, X)
    if not hasattr(Z, "dtype") or compute.is_sparse(Z):  # lists, data frames
        Z = np.asarray(Z.toarray() if compute.is_sparse(Z) else Z)
    if not np.all(np.isfinite(compute.to_numpy(Z))):
        raise ValueError("Got points with NaN or infinity, but expected finite ones: impute them.")
    labels = compute.to_numpy(y) if hasattr(y, "dtype") else np.asarray(y)
    if len(labels) != Z.shape[0]:
        raise ValueError(f"Got {len(labels)} labels for {Z.shape[0]} points: expected one each.")
    codes, counts = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    if not np.any(counts > 1):
        raise ValueError("Got no class with two points, but expected some: nothing can be found.")
    return Z, codes, counts[codes]


class ClusterScores(NamedTuple):
    """Precision, recall and F1 of pairs of records, and B-cubed's of records."""

    precision: float
    recall: float
    f1: float
    b3_precision: float
    b3_recall: float
    b3_f1: float


def cluster_scores(predicted: Any, true: Any) -> ClusterScores:
    """Clusters beside the true ones: by pairs, and by records.

    Precision: of all pairs put together, the part that belongs together. Recall: of all that belong
    together, the part that was put together. By records [1]_ the same is counted for the cluster of
    each record, and averaged.

    Parameters
    ----------
    predicted, true : array-like of shape (n_records,)
        The cluster of every record.

    Returns
    -------
    ClusterScores
        Where nothing is put together, or nothing belongs together, a part of nothing is 1.

    References
    ----------
    .. [1] Bagga and Baldwin, "Entity-based cross-document coreferencing using the vector space
       model", ACL 1998.

    Examples
    --------
    >>> from kernelmetric.evaluation import cluster_scores
    >>> scores = cluster_scores([0, 0, 0, 1], [0, 0, 1, 1])
    >>> round(scores.precision, 3), scores.recall, round(scores.b3_precision, 3), scores.b3_recall
    (0.333, 0.5, 0.667, 0.75)
    """
    n = len(predicted)
    if n != len(true) or not n:
        raise ValueError(f"Got {n} records beside {len(true)} true ones: expected as many.")
    together = contingency_matrix(predicted, true, sparse=True).tocoo()
    overlap = together.data.astype(float)
    sizes = [np.asarray(together.sum(axis=axis), dtype=float).ravel() for axis in (1, 0)]

    def pairs(counts: np.ndarray) -> float:
        return float(np.sum(counts * (counts - 1)) / 2)

    precision, recall = (pairs(overlap) / pairs(size) if pairs(size) else 1.0 for size in sizes)
    of_record = [
        float(np.sum(overlap**2 / size[where]) / n)
        for size, where in zip(sizes, (together.row, together.col), strict=True)
    ]
    both = [(precision, recall), of_record]
    return ClusterScores(*(n for p, r in both for n in (p, r, 2 * p * r / (p + r or 1.0))))
