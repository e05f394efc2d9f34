"""Points held out of a descent, which say when it has gone far enough."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import like, nearest_neighbors, product, take_rows
from kernelmetric.learners._nca_solvers import NCAProblem

_MOST = 3_000
_SHARE = 0.1  # of the points, at most
_PATIENCE = 10  # iterations without a better score


class HeldOut:
    """How often the nearest of the other points is of the class of a point held out."""

    def __init__(
        self,
        points: Any,
        codes: np.ndarray,
        others: NCAProblem,
        shares: np.ndarray | None = None,
    ):
        self.shares = shares
        self.points, self.codes, self.others = points, codes, others
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
    """A problem without some of its points, drawn in proportion to the classes, and these.

    None where every class is of one or two points, and has none to spare.
    """
    n = len(problem.codes)
    # Rows are sorted by class: one of every so many.
    step = max(int(np.ceil(1 / _SHARE)), n // _MOST)
    # Without a random state the same ones every time: two fits of the same data are the same.
    first = step // 2 if random_state is None else check_random_state(random_state).randint(step)
    rows = np.arange(first, n, step)
    counts = np.bincount(problem.codes)
    rows = rows[counts[problem.codes[rows]] > 2]  # a class needs two to learn from
    if not len(rows):
        return problem, None
    rest = np.setdiff1d(np.arange(n), rows)
    learned = problem.subset(rest)
    shares = None if problem.weights is None else problem.weights.shares[rows]
    return learned, HeldOut(take_rows(problem.points, rows), problem.codes[rows], learned, shares)
