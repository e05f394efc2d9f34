"""Which method solves a problem of pairs, and the one for many of them."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from kernelmetric.compute import small_steps
from kernelmetric.inputs._parameters import require_word
from kernelmetric.solvers import _pair_interior as interior
from kernelmetric.solvers._pair_dual import Certificate, PairDual, PairSolution
from kernelmetric.solvers._pair_newton import newton_point

_CHECK_EVERY = 20  # steps between two certificates
_GROWTH, _LONGEST = 1.05, 1e6  # of a step: pairs that move in the end have less curvature
_FEW = 0.6  # share of the pairs that are worth a copy of their differences
_DECAY, _SAFETY, _LEAST_SHARE = 0.95, 1.5, 1e-3  # of the curvature seen in the last steps
_LOOKED_AT, _DIRECTIONS = 500, 30  # pairs that tell the steepest directions, and how many
_LEAST_COMMON = 1e-4  # curvature along these, as a share of the largest
_OF_STEPS = 1.2e-3  # of the tolerance: so right need coordinates be for steps
_NEAR = 0.6  # gap from which Newton steps go on
_DAMPING, _EXACT = 3e-3, 1e-9  # of these, in squared lengths of pairs' matrices; without a cone
_SHORTEST = 0.01  # share of a Newton step that is worth it
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
    ``report(n_steps, gap, metric)`` stops it. First-order steps go on as Newton steps near the end.
    """
    require_word("solver", solver, ("auto", "interior", "first-order"))
    flops = interior.interior_flops(problem)
    if solver == "interior" or (solver == "auto" and flops <= interior.MOST_FLOPS):
        most = min(max_iter, 100)
        goal = min(tol, _INTERIOR_TOL if flops <= _QUICK_FLOPS else _LONG_TOL) if sharp else tol
        # Where the rank is low, tiles are shared, and an inverse is the largest other call.
        products = problem.Z.shape[1] * (problem.Z.shape[1] + 1) / 2
        inverse = products**3 / 3 if products < len(problem) else flops
        with small_steps(flops, largest=inverse):
            options: Any = {"tol": goal, "max_iter": most, "report": report}
            found = interior.interior_point(problem, **options, metric=metric)
            if metric is not None and not found.certificate.gap <= tol and found.n_iter < most:
                found = interior.interior_point(problem, **options)
        found.converged = found.certificate.gap <= tol
        return found
    start = None if metric is None else interior.start_near(problem, metric)
    limits: Any = {"max_iter": max_iter, "report": report}
    found = first_order(problem, tol=max(tol, _NEAR), start=start, **limits)
    return newton(problem, found, tol=tol, **limits) if found.converged else found


def newton(
    problem: PairDual, begun: PairSolution, *, tol: float, max_iter: int, report: Any = None
) -> PairSolution:
    """Newton steps over the pairs that no bound holds, each as far as the dual grows."""
    record, alpha, step = _Record(problem), begun.alpha, begun.n_iter
    damping = least = _DAMPING if problem.psd else _EXACT
    gap = record.see(alpha, begun.metric)
    while gap > tol and step < max_iter:
        if report is not None and report(step, gap, record.metric):
            break
        M, slopes = record.M, record.slopes
        goal = newton_point(problem, alpha, slopes, M, damping) if damping <= 1.0 else None
        if goal is None:  # too many pairs, or rounding
            limits: Any = {"tol": tol, "max_iter": max_iter, "report": report}
            return first_order(problem, start=alpha, taken=step, **limits)
        move, change = goal - alpha, problem.matrix(goal) - M
        rise, share = float((problem.signs * problem.d2) @ move), 1.0
        while share > _SHORTEST and np.sum(change * problem.metric(M + share * change)) > rise:
            share *= 0.5
        damping *= 0.1 if share == 1.0 else 10.0
        damping, step = max(damping, 0.1 * least), step + 1
        alpha = alpha + share * move if share > _SHORTEST else alpha
        gap = record.see(alpha)
    best = record.alpha, record.M, record.metric
    return PairSolution(*best, record.certificate, step, gap <= tol, "first-order")


def first_order(
    problem: PairDual,
    *,
    tol: float,
    max_iter: int,
    start: np.ndarray | None = None,
    taken: int = 0,
    report: Report | None = None,
) -> PairSolution:
    """Accelerated projected gradient with restarts, from a given start or near zero.

    The matrices δδᵀ/|δ|² have much in common, and along that the Hessian is steeper than elsewhere
    by factors up to hundreds. Some thirty such directions are found in a sample of the pairs. That
    part is kept in the step exactly, and the rest replaced by a multiple of the diagonal |δ|⁴. As M
    is linear in α, the curvature along a step is known before the gradient is: steps grow while it
    allows. Where the positive part flattens the dual, only a share of it is reckoned with, as seen
    in the last steps. Between two certificates, pairs that stay at zero are left out. The metric is
    that of the last point, or a mean of the last ones, which sways less.
    """
    exact, largest = problem, float(np.sum(problem.upper * problem.sizes()))
    if not np.isfinite(largest * largest):
        raise ValueError(
            f"Got bounds that allow a metric of size {largest:.3g}, but expected squares in the "
            "range of float64: try smaller bounds."
        )
    everything = steps = _Steps(exact.rough(_OF_STEPS * tol, largest), 1e-6 * tol, exact)
    problem, rows = steps.problem, np.arange(len(exact))
    begun = (0.0 * exact.upper,) if start is None else (0.0 * exact.upper, start)
    starts = [exact.project(at, steps.weights) for at in begun]
    x = max(starts, key=lambda at: exact.dual(at, exact.metric(exact.matrix(at))))
    Mx = problem.matrix(x)
    y, My, momentum, step = x, Mx, 1.0, 1.0
    record, iteration = _Record(exact), 0
    last, share, done = None, 1.0, 0
    total: Any = 0.0
    for iteration in range(taken + 1, max_iter + 1):
        metric = problem.metric(My)
        total, done = total + metric, done + 1
        gradient = problem.signs * (problem.forms(metric) - problem.d2)
        if last is not None:
            seen = _SAFETY * steps.share(y - last[0], gradient - last[1], step)
            share = min(max(_DECAY * share, seen, _LEAST_SHARE), 1.0)
        last = y, gradient
        step = min(_GROWTH * step, _LONGEST)
        while True:
            candidate = steps.take(y, gradient / share, step)
            Mc = problem.matrix(candidate)
            moved = float(np.sum(steps.weights * (candidate - y) ** 2))
            common = (candidate - y) @ steps.W
            curved = steps.rest(Mc - My, common)
            if not curved * step > moved * (1 + 1e-10) or step * len(rows) < 1:
                break  # a NaN ends it too, and a step so short that what seems too long is rounding
            step = max(0.95 * moved / curved, 0.5 / len(rows))
        if not np.isfinite(curved):
            record.see(np.bincount(rows, x, len(exact)), total / done)
            break  # beyond the finite numbers: the best point before is what there is
        uphill = float(np.sum(steps.weights * (y - candidate) * (candidate - x)))
        if uphill - step * float(common @ ((candidate - x) @ steps.W)) > 0:
            momentum = 1.0  # it points uphill: forget it
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = (momentum - 1.0) / following
        y, My = candidate + ahead * (candidate - x), Mc + ahead * (Mc - Mx)
        x, Mx, momentum = candidate, Mc, following
        if iteration % _CHECK_EVERY == 0 or iteration == max_iter:
            x, y = (np.bincount(rows, part, len(exact)) for part in (x, y))
            gap = record.see(x, total / done)
            if gap <= tol or (report is not None and report(iteration, gap, record.metric)):
                break
            rows = np.flatnonzero((x > 0) | (y != 0) | (record.pull < 0))
            rows = rows if 0 < len(rows) < _FEW * len(x) else np.arange(len(x))
            if step * len(rows) < 1 and everything.problem is not exact:
                # Steps became too short by rounding: from here on in double precision.
                everything.problem, momentum, step = exact, 1.0, 1.0
                Mx, My = exact.matrix(x), exact.matrix(y)
            last, total, done = None, 0.0, 0
            x, y, steps = x[rows], y[rows], everything.part(rows)
            problem = steps.problem
    best, converged = (record.alpha, record.M, record.metric), record.certificate.gap <= tol
    return PairSolution(*best, record.certificate, iteration, converged, "first-order")


class _Record:
    """The best point of the dual so far, the best metric, and what lies between them."""

    def __init__(self, problem: PairDual):
        self.problem = problem
        self.dual, self.primal = -np.inf, np.inf

    def see(self, alpha: np.ndarray, *others: np.ndarray) -> float:
        """Take note of a feasible point, and of other metrics; returns the relative gap."""
        problem = self.problem
        M = problem.matrix(alpha)
        metric = problem.metric(M)
        dual = problem.dual(alpha, metric)
        if dual > self.dual:
            self.dual, self.alpha, self.M = dual, alpha, M
        for other in (*others, metric):
            q = problem.forms(other)
            found, better = problem.compare(dual, other, q)
            if found.primal < self.primal:
                self.primal, self.metric, self.gamma = found.primal, better, found.gamma
        self.slopes = problem.signs * (q - problem.d2)
        self.pull = self.slopes - np.where(problem.apart, found.gamma, 0.0)
        scale = max(0.5 * float(np.sum(self.metric * self.metric)), problem.least_scale)
        self.certificate = Certificate.of(self.dual, self.primal, scale, self.gamma)
        return self.certificate.gap


class _Steps:
    """Steps in the metric ``diag(weights) / step + W Wᵀ``: ``Wᵀα`` are ``⟨B, M(α)⟩`` for some B."""

    def __init__(self, problem: PairDual, precision: float, exact: PairDual | None = None):
        self.problem, self.exact = problem, problem if exact is None else exact
        self.precision = max(precision, 1e-12)
        lengths = problem.sizes()
        self.lengths = np.maximum(lengths, 1e-3 * max(float(np.mean(lengths)), 1e-300))
        self.weights = self.lengths**2
        self._look()

    def _look(self) -> None:
        """Take for B orthonormal matrices: what those of the pairs have most in common."""
        problem, n = self.exact, len(self.exact)
        some = np.random.RandomState(0).permutation(n)[:_LOOKED_AT]
        scale = problem.signs[some] / self.lengths[some]
        near = problem.parts(some)

        def products(block: np.ndarray) -> np.ndarray:
            of = problem.parts(block)
            gram = sum(s * t * (a @ b.T) ** 2 for s, a in of for t, b in near)
            return problem.signs[block, None] * gram * scale

        values, V = np.linalg.eigh(products(some) / self.lengths[some, None])
        kept = np.flatnonzero(values > _LEAST_COMMON * values[-1])[-_DIRECTIONS:]
        V = V[:, kept] / np.sqrt(values[kept])
        blocks = np.split(np.arange(n), range(_LOOKED_AT, n, _LOOKED_AT))
        self.W = np.concatenate([products(block) @ V for block in blocks])
        self.along = np.zeros(len(kept))  # ⟨B, M⟩ moved so much in the last step

    def rest(self, M: np.ndarray, common: np.ndarray) -> float:
        """Squared norm of what all B leave of a matrix."""
        return max(float(np.sum(M * M)) - float(common @ common), 0.0)

    def part(self, rows: np.ndarray) -> "_Steps":
        """The same where only some pairs move, and all others are at zero."""
        found = copy(self)
        found.problem = self.problem.part(rows)
        found.weights, found.W = self.weights[rows], self.W[rows]
        return found

    def share(self, move: np.ndarray, change: np.ndarray, step: float) -> float:
        """Change of a gradient along a move, as a share of what is reckoned with."""
        common = move @ self.W
        reckoned = float(self.weights @ move**2) / step + float(common @ common)
        return float(change @ move) / reckoned if reckoned > 0 else 1.0

    def take(self, y: np.ndarray, gradient: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``gᵀα + ½ Σ weights (α - y)² / step + ½ |Wᵀ(α - y)|²`` over feasible α."""
        # With z = Wᵀ(α - y) given, α is a projection; z maximises a concave function whose gradient
        # is the difference of both sides, and piecewise linear: Newton's method with shorter steps.
        rate = step / self.weights
        goal, away = y - rate * gradient, rate[:, None] * self.W
        offset, total = y @ self.W, self.problem.least * (1 + 1e-9)

        def at(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
            alpha = self.problem.project(goal - away @ z, self.weights)
            moved = alpha - y
            common = alpha @ self.W - offset
            value = gradient @ moved + 0.5 * (moved * self.weights) @ moved / step
            return alpha, common - z, float(value + z @ common - 0.5 * z @ z)

        z = self.along
        alpha, error, value = at(z)
        for _ in range(30):
            size = float(np.linalg.norm(error))
            if size <= self.precision * float(np.linalg.norm(z) + np.linalg.norm(offset)):
                break
            inside = (alpha > 0) & (alpha < self.problem.upper)
            slopes = np.eye(len(z)) + self.W[inside].T @ away[inside]
            inside &= self.problem.apart
            if total > 0 and float(np.sum(alpha[self.problem.apart])) <= total:
                # The sum that is tied to its least value takes back what all move alike.
                tied = np.sum(away[inside], axis=0)
                slopes -= np.outer(tied, tied) / max(float(np.sum(rate[inside])), 1e-300)
            move, share = np.linalg.solve(slopes, error), 1.0
            for _ in range(20):
                following = at(z + share * move)
                least = value + 1e-4 * share * float(error @ move)
                if following[2] >= least or float(np.linalg.norm(following[1])) < 0.5 * size:
                    break
                share *= 0.5
            z, (alpha, error, value) = z + share * move, following
        self.along = z
        return alpha
