"""Least squared-residual metric learning."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from kernelmetric.compute import fits_budget, small_steps, sum_rows, within_budget
from kernelmetric.graphs import IndexTuples, Triplets, count_triplets, rows_by_place
from kernelmetric.inputs._parameters import LARGEST, Numbers
from kernelmetric.learners._log_det import Certified, LogDetDivergence, LogDetLearner, descend
from kernelmetric.learners._progress import Iterations
from kernelmetric.learners._tuple_learner import (
    ComparisonLearner,
    Spanned,
    differences,
    random_triplets,
    refuse_coinciding,
)

_MOST_ROWS = 16384  # comparisons of a block
_NEAREST = 1e-100  # squared distance that is told from zero
MOST_SOLVED = 1000  # equations of a Newton step: more would take longer than L-BFGS
KEPT = 12  # arrays as large as the differences of near pairs that the steps keep
_MOST_TRIED = 40  # lengths of a step
_FAR = 0.3  # gap beyond which a start is drawn in first


class ComparedPairs(LogDetDivergence):
    """Divergence from the identity, and ``(√x - √y)²`` of near pairs beyond far ones, x > y."""

    def __init__(
        self, Y: np.ndarray, near: np.ndarray, far: np.ndarray, gamma: float, counts: np.ndarray
    ):
        self.Y, self.near, self.far, self.counts = Y, near, far, counts
        self._size = len(near), 6 * 8 * Y.shape[1]
        total = sum_rows(self._plain, *self._size, most=_MOST_ROWS)
        refuse_coinciding(total, Y, "tuples")
        self.weight = gamma / len(near) / (total / (2 * len(near)))
        self.floor = 1e-20 * total / len(near)  # under roots of far pairs of points that coincide

    def _differences(self, block: slice) -> np.ndarray:
        """Those of near pairs, and below them those of far pairs."""
        return differences(self.Y, np.concatenate([self.near[block], self.far[block]]))

    def _plain(self, block: slice) -> float:
        F = self._differences(block)
        return float(np.tile(self.counts[block], 2) @ np.einsum("ij,ij->i", F, F))

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """What residuals cost, and their derivative with respect to LᵀL."""

        def sums(block: slice) -> tuple[float, np.ndarray]:
            F = self._differences(block)
            wrong = self.residuals(np.sum((F @ L.T) ** 2, axis=1), self.counts[block])
            ends = F.take(np.concatenate([wrong.rows, wrong.rows + len(F) // 2]), axis=0)
            A = (np.concatenate([wrong.pull, wrong.push]) * ends.T) @ ends
            return wrong.cost, A

        return sum_rows(sums, *self._size, most=_MOST_ROWS)

    def seen_by(self, L: np.ndarray) -> _Seen:
        """Everything as the best multiple of the metric LᵀL sees it."""
        F = self._differences(slice(None)) @ L.T
        wrong = self.residuals(np.einsum("ij,ij->i", F, F), self.counts)
        return seen(self, L, F, np.ones(len(L)), wrong)

    def residuals(self, squares: np.ndarray, counts: np.ndarray) -> Residuals:
        """What is in wrong order, by the squared distances of near and of far pairs."""
        x, y = squares[: len(counts)], squares[len(counts) :] + self.floor
        rows = np.flatnonzero(x > y)
        x, price = x[rows], self.weight * counts[rows]
        ratio = np.sqrt(y[rows] / x)
        return Residuals(rows, x, ratio, price, price * (1.0 - ratio), price * (1.0 - 1.0 / ratio))


class Residuals(NamedTuple):
    """Comparisons in wrong order."""

    rows: np.ndarray
    x: np.ndarray
    ratio: np.ndarray  # √(y/x)
    price: np.ndarray
    pull: np.ndarray  # the derivative of their costs with respect to x
    push: np.ndarray  # and to y

    @property
    def cost(self) -> float:
        """What they cost together: by homogeneity, what their derivatives say."""
        return float(self.pull @ (self.x * (1.0 - self.ratio)))

    def sum(self, growth: np.ndarray) -> float:
        """What costs grow by where all squared distances, near and far, grow so."""
        rows, N = self.rows, len(growth) // 2
        return float(self.pull @ growth[rows] + self.push @ growth[N:][rows])


def newton(
    problem: ComparedPairs, L: np.ndarray, report: Iterations, max_iter: int, tol: float
) -> Certified:
    """Newton's steps until the certificate is good enough; L-BFGS where they are not found."""
    N, d = len(problem.near), len(L)
    if not fits_budget(8.0 * KEPT * N * d, share=0.5):  # all differences
        return descend(problem, L, report, max_iter, tol)
    flops = N * (16.0 * d**2 + min(N, MOST_SOLVED) ** 2)  # of a step
    # Where numbers are out of range no step is found, and L-BFGS goes on.
    with small_steps(flops), np.errstate(all="ignore"):
        here = problem.seen_by(L)
        if here.gap > _FAR:
            here = here.drawn_in(problem)
        for _ in range(max_iter):
            after = here.moved(problem) if here.gap > tol else None
            if after is None:
                break
            here = after
            if report(here.L, here.value):
                break
    if here.gap <= tol and not report.loss_curve:
        report(here.L, here.value)  # it began at the optimum
    if here.gap > tol and not report.stopped:
        return descend(problem, here.L, report, max_iter, tol)
    return here.L, here.value, here.gap


class _Seen(NamedTuple):
    """Comparisons in coordinates in which the metric is the identity, and what is known there."""

    L: np.ndarray
    F: np.ndarray  # δ of all comparisons, and below them ε, but for a scale of each coordinate
    scale: np.ndarray
    wrong: Residuals
    ends: np.ndarray  # the same of those in wrong order
    gradient: np.ndarray
    value: float
    gap: float

    def drawn_in(self, problem: ComparedPairs) -> _Seen:
        """Where the optimum was if pulls were constant and nothing pushed, or here."""
        near = self.ends[: len(self.wrong.rows)]
        B = (self.wrong.pull * near.T) @ near + self.L @ self.L.T
        R, fault = linalg.lapack.dpotrf(B, lower=True)
        if fault:
            return self
        after = problem.seen_by(linalg.lapack.dtrtri(R, lower=True)[0] @ self.L)
        return after if after.value < self.value else self

    def moved(self, problem: ComparedPairs) -> _Seen | None:
        """One step further along ``exp tS``, a metric for all t; None where none is found."""
        S = self._step()
        slope = np.nan if S is None else float(np.vdot(S, self.gradient))
        if S is None or not slope < 0.0:
            return None
        values, V = np.linalg.eigh(S)
        F, L = self.F @ (self.scale[:, None] * V), V.T @ self.L
        squares, lengths = (F * F).T, np.einsum("ij,ij->i", L, L)
        low, high, t, before = 0.0, np.inf, 1.0, (0.0, slope)
        for _ in range(_MOST_TRIED):
            grown = np.exp(t * values)
            x, growth = np.stack([grown, values * grown]) @ squares
            wrong = problem.residuals(x, problem.counts)
            there = float(lengths @ (values * grown)) - float(np.sum(values)) + wrong.sum(growth)
            if abs(there) <= -0.2 * slope:  # a fifth of the slope is little enough
                after = seen(problem, L, F, grown, wrong)
                return after if after.value < self.value else None
            low, high = (t, high) if there < 0 else (low, t)
            rise = there - before[1]  # none: then the middle is tried
            ahead = t - there * (t - before[0]) / rise if rise else np.nan
            before = t, there
            t = ahead
            if not low < t < high:
                t = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
        return None

    def _step(self) -> np.ndarray | None:
        """The S at which the gradient of the quadratic model is zero."""
        m = len(self.wrong.rows)
        if m > MOST_SOLVED:
            return None
        if not m:
            return -self.gradient
        # The model is ⟨gradient, S⟩ + |S|²/2 + Σ h ⟨S, (uvᵀ + vuᵀ)/2⟩²/2 with u, v = δ ∓ √(x/y) ε.
        # Pairs so near that one over their distance overflows bend nothing.
        h = 0.5 * self.wrong.price * self.wrong.ratio / np.maximum(self.wrong.x, _NEAREST)
        D, E = self.ends[:m], self.ends[m:] / self.wrong.ratio[:, None]
        S = _step_of(self.gradient, D - E, D + E, h)
        return S if np.all(np.isfinite(S)) else None


def seen(
    problem: ComparedPairs, L: np.ndarray, F: np.ndarray, grown: np.ndarray, wrong: Residuals
) -> _Seen:
    """Value, gradient and certificate of the best multiple of LᵀL with grown coordinates."""
    # Trace and residuals together grow as the metric does: at the best multiple they are d.
    size = len(L) / (float(grown @ np.einsum("ij,ij->i", L, L)) + wrong.cost)
    scale = np.sqrt(size * grown)
    L = scale[:, None] * L
    ends = scale * F.take(np.concatenate([wrong.rows, wrong.rows + len(problem.near)]), axis=0)
    inside = (np.concatenate([wrong.pull, wrong.push]) * ends.T) @ ends
    inside += L @ L.T
    value, gap = problem.certified(L, size * wrong.cost, inside)
    inside.reshape(-1)[:: len(L) + 1] -= 1.0
    return _Seen(L, F, scale, wrong._replace(x=size * wrong.x), ends, inside, value, gap)


def _step_of(gradient: np.ndarray, U: np.ndarray, V: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The step by an equation for each comparison: the formula of Woodbury."""
    K, cross = U @ U.T, U @ V.T
    K *= V @ V.T
    K += cross * cross.T
    K *= 0.5
    K.reshape(-1)[:: len(h) + 1] += 1.0 / h
    z = _solved(K, np.einsum("ij,ij->i", U @ gradient, V))
    S = (z * U.T) @ V
    return 0.5 * (S + S.T) - gradient


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of positive definite equations; NaN where rounding has made them indefinite."""
    # LAPACK itself: SciPy's checks would take longer. Transposed, the matrix is not copied.
    _, x, fault = linalg.lapack.dposv(A.T, b, overwrite_a=True)
    return np.full_like(x, np.nan) if fault else x


@dataclass(eq=False, repr=False, kw_only=True)
class LSML(LogDetLearner, ComparisonLearner):
    r"""Least squared-residual metric learning: near the prior, with few distances in wrong order.

    A comparison says that the pair with difference δ is nearer than the one with ε. Where it is
    not, the excess of its distance is squared [1]_:

    .. math:: \min_{M \succ 0}\; D(M, M_0) + \frac{\gamma}{N} \sum
              \Bigl[\sqrt{\delta^\top M \delta} - \sqrt{\epsilon^\top M \epsilon}\,\Bigr]_+^2

    where :math:`D(A, B) = \operatorname{tr} A B^{-1} - \log\det A B^{-1} - r`, and squared
    distances are in units of their mean in the prior metric. O(N d² + d³) time an iteration with N
    comparisons; a block of them in memory.

    Parameters
    ----------
    gamma : float, default=1e4
        Price γ of distances in wrong order. A small price stays near the prior.
    prior : array of shape (n_features, n_features), default=None
        Matrix M₀ of the prior metric, positive definite; None is the identity.
    max_tuples : int, default=1000
        From labels, the maximum number of triplets: all of them, or random ones.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=1000
        Maximum number of iterations.
    warm_start : bool, default=False
        Whether a fit begins at the metric of the last one.
    random_state : int, RandomState or None, default=0
        For random triplets.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (rank, n_features)
        The map L with LᵀL = M.
    tuples_ : Triplets or Quadruplets
        The comparisons that were used.
    loss_ : float
        The objective.
    duality_gap_ : float
        The relative gap reached, a bound on the distance to the optimum.
    loss_curve_ : list of float
        The objective after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached; a ConvergenceWarning says so too.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    SCML : From comparisons too, of few directions that count.
    Quadruplets : What it learns from.

    References
    ----------
    .. [1] Liu, Guo, Shao, Wu and Yu, "Metric learning from relative comparisons by minimizing
       squared residual", ICDM 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import LSML
    >>> X = np.random.RandomState(0).randn(30, 2)
    >>> LSML().fit(X, triplets=[[0, 1, 20], [2, 5, 22], [21, 17, 3]]).duality_gap_ < 1e-3
    True
    """

    gamma: float = 1e4
    prior: Any = None
    max_tuples: int = 1000
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    _allowed: ClassVar = {"gamma": Numbers(Real, low=0, high=LARGEST, above=True)}

    def _learn(self, points: Spanned, counts: np.ndarray) -> None:
        root = self._prior_root(points)
        Y = points.Z if root is None else points.Z @ root
        pairs = self.tuples_.near, self.tuples_.far
        problem = ComparedPairs(Y, *pairs, float(self.gamma), counts)
        self._minimise(problem, newton, points, root)

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d, N = n_features, self.max_tuples
        steps = within_budget(8.0 * KEPT * N * d) + 24.0 * min(N, MOST_SOLVED) ** 2
        return 8 * (20 * N + 4 * n_samples * d + 25 * d * d) + steps

    def _tuples_from_labels(self, Z: np.ndarray, codes: np.ndarray) -> IndexTuples:
        if count_triplets(codes) <= self.max_tuples:
            return Triplets.from_labels(codes)
        rng, each = check_random_state(self.random_state), max(1, self.max_tuples // len(codes))
        rows = rows_by_place(Z)  # so that their order does not decide which are drawn
        found = Triplets.from_labels(codes[rows], per_point=each, random_state=rng)
        found = random_triplets(found, self.max_tuples, rng)
        return Triplets(rows[found.rows], len(codes))
