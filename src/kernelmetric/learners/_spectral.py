"""What learners by one eigenproblem share: memory, and shrinkage."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from kernelmetric.learners._base import BLOCK_BYTES, Learner
from kernelmetric.learners._checks import as_float, check_number
from kernelmetric.spaces import Coordinates

_FLOOR = 1e-10  # of the mean variance: what keeps a singular scatter solvable without shrinkage


class SpectralLearner(Learner):
    """A learner that solves one eigenproblem, in as many dimensions as the points span."""

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d = n_features
        # copies of X, scatter matrices with the workspace of LAPACK
        arrays = 4 * n_samples * d + 8 * d * d
        k = min(getattr(self, "n_neighbors", 0), n_samples)
        blocks = self._blocks * min(BLOCK_BYTES, n_samples**2) if k else 0
        return 8 * (arrays + 20 * n_samples * k) + blocks  # and edges of a graph

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if hasattr(self, "n_neighbors"):
            check_number(self, "n_neighbors", Integral, low=1)

    def _keep(self, V: np.ndarray, coordinates: Coordinates, X: Any) -> None:
        """Store the directions, given in columns, as a map on the coordinates of X."""
        self._store(coordinates.leave(V.T), X)


def check_shrinkage(shrinkage: Any) -> None:
    """Refuse what is neither 'auto' nor a share."""
    good = isinstance(shrinkage, str) and shrinkage == "auto"
    if isinstance(shrinkage, Real) and not isinstance(shrinkage, bool | np.bool_):
        good = 0 <= as_float(shrinkage) <= 1
    if not good:
        raise ValueError(
            f"Got shrinkage={shrinkage!r}, but expected 'auto' or a number between 0 and 1."
        )


def shrinkage_of(
    points: np.ndarray, shrinkage: float | str, shares: np.ndarray | None = None
) -> float:
    """The share to shrink by: as given, or by Ledoit and Wolf for points about their centres."""
    if shrinkage != "auto":
        return float(shrinkage)
    if not points.any() or points.shape[1] == 1:  # of one dimension, any share is the same
        return 0.0
    if shares is None:
        return float(ledoit_wolf_shrinkage(points, assume_centered=True))
    # The same formula with sums over rows that count more than once.
    n, p, squares = float(np.sum(shares)), points.shape[1], points**2
    variances = shares @ squares / n
    fourth = float(shares @ np.sum(squares, axis=1) ** 2) / n
    norm = float(np.sum((points.T @ (shares[:, None] * points) / n) ** 2))
    noise, spread = (fourth - norm) / n, norm - float(np.sum(variances)) ** 2 / p
    return min(noise / spread, 1.0) if spread > 0 and noise > 0 else 0.0


def shrunk(S: np.ndarray, share: float) -> np.ndarray:
    """A scatter matrix moved towards a multiple of the identity, ``(1 - a) S + a tr(S)/r I``.

    Parameters
    ----------
    S : ndarray of shape (r, r)
        Covariance of points of mean squared length one, or of some part of their variation.
    share : float
        a, between 0 and 1.

    Returns
    -------
    ndarray of shape (r, r)
        Positive definite also for a = 0, by a trace of the identity far below any variance.
    """
    r = len(S)
    identity = share * float(np.trace(S)) / r + _FLOOR / r
    return (1.0 - share) * S + identity * np.eye(r)


def about_centres(Z: np.ndarray, codes: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
    """Points minus the mean of their group; those of negative codes, in no group, left out."""
    inside = codes >= 0
    Z, codes = Z[inside], codes[inside]
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), Z.shape[1]))
    if shares is not None:
        np.add.at(sums, codes, shares[inside][:, None] * Z)
        counts = np.bincount(codes, weights=shares[inside])
    else:
        np.add.at(sums, codes, Z)
    return Z - (sums / counts[:, None])[codes]
