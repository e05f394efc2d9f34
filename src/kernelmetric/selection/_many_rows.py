"""Narrower kernels and smaller ridges, where there are rows enough to fill them."""

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute.rates import rates
from kernelmetric.compute.watch import ended_by_limit
from kernelmetric.kernels import Kernel
from kernelmetric.selection._relevance import CHOICE, Sample
from kernelmetric.solvers import RIDGES, evenly

MANY_ROWS = 16_000  # of more rows, so many are asked
LANDMARKS = 800
_HELD = 4  # every so many of the rows is predicted from the others
_NARROWER = 2.0  # a step of gamma
_BETTER = 0.999  # of the error, or the step is not taken


def seconds_of_width(n_features: int) -> float:
    """Seconds that one width takes."""
    products = rates().product * 4.0 * MANY_ROWS * LANDMARKS**2
    return products + rates().block(MANY_ROWS * LANDMARKS, n_features)


def for_many_rows(kernel: Any, ridge: float, sample: Sample) -> tuple[Any, float]:
    """A kernel as wide as this one, or narrower, and its ridge or a tenth, by rows held out."""
    judges = slice(0, None, _HELD)
    learn, judge = sample.take(np.delete(np.arange(len(sample.Y)), judges)), sample.take(judges)
    ridges = np.array([ridge, max(ridge / 10.0, RIDGES[0])])
    least, narrower = np.inf, kernel
    while not ended_by_limit(CHOICE, lambda: seconds_of_width(sample.X.shape[1])):
        errors = errors_by_landmarks(narrower, learn, judge, ridges)
        if not errors.min() < _BETTER * least:
            break
        least, kernel, ridge = errors.min(), narrower, float(ridges[np.argmin(errors)])
        narrower = type(kernel)(gamma=_NARROWER * kernel.gamma)
    return kernel, ridge


def errors_by_landmarks(
    kernel: Kernel, learn: Sample, judge: Sample, ridges: np.ndarray
) -> np.ndarray:
    """Mean squared errors of ridge regression on landmarks, at rows it did not learn from."""
    some = learn.X[evenly(len(learn.Y), LANDMARKS)]
    values, U = linalg.eigh(kernel(some), check_finite=False)
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    to_coordinates = U[:, kept] / np.sqrt(values[kept])
    Z, Z_judge = (kernel(part.X, some) @ to_coordinates for part in (learn, judge))
    masses = np.ones(len(Z)) if learn.roots is None else learn.roots**2
    means = np.average(learn.Y, axis=0, weights=masses)
    values, U = linalg.eigh(Z.T @ (masses[:, None] * Z), check_finite=False)
    along = U.T @ (Z.T @ (masses[:, None] * (learn.Y - means)))
    seen = Z_judge @ U
    found = [seen @ (along / (values + ridge)[:, None]) + means for ridge in ridges]
    squares = [np.mean((F - judge.Y) ** 2, axis=1) for F in found]
    return np.average(squares, axis=1, weights=None if judge.roots is None else judge.roots**2)
