"""Sparse distance metric learning."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from kernelmetric.inputs._parameters import Numbers
from kernelmetric.learners._factors import factor
from kernelmetric.learners._log_det import LogDetLearner
from kernelmetric.learners._tuple_learner import PairCounts, PairLearner, Spanned, scatter
from kernelmetric.solvers import sparse_precision


@dataclass(eq=False, repr=False, kw_only=True)
class SDML(LogDetLearner, PairLearner):
    r"""Sparse distance metric learning: a prior, pairs, and few features that act together.

    .. math:: \min_{M \succ 0}\; D(M, M_0) + \frac{\eta}{\kappa} \Bigl(
              \frac{1}{N_S} \sum_S \delta^\top M \delta - \frac{1}{N_D} \sum_D \delta^\top M \delta
              \Bigr) + \lambda \sum_{i \ne j} |M_{ij}|

    The first term keeps M near the prior M₀, by the divergence
    :math:`D(A, B) = \operatorname{tr} A B^{-1} - \log\det A B^{-1} - r`. The second one makes
    similar pairs near and dissimilar pairs far, with δ the difference of the two points of a pair.
    The last one makes entries zero [1]_. κ is a unit for the weight of the pairs: at η = 1 they
    would stretch some direction without limit. O(d³) time an iteration. The metric depends on the
    axes: rotated points, or coordinates of the linear kernel, give another one.

    Parameters
    ----------
    balance : float, default=0.5
        Weight η of the pairs, from 0 to below 1.
    sparsity : float, default=0.1
        Weight λ, as a share of the one from which on M is diagonal.
    prior : array of shape (n_features, n_features), default=None
        Matrix M₀ of the prior metric, positive definite; None is the identity.
    max_pairs : int, default=20000
        From labels, the maximum number of pairs: all n (n - 1) / 2, or random ones.
    tol : float, default=1e-4
        Duality gap to reach, for each feature.
    max_iter : int, default=1000
        Maximum number of iterations.
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
    sparse_matrix_ : ndarray of shape (n_features, n_features)
        The matrix M with exact zeros.
    pairs_ : Pairs
        The pairs that were used.
    loss_ : float
        The objective.
    duality_gap_ : float
        The gap reached, for each feature: a bound on the distance to the optimum.
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
    ITML : From pairs too, with a dense matrix.

    References
    ----------
    .. [1] Qi, Tang, Zha, Chua and Zhang, "An efficient sparse metric learning in high-dimensional
       space via l1-penalized log-determinant regularization", ICML 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import SDML
    >>> X, y = load_iris(return_X_y=True)
    >>> metric = SDML(sparsity=1.0).fit(X, y)
    >>> int((metric.sparse_matrix_ != 0).sum())  # a diagonal
    4
    """

    balance: float = 0.5
    sparsity: float = 0.1
    prior: Any = None
    max_pairs: int = 20_000
    tol: float = 1e-4
    max_iter: int = 1000
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    _needs_dissimilar = False  # the prior keeps similar pairs from collapsing
    _advice = "take a smaller balance"
    _allowed: ClassVar = {
        "balance": Numbers(Real, low=0, high=1 - 1e-6),
        "sparsity": Numbers(Real, low=0, high=1),
    }

    def _learned_on(self, X: Any, y: Any, given: Any) -> Spanned:
        return super()._learned_on(X, y, given).by_features()  # of whose matrix few entries matter

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        d, N = n_features, min(self.max_pairs, n_samples * (n_samples - 1) // 2)
        return 8 * (6 * N + 3 * min(N, 16384) * d + 4 * n_samples * d + 16 * d * d)

    def _learn(self, points: Spanned, counts: PairCounts) -> None:
        Z = points.Z
        # Where the prior is the identity it is in units of the features.
        squares = (Z - np.average(Z, axis=0, weights=counts.rows)) ** 2
        size = float(np.mean(np.average(squares, axis=0, weights=counts.rows))) or 1.0
        root = self._prior_root(points)
        root = None if root is None else root * np.sqrt(size)
        S = self._weighted_inverse(Z / np.sqrt(size), root, counts)
        penalty = float(self.sparsity) * float(np.max(np.abs(S - np.diag(np.diag(S)))))

        start, last = np.diag(1.0 / np.diag(S)), self._last_matrix(points)
        if last is not None and linalg.eigvalsh(last)[0] <= 1e-12 * np.max(np.diag(last)):
            last = None  # singular in the last digits
        with self._following(start, lambda M: factor(M / size), points) as report:
            found = sparse_precision(
                S,
                penalty,
                tol=self.tol,
                max_iter=self.max_iter,
                start=None if last is None else last * size,
                report=report,
            )
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        of_prior = 0.0 if root is None else 2.0 * float(np.sum(np.log(np.diag(root))))
        self.loss_, self.duality_gap_ = found.value + of_prior, found.gap
        self.sparse_matrix_ = found.matrix / size
        self._warn_of_gap()
        self._store(factor(self.sparse_matrix_), points.X)

    def _weighted_inverse(
        self, Z: np.ndarray, root: np.ndarray | None, counts: PairCounts
    ) -> np.ndarray:
        """The inverse of the prior, and scatters of the pairs with their weights."""
        d, pairs = Z.shape[1], self.pairs_
        split, each = len(pairs.similar), counts.of(pairs)
        total = np.repeat(counts.totals(pairs), [split, len(each) - split])
        shares = np.where(pairs.is_similar, each, -each) / total
        K = scatter(Z, pairs.rows, shares)
        values = linalg.eigvalsh(K if root is None else root.T @ K @ root)
        edge = max(-float(values[0]), 1e-3 * float(np.max(np.abs(values))), 1e-300)
        if root is None:
            return np.eye(d) + float(self.balance) / edge * K
        inverse = linalg.cho_solve((root, True), np.eye(d))
        return 0.5 * (inverse + inverse.T) + float(self.balance) / edge * K
