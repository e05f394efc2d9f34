"""Metrics near a prior in the log-determinant divergence: objective, certificate, descent."""

from collections.abc import Callable

import numpy as np
from scipy import linalg

from kernelmetric.compute.rates import seconds_of
from kernelmetric.compute.watch import time_kept
from kernelmetric.learners._factors import factor
from kernelmetric.learners._power import power_of
from kernelmetric.learners._progress import Iterations
from kernelmetric.learners._tuple_learner import Spanned, TupleLearner
from kernelmetric.solvers import minimize_lbfgs

_SINGULAR = 1e-12  # eigenvalues below this share of the largest are rounding, also in ``factor``
_LAST_PASSES = 4.0  # over all tuples, in the step that a time limit ends and after it
_MOST_STUCK = 20  # times that a descent may go on where its line search found no step

Certified = tuple[np.ndarray, float, float]  # a factor, its value, and a bound on what is left


class LogDetDivergence:
    """``tr M - log det M - r`` and a convex function of M, in terms of a factor, M = LᵀL."""

    Y: np.ndarray  # points, in coordinates in which the prior is the identity

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """The value of the convex function, and its gradient A."""
        raise NotImplementedError

    def objective(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to L; infinite where L is singular."""
        log_det = float(np.linalg.slogdet(L)[1])  # minus infinity where L is singular
        if not np.isfinite(log_det):
            return np.inf, np.zeros_like(L)
        value, A = self._sums(L)
        value += float(np.sum(L * L) - 2.0 * log_det) - len(L)
        return value, 2.0 * (L + L @ A - np.linalg.inv(L).T)

    def certificate(self, L: np.ndarray) -> tuple[float, float]:
        """Value, and a bound on its relative distance from the minimum."""
        # The dual objective is less by the divergence of M from the inverse of I + A.
        value, A = self._sums(L)
        inside = L @ (np.eye(len(L)) + A) @ L.T
        value += float(np.sum(L * L) - 2.0 * np.linalg.slogdet(L)[1]) - len(L)
        R, fault = linalg.lapack.dpotrf(inside) if np.isfinite(value) else (inside, 1)
        if fault:
            return value, np.inf  # the multipliers are not those of any metric yet
        gap = float(np.trace(inside) - 2.0 * np.sum(np.log(np.diagonal(R)))) - len(L)
        return value, max(gap, 0.0) / max(value, 1e-12)


class LogDetLearner(TupleLearner):
    """A learner that minimises such a function, with a certificate."""

    _advice = "take a smaller gamma"

    def _prior_root(self, points: Spanned) -> np.ndarray | None:
        """A with A Aᵀ the prior matrix, after which the prior is the identity."""
        P = self._check_prior(points)
        if P is None:
            return None
        values = linalg.eigvalsh(P)  # a factor of P may exist, or not, by rounding
        if not values[0] > _SINGULAR * values[-1]:
            raise ValueError(
                f"Got a singular prior, but {type(self).__name__} expected a positive definite "
                "one: the divergence from it would be infinite. Try adding a multiple of the "
                "identity."
            )
        return linalg.cholesky(P, lower=True)

    def _start(self, points: Spanned, root: np.ndarray | None) -> np.ndarray:
        """A factor of the prior, or of the last metric, where the prior is the identity."""
        M = self._last_matrix(points)
        if M is None:
            return np.eye(points.Z.shape[1])
        if root is not None:
            half = linalg.solve_triangular(root, M, lower=True)
            M = linalg.solve_triangular(root, half.T, lower=True)
        values, V = linalg.eigh(0.5 * (M + M.T))
        # Where the last points did not vary, the metric is the prior again.
        values = np.where(values > 1e-10 * values[-1], values, 1.0)
        return np.sqrt(values)[:, None] * V.T

    def _minimise(
        self,
        problem: LogDetDivergence,
        solve: Callable[..., Certified],
        points: Spanned,
        root: np.ndarray | None,
        power: float = 1.0,
    ) -> np.ndarray:
        """The optimal factor in the coordinates of the problem; the map of a power is stored."""

        def leave(L: np.ndarray) -> np.ndarray:
            M = power_of(L.T @ L, power)
            return points.leave(factor(M if root is None else root @ M @ root.T))

        L = self._start(points, root)
        with time_kept(_LAST_PASSES * seconds_of(lambda: problem.objective(L))):
            with self._following(L, leave, points) as report:
                found = solve(problem, L, report, self.max_iter, self.tol)
            L, self.loss_, self.duality_gap_ = found
            self.n_iter_ = max(len(report.loss_curve), 1)
            self.converged_ = self.duality_gap_ <= self.tol
            self._warn_of_gap()
        self._store(leave(L), points.X)
        return L


def descend(
    problem: LogDetDivergence, L: np.ndarray, report: Iterations, max_iter: int, tol: float
) -> Certified:
    """L-BFGS on the factor, ever more precisely until the certificate is good enough."""
    step_tol, stuck = 1e-4, 0
    value, gap = problem.certificate(L)
    while len(report.loss_curve) < max_iter and not report.stopped:
        left = max_iter - len(report.loss_curve)
        found = minimize_lbfgs(problem.objective, L, max_iter=left, tol=step_tol, report=report)
        L = found.x
        value, gap = problem.certificate(L)
        if gap <= tol or stuck >= _MOST_STUCK:
            break
        if step_tol > 1e-15:
            step_tol *= 1e-2
        else:  # where a pair begins to matter the curvature jumps, and no line search finds a step
            stuck += 1
            L = _downhill(problem, L)
            value, gap = problem.certificate(L)
    return L, value, gap


def _downhill(problem: LogDetDivergence, L: np.ndarray) -> np.ndarray:
    """A step along the gradient that decreases the objective about as much as it can."""
    value, G = problem.objective(L)
    best, step = (value, L), 1.0 / max(float(np.max(np.abs(G))), 1e-300)
    for _ in range(40):
        tried = problem.objective(L - step * G)[0]
        if tried < best[0]:
            best = tried, L - step * G
        elif best[0] < value:
            break
        step *= 0.5
    return best[1]
