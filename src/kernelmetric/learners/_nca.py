"""Neighbourhood component analysis."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute import like, namespace, nca_loss, own_threads, take_rows, to_numpy
from kernelmetric.learners._base import (
    GradientLearner,
    as_gram,
    centered,
    frobenius,
    in_single,
)
from kernelmetric.solvers import Iterations, minimize_lbfgs, with_callbacks

# Squared length, on average, of the points under the first map. Kernel coordinates are at most 1
# long: the softmax is then nearly uniform and the gradient too weak to leave the start.
_START_SQUARED_NORM = 4.0
_ROUGH_TOL = 1e-5  # where float32 hands over to float64


class NCA(GradientLearner):
    """Neighbourhood component analysis.

    Maximises the expected number of points whose random neighbour, drawn with probability
    ``p_ij ∝ exp(-|L x_i - L x_j|²)``, belongs to their own class; with ``reg`` > 0, minus
    ``reg |L|²`` (the regularized form of Theorem 3 of [1]_).

    Parameters
    ----------
    n_components : int, default=None
        Rank of the map; None keeps all dimensions.
    init : {'auto', 'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='auto'
        The first map. 'auto' is the identity at full rank, else Fisher's directions where they
        suffice, else principal ones. All but an array are scaled to a mean squared length of 4.
    reg : float, default=0.0
        Weight of the squared Frobenius norm of L.
    max_iter : int, default=200
        The most L-BFGS iterations.
    tol : float, default=1e-6
        Relative decrease of the objective in one iteration at which the fit has converged.
    warm_start : bool, default=False
        Begin at the ``components_`` of the last fit, also of one that Ctrl-C ended.
    random_state : int, RandomState or None, default=None
        For ``init='random'``.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    loss_ : float
        The objective at L: minus the expected number of hits, plus the regularizer.
    loss_curve_ : list of float
        The objective after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached.
    n_features_in_ : int
        Number of features seen in fit.

    Notes
    -----
    O(n² r + n d r) time an evaluation; one block of rows × n in memory.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 2.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = NCA(n_components=2).fit(X, y)
    >>> nca.transform(X).shape
    (150, 2)
    >>> nca.loss_ < -140  # of 150 points, more than 140 are expected to pick their own class
    True
    """

    def __init__(
        self,
        n_components=None,
        *,
        init="auto",
        reg=0.0,
        max_iter=200,
        tol=1e-6,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.n_components = n_components
        self.init = init
        self.reg = reg
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, *, gram: Any = None) -> NCA:
        """Learn the map from labelled points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,)
            Class labels.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.

        Returns
        -------
        NCA
            The fitted learner.
        """
        self._check_iteration_parameters()
        X, codes = self._check_training(X, y)
        gram = as_gram(gram)
        rank = self._check_n_components(X.shape[1])
        start = self._start(X, codes, gram, rank, lambda L: _scaled(L, to_numpy(X)))
        order = np.argsort(codes, kind="stable")  # the block kernel wants rows sorted by class
        points, sorted_codes = take_rows(centered(X), order), codes[order]

        def objective_on(points: Any) -> Any:
            def objective(L: np.ndarray) -> tuple[float, np.ndarray]:
                value, gradient = nca_loss(like(L, points), points, sorted_codes)
                penalty, penalty_gradient = frobenius(L, gram)
                return (
                    value + self.reg * penalty,
                    to_numpy(gradient) + self.reg * penalty_gradient,
                )

            return objective

        report = Iterations(self, self.max_iter, lambda L: {"components_": like(L, X)}, X, y)
        report.start(start)
        with own_threads(6.0 * X.shape[0] ** 2 * start.shape[0]), report.kept():
            rough = max(self.tol, _ROUGH_TOL)
            if in_single(points, rough):  # most of the way in float32, the finish in float64
                xp = namespace(points)
                objective = objective_on(xp.astype(points, xp.float32))
                start = minimize_lbfgs(
                    objective, start, max_iter=self.max_iter, tol=rough, report=report
                ).x
            minimum = minimize_lbfgs(
                objective_on(points),
                start,
                max_iter=max(1, self.max_iter - len(report.loss_curve)),
                tol=self.tol,
                report=report,
            )
        self._store(minimum.x, X)
        self.loss_ = minimum.value
        self.loss_curve_ = report.loss_curve
        self.n_iter_ = len(report.loss_curve)
        self.converged_ = minimum.converged or report.stopped
        report.finish()
        self._warn_unless_converged()
        return self


def _scaled(L: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The multiple of L under which points are as long as a start should make them."""
    E = (X - X.mean(axis=0)) @ L.T
    length = np.mean(np.sum(E * E, axis=1))
    return L * np.sqrt(_START_SQUARED_NORM / length) if length > 0 else L
