"""How long a whole fit takes: counts of its work, times rates that a short run measures."""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable
from contextvars import Context
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute.watch import time_left, warn_of_limit
from kernelmetric.graphs import coded_targets
from kernelmetric.kernelized._memory import coordinates_rank, fit_bytes
from kernelmetric.kernelized._parts import check_parts
from kernelmetric.kernelized._recipe import check_recipe, choose
from kernelmetric.kernelized._supervision import Supervision
from kernelmetric.kernels import RBF, Laplacian
from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA
from kernelmetric.selection._many_rows import LANDMARKS, MANY_ROWS
from kernelmetric.selection._ridge_kpca import ALL_ROWS, DOUBLE_ROWS, ENOUGH_ROWS
from kernelmetric.selection._ridge_solution import LEAST_OF_CLASS
from kernelmetric.spaces._base import check_whole

_LEAST_ROWS = 250  # that a time limit leaves to a space
_RUNS = 3  # of each piece of work; the fastest counts, as others may use the machine too
_SIZE = 640  # rows of the product that is measured
_BLOCK = 250, 1_000  # rows and anchors of the kernel values that are measured
_FEATURES = 8, 128  # of these
_CHOSEN_ROWS = 60  # of the choice of a kernel that is measured
_JUDGES = 2_000  # rows that choose how many neighbours vote
_PASSES = {"MLKR": 50.0, "MCML": 200.0}  # over all pairs of rows, until a learner has converged
_GRADIENT_PASSES, _PAIR_PASSES, _SPECTRAL_PASSES = 8.0, 80.0, 1.0  # of other learners
_ROWS_OF_PAIRS = 2_000  # pairs from labels of more rows are not more


class Rates(NamedTuple):
    """Seconds of a unit of each kind of work, on this machine with its threads as they are."""

    product: float  # a multiplication and addition within a large product, in float64
    value: float  # a kernel value, but for
    feature: float  # each feature of it
    choice: float  # a row in the choice of a kernel: many small steps on one thread

    def block(self, n_values: float, n_features: int) -> float:
        """Seconds of kernel values."""
        return n_values * (self.value + n_features * self.feature)


@cache
def rates() -> Rates:
    """What a short run on this machine says, once a process."""
    return Context().run(_measured)  # a time limit would end it


def _measured() -> Rates:
    """How long products, kernel values and choices take."""
    rng = np.random.RandomState(0)
    A = rng.standard_normal((_SIZE, _SIZE))
    product = _fastest(lambda: A @ A) / _SIZE**3
    few, many = (_kernel_value(rng, d) for d in _FEATURES)
    feature = max(many - few, 0.0) / (_FEATURES[1] - _FEATURES[0])
    X = rng.standard_normal((_CHOSEN_ROWS, 8))
    y = (X[:, 0] + rng.standard_normal(_CHOSEN_ROWS) > 0).astype(int)
    choice = _fastest(lambda: LeaveOneOutRidge().bind(X, y), 2) / _CHOSEN_ROWS
    return Rates(product, max(few - _FEATURES[0] * feature, 1e-10), feature, choice)


def _kernel_value(rng: np.random.RandomState, n_features: int) -> float:
    """Seconds of a kernel value: between the two kinds, of which the labels will choose one."""
    X, Z = (rng.standard_normal((n, n_features)) for n in _BLOCK)
    kinds = [_fastest(partial(k, X, Z)) for k in (RBF(gamma=0.1), Laplacian(gamma=0.1))]
    return float(np.sqrt(kinds[0] * kinds[1])) / (_BLOCK[0] * _BLOCK[1])


def _fastest(work: Callable[[], Any], n_runs: int = _RUNS) -> float:
    return min(timeit.repeat(work, number=1, repeat=n_runs + 1)[1:])  # the first run warms up


def check_shape(n_samples: Any, n_features: Any) -> None:
    """Refuse what is not a shape of training points."""
    check_whole("n_samples", n_samples, usual=1_000)
    check_whole("n_features", n_features, usual=10)


class Costs:
    """What a fit of :class:`Kernelized` takes, said before it begins."""

    recipe: Any

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that a fit takes at its peak, besides the data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the training points.

        Returns
        -------
        int
            An estimate of the step that takes most. ``fit`` refuses what cannot fit.
        """
        check_parts(self)
        check_recipe(self.recipe)
        return fit_bytes(choose(self, n_samples, Supervision()), n_samples, n_features)

    def estimate_time(self, n_samples: int, n_features: int) -> float:
        """Seconds that a fit takes on this machine, which a short run measures once a process.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the training points.

        Returns
        -------
        float
            An estimate within a factor of two or three, rougher for learners from pairs. It is an
            upper one for classes that are easily told apart, and their boundary rows.

        Examples
        --------
        >>> from kernelmetric import Kernelized, LMNN
        >>> Kernelized(LMNN()).estimate_time(100_000, 30) > 1
        True
        """
        check_shape(n_samples, n_features)
        check_parts(self)
        check_recipe(self.recipe)
        return fit_seconds(choose(self, n_samples, Supervision()), n_samples, n_features)


def rows_in_time(recipe: Any, X: Any, supervision: Supervision) -> np.ndarray | None:
    """Rows for which the time limit leaves time, where the others are only placed; None for all."""
    y, told = supervision.y, supervision.tuples is not None or supervision.pairs is not None
    if math.isinf(time_left()) or y is None or told or recipe.kernel.pairwise:
        return None
    (n, d), rate = X.shape, rates()
    some, seconds = n, fit_seconds(recipe, n, d)
    while seconds > time_left() and some > _LEAST_ROWS:
        some = max(_LEAST_ROWS, int(0.7 * some))
        rank = coordinates_rank(recipe.space, recipe.kernel, some, d)
        placed = rate.block(n * some, d) + rate.product * n * some * rank
        seconds = fit_seconds(recipe, some, d) + placed
    if some == n:
        return None
    warn_of_limit(f"the draw of rows for the space at {some:,} of {n:,}")
    return coded_targets(y, X).sample_of_all(some, LEAST_OF_CLASS)


def fit_seconds(recipe: Any, n: int, d: int) -> float:
    """Seconds that a fit of :class:`Kernelized` takes, with boundary rows less."""
    rate, space, kernel = rates(), recipe.space, recipe.kernel
    seconds = 0.0
    if isinstance(kernel, LeaveOneOutRidge):
        rows, again = min(n, kernel._most_rows()), kernel._rows_again(n)
        again = again if again > rows else 0
        seconds += rate.choice * 1.3 * (rows * (1.0 + d / 300.0) + again)
        if n > MANY_ROWS:  # two or three widths
            products = rate.product * 4.0 * MANY_ROWS * LANDMARKS**2
            seconds += 2.5 * (products + rate.block(MANY_ROWS * LANDMARKS, d))
    rank = coordinates_rank(space, kernel, n, d)
    learned = n
    if isinstance(space, RidgeKPCA):
        rank = min(rank, space._n_leading(n) + 10)  # the number of classes is not known
        seconds += _ridge_seconds(rate, space, n, d)
        seconds += neighbors_seconds(min(n, _JUDGES), n)
        learned = min(n, getattr(recipe.learner, "_enough_rows", n))
    else:
        m = getattr(space, "n_landmarks", None) or getattr(space, "n_features", None) or n
        seconds += _projection_seconds(rate, n, d, min(m, n), rank)
    return seconds + learner_seconds(recipe.learner, learned, rank)


def _ridge_seconds(rate: Rates, space: RidgeKPCA, n: int, d: int) -> float:
    """Ridge regression of all rows or, where they are too many, on landmarks."""
    if n <= ALL_ROWS or space._held(n):
        cube = 0.7 if n <= DOUBLE_ROWS else 0.33  # in half of the digits
        return rate.product * cube * n**3 + 8.0 * n**2 * rate.value + rate.block(n**2, d)
    m, some = min(space.most_landmarks(n), n), min(n, ENOUGH_ROWS)
    solved = rate.product * (2.0 * some * m**2 + 4.0 * m**3) + 4.0 * rate.block(some * m, d)
    return solved + (1.5 * rate.block(n * m, d) if n > some else 0.0)


def _projection_seconds(rate: Rates, n: int, d: int, m: int, rank: int) -> float:
    """Kernel values of rows with m anchors, and leading eigenvectors of them."""
    if m < n:  # landmarks
        return 2.0 * rate.block(n * m, d) + rate.product * (2.0 * n * m**2 + 4.0 * m**3)
    return 2.0 * rate.block(n * n, d) + rate.product * 4.0 * n**2 * min(rank, n)


def neighbors_seconds(n_queries: int, n: int) -> float:
    """A search for the neighbours of some rows among all, in few coordinates."""
    return 1.2 * rates().value * n_queries * n


def learner_seconds(learner: Any, n: int, rank: int) -> float:
    """Iterations over the pairs of rows: typical numbers of them, for no data are known yet."""
    rate, passes = rates(), _SPECTRAL_PASSES
    if getattr(learner, "learns_from", "labels") in ("pairs", "comparisons", "chunks"):
        passes, n = _PAIR_PASSES, min(n, _ROWS_OF_PAIRS)
    elif hasattr(learner, "max_iter"):
        passes = _PASSES.get(type(learner).__name__, _GRADIENT_PASSES)
    pair = rate.value + 2.0 * rank * rate.product
    steps = 1.0 if passes > 1.0 else 0.0
    return passes * pair * n**2 + steps * 0.2 * rate.choice * n
