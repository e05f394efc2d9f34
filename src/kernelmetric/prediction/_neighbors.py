"""Neighbours among learned coordinates, what their distances make them weigh, and novelty.

Learned coordinates of a kernel cannot say how far a point is from all others: far from them an RBF
kernel is zero, and all such points lie at one place. The kernel's own distance can.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline

from kernelmetric.compute import map_rows, namespace, take_rows, to_numpy
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernelized._places import other_neighbors
from kernelmetric.metric import innermost
from kernelmetric.selection._ridge_kpca import without_ridge

MOST = 100  # neighbours that may vote
NUMBERS = (5, 10, 20, 50, MOST)
TEMPERATURES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 3.0)
RANK = 5  # of the neighbour: one odd training point does not make others usual
_SAMPLE = 1000
_ROUNDING = 2 * float(np.finfo(np.float32).eps)  # of sums of squares in float32, relative
# Ties and near ties: what is nothing beside a squared distance, and beside the narrowest width.
_NO_MATTER, _NO_VOTE = 1e-4, 1e-5


class Neighbors(NamedTuple):
    """Rows (m, k) of the nearest training points, and squared distances, ascending."""

    rows: np.ndarray
    squares: np.ndarray

    def weights(self, n_neighbors: int, width: float) -> np.ndarray:
        """``exp(-(d² - d₁²) / 2 width²)`` of the first so many, d₁ the nearest distance."""
        squares = self.squares[:, :n_neighbors]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(np.exp((squares[:, :1] - squares) / (2 * width**2)))


def nearest(E: np.ndarray, queries: np.ndarray, k: int) -> Neighbors:
    """The exact k nearest rows of E, or all there are."""
    return Neighbors(*nearest_neighbors(E, min(k, len(E)), queries=queries))


def nearest_others(E: np.ndarray, rows: np.ndarray, k: int) -> Neighbors:
    """The exact k nearest of the other rows of E, for some of its rows."""
    return Neighbors(*other_neighbors(E, rows, min(k, len(E) - 1)))


class FaissIndex(NamedTuple):
    """A faiss index of ``(E - middle) / unit``, for which float32 has digits."""

    index: Any
    middle: np.ndarray
    unit: float

    def scaled(self, E: np.ndarray) -> np.ndarray:
        """Coordinates as the index has them; infinite where float32 has no such number."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ascontiguousarray((E - self.middle) / self.unit, dtype=np.float32)


def nearest_by_faiss(found: FaissIndex, E: np.ndarray, queries: np.ndarray, k: int) -> Neighbors:
    """The k nearest rows of E that an index finds; searched exactly where float32 may be wrong."""
    k = min(k, len(E))
    scaled = found.scaled(queries)
    near, rows = found.index.search(scaled, min(2 * k + 10, len(E)))
    squares = np.stack([np.sum((E[column] - queries) ** 2, axis=1) for column in rows.T], axis=1)
    squares[rows < 0] = np.inf
    with np.errstate(all="ignore"):  # what overflows is searched exactly
        error = _lost(near, squares / found.unit**2, scaled)
        order = np.argsort(squares, axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1).astype(np.intp)
        squares = np.take_along_axis(squares, order, axis=1)
        farthest = squares[:, k - 1]
        sure = np.isfinite(farthest)
        if rows.shape[1] < len(E):  # a point that was left out may be nearer by the error
            gap, nothing = (squares[:, -1] - farthest, farthest) / np.square(found.unit)
            nothing = np.minimum(_NO_MATTER * nothing, _NO_VOTE)
            sure &= (error <= np.maximum(gap, nothing)) | (farthest == 0)
    rows, squares = rows[:, :k], squares[:, :k]
    if not sure.all():
        exact = nearest(E, queries[~sure], k)
        rows[~sure], squares[~sure] = exact.rows, exact.squares
    return Neighbors(rows, squares)


def _lost(near: np.ndarray, squares: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """By how much float32 may be wrong about a squared distance to a query, of points near it."""
    # A formula with |q|² may lose its digits, one with differences does not: what was found tells
    # which it was, unless the index rounds points itself.
    seen = np.max(np.abs(near - squares), axis=1, where=np.isfinite(squares), initial=0.0)
    sizes = np.sum(np.square(queries, dtype=np.float64), axis=1)
    return np.minimum(4 * seen, _ROUNDING * (8 * sizes + 2 * np.max(squares, axis=1)))


def faiss_index(E: np.ndarray, factory: str) -> FaissIndex:
    """A faiss index of learned coordinates."""
    middle = np.median(E, axis=0)  # which sentinels do not move
    unit = float(np.median(np.sqrt(np.sum((E - middle) ** 2, axis=1)))) or spread(E)
    about = FaissIndex(None, middle, unit)
    return about._replace(index=filled_index(about.scaled(E), factory, "index"))


def filled_index(points: np.ndarray, factory: str, parameter: str) -> Any:
    """What faiss makes of points in float32; ``parameter`` names the factory in messages."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            f"{parameter}={factory!r} needs the package faiss-cpu, which is not installed: try pip "
            'install "kernelmetric[faiss]".'
        ) from error
    try:
        index = faiss.index_factory(points.shape[1], factory, faiss.METRIC_L2)
        if not index.is_trained:
            index.train(points)
        index.add(points)
    except RuntimeError as error:
        raise ValueError(
            f"Got {parameter}={factory!r}, but expected what faiss.index_factory makes of "
            f"{len(points)} points: try 'Flat', or 'HNSW32'."
        ) from error
    return index


def spread(E: np.ndarray) -> float:
    """Root mean squared distance of the points from their mean; 1 where they coincide."""
    size = float(np.sqrt(np.sum(np.var(E, axis=0))))
    return size if size > 0 else 1.0


def class_shares(
    found: Neighbors, weights: np.ndarray, codes: np.ndarray, priors: np.ndarray
) -> np.ndarray:
    """Share of every class in the votes, with one more vote that is divided as the classes are."""
    (m, k), c = weights.shape, len(priors)
    cells = np.arange(m)[:, None] * c + codes[found.rows[:, :k]]
    votes = np.bincount(cells.ravel(), weights=weights.ravel(), minlength=m * c).reshape(m, c)
    return (votes + priors) / (votes.sum(axis=1, keepdims=True) + 1.0)


def weighted_moments(
    found: Neighbors, weights: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean of the neighbours' targets, and their standard deviation around it."""
    values = y[found.rows[:, : weights.shape[1]]]
    total = weights.sum(axis=1)
    mean = np.sum(weights * values, axis=1) / total
    variance = np.sum(weights * (values - mean[:, None]) ** 2, axis=1) / total
    return mean, np.sqrt(variance)


def has_kernel_distance(metric: Any) -> bool:
    """Whether a fitted metric has training points, or landmarks, and a kernel to compare with."""
    inner = innermost(metric)
    if not isinstance(inner, Kernelized) or inner.kernel_.pairwise:
        return False
    return getattr(inner.space_, "anchors_", None) is not None


def kernel_distances(metric: Any, X: Any) -> np.ndarray:
    """Distance in the kernel's feature space to the fifth nearest training point, or landmark."""
    inner = innermost(metric)
    with config_context(transform_output="default"):
        while metric is not inner:
            if isinstance(metric, Pipeline):
                X = metric[:-1].transform(X) if len(metric.steps) > 1 else X
                metric = metric[-1]
            else:
                metric = metric.best_estimator_
        return _to_anchors(inner, inner._checked(X), RANK - 1)


def usual_kernel_distance(metric: Any) -> float:
    """Median of that distance over the training points, each of them left out."""
    inner = innermost(metric)
    anchors = _anchors(inner)
    n = anchors.shape[0]
    some = np.linspace(0, n - 1, min(n, _SAMPLE)).round().astype(np.intp)
    return float(np.median(_to_anchors(inner, take_rows(anchors, some), RANK))) or 1.0


def _anchors(inner: Any) -> Any:
    """Training points; of many, the landmarks."""
    anchors = inner.space_.anchors_
    return anchors[: getattr(inner.space_, "n_landmarks_", 0) or anchors.shape[0], :]


def _to_anchors(inner: Any, X: Any, rank: int) -> np.ndarray:
    kernel, _, _ = without_ridge(inner.kernel_)
    anchors = _anchors(inner)
    own = kernel.diag(anchors)
    place = min(rank, anchors.shape[0] - 1)

    def work(rows: slice) -> np.ndarray:
        block = X[rows, :]
        xp = namespace(own)
        squares = xp.reshape(kernel.diag(block), (-1, 1)) + own - 2.0 * kernel(block, anchors)
        return np.partition(to_numpy(squares), place, axis=1)[:, place]

    squares = map_rows(work, X.shape[0], 4 * 8 * anchors.shape[0])
    return np.sqrt(np.maximum(squares, 0.0)).astype(np.float64)
