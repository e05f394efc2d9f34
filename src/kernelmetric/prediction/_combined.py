"""How much each score counts, found on points held out and held near what is usual."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.optimize import lsq_linear
from scipy.special import log_softmax

_MOST_STEPS = 30  # of Newton's, and halvings of one
_ENOUGH = 1e-9  # what a step would lower the loss by, relative


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
        away = theta - start
        return float(-m @ logs[hit > 0] + 0.5 * away @ away), logs

    theta = start
    value, logs = loss(theta)
    for _ in range(_MOST_STEPS):
        slope, H = _derivatives(scores, np.exp(logs), hit, m)
        slope += theta - start
        free = np.append((theta[:f] > 0) | (slope[:f] < 0), np.ones(c, dtype=bool))
        step = np.zeros_like(theta)
        step[free] = -linalg.solve(H[np.ix_(free, free)], slope[free], assume_a="pos")
        if -slope @ step <= _ENOUGH * max(1.0, abs(value)):
            break
        for halved in 0.5 ** np.arange(_MOST_STEPS):
            after = theta + halved * step
            after[:f] = np.maximum(after[:f], 0.0)
            lower, logs_after = loss(after)
            if lower < value:
                break
        else:
            break
        theta, value, logs = after, lower, logs_after
    return Combination(theta[:f], theta[f:], value)


def _derivatives(
    scores: np.ndarray, P: np.ndarray, hit: np.ndarray, m: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of the log-loss with the prior, by weights and then by biases."""
    f, c = scores.shape[2], P.shape[1]
    excess, mP = m[:, None] * (P - hit), m[:, None] * P
    about = scores - np.einsum("ic,icf->if", P, scores)[:, None, :]
    H = np.eye(f + c)
    weighted = mP[:, :, None] * about
    H[:f, :f] += np.tensordot(weighted, about, axes=([0, 1], [0, 1]))
    H[:f, f:] += weighted.sum(axis=0).T
    H[f:, :f] = H[:f, f:].T
    H[f:, f:] += np.diag(mP.sum(axis=0)) - mP.T @ P
    return np.concatenate([np.tensordot(excess, scores, axes=2), excess.sum(axis=0)]), H


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
