"""Newton steps of the dual over the pairs that are not settled at a bound.

Near the solution most multipliers are at a bound, and the others are few. In the eigenvectors of
``M(α) = Σ s α δδᵀ``, half the squared norm of its positive part has the curvature
``Σ Ω_ij δ_pi δ_pj δ_qi δ_qj`` for the pairs p and q: Ω is 1 for two positive eigenvalues, 0 for two
others, and between them ``λᵢ / (λᵢ - λⱼ)``. A few outer products add up to that, and each takes two
products of matrices. Without the positive part all of Ω is 1, and one step is the solution.
"""

import numpy as np
from scipy import linalg

from kernelmetric.compute import fits_budget
from kernelmetric.solvers._pair_dual import PairDual, project_box_half_space

_ALL = 1.0 - 1e-9  # of the upper bound: projections add as much
_MARGIN = 0.03  # of the mean pull: pairs at a bound that are pulled less may leave it
_NEARLY_ALL = 3e-3  # of the largest singular value: products that are left out of Ω
_MOST, _FEW = 4000, 1000  # pairs whose curvature is formed, and so few that all are
_ROUNDS, _SETTLED = 12, 0.002  # of pairs that change sides, and their share that may be left


def newton_point(
    problem: PairDual, alpha: np.ndarray, slopes: np.ndarray, M: np.ndarray, damping: float
) -> np.ndarray | None:
    """Where the dual with its curvature at α, damped a little, is best; None where that fails.

    ``slopes`` are those of the dual with the other sign.
    """
    some = _unsettled(problem, alpha, slopes)
    if not 0 < len(some) <= _MOST or not fits_budget(32.0 * len(some) ** 2, share=0.5):
        return None
    lengths = problem.sizes()[some]
    lengths = np.maximum(lengths, 1e-3 * max(float(np.mean(lengths)), 1e-300))
    H = _curvature(problem, some, lengths, M)
    H[np.diag_indices_from(H)] += H.dtype.type(damping)
    steepest = slopes[some] / lengths
    size = float(np.max(np.abs(steepest))) or 1.0  # single precision has no more room
    unit, upper, apart = lengths / size, problem.upper[some], problem.apart[some]
    least = problem.least - float(np.sum(np.delete(alpha * problem.apart, some)))
    try:
        box, total = (alpha[some] * unit, upper * unit), (np.where(apart, 1.0 / unit, 0.0), least)
        x = _best_in_box(H, steepest / size, box, total)
    except linalg.LinAlgError:
        return None
    found = alpha.copy()
    found[some] = project_box_half_space(x / unit, upper, apart, least, lengths**2)
    return found


def _unsettled(problem: PairDual, alpha: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The pairs between their bounds, and those that a bound does not hold firmly."""
    if not problem.psd and len(problem) <= _FEW:
        return np.arange(len(problem))  # one step is the solution
    pull = slopes - np.where(problem.apart, problem._best_gamma(slopes[problem.apart]), 0.0)
    pull /= _MARGIN * max(float(np.mean(np.abs(pull))), 1e-300)
    above, below = alpha > (1 - _ALL) * problem.upper, alpha < _ALL * problem.upper
    return np.flatnonzero((above | (pull < 1)) & (below | (pull > -1)))


def _curvature(
    problem: PairDual, some: np.ndarray, lengths: np.ndarray, M: np.ndarray
) -> np.ndarray:
    """Second derivatives by the multipliers of some pairs, times the lengths of their matrices."""
    parts = [(s, delta / np.sqrt(lengths)[:, None]) for s, delta in problem.parts(some)]
    first, products = 0, []
    if problem.psd:
        values, Q = np.linalg.eigh(M)
        first = int(np.sum(values <= 0))
        parts = [(s, (delta @ Q).astype(np.float32)) for s, delta in parts]
        positive = values[first:, None]
        A, sizes, Bt = np.linalg.svd(positive / (positive - values[:first]), full_matrices=False)
        kept = sizes > _NEARLY_ALL * np.max(sizes, initial=0.0)
        left, right = (2.0 * A * sizes).T[kept], Bt[kept]
        products = [*zip(left.astype(np.float32), right.astype(np.float32), strict=True)]
    H = np.zeros((len(some), len(some)), dtype=parts[0][1].dtype)
    for s, x in parts:
        for t, y in parts:
            product = (x[:, first:] @ y[:, first:].T) ** 2
            for a, b in products:
                of = (a * x[:, first:]) @ y[:, first:].T
                of *= (x[:, :first] * b) @ y[:, :first].T
                product += of
            H += H.dtype.type(s * t) * product
    signs = problem.signs[some].astype(H.dtype)
    H *= np.outer(signs, signs)
    return H


def _best_in_box(H: np.ndarray, slopes: np.ndarray, box: tuple, total: tuple) -> np.ndarray:
    """Nearly minimise ``slopesᵀ(x - now) + ½ (x - now)ᵀH(x - now)`` in a box, ``amongᵀx >= least``.

    Those at a bound stay, the others solve their equations; then those that left the bounds, and
    those whose slope points inside, change sides. Where that has no end, the best on the way.
    """
    (now, upper), (among, least) = box, total
    x, free = now.copy(), (now > (1 - _ALL) * upper) & (now < _ALL * upper)
    dtype, best = H.dtype, now
    for _ in range(_ROUNDS):
        f = np.flatnonzero(free)
        x[f], price = now[f], 0.0
        if len(f):
            factor = linalg.cho_factor(H[np.ix_(f, f)].T, True, True, check_finite=False)
            rhs = -(slopes + H @ (x - now).astype(dtype))[f]
            both = np.stack([rhs, among[f]], axis=1).astype(dtype)
            inner, tied = linalg.cho_solve(factor, both, check_finite=False).T.astype(np.float64)
            needed, along = least - among @ x - among[f] @ inner, among[f] @ tied
            price = max(float(needed / along), 0.0) if along > 0 else 0.0
            x[f] += inner + price * tied
        rest = slopes + H @ (x - now).astype(dtype) - price * among
        inside = np.where(free, (x > 0) & (x < upper), np.where(x <= 0, rest < 0, rest > 0))
        changed, free = int(np.sum(inside != free)), inside
        x = np.clip(x, 0.0, upper)
        if changed < _SETTLED * len(x):
            return x  # all but a few
        move = (x - best).astype(dtype)
        uphill = float(move @ (slopes + H @ (best - now).astype(dtype)))
        bent = float(move @ (H @ move))
        best = best + min(max(-uphill / max(bent, 1e-300), 0.0), 1.0) * move
    return best
