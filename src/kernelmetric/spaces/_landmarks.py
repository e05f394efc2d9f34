"""Choosing landmarks: the few points whose span stands for the whole feature space."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from kernelmetric.compute import is_single, take_rows, to_numpy
from kernelmetric.compute.reductions import centres_on_device
from kernelmetric.kernels import Kernel

_POOL = 20_000  # rows that k-means and RPCholesky look at
_POOL_PER_LANDMARK = 20
_MANY = 1_000  # landmarks
_ITERATIONS = 10  # k-means need not converge: landmarks a little off are as good


def uniform_rows(n: int, m: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw m of n rows, sorted, each at most once."""
    return np.sort(rng.choice(n, size=min(m, n), replace=False))


def kmeans_centres(X: Any, m: int, rng: np.random.RandomState) -> np.ndarray:
    """Return the centres of m clusters of a random sample: O(20 m · m · d) time an iteration."""
    pool = min(X.shape[0], max(_POOL_PER_LANDMARK * m, 2000), max(_POOL, 2 * m))
    rows = uniform_rows(X.shape[0], pool, rng)
    sample = take_rows(X, rows)
    there = centres_on_device(sample, m, rng, _ITERATIONS)
    if there is not None and np.all(np.isfinite(there)):
        return np.unique(there, axis=0)
    sample = to_numpy(sample)
    scale = _scale(sample)
    # With many clusters a careful start takes longer than all iterations, and little is gained.
    start = "random" if m >= _MANY else "k-means++"
    kmeans = KMeans(m, init=start, n_init=1, max_iter=_ITERATIONS, random_state=rng)
    with warnings.catch_warnings():  # fewer distinct points than clusters: the centres repeat
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = kmeans.fit(sample / scale).cluster_centers_ * scale
    return np.unique(centres, axis=0)


def _scale(points: np.ndarray) -> float:
    """A power of two that brings points whose squares would leave the range back into it."""
    most = 1e12 if is_single(points) else 1e100
    _, power = np.frexp(np.max(np.abs(points)))
    scale = 2.0 ** (float(power) - 1)
    return points.dtype.type(1.0 if 1 / most < scale < most else scale)


def rpcholesky_rows(kernel: Kernel, X: Any, m: int, rng: np.random.RandomState) -> np.ndarray:
    """Choose rows by randomly pivoted Cholesky [1]_; fewer than m where they span everything.

    .. [1] Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", Communications on Pure and
       Applied Mathematics, 2025.
    """
    rows = uniform_rows(X.shape[0], _pool(X.shape[0], m), rng)
    sample = take_rows(X, rows)
    points, numbers = (X, rows) if kernel.pairwise else (sample, np.arange(len(rows)))
    diagonal = to_numpy(kernel.diag(X if kernel.pairwise else sample)).astype(np.float64)
    rest = diagonal[rows] if kernel.pairwise else diagonal.copy()
    rest = np.maximum(rest, 0.0)
    start = rest.sum()
    F = np.empty((m, len(rows)))  # factors in rows: each step reads them along memory
    chosen: list[int] = []
    for i in range(m):
        mass = rest.sum()
        if mass <= 1e-12 * start:
            break
        pivot = int(rng.choice(len(rows), p=rest / mass))
        column = kernel(sample, kernel.anchors(points, numbers[[pivot]]))
        residual = to_numpy(column)[:, 0] - F[:i, pivot] @ F[:i]
        chosen.append(pivot)
        if residual[pivot] <= 1e-14 * start / len(rows):  # round-off: this pivot adds nothing
            rest[pivot] = 0.0
            F[i] = 0.0
            continue
        F[i] = residual / np.sqrt(residual[pivot])
        rest = np.maximum(rest - F[i] ** 2, 0.0)
        rest[pivot] = 0.0
    return np.sort(rows[chosen])


def rpcholesky_bytes(n: int, m: int) -> float:
    """Bytes that :func:`rpcholesky_rows` takes: a factor of every landmark at every row."""
    return 8.0 * m * _pool(n, m)


def _pool(n: int, m: int) -> int:
    return min(n, max(_POOL, 2 * m))
