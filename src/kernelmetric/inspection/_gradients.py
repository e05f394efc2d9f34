"""Values of kernels and their derivatives by the first point: by formula, or by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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
)
from kernelmetric.kernels._dot import unit_rows

_STEP = float(np.cbrt(np.finfo(np.float64).eps))  # where truncation and rounding are alike


class Box(NamedTuple):
    """The range of every feature: differences are taken within it, in steps of its size.

    Parameters
    ----------
    low, high : ndarray of shape (d,)
        The ends.
    """

    low: np.ndarray
    high: np.ndarray


def has_gradient(kernel: Kernel) -> bool:
    """Whether the derivatives of a kernel have a formula here."""
    if isinstance(kernel, Sum | Product):
        return all(map(has_gradient, kernel.kernels))
    if isinstance(kernel, Rescaled):
        return has_gradient(kernel.kernel)
    return isinstance(kernel, RadialKernel) or type(kernel) in _FORMULAS


def gradients(kernel: Kernel, P: np.ndarray, B: np.ndarray, box: Box) -> tuple[Any, Any]:
    """Kernel values of points with anchors, and their derivatives by the features of the points.

    Parameters
    ----------
    kernel : Kernel
        A bound kernel.
    P : ndarray of shape (m, d)
        Points.
    B : ndarray of shape (n, d)
        Anchors.
    box : Box
        Where a kernel without a formula may be evaluated.

    Returns
    -------
    K : ndarray of shape (m, n)
        Values.
    G : ndarray of shape (m, n, d)
        Derivatives.
    """
    if isinstance(kernel, Sum):
        parts = [(w, *gradients(term, P, B, box)) for w, term in kernel._flat()]
        return sum(w * K for w, K, _ in parts), sum(w * G for w, _, G in parts)
    if isinstance(kernel, Product):
        K, G = gradients(kernel.kernels[0], P, B, box)
        for factor in kernel.kernels[1:]:
            K2, G2 = gradients(factor, P, B, box)
            K, G = K * K2, G * K2[:, :, None] + K[:, :, None] * G2
        return K, G
    if isinstance(kernel, Rescaled):
        s = np.asarray(kernel.scales, dtype=np.float64)
        ends = np.sort([s * box.low, s * box.high], axis=0)
        K, G = gradients(kernel.kernel, s * P, s * B, Box(*ends))
        return K, G * s
    K = np.asarray(kernel(P, B))
    if isinstance(kernel, RadialKernel):
        return K, -2.0 * kernel._gamma() * K[:, :, None] * (P[:, None, :] - B)
    if type(kernel) in _FORMULAS:
        return K, _FORMULAS[type(kernel)](kernel, K, P, B)
    return K, differences(lambda points: np.asarray(kernel(points, B)), P, box)


def differences(function: Callable[[Any], Any], P: np.ndarray, box: Box) -> np.ndarray:
    """Derivatives of a function of points by central differences; at the ends of a range one-sided.

    Parameters
    ----------
    function : callable
        From points of shape (m, d) to an array of shape (m, ...).
    P : ndarray of shape (m, d)
        Points of the box.
    box : Box
        Ranges; by a feature whose range is empty the derivative is not asked for, and zero.

    Returns
    -------
    ndarray of shape (m, ..., d)
        Derivatives.
    """
    columns: list[Any] = [None] * P.shape[1]
    steps = _STEP * (box.high - box.low)
    for k in range(P.shape[1]):
        up, down = P.copy(), P.copy()
        up[:, k] = np.minimum(P[:, k] + steps[k], np.maximum(box.high[k], P[:, k]))
        down[:, k] = np.maximum(P[:, k] - steps[k], np.minimum(box.low[k], P[:, k]))
        width = up[:, k] - down[:, k]
        if width.all():
            change = function(up) - function(down)
            columns[k] = change / width.reshape(-1, *[1] * (change.ndim - 1))
    known = next((column for column in columns if column is not None), None)
    nothing = np.zeros_like(function(P) if known is None else known)
    return np.stack([nothing if column is None else column for column in columns], axis=-1)


def _of_laplacian(kernel: Any, K: np.ndarray, P: np.ndarray, B: np.ndarray) -> np.ndarray:
    return -kernel._gamma() * K[:, :, None] * np.sign(P[:, None, :] - B)


def _of_linear(kernel: Any, K: np.ndarray, P: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.broadcast_to(B, (len(P), *B.shape))


def _of_polynomial(kernel: Any, K: np.ndarray, P: np.ndarray, B: np.ndarray) -> np.ndarray:
    degree, gamma, coef0 = kernel._checked(kernel.gamma)
    slope = degree * gamma * (gamma * (P @ B.T) + coef0) ** (degree - 1)
    return slope[:, :, None] * B


def _of_cosine(kernel: Any, K: np.ndarray, P: np.ndarray, B: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(P, axis=1)[:, None, None]
    turned = unit_rows(B) - K[:, :, None] * unit_rows(P)[:, None, :]
    return np.where(norms > 0, turned / np.where(norms > 0, norms, 1.0), 0.0)


_FORMULAS: dict[type, Callable[..., np.ndarray]] = {
    Laplacian: _of_laplacian,
    Linear: _of_linear,
    Polynomial: _of_polynomial,
    Cosine: _of_cosine,
}
