"""Kernels: formulas on two blocks of points.

A kernel is an estimator without data: it has parameters, is called on two blocks of points, and
composes with ``+`` and ``*``. A parameter may be left to the data; ``bind(X, y)`` then returns a
new, concrete kernel and leaves the original as it was::

    RBF()  ──bind(X)──▶  RBF(gamma=0.37)  ──(A, B)──▶  K, one row per point of A

``_base.py`` has what every kernel can do, ``_registry.py`` the kernels that have a name,
``_names.py`` what a user may write instead of a kernel. All kernels here are positive
semi-definite for every legal parameter. Those that learn from labels what they are, as
``KernelAlignment`` does, are in ``selection``.
"""

from kernelmetric._warnings import moved
from kernelmetric.kernels._base import Kernel, Product, Sum
from kernelmetric.kernels._dot import polynomial_degrees
from kernelmetric.kernels._function import FunctionKernel, PairwiseKernel, refuse_objects
from kernelmetric.kernels._idealized_gram import (
    form_alignment,
    gram_alignment,
    ideal_alignment,
    ideal_gram,
    idealized_gram,
)
from kernelmetric.kernels._mapped import Columns, Rescaled, pulled_back, rescaled
from kernelmetric.kernels._names import as_kernel
from kernelmetric.kernels._objects import ObjectKernel
from kernelmetric.kernels._points import object_columns, reads_columns, with_schema
from kernelmetric.kernels._radial import RadialKernel, rbf_widths
from kernelmetric.kernels._registry import *  # noqa: F403
from kernelmetric.kernels._registry import KERNELS, OBJECT_KERNELS
from kernelmetric.kernels._terms import values_of
from kernelmetric.tables import TableSchema, is_frame, is_table

__all__ = [  # noqa: PLE0604, RUF100
    "Columns",
    "FunctionKernel",
    "Kernel",
    "ObjectKernel",
    "PairwiseKernel",
    "Product",
    "RadialKernel",
    "Rescaled",
    "Sum",
    "TableSchema",
    "as_kernel",
    "ideal_alignment",
    "ideal_gram",
    "idealized_gram",
    "polynomial_degrees",
    "rbf_widths",
    *(kernel.__name__ for kernel in (*KERNELS, *OBJECT_KERNELS)),
]

# To a room above, which no statement may import from here.
_MOVED = dict.fromkeys(["AlignedScales", "AlignedSum", "KernelAlignment"], "selection")
__getattr__ = moved(__name__, _MOVED)
