"""Directions that matter: a map of the features, from the gradients of ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from kernelmetric.learners._feature_rounds import KERNELS, feature_rounds, square_root
from kernelmetric.selection._relevance import Sample
from kernelmetric.solvers import FARTHEST, RIDGES, Family, Grid, evenly, ridge_solution

_GAIN = 0.95  # a map must lower the error this far on points that it was not learned from
_GAIN_OF_NUMBERS = 0.9  # where there are no classes that would have to become better too
_LARGE_GAIN = 0.75  # after it classes need not become better, only no worse
_STANDARD_ERRORS = 1.5  # by so many more points must change to their right class than from it
_HOPELESS = 1.0, 0.97  # gains of the first round, and of all, after which no more is tried
_TO_WIN = 0.005  # where fewer of the points are wrong, no map is looked for
_ROUNDS = 2  # the most; a third one gains little for its time
_ROWS = 350  # to find out whether a map helps
_FEW_ROWS = 160  # to find out where to begin
_LEAST_ROWS = 100  # gradients of fewer say little
_ROWS_A_FEATURE = 3  # likewise
_MOST_FEATURES = 128  # d³ of more would take longer than all else


class Judged(NamedTuple):
    """A map, and what thirds of the points say of it that it was not learned from.

    ``gain`` is its squared error in units of that of the kernel to beat; ``won`` and ``lost`` count
    points that change to their right class and from it. L is None where it was given up early.
    """

    gain: float
    won: float
    lost: float
    L: np.ndarray | None

    @property
    def is_better(self) -> bool:
        """Whether it should be used."""
        if np.isnan(self.won):
            return self.gain < _GAIN_OF_NUMBERS
        more, error = self.won - self.lost, np.sqrt(self.won + self.lost)
        better = self.gain < _GAIN and more > _STANDARD_ERRORS * error
        return bool(better or (self.gain < _LARGE_GAIN and more >= -error))


def learned_map(
    sample: Sample, family: Family, place: tuple[int, int], scales: Sequence[np.ndarray | None]
) -> Judged | None:
    """A map under which ridge regression may predict others of the points better.

    Thirds of the points are predicted from the others, on mapped points and by the kernel to beat:
    of ``family`` at ``place`` on its grid, with ``scales`` for each third to look at.
    """
    n, d = sample.X.shape
    if n < max(_LEAST_ROWS, _ROWS_A_FEATURE * d) or d > _MOST_FEATURES:
        return None
    classes = bool(np.all(np.abs(sample.Y) == 1.0))
    after, before = np.zeros(_ROUNDS), 0.0
    won, lost = np.full((2, _ROUNDS), 0.0 if classes else np.nan)
    maps = np.zeros((_ROUNDS, d, d))
    start = None
    for k, s in enumerate(scales):
        s = np.ones(d) if s is None else s
        others = np.delete(np.arange(n), slice(k, None, 3))
        learn = sample.mapped(s).take(others[evenly(len(others), _ROWS)])
        judged = sample.mapped(s).take(slice(k, None, 3))
        w = np.ones(len(judged.Y)) if judged.roots is None else judged.roots**2
        plain = judged.Y - _predicted(learn, judged.X, family, place)
        before += np.sum(w @ plain**2)
        if k == 0 and classes and np.sum(w * ~_right(judged.Y, plain)) < _TO_WIN * n:
            return None  # there is nothing left to win
        if start is None:
            few = learn.take(evenly(len(learn.Y), _FEW_ROWS))
            start = few.grid(KERNELS["laplace"]).sweep().best
        rounds = feature_rounds(learn.X, learn.Y, "laplace", place=start, roots=learn.roots)
        t = -1
        for t, fit in enumerate(islice(rounds, 1, _ROUNDS + 1)):
            mapped = judged.Y - fit.predict(judged.X)
            after[t] += np.sum(w @ mapped**2)
            if k == t == 0 and not after[0] < _HOPELESS[0] * before:
                break
            right = [_right(judged.Y, residuals) for residuals in (mapped, plain)]
            won[t] += np.sum(w * (right[0] > right[1]))
            lost[t] += np.sum(w * (right[0] < right[1]))
            maps[t] += s[:, None] * (fit.L.T @ fit.L) * s
        after[t + 1 :] = np.inf  # rounds that were not reached
        best = int(np.argmin(after))
        if not np.isfinite(after[best]):
            return None
        if k == 0 and not after[best] < _HOPELESS[1] * before:
            gain = float(after[best] / before) if before > 0 else 1.0
            return Judged(gain, np.nan, np.nan, None)
    # The mean over two thirds of the points and other two thirds: every point has its say.
    L = square_root(maps[best])
    return Judged(float(after[best] / before), float(won[best]), float(lost[best]), L)


def _right(Y: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Which points are given their class."""
    return np.argmax(Y - residuals, axis=1) == np.argmax(Y, axis=1)


def _predicted(
    known: Sample, X_new: np.ndarray, family: Family, place: tuple[int, int]
) -> np.ndarray:
    """Targets of new points, with the width and ridge of a place."""
    gamma = float(Grid(known.X, known.Y, family).gammas[place[0]])

    def values(D: np.ndarray) -> np.ndarray:
        return np.exp(-np.minimum(gamma * D, FARTHEST))

    K = values(family.distances(known.X))
    alpha = ridge_solution(K, known.Y, float(RIDGES[place[1]]), known.roots)
    return (values(family.distances(X_new, known.X)) + 1.0) @ alpha
