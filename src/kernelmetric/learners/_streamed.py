"""Scatter matrices of points that lie on many machines, by passes over their rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import sum_rows, widened
from kernelmetric.learners._spectral import LeftOut

_SHIFT_ROWS = 256  # whose mean the points are moved by, so that squares lose no digits
_LEAST = 1e-13  # of the largest variance: so little is no direction


class Scatter(NamedTuple):
    """Covariances of points scaled to mean squared length one, in all and within groups.

    ``size`` is the length of that unit in the units of the points.
    """

    total: np.ndarray
    within: np.ndarray
    shrinkage: float
    size: float


def scatter_of(X: Any, codes: np.ndarray) -> Scatter:
    """The scatter of rows on many machines, in float64; a code of -1 is in no group.

    Refused where some direction has no variance: sums cannot tell it from rounding.
    """
    n, d = X.shape
    codes = codes.astype(np.int32)
    n_groups = int(codes.max()) + 1
    first = widened(X[slice(0, min(_SHIFT_ROWS, n)), :])
    shift = first.mean(axis=0)

    def means(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        Z = widened(X[rows, :]) - shift
        sums = np.zeros((n_groups + 1, d))  # the last one is of those in no group
        np.add.at(sums, codes[rows], Z)
        return sums, np.bincount(codes[rows] % (n_groups + 1), minlength=n_groups + 1)

    sums, counts = sum_rows(means, n, 3 * 8 * d)
    mean = sums.sum(axis=0) / n
    centres = sums / np.maximum(counts, 1)[:, None]

    def scatter(rows: slice) -> tuple[np.ndarray, np.ndarray, float]:
        Z = widened(X[rows, :]) - shift
        about = (Z - centres[codes[rows]])[codes[rows] >= 0]
        Z = Z - mean
        return Z.T @ Z, about.T @ about, float(np.sum(np.einsum("ij,ij->i", about, about) ** 2))

    total, within, fourth = sum_rows(scatter, n, 5 * 8 * d)
    squared = float(np.trace(total)) / n
    variances = np.linalg.eigvalsh(total)
    if not squared > 0 or variances[0] <= _LEAST * variances[-1]:
        raise ValueError(
            f"Got {n} points on many machines that vary in less than {d} directions, but expected "
            "features of which none follows from the others: drop these, or try workers with "
            "room for all points."
        )
    members = int(counts[:n_groups].sum())
    within, fourth = within / (members * squared), fourth / squared**2
    left_out = LeftOut(within * members, counts[:n_groups], _ledoit_wolf(within, fourth, members))

    def losses(rows: slice) -> tuple[np.ndarray]:
        of, Z = codes[rows], (widened(X[rows, :]) - shift) / np.sqrt(squared)
        of, about = of[of >= 0], (Z - centres[of] / np.sqrt(squared))[of >= 0]
        return (left_out.losses(about, counts[of], np.ones(len(of))),)

    lost = np.zeros(1) if len(left_out.shares) == 1 else sum_rows(losses, n, 5 * 8 * d)[0]
    shrinkage = left_out.share(lost, members)
    return Scatter(total / (n * squared), within, shrinkage, float(np.sqrt(squared)))


def _ledoit_wolf(S: np.ndarray, fourth: float, n: int) -> float:
    """The shrinkage of a covariance about zero, from the sum of the fourth powers of lengths."""
    d = len(S)
    squares, mean = float(np.sum(S * S)), float(np.trace(S)) / d
    spread = (squares - d * mean**2) / d
    noise = min((fourth / n - squares) / (d * n), spread)
    return 0.0 if noise == 0 else max(noise, 0.0) / spread
