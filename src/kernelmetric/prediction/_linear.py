"""Ridge regression on learned coordinates: what lies between the classes, neighbours cannot say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.linear_model import Ridge

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
