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
from kernelmetric.kernels import Kernel, Precomputed
from kernelmetric.selection._alignment import KernelAlignment
from kernelmetric.selection._kernel_choice import as_choice
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge
from kernelmetric.spaces import KPCA, Space

_LEARNED = {"auto": LeaveOneOutRidge, "aligned": KernelAlignment}


def automatic_kernel(kernel: Any) -> Kernel:
    """The kernel a user means.

    Parameters
    ----------
    kernel : str, Kernel or callable
        "auto" is :class:`LeaveOneOutRidge`, "aligned" is :class:`KernelAlignment`. Everything else
        passes through :func:`kernelmetric.kernels.as_kernel`; a kernel that has several versions of
        itself becomes the :class:`KernelChoice` among them.

    Returns
    -------
    Kernel
        Not yet bound to data.
    """
    if isinstance(kernel, str) and kernel in _LEARNED:
        return _LEARNED[kernel]()
    return as_choice(kernel)


class KernelPath:
    """Coordinates of two sets of points under many kernels, at many ranks.

    Kernels that are functions of the squared distance are computed from one block of distances.
    Coordinates of rank r are the first r columns of those of a higher rank, so one basis serves all
    ranks.

    Parameters
    ----------
    X : array of shape (n, d)
        Training points, from which kernels and bases are learned.
    y : array of shape (n,)
        Their labels, for kernels that look at them; where points have weights,
        :class:`~kernelmetric.inputs.WeightedLabels`.
    X_new : array of shape (m, d)
        Other points.
    ranks : sequence of int or None
        Numbers of coordinates; None means as many as ``space`` itself gives.
    space : Space, default=None
        Where coordinates come from; cloned for every kernel. None is :class:`KPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import RBF
    >>> from kernelmetric.selection import KernelPath
    >>> X = np.random.RandomState(0).randn(30, 3)
    >>> path = KernelPath(X[:20], None, X[20:], [5, None])
    >>> for sigma in (0.5, 1.0):
    ...     Z, Z_new = path.coordinates(RBF(sigma=sigma))
    ...     print([Z[:, : path.n_columns(rank, Z)].shape for rank in path.ranks], Z_new.shape)
    [(20, 5), (20, 19)] (10, 19)
    [(20, 5), (20, 19)] (10, 19)
    """

    def __init__(
        self, X: Any, y: Any, X_new: Any, ranks: Sequence[int | None], space: Space | None = None
    ):
        self.X, self.y, self.X_new = X, y, X_new
        self.ranks, self.space = ranks, KPCA() if space is None else space

    def coordinates(self, kernel: Any) -> tuple[Any, Any]:
        """Coordinates at the highest rank asked for.

        Parameters
        ----------
        kernel : str, Kernel or callable
            As in :class:`Kernelized`.

        Returns
        -------
        Z : array of shape (n, r)
            Coordinates of X, which the kernel and the basis were learned from.
        Z_new : array of shape (m, r)
            Coordinates of X_new.
        """
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
        """Number of leading columns of Z that make up a rank.

        Parameters
        ----------
        rank : int or None
            One of ``ranks``.
        Z : array of shape (n, r)
            What :meth:`coordinates` returned.

        Returns
        -------
        int
            At most r, which is lower than the rank asked for when the kernel's is.
        """
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
