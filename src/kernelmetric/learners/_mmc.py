"""The metric of Xing et al. for clustering with side information."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from kernelmetric.compute import sum_rows
from kernelmetric.compute.watch import until_limit
from kernelmetric.inputs._parameters import PRICE
from kernelmetric.learners import _tuple_learner as tuples
from kernelmetric.learners._factors import factor
from kernelmetric.learners._power import POWER, power_for, power_of
from kernelmetric.learners._progress import Iterations
from kernelmetric.solvers import minimize_lbfgs

_POLISH = 50  # steps by gradients alone, where values have no more digits


@dataclass(eq=False, repr=False, kw_only=True)
class MMC(tuples.PairLearner):
    r"""Dissimilar pairs far apart, while similar ones stay near: the metric of Xing et al.

    .. math:: \max_{M \succeq 0}\; \frac{1}{N_D} \sum_D \sqrt{\delta^\top M \delta}
              \quad\text{s.t.}\quad \frac{1}{N_S} \sum_S \delta^\top M \delta \le 1

    eqs. (3)-(5) of [1]_ with means for sums, by L-BFGS on a square factor. The largest eigenvalue
    of the gradient bounds what is left to gain.

    Parameters
    ----------
    diagonal : bool, default=False
        Whether M is diagonal: one weight for each feature.
    reg : float, default=1e-6
        Added to the covariance of similar pairs, as a fraction of its mean eigenvalue.
    power : float or 'auto', default='auto'
        Power of the learned metric that is taken: 1 is the metric of [1]_, 0 the Euclidean one.
        'auto' is 1 for labels. For pairs it is the power from 0 to 1 under which points of similar
        pairs left out are nearest to their partners: five more fits. Fewer than ten similar pairs
        cannot tell, and take 1.
    max_pairs : int, default=200000
        From labels, the maximum number of pairs: all n (n - 1) / 2, or random ones.
    tol : float, default=1e-3
        Bound on the objective's relative distance from its maximum.
    max_iter : int, default=2000
        Maximum number of L-BFGS iterations.
    warm_start : bool, default=False
        Whether a fit begins at the metric of the last one.
    random_state : int, RandomState or None, default=0
        For random pairs.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (rank, n_features)
        The map L with LᵀL = M.
    pairs_ : Pairs
        The pairs that were used.
    power_ : float
        The power taken. What follows is of the metric itself.
    loss_ : float
        Minus the objective, the mean distance of dissimilar pairs.
    gap_ : float
        Bound on the relative distance from the maximum.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached.
    loss_curve_ : list of float
        The minimised function, minus the logarithm of the objective, after every iteration.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    ITML : From pairs too, near a given metric.
    IdealizedKernel : From pairs, with a kernel.

    References
    ----------
    .. [1] Xing, Ng, Jordan and Russell, "Distance metric learning, with application to clustering
       with side-information", NIPS 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import MMC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MMC(diagonal=True).fit(X, y).gap_ < 1e-3)
    True
    """

    diagonal: bool = False
    reg: float = 1e-6
    power: Any = "auto"
    max_pairs: int = 200_000
    tol: float = 1e-3
    max_iter: int = 2000
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    _allowed: ClassVar = {"reg": PRICE, "power": POWER}

    def _learned_on(self, X: Any, y: Any, given: Any) -> tuples.Spanned:
        points = super()._learned_on(X, y, given)
        return points.by_features() if self.diagonal else points

    def _learn(self, points: tuples.Spanned, counts: tuples.PairCounts) -> None:
        if not len(self.pairs_.similar):
            raise ValueError(
                "Got no similar pairs, but MMC expected at least one: they set the scale of the "
                "metric. IdealizedKernel can do without."
            )
        self.power_ = power_for(self, points.Z, counts)
        W = self._whitening(points.Z, counts)
        far = counts.of(self.pairs_)[len(self.pairs_.similar) :]
        problem = FarApart(points.Z @ W, self.pairs_.dissimilar, far, diagonal=self.diagonal)

        def leave(L: np.ndarray) -> np.ndarray:
            L = L / np.linalg.norm(L)
            A = L[:, None] * W if self.diagonal else L @ W
            return points.leave(factor(power_of(A.T @ A, self.power_)))

        L = problem.start(W, self._last_matrix(points))
        with self._following(L, leave, points) as report:
            L = self._maximise(problem, L, report)
        self.loss_, self.gap_ = -problem.objective(L), problem.gap(L)
        self.converged_ = self.gap_ <= self.tol
        where = f"within {self.gap_:.2g} of the maximum, above"
        self._warn_unless_converged("tol if the metric is good enough", where)
        self._store(leave(L), points.X)

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d, N = n_features, min(self.max_pairs, n_samples * (n_samples - 1) // 2)
        # differences of half of the pairs, twice; their row numbers
        return 8 * (N * (d + 6) + 4 * n_samples * d + 25 * d * d)

    def _whitening(self, Z: np.ndarray, counts: tuples.PairCounts) -> np.ndarray:
        """The symmetric map after which similar pairs vary by one in total, alike everywhere."""
        rows = self.pairs_.similar
        shares = counts.of(self.pairs_)[: len(rows)] / counts.totals(self.pairs_)[0]
        S = tuples.scatter(Z, rows, shares)
        floor = self.reg * max(float(np.trace(S)) / len(S), 1e-12 * float(np.mean(Z * Z)))
        if self.diagonal:
            return np.diag(np.maximum(np.diag(S) + floor, 1e-300) ** -0.5)
        values, V = linalg.eigh(S)
        values = np.maximum(values, 0.0) + floor
        kept = values > 1e-13 * values[-1]
        return (V[:, kept] / np.sqrt(values[kept])) @ V[:, kept].T

    def _maximise(self, problem: FarApart, L: np.ndarray, report: Iterations) -> np.ndarray:
        self.n_iter_ = 0
        tol = 1e-7
        while self.n_iter_ < self.max_iter and not report.stopped:
            left = self.max_iter - self.n_iter_
            found = minimize_lbfgs(problem.loss, L, max_iter=left, tol=tol, report=report)
            L = found.x / np.linalg.norm(found.x)
            self.n_iter_ += max(found.n_iter, 1)
            if problem.gap(L) <= self.tol or tol < 1e-15:
                break
            tol *= 1e-2
        done = self.n_iter_ >= self.max_iter or report.stopped
        return L if done else problem.polished(L, self.tol)


class FarApart:
    """Mean distance of pairs of whitened points under a factor of norm one, and its gap."""

    def __init__(self, Y: np.ndarray, rows: np.ndarray, counts: np.ndarray, *, diagonal: bool):
        self.Y, self.diagonal = Y, diagonal
        different = np.any(Y[rows[:, 0]] != Y[rows[:, 1]], axis=1)
        self.rows = rows[different]  # others stay together under any metric
        if not len(self.rows):
            raise ValueError(
                "Got dissimilar pairs of points that coincide, but expected at least one pair of "
                "different points: no metric can part them."
            )
        self.n_pairs, self.counts = float(np.sum(counts)), counts[different]
        self.floor = 1e-20 * float(np.mean(Y * Y)) + 1e-300

    def start(self, W: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        """The factor of the Euclidean metric, or of the last one, before the whitening W."""
        r = self.Y.shape[1]
        if last is None:
            return np.ones(r) / np.sqrt(r) if self.diagonal else np.eye(r) / np.sqrt(r)
        back = linalg.pinvh(W)
        values, V = linalg.eigh(back @ last @ back)
        # From a factor of low rank no descent finds another rank.
        values = np.sqrt(np.maximum(values, 1e-6 * values[-1]))
        L = (V * values) @ V.T
        L = np.diag(L) if self.diagonal else L
        return L / np.linalg.norm(L)

    def objective(self, L: np.ndarray) -> float:
        """Mean distance under a factor of any norm, scaled to norm one."""
        return self._sums(L / np.linalg.norm(L))[0]

    def loss(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the logarithm of the objective, and its gradient."""
        size = float(np.linalg.norm(L))
        if size == 0:
            return np.inf, np.zeros_like(L)
        value, G = self._sums(L)
        product = 2.0 * (L * G if self.diagonal else L @ G)
        return np.log(size) - np.log(value), L / size**2 - product / value

    def gap(self, L: np.ndarray) -> float:
        """Bound on the relative distance from the maximum, by concavity in LᵀL."""
        L = L / np.linalg.norm(L)
        value, G = self._sums(L)
        largest = np.max(G) if self.diagonal else linalg.eigvalsh(G)[-1]
        product = np.sum(L * L * G) if self.diagonal else np.sum((L @ G) * L)
        return max(float(largest - product) / value, 0.0)

    def polished(self, L: np.ndarray, tol: float) -> np.ndarray:
        """Go on where steps no longer change the value: L G(L), scaled, is never worse."""
        for _ in until_limit(range(_POLISH), None):
            if self.gap(L) <= tol:
                break
            G = self._sums(L)[1]
            L = L * G if self.diagonal else L @ G
            L = L / np.linalg.norm(L)
        return L

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean distance, and its derivative with respect to LᵀL."""

        def sums(block: slice) -> tuple[float, np.ndarray]:
            delta = tuples.differences(self.Y, self.rows[block])
            E = delta * L if self.diagonal else delta @ L.T
            distances = np.sqrt(np.einsum("pi,pi->p", E, E) + self.floor)
            half = 0.5 * self.counts[block] / distances
            G = half @ (delta * delta) if self.diagonal else (delta * half[:, None]).T @ delta
            return float(self.counts[block] @ distances), G

        value, G = sum_rows(sums, len(self.rows), 5 * 8 * self.Y.shape[1], most=16384)
        return value / self.n_pairs, G / self.n_pairs
