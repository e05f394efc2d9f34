"""Directions that matter: a map of the features, from the gradients of ridge regression.

A scale for each feature cannot turn up a direction that is no feature. The average gradient outer
product can, where there are points enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from kernelmetric.learners._feature_rounds import feature_rounds, square_root
from kernelmetric.solvers import FARTHEST, RIDGES, Family, Grid, evenly, ridge_solution

GAIN = 0.9  # a map must lower the error this far on points that it was not learned from
_WON = 0.01  # and so many of the points, at least, must change to their right class
_HOPELESS = 0.93  # gain of the first round on the first third: after it no other is tried
_ROUNDS = 2  # the most; a third one gains little for its time
_ROWS = 350  # to find out whether a map helps
_LEAST_ROWS = 100  # gradients of fewer say little
_MOST_FEATURES = 128  # d³ of more would take longer than all else


def learned_map(
    X: np.ndarray,
    Y: np.ndarray,
    family: Family,
    place: tuple[int, int],
    start: tuple[int, int],
    scales: Sequence[np.ndarray | None],
    roots: np.ndarray | None = None,
) -> tuple[float | None, np.ndarray | None]:
    """A map under which ridge regression predicts others of the points better, if there is one.

    Thirds of the points are predicted from the others: by regressions on mapped points, whose map
    was learned from these others, and by the kernel to beat.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points, in an order in which evenly spaced ones resemble all.
    Y : ndarray of shape (n, p)
        Targets.
    family : Family
        Of the kernel to beat.
    place : tuple of int
        Its width and ridge on the grid.
    start : tuple of int
        Width and ridge of the first RBF kernel, likewise.
    scales : sequence of ndarray of shape (d,) or None
        Its scales, for each third: learned from the others; None: as the features are. So many
        thirds are looked at.
    roots : ndarray of shape (n,), default=None
        Square roots of what the points count, their mean square one.

    Returns
    -------
    gain : float or None
        Its squared error in units of that of the kernel to beat; None: not looked at, as there are
        fewer than 100 points or more than 128 features, or no more points to win.
    map : ndarray of shape (d, d), or None
        The mean of those that were judged, where the gain is better than ``GAIN`` and the classes
        of more points are right, by one in a hundred.
    """
    if len(Y) < _LEAST_ROWS or X.shape[1] > _MOST_FEATURES:
        return None, None
    after, before = np.zeros(_ROUNDS), 0.0
    won, lost = np.zeros((2, _ROUNDS))
    maps = np.zeros((_ROUNDS, X.shape[1], X.shape[1]))
    counts = np.ones(len(Y)) if roots is None else roots**2
    for k, s in enumerate(scales):
        judged = np.arange(k, len(Y), 3)
        others = np.delete(np.arange(len(Y)), judged)
        learn = others[evenly(len(others), _ROWS)]
        Z = X if s is None else X * s
        some, w = None if roots is None else roots[learn], counts[judged]
        plain = Y[judged] - _predicted(Z[learn], Y[learn], Z[judged], family, place, some)
        before += np.sum(w @ plain**2)
        classes = bool(np.all(np.abs(Y) == 1.0))
        wrong = np.sum(w * ~_right(Y[judged], plain))
        if k == 0 and classes and wrong < 0.5 * _WON * len(Y):
            return None, None  # there is nothing left to win
        rounds = feature_rounds(X[learn], Y[learn], "rbf", place=start, roots=some)
        for t, fit in enumerate(islice(rounds, 1, _ROUNDS + 1)):
            mapped = Y[judged] - fit.predict(X[judged])
            after[t] += np.sum(w @ mapped**2)
            if k == t == 0 and not after[0] < _HOPELESS * before:
                return float(after[0] / before) if before > 0 else 1.0, None
            right = [_right(Y[judged], residuals) for residuals in (mapped, plain)]
            won[t] += np.sum(w * (right[0] > right[1]))
            lost[t] += np.sum(w * (right[0] < right[1]))
            maps[t] += fit.L.T @ fit.L
    after[after == 0] = np.inf  # a round that was not reached
    gains = after / before
    best = int(np.argmin(gains))
    gain = float(gains[best])
    # A squared error may fall because classes become surer, and no better.
    surer = classes and won[best] - lost[best] < _WON * len(Y)
    if surer or not gain < GAIN:
        return gain, None
    # The mean over two thirds of the points and other two thirds: every point has its say.
    return gain, square_root(maps[best])


def _right(Y: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Which points are given their class."""
    return np.argmax(Y - residuals, axis=1) == np.argmax(Y, axis=1)


def _predicted(
    X: np.ndarray,
    Y: np.ndarray,
    X_new: np.ndarray,
    family: Family,
    place: tuple[int, int],
    roots: np.ndarray | None,
) -> np.ndarray:
    """Targets of new points, with the width and ridge of a place."""
    gamma = float(Grid(X, Y, family).gammas[place[0]])

    def values(D: np.ndarray) -> np.ndarray:
        return np.exp(-np.minimum(gamma * D, FARTHEST))

    alpha = ridge_solution(values(family.distances(X)), Y, float(RIDGES[place[1]]), roots)
    return (values(family.distances(X_new, X)) + 1.0) @ alpha
