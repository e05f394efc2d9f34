"""Which map, if any: judged on queries left out, and kept only where it is better with confidence.

What a map gives a query is ``1 / √rank`` of its first match, less that of the vectors as they are.
Ranks at the top count most. The map with the best mean, less half a standard error, is chosen. Its
own mean flatters it, so the choice is made again without each tenth of the queries, and judged on
that tenth. What these tenths say together decides. Where a match is seldom among the first ten,
many others may match too that no pair names, and ranks far down decide, which say little of the
top: four standard errors are asked for there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

_PARTS = 10
_PRUDENCE = 0.5  # standard errors by which a mean is counted less
_SELDOM, _ERRORS = 0.5, 4.0  # recall at ten that is little, and standard errors asked for then
LEAST = 10  # queries that can tell anything


class Choice(NamedTuple):
    """The form chosen, 0 for none; what the part without each query chose; why."""

    best: int
    honest: np.ndarray
    why: str


def choose(ranks: np.ndarray, weights: np.ndarray, confidence: float, seed: int) -> Choice:
    """The choice among columns of ranks, the first of which is of the vectors as they are."""
    n = len(ranks)
    if n < LEAST:
        why = f"{n} queries with a match are too few to tell: {LEAST} or more are needed"
        return Choice(0, np.zeros(n, np.intp), why)
    gains = ranks**-0.5 - ranks[:, :1] ** -0.5
    part = np.random.RandomState(seed).permutation(n) % _PARTS
    honest = np.empty(n, np.intp)
    for k in range(_PARTS):
        honest[part == k] = _best(gains[part != k], weights[part != k])
    mean, error = (float(a[0]) for a in _moments(gains[np.arange(n), honest][:, None], weights))
    errors = float(student.ppf(confidence, n - 1))
    if weights @ (ranks[:, 0] <= 10) < _SELDOM * np.sum(weights):
        errors = max(errors, _ERRORS)
    bound, best = mean - errors * error, _best(gains, weights)
    said = f"mean gain in 1/√rank {mean:+.4f}, less {errors:.2g} standard errors {bound:+.4f}"
    if bound > 0 and best:
        return Choice(
            best, honest, f"best of {gains.shape[1] - 1} maps on {n} queries left out: {said}"
        )
    why = f"of {gains.shape[1] - 1} maps none is surely better on {n} queries left out: {said}"
    return Choice(0, np.zeros(n, np.intp), why)


def _best(gains: np.ndarray, weights: np.ndarray) -> int:
    mean, error = _moments(gains, weights)
    return int(np.argmax(mean - _PRUDENCE * error))


def _moments(gains: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of columns, and their standard errors."""
    w = weights / np.sum(weights)
    mean = w @ gains
    error = np.sqrt(w**2 @ (gains - mean) ** 2)
    return mean, error * np.sqrt(len(w) / max(len(w) - 1, 1))
