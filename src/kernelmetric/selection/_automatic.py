"""The automatic kernel and the automatic space."""

from __future__ import annotations

from typing import Any

from kernelmetric.compute import current_budget
from kernelmetric.kernels import Kernel, KernelAlignment, as_kernel
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge
from kernelmetric.spaces import KPCA, Nystroem, Space

FULL_RANK_ROWS = 2_000
LOW_RANK_ROWS = 10_000
LOW_RANK = 256
LANDMARKS = 1_000
_LEARNED = {"auto": LeaveOneOutRidge, "aligned": KernelAlignment}


def automatic_kernel(kernel: Any) -> Kernel:
    """The kernel a user means.

    Parameters
    ----------
    kernel : str, Kernel or callable
        "auto" is :class:`LeaveOneOutRidge`, the kernel and the ridge with which ridge regression
        predicts points left out best; without labels, the RBF of median width. "aligned" is
        :class:`KernelAlignment`, the papers' sum of 21 widths. Everything else passes through
        :func:`kernelmetric.as_kernel`.

    Returns
    -------
    Kernel
        Not yet bound to data.
    """
    if isinstance(kernel, str) and kernel in _LEARNED:
        return _LEARNED[kernel]()
    return as_kernel(kernel)


def automatic_space(n_samples: int, random_state: Any = None) -> Space:
    """The space for a training set of this size.

    Parameters
    ----------
    n_samples : int
        Number of training points.
    random_state : int, RandomState or None, default=None
        For spaces that draw random numbers.

    Returns
    -------
    Space
        Full-rank KPCA up to 2,000 points; KPCA of rank 256 up to 10,000; beyond, or where the
        Gram matrix does not fit the memory budget, 1,000 landmarks reduced to rank 256.
    """
    budget = current_budget()
    if n_samples <= FULL_RANK_ROWS and 3 * 8 * n_samples**2 <= budget:
        return KPCA()
    if n_samples <= LOW_RANK_ROWS and 2 * 8 * n_samples**2 <= budget:
        return KPCA(min(LOW_RANK, n_samples - 1), random_state=random_state)
    return Nystroem(min(LANDMARKS, n_samples), n_components=LOW_RANK, random_state=random_state)
