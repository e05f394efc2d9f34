"""L-BFGS on a matrix of parameters: SciPy's, with a record of what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.optimize import minimize

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

_FAR = 1e300


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
    objective: Objective,
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
    flat = _Flat(objective, shape)

    def callback(intermediate_result: Any) -> None:
        flat.accept(intermediate_result.x)
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
    # status 2: no step decreases the objective any more, which at this precision is convergence
    converged = result.status in (0, 2) and not flat.walled
    x, value = result.x.reshape(shape), float(result.fun)
    if not np.all(np.isfinite(x)) or np.array_equal(result.x, flat.beyond):  # it got lost
        x, value, converged = flat.best.reshape(shape), flat.least, False
    return Minimum(x, value, int(result.nit), converged, result.message)


class _Flat:
    """The objective as a function of a vector, with a wall where it has no finite value.

    A line search that meets the wall sees a value above that at its beginning, by as much as it
    hoped to gain: so it comes back by a part of the way. Where the last step was cut short by the
    wall, ``walled`` says so: that little is gained there is no sign of a minimum.
    """

    def __init__(self, objective: Objective, shape: tuple[int, ...]):
        self.objective, self.shape = objective, shape
        self.walled = self._met = False
        self.least = np.inf
        self.best = self.beyond = self._from = self._slope = np.empty(0)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = finite_or_none(self.objective, x.reshape(self.shape))
        if gradient is not None:
            if self.least == np.inf:
                self._from, self._slope = x.copy(), gradient.ravel()
            if value < self.least:
                self.best, self.least = x.copy(), value
            self._last = gradient.ravel()
            return value, self._last
        if self.least == np.inf:
            refuse_start(value)
        self.walled = self._met = True
        self.beyond = x.copy()
        hoped = float(np.abs(self._slope @ (x - self._from)))
        return self.least + (hoped if np.isfinite(hoped) else _FAR), np.zeros(x.size)

    def accept(self, x: np.ndarray) -> None:
        """Take note of the end of a line search: the next one begins here."""
        self._from, self._slope = x.copy(), self._last
        self.walled, self._met = self._met, False


def finite_or_none(objective: Objective, x: np.ndarray) -> tuple[float, np.ndarray | None]:
    """Value and gradient in float64; None for a gradient where one of them is not finite."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # told by the result
        value, gradient = objective(x)
    gradient = np.asarray(gradient, dtype=np.float64)
    usable = np.isfinite(value) and bool(np.all(np.isfinite(gradient)))
    return float(value), gradient if usable else None


def refuse_start(value: float) -> NoReturn:
    """Refuse to begin where there is nothing to descend from."""
    raise ValueError(
        f"Got a start at which the objective, now {value:g}, or its gradient is not finite, but "
        "expected finite numbers: try a start (init) with smaller entries, or rescale the features."
    )
