"""A fitted metric as arithmetic: features of a point, times a matrix, plus a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import is_sparse, to_numpy
from kernelmetric.kernels import Kernel
from kernelmetric.spaces import KernelTrick, RandomFeatures, Space

_PROBES = 8  # random points on which a map is compared with what its matrix gives
_AFFINE = 1e-6  # the largest difference, beside the largest value


class Affine(NamedTuple):
    """The map x ↦ x A + b.

    Parameters
    ----------
    A : ndarray of shape (d, r)
        The matrix.
    b : ndarray of shape (1, r)
        The row.
    """

    A: np.ndarray
    b: np.ndarray


class KernelValues(NamedTuple):
    """The features k(x, a) with anchors a.

    Parameters
    ----------
    kernel : Kernel
        A bound kernel.
    anchors : ndarray of shape (m, d), or of int of shape (m,)
        The anchors; for a precomputed kernel the columns of X that belong to them.
    """

    kernel: Kernel
    anchors: np.ndarray


class Waves(NamedTuple):
    """The features of random frequencies, (cos xᵀω, sin xᵀω) times amplitudes.

    Parameters
    ----------
    frequencies : ndarray of shape (d, P)
        In columns.
    amplitudes : ndarray of shape (1, P)
        One for both features of a frequency.
    """

    frequencies: np.ndarray
    amplitudes: np.ndarray


class MetricMap(NamedTuple):
    """z(x) = f(x S + t) A + b, all that ``transform`` computes.

    Parameters
    ----------
    n_features : int
        Number of features of x.
    before : Affine or None
        S and t: what a pipeline does to x first.
    features : KernelValues, Waves or None
        f; None where it is the identity.
    after : Affine
        A and b.
    """

    n_features: int
    before: Affine | None
    features: KernelValues | Waves | None
    after: Affine


def metric_map(metric: Any) -> MetricMap:
    """Take a fitted metric apart.

    Parameters
    ----------
    metric : estimator
        A linear learner, a metric with a kernel, a search over such, or a pipeline that ends in
        one and begins with affine steps.

    Returns
    -------
    MetricMap
        In float64, whatever the metric was fitted in.
    """
    check_is_fitted(metric)
    if hasattr(metric, "best_estimator_"):
        return metric_map(metric.best_estimator_)
    if isinstance(metric, Pipeline):
        last = metric_map(metric[-1])
        if len(metric.steps) == 1 or last.before is not None:
            return last
        before = affine_map(metric[:-1], metric.n_features_in_)
        return last._replace(n_features=metric.n_features_in_, before=before)
    n_features = metric.n_features_in_
    space = getattr(metric, "space_", None)
    if space is None:
        return MetricMap(n_features, None, None, affine_map(metric, n_features))
    L, c = _after_space(metric)
    features, P, offset = _parts(space)
    if P is None:  # the basis is that of the anchors
        return MetricMap(n_features, None, features, Affine(L, c))
    return MetricMap(n_features, None, features, Affine(P @ L, c - offset @ L))


def affine_map(transformer: Any, n_features: int) -> Affine:
    """The matrix and the row of a fitted transformer that is affine, found by asking it.

    Parameters
    ----------
    transformer : estimator
        Anything with ``transform``: a linear learner, a scaler, PCA, a pipeline of them.
    n_features : int
        Number of features it takes.

    Returns
    -------
    Affine
        What it does. Refused when it does something else on random points.
    """

    def ask(X: np.ndarray) -> np.ndarray:
        with config_context(transform_output="default"):
            return np.asarray(transformer.transform(X), dtype=np.float64)

    probes = check_random_state(0).standard_normal((_PROBES, n_features))
    try:
        b = ask(np.zeros((1, n_features)))
        A = ask(np.eye(n_features)) - b
        expected = ask(probes)
    except (ValueError, TypeError, AttributeError) as error:
        raise _not_affine(transformer) from error
    scale = max(float(np.abs(expected).max()), float(np.abs(b).max()))
    if not np.abs(probes @ A + b - expected).max() <= _AFFINE * scale:
        raise _not_affine(transformer)
    return Affine(A, b)


def _not_affine(transformer: Any) -> ValueError:
    return ValueError(
        f"Got {transformer!r}, but expected steps that multiply by a matrix and add a row, such as "
        "StandardScaler, PCA and the learners of this library: try exporting the metric alone, "
        "and do the rest where the model is used."
    )


def _after_space(metric: Any) -> Affine:
    if hasattr(metric, "learner_"):
        return affine_map(metric.learner_, int(metric.space_._n_features_out))
    L = to_numpy(metric.components_).astype(np.float64).T
    return Affine(L, np.zeros((1, L.shape[1])))


def _parts(space: Any) -> tuple[KernelValues | Waves, np.ndarray | None, np.ndarray | None]:
    """Features of a space, and the matrix and row that make coordinates of them."""
    if not isinstance(space, Space):
        raise ValueError(
            f"Got the space {space!r}, but expected KPCA, Nystroem, RandomFeatures or KernelTrick."
        )
    if isinstance(space, KernelTrick):
        return KernelValues(space.kernel_, anchors_of(space)), None, None
    P, offset = (to_numpy(a).astype(np.float64) for a in (space.projection_, space.offset_))
    if isinstance(space, RandomFeatures):
        return Waves(to_numpy(space.frequencies_), to_numpy(space.amplitudes_)), P, offset
    return KernelValues(space.kernel_, anchors_of(space)), P, offset


def anchors_of(space: Any) -> np.ndarray:
    """The anchors of a space, dense and in float64; column numbers as they are."""
    anchors = space.anchors_
    anchors = anchors.toarray() if is_sparse(anchors) else to_numpy(anchors)
    return anchors if anchors.dtype.kind in "iu" else anchors.astype(np.float64)
