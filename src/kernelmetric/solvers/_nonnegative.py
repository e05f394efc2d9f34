"""Quadratic programs over non-negative vectors."""

import numpy as np
from scipy.optimize import lsq_linear, nnls

_ROUNDING = 16 * np.finfo(np.float64).eps  # per variable: what a sum of so many terms loses


def nonnegative_qp(S: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Minimise ``vᵀSv - 2bᵀv`` over ``v >= 0``, S positive semi-definite, b in its range.

    SciPy's non-negative least squares with a root of S, whose lost digits come back by solving the
    equations of the positive entries. Also returns the largest violation of the
    Karush-Kuhn-Tucker conditions: Sv - b = 0 where v > 0, and >= 0 elsewhere.
    """
    S = np.asarray(S, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    if not (np.all(np.isfinite(S)) and np.all(np.isfinite(b))):
        raise ValueError("Got a program with NaN or infinity, but expected finite coefficients.")
    A, c = _square_root(S, b)
    try:
        v = nnls(A, c)[0]
    except RuntimeError:  # its iteration limit
        v = lsq_linear(A, c, (0.0, np.inf), method="bvls").x
    free, again = v > 0, np.zeros_like(v)
    again[free] = np.linalg.lstsq(S[np.ix_(free, free)], b[free], rcond=None)[0]
    found = [each for each in (v, again) if np.all(each >= 0)]
    return min(((each, kkt_residual(S, b, each)) for each in found), key=lambda pair: pair[1])


def kkt_residual(S: np.ndarray, b: np.ndarray, v: np.ndarray) -> float:
    """The largest violation of the optimality conditions at v >= 0; zero at a minimiser."""
    g = S @ v - b
    return float(np.max(np.where(v > 0, np.abs(g), -g), initial=0.0))


def _square_root(S: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and c with AᵀA = S and Aᵀc = b, on the numerical range of S."""
    values, vectors = np.linalg.eigh(S)
    kept = values > _ROUNDING * len(b) * max(float(values[-1]), 0.0)
    if not kept.any():
        return np.zeros((1, len(b))), np.zeros(1)
    root = np.sqrt(values[kept])
    return root[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ b) / root
