"""Interior-point method for the pairs of :mod:`kernelmetric.solvers._pair_dual`.

Exact where first-order methods crawl: raw features of very different scale. The metric M is a
variable of its own beside the multipliers, and moves by ``Σ s dα δδᵀ``: that sum over α itself
cancels, with a large C down to its last digits. The positive semi-definite constraint has a
multiplier S with ``M = Σ s α δδᵀ + S``, ``M S = μ I``, and the scaling of Nesterov and Todd.

A Newton step solves with ``Θ + F Ω Fᵀ``: F has the row δδᵀ for a pair, Ω a weight from 0 to 1 for
every two eigenvectors of the scaling. Conjugate gradients do it in few products of O(N r²), with an
inverse that is formed for the pairs Θ has not decided yet: by its low rank, in O(N r⁴ / 4), or for
few pairs in O(N² (N + r²)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import sum_rows
from kernelmetric.solvers._pair_dual import Certificate, PairDual, PairSolution

_MOST_FLOPS = 3e10  # of one Newton step: about a second
_MOST_DENSE = 4000  # pairs whose Hessian is formed
_MOST_FORMED = 2e9  # bytes of the matrices of a Newton step; the same on every machine
_SHARP = 1e-9
_FIRST_BARRIER = 0.3  # slopes of a first point, in mean squared distances times bounds
_DECIDED = 1e3  # a pair whose Θ exceeds its own curvature so much does without that of others
_MOST_PRODUCTS = 40
_SOLVED = 1e-2  # of μ: slopes need be no better in the next point


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
    if products < N:  # features of a block of pairs, and the small matrix
        return int(taken + 8 * (min(N, 4096) * products + 4 * products**2))
    return int(taken + 8 * N * (4 * N + min(products, 2048)))


def affordable(problem: PairDual) -> bool:
    """Whether the interior-point method is the one to use."""
    return interior_flops(problem) <= _MOST_FLOPS


def interior_point(problem: PairDual, *, tol: float, max_iter: int, report: Any) -> PairSolution:
    """Mehrotra's predictor and corrector on ``β = α / upper``, from the middle of the box.

    ``report`` is called after every step. The point with the smallest gap is returned; what is
    zero or at its bound there is exactly so.
    """
    total = float(np.sum(problem.upper[problem.apart]))
    whole = problem.least >= total * (1 - 1e-12)  # ν = 1: dissimilar pairs are at their bound
    free = ~problem.apart if whole else np.ones(len(problem), dtype=bool)
    if not free.any():
        return problem.solution(problem.upper, 0, tol, "interior")
    level, size = 0.0 if whole else problem.least / max(total, 1e-300), _FIRST_BARRIER
    newton = _Newton(problem, free, level, size)
    best, best_metric, least_gap, stalled, short, length = newton.beta, None, np.inf, 0, 0, 1.0
    # Where the last digits are asked for, a step or two more part the pairs at a bound from others.
    aim = 1e-2 * tol if tol <= _SHARP else tol
    for steps in range(max_iter + 1):
        mu, (certificate, metric) = newton.mu(), newton.certify()
        gap = certificate.gap
        better = gap < 0.9 * least_gap or (least_gap > 1e-5 and length > 0.1)
        stalled = 0 if better else stalled + 1
        if gap < least_gap or best_metric is None:
            best, best_metric, least_gap = newton.beta.copy(), metric, gap
        stopped = report is not None and report(steps, gap, best_metric)
        patience = 1 if gap <= tol else 4 if least_gap <= 1e-5 else 8
        if stopped or gap <= aim or stalled > patience or steps == max_iter:
            break
        short = short + 1 if length < 0.2 and least_gap > 1e-2 else 0
        if short == 3 and size < 1e9:  # a far goal: begin anew with more room
            size, short, stalled = 1e3 * size, 0, 0
            newton = _Newton(problem, free, level, size)
            mu = newton.mu()
        try:
            length = newton.step(mu)
        except linalg.LinAlgError:  # rounding has eaten the curvature: as far as it goes
            break
    return _cleaned(problem, best, best_metric, free, steps, tol)


class _Newton:
    """A point between the bounds, and its Newton steps.

    In units of the problem, ``M = Fᵀβ + S`` holds at every point; the slopes
    ``F M - c = low - high + multiplier a`` and the products that shall be μ hold in the end.
    """

    def __init__(self, problem: PairDual, free: np.ndarray, level: float, size: float):
        self.problem, self.free = problem, free
        upper, apart = problem.upper, problem.apart
        self.unit = 1.0 / max(float(np.mean(upper * problem.d2)), 1e-300)
        self.root = np.sqrt(self.unit)
        self.tied = level > 0
        total = max(float(np.sum(upper[apart])), 1e-300)
        self.a = np.where(apart & self.tied, upper, 0.0)[free] / total
        self.beta = np.ones(len(problem))
        self.beta[free] = np.where(apart[free], 0.5 * (1.0 + level), 0.5)
        self.room = 1.0 - self.beta[free]  # kept apart: differences would lose their last digits
        self.slack = float(self.a @ self.beta[free]) - level if self.tied else 1.0
        # At the prior metric all slopes are zero, whatever C is. The pairs do not add up to it yet:
        # what is missing is made good as far as each step goes.
        self.M, self.S = self.root * problem.prior, np.zeros((0, 0))
        if problem.psd:
            values, V = np.linalg.eigh(self.M)
            values = np.maximum(values, 0.1 * float(np.mean(values)) or self.root)
            self.M, self.S = (V * values) @ V.T, (V * (0.5 * size / values)) @ V.T
        self.missing = self.M - self.root * problem.matrix(upper * self.beta)
        if problem.psd:
            self.missing -= self.S
        self._look()
        self.low = self.high = np.full(len(self.room), size)
        self.multiplier = size if self.tied else 0.0
        self.hessian = _Hessian(problem, free, self.root)

    def _look(self) -> None:
        """Slopes at the metric."""
        problem = self.problem
        self.q = problem.forms(self.M / self.root)
        self.gradient = (
            self.unit * (problem.upper * problem.signs * (self.q - problem.d2))[self.free]
        )

    def mu(self) -> float:
        """Mean product of what shall be zero with its multiplier."""
        b = self.beta[self.free]
        of_bounds = self.low @ b + self.high @ self.room + self.multiplier * self.slack
        of_cone = float(np.sum(self.M * self.S)) if len(self.S) else 0.0
        return (of_bounds + of_cone) / (2 * len(b) + self.tied + len(self.S))

    def certify(self) -> tuple[Certificate, np.ndarray]:
        """What the point is worth, and the metric that goes with it."""
        alpha = self.problem.upper * self.beta
        dual = self.problem.dual(alpha, self.problem.metric(self.problem.matrix(alpha)))
        return self.problem.compare(dual, self.M / self.root, self.q)

    def step(self, mu: float) -> float:
        """Go to the next point; returns the part of a whole Newton step."""
        b, a, problem = self.beta[self.free], self.a, self.problem
        cone = _Cone(self.M, self.S) if problem.psd else None
        self.hessian.move_to(cone, self.low / b + self.high / self.room)
        rho = self.multiplier / self.slack
        precision = _SOLVED * mu
        u = self.hessian.solve(a, precision / max(1.0, self.multiplier)) if self.tied else a
        share = rho / (1.0 + rho * float(a @ u))

        def solve(target, second=(0.0, 0.0, 0.0, 0.0)):
            second_low, second_high, second_sum, second_cone = second
            for_low, for_high = target - second_low, target + second_high
            for_sum = (target - second_sum) * self.tied
            pull = None if cone is None else cone.pull(target, second_cone)
            rhs = -self.gradient + for_low / b - for_high / self.room + for_sum / self.slack * a
            rhs = rhs + self.hessian.rows(
                self.missing if cone is None else cone.damped(self.missing, pull)
            )
            db = self.hessian.solve(rhs, precision)
            # Near the end ρ exceeds all else by 1e18: the formula of Sherman and Morrison.
            db = db - share * float(a @ db) * u
            dlow = for_low / b - self.low - self.low / b * db
            dhigh = for_high / self.room - self.high + self.high / self.room * db
            dm = (for_sum / self.slack - self.multiplier - rho * float(a @ db)) * self.tied
            dF = self.hessian.sum(db) - self.missing
            dM, dS = (dF, self.S) if cone is None else cone.moves(dF, pull)  # the latter scaled
            return db, dlow, dhigh, dm, dM, dS

        def longest(db, dlow, dhigh, dm, dM, dS) -> float:
            moves = [(b, db), (self.room, -db), (self.low, dlow), (self.high, dhigh)]
            moves += [(self.multiplier, dm), (self.slack, float(a @ db))] if self.tied else []
            step = _longest(*moves)
            return step if cone is None else min(step, cone.longest(dM, dS))

        predicted = solve(0.0)
        db, dlow, dhigh, dm, dM, dS = predicted
        t = longest(*predicted)
        ahead = (self.low + t * dlow) @ (b + t * db) + (self.high + t * dhigh) @ (
            self.room - t * db
        )
        ahead += (self.multiplier + t * dm) * (self.slack + t * float(a @ db))
        if cone is not None:
            ahead += float(np.sum((np.diag(cone.d) + t * dM) * (np.diag(cone.d) + t * dS)))
        center = (max(ahead, 0.0) / (2 * len(b) + self.tied + len(self.S)) / mu) ** 3
        near = (
            0.9 + 0.09 * t
        )  # the nearer to the boundary, the less central and the shorter the next
        curved = 0.0 if cone is None else 0.5 * (dM @ dS + dS @ dM)
        db, dlow, dhigh, dm, dM, dS = moves = solve(
            center * mu, (db * dlow, db * dhigh, dm * float(a @ db), curved)
        )
        if not np.all(np.isfinite(db)):
            raise linalg.LinAlgError("beyond the numbers")
        t = near * longest(*moves)
        self.beta[self.free], self.room = b + t * db, self.room - t * db
        self.slack, self.multiplier = self.slack + t * float(a @ db), self.multiplier + t * dm
        self.low, self.high = self.low + t * dlow, self.high + t * dhigh
        if cone is not None:
            dM, dS = cone.unscaled(dM, dS)
        self.M, self.S = self.M + t * dM, self.S + t * dS
        self.missing = (1.0 - t) * self.missing
        self._look()
        return t


class _Cone:
    """The scaling of Nesterov and Todd: G with ``G⁻¹ M G⁻ᵀ = Gᵀ S G``, a diagonal matrix.

    With the singular vectors ``G = Q √w Yᵀ`` what steps need is elementwise in the basis Q.
    """

    def __init__(self, M: np.ndarray, S: np.ndarray):
        L, R = (linalg.cholesky(X, lower=True, check_finite=False) for X in (M, S))
        _, self.d, Vt = linalg.svd(R.T @ L, check_finite=False)
        if not self.d[-1] > 0:
            raise linalg.LinAlgError("a metric at the boundary")
        self.Q, root, self.Yt = linalg.svd((L @ Vt.T) / np.sqrt(self.d), check_finite=False)
        self.root, self.w = root, root**2
        product = np.outer(self.w, self.w)
        self.weights = product / (1.0 + product)  # Ω
        self.halfway = np.outer(root, root) / (1.0 + product)

    def pull(self, target: float, second: Any) -> np.ndarray:
        """What M and S, both scaled, shall change by together."""
        d = self.d
        T = np.diag(target - d * d) - second
        return self.Yt @ (T * (2.0 / (d[:, None] + d))) @ self.Yt.T

    def damped(self, missing: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """How far M moves back while the pairs stay."""
        inside = self.weights * (self.Q.T @ missing @ self.Q) - self.halfway * pull
        return self.Q @ inside @ self.Q.T

    def moves(self, dF: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The changes of M and of S, both scaled, that go with that of the pairs."""
        dM = self.halfway * (self.Q.T @ dF @ self.Q) + (1.0 - self.weights) * pull
        return self.Yt.T @ dM @ self.Yt, self.Yt.T @ (pull - dM) @ self.Yt

    def unscaled(self, dM: np.ndarray, dS: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same in the units of the metric."""
        G, back = (self.Q * self.root) @ self.Yt, (self.Q / self.root) @ self.Yt
        dM, dS = G @ dM @ G.T, back @ dS @ back.T
        return 0.5 * (dM + dM.T), 0.5 * (dS + dS.T)

    def longest(self, *moves: np.ndarray) -> float:
        """The longest step, at most one, that keeps both positive semi-definite."""
        scale = 1.0 / np.sqrt(np.outer(self.d, self.d))
        lowest = min(float(np.linalg.eigvalsh(scale * move)[0]) for move in moves)
        return min(1.0, -1.0 / lowest) if lowest < 0 else 1.0


class _Hessian:
    """``Θ + F Ω Fᵀ`` over the free pairs, and its inverse by conjugate gradients."""

    def __init__(self, problem: PairDual, free: np.ndarray, root: float):
        self.problem, self.free = problem, free
        self.scale = (root * problem.signs * problem.upper)[free]
        self.root, self.chosen = root, np.flatnonzero(free)
        lengths = problem.forms(np.eye(problem.Z.shape[1]))[free]
        self.diagonal = np.maximum((self.scale * lengths) ** 2, 1e-300)  # where all weights are 1
        self.gram: np.ndarray | None = None

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Products F X: forms of the pairs."""
        return self.scale * self.problem.forms(X)[self.free]

    def sum(self, x: np.ndarray) -> np.ndarray:
        """The matrix Fᵀ x."""
        full = np.zeros(len(self.problem))
        full[self.free] = x
        return self.root * self.problem.matrix(self.problem.upper * full)

    def move_to(self, cone: _Cone | None, theta: np.ndarray) -> None:
        """Look at the curvature of another point, and form an inverse nearly right."""
        self.cone, self.theta = cone, theta
        self.some = np.flatnonzero(theta < _DECIDED * self.diagonal)
        n, r = len(self.some), self.problem.Z.shape[1]
        self.i, self.j = np.triu_indices(r)
        self.widths = np.where(self.i == self.j, 1.0, np.sqrt(2.0))
        if cone is not None:
            self.widths = self.widths * np.sqrt(cone.weights[self.i, self.j])
        width = len(self.i)
        formed = n * n * (r if cone is None else np.sum(self.widths > 1e-5)) + n**3 / 3
        low_rank = n > 600 and n * width**2 + width**3 / 3 < formed  # it loses the last digits
        self.low_rank = low_rank or n > _MOST_DENSE
        if self.low_rank:
            self.factors = _cholesky(np.eye(width) + self._small())
        elif n:
            H = self._formed()
            H[np.diag_indices_from(H)] += theta[self.some]
            self.factors = _cholesky(H)

    def solve(self, rhs: np.ndarray, precision: float) -> np.ndarray:
        """Conjugate gradients: the fewer products, the better the formed inverse is."""
        x, rest = np.zeros(len(rhs)), rhs
        before, direction = 1.0, None
        for step in range(_MOST_PRODUCTS):
            if not np.max(np.abs(rest)) > precision:
                break
            turned = self._nearly(rest)
            size = float(rest @ turned)
            direction = turned if step == 0 else turned + size / before * direction
            image = self._times(direction)
            along = size / float(direction @ image)
            x, rest, before = x + along * direction, rest - along * image, size
        return x

    def _times(self, x: np.ndarray) -> np.ndarray:
        if self.cone is None and self.gram is not None:
            return self.theta * x + self.scale * (self.gram @ (self.scale * x))
        E = self.sum(x)
        if self.cone is not None:
            Q = self.cone.Q
            E = Q @ (self.cone.weights * (Q.T @ E @ Q)) @ Q.T
        return self.theta * x + self.rows(E)

    def _nearly(self, rhs: np.ndarray) -> np.ndarray:
        """The formed inverse, times a vector: by the formula of Woodbury, or of some pairs."""
        x, some = rhs / self.theta, self.some
        if not self.low_rank:
            if len(some):
                x[some] = linalg.cho_solve(self.factors, rhs[some], check_finite=False)
            return x
        E = np.zeros(len(x))
        E[some] = x[some]
        Q = None if self.cone is None else self.cone.Q
        E = self.sum(E)
        E = E if Q is None else Q.T @ E @ Q
        y = linalg.cho_solve(self.factors, E[self.i, self.j] * self.widths, check_finite=False)
        E = np.zeros_like(E)
        E[self.i, self.j] = 0.5 * y * self.widths
        E = E + E.T
        x[some] -= self.rows(E if Q is None else Q @ E @ Q.T)[some] / self.theta[some]
        return x

    def _delta(self, rows: Any) -> np.ndarray:
        chosen, problem = self.chosen[self.some[rows]], self.problem
        delta = problem.Z[problem.first[chosen]] - problem.Z[problem.second[chosen]]
        return delta if self.cone is None else delta @ self.cone.Q

    def _small(self) -> np.ndarray:
        size = np.sqrt(np.abs(self.scale[self.some])) / self.theta[self.some] ** 0.25
        r, ends = self.problem.Z.shape[1], np.cumsum(np.arange(self.problem.Z.shape[1], 0, -1))

        def product(rows: slice) -> np.ndarray:
            delta = np.ascontiguousarray((self._delta(rows) * size[rows, None]).T)
            F = np.empty((len(self.i), delta.shape[1]))
            for k in range(r):  # all products of coordinate k with those that follow
                np.multiply(delta[k:], delta[k], out=F[ends[k] - (r - k) : ends[k]])
            return F @ F.T

        small = sum_rows(product, len(self.some), 3 * 8 * len(self.i), most=4096)
        small *= self.widths[:, None]
        small *= self.widths
        return small

    def _formed(self) -> np.ndarray:
        """``F Ω Fᵀ`` of some pairs; without weights a part of what was formed once."""
        some, scale = self.some, self.scale[self.some]
        if self.cone is None:
            if self.gram is None:
                delta = self.problem.Z[self.problem.first] - self.problem.Z[self.problem.second]
                delta = delta[self.free]
                self.gram = (delta @ delta.T) ** 2
            H = self.gram[np.ix_(some, some)]
        else:
            delta = np.ascontiguousarray(self._delta(slice(None)).T)
            kept = np.flatnonzero(self.widths > 1e-5)

            def product(part: slice) -> np.ndarray:
                columns = kept[part]
                F = delta[self.i[columns]]
                F *= delta[self.j[columns]]
                F *= self.widths[columns, None]
                return F.T @ F

            H = sum_rows(product, len(kept), 4 * 8 * len(some), most=2048)
        H *= scale[:, None]
        H *= scale
        return H


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


def _cleaned(problem, beta, metric, free, n_iter, tol) -> PairSolution:
    """The same point with exact zeros and bounds, as far as that does not spoil the certificate."""
    found = problem.solution(problem.upper * beta, n_iter, tol, "interior", metric)
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
        clean = problem.solution(alpha, n_iter, tol, "interior", metric)
        if clean.certificate.gap <= max(2.0 * found.certificate.gap, 0.5 * tol):
            return clean
    return found
