"""The objective of large margins over comparisons that are given: triplets and quadruplets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute import to_numpy
from kernelmetric.graphs import IndexTuples
from kernelmetric.learners._margin import MarginProblem
from kernelmetric.learners._tuple_learner import differences


class ListedMargins(MarginProblem):
    """``Σ d_near + c Σ [1 + d_near - d_far]_+`` over near pairs, each once, and comparisons."""

    def __init__(self, points: Any, tuples: IndexTuples, c: float, reg: float):
        self.tuples, self.near, self.far = tuples, tuples.near, tuples.far
        self.pulled = np.unique(np.sort(self.near, axis=1), axis=0)
        # No classes, and no targets: everything is looked at, and no part of it first.
        none = np.empty(0, dtype=np.intp)
        super().__init__(to_numpy(points), none, none, c, reg)
        self.unit, self.few = float(len(self.pulled)), True

    def on(self, points: Any) -> ListedMargins:
        """The same problem, its points in another precision."""
        return ListedMargins(points, self.tuples, self.c, self.reg)

    def _pulled_lengths(self, E: Any) -> tuple[np.ndarray, None]:
        return _squares(E, self.pulled), None

    def _over_all(self, E: Any, V: Any, corner: float = 0.0) -> tuple[float, Any]:
        excess = 1.0 + _squares(E, self.near) - _squares(E, self.far)
        active = np.flatnonzero(excess > 0)
        excess = excess[active]
        slope = np.clip(excess / corner, 0.0, 1.0) if corner > 0 else np.ones(len(excess))
        value = float(np.sum(slope * (excess - 0.5 * corner * slope)))
        value = float(np.sum(_squares(E, self.pulled))) + self.c * value
        if not V.shape[1]:
            return value, V
        rows = np.concatenate([self.pulled, self.near[active], self.far[active]])
        weights = [np.ones(len(self.pulled)), self.c * slope, -self.c * slope]
        return value, _laplacian_times(rows, np.concatenate(weights), V)


def _squares(E: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distances of pairs."""
    delta = differences(E, rows)
    return np.einsum("pi,pi->p", delta, delta).astype(np.float64)


def _laplacian_times(rows: np.ndarray, weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    """``Σ w (e_i - e_j)(e_i - e_j)ᵀ V`` over pairs (i, j)."""
    n = len(V)
    W = sparse.csr_array((weights, (rows[:, 0], rows[:, 1])), shape=(n, n))
    degrees = np.bincount(rows.ravel(), np.repeat(weights, 2), n)
    return degrees[:, None] * V - W @ V - W.T @ V
