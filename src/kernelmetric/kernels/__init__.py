"""Kernels: formulas on two blocks of points.

A kernel is an estimator without data: it has parameters (``get_params``, ``clone``,
``kernel__gamma`` in a grid), it is called on two blocks of points, and it composes with ``+`` and
``*``. A parameter may be left to the data; ``bind(X, y)`` then returns a new, concrete kernel and
leaves the original as it was::

    RBF()  ──bind(X)──▶  RBF(gamma=0.37)  ──(A, B)──▶  K, one row per point of A

Kernels written here, all of them positive semi-definite for every legal parameter::

    _base.py          what every kernel can do: call, diag, bind, anchors, + and *; Sum, Product
    _terms.py         several kernels in a list: parameters k0, k1, ..., values on the same points
    _points.py        checks of points and numbers
    _radial.py        RBF and Delta (the ridge), functions of the squared distance
    _laplacian.py     Laplacian, a function of the L1 distance
    _dot.py           Linear, Polynomial, Cosine, Jaccard, functions of the inner product
    _rescaled.py      Rescaled: features multiplied by scales, or mapped, first
    _columns.py       Columns: columns of a table, of numbers, names, dates and gaps
    _tables.py        kernels that know the schema of a table
    _families.py      the stock families: widths of RBF, degrees of Polynomial
    _idealized_gram.py  steps from a Gram matrix towards the ideal one
    _precomputed.py   Precomputed: X itself holds the kernel values
    _function.py      FunctionKernel (any callable), PairwiseKernel (scikit-learn's names)
    _names.py         as_kernel: from what a user writes to a kernel

Kernels that learn from labels what they are, as ``KernelAlignment`` does, are in ``selection``.
"""

from kernelmetric.compute import moved
from kernelmetric.kernels._base import Kernel, Product, Sum
from kernelmetric.kernels._columns import Columns
from kernelmetric.kernels._dot import Cosine, Jaccard, Linear, Polynomial
from kernelmetric.kernels._families import polynomial_degrees, rbf_widths
from kernelmetric.kernels._function import FunctionKernel, PairwiseKernel, refuse_objects
from kernelmetric.kernels._idealized_gram import (
    form_alignment,
    gram_alignment,
    ideal_alignment,
    ideal_gram,
    idealized_gram,
)
from kernelmetric.kernels._laplacian import Laplacian
from kernelmetric.kernels._names import as_kernel
from kernelmetric.kernels._precomputed import Precomputed
from kernelmetric.kernels._radial import RBF, Delta, RadialKernel
from kernelmetric.kernels._rescaled import Rescaled, pulled_back, rescaled
from kernelmetric.kernels._tables import reads_columns, with_schema
from kernelmetric.kernels._terms import values_of
from kernelmetric.tables import TableSchema, is_frame, is_table

__all__ = [
    "RBF",
    "Columns",
    "Cosine",
    "Delta",
    "FunctionKernel",
    "Jaccard",
    "Kernel",
    "Laplacian",
    "Linear",
    "PairwiseKernel",
    "Polynomial",
    "Precomputed",
    "Product",
    "RadialKernel",
    "Rescaled",
    "Sum",
    "TableSchema",
    "as_kernel",
    "form_alignment",
    "gram_alignment",
    "ideal_alignment",
    "ideal_gram",
    "idealized_gram",
    "is_frame",
    "is_table",
    "polynomial_degrees",
    "pulled_back",
    "rbf_widths",
    "reads_columns",
    "refuse_objects",
    "rescaled",
    "values_of",
    "with_schema",
]

# To a room above, which no statement may import from here.
_MOVED = dict.fromkeys(["AlignedScales", "AlignedSum", "KernelAlignment"], "selection")
__getattr__ = moved(__name__, _MOVED)
