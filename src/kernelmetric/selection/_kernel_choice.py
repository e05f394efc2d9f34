"""The kernel of a list that predicts left-out points best."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np

from kernelmetric.compute import repeatable, take_rows, to_numpy
from kernelmetric.compute.watch import stage, until_limit
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs import labels_and_weights
from kernelmetric.inputs._parameters import Numbers, check_flags
from kernelmetric.kernels import Kernel, Sum, as_kernel
from kernelmetric.kernels._terms import Terms
from kernelmetric.selection._ridge_solution import ridge_of

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
        points, Y = take_rows(X, rows), targets.columns(rows)
        if not np.ptp(Y, axis=0).any():
            return kernels[0].bind(X, y)
        roots = np.ones(len(rows)) if weights is None else np.sqrt(weights.masses[rows])
        chosen, best, candidates = kernels[0], (np.inf, 0.0), {}
        what = f"{type(self).__name__}: comparing {len(kernels)} kernels on {len(rows):,} rows"
        with repeatable(), stage(what, shown=self.verbose) as working:
            for kernel in until_limit(kernels, "kernels"):
                # without labels: what was made of them would be judged by them
                K = to_numpy(kernel.bind(points)(points)).astype(np.float64)
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
