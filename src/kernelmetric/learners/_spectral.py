"""What learners by one eigenproblem share: coordinates to solve it in, and shrinkage."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.covariance import ledoit_wolf_shrinkage

from kernelmetric.compute import to_numpy
from kernelmetric.learners._base import BLOCK_BYTES, Learner
from kernelmetric.solvers import Gram

_FLOOR = 1e-10  # of the mean variance: what keeps a singular scatter solvable without shrinkage


class SpectralLearner(Learner):
    """A learner that solves one eigenproblem, in as many dimensions as the points span."""

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d = n_features
        # copies of X, scatter matrices with the workspace of LAPACK
        arrays = 4 * n_samples * d + 8 * d * d
        k = min(getattr(self, "n_neighbors", 0), n_samples)
        blocks = min(BLOCK_BYTES, n_samples**2) if k else 0
        return 8 * (arrays + 20 * n_samples * k) + blocks  # and edges of a graph

    def _keep(self, V: np.ndarray, coordinates: Coordinates, X: Any) -> None:
        """Store the directions, given in columns, as a map on the coordinates of X."""
        self._store(V.T @ coordinates.basis, X)


class Coordinates(NamedTuple):
    """Points in an orthonormal basis of what they span, in units of their spread."""

    Z: np.ndarray  # (n, r): centred, of mean squared length one
    basis: np.ndarray  # (r, d): Z = (X - mean) basisᵀ
    size: float  # of a unit of Z in those of X


def orthonormal(X: Any, gram: Gram | None = None) -> Coordinates:
    """Coordinates that rotating, moving or scaling the points, or padding them, leaves alike.

    Scatter matrices have full rank there, unless there are fewer points than it takes, and
    powers of distances stay within the range of floating point.

    Parameters
    ----------
    X : array of shape (n, d)
        Points, not all the same.
    gram : Gram, default=None
        Of the basis of X, where it is not orthonormal.

    Returns
    -------
    Coordinates
        In float64. O(n d²) time.
    """
    Z = to_numpy(X).astype(np.float64)
    Z = Z if gram is None else gram.whiten(Z)
    Z = Z - Z.mean(axis=0)
    size = float(np.abs(Z).max())
    Z = Z / size  # first, so that squares are in range
    size *= np.sqrt(np.sum(Z * Z) / len(Z))
    R = np.linalg.qr(Z, mode="r") if len(Z) > Z.shape[1] else Z
    _, s, Vt = linalg.svd(R, full_matrices=False)
    Vt = Vt[s > max(Z.shape) * np.finfo(np.float64).eps * s[0]]
    rotation = np.eye(len(Vt)) if len(Vt) == Z.shape[1] else Vt
    Z = Z @ rotation.T
    basis = rotation if gram is None else rotation @ gram.inv_sqrt().T
    return Coordinates(Z / np.sqrt(np.sum(Z * Z) / len(Z)), basis / size, float(size))


def check_shrinkage(shrinkage: Any) -> None:
    """Refuse what is neither 'auto' nor a share."""
    good = isinstance(shrinkage, str) and shrinkage == "auto"
    if isinstance(shrinkage, Real) and not isinstance(shrinkage, bool | np.bool_):
        good = 0 <= float(shrinkage) <= 1
    if not good:
        raise ValueError(
            f"Got shrinkage={shrinkage!r}, but expected 'auto' or a number between 0 and 1."
        )


def shrinkage_of(points: np.ndarray, shrinkage: float | str) -> float:
    """The share to shrink by: as given, or by Ledoit and Wolf for points about their centres."""
    if shrinkage != "auto":
        return float(shrinkage)
    return float(ledoit_wolf_shrinkage(points, assume_centered=True)) if points.any() else 0.0


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


def about_centres(Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Points minus the mean of their group; those of negative codes, in no group, left out."""
    Z, codes = Z[codes >= 0], codes[codes >= 0]
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), Z.shape[1]))
    np.add.at(sums, codes, Z)
    return Z - (sums / counts[:, None])[codes]
