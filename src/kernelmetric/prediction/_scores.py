"""Linear scores of learned coordinates, and how much each score counts beside others."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear, minimize
from scipy.special import log_softmax

from kernelmetric.compute import rounding_of, sum_rows, to_numpy
from kernelmetric.kernelized import Kernelized

_LEAST_KEPT = 1e-6  # of a residual
_LOST = 1e-3  # of predictions, by a map
_HELD_DIGITS = 1e3  # times rounding: what a map makes smaller than that is lost
OWN = 0.0  # in place of a ridge: the predictions that the space is made of
RIDGES = (1e-6, 1e-3, 1e-1)  # of the mean variance of a coordinate
_ALL_DIGITS = {"ftol": 1e-13, "gtol": 1e-7, "maxcor": 20}


class LinearScores(NamedTuple):
    """An affine map of learned coordinates: a matrix (r, p) and an offset."""

    coef: np.ndarray
    intercept: np.ndarray

    def __call__(self, E: np.ndarray) -> np.ndarray:
        return E @ self.coef + self.intercept


def linear_scores(
    E: np.ndarray, Y: np.ndarray, ridge: float, mass: np.ndarray | None = None
) -> LinearScores:
    """Ridge regression of Y on learned coordinates; relative to n times their mean variance."""
    return _solved(E, Y, ridge, mass)[0]


def left_out_scores(
    E: np.ndarray, Y: np.ndarray, ridge: float, mass: np.ndarray | None, rows: np.ndarray
) -> np.ndarray:
    """What :func:`linear_scores` of all other rows would say of some rows."""
    line, mean, G = _solved(E, Y, ridge, mass)
    m = np.ones(len(E)) if mass is None else mass
    E, Y, share = E[rows].astype(np.float64, copy=False), Y[rows], m[rows] / np.sum(m)
    A = E - mean
    moved = m[rows] * np.einsum("ij,ji->i", A, np.linalg.solve(G, A.T)) + share
    return Y - (Y - line(E)) / np.maximum(1.0 - moved, _LEAST_KEPT)[:, None]


def _solved(
    E: np.ndarray, Y: np.ndarray, ridge: float, mass: np.ndarray | None
) -> tuple[LinearScores, np.ndarray, np.ndarray]:
    """Ridge regression, block by block; the mean that it subtracts, and its normal equations."""
    (n, d), m = E.shape, np.ones(len(E)) if mass is None else mass
    total, size = np.sum(m), {"n_rows": n, "bytes_per_row": 8 * 4 * d}
    sums = sum_rows(lambda rows: (m[rows] @ E[rows], m[rows] @ Y[rows]), **size)
    mean, middle = (part / total for part in sums)

    def scatter(rows: slice) -> tuple[np.ndarray, ...]:
        e = E[rows] - mean
        weighted = (m[rows][:, None] * e).T
        return weighted @ e, weighted @ (Y[rows] - middle), np.sum(e, axis=0), np.sum(e**2, axis=0)

    G, b, first, second = sum_rows(scatter, **size)
    level = max(float(np.mean(second / n - (first / n) ** 2)), 0.0) or 1.0
    G += ridge * level * total * np.eye(d)
    coef = np.linalg.solve(G, b)
    return LinearScores(coef, middle - mean @ coef), mean, G


def own_scores(
    metric: Any, E: np.ndarray, y: np.ndarray, n_classes: int, mass: np.ndarray | None = None
) -> LinearScores | None:
    """The predictions that a metric's space is made of, on learned coordinates; None without any.

    They are ±1 for each class; where ``n_classes`` is zero, numbers in the units of y.
    """
    if not isinstance(metric, Kernelized):  # nor one that is frozen: its classes are no codes
        return None
    space: Any = metric.space_
    predictor = getattr(space, "predictor_", None)
    if predictor is None or (space.classes_ is None) != (n_classes == 0):
        return None
    L = to_numpy(metric.components_).astype(np.float64)
    # A map that lost one of their directions cannot give them back, nor one that made it so small
    # that the digits of the coordinates no longer hold it.
    least = _HELD_DIGITS * rounding_of(metric.components_)  # new points have no more digits
    coef = np.linalg.lstsq(L.T, predictor, rcond=least)[0]
    if np.linalg.norm(L.T @ coef - predictor) > _LOST * np.linalg.norm(predictor):
        return None
    if n_classes:
        wide, intercept = np.zeros((len(coef), n_classes)), np.full(n_classes, -1.0)
        columns = space.classes_.astype(int)
        wide[:, columns], intercept[columns] = coef, space.means_
        return LinearScores(wide, intercept)
    roots = np.ones(len(E)) if mass is None else np.sqrt(mass)
    said = roots[:, None] * np.column_stack([E @ coef, np.ones(len(E))])
    fitted = np.linalg.lstsq(said, roots * y, rcond=None)[0]
    return LinearScores(coef @ fitted[:-1, None], fitted[-1:])


class Combination(NamedTuple):
    """Non-negative weights of scores, biases of the classes, and the loss on points held out."""

    weights: np.ndarray
    biases: np.ndarray
    loss: float


def log_odds(
    scores: np.ndarray, codes: np.ndarray, usual: np.ndarray, mass: np.ndarray | None = None
) -> Combination:
    """Weights w and biases b of the most likely ``p_c ∝ exp(Σ_f w_f s_cf + b_c)``.

    This is Platt's and temperature scaling at once, for several scores (n, c, f). A normal prior of
    variance one stands around the usual weights and around no bias.
    """
    c, f = scores.shape[1:]
    start = np.concatenate([usual, np.zeros(c)])
    hit = (codes[:, None] == np.arange(c)).astype(np.float64)
    m = np.ones(len(codes)) if mass is None else mass

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logs = log_softmax(scores @ theta[:f] + theta[f:], axis=1)
        away, excess = theta - start, m[:, None] * (np.exp(logs) - hit)
        slope = np.append(np.tensordot(excess, scores, axes=2), excess.sum(axis=0))
        return float(-m @ logs[hit > 0] + 0.5 * away @ away), slope + away

    how: Any = {"jac": True, "method": "L-BFGS-B", "options": _ALL_DIGITS}
    found = minimize(loss, start, bounds=[(0.0, None)] * f + [(None, None)] * c, **how)
    return Combination(found.x[:f], found.x[f:], float(found.fun))


def sum_of_numbers(
    scores: np.ndarray, y: np.ndarray, usual: np.ndarray, mass: np.ndarray | None = None
) -> Combination:
    """Weights of least squares for several predictions of a number, held near the usual ones."""
    level, centre = np.average(scores, axis=0, weights=mass), np.average(y, weights=mass)
    A, b = scores - level, y - centre
    noise = float(np.sqrt(np.average((b - A @ usual) ** 2, weights=mass))) or 1.0
    if mass is not None:
        A, b = np.sqrt(mass)[:, None] * A, np.sqrt(mass) * b
    rows, right = np.vstack([A, noise * np.eye(len(usual))]), np.append(b, noise * usual)
    weights = lsq_linear(rows, right, bounds=(0.0, np.inf)).x
    loss = float(np.sum((rows @ weights - right) ** 2))
    return Combination(weights, np.array([centre - level @ weights]), loss)
