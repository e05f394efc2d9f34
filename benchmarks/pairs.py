"""Problems of many pairs, solved to a certified gap; ``cases.py`` times them."""

from __future__ import annotations

import time

import numpy as np

from kernelmetric.graphs import Pairs
from kernelmetric.solvers import PairDual, solve_pairs

GAP = 1e-3


def labelled_points(n, rank, n_classes=10, seed=0):
    """Overlapping Gaussian classes, one for each of some random means."""
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=n)
    return rng.standard_normal((n, rank)) + 0.5 * rng.standard_normal((n_classes, rank))[y], y


def make_problem(n_pairs, rank=100, C=1e3, nu=0.2, *, psd=True):
    """Random pairs, half of them similar, in units of their mean squared distance."""
    X, y = labelled_points(max(200, n_pairs // 8), rank)
    pairs = Pairs.from_labels(y, per_point=6, random_state=0)
    chosen = np.random.RandomState(0).permutation(len(pairs))[:n_pairs]
    pairs = pairs.take(np.sort(chosen))
    rows = pairs.rows
    scale = np.mean([np.sum((X[i] - X[j]) ** 2) for i, j in rows[:2000]])
    upper = np.where(pairs.is_similar, C / len(pairs.similar), C / len(pairs.dissimilar))
    signs = np.where(pairs.is_similar, -1.0, 1.0)
    return PairDual(X / np.sqrt(scale), rows, signs, upper, nu * C, psd=psd)


def solved(n_pairs, solver):
    """Seconds to the gap, the primal value, and what was certified."""
    problem = make_problem(n_pairs)
    start = time.perf_counter()
    found = solve_pairs(problem, tol=GAP, solver=solver, sharp=False)
    return {
        "seconds": time.perf_counter() - start,
        "value": found.certificate.primal,
        "iterations": found.n_iter,
        "note": f"certified gap {found.certificate.gap:.1e}",
    }
