"""The automatic kernel."""

from __future__ import annotations

from typing import Any

from kernelmetric.kernels import Delta, Kernel, as_kernel
from kernelmetric.selection._alignment import KernelAlignment
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge

_LEARNED = {"auto": LeaveOneOutRidge, "aligned": KernelAlignment}


def automatic_kernel(kernel: Any) -> Kernel:
    """The kernel a user means.

    Parameters
    ----------
    kernel : str, Kernel or callable
        "auto" is :class:`LeaveOneOutRidge`, the kernel and the ridge with which ridge regression
        predicts points left out best; without labels, the RBF of median width. "aligned" is
        :class:`KernelAlignment`, the papers' sum of 21 widths. Everything else passes through
        :func:`kernelmetric.kernels.as_kernel`.

    Returns
    -------
    Kernel
        Not yet bound to data.
    """
    if isinstance(kernel, str) and kernel in _LEARNED:
        return _LEARNED[kernel]()
    return as_kernel(kernel)


def has_ridge(kernel: Kernel) -> bool:
    """Whether a kernel, bound or not, comes with a ridge: a term ``λ Delta()``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

    Returns
    -------
    bool
        True for :class:`LeaveOneOutRidge`, which chooses one, and where ``Delta`` is a part.
    """
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return any(isinstance(part, LeaveOneOutRidge | Delta) for part in parts)
