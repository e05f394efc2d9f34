"""Linear equations with a large dense matrix, in the memory of the matrix in single precision."""

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute.conjugate_gradients import conjugate_gradients
from kernelmetric.compute.lapack import factor, inverse_factor

_ATTEMPTS = 6  # shifts to try, each ten times the one before
_SHIFT = 4.0  # of the rounding of a factor, as an eigenvalue
_CLEAR = 4.0  # of that: eigenvalues that no rounding makes negative
_TILE = 1024  # rows or columns that are copied at a time
_PROBES, _TERMS = 128, 6  # random vectors, and powers, that tell what a shift has changed
_PROBED = 1e-3  # of all powers so far: one more changes less than the vectors' own chance
_DEPENDENT = 1e-10  # of the largest singular value: columns that others span
_LOOSEST = 1e-2  # residual beyond which a solution is none


class RefinedSolver:
    """Solves ``K X = B``, once, for a positive semi-definite K in float32, which is overwritten.

    Conjugate gradients, preconditioned by the Cholesky factor of K, which takes one triangle of K,
    the products the other. Where that does not converge, a little is added to the diagonal of K.
    No eigenvalue of K is below ``lowest``, but for rounding.
    """

    def __init__(
        self, K: np.ndarray, lowest: float = 0.0, *, tol: float = 1e-4, max_iter: int = 20
    ):
        self._K, self._tol, self._max_iter = np.ascontiguousarray(K), tol, max_iter
        self._diagonal = K.diagonal().copy()
        rounding = float(np.finfo(np.float32).eps * np.abs(self._diagonal).max())
        self._least = _SHIFT * np.sqrt(len(K)) * rounding
        self._first = 0.0 if lowest >= _CLEAR * self._least else self._least

    def __call__(self, B: np.ndarray) -> np.ndarray:
        """The solution in float64; of the columns of B, a basis is solved for."""
        U, values, Vt = linalg.svd(B, full_matrices=False)
        some = values > _DEPENDENT * max(values[0], np.finfo(float).tiny)
        X, left = self._solved(U[:, some], 0.0)
        if left > self._tol:
            _mirror(self._K)
            X, left = self._solved(U[:, some], self._least)
            if not left <= _LOOSEST:
                raise linalg.LinAlgError(
                    f"Got equations of {len(X)} rows whose solution float32 does not find, even "
                    f"with {self._least:.3g} added to the diagonal, but expected a matrix nearer "
                    "to the identity."
                )
        return (X * values[some]) @ Vt[some]

    def inverse_diagonal(self) -> np.ndarray:
        """Diagonal of the inverse of K, after the solution. K is no more.

        Its factor is that of ``K + s I`` with a small shift s; with ``G = (K + s I)⁻¹``, the
        inverse of K is ``G + s G² + s² G³ + ...``, whose diagonal after G is told by random
        vectors.
        """
        K = self._K
        shift = float(K[0, 0]) ** 2 - float(self._diagonal[0])
        if shift < 0.5 * self._least:
            return squares_of_columns(inverse_factor(K.T))
        V = np.random.RandomState(0).standard_normal((len(K), _PROBES)).astype(np.float32)
        V, _ = linalg.lapack.spotrs(K.T, V, lower=1)
        more, term = V.astype(np.float64), V
        for _ in range(_TERMS):
            term = np.float32(shift) * linalg.lapack.spotrs(K.T, term, lower=1)[0]
            more += term
            if np.max(np.abs(term)) <= _PROBED * np.max(np.abs(more)):
                break
        return shift * np.mean(V * more, axis=1) + squares_of_columns(inverse_factor(K.T))

    def _solved(self, B: np.ndarray, added: float) -> tuple[np.ndarray, float]:
        """Solve ``(K + added I) X = B`` for columns of length one; what is left of any."""
        K, symm, potrs = self._K, linalg.blas.ssymm, linalg.lapack.spotrs
        L = _factor(K, self._diagonal, self._first, self._least)
        rest = (self._diagonal.astype(np.float64) + added - K.diagonal())[:, None]

        def multiply(V: np.ndarray) -> np.ndarray:
            return symm(1.0, K.T, V.astype(np.float32), lower=0).astype(np.float64) + rest * V

        def precondition(R: np.ndarray) -> np.ndarray:
            return potrs(L, R.astype(np.float32), lower=1)[0].astype(np.float64)

        how: Any = {"tol": self._tol, "max_iter": self._max_iter, "every": 1}
        found = conjugate_gradients(multiply, B, precondition=precondition, **how)
        return found.X, found.residual


def squares_of_columns(lower: np.ndarray) -> np.ndarray:
    """Squared lengths of the columns of a lower triangle, whatever lies above."""
    found = np.zeros(len(lower))
    for first in range(0, len(lower), _TILE):
        some = slice(first, first + _TILE)
        for part in (np.tril(lower[some, some]), lower[some.stop :, some]):
            found[some] += np.einsum("ij,ij->j", part, part, dtype=np.float64)
    return found


def _factor(K: np.ndarray, diagonal: np.ndarray, shift: float, least: float) -> np.ndarray:
    """The Cholesky factor of K with a little more on its diagonal, in one triangle of K."""
    n = len(K)
    for _ in range(_ATTEMPTS):
        K.reshape(-1)[:: n + 1] = diagonal + np.float32(shift)
        # Transposed it lies as LAPACK wants it; what is its lower triangle is the upper one of K.
        try:
            return factor(K.T)
        except linalg.LinAlgError:
            shift = max(10.0 * shift, least)
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
