"""Metric learning for kernel regression."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from kernelmetric.compute import backend_of, like, namespace, rough, to_numpy
from kernelmetric.compute.reductions import product, softmax_reduction
from kernelmetric.inputs import Weights, check_numbers
from kernelmetric.inputs._labels import require_target
from kernelmetric.learners import _descent as descents
from kernelmetric.learners._base import frobenius
from kernelmetric.learners._checks import refuse_one_target
from kernelmetric.learners._descent import Descent, Found, GradientLearner, Training
from kernelmetric.learners._nca import REG, shrinking, softmax_start
from kernelmetric.learners._progress import Iterations

_SMALL_ERROR = 0.1  # of the variance of y


@dataclass(eq=False, repr=False)
class MLKR(GradientLearner):
    r"""Metric learning for kernel regression: for targets that are numbers.

    Every point is predicted from all others, near ones with larger weight, and the squared error
    of these predictions is minimised [1]_:

    .. math:: \min_L\; \sum_i (y_i - \hat y_i)^2 + \rho \|L\|_F^2, \qquad
              \hat y_i = \frac{\sum_{j \ne i} k_{ij} y_j}{\sum_{j \ne i} k_{ij}}, \qquad
              k_{ij} = e^{-\|L x_i - L x_j\|^2}

    O(n² r + n d r) time an evaluation; one block of rows × n in memory. Not convex.

    Parameters
    ----------
    n_components : int, default=None
        Rank of the map; None keeps all dimensions.
    init : {'auto', 'identity', 'pca', 'random'} or array of shape (r, d), default='auto'
        The first map, as of :class:`NCA`; 'auto' is the identity, else principal directions.
    reg : float, 'shrink' or 'auto', default='auto'
        Weight ρ of the squared Frobenius norm of L, where y has unit variance. 'shrink' is .001
        times the variance of the points for each point. 'auto' is 0, and 'shrink' within
        ``Kernelized`` on the coordinates of :class:`~kernelmetric.selection.RidgeKPCA`.
    max_iter : int, default=200
        Maximum number of L-BFGS iterations.
    tol : float, default=1e-5
        Relative decrease of the objective in one iteration at which the fit has converged.
    warm_start : bool, default=False
        Start at the ``components_`` of the last fit, of the same shape.
    random_state : int, RandomState or None, default=None
        For ``init='random'``.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    loss_ : float
        The objective at L, for targets scaled to unit variance.
    loss_curve_ : list of float
        The objective after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    MetricRegressor : Numbers and intervals in such a metric.
    RFM : Directions that matter to ridge regression.

    References
    ----------
    .. [1] Weinberger and Tesauro, "Metric learning for kernel regression", AISTATS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from kernelmetric import MLKR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> MLKR(n_components=2).fit(scale(X), y).transform(scale(X)).shape
    (442, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    init: Any = "auto"
    reg: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-5
    warm_start: bool = False
    random_state: Any = None
    verbose: bool = False

    learns_from = "targets"
    _enough_rows = 3_000  # of few coordinates that hold predictions
    _blocks = 2
    _where_labels_are_known: ClassVar = {"reg": "shrink"}  # what 'auto' is there
    _takes_numbers = True
    _allowed: ClassVar = {"reg": REG}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.init, str) and self.init == "lda":
            raise ValueError("Got init='lda', but MLKR has no classes: try 'pca'.")

    def _check_training(self, X: Any, y: Any) -> tuple[Any, Any]:
        X = self._check_points(X)
        return X, like(_standardized(y, X), X)

    def _descent(self, training: Training) -> Descent:
        X, Y, gram, weights = training
        rank = self._check_n_components(X.shape[1])
        no_classes = training.without_classes()
        start = self._start(no_classes, rank, lambda L: softmax_start(L, X, weights))
        points = descents.about_mean(X, None)
        total = X.shape[0] if weights is None else weights.total
        reg = 0.0 if isinstance(self.reg, str) else float(self.reg)
        reg, unit = reg + total * shrinking(self.reg, X, weights), _SMALL_ERROR * total
        if weights is not None:
            centred = to_numpy(Y) - weights.mean(to_numpy(Y))
            Y = like(centred / np.sqrt(np.sum(weights.mean(centred * centred))), X)
        few = rough(points, descents.OF_POINTS * self.tol, operations=X.shape[0] ** 2 * X.shape[1])

        def on(points: Any) -> Any:
            targets = like(to_numpy(Y), points)

            def objective(L: np.ndarray) -> tuple[float, np.ndarray]:
                value, gradient = mlkr_loss(like(L, points), points, targets, weights)
                penalty, penalty_gradient = frobenius(L, gram)
                return value + reg * penalty, to_numpy(gradient) + reg * penalty_gradient

            return objective, self.tol

        def minimise(report: Iterations) -> Found:
            # A far row takes the digits of all others: the finish is in all digits.
            stages = [on(points)] if few is points else [on(few), on(points)]
            return descents.descend_in_stages(unit, stages, start, report, self.max_iter)

        return Descent(start, minimise)


def mlkr_loss(L: Any, X: Any, Y: Any, weights: Weights | None = None) -> tuple[float, Any]:
    """Squared error ``Σ_i |y_i - ŷ_i|²`` of kernel regression on points left out, and ∂f/∂L."""
    xp = namespace(Y)
    with_ones = xp.concat([xp.ones_like(Y[:, :1]), Y], axis=1).T

    def weigh(P: Any, rows: slice, logs: Any) -> tuple[float, Any]:
        predicted = P @ Y
        error = predicted - Y[rows, :]
        share = 1.0 if weights is None else like(weights.shares[rows], Y)[:, None]
        about = xp.concat([xp.sum(error * predicted, axis=1)[:, None], -error], axis=1)
        slopes = (2.0 * share * about) @ with_ones
        return xp.sum(share * error * error), backend_of(P).multiplied(slopes, P)

    E = product(X, L.T)
    value, sums = softmax_reduction(E, E, weigh, weights)
    return value, 2.0 * product(sums.T, X)


def _standardized(y: Any, X: Any) -> np.ndarray:
    """Targets in columns, each of zero mean, together of unit variance."""
    require_target(y, "MLKR", "one number, or one row of numbers, per row of X")
    Y = check_numbers(y, X)
    Y = Y.reshape(len(Y), -1)
    Y = Y / (np.abs(Y).max() or 1.0)
    Y = Y - Y.mean(axis=0)
    spread = float(np.sqrt(np.sum(Y * Y) / len(Y)))
    refuse_one_target(spread > 1e-12)
    return Y / spread
