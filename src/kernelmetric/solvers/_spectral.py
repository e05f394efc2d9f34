"""Smallest eigenvectors of a symmetric matrix that need not be positive."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh, norm
from sklearn.utils import check_random_state

_DENSE_ROWS = 1500


class Eigenpairs(NamedTuple):
    """The smallest eigenpairs of a matrix.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Ascending.
    vectors : ndarray of shape (n, k)
        Orthonormal, and orthogonal to the null vectors.
    residuals : ndarray of shape (k,)
        ``|A v - μ v|``.
    converged : bool
        Whether all residuals are small.
    n_matvecs : int
        Products with a vector; 0 for a dense solution.
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
    null: Any = None,
    start: Any = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: Any = None,
) -> Eigenpairs:
    """Smallest eigenpairs of a symmetric, perhaps indefinite, matrix beside given null vectors.

    Parameters
    ----------
    A : sparse array, ndarray or LinearOperator of shape (n, n)
        The matrix.
    n_components : int
        Number of eigenpairs.
    null : array of shape (n,) or (n, c), default=None
        Vectors that are projected out.
    start : array of shape (n, p), default=None
        Vectors near the wanted ones.
    tol : float, default=1e-6
        Largest residual, relative to the norm of A.
    max_iter : int, default=None
        Limit of ARPACK's restarts.
    random_state : int, RandomState or None, default=None
        For the start.

    Returns
    -------
    Eigenpairs
        Dense up to 1,500 rows, ARPACK beyond.
    """
    n = A.shape[0]
    Q = np.zeros((n, 0)) if null is None else linalg.orth(np.reshape(null, (n, -1)))
    matrix = A if isinstance(A, LinearOperator) else None
    if matrix is None and n <= _DENSE_ROWS:
        D = A.toarray() if sparse.issparse(A) else np.asarray(A)
        return _dense(D, Q, n_components)
    operator = aslinearoperator(A)
    bound = _bound(A, operator)
    count = [0]

    def multiply(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        count[0] += 1
        inside = Q.T @ v
        image = operator.matvec(v - Q @ inside)
        return image - Q @ (Q.T @ image) + 2 * bound * (Q @ inside)

    if start is None:
        v0 = check_random_state(random_state).uniform(-1, 1, n)
    else:
        v0 = np.asarray(start, dtype=np.float64).reshape(n, -1).sum(axis=1)
    deflated = LinearOperator((n, n), matvec=multiply, dtype=np.dtype(np.float64))
    width = min(n - 1, 5 * n_components // 2 + 20)
    values, V = eigsh(
        deflated, n_components, which="SA", v0=v0, ncv=width, tol=tol, maxiter=max_iter
    )
    order = np.argsort(values)
    values, V = values[order], V[:, order]
    residuals = np.linalg.norm(operator.matmat(V) - V * values, axis=0)
    return Eigenpairs(values, V, residuals, bool(np.all(residuals <= 10 * tol * bound)), count[0])


def _dense(D: np.ndarray, Q: np.ndarray, k: int) -> Eigenpairs:
    D = D - Q @ (Q.T @ D)
    D = D - (D @ Q) @ Q.T
    top = float(np.abs(D).sum(axis=1).max()) + 1.0
    D = (D + D.T) / 2 + 2 * top * (Q @ Q.T)
    values, V = linalg.eigh(D, subset_by_index=(0, k - 1))
    residuals = np.linalg.norm(D @ V - V * values, axis=0)
    return Eigenpairs(values, V, residuals, True, 0)


def _bound(A: Any, operator: LinearOperator) -> float:
    if sparse.issparse(A):
        return float(norm(A, np.inf))
    if isinstance(A, np.ndarray):
        return float(np.abs(A).sum(axis=1).max())
    return float(eigsh(operator, k=1, which="LM", tol=1e-2, return_eigenvectors=False)[0])
