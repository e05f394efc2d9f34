"""Centres of clusters on a device: k-means as scikit-learn does it, where it would be the slowest.

Its seeds [1]_ are drawn one after the other, thousands of times for thousands of centres: nothing
is looked at on the host between two of them.

.. [1] Arthur & Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import device_of, namespace, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._differences import robust_center, squared_lengths


def centres_there(
    X: Any, m: int, rng: np.random.RandomState, iterations: int
) -> np.ndarray | None:
    """Centres of m clusters of points that lie on a device.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    m : int
        Number of clusters, at most n.
    rng : RandomState
        For the seeds.
    iterations : int
        Of Lloyd's, after the seeds.

    Returns
    -------
    ndarray of shape (m, d) or None
        None where the points are the host's: scikit-learn does it there.
    """
    if backend_of(X).lists_help(X):
        return None
    return _centres(X, m, rng, iterations)


def _centres(X: Any, m: int, rng: np.random.RandomState, iterations: int) -> np.ndarray:
    middle = robust_center(X)
    X = X - middle
    C = _seeds(X, squared_lengths(X), m, rng)
    for _ in range(iterations):
        C = _means(X, C)
    return to_numpy(C + middle)


def _seeds(X: Any, squares: Any, m: int, rng: np.random.RandomState) -> Any:
    """Greedy k-means++: of some points drawn by their squared distance, the one that helps most."""
    xp, n = namespace(X), X.shape[0]
    trials = 2 + int(np.log(m))
    draws = xp.asarray(rng.random_sample((m, trials)), device=device_of(X))
    first = int(rng.randint(n))
    C = xp.zeros((m, X.shape[1]), dtype=X.dtype, device=device_of(X))
    C[0, :] = X[first, :]
    closest = _distances(X, squares, X[first : first + 1, :])[:, 0]
    for k in range(1, m):
        total = xp.cumulative_sum(xp.astype(closest, xp.float64))
        rows = xp.clip(xp.searchsorted(total, draws[k, :] * total[-1]), 0, n - 1)
        tried = xp.take(X, rows, axis=0)
        nearer = xp.minimum(closest[:, None], _distances(X, squares, tried))
        best = xp.argmin(xp.sum(nearer, axis=0, dtype=xp.float64), keepdims=True)
        C[k, :] = xp.take(tried, best, axis=0)[0, :]
        closest = xp.take(nearer, best, axis=1)[:, 0]
    return C


def _means(X: Any, C: Any) -> Any:
    """The mean of the points nearest each centre; a centre without points stays."""
    xp, m = namespace(X), C.shape[0]
    squares, numbers = squared_lengths(C), xp.arange(m, device=device_of(X))
    sums, counts = xp.zeros_like(C), xp.zeros_like(C[:, 0])
    for rows in row_blocks(X.shape[0], 3 * m * itemsize_of(X), most=tile_rows(X, 4 * m, 0)):
        nearest = xp.argmin(squares[None, :] - 2.0 * (X[rows, :] @ C.T), axis=1)
        members = xp.astype(nearest[:, None] == numbers[None, :], X.dtype)
        sums += members.T @ X[rows, :]
        counts += xp.sum(members, axis=0)
    some = (counts > 0)[:, None]
    return xp.where(some, sums / xp.clip(counts, 1.0, None)[:, None], C)


def _distances(X: Any, squares: Any, C: Any) -> Any:
    xp = namespace(X)
    D2 = squares[:, None] + xp.sum(C * C, axis=1)[None, :] - 2.0 * (X @ C.T)
    return xp.clip(D2, 0.0, None)
