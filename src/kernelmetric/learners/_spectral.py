"""What learners by one eigenproblem share: one fit, memory, scatter matrices and shrinkage."""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from kernelmetric.compute import in_memory, sum_rows
from kernelmetric.compute.lapack import eigh
from kernelmetric.inputs import Weights, check_labels
from kernelmetric.inputs._parameters import COUNT, Numbers
from kernelmetric.learners._base import BLOCK_BYTES, Learner, as_gram
from kernelmetric.learners._checks import check_neighbors
from kernelmetric.solvers import column_signs
from kernelmetric.spaces import orthonormal

_FLOOR = 1e-10  # of the mean variance: what keeps a singular scatter solvable without shrinkage
_HARM = 0.25  # what a share may take from the log-likelihood of a point left out, a dimension
_FALLS = 10.0 ** -np.arange(0.0, 12.1, 0.5)  # of shares, where the first one takes more
_NONE = 1e-13  # of the largest variance: so little is no direction
_ALONE = 1e-12  # what is at least left of a direction that one point alone has


class SpectralLearner(Learner):
    """A learner that solves one eigenproblem, in as many dimensions as the points span."""

    _allowed: ClassVar = {
        "n_neighbors": COUNT,
        "shrinkage": Numbers(Real, low=0, high=1, words=("auto",)),
    }

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d = n_features
        # copies of X, scatter matrices with the workspace of LAPACK
        arrays = 4 * n_samples * d + 8 * d * d
        k = min(int(getattr(self, "n_neighbors", 0)), n_samples)
        blocks = self._blocks * min(BLOCK_BYTES, n_samples**2) if k else 0
        return 8 * (arrays + 20 * n_samples * k) + blocks  # and edges of a graph


class LocalLearner(SpectralLearner):
    """A spectral learner from neighbours, and labels; a class that derives has ``_learn``."""

    def fit(self, X, y=None, *, gram=None, neighbors=None, sample_weight=None) -> Self:
        """Learn the map from labelled points; LPP, from points with labels or without.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Class labels.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        neighbors : array of shape (n_samples, p), default=None
            Other coordinates of the same points, floats, in which neighbours are sought.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the objective, zero to leave it out.

        Returns
        -------
        object
            The fitted learner.
        """
        X = self._check_points(X)
        codes = None if y is None and self.learns_from == "points" else check_labels(y, X)
        where = None if neighbors is None else check_neighbors(neighbors, X)
        self._learn(X, codes, as_gram(gram), where, sample_weight)
        return self


def signed(L: np.ndarray) -> np.ndarray:
    """A map whose rows have the signs of a rule: those of eigenvectors are arbitrary."""
    return column_signs(L.T)[:, None] * L


def shrinkage_of(
    points: np.ndarray, codes: np.ndarray, shrinkage: float | str, counts: np.ndarray
) -> float:
    """The share to shrink by: as given, or from points about the centres of their groups."""
    if shrinkage != "auto":
        return float(shrinkage)
    if not points.any() or points.shape[1] == 1:  # of one dimension, any share is the same
        return 0.0
    n = float(np.sum(counts))
    scatter = points.T @ (counts[:, None] * points)
    with np.errstate(all="ignore"):  # what overflows asks for no shrinkage
        fourth = float(counts @ np.sum(points**2, axis=1) ** 2)
        share = ledoit_wolf(scatter / n, fourth, n)
    inside = np.bincount(codes, weights=counts)
    left_out = LeftOut(scatter, inside, share)
    return left_out.share(left_out.losses(points, inside[codes], counts), n)


def ledoit_wolf(S: np.ndarray, fourth: float, n: float) -> float:
    """The shrinkage of a covariance about zero, from the sum of the fourth powers of lengths."""
    with np.errstate(all="ignore"):  # what overflows asks for no shrinkage
        squares = np.sum(S * S)
        noise, spread = (fourth / n - squares) / n, squares - np.square(np.trace(S)) / len(S)
        share = float(noise / spread)
    return min(share, 1.0) if spread > 0 and share > 0 else 0.0


class LeftOut:
    """How likely every point is under the shrunk covariance of the others, for falling shares.

    Where the share of Ledoit and Wolf makes left-out points unlikely (Hoffbeck and Landgrebe,
    1996), it falls until it does not. The likelihood is that of Student's t with as many degrees
    of freedom as dimensions, which no single point can rule.
    """

    def __init__(self, scatter: np.ndarray, inside: np.ndarray, share: float):
        freedom = float(np.sum(inside)) - np.count_nonzero(inside)
        values, V = eigh(scatter) if share > 0 else (np.zeros(len(scatter)), scatter)
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
    """``(1 - a) S + a tr(S)/r I``, and a trace of the identity far below any variance."""
    r = len(S)
    identity = share * float(np.trace(S)) / r + _FLOOR / r
    return (1.0 - share) * S + identity * np.eye(r)


def about_centres(Z: np.ndarray, codes: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
    """Points minus the mean of their group; those of negative codes, in no group, left out."""
    inside = codes >= 0
    Z, codes = Z[inside], np.unique(codes[inside], return_inverse=True)[1]
    shares = np.ones(len(Z)) if shares is None else shares[inside]
    counts = np.bincount(codes, weights=shares)
    sums = np.zeros((len(counts), Z.shape[1]))
    np.add.at(sums, codes, shares[:, None] * Z)
    return Z - (sums / counts[:, None])[codes]


_SHIFT_ROWS = 256  # whose mean the points are moved by, so that squares lose no digits
_LEAST = 1e-13  # of the largest variance: so little is no direction


class Scatter(NamedTuple):
    """Covariances of points of unit size, in all and within groups, and the share to shrink by."""

    total: np.ndarray
    within: np.ndarray
    shrinkage: float
    leave: Callable[[np.ndarray], np.ndarray]  # a map in these coordinates as one of the points
    Z: Any = None  # the points, where they are in memory,
    shares: Any = None  # and what each counts


def scatter_of(
    X: Any, codes: np.ndarray, shrinkage: float | str, gram: Any, weights: Weights | None
) -> Scatter:
    """The scatter of points in groups; a code of -1 is in no group."""
    if not in_memory(X):
        return _scatter_by_passes(X, codes, shrinkage)
    coordinates = orthonormal(X, as_gram(gram))
    Z, inside = coordinates.Z, codes >= 0
    shares = np.ones(len(Z)) if weights is None else weights.shares
    Z = Z if weights is None else Z - weights.mean(Z)
    about, counts = about_centres(Z, codes, shares), shares[inside]
    share = shrinkage_of(about, codes[inside], shrinkage, counts)
    total = Z.T @ (shares[:, None] * Z) / np.sum(shares)
    within = about.T @ (counts[:, None] * about) / np.sum(counts)
    return Scatter(total, within, share, coordinates.leave, Z, shares)


def _scatter_by_passes(X: Any, codes: np.ndarray, shrinkage: float | str) -> Scatter:
    """The same by passes over rows on many machines, where every direction has variance."""
    n, d = X.shape
    codes = codes.astype(np.int32)
    n_groups = int(codes.max()) + 1
    shift = X[slice(0, min(_SHIFT_ROWS, n)), :].mean(axis=0, dtype=np.float64)

    def means(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        Z = X[rows, :] - shift
        sums = np.zeros((n_groups + 1, d))  # the last one is of those in no group
        np.add.at(sums, codes[rows], Z)
        return sums, np.bincount(codes[rows] % (n_groups + 1), minlength=n_groups + 1)

    sums, counts = sum_rows(means, n, 3 * 8 * d)
    mean = sums.sum(axis=0) / n
    centres = sums / np.maximum(counts, 1)[:, None]

    def scatter(rows: slice) -> tuple[np.ndarray, np.ndarray, float]:
        Z = X[rows, :] - shift
        about = (Z - centres[codes[rows]])[codes[rows] >= 0]
        Z = Z - mean
        return Z.T @ Z, about.T @ about, float(np.sum(np.einsum("ij,ij->i", about, about) ** 2))

    total, within, fourth = sum_rows(scatter, n, 5 * 8 * d)
    squared = float(np.trace(total)) / n
    variances = np.linalg.eigvalsh(total)
    if not squared > 0 or variances[0] <= _LEAST * variances[-1]:
        raise ValueError(
            f"Got {n} points on many machines that vary in less than {d} directions, but expected "
            "features of which none follows from the others: drop these, or try workers with "
            "room for all points."
        )
    members = int(counts[:n_groups].sum())
    within, size = within / (members * squared), np.sqrt(squared)
    share = ledoit_wolf(within, fourth / squared**2, members)
    left_out = LeftOut(within * members, counts[:n_groups], share)

    def losses(rows: slice) -> tuple[np.ndarray]:
        of, Z = codes[rows], (X[rows, :] - shift) / size
        of, about = of[of >= 0], (Z - centres[of] / size)[of >= 0]
        return (left_out.losses(about, counts[of], np.ones(len(of))),)

    if shrinkage != "auto":
        share = float(shrinkage)
    elif len(left_out.shares) > 1:
        share = left_out.share(sum_rows(losses, n, 5 * 8 * d)[0], members)
    return Scatter(total / (n * squared), within, share, lambda L: L / size)
