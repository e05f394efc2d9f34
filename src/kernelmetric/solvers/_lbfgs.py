"""L-BFGS on a matrix of parameters: SciPy's, with a record of what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize


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
        The last iterate, and whether it converged.
    """
    shape = start.shape
    latest: dict[str, Any] = {"value": np.inf}

    def flat(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(x.reshape(shape))
        if not np.isfinite(value):  # a step too far: the line search shortens it
            return np.finfo(np.float64).max, np.zeros(x.size)
        return float(value), np.asarray(gradient, dtype=np.float64).ravel()

    def callback(intermediate_result: Any) -> None:
        latest["value"] = intermediate_result.fun
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
            "ftol": tol,
            "gtol": 1e-12,
            "maxcor": memory,
        },
    )
    # status 2: no step decreases the objective any more, which at this precision is convergence
    converged = result.status in (0, 2)
    return Minimum(
        result.x.reshape(shape),
        float(result.fun),
        int(result.nit),
        converged,
        result.message,
    )
