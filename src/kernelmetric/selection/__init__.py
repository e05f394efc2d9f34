"""What "auto" means: the kernel and the space, when the user leaves them to the data.

The strings are resolved here and nowhere else; rooms above accept them, rooms below never see
them.
"""

from kernelmetric.selection._automatic import automatic_kernel
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge, leave_one_out_errors
from kernelmetric.selection._path import KernelPath
from kernelmetric.spaces import automatic_space

__all__ = [
    "KernelPath",
    "LeaveOneOutRidge",
    "automatic_kernel",
    "automatic_space",
    "leave_one_out_errors",
]
