"""A fitted metric as arithmetic: features of a point, times a matrix, plus a row.

Read from the attributes of classes that are known, never found by trying.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import is_sparse, to_numpy
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels import Kernel
from kernelmetric.learners import IdealizedKernel, Learner
from kernelmetric.metric import refuse_signed
from kernelmetric.spaces import KernelTrick, RandomFeatures, Space
from kernelmetric.transductive import TransductiveDistance


class Affine(NamedTuple):
    """The map x ↦ (x - c) A + b; b and c are rows, None where zero."""

    A: np.ndarray
    b: np.ndarray | None = None
    c: np.ndarray | None = None


class KernelValues(NamedTuple):
    """The features k(x, a) with anchors a; of a precomputed kernel, a are columns of X."""

    kernel: Kernel
    anchors: np.ndarray


class Waves(NamedTuple):
    """The features (cos xᵀω, sin xᵀω) times amplitudes, frequencies ω in columns."""

    frequencies: np.ndarray
    amplitudes: np.ndarray


class MetricMap(NamedTuple):
    """z(x) = (f(x) - c) A + b, all that ``transform`` computes; f is the identity where None."""

    features: KernelValues | Waves | None
    after: Affine


def check_metric(metric: Any, call: str) -> None:
    """Refuse what is no fitted metric or predictor, or one without coordinates."""
    if not hasattr(metric, "fit"):
        raise TypeError(
            f"Got {type(metric).__name__}, but expected a fitted metric or predictor: {call}."
        )
    check_is_fitted(metric)
    refuse_signed(metric)


def metric_map(metric: Any) -> MetricMap:
    """Take a fitted metric, of ours or a linear one of scikit-learn's, apart, in float64."""
    check_metric(metric, "metric_map(metric)")
    if isinstance(metric, Space):
        features, P, offset = _parts(metric)
        return MetricMap(features, Affine(P, -offset))
    space = getattr(metric, "space_", None)
    if space is None:
        return MetricMap(None, linear_map(metric))
    if type(metric) not in (Kernelized, IdealizedKernel, TransductiveDistance):
        raise _unknown(metric)
    if isinstance(metric, TransductiveDistance) and metric.prior is not None:
        raise ValueError(f"Got {metric!r} with a prior metric: export the prior by itself.")
    inner = linear_map(metric.learner_) if hasattr(metric, "learner_") else _components(metric)
    L = inner.A
    row = np.zeros((1, L.shape[1])) if inner.c is None else -inner.c @ L
    features, P, offset = _parts(space)
    return MetricMap(features, Affine(P @ L, row - offset @ L))


def n_features_of(step: Any) -> int:
    """How many numbers a step takes of a point: where it reads a table, those of its schema."""
    schema = vars(step).get("schema_")
    return int(step.n_features_in_) if schema is None else len(schema.groups_)


def linear_map(step: Any) -> Affine:
    """The matrix and the rows of a fitted transformer of a class that is known to be affine."""
    kind = type(step)
    plain = getattr(step, "space_", None) is None
    # Whoever defines another transform computes something else.
    if isinstance(step, Learner) and kind.transform is Learner.transform and plain:
        return _components(step)
    if kind is PCA:
        A = _wide(step.components_).T
        if step.whiten:
            deviation = np.sqrt(step.explained_variance_)
            A = A / np.maximum(deviation, np.finfo(deviation.dtype).eps)
        return Affine(A, c=_wide(step.mean_)[None, :])
    if kind in (TruncatedSVD, NeighborhoodComponentsAnalysis):
        return _components(step)
    if kind is LinearDiscriminantAnalysis and step.solver in ("svd", "eigen"):
        A = _wide(step.scalings_)[:, : step._max_components]
        return Affine(A, c=_wide(step.xbar_)[None, :] if step.solver == "svd" else None)
    raise _unknown(step)


def _unknown(step: Any) -> ValueError:
    return ValueError(
        f"Got {step!r}, but expected a metric or predictor of ours, or a step whose formula is "
        "known: try exporting the steps beside it, and this one by skl2onnx."
    )


def _components(metric: Any) -> Affine:
    return Affine(_wide(metric.components_).T)


def _wide(array: Any) -> np.ndarray:
    return to_numpy(array).astype(np.float64)


def _parts(space: Any) -> tuple[KernelValues | Waves, np.ndarray, np.ndarray]:
    """Features of a space, and the matrix and row that make coordinates of them."""
    if not isinstance(space, Space):
        raise ValueError(f"Got the space {space!r}, but expected one of this library.")
    if isinstance(space, KernelTrick):  # the basis is that of the anchors
        n = len(space.anchors_)
        return KernelValues(space.kernel_, anchors_of(space)), np.eye(n), np.zeros((1, n))
    P, offset = _wide(space.projection_), _wide(space.offset_)
    if isinstance(space, RandomFeatures):
        return Waves(to_numpy(space.frequencies_), to_numpy(space.amplitudes_)), P, offset
    return KernelValues(space.kernel_, anchors_of(space)), P, offset


def anchors_of(space: Any) -> np.ndarray:
    """The anchors of a space, dense and in float64; column numbers as they are."""
    anchors = space.anchors_
    anchors = anchors.toarray() if is_sparse(anchors) else to_numpy(anchors)
    return anchors if anchors.dtype.kind in "iu" else anchors.astype(np.float64)
