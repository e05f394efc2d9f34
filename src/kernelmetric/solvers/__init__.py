"""Optimisers and linear algebra that know nothing of metrics.

L-BFGS (:func:`minimize_lbfgs`), quadratic programs over non-negative vectors
(:func:`nonnegative_qp`) and over pairs or comparisons (:func:`solve_pairs`), the graphical lasso
(:func:`sparse_precision`), leading and smallest eigenvectors (:func:`krylov_eigenpairs`,
:func:`smallest_eigenvectors`), and ridge regression on points left out (:class:`Grid`).
"""

from kernelmetric.solvers._lbfgs import finite_or_none, minimize_lbfgs, refuse_start
from kernelmetric.solvers._leading_eigenvectors import OnSubspace, krylov_eigenpairs
from kernelmetric.solvers._nonnegative import nonnegative_qp
from kernelmetric.solvers._pair_dual import ComparisonDual, PairDual, PairSolution
from kernelmetric.solvers._pair_interior import pair_bytes
from kernelmetric.solvers._pair_solve import newton, solve_pairs
from kernelmetric.solvers._ridge_grid import (
    FARTHEST,
    RIDGES,
    Family,
    Grid,
    cholesky_factor,
    evenly,
    inverse_of,
    ridge_solution,
    with_intercept,
)
from kernelmetric.solvers._smallest_eigenvectors import Eigenpairs, smallest_eigenvectors
from kernelmetric.solvers._sparse_precision import sparse_precision
from kernelmetric.solvers._symmetric import column_signs, positive_part, right_singular
