"""How far a point is from all training points, by the kernel's own distance where there is one.

Learned coordinates of a kernel cannot say it: far from all training points an RBF kernel is zero,
and all such points lie at one place, somewhere between the classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline

from kernelmetric.compute import map_rows, namespace, take_rows, to_numpy
from kernelmetric.kernelized import Kernelized
from kernelmetric.metric import innermost
from kernelmetric.selection._ridge_kpca import without_ridge

RANK = 5  # of the neighbour: one odd training point does not make others usual
_SAMPLE = 1000


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
