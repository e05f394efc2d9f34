"""The program of LSML, and Newton's way to the optimum."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy import linalg

from kernelmetric.compute import calm_if_small, sum_rows, worth_keeping
from kernelmetric.learners._log_det import Certified, LogDetDivergence, descend
from kernelmetric.learners._pair_learner import differences
from kernelmetric.learners._progress import Iterations

_MOST_ROWS = 16384  # comparisons of a block
_NEAREST = 1e-100  # squared distance that is told from zero
_MOST_SOLVED = 1000  # equations of a Newton step: more would take longer than L-BFGS
_AT_ONCE = 512  # comparisons whose products of coordinates are summed in the cache
KEPT = 8  # arrays as large as all differences that the steps keep
_MOST_TRIED = 40  # lengths of a step
_MANY, _PART = 4000, 8  # comparisons, and of how many one is in the part to begin with
_MOST_IN_PART, _PART_TOL, _FAR = 20, 1e-2, 0.3  # gaps that are good for it, and that ask for it


class ComparedPairs(LogDetDivergence):
    """Divergence from the identity, and squared residuals of distances in wrong order.

    With x and y the squared distances of the near and the far pair, a comparison costs
    ``(√x - √y)²`` where x > y: convex, and homogeneous, so that its value is that of its gradient,
    ``(1 - √(y/x)) x + (1 - √(x/y)) y``.

    Parameters
    ----------
    Y : ndarray of shape (n, r)
        Points, in coordinates in which the prior is the identity.
    near, far : ndarray of shape (n_tuples, 2)
        Pairs of row numbers.
    gamma : float
        γ.
    counts : ndarray of shape (n_tuples,)
        What the comparisons count, one in the mean.
    """

    def __init__(
        self, Y: np.ndarray, near: np.ndarray, far: np.ndarray, gamma: float, counts: np.ndarray
    ):
        self.Y, self.near, self.far, self.counts = Y, near, far, counts
        self._size = len(near), 6 * 8 * Y.shape[1]
        total = sum_rows(self._plain, *self._size, most=_MOST_ROWS)
        if not total > 1e-14 * max(float(np.mean(Y * Y)), 1e-300):
            raise ValueError(
                "Got tuples of points that coincide, but expected at least one pair of different "
                "points: no distance can be learned from them."
            )
        self.weight = gamma / len(near) / (total / (2 * len(near)))
        self.floor = 1e-20 * total / len(near)  # under roots of far pairs of points that coincide

    def _plain(self, block: slice) -> float:
        return sum(
            float(np.sum(self.counts[block] @ differences(self.Y, rows[block]) ** 2))
            for rows in (self.near, self.far)
        )

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """What residuals cost, and their derivative with respect to LᵀL."""

        def sums(block: slice) -> tuple[float, np.ndarray]:
            delta, epsilon = (differences(self.Y, rows[block]) for rows in (self.near, self.far))
            x, y = (np.sum((part @ L.T) ** 2, axis=1) for part in (delta, epsilon))
            wrong = x > y + self.floor
            ratio = np.sqrt((y[wrong] + self.floor) / x[wrong])
            delta, epsilon = delta[wrong], epsilon[wrong]
            pull, push, each = 1.0 - ratio, 1.0 / ratio - 1.0, self.counts[block][wrong]
            value = float(np.sum(each * x[wrong] * pull**2))
            pull, push = each * pull, each * push
            A = (pull[:, None] * delta).T @ delta - (push[:, None] * epsilon).T @ epsilon
            return self.weight * value, self.weight * A

        return sum_rows(sums, *self._size, most=_MOST_ROWS)

    def part(self, n: int) -> ComparedPairs:
        """One of n comparisons for all."""
        some = copy(self)
        some.near, some.far, some.counts = (a[::n] for a in (self.near, self.far, self.counts))
        some.weight = n * self.weight
        some._size = len(some.near), self._size[1]
        return some

    def worth_newton(self) -> bool:
        """Whether all differences may be kept."""
        N, d = len(self.near), self.Y.shape[1]
        return worth_keeping(8.0 * KEPT * N * d, share=0.5)

    def flops_of_step(self) -> float:
        """About as many operations as a step takes."""
        N, d = len(self.near), self.Y.shape[1]
        return N * (16.0 * d**2 + equations_of_step(N, d) ** 2)

    def seen_by(self, L: np.ndarray) -> _Seen:
        """Everything as the best multiple of the metric LᵀL sees it."""
        return seen(self, L, *(differences(self.Y, rows) @ L.T for rows in (self.near, self.far)))


def equations_of_step(n_tuples: int, d: int) -> int:
    """The most equations that a Newton step may have."""
    return min(n_tuples, d * (d + 1) // 2, _MOST_SOLVED)


def newton(
    problem: ComparedPairs, L: np.ndarray, report: Iterations, max_iter: int, tol: float
) -> Certified:
    """Newton's steps until the certificate is good enough: some five to ten.

    Many comparisons say about the same as some of them: so with these it begins.
    Where a step would have too many equations, or rounding leaves none, L-BFGS goes on.
    """
    if not problem.worth_newton():
        return descend(problem, L, report, max_iter, tol)
    # Where numbers are out of range no step is found, and L-BFGS goes on.
    with calm_if_small(problem.flops_of_step()), np.errstate(over="ignore", invalid="ignore"):
        here = problem.seen_by(L)
        if here.gap > _FAR and len(problem.near) >= _MANY:
            part = problem.part(_PART)
            near = _steps(part, part.seen_by(L), None, _MOST_IN_PART, _PART_TOL)
            here = problem.seen_by(near.L)
        here = _steps(problem, here, report, max_iter, tol)
    if here.gap <= tol and not report.loss_curve:
        report(here.L, here.value)  # it began at the optimum
    if here.gap > tol and not report.stopped:
        return descend(problem, here.L, report, max_iter, tol)
    return here.L, here.value, here.gap


def _steps(
    problem: ComparedPairs, here: _Seen, report: Iterations | None, most: int, tol: float
) -> _Seen:
    """Where the steps end: at the certificate, after the most, or where none is found."""
    for _ in range(most):
        after = here.moved(problem) if here.gap > tol else None
        if after is None:
            break
        here = after
        if report is not None and report(here.L, here.value):
            break
    return here


class _Seen(NamedTuple):
    """Comparisons in coordinates in which the metric is the identity, and what is known there.

    Nearby metrics are ``I + S`` there. At S = 0 the divergence has the gradient ``LLᵀ - I`` and the
    curvature ``|S|²``. A comparison in wrong order adds to the latter ``h ⟨S, δδᵀ - c εεᵀ⟩²``, with
    c = x / y and h = γ' √(y/x) / 2x, γ' its price: its cost is homogeneous, so that is all.
    """

    L: np.ndarray
    D: np.ndarray  # δ and ε of all comparisons
    E: np.ndarray
    x: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    gradient: np.ndarray
    value: float
    gap: float

    def moved(self, problem: ComparedPairs) -> _Seen | None:
        """One step further; None where no step is found."""
        weights = problem.weight * problem.counts
        S = self._step(weights)
        if S is None:
            return None
        values, V = np.linalg.eigh(S)
        D, E = self.D @ V, self.E @ V
        growth = np.square(D) @ values, np.square(E) @ values
        slopes = float(np.sum(S * self.gradient)), float(np.sum(S * (self.L @ self.L.T)))
        t = self._length(weights, values, *slopes, *growth)
        if t is None:
            return None
        roots = np.sqrt(1.0 + t * values)
        D *= roots
        E *= roots
        after = seen(problem, roots[:, None] * (V.T @ self.L), D, E)
        return after if after.value < self.value else None

    def _step(self, weights: np.ndarray) -> np.ndarray | None:
        """The S at which the gradient of the quadratic model is zero."""
        d, m = len(self.L), len(self.wrong)
        entries = d * (d + 1) // 2
        if min(m, entries) > _MOST_SOLVED:
            return None
        if not m:
            return -self.gradient
        D, E, x, y = (part[self.wrong] for part in (self.D, self.E, self.x, self.y))
        # Pairs so near that one over their distance overflows bend nothing.
        c, h = x / y, 0.5 * weights[self.wrong] * np.sqrt(y / x) / np.maximum(x, _NEAREST)
        solve = _by_entries if entries <= m else _by_comparisons
        S = solve(self.gradient, D, E, c, h)
        return S if np.all(np.isfinite(S)) else None

    def _length(
        self,
        weights: np.ndarray,
        values: np.ndarray,
        slope: float,
        of_trace: float,
        u: np.ndarray,
        v: np.ndarray,
    ) -> float | None:
        """How far to go along S: until the slope is a fifth of what it is here.

        u and v is what squared distances grow by, the values are those of S.
        """
        if not slope < 0.0:
            return None
        low, high = 0.0, np.inf if values[0] >= 0 else -1.0 / values[0]
        t = min(1.0, 0.95 * high)
        for _ in range(_MOST_TRIED):
            x, y = self.x + t * u, self.y + t * v
            wrong = np.flatnonzero(x > y)
            x, y, p, q, each = (part[wrong] for part in (x, y, u, v, weights))
            ratio, shares = np.sqrt(y / x), values / (1.0 + t * values)
            there = of_trace - float(np.sum(shares))
            there += float(each @ (p * (1.0 - ratio) + q * (1.0 - 1.0 / ratio)))
            if abs(there) <= -0.2 * slope:
                return t
            low, high = (t, high) if there < 0 else (low, t)
            curve = float(shares @ shares)
            curve += 0.5 * float((each * ratio / x) @ (p - q / ratio**2) ** 2)
            t -= there / curve
            if not low < t < high:
                t = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
        return None


def seen(problem: ComparedPairs, L: np.ndarray, D: np.ndarray, E: np.ndarray) -> _Seen:
    """Value, gradient and certificate of the best multiple of a metric; D and E change in place.

    Trace and residuals together grow as the metric does, so at the best multiple they are d.
    """
    x, y = np.einsum("ij,ij->i", D, D), np.einsum("ij,ij->i", E, E)
    y += problem.floor
    wrong = np.flatnonzero(x > y)
    ratio = np.sqrt(y[wrong] / x[wrong])
    each, near, far = problem.weight * problem.counts[wrong], D[wrong], E[wrong]
    pull, push = each * (1.0 - ratio), each * (1.0 / ratio - 1.0)
    cost = float((x[wrong] * (1.0 - ratio)) @ pull)
    size = len(L) / (float(np.sum(L * L)) + cost)
    inside = (pull * near.T) @ near - (push * far.T) @ far
    inside += L @ L.T
    inside *= size
    for part in (D, E):
        part *= np.sqrt(size)
    L = np.sqrt(size) * L
    value, gap = problem.certified(L, size * cost, inside)
    inside[np.diag_indices(len(L))] -= 1.0
    return _Seen(L, D, E, size * x, size * y, wrong, inside, value, gap)


def _by_entries(
    gradient: np.ndarray, D: np.ndarray, E: np.ndarray, c: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """The step by an equation for each entry of S, where these are fewer than comparisons."""
    d = len(gradient)
    i, j = np.triu_indices(d)
    twice = np.where(i == j, 1.0, np.sqrt(2.0))  # off the diagonal an entry counts twice
    ends = np.cumsum(np.arange(d, 0, -1))
    root = np.sqrt(h)

    def products(rows: slice) -> np.ndarray:
        near, far = D[rows].T.copy(), E[rows].T.copy()
        pulled, pushed = root[rows] * near, (root * c)[rows] * far
        G = np.empty((len(i), near.shape[1]))
        for k, end in enumerate(ends):  # row k of the upper triangle
            some = G[end - d + k : end]
            np.multiply(pulled[k], near[k:], out=some)
            some -= pushed[k] * far[k:]
        G *= twice[:, None]
        return G @ G.T

    H = sum_rows(products, len(D), 3 * 8 * len(i), most=_AT_ONCE)
    H[np.diag_indices(len(i))] += 1.0
    S = np.empty((d, d))
    S[i, j] = S[j, i] = _solved(H, -twice * gradient[i, j]) / twice
    return S


def _by_comparisons(
    gradient: np.ndarray, D: np.ndarray, E: np.ndarray, c: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """The step by an equation for each comparison (Woodbury), where these are fewer."""
    E = np.sqrt(c)[:, None] * E
    K = np.square(D @ D.T)
    cross = np.square(D @ E.T)
    K -= cross
    K -= cross.T
    K += np.square(E @ E.T)
    K[np.diag_indices(len(h))] += 1.0 / h
    ahead = np.sum((D @ gradient) * D, axis=1) - np.sum((E @ gradient) * E, axis=1)
    z = _solved(K, ahead)
    S = (z * D.T) @ D - (z * E.T) @ E - gradient
    return 0.5 * (S + S.T)


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of positive definite equations; NaN where rounding has made them indefinite.

    LAPACK itself: SciPy's checks would take longer than the solution of ten equations.
    """
    _, x, fault = linalg.lapack.dposv(A, b, overwrite_a=True)
    return np.full_like(x, np.nan) if fault else x
