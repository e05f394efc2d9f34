"""Interior-point method for the pairs of :mod:`kernelmetric.solvers._pair_dual`.

Exact where first-order methods crawl: raw features of very different scale. The metric M is a
variable of its own, since the sum over α cancels with a large C. The positive semi-definite
constraint has a multiplier S with ``M = Σ s α δδᵀ + S`` and ``M S = μ I``.
"""

from typing import Any

import numpy as np
from scipy import linalg
from scipy.optimize import brentq, minimize_scalar

from kernelmetric.compute import bytes_at_once, small_steps
from kernelmetric.solvers._pair_curvature import MOST_DENSE, TILE_ROWS, Cone, Hessian
from kernelmetric.solvers._pair_dual import Certificate, PairDual, PairSolution

MOST_FLOPS = 3e10  # of one Newton step: about a second
_MOST_FORMED = 2e9  # bytes of the matrices of a Newton step; the same on every machine
_OF_STEPS = 3 * 30  # numbers of a pair: the steepest directions of first-order steps
_OF_SAMPLE = 4 * 500.0**2  # numbers: products of the pairs that tell these directions
_FREE, _OF_CURVATURE = (
    0.25,
    2 * 2000.0**2,
)  # of pairs no bound holds; numbers of their curvature
_SHARP = 1e-9
_FIRST_BARRIER = 0.03  # slopes of a first point, in mean squared distances times bounds
_SOLVED = 1e-2  # of μ: slopes need be no better in the next point
_NEAR, _NEAR_BARRIER = 0.99, 0.1  # share of a known metric in a first point, and its products
_MULTIPLES = np.log(1e6)  # of a known metric, up to which the best one is looked for


def interior_flops(problem: PairDual) -> float:
    """Most floating-point operations of a Newton step; infinite where matrices are too large."""
    return _flops(len(problem), problem.Z.shape[1], psd=problem.psd)


def _flops(N: int, r: int, *, psd: bool) -> float:
    products = r * (r + 1) / 2
    if products < N:
        return N * products**2 + products**3 if 4 * 8 * products**2 < _MOST_FORMED else np.inf
    formed = N * N * (products if psd else r)
    blocks = 4 * 8 * N * (N + (min(products, 1e4) if psd else r))
    return formed + N**3 if N <= MOST_DENSE and blocks < _MOST_FORMED else np.inf


def pair_bytes(n_pairs: int, r: int) -> int:
    """Bytes of a solver at its peak for so many pairs in r dimensions, within a factor of two."""
    N, products = float(n_pairs), r * (r + 1) / 2
    taken = 8 * N * (r + 30) + 8 * 6 * r * r  # differences, multipliers, matrices
    if _flops(n_pairs, r, psd=True) > MOST_FLOPS:
        newton = min(2 * (_FREE * N) ** 2, _OF_CURVATURE)
        steps = _OF_STEPS * N + 2 * r * min(N, 8192)
        return int(taken + 8 * (steps + max(min(4 * N * N, _OF_SAMPLE), newton)))
    if products < N:  # features of blocks of pairs, and the small matrix
        blocks = bytes_at_once(8 * TILE_ROWS * products, N * products**2 / 3)
        return int(taken + min(8 * N * products, blocks) + 8 * 4 * products**2)
    return int(taken + 8 * N * (4 * N + min(products, 2048)))


def start_near(problem: PairDual, metric: np.ndarray) -> np.ndarray:
    """Multipliers that suit a metric near the solution, feasible up to rounding."""
    free, level = _free(problem)
    if not free.any():
        return problem.upper
    newton = _Newton(problem, free, level)
    newton.near(metric)
    return problem.upper * newton.beta


def _free(problem: PairDual) -> tuple[np.ndarray, float]:
    """The pairs whose α is to be found, and the least mean of it over dissimilar ones."""
    total = float(np.sum(problem.upper[problem.apart]))
    if problem.least >= total * (1 - 1e-12):  # ν = 1: dissimilar pairs are at their bound
        return ~problem.apart, 0.0
    return np.ones(len(problem), dtype=bool), problem.least / max(total, 1e-300)


def interior_point(
    problem: PairDual, *, tol: float, max_iter: int, report: Any, metric: np.ndarray | None = None
) -> PairSolution:
    """Mehrotra's predictor and corrector on ``β = α / upper``: the point of the smallest gap."""
    free, level = _free(problem)
    if not free.any():
        return problem.solution(problem.upper, 0, tol, "interior")
    newton, wide = _Newton(problem, free, level), False
    if metric is not None:
        newton.near(metric)
    best, best_metric, least_gap, stalled, short, length = newton.beta, None, np.inf, 0, 0, 1.0
    # Where the last digits are asked for, a step more parts the pairs at a bound from others.
    aim = 0.1 * tol if tol <= _SHARP else tol
    for steps in range(max_iter + 1):
        certificate, metric = newton.certify()
        gap = certificate.gap
        better = gap < 0.9 * least_gap or (least_gap > 1e-5 and length > 0.1)
        stalled = 0 if better else stalled + 1
        if gap < least_gap or best_metric is None:
            best, best_metric, least_gap = newton.beta, metric, gap
        stopped = report is not None and report(steps, gap, best_metric)
        patience = 1 if gap <= tol else 4 if least_gap <= 1e-5 else 8
        if least_gap <= 1e-5 and length < 0.2 and not newton.hessian.solved:
            patience = 0  # rounding hides the curvature: no way on
        if stopped or gap <= aim or stalled > patience or steps == max_iter:
            break
        short = short + 1 if length < 0.2 and least_gap > 1e-2 else 0
        if short == 3 and not wide:  # a far goal: begin anew with more room
            newton, wide, stalled = _Newton(problem, free, level), True, 0
            newton.widen()
        try:
            length = newton.step(newton.mu())
        except linalg.LinAlgError:  # rounding has eaten the curvature: as far as it goes
            break
    return _cleaned(problem, best, best_metric, free, steps, tol)


class _Newton:
    """A point between the bounds, and its Newton steps.

    ``x`` are what shall not be negative: β, 1 - β and, where the sum over dissimilar pairs is tied
    to a least one, what it exceeds that by; ``y`` are their multipliers. In units of the problem,
    ``M = Fᵀβ + S`` holds at every point; the slopes ``F M - c`` balanced by y, and the products of
    x and y that shall be μ, hold in the end.
    """

    def __init__(self, problem: PairDual, free: np.ndarray, level: float):
        self.problem, self.free, self.n = problem, free, int(np.sum(free))
        upper, apart = problem.upper, problem.apart
        self.unit = 1.0 / max(float(np.mean(upper * problem.reach)), 1e-300)
        self.root = np.sqrt(self.unit)
        self.tied, self.level = level > 0, level
        total = max(float(np.sum(upper[apart])), 1e-300)
        self.a = np.where(apart & self.tied, upper, 0.0)[free] / total
        b = np.where(apart[free], 0.5 * (1.0 + level), 0.5)
        # Each kept on its own: differences would lose their last digits.
        self.x = np.concatenate([b, 1.0 - b, [float(self.a @ b) - level] * self.tied])
        self.y = np.full(len(self.x), _FIRST_BARRIER)
        # At the prior metric all slopes are zero, whatever C is. The pairs do not add up to it yet:
        # what is missing is made good as far as each step goes.
        self.M, self.S = self.root * problem.prior, np.zeros((0, 0))
        if problem.psd:
            values, V = np.linalg.eigh(self.M)
            values = np.maximum(values, 0.1 * float(np.mean(values)) or self.root)
            self.M, self.S = (V * values) @ V.T, (V * (0.5 * _FIRST_BARRIER / values)) @ V.T
        self.missing = self._missing()
        self._look()
        self.hessian = Hessian(problem, free, self.root)

    @property
    def beta(self) -> np.ndarray:
        """Multipliers of all pairs as shares of their bounds; those not free are at it."""
        beta = np.ones(len(self.problem))
        beta[self.free] = self.x[: self.n]
        return beta

    def near(self, metric: np.ndarray) -> None:
        """Begin near a metric."""
        # Multipliers of an earlier problem would not do: with a large C their sum cancels, and a
        # few pairs more spoil it.
        M = self.root * _best_multiple(self.problem, metric)
        self._begin(_NEAR * M + (1.0 - _NEAR) * self.M, _NEAR_BARRIER)

    def widen(self) -> None:
        """Begin at a metric as large as what the pairs add up to."""
        # One that is smaller by orders could grow by a small part of itself in each step only.
        size = float(np.linalg.norm(self.missing))
        self._begin(size * np.eye(len(self.M)), size * size / len(self.x))

    def _begin(self, M: np.ndarray, mu: float) -> None:
        """Begin at a metric, and the α for which all products are μ."""
        self.M = M
        if self.problem.psd:
            values, V = np.linalg.eigh(M)
            values = np.maximum(values, 1e-8 * values[-1])
            self.M, self.S = (V * values) @ V.T, (V * (mu / values)) @ V.T
        self._look()

        def centred(multiplier: float) -> np.ndarray:  # β and 1 - β: μ/β - μ/(1 - β) is the slope
            k = (self.gradient - multiplier * self.a) / mu
            k = np.stack([k, -k])
            return 2.0 / (k + 2.0 + np.sqrt(k * k + 4.0))

        def missing(multiplier: float) -> float:
            return multiplier * (float(self.a @ centred(multiplier)[0]) - self.level) - mu

        multiplier, high = 0.0, 1.0
        if self.tied:
            while missing(high) < 0:
                high *= 4.0
            multiplier = float(brentq(missing, 0.0, high, xtol=1e-14 * high))
            self.x[2 * self.n] = mu / multiplier
        self.x[: 2 * self.n] = centred(multiplier).ravel()
        self.y = mu / self.x
        self.missing = self._missing()

    def _missing(self) -> np.ndarray:
        """What the pairs and S do not add up to."""
        missing = self.M - self.root * self.problem.matrix(self.problem.upper * self.beta)
        return missing - self.S if self.problem.psd else missing

    def _look(self) -> None:
        """Slopes at the metric."""
        problem = self.problem
        self.q = problem.forms(self.M / self.root)
        slopes = problem.upper * problem.signs * (self.q - problem.d2)
        self.gradient = self.unit * slopes[self.free]

    def mu(self) -> float:
        """Mean product of what shall be zero with its multiplier."""
        return self._mean(float(self.x @ self.y), self.M * self.S if len(self.S) else 0.0)

    def _mean(self, of_bounds: float, of_cone: Any) -> float:
        return (of_bounds + float(np.sum(of_cone))) / (len(self.x) + len(self.S))

    def certify(self) -> tuple[Certificate, np.ndarray]:
        """What the point is worth, and the metric that goes with it."""
        alpha = self.problem.upper * self.beta
        dual = self.problem.dual(alpha, self.problem.metric(self.problem.matrix(alpha)))
        return self.problem.compare(dual, self.M / self.root, self.q)

    def step(self, mu: float) -> float:
        """Go to the next point; returns the part of a whole Newton step."""
        cone = Cone(self.M, self.S) if self.problem.psd else None
        ratio = self.y / self.x
        self.hessian.move_to(cone, ratio[: self.n] + ratio[self.n : 2 * self.n])
        with small_steps(len(self.problem) * self.problem.Z.shape[1] ** 2):
            return self._step(mu, cone, ratio)

    def _step(self, mu: float, cone: Any, ratio: np.ndarray) -> float:
        n, a, x, y, hessian = self.n, self.a, self.x, self.y, self.hessian
        precision = _SOLVED * mu
        share, u = 0.0, a
        if self.tied:
            u = hessian.solve(a, precision / max(1.0, float(y[-1])))
            share = ratio[-1] / (1.0 + ratio[-1] * float(a @ u))

        def solve(target: float, second: Any, second_cone: Any) -> tuple[Any, ...]:
            """Changes of x, y, M and S for products of the target, less those of second order."""
            pulled = (target - second) / x
            pull: Any = None if cone is None else cone.pull(target, second_cone)
            rhs = pulled[:n] - pulled[n : 2 * n] - self.gradient
            rhs = rhs + pulled[-1] * a if self.tied else rhs
            back = self.missing if cone is None else cone.damped(self.missing, pull)
            db = hessian.solve(rhs + hessian.rows(back), precision)
            # Near the end the ratio exceeds all else by 1e18: the formula of Sherman and Morrison.
            db = db - share * float(a @ db) * u
            dx = np.concatenate([db, -db, [float(a @ db)] * self.tied])
            dF = hessian.sum(db) - self.missing
            dM, dS = (dF, self.S) if cone is None else cone.moves(dF, pull)  # the latter scaled
            return dx, pulled - y - ratio * dx, dM, dS

        def longest(dx, dy, dM, dS) -> float:
            step = _longest(np.concatenate([x, y]), np.concatenate([dx, dy]))
            return step if cone is None else min(step, cone.longest(dM, dS))

        dx, dy, dM, dS = solve(0.0, 0.0, 0.0)
        t = longest(dx, dy, dM, dS)
        D = None if cone is None else np.diag(cone.d)
        of_cone = 0.0 if D is None else (D + t * dM) * (D + t * dS)
        mean = self._mean(float((x + t * dx) @ (y + t * dy)), of_cone)
        target = (max(mean, 0.0) / mu) ** 3 * mu
        near = 0.9 + 0.09 * t  # nearer to the boundary is less central: the next step is shorter
        second = dx * dy, 0.0 if cone is None else 0.5 * (dM @ dS + dS @ dM)
        dx, dy, dM, dS = solve(target, *second)
        t = longest(dx, dy, dM, dS)
        if not np.all(np.isfinite(dx)):
            raise linalg.LinAlgError("beyond the numbers")
        t = near * t
        if cone is not None:
            dM, dS = cone.unscaled(dM, dS)
        self.x, self.y = x + t * dx, y + t * dy
        self.M, self.S = self.M + t * dM, self.S + t * dS
        self.missing = (1.0 - t) * self.missing
        self._look()
        return t


def _best_multiple(problem: PairDual, metric: np.ndarray) -> np.ndarray:
    """The multiple of a metric that is best for the problem, which has another C perhaps."""
    q, half = problem.forms(metric), 0.5 * float(np.sum(metric * metric))
    found = minimize_scalar(
        lambda t: problem.primal(np.exp(2.0 * t) * half, np.exp(t) * q)[0],
        bounds=(-_MULTIPLES, _MULTIPLES),
        method="bounded",
        options={"xatol": 1e-2},
    )
    return np.exp(found.x) * metric


def _longest(value: np.ndarray, change: np.ndarray) -> float:
    """The longest step, at most one, that keeps everything non-negative."""
    crossing = change < -value  # others stay positive all the way
    return float(np.min(value[crossing] / -change[crossing], initial=1.0))


def _cleaned(problem, beta, metric, free, n_iter, tol) -> PairSolution:
    """The same point with exact zeros and bounds, as far as that does not spoil the certificate."""
    found = problem.solution(problem.upper * beta, n_iter, tol, "interior", metric)
    q, gamma = problem.forms(found.metric), found.certificate.gamma
    pull = problem.signs * (q - problem.d2) - np.where(problem.apart, gamma, 0.0)
    # With C grow the learned distances and γ, and the rounding of pulls with them.
    pull /= max(float(np.mean(problem.reach)), gamma, float(np.mean(np.abs(q))), 1e-300)
    weights = np.maximum(problem.upper, 1e-150) ** -2.0  # whose squares are numbers
    for margin in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10):
        zero = free & (beta < margin * np.minimum(1.0, 1e4 * pull))
        full = free & (1.0 - beta < margin * np.minimum(1.0, -1e4 * pull))
        exact = np.where(zero, 0.0, np.where(full, 1.0, beta))
        alpha = problem.project(problem.upper * exact, weights)
        clean = problem.solution(alpha, n_iter, tol, "interior", metric)
        if clean.certificate.gap <= max(2.0 * found.certificate.gap, 0.5 * tol):
            return clean
    return found
