"""Two ways down NCA's objective: over all pairs, and batch by batch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import in_library_of, like, rough, take_rows, to_numpy
from kernelmetric.compute.reductions import nca_loss, nearest_neighbors, product
from kernelmetric.inputs import Weights
from kernelmetric.learners._base import frobenius
from kernelmetric.learners._descent import Found, descend_in_stages
from kernelmetric.learners._progress import Iterations
from kernelmetric.solvers import finite_or_none, refuse_start
from kernelmetric.spaces import Gram

_ROUGH_TOL = 1e-6  # where few digits hand over to all: their objective is good to 1e-7
_STEP = 0.02  # of Adam, relative to the entries of the first map
_BATCH_TOL = 1e-3  # what an iteration must gain, relative, to be called progress
_HALVINGS = 3
_DRAWN_BYTES = 2**27  # of points that lie on many machines, for an iteration
_FEWEST_DRAWN = 5_000
_LEAST_BATCHES = 50  # fewer say too little about progress
_MOST_HELD_OUT, _SHARE_HELD_OUT = 3_000, 0.1  # of the points, at most
_PATIENCE = 10  # iterations without a better score


@dataclass
class NCAProblem:
    """Centred points, sorted by class, whose softmax neighbours should be of their own class."""

    points: Any
    codes: np.ndarray
    reg: float
    gram: Gram | None
    weights: Weights | None = None
    pull: float = 0.0  # weight of the squared norm of the map for each point, beside ``reg``

    def __post_init__(self) -> None:
        counted = len(self.codes) if self.weights is None else self.weights.total
        self.penalty = float(self.reg) + self.pull * counted
        self.codes_on_device = in_library_of(self.codes, self.points)
        # Tolerances are of what a row counts on average: to L-BFGS small values are as small as 1.
        self.unit = 1.0 if self.weights is None else self.weights.unit

    def rough(self, tol: float) -> Self:
        """The same with points that need be right to ``tol``."""
        n, d = self.points.shape
        points = rough(self.points, tol, operations=n * n * d)
        return self if points is self.points else replace(self, points=points)

    def subset(self, rows: np.ndarray) -> Self:
        """The problem of some of the points."""
        weights = None if self.weights is None else self.weights.take(rows)
        points, codes = take_rows(self.points, rows), self.codes[rows]
        return replace(self, points=points, codes=codes, weights=weights)

    def objective(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient over all pairs."""
        found = nca_loss(like(L, self.points), self.points, self.codes_on_device, self.weights)
        value, gradient = found[0], to_numpy(found[1])
        if not self.penalty:
            return value, gradient
        penalty, penalty_gradient = frobenius(L, self.gram)
        return value + self.penalty * penalty, gradient + self.penalty * penalty_gradient


class DrawnPoints:
    """A new random sample of points on many machines at every draw."""

    def __init__(self, X: Any, codes: np.ndarray, random_state: Any):
        self.X, self.codes, self.rng = X, codes, check_random_state(random_state)
        self.n_drawn = min(len(codes), max(_FEWEST_DRAWN, _DRAWN_BYTES // (8 * X.shape[1])))

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        """Points, and their codes: as many of each class as there are, on average."""
        rows = np.sort(self.rng.choice(len(self.codes), self.n_drawn, replace=False))
        return take_rows(self.X, rows), self.codes[rows]


def descend_exactly(
    problem: NCAProblem, L: np.ndarray, report: Iterations, max_iter: int, tol: float
) -> Found:
    """L-BFGS over all pairs: in few digits as far as these can tell, the finish in all."""
    first_tol = max(tol, _ROUGH_TOL)
    stages, first = [(problem.objective, tol)], problem.rough(first_tol)
    if first is not problem:
        stages = [(first.objective, first_tol), *stages[: tol < first_tol]]
    return descend_in_stages(problem.unit, stages, L, report, max_iter)


def descend_batches(
    problem: NCAProblem,
    L: np.ndarray,
    report: Iterations,
    max_iter: int,
    *,
    batch_size: int,
    random_state: Any,
    renewed: Callable[[], NCAProblem] | None = None,
) -> Found:
    """Adam on batches; the step is halved where it gains little, and the third time it ends."""
    rng = check_random_state(random_state)
    n = len(problem.codes)
    per_pass = max(1, n // int(batch_size))  # NumPy's small integers have no room for what follows
    passes = -(-_LEAST_BATCHES // per_pass)
    step = _STEP * float(np.sqrt(np.mean(L * L)))
    mean, square, count, halved, best = np.zeros_like(L), np.zeros_like(L), 0, 0, np.inf
    found = L, np.inf
    for _ in range(max_iter):
        total, average = 0.0, np.zeros_like(L)
        orders = [np.array_split(rng.permutation(n), per_pass) for _ in range(passes)]
        for batch in chain.from_iterable(orders):
            part = problem.subset(np.sort(batch))  # sorted rows are sorted by class
            value, gradient = finite_or_none(part.objective, L)
            if gradient is None:  # it went too far: the pass before is what there is
                if not np.isfinite(found[1]):
                    refuse_start(value)
                return *found, False
            count += 1
            mean += 0.1 * (gradient - mean)
            square += 0.01 * (gradient * gradient - square)
            direction = mean / (1 - 0.9**count)
            L = L - step * direction / (np.sqrt(square / (1 - 0.99**count)) + 1e-12)
            total += value / passes
            average += L / (passes * per_pass)
        found = average, total
        if report(average, total):
            break
        if total >= best - _BATCH_TOL * abs(best):
            halved, step = halved + 1, 0.5 * step
        best = min(best, total)
        if halved == _HALVINGS:
            break
        if renewed is not None:
            problem = renewed()
    return *found, halved == _HALVINGS


class HeldOut:
    """How often the nearest of the other points is of the class of a point held out."""

    def __init__(self, problem: NCAProblem, rows: np.ndarray, others: NCAProblem):
        self.points, self.codes = take_rows(problem.points, rows), problem.codes[rows]
        self.shares = None if problem.weights is None else problem.weights.shares[rows]
        self.others = others
        self.scores: list[float] = []
        self.best: Any = None
        self._best_at = 0

    def __call__(self, L: np.ndarray) -> bool:
        """Judge a map; True where the last ones brought nothing."""
        E = product(self.others.points, like(L, self.others.points).T)
        queries = product(self.points, like(L, self.points).T)
        nearest = nearest_neighbors(E, 1, queries=queries)[0][:, 0]
        score = float(np.average(self.others.codes[nearest] == self.codes, weights=self.shares))
        if self.best is None or score >= self.scores[self._best_at]:
            better = self.best is None or score > self.scores[self._best_at]
            self.best = np.array(L)
            self._best_at = len(self.scores) if better else self._best_at
        self.scores.append(score)
        return len(self.scores) - 1 - self._best_at >= _PATIENCE


def held_back(problem: NCAProblem, random_state: Any) -> tuple[NCAProblem, HeldOut | None]:
    """A problem without some points of each class, and these; None where no class can spare any."""
    n = len(problem.codes)
    # Rows are sorted by class: one of every so many.
    step = max(int(np.ceil(1 / _SHARE_HELD_OUT)), n // _MOST_HELD_OUT)
    # Without a random state the same ones every time: two fits of the same data are the same.
    first = step // 2 if random_state is None else check_random_state(random_state).randint(step)
    rows = np.arange(first, n, step)
    counts = np.bincount(problem.codes)
    rows = rows[counts[problem.codes[rows]] > 2]  # a class needs two to learn from
    if not len(rows):
        return problem, None
    learned = problem.subset(np.setdiff1d(np.arange(n), rows))
    return learned, HeldOut(problem, rows, learned)
