"""Three ways down NCA's objective: exactly, over near points alone, and batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import Weights, in_library_of, like, product, take_rows, to_numpy
from kernelmetric.compute.reductions import Listed, mine_softmax, nca_loss, nca_loss_on
from kernelmetric.learners._base import centered, frobenius
from kernelmetric.learners._descent import Found, in_float32, in_single
from kernelmetric.learners._progress import Iterations
from kernelmetric.solvers import finite_or_none, minimize_lbfgs, refuse_start
from kernelmetric.spaces import Gram

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

_ROUGH_TOL = 1e-6  # where float32 hands over to float64: its objective is good to 1e-7
_LONGEST_LIST = 0.05  # share of all pairs above which looking at all of them is cheaper
_FIRST_ROUND = 5  # iterations between two looks at all pairs
_STEP = 0.02  # of Adam, relative to the entries of the first map
_BATCH_TOL = 1e-3  # what an iteration must gain, relative, to be called progress
_HALVINGS = 3
_DRAWN_BYTES = 2**27  # of points that lie on many machines, for an iteration
_FEWEST_DRAWN = 5_000
_LEAST_BATCHES = 50  # fewer say too little about progress


class NCAProblem:
    """Labelled points whose softmax neighbours should be of their own class.

    Points are centred, rows sorted by class. ``pull`` weighs the squared norm of the map for each
    point, beside ``reg``.
    """

    def __init__(
        self,
        points: Any,
        codes: np.ndarray,
        reg: float,
        gram: Gram | None,
        weights: Weights | None = None,
        pull: float = 0.0,
    ):
        self.points, self.codes, self.reg, self.gram = points, codes, float(reg), gram
        self.weights, self.pull = weights, pull
        self.penalty = self.reg + pull * (len(codes) if weights is None else weights.total)
        self.there = in_library_of(codes, points)
        # Tolerances are of what a row counts on average: to L-BFGS small values are as small as 1.
        self.unit = 1.0 if weights is None else weights.unit

    def in_single(self) -> NCAProblem:
        """The same in float32."""
        points = in_float32(self.points)
        return NCAProblem(points, self.codes, self.reg, self.gram, self.weights, self.pull)

    def subset(self, rows: np.ndarray) -> NCAProblem:
        """The problem of some of the points."""
        points, codes = take_rows(self.points, rows), self.codes[rows]
        weights = None if self.weights is None else self.weights.take(rows)
        return NCAProblem(points, codes, self.reg, self.gram, weights, self.pull)

    def objective(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient over all pairs."""
        found = nca_loss(like(L, self.points), self.points, self.there, self.weights)
        return self._with_penalty(L, *found)

    def per_weight(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """The same, divided by what a row counts on average."""
        value, gradient = self.objective(L)
        return value / self.unit, gradient / self.unit

    def objective_on(self, listed: Listed) -> Objective:
        """Value and gradient over listed pairs, as a function of the map."""

        def objective(L: np.ndarray) -> tuple[float, np.ndarray]:
            L_like = like(L, self.points)
            return self._with_penalty(L, *nca_loss_on(L_like, self.points, self.codes, listed))

        return objective

    def mine(self, L: np.ndarray, eps: float) -> tuple[float, Listed | None]:
        """Value within eps n, and the pairs to watch; None where these are too many."""
        E = product(self.points, like(L, self.points).T)
        most = _LONGEST_LIST * len(self.codes)
        value, listed = mine_softmax(E, self.codes, eps, most=most)
        return value + self.penalty * frobenius(L, self.gram)[0], listed

    def _with_penalty(self, L: np.ndarray, value: float, gradient: Any) -> tuple[float, np.ndarray]:
        if not self.penalty:
            return value, to_numpy(gradient)
        penalty, penalty_gradient = frobenius(L, self.gram)
        return value + self.penalty * penalty, to_numpy(gradient) + self.penalty * penalty_gradient


class DrawnPoints:
    """A new random sample of points on many machines at every draw."""

    def __init__(self, X: Any, codes: np.ndarray, random_state: Any):
        self.X, self.codes, self.rng = X, codes, check_random_state(random_state)
        self.n_drawn = min(len(codes), max(_FEWEST_DRAWN, _DRAWN_BYTES // (8 * X.shape[1])))

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        """Points, and their codes: as many of each class as there are, on average."""
        rows = np.sort(self.rng.choice(len(self.codes), self.n_drawn, replace=False))
        return take_rows(self.X, rows), self.codes[rows]


def sorted_problem(
    X: Any,
    codes: np.ndarray,
    reg: float,
    gram: Gram | None,
    weights: Weights | None = None,
    pull: float = 0.0,
) -> NCAProblem:
    """The problem of labelled points: the block kernel wants rows sorted by class."""
    order = np.argsort(codes, kind="stable")
    points = take_rows(centered(X), order)
    some = None if weights is None else weights.take(order)
    return NCAProblem(points, codes[order], reg, gram, some, pull)


def descend_exactly(
    problem: NCAProblem, L: np.ndarray, report: Iterations, max_iter: int, tol: float
) -> Found:
    """L-BFGS over all pairs: in float32 as far as that can tell, the finish in float64."""
    rough = max(tol, _ROUGH_TOL)
    stages = [(problem, tol)]
    if in_single(problem.points, rough, _ROUGH_TOL):
        stages = [(problem.in_single(), rough), *stages[: tol < rough]]
    for stage, stage_tol in stages:
        left = max_iter - len(report.loss_curve)
        if left == 0 or report.stopped:
            break
        minimum = minimize_lbfgs(
            stage.per_weight,
            L,
            max_iter=left,
            tol=stage_tol,
            report=lambda L, value: report(L, problem.unit * value),
        )
        L = minimum.x
    return L, problem.unit * minimum.value, minimum.converged


def descend_truncated(
    problem: NCAProblem,
    L: np.ndarray,
    report: Iterations,
    max_iter: int,
    tol: float,
    *,
    eps: float,
) -> Found:
    """L-BFGS over near pairs, listed anew after every round; the value at the end is exact.

    A round that did not lower the certified objective met points that were not listed: it is
    undone, and the next one is half as long.
    """
    rough = problem.in_single() if in_single(problem.points, 1.0) else problem
    value, listed = rough.mine(L, eps)
    length, converged = _FIRST_ROUND, False
    while not (converged or report.stopped) and len(report.loss_curve) < max_iter:
        objective = rough.objective if listed is None else rough.objective_on(listed)
        left = max_iter - len(report.loss_curve)
        minimum = minimize_lbfgs(objective, L, max_iter=min(length, left), tol=tol, report=report)
        if minimum.n_iter == 0 and not minimum.converged:
            break  # no step leads to a finite value
        new_value, new_listed = rough.mine(minimum.x, eps)
        gained = value - new_value if np.isfinite(value) else np.inf
        if gained < 0 and length > 1:
            length //= 2
            continue
        if listed is None and minimum.converged:
            return minimum.x, problem.objective(minimum.x)[0], True
        converged = bool(gained <= tol * max(abs(new_value), 1.0))
        if gained >= 0:
            L, value, listed = minimum.x, new_value, new_listed
            length *= 2
        elif not np.isfinite(new_value):  # the lists became too long to be worth it
            L, value, listed = minimum.x, new_value, None
    return L, problem.objective(L)[0], converged


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
    """Adam on batches, each a problem of its own.

    An iteration is a pass over the points, several where a pass has fewer than fifty batches.
    The step is halved when an iteration gained less than 0.1 %, and the third time it is the end.
    Where the points are drawn from many more, every iteration has others (``renewed``).
    """
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
