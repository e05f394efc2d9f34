"""The training rows that pull a point to their class."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inspection._columns import as_row, read
from kernelmetric.inspection._maps import embed
from kernelmetric.metric import refuse_signed


@dataclass(frozen=True)
class PointExplanation:
    """The training rows nearest to a point, and what they say of it.

    Parameters
    ----------
    rows : ndarray of int of shape (k,)
        Their row numbers, the nearest first.
    distances : ndarray of shape (k,)
        Their distances in the learned metric.
    labels : ndarray of shape (k,)
        Their labels.
    votes : dict
        The share of the k rows that each label has, the largest first.
    """

    rows: np.ndarray
    distances: np.ndarray
    labels: np.ndarray
    votes: dict[Any, float]


def explain_point(metric: Any, X: Any, y: Any, x: Any, *, n_neighbors: int = 5) -> PointExplanation:
    """Say which training rows pull a point.

    Parameters
    ----------
    metric : fitted metric, pipeline or search
        A linear learner, :class:`Kernelized`, or anything that ends in one.
    X : array-like or data frame of shape (n_samples, n_features)
        The training rows.
    y : array-like of shape (n_samples,)
        Their labels.
    x : array-like of shape (n_features,), or one row of a data frame
        The point. Where it is one of the training rows, it is its own nearest.
    n_neighbors : int, default=5
        How many rows are asked.

    Returns
    -------
    PointExplanation
        Rows, distances, labels and votes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.inspection import explain_point
    >>> iris = load_iris(as_frame=True)
    >>> X, y = iris.data[1:], iris.target_names[iris.target[1:]]
    >>> metric = NCA(random_state=0).fit(X, y)
    >>> why = explain_point(metric, X, y, iris.data.iloc[[0]])
    >>> {str(name): share for name, share in why.votes.items()}
    {'setosa': 1.0}
    """
    refuse_signed(metric)
    reading = read(metric)
    points, labels = reading.features(X), np.asarray(y)
    if labels.shape != (len(points),):
        raise ValueError(
            f"Got y of shape {labels.shape} for {len(points)} rows, but expected one label a row."
        )
    whole = isinstance(n_neighbors, Integral) and not isinstance(n_neighbors, bool)
    if not whole or not 1 <= n_neighbors <= len(points):
        raise ValueError(
            f"Got n_neighbors={n_neighbors!r}, but expected an integer from 1 to {len(points)}, "
            "the number of training rows."
        )
    Z, z = embed(reading.metric, points), embed(reading.metric, reading.features(as_row(x)))
    rows, squares = (part[0] for part in nearest_neighbors(Z, int(n_neighbors), queries=z))
    found, counts = np.unique(labels[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    votes = {found[j]: float(counts[j] / len(rows)) for j in order}
    return PointExplanation(rows, np.sqrt(squares), labels[rows], votes)
