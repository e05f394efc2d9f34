"""Rounds of learning features: ridge regression, and the directions in which it changes."""

from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from kernelmetric.compute.reductions import squared_distances
from kernelmetric.compute.watch import ended_by_limit
from kernelmetric.solvers import FARTHEST, RIDGES, Family, Grid, evenly, ridge_solution


def _distances(A: np.ndarray, B: np.ndarray | None = None) -> np.ndarray:
    return np.sqrt(squared_distances(A, B))


#: Kernels exp(-γ D) of the distance and of its square, whose slopes are known.
KERNELS = {
    "laplace": Family("laplace", _distances, 2.0 ** np.arange(-2, 5)),
    "rbf": Family("rbf", squared_distances, 2.0 ** np.arange(-4, 5)),
}
ROUNDS = "the rounds of RFM: the best so far is kept"  # what a time limit ends
_FEW_ROWS = 160  # to find out where to look
_STEPS = 2  # over the grid of widths and ridges, in each round
_MOST_OUTPUTS = 32  # directions of the solution; more outputs than that share them
_FOLDS = 3
_LEAST = 1e-14  # of the largest eigenvalue: below is rounding


class Regression(NamedTuple):
    """Ridge regression on mapped points; its predictions are ``(K + 1) alpha``."""

    L: np.ndarray
    E: np.ndarray
    alpha: np.ndarray
    slopes: np.ndarray
    kernel: Family
    gamma: float
    ridge: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted targets of other points; shape (m, p)."""
        D = self.kernel.distances(X @ self.L.T, self.E)
        return (np.exp(-np.minimum(self.gamma * D, FARTHEST)) + 1.0) @ self.alpha


def average_gradient_outer_product(
    E: np.ndarray, alpha: np.ndarray, slopes: np.ndarray, roots: np.ndarray | None = None
) -> np.ndarray:
    """``1/n Σ_i Σ_c g_ic g_icᵀ`` of the gradients ``g_ic = Σ_j α_jc s_ij (e_i - e_j)``."""
    if alpha.shape[1] > _MOST_OUTPUTS:  # the sum over outputs depends on alpha alphaᵀ alone
        U, s, _ = linalg.svd(alpha, full_matrices=False)
        alpha = U[:, :_MOST_OUTPUTS] * s[:_MOST_OUTPUTS]
    total = np.zeros((E.shape[1], E.shape[1]))
    for column in alpha.T:
        gradients = (slopes @ column)[:, None] * E - slopes @ (column[:, None] * E)
        gradients = gradients if roots is None else roots[:, None] * gradients
        total += gradients.T @ gradients
    return total / len(E)


def feature_rounds(
    X: np.ndarray,
    Y: np.ndarray,
    kernel: str = "laplace",
    *,
    diagonal: bool = False,
    place: tuple[int, int] | None = None,
    roots: np.ndarray | None = None,
    what: str = ROUNDS,
) -> Iterator[Regression]:
    """Ridge regressions, each on features that the one before found to matter.

    A time limit ends them, but for the first two, and says what it ended.
    """
    family = KERNELS[kernel]
    L = np.eye(X.shape[1])
    few = evenly(len(Y), _FEW_ROWS)
    steps = 0, 1
    if roots is not None:
        roots = roots / np.sqrt(np.mean(roots**2))
    if place is None:
        some = None if roots is None else roots[few]
        place = Grid(X[few], Y[few], family, roots=some).sweep().best
        steps = _STEPS, _STEPS
    for n_rounds, step in enumerate(chain(steps, repeat(steps[1]))):
        E = X @ L.T
        grid = Grid(E, Y, family, roots=roots)
        if step:
            place = grid.look([place]).climb(step).best
        gamma, ridge = float(grid.gammas[place[0]]), float(RIDGES[place[1]])
        D = family.distances(E, None)
        K = np.exp(-np.minimum(gamma * D, FARTHEST))
        alpha = ridge_solution(K, Y, ridge, roots)
        if kernel == "laplace":  # the derivative of the distance is (x - z) / |x - z|
            K = np.divide(K, D, out=np.zeros_like(K), where=D > 0)
        yield Regression(L, E, alpha, K, family, gamma, ridge)
        if n_rounds and ended_by_limit(what):
            return
        M = L.T @ average_gradient_outer_product(E, alpha, K, roots) @ L
        M = np.diag(np.diag(M)) if diagonal else M
        if not (np.isfinite(M).all() and np.trace(M) > 0):
            return
        L = square_root(M)


def held_out_errors(
    X: np.ndarray, Y: np.ndarray, most: int, *, roots: np.ndarray | None = None, **how: Any
) -> np.ndarray:
    """Shares of the variance (most + 1,) that points left out show to be missed, by rounds."""
    errors, w = np.zeros(most + 1), np.ones(len(Y)) if roots is None else roots**2
    for k in range(_FOLDS):
        if k and ended_by_limit(ROUNDS):
            errors *= _FOLDS / k
            break
        judged = np.arange(k, len(Y), _FOLDS)
        others = np.delete(np.arange(len(Y)), judged)
        some = None if roots is None else roots[others]
        rounds = feature_rounds(X[others], Y[others], roots=some, **how)
        predictions = (fit.predict(X[judged]) for fit in islice(rounds, most + 1))
        found = [np.sum(w[judged] @ (F - Y[judged]) ** 2) for F in predictions]
        errors += found + [found[-1]] * (most + 1 - len(found))
    return errors / np.sum(w @ (Y - np.average(Y, axis=0, weights=w)) ** 2)


def square_root(M: np.ndarray, rank: int | None = None) -> np.ndarray:
    """The symmetric root of M, whose largest eigenvalue becomes one; of a rank, its rows alone."""
    values, U = linalg.eigh(M)
    values = np.maximum(values / values[-1], 0.0)
    values = np.where(values > _LEAST, np.sqrt(values), 0.0)
    if rank is None or rank >= len(M):
        return (U * values) @ U.T
    return (U * values).T[: -rank - 1 : -1]
