"""Gradients of kernels by the first point: by formula, or by differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import sum_rows
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
        slopes = gradients(kernel.kernel, rescaled(P, s), rescaled(B, s), W, inside)
        return pulled_back(slopes, s)
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


def _of_linear(kernel: Any, P: np.ndarray, B: np.ndarray, W: np.ndarray) -> np.ndarray:
    return W @ B


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
    Linear: _of_linear,
    Polynomial: _of_polynomial,
    Cosine: _of_cosine,
}

# Integrals of the Laplacian kernel's gradient along a line. The kernel has a kink wherever the line
# passes a feature of an anchor, too many for quadrature. Between two kinks it is the exponential of
# a linear function, whose integral is known.
_SMALL = 1e-3  # half the change of an exponent below which its series is taken

Terms = list[tuple[float, np.ndarray, Laplacian]]


def split_laplacian(kernel: Kernel, n_features: int) -> tuple[Terms, Kernel | None]:
    """The Laplacian terms of a kernel with weights and scales, and the rest; None for no rest."""
    if type(kernel) is Laplacian:
        return [(1.0, np.ones(n_features), kernel)], None
    if isinstance(kernel, Rescaled):
        scales = np.asarray(kernel.scales, dtype=np.float64)
        terms, rest = split_laplacian(kernel.kernel, len(scales))
        scaled = [
            (weight, pulled_back(s, scales) if s.ndim == 2 else (s * scales.T).T, term)
            for weight, s, term in terms
        ]
        return scaled, None if rest is None else Rescaled(rest, kernel.scales)
    if not isinstance(kernel, Sum):
        return [], kernel
    found: Terms = []
    weights, kernels = [], []
    for weight, term in kernel._flat():
        terms, rest = split_laplacian(term, n_features)
        found += [(weight * w, s, inner) for w, s, inner in terms]
        if rest is not None:
            weights.append(weight)
            kernels.append(rest)
    return found, Sum(kernels, weights) if kernels else None


def laplacian_shares(
    terms: Terms, rows: np.ndarray, B: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Integrals of the gradient of ``sum_i weights[i] k(x, B[i])`` from row to row, times steps."""
    total = np.zeros(B.shape[1])
    for weight, scales, kernel in terms:
        start, delta = rescaled(rows[0], scales), rescaled(rows[1] - rows[0], scales)
        slopes_of = partial(_slopes, B, weights, scales, start, delta, kernel._gamma())
        r = len(delta)
        slopes = sum_rows(slopes_of, len(B), 4 * 8 * (r + 2) * r)
        total += weight * (rows[1] - rows[0]) * pulled_back(slopes, scales)
    return total


def _slopes(
    B: np.ndarray,
    weights: np.ndarray,
    scales: np.ndarray,
    start: np.ndarray,
    delta: np.ndarray,
    gamma: float,
    part: slice,
) -> np.ndarray:
    """Mean gradients over the line of the terms of some anchors."""
    offsets = rescaled(B[part], scales) - start  # where the anchors lie, from the start
    moving = delta != 0  # of coded names, few: along the others there is no kink
    kinks = np.sort(np.clip(offsets[:, moving] / delta[moving], 0.0, 1.0), axis=1)
    times = np.pad(kinks, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    places = times[:, :, None] * delta - offsets[:, None, :]
    exponents = -gamma * np.abs(places).sum(axis=2)
    signs = np.sign(places[:, 1:] + places[:, :-1])
    masses = np.diff(times, axis=1) * _mean_exponential(exponents)
    return np.einsum("nsd,ns,n->d", signs, masses, weights[part], optimize=True) * -gamma


def _mean_exponential(exponents: np.ndarray) -> np.ndarray:
    """Means of exp over segments on which the exponent is linear."""
    low, high = exponents[:, :-1], exponents[:, 1:]
    half = (high - low) / 2
    small = np.abs(half) < _SMALL
    steps = np.where(small, 1.0, 2 * half)
    series = np.exp((low + high) / 2) * (1 + half**2 / 6 + half**4 / 120)
    return np.where(small, series, (np.exp(high) - np.exp(low)) / steps)
