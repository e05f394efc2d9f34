"""Scatter matrices of points in memory, and of points that lie on many machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import in_memory, sum_rows
from kernelmetric.inputs import Weights
from kernelmetric.learners._base import as_gram
from kernelmetric.learners._spectral import LeftOut, about_centres, ledoit_wolf, shrinkage_of
from kernelmetric.spaces import orthonormal

_SHIFT_ROWS = 256  # whose mean the points are moved by, so that squares lose no digits
_LEAST = 1e-13  # of the largest variance: so little is no direction


class Scatter(NamedTuple):
    """Covariances of points of unit size, in all and within groups, and the share to shrink by."""

    total: np.ndarray
    within: np.ndarray
    shrinkage: float
    leave: Callable[[np.ndarray], np.ndarray]  # a map in these coordinates as one of the points
    Z: Any = None  # the points, where they are in memory,
    shares: Any = None  # and what each counts


def scatter_of(
    X: Any, codes: np.ndarray, shrinkage: float | str, gram: Any, weights: Weights | None
) -> Scatter:
    """The scatter of points in groups; a code of -1 is in no group."""
    if not in_memory(X):
        return _scatter_by_passes(X, codes, shrinkage)
    coordinates = orthonormal(X, as_gram(gram))
    Z, inside = coordinates.Z, codes >= 0
    shares = np.ones(len(Z)) if weights is None else weights.shares
    Z = Z if weights is None else Z - weights.mean(Z)
    about, counts = about_centres(Z, codes, shares), shares[inside]
    share = shrinkage_of(about, codes[inside], shrinkage, counts)
    total = Z.T @ (shares[:, None] * Z) / np.sum(shares)
    within = about.T @ (counts[:, None] * about) / np.sum(counts)
    return Scatter(total, within, share, coordinates.leave, Z, shares)


def _scatter_by_passes(X: Any, codes: np.ndarray, shrinkage: float | str) -> Scatter:
    """The same by passes over rows on many machines, where every direction has variance."""
    n, d = X.shape
    codes = codes.astype(np.int32)
    n_groups = int(codes.max()) + 1
    shift = X[slice(0, min(_SHIFT_ROWS, n)), :].mean(axis=0, dtype=np.float64)

    def means(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        Z = X[rows, :] - shift
        sums = np.zeros((n_groups + 1, d))  # the last one is of those in no group
        np.add.at(sums, codes[rows], Z)
        return sums, np.bincount(codes[rows] % (n_groups + 1), minlength=n_groups + 1)

    sums, counts = sum_rows(means, n, 3 * 8 * d)
    mean = sums.sum(axis=0) / n
    centres = sums / np.maximum(counts, 1)[:, None]

    def scatter(rows: slice) -> tuple[np.ndarray, np.ndarray, float]:
        Z = X[rows, :] - shift
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
    within, size = within / (members * squared), np.sqrt(squared)
    share = ledoit_wolf(within, fourth / squared**2, members)
    left_out = LeftOut(within * members, counts[:n_groups], share)

    def losses(rows: slice) -> tuple[np.ndarray]:
        of, Z = codes[rows], (X[rows, :] - shift) / size
        of, about = of[of >= 0], (Z - centres[of] / size)[of >= 0]
        return (left_out.losses(about, counts[of], np.ones(len(of))),)

    if shrinkage != "auto":
        share = float(shrinkage)
    elif len(left_out.shares) > 1:
        share = left_out.share(sum_rows(losses, n, 5 * 8 * d)[0], members)
    return Scatter(total / (n * squared), within, share, lambda L: L / size)
