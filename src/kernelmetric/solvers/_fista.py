"""Accelerated projected gradient for convex problems over a cone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelmetric.solvers._lbfgs import Minimum, finite_or_none, refuse_start

_LEAST_STEP = 1e-300


def minimize_projected(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    project: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    max_iter: int,
    converged: Callable[[np.ndarray, float, np.ndarray], bool],
    step: float = 1.0,
    report: Callable[[np.ndarray, float], bool] | None = None,
) -> tuple[Minimum, float]:
    """Minimise a smooth convex function over a convex set: FISTA that restarts itself.

    The step is found by backtracking and may grow again; the momentum restarts where it points
    uphill. ``converged(point, value, gradient)`` stops it, and so does a true answer of
    ``report(point, value)``. Also returns the last step, for a warm start.
    """
    x, y, momentum = start, start, 1.0
    value_y, gradient_y = finite_or_none(objective, y)
    if gradient_y is None:
        refuse_start(value_y)
    value_x, gradient_x = value_y, gradient_y
    for iteration in range(1, max_iter + 1):
        while True:
            candidate = project(y - step * gradient_y)
            move = candidate - y
            value, gradient = finite_or_none(objective, candidate)
            with np.errstate(over="ignore"):  # an infinite bound allows any step
                bound = value_y + np.sum(gradient_y * move) + np.sum(move * move) / (2 * step)
            fine = gradient is not None and value <= bound + 1e-12 * abs(bound)
            if fine or step < _LEAST_STEP:
                break
            step *= 0.5
        if gradient is None:
            return Minimum(x, value_x, iteration - 1, False, "no finite value near"), step
        if np.sum((y - candidate) * (candidate - x)) > 0:
            momentum = 1.0  # the momentum points uphill: forget it
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        y = candidate + (momentum - 1.0) / following * (candidate - x)
        ahead = momentum > 1.0
        x, value_x, gradient_x, momentum = candidate, value, gradient, following
        if report is not None and report(x, value_x):
            return Minimum(x, value_x, iteration, False, "stopped by a callback"), step
        if converged(x, value_x, gradient_x):
            return Minimum(x, value_x, iteration, True, "tolerance reached"), step
        value_y, gradient_y = finite_or_none(objective, y) if ahead else (value_x, gradient_x)
        if not ahead or gradient_y is None:  # on from where it is
            y, value_y, gradient_y = x, value_x, gradient_x
        step *= 1.1
    return Minimum(x, value_x, max_iter, False, "iteration limit reached"), step
