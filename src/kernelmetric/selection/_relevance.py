"""Relevance of features: the scales under which ridge regression predicts best.

One width for all features cannot tell signal from noise: a few irrelevant features fill the
distance, and no width removes them. A scale for each feature can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg, optimize

from kernelmetric.compute import squared_distances
from kernelmetric.selection._targets import few_columns

_PRIOR = 1.0  # weight of a squared log-relevance; it is one sample against n
_LOG_BOUNDS = (-8.0, 4.0)  # of a relevance, around the common one
_LOG_RIDGE_BOUNDS = (np.log(1e-5), np.log(30.0))


def relevance_loss(
    parameters: np.ndarray, X: np.ndarray, Y: np.ndarray
) -> tuple[float, np.ndarray]:
    r"""Logarithm of the leave-one-out error of ridge regression, and its gradient.

    With :math:`K_{ij} = \exp(-\sum_f w_f (x_{if} - x_{jf})^2)`,
    :math:`G = (K + 1 + \lambda I)^{-1}` and the residuals :math:`r_i = (GY)_i / G_{ii}` of points
    left out, it is :math:`\log \operatorname{mean} r^2`. O(n³ + n² d) time, some n × n arrays.

    Parameters
    ----------
    parameters : ndarray of shape (d + 1,)
        Logarithms of the relevances w and of the ridge λ.
    X : ndarray of shape (n, d)
        Points.
    Y : ndarray of shape (n, p)
        Targets.

    Returns
    -------
    value : float
        The logarithm of the mean squared residual.
    gradient : ndarray of shape (d + 1,)
        Its gradient.
    """
    w, ridge = np.exp(parameters[:-1]), np.exp(parameters[-1])
    X = X - X.mean(axis=0)
    K = np.exp(-np.minimum(squared_distances(X * np.sqrt(w)), 300.0))
    G = _inverse(K + 1.0, ridge)
    diagonal = np.diag(G)[:, None]
    F, signs, own = few_columns(Y)
    alpha = G @ F
    residuals = alpha / diagonal
    squares = np.sum(residuals**2 * signs, axis=1)
    if own:
        squares += own * np.sum((G / diagonal) ** 2, axis=1)
    # d mean r² = tr(M dK): the first term through the diagonal of G, the others through GY.
    M = G * (2.0 * squares / diagonal[:, 0])
    if own:
        M -= own * (G @ (G * (2.0 / diagonal[:, 0] ** 2)))
    M = M @ G
    M -= (alpha * signs) @ (G @ (2.0 * residuals / diagonal)).T
    trace = np.trace(M)
    P = K * (M + M.T) / 2.0
    moved = 2.0 * (P.sum(axis=1) @ X**2) - 2.0 * np.einsum("if,if->f", X, P @ X)
    gradient = np.append(-w * moved, ridge * trace) / squares.sum()
    return float(np.log(squares.sum() / Y.size)), gradient


def relevances(X: np.ndarray, Y: np.ndarray, starts: Sequence[tuple[float, float]]) -> np.ndarray:
    r"""Relevance of each feature, by descent on the leave-one-out error from common widths.

    Minimises ``relevance_loss`` plus :math:`\frac1n \sum_f \log^2(w_f / \gamma)`, so that features
    keep the common relevance unless the data speak against it.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points.
    Y : ndarray of shape (n, p)
        Targets.
    starts : sequence of pairs of floats
        Where to begin: common inverse widths γ, each with a ridge. The best end is taken.

    Returns
    -------
    ndarray of shape (d,)
        Relevances with geometric mean one.
    """
    n, d = X.shape
    ends = [
        descend(
            lambda parameters: relevance_loss(parameters, X, Y),
            np.append(np.full(d, np.log(gamma)), np.log(ridge)),
            d,
            prior=_PRIOR / n,
            about=np.log(gamma),
        )
        for gamma, ridge in starts
    ]
    _, parameters = min(ends, key=lambda end: end[0])
    logs = parameters[:-1]
    return np.exp(logs - logs.mean())


def descend(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    n_features: int,
    *,
    prior: float,
    about: float | None = None,
) -> tuple[float, np.ndarray]:
    """The least of a loss of log-relevances found from a start, with a prior that they are alike.

    Parameters
    ----------
    loss : callable
        From parameters to its value and a gradient of its own, which is changed.
    start : ndarray of shape (d,) or (d + 1,)
        Logarithms of the relevances of features, all the same; then perhaps that of a ridge.
    n_features : int
        The number d of features.
    prior : float
        Weight of the squared distance of the logarithms from what they should be.
    about : float, default=None
        What they should be; None means their mean.

    Returns
    -------
    value : float
        The loss with the prior.
    parameters : ndarray
        Where it is so small, after 30 iterations of L-BFGS at most.
    """

    def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(parameters)
        logs = parameters[:n_features]
        away = logs - (logs.mean() if about is None else about)
        gradient[:n_features] += 2.0 * prior * away
        return value + prior * float(away @ away), gradient

    low, high = start[0] + _LOG_BOUNDS[0], start[0] + _LOG_BOUNDS[1]
    bounds = [(low, high)] * n_features + [_LOG_RIDGE_BOUNDS] * (len(start) - n_features)
    found = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30}
    )
    return float(found.fun), found.x


def _inverse(K: np.ndarray, ridge: float) -> np.ndarray:
    K[np.diag_indices_from(K)] += ridge
    factor, _ = linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    G, _ = linalg.lapack.dpotri(factor, lower=1)  # half the work of solving for the identity
    return np.tril(G) + np.tril(G, -1).T
