"""Integrals of the Laplacian kernel's gradient along a line, in closed form.

The kernel has a kink wherever the line passes a feature of an anchor, too many for quadrature.
Between two kinks it is the exponential of a linear function, whose integral is known.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kernelmetric.compute import sum_rows
from kernelmetric.kernels import Kernel, Laplacian, Rescaled, Sum, pulled_back, rescaled

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
    moving = np.where(delta == 0, 1.0, delta)
    kinks = np.where(delta == 0, 0.0, offsets / moving)
    kinks = np.sort(np.clip(kinks, 0.0, 1.0), axis=1)
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
