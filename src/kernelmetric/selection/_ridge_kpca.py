"""Few coordinates that lose nothing of what the labels need: RidgeKPCA."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from kernelmetric.compute import (
    Weights,
    calm_if_small,
    in_library_of,
    is_single,
    is_sparse,
    like,
    map_rows,
    namespace,
    sum_rows,
    take_rows,
    to_numpy,
    unweighed,
    wide_is_fast,
    widened,
    worth_keeping,
)
from kernelmetric.graphs import coded_targets
from kernelmetric.kernels import Delta, Kernel, Rescaled, Sum
from kernelmetric.selection._known_points import KnownPoints
from kernelmetric.selection._ridge_solution import (
    JITTER,
    LEAST_OF_CLASS,
    SharedRidge,
    centred,
    solution,
    solution_in_place,
    telling_rows,
)
from kernelmetric.solvers import OnSubspace, column_signs, krylov_eigenpairs
from kernelmetric.spaces import Nystroem, Space
from kernelmetric.spaces._base import block_size, embedded, own, refuse_rank_zero, times
from kernelmetric.spaces._centred_gram import CentredGram

N_COMPONENTS = 32
DOUBLE_ROWS = 2_000  # up to here ridge regression is solved in float64
ALL_ROWS = 4_000  # up to here always, in float32 where that is refined
HELD_ROWS = 12_000  # up to here where the memory has room; every point is an anchor
N_LANDMARKS = 2_000
EASY_ROWS = 1_000, 1_000  # of easy classes: rows that resemble all, and those that tell them apart
_FEW_MISTAKES = 0.01  # on points left out: more of them would hardly be right by more points
_DENSE_ROWS = 400  # below, LAPACK has the whole spectrum sooner than a few of its vectors
_LEADING_TOL = 1e-3  # of leading eigenvectors, which need only span what varies most
_MOST_DIRECTIONS = 128  # of ridge regression; more classes than that share them
_CALM = 0.05  # of n³: what many small products leave to the threads of a BLAS
_HELD_BYTES = 5.0  # for each entry of a Gram matrix that is kept in float32
_WIDE_BYTES = 24.0  # in float64, with what is solved beside it
_INDEFINITE = (
    "Got a Gram matrix with a negative eigenvalue, but expected a positive semi-definite "
    "kernel: try another kernel, or add a multiple of Delta()."
)
_RELATIVE_CUT = 1e-10
_OF_ONE_FIT = "_known_points", "boundary_rows"  # per-fit caches, not copied
_ROWS = ("auto", "all", "boundary")


class RidgeKPCA(Space):
    r"""Leading kernel principal components, and the directions of ridge regression beside them.

    Ridge regression of the labels, a column of Y for each class, has the solution
    :math:`\alpha = (HKH)^{-1} HY` where K holds its ridge as ``λ Delta()``. The leading components
    alone lose it: λ gives every training point a coordinate of its own, and rank cuts them all
    off. This space is spanned by the leading components *and* by the columns of
    :math:`\Phi^\top \alpha`, at most one for each class but one. Ridge regression on these few
    coordinates is that in the whole feature space, and a learner of metrics has what it needs to
    set noisy labels aside.

    Up to 2,000 points that is exact, in O(n³) time; up to 4,000 it is so, too, where the kernel has
    no ridge. With one, up to 12,000 it is exact in single precision, with one n × n array, where
    the memory budget has room for it. Beyond, the kernel without its ridge is that of landmarks,
    O(n m²) time, and the ridge of the training points is remembered with them: a point is known
    again where it lies within 1e-5 of the typical distance. Sparse points are not.

    Of more than 4,000 points whose classes are easily told apart, ridge regression takes 2,000
    boundary rows: 1,000 that resemble all, and the 1,000 that it predicts least surely from these.
    ``rows`` says when; ``anchors_`` are these points then. Inside
    :class:`~kernelmetric.Kernelized`, LMNN and LMCA learn from these points, too.

    Points that almost coincide share their ridge, which is a narrow Gaussian. Copies of a point
    count as one with their mean label.

    Parameters
    ----------
    n_components : int, default=32
        Number of leading components.
    kernel : Kernel, str or callable, default=None
        The kernel, with its ridge; None is the RBF of median width, which has none.
    n_landmarks : int, default=2000
        Landmarks where points are too many.
    rows : {'auto', 'all', 'boundary'}, default='auto'
        Which rows ridge regression takes of more than 4,000. 'auto' is 'boundary' where
        :class:`LeaveOneOutRidge` gave another class to at most one in a hundred points left out,
        its ``loo_mistakes_``. Sparse points, Gram matrices, kernels without a ridge, numbers and
        more than a hundred classes take all rows in any case.
    random_state : int, RandomState or None, default=0
        For the start of the eigensolver, and the landmarks.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    anchors_ : array of shape (n, d) or (m + n', d)
        The training points, or those that ridge regression took; where there are landmarks, these
        before them, and no copies.
    n_landmarks_ : int
        Number m of landmarks; 0 where every training point is an anchor.
    rows_ : {'all', 'boundary'}
        Which rows were taken.
    projection_ : array of as many rows as there are anchors, and rank_ columns
        The matrix P of z(x) = f(x)ᵀ P - o. Beside landmarks, the rows of the training points are
        where each of them lies apart from new points at its place.
    offset_ : array of shape (1, rank_)
        The row o.
    eigenvalues_ : ndarray of shape (rank_,)
        n times the variance of the training points along each coordinate, descending.
    rank_ : int
        Number of coordinates.
    n_directions_ : int
        How many of them ridge regression asked for.
    explained_variance_ratio_ : float
        Fraction of the variance in the feature space that they keep.
    basis_gram_ : None
        The basis is orthonormal.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> space = RidgeKPCA(8, kernel=LeaveOneOutRidge()).fit(X, y)
    >>> space.transform(X).shape  # eight components, and two directions for three classes
    (150, 10)
    """

    _advice = "try Nystroem(500), which needs no n × n array."
    n_landmarks_: int
    eigenvalues_: np.ndarray
    knows_labels = True
    boundary_rows: np.ndarray | None = None  # row numbers, after a fit that took them

    def __init__(
        self,
        n_components: int = N_COMPONENTS,
        *,
        kernel: Any = None,
        n_landmarks: int = N_LANDMARKS,
        rows: str = "auto",
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.rows = rows
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name, example in (("n_components", 32), ("n_landmarks", 2000)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"Got {name}={value!r}, but expected a positive integer: try {example}."
                )
        if not isinstance(self.rows, str) or self.rows not in _ROWS:
            raise ValueError(f"Got rows={self.rows!r}, but expected 'auto', 'all' or 'boundary'.")

    @property
    def most_rank(self) -> int:
        """The most coordinates that there may be."""
        self._check_parameters()
        return int(self.n_components) + _MOST_DIRECTIONS

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        n, width = n_samples, self.most_rank
        if n <= ALL_ROWS:
            return 8.0 * n * (3 * n + 4 * min(width, n) + 2 * n_features)
        if self._held(n):
            return _HELD_BYTES * n * n + 8.0 * n * (6 * width + 2 * n_features)
        landmarks = self._landmarks(None)._peak_bytes(n, n_features)
        return landmarks + 8.0 * n * (4 * width + 3 * n_features)

    def _landmarks(self, kernel: Kernel | None) -> Nystroem:
        return Nystroem(int(self.n_landmarks), kernel=kernel, random_state=self.random_state)

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        y, weights = unweighed(y)
        if y is None:
            raise ValueError(
                "RidgeKPCA requires y to be passed, but the target y is None: expected labels or "
                "numbers, one for each point; without them try KPCA(32)."
            )
        targets = coded_targets(y, X)
        Y = targets.columns()
        few_classes = targets.values is None and LEAST_OF_CLASS * Y.shape[1] <= EASY_ROWS[0]
        Y = _few_columns(Y)
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)
        n = X.shape[0]
        has_ridge = without_ridge(self.kernel_)[1] > 0
        plain = not (is_sparse(X) or self.kernel_.pairwise)
        held = has_ridge and plain and weights is None and self._held(n)
        boundary = n > ALL_ROWS and plain and has_ridge and few_classes and self._easy
        self.rows_ = "boundary" if boundary else "all"
        if boundary:
            smooth, ridge, _ = without_ridge(self.kernel_)
            rows = telling_rows(smooth, ridge, X, Y, *EASY_ROWS)
            some = None if weights is None else weights.take(rows)
            with calm_if_small(_CALM * len(rows) ** 3):
                narrow = weights is None and len(rows) > DOUBLE_ROWS
                narrow = narrow and not self._wide(X, len(rows))
                self._learn_exactly(take_rows(X, rows), Y[rows], some, narrow=narrow)
            self.boundary_rows = rows
            return lambda: self._coordinates(X)
        if n <= ALL_ROWS or held:
            with calm_if_small(_CALM * n**3):
                narrow = held and n > DOUBLE_ROWS and not self._wide(X, n)
                return self._learn_exactly(X, Y, weights, narrow=narrow)
        if self.kernel_.pairwise:
            raise ValueError(
                f"Got the Gram matrix of {X.shape[0]} points, but RidgeKPCA expected at most "
                f"{ALL_ROWS}: try KPCA(100), or Nystroem(1000)."
            )
        return self._learn_by_landmarks(X, Y, weights)

    @property
    def _easy(self) -> bool:
        """Whether boundary rows are asked for, or next to no point left out got another class."""
        if self.rows != "auto":
            return self.rows == "boundary"
        return getattr(self.kernel_, "loo_mistakes_", np.nan) <= _FEW_MISTAKES

    @staticmethod
    def _held(n: int) -> bool:
        """Whether K of more points is kept in float32, and ridge regression solved with it."""
        return n <= HELD_ROWS and worth_keeping(_HELD_BYTES * n * n)

    @staticmethod
    def _wide(X: Any, n: int) -> bool:
        """Whether K in float64 is as fast, on a device, and has room there."""
        return wide_is_fast(X) and worth_keeping(_WIDE_BYTES * n * n)

    def _learn_exactly(
        self, X: Any, Y: np.ndarray, weights: Weights | None, *, narrow: bool
    ) -> Callable[[], Any]:
        single = is_single(X) and self.kernel_.pairwise
        X = widened(X)
        smooth, ridge, delta = without_ridge(self.kernel_)
        norms = to_numpy(smooth.diag(X))
        norms = norms if weights is None else weights.counts * norms
        gram = CentredGram(
            smooth,
            X,
            hold=True,
            narrow=narrow,
            trace=float(np.sum(norms, dtype=np.float64)),
            single=single,
            weights=weights,
        )
        shared = None if delta is None else SharedRidge(ridge, delta, X, weights)
        total = gram.centred_trace + (0.0 if shared is None else shared.variance)
        U = self._leading(gram, shared)
        try:
            if narrow and shared is not None:  # what is narrow has a ridge
                image = to_numpy(gram.centred_times(gram.array(U))).astype(np.float64)
                alpha, fitted = solution_in_place(gram, Y, shared)
            else:
                alpha = solution(gram, Y, shared)
        except linalg.LinAlgError:
            raise ValueError(_INDEFINITE) from None
        length = np.maximum(linalg.norm(alpha, axis=0), np.finfo(float).tiny)
        B = np.hstack([U, alpha / length])
        image = (
            np.hstack([image, fitted / length])
            if narrow
            else to_numpy(gram.centred_times(gram.array(B)))
        )
        if shared is not None:
            image = image + shared.centred_times(B)
        T = self._principal(B.T @ image, image, total, U.shape[1])
        self.anchors_, self.n_landmarks_ = own(gram.anchors), 0
        projection = B @ T
        if weights is None:
            projection -= projection.mean(axis=0)
        else:
            projection = gram.scaled(to_numpy(gram.centre(gram.array(projection))))
        means = to_numpy(gram.column_means).astype(np.float64)
        means = means if shared is None else means + shared.means
        self.projection_, self.offset_ = like(projection, X), like(means @ projection, X)
        return lambda: like(gram.unscaled(image @ T), X)

    def _leading(self, gram: CentredGram, shared: SharedRidge | None) -> np.ndarray:
        """Orthonormal columns that span what the leading eigenvectors of HKH do, or nearly."""
        rank = min(int(self.n_components), gram.n - 1)
        if gram.n <= _DENSE_ROWS:
            with calm_if_small(10.0 * gram.n**3):
                K = to_numpy(centred(gram))
                K += 0.0 if shared is None else shared.centred_times(np.eye(gram.n))
                _, U = linalg.eigh(K, overwrite_a=True, check_finite=False)
            return U[:, : -rank - 1 : -1]
        rng = check_random_state(self.random_state)

        def multiply(M: Any) -> Any:
            product = gram.centred_times(M)
            if shared is None:
                return product
            return product + gram.array(shared.centred_times(to_numpy(M)))

        A = OnSubspace(multiply, gram.centre, gram.n - 1)
        found = krylov_eigenpairs(
            A, rank, lambda width: gram.sketch(width, rng), tol=_LEADING_TOL, floor=gram.round_off
        )
        return to_numpy(found.vectors)

    def _learn_by_landmarks(
        self, X: Any, Y: np.ndarray, weights: Weights | None
    ) -> Callable[[], Any]:
        smooth, ridge, _ = without_ridge(self.kernel_)
        counts = np.ones(len(Y)) if weights is None else weights.counts
        inner = self._landmarks(smooth).fit(X, sample_weight=None if weights is None else counts)
        n, r = X.shape[0], min(int(self.n_components), inner.rank_)
        size = block_size(X, inner.projection_.shape[0])
        Y = Y - (Y.mean(axis=0) if weights is None else weights.counts @ Y / weights.total)

        def values(rows: slice) -> np.ndarray:
            return to_numpy(inner._features(X[rows, :])).astype(np.float64, copy=False)

        # Coordinates are these values times P. Their scatter is diagonal, so ridge regression is a
        # division; and all that is asked of them has few columns, so P meets those first.
        P, offset = (to_numpy(a).astype(np.float64) for a in (inner.projection_, inner.offset_))
        weighted = Y if weights is None else counts[:, None] * Y
        beta = P.T @ sum_rows(lambda rows: values(rows).T @ weighted[rows], n, **size)
        beta /= (inner.eigenvalues_ + (ridge or JITTER * inner.eigenvalues_[0]))[:, None]
        W = np.hstack([np.eye(inner.rank_, r), beta])
        P, offset = P @ W, offset @ W
        F = map_rows(lambda rows: values(rows) @ P - offset, n, **size)
        rest, G = np.zeros_like(F), W.T @ W
        self.n_landmarks_, self.anchors_, apart = inner.anchors_.shape[0], inner.anchors_, rest[:0]
        if ridge and not is_sparse(X):
            # Where each point lies apart from a new one at its place; copies of a point, which
            # cannot be told apart, share the mean.
            first, group = _copies(self._seen(X))
            sums = np.zeros((len(first), Y.shape[1]))
            np.add.at(sums, group, counts[:, None] * (Y - F[:, r:]))
            means = sums / np.bincount(group, weights=counts)[:, None]
            apart = np.hstack([np.zeros((len(first), r)), means])
            rest = apart[group]
            G += apart.T @ apart / ridge  # one bump for each place
            self.anchors_ = namespace(X).concat([inner.anchors_, take_rows(X, first)], axis=0)
        n_rows = n if weights is None else weights.total
        total = inner.eigenvalues_.sum() / inner.explained_variance_ratio_ + ridge * (n_rows - 1)
        image = F + rest
        image = image if weights is None else np.sqrt(counts)[:, None] * image
        T = self._principal(G, image, total, r)
        kind = inner.projection_
        self.projection_ = like(np.vstack([P, apart]) @ T, kind)
        self.offset_ = like(offset @ T, kind)
        return lambda: like((F + rest) @ T, kind)

    def _seen(self, X: Any) -> np.ndarray:
        """The points as the kernel sees them: without features of scale zero."""
        points = to_numpy(X)
        scales = getattr(self.kernel_, "scales", None)
        if scales is None:
            return points
        return points[:, np.any(np.atleast_2d(scales) != 0, axis=0)]

    def _principal(self, G: np.ndarray, image: np.ndarray, total: float, rank: int) -> np.ndarray:
        """From a basis with Gram matrix G to the principal axes of the points within its span."""
        if not np.all(np.isfinite(G)):
            raise ValueError(
                "Got points whose kernel values are too large to be multiplied, but expected "
                "products within the range of float64: try rescaling the features, for instance "
                "with StandardScaler."
            )
        values, Q = linalg.eigh(G)
        kept = values > _RELATIVE_CUT * max(values[-1], 0.0)
        if not kept.any():
            refuse_rank_zero(len(image), self.kernel_)
        T = Q[:, kept] / np.sqrt(values[kept])
        Z = image @ T
        values, V = linalg.eigh(Z.T @ Z)
        V = V[:, ::-1]
        T = T @ (V * column_signs(Z @ V))
        self.eigenvalues_ = np.maximum(values[::-1], 0.0)
        self.rank_ = len(values)
        self.n_directions_ = max(0, self.rank_ - rank)
        self.explained_variance_ratio_ = min(1.0, float(self.eigenvalues_.sum() / total))
        return T

    def _affine(self, X: Any, P: Any, offset: Any) -> Any:
        m = self.n_landmarks_
        if not m:
            return super()._affine(X, P, offset)
        smooth, _, _ = without_ridge(self.kernel_)
        landmarks, P, apart = self.anchors_[:m, :], P[:m, :], to_numpy(P[m:, :])

        def embed(block: Any) -> Any:
            Z = times(smooth(block, in_library_of(landmarks, block)), P)
            Z = Z - in_library_of(offset, Z)
            if not len(apart):
                return Z
            found, row = self._known_points.find(block)
            own_places = np.zeros(Z.shape)
            own_places[found] = apart[row]
            return Z + like(own_places, Z)

        return embedded(embed, X, m)

    @cached_property
    def _known_points(self) -> KnownPoints:
        points = self.anchors_[self.n_landmarks_ :, :]
        return KnownPoints(points, without_ridge(self.kernel_)[2])

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: part for name, part in state.items() if name not in _OF_ONE_FIT}


def without_ridge(kernel: Kernel) -> tuple[Kernel, float, Kernel | None]:
    """A kernel without its ``Delta`` terms, their weight, and ``Delta``; None where it has none."""
    if isinstance(kernel, Rescaled):
        smooth, ridge, delta = without_ridge(kernel.kernel)
        rescaled = None if delta is None else Rescaled(delta, kernel.scales)
        return Rescaled(smooth, kernel.scales), ridge, rescaled
    if not isinstance(kernel, Sum):
        return kernel, 0.0, None
    terms = list(kernel._flat())
    deltas = [(weight, term) for weight, term in terms if isinstance(term, Delta) and weight > 0]
    others = [(weight, term) for weight, term in terms if not isinstance(term, Delta)]
    if not deltas or not others:
        return kernel, 0.0, None
    weights, kernels = zip(*others, strict=True)
    return Sum(list(kernels), list(weights)), sum(weight for weight, _ in deltas), deltas[0][1]


def _few_columns(Y: np.ndarray) -> np.ndarray:
    """Columns that still tell all classes apart, where there would be too many."""
    if Y.shape[1] <= _MOST_DIRECTIONS:
        return Y
    return Y @ np.random.RandomState(0).standard_normal((Y.shape[1], _MOST_DIRECTIONS))


def _copies(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of all rows that are the same, in their order, and the group of each row."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()
