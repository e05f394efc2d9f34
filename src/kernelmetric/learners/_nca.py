"""Neighbourhood component analysis."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from kernelmetric.compute import in_memory, like, namespace, precise, rough, take_rows, to_numpy
from kernelmetric.compute.reductions import product, squared_distances
from kernelmetric.inputs import Weights, check_labels, check_points
from kernelmetric.inputs._parameters import LARGEST, Numbers, require_flag
from kernelmetric.learners import _descent as descents
from kernelmetric.learners import _nca_solvers
from kernelmetric.learners._descent import Descent, Found, GradientLearner, Training
from kernelmetric.learners._nca_solvers import DrawnPoints, NCAProblem
from kernelmetric.learners._progress import Iterations

# Squared length, on average, of the points under the first map. At least 4: kernel coordinates are
# at most 1 long, where the softmax is nearly uniform and the gradient too weak to leave the start.
# More, where the softmax of a point would spread over more than 50 others: with many points, the
# far ones outweigh the neighbours by their number.
_START_SQUARED_NORM = 4.0
_START_PERPLEXITY = 50.0
_PERPLEXITY_ROWS, _PERPLEXITY_TOL = 32, 1e-3
_LONGEST_START = 1024.0  # for points all equally far apart, which no length tells apart
# From so many points on, a fit of some of them, to such a tolerance, is worth having as a start.
_COARSE = 20_000, 4_000, 1e-3
_EARLY_FROM = 5_000  # points: from here on some are held out
# With reg='shrink': the weight of the penalty for each point, of the variance of the points. Fewer
# points than these say less, and are held closer.
_PULL, _PULL_ROWS = 1e-3, 1_600
REG = Numbers(Real, low=0, high=LARGEST, words=("shrink", "auto"))
_TOL, _PULLED_TOL = 5e-6, 1e-4
_MANY_PRODUCTS = 5e10  # over all pairs of points: batches of them are enough
_PULLED_COARSE = 3_000, 2_000, 1e-4


@dataclass(eq=False, repr=False)
class NCA(GradientLearner):
    r"""Neighbourhood component analysis.

    Every point draws one of the others as its neighbour, a near one more probably than a far one.
    The map makes the expected number of points as large as possible whose neighbour is of their own
    class, less a penalty (that of Theorem 3 of [1]_):

    .. math:: \max_L\; \sum_i \sum_{j:\, y_j = y_i} p_{ij} - \rho \|L\|_F^2, \qquad
              p_{ij} = \frac{e^{-\|L x_i - L x_j\|^2}}{\sum_{l \ne i} e^{-\|L x_i - L x_l\|^2}}

    with ρ the parameter ``reg``. O(n² r + n d r) time an evaluation; one block of rows × n in
    memory, and at most half a GB of the probabilities.

    Parameters
    ----------
    n_components : int, default=None
        Rank of the map; None keeps all dimensions.
    init : {'auto', 'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='auto'
        The first map; all but an array are scaled. 'auto' is the identity at full rank, else
        Fisher's directions where they suffice, else principal ones.
    reg : float, 'shrink' or 'auto', default='auto'
        Weight of the squared Frobenius norm of L. 'shrink' is .001 times the variance of the
        points for each point, of n < 1,600 points √(1,600 / n) times that, which keeps
        neighbourhoods wide. 'auto' is 0, and 'shrink' within ``Kernelized`` on the coordinates of
        :class:`~kernelmetric.selection.RidgeKPCA`.
    max_iter : int, default=200
        Maximum number of L-BFGS iterations; for the solver 'minibatch', passes over the points.
    tol : float or 'auto', default='auto'
        Relative decrease of the objective in one iteration at which the fit has converged. 'auto'
        is 5e-6, and 1e-4 with ``reg='shrink'``.
    solver : {'auto', 'lbfgs', 'minibatch'}, default='auto'
        'lbfgs' looks at all pairs in every step. 'minibatch', for 20,000 points and more, goes from
        batch to batch: ``loss_`` is that of the batches of the last pass, and ``tol`` is not used.
        'auto' is 'minibatch' where n² n_components is over 5e10, as of 28,000 points and 64
        components, where a step of the other takes seconds; ``solver_`` tells.
    batch_size : int, default=1000
        For 'minibatch', the points of a batch.
    early_stopping : bool or 'auto', default='auto'
        Whether to hold out a tenth of the points, at most 3,000, and take the map with which their
        nearest neighbour is of their class most often. 'auto' does so from 5,000 points on, but not
        within ``Kernelized`` on coordinates that are made of labels.
    warm_start : bool, default=False
        Start at the ``components_`` of the last fit, of the same shape.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.
    random_state : int, RandomState or None, default=None
        For ``init='random'``, the batches, and the points held out.
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
    solver_ : {'lbfgs', 'minibatch'}
        The solver that was used.
    converged_ : bool
        Whether ``tol`` was reached, or the points held out ended the fit.
    validation_scores_ : list of float or None
        Share of the points held out whose nearest neighbour is of their class, from the start on;
        None where no points were held out.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LMNN : Margins instead of probabilities; no local optima.
    MetricClassifier : Classes and probabilities in such a metric.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 2.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> X, y = load_iris(return_X_y=True)
    >>> NCA(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    init: Any = "auto"
    reg: Any = "auto"
    max_iter: int = 200
    tol: Any = "auto"
    solver: str = "auto"
    batch_size: int = 1000
    early_stopping: Any = "auto"
    warm_start: bool = False
    class_weight: Any = None
    random_state: Any = None
    verbose: bool = False

    _enough_rows = 3_000  # of few coordinates that hold predictions
    _where_labels_are_known: ClassVar = {"reg": "shrink"}  # what 'auto' is there
    _allowed: ClassVar = {
        "reg": REG,
        "tol": Numbers(Real, low=0, words=("auto",)),
        "solver": ("auto", "lbfgs", "minibatch"),
        "batch_size": Numbers(Integral, low=2),
    }

    def _streams(self) -> str | None:
        batches = isinstance(self.solver, str) and self.solver != "lbfgs"
        return "at need" if batches else None

    def _meets(self, n: int, d: int) -> int:
        return n if self._solver_for(n, d) == "lbfgs" else min(n, int(self.batch_size))

    def _solver_for(self, n: int, d: int) -> str:
        """What 'auto' is for so many points and features."""
        if isinstance(self.solver, str) and self.solver != "auto":
            return self.solver
        many = n**2 * min(d, self.n_components or d) > _MANY_PRODUCTS
        return "minibatch" if many else "lbfgs"

    def _fit(self, X: Any, y: Any, gram: Any, weights: Weights | None, **options: Any) -> Any:
        if in_memory(X):
            return super()._fit(X, y, gram, weights, **options)
        drawn = DrawnPoints(X, check_labels(y, X), self.random_state)
        points, labels = drawn()
        super()._fit(points, labels, gram, None, drawn=drawn)
        check_points(self, X, reset=True)  # for the names of its features
        return self

    def _resolved(self) -> dict[str, Any]:
        shrink = isinstance(self.reg, str) and self.reg == "shrink"
        return {"tol": _PULLED_TOL if shrink else _TOL} if isinstance(self.tol, str) else {}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_flag("early_stopping", self.early_stopping)

    def _descent(self, training: Training, drawn: DrawnPoints | None = None) -> Descent:
        X, codes, gram, weights = training
        rank = self._check_n_components(X.shape[1])
        reg = 0.0 if isinstance(self.reg, str) else self.reg
        pull = shrinking(self.reg, X, weights)
        start = self._start(training, rank, lambda L: softmax_start(L, X, weights))
        self.solver_ = "minibatch" if drawn else self._solver_for(*X.shape)

        def problem_of(X: Any, codes: np.ndarray, weights: Weights | None = None) -> NCAProblem:
            problem = NCAProblem(descents.about_mean(X, None), codes, reg, gram, weights, pull)
            return problem.subset(np.argsort(codes, kind="stable"))  # as the block kernel wants it

        problem = problem_of(X, codes, weights)
        renewed = None if drawn is None else lambda: problem_of(*drawn())
        return Descent(start, lambda report: self._descend(problem, start, report, renewed))

    def _descend(
        self, problem: NCAProblem, L: np.ndarray, report: Iterations, renewed: Any
    ) -> Found:
        n, held_out, self.validation_scores_ = len(problem.codes), None, None
        early = n >= _EARLY_FROM if isinstance(self.early_stopping, str) else self.early_stopping
        if early:
            problem, held_out = _nca_solvers.held_back(problem, self.random_state)
            if held_out is None and self.early_stopping is True:
                raise ValueError(
                    "Got early_stopping=True, but no class has a point to spare: expected one of "
                    "three points or more. Try early_stopping=False."
                )
        if held_out is not None:
            held_out(L)
        fresh = isinstance(self.init, str) and not self.warm_start
        above, most, tol = _PULLED_COARSE if problem.pull else _COARSE
        if n >= above and fresh:
            rows = np.linspace(0, len(problem.codes) - 1, most).astype(int)
            some = problem.subset(rows).rough(descents.OF_POINTS * tol)
            quiet = some.unit, some.objective, L, lambda *_: False
            L = descents.descend_in(*quiet, self.max_iter, tol)[0]
            if held_out is not None:
                held_out(L)
                L = held_out.best
        if held_out is not None:
            report.held_out, self.validation_scores_ = held_out, held_out.scores
        how = problem, L, report, self.max_iter
        tol = self._resolved().get("tol", self.tol)
        if self.solver_ == "lbfgs":
            found = _nca_solvers.descend_exactly(*how, tol)
        else:
            drawn = {"random_state": self.random_state, "renewed": renewed}
            found = _nca_solvers.descend_batches(*how, batch_size=self.batch_size, **drawn)
        if held_out is None:
            return found
        if self.solver_ == "minibatch":  # never all pairs: its points may be millions
            return held_out.best, *found[1:]
        return held_out.best, problem.objective(held_out.best)[0], found[2]


def shrinking(reg: Any, X: Any, weights: Weights | None) -> float:
    """The weight of the penalty for each point, of their variance, where reg is 'shrink'."""
    if not isinstance(reg, str) or reg != "shrink":
        return 0.0
    X = np.ascontiguousarray(to_numpy(X), dtype=np.float64)
    total = len(X) if weights is None else weights.total
    # Copies say nothing new: weights, and repeated rows, leave the pull as it is.
    n_distinct = len(np.unique(X.view(f"V{X.itemsize * X.shape[1]}")))
    pull = _PULL * max(1.0, np.sqrt(_PULL_ROWS / n_distinct))
    return pull * float(np.sum(descents.about_mean(X, weights) ** 2)) / total


def softmax_start(L: np.ndarray, X: Any, weights: Weights | None = None) -> np.ndarray:
    """The multiple of L at which a descent on softmax neighbours should start."""
    X = precise(X)
    xp, one = namespace(X), np.ones(X.shape[0])
    weights = Weights(one, one) if weights is None else weights
    share = like(weights.shares / weights.total, X)[:, None]
    E = product(X - xp.sum(share * X, axis=0, keepdims=True), like(L, X).T)
    length = float(xp.sum(share * E * E))
    if not length > 0:
        return L
    rows = np.unique(np.linspace(0, E.shape[0] - 1, _PERPLEXITY_ROWS).astype(int))
    D2 = squared_distances(take_rows(E, rows), E) / length
    D2 = to_numpy(rough(D2, _PERPLEXITY_TOL))
    D2[np.arange(len(rows)), rows] = np.inf
    masses = weights.masses
    low = high = _START_SQUARED_NORM
    while high < _LONGEST_START and _perplexity(high * D2, masses) > _START_PERPLEXITY:
        low, high = high, 2.0 * high
    for _ in range(3 if high > low else 0):
        middle = np.sqrt(low * high)
        enough = _perplexity(middle * D2, masses) > _START_PERPLEXITY
        low, high = (middle, high) if enough else (low, middle)
    return L * np.sqrt(high / length)


def _perplexity(D2: np.ndarray, masses: np.ndarray) -> float:
    """Number of neighbours that the softmax of every row is worth, typically."""
    farther = np.minimum(D2 - np.min(D2, axis=1, keepdims=True), 80.0)
    P = masses * np.exp(-farther)
    total = np.sum(P, axis=1)
    entropy = np.log(total) + np.einsum("ij,ij->i", P, farther) / total
    return float(np.exp(np.mean(entropy)))
