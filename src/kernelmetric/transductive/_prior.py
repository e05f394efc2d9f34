"""What was known before: the prior metric, the graph of what is near in it, and new points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context

from kernelmetric.compute import is_single, map_rows, to_device, to_numpy
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.graphs import check_graph, gaussian_graph, union_graph
from kernelmetric.transductive._penalties import warn_of_gaps


def prior_points(prior: Any, X: Any) -> np.ndarray:
    """A copy of the points in coordinates whose Euclidean distance is the prior metric."""
    if prior is not None:
        function = getattr(prior, "transform", prior)
        if not callable(function) or isinstance(prior, type):
            raise ValueError(
                f"Got prior={prior!r}, but expected a fitted metric, or a function of points."
            )
        n = X.shape[0]
        with config_context(transform_output="default"):
            X = function(X)
        X = to_numpy(X)
        if X.ndim != 2 or X.shape[0] != n or X.dtype.kind not in "fiu":
            raise ValueError(
                f"Got an array of shape {X.shape} and dtype {X.dtype} from the prior, but expected "
                f"numbers of shape ({n}, p): one row per point."
            )
        if not np.all(np.isfinite(X)):
            raise ValueError("Got NaN or infinity from the prior, but expected finite points.")
    X = to_numpy(X)
    return np.array(X, dtype=np.float32 if is_single(X) else np.float64, order="C")


def as_graph(graph: Any, points: np.ndarray, n_neighbors: int) -> Any:
    """The symmetric weights that a user means, with warnings where points are left alone."""
    n = len(points)
    W = graph(points.copy()) if callable(graph) else graph  # which may scale them in place
    if isinstance(W, str):
        if W == "neighbors":
            W = union_graph(nearest_neighbors(to_device(points), min(n_neighbors, n - 1))[0])
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
            W = union_graph(W)
    W = check_graph(W, n, "graph")
    warn_of_gaps(W)
    return W


def interpolate(points: np.ndarray, E: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Mean of the embedding at the k nearest points, weighed by one over the squared distance."""
    neighbors = nearest_neighbors(points, k, queries=queries)[0]

    def means(rows: slice) -> np.ndarray:
        # From differences: at a training point the distance must be zero, not round-off.
        delta = points[neighbors[rows]] - queries[rows, None, :]
        D2 = np.einsum("mkd,mkd->mk", delta, delta)
        same = D2 == 0
        # relative to the nearest: one over a tiny square would be infinite
        inverse = D2.min(axis=1, keepdims=True) / np.where(same, 1.0, D2)
        weights = np.where(same.any(axis=1, keepdims=True), same, inverse)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("mk,mkr->mr", weights, E[neighbors[rows]])

    return map_rows(means, len(queries), 8 * k * (2 * points.shape[1] + E.shape[1] + 4))
