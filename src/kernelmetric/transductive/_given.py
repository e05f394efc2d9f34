"""What a user gives, checked: labels, some of them missing, pairs, weights, a prior, a graph."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from kernelmetric import graphs
from kernelmetric._warnings import warn
from kernelmetric.compute import map_rows, take_rows, to_device, to_numpy
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inputs import as_floats, rows_and_weights, rows_of
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import is_auto
from kernelmetric.tables._cells import is_gap
from kernelmetric.transductive._penalties import warn_of_gaps

_AT_ONCE = 4_096  # rows that are placed together, so that their differences stay in the cache
_SOME = 4  # times as many neighbours, of which those are taken that reach as far
_NEIGHBORS = 5  # unless the user, or labels, ask for others
_TEXT_OF_UNKNOWN = ("-1", "-1.0", "nan", b"-1", b"-1.0", b"nan")


class Source(NamedTuple):
    """What is known of the points: labels, or weights of what should be near and far."""

    classes: Any
    codes: np.ndarray | None
    weights: tuple[Any, Any] | None = None

    def take(self, rows: Any) -> Source:
        """The labels of some points; pairs as they are."""
        return self if self.codes is None else self._replace(codes=self.codes[rows])

    def graphs(self, points: np.ndarray, n_neighbors: int) -> tuple[Any, Any]:
        """Similar and dissimilar weights of the cost graph, symmetric and non-negative."""
        if self.weights is not None:
            return self.weights
        assert self.codes is not None  # there are labels where no weights were given
        return graphs.label_graphs(points, self.codes, min(n_neighbors, len(points)))


def read_source(
    y: Any, n_samples: int, similar: Any, dissimilar: Any, pairs: Any, cost_graph: Any
) -> Source:
    """The one source of the cost that a ``fit`` got."""
    paired = similar is not None or dissimilar is not None or pairs is not None
    if [y is not None, paired, cost_graph is not None].count(True) > 1:
        raise ValueError(
            "Got more than one of y, pairs and cost_graph, but expected one source of the cost."
        )
    if cost_graph is not None:
        C = sparse.csr_array(graphs.check_graph(cost_graph, n_samples, "cost_graph", negative=True))
        return Source(None, None, (C.maximum(0.0), (-C).maximum(0.0)))
    if paired:
        given = graphs.as_pairs(pairs, similar, dissimilar, None, n_samples)
        return Source(None, None, graphs.pair_graphs(given))
    return Source(*partial_labels(y, n_samples))


def counted_rows(
    X: Any, y: Any, given: dict[str, Any], graph: Any, cost_graph: Any, sample_weight: Any
) -> tuple[np.ndarray | None, Any, Any, dict[str, Any], np.ndarray | None]:
    """Rows that count (None for all), their points, labels and pairs, and what each counts."""
    rows, weights = rows_and_weights(sample_weight, X)
    masses = None if weights is None else weights.masses
    if cost_graph is not None and (rows is not None or masses is not None):
        raise ValueError(
            "Got sample_weight beside a cost graph, but expected one of the two: multiply the "
            "weights of its edges, and leave points out of X."
        )
    if rows is None:
        return None, X, y, given, masses
    if y is not None:
        check_consistent_length(X, y)
    if not (isinstance(graph, str) or callable(graph)):
        raise ValueError(
            "Got sample_weight of zero beside a given graph, but expected positive ones: leave "
            "these points out of X and of the graph."
        )
    if any(part is not None for part in given.values()):
        found = graphs.as_pairs(
            given["pairs"], given["similar"], given["dissimilar"], None, X.shape[0]
        )
        given = {"similar": None, "dissimilar": None, "pairs": found.subset(rows)}
    return rows, take_rows(X, rows), rows_of(y, rows), given, masses


def partial_labels(y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes, and codes with -1 where a label is unknown."""
    expected = "class labels with -1 where unknown, or similar and dissimilar pairs"
    require_target(y, "TransductiveDistance", expected)
    y = column_or_1d(y, warn=True)
    check_consistent_length(np.empty((n_samples, 1)), y)
    known, labels = _known_labels(y)
    if not known.any():
        raise ValueError(
            "Got no label at all (y is -1 everywhere), but expected some points of two classes. "
            "For the embedding of the geometry alone, pass a cost_graph of zeros."
        )
    if type_of_target(labels) == "continuous":
        raise ValueError(
            "Unknown label type: got numbers in y, but expected class labels. Try "
            "TransductiveRegressor, for which NaN means unknown."
        )
    check_classification_targets(labels)
    classes, found = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        hint = " (if -1 is the other one: it means unknown, recode it)" if not known.all() else ""
        raise ValueError(
            f"Got 1 class ({classes[0]} for all labelled points), but expected at least two"
            f"{hint}: a metric is learned from what tells classes apart."
        )
    codes = np.full(n_samples, -1, dtype=np.intp)
    codes[known] = found
    return classes, codes


def warn_of_single(source: Source, assumed: str) -> None:
    """Warn of classes with one label, from which nothing can be chosen."""
    if source.codes is None:
        return
    single = source.classes[np.bincount(source.codes[source.codes >= 0]) == 1]
    if len(single):
        warn(f"Got a single label of {len(single)} class(es), such as {single[0]}: {assumed}")


def _known_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which labels are known, and these as an array of numbers or of text."""
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected -1 where unknown.")
    if y.dtype.kind in "biuf":
        return y != -1, y[y != -1]
    known = np.array([not (is_gap(v) or (isinstance(v, Real) and v == -1)) for v in y], dtype=bool)
    values = y[known].tolist()
    kinds = {str if isinstance(value, str) else type(value) for value in values}
    if str in kinds and len(kinds) > 1:
        others = ", ".join(sorted(kind.__name__ for kind in kinds - {str}))
        raise ValueError(
            f"Got labels of text mixed with {others}, but expected one kind: try y.astype(str)."
        )
    made = [value for value in values if value in _TEXT_OF_UNKNOWN]
    if made:
        raise ValueError(
            f"Got the text {made[0]!r} as a label, but expected the number -1, None or NaN where "
            "unknown: try np.array([...], dtype=object), or rename the class."
        )
    return known, np.array(values)


def neighbors_among(n_neighbors: Any, n_samples: int) -> int:
    """How many neighbours a point has among so many ('auto' is 5): from one to all others."""
    wanted = _NEIGHBORS if is_auto(n_neighbors) else n_neighbors
    return int(max(1, min(wanted, n_samples - 1)))


def prior_points(prior: Any, X: Any) -> Any:
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
        X = sparse.csr_array(X) if sparse.issparse(X) else to_numpy(X)
        if X.ndim != 2 or X.shape[0] != n or X.dtype.kind not in "fiu":
            raise ValueError(
                f"Got an array of shape {X.shape} and dtype {X.dtype} from the prior, but expected "
                f"numbers of shape ({n}, p): one row per point."
            )
        if not np.all(np.isfinite(X.data if sparse.issparse(X) else X)):
            raise ValueError("Got NaN or infinity from the prior, but expected finite points.")
    if sparse.issparse(X):
        return sparse.csr_array(X) * 1.0  # numbers of the prior may be integers
    return np.array(as_floats(to_numpy(X)), order="C")


def as_graph(graph: Any, points: np.ndarray, n_neighbors: int, *, quiet: bool = False) -> Any:
    """The symmetric weights that a user means, with warnings where points are left alone."""
    n = points.shape[0]
    W = graph(points.copy()) if callable(graph) else graph  # which may scale them in place
    if isinstance(W, str):
        if W == "neighbors":
            W = graphs.union_graph(nearest_neighbors(to_device(points), min(n_neighbors, n - 1))[0])
        elif W == "gaussian":
            W = graphs.gaussian_graph(points)
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
            W = graphs.union_graph(W)
    W = graphs.check_graph(W, n, "graph")
    if not quiet:
        warn_of_gaps(W)
    return W


def nearest_points(X: Any, k: int, *, queries: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`nearest_neighbors`; up to round-off where X is sparse."""
    if not sparse.issparse(X):
        return nearest_neighbors(to_device(X), k, queries=to_device(queries))
    squares, nearest = NearestNeighbors(algorithm="brute").fit(X).kneighbors(queries, k)
    return nearest, squares**2


def _squares_to(points: Any, neighbors: np.ndarray, queries: Any) -> np.ndarray:
    """Squared distances from each query to its own list of points, from differences."""
    if not sparse.issparse(points):
        delta = points[neighbors] - queries[:, None, :]
        return np.einsum("mkd,mkd->mk", delta, delta)
    deltas = [points[column] - queries for column in neighbors.T]
    return np.stack([np.asarray((d * d).sum(axis=1)).ravel() for d in deltas], axis=1)


def interpolate(
    points: Any, E: np.ndarray, queries: Any, k: int, power: int = 1, reach: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of E at the k nearest points, by a power of one over squares; and who is at a point.

    Squared distances are in units of the ``reach`` of the point, among some more than k.
    """
    if sparse.issparse(points) != sparse.issparse(queries):
        queries = queries.toarray() if sparse.issparse(queries) else sparse.csr_array(queries)
    asked = k if reach is None else min(_SOME * k, points.shape[0])
    neighbors = nearest_points(points, asked, queries=queries)[0]

    def means(rows: slice) -> np.ndarray:
        # From differences: at a training point the distance must be zero, not round-off.
        near = neighbors[rows]
        D2 = _squares_to(points, near, queries[rows])
        if reach is not None:
            D2 = D2 / reach[near]
            first = np.argsort(D2, axis=1, kind="stable")[:, :k]
            D2, near = (np.take_along_axis(part, first, axis=1) for part in (D2, near))
        same = D2 == 0
        # relative to the nearest: one over a tiny square would be infinite
        inverse = D2.min(axis=1, keepdims=True) / np.where(same, 1.0, D2)
        there = same.any(axis=1)
        weights = np.where(there[:, None], same, inverse**power)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.column_stack([np.einsum("mk,mkr->mr", weights, E[near]), there])

    bytes_per_row = 8 * asked * (2 * points.shape[1] + E.shape[1] + 4)
    found = map_rows(means, queries.shape[0], bytes_per_row, most=_AT_ONCE)
    return found[:, :-1], found[:, -1] > 0
