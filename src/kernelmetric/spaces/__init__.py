"""Spaces: coordinates of a kernel's feature space.

A kernel says how similar two points are; a space turns that into coordinates, so that a learner
of linear metrics can be run on them unchanged. With an orthonormal basis the Euclidean distance
between coordinates is the distance in the feature space::

    _kpca.py             KPCA: the principal axes of the training points, all or the leading ones
    _nystroem.py         Nystroem: the span of a few landmarks, for up to millions of rows
    _random_features.py  RandomFeatures: random cosines whose inner products estimate the kernel
    _kernel_trick.py     KernelTrick: the training points themselves as a basis, not orthonormal
    _pair_kpca.py        PairKPCA: the few directions that tell similar from dissimilar pairs
    _automatic.py        automatic_space: which of them, by the number of points

The first three end in the same map, z(x) = f(x)ᵀ P - offset, where f are kernel values with
anchor points or random features; it is applied to one block of rows at a time (``_base.py``).
``_centred_gram.py`` holds the centred Gram matrix of the points as an operator; ``_gram.py`` has
:class:`Gram`, the Gram matrix of a basis that need not be orthonormal, and ``_orthonormal.py``
the way from there to an orthonormal one (:func:`orthonormal`).
"""

from kernelmetric.spaces._automatic import automatic_space
from kernelmetric.spaces._base import Space
from kernelmetric.spaces._gram import Gram
from kernelmetric.spaces._kernel_trick import KernelTrick
from kernelmetric.spaces._kpca import KPCA
from kernelmetric.spaces._nystroem import Nystroem
from kernelmetric.spaces._orthonormal import Coordinates, orthonormal
from kernelmetric.spaces._pair_kpca import PairKPCA
from kernelmetric.spaces._random_features import RandomFeatures

__all__ = [
    "KPCA",
    "Coordinates",
    "Gram",
    "KernelTrick",
    "Nystroem",
    "PairKPCA",
    "RandomFeatures",
    "Space",
    "automatic_space",
    "orthonormal",
]
