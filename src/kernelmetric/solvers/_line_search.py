"""The line search of Moré and Thuente: a step of enough decrease and little slope."""

from __future__ import annotations

import math
from typing import NamedTuple

_DECREASE = 1e-3  # share of what the first slope promises that a step has to give
_SLOPE = 0.9  # share of the first slope that a step may leave
_WIDTH = 0.1  # of the interval around the step, relative to its end, at which the search ends
_LONGEST = 1e10


class At(NamedTuple):
    """A step, the objective there, and its slope along the line."""

    step: float
    value: float
    slope: float

    def tilted(self, slope: float) -> At:
        """The same for the objective less a linear function."""
        return At(self.step, self.value - self.step * slope, self.slope - slope)


class LineSearch:
    """Steps to try along a line that leads down, by the algorithm of [1]_: ``step`` is the next.

    .. [1] Moré & Thuente, "Line search algorithms with guaranteed sufficient decrease", ACM Trans.
       Math. Software 20 (1994).
    """

    def __init__(self, value: float, slope: float, step: float):
        self.step = min(step, _LONGEST)
        self._start = self._best = self._other = At(0.0, value, slope)
        self._bracketed = self._decreased = False
        self._widths = 2.0 * _LONGEST, _LONGEST  # of the interval, before the last step and now
        self._low, self._high = 0.0, 5.0 * step

    def take(self, value: float, slope: float) -> bool:
        """Learn what is at ``step``: True where the search ends, else there is another step."""
        at = At(self.step, value, slope)
        wanted = _DECREASE * self._start.slope
        enough = value <= self._start.value + at.step * wanted
        self._decreased = self._decreased or (enough and slope >= 0.0)
        if (
            (enough and abs(slope) <= -_SLOPE * self._start.slope)
            or self._ends(at.step)
            or (at.step == _LONGEST and enough and slope <= wanted)
        ):
            return True
        # Lower, and not by enough: first a step has to get below the line of the wanted decrease.
        tilt = wanted if not (self._decreased or enough) and value <= self._best.value else 0.0
        ends = self._best.tilted(tilt), self._other.tilted(tilt), at.tilted(tilt)
        try:
            step = self._next(*ends)
        except (ValueError, ZeroDivisionError):  # of numbers out of all range
            step = math.nan
        self._best, self._other = (end.tilted(-tilt) for end in self._interval(*ends))
        self._set_limits(step)
        return False

    def _ends(self, step: float) -> bool:
        """Whether rounding, or the width of the interval, leaves no better step to look for."""
        return self._bracketed and (
            not self._low < step < self._high or self._high - self._low <= _WIDTH * self._high
        )

    def _next(self, best: At, other: At, at: At) -> float:
        """Where to look next: the four cases of section 4 of [1]."""
        if at.value > best.value:
            cubic = _cubic(best, at)
            decrease = (best.value - at.value) / (at.step - best.step)
            quadratic = best.step + best.slope / (decrease + best.slope) / 2.0 * (
                at.step - best.step
            )
            if abs(cubic - best.step) <= abs(quadratic - best.step):
                return cubic
            return cubic + (quadratic - cubic) / 2.0
        forward = at.step > best.step
        if _opposite(best, at):
            cubic, secant = _cubic(at, best), _secant(at, best)
            return cubic if abs(cubic - at.step) > abs(secant - at.step) else secant
        if abs(at.slope) < abs(best.slope):
            secant = _secant(at, best)
            cubic = _cubic(at, best, beyond=self._high if forward else self._low)
            cubic_is_nearer = abs(cubic - at.step) < abs(secant - at.step)
            if not self._bracketed:
                farther = cubic if abs(cubic - at.step) > abs(secant - at.step) else secant
                return min(max(farther, self._low), self._high)
            nearer = cubic if cubic_is_nearer else secant
            most = at.step + 0.66 * (other.step - at.step)
            return min(most, nearer) if forward else max(most, nearer)
        if self._bracketed:
            return _cubic(at, other)
        return self._high if forward else self._low

    def _interval(self, best: At, other: At, at: At) -> tuple[At, At]:
        """The ends of the interval that holds a minimum: the lower one first."""
        if at.value > best.value:
            self._bracketed = True
            return best, at
        if _opposite(best, at):
            self._bracketed = True
            return at, best
        return at, other

    def _set_limits(self, step: float) -> None:
        """The next step, and the interval that the one after it must be in."""
        best, other = self._best.step, self._other.step
        if self._bracketed:
            if abs(other - best) >= 0.66 * self._widths[0]:
                step = best + 0.5 * (other - best)
            self._widths = self._widths[1], abs(other - best)
            self._low, self._high = min(best, other), max(best, other)
        else:
            self._low, self._high = step + 1.1 * (step - best), step + 4.0 * (step - best)
        step = min(max(step, 0.0), _LONGEST)
        self.step = best if self._ends(step) else step


def _opposite(a: At, b: At) -> bool:
    return a.slope < 0.0 < b.slope or b.slope < 0.0 < a.slope


def _cubic(a: At, b: At, beyond: float | None = None) -> float:
    """The minimum of the cubic through two points with their slopes; ``beyond`` if it has none."""
    theta = 3.0 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope
    scale = max(abs(theta), abs(a.slope), abs(b.slope))
    under = (theta / scale) * (theta / scale) - (a.slope / scale) * (b.slope / scale)
    gamma = scale * math.sqrt(under if beyond is None else max(0.0, under))
    if b.step < a.step:
        gamma = -gamma
    share = ((gamma - a.slope) + theta) / (((gamma - a.slope) + gamma) + b.slope)
    if beyond is not None and not (share < 0.0 and gamma != 0.0):
        return beyond
    return a.step + share * (b.step - a.step)


def _secant(a: At, b: At) -> float:
    """Where the slope would be zero if it were linear between two points."""
    return a.step + a.slope / (a.slope - b.slope) * (b.step - a.step)
