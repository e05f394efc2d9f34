"""What is left to the data: kernels whose ``bind(X, y)`` learns, and what "auto" means.

Four kernels learn: ``KernelAlignment`` (the sum of kernels nearest to the ideal one),
``KernelChoice`` (the one of a list that predicts left-out points best),
``AlignedScales`` (noise turned down, by alignment) and ``LeaveOneOutRidge`` (the kernel that
predicts left-out points best; its scales and its map are found in ``_relevance.py``). ``RidgeKPCA``
is the space of what ridge regression predicts, computed in ``_ridge_solution.py``. ``KernelPath``
has coordinates under many kernels, at many ranks.

The strings "auto" and "aligned" are resolved here and nowhere else; rooms above accept them,
rooms below never see them.
"""

from kernelmetric.selection._aligned_scales import AlignedScales
from kernelmetric.selection._alignment import AlignedSum, KernelAlignment
from kernelmetric.selection._kernel_choice import KernelChoice, KernelPath, automatic_kernel
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge
from kernelmetric.selection._ridge_kpca import RidgeKPCA
from kernelmetric.spaces import automatic_space

__all__ = [
    "AlignedScales",
    "AlignedSum",
    "KernelAlignment",
    "KernelChoice",
    "KernelPath",
    "LeaveOneOutRidge",
    "RidgeKPCA",
    "automatic_kernel",
    "automatic_space",
]
