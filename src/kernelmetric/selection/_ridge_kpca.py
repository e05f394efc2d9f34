"""Few coordinates that hold what the labels say: RidgeKPCA."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from scipy import linalg

from kernelmetric.compute import (
    fits_budget,
    is_sparse,
    like,
    precise,
    rough,
    rounding_of,
    take_rows,
    to_numpy,
)
from kernelmetric.compute.watch import stage
from kernelmetric.graphs import Targets, coded_targets
from kernelmetric.inputs import Weights, is_objects, labels_and_weights
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import Numbers, is_auto, require_word
from kernelmetric.selection._ridge_solution import (
    LEAST_OF_CLASS,
    boundary_rows,
    lengths,
    mean_of_copies,
    refuse_large,
    ridge_of,
    solved_by_landmarks,
    solved_exactly,
    without_ridge,
)
from kernelmetric.solvers import column_signs
from kernelmetric.spaces import Nystroem, Space, _base

MOST_COMPONENTS = 32
ROWS_PER_COMPONENT = 50  # fewer, and a learner finds directions that mean nothing to new points
DOUBLE_ROWS = 2_000  # up to here K is kept in all digits
ALL_ROWS = 4_000  # up to here always
HELD_ROWS = 12_000  # up to here where the memory has room; every point is an anchor
ENOUGH_ROWS = 200_000  # more say nothing new of ridge regression on so many landmarks
N_LANDMARKS = 2_000
_SMOOTH = 16, 6  # landmarks for an effective dimension, and points for a landmark
_ROWS_OF_LANDMARKS, _MOST_TIMES = 100_000, 10.0  # of more rows, more landmarks, by a cube root
EASY_ROWS = 1_000, 1_000  # of easy classes: rows that resemble all, and those that part them
_FEW_MISTAKES = 0.01  # on points left out: more of them would hardly be right by more points
_MOST_DIRECTIONS = 128  # of ridge regression; more classes than that share them
_SHARE = 0.3  # spread of all components beside that of the predictions
_ROWS_FOR_RIDGE = 500  # to choose the ridge of a given kernel
_HELD_BYTES = 5.0  # for each entry of a Gram matrix that is kept in half of the digits
_WIDE_BYTES = 24.0  # in all digits, with what is solved beside it
_TIMES_ROUNDING = 40.0  # of a Gram matrix, as an eigenvalue: a ridge below gets lost
_RELATIVE_CUT = 1e-10
_OF_ONE_FIT = "boundary_rows", "written_kernel"  # per-fit caches, not copied


@dataclass(eq=False, repr=False)
class RidgeKPCA(Space):
    r"""Predictions of ridge regression, and leading kernel principal components beside them.

    Ridge regression in the feature space predicts the labels, a column for each class, or the
    numbers. A point's coordinates are its predictions :math:`f(x)`, less their mean, and its
    leading components, together .3 times as widely spread, turned to their principal axes. Linear
    functions of few coordinates can then do what ridge regression does in the whole feature space.

    :meth:`transform` is one smooth function of the features for every point. :meth:`fit_transform`
    predicts each *training* point from the other points, in closed form. So the classes overlap
    there as they will among new points. Copies of a point share one place, the mean of theirs.

    The number n of points says how ridge regression is solved:

    - Up to 2,000 points exactly, in float64 and O(n³) time.
    - Up to 4,000 points exactly in float32, with one n × n array; up to 12,000 points likewise, if
      the memory budget has room for the array. A ridge that is too small for float32 asks for
      float64. If the budget has no room for that, an automatic ridge is raised.
    - More points by m landmarks that stand for the kernel, in O(n m²) time. How far a point moves
      its own prediction is then estimated, to about an eighth. A smooth kernel needs so few
      landmarks that they are used from 4,000 points on.
    - More than 4,000 points of classes that are easily told apart by 2,000 boundary rows
      (``rows``): 1,000 that resemble all, and the 1,000 that are predicted least surely from these.

    Parameters
    ----------
    n_components : int or 'auto', default='auto'
        Number of leading components. 'auto' is one for every 50 points, at least 2 and at most 32.
    kernel : Kernel, str or callable, default=None
        The kernel; None is the RBF of median width.
    ridge : float or 'auto', default='auto'
        The ridge λ. 'auto' is that which :class:`LeaveOneOutRidge` chose with the kernel; the λ of
        a kernel written as ``k + λ Delta()``; or that which predicts 500 left-out points best.
    n_landmarks : int or 'auto', default='auto'
        Landmarks where points are too many. 'auto' is 2,000 up to 100,000 points, twice as many for
        eight times the points, up to a million; of a smooth kernel, a sixth of up to 12,000 points.
    rows : {'auto', 'all', 'boundary', 'sample'}, default='auto'
        Which rows ridge regression takes of more than 4,000. 'auto' is 'boundary' where
        :class:`LeaveOneOutRidge` gave another class to at most one in a hundred left-out points;
        sparse points, Gram matrices, numbers and over a hundred classes have no boundary rows.
        Else it is a 'sample' of 200,000, of all classes, where there are more. The other rows are
        placed as new points are.
    random_state : int, RandomState or None, default=0
        For the start of the eigensolver, the landmarks, and the rows that choose a ridge.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points, without its ridge.
    ridge_ : float
        The ridge.
    anchors_ : array of shape (n, d) or (m, d)
        The training points, those that ridge regression took, or the landmarks.
    n_landmarks_ : int
        Number m of landmarks; 0 where training points are the anchors.
    rows_ : {'all', 'boundary', 'sample'}
        Which rows were taken.
    projection_ : array of as many rows as there are anchors, and rank_ columns
        The matrix P of z(x) = f(x)ᵀ P - o.
    offset_ : array of shape (1, rank_)
        The row o.
    eigenvalues_ : ndarray of shape (rank_,)
        Sum of the squares of training points along each coordinate, by weights, descending.
    rank_ : int
        Number of coordinates.
    n_directions_ : int
        How many of them predictions need.
    predictor_ : ndarray of shape (rank_, p)
        Coordinates times this matrix, plus ``means_``, are the predictions of ridge regression: of
        ±1 for each of ``classes_``, or of standardized numbers.
    means_ : ndarray of shape (p,)
        Means of what is predicted.
    classes_ : ndarray of shape (p,) or None
        The class of each column; None for numbers, and for more than 128 classes.
    explained_variance_ratio_ : float
        Fraction of the variance in the feature space that the leading components keep.
    basis_gram_ : None
        Coordinates are compared by Euclidean distance.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> space = RidgeKPCA(8, kernel=LeaveOneOutRidge()).fit(X, y)
    >>> space.transform(X).shape  # eight components, and predictions of three classes
    (150, 10)
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    kernel: Any = None
    ridge: float | str = "auto"
    n_landmarks: int | str = "auto"
    rows: str = "auto"
    random_state: Any = 0

    knows_labels = True
    boundary_rows = None  # row numbers, after a fit that took them
    written_kernel = None  # bound, with its ridge, after a fit

    def _check_parameters(self) -> None:
        count = Numbers(Integral, low=1, words=("auto",))
        count.check(self, "n_components")
        Numbers(Real, low=0, above=True, words=("auto",)).check(self, "ridge")
        count.check(self, "n_landmarks")
        require_word("rows", self.rows, ("auto", "all", "boundary", "sample"))

    def most_rank(self, n_samples: int) -> int:
        """The most coordinates that there may be of so many points."""
        self._check_parameters()
        return self._n_leading(n_samples) + _MOST_DIRECTIONS

    def _n_leading(self, n: int) -> int:
        if not is_auto(self.n_components):
            return int(self.n_components)
        return min(max(2, n // ROWS_PER_COMPONENT), MOST_COMPONENTS)

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        n, width = n_samples, self.most_rank(n_samples)
        if n <= ALL_ROWS:
            return 8.0 * n * (3 * n + 4 * min(width, n) + 2 * n_features)
        if self._held(n):
            entry = (2.0 if fits_budget(_WIDE_BYTES * n * n) else 1.0) * _HELD_BYTES  # or more
            return entry * n * n + 8.0 * n * (6 * width + 2 * n_features)
        some = min(n, ENOUGH_ROWS)
        landmarks = Nystroem(self.most_landmarks(n))._peak_bytes(some, n_features)
        return landmarks + 8.0 * some * (4 * width + 3 * n_features) + 8.0 * n * width

    def most_landmarks(self, n_samples: int) -> int:
        """How many landmarks there are, where so many points have any."""
        if not is_auto(self.n_landmarks):
            return int(self.n_landmarks)
        return int(N_LANDMARKS * np.clip(n_samples / _ROWS_OF_LANDMARKS, 1, _MOST_TIMES) ** (1 / 3))

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        y, weights = labels_and_weights(y)
        expected = "labels or numbers, one for each point; without them try KPCA(32)"
        require_target(y, "RidgeKPCA", expected)
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)
        targets = coded_targets(y, X)
        Y = targets.columns()
        self.classes_ = _classes_of(y, targets)
        few_classes = targets.values is None and LEAST_OF_CLASS * Y.shape[1] <= EASY_ROWS[0]
        if Y.shape[1] > _MOST_DIRECTIONS:  # fewer columns still tell all classes apart
            drawn = np.random.RandomState(0).standard_normal((Y.shape[1], _MOST_DIRECTIONS))
            Y = Y @ drawn
        with np.errstate(over="ignore"):
            norms = np.sum(to_numpy(self.kernel_.diag(X)), dtype=np.float64)
            refuse_large(X.shape[0] * norms)
        self.ridge_ = self._chosen_ridge(X, Y, targets, weights)
        self.written_kernel = self.kernel_
        self.kernel_ = without_ridge(self.kernel_)[0]
        plain = not (is_sparse(X) or is_objects(X) or self.kernel_.pairwise)
        boundary = X.shape[0] > ALL_ROWS and plain and few_classes and self._easy
        sampled = X.shape[0] > ENOUGH_ROWS and not boundary and self.rows != "all"
        self.rows_ = "boundary" if boundary else "sample" if sampled else "all"
        if boundary:
            ridge = self.ridge_ if weights is None else self.ridge_ / weights.unit
            rows = boundary_rows(self.kernel_, ridge, X, Y, *EASY_ROWS)
            self.boundary_rows = rows
        elif sampled:
            rows = np.sort(targets.sample(ENOUGH_ROWS, self.random_state))
        else:
            return self._learn_from(X, Y, weights, X.shape[0])
        some = None if weights is None else weights.take(rows)
        of_rows = self._learn_from(take_rows(X, rows), Y[rows], some, X.shape[0])

        def coordinates() -> Any:  # the others are placed as new points are
            Z = np.array(to_numpy(self._coordinates(X)))
            Z[rows] = to_numpy(of_rows())
            return like(Z, X)

        return coordinates

    def _chosen_ridge(
        self, X: Any, Y: np.ndarray, targets: Targets, weights: Weights | None
    ) -> float:
        """The ridge that was written; or chosen, with the kernel or here, for a mean weight."""
        if not is_auto(self.ridge):
            return float(self.ridge)
        unit = 1.0 if weights is None else weights.unit
        chosen = getattr(self.kernel_, "ridge_", None)
        if chosen is not None:
            return unit * float(chosen)
        smooth, written, _ = without_ridge(self.kernel_)
        if written > 0:
            return written
        rows = targets.sample(_ROWS_FOR_RIDGE, self.random_state)
        some = take_rows(X, rows)
        K = to_numpy(take_rows(some.T, rows).T if smooth.pairwise else smooth(some))
        roots = np.ones(len(rows)) if weights is None else np.sqrt(weights.masses[rows])
        eps = rounding_of(K)
        n_features = 1 if smooth.pairwise else X.shape[1]
        rounding = _base.round_off(float(np.trace(K)), n_features, eps=eps)
        found, _, spectrum = ridge_of(K.astype(np.float64), Y[rows], roots)
        _base.refuse_indefinite(*spectrum, rounding=rounding, eps=eps)
        return unit * found

    @property
    def _easy(self) -> bool:
        """Whether boundary rows are asked for, or next to no point left out got another class."""
        if self.rows != "auto":
            return self.rows == "boundary"
        return getattr(self.kernel_, "loo_mistakes_", np.nan) <= _FEW_MISTAKES

    @staticmethod
    def _held(n: int) -> bool:
        """Whether K of more points is kept, and ridge regression solved with it."""
        return n <= HELD_ROWS and fits_budget(_HELD_BYTES * n * n)

    def _learn_from(
        self, X: Any, Y: np.ndarray, weights: Weights | None, n_all: int
    ) -> Callable[[], Any]:
        """Learn from rows of so many, as they are or by landmarks; return their coordinates."""
        n, pairwise = X.shape[0], self.kernel_.pairwise
        # Landmarks for a sixth of the points may say all that the kernel has to say.
        least = np.prod(_SMOOTH) * getattr(self.kernel_, "effective_dimension_", np.inf)
        smooth = ALL_ROWS < n <= HELD_ROWS and least <= n and self.rows_ == "all"
        smooth = smooth and not pairwise and is_auto(self.n_landmarks)
        rank, held = self._n_leading(n), self._held(n) or self.rows_ == "boundary"
        exact = n <= ALL_ROWS or (held and not smooth)
        kind = precise(like(np.zeros(1), X))
        if exact and held and n > DOUBLE_ROWS and not pairwise:
            kind = self._kept_digits(kind, X, weights)
        given = X, Y, self.ridge_, weights
        if exact:
            found = solved_exactly(self.kernel_, *given, rank, self.random_state, kind=kind)
        elif pairwise:
            raise ValueError(
                f"Got the Gram matrix of {n} points, but RidgeKPCA expected at most {ALL_ROWS}, or "
                f"{HELD_ROWS} where the memory budget has room: try KPCA(100), or Nystroem(1000)."
            )
        else:
            m = n // _SMOOTH[1] if smooth else self.most_landmarks(n_all)
            landmarks = Nystroem(m, kernel=self.kernel_, random_state=self.random_state)
            with stage(f"ridge regression of {n:,} rows on {m:,} landmarks"):
                found = solved_by_landmarks(landmarks, *given, rank, self.random_state)
        counts = np.ones(n) if weights is None else weights.counts
        F = mean_of_copies(found.left_out, self._seen(X), counts)
        T = self._axes(F, found.components, counts, found.variance)
        self.means_ = counts @ Y / counts.sum()
        self.anchors_, self.n_landmarks_ = found.anchors, 0 if exact else found.anchors.shape[0]
        self.projection_ = like(found.basis @ T, found.kind)
        self.offset_ = like(found.offset @ T, found.kind)
        return lambda: like(np.hstack([F, found.components]) @ T, found.kind)

    def _kept_digits(self, kind: Any, X: Any, weights: Weights | None) -> Any:
        """An array with the digits that K is kept in: left-out points are right to a hundredth."""
        norms = to_numpy(self.kernel_.diag(X))
        largest = float(np.max(norms if weights is None else weights.counts * norms))
        lost = max(_TIMES_ROUNDING * np.sqrt(len(norms)) * largest, np.finfo(float).tiny)
        if fits_budget(_WIDE_BYTES * len(norms) ** 2):
            return rough(kind, self.ridge_ / lost, dense=True)
        kind = rough(kind)
        if is_auto(self.ridge):
            self.ridge_ = max(self.ridge_, lost * rounding_of(kind))
        return kind

    def _seen(self, X: Any) -> Any:
        """The points as the kernel sees them: without features of scale zero."""
        scales = getattr(self.kernel_, "scales", None)
        if scales is None or is_sparse(X):
            return X
        return to_numpy(X)[:, np.any(np.atleast_2d(scales) != 0, axis=0)]

    def _axes(self, F: np.ndarray, C: np.ndarray, counts: np.ndarray, total: float) -> np.ndarray:
        """What takes predictions and components to coordinates: scales, and a rotation."""
        Z = np.sqrt(counts)[:, None] * np.hstack([F, C])
        p = F.shape[1]
        sizes = [float(lengths(part.reshape(-1, 1))[0]) for part in (Z[:, :p], Z[:, p:])]
        share = _SHARE * sizes[0] / sizes[1] if min(sizes) > 0 else 1.0
        scales = np.append(np.ones(p), np.full(C.shape[1], share))
        Z *= scales
        values, V = linalg.eigh(Z.T @ Z)
        values, V = values[::-1], V[:, ::-1]
        wide = values > _RELATIVE_CUT * max(values[0], 0.0)
        if not wide.any():
            _base.refuse_rank_zero(len(Z), self.kernel_)
        V = V[:, wide]
        self.eigenvalues_, self.rank_ = values[wide], int(np.sum(wide))
        self.n_directions_ = max(0, self.rank_ - C.shape[1])
        self.explained_variance_ratio_ = min(1.0, float(sizes[1] ** 2 / total))
        V *= column_signs(Z @ V)
        self.predictor_ = np.ascontiguousarray(V[:p].T)  # V is orthonormal: it gives back F
        return scales[:, None] * V

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: part for name, part in state.items() if name not in _OF_ONE_FIT}


def _classes_of(y: Any, targets: Targets) -> np.ndarray | None:
    """The class of each column of targets; None for numbers, and where columns are mixed."""
    if targets.values is not None or targets.key.max() >= _MOST_DIRECTIONS:
        return None
    labels = np.asarray(to_numpy(y) if is_array_api_obj(y) else y).reshape(-1)
    return labels[np.unique(targets.key, return_index=True)[1]]
