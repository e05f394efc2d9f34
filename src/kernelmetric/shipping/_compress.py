"""A metric that needs fewer kernel values for a point."""

import copy
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from kernelmetric.compute import like, sum_rows, take_rows, to_numpy
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.prediction._neighbors import has_kernel_distance, usual_kernel_distance
from kernelmetric.selection._ridge_kpca import without_ridge as without_delta
from kernelmetric.shipping._maps import check_metric
from kernelmetric.solvers import evenly
from kernelmetric.spaces import Nystroem

_HELD_OUT = 5  # every so many-th point measures the loss
_POOL = 2_000  # rows that may be landmarks; of many landmarks, twice as many
_MOST_JUDGES = 20_000  # rows that tell which are
_PAIRS = 10_000  # of held-out points, whose distances are compared
# Directions of the landmarks below this share of the largest variance: they fit little, and their
# large coefficients would cost digits in single precision.
_LEAST_VARIANCE = 1e-9


def compress(metric: Any, n_landmarks: int, X: Any = None, *, random_state: Any = 0) -> Any:
    r"""A smaller metric of the same kind, which is nearly the same map.

    Instead of all its training points, the metric then holds m landmarks. With kernel values
    :math:`k_m(x)` it solves

    .. math:: \min_{A, b} \sum_i \| z(x_i) - k_m(x_i)^\top A - b \|^2,

    in the coordinates of a :class:`Nystroem` space, without the ridge of the kernel. Landmarks are
    some of the points, taken one after the other: each is the one that lowers this sum most
    (orthogonal least squares [1]_). The loss is that of a map made from four fifths of the points,
    measured on the others; the one returned is made from all. O(n m (m + d)) time for n points.

    Parameters
    ----------
    metric : fitted metric or predictor
        A :class:`Kernelized` learner of this library, an :class:`IdealizedKernel` with a kernel, a
        :class:`MetricClassifier` or :class:`MetricRegressor` in one, or a pipeline that ends in
        one. A predictor keeps the places of its training points, their features where it hears
        these, and what it chose.
    n_landmarks : int
        Number of landmarks m.
    X : array-like of shape (n_samples, n_features), default=None
        Points like those the metric will see; None: the points that it holds.
    random_state : int, RandomState or None, default=0
        For the fifth.

    Returns
    -------
    metric
        Of the same class; the given one is unchanged. Its ``space_`` is a Nystroem space; few
        landmarks do not know training rows apart, so its ``places`` are those of new points; and
        ``compression_`` a dict: ``n_landmarks``, ``n_before``, ``distance_error`` (root mean
        square error of distances between held-out points, beside the root mean square distance)
        and ``variance_lost`` (share of the embedding's variance that is missed).

    See Also
    --------
    to_onnx : The metric, compressed or not, as a model for other languages.

    References
    ----------
    .. [1] Chen, Cowan and Grant, "Orthogonal least squares learning algorithm for radial basis
       function networks", IEEE Transactions on Neural Networks 1991.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric import DNE, Kernelized, compress
    >>> X, y = load_digits(return_X_y=True)
    >>> metric = Kernelized(DNE(9), "rbf").fit(X[:600], y[:600])
    >>> small = compress(metric, 100)
    >>> len(small.space_.anchors_), len(metric.space_.anchors_)
    (100, 600)
    >>> small.compression_["distance_error"] < 0.2
    True
    """
    check_metric(metric, "compress(metric, 100)")
    if isinstance(metric, MetricClassifier | MetricRegressor):
        small = copy.copy(metric)
        small.metric_ = compress(metric.metric_, n_landmarks, X, random_state=random_state)
        if has_kernel_distance(small.metric_):
            small.usual_distance_ = usual_kernel_distance(small.metric_)
        return small
    if isinstance(metric, Pipeline):
        if X is not None and len(metric.steps) > 1:
            with config_context(transform_output="default"):
                X = metric[:-1].transform(X)
        last = compress(metric[-1], n_landmarks, X, random_state=random_state)
        return Pipeline([*metric.steps[:-1], (metric.steps[-1][0], last)])
    X = _checked_points(metric, n_landmarks, X)
    rng = check_random_state(random_state)
    order = rng.permutation(X.shape[0])
    held_out, used = np.sort(order[::_HELD_OUT]), np.sort(np.delete(order, np.s_[::_HELD_OUT]))
    teacher = without_ridge(metric)
    space = Nystroem(int(n_landmarks), tol=_LEAST_VARIANCE, random_state=rng.randint(2**31))
    part = _on_landmarks(teacher, space, take_rows(X, used))
    small = _on_landmarks(teacher, space, X)
    small.compression_ = {
        "n_landmarks": int(small.space_.anchors_.shape[0]),
        "n_before": _n_features(metric.space_),
        **_losses(teacher, part, take_rows(X, held_out), rng),
    }
    return small


def _on_landmarks(teacher: Any, space: Nystroem, X: Any) -> Any:
    """The metric on landmarks among these points, with the map that is nearest there."""
    small = copy.copy(teacher)
    if hasattr(teacher, "learner_"):
        small.space = clone(space)  # so that a clone of the metric, fitted again, is as small
        small.embedding_ = small._training_table = None  # where the larger metric had its rows
    landmarks = take_rows(X, _landmark_rows(teacher, X, space.n_landmarks))
    small.space_ = clone(space).set_params(kernel=teacher.space_.kernel_, landmarks=landmarks)
    small.space_.fit(X)
    _set_map(small, *_least_squares(teacher, small.space_, X))
    return small


def without_ridge(metric: Any) -> Any:
    """The metric as new points see it: a shallow copy with no Delta in the kernel of its space."""
    plain = copy.copy(metric)
    plain.space_ = copy.copy(metric.space_)
    plain.space_.kernel_ = without_delta(metric.space_.kernel_)[0]
    if hasattr(plain, "kernel_"):
        plain.kernel_ = plain.space_.kernel_
    return plain


def _checked_points(metric: Any, n_landmarks: Any, X: Any) -> Any:
    """The points to learn from, once the metric is seen to be one that can be compressed."""
    if getattr(metric, "space_", None) is None:
        raise ValueError(
            f"Got {metric!r}, but expected a metric with a kernel: others hold no points. Of a "
            "search, take best_estimator_."
        )
    if hasattr(metric, "learner_") and not isinstance(metric.learner_, Learner):
        raise ValueError(f"Got the learner {metric.learner_!r}, but expected one of this library.")
    if metric.space_.kernel_.pairwise:
        raise ValueError(
            "Got a precomputed kernel, but expected one of points: fit with a Nystroem space."
        )
    if X is None:
        X = getattr(metric.space_, "anchors_", None)
        if X is None:
            raise ValueError("Got X=None for a metric that holds no points: pass some.")
    n = _n_features(metric.space_)
    fewer = Numbers(Integral, low=1, high=n - 1)
    fewer.require("n_landmarks", n_landmarks, hint=f"the metric has {n} now")
    if getattr(metric, "schema_", None) is not None and hasattr(X, "iloc"):
        X = metric.schema_.transform(X)
    X = X if hasattr(X, "shape") and not hasattr(X, "iloc") else np.asarray(X)
    least = max(int(n_landmarks), _HELD_OUT) * _HELD_OUT // (_HELD_OUT - 1) + 1
    if X.shape[0] < least:
        raise ValueError(
            f"Got {X.shape[0]} points for {n_landmarks} landmarks, but expected at least {least}: "
            "pass more as X, or take fewer landmarks."
        )
    return X


def _n_features(space: Any) -> int:
    """Number of kernel values, or random features, that one point takes."""
    made = space.projection_ if hasattr(space, "projection_") else space.anchors_
    return int(made.shape[0])


def _set_map(metric: Any, B: np.ndarray, mean: np.ndarray) -> None:
    """Give the metric the map z Bᵀ + mean on the coordinates of its space."""
    # (z + shift) Bᵀ is the same, as far as B reaches the mean; distances see no shift anyway
    shift = np.linalg.lstsq(B, mean, rcond=None)[0]
    space = metric.space_
    space.offset_ = space.offset_ - like(shift[None, :], space.offset_)
    B = like(B, metric.components_)
    if hasattr(metric, "learner_"):
        metric.learner_ = copy.copy(metric.learner_)
        metric.learner_.components_, metric.learner_.n_features_in_ = B, B.shape[1]
    else:
        metric.components_ = B


def _coordinates(space: Any, block: Any) -> np.ndarray:
    with config_context(transform_output="default"):
        return to_numpy(space.transform(block)).astype(np.float64)


def _embedded(metric: Any, block: Any) -> np.ndarray:
    """Learned coordinates, computed from those of the space, which asks for no feature names."""
    return _coordinates(metric.space_, block) @ to_numpy(metric.components_).astype(np.float64).T


def _landmark_rows(teacher: Any, X: Any, m: int) -> np.ndarray:
    """The rows whose kernel values explain most of the map, each beside those before it."""
    n = X.shape[0]
    pool = evenly(n, min(n, max(_POOL, 2 * m)))
    some, judges = take_rows(X, pool), take_rows(X, evenly(n, min(n, _MOST_JUDGES)))

    def sums(rows: slice) -> tuple[np.ndarray, ...]:
        T = _embedded(teacher, judges[rows, :])
        K = to_numpy(teacher.space_.kernel_(judges[rows, :], some)).astype(np.float64)
        return K.T @ K, K.T @ T, K.sum(axis=0), T.sum(axis=0)

    bytes_of_point = 4 * 8 * (_n_features(teacher.space_) + len(pool))
    G, B, k, t = sum_rows(sums, judges.shape[0], bytes_of_point)
    G, B = G - np.outer(k, k) / judges.shape[0], B - np.outer(k, t) / judges.shape[0]
    left, taken = np.diag(G).copy(), list[int]()
    least = _LEAST_VARIANCE * max(left.max(), np.finfo(float).tiny)
    Q = np.zeros((len(pool), min(m, len(pool))))
    for i in range(Q.shape[1]):
        gain = np.where(left > least, np.sum(B**2, axis=1) / np.maximum(left, least), -1.0)
        best = int(np.argmax(gain))
        if gain[best] < 0 and taken:
            break
        taken.append(best)
        Q[:, i] = (G[:, best] - Q[:, :i] @ Q[best, :i]) / np.sqrt(max(left[best], least))
        B -= np.outer(Q[:, i], B[best] / np.sqrt(max(left[best], least)))
        left -= Q[:, i] ** 2
        left[best] = 0.0
    return pool[np.sort(taken)]


def _least_squares(teacher: Any, space: Nystroem, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Map B and mean of the best ``F Bᵀ + mean``, for the coordinates F of the points."""

    def sums(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        T, F = _embedded(teacher, X[rows, :]), _coordinates(space, X[rows, :])
        return T.T @ F, T.sum(axis=0)

    bytes_of_point = 4 * 8 * (_n_features(teacher.space_) + X.shape[1])
    product, total = sum_rows(sums, X.shape[0], bytes_of_point)
    # F is centred, and its scatter diagonal: the normal equations need no solving.
    return product / space.eigenvalues_, total / X.shape[0]


def _losses(teacher: Any, small: Any, X: Any, rng: np.random.RandomState) -> dict[str, float]:
    """How far the small metric is from the large one, on points it has not seen."""
    T, S = _embedded(teacher, X), _embedded(small, X)
    i = rng.randint(len(T), size=_PAIRS)
    j = (i + rng.randint(1, len(T), size=_PAIRS)) % len(T)
    d, e = (np.linalg.norm(E[i] - E[j], axis=1) for E in (T, S))
    residual = (S - T) - (S - T).mean(axis=0)
    spread = T - T.mean(axis=0)
    return {
        "distance_error": float(np.sqrt(np.mean((d - e) ** 2) / np.mean(d**2))),
        "variance_lost": float(np.sum(residual**2) / np.sum(spread**2)),
    }
