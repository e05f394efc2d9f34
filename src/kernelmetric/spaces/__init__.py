"""Spaces: coordinates of a kernel's feature space.

A space turns a kernel into coordinates, so that a learner of linear metrics can be run on them
unchanged. With an orthonormal basis the Euclidean distance between coordinates is the distance in
the feature space. :class:`KPCA` takes the principal axes of the training points,
:class:`Nystroem` the span of a few landmarks, :class:`RandomFeatures` random cosines,
:class:`KernelTrick` the training points themselves (not orthonormal), :class:`PairKPCA` the few
directions that tell similar from dissimilar pairs; :func:`automatic_space` chooses by the number
of points. All but one end in the same map, z(x) = f(x)ᵀ P - offset, which is applied to one block
of rows at a time (``_base.py``). :class:`Gram` is the Gram matrix of a basis, and
:func:`orthonormal` the way from there to an orthonormal one.
"""

from kernelmetric.spaces._automatic import automatic_space
from kernelmetric.spaces._base import Space
from kernelmetric.spaces._gram import Coordinates, Gram, KernelTrick, orthonormal
from kernelmetric.spaces._kpca import KPCA
from kernelmetric.spaces._nystroem import Nystroem
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
