"""The program of ITML, and the way of its authors to the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import map_rows, sum_rows
from kernelmetric.learners._log_det import Certified, LogDetDivergence
from kernelmetric.learners._pair_learner import differences
from kernelmetric.learners._progress import Iterations

_MOST_ROWS = 16384  # pairs of a block


class LogDetProblem(LogDetDivergence):
    """Divergence from the identity, and slacks that pairs need: convex in M = LᵀL.

    With ``x_p = δᵀMδ / ξ⁰`` a pair costs ``γ (x_p - 1 - log x_p)`` where ``s (x_p - 1) > 0``, s = 1
    for similar and -1 for dissimilar pairs. Its multiplier is ``α_p = s γ (1 - 1 / x_p) / ξ⁰``, and
    the optimum is where ``M⁻¹ = I + Σ s α δδᵀ``. In the coordinates Y the prior is the identity.
    """

    def __init__(
        self,
        Y: np.ndarray,
        rows: np.ndarray,
        signs: np.ndarray,
        bounds: np.ndarray,
        gamma: float | np.ndarray,
    ):
        self.Y, self.rows, self.signs, self.bounds, self.gamma = Y, rows, signs, bounds, gamma
        self._size = len(rows), 4 * 8 * Y.shape[1]  # of all pairs, and of one in memory

    def multipliers(self, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The α of every pair, and its bound ξ with the slack."""
        x = self._ratios(self.squares(L), slice(None))
        return self.signs * self.gamma * (1.0 - 1.0 / x) / self.bounds, x * self.bounds

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """What slacks cost, and ``Σ s α δδᵀ``."""

        def sums(block: slice) -> tuple[float, np.ndarray]:
            delta = differences(self.Y, self.rows[block])
            x = self._ratios(_squares(delta @ L.T), block)
            gamma: Any = self.gamma
            alike = isinstance(gamma, float)
            gamma = gamma if alike else gamma[block]
            weights = gamma * (1.0 - 1.0 / x) / self.bounds[block]
            cost = x - 1.0 - np.log(x)
            value = gamma * float(np.sum(cost)) if alike else float(gamma @ cost)
            return value, (weights[:, None] * delta).T @ delta

        return sum_rows(sums, *self._size, most=_MOST_ROWS)

    def _ratios(self, squares: np.ndarray, block: slice) -> np.ndarray:
        """Squared distances in units of the bounds; one for pairs that need no slack."""
        x = squares / self.bounds[block]
        return np.where((self.signs[block] * (x - 1.0) > 0) & (x > 0), x, 1.0)

    def squares(self, L: np.ndarray) -> np.ndarray:
        """Squared distance of every pair."""

        def work(block: slice) -> np.ndarray:
            return _squares(differences(self.Y, self.rows[block]) @ L.T)

        return map_rows(work, *self._size, most=_MOST_ROWS)


def _squares(E: np.ndarray) -> np.ndarray:
    return np.sum(E * E, axis=1)


def project_in_turn(
    problem: LogDetProblem, L: np.ndarray, report: Iterations, max_iter: int, tol: float
) -> Certified:
    """Cyclic Bregman projections, algorithm 1 of Davis et al. (2007).

    A projection moves the multiplier of one pair until its bound, slack included, holds with the
    least divergence. A cycle visits the pairs that bind or are violated when it begins.
    """
    alpha, xi = np.zeros(len(problem.rows)), problem.bounds.copy()
    M = L.T @ L
    while len(report.loss_curve) < max_iter and not report.stopped:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # told by the factor
            _project_once(problem, L, M, alpha, xi)
        try:
            L = linalg.cholesky(0.5 * (M + M.T))
        except (linalg.LinAlgError, ValueError):
            break  # rounding, or overflow, has left no metric: the cycle before is what there is
        value, gap = problem.certificate(L)
        if report(L, value) or gap <= tol:
            break
    return L, *problem.certificate(L)


def _project_once(
    problem: LogDetProblem, L: np.ndarray, M: np.ndarray, alpha: np.ndarray, xi: np.ndarray
) -> None:
    """One cycle over the pairs that bind or are violated; M, α and ξ change in place."""
    gammas = np.broadcast_to(problem.gamma, len(problem.rows))
    for p in _to_visit(problem, L, alpha, xi):
        i, j = problem.rows[p]
        sign, delta = problem.signs[p], problem.Y[i] - problem.Y[j]
        image = M @ delta
        distance = float(delta @ image)
        share = gammas[p] / (1.0 + gammas[p])
        step = min(alpha[p], sign * share * (1.0 / distance - 1.0 / xi[p]))
        alpha[p] -= step
        xi[p] = 1.0 / (1.0 / xi[p] + sign * step / gammas[p])
        M += (sign * step / (1.0 - sign * step * distance)) * np.outer(image, image)


def _to_visit(
    problem: LogDetProblem, L: np.ndarray, alpha: np.ndarray, xi: np.ndarray
) -> np.ndarray:
    distances = problem.squares(L)
    violated = problem.signs * (distances - xi) > 0
    return np.flatnonzero((distances > 0) & (violated | (alpha > 0)))
