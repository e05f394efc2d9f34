"""What learners by one eigenproblem share: memory, and shrinkage."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.covariance import ledoit_wolf_shrinkage

from kernelmetric.learners._base import BLOCK_BYTES, Learner
from kernelmetric.learners._checks import as_float, check_number
from kernelmetric.solvers import column_signs
from kernelmetric.spaces import Coordinates

_FLOOR = 1e-10  # of the mean variance: what keeps a singular scatter solvable without shrinkage
_HARM = 0.25  # what a share may take from the log-likelihood of a point left out, a dimension
_FALLS = 10.0 ** -np.arange(0.0, 12.1, 0.5)  # of shares, where the first one takes more
_NONE = 1e-13  # of the largest variance: so little is no direction
_ALONE = 1e-12  # what is at least left of a direction that one point alone has


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
        self._store(signed(coordinates.leave(V.T)), X)


def signed(L: np.ndarray) -> np.ndarray:
    """A map whose rows have the signs of a rule: those of eigenvectors are arbitrary."""
    return column_signs(L.T)[:, None] * L


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
    points: np.ndarray,
    codes: np.ndarray,
    shrinkage: float | str,
    shares: np.ndarray | None = None,
) -> float:
    """The share to shrink by: as given, or from points about the centres of their groups."""
    if shrinkage != "auto":
        return float(shrinkage)
    if not points.any() or points.shape[1] == 1:  # of one dimension, any share is the same
        return 0.0
    counts = np.ones(len(points)) if shares is None else shares
    scatter = points.T @ (counts[:, None] * points)
    if shares is None:
        share = float(ledoit_wolf_shrinkage(points, assume_centered=True))
    else:
        # The same formula with sums over rows that count more than once.
        n, p = np.sum(counts), points.shape[1]
        with np.errstate(all="ignore"):  # what overflows asks for no shrinkage
            fourth = counts @ np.sum(points**2, axis=1) ** 2 / n
            norm = np.sum((scatter / n) ** 2)
            noise, spread = (fourth - norm) / n, norm - (np.trace(scatter) / n) ** 2 / p
        share = float(min(noise / spread, 1.0)) if spread > 0 and noise > 0 else 0.0
    inside = np.bincount(codes, weights=counts)
    left_out = LeftOut(scatter, inside, share)
    return left_out.share(left_out.losses(points, inside[codes], counts), float(np.sum(counts)))


class LeftOut:
    """How likely every point is under the shrunk covariance of the others, for falling shares.

    Ledoit and Wolf weigh errors by the largest variances and lose features of smaller units. Where
    their share makes left-out points [1]_ unlikely, it falls until it does not. The likelihood is
    that of Student's t with as many degrees of freedom as dimensions, which no single point can
    rule and no rotation changes. ``scatter`` sums squares about the centres of groups of ``inside``
    points.

    .. [1] Hoffbeck and Landgrebe, "Covariance matrix estimation and classification with limited
       training data", IEEE Transactions on Pattern Analysis and Machine Intelligence 18 (1996).
    """

    def __init__(self, scatter: np.ndarray, inside: np.ndarray, share: float):
        freedom = float(np.sum(inside)) - np.count_nonzero(inside)
        values, V = linalg.eigh(scatter) if share > 0 else (np.zeros(len(scatter)), scatter)
        varies = values > _NONE * values[-1]
        values, self._V = values[varies], V[:, varies]
        # In more dimensions than that, nothing speaks for less.
        fewer = 0 < len(values) < freedom
        self.shares = share * (_FALLS if fewer else _FALLS[:1])
        if fewer:
            self._rests = (1.0 - self.shares) / (freedom - 1.0)
            mean = float(np.sum(values)) / (freedom * len(scatter))
            self._variances = self._rests[:, None] * values + (self.shares * mean)[:, None]

    def losses(self, about: np.ndarray, inside: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """For every share, how unlikely points are: the sum over some of them."""
        losses = np.zeros(len(self.shares))
        if len(losses) == 1:
            return losses
        once = np.minimum(counts, 1.0)
        others = inside > 1.5 * once
        counts, once, inside = counts[others], once[others], inside[others]
        squares = (about[others] @ self._V) ** 2
        p = squares.shape[1]
        # Without the point, the centre of its group is farther from it.
        farther = inside / (inside - once)
        for k, (rest, variances) in enumerate(zip(self._rests, self._variances, strict=True)):
            q = squares @ (1.0 / variances)
            without = np.maximum(1.0 - rest * once * farther * q, _ALONE)
            each = 0.5 * np.log(without) + p * np.log1p(farther * q / (without * p))
            losses[k] = counts @ each / p + 0.5 * np.sum(counts) * np.mean(np.log(variances))
        return losses

    def share(self, losses: np.ndarray, n_points: float) -> float:
        """The largest share with which points are not much less likely than with the best one."""
        return float(self.shares[np.argmax(losses <= losses.min() + _HARM * n_points)])


def shrunk(S: np.ndarray, share: float) -> np.ndarray:
    """A scatter matrix moved towards a multiple of the identity, ``(1 - a) S + a tr(S)/r I``.

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
