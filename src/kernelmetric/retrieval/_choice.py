"""Which map, if any: judged on queries left out, and kept only where it is better with confidence.

What a map gives a query is ``1 / √rank`` of its first match, less that of the vectors as they are.
Ranks at the top count most. The map with the best mean, less half a standard error, is chosen. Its
own mean flatters it, so halves of the queries choose for each other, twenty times over: what these
choices gain must be above zero. Where a match is seldom among the first ten, many others may match
too that no pair names, and most ranks say little of the top. So there ``1 / rank`` counts, and
three standard errors are asked for.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

_HALVINGS, _PARTS = 20, 10  # that decide; and that choose for the report
_PRUDENCE = 0.5  # standard errors by which a mean is counted less
_SELDOM, _ERRORS = 0.5, 3.0  # recall at ten that is little, and standard errors asked for then
LEAST = 10  # queries that can tell anything


class Choice(NamedTuple):
    """The form chosen, 0 for none; what the part without each query chose; why."""

    best: int
    honest: np.ndarray
    why: str


def choose(ranks: np.ndarray, weights: np.ndarray, confidence: float, seed: int) -> Choice:
    """The choice among columns of ranks, the first of which is of the vectors as they are."""
    n, n_maps = len(ranks), ranks.shape[1] - 1
    if n < LEAST:
        why = f"{n} queries with a match are too few to tell: {LEAST} or more are needed"
        return Choice(0, np.zeros(n, np.intp), why)
    seldom = weights @ (ranks[:, 0] <= 10) < _SELDOM * np.sum(weights)
    power, of = (-1.0, "1/rank") if seldom else (-0.5, "1/√rank")
    gains = ranks**power - ranks[:, :1] ** power
    rng, each = np.random.RandomState(seed), np.zeros(n)
    for _ in range(_HALVINGS):
        each += gains[np.arange(n), _chosen_by_others(gains, weights, rng.permutation(n) % 2)]
    mean, error = (float(a[0]) for a in _moments(each[:, None] / _HALVINGS, weights))
    errors = max(float(student.ppf(confidence, n - 1)), _ERRORS if seldom else 0.0)
    bound, best = mean - errors * error, _best(gains, weights)
    said = f"mean gain in {of} {mean:+.4f}, less {errors:.2g} standard errors {bound:+.4f}"
    if bound > 0 and best:
        honest = _chosen_by_others(gains, weights, rng.permutation(n) % _PARTS)
        return Choice(best, honest, f"best of {n_maps} maps on {n} queries left out: {said}")
    why = f"of {n_maps} maps none is surely better on {n} queries left out: {said}"
    return Choice(0, np.zeros(n, np.intp), why)


def _chosen_by_others(gains: np.ndarray, weights: np.ndarray, part: np.ndarray) -> np.ndarray:
    """For each query the map that those of other parts choose."""
    chosen = np.empty(len(gains), np.intp)
    for k in range(part.max() + 1):
        chosen[part == k] = _best(gains[part != k], weights[part != k])
    return chosen


def _best(gains: np.ndarray, weights: np.ndarray) -> int:
    mean, error = _moments(gains, weights)
    return int(np.argmax(mean - _PRUDENCE * error))


def _moments(gains: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of columns, and their standard errors."""
    w = weights / np.sum(weights)
    mean = w @ gains
    error = np.sqrt(w**2 @ (gains - mean) ** 2)
    return mean, error * np.sqrt(len(w) / max(len(w) - 1, 1))
