"""How far should a metric from pairs go from its prior? Powers of it, judged on points left out.

Pairs that do not match are often the nearest wrong ones, and a metric that moves these away may
lose all others. So similar pairs of points left out are looked for among all points.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute import map_rows
from kernelmetric.compute.watch import time_left, until_limit
from kernelmetric.graphs import Pairs
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.learners._factors import factor
from kernelmetric.learners._idealized_choice import folds_of_points

POWER = Numbers(low=0, high=1, words=("auto",))
_POWERS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0)
_LEAST = 1e-3  # eigenvalues, as shares of the largest, before a power: it has full rank
_FIRST, _SELDOM = 10, 0.5  # where fewer are among the first ten, other points belong there too
_PRUDENCE = 0.5  # standard errors by which a mean gain is counted less
_LEAST_PAIRS = 10  # that can tell anything
_DRAWN = 5_000  # points among which a partner is looked for


def power_of(M: np.ndarray, power: float) -> np.ndarray:
    """The power of a matrix whose small eigenvalues are raised; M itself for 1."""
    if power == 1.0:
        return M
    values, V = linalg.eigh(M)
    return (V * np.maximum(values, _LEAST * values[-1]) ** power) @ V.T


def power_for(learner: Any, Z: np.ndarray, counts: Any, **anew: Any) -> float:
    """The power of a learner's metric on Z: as given, one for labels, or what points tell."""
    if not isinstance(learner.power, str):
        return float(learner.power)
    if counts.from_labels:
        return 1.0
    weights = None if counts.weights is None else counts.rows
    whole = clone(learner).set_params(power=1.0, warm_start=False, verbose=False, **anew)

    def learn(pairs: Pairs) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            L = whole.fit(Z, pairs=pairs, sample_weight=weights).components_
        return L.T @ L

    return choose_power(Z, learner.pairs_, learn, learner.random_state)


def choose_power(
    Z: np.ndarray, pairs: Pairs, learn: Callable[[Pairs], np.ndarray], random_state: Any
) -> float:
    """The power of ``learn(pairs)`` under which points left out are nearest to their partners."""
    count = len(pairs.similar)
    if count < _LEAST_PAIRS:
        return 1.0
    rng = check_random_state(random_state)
    drawn = np.sort(rng.permutation(len(Z))[:_DRAWN])
    folds = []
    for teach, judge in until_limit(folds_of_points(Z, pairs, len(pairs), rng), "the power"):
        M = learn(teach)
        maps = [factor(power_of(M, power)) for power in _POWERS]
        folds.append([_ranks(Z @ L.T, judge.similar, drawn) for L in maps])
    if not folds:
        return 1.0
    ranks = np.concatenate(folds, axis=1)
    scores = -ranks if np.mean(ranks[0] <= _FIRST) < _SELDOM else ranks**-0.5
    gains = scores - scores[0]
    errors = gains.std(axis=1) / np.sqrt(count)  # a pair is asked for by both, in two folds
    best = _POWERS[np.argmax(gains.mean(axis=1) - _PRUDENCE * errors)]
    if best == 0.0 and time_left() > 0:
        warn(
            "The prior metric stays: no power of the learned one brings points that were left out "
            "nearer to those they belong with. power=1 takes it nevertheless."
        )
    return best


def _ranks(Y: np.ndarray, pairs: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """At which place either point of each pair finds the other, among drawn points."""
    asked, wanted = np.concatenate([pairs, pairs[:, ::-1]]).T
    D, half = Y[drawn], 0.5 * np.sum(Y * Y, axis=1)

    def places(block: slice) -> np.ndarray:
        q, p = asked[block], wanted[block]
        right = half[p] - np.sum(Y[q] * Y[p], axis=1)
        nearer = half[drawn] - Y[q] @ D.T < right[:, None]
        return 1.0 + np.sum(nearer & (drawn != q[:, None]) & (drawn != p[:, None]), axis=1)

    return map_rows(places, len(asked), 20.0 * len(drawn))
