"""Optimisers and linear algebra that know nothing of metrics.

L-BFGS (:func:`minimize_lbfgs`), quadratic programs over non-negative vectors
(:func:`nonnegative_qp`) and over pairs or comparisons (:func:`solve_pairs`), the graphical lasso
(:func:`sparse_precision`), leading and smallest eigenvectors (:func:`krylov_eigenpairs`,
:func:`smallest_eigenvectors`), and ridge regression on points left out (:class:`Grid`).
"""

from kernelmetric.solvers._conjugate_gradients import conjugate_gradients
from kernelmetric.solvers._lbfgs import Minimum, finite_or_none, minimize_lbfgs, refuse_start
from kernelmetric.solvers._leading_eigenvectors import OnSubspace, krylov_eigenpairs, ritz_interval
from kernelmetric.solvers._nonnegative import nonnegative_qp
from kernelmetric.solvers._pair_dual import ComparisonDual, PairDual, PairSolution
from kernelmetric.solvers._pair_interior import pair_bytes
from kernelmetric.solvers._pair_solve import solve_pairs
from kernelmetric.solvers._ridge_grid import (
    FARTHEST,
    RIDGES,
    Family,
    Grid,
    cholesky_factor,
    evenly,
    few_columns,
    inverse_of,
    leave_one_out_errors,
    left_out,
    ridge_solution,
    with_intercept,
)
from kernelmetric.solvers._smallest_eigenvectors import Eigenpairs, smallest_eigenvectors
from kernelmetric.solvers._sparse_precision import sparse_precision
from kernelmetric.solvers._symmetric import column_signs, positive_part, right_singular

__all__ = [
    "FARTHEST",
    "RIDGES",
    "ComparisonDual",
    "Eigenpairs",
    "Family",
    "Grid",
    "Minimum",
    "OnSubspace",
    "PairDual",
    "PairSolution",
    "cholesky_factor",
    "column_signs",
    "conjugate_gradients",
    "evenly",
    "few_columns",
    "finite_or_none",
    "inverse_of",
    "krylov_eigenpairs",
    "leave_one_out_errors",
    "left_out",
    "minimize_lbfgs",
    "nonnegative_qp",
    "pair_bytes",
    "positive_part",
    "refuse_start",
    "ridge_solution",
    "right_singular",
    "ritz_interval",
    "smallest_eigenvectors",
    "solve_pairs",
    "sparse_precision",
    "with_intercept",
]
