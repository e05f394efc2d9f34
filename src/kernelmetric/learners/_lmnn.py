"""Large margin nearest neighbours, convex; and its low-rank factored relative, LMCA."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import (
    calm_blas,
    like,
    lmnn_hinge,
    lmnn_hinge_on,
    mine_impostors,
    namespace,
    take_rows,
    to_numpy,
)
from kernelmetric.graphs import target_neighbors
from kernelmetric.learners._base import (
    GradientLearner,
    as_gram,
    centered,
    check_elsewhere,
    check_number,
    frobenius,
    in_single,
    to_single,
)
from kernelmetric.solvers import (
    Gram,
    Iterations,
    minimize_lbfgs,
    minimize_projected,
    with_callbacks,
)

# The hinge is smoothed by a quadratic corner that narrows from stage to stage; L-BFGS and FISTA
# both need a continuous gradient.
_FIRST_CORNER = 1.0
_CORNER_FACTOR = 0.1
_FIRST_ROUND = 10  # iterations before the impostors are looked for again; doubles every round
_WATCHED = 200  # impostors of a point on the first list; doubles whenever a list was too short
_MAX_ROUNDS = 60
_DENSE_ABOVE = 0.05  # share of all pairs beyond which looking at every pair is faster
_STAGE_TOL = 1e-2  # tolerance of a stage beside the width of its corner: early stages may be rough


class _LargeMargin(GradientLearner):
    """The LMNN objective, and the life-cycle of those who minimise it."""

    def __init__(
        self,
        n_components=None,
        *,
        n_neighbors=3,
        c=1.0,
        init="auto",
        reg=0.0,
        max_iter=500,
        tol=1e-3,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.c = c
        self.init = init
        self.reg = reg
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, *, gram: Any = None, neighbors: Any = None) -> _LargeMargin:
        """Learn the map from labelled points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,)
            Class labels.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        neighbors : array of shape (n_samples, p), default=None
            Where target neighbours come from: other coordinates of the same points (floats), or
            the row numbers of the target neighbours themselves (integers, -1 for none). None
            takes X.

        Returns
        -------
        object
            The fitted learner.
        """
        self._check_iteration_parameters()
        check_number(self, "n_neighbors", Integral, low=1)
        check_number(self, "c", Real, low=0)
        X, codes = self._check_training(X, y)
        gram = as_gram(gram)
        rank = self._check_n_components(X.shape[1])
        order = np.argsort(codes, kind="stable")  # the block kernel wants rows sorted by class
        targets = self._sorted_targets(X, codes, gram, neighbors, order)
        points = take_rows(centered(X), order)
        # The descent sees points of unit size and so maps of moderate size, whatever the units.
        size = float(np.sqrt(np.mean(to_numpy(points).astype(np.float64) ** 2) * X.shape[1]))
        exact = _Problem(points / size, targets, codes[order], self.c, self.reg / size**2, gram)
        problem = exact.in_single() if in_single(points, self.tol) else exact
        start = self._start(
            X, codes, gram, self._start_rank(rank), lambda L: problem.scaled(L * size) / size
        )
        if not (self.warm_start and hasattr(self, "_corner")):
            self._corner = _FIRST_CORNER
        report = Iterations(self, self.max_iter, lambda L: {"components_": L / size}, X, y)
        report.start(start * size)
        with calm_blas(4.0 * X.shape[0] ** 2 * start.shape[0]):
            L, self.converged_ = self._minimise(problem, start * size, report)
        L = self._reduce(L / size, rank, gram)
        self._store(L, X)
        self.loss_ = exact.value(L * size)
        self.loss_curve_ = report.loss_curve
        self.n_iter_ = len(report.loss_curve)
        self.converged_ = self.converged_ or report.stopped
        report.finish()
        self._warn_unless_converged()
        return self

    def _start_rank(self, rank: int) -> int:
        raise NotImplementedError

    def _minimise(self, problem: _Problem, start: np.ndarray, report: Iterations):
        """Descend on L with L-BFGS, the corner of the hinge narrowing from stage to stage."""
        L, good, self._corner = _descend(
            problem, start, report, self.max_iter, self.tol, self._corner
        )
        return L, good

    def _reduce(self, L: np.ndarray, rank: int, gram: Gram | None) -> np.ndarray:
        return L

    def _sorted_targets(
        self, X: Any, codes: np.ndarray, gram: Gram | None, neighbors: Any, order: np.ndarray
    ) -> np.ndarray:
        """Target neighbours, as row numbers after sorting by class."""
        if neighbors is None:
            where = X if gram is None else gram.whiten(to_numpy(X))
        else:
            where = check_elsewhere(neighbors, X)
        if isinstance(where, np.ndarray) and where.dtype.kind in "iu":
            targets = _check_targets(where, codes)
        else:
            targets = target_neighbors(where, codes, self.n_neighbors)
        if not np.any(targets >= 0):
            raise ValueError(
                "Got no class with two members, but expected at least one: LMNN pulls points "
                "towards neighbours of their own class."
            )
        position = np.empty(len(order) + 1, dtype=np.intp)
        position[order] = np.arange(len(order))
        position[-1] = -1  # what the index -1, a missing neighbour, maps to
        return position[targets][order]


class LMNN(_LargeMargin):
    """Large margin nearest neighbours.

    Minimises, over all metrics ``M = LᵀL``, the convex objective of section 2.2 of [1]_:
    ``Σ_ij w_ij d_ij + c Σ_ijl w_ij [y_l ≠ y_i] [1 + d_ij - d_il]_+ (+ reg tr M)``, where ``d`` are
    squared distances and ``w_ij`` marks the ``n_neighbors`` target neighbours of each point.

    Parameters
    ----------
    n_components : int, default=None
        Rank to which the optimal M is truncated afterwards, as in [2]_; None keeps it whole. To
        *optimise* a map of low rank, which is another algorithm, use :class:`LMCA`.
    solver : {'lbfgs', 'projected'}, default='lbfgs'
        'lbfgs' descends on a square factor L, fast; 'projected' is accelerated projected gradient
        on M, convex all the way: the reference.
    n_neighbors : int, default=3
        Target neighbours of each point; points of smaller classes use those they have.
    c : float, default=1.0
        Weight of the margin violations.
    init : {'auto', 'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='auto'
        The first map; all but an array are scaled to the length with the smallest objective.
    reg : float, default=0.0
        Weight of the squared Frobenius norm of L, i.e. of the trace of M.
    max_iter : int, default=500
        The most iterations.
    tol : float, default=1e-3
        Tolerance on the objective, relative to it or to one for each target pair, whichever is
        larger: the margin is one, and costs far below it are as good as none.
    warm_start : bool, default=False
        Begin at the ``components_`` of the last fit.
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

    Notes
    -----
    O(n² r + n d r) time an evaluation; one block of rows × n in memory.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    .. [2] Chatpatanasiri et al., "On kernelizing Mahalanobis distance learning algorithms",
       arXiv:0804.1441 (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelmetric import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LMNN(), KNeighborsClassifier(1))
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(
        self,
        n_components=None,
        *,
        solver="lbfgs",
        n_neighbors=3,
        c=1.0,
        init="auto",
        reg=0.0,
        max_iter=500,
        tol=1e-3,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        super().__init__(
            n_components,
            n_neighbors=n_neighbors,
            c=c,
            init=init,
            reg=reg,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.solver = solver

    def _start_rank(self, rank: int) -> int:
        return self.n_features_in_  # M is optimised whole, and truncated at the end

    def _minimise(self, problem: _Problem, start: np.ndarray, report: Iterations):
        if self.solver == "lbfgs":
            return super()._minimise(problem, start, report)
        if self.solver == "projected":
            L, good, self._corner = _descend_convex(
                problem, start, report, self.max_iter, self.tol, self._corner
            )
            return L, good
        raise ValueError(f"Got solver={self.solver!r}, but expected 'lbfgs' or 'projected'.")

    def _reduce(self, L: np.ndarray, rank: int, gram: Gram | None) -> np.ndarray:
        if self.n_components is None or rank >= L.shape[0]:
            return L
        if gram is None:
            _, s, Vt = linalg.svd(L, full_matrices=False)
            return s[:rank, None] * Vt[:rank]
        W = gram.inv_sqrt()  # truncate where the basis is orthonormal
        _, s, Vt = linalg.svd(L @ gram.matrix @ W, full_matrices=False)
        return s[:rank, None] * Vt[:rank] @ W.T


class LMCA(_LargeMargin):
    """Large margin component analysis: the LMNN objective over maps of low rank.

    Optimises an ``n_components`` × d map directly. The problem is no longer convex, but for a
    small rank the result is better than LMNN's metric truncated to it.

    Parameters
    ----------
    n_components : int, default=None
        Rank of the map; None keeps all dimensions, where the objective is LMNN's.
    n_neighbors : int, default=3
        Target neighbours of each point; points of smaller classes use those they have.
    c : float, default=1.0
        Weight of the margin violations.
    init : {'auto', 'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='auto'
        The first map; all but an array are scaled to the length with the smallest objective.
    reg : float, default=0.0
        Weight of the squared Frobenius norm of L.
    max_iter : int, default=500
        The most L-BFGS iterations.
    tol : float, default=1e-3
        Tolerance on the objective, relative to it or to one for each target pair, whichever is
        larger: the margin is one, and costs far below it are as good as none.
    warm_start : bool, default=False
        Begin at the ``components_`` of the last fit.
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

    References
    ----------
    .. [1] Torresani and Lee, "Large margin component analysis", NIPS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric import LMCA
    >>> X, y = load_digits(return_X_y=True)
    >>> LMCA(n_components=3, tol=1e-2).fit(X[:200], y[:200]).transform(X).shape
    (1797, 3)
    """

    def _start_rank(self, rank: int) -> int:
        return rank


class _Problem:
    """LMNN's objective on sorted points: a function of L, or of M, and of the corner's width."""

    def __init__(
        self,
        points: Any,
        targets: np.ndarray,
        codes: np.ndarray,
        c: float,
        reg: float,
        gram: Gram | None,
    ):
        self.points, self.targets, self.codes = points, targets, codes
        self.c, self.reg, self.gram = c, reg, gram
        # The margin is 1, so a cost well below 1 for each target pair is as good as none:
        # tolerances are relative to the objective or to that, whichever is larger.
        self.unit = float(np.count_nonzero(targets >= 0))
        self.xp = namespace(points)

    def in_single(self) -> _Problem:
        """The same problem in float32, to descend on."""
        points = to_single(self.points)
        return _Problem(points, self.targets, self.codes, self.c, self.reg, self.gram)

    def value(self, L: np.ndarray) -> float:
        """The objective with the plain hinge, over all impostors."""
        return self.mine(L)[0]

    def mine(self, L: np.ndarray, most: int = _WATCHED) -> tuple[float, np.ndarray]:
        """The objective, and the impostor pairs worth watching near L."""
        E = self._embedded(L)
        value, pairs = mine_impostors(E, self.targets, self.codes, self.c, most=most)
        return value + self.reg * frobenius(L, self.gram)[0], pairs

    def of_map(self, L: np.ndarray, pairs: np.ndarray, corner: float) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to L, over the listed impostors or, if many, over all."""
        E = self._embedded(L)
        if len(pairs) > _DENSE_ABOVE * len(self.codes) ** 2:
            value, product = lmnn_hinge(E, E, self.targets, self.codes, self.c, corner)
        else:
            value, product = lmnn_hinge_on(pairs, E, E, self.targets, self.c, corner)
        penalty, penalty_gradient = frobenius(L, self.gram)
        gradient = 2.0 * to_numpy(product.T @ self.points) + self.reg * penalty_gradient
        return value + self.reg * penalty, gradient

    def of_matrix(self, M: np.ndarray, corner: float) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to M, where the objective is convex."""
        X = self.points
        L = like(factor(M), X)
        value, product = lmnn_hinge(X @ L.T, X, self.targets, self.codes, self.c, corner)
        G = np.eye(len(M)) if self.gram is None else self.gram.matrix
        return value + self.reg * float(np.sum(G * M)), to_numpy(X.T @ product) + self.reg * G

    def scaled(self, L: np.ndarray) -> np.ndarray:
        """The multiple of L with the smallest objective, which is convex in its square."""
        E = self._embedded(L)
        i, slot = np.nonzero(self.targets >= 0)
        difference = take_rows(E, i) - take_rows(E, self.targets[i, slot])
        pull = float(self.xp.mean(self.xp.sum(difference * difference, axis=1)))
        if not pull > 0:
            return L
        squares = 4.0 ** np.arange(-3, 4) / pull  # margin 1 against the typical target distance
        values = [self.value(L * np.sqrt(s)) for s in squares]
        return L * np.sqrt(squares[int(np.argmin(values))])

    def _embedded(self, L: np.ndarray) -> Any:
        return self.points @ like(L, self.points).T


def _descend(
    problem: _Problem,
    L: np.ndarray,
    report: Iterations,
    max_iter: int,
    tol: float,
    corner: float,
) -> tuple[np.ndarray, bool, float]:
    """L-BFGS in rounds: on the impostors known so far, then a look at all of them.

    A round ends in the exact objective, which shows what the round could not see: impostors not
    on its list, and the corner of the hinge. The larger of the two is mended before the next.
    """
    done, round_length, finish = 0, _FIRST_ROUND, False
    unit = problem.unit
    most = _WATCHED
    _, pairs = problem.mine(L)
    for _ in range(_MAX_ROUNDS):
        known, width = pairs, corner

        def objective(L: np.ndarray, known=known, width=width) -> tuple[float, np.ndarray]:
            value, gradient = problem.of_map(L, known, width)
            return value / unit, gradient / unit

        minimum = minimize_lbfgs(
            objective,
            L,
            max_iter=max(1, min(round_length, max_iter - done)),
            tol=0.1 * tol if finish else max(0.1 * tol, _STAGE_TOL * corner),
            report=lambda L, value: report(L, value * unit),
        )
        L, done = minimum.x, done + minimum.n_iter
        exact, nearby = problem.mine(L, most)
        seen = problem.of_map(L, pairs, 0.0)[0]
        missing, rounded = exact - seen, seen - minimum.value * unit
        near = minimum.converged and max(missing, rounded) <= tol * max(exact, unit)
        good = near and (finish or _STAGE_TOL * corner <= 0.1 * tol)
        if good or report.stopped or done >= max_iter:
            return L, good, corner
        finish = finish or near
        if minimum.converged and not near and missing <= rounded:
            corner *= _CORNER_FACTOR
        most *= 1 + (missing > rounded)
        pairs = _union(pairs, nearby, len(problem.codes))
        round_length *= 2
    return L, False, corner


def _union(pairs: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    """All pairs of both lists, once each, sorted."""
    keys = [p[:, 0].astype(np.int64) * n + p[:, 1] for p in (pairs, others)]
    merged = np.union1d(*keys)
    return np.stack([merged // n, merged % n], axis=1).astype(np.int32)


def _descend_convex(
    problem: _Problem,
    L: np.ndarray,
    report: Iterations,
    max_iter: int,
    tol: float,
    corner: float,
) -> tuple[np.ndarray, bool, float]:
    """Projected gradient on M, to a certified gap.

    For convex f and any M' with trace at most T, ``f(M') >= f(M) + <G, M' - M>`` and
    ``<G, M'> >= T min(0, λ_min(G))``: so ``<G, M> + T |min(0, λ_min(G))|`` bounds how far M is
    from the best of them; T is taken as twice the trace of M.
    """
    M = L.T @ L
    done, finish, stage_tol = 0, False, tol
    step = 1.0 / max(float(np.sum(M * M)), 1.0)

    def good_enough(M: np.ndarray, value: float, G: np.ndarray) -> bool:
        lowest = min(0.0, float(linalg.eigvalsh(G, subset_by_index=[0, 0])[0]))
        gap = float(np.sum(G * M)) + 2.0 * float(np.trace(M)) * -lowest
        return gap <= stage_tol * max(value, problem.unit)

    while True:
        width = corner
        stage_tol = 0.5 * tol if finish else max(0.5 * tol, _STAGE_TOL * corner)
        minimum, step = minimize_projected(
            lambda M: problem.of_matrix(M, width),  # noqa: B023 (used before width changes)
            _project_psd,
            M,
            max_iter=max(max_iter - done, 1),
            converged=good_enough,
            step=step,
            report=lambda M, value: report(factor(M), value),
        )
        M, done = minimum.x, done + minimum.n_iter
        exact = problem.of_matrix(M, 0.0)[0]
        near = exact - minimum.value <= 0.5 * tol * max(exact, problem.unit)
        good = near and minimum.converged and stage_tol <= 0.5 * tol
        if good or report.stopped or done >= max_iter:
            return factor(M), good, corner
        finish = finish or near
        if not near:
            corner *= _CORNER_FACTOR


def factor(M: np.ndarray) -> np.ndarray:
    """L with ``LᵀL = M``, from the eigenvectors with positive eigenvalues."""
    values, V = linalg.eigh(M)
    keep = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
    if not np.any(keep):
        return np.zeros((1, len(M)))
    return (V[:, keep] * np.sqrt(values[keep])).T[::-1]


def _project_psd(M: np.ndarray) -> np.ndarray:
    L = factor(0.5 * (M + M.T))
    return L.T @ L


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
