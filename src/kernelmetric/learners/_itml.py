"""Information-theoretic metric learning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from kernelmetric.compute import row_blocks, sampled_squared_distances
from kernelmetric.graphs import Pairs
from kernelmetric.learners._base import check_number
from kernelmetric.learners._indefinite import factor
from kernelmetric.learners._pair_learner import (
    PairLearner,
    all_or_random_pairs,
    differences,
    span,
)
from kernelmetric.solvers import CallbackSupportMixin, Iterations, with_callbacks


class ITML(CallbackSupportMixin, PairLearner):
    r"""Information-theoretic metric learning: the metric nearest to a prior that respects pairs.

    Similar pairs shall be within a squared distance u, dissimilar ones beyond l, at the price of
    slacks ξ [1]_:

    .. math:: \min_{M \succeq 0,\, \xi}\; D(M, M_0) + \gamma \sum_p D(\xi_p, \xi^0_p)
              \quad\text{s.t.}\quad
              \delta_p^\top M \delta_p \le \xi_p \;(S), \quad \delta_p^\top M \delta_p \ge \xi_p
              \;(D)

    where :math:`D(A, B) = \operatorname{tr} A B^{-1} - \log\det A B^{-1} - r` is the divergence of
    Gaussians with these precisions, and ξ⁰ is u or l. Cyclic Bregman projections: one pair after
    the other is satisfied at the least divergence, a rank-one change of M each. That climbs the
    dual, and the answer is certified by the duality gap.

    Parameters
    ----------
    gamma : float, default=1.0
        Price γ of slacks: small ones keep near the prior, large ones near the bounds.
    prior : array of shape (n_features, n_features), default=None
        Matrix M₀ of the prior metric, positive definite where the points vary; None is the
        identity.
    bounds : tuple of two floats, default=None
        u and l, squared distances.
    percentiles : tuple of two floats, default=(5, 95)
        Without ``bounds``, percentiles of the squared distances of all points in the prior metric
        that are u and l.
    max_pairs : int, default=2000
        From labels, the most pairs; all n (n - 1) / 2 if these are fewer, else random ones.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=1000
        The most cycles over the pairs.
    random_state : int, RandomState or None, default=0
        For random pairs.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (rank, n_features)
        The map L with LᵀL = M.
    pairs_ : Pairs
        The pairs that were used, similar ones first in what follows.
    bounds_ : tuple of two floats
        u and l.
    alpha_ : ndarray of shape (n_pairs,)
        Multipliers of the pairs; zero where a bound does not bind.
    slacks_ : ndarray of shape (n_pairs,)
        The bounds ξ that were reached.
    loss_ : float
        The objective, where slacks are what the metric makes of them.
    duality_gap_ : float
        The relative gap reached, a bound on the distance to the optimum.
    loss_curve_ : list of float
        The relative gaps on the way.
    n_iter_ : int
        Cycles done.
    converged_ : bool
        Whether ``tol`` was reached; a ConvergenceWarning says so too.
    n_features_in_ : int
        Number of features seen in fit.

    Notes
    -----
    O(d²) time a projection, and O(N d² + d³) for the gap after a cycle over N pairs. A cycle visits
    the pairs that bind or are violated when it begins.

    References
    ----------
    .. [1] Davis, Kulis, Jain, Sra and Dhillon, "Information-theoretic metric learning", ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import ITML
    >>> X, y = load_iris(return_X_y=True)
    >>> metric = ITML().fit(X, y)
    >>> metric.duality_gap_ < 1e-3
    True
    """

    _needs_dissimilar = False  # the prior keeps similar pairs from collapsing

    def __init__(
        self,
        *,
        gamma=1.0,
        prior=None,
        bounds=None,
        percentiles=(5, 95),
        max_pairs=2000,
        tol=1e-3,
        max_iter=1000,
        random_state=0,
        verbose=False,
    ):
        self.gamma = gamma
        self.prior = prior
        self.bounds = bounds
        self.percentiles = percentiles
        self.max_pairs = max_pairs
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        similar: Any = None,
        dissimilar: Any = None,
        pairs: Any = None,
    ) -> ITML:
        """Learn the metric from labels or from pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Class labels: pairs inside classes are similar, others dissimilar.
        similar, dissimilar : array-like of shape (n_pairs, 2), default=None
            Row numbers of pairs, instead of labels.
        pairs : Pairs, default=None
            Both kinds of pairs.

        Returns
        -------
        ITML
            The fitted metric.
        """
        self._check_parameters()
        X = self._check_points(X)
        Z, basis = span(X)
        self.pairs_, _ = self._check_pairs(Z, y, similar, dissimilar, pairs)
        root = self._prior_root(Z, basis)
        Y = Z if root is None else Z @ root
        self.bounds_ = self._bounds_of(Y)
        # In these units bounds are near one; the metric is the same in all units.
        size = float(np.mean(self.bounds_))
        projections = BregmanProjections(
            Y / np.sqrt(size),
            self.pairs_.rows,
            np.where(self.pairs_.is_similar, 1.0, -1.0),
            np.where(self.pairs_.is_similar, *self.bounds_) / size,
            float(self.gamma),
        )
        self._project(projections, X, y)
        self.alpha_, self.slacks_ = projections.alpha / size, projections.xi * size
        M = projections.M if root is None else root @ projections.M @ root.T
        L = factor(M)
        self._store(L if basis is None else L @ basis, X)
        return self

    def _check_parameters(self) -> None:
        check_number(self, "tol", Real, low=0)
        check_number(self, "max_iter", Integral, low=1)
        check_number(self, "max_pairs", Integral, low=1)
        check_number(self, "gamma", Real, low=0)
        if not self.gamma > 0:
            raise ValueError(f"Got gamma={self.gamma!r}, but expected a positive number.")
        for name, low, high in (("bounds", 0.0, np.inf), ("percentiles", 0.0, 100.0)):
            value = getattr(self, name)
            if value is None and name == "bounds":
                continue
            if len(value) != 2 or not low <= value[0] <= value[1] <= high or value[1] == np.inf:
                raise ValueError(
                    f"Got {name}={value!r}, but expected two numbers in ascending order between "
                    f"{low:g} and {high:g}: for similar pairs, and for dissimilar ones."
                )

    def _pairs_from_labels(self, Z: np.ndarray, codes: np.ndarray) -> Pairs:
        return all_or_random_pairs(codes, self.max_pairs, self.random_state)

    def _prior_root(self, Z: np.ndarray, basis: np.ndarray | None) -> np.ndarray | None:
        """A with A Aᵀ the prior matrix, after which the prior is the identity."""
        P = self._check_prior(Z, basis)
        if P is None:
            return None
        try:
            return linalg.cholesky(P, lower=True)
        except linalg.LinAlgError:
            raise ValueError(
                "Got a singular prior, but ITML expected a positive definite one: the divergence "
                "from it would be infinite. Try adding a multiple of the identity."
            ) from None

    def _bounds_of(self, Y: np.ndarray) -> tuple[float, float]:
        if self.bounds is None:
            squares = sampled_squared_distances(Y)
            u, l = np.percentile(squares, self.percentiles)  # noqa: E741 (the paper's name)
        else:
            u, l = self.bounds  # noqa: E741
        if not u > 0:
            raise ValueError(f"Got an upper bound of {u!r}, but expected a positive number.")
        return float(u), float(l)

    def _project(self, projections: BregmanProjections, X: Any, y: Any) -> None:
        report = Iterations(self, self.max_iter, lambda state: {}, X, y)
        report.start(None)
        self.n_iter_ = 0
        certificate = projections.certificate()
        while certificate.gap > self.tol and self.n_iter_ < self.max_iter and not report.stopped:
            projections.cycle()
            certificate = projections.certificate()
            self.n_iter_ += 1
            report(None, certificate.gap)
        self.loss_curve_ = report.loss_curve
        report.finish()
        self.loss_, self.duality_gap_ = certificate.primal, certificate.gap
        self.converged_ = certificate.gap <= self.tol
        if not self.converged_:
            warnings.warn(
                f"ITML stopped after {self.n_iter_} iterations at a duality gap of "
                f"{self.duality_gap_:.2g}, above tol={self.tol}: raise max_iter, or take a smaller "
                "gamma.",
                ConvergenceWarning,
                stacklevel=4,
            )


class Certificate(NamedTuple):
    """The objective, and its relative distance from the dual's: a bound on what is left."""

    primal: float
    gap: float


class BregmanProjections:
    """Metrics with ``M⁻¹ = I + Σ s α δδᵀ``: what projections on the bounds of pairs lead to.

    The multipliers α ≥ 0 are those of the dual, maximal where no projection changes anything:
    ``log det(I + Σ s α δδᵀ) + γ Σ log(1 - s α ξ⁰ / γ)``.

    Parameters
    ----------
    Y : ndarray of shape (n, r)
        Points, in coordinates in which the prior is the identity.
    rows : ndarray of shape (n_pairs, 2)
        Pairs. Those of points that coincide are as far apart in any metric, and never visited.
    signs : ndarray of shape (n_pairs,)
        s: 1 for similar, -1 for dissimilar pairs.
    bounds : ndarray of shape (n_pairs,)
        ξ⁰.
    gamma : float
        γ.

    Attributes
    ----------
    M : ndarray of shape (r, r)
        The metric.
    alpha, xi : ndarray of shape (n_pairs,)
        Multipliers, and bounds with their slacks.
    """

    def __init__(
        self,
        Y: np.ndarray,
        rows: np.ndarray,
        signs: np.ndarray,
        bounds: np.ndarray,
        gamma: float,
    ):
        self.Y, self.rows, self.signs, self.bounds, self.gamma = Y, rows, signs, bounds, gamma
        self.alpha = np.zeros(len(rows))
        self.xi = bounds.copy()
        self._refresh()
        self.apart = self.distances > 0

    def cycle(self) -> None:
        """Project on the bound of every pair that binds or is violated."""
        violated = self.signs * (self.distances - self.xi) > 0
        share = self.gamma / (1.0 + self.gamma)
        alpha, xi, M = self.alpha, self.xi, self.M
        for p in np.flatnonzero(self.apart & (violated | (alpha > 0))):
            i, j = self.rows[p]
            sign = self.signs[p]
            delta = self.Y[i] - self.Y[j]
            image = M @ delta
            distance = delta @ image
            step = min(alpha[p], sign * share * (1.0 / distance - 1.0 / xi[p]))
            alpha[p] -= step
            xi[p] = 1.0 / (1.0 / xi[p] + sign * step / self.gamma)
            M += (sign * step / (1.0 - sign * step * distance)) * np.outer(image, image)
        self._refresh()

    def certificate(self) -> Certificate:
        """The objective at the metric, with the slacks it needs, beside the dual's."""
        missed = np.maximum(self.signs * (self.distances - self.xi), 0.0)
        ratio = ((self.xi + self.signs * missed) / self.bounds)[self.apart]
        primal = float(np.trace(self.M)) - len(self.M) + self.log_det
        primal += self.gamma * float(np.sum(ratio - np.log(ratio) - 1.0))
        tilted = 1.0 - self.signs * self.alpha * self.bounds / self.gamma
        dual = self.log_det + self.gamma * float(np.sum(np.log(tilted)))
        return Certificate(primal, max(primal - dual, 0.0) / max(primal, 1e-12))

    def _refresh(self) -> None:
        """Matrix, determinant and distances from the multipliers, free of accumulated error."""
        weights = self.signs * self.alpha
        precision = np.eye(self.Y.shape[1])
        for block in self._blocks():
            delta = differences(self.Y, self.rows[block])
            precision += (weights[block, None] * delta).T @ delta
        root = linalg.cholesky(precision, lower=True)
        self.M = linalg.cho_solve((root, True), np.eye(len(root)))
        self.log_det = 2.0 * float(np.sum(np.log(np.diag(root))))  # of the inverse of M
        self.distances = np.empty(len(self.rows))
        for block in self._blocks():
            delta = differences(self.Y, self.rows[block])
            images = linalg.solve_triangular(root, delta.T, lower=True)
            self.distances[block] = np.sum(images * images, axis=0)

    def _blocks(self) -> Iterator[slice]:
        return row_blocks(len(self.rows), 3 * 8 * self.Y.shape[1])
