"""The map of a fitted metric, from features to learned coordinates, and its derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import config_context

from kernelmetric.compute import is_sparse, map_rows, to_numpy
from kernelmetric.inspection._gradients import (
    Box,
    differences,
    gradients,
    has_gradient,
    laplacian_shares,
    split_laplacian,
)
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernelized._folded import can_fold
from kernelmetric.kernels import Kernel, Rescaled
from kernelmetric.learners import Learner
from kernelmetric.selection._ridge_kpca import without_ridge
from kernelmetric.spaces import KernelTrick, Space


class SampledMap:
    """Any map from points (m, d) to coordinates (m, q), known by its values."""

    how = "central differences of transform"
    ridge_scales: np.ndarray | None = None

    def __init__(self, function: Callable[[np.ndarray], np.ndarray], cost: int):
        self.values = function
        self.cost = cost  # operations for a gradient, roughly

    def slopes(self, P: np.ndarray, w: np.ndarray, box: Box) -> np.ndarray:
        """Gradients of the coordinate ⟨w, f(x)⟩ at points."""
        return differences(lambda points: self.values(points) @ w, P, box)


class LinearMap(SampledMap):
    """A linear map: its derivatives are its matrix L, everywhere."""

    how = "exact: the metric is linear"

    def __init__(self, L: np.ndarray):
        super().__init__(lambda P: P @ L.T, L.size)
        self.L = L

    def slopes(self, P: np.ndarray, w: np.ndarray, box: Box) -> np.ndarray:
        """Gradients of the coordinate ⟨w, f(x)⟩ at points."""
        return np.broadcast_to(w @ self.L, P.shape)


class KernelMap(SampledMap):
    """A map x ↦ k(x, B) A without the ridge of k, which moves training points alone."""

    def __init__(self, kernel: Kernel, B: np.ndarray, A: np.ndarray):
        super().__init__(self._coordinates, B.size + A.size)
        self.kernel, _, delta = without_ridge(kernel)
        self.B, self.A = B, A
        scales = delta.scales if isinstance(delta, Rescaled) else np.ones(B.shape[1])
        self.ridge_scales = None if delta is None else np.asarray(scales, dtype=float)
        exact = has_gradient(self.kernel)
        self.how = "gradients of the kernel" if exact else "central differences of the kernel"

    def slopes(self, P: np.ndarray, w: np.ndarray, box: Box) -> np.ndarray:
        """Gradients of the coordinate ⟨w, f(x)⟩ at points."""
        weights = self.A @ w

        def work(rows: slice) -> np.ndarray:
            W = np.broadcast_to(weights, (len(P[rows]), len(weights)))
            return gradients(self.kernel, P[rows], self.B, W, box)

        return map_rows(work, len(P), 6 * 8 * (self.B.shape[0] + self.B.shape[1]))

    def without_kinks(self, rows: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, KernelMap | None]:
        """Shares along a line that have a closed form, and the map of the rest."""
        terms, rest = split_laplacian(self.kernel, self.B.shape[1])
        shares = laplacian_shares(terms, rows, self.B, self.A @ w)
        return shares, None if rest is None else KernelMap(rest, self.B, self.A)

    def _coordinates(self, P: np.ndarray) -> np.ndarray:
        """Learned coordinates of points, up to a constant."""

        def work(rows: slice) -> np.ndarray:
            return np.asarray(self.kernel(P[rows], self.B)) @ self.A

        return map_rows(work, len(P), 4 * 8 * (self.B.shape[0] + self.B.shape[1]))


def map_of(metric: Any) -> SampledMap:
    """The map of a fitted metric."""
    if isinstance(metric, Learner) and type(metric).transform is Learner.transform:
        if getattr(metric, "space_", None) is None:
            return LinearMap(_dense(metric.components_))
    elif isinstance(metric, Kernelized) and can_fold(metric.space_, metric.learner_):
        space = metric.space_
        if type(space)._features is Space._features:
            if isinstance(space, KernelTrick):
                B, P = space.anchors_, np.eye(space.anchors_.shape[0])
            else:
                m = getattr(space, "n_landmarks_", 0) or space.anchors_.shape[0]
                B, P = space.anchors_[:m, :], _dense(space.projection_)[:m]
            return KernelMap(space.kernel_, _dense(B), P @ _dense(metric.components_).T)
    # two values for every feature, each of as many operations as a kernel of 1,000 anchors takes
    return SampledMap(lambda points: embed(metric, points), 2_000 * metric.n_features_in_**2)


def embed(metric: Any, X: Any) -> np.ndarray:
    """Learned coordinates of points as an array, whatever output was set."""
    with warnings.catch_warnings(), config_context(transform_output="default"):
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        E = metric.transform(X)
    return to_numpy(E.to_numpy() if hasattr(E, "to_numpy") else E).astype(np.float64)


def _dense(A: Any) -> np.ndarray:
    return np.asarray(A.toarray() if is_sparse(A) else to_numpy(A), dtype=np.float64)
