"""Quadratic programs over non-negative vectors."""

import numpy as np
from scipy.optimize import nnls

_ROUNDING = 16 * np.finfo(np.float64).eps  # per variable: what a sum of so many terms loses
_TOL = 1e-12


def nonnegative_qp(S: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Minimise ``vᵀSv - 2bᵀv`` over ``v >= 0``, S positive semi-definite, b in its range.

    SciPy's non-negative least squares with a root of S, whose lost digits come back by solving
    equations on the positive entries. Also returns the largest violation of the
    Karush-Kuhn-Tucker conditions: Sv - b = 0 where v > 0, and >= 0 elsewhere.
    """
    S = np.asarray(S, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    if not (np.all(np.isfinite(S)) and np.all(np.isfinite(b))):
        raise ValueError("Got a program with NaN or infinity, but expected finite coefficients.")
    try:
        v = nnls(*_square_root(S, b))[0]
    except RuntimeError:  # its iteration limit: the exchanges below can start from nothing too
        v = np.zeros_like(b)
    best, least = v, kkt_residual(S, b, v)
    for _ in range(3 * len(b)):
        if least <= _TOL * max(1.0, float(np.max(np.abs(b), initial=0.0))):
            break
        v = _exchange(S, b, v)
        residual = kkt_residual(S, b, v)
        if residual < least:
            best, least = v, residual
    return best, least


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


def _exchange(S: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One step of the active-set method of Lawson and Hanson, on the equations Sv = b."""
    free = v > 0
    g = S @ v - b
    entering = np.where(free, 0.0, g)
    if not free.any() or np.max(np.abs(g[free])) <= max(_TOL, -float(entering.min())):
        free[np.argmin(entering)] = True
    while free.any():
        target = np.zeros_like(v)
        target[free] = np.linalg.lstsq(S[np.ix_(free, free)], b[free], rcond=None)[0]
        blocked = free & (target <= 0)
        if not blocked.any():
            return target
        # As far towards the target as nothing turns negative; what reaches zero leaves.
        step = np.min(v[blocked] / np.maximum(v[blocked] - target[blocked], 1e-300))
        v = np.maximum(v + step * (target - v), 0.0)
        leaving = blocked & (v <= _TOL * np.max(v, initial=0.0))
        free &= ~(leaving if leaving.any() else blocked)
        v = np.where(free, v, 0.0)
    return v
