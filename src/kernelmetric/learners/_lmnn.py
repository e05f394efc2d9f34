"""Large margin nearest neighbours."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils.validation import _num_samples

from kernelmetric._warnings import warn
from kernelmetric.compute import bytes_at_once, namespace, rough, take_rows, to_numpy
from kernelmetric.compute.reductions import Triplets, read_only
from kernelmetric.graphs import IndexTuples, neighbor_parts, target_neighbors
from kernelmetric.inputs._parameters import COUNT, PRICE
from kernelmetric.learners import _margin
from kernelmetric.learners._base import BLOCK_BYTES
from kernelmetric.learners._checks import check_neighbors, refuse_lone_points
from kernelmetric.learners._descent import OF_POINTS, Descent, Found, GradientLearner, Training
from kernelmetric.learners._factors import truncated
from kernelmetric.learners._progress import Iterations, with_callbacks
from kernelmetric.learners._tuple_learner import TakesTuples
from kernelmetric.spaces import orthonormal

_MANY_PRODUCTS = 1e9  # of a step on a map of full rank


@dataclass(eq=False, repr=False)
class LargeMargin(TakesTuples, GradientLearner):
    """The LMNN objective, and the life-cycle of those who minimise it."""

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 3
    c: float = 1.0
    init: Any = "auto"
    reg: float = 0.0
    max_iter: int = 500
    tol: float = 1e-3
    warm_start: bool = False
    class_weight: Any = None
    random_state: Any = None
    verbose: bool = False

    _allowed: ClassVar = {"n_neighbors": COUNT, "c": PRICE}
    _takes_comparisons = True

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        gram: Any = None,
        neighbors: Any = None,
        triplets: Any = None,
        quadruplets: Any = None,
        sample_weight: Any = None,
    ) -> GradientLearner:
        """Learn the map from labelled points, or from comparisons.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; or triplets or quadruplets of them, (n_tuples, 3 or 4, n_features).
        y : array-like of shape (n_samples,), default=None
            Class labels.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        neighbors : array of shape (n_samples, p), default=None
            Where target neighbours come from: other coordinates of the same points (floats), or
            row numbers of the target neighbours (integers, -1 for none). None takes X.
        triplets : Triplets or array-like of shape (n_triplets, 3), default=None
            Row numbers (a, b, c), instead of labels: a is nearer to b than to c.
        quadruplets : Quadruplets or array-like of shape (n_quadruplets, 4), default=None
            Row numbers (a, b, c, d), instead of labels: a is nearer to b than c is to d.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the objective, zero to leave it out.

        Returns
        -------
        object
            The fitted learner.
        """
        given = {"triplets": triplets, "quadruplets": quadruplets}
        X, y, given = self._as_rows(X, y, given)
        others = {"y": y, "neighbors": neighbors, "sample_weight": sample_weight}
        tuples = self._given_tuples(_num_samples(X), given, others)
        if tuples is not None:
            return self._fit(X, tuples, gram, None)
        return self._fit(X, y, gram, sample_weight, neighbors=neighbors)

    def _boundary_suffices(self, n_of_class: int) -> bool:
        """Whether rows that part classes, so many of each, have all neighbours that are asked."""
        return isinstance(self.n_neighbors, Integral) and self.n_neighbors < n_of_class

    def _check_training(self, X: Any, y: Any) -> tuple[Any, Any]:
        if not isinstance(y, IndexTuples):
            return super()._check_training(X, y)
        by_classes = {"class_weight": self.class_weight is not None}
        by_classes["init"] = isinstance(self.init, str) and self.init == "lda"
        for name in (name for name, wrong in by_classes.items() if wrong):
            raise ValueError(
                f"Got {name}={getattr(self, name)!r} with {y.kind}s, but expected class labels "
                "for that: leave it out."
            )
        return self._check_points(X), y

    def _descent(self, training: Training, neighbors: Any = None) -> Descent:
        X, codes, gram, _ = training
        rank = self._check_n_components(X.shape[1])
        # The descent sees coordinates of an orthonormal basis, and points of unit size.
        basis = orthonormal(X, gram, span=False)
        reg = self.reg / basis.size**2
        if isinstance(codes, IndexTuples):
            exact: _margin.MarginProblem = _margin.ListedMargins(basis.Z, codes, self.c, reg)
            training = training.without_classes()
        else:
            order = np.argsort(codes, kind="stable")  # the block kernel wants rows sorted by class
            targets, weighed = self._sorted_targets(training, neighbors, order)
            points = read_only(take_rows(basis.Z, order))
            exact = _margin.MarginProblem(points, targets, codes[order], self.c, reg, weighed)
        # A map is judged in the precision of the data.
        n, d = exact.points.shape
        problem = exact.on(rough(exact.points, OF_POINTS * self.tol, operations=n * n * d))

        def scale(L: np.ndarray) -> np.ndarray:
            return L * problem.best_length(basis.enter(L))

        most = self._start_rank(*X.shape)
        start = basis.enter(self._start(training, most, scale))
        start = filled(start, most) if self._optimises_matrix else start
        if not (self.warm_start and hasattr(self, "_corner")):
            self._corner = _margin.FIRST_CORNER

        def minimise(report: Iterations) -> Found:
            found = _margin.descend(problem, start, report, self.max_iter, self.tol, self._corner)
            L, good, self._corner = found
            L = truncated(L, rank)
            return L, exact.value(L), good

        return Descent(start, minimise, lambda L: basis.leave(truncated(L, rank)))

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        k = min(int(self.n_neighbors), n_samples)
        # of blocks: distances, and margins and slopes for every target
        flops = 2.0 * n_samples**2 * self._start_rank(n_samples, n_features)
        # the pairs of few points are looked at all at once
        some = bytes_at_once(BLOCK_BYTES, flops) if n_samples > _margin.FEW_POINTS else np.inf
        blocks = (1 + 3 * k) * min(some, 6 * n_samples**2)
        listed = 24 * n_samples * min(100, n_samples)
        return super()._fit_bytes(n_samples, n_features) + blocks + listed

    def _start_rank(self, n_samples: int, n_features: int) -> int:
        """How many rows the map has on the way down."""
        rank = int(self.n_components or n_features)
        if self._optimises_matrix and n_samples * n_features**2 > _MANY_PRODUCTS:
            return min(2 * rank, n_features)
        return n_features if self._optimises_matrix else rank

    def _sorted_targets(
        self, training: Training, neighbors: Any, order: np.ndarray
    ) -> tuple[np.ndarray, Triplets | None]:
        """Target neighbours, as row numbers after sorting by class, and their weights."""
        X, codes, gram, weights = training
        if self._optimises_matrix and X.shape[1] > X.shape[0]:
            warn(
                f"Got {X.shape[1]} features of {X.shape[0]} points: the map can then draw any "
                "class together, and new points may fare worse than without learning. Try "
                "sklearn.decomposition.PCA(50) before, or Kernelized(LMNN())."
            )
        if neighbors is None:
            where = X if gram is None else gram.whiten(to_numpy(X))
        else:
            where = check_neighbors(neighbors, X, rows=True)
        if namespace(where).isdtype(where.dtype, "integral"):
            targets = _check_targets(to_numpy(where), codes)
        else:
            targets = target_neighbors(where, codes, self.n_neighbors)
        why = "LMNN pulls points towards neighbours of their own class"
        refuse_lone_points(np.any(targets >= 0), why)
        position = np.empty(len(order) + 1, dtype=np.intp)
        position[order] = np.arange(len(order))
        position[-1] = -1  # what the index -1, a missing neighbour, maps to
        if weights is None:
            return position[targets][order], None
        parts, weights = neighbor_parts(targets, weights)[order], weights.take(order)
        return position[targets][order], Triplets(weights.shares[:, None] * parts, weights.masses)


@dataclass(eq=False, repr=False, kw_only=True)
class LMNN(LargeMargin):
    r"""Large margin nearest neighbours.

    The target neighbours of a point are the nearest points of its class. They are drawn near, and
    a point of another class should be farther away than each of them, by a margin of one [1]_:

    .. math:: \min_{M \succeq 0}\; \sum_i \sum_{j \in T_i} \Bigl( d_{ij}
              + c \sum_{l:\, y_l \ne y_i} [1 + d_{ij} - d_{il}]_+ \Bigr) + \rho \operatorname{tr} M

    with T_i the ``n_neighbors`` targets of point i, squared distances d in the metric
    :math:`M = L^\top L`, and ρ the parameter ``reg``. The problem is convex in M.

    Comparisons can take the place of labels: then near pairs are drawn together, each once, and
    the far pair of a comparison should be farther than the near one by the margin.
    O(n² r + n d r) time an evaluation; one block of rows × n in memory.

    Parameters
    ----------
    n_components : int, default=None
        Rank to which the optimal M is truncated, as in [2]_; :class:`LMCA` optimises such a map.
        Where n d² is over 1e9, as of 10,000 embeddings of 384 features, M is sought among those of
        twice this rank.
    n_neighbors : int, default=3
        Target neighbours of each point; points of smaller classes use those they have.
    c : float, default=1.0
        Weight of the margin violations.
    init : {'auto', 'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='auto'
        The first map; all but an array are scaled to the length with the smallest objective.
    reg : float, default=0.0
        Weight of the squared Frobenius norm of L, i.e. of the trace of M.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance on the objective, relative to it or to the number of target pairs.
    warm_start : bool, default=False
        Start at the ``components_`` of the last fit, of as many features.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.
    random_state : int, RandomState or None, default=None
        For ``init='random'``.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    loss_ : float
        The objective, with the plain hinge, at L.
    loss_curve_ : list of float
        The objective, with the smoothed hinge, after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LMCA : The same objective over maps of low rank.
    NCA : Probabilities instead of margins.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    .. [2] Chatpatanasiri et al., "On kernelizing Mahalanobis distance learning algorithms",
       arXiv:0804.1441 (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN().fit(X, y).transform(X).shape
    (150, 4)
    """

    _optimises_matrix = True
    _enough_rows = 5_000  # of few coordinates that hold predictions


def filled(L: np.ndarray, most: int) -> np.ndarray:
    """A map of so many rows: a factor of fewer would confine the descent to them."""
    missing = most - L.shape[0]
    if missing <= 0:
        return L
    rest = linalg.null_space(L).T[:missing]
    return np.vstack([L, 0.01 * linalg.norm(L, 2) * rest])


def _check_targets(targets: np.ndarray, codes: np.ndarray) -> np.ndarray:
    n = len(codes)
    if targets.min() < -1 or targets.max() >= n:
        raise ValueError(
            f"Got target neighbours from {targets.min()} to {targets.max()}, but expected row "
            f"numbers from 0 to {n - 1}, or -1 for none."
        )
    rows, slots = np.nonzero(targets >= 0)
    wrong = codes[rows] != codes[targets[rows, slots]]
    if np.any(wrong):
        i = int(rows[wrong][0])
        raise ValueError(
            f"Got a target neighbour of another class for row {i}, but expected targets of the "
            "point's own class."
        )
    return targets.astype(np.intp)
