"""Ridge regression on a centred Gram matrix, and what it says of each row when that is left out.

With a free mean, K̃ = H K H and G = (K̃ + λ I)⁻¹, the regression of the columns of Y has the
weights α = G H Y and the residuals λ α. Without row i its residual would be α_i / (H G H)_ii. That
diagonal is the one of (K̃ + c qqᵀ + λ I)⁻¹, less q_i² / (c + λ), where q is the constant vector of
length one; with a c of the size of eigenvalues no digits are lost, however small λ is. Predictions
are told less the mean, that of a left-out row less the mean of the others: where the others predict
no more than their mean, that alone would tell the row's label. With weights w of rows, all of this
holds for K times the roots of w from both sides, and q is in proportion to these roots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from kernelmetric.compute import backend_of, map_rows, namespace, take_rows, to_numpy
from kernelmetric.kernels import Kernel
from kernelmetric.solvers import (
    cholesky_factor,
    evenly,
    inverse_diagonal_in_place,
    solve_in_place,
)
from kernelmetric.spaces._base import block_size
from kernelmetric.spaces._centred_gram import CentredGram

LEAST_OF_CLASS = 10  # rows that part classes: of each class so many, or all it has
_TILE = 1024  # rows that are centred at a time
_AS_GOOD = 1.001  # of the least error: of ridges within it, the largest
_RIDGES = 10.0 ** np.arange(-6.0, 2.0, 0.5)  # of a given kernel, relative to its mean variance


class Regression(NamedTuple):
    """Weights of the rows, and predictions of the rows, left out, less the mean."""

    alpha: np.ndarray
    left_out: np.ndarray


def regression(gram: CentredGram, Y: np.ndarray, ridge: float) -> Regression:
    """Ridge regression of Y; K, which is overwritten where it is in float32, is no more.

    ``alpha`` is for rows times the roots of their weights, as ``gram`` has them; predictions are
    those of the rows themselves.
    """
    roots = np.ones(gram.n) if gram.roots is None else to_numpy(gram.roots).astype(np.float64)
    q = roots / linalg.norm(roots)
    scaled = roots[:, None] * Y
    scaled -= q[:, None] * (q @ scaled)
    solved = _in_place if gram.narrow else _in_full
    alpha, own = solved(gram, scaled, ridge, q)
    # No inverse of a positive matrix is less than that of its trace.
    own = np.maximum(own, (1.0 - q**2) / (gram.centred_trace + ridge))
    left_out = scaled / (1.0 - q**2)[:, None] - alpha / own[:, None]
    return Regression(alpha, left_out / roots[:, None])


def _in_full(
    gram: CentredGram, Y: np.ndarray, ridge: float, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solution, and diagonal of the inverse among centred vectors; in float64 and where K is."""
    K, along = centred(gram), gram.centred_trace / gram.n
    K += along / gram.n if gram.roots is None else along * (gram.constant @ gram.constant.T)
    namespace(K).reshape(K, (-1,), copy=False)[:: gram.n + 1] += ridge
    solve = backend_of(K).positive_solver(K)
    return solve(Y), solve.inverse_diagonal() - q**2 / (along + ridge)


def _in_place(
    gram: CentredGram, Y: np.ndarray, ridge: float, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same in one array of float32, refined; of columns of Y, a basis is solved for."""
    U, values, Vt = linalg.svd(Y, full_matrices=False)
    some = values > 1e-10 * max(values[0], np.finfo(float).tiny)
    K, along = np.ascontiguousarray(to_numpy(gram.K)), gram.centred_trace / gram.n
    gram.K = None
    narrow = q.astype(np.float32)
    image = K @ narrow
    image -= np.float32(0.5 * (float(narrow @ image) + along)) * narrow
    for start in range(0, gram.n, _TILE):
        rows = slice(start, start + _TILE)
        K[rows] -= np.multiply.outer(narrow[rows], image)
        K[rows] -= np.multiply.outer(image[rows], narrow)
    K.reshape(-1)[:: gram.n + 1] += np.float32(ridge)
    first = float(K[0, 0])
    alpha, _ = solve_in_place(K, U[:, some])
    own = inverse_diagonal_in_place(K, first) - q**2 / (along + ridge)
    return (alpha * values[some]) @ Vt[some], own


def centred(gram: CentredGram) -> Any:
    """A copy of H K H, where K is."""
    if gram.roots is not None:
        q = gram.constant
        K = gram.K - q @ (q.T @ gram.K)
        return K - (K @ q) @ q.T
    means = gram.column_means
    K = gram.K - means
    K -= means.T - gram.xp.mean(means)
    return K


def ridge_of(K: np.ndarray, Y: np.ndarray, roots: np.ndarray) -> tuple[float, tuple[float, float]]:
    """The ridge with which rows of a given kernel are predicted best when left out.

    Beside it, the smallest and the largest eigenvalue.

    ``K`` are kernel values of some rows, ``roots`` those of their weights, 1 on average.
    """
    q = roots / linalg.norm(roots)
    K = roots[:, None] * K * roots
    K = K - np.multiply.outer(q, q @ K)
    K = K - np.multiply.outer(K @ q, q)
    values, U = linalg.eigh(K, check_finite=False)
    spectrum = float(values[0]), float(values[-1])
    values = np.maximum(values, 0.0)
    Y = roots[:, None] * Y
    along, squares = U.T @ (Y - q[:, None] * (q @ Y)), U**2
    level = float(values.mean()) or 1.0
    errors = []
    for ridge in _RIDGES * level:
        shrunk = ridge / (values + ridge)
        kept = np.maximum(squares @ shrunk - q**2, shrunk.min() * (1.0 - q**2))
        errors.append(float(np.sum(((U @ (shrunk[:, None] * along)) / kept[:, None]) ** 2)))
    refuse_large(errors)
    good = np.flatnonzero(np.asarray(errors) <= _AS_GOOD * min(errors))
    return float(_RIDGES[good[-1]] * level), spectrum


def refuse_large(products: Any) -> None:
    """Refuse kernel values of which products are out of range."""
    if not np.all(np.isfinite(products)):
        raise ValueError(
            "Got points whose kernel values are too large to be multiplied, but expected products "
            "within the range of float64: try rescaling the features, for instance with "
            "StandardScaler."
        )


def boundary_rows(
    smooth: Kernel, ridge: float, X: Any, Y: np.ndarray, n_evenly: int, n_nearest: int
) -> np.ndarray:
    """Rows that ridge regression needs where classes are easily told apart, ascending.

    Rows that resemble all are taken first, ten or more of each class that has them. Those of the
    others that a regression of the first predicts worst, or least surely, come beside them. What is
    left is predicted right by far.
    """
    n = len(Y)
    order = np.lexsort(Y.T)  # by class; within one, in the order of the rows
    begins = np.append(True, np.any(np.diff(Y[order], axis=0), axis=1))
    place = np.arange(n) - np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    few, rest = order[place < LEAST_OF_CLASS], order[place >= LEAST_OF_CLASS]
    first = np.append(few, rest[evenly(len(rest), n_evenly - len(few))])
    some = take_rows(X, first)
    factor = cholesky_factor(to_numpy(smooth(some)).astype(np.float64) + 1.0, ridge)
    alpha = linalg.cho_solve((factor, True), Y[first], check_finite=False)

    def squares(rows: slice) -> np.ndarray:
        return np.sum((Y[rows] - (to_numpy(smooth(X[rows, :], some)) + 1.0) @ alpha) ** 2, axis=1)

    wrong = map_rows(squares, n, **block_size(X, n_evenly))
    wrong[first] = np.inf
    taken = len(first) + n_nearest
    return np.sort(np.argpartition(wrong, n - taken)[-taken:])
