"""L-BFGS on a matrix of parameters: SciPy's, with a record of what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

_WALL = float(np.finfo(np.float64).max)  # what a line search sees where the objective has no value


@dataclass
class Minimum:
    """Where an optimiser stopped, and why.

    Attributes
    ----------
    x : ndarray
        The best parameters found.
    value : float
        The objective there.
    n_iter : int
        Iterations done.
    converged : bool
        Whether the tolerance was met.
    message : str
        The optimiser's own words.
    """

    x: np.ndarray
    value: float
    n_iter: int
    converged: bool
    message: str


def minimize_lbfgs(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    report: Callable[[np.ndarray, float], bool] | None = None,
    memory: int = 10,
) -> Minimum:
    """Minimise a smooth function of a matrix.

    Parameters
    ----------
    objective : callable
        From a matrix to the value and the gradient matrix.
    start : ndarray of shape (r, d)
        Where to begin.
    max_iter : int
        The most iterations.
    tol : float
        Relative decrease of the objective in one iteration below which the search has converged.
    report : callable, default=None
        Called with the parameters and the value after every iteration; a true answer stops.
    memory : int, default=10
        Number of corrections kept.

    Returns
    -------
    Minimum
        The last iterate, where the objective is finite, and whether it converged: not where steps
        ended because the objective has no finite value beyond.
    """
    shape = start.shape
    walled = False
    best, least = start, np.inf

    def flat(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, least, walled
        value, gradient = finite_or_none(objective, x.reshape(shape))
        if gradient is None and least == np.inf:
            refuse_start(value)
        if gradient is None:  # a step too far: the line search shortens it
            walled = True
            return _WALL, np.zeros(x.size)
        if value < least:
            best, least = x.reshape(shape).copy(), value
        return value, gradient.ravel()

    def callback(intermediate_result: Any) -> None:
        nonlocal walled
        walled = False
        if report is not None and report(
            intermediate_result.x.reshape(shape), intermediate_result.fun
        ):
            raise StopIteration

    result = minimize(
        flat,
        np.asarray(start, dtype=np.float64).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=callback,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter + 20,
            "ftol": min(tol, 2.0),  # no decrease is larger, and SciPy divides by rounding
            "gtol": 1e-12,
            "maxcor": memory,
        },
    )
    # status 2: no step decreases the objective any more, which at this precision is convergence,
    # unless it was the end of the finite numbers that no step could cross
    converged = result.status == 0 or (result.status == 2 and not walled)
    x, value = result.x.reshape(shape), float(result.fun)
    if not (np.all(np.isfinite(x)) and value < _WALL):  # it got lost beyond the finite numbers
        x, value, converged = best, least, False
    return Minimum(x, value, int(result.nit), converged, result.message)


def finite_or_none(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]], x: np.ndarray
) -> tuple[float, np.ndarray | None]:
    """Value and gradient in float64; None for a gradient where one of them is not finite.

    Parameters
    ----------
    objective : callable
        From a point to the value and the gradient.
    x : ndarray
        The point.

    Returns
    -------
    value : float
        The objective, finite or not.
    gradient : ndarray or None
        Its gradient.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # told by the result
        value, gradient = objective(x)
    gradient = np.asarray(gradient, dtype=np.float64)
    usable = np.isfinite(value) and bool(np.all(np.isfinite(gradient)))
    return float(value), gradient if usable else None


def refuse_start(value: float) -> None:
    """Refuse to begin where there is nothing to descend from.

    Parameters
    ----------
    value : float
        The objective at the start.
    """
    raise ValueError(
        f"Got a start at which the objective, now {value:g}, or its gradient is not finite, but "
        "expected finite numbers: try a start (init) with smaller entries, or rescale the features."
    )
