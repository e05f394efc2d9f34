"""Which method solves a problem of pairs, and the one for many of them."""

from collections.abc import Callable
from copy import copy

import numpy as np

from kernelmetric.compute import small_steps
from kernelmetric.inputs._parameters import require_word
from kernelmetric.solvers._pair_dual import Certificate, PairDual, PairSolution
from kernelmetric.solvers._pair_interior import (
    MOST_FLOPS,
    interior_flops,
    interior_point,
    start_near,
)

_CHECK_EVERY = 20  # steps between two certificates
_GROWTH = 1.05  # of a step: along the pairs that move in the end there is less curvature
_FEW = 0.6  # share of the pairs that are worth a copy of their differences
_OF_STEPS = 1.2e-3  # of the tolerance: so right need coordinates be for steps
_INTERIOR_TOL = 1e-9  # a few steps more than for less, and the bounds of Proposition 2 are sharp
_QUICK_FLOPS, _LONG_TOL = 3e9, 1e-6  # where a step takes longer, those few would take seconds

Report = Callable[[int, float, np.ndarray], bool]


def solve_pairs(
    problem: PairDual,
    *,
    tol: float = 1e-3,
    max_iter: int = 2000,
    metric: np.ndarray | None = None,
    solver: str = "auto",
    sharp: bool = True,
    report: Report | None = None,
) -> PairSolution:
    """Solve the dual of metrics learned from pairs to a relative gap of ``tol``, and certify it.

    "auto" takes the interior-point method while a step of it takes about a second at most: up to
    some 2,000 pairs, or 100,000 pairs in 30 coordinates. ``sharp``: that method goes on to 1e-9, or
    to 1e-6 where a step is slow. It begins near ``metric``; a true answer of
    ``report(n_steps, gap, metric)`` stops it.
    """
    require_word("solver", solver, ("auto", "interior", "first-order"))
    flops = interior_flops(problem)
    if solver == "interior" or (solver == "auto" and flops <= MOST_FLOPS):
        most = min(max_iter, 100)
        goal = min(tol, _INTERIOR_TOL if flops <= _QUICK_FLOPS else _LONG_TOL) if sharp else tol
        # Where the rank is low, tiles are shared, and an inverse is the largest other call.
        products = problem.Z.shape[1] * (problem.Z.shape[1] + 1) / 2
        inverse = products**3 / 3 if products < len(problem) else flops
        with small_steps(flops, largest=inverse):
            found = interior_point(problem, tol=goal, max_iter=most, report=report, metric=metric)
            if metric is not None and not found.certificate.gap <= tol and found.n_iter < most:
                found = interior_point(problem, tol=goal, max_iter=most, report=report)
        found.converged = found.certificate.gap <= tol
        return found
    start = None if metric is None else start_near(problem, metric)
    return first_order(problem, tol=tol, max_iter=max_iter, start=start, report=report)


def first_order(
    problem: PairDual,
    *,
    tol: float,
    max_iter: int,
    start: np.ndarray | None = None,
    report: Report | None = None,
) -> PairSolution:
    """Accelerated projected gradient with restarts, from a given start or near zero.

    All matrices δδᵀ/|δ|² have much in common, their mean B, and along it the Hessian is steeper
    than elsewhere by a factor of hundreds: that part is kept in the step exactly, and the rest
    replaced by a multiple of the diagonal |δ|⁴. As M is linear in α, the curvature along a step is
    known before the gradient is: steps grow while it allows. Between two certificates, pairs that
    stay at zero are left out.
    """
    exact, largest = problem, float(np.sum(problem.upper * problem.sizes()))
    if not np.isfinite(largest * largest):
        raise ValueError(
            f"Got bounds that allow a metric of size {largest:.3g}, but expected squares in the "
            "range of float64: try smaller bounds."
        )
    everything = steps = _Steps(exact.rough(_OF_STEPS * tol, largest), 1e-6 * tol)
    problem, rows = steps.problem, np.arange(len(exact))
    x = problem.project(np.zeros(len(rows)), steps.weights)
    Mx = problem.matrix(x)
    if start is not None:
        other = problem.project(start, steps.weights)
        Mo = exact.matrix(other)
        if exact.dual(other, exact.metric(Mo)) > exact.dual(x, exact.metric(Mx)):
            x, Mx = other, Mo
    y, My, momentum, step = x, Mx, 1.0, 1.0
    record, iteration = _Record(exact), 0
    for iteration in range(1, max_iter + 1):
        gradient = problem.signs * (problem.forms(problem.metric(My)) - problem.d2)
        step *= _GROWTH
        while True:
            candidate = steps.take(y, gradient, step)
            Mc = problem.matrix(candidate)
            moved = float(np.sum(steps.weights * (candidate - y) ** 2))
            curved = steps.rest(Mc - My)
            if not curved * step > moved * (1 + 1e-10):  # a NaN ends it too
                break
            step = 0.95 * moved / curved
        if not np.isfinite(curved):
            record.see(_at(rows, x, len(exact)))
            break  # beyond the finite numbers: the best point before is what there is
        uphill = float(np.sum(steps.weights * (y - candidate) * (candidate - x)))
        if uphill + step * steps.common_part(My - Mc) * steps.common_part(Mc - Mx) > 0:
            momentum = 1.0  # it points uphill: forget it
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = (momentum - 1.0) / following
        y, My = candidate + ahead * (candidate - x), Mc + ahead * (Mc - Mx)
        x, Mx, momentum = candidate, Mc, following
        if iteration % _CHECK_EVERY == 0 or iteration == max_iter:
            x, y = (_at(rows, part, len(exact)) for part in (x, y))
            gap = record.see(x)
            if gap <= tol or (report is not None and report(iteration, gap, record.metric)):
                break
            rows = np.flatnonzero((x > 0) | (y != 0) | (record.pull < 0))
            rows = rows if 0 < len(rows) < _FEW * len(x) else np.arange(len(x))
            x, y, steps = x[rows], y[rows], everything.part(rows)
            problem = steps.problem
    best, converged = (record.alpha, record.M, record.metric), record.certificate.gap <= tol
    return PairSolution(*best, record.certificate, iteration, converged, "first-order")


def _at(rows: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Values of some pairs, and zero for the others."""
    found = np.zeros(n)
    found[rows] = values
    return found


class _Record:
    """The best point of the dual so far, the best metric, and what lies between them."""

    def __init__(self, problem: PairDual):
        self.problem = problem
        self.dual, self.primal = -np.inf, np.inf

    def see(self, alpha: np.ndarray) -> float:
        """Take note of a feasible point; returns the relative gap."""
        problem = self.problem
        M = problem.matrix(alpha)
        metric = problem.metric(M)
        dual = problem.dual(alpha, metric)
        if dual > self.dual:
            self.dual, self.alpha, self.M = dual, alpha, M
        q = problem.forms(metric)
        found, metric = problem.compare(dual, metric, q)
        self.pull = problem.signs * (q - problem.d2) - np.where(problem.apart, found.gamma, 0.0)
        if found.primal < self.primal:
            self.primal, self.metric, self.gamma = found.primal, metric, found.gamma
        scale = max(0.5 * float(np.sum(self.metric * self.metric)), problem.least_scale)
        self.certificate = Certificate.of(self.dual, self.primal, scale, self.gamma)
        return self.certificate.gap


class _Steps:
    """Steps in the metric ``diag(weights) / step + w wᵀ``, where ``wᵀα = ⟨B, M(α)⟩``."""

    def __init__(self, problem: PairDual, precision: float):
        self.problem, self.precision = problem, max(precision, 1e-12)
        lengths = problem.sizes()
        lengths = np.maximum(lengths, 1e-3 * max(float(np.mean(lengths)), 1e-300))
        self.weights = lengths**2
        common = problem.matrix(problem.signs / lengths)
        self.common = common / max(float(np.linalg.norm(common)), 1e-300)
        self.w = problem.signs * problem.forms(self.common)
        self.along = 0.0  # ⟨B, M⟩ moved so much in the last step

    def rest(self, M: np.ndarray) -> float:
        """Squared norm of the part of M orthogonal to B."""
        return max(float(np.sum(M * M)) - self.common_part(M) ** 2, 0.0)

    def part(self, rows: np.ndarray) -> "_Steps":
        """The same where only some pairs move, and all others are at zero."""
        found = copy(self)
        found.problem = self.problem.part(rows)
        found.weights, found.w = self.weights[rows], self.w[rows]
        return found

    def common_part(self, M: np.ndarray) -> float:
        """Length of M along B."""
        return float(np.sum(M * self.common))

    def take(self, y: np.ndarray, gradient: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``gᵀα + ½ Σ weights (α - y)² / step + ½ (wᵀ(α - y))²`` over feasible α."""
        # With z = wᵀ(α - y) given, α is a projection; the difference of both sides falls with z,
        # piecewise linearly, with a slope of at most -1: Newton's method inside a bracket.
        rate = step / self.weights
        goal, away = y - rate * gradient, rate * self.w
        offset, z = float(self.w @ y), self.along
        low, high, total = -np.inf, np.inf, self.problem.least * (1 + 1e-9)
        for _ in range(60):
            alpha = self.problem.project(goal - z * away, self.weights)
            error = float(self.w @ alpha) - offset - z
            if abs(error) <= self.precision * (abs(z) + abs(offset)):
                break
            low, high = (z, high) if error > 0 else (low, z)
            inside = (alpha > 0) & (alpha < self.problem.upper)
            slope = 1.0 + float(self.w[inside] @ away[inside])
            inside &= self.problem.apart
            if total > 0 and float(np.sum(alpha[self.problem.apart])) <= total:
                # The sum that is tied to its least value takes back what all move alike.
                slope -= float(np.sum(away[inside])) ** 2 / max(float(np.sum(rate[inside])), 1e-300)
            following = z + error / max(slope, 1.0)
            if not low < following < high:
                following = 0.5 * (low + high) if np.isfinite(low + high) else z + error
            z = following
        self.along = z
        return alpha
