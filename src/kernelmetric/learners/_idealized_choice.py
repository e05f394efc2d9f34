"""How strongly should pairs pull? Cross-validation over the points of the pairs."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from kernelmetric.compute import small_steps
from kernelmetric.compute.watch import time_left, warn_of_choice
from kernelmetric.graphs import IndexTuples, Pairs, rows_by_place
from kernelmetric.solvers import PairDual, PairSolution, newton, positive_part, solve_pairs

GRID = tuple(10.0**k for k in range(1, 9))
_WITHOUT_EVIDENCE = 1e3  # where no fold has pairs of both kinds on both sides
_N_FOLDS = 5
_TOL = 1e-2  # relative duality gap of a metric that is judged
MOST_PAIRS = 1000  # of a fold: enough for a power of ten
_FEWER_PAIRS = 500  # that teach it, in more coordinates than these: steps take N³ operations there
_FEW_COORDINATES = 20
_Path = list[tuple[float, np.ndarray, np.ndarray]]  # C, multipliers, metric
_MOST_STEPS = 5  # of Newton: one or two are the rule
_LAST_SOLUTION = 5.0  # times as long as that of a fold takes the one that is left to do
_SETTLED = 100.0  # margin, in mean squared distances: beyond it a larger C only scales the metric


def choose_C(
    Z: np.ndarray,
    pairs: Pairs | IndexTuples,
    make: Any,
    *,
    clip: bool,
    counts: Callable[[Pairs], np.ndarray],
    random_state: Any = None,
) -> tuple[float, np.ndarray]:
    """The largest C whose metric tells pairs of left-out points apart about as well as the best."""
    rng = check_random_state(random_state)
    most = MOST_PAIRS if Z.shape[1] <= _FEW_COORDINATES else _FEWER_PAIRS
    folds = list(folds_of_points(Z, pairs, most, rng))
    if not folds:
        return _WITHOUT_EVIDENCE, np.empty(0)
    scores: list[list[float]] = []
    paths: list[_Path] = [[] for _ in folds]
    r, took = Z.shape[1], 0.0
    with small_steps(most * max(min(r * (r + 1) // 2, most), r) ** 2):  # of a Newton step
        for C in GRID:
            row: list[float] = []
            margins = []
            for (teach, judge), path in zip(folds, paths, strict=True):
                if (scores or row) and time_left() <= _LAST_SOLUTION * took:
                    scores = scores or [row]
                    warn_of_choice("C", len(scores))
                    return _chosen(scores)
                begun = time.monotonic()
                found = _solved(make(Z, teach, C), C, path)
                took = max(took, time.monotonic() - begun)
                path.append((C, found.alpha, found.metric))
                M = positive_part(found.metric) if clip else found.metric
                row.append(_score(Z, judge, M, counts))
                margins.append(found.certificate.gamma)
            scores.append(row)
            if min(margins) > _SETTLED:
                break
    return _chosen(scores)


def _chosen(scores: list[list[float]]) -> tuple[float, np.ndarray]:
    """The C to take, and the mean score of each that was tried."""
    tried = np.array(scores)
    return GRID[_largest_good(tried)], tried.mean(axis=1)


def _score(Z: np.ndarray, judge: Pairs | IndexTuples, M: np.ndarray, counts: Any) -> float:
    """How well a metric tells pairs apart, or orders what is compared."""

    def squares(rows: np.ndarray) -> np.ndarray:
        delta = Z[rows[:, 0]] - Z[rows[:, 1]]
        return np.einsum("pi,pi->p", delta @ M, delta)

    if isinstance(judge, IndexTuples):
        return float(np.mean(squares(judge.near) < squares(judge.far)))
    weights = counts(judge)
    return float(roc_auc_score(~judge.is_similar, squares(judge.rows), sample_weight=weights))


def _tells(part: Pairs | IndexTuples) -> bool:
    """Whether there is something to learn from, or to judge by."""
    if isinstance(part, IndexTuples):
        return len(part) > 0
    return bool(len(part.similar) and len(part.dissimilar))


def _solved(problem: PairDual, C: float, path: _Path) -> PairSolution:
    """An answer good enough to judge by: the last piece of a path linear in C, or a solution."""
    # Where C only scales the metric, or gives back the prior one, the certificate says so.
    starts: list[Any] = [(problem.upper, None)]
    if path:
        C_2, *last = path[-1]
        starts = [[C / C_2 * now for now in last]]
        for C_1, *before in path[-2:-1]:
            far = (C - C_2) / (C_2 - C_1)
            starts += [[now + far * (now - then) for now, then in zip(last, before, strict=True)]]
    for alpha, metric in starts:
        alpha = problem.project(alpha, np.ones(len(problem)))
        found = problem.solution(alpha, 0, _TOL, "extrapolated", metric)
        if found.converged:
            return found
    r = problem.Z.shape[1]
    if len(problem) <= r * (r + 1) // 2:  # more are sums of each other: the dual is flat there
        found = newton(problem, found, tol=_TOL, max_iter=_MOST_STEPS)
        if found.converged:
            return found
    near = path[-1][2] if path else None
    return solve_pairs(problem, tol=_TOL, max_iter=300, metric=near, sharp=False)


def folds_of_points(
    Z: np.ndarray, pairs: Pairs | IndexTuples, most: int, rng: np.random.RandomState
) -> Iterator[tuple[Any, Any]]:
    """Pairs that teach and pairs that judge, both kinds in either; fewer folds where that fails."""
    n = pairs.n_samples
    fold_of, place = np.empty((2, n), dtype=np.intp)
    rows = rows_by_place(Z)  # so that their order does not matter
    fold_of[rows], place[rows] = rng.permutation(n) % _N_FOLDS, np.arange(n)
    places = place[pairs.rows]
    keys = places if isinstance(pairs, IndexTuples) else np.sort(places, axis=1)
    pairs = pairs.take(np.lexsort(keys.T))
    for fold in range(_N_FOLDS):
        outside = np.any(fold_of[pairs.rows] == fold, axis=1)
        teach = pairs.take(_some(~outside, most, rng))
        judge = pairs.take(_some(outside, MOST_PAIRS, rng))
        if _tells(teach) and _tells(judge):
            yield teach, judge


def _largest_good(scores: np.ndarray) -> int:
    """The last row as good as the best, up to the standard error of their difference."""
    behind = scores[np.argmax(scores.mean(axis=1))] - scores
    n_folds = scores.shape[1]
    error = behind.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    return int(np.flatnonzero(behind.mean(axis=1) <= error + 1e-9)[-1])


def _some(mask: np.ndarray, most: int, rng: np.random.RandomState) -> np.ndarray:
    chosen = np.flatnonzero(mask)
    if len(chosen) <= most:
        return chosen
    return np.sort(rng.choice(chosen, most, replace=False))
