"""Least squared-residual metric learning."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from kernelmetric.compute import sum_rows, within_budget
from kernelmetric.graphs import Triplets, count_triplets
from kernelmetric.inputs._parameters import LARGEST, Numbers
from kernelmetric.learners import _tuple_learner as tuples
from kernelmetric.learners._log_det import LogDetDivergence, LogDetLearner, descend

_MOST_ROWS = 16384  # comparisons of a block


class ComparedPairs(LogDetDivergence):
    """Divergence from the identity, and ``(√x - √y)²`` of near pairs beyond far ones, x > y."""

    def __init__(
        self, Y: np.ndarray, near: np.ndarray, far: np.ndarray, gamma: float, counts: np.ndarray
    ):
        self.Y, self.near, self.far, self.counts = Y, near, far, counts
        self._size = len(near), 6 * 8 * Y.shape[1]
        total = sum_rows(self._plain, *self._size, most=_MOST_ROWS)
        tuples.refuse_coinciding(total, Y, "tuples")
        self.weight = gamma / len(near) / (total / (2 * len(near)))
        self.floor = 1e-20 * total / len(near)  # under roots of far pairs of points that coincide

    def _differences(self, block: slice) -> np.ndarray:
        """Those of near pairs, and below them those of far pairs."""
        return tuples.differences(self.Y, np.concatenate([self.near[block], self.far[block]]))

    def _plain(self, block: slice) -> float:
        F = self._differences(block)
        return float(np.tile(self.counts[block], 2) @ np.einsum("ij,ij->i", F, F))

    def _sums(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """What residuals cost, and their derivative with respect to LᵀL."""

        def sums(block: slice) -> tuple[float, np.ndarray]:
            F, counts = self._differences(block), self.counts[block]
            squares = np.sum((F @ L.T) ** 2, axis=1)
            x, y = squares[: len(counts)], squares[len(counts) :] + self.floor
            wrong = np.flatnonzero(x > y)
            price, ratio = self.weight * counts[wrong], np.sqrt(y[wrong] / x[wrong])
            pull, push = price * (1.0 - ratio), price * (1.0 - 1.0 / ratio)
            ends = F.take(np.concatenate([wrong, wrong + len(counts)]), axis=0)
            A = (np.concatenate([pull, push]) * ends.T) @ ends
            return float(pull @ (x[wrong] * (1.0 - ratio))), A

        return sum_rows(sums, *self._size, most=_MOST_ROWS)


@dataclass(eq=False, repr=False, kw_only=True)
class LSML(LogDetLearner, tuples.ComparisonLearner):
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

    def _learn(self, points: tuples.Spanned, counts: np.ndarray) -> None:
        root = self._prior_root(points)
        Y = points.Z if root is None else points.Z @ root
        pairs = self.tuples_.near, self.tuples_.far
        problem = ComparedPairs(Y, *pairs, float(self.gamma), counts)
        self._minimise(problem, descend, points, root)

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d, N = n_features, self.max_tuples
        blocks = within_budget(8.0 * 6 * min(N, _MOST_ROWS) * d)
        return 8 * (20 * N + 4 * n_samples * d + 25 * d * d) + blocks

    def _triplets(self, Z: np.ndarray, codes: np.ndarray, rng: Any) -> Triplets:
        all_fit = count_triplets(codes) <= self.max_tuples
        each = None if all_fit else max(1, self.max_tuples // len(codes))
        return Triplets.from_labels(codes, per_point=each, random_state=rng)
