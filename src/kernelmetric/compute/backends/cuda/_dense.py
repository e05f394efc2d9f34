"""Dense linear algebra of tall matrices, by products alone: what a device is fast at."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

# Of rows, multiplied side by side: a small product by itself leaves most of a card idle.
_CHUNKS = 8
_NEARLY = 0.1  # columns so near to orthonormal are so after one more round, to the last digits


def column_products(F: Any) -> Any:
    """``Fᵀ F``, of which a quarter follows by symmetry."""
    n, m = F.shape
    rows, half = n // _CHUNKS, m // 2
    if rows < m or half < 1:
        return F.T @ F
    tall = F[: _CHUNKS * rows].unflatten(0, (_CHUNKS, rows))
    left, right, rest = tall[..., :half], tall[..., half:], F[_CHUNKS * rows :]
    out = rest.T @ rest
    out[:half, :half] += torch.bmm(left.mT, left).sum(dim=0)
    out[half:, half:] += torch.bmm(right.mT, right).sum(dim=0)
    out[half:, :half] += torch.bmm(right.mT, left).sum(dim=0)
    out[:half, half:] = out[half:, :half].T
    return out


class PositiveSolver:
    """Solves ``A X = B`` by the Cholesky factor of A, on its device; LinAlgError without one."""

    def __init__(self, A: Any):
        self._factor, failed = torch.linalg.cholesky_ex(A)
        if int(failed):
            raise np.linalg.LinAlgError(
                f"Got a matrix of {A.shape[0]} rows whose leading minor of order {int(failed)} is "
                "not positive, but expected a positive definite one."
            )

    def __call__(self, B: np.ndarray) -> np.ndarray:
        factor = self._factor
        B = torch.as_tensor(np.ascontiguousarray(B), dtype=factor.dtype, device=factor.device)
        return np.asarray(torch.cholesky_solve(B, factor).cpu())

    def inverse_diagonal(self) -> np.ndarray:
        """Diagonal of the inverse of A."""
        return np.asarray(torch.cholesky_inverse(self._factor).diagonal().cpu())


def orthonormal_columns(B: Any) -> Any | None:
    """Orthonormal columns with the span of B, by CholeskyQR2 in float64 [1]_; None where it fails.

    .. [1] Yamamoto, Nakatsukasa, Yanagisawa, Fukaya, "Roundoff error analysis of the CholeskyQR2
       algorithm", ETNA 44 (2015).
    """
    if B.shape[0] < B.shape[1]:
        return None
    Q = B.double()
    Q = Q / torch.linalg.vector_norm(Q, dim=0)
    eye = torch.eye(B.shape[1], dtype=Q.dtype, device=Q.device)
    for last in (False, True):
        G = Q.T @ Q
        L, failed = torch.linalg.cholesky_ex(G)
        far = torch.amax(torch.abs(G - eye)) if last else failed
        if not bool((failed == 0) & (far < _NEARLY)):  # false for what is not a number, too
            return None
        Q = Q @ torch.linalg.solve_triangular(L, eye, upper=False).T
    return Q.to(B.dtype)
