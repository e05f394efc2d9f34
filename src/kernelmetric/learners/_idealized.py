"""Idealized kernels: a metric from similar and dissimilar pairs by quadratic programming."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from kernelmetric._warnings import warn
from kernelmetric.compute import like
from kernelmetric.graphs import IndexTuples, Pairs
from kernelmetric.inputs._parameters import COUNT, LARGEST, Numbers
from kernelmetric.learners import _tuple_learner as tuples
from kernelmetric.learners._factors import factor, signed_factor
from kernelmetric.learners._idealized_choice import MOST_PAIRS, choose_C
from kernelmetric.learners._space_learner import SpaceLearner
from kernelmetric.solvers import ComparisonDual, PairDual, PairSolution, pair_bytes, solve_pairs

_STEPS = 400  # products of all pairs' matrices, in the choice of C and the solution
_READ = 100  # products take as long as to read a number
_LEAST_ROWS = 80  # that a time limit leaves where there is a kernel
_AT_BOUND = 1e-6  # of the upper bound: what is nearer to a bound is at it


@dataclass(eq=False, repr=False)
class IdealizedKernel(SpaceLearner):
    r"""A metric from similar and dissimilar pairs, by quadratic programming.

    Two points of a similar pair should be no farther apart than in the prior metric. Those of a
    dissimilar pair should be farther apart by a margin γ, eq. (7) of [1]_. Where a pair cannot have
    that, a slack ξ says how much is missing, and has a price:

    .. math:: \min_{M, \gamma, \xi}\; \tfrac12\|M\|^2 + \frac{C_S}{N_S} \sum_S \xi
              + C_D \Bigl(-\nu\gamma + \frac{1}{N_D} \sum_D \xi\Bigr)

    Each pair has a multiplier α ≥ 0 in the dual problem (14)-(16), and the metric is a sum over the
    pairs, :math:`M = \sum_D \alpha\delta\delta^\top - \sum_S \alpha\delta\delta^\top`, with δ the
    difference of the two points. A comparison takes the place of a dissimilar pair, with
    :math:`\epsilon\epsilon^\top - \delta\delta^\top` instead of δδᵀ, where ε is the far difference
    and δ the near one. O(N r²) time a step for N pairs in r dimensions.

    Parameters
    ----------
    kernel : str, Kernel or callable, default='linear'
        'linear' learns on X as given; any other one on the coordinates of its automatic space.
    C : float or 'auto', default='auto'
        Weight of the slacks, in units of the mean squared distance of the pairs. 'auto' is the
        largest power of ten, up to 10⁸, within a standard error of the best on left-out points.
    C_similar, C_dissimilar : float, default=None
        C_S and C_D, if they differ from C.
    nu : float, default=0.2
        ν in (0, 1]: the most dissimilar pairs in error, as a fraction, and the fewest with α > 0
        (Proposition 3). If γ is zero, try a larger ν.
    psd : {'solve', 'clip', 'none'}, default='solve'
        'solve' keeps M positive semi-definite; 'clip' sets negative eigenvalues to zero. 'none'
        leaves them: then squared distances may be negative, distances are roots of absolute values
        with that sign, and Euclidean distances of :meth:`transform` are another metric.
    n_neighbors : int, default=5
        From labels, every point pairs with so many nearest points of its class, and of others.
    radius : float, 'median' or None, default='median'
        From labels, the longest distance of a pair; 'median' is that of all pairs.
    prior : array of shape (n_features, n_features), default=None
        Matrix of the prior metric in the coordinates of the space; None is the identity.
    tol : float, default=1e-2
        Relative duality gap to reach. Small problems are solved to about 1e-9 anyway.
    max_iter : int, default=2000
        Maximum number of steps of the solver.
    warm_start : bool, default=False
        Whether a fit begins at the metric of the last one, for the linear kernel alone.
    random_state : int, RandomState or None, default=0
        For the folds of C='auto'.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (rank, n_features)
        The map L with LᵀL = M, on the coordinates of ``space_`` where there is one.
    signature_ : ndarray of shape (rank,) or None
        For psd='none', the signs s with M = Lᵀ diag(s) L: +1, and -1 from some row on.
    pairs_ : Pairs
        The pairs that were used, similar ones first in what follows; none of comparisons.
    tuples_ : Triplets or Quadruplets
        The comparisons that were used, where it learned from them.
    alpha_ : ndarray of shape (n_pairs,)
        Multipliers α of pairs or comparisons, in the units of X.
    upper_ : ndarray of shape (n_pairs,)
        Their upper bounds, C_S / N_S and C_D / N_D in the units of X.
    gamma_ : float
        The margin γ, in squared units of X.
    support_pairs_ : Pairs
        Pairs with α > 0: the solution depends on them alone.
    error_pairs_ : Pairs
        Pairs with α at its upper bound, which may miss their margin (section 3.2.2).
    C_ : float
        The C that was used.
    C_scores_ : ndarray of shape (n_tried,)
        For C='auto', areas under the curve for 10, 100, ...; of comparisons, shares that hold.
    duality_gap_ : float
        The relative gap reached, a bound on the distance to the optimum.
    loss_ : float
        The primal objective, in units free of scale.
    negative_mass_ : float
        Share of negative eigenvalues in ``Σ ± α δδᵀ``, by absolute value.
    alignment_before_, alignment_after_ : float
        Alignment of the kernel, and of the learned one, with the ideal kernel; nan without labels.
    scale_ : float
        Mean squared distance of the pairs in the prior metric.
    n_iter_ : int
        Steps of the solver.
    converged_ : bool
        Whether ``tol`` was reached; a ConvergenceWarning says so too.
    loss_curve_ : list of float
        The gaps on the way.
    solver_ : str
        'interior' or 'first-order'.
    space_ : Space or None
        The space, for a kernel that is not linear.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    ITML : From pairs, as a linear metric.
    Pairs : What it learns from.

    References
    ----------
    .. [1] Kwok and Tsang, "Learning with idealized kernels", ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import IdealizedKernel
    >>> X = np.random.RandomState(0).randn(40, 3)
    >>> X[:20, 0] += 4                                  # what matters is the first feature
    >>> similar, dissimilar = [[0, 1], [2, 3], [30, 31]], [[0, 30], [1, 25], [5, 35]]
    >>> metric = IdealizedKernel(C=1e3).fit(X, similar=similar, dissimilar=dissimilar)
    >>> int(np.argmax(np.diag(metric.get_mahalanobis_matrix())))
    0
    """

    kernel: Any = "linear"
    _: KW_ONLY
    C: Any = "auto"
    C_similar: float | None = None
    C_dissimilar: float | None = None
    nu: float = 0.2
    psd: str = "solve"
    n_neighbors: int = 5
    radius: Any = "median"
    prior: Any = None
    tol: float = 1e-2
    max_iter: int = 2000
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    _advice = "take a smaller C, or standardize the features"
    _passes, _others = 1.0, None  # in search of neighbours
    _allowed: ClassVar = {
        "C": Numbers(Real, low=1 / LARGEST, high=LARGEST, words=("auto",)),
        "C_similar": Numbers(Real, low=1 / LARGEST, high=LARGEST, words=(None,)),
        "C_dissimilar": Numbers(Real, low=1 / LARGEST, high=LARGEST, words=(None,)),
        "nu": Numbers(Real, low=0, high=1, above=True),
        "psd": ("solve", "clip", "none"),
        "n_neighbors": COUNT,
        "radius": Numbers(Real, low=0, above=True, words=("median", None)),
    }

    def _learn(self, points: tuples.Spanned, counts: tuples.PairCounts) -> None:
        X, y, Z, _ = points
        make = partial(self._problem, prior=self._check_prior(points), counts=counts)
        known = vars(self).get("tuples_", vars(self).get("pairs_"))
        squares = make(Z, known, 1.0, psd=False).reach
        if isinstance(known, IndexTuples):
            self.scale_ = float(np.mean(squares)) / 2
        else:
            self.scale_ = float(np.average(squares, weights=counts.of(known)))
        tuples.refuse_coinciding(self.scale_, Z, "pairs")
        unit = Z / np.sqrt(self.scale_)
        if isinstance(self.C, str):
            # Without the constraint a solution is cheaper, and C is of the same order.
            how: Any = {"clip": self.psd != "none", "random_state": self.random_state}
            found_C = choose_C(unit, known, partial(make, psd=False), counts=counts.of, **how)
            self.C_, self.C_scores_ = found_C
        else:
            self.C_ = float(self.C)
        problem = make(unit, known, self.C_, psd=self.psd == "solve")

        def attributes(M: np.ndarray) -> dict[str, Any]:
            L, signature = self._map_of(M, points)
            return {"components_": like(L, X), "signature_": signature}

        last = self._last_matrix(points)
        start = problem.metric(problem.matrix(problem.upper)) if last is None else last
        with self._watched(start, attributes, X, y) as report:
            found = solve_pairs(
                problem,
                tol=self.tol,
                max_iter=self.max_iter,
                metric=last,
                # Rounds of the interior-point method may be more than a progress bar has room for.
                report=lambda step, gap, metric: (
                    len(report.loss_curve) < self.max_iter and report(metric, gap)
                ),
            )
        self.upper_ = problem.upper / self.scale_
        self._store_solution(found)
        L, self.signature_ = self._map_of(found.metric, points)
        if not L[0].any():
            warn(
                "IdealizedKernel ended in the zero metric: the dissimilar pairs are of points that "
                "coincide, and nothing holds them apart."
            )
        self._store(L, X)
        self.alignment_before_ = self.alignment_after_ = float("nan")

    @property
    def _least_rows(self) -> int:  # type: ignore[override]
        return super()._least_rows if self._is_linear() else _LEAST_ROWS

    def _products(self, n_samples: int, n_features: int) -> float:
        rank = n_features
        if not self._is_linear():
            rank = self._space(n_samples, self.kernel).n_components or n_samples
        rank = min(rank, n_samples)
        return _STEPS * 2 * self.n_neighbors * n_samples * rank * (rank + _READ)

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        n, r, spanning = n_samples, min(n_samples, n_features), 0
        if not self._is_linear():
            space = self._space(n, self.kernel)
            r, spanning = space.n_components or n, space.estimate_memory(n, n_features)
        N = min(2 * min(self.n_neighbors, n) * n, n * (n - 1) // 2)
        # one after the other: the median of sampled distances, the choice of C, the solution
        choice = pair_bytes(min(N, MOST_PAIRS), r) if isinstance(self.C, str) else 0
        steps = tuples.SAMPLED_BYTES, choice, pair_bytes(N, r)
        return spanning + 8 * 4 * n * r + max(steps)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.warm_start and not self._is_linear():
            raise ValueError(
                f"Got warm_start=True with kernel={self.kernel!r}, but expected the linear one: "
                "the coordinates of another fit are another basis, in which the last map means "
                "nothing. Fit a space, such as KPCA(), and this learner on its coordinates."
            )

    def _resolved(self) -> dict[str, Any]:
        return {"C": self.C_} if isinstance(self.C, str) else {}

    def _pairs_from_labels(self, Z: np.ndarray, codes: np.ndarray) -> Pairs:
        limited = isinstance(self.radius, str) or (self.radius or np.inf) < LARGEST**1.5
        radius = self.radius if limited else None  # its square would leave the range
        return Pairs.from_neighbors(Z, codes, min(self.n_neighbors, len(Z)), radius)

    def _problem(
        self,
        Z: np.ndarray,
        pairs: Pairs | IndexTuples,
        C: float,
        prior: np.ndarray | None,
        counts: tuples.PairCounts,
        *,
        psd: bool,
    ) -> PairDual:
        C_S = C if self.C_similar is None else self.C_similar
        C_D = C if self.C_dissimilar is None else self.C_dissimilar
        if isinstance(pairs, IndexTuples):
            upper = np.full(len(pairs), C_D / len(pairs))
            least = self.nu * C_D
            return ComparisonDual(Z, pairs.near, pairs.far, upper, least, prior=prior, psd=psd)
        signs = np.where(pairs.is_similar, -1.0, 1.0)
        similar, dissimilar = counts.totals(pairs)
        price = np.where(pairs.is_similar, C_S / max(similar, 1e-300), C_D / dissimilar)
        upper = price * counts.of(pairs)
        return PairDual(Z, pairs.rows, signs, upper, self.nu * C_D, prior=prior, psd=psd)

    def _store_solution(self, found: PairSolution) -> None:
        self.alpha_ = found.alpha / self.scale_
        self.gamma_ = found.certificate.gamma * self.scale_
        self.duality_gap_ = found.certificate.gap
        self.loss_ = found.certificate.primal
        self.n_iter_, self.converged_, self.solver_ = found.n_iter, found.converged, found.solver
        if hasattr(self, "pairs_"):
            self.support_pairs_ = self.pairs_.take(self.alpha_ > _AT_BOUND * self.upper_)
            self.error_pairs_ = self.pairs_.take(self.alpha_ >= (1 - _AT_BOUND) * self.upper_)
        values = linalg.eigvalsh(found.matrix)
        total = float(np.sum(np.abs(values)))
        self.negative_mass_ = -float(np.sum(values[values < 0])) / total if total > 0 else 0.0
        self._warn_of_gap()

    def _map_of(self, M: np.ndarray, points: tuples.Spanned) -> tuple[np.ndarray, Any]:
        """The map of a solution on the features, and the signs of its rows unless all are +1."""
        L, signs = signed_factor(M) if self.psd == "none" else (factor(M), None)
        return points.leave(L), signs
