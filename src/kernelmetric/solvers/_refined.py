"""Linear equations with a large dense matrix, in the memory of the matrix in single precision."""

from __future__ import annotations

import numpy as np
from scipy import linalg

_ATTEMPTS = 6  # shifts to try, each ten times the one before
_SHIFT = 4.0  # of the rounding of a factor, as an eigenvalue
_TILE = 1024  # rows that are copied at a time
_PROBES, _TERMS = 128, 6  # random vectors, and powers, that tell what a shift has changed
_LOOSEST = 1e-2  # residual beyond which a solution is none


def solve_in_place(
    K: np.ndarray, B: np.ndarray, *, tol: float = 1e-4, max_iter: int = 20, ridge: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Solve ``K X = B`` for a positive semi-definite K in float32, which is overwritten.

    Conjugate gradients, preconditioned by the Cholesky factor of K, which takes one triangle of K,
    the products the other. Where that does not converge, ``(K + ridge I) X = B`` is solved
    instead. Returns X and ``K X``, both in float64.
    """
    diagonal = K.diagonal().copy()
    rounding = float(np.finfo(np.float32).eps * np.abs(diagonal).max())
    least = _SHIFT * np.sqrt(len(K)) * rounding
    X, R = _solved(K, diagonal, B, 0.0, least, tol, max_iter)
    if np.any(linalg.norm(R, axis=0) > tol * linalg.norm(B, axis=0)):
        _mirror(K)
        added = max(float(ridge), least)
        X, R = _solved(K, diagonal, B, added, added, tol, max_iter)
        if not np.all(linalg.norm(R, axis=0) <= _LOOSEST * linalg.norm(B, axis=0)):
            raise linalg.LinAlgError(
                f"Got equations of {len(K)} rows whose solution float32 does not find, even with "
                f"{added:.3g} added to the diagonal, but expected a matrix nearer to the identity."
            )
        R += added * X
    return X, B - R


def inverse_diagonal_in_place(K: np.ndarray, first: float) -> np.ndarray:
    """Diagonal of the inverse of a K that :func:`solve_in_place` has left.

    ``first`` was the first entry of K. Its factor is that of ``K + s I`` with a small shift s; with
    ``G = (K + s I)⁻¹``, the inverse of K is ``G + s G² + s² G³ + ...``, whose diagonal after G is
    told by random vectors.
    """
    shift = max(float(K[0, 0]) ** 2 - first, 0.0)
    V = np.random.RandomState(0).standard_normal((len(K), _PROBES)).astype(np.float32)
    V, _ = linalg.lapack.spotrs(K.T, V, lower=1)
    more, term = V.astype(np.float64), V
    for _ in range(_TERMS if shift > 0 else 0):
        term = np.float32(shift) * linalg.lapack.spotrs(K.T, term, lower=1)[0]
        more += term
    inverse, fault = linalg.lapack.strtri(K.T, lower=1, overwrite_c=1)
    if fault:
        raise linalg.LinAlgError(f"Got a factor with a zero at {fault}, but expected none.")
    own = shift * np.mean(V * more, axis=1)
    for start in range(0, len(K), _TILE):
        columns = slice(start, start + _TILE)
        own[columns] += np.sum(np.tril(inverse[start:, columns]) ** 2, axis=0, dtype=np.float64)
    return own


def _solved(
    K: np.ndarray,
    diagonal: np.ndarray,
    B: np.ndarray,
    added: float,
    shift: float,
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve ``(K + added I) X = B`` by the factor of ``K + shift I``; what is left of B."""
    symm, potrs = linalg.blas.ssymm, linalg.lapack.spotrs
    factor = _factor(K, diagonal, shift)
    rest = (diagonal.astype(np.float64) + added - K.diagonal())[:, None]

    def multiply(V: np.ndarray) -> np.ndarray:
        return symm(1.0, K.T, V.astype(np.float32), lower=0).astype(np.float64) + rest * V

    def precondition(R: np.ndarray) -> np.ndarray:
        return potrs(factor, R.astype(np.float32), lower=1)[0].astype(np.float64)

    X, R = np.zeros(B.shape), B.astype(np.float64)
    enough = tol * np.maximum(linalg.norm(B, axis=0), np.finfo(float).tiny)
    D = precondition(R)
    along = np.sum(R * D, axis=0)
    for _ in range(max_iter):
        image = multiply(D)
        curvature = np.sum(D * image, axis=0)
        step = np.divide(along, curvature, out=np.zeros_like(along), where=curvature > 0)
        X += step * D
        R -= step * image
        if np.all(linalg.norm(R, axis=0) <= enough):
            break
        Z = precondition(R)
        before, along = along, np.sum(R * Z, axis=0)
        D = Z + np.divide(along, before, out=np.zeros_like(along), where=before > 0) * D
    return X, R


def _factor(K: np.ndarray, diagonal: np.ndarray, shift: float) -> np.ndarray:
    """The Cholesky factor of K with a little more on its diagonal, in one triangle of K."""
    n = len(K)
    for _ in range(_ATTEMPTS):
        K.reshape(-1)[:: n + 1] = diagonal + np.float32(shift)
        # Transposed it lies as LAPACK wants it; what is its lower triangle is the upper one of K.
        factor, fault = linalg.lapack.spotrf(K.T, lower=1, overwrite_a=1, clean=0)
        if not fault:
            return factor
        shift *= 10.0
        _mirror(K)
    raise linalg.LinAlgError(
        f"Got a matrix of {n} rows with an eigenvalue below {-0.1 * shift:.3g}, but expected a "
        "positive semi-definite one."
    )


def _mirror(K: np.ndarray) -> None:
    """Put the lower triangle into the upper one, where a factor was; the diagonal stays."""
    for start in range(0, len(K), _TILE):
        rows = slice(start, start + _TILE)
        lower = np.tril(K[rows, rows], -1)
        own = K[rows, rows].diagonal().copy()
        K[rows, start:] = np.tril(K[start:, rows], -1).T
        K[rows, rows] += lower
        np.fill_diagonal(K[rows, rows], own)
