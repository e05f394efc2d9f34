"""Information-theoretic metric learning."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from kernelmetric.compute import map_rows, sum_rows
from kernelmetric.compute.reductions import sampled_squared_distances, weighted_quantiles
from kernelmetric.inputs import Weights
from kernelmetric.inputs._parameters import LARGEST, Numbers
from kernelmetric.learners import _tuple_learner as tuples
from kernelmetric.learners._log_det import LogDetDivergence, LogDetLearner, descend
from kernelmetric.learners._power import POWER, power_for

_MOST_ROWS = 16384  # pairs of a block


@dataclass(eq=False, repr=False, kw_only=True)
class ITML(LogDetLearner, tuples.PairLearner):
    r"""Information-theoretic metric learning: the metric nearest to a prior that respects pairs.

    Similar pairs should be within a squared distance u, dissimilar ones beyond l. A pair p that is
    not gets a bound ξ_p of its own, at a price [1]_:

    .. math:: \min_{M \succeq 0,\, \xi}\; D(M, M_0) + \gamma \sum_p D(\xi_p, \xi^0_p)
              \quad\text{s.t.}\quad
              \delta_p^\top M \delta_p \le \xi_p \;(S), \quad \delta_p^\top M \delta_p \ge \xi_p
              \;(D)

    where δ_p is the difference of the two points, S and D are the similar and the dissimilar pairs,
    and ξ⁰ is u or l. The divergence
    :math:`D(A, B) = \operatorname{tr} A B^{-1} - \log\det A B^{-1} - r` is zero where A = B.
    O(N d² + d³) time an iteration with N pairs; a block of pairs in memory.

    Parameters
    ----------
    gamma : float, default=1.0
        Price γ of slacks. A small price stays near the prior, a large one near the bounds.
    prior : array of shape (n_features, n_features), default=None
        Matrix M₀ of the prior metric, positive definite; None is the identity.
    bounds : tuple of two floats, default=None
        u and l, squared distances.
    percentiles : tuple of two floats, default=(5, 95)
        Without ``bounds``, u and l are these percentiles of all squared distances in the prior.
    power : float or 'auto', default='auto'
        Power of the learned metric that is taken, in coordinates where the prior is the identity: 1
        is the metric of [1]_, 0 the prior. 'auto' is 1 for labels. For pairs it is the power from 0
        to 1 under which points of similar pairs left out are nearest to their partners: five more
        fits. Fewer than ten similar pairs cannot tell, and take 1.
    max_pairs : int, default=2000
        From labels, the maximum number of pairs: all n (n - 1) / 2, or random ones.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=1000
        Maximum number of L-BFGS iterations on a square factor of M.
    warm_start : bool, default=False
        Whether a fit begins at the metric of the last one.
    random_state : int, RandomState or None, default=0
        For random pairs.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (rank, n_features)
        The map L with LᵀL = M.
    pairs_ : Pairs
        The pairs that were used, similar ones first in what follows.
    bounds_ : tuple of two floats
        u and l.
    power_ : float
        The power taken. What follows is of the metric itself.
    alpha_ : ndarray of shape (n_pairs,)
        Multipliers of the pairs; zero where a bound does not bind.
    slacks_ : ndarray of shape (n_pairs,)
        The bounds ξ that were reached.
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
    MMC : From pairs too, without a metric to stay near.
    SDML : From pairs too, with a sparse matrix.
    PairVerifier : A threshold, and probabilities of pairs.

    References
    ----------
    .. [1] Davis, Kulis, Jain, Sra and Dhillon, "Information-theoretic metric learning", ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import ITML
    >>> X, y = load_iris(return_X_y=True)
    >>> ITML().fit(X, y).duality_gap_ < 1e-3
    True
    """

    gamma: float = 1.0
    prior: Any = None
    bounds: Any = None
    percentiles: Any = (5, 95)
    power: Any = "auto"
    max_pairs: int = 2000
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    _needs_dissimilar = False  # the prior keeps similar pairs from collapsing
    _allowed: ClassVar = {"gamma": Numbers(Real, low=0, high=LARGEST, above=True), "power": POWER}

    def _learn(self, points: tuples.Spanned, counts: tuples.PairCounts) -> None:
        root = self._prior_root(points)
        Y = points.Z if root is None else points.Z @ root
        self.bounds_ = self._bounds_of(Y, counts.weights)
        # In these units bounds are near one; the metric is the same in all units.
        size = float(np.mean(self.bounds_))
        problem = LogDetProblem(
            Y / np.sqrt(size),
            self.pairs_.rows,
            np.where(self.pairs_.is_similar, 1.0, -1.0),
            np.where(self.pairs_.is_similar, *self.bounds_) / size,
            float(self.gamma) * counts.of(self.pairs_),
        )
        self.power_ = power_for(self, Y, counts, prior=None)
        L = self._minimise(problem, descend, points, root, self.power_)
        alpha, slacks = problem.multipliers(L)
        self.alpha_, self.slacks_ = alpha / size, slacks * size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, high in (("bounds", np.inf), ("percentiles", 100.0)):
            value = getattr(self, name)
            if not (value is None and name == "bounds") and not _is_ascending(value, high):
                raise ValueError(
                    f"Got {name}={value!r}, but expected two numbers in ascending order between "
                    f"0 and {high:g}: for similar pairs, and for dissimilar ones."
                )

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d, N = n_features, max(self.max_pairs, 2 * n_samples)
        N = min(N, n_samples * (n_samples - 1) // 2)
        # distances of sampled pairs for the bounds, or differences of a block of pairs
        pairs = max(tuples.SAMPLED_BYTES, 8 * 3 * min(N, 16384) * d)
        return pairs + 8 * (6 * N + 2 * n_samples * d + 25 * d * d)

    def _bounds_of(self, Y: np.ndarray, weights: Weights | None) -> tuple[float, float]:
        if self.bounds is None:
            squares, counts = sampled_squared_distances(Y, weights)
            if counts is None:
                u, l = np.percentile(squares, self.percentiles)  # noqa: E741 (the paper's name)
            else:
                u, l = weighted_quantiles(squares, counts, np.divide(self.percentiles, 100.0))  # noqa: E741
        else:
            u, l = self.bounds  # noqa: E741
        if not u > 0:
            raise ValueError(f"Got an upper bound of {u!r}, but expected a positive number.")
        return float(u), float(l)


def _is_ascending(value: Any, high: float) -> bool:
    """Whether these are two finite numbers, the smaller one first, from 0 up to ``high``."""
    try:
        first, second = (float(number) for number in value)
    except (TypeError, ValueError, OverflowError):
        return False
    return 0.0 <= first <= second <= high and second < np.inf


@dataclass
class LogDetProblem(LogDetDivergence):
    """Divergence from the identity, and slacks that pairs need: convex in M = LᵀL.

    With ``x_p = δᵀMδ / ξ⁰`` a pair costs ``γ (x_p - 1 - log x_p)`` where ``s (x_p - 1) > 0``, s = 1
    for similar and -1 for dissimilar pairs. Its multiplier is ``α_p = s γ (1 - 1 / x_p) / ξ⁰``.
    """

    Y: np.ndarray
    rows: np.ndarray
    signs: np.ndarray
    bounds: np.ndarray
    gamma: np.ndarray

    def __post_init__(self) -> None:
        self._size = len(self.rows), 4 * 8 * self.Y.shape[1]  # of all pairs, and of one in memory

    def multipliers(self, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The α of every pair, and its bound ξ with the slack."""
        x = self._ratios(self.squares(L), slice(None))
        return self.signs * self.gamma * (1.0 - 1.0 / x) / self.bounds, x * self.bounds

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """What slacks cost, and ``Σ s α δδᵀ``."""

        def sums(block: slice) -> tuple[float, np.ndarray]:
            delta = tuples.differences(self.Y, self.rows[block])
            x = self._ratios(_squares(delta @ L.T), block)
            gamma = self.gamma[block]
            weights = gamma * (1.0 - 1.0 / x) / self.bounds[block]
            value = float(gamma @ (x - 1.0 - np.log(x)))
            return value, (weights[:, None] * delta).T @ delta

        return sum_rows(sums, *self._size, most=_MOST_ROWS)

    def _ratios(self, squares: np.ndarray, block: slice) -> np.ndarray:
        """Squared distances in units of the bounds; one for pairs that need no slack."""
        x = squares / self.bounds[block]
        return np.where((self.signs[block] * (x - 1.0) > 0) & (x > 0), x, 1.0)

    def squares(self, L: np.ndarray) -> np.ndarray:
        """Squared distance of every pair."""

        def work(block: slice) -> np.ndarray:
            return _squares(tuples.differences(self.Y, self.rows[block]) @ L.T)

        return map_rows(work, *self._size, most=_MOST_ROWS)


def _squares(E: np.ndarray) -> np.ndarray:
    return np.sum(E * E, axis=1)
