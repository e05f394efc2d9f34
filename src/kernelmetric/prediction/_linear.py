"""Ridge regression on learned coordinates: what lies between the classes, neighbours cannot say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.linear_model import Ridge

_LEAST_KEPT = 1e-6  # of a residual
RIDGES = (1e-6, 1e-3, 1e-1)  # of the mean variance of a coordinate


class LinearScores(NamedTuple):
    """An affine map of learned coordinates.

    Attributes
    ----------
    coef : ndarray of shape (r, p)
        Its matrix.
    intercept : ndarray of shape (p,)
        Its offset.
    """

    coef: np.ndarray
    intercept: np.ndarray

    def __call__(self, E: np.ndarray) -> np.ndarray:
        return E @ self.coef + self.intercept


def linear_scores(
    E: np.ndarray, Y: np.ndarray, ridge: float, mass: np.ndarray | None = None
) -> LinearScores:
    """Ridge regression of the columns of Y on learned coordinates.

    On the coordinates of :class:`~kernelmetric.selection.RidgeKPCA`, which hold the ridge of the
    kernel, this is ridge regression in the whole feature space, so the ridge may be tiny.

    Parameters
    ----------
    E : ndarray of shape (n, r)
        Learned coordinates.
    Y : ndarray of shape (n, p)
        Targets.
    ridge : float
        The ridge, relative to n times the mean variance of a coordinate.
    mass : ndarray of shape (n,), default=None
        What the points count.

    Returns
    -------
    LinearScores
        The map.
    """
    level = float(np.mean(np.var(E, axis=0))) or 1.0
    n = len(E) if mass is None else float(np.sum(mass))
    model = Ridge(alpha=ridge * level * n, solver="cholesky").fit(E, Y, sample_weight=mass)
    p = Y.shape[1]
    return LinearScores(
        np.ascontiguousarray(np.reshape(model.coef_, (p, -1)).T), np.reshape(model.intercept_, p)
    )


def left_out_scores(
    E: np.ndarray, Y: np.ndarray, ridge: float, mass: np.ndarray | None = None
) -> np.ndarray:
    """What :func:`linear_scores` of all other rows would say of each row."""
    roots = np.ones(len(E)) if mass is None else np.sqrt(mass)
    q = roots / np.linalg.norm(roots)
    fitted = linear_scores(E, Y, ridge, mass)(E)
    A = E - (q * roots) @ E / np.sum(q * roots)
    level = float(np.mean(np.var(E, axis=0))) or 1.0
    A = roots[:, None] * A
    G = A.T @ A + ridge * level * np.sum(roots**2) * np.eye(E.shape[1])
    moved = np.einsum("ij,ji->i", A, np.linalg.solve(G, A.T)) + q**2
    return Y - (Y - fitted) / np.maximum(1.0 - moved, _LEAST_KEPT)[:, None]
