"""What a whole fit takes, kernel, space and learner together: bytes, and measured seconds."""

import math
from contextvars import Context
from functools import cache, partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelmetric.compute import fits_budget
from kernelmetric.compute._device import device_in_use
from kernelmetric.compute.rates import Rates, fastest, most_in_time, rates
from kernelmetric.compute.watch import time_left, warn_of_limit
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs._parameters import COUNT
from kernelmetric.kernelized._parts import check_parts
from kernelmetric.kernelized._recipe import Recipe, check_recipe, choose
from kernelmetric.kernelized._supervision import Supervision
from kernelmetric.kernels import Kernel, Linear, Polynomial
from kernelmetric.learners._checks import least_seconds
from kernelmetric.selection import KernelAlignment, LeaveOneOutRidge, RidgeKPCA
from kernelmetric.selection._many_rows import MANY_ROWS, seconds_of_width
from kernelmetric.selection._ridge_kpca import ALL_ROWS, DOUBLE_ROWS, EASY_ROWS, ENOUGH_ROWS
from kernelmetric.selection._ridge_solution import LEAST_OF_CLASS
from kernelmetric.spaces import KernelTrick

_FRACTION_RANK = 256  # what KPCA itself expects of a fraction of the variance
_LIMITS = ("n_components", "n_landmarks", "n_features")  # parameters that bound a space's rank


def coordinates_rank(space: Any, kernel: Kernel, n_samples: int, n_features: int) -> int:
    """Maximum number of coordinates of a space, before its fit, for points of this shape."""
    if hasattr(space, "most_rank"):  # leading components, and as many more as the labels need
        return min(n_samples, space.most_rank(n_samples))
    if isinstance(space, KernelTrick):  # the basis is that of the points
        return n_samples
    bounds: list[float] = [n_samples]
    if isinstance(kernel, Linear):
        bounds.append(n_features)
    degree = kernel.degree if isinstance(kernel, Polynomial) else None
    if isinstance(degree, Real) and degree in range(1, 11):
        bounds.append(math.comb(n_features + int(degree), int(degree)))
    for value in (getattr(space, name, None) for name in _LIMITS):
        if isinstance(value, Integral) and int(value) > 0:
            bounds.append(int(value))
        elif isinstance(value, float):
            bounds.append(_FRACTION_RANK)
    return max(1, int(min(bounds)))


def fit_bytes(recipe: Any, n_samples: int, n_features: int) -> int:
    """Bytes that a fit of :class:`Kernelized` takes at its peak, besides the data."""
    parts = recipe.kernel, recipe.space
    choosing, spanning = (_bytes_of(part, n_samples, n_features) for part in parts)
    rank = coordinates_rank(recipe.space, recipe.kernel, n_samples, n_features)
    held = 8 * n_samples * (2 * rank + n_features)  # coordinates, projection, anchors
    enough = getattr(recipe.learner, "_enough_rows", n_samples)
    learned = min(n_samples, enough) if getattr(recipe.space, "knows_labels", False) else n_samples
    return max(choosing, spanning, held + _bytes_of(recipe.learner, learned, rank))


def _bytes_of(part: Any, n_samples: int, n_features: int) -> int:
    """What a part says it takes for points of this shape; nothing where it says nothing."""
    estimate = getattr(part, "estimate_memory", None)
    return 0 if estimate is None else int(estimate(n_samples, n_features))


def search_bytes(recipe: Any, n_samples: int, n_features: int, n_test: int) -> int:
    """Bytes that a candidate takes in a fold at its peak, besides the points."""
    block = 8 * n_samples * (n_samples + n_test)
    distances = block if fits_budget(2 * block + 16 * n_samples**2) else 0
    scored = 16 * n_test * coordinates_rank(recipe.space, recipe.kernel, n_samples, n_features)
    return distances + scored + fit_bytes(recipe, n_samples, n_features)


_LEAST_ROWS = 100  # that a time limit leaves to a space
_CHOSEN_ROWS = 60  # of the choice of a kernel that is measured
_JUDGES = 2_000  # rows that choose how many neighbours vote
_PASSES = {"MLKR": 50.0, "MCML": 200.0}  # over all pairs of rows, until a learner has converged
# Coordinates that know no labels leave more to learn; nothing is held out among fewer points.
_PLAIN_PASSES = {"NCA": 45.0, "LMNN": 4.0, "LMCA": 30.0, "MLKR": 120.0, "MCML": 30.0}
_ROW_PASSES = {"LMNN": 50.0}  # for each of them: between two searches it has lists of pairs
_EASY = 0.25  # of the work that mistakes make, if classes have boundary rows
_GRADIENT_PASSES, _PAIR_PASSES, _SPECTRAL_PASSES = 8.0, 80.0, 1.0  # of other learners
_KRYLOV_PRODUCTS = 16.0  # of a Gram matrix with a block of vectors, for its leading ones
_ROWS_OF_PAIRS = 2_000  # pairs from labels of more rows are not more
_ALIGNED_TERMS, _ALIGNED_VALUES = 3, 3.0  # of base kernels so many stay; values that each costs


@cache
def choice_rate() -> float:
    """Seconds of a row in the choice of a kernel: many small steps on one thread."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((_CHOSEN_ROWS, 8))
    y = (X[:, 0] + rng.standard_normal(_CHOSEN_ROWS) > 0).astype(int)
    # in a context of its own, as a time limit would end it
    return Context().run(fastest, partial(LeaveOneOutRidge().bind, X, y), 1) / _CHOSEN_ROWS


def check_shape(n_samples: Any, n_features: Any) -> None:
    """Refuse what is not a shape of training points."""
    COUNT.require("n_samples", n_samples)
    COUNT.require("n_features", n_features)


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
        return fit_bytes(self._planned(n_samples), n_samples, n_features)

    def estimate_time(self, n_samples: int, n_features: int) -> float:
        """Seconds that a fit takes on this machine, which a short run measures once a process.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the training points.

        Returns
        -------
        float
            An estimate within a factor of two, rougher for learners from pairs. It is an upper one
            for classes that are easily told apart; with ``space=RidgeKPCA(rows="boundary")`` it is
            that of such classes. Inside :func:`use_device` the device is measured.

        Examples
        --------
        >>> from kernelmetric import Kernelized, LMNN
        >>> Kernelized(LMNN()).estimate_time(100_000, 30) > 1
        True
        """
        check_shape(n_samples, n_features)
        recipe = self._planned(n_samples)
        return fit_seconds(recipe, n_samples, n_features, device_in_use())

    def _planned(self, n_samples: int) -> Recipe:
        """The recipe for so many points with labels."""
        check_parts(self)
        check_recipe(self.recipe)
        return choose(self, n_samples, Supervision())


def rows_in_time(recipe: Any, X: Any, supervision: Supervision) -> np.ndarray | None:
    """Rows for which the time limit leaves time, where the others are only placed; None for all."""
    y, told = supervision.y, supervision.tuples is not None or supervision.pairs is not None
    if math.isinf(time_left()) or y is None or told or recipe.kernel.pairwise:
        return None
    n, d = X.shape

    def seconds(some: int) -> float:
        if some == n:
            return fit_seconds(recipe, n, d)
        rank = coordinates_rank(recipe.space, recipe.kernel, some, d)
        rate = _rates_of(recipe.kernel)
        placed = rate.block(n * some, d) + rate.product * n * some * rank
        least = getattr(recipe.learner, "_least_rows", some)  # which it learns from in any case
        return fit_seconds(recipe, some, d) + placed + learner_seconds(recipe.learner, least, rank)

    some = most_in_time(seconds, n, _LEAST_ROWS)
    if some == n:
        return None
    warn_of_limit(f"the draw of rows for the space at {some:,} of {n:,}")
    return coded_targets(y, X).sample_of_all(some, LEAST_OF_CLASS)


def fit_seconds(recipe: Any, n: int, d: int, device: Any = None) -> float:
    """Seconds that a fit of :class:`Kernelized` takes; of boundary rows where the space says so."""
    rate, space, kernel = _rates_of(recipe.kernel, device), recipe.space, recipe.kernel
    seconds = 0.0
    if isinstance(kernel, KernelAlignment):
        values = _ALIGNED_VALUES * min(n, kernel.max_samples or n) ** 2
        seconds += rates().value * values * len(kernel._base_kernels())
    if isinstance(kernel, LeaveOneOutRidge):
        rows, again = min(n, kernel._most_rows()), kernel._rows_again(n)
        again = again if again > rows else 0
        seconds += choice_rate() * 1.3 * (rows * (1.0 + d / 300.0) + again)
        if n > MANY_ROWS:  # two or three widths
            seconds += 2.5 * seconds_of_width(d)
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
    plain = not isinstance(space, RidgeKPCA)
    learning = learner_seconds(recipe.learner, learned, rank, plain=plain, device=device)
    return seconds + share_of(space) * learning


def share_of(space: Any) -> float:
    """How much of iterations and trees there is, less where classes are easily told apart."""
    return _EASY if getattr(space, "rows", None) == "boundary" else 1.0


def _rates_of(kernel: Any, device: Any = None) -> Rates:
    """Rates with values of a kernel, which a sum has of every term."""
    aligned = isinstance(kernel, KernelAlignment)
    terms = _ALIGNED_TERMS if aligned else len(getattr(kernel, "kernels", (kernel,)))
    rate = rates(device)
    return rate._replace(value=terms * rate.value, feature=terms * rate.feature)


def _ridge_seconds(rate: Rates, space: RidgeKPCA, n: int, d: int) -> float:
    """Ridge regression of all rows, of boundary rows or, where they are too many, on landmarks."""
    if n > ALL_ROWS and space.rows == "boundary":
        some = sum(EASY_ROWS)
        placed = 1.5 * rate.block(n * (EASY_ROWS[0] + some), d)
        return placed + _ridge_seconds(rate, space, some, d)
    if n <= ALL_ROWS or space._held(n):
        cube = 0.7 if n <= DOUBLE_ROWS else 0.33  # in half of the digits
        return rate.product * cube * n**3 + 8.0 * n**2 * rate.value + rate.block(n**2, d)
    m, some = min(space.most_landmarks(n), n), min(n, ENOUGH_ROWS)
    solved = rate.product * (1.5 * some * m**2 + 14.0 * m**3) + 4.0 * rate.block(some * m, d)
    return solved + (1.5 * rate.block(n * m, d) if n > some else 0.0)


def _projection_seconds(rate: Rates, n: int, d: int, m: int, rank: int) -> float:
    """Kernel values of rows with m anchors, and leading eigenvectors of them."""
    if m < n:  # landmarks
        return 2.0 * rate.block(n * m, d) + rate.product * (1.5 * n * m**2 + 14.0 * m**3)
    passes = 2.0 if fits_budget(8 * n * n) else _KRYLOV_PRODUCTS  # over values, held or not
    width = min(rank + 10, n / 4)  # at full rank LAPACK takes 4 n³
    return passes * rate.block(n * n, d) + rate.product * _KRYLOV_PRODUCTS * n**2 * width


def neighbors_seconds(n_queries: int, n: int) -> float:
    """A search for the neighbours of some rows among all, in few coordinates."""
    return 1.2 * rates().value * n_queries * n


def learner_seconds(
    learner: Any, n: int, rank: int, *, plain: bool = False, device: Any = None
) -> float:
    """Iterations over the pairs of rows: typical numbers of them, for no data are known yet.

    ``plain`` coordinates have not been chosen by labels, and may be many: their products with the
    map count too.
    """
    if getattr(learner, "_passes", 1.0) == 0.0:
        return least_seconds(learner, n, rank)
    name, passes = type(learner).__name__, _SPECTRAL_PASSES
    rate = rates(device if name in _PLAIN_PASSES else None)  # others work on the host
    if getattr(learner, "learns_from", "labels") in ("pairs", "comparisons", "chunks"):
        passes, n = _PAIR_PASSES, min(n, _ROWS_OF_PAIRS)
    elif hasattr(learner, "max_iter"):
        passes = _PASSES.get(name, _GRADIENT_PASSES)
    r = min(rank, int(getattr(learner, "n_components", None) or rank))
    products = 2.0 * r * n**2
    if plain and name in _PLAIN_PASSES:
        passes = _PLAIN_PASSES[name]
        products += 6.0 * n * rank * r * _ROW_PASSES.get(name, 1.0)
    steps = 0.2 * choice_rate() * n if passes > 1.0 else 0.0
    return passes * (rate.value * n**2 + rate.product * products) + steps
