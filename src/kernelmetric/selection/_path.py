"""The automatic kernel; and one block of distances for all radial kernels of a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from kernelmetric.compute import all_finite, fits_budget, namespace, precise
from kernelmetric.compute.reductions import squared_distances
from kernelmetric.inputs import WeightedLabels, labels_and_weights
from kernelmetric.kernels import Kernel, Precomputed, as_kernel
from kernelmetric.selection._alignment import KernelAlignment
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge
from kernelmetric.spaces import KPCA, Space

_LEARNED = {"auto": LeaveOneOutRidge, "aligned": KernelAlignment}


def automatic_kernel(kernel: Any) -> Kernel:
    """The kernel a user means, not yet bound: "auto", "aligned", or what ``as_kernel`` takes."""
    if isinstance(kernel, str) and kernel in _LEARNED:
        return _LEARNED[kernel]()
    return as_kernel(kernel)


class KernelPath:
    """Coordinates of two sets of points, X and X_new, under many kernels, at many ranks.

    Kernels that are functions of the squared distance are computed from one block of distances.
    Coordinates of rank r are the first r columns of those of a higher rank, so one basis serves all
    ranks; None is the rank that ``space`` itself gives. Kernels may look at y, of which weights are
    a part where there are any.
    """

    def __init__(
        self, X: Any, y: Any, X_new: Any, ranks: Sequence[int | None], space: Space | None = None
    ):
        self.X, self.y, self.X_new = X, y, X_new
        self.ranks, self.space = ranks, KPCA() if space is None else space

    def coordinates(self, kernel: Any) -> tuple[Any, Any]:
        """Coordinates of X and of X_new at the highest rank asked for."""
        bound = automatic_kernel(kernel).bind(self.X, self.y)
        space = clone(self.space).set_params(kernel=bound, **self._highest_rank())
        blocks = [self.X, self.X_new]
        if isinstance(space, KPCA) and bound.is_radial and self.distances is not None:
            space.set_params(kernel=Precomputed())
            blocks = [bound.of_squared_distances(D2) for D2 in self.distances]
        with config_context(transform_output="default"):
            weights = labels_and_weights(self.y)[1]
            if weights is None:
                Z = space.fit_transform(blocks[0])
            else:
                Z = space._fit_checked(space._checked(blocks[0]), WeightedLabels(None, weights))
            Z_new = space.transform(blocks[1])
        xp = namespace(Z)
        dtype = self.X.dtype
        return xp.astype(Z, dtype, copy=False), xp.astype(Z_new, dtype, copy=False)

    def n_columns(self, rank: int | None, Z: Any) -> int:
        """Number of leading columns of Z that make up a rank; fewer where the kernel's is lower."""
        rank = self._own_rank if rank is None else rank
        return min(int(rank), Z.shape[1]) if isinstance(rank, Integral) else Z.shape[1]

    @cached_property
    def distances(self) -> tuple[Any, Any] | None:
        """Squared distances of X and X_new to X, in float64; None where they cannot be held."""
        n, m = self.X.shape[0], self.X_new.shape[0]
        # besides the distances: K, its centred copy and the eigenvectors, and K of the new points
        if not fits_budget(8 * (4 * n * n + 2 * m * n)):
            return None
        X, X_new = precise(self.X), precise(self.X_new)
        with np.errstate(all="ignore"):
            D2, D2_new = squared_distances(X, X), squared_distances(X_new, X)
        # Where they overflow, the kernel itself says best what is wrong.
        return (D2, D2_new) if all_finite(D2) and all_finite(D2_new) else None

    @property
    def _own_rank(self) -> Any:
        return self.space.get_params().get("n_components")

    def _highest_rank(self) -> dict[str, Any]:
        if all(rank is None for rank in self.ranks):
            return {}
        wanted = [self._own_rank if rank is None else rank for rank in self.ranks]
        return {"n_components": max(wanted) if all(rank is not None for rank in wanted) else None}
