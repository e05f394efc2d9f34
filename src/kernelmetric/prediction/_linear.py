"""Ridge regression on learned coordinates: what lies between the classes, neighbours cannot say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import Ridge

from kernelmetric.compute import to_numpy
from kernelmetric.kernelized import Kernelized

_LEAST_KEPT = 1e-6  # of a residual
_LOST = 1e-3  # of predictions, by a map
OWN = 0.0  # in place of a ridge: the predictions that the space is made of
RIDGES = (1e-6, 1e-3, 1e-1)  # of the mean variance of a coordinate


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
    level = float(np.mean(np.var(E, axis=0))) or 1.0
    n = len(E) if mass is None else float(np.sum(mass))
    model = Ridge(alpha=ridge * level * n, solver="cholesky").fit(E, Y, sample_weight=mass)
    p = Y.shape[1]
    return LinearScores(
        np.ascontiguousarray(np.reshape(model.coef_, (p, -1)).T), np.reshape(model.intercept_, p)
    )


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
    coef = np.linalg.lstsq(L.T, predictor, rcond=None)[0]
    # A map that lost one of their directions cannot give them back.
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
