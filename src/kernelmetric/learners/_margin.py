"""The objective of large margins, and the way down on a factor L."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import linalg

from kernelmetric.compute import backend_of, in_library_of, like, namespace, take_rows, to_numpy
from kernelmetric.compute.reductions import (
    Triplets,
    class_neighbors,
    laplacian_product,
    lmnn_at_lengths,
    lmnn_hinge,
    lmnn_step_on,
    mine_impostors,
    product,
    read_only,
)
from kernelmetric.graphs import IndexTuples
from kernelmetric.learners._progress import Iterations
from kernelmetric.learners._tuple_learner import differences
from kernelmetric.solvers import minimize_lbfgs

# The hinge is smoothed by a quadratic corner that narrows from stage to stage: L-BFGS
# needs a continuous gradient.
FIRST_CORNER = 1.0
_CORNER_FACTOR = 0.1
_FIRST_ROUND = 20  # iterations before the impostors are looked for again; doubles every round
_WATCHED = 50  # impostors of a point on the first list; doubles whenever a list was too short
_WATCHED_SHARE = 0.05  # of all points, instead: where some of them have told that lists are short,
_MOST_LISTED = 2e7  # pairs: the few points with many impostors need not be left out
_SLACK = 0.5  # how much farther than the margin an impostor on the first list may be,
_SLACK_OF_MANY = 0.75  # and where a look at all points costs more than many steps
_ROWS_FOR_LENGTH = 2_000  # rows that choose the length of the start; an estimate will do
_MANY_POINTS = 6_000  # from here a descent begins with some of the points,
_SOME_POINTS = 4_000  # at most so many,
_WATCHED_OF_SOME = 100  # with so many impostors of a point on their first list,
_ROUGH = 0.1  # to this tolerance: the end of fewer points is not that of all.
_NARROW = 1e-3  # Then the corner is as wide as the tolerance, but no narrower than this at once
_MAX_ROUNDS = 60
_DENSE_ABOVE = 0.05  # share of all pairs beyond which looking at every pair is faster
FEW_POINTS = 1000  # up to here, looking at all impostors costs no more than keeping a list
_STAGE_TOL = 1e-2  # tolerance of a stage beside the width of its corner: early stages may be rough
_USUAL_TOL = 1e-3  # Below it, L-BFGS creeps along corners: short steps do not show a minimum, and a
_LEAST_CARE = 1e-3  # step must gain a smaller share of the tolerance, but no smaller one than this;
_WIDER = 1e3  # and what is found must be found again, from a corner so much wider and a map of
_LIFTED = 0.1  # which no direction is so much shorter than the longest: near zero, slopes vanish


@dataclass
class MarginProblem:
    """LMNN's objective on sorted points: a function of L, or of M, and of the corner's width."""

    points: Any
    targets: np.ndarray
    codes: np.ndarray
    c: float
    reg: float
    weighed: Triplets | None = None

    def __post_init__(self) -> None:
        points, targets, codes = self.points, self.targets, self.codes
        # The margin is 1, so a cost well below 1 for each target pair is as good as none:
        # tolerances are relative to the objective or to that, whichever is larger.
        self.unit = float(np.count_nonzero(targets >= 0))
        if self.weighed is not None:
            self.unit = float(np.sum(self.weighed.parts, where=targets >= 0))
        self.few = len(codes) <= FEW_POINTS or not backend_of(points).lists_help(points)
        self.most_pairs = _DENSE_ABOVE * len(codes) ** 2
        self.there = in_library_of(targets, points), in_library_of(codes, points)
        self.xp = namespace(points)

    def on(self, points: Any) -> Self:
        """The same problem, its points in another precision, if that is another one."""
        return self if points is self.points else replace(self, points=read_only(points))

    def thinned(self) -> Self:
        """The problem of some of the points, their targets among them."""
        rows = np.arange(0, len(self.codes), -(-len(self.codes) // _SOME_POINTS))
        points, codes = take_rows(self.points, rows), self.codes[rows]
        k = min(self.targets.shape[1], len(rows))
        targets = to_numpy(class_neighbors(points, codes, k, same=True)[0])
        weighed = None
        if self.weighed is not None:  # a rough start: each point's own part counts as before
            parts = np.mean(self.weighed.parts[rows], axis=1, keepdims=True)
            weighed = Triplets(np.repeat(parts, k, axis=1), self.weighed.counts[rows])
        reg = self.reg * len(rows) / len(self.codes)
        return replace(self, points=points, targets=targets, codes=codes, reg=reg, weighed=weighed)

    def value(self, L: np.ndarray) -> float:
        """The objective with the plain hinge, over all impostors."""
        value = self._at_lengths(self._embedded(L), np.ones(1), every=1)[0]
        return float(value + self._penalty(L))

    def mine(self, L: np.ndarray, **which: float) -> tuple[float, np.ndarray]:
        """The objective, and the impostor pairs worth watching near L."""
        value, pairs = self._mined(self._embedded(L), **which)
        return value + self._penalty(L), pairs

    def look(
        self, L: np.ndarray, pairs: np.ndarray, **which: float
    ) -> tuple[float, float, np.ndarray]:
        """The objective, what the listed impostors show of it, and pairs worth watching near L."""
        exact, nearby = self.mine(L, **which)
        seen = exact if self.few else self._on_list(L, pairs, 0.0)[0] + self._penalty(L)
        return exact, seen, nearby

    def of_map(self, L: np.ndarray, pairs: np.ndarray, corner: float) -> tuple[float, np.ndarray]:
        """Value and gradient in L for each target pair, over listed impostors or all of many."""
        value, gradient = self._on_list(L, pairs, corner)
        return (value + self._penalty(L)) / self.unit, (gradient + 2.0 * self.reg * L) / self.unit

    def best_length(self, L: np.ndarray) -> float:
        """The multiple of L with the smallest objective, which is convex in its square."""
        E = self._embedded(L)
        lengths, weights = self._pulled_lengths(E)
        pull = float(np.average(lengths, weights=weights))
        if not pull > 0:
            return 1.0
        squares = 4.0 ** np.arange(-3, 4) / pull  # margin 1 against the typical target distance
        penalty = self._penalty(L)
        every = max(1, len(self.codes) // _ROWS_FOR_LENGTH)
        middle = best = len(squares) // 2
        values = {-1: np.inf, len(squares): np.inf}

        def value(k: int) -> float:
            if k not in values:
                # Longer ones have fewer impostors, and are looked at together.
                together = k >= middle and not self.few
                which = range(middle, len(squares)) if together else [k]
                found = self._at_lengths(E, squares[which], every)
                values.update(zip(which, found + penalty * squares[which], strict=True))
            return values[k]

        # Where a longer one is better, no shorter one can be.
        step = 1 if value(best + 1) < value(best) else -1
        while value(best + step) < value(best):
            best += step
        return float(np.sqrt(squares[best]))

    def _at_lengths(self, E: Any, squares: np.ndarray, every: int) -> np.ndarray:
        """The objective without the penalty, or an estimate, of squared distances times these."""
        if self.few:
            longer = (E * float(np.sqrt(square)) for square in squares)
            return np.array([self._over_all(one, one[:, :0])[0] for one in longer])
        how = self.targets, self.codes, self.c, squares
        return lmnn_at_lengths(E, *how, every=every, weighed=self.weighed)

    def _pulled_lengths(self, E: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Squared distances of target pairs, and what each counts."""
        i, slot = np.nonzero(self.targets >= 0)
        difference = take_rows(E, i) - take_rows(E, self.targets[i, slot])
        lengths = to_numpy(self.xp.sum(difference * difference, axis=1))
        return lengths, None if self.weighed is None else self.weighed.parts[i, slot]

    def _over_all(self, E: Any, V: Any, corner: float = 0.0) -> tuple[float, Any]:
        """The objective over all impostors, without the penalty, and its Laplacian times V."""
        return lmnn_hinge(E, V, *self.there, self.c, corner, self.weighed)

    def _mined(self, E: Any, **options: Any) -> tuple[float, np.ndarray]:
        """Objective without the penalty, and pairs worth watching: none where all are looked at."""
        if self.few:
            value, _ = self._over_all(E, E[:, :0])
            return value, np.empty((0, 2), dtype=np.int32)
        return mine_impostors(E, self.targets, self.codes, self.c, weighed=self.weighed, **options)

    def _on_list(self, L: np.ndarray, pairs: np.ndarray, corner: float) -> tuple[float, Any]:
        """The objective over the listed impostors or, if many, over all; and its gradient."""
        X = self.points
        if self.few or len(pairs) > self.most_pairs:
            E = self._embedded(L)
            value, sums = self._over_all(E, E, corner)
            return value, np.multiply(to_numpy(product(sums.T, X)), 2.0, dtype=np.float64)
        return lmnn_step_on(pairs, L, X, self.targets, self.c, corner, self.weighed)

    def watched(self, share: float) -> int:
        """Impostors of a point on a list, where so large a share of all pairs is worth one."""
        n = len(self.codes)
        return int(_WATCHED_SHARE * n) if share * n * n <= _MOST_LISTED else _WATCHED

    def slack(self, corner: float) -> float:
        """How much farther than the margin a listed impostor may be; less at narrow corners."""
        widest = _SLACK_OF_MANY if len(self.codes) > _MANY_POINTS else _SLACK
        return widest * corner ** (1 / 3)

    def listed(self, pairs: np.ndarray, nearby: np.ndarray) -> np.ndarray:
        """What to watch next: all that was ever worth it or, if too much, what is now."""
        both = _union(pairs, nearby, len(self.codes))
        return both if len(both) <= self.most_pairs else nearby

    def _penalty(self, L: np.ndarray) -> float:
        return self.reg * float(np.sum(L * L))

    def _embedded(self, L: np.ndarray) -> Any:
        return product(self.points, like(L, self.points).T)


def descend(
    problem: MarginProblem,
    L: np.ndarray,
    report: Iterations,
    max_iter: int,
    tol: float,
    corner: float,
) -> tuple[np.ndarray, bool, float]:
    """L-BFGS in rounds: on the impostors known so far, then a look at all of them."""
    where, most, how = _Where(L, corner), _WATCHED, (report, problem.unit, max_iter, tol)
    # A look at all points takes time as the square of their number: many begin with some of them.
    if len(problem.codes) > _MANY_POINTS and corner == FIRST_CORNER:
        some = problem.thinned()
        if some.unit:
            _rounds(some, where, _WATCHED_OF_SOME, *how[:-1], max(tol, _ROUGH))
            where.corner = min(where.corner, max(tol, _NARROW))
            _, pairs = some.mine(where.L, most=len(some.codes), slack=problem.slack(where.corner))
            most = max(most, problem.watched(len(pairs) / len(some.codes) ** 2))
    where.good = False
    if not report.stopped and where.done < max_iter:
        _rounds(problem, where, most, *how)
    return where.L, where.good, where.corner


@dataclass
class _Where:
    """Where a descent is: the map, the width of the corner, and what it knows of the way there."""

    L: np.ndarray
    corner: float
    done: int = 0  # iterations
    corrections: Any = None  # of L-BFGS: objectives of rounds are alike
    good: bool = False


def _rounds(
    problem: MarginProblem,
    where: _Where,
    most: int,
    report: Iterations,
    scale: float,
    max_iter: int,
    tol: float,
) -> None:
    """Rounds on one problem, reported for so many target pairs as ``scale`` says."""
    unit, care = problem.unit, min(1.0, max((tol / _USUAL_TOL) ** (2 / 3), _LEAST_CARE))
    round_length, finish = _FIRST_ROUND, False
    exact, pairs = problem.mine(where.L, most=most, slack=problem.slack(where.corner))
    where.good = bool(where.done) and exact <= tol * unit  # some of the points were enough
    if where.good:
        return
    best: tuple[float, np.ndarray, float] | None = None
    for _ in range(_MAX_ROUNDS):
        corner = where.corner
        minimum = minimize_lbfgs(
            partial(problem.of_map, pairs=pairs, corner=corner),
            where.L,
            max_iter=max(1, min(round_length, max_iter - where.done)),
            tol=care * (0.1 * tol if finish else max(0.1 * tol, _STAGE_TOL * corner)),
            report=lambda L, value: report(L, value * scale),
            corrections=where.corrections,
        )
        where.L, where.corrections = minimum.x, minimum.corrections
        where.done += minimum.n_iter
        exact, seen, nearby = problem.look(where.L, pairs, most=most, slack=problem.slack(corner))
        missing, rounded = exact - seen, seen - minimum.value * unit
        near = minimum.converged and max(missing, rounded) <= tol * max(exact, unit)
        # No objective is below zero: one that is as good as none is near enough to the best.
        where.good = (near and (finish or _STAGE_TOL * corner <= 0.1 * tol)) or exact <= tol * unit
        stuck = minimum.n_iter == 0 and not minimum.converged  # no step leads to a finite value
        if where.good and care < 1.0 and exact > tol * unit:
            again = best is None or best[0] - exact > tol * max(exact, unit)
            where.good = not again
            if best is None or exact < best[0]:
                best = exact, where.L, corner
            if again:
                where.L = _lifted(where.L)
                where.corner, where.corrections = min(_WIDER * corner, FIRST_CORNER), None
                finish = near = False
        if where.good or report.stopped or where.done >= max_iter or stuck:
            break
        if best is not None and where.corrections is None:
            continue
        finish = finish or near
        if minimum.converged and not near and missing <= rounded:
            where.corner *= _CORNER_FACTOR
        # What was worth watching is kept where a list was too short, lest two lists take turns.
        too_short = missing > rounded
        most *= 1 + too_short
        pairs = problem.listed(pairs, nearby) if too_short else nearby
        round_length *= 2
    if best is not None and best[0] <= exact:
        where.L, where.corner = best[1:]


def _lifted(L: np.ndarray) -> np.ndarray:
    """The map with no direction much shorter than its longest one."""
    U, s, Vt = linalg.svd(L, full_matrices=False)
    return (U * np.maximum(s, _LIFTED * s[0])) @ Vt


def _union(pairs: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    """All pairs of both lists, once each, sorted."""
    keys = np.concatenate([p[:, 0].astype(np.int64) * n + p[:, 1] for p in (pairs, others)])
    keys.sort()  # np.unique would look all up in a table first, which takes longer
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    return read_only(np.stack(np.divmod(keys, n), axis=1).astype(np.int32))


class ListedMargins(MarginProblem):
    """``Σ d_near + c Σ [1 + d_near - d_far]_+`` over near pairs, each once, and comparisons."""

    def __init__(self, points: Any, tuples: IndexTuples, c: float, reg: float):
        self.tuples, self.near, self.far = tuples, tuples.near, tuples.far
        self.pulled = np.unique(np.sort(self.near, axis=1), axis=0)
        # No classes, and no targets: everything is looked at, and no part of it first.
        none = np.empty(0, dtype=np.intp)
        super().__init__(to_numpy(points), none, none, c, reg)
        self.unit, self.few = float(len(self.pulled)), True

    def on(self, points: Any) -> Self:
        """The same problem, its points in another precision."""
        return type(self)(points, self.tuples, self.c, self.reg)

    def _pulled_lengths(self, E: Any) -> tuple[np.ndarray, None]:
        return _squares(E, self.pulled), None

    def _over_all(self, E: Any, V: Any, corner: float = 0.0) -> tuple[float, Any]:
        excess = 1.0 + _squares(E, self.near) - _squares(E, self.far)
        active = np.flatnonzero(excess > 0)
        excess = excess[active]
        slope = np.clip(excess / corner, 0.0, 1.0) if corner > 0 else np.ones(len(excess))
        value = float(np.sum(slope * (excess - 0.5 * corner * slope)))
        value = float(np.sum(_squares(E, self.pulled))) + self.c * value
        if not V.shape[1]:
            return value, V
        rows = np.concatenate([self.pulled, self.near[active], self.far[active]])
        weights = [np.ones(len(self.pulled)), self.c * slope, -self.c * slope]
        return value, laplacian_product(rows[:, 0], rows[:, 1], np.concatenate(weights), V)


def _squares(E: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distances of pairs."""
    delta = differences(E, rows)
    return np.einsum("pi,pi->p", delta, delta).astype(np.float64)
