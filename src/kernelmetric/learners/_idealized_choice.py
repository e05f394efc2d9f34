"""How strongly should pairs pull? Cross-validation over the points of the pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from kernelmetric.graphs import Pairs
from kernelmetric.solvers import PairDual, positive_part, solve_pairs

GRID = tuple(10.0**k for k in range(1, 9))
_WITHOUT_EVIDENCE = 1e3  # where no fold has pairs of both kinds on both sides
_N_FOLDS = 5
_MOST_PAIRS = 1000  # of a fold: enough for a power of ten


def choose_C(
    Z: np.ndarray,
    pairs: Pairs,
    make: Any,
    *,
    clip: bool,
    random_state: Any = None,
    grid: tuple[float, ...] = GRID,
) -> tuple[float, np.ndarray]:
    """The C of the grid whose metric tells pairs of points left out apart best.

    Points are cut into folds. Pairs inside the other folds teach, pairs with a point in the fold
    are judged: by the area under the ROC curve of their learned distances.

    Parameters
    ----------
    Z : ndarray of shape (n, r)
        Coordinates.
    pairs : Pairs
        Pairs of both kinds.
    make : callable
        From coordinates, pairs and C to a :class:`PairDual`.
    clip : bool
        Whether metrics are judged by their positive part.
    random_state : int, RandomState or None, default=None
        For the folds.
    grid : tuple of float
        Values to try.

    Returns
    -------
    C : float
        The smallest of the best.
    scores : ndarray of shape (len(grid),)
        Mean area under the curve of each.
    """
    rng = check_random_state(random_state)
    fold_of = rng.permutation(Z.shape[0]) % _N_FOLDS
    rows, alike = pairs.rows, pairs.is_similar
    scores: list[list[float]] = []
    for fold in range(_N_FOLDS):
        outside = np.any(fold_of[rows] == fold, axis=1)
        teach, judge = _some(~outside, rng), _some(outside, rng)
        if any(len(np.unique(alike[chosen])) < 2 for chosen in (teach, judge)):
            continue
        judged = Z[rows[judge, 0]] - Z[rows[judge, 1]]
        scores.append([])
        for C in grid:
            problem: PairDual = make(Z, pairs.take(np.sort(teach)), C)
            M = solve_pairs(problem, tol=1e-2, max_iter=300, sharp=False).metric
            q = np.einsum("pi,pi->p", judged @ (positive_part(M) if clip else M), judged)
            scores[-1].append(roc_auc_score(~alike[judge], q))
    if not scores:
        return _WITHOUT_EVIDENCE, np.full(len(grid), np.nan)
    mean = np.mean(scores, axis=0)
    return grid[int(np.argmax(mean > mean.max() - 1e-9))], mean


def _some(mask: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    chosen = np.flatnonzero(mask)
    if len(chosen) <= _MOST_PAIRS:
        return chosen
    return rng.choice(chosen, _MOST_PAIRS, replace=False)
