"""Centres of clusters on a device, where some seeds are drawn at once, as in [1]_.

.. [1] Bahmani et al., "Scalable k-means++", PVLDB 5 (2012).
"""

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import device_of, namespace, take_rows, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._distances import robust_center, squared_lengths

_ROUNDS = 16  # in which most seeds are drawn


def centres_on_device(
    X: Any, m: int, rng: np.random.RandomState, iterations: int
) -> np.ndarray | None:
    """Centres of m clusters of points on a device, by Lloyd's iterations; None for the host's."""
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
    """Rows drawn in some rounds, as many in each as there are, up to a sixteenth of all."""
    xp, n = namespace(X), X.shape[0]
    rows = new = [int(rng.randint(n))]
    closest = np.full(n, np.inf)
    while True:
        nearest = xp.min(_distances(X, squares, take_rows(X, np.asarray(new))), axis=1)
        closest = np.minimum(closest, to_numpy(nearest).astype(np.float64))
        closest[rows] = 0.0  # whatever rounding says: no row twice
        total = np.cumsum(closest)
        if len(rows) >= m or not total[-1] > 0:
            return take_rows(X, np.asarray(rows))
        n_new = min(m - len(rows), len(rows), max(16, m // _ROUNDS))
        found = np.searchsorted(total, rng.random_sample(n_new) * total[-1], side="right")
        new = np.unique(np.minimum(found, n - 1)).tolist()
        rows = rows + new


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
