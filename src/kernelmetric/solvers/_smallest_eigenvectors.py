"""Smallest eigenvectors of a large symmetric matrix, which may be indefinite."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric.compute import require_memory, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.solvers._davidson import BLOCK, GUARD, TINY, Davidson, Deflated, column_norms
from kernelmetric.solvers._symmetric import column_signs

_DENSE = 1000  # rows up to which LAPACK takes less than a second
_ROUNDS = 4  # blocks added to the basis before it is cut back


class Eigenpairs(NamedTuple):
    """Eigenvalues, ascending, orthonormal eigenvectors, and how good they are.

    Within ``residuals``, ``‖A v - value v‖``, of each value lies an eigenvalue. ``n_matvecs``
    counts rough products too.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    converged: bool
    n_matvecs: int


def smallest_eigenvectors(
    A: Any,
    n_components: int,
    *,
    null: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    random_state: Any = None,
) -> Eigenpairs:
    """Eigenvectors of the smallest eigenvalues of a symmetric matrix, negative ones first.

    Up to a thousand rows, or where many of all eigenvectors are wanted, by LAPACK; beyond, by
    Davidson's method with a Chebyshev filter [1]_. Those found are eigenvectors of P A P with the
    projection P onto the complement of ``null``. ``tol`` is in units of the largest absolute
    eigenvalue; ``max_iter`` counts blocks of 16 vectors.

    .. [1] Zhou, Saad, "A Chebyshev-Davidson algorithm for large symmetric eigenproblems", SIAM
       Journal on Matrix Analysis and Applications 29 (2007).
    """
    rng = check_random_state(random_state)
    A = A if hasattr(A, "shape") else np.asarray(A)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"Got a matrix of shape {A.shape}, but expected a square one.")
    n = A.shape[0]
    width = min(BLOCK, max(4, n_components))
    most = n_components + GUARD + _ROUNDS * width
    dense = n <= _DENSE or 3 * most > n
    multiply = Deflated(A, _columns(null, n), far=not dense)
    multiply.require_symmetry(rng)
    c = multiply.null.shape[1]
    hint = f"{n} rows less {c} vectors projected out"
    Numbers(Integral, 1, n - c).require("n_components", n_components, hint=hint)
    if dense:
        values, vectors, scale = _dense(A, multiply, n_components)
        tol = max(tol, n * np.finfo(np.float64).eps)  # LAPACK gives no more
    else:
        search = Davidson(A, multiply, n_components, width, most, rng)
        values, vectors = search.run(_columns(start, n), tol, max_iter)
        scale = search.scale
    residuals = to_numpy(column_norms(multiply(vectors) - vectors * multiply.here(values)))
    vectors = to_numpy(vectors)
    converged = bool(np.all(residuals <= tol * scale))
    if not converged:
        warnings.warn(
            f"{int(np.sum(residuals > tol * scale))} of {n_components} eigenvectors have residuals "
            f"above tol={tol:g}, the largest {residuals.max() / max(scale, TINY):.1e} of the "
            f"largest eigenvalue. Try a larger max_iter (now {max_iter}) or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    signs = column_signs(vectors)
    return Eigenpairs(values, vectors * signs, residuals, converged, multiply.count)


def _dense(A: Any, multiply: Deflated, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The k smallest eigenpairs by LAPACK, and a bound of the largest absolute eigenvalue."""
    Q, n = multiply.null, len(multiply.null)
    require_memory(4 * 8 * n * n, "A dense eigendecomposition", "ask for fewer eigenvectors.")
    A = A if isinstance(A, np.ndarray) else A @ np.eye(n)
    A = multiply.project(multiply.project((A + A.T) / 2).T)
    scale = float(np.linalg.norm(A, 1))
    A = A + (2 * scale + 1) * (Q @ Q.T)  # what is projected out comes last
    values, vectors = eigh(A, subset=(0, k - 1), overwrite=True)
    return values, vectors, scale


def _columns(vectors: Any, n: int) -> np.ndarray:
    """Vectors as float64 columns of n entries; none for None."""
    if vectors is None:
        return np.empty((n, 0))
    return np.asarray(vectors, dtype=np.float64).reshape(n, -1)
