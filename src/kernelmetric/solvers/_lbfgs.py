"""L-BFGS on a matrix of parameters, its arithmetic shared among threads.

The steps are those of SciPy's L-BFGS-B without bounds, which makes some eighty passes over the
entries on one core: more than many an objective costs. Here a step takes two passes over the
corrections [1]_.

.. [1] Byrd, Nocedal & Schnabel, "Representations of quasi-Newton matrices and their use in limited
   memory methods", Mathematical Programming 63 (1994), eq. (3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy import linalg
from scipy.optimize._linesearch import scalar_search_wolfe1  # which scikit-learn relies on too

from kernelmetric.compute.reductions import sum_entries

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

_FAR = 1e300
_REACHED, _NO_STEP = "tolerance reached", "no step decreases the objective"
_DECREASE = 1e-3  # share of what the first slope promises that a step has to give
_SLOPE = 0.9  # share of the first slope that a step may leave
_WIDTH = 0.1  # of the interval around a step, relative to its end, at which a search ends
_LONGEST = 1e10
_FLAT = 1e-12  # the largest entry of a gradient that is as good as zero, where x is of size one
_FIRST = 1e-3, 1.0  # shares of the length of x, between which the first step is one long
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class Minimum:
    """Where an optimiser stopped, why, and what it learned of the curvature (``corrections``)."""

    x: np.ndarray
    value: float
    n_iter: int
    converged: bool
    message: str
    corrections: Any = None


def minimize_lbfgs(
    objective: Objective,
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    report: Callable[[np.ndarray, float], bool] | None = None,
    memory: int = 10,
    corrections: Any = None,
) -> Minimum:
    """Minimise a smooth function of a matrix, to a relative decrease of ``tol`` an iteration.

    ``objective`` gives the value and the gradient, a new array every time. A true answer of
    ``report(x, value)`` stops. ``corrections`` of an earlier descent are taken over and written
    into. It has not converged where the objective has no finite value beyond.
    """
    x = np.array(start, dtype=np.float64, order="C")
    value, gradient = finite_or_none(objective, x)
    if gradient is None:
        refuse_start(value)
    known = corrections or _Corrections(memory, x.size)
    descent = _Descent(objective, x, value, gradient.ravel(), known)
    message = descent.run(max_iter, tol, report)
    # No step decreases the objective any more: at this precision that is convergence too.
    converged = message in (_REACHED, _NO_STEP) and not descent.walled
    x = descent.x.reshape(x.shape)
    return Minimum(x, descent.value, descent.n_iter, converged, message, known)


class _FlatError(Exception):
    """A value stayed as it was, to the bit, all the way down: rounding hides shorter steps too."""


class _Descent:
    """Where the descent is; ``walled``: its last line search met values that are not finite."""

    def __init__(
        self,
        objective: Objective,
        x: np.ndarray,
        value: float,
        gradient: np.ndarray,
        corrections: _Corrections,
    ):
        self.objective, self.shape = objective, x.shape
        self.x, self.value, self.gradient = x.ravel(), value, gradient
        self.n_iter, self.walled = 0, False
        self._least = value
        self._size = float(linalg.norm(self.x)) or 1.0
        self._trial, self._direction = np.empty(x.size), np.empty(x.size)
        self._corrections = corrections
        corrections.face(gradient)

    def run(
        self, max_iter: int, tol: float, report: Callable[[np.ndarray, float], bool] | None
    ) -> str:
        """Iterate until something ends it; what that was."""
        while np.abs(self.gradient).max(initial=0.0) * max(1.0, self._size) > _FLAT:
            before = self.value
            step = self._step()
            if step is None:
                if not self._corrections.count:
                    return _NO_STEP
                self._corrections.forget()
                continue
            self.n_iter += 1
            self._corrections.learn(self._direction, self.gradient, *step)
            if report is not None and report(self.x.reshape(self.shape), self.value):
                return "stopped by a callback"
            if self.n_iter >= max_iter:
                return "iteration limit reached"
            scale = max(abs(before), abs(self.value), 1.0)
            if before - self.value <= min(tol, 2.0) * scale:
                return _REACHED
        return _REACHED

    def _step(self) -> tuple[np.ndarray, float, float, float] | None:
        """Go to the end of a line search; the old gradient, the step, and slopes at both ends."""
        old = self.gradient
        slope = self._corrections.direct(old, self._direction)
        if not slope < 0.0:
            return None
        if not (self.n_iter or self._corrections.count):
            # The norm is SciPy's, whose squares do not overflow.
            length = max(float(linalg.norm(old.astype(np.float64, copy=False))), 1.0 / _FAR)
            length /= float(np.clip(1.0, *(self._size * np.array(_FIRST))))
            self._direction /= length
            slope /= length
        self.walled = False
        tried: tuple[float, float, np.ndarray | None, float] = 0.0, np.inf, None, 0.0

        def value_at(step: float) -> float:
            nonlocal tried
            self._move(step)
            tried = step, *self._evaluate()
            if tried[1] == self.value and tried[3] < 0.0:
                raise _FlatError
            if tried[2] is not None:
                return np.float64(tried[1])
            # A value above all seen, by as much as was hoped for, brings it back.
            self.walled = True
            hoped = -step * slope
            return np.float64(self._least + (hoped if np.isfinite(hoped) else _FAR))

        known = self.value, None, slope
        limits = _DECREASE, _SLOPE, _LONGEST, 0.0, _WIDTH
        # NumPy's floats divide by zero without an error.
        with np.errstate(all="ignore"), suppress(_FlatError):
            scalar_search_wolfe1(value_at, lambda _: np.float64(tried[3]), *known, *limits)
        # A search that rounding ends has gone back to its best step.
        step, value, gradient, slope_there = tried
        if gradient is None or not value <= self.value:
            return None
        self._trial, self.x = self.x, self._trial
        self.value, self.gradient = value, gradient
        return old, step, slope, slope_there

    def _evaluate(self) -> tuple[float, np.ndarray | None, float]:
        """Value, gradient and slope at the trial; no gradient where one is not finite."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # told by the result
            value, gradient = self.objective(self._trial.reshape(self.shape))
            gradient, d = np.asarray(gradient).ravel(), self._direction
            (slope,) = sum_entries(lambda some: (float(d[some] @ gradient[some]),), d.size, 2.0)
        if not (np.isfinite(value) and np.isfinite(slope)):
            return float(value), None, 0.0
        self._least = min(self._least, float(value))
        return float(value), gradient, slope

    def _move(self, step: float) -> None:
        """Put the trial so far along the direction."""
        x, trial, d = self.x, self._trial, self._direction

        def move(some: slice) -> tuple[()]:
            np.multiply(d[some], step, out=trial[some])
            trial[some] += x[some]
            return ()

        with np.errstate(over="ignore", invalid="ignore"):
            sum_entries(move, d.size, 3.0)


class _Corrections:
    """The last steps s and changes of the gradient y: rows s, y, s, y, ... of one matrix.

    Beside them are kept, from the oldest to the newest, the inverse of the upper triangle of their
    products ``SYᵀ``, its diagonal, the products ``YYᵀ``, and those of both with the gradient.
    """

    def __init__(self, memory: int, size: int):
        self.rows = np.empty((2 * memory, size))
        self.inverse, self.yy = np.zeros((2, memory, memory))
        self.curvatures = np.zeros(memory)
        self.forget()

    def forget(self) -> None:
        """Begin again, with the gradient alone."""
        self.count, self.newest, self.scale = 0, -1, 1.0
        self.order = np.zeros(0, dtype=np.intp)

    def direct(self, g: np.ndarray, d: np.ndarray) -> float:
        """Let d become the direction where the gradient is g; the slope along it."""
        rows, scale = self.rows[: 2 * self.count], self.scale
        weights = self._weights()

        def direct(some: slice) -> tuple[float]:
            np.multiply(g[some], -scale, out=d[some], dtype=np.float64)
            if len(rows):
                d[some] += weights @ rows[:, some]
            return (float(d[some] @ g[some]),)

        with np.errstate(over="ignore", invalid="ignore"):
            return sum_entries(direct, d.size, 4.0 * self.count + 8.0)[0]

    def face(self, gradient: np.ndarray) -> None:
        """Take note of a gradient somewhere else, as that of another objective."""
        rows = self.rows[: 2 * self.count]

        def products(some: slice) -> tuple[Any, ...]:
            return (rows[:, some] @ gradient[some].astype(np.float64, copy=False),)

        if self.count:
            (with_g,) = sum_entries(products, gradient.size, 4.0 * self.count)
            self.s_gradient, self.y_gradient = with_g.reshape(-1, 2)[self.order].T

    def learn(
        self, d: np.ndarray, new: np.ndarray, old: np.ndarray, step: float, *slopes: float
    ) -> None:
        """Take note of a step along d, and of the gradients at both of its ends."""
        curvature = step * (slopes[1] - slopes[0])
        keep = curvature > -_EPS * step * slopes[0]
        if keep:
            self._make_room()
        k, rows = 2 * self.newest, self.rows[: 2 * self.count]

        def products(some: slice) -> tuple[Any, ...]:
            here, g = rows[:, some], new[some].astype(np.float64, copy=False)
            if keep:
                np.multiply(d[some], step, out=here[k])
                np.subtract(g, old[some], out=here[k + 1])
            return here @ here[k + 1] if keep else 0.0, here @ g

        # What overflows gives no direction later, and all corrections are forgotten.
        with np.errstate(all="ignore"):
            with_y, with_g = sum_entries(products, d.size, 8.0 * self.count + 8.0)
            self.s_gradient, self.y_gradient = with_g.reshape(-1, 2)[self.order].T
            if keep:
                self._take(curvature, *with_y.reshape(-1, 2)[self.order].T)

    def _take(self, curvature: float, s: np.ndarray, y: np.ndarray) -> None:
        """Keep the products of the newest change of the gradient with all steps and changes."""
        n, last = self.count, self.count - 1
        self.yy[:n, last] = self.yy[last, :n] = y
        self.curvatures[last] = curvature
        self.inverse[last, last] = 1.0 / curvature
        self.inverse[:last, last] = self.inverse[:last, :last] @ s[:last] / -curvature
        self.scale = curvature / self.yy[last, last]

    def _make_room(self) -> None:
        """Room for another correction: the oldest one goes where there are as many as may be."""
        memory = len(self.curvatures)
        self.newest = (self.newest + 1) % memory
        if self.count == memory:
            for kept in (self.inverse, self.yy):
                kept[:-1, :-1] = kept[1:, 1:]
            self.inverse[-1] = 0.0
            self.curvatures[:-1] = self.curvatures[1:]
        self.count = min(self.count + 1, memory)
        self.order = np.arange(self.newest + 1 - self.count, self.newest + 1) % self.count

    def _weights(self) -> np.ndarray:
        """What the rows are multiplied with in a direction: eq. (3.1) of [1] times a gradient."""
        n = self.count
        weights = np.empty((n, 2))
        if n:
            inverse = self.inverse[:n, :n]
            u = inverse @ self.s_gradient
            v = self.curvatures[:n] * u + self.scale * (self.yy[:n, :n] @ u - self.y_gradient)
            weights[self.order, 0] = -(v @ inverse)
            weights[self.order, 1] = self.scale * u
        return weights.ravel()


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
