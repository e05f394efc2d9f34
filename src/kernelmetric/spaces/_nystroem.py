"""The span of a few landmarks."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric import compute
from kernelmetric.compute.reductions import centres_on_device
from kernelmetric.inputs import is_objects
from kernelmetric.inputs._parameters import COUNT
from kernelmetric.kernels import FunctionKernel, Kernel
from kernelmetric.spaces._base import CUT_OFF, own, refuse_indefinite, refuse_rank_zero, round_off
from kernelmetric.spaces._features import FeatureMapSpace

_RELATIVE_CUT, _TIMES_ROUNDING = 1e-10, 8.0  # below the larger, features are round-off
_POOL = 20_000  # rows that k-means and RPCholesky look at
_POOL_PER_LANDMARK = 20
_MANY = 1_000  # landmarks
_ITERATIONS = 10  # k-means need not converge: landmarks a little off are as good
_STRATEGIES = ("auto", "kmeans", "uniform", "rpcholesky")


@dataclass(eq=False, repr=False)
class Nystroem(FeatureMapSpace):
    r"""Kernel principal components within the span of landmarks.

    With the landmarks' Gram matrix :math:`K_{mm} = U \Lambda U^\top` and the kernel values
    :math:`k_L(x)` of a point with the landmarks,

    .. math:: f(x) = \Lambda^{-1/2} U^\top k_L(x), \qquad z(x) = V^\top (f(x) - \mu),

    where μ and V are the mean and the principal axes of f over the training points. With all
    points as landmarks this is full-rank KPCA. O(n m (d + m) + m³) time for m landmarks, one block
    of rows in memory.

    Parameters
    ----------
    n_landmarks : int, default=500
        Number of landmarks m; as many as there are points, or more, takes all points.
    n_components : int or float, default=None
        None: all directions above the cut-off. An integer, or a fraction of the variance: the
        leading ones.
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    random_state : int, RandomState or None, default=None
        For the choice of landmarks.
    landmarks : {"auto", "kmeans", "uniform", "rpcholesky"} or array, default="auto"
        Centres of clusters, random points, randomly pivoted Cholesky (for any kernel), or these
        points (column indices for a precomputed kernel). "auto": k-means, and randomly pivoted
        Cholesky for sparse data, functions and precomputed kernels.
    tol : float, default=None
        Relative eigenvalue cut-off; None means 1e-10, and 1e-6 for float32 data.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    anchors_ : array of shape (m, d)
        The landmarks (column indices for a precomputed kernel).
    landmarks_ : str
        How they were chosen.
    projection_ : array of shape (m, rank_)
        Matrix P of z(x) = k_L(x)ᵀ P - o.
    offset_ : array of shape (1, rank_)
        The row o.
    eigenvalues_ : ndarray of shape (rank_,)
        Eigenvalues of the approximated centred Gram matrix, descending.
    rank_ : int
        Number of components kept.
    explained_variance_ratio_ : float
        Fraction of the variance in the feature space that they keep; a lower bound.
    basis_gram_ : None
        The basis is orthonormal.
    moments_ : dict
        Mean and scatter of all features, after :meth:`partial_fit` alone.
    n_features_in_ : int
        Number of features seen in ``fit``.

    See Also
    --------
    KPCA : Exact, for up to some thousand points.
    RandomFeatures : Features that do not depend on the points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.spaces import Nystroem
    >>> X = np.random.RandomState(0).randn(1000, 3)
    >>> space = Nystroem(100, n_components=20, random_state=0).fit(X)
    >>> space.transform(X).shape
    (1000, 20)
    >>> space.explained_variance_ratio_ > 0.9
    True
    """

    n_landmarks: int = 500
    _: KW_ONLY
    landmarks: Any = "auto"
    tol: float | None = None

    _advice = "try a smaller n_landmarks, such as 500."

    def _n_map_features(self, n_samples: int) -> int:
        if isinstance(self.landmarks, str):
            return min(int(self.n_landmarks), n_samples)
        listed = isinstance(self.landmarks, list)
        return max(1, len(self.landmarks) if listed else (np.shape(self.landmarks) or (1,))[0])

    def _bytes_in_full(self, n_samples: int, n_features: int) -> float:
        m = self._n_map_features(n_samples)
        rotation = super()._bytes_in_full(n_samples, n_features) + 8.0 * 3 * m * m
        drawn = isinstance(self.landmarks, str) and self.landmarks in ("auto", "rpcholesky")
        return max(rotation, 8.0 * m * _pool(n_samples, m) if drawn and m < n_samples else 0.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        CUT_OFF.check(self, "tol")
        if isinstance(self.landmarks, str) and self.landmarks not in _STRATEGIES:
            raise ValueError(
                f"Got landmarks={self.landmarks!r}, but expected one of {_STRATEGIES} or an array "
                "of points: try 'auto'."
            )
        COUNT.check(self, "n_landmarks")

    def _feature_map(self, X: Any, y: Any) -> tuple[Any | None, int, float]:
        self.anchors_ = self._chosen_landmarks(X)
        if is_objects(X):  # rows of them are a view of all
            self.anchors_ = self.anchors_.copy()
        if self.anchors_.shape[0] == 0:  # every point has norm zero in the feature space
            refuse_rank_zero(X.shape[0], self.kernel_)
        eps = compute.rounding_of(X)
        cut_off = max(_RELATIVE_CUT, _TIMES_ROUNDING * eps) if self.tol is None else self.tol
        K = self._landmark_gram(X)
        m, trace = K.shape[0], float(compute.namespace(K).linalg.trace(K))
        values, U = compute.backend_of(K).symmetric_eigenpairs(K)
        own = compute.rounding_of(K)
        rounding = round_off(trace, X.shape[1], eps=eps if self.kernel_.pairwise else own)
        refuse_indefinite(float(values[0]), float(values[-1]), rounding=rounding, eps=eps)
        kept = values[values > max(cut_off * values[-1], m * own * trace, 0.0)]  # they ascend
        if not len(kept):
            refuse_rank_zero(X.shape[0], self.kernel_)
        W = U[:, m - len(kept) :] / compute.in_library_of(np.sqrt(kept), U)
        return W, m, cut_off

    def _landmark_gram(self, X: Any) -> Any:
        if self.kernel_.pairwise:
            K = compute.to_numpy(X)[np.ix_(self.anchors_, self.anchors_)].astype(np.float64)
            K = compute.in_library_of(K, X)
        else:
            K = self.kernel_(compute.precise(self.anchors_))
        return (K + K.T) / 2

    def _chosen_landmarks(self, X: Any) -> Any:
        if not isinstance(self.landmarks, str):
            self.landmarks_ = "given"
            return self._given_landmarks(X)
        n, m = X.shape[0], int(self.n_landmarks)
        rng = check_random_state(self.random_state)
        vectors = not (compute.is_sparse(X) or is_objects(X) or self.kernel_.pairwise)
        strategy = self.landmarks
        if strategy == "auto":
            by_centres = vectors and not isinstance(self.kernel_, FunctionKernel)
            strategy = "kmeans" if by_centres else "rpcholesky"
        if strategy == "kmeans" and not vectors:
            raise ValueError(
                "Got landmarks='kmeans' for sparse data, objects or a precomputed kernel, but "
                "expected dense points, which have centres: try landmarks='rpcholesky'."
            )
        self.landmarks_ = "all" if m >= n else strategy
        if m >= n:
            return own(self.kernel_.anchors(X))
        if strategy == "kmeans":
            return compute.like(_kmeans_centres(X, m, rng), X)
        if strategy == "uniform":
            return self.kernel_.anchors(X, _uniform_rows(n, m, rng))
        return self.kernel_.anchors(X, rpcholesky_rows(self.kernel_, X, m, rng))

    def _given_landmarks(self, X: Any) -> Any:
        if is_objects(X):
            return own(self.kernel_.points(self.landmarks))
        given = self.landmarks
        given = given if compute.is_sparse(given) else np.asarray(compute.to_numpy(given))
        if self.kernel_.pairwise:
            whole = given.ndim == 1 and len(given) and np.issubdtype(given.dtype, np.integer)
            if not whole or np.any((given < 0) | (given >= X.shape[0])):
                raise ValueError(
                    f"Got landmarks={given!r}, but expected indices of training points for a "
                    f"precomputed kernel, at least one index from 0 to {X.shape[0] - 1}."
                )
            return given.copy()
        if given.ndim != 2 or given.shape[1] != X.shape[1] or given.shape[0] < 1:
            raise ValueError(
                f"Got landmarks of shape {given.shape}, but expected (m, {X.shape[1]}): "
                "points with the features of X."
            )
        return given.astype(X.dtype) if compute.is_sparse(given) else own(compute.like(given, X))


def _uniform_rows(n: int, m: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw m of n rows, sorted, each at most once."""
    return np.sort(rng.choice(n, size=min(m, n), replace=False))


def _kmeans_centres(X: Any, m: int, rng: np.random.RandomState) -> np.ndarray:
    """Return the centres of m clusters of a random sample: O(20 m · m · d) time an iteration."""
    pool = min(X.shape[0], max(_POOL_PER_LANDMARK * m, 2000), max(_POOL, 2 * m))
    sample = compute.take_rows(X, _uniform_rows(X.shape[0], pool, rng))
    there = centres_on_device(sample, m, rng, _ITERATIONS)
    if there is not None and np.all(np.isfinite(there)):
        return np.unique(there, axis=0)
    sample = compute.to_numpy(sample)
    scale = _scale(sample)
    # With many clusters a careful start takes longer than all iterations, and little is gained.
    start = "random" if m >= _MANY else "k-means++"
    kmeans = KMeans(m, init=start, n_init=1, max_iter=_ITERATIONS, random_state=rng)
    with warnings.catch_warnings():  # fewer distinct points than clusters: the centres repeat
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = kmeans.fit(sample / scale).cluster_centers_ * scale
    return np.unique(centres, axis=0)


def _scale(points: np.ndarray) -> float:
    """A power of two that brings points whose squares would leave the range back into it."""
    most = float(np.cbrt(np.finfo(points.dtype).max))
    _, power = np.frexp(np.max(np.abs(points)))
    scale = 2.0 ** (float(power) - 1)
    return points.dtype.type(1.0 if 1 / most < scale < most else scale)


def rpcholesky_rows(kernel: Kernel, X: Any, m: int, rng: np.random.RandomState) -> np.ndarray:
    """Choose rows by randomly pivoted Cholesky [1]_; fewer than m where they span everything.

    .. [1] Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", Communications on Pure and
       Applied Mathematics, 2025.
    """
    rows = _uniform_rows(X.shape[0], _pool(X.shape[0], m), rng)
    sample = compute.take_rows(X, rows)
    points, numbers = (X, rows) if kernel.pairwise else (sample, np.arange(len(rows)))
    diagonal = compute.to_numpy(kernel.diag(points)).astype(np.float64)
    rest = np.maximum(diagonal[numbers], 0.0)
    start = rest.sum()
    F = np.empty((m, len(rows)))  # factors in rows: each step reads them along memory
    chosen: list[int] = []
    for i in range(m):
        mass = rest.sum()
        if mass <= 1e-12 * start:
            break
        pivot = int(rng.choice(len(rows), p=rest / mass))
        column = kernel(sample, kernel.anchors(points, numbers[[pivot]]))
        residual = compute.to_numpy(column)[:, 0] - F[:i, pivot] @ F[:i]
        chosen.append(pivot)
        if residual[pivot] <= 1e-14 * start / len(rows):  # round-off: this pivot adds nothing
            rest[pivot] = 0.0
            F[i] = 0.0
            continue
        F[i] = residual / np.sqrt(residual[pivot])
        rest = np.maximum(rest - F[i] ** 2, 0.0)
        rest[pivot] = 0.0
    return np.sort(rows[chosen])


def _pool(n: int, m: int) -> int:
    return min(n, max(_POOL, 2 * m))
