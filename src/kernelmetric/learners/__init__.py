"""Linear metric learners: coordinates and labels in, a map L out.

One file per learner, three small base classes. ``fit(Z, y)`` ends in ``components_``; where the
coordinates belong to a basis that is not orthonormal, ``gram`` says so, and a learner that does
not take ``gram`` cannot be used there. By descent: :class:`NCA`, :class:`LMNN`, :class:`LMCA`,
:class:`MCML`, and :class:`MLKR` for targets that are numbers. By one eigenproblem: :class:`LDA`,
:class:`LFDA`, :class:`DNE`, :class:`DLA`, :class:`LPP`, :class:`RCA` (from chunks). From similar
and dissimilar pairs: :class:`IdealizedKernel`, :class:`ITML` and :class:`MMC`.
"""

from kernelmetric.learners._base import Learner
from kernelmetric.learners._descent import GradientLearner
from kernelmetric.learners._dla import DLA
from kernelmetric.learners._dne import DNE
from kernelmetric.learners._idealized import IdealizedKernel
from kernelmetric.learners._itml import ITML
from kernelmetric.learners._lda import LDA
from kernelmetric.learners._lfda import LFDA
from kernelmetric.learners._lmca import LMCA
from kernelmetric.learners._lmnn import LMNN
from kernelmetric.learners._lpp import LPP
from kernelmetric.learners._mcml import MCML
from kernelmetric.learners._mlkr import MLKR
from kernelmetric.learners._mmc import MMC
from kernelmetric.learners._nca import NCA
from kernelmetric.learners._rca import RCA
from kernelmetric.learners._spectral import SpectralLearner

__all__ = [
    "DLA",
    "DNE",
    "ITML",
    "LDA",
    "LFDA",
    "LMCA",
    "LMNN",
    "LPP",
    "MCML",
    "MLKR",
    "MMC",
    "NCA",
    "RCA",
    "GradientLearner",
    "IdealizedKernel",
    "Learner",
    "SpectralLearner",
]
