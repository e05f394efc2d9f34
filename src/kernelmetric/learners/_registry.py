"""Every learner, one line each.

The flat API, the contract tests, scikit-learn's checks, the tests of bad input and the README's
table are made from this list. A new learner is one file, which says in ``learns_from`` what it
needs, and one line here; where its defaults are not all that should be tested,
``tests/tested_learners.py`` has a place for more.
"""
# ruff: noqa: F401

from kernelmetric.learners._dla import DLA
from kernelmetric.learners._dne import DNE
from kernelmetric.learners._idealized import IdealizedKernel
from kernelmetric.learners._itml import ITML
from kernelmetric.learners._lda import LDA
from kernelmetric.learners._lfda import LFDA
from kernelmetric.learners._lmca import LMCA
from kernelmetric.learners._lmnn import LMNN
from kernelmetric.learners._lpp import LPP
from kernelmetric.learners._lsml import LSML
from kernelmetric.learners._mcml import MCML
from kernelmetric.learners._mlkr import MLKR
from kernelmetric.learners._mmc import MMC
from kernelmetric.learners._nca import NCA
from kernelmetric.learners._rca import RCA
from kernelmetric.learners._rfm import RFM
from kernelmetric.learners._scml import SCML
from kernelmetric.learners._sdml import SDML
