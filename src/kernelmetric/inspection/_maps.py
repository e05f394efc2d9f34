"""The map of a fitted metric and its derivatives: by formula, or by differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context

from kernelmetric.compute import is_sparse, map_rows, sum_rows, to_numpy
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernelized._folded import can_fold
from kernelmetric.kernels import (
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Product,
    RadialKernel,
    Rescaled,
    Sum,
    pulled_back,
    rescaled,
)
from kernelmetric.kernels._dot import unit_rows
from kernelmetric.learners import Learner
from kernelmetric.selection._ridge_kpca import without_ridge
from kernelmetric.spaces import KernelTrick, Space

_STEP = float(np.cbrt(np.finfo(np.float64).eps))  # where truncation and rounding are alike


class Box(NamedTuple):
    """The range of every feature: differences are taken within it, in steps of its size."""

    low: np.ndarray
    high: np.ndarray


def has_gradient(kernel: Kernel) -> bool:
    """Whether the derivatives of a kernel have a formula here."""
    if isinstance(kernel, Sum | Product):
        return all(map(has_gradient, kernel.kernels))
    if isinstance(kernel, Rescaled):
        return has_gradient(kernel.kernel)
    return isinstance(kernel, RadialKernel) or type(kernel) in _FORMULAS


def gradients(kernel: Kernel, P: np.ndarray, B: np.ndarray, W: np.ndarray, box: Box) -> np.ndarray:
    """Gradients (m, d) of ``sum_i W[p, i] k(P[p], B[i])`` by the features of P, for constant W."""
    if isinstance(kernel, Sum):
        return sum((w * gradients(k, P, B, W, box) for w, k in kernel._flat()), np.zeros(P.shape))
    if isinstance(kernel, Product):
        values = [np.asarray(factor(P, B)) for factor in kernel.kernels]
        total = np.zeros(P.shape)
        for i, factor in enumerate(kernel.kernels):
            others = [K for j, K in enumerate(values) if j != i]
            total += gradients(factor, P, B, reduce(np.multiply, others, W), box)
        return total
    if isinstance(kernel, Rescaled):
        s = np.asarray(kernel.scales, dtype=np.float64)
        inside = _box_of(s, box)
        return pulled_back(gradients(kernel.kernel, rescaled(P, s), rescaled(B, s), W, inside), s)
    if isinstance(kernel, RadialKernel):
        return _of_radial(kernel, P, B, W)
    if type(kernel) in _FORMULAS:
        return _FORMULAS[type(kernel)](kernel, P, B, W)
    return differences(lambda points: np.sum(W * np.asarray(kernel(points, B)), axis=1), P, box)


def _box_of(scales: np.ndarray, box: Box) -> Box:
    """The ranges of rescaled features."""
    if scales.ndim == 1:
        return Box(*np.sort([scales * box.low, scales * box.high], axis=0))
    middle, half = scales @ (0.5 * (box.low + box.high)), np.abs(scales) @ (box.high - box.low)
    return Box(middle - 0.5 * half, middle + 0.5 * half)


def differences(function: Callable[[Any], Any], P: np.ndarray, box: Box) -> np.ndarray:
    """Derivatives (m, d) of a function of points by differences, one-sided at the ends of a box."""
    slopes = np.zeros(P.shape)
    steps = _STEP * (box.high - box.low)
    for k in range(P.shape[1]):
        up, down = P.copy(), P.copy()
        up[:, k] = np.minimum(P[:, k] + steps[k], np.maximum(box.high[k], P[:, k]))
        down[:, k] = np.maximum(P[:, k] - steps[k], np.minimum(box.low[k], P[:, k]))
        width = up[:, k] - down[:, k]
        if width.all():  # else the range is empty
            slopes[:, k] = (function(up) - function(down)) / width
    return slopes


def _of_radial(kernel: Any, P: np.ndarray, B: np.ndarray, W: np.ndarray) -> np.ndarray:
    V = W * np.asarray(kernel(P, B))
    centre = B.mean(axis=0)  # far from the origin, the difference below would lose digits
    return -2.0 * kernel._gamma() * (V.sum(axis=1)[:, None] * (P - centre) - V @ (B - centre))


def _of_laplacian(kernel: Any, P: np.ndarray, B: np.ndarray, W: np.ndarray) -> np.ndarray:
    V = -kernel._gamma() * W * np.asarray(kernel(P, B))
    columns = [np.sum(V * np.sign(p[:, None] - b), axis=1) for p, b in zip(P.T, B.T, strict=True)]
    return np.stack(columns, axis=1)


def _of_polynomial(kernel: Any, P: np.ndarray, B: np.ndarray, W: np.ndarray) -> np.ndarray:
    degree, gamma, coef0 = kernel._checked(kernel.gamma)
    return (W * (degree * gamma * (gamma * (P @ B.T) + coef0) ** (degree - 1))) @ B


def _of_cosine(kernel: Any, P: np.ndarray, B: np.ndarray, W: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(P, axis=1)[:, None]
    along = np.sum(W * np.asarray(kernel(P, B)), axis=1)[:, None]
    turned = W @ unit_rows(B) - along * unit_rows(P)
    return np.where(norms > 0, turned / np.where(norms > 0, norms, 1.0), 0.0)


_FORMULAS: dict[type, Callable[..., np.ndarray]] = {
    Laplacian: _of_laplacian,
    Linear: lambda kernel, P, B, W: W @ B,
    Polynomial: _of_polynomial,
    Cosine: _of_cosine,
}

# Integrals of the Laplacian kernel's gradient along a line. The kernel has a kink wherever the line
# passes a feature of an anchor, too many for quadrature. Between two kinks it is the exponential of
# a linear function, whose integral is known.
_SMALL = 1e-3  # half the change of an exponent below which its series is taken

Terms = list[tuple[float, np.ndarray, Any]]


def _terms(kernel: Kernel, scales: np.ndarray) -> Terms:
    """The terms of a sum of rescaled kernels, with their weights and the scales of features."""
    if isinstance(kernel, Rescaled):
        s = np.asarray(kernel.scales, dtype=np.float64)
        inner = pulled_back(s, scales) if s.ndim == 2 else (s * scales.T).T
        return _terms(kernel.kernel, inner)
    if not isinstance(kernel, Sum):
        return [(1.0, scales, kernel)]
    sums = [(weight, _terms(term, scales)) for weight, term in kernel._flat()]
    return [(weight * w, s, inner) for weight, terms in sums for w, s, inner in terms]


def laplacian_slopes(
    gamma: float, start: np.ndarray, delta: np.ndarray, B: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Mean gradient of ``sum_i weights[i] exp(-γ |x - B[i]|₁)`` over a line from its start."""
    moving = delta != 0  # of coded names, few: along the others there is no kink

    def of_anchors(part: slice) -> np.ndarray:
        offsets = B[part] - start
        kinks = np.sort(np.clip(offsets[:, moving] / delta[moving], 0.0, 1.0), axis=1)
        times = np.pad(kinks, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
        places = times[:, :, None] * delta - offsets[:, None, :]
        exponents = -gamma * np.abs(places).sum(axis=2)
        signs = np.sign(places[:, 1:] + places[:, :-1])
        masses = np.diff(times, axis=1) * _mean_exponential(exponents)
        return np.einsum("nsd,ns,n->d", signs, masses, weights[part], optimize=True) * -gamma

    return sum_rows(of_anchors, len(B), 4 * 8 * (len(delta) + 2) * len(delta))


def _mean_exponential(exponents: np.ndarray) -> np.ndarray:
    """Means of exp over segments on which the exponent is linear."""
    low, high = exponents[:, :-1], exponents[:, 1:]
    half = (high - low) / 2
    small = np.abs(half) < _SMALL
    steps = np.where(small, 1.0, 2 * half)
    series = np.exp((low + high) / 2) * (1 + half**2 / 6 + half**4 / 120)
    return np.where(small, series, (np.exp(high) - np.exp(low)) / steps)


class SampledMap:
    """Any map from points (m, d) to coordinates (m, q), known by its values."""

    how = "central differences of transform"
    ridge_scales: np.ndarray | None = None

    def __init__(self, function: Callable[[np.ndarray], np.ndarray], cost: int):
        self.values = function
        self.cost = cost  # operations for a gradient, roughly

    def slopes(self, P: np.ndarray, w: np.ndarray, box: Box) -> np.ndarray:
        """Gradients of the coordinate ⟨w, f(x)⟩ at points."""
        return differences(lambda points: self.values(points) @ w, P, box)


class LinearMap(SampledMap):
    """A linear map: its derivatives are its matrix L, everywhere."""

    how = "exact: the metric is linear"

    def __init__(self, L: np.ndarray):
        super().__init__(lambda P: P @ L.T, L.size)
        self.L = L

    def slopes(self, P: np.ndarray, w: np.ndarray, box: Box) -> np.ndarray:
        """Gradients of the coordinate ⟨w, f(x)⟩ at points."""
        return np.broadcast_to(w @ self.L, P.shape)


class KernelMap(SampledMap):
    """A map x ↦ k(x, B) A without the ridge of k, which moves training points alone."""

    def __init__(self, kernel: Kernel, B: np.ndarray, A: np.ndarray):
        super().__init__(self._coordinates, B.size + A.size)
        self.kernel, _, delta = without_ridge(kernel)
        self.B, self.A = B, A
        scales = delta.scales if isinstance(delta, Rescaled) else np.ones(B.shape[1])
        self.ridge_scales = None if delta is None else np.asarray(scales, dtype=float)
        exact = has_gradient(self.kernel)
        self.how = "gradients of the kernel" if exact else "central differences of the kernel"

    def slopes(self, P: np.ndarray, w: np.ndarray, box: Box) -> np.ndarray:
        """Gradients of the coordinate ⟨w, f(x)⟩ at points."""
        weights = self.A @ w

        def work(rows: slice) -> np.ndarray:
            W = np.broadcast_to(weights, (len(P[rows]), len(weights)))
            return gradients(self.kernel, P[rows], self.B, W, box)

        return map_rows(work, len(P), 6 * 8 * (self.B.shape[0] + self.B.shape[1]))

    def without_kinks(self, rows: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, KernelMap | None]:
        """Shares along a line that have a closed form, and the map of the rest."""
        terms = _terms(self.kernel, np.ones(self.B.shape[1]))
        step, shares, rest = rows[1] - rows[0], np.zeros(self.B.shape[1]), []
        for weight, s, kernel in terms:
            if type(kernel) is not Laplacian:
                rest.append((weight, Rescaled(kernel, s)))
                continue
            line = rescaled(rows[0], s), rescaled(step, s)
            slopes = laplacian_slopes(kernel._gamma(), *line, rescaled(self.B, s), self.A @ w)
            shares += weight * step * pulled_back(slopes, s)
        if len(rest) == len(terms):
            return shares, self
        others = Sum([kernel for _, kernel in rest], [weight for weight, _ in rest])
        return shares, KernelMap(others, self.B, self.A) if rest else None

    def _coordinates(self, P: np.ndarray) -> np.ndarray:
        """Learned coordinates of points, up to a constant."""

        def work(rows: slice) -> np.ndarray:
            return np.asarray(self.kernel(P[rows], self.B)) @ self.A

        return map_rows(work, len(P), 4 * 8 * (self.B.shape[0] + self.B.shape[1]))


def map_of(metric: Any) -> SampledMap:
    """The map of a fitted metric."""
    if isinstance(metric, Learner) and type(metric).transform is Learner.transform:
        if getattr(metric, "space_", None) is None:
            return LinearMap(_dense(metric.components_))
    elif isinstance(metric, Kernelized) and can_fold(metric.space_, metric.learner_):
        space = metric.space_
        if type(space)._features is Space._features:
            if isinstance(space, KernelTrick):
                B, P = space.anchors_, np.eye(space.anchors_.shape[0])
            else:
                B, P = space.anchors_, _dense(space.projection_)
            return KernelMap(space.kernel_, _dense(B), P @ _dense(metric.components_).T)
    # two values for every feature, each of as many operations as a kernel of 1,000 anchors takes
    return SampledMap(lambda points: embed(metric, points), 2_000 * metric.n_features_in_**2)


def embed(metric: Any, X: Any) -> np.ndarray:
    """Learned coordinates of points as an array, whatever output was set."""
    with warnings.catch_warnings(), config_context(transform_output="default"):
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        E = metric.transform(X)
    return to_numpy(E.to_numpy() if hasattr(E, "to_numpy") else E).astype(np.float64)


def _dense(A: Any) -> np.ndarray:
    return np.asarray(A.toarray() if is_sparse(A) else to_numpy(A), dtype=np.float64)
