"""How good clusters are, beside the true ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


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
    codes = [
        np.unique(np.asarray(each), return_inverse=True)[1].ravel() for each in (predicted, true)
    ]
    if len(codes[0]) != len(codes[1]) or not len(codes[0]):
        raise ValueError(
            f"Got {len(codes[0])} records beside {len(codes[1])} true ones: expected as many."
        )
    n = len(codes[0])
    together = sparse.coo_array((np.ones(n), tuple(codes))).tocsr()
    together.sum_duplicates()
    overlap = together.data
    sizes = [np.bincount(each).astype(float) for each in codes]

    def pairs(counts: np.ndarray) -> float:
        return float(np.sum(counts * (counts - 1)) / 2)

    precision, recall = (pairs(overlap) / pairs(size) if pairs(size) else 1.0 for size in sizes)
    rows, columns = together.nonzero()
    of_record = [
        float(np.sum(overlap**2 / size[where]) / n)
        for size, where in zip(sizes, (rows, columns), strict=True)
    ]
    both = [(precision, recall), of_record]
    return ClusterScores(*(n for p, r in both for n in (p, r, 2 * p * r / (p + r or 1.0))))
