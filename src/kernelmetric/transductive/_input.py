"""What a fit got, checked: labels of which some are missing, the prior metric, the graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from kernelmetric.compute import nearest_neighbors, to_numpy
from kernelmetric.graphs import check_graph, gaussian_graph, neighbor_graph
from kernelmetric.transductive._penalties import warn_of_gaps


def check_partial_labels(y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and codes of labels of which some are -1, which means unknown.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    n_samples : int
        Number of points.

    Returns
    -------
    classes : ndarray
        The labels that occur, -1 aside.
    codes : ndarray of shape (n_samples,)
        Their numbers; -1 where unknown.
    """
    if y is None:
        raise ValueError(
            "TransductiveDistance requires y to be passed, but the target y is None: expected "
            "class labels with -1 where unknown, or similar and dissimilar pairs."
        )
    y = column_or_1d(y, warn=True)
    check_consistent_length(np.empty((n_samples, 1)), y)
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected -1 where unknown.")
    known = np.ones(n_samples, dtype=bool) if y.dtype.kind in "US" else np.asarray(y != -1)
    if not known.any():
        raise ValueError(
            "Got no label at all (y is -1 everywhere), but expected some points of two classes. "
            "For the embedding of the geometry alone, pass a cost_graph of zeros."
        )
    check_classification_targets(y[known])
    classes, found = np.unique(y[known], return_inverse=True)
    if len(classes) < 2:
        hint = " (if -1 is the other one: it means unknown, recode it)" if not known.all() else ""
        raise ValueError(
            f"Got 1 class ({classes[0]!r} for all labelled points), but expected at least two"
            f"{hint}: a metric is learned from what tells classes apart."
        )
    codes = np.full(n_samples, -1, dtype=np.intp)
    codes[known] = found
    single = classes[np.bincount(found) == 1]
    if len(single):
        warnings.warn(
            f"Got a single label of {len(single)} class(es), such as {single[0]!r}: such a point "
            "is only pushed away from others, with nothing to be drawn to.",
            UserWarning,
            stacklevel=4,
        )
    return classes, codes


def prior_points(prior: Any, X: Any) -> np.ndarray:
    """The points in the coordinates of the prior metric, in float64.

    Parameters
    ----------
    prior : fitted metric, callable or None
        What has ``transform``, or is a function of points; None leaves them as they are.
    X : array of shape (n, d)
        Points.

    Returns
    -------
    ndarray of shape (n, p)
        Euclidean distance there is the prior metric.
    """
    if prior is not None:
        function = getattr(prior, "transform", prior)
        if not callable(function):
            raise ValueError(
                f"Got prior={prior!r}, but expected a fitted metric, or a function of points."
            )
        n = X.shape[0]
        with config_context(transform_output="default"):
            X = function(X)
        if X.ndim != 2 or X.shape[0] != n:
            raise ValueError(
                f"Got points of shape {tuple(X.shape)} from the prior, but expected ({n}, p)."
            )
    return np.asarray(to_numpy(X), dtype=np.float64)


def as_graph(graph: Any, points: np.ndarray, n_neighbors: int) -> Any:
    """The graph that a user means, and warnings where it leaves points alone.

    Parameters
    ----------
    graph : str, array or callable
        'neighbors', 'gaussian', weights of shape (n, n), row numbers of neighbours of shape
        (n, k), or a function of the points that returns one of these.
    points : ndarray of shape (n, d)
        Points.
    n_neighbors : int
        For 'neighbors'.

    Returns
    -------
    sparse array or ndarray of shape (n, n)
        Symmetric weights.
    """
    n = len(points)
    W = graph(points) if callable(graph) else graph
    if isinstance(W, str):
        if W == "neighbors":
            W = neighbor_graph(nearest_neighbors(points, min(n_neighbors, n - 1))[0])
        elif W == "gaussian":
            W = gaussian_graph(points)
        else:
            raise ValueError(
                f"Got graph={W!r}, but expected 'neighbors', 'gaussian', weights of shape "
                "(n, n), neighbours of shape (n, k), or a function that makes them."
            )
    elif not sparse.issparse(W):
        W = np.asarray(W)
        if W.ndim == 2 and W.dtype.kind in "iu" and W.shape[1] < n == len(W):
            if W.max(initial=-1) >= n:
                raise ValueError(
                    f"Got a neighbour numbered {W.max()}, but expected rows 0 to {n - 1}."
                )
            W = neighbor_graph(W)
    W = check_graph(W, n, "graph")
    warn_of_gaps(W)
    return W
