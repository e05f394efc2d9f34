"""Linear metric learners: coordinates and labels in, a map L out.

One file per learner, one line for each in ``_registry.py``, three small base classes. ``fit(Z, y)``
ends in ``components_``; where the coordinates belong to a basis that is not orthonormal, ``gram``
says so, and a learner that does not take ``gram`` cannot be used there. By descent: :class:`NCA`,
:class:`LMNN`, :class:`LMCA`, :class:`MCML`, and :class:`MLKR` for targets that are numbers. By one
eigenproblem: :class:`LDA`, :class:`LFDA`, :class:`DNE`, :class:`DLA`, :class:`LPP`, :class:`RCA`
(from chunks). By the gradients of ridge regression, of labels or numbers: :class:`RFM`. From
similar and dissimilar pairs: :class:`IdealizedKernel`, :class:`ITML`, :class:`MMC` and
:class:`SDML`. From comparisons of distances: :class:`LSML` and :class:`SCML`.
"""

from kernelmetric.learners import _registry
from kernelmetric.learners._base import Learner
from kernelmetric.learners._descent import GradientLearner
from kernelmetric.learners._registry import *  # noqa: F403
from kernelmetric.learners._spectral import SpectralLearner

LEARNERS: tuple[type[Learner], ...] = tuple(
    thing for thing in vars(_registry).values() if isinstance(thing, type)
)

__all__ = [  # noqa: PLE0604, RUF100
    "LEARNERS",
    "GradientLearner",
    "Learner",
    "SpectralLearner",
    *(learner.__name__ for learner in LEARNERS),
]
