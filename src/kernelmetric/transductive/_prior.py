"""What was known before: the prior metric, and the graph of what is near in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context

from kernelmetric.compute import is_single, nearest_neighbors, there, to_numpy
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
    """The symmetric weights that a user means, and warnings where the graph leaves points alone.

    ``graph``: a name, weights (n, n), row numbers of neighbours (n, k), or a function of the
    points.
    """
    n = len(points)
    W = graph(points.copy()) if callable(graph) else graph  # which may scale them in place
    if isinstance(W, str):
        if W == "neighbors":
            W = union_graph(nearest_neighbors(there(points), min(n_neighbors, n - 1))[0])
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
