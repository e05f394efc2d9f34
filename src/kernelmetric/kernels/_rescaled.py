"""Kernels of points whose features were rescaled, or mapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute import is_sparse, like, map_rows
from kernelmetric.compute.reductions import map_points
from kernelmetric.kernels._base import Kernel


class Rescaled(Kernel):
    r"""A kernel of points whose features were multiplied by scales first.

    .. math:: k(x, y) = k_0(s \circ x, s \circ y)

    Parameters
    ----------
    kernel : Kernel
        The kernel :math:`k_0`.
    scales : array-like of shape (d,) or (r, d)
        The scale s of each feature; zero leaves a feature out. A matrix maps the points: each of
        its rows makes one feature of the kernel inside.

    Examples
    --------
    >>> from kernelmetric.kernels import RBF, Rescaled
    >>> kernel = Rescaled(RBF(gamma=1.0), scales=[1.0, 0.0])
    >>> kernel([[0.0, 7.0]], [[1.0, 3.0]]).round(3)
    array([[0.368]])
    """

    def __init__(self, kernel: Kernel, scales: Any):
        self.kernel = kernel
        self.scales = scales

    @property
    def accepts_sparse(self) -> bool:
        """Whether the kernel inside accepts sparse points."""
        self._check_kernel()
        return self.kernel.accepts_sparse

    @property
    def is_bound(self) -> bool:
        """Whether the kernel inside can be evaluated."""
        self._check_kernel()
        return self.kernel.is_bound

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        self._check_kernel()
        # A copy of the scales: these may be an array of the caller's.
        kernel = self.kernel.bind(self._rescale(X), y)
        return {"kernel": kernel, "scales": self._scales(X).copy()}

    def _evaluate(self, A: Any, B: Any) -> Any:
        return self.kernel._evaluate(self._rescale(A), None if B is None else self._rescale(B))

    def _diagonal(self, A: Any) -> Any:
        return self.kernel._diagonal(self._rescale(A))

    def _check_kernel(self) -> None:
        if not isinstance(self.kernel, Kernel) or self.kernel.pairwise:
            raise ValueError(
                f"Got {self.kernel!r} to rescale, but expected a kernel of points: try RBF()."
            )

    def _scales(self, A: Any) -> np.ndarray:
        try:
            scales = np.asarray(self.scales, dtype=np.float64)
        except (OverflowError, TypeError, ValueError):
            scales = np.asarray(np.nan)
        good = scales.ndim in (1, 2) and scales.shape[-1] == A.shape[1] and scales.size
        if not good or not np.isfinite(scales).all():
            raise ValueError(
                f"Got scales={self.scales!r} for points with {A.shape[1]} features, but expected "
                "one finite number per feature, or rows of them: try np.ones(X.shape[1])."
            )
        return scales

    def _rescale(self, A: Any) -> Any:
        scales = self._scales(A)
        if scales.ndim == 2:
            return A @ scales.T if is_sparse(A) else map_points(A, like(scales, A))
        scales = like(scales, A)[None, :]
        if is_sparse(A):
            return A.multiply(scales).tocsr()
        return map_rows(lambda rows: A[rows, :] * scales, A.shape[0], 8 * A.shape[1])


def rescaled(points: np.ndarray, scales: Any) -> np.ndarray:
    """Points (..., d) times scales (d,), or under a map (r, d), as :class:`Rescaled` does it."""
    scales = np.asarray(scales, dtype=np.float64)
    return points @ scales.T if scales.ndim == 2 else points * scales


def pulled_back(gradients: np.ndarray, scales: Any) -> np.ndarray:
    """From gradients by rescaled points to those by the points themselves."""
    scales = np.asarray(scales, dtype=np.float64)
    return gradients @ scales if scales.ndim == 2 else gradients * scales
