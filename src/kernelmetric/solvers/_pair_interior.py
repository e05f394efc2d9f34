"""Interior-point method for the pairs of :mod:`kernelmetric.solvers._pair_dual`.

Exact where first-order methods crawl: raw features of very different scale. The Hessian is
``F Fᵀ`` with a row of at most r(r+1)/2 products of coordinates for every pair, so that its Newton
steps cost O(N² (N + r)) for few pairs and O(N r⁴ / 4) for few coordinates, whichever is less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import map_rows, sum_rows, worth_keeping
from kernelmetric.solvers._pair_dual import PairDual, PairSolution

_TO_BOUNDARY = 0.995  # how much of the way to the nearest bound a step may go
_MOST_FLOPS = 3e10  # of one Newton step: about a second
_MOST_DENSE = 4000  # pairs whose Hessian is formed
_MOST_UNDECIDED = 2000  # pairs of the small problems that follow a large one
_MOST_ROUNDS = 8
_MOST_FORMED = 2e9  # bytes of the matrices of a Newton step; the same on every machine
_MOST_KEPT = 4e8  # bytes of features that stay in memory between two passes
_SHARP = 1e-9
_BALANCED = 1e5  # how far the gradient may be from its multipliers, in units of the barrier
_ROUNDED = 0.1  # barrier of the positive semi-definite constraint, relative to that of the bounds


def interior_flops(problem: PairDual) -> float:
    """Most floating-point operations of a Newton step; infinite where matrices are too large."""
    return _flops(len(problem), problem.Z.shape[1], psd=problem.psd)


def _flops(N: int, r: int, *, psd: bool) -> float:
    products = r * (r + 1) / 2
    if products < N:
        return N * products**2 + products**3 if 4 * 8 * products**2 < _MOST_FORMED else np.inf
    formed = N * N * (products if psd else r)
    blocks = 4 * 8 * N * (N + (min(products, 1e4) if psd else r))
    return formed + N**3 if N <= _MOST_DENSE and blocks < _MOST_FORMED else np.inf


def pair_bytes(n_pairs: int, r: int) -> int:
    """Bytes that a solver takes at its peak for so many pairs in r dimensions, besides the points.

    Parameters
    ----------
    n_pairs : int
        Number of pairs.
    r : int
        Dimensions.

    Returns
    -------
    int
        An estimate, within a factor of two.
    """
    N, products = float(n_pairs), r * (r + 1) / 2
    taken = 8 * N * (r + 30) + 8 * 6 * r * r  # differences, multipliers, matrices
    if _flops(n_pairs, r, psd=True) > _MOST_FLOPS:
        return int(taken + 8 * min(N, 8192) * 2 * r)
    if products < N:  # features of pairs, kept or in blocks; the small matrix
        kept = 8 * N * products if 8 * N * products <= _MOST_KEPT else 0.0
        return int(taken + kept + 8 * (2 * min(N, 4096) * products + 4 * products**2))
    return int(taken + 8 * N * (4 * N + min(products, 2048)))


def affordable(problem: PairDual) -> bool:
    """Whether the interior-point method is the one to use."""
    return interior_flops(problem) <= _MOST_FLOPS


def interior_point(problem: PairDual, *, tol: float, max_iter: int, report: Any) -> PairSolution:
    """Mehrotra's predictor and corrector on ``β = α / upper``, from the middle of the box.

    Where the Hessian is inverted by its low rank the last digits are lost. They come back from a
    few small problems with a formed Hessian, over the pairs that are not at a bound or should not
    be there, the others fixed. All their steps together are at most ``max_iter``; forty are many.
    ``report`` is called after every step. The point with the smallest gap is returned; what is
    zero or at its bound there is exactly so.
    """
    beta = np.ones(len(problem))
    total = float(np.sum(problem.upper[problem.apart]))
    whole = problem.least >= total * (1 - 1e-12)  # ν = 1: dissimilar pairs are at their bound
    free = ~problem.apart if whole else np.ones(len(problem), dtype=bool)
    movable = free
    steps, best = 0, None
    for _ in range(_MOST_ROUNDS if free.any() else 0):
        beta, steps, formed, stopped = _iterate(problem, beta, free, tol, max_iter, report, steps)
        found = _cleaned(problem, beta, free, steps, tol)
        best = found if best is None else min(best, found, key=lambda s: s.certificate.gap)
        settled = formed and np.array_equal(free, movable)
        if found.converged or stopped or settled or steps >= max_iter:
            break
        before = free
        beta, free = _undecided(problem, found, movable)
        if not before.all() and np.sum(free | before) <= _MOST_UNDECIDED:
            free |= before  # what was undecided stays so: no pair goes to and fro
        if not free.any() or np.array_equal(before, free):
            break
    return best or problem.solution(problem.upper * beta, 0, tol, "interior")


def _iterate(problem, start, free, tol, max_iter, report, steps):
    """Newton steps over the free pairs, up to the step max_iter; the others stay as they start."""
    upper, apart = problem.upper, problem.apart
    beta = start.copy()
    a = np.where(apart, upper, 0.0) / max(float(np.sum(upper[apart])), 1e-300)
    missing = problem.least / max(float(np.sum(upper[apart])), 1e-300) - float(
        a[~free] @ beta[~free]
    )
    a = a[free]
    level = missing / float(np.sum(a)) if a.any() else -1.0
    if level >= 1 - 1e-12:  # no room inside: nothing to do for these pairs
        return beta, steps, True, False
    tied = level > 0
    a = a if tied else 0.0 * a
    unit = 1.0 / max(float(np.mean(upper * problem.d2)), 1e-300)

    beta[free] = np.where(apart[free], 0.5 * (1.0 + max(level, 0.0)), 0.5)
    room = 1.0 - beta[free]  # these two are kept apart: differences would lose their last digits
    slack = float(a @ beta[free]) - missing if tied else 1.0
    low = high = np.ones(len(room))
    multiplier = 1.0 if tied else 0.0
    best, best_metric, formed, stopped = beta.copy(), None, False, False
    hessian = _Hessian(problem, free, unit, a)
    least_gap = least_mu = np.inf
    stalled = 0
    # Where the last digits are asked for, a step or two more part the pairs at a bound from others.
    aim = 1e-2 * tol if tol <= _SHARP else tol
    last = max_iter - steps
    for iteration in range(last + 1):
        M = problem.matrix(upper * beta)
        metric = problem.metric(M)
        q = problem.forms(metric)
        gap = problem.certify(upper * beta, metric, q).gap
        mu = low @ beta[free] + high @ room + multiplier * slack if iteration else np.inf
        epsilon = _ROUNDED * mu / (2 * len(room)) / unit if iteration else float(np.mean(M * M))
        stalled = (
            0 if gap < 0.9 * least_gap or (gap > 1e-6 and mu < 0.9 * least_mu) else stalled + 1
        )
        least_mu = min(least_mu, mu)
        if gap < least_gap or best_metric is None:
            best, best_metric, least_gap = beta.copy(), metric, gap
        stopped = report is not None and report(steps, gap, best_metric)
        if stopped or gap <= aim or stalled > (1 if gap <= tol else 8) or iteration == last:
            break
        smoothed = _Smoothed(M, epsilon, psd=problem.psd)
        if problem.psd:
            q = problem.forms(smoothed.metric)
        gradient = unit * (upper * problem.signs * (q - problem.d2))[free]
        if iteration == 0:
            low = high = np.full(len(room), max(1.0, float(np.max(np.abs(gradient)))))
            multiplier *= float(low[0])
        b = beta[free]
        try:
            hessian.move_to(smoothed)
            formed = not hessian.low_rank
            move = _direction(hessian, gradient, b, room, low, high, multiplier, slack, tied)
        except linalg.LinAlgError:  # rounding has eaten the curvature: as far as it goes
            break
        db, dlow, dhigh, dmultiplier = move
        dslack = float(a @ db)
        if not np.all(np.isfinite(db)):
            break
        moves = [(b, db), (room, -db), (low, dlow), (high, dhigh)]
        moves += [(multiplier, dmultiplier), (slack, dslack)] if tied else []
        step = _TO_BOUNDARY * _longest(*moves)
        beta[free], room, slack = b + step * db, room - step * db, slack + step * dslack
        low, high = low + step * dlow, high + step * dhigh
        multiplier += step * dmultiplier
        steps += 1
    return best, steps, formed, stopped


def _undecided(
    problem: PairDual, found: PairSolution, movable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put most pairs at their nearest bound; leave free those far from it, or pulled from it."""
    beta = found.alpha / np.maximum(problem.upper, 1e-300)
    margins = problem.signs * (problem.forms(found.metric) - problem.d2)
    cost = margins - np.where(problem.apart, found.certificate.gamma, 0.0)
    lost = problem.upper * np.maximum(-cost, 0.0) + found.alpha * cost  # adds up to the gap
    r = problem.Z.shape[1]
    inside = np.minimum(beta, 1.0 - beta)
    most = min(_MOST_UNDECIDED // 2, r * (r + 1) + 50)  # no more than half of these can be
    free = np.zeros(len(problem), dtype=bool)
    for score in (inside, np.where(inside > 0, 0.0, lost)):
        order = np.argsort(-score, kind="stable")[:most]
        free[order] |= score[order] > 0
    free &= movable
    return np.where(free, beta, np.round(beta)), free


def _direction(hessian, gradient, b, w, low, high, multiplier, slack, tied):
    """Newton's direction: predictor, then corrector with the same factors."""
    a = hessian.a
    count = 2 * len(b) + tied
    mu = (low @ b + high @ w + multiplier * slack) / count
    hessian.factor(low / b + high / w, multiplier / slack)

    def solve(target, second_low=0.0, second_high=0.0, second_sum=0.0):
        for_low, for_high = target - second_low, target + second_high
        for_sum = (target - second_sum) if tied else 0.0
        db = hessian.solve(-gradient + for_low / b - for_high / w + for_sum / slack * a)
        dlow = for_low / b - low - low / b * db
        dhigh = for_high / w - high + high / w * db
        dmultiplier = for_sum / slack - multiplier - multiplier / slack * (a @ db)
        return db, dlow, dhigh, dmultiplier if tied else 0.0

    db, dlow, dhigh, dm = solve(0.0)
    moves = [(b, db), (w, -db), (low, dlow), (high, dhigh)]
    step = _longest(*moves, *([(multiplier, dm), (slack, a @ db)] if tied else []))
    ahead = (low + step * dlow) @ (b + step * db) + (high + step * dhigh) @ (w - step * db)
    ahead += (multiplier + step * dm) * (slack + step * (a @ db))
    center = (max(ahead, 0.0) / count / mu) ** 3
    # With μ falls the rounding of the positive part, and the slope with it. Where that outruns the
    # steps, μ waits until the gradient is balanced again.
    error = float(np.max(np.abs(gradient - low + high - multiplier * a)))
    if error > max(_BALANCED * mu, 1e-6 * float(np.max(np.abs(gradient)))):
        return solve(mu)
    return solve(center * mu, db * dlow, db * dhigh, dm * (a @ db))


class _Smoothed:
    """The metric of M, its kink at zero eigenvalues rounded off, and its derivative.

    [λ]₊ becomes (λ + √(λ² + 4ε)) / 2: the point of the central path of an interior-point method
    for the positive semi-definite constraint, with the barrier -ε log det.
    """

    def __init__(self, M: np.ndarray, epsilon: float, *, psd: bool):
        i, j = np.triu_indices(len(M))
        self.weights = np.where(i == j, 1.0, np.sqrt(2.0))
        self.metric, self.V = M, None
        if psd:
            values, self.V = linalg.eigh(M)
            root = np.sqrt(values**2 + 4.0 * epsilon)
            large = 0.5 * (np.abs(values) + root) + 1e-300
            rounded = np.where(values > 0, large, epsilon / large)  # without cancellation
            self.metric = (self.V * rounded) @ self.V.T
            product = rounded[i] * rounded[j]
            slope = product / (product + epsilon + 1e-300)  # (φᵢ - φⱼ) / (λᵢ - λⱼ)
            kept = slope > 1e-10
            i, j = i[kept], j[kept]
            self.weights = self.weights[kept] * np.sqrt(slope[kept])
        self.i, self.j = i, j

    def features(self, delta: np.ndarray, part: slice = slice(None)) -> np.ndarray:
        """Rows whose inner products are the Hessian, or some of their columns."""
        delta = delta if self.V is None else delta @ self.V
        return delta[:, self.i[part]] * delta[:, self.j[part]] * self.weights[part]


class _Hessian:
    """``unit U (F Fᵀ) U + Θ + ρ a aᵀ`` and its inverse, formed or by its low rank."""

    def __init__(self, problem: PairDual, free, unit: float, a):
        self.problem, self.a = problem, a
        self.chosen = np.flatnonzero(free)
        self.scale = (np.sqrt(unit) * problem.signs * problem.upper)[free]
        self.known = False  # whether the curvature of some point is

    def move_to(self, smoothed: _Smoothed) -> None:
        """Take the curvature at another point; without the kink it is the same everywhere."""
        if self.known and not self.problem.psd:
            return
        self.known, self.smoothed, self.width = True, smoothed, len(smoothed.weights)
        self.low_rank = len(self.a) > max(600, 2 * self.width)
        self._kept: np.ndarray | None = None
        n_bytes = 8.0 * self.width * len(self.a)
        if not self.low_rank:
            self.matrix = self._formed()
        elif n_bytes <= _MOST_KEPT and worth_keeping(n_bytes, share=0.25):
            self._kept = self._of_pairs(map_rows, lambda rows, F: F)

    def factor(self, theta: np.ndarray, rho: float) -> None:
        self.theta, self.rho = theta, rho
        if not self.low_rank:
            H = self.matrix.copy()
            H[np.diag_indices_from(H)] += theta
            self.factors = _cholesky(H)
        else:

            def product(rows: slice, F: np.ndarray) -> np.ndarray:
                F = F / np.sqrt(theta[rows, None])
                return F.T @ F

            self.factors = _cholesky(np.eye(self.width) + self._of_pairs(sum_rows, product))
        # Near the end ρ exceeds all else by 1e18: added to the matrix it would leave no digits.
        self.u = self._without_sum(self.a)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        x = self._inverse_times(rhs)
        for _ in range(2):  # digits are lost where Θ is small: refine
            x = x + self._inverse_times(rhs - self._times(x))
        return x

    def _inverse_times(self, rhs: np.ndarray) -> np.ndarray:
        x = self._without_sum(rhs)  # the formula of Sherman and Morrison
        return x - self.rho * (self.a @ x) / (1.0 + self.rho * (self.a @ self.u)) * self.u

    def _without_sum(self, rhs: np.ndarray) -> np.ndarray:
        """The inverse without ``ρ a aᵀ``, times a vector."""
        if not self.low_rank:
            return linalg.cho_solve(self.factors, rhs, check_finite=False)
        x = rhs / self.theta  # the formula of Woodbury
        y = linalg.cho_solve(self.factors, self._narrow(x), check_finite=False)
        return x - self._wide(y) / self.theta

    def _times(self, x: np.ndarray) -> np.ndarray:
        curved = self._wide(self._narrow(x)) if self.low_rank else self.matrix @ x
        return self.theta * x + curved + self.rho * (self.a @ x) * self.a

    def _narrow(self, x: np.ndarray) -> np.ndarray:
        return self._of_pairs(sum_rows, lambda rows, F: F.T @ x[rows])

    def _wide(self, x: np.ndarray) -> np.ndarray:
        return self._of_pairs(map_rows, lambda rows, F: F @ x)

    def _of_pairs(self, reduction: Callable, work: Callable[[slice, np.ndarray], Any]) -> Any:
        """Reduce work on the features of blocks of pairs."""

        def on_block(rows: slice) -> Any:
            return work(rows, self._features(rows) if self._kept is None else self._kept[rows])

        return reduction(on_block, len(self.a), 4 * 8 * self.width, most=4096)

    def _delta(self, rows: slice) -> np.ndarray:
        chosen, problem = self.chosen[rows], self.problem
        return problem.Z[problem.first[chosen]] - problem.Z[problem.second[chosen]]

    def _features(self, rows: slice) -> np.ndarray:
        return self.scale[rows, None] * self.smoothed.features(self._delta(rows))

    def _formed(self) -> np.ndarray:
        delta = self._delta(slice(None))

        def product(columns: slice) -> np.ndarray:
            F = self.smoothed.features(delta, columns)
            return F @ F.T

        if self.problem.psd and self.width:
            H = sum_rows(product, self.width, 4 * 8 * len(delta), most=2048)
        else:
            H = (delta @ delta.T) ** 2
        return self.scale[:, None] * H * self.scale


def _cholesky(H: np.ndarray) -> Any:
    """Cholesky factors, of a matrix moved by as little as rounding makes necessary."""
    for shift in (0.0, 1e-15, 1e-14, 1e-13, 1e-12):
        try:
            moved = H + shift * np.max(np.diag(H)) * np.eye(len(H)) if shift else H
            return linalg.cho_factor(moved, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise linalg.LinAlgError("not positive definite")


def _longest(*moves: tuple[Any, Any]) -> float:
    """The longest step, at most one, that keeps everything non-negative."""
    step = 1.0
    for value, change in moves:
        value, change = np.atleast_1d(value, change)
        crossing = change < -value  # others stay positive all the way
        step = min(step, float(np.min(value[crossing] / -change[crossing], initial=1.0)))
    return step


def _cleaned(problem, beta, free, n_iter, tol) -> PairSolution:
    """The same point with exact zeros and bounds, as far as that does not spoil the certificate."""
    found = problem.solution(problem.upper * beta, n_iter, tol, "interior")
    q, gamma = problem.forms(found.metric), found.certificate.gamma
    pull = problem.signs * (q - problem.d2) - np.where(problem.apart, gamma, 0.0)
    # With C grow the learned distances and γ, and the rounding of pulls with them.
    pull /= max(float(np.mean(problem.d2)), gamma, float(np.mean(np.abs(q))), 1e-300)
    weights = np.maximum(problem.upper, 1e-150) ** -2.0  # whose squares are numbers
    for margin in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10):
        zero = free & (beta < margin * np.minimum(1.0, 1e4 * pull))
        full = free & (1.0 - beta < margin * np.minimum(1.0, -1e4 * pull))
        exact = np.where(zero, 0.0, np.where(full, 1.0, beta))
        alpha = problem.project(problem.upper * exact, weights)
        clean = problem.solution(alpha, n_iter, tol, "interior")
        if clean.certificate.gap <= max(2.0 * found.certificate.gap, 0.5 * tol):
            return clean
    return found
