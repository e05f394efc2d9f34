"""What is left to the data: kernels whose ``bind(X, y)`` learns, and what "auto" means.

::

    _alignment.py       KernelAlignment: the sum of kernels nearest to the ideal one
    _aligned_scales.py  AlignedScales: features of noise turned down, by alignment
    _ideal.py           the kernel that the labels would like
    _leave_one_out.py   LeaveOneOutRidge: the kernel that predicts points left out best
    _learned_map.py     its map of features, where directions matter that are none
    _relevance.py       its scales of features, and the descent on scales
    _ridge_kpca.py      RidgeKPCA: predictions of ridge regression, and components
    _known_points.py    training points that models of version 0.1 know again
    _path.py            coordinates under many kernels, at many ranks
    _automatic.py       the kernel by its name

The strings "auto" and "aligned" are resolved here and nowhere else; rooms above accept them,
rooms below never see them.
"""

from kernelmetric.selection._aligned_scales import AlignedScales
from kernelmetric.selection._alignment import AlignedSum, KernelAlignment
from kernelmetric.selection._automatic import automatic_kernel
from kernelmetric.selection._leave_one_out import LeaveOneOutRidge
from kernelmetric.selection._path import KernelPath
from kernelmetric.selection._ridge_kpca import RidgeKPCA
from kernelmetric.solvers import leave_one_out_errors
from kernelmetric.spaces import automatic_space

__all__ = [
    "AlignedScales",
    "AlignedSum",
    "KernelAlignment",
    "KernelPath",
    "LeaveOneOutRidge",
    "RidgeKPCA",
    "automatic_kernel",
    "automatic_space",
    "leave_one_out_errors",
]
