"""Linear metric learners: coordinates and labels in, a map L out.

One file per learner, two small base classes. ``fit(Z, y)`` ends in ``components_``; where the
coordinates belong to a basis that is not orthonormal, ``gram`` says so, and a learner that does
not take ``gram`` cannot be used there. By descent: :class:`NCA`, :class:`LMNN`, :class:`LMCA`.
By one eigenproblem: :class:`DNE`. From similar and dissimilar pairs: :class:`IdealizedKernel` and
:class:`MMC`.
"""

from kernelmetric.learners._base import GradientLearner, Learner
from kernelmetric.learners._dne import DNE
from kernelmetric.learners._idealized import IdealizedKernel
from kernelmetric.learners._lmca import LMCA
from kernelmetric.learners._lmnn import LMNN
from kernelmetric.learners._mmc import MMC
from kernelmetric.learners._nca import NCA

__all__ = [
    "DNE",
    "LMCA",
    "LMNN",
    "MMC",
    "NCA",
    "GradientLearner",
    "IdealizedKernel",
    "Learner",
]
