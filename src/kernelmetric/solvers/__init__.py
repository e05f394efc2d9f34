"""Optimisers and linear algebra that know nothing of metrics.

L-BFGS on a matrix (:func:`minimize_lbfgs`), accelerated projected gradient for convex problems
(:func:`minimize_projected`), quadratic programs over non-negative vectors
(:func:`nonnegative_qp`), the program of metrics learned from pairs (:class:`PairDual`,
:func:`solve_pairs`), the smallest eigenvectors of a large symmetric matrix
(:func:`smallest_eigenvectors`), the Gram matrix of a basis that need not be orthonormal
(:class:`Gram`), and :class:`Iterations`, which lets a long fit be watched.
"""

from kernelmetric.solvers._fista import minimize_projected
from kernelmetric.solvers._gram import Gram
from kernelmetric.solvers._lbfgs import Minimum, finite_or_none, minimize_lbfgs, refuse_start
from kernelmetric.solvers._nonnegative import kkt_residual, nonnegative_qp
from kernelmetric.solvers._pair_dual import PairDual, PairSolution, positive_part
from kernelmetric.solvers._pair_interior import pair_bytes
from kernelmetric.solvers._pair_solve import solve_pairs
from kernelmetric.solvers._progress import (
    CallbackSupportMixin,
    Iterations,
    propagated_callbacks,
    with_callbacks,
)
from kernelmetric.solvers._spectral import Eigenpairs, smallest_eigenvectors

__all__ = [
    "CallbackSupportMixin",
    "Eigenpairs",
    "Gram",
    "Iterations",
    "Minimum",
    "PairDual",
    "PairSolution",
    "finite_or_none",
    "kkt_residual",
    "minimize_lbfgs",
    "minimize_projected",
    "nonnegative_qp",
    "pair_bytes",
    "positive_part",
    "propagated_callbacks",
    "refuse_start",
    "smallest_eigenvectors",
    "solve_pairs",
    "with_callbacks",
]
