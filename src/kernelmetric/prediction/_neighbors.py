"""Neighbours among learned coordinates, what their distances make them weigh, and novelty.

Learned coordinates of a kernel cannot say how far a point is from all others: far from them an RBF
kernel is zero, and all such points lie at one place. The kernel's own distance can.
"""

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
_SAMPLE = 300


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


def spread(E: np.ndarray) -> float:
    """Root mean squared distance of the points from their mean; 1 where they coincide."""
    size = float(np.sqrt(np.sum(np.var(E, axis=0, dtype=np.float64))))
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
    anchors = inner.space_.anchors_
    n = anchors.shape[0]
    some = np.linspace(0, n - 1, min(n, _SAMPLE)).round().astype(np.intp)
    return float(np.median(_to_anchors(inner, take_rows(anchors, some), RANK))) or 1.0


def _to_anchors(inner: Any, X: Any, rank: int) -> np.ndarray:
    kernel, _, _ = without_ridge(inner.kernel_)
    anchors = inner.space_.anchors_
    own = kernel.diag(anchors)
    place = min(rank, anchors.shape[0] - 1)

    def work(rows: slice) -> np.ndarray:
        block = X[rows, :]
        xp = namespace(own)
        squares = xp.reshape(kernel.diag(block), (-1, 1)) + own - 2.0 * kernel(block, anchors)
        return np.partition(to_numpy(squares), place, axis=1)[:, place]

    squares = map_rows(work, X.shape[0], 4 * 8 * anchors.shape[0])
    return np.sqrt(np.maximum(squares, 0.0)).astype(np.float64)
