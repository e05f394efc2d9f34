"""Optimisers and linear algebra that know nothing of metrics.

L-BFGS on a matrix (:func:`minimize_lbfgs`), accelerated projected gradient for convex problems
(:func:`minimize_projected`), quadratic programs over non-negative vectors
(:func:`nonnegative_qp`), the Gram matrix of a basis that need not be orthonormal
(:class:`Gram`), and :class:`Iterations`, which lets a long fit be watched.
"""

from kernelmetric.solvers._fista import minimize_projected
from kernelmetric.solvers._gram import Gram
from kernelmetric.solvers._lbfgs import Minimum, minimize_lbfgs
from kernelmetric.solvers._nonnegative import kkt_residual, nonnegative_qp
from kernelmetric.solvers._progress import (
    CallbackSupportMixin,
    Iterations,
    propagated_callbacks,
    with_callbacks,
)

__all__ = [
    "CallbackSupportMixin",
    "Gram",
    "Iterations",
    "Minimum",
    "kkt_residual",
    "minimize_lbfgs",
    "minimize_projected",
    "nonnegative_qp",
    "propagated_callbacks",
    "with_callbacks",
]
