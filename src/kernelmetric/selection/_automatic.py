"""The automatic kernel."""

from __future__ import annotations

from typing import Any

from kernelmetric.kernels import Kernel, as_kernel
from kernelmetric.selection._alignment import KernelAlignment
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge

_LEARNED = {"auto": LeaveOneOutRidge, "aligned": KernelAlignment}


def automatic_kernel(kernel: Any) -> Kernel:
    """The kernel a user means.

    Parameters
    ----------
    kernel : str, Kernel or callable
        "auto" is :class:`LeaveOneOutRidge`, "aligned" is :class:`KernelAlignment`. Everything else
        passes through :func:`kernelmetric.kernels.as_kernel`.

    Returns
    -------
    Kernel
        Not yet bound to data.
    """
    if isinstance(kernel, str) and kernel in _LEARNED:
        return _LEARNED[kernel]()
    return as_kernel(kernel)
