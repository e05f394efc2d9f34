"""New points between training points, where there is no kernel to embed them."""

from __future__ import annotations

import numpy as np

from kernelmetric.compute import map_rows, nearest_neighbors


def interpolate(points: np.ndarray, E: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Mean of the embedding at the k nearest points, weighed by one over the squared distance.

    Exact at the points themselves. NaN where squared distances overflow. O(m n d) time, a block of
    rows in memory.
    """
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
