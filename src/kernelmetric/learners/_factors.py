"""Maps from matrices: factors of a metric, of its positive part, and of low rank."""

import numpy as np

from kernelmetric.solvers import right_singular


def factor(M: np.ndarray, least: float = 1e-12) -> np.ndarray:
    """The map L with ``LᵀL`` the positive part of M, largest values first; else a row of zeros."""
    values, V = np.linalg.eigh(M)
    kept = values > least * max(float(np.max(np.abs(values))), 1e-300)
    if not np.any(kept):
        return np.zeros((1, len(M)))
    order = np.flatnonzero(kept)[::-1]  # not a view backwards: torch takes no negative strides
    return np.sqrt(values[order])[:, None] * V[:, order].T


def signed_factor(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The map L and the signs s with ``Lᵀ diag(s) L = M``, rows of positive sign first."""
    L, N = factor(M), factor(-M)
    N = N[np.any(N != 0, axis=1)]
    return np.vstack([L, N]), np.repeat([1, -1], [len(L), len(N)])


def truncated(L: np.ndarray, rank: int) -> np.ndarray:
    """The map of this rank whose matrix LᵀL is nearest; L itself where its rank is no larger."""
    if rank >= len(L):
        return L
    s, Vt = right_singular(L)
    return s[:rank, None] * Vt[:rank]
