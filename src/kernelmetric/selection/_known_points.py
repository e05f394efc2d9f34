"""Training points that are known again."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import to_numpy
from kernelmetric.kernels import Rescaled, rescaled

_SAME = 1e-3  # of the width of Delta: a point this near to a training point is that point
_AT_ONCE = 2**22  # numbers of candidates that are looked at together


class KnownPoints:
    """Different points, known again by where they lie; ``delta``, bound, tells them apart."""

    def __init__(self, points: Any, delta: Any):
        inside = isinstance(delta, Rescaled)
        self.scales = np.asarray(delta.scales if inside else np.ones(points.shape[1]))
        self.radius = _SAME * float((delta.kernel if inside else delta).width)
        places = self._rescaled(points)
        # No two points are nearer to each other than their places on a line.
        line = np.random.RandomState(0).standard_normal(places.shape[1])
        self.line = line / linalg.norm(line)
        along = places @ self.line
        self.order = np.argsort(along, kind="stable")
        self.points, self.along = places[self.order], along[self.order]

    def find(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Which of the points are known, and as which rows."""
        places = self._rescaled(points)
        along = places @ self.line
        first = np.searchsorted(self.along, along - self.radius, side="left")
        last = np.searchsorted(self.along, along + self.radius, side="right")
        row = np.full(len(places), -1)
        nearest = np.full(len(places), self.radius**2)
        for step in range(int((last - first).max(initial=0))):
            some = np.flatnonzero(first + step < last)
            for part in np.array_split(some, 1 + some.size * places.shape[1] // _AT_ONCE):
                candidate = first[part] + step
                squares = np.sum((places[part] - self.points[candidate]) ** 2, axis=1)
                better = squares <= nearest[part]
                nearest[part[better]] = squares[better]
                row[part[better]] = self.order[candidate[better]]
        found = np.flatnonzero(row >= 0)
        return found, row[found]

    def _rescaled(self, points: Any) -> np.ndarray:
        return rescaled(to_numpy(points).astype(np.float64), self.scales)
