"""Sparse compositional metric learning."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute import require_memory
from kernelmetric.compute.watch import time_left
from kernelmetric.graphs import IndexTuples, Triplets
from kernelmetric.inputs._parameters import COUNT_OR_NONE, LARGEST, Numbers
from kernelmetric.learners import _tuple_learner as learned
from kernelmetric.learners._checks import as_matrix
from kernelmetric.learners._factors import factor
from kernelmetric.solvers import nonnegative_qp, right_singular

_NEAREST = 3, 5  # of a point's class, and of others: what its nearest neighbours are decided by
_RIDGE = 1e-3  # of the mean eigenvalue of the near pairs' scatter
_SMOOTH = 0.3, 0.25, 1e-5  # width of the rounded corner of the hinge: first, factor, last
_LOOK_EVERY = 20  # iterations between two certificates
_PER_COORDINATE, _MOST_BASES = 20, 300


@dataclass(eq=False, repr=False, kw_only=True)
class SCML(learned.ComparisonLearner):
    r"""Sparse compositional metric learning: a few directions of many, with weights.

    The metric is :math:`M = \sum_k w_k b_k b_k^\top` with :math:`w \ge 0`. Directions b part far
    from near pairs in some place. Comparisons should hold with a margin of one [1]_:

    .. math:: \min_{w \ge 0}\; \frac{1}{N} \sum \bigl[1 + \delta^\top M \delta
              - \epsilon^\top M \epsilon\bigr]_+ + \beta \sum_k w_k

    with δ and ε the differences of near and far pairs, whose mean square along every b is one.
    O(N k) time an iteration and memory, for N comparisons and k directions.

    Parameters
    ----------
    beta : float, default=1e-2
        Price β of weights: the larger, the fewer directions.
    n_basis : int, default=None
        Number of directions to choose from; None is 20 for each coordinate, at most 300.
    basis : array of shape (n_basis, n_features), default=None
        Directions to choose from; None finds those that part far from near pairs around points.
    max_tuples : int, default=10000
        From labels, the maximum number of triplets; random near ones, if there are more.
    tol : float, default=1e-2
        Duality gap to reach; the objective of the zero metric is one.
    max_iter : int, default=2000
        Maximum number of L-BFGS iterations.
    warm_start : bool, default=False
        Whether a fit begins near the metric of the last one.
    random_state : int, RandomState or None, default=0
        For directions, and for random triplets.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (rank, n_features)
        The map L with LᵀL = M.
    basis_ : ndarray of shape (n_active, n_features)
        The directions b that have weights.
    weights_ : ndarray of shape (n_active,)
        Their weights.
    tuples_ : Triplets or Quadruplets
        The comparisons that were used.
    loss_ : float
        The objective.
    duality_gap_ : float
        The gap reached, a bound on the distance to the optimum.
    loss_curve_ : list of float
        The rounded objective after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached; a ConvergenceWarning says so too.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LSML : From comparisons too, with a dense matrix.
    Triplets : What it learns from.

    References
    ----------
    .. [1] Shi, Bellet and Sha, "Sparse compositional metric learning", AAAI 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import SCML
    >>> X, y = load_iris(return_X_y=True)
    >>> SCML().fit(X, y).duality_gap_ < 1e-2
    True
    """

    beta: float = 1e-2
    n_basis: int | None = None
    basis: Any = None
    max_tuples: int = 10_000
    tol: float = 1e-2
    max_iter: int = 2000
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    _advice = "raise beta"
    _passes, _others = 1.0, None  # in search of neighbours
    _allowed: ClassVar = {
        "beta": Numbers(Real, low=1 / LARGEST, high=LARGEST),
        "n_basis": COUNT_OR_NONE,
    }

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        r = min(n_samples, n_features)
        k, N = self._n_basis(r), min(self.max_tuples, 15 * n_samples)
        return 8 * (12 * 15 * n_samples + 3 * N * k + n_samples * (k + 4 * n_features) + 8 * r * r)

    def _n_basis(self, r: int) -> int:
        return min(_PER_COORDINATE * r, _MOST_BASES) if self.n_basis is None else int(self.n_basis)

    def _triplets(self, Z: np.ndarray, codes: np.ndarray, rng: Any) -> Triplets:
        return Triplets.from_neighbors(Z, codes, *_NEAREST)

    def _learn(self, points: learned.Spanned, counts: np.ndarray) -> None:
        B = self._directions(points, counts)
        D, B = compared_squares(points.Z, self.tuples_, B, counts)
        problem = WeightedHinge(D, float(self.beta), counts)

        def leave(w: np.ndarray) -> np.ndarray:
            kept = w > 0
            some = B[kept] * np.sqrt(w[kept])[:, None]
            return points.leave(factor(some.T @ some))

        last = self._last_matrix(points)
        start = np.zeros(len(B)) if last is None else nearest_weights(B, last)
        with self._following(start, leave, points) as report:
            found = problem.minimise(start, self.tol, self.max_iter, report)
        w, self.loss_, self.duality_gap_, self.n_iter_ = found
        self.converged_ = self.duality_gap_ <= self.tol or (report.stopped and time_left() > 0)
        self._warn_of_gap()
        if not w.any():
            warn(
                f"SCML ended in the zero metric: beta={self.beta} is above what any direction "
                "gains. Try a smaller one."
            )
        self.basis_ = points.leave(B[w > 0])
        self.weights_ = w[w > 0]
        self._store(leave(w), points.X)

    def _directions(self, points: learned.Spanned, counts: np.ndarray) -> np.ndarray:
        """Rows to choose from, of length one."""
        if self.basis is None:
            k = self._n_basis(points.Z.shape[1])
            rng = check_random_state(self.random_state)
            return local_directions(points.Z, self.tuples_, k, rng, counts)
        B, d = as_matrix(self.basis, "basis"), points.n_features
        good = B.ndim == 2 and B.shape[1] == d and len(B) > 0
        if not good or not np.all(np.isfinite(B)) or not np.all(np.any(B != 0, axis=1)):
            raise ValueError(
                f"Got a basis of shape {B.shape}, but expected directions that are not zero, of "
                f"shape (n_basis, {d})."
            )
        B = points.enter(B / np.max(np.abs(B), axis=1, keepdims=True))
        return B / np.maximum(linalg.norm(B, axis=1, keepdims=True), 1e-300)


def local_directions(
    Z: np.ndarray, tuples: IndexTuples, n_basis: int, rng: np.random.RandomState, counts: np.ndarray
) -> np.ndarray:
    """Unit directions (n_basis, r) that part far from near pairs: everywhere, and around points."""
    r, N = Z.shape[1], len(tuples)
    near, far = tuples.near, tuples.far
    anchors = Z[near[:, 0]]

    def parting(chosen: Any, ridge: float) -> np.ndarray:
        each = np.sqrt(counts[chosen])[:, None]
        delta, epsilon = (each * learned.differences(Z, rows[chosen]) for rows in (near, far))
        return _parting(delta, epsilon, ridge)

    # Of all comparisons, which tell more than a few; and principal axes: with features of very
    # different scale nothing else sees the small ones.
    found = [parting(slice(None), 1e-6 * _RIDGE)]
    found.append(right_singular(Z)[1])
    total, each, most = sum(map(len, found)), max(1, r // 2), max(2 * r, 10)
    while total < n_basis:
        if N <= most:
            chosen = rng.randint(N, size=N)
        else:  # the comparisons nearest to some point, ever more of them
            away = np.sum((anchors - anchors[rng.randint(N)]) ** 2, axis=1)
            chosen = np.argpartition(away, most)[:most]
            most = 2 * most if 2 * most < N else max(2 * r, 10)
        found.append(parting(chosen, _RIDGE)[:each])
        total += each
    return np.concatenate(found)[:n_basis]


def _parting(delta: np.ndarray, epsilon: np.ndarray, ridge: float) -> np.ndarray:
    """Generalized eigenvectors of the scatters of far and near pairs, as rows of length one."""
    r = delta.shape[1]
    S, D = delta.T @ delta, epsilon.T @ epsilon
    level = float(np.trace(S) + 1e-3 * np.trace(D)) / r
    S[np.diag_indices_from(S)] += ridge * level if level > 0 else 1.0
    V = linalg.eigh(D, S)[1][:, ::-1].T
    return V / linalg.norm(V, axis=1, keepdims=True)


def compared_squares(
    Z: np.ndarray, tuples: IndexTuples, B: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squares of near minus far pairs along directions, and these, scaled to mean square one."""
    require_memory(
        3 * 8.0 * len(tuples) * len(B),
        f"SCML with {len(tuples)} comparisons and {len(B)} directions",
        "take a smaller n_basis, or fewer comparisons.",
    )
    Y = Z @ B.T
    D, far = learned.differences(Y, tuples.near), learned.differences(Y, tuples.far)
    D *= D
    far *= far
    sizes = 0.5 * (counts @ D + counts @ far) / len(counts)
    learned.refuse_coinciding(float(np.max(sizes)), Z, "tuples")
    sizes = np.where(sizes > 1e-28 * np.max(sizes), sizes, np.max(sizes))
    D -= far
    D /= sizes
    return D, B / np.sqrt(sizes)[:, None]


def nearest_weights(B: np.ndarray, M: np.ndarray) -> np.ndarray:
    """The weights w >= 0 with which ``Σ w b bᵀ`` is nearest to a matrix."""
    return nonnegative_qp((B @ B.T) ** 2, np.einsum("ki,ij,kj->k", B, M, B, optimize=True))[0]


class WeightedHinge:
    """The mean hinge of ``1 + D w`` and the price of weights ``w >= 0``.

    The dual is ``max Σ α`` with ``0 <= α <= c/N`` and ``-Dᵀα <= β``, c being ``counts``.
    """

    def __init__(self, D: np.ndarray, beta: float, counts: np.ndarray):
        self.D, self.beta, self.width, self.counts = D, beta, 0.0, counts

    def objective(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient of the problem with rounded corners."""
        excess = 1.0 + self.D @ w
        alpha = np.clip(excess / self.width, 0.0, 1.0)
        value = float(np.mean(self.counts * alpha * (excess - 0.5 * self.width * alpha)))
        gradient = self.D.T @ (self.counts * alpha / len(excess)) + self.beta
        return value + self.beta * float(np.sum(w)), gradient

    def bounds(self, w: np.ndarray) -> tuple[float, float]:
        """Value of the problem itself, and a value of its dual: the minimum lies between them."""
        hinge = self.counts * np.maximum(1.0 + self.D @ w, 0.0)
        return float(np.mean(hinge)) + self.beta * float(np.sum(w)), self._dual(w, self.width)

    def _dual(self, w: np.ndarray, width: float) -> float:
        """A value of the dual: at multipliers that corners of this width give."""
        alpha = self.counts * np.clip((1.0 + self.D @ w) / width, 0.0, 1.0) / len(self.D)
        steepest = float(np.max(-(self.D.T @ alpha)))
        share = min(1.0, self.beta / steepest) if steepest > 0 else 1.0
        return share * float(np.sum(alpha))

    def minimise(
        self, w: np.ndarray, tol: float, max_iter: int, report: Callable[[np.ndarray, float], bool]
    ) -> tuple[np.ndarray, float, float, int]:
        """Weights, the objective there, a bound on its distance from the minimum, iterations."""
        first, factor_, last = _SMOOTH
        n_iter, stopped = 0, False
        best, least, highest = np.zeros_like(w), 1.0, 0.0  # of the zero metric, no multipliers

        def look(w: np.ndarray) -> bool:
            """Whether what is known of the minimum is enough."""
            nonlocal best, least, highest
            value, dual = self.bounds(w)
            highest = max(highest, dual)
            if value < least:
                best, least = w.copy(), value
            return least - highest <= tol

        def watch(intermediate_result: Any) -> None:
            nonlocal n_iter, stopped
            n_iter += 1
            stopped = report(intermediate_result.x, float(intermediate_result.fun))
            if stopped or (n_iter % _LOOK_EVERY == 0 and look(intermediate_result.x)):
                raise StopIteration

        if w.any():  # perhaps these weights are good enough, which a narrow corner would show
            highest = max(self._dual(w, first * factor_**k) for k in range(8))
        self.width = first
        if w.any() and look(w):
            max_iter = 0
        while n_iter < max_iter and not stopped:
            found = minimize(
                self.objective,
                w,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * len(w),
                callback=watch,
                options={
                    "maxiter": max_iter - n_iter,
                    "maxfun": 10 * max_iter,
                    "maxcor": 20,
                    "ftol": 1e-13,
                    "gtol": 0.1 * min(tol, 1.0) * self.beta,
                },
            )
            w = found.x
            if look(w) or self.width <= last:
                break
            self.width *= factor_
        return best, least, max(least - highest, 0.0), max(n_iter, 1)
