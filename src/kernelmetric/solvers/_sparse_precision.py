"""The graphical lasso by proximal gradients, with a certificate."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg


@dataclass
class SparsePrecision:
    """Where the descent stopped: a matrix with exact zeros, and its duality gap divided by d."""

    matrix: np.ndarray
    value: float
    gap: float
    n_iter: int
    converged: bool


def sparse_precision(
    S: np.ndarray,
    penalty: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    report: Callable[[np.ndarray, float], bool] | None = None,
) -> SparsePrecision:
    """Minimise ``tr SM - log det M - d + λ Σ_{i≠j} |M_ij|`` over positive definite matrices.

    Steps along the gradient ``S - M⁻¹``, entries drawn towards zero after each [1]_, of the length
    of Barzilai and Borwein. scikit-learn's coordinate descent takes 3 to 15 times as long for the
    matrices of SDML with 300 features, and can be neither watched nor begun at the last one. A true
    answer of ``report(M, value)`` stops.

    .. [1] Guillot, Rajaratnam, Rolfs, Maleki and Wong, "Iterative thresholding algorithm for sparse
       inverse covariance estimation", NIPS 2012.
    """
    d = len(S)
    # In units in which the diagonal is one, features of any scale are alike.
    units = 1.0 / np.sqrt(np.diag(S))
    both = np.outer(units, units)
    S, weights, shift = S * both, penalty * both, -2.0 * float(np.sum(np.log(units)))
    np.fill_diagonal(weights, 0.0)
    M: np.ndarray = np.eye(d)
    W: np.ndarray = M
    smooth = value = 0.0
    if start is not None:
        M = start / both
        W = np.linalg.inv(M)
        smooth = float(np.sum(S * M) - np.linalg.slogdet(M)[1]) - d
        value = smooth + float(np.sum(weights * np.abs(M)))
    step, n_iter, stopped = 1.0, 0, False
    gap = _gap(S, W, weights, value)
    while gap > tol and n_iter < max_iter and not stopped:
        G = S - W
        for _ in range(60):
            C = M - step * G
            edges = step * weights
            C -= np.minimum(np.maximum(C, -edges), edges)  # towards zero, and no further
            move = C - M
            L, log_det = _factor(C)
            if L is not None:
                after = float(np.sum(S * C)) - log_det - d
                bound = smooth + float(np.sum(G * move)) + float(np.sum(move**2)) / (2 * step)
                if after <= bound + 1e-13 * max(1.0, abs(bound)):
                    break
            step *= 0.5
        else:
            break  # rounding leaves no step
        inverse = _inverse(L)
        curved = float(np.sum(move * (W - inverse)))
        M, W, smooth = C, inverse, after
        step = float(np.sum(move**2)) / curved if curved > 0 else 2.0 * step
        value = smooth + float(np.sum(weights * np.abs(M)))
        gap, n_iter = _gap(S, W, weights, value), n_iter + 1
        stopped = report is not None and report(M * both, value + shift)
    return SparsePrecision(M * both, value + shift, gap, n_iter, gap <= tol)


def _inverse(L: np.ndarray) -> np.ndarray:
    """The inverse of ``LLᵀ``."""
    inverse, _ = linalg.lapack.dpotri(L, lower=1)  # its lower half
    inverse += inverse.T
    inverse.flat[:: len(L) + 1] *= 0.5
    return inverse


def _factor(M: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Cholesky's lower factor and the logarithm of the determinant; None where there is none."""
    L, fault = linalg.lapack.dpotrf(M, lower=1)
    diagonal = L.diagonal()
    if fault or not np.isfinite(diagonal).all():
        return None, 0.0
    return L, 2.0 * float(np.log(diagonal).sum())


def _gap(S: np.ndarray, W: np.ndarray, weights: np.ndarray, value: float) -> float:
    """What is left to gain, for each row: the dual is ``log det`` of a matrix near S."""
    L, log_det = _factor(S + np.minimum(np.maximum(W - S, -weights), weights))
    return np.inf if L is None else max(value - log_det, 0.0) / len(S)
