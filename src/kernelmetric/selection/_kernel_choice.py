"""The kernel that is meant: what "auto" is, the best of a list, one after the other in a search."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from kernelmetric import compute
from kernelmetric.compute.reductions import squared_distances
from kernelmetric.compute.watch import stage, until_limit
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs import labels_and_weights
from kernelmetric.inputs._parameters import Numbers, check_flags
from kernelmetric.kernels import Kernel, Precomputed, Sum, as_kernel
from kernelmetric.kernels._terms import Terms
from kernelmetric.selection._alignment import KernelAlignment
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge
from kernelmetric.selection._ridge_solution import ridge_of
from kernelmetric.spaces import KPCA, Space

_FEWEST_ROWS = 8


@dataclass(eq=False, repr=False)
class KernelChoice(Terms, Kernel):
    """The kernel of a list that predicts left-out points best by ridge regression.

    For kernels of any kind. Every kernel is evaluated on a sample of the rows, with sixteen ridges,
    and each row is predicted from the others in closed form. A kernel that has several versions of
    itself to choose from, such as ``NGrams()``, stands for all of them.

    Parameters
    ----------
    kernels : list of Kernel
        Kernels of the same points, which do not learn from labels.
    max_samples : int, default=1000
        Rows that are looked at, O(n³) time for each kernel.
    random_state : int, RandomState or None, default=0
        For the sample.
    verbose : bool, default=False
        Say on standard error when the choice begins, and which kernel it is.

    Notes
    -----
    What ``bind`` returns carries ``ridge_`` and ``candidates_``, the mean squared error of each
    kernel by its name. Where labels cannot choose (there are none, they are all the same, or of
    fewer than eight points) it is the first kernel of the list.

    Examples
    --------
    >>> from kernelmetric.kernels import Linear, Polynomial
    >>> from kernelmetric.selection import KernelChoice
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelChoice([Linear(), Polynomial(3)]).bind(X, y)
    Polynomial(degree=3, gamma=1.0)
    """

    kernels: Any
    _: KW_ONLY
    max_samples: int = 1000
    random_state: Any = 0
    verbose: bool = False

    is_bound = False

    @property
    def accepts_sparse(self) -> bool:
        """Whether every kernel accepts sparse points."""
        return all(kernel.accepts_sparse for kernel in self._listed())

    def _listed(self) -> list[Kernel]:
        Sum(self.kernels)._checked()
        return [version for kernel in self.kernels for version in kernel._versions()]

    def _bound(self, X: Any, y: Any) -> Kernel:
        check_flags(self)
        Numbers(Integral, low=_FEWEST_ROWS).check(self, "max_samples")
        labels, weights = labels_and_weights(y)
        kernels, targets = self._listed(), None if labels is None else coded_targets(labels, X)
        if targets is None or len(targets.key) < _FEWEST_ROWS:
            return kernels[0].bind(X, y)
        rows = targets.sample(self.max_samples, self.random_state)
        points, Y = compute.take_rows(X, rows), targets.columns(rows)
        if not np.ptp(Y, axis=0).any():
            return kernels[0].bind(X, y)
        roots = np.ones(len(rows)) if weights is None else np.sqrt(weights.masses[rows])
        chosen, best, candidates = kernels[0], (np.inf, 0.0), {}
        what = f"{type(self).__name__}: comparing {len(kernels)} kernels on {len(rows):,} rows"
        with compute.repeatable(), stage(what, shown=self.verbose) as working:
            for kernel in until_limit(kernels, "kernels"):
                # without labels: what was made of them would be judged by them
                K = compute.to_numpy(kernel.bind(points)(points)).astype(np.float64)
                ridge, error, _ = ridge_of(K, Y, roots)
                candidates[repr(kernel)] = error
                if error < best[0]:
                    chosen, best = kernel, (error, ridge)
            working.note = f"{chosen!r}, left-out error {best[0]:.3g}"
        bound = chosen.bind(X, y)
        bound.__dict__.update(ridge_=best[1], candidates_=candidates)
        return bound


def as_choice(spec: Any) -> Kernel:
    """A kernel, where it has several versions of itself the choice among them."""
    kernel = as_kernel(spec)
    return kernel if kernel.is_bound or len(kernel._versions()) == 1 else KernelChoice([kernel])


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
            counts = {} if weights is None else {"sample_weight": weights.counts}
            Z = space.fit_transform(blocks[0], **counts)
            Z_new = space.transform(blocks[1])
        xp = compute.namespace(Z)
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
        if not compute.fits_budget(8 * (4 * n * n + 2 * m * n)):
            return None
        X, X_new = compute.precise(self.X), compute.precise(self.X_new)
        with np.errstate(all="ignore"):
            D2, D2_new = squared_distances(X, X), squared_distances(X_new, X)
        # Where they overflow, the kernel itself says best what is wrong.
        return (D2, D2_new) if compute.all_finite(D2) and compute.all_finite(D2_new) else None

    @property
    def _own_rank(self) -> Any:
        return self.space.get_params().get("n_components")

    def _highest_rank(self) -> dict[str, Any]:
        if all(rank is None for rank in self.ranks):
            return {}
        wanted = [self._own_rank if rank is None else rank for rank in self.ranks]
        return {"n_components": max(wanted) if all(rank is not None for rank in wanted) else None}
