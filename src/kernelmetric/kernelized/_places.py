"""Rows of the training table, each placed as if it had been left out, and how many vote there."""

import hashlib
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np

from kernelmetric.compute import in_memory, is_sparse, over_rows, take_rows, to_numpy
from kernelmetric.compute.reductions import k_smallest, nearest_neighbors
from kernelmetric.compute.watch import time_left, within
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs import Weights, is_objects
from kernelmetric.solvers import evenly

VOTERS = (1, 3, 5, 9, 15, 25, 40, 70, 100)
_JUDGES = 2_000  # rows that choose how many neighbours vote
_JUDGES_AFTER = 200  # where the time is over
_JUDGES_OF_KERNELS = 500  # rows that compare the metric with its kernel
_FEWEST_JUDGES = 20  # fewer say nothing
_SURE = 2.0  # standard errors beyond which the metric is worse than its kernel
_CHANCE = 1.0  # standard errors of the least error: numbers that make no more are as good


_SEARCHED: ContextVar[bool] = ContextVar("searched", default=False)


class NotBetterWarning(UserWarning):
    """Rows left out are predicted worse in a learned metric than by its kernel's own distances."""


def among_candidates() -> AbstractContextManager[Any]:
    """Within it no metric is compared with its kernel: a search compares it with others."""
    return within(_SEARCHED, True)


def fingerprint(X: Any) -> str | None:
    """What tells a table of checked points again; None of rows that stay on other machines."""
    if not in_memory(X):
        return None
    parts: tuple[Any, ...] = (X.keys(),) if is_objects(X) else (X,)
    if is_sparse(X):
        parts = X.indptr, X.indices, X.data
    digest = hashlib.blake2b(repr((X.shape, str(X.dtype))).encode(), digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(to_numpy(part)).data)
    return digest.hexdigest()


def other_neighbors(E: Any, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the other rows of E for some of its rows, and squared distances."""
    found = nearest_neighbors(E, k + 1, queries=take_rows(E, rows))
    own = found[0] == rows[:, None]
    own[~own.any(axis=1), -1] = True  # one of many copies may not be among them
    indices, squares = (part[~own].reshape(len(rows), k) for part in found)
    return indices, squares


def kernel_neighbors(kernel: Any, X: Any, rows: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of the other rows of X for some of its rows, by the kernel's own distances."""
    anchors, diagonal = kernel.anchors(X), to_numpy(kernel.diag(X))

    def nearest(part: slice) -> np.ndarray:
        squares = diagonal - 2.0 * to_numpy(kernel(take_rows(X, rows[part]), anchors))
        np.put_along_axis(squares, rows[part, None], np.inf, axis=1)
        return k_smallest(squares, k)[0]

    return np.concatenate(list(over_rows(nearest, len(rows), 4 * 8 * X.shape[0])))


def chosen_voters(E: Any, y: Any, weights: Weights | None = None) -> int | None:
    """How many neighbours predict rows best that are left out; None of too few rows."""
    E = to_numpy(E)
    n = len(E)
    if n <= VOTERS[0]:
        return None
    rows = evenly(n, min(n, _JUDGES if time_left() > 0 else _JUDGES_AFTER))
    found, _ = other_neighbors(E, rows, max(k for k in VOTERS if k < n))
    return _chosen(found, rows, coded_targets(y, E), _mass(weights, rows))[0]


def worse_than_kernel(
    kernel: Any, X: Any, E: Any, y: Any, weights: Weights | None = None
) -> str | None:
    """What to say where rows left out are predicted worse in E than by the kernel's distances."""
    E = to_numpy(E)
    n = len(E)
    rows = evenly(n, min(n, _JUDGES_OF_KERNELS))
    if len(rows) < _FEWEST_JUDGES or _SEARCHED.get() or time_left() <= 0:
        return None
    targets, mass = coded_targets(y, E), _mass(weights, rows)
    k = max(k for k in VOTERS if k < n)
    lists = (other_neighbors(E, rows, k)[0], kernel_neighbors(kernel, X, rows, k))
    both = (_chosen(found, rows, targets, mass) for found in lists)
    (learned, wrong), (plain, wrong_of_kernel) = both
    excess = wrong - wrong_of_kernel
    mean = np.average(excess, weights=mass)
    if mean <= _SURE * np.sqrt(np.average((excess - mean) ** 2, weights=mass) / len(rows)):
        return None
    loss = "mean squared error" if targets.values is not None else "share of wrong classes"
    values = [float(np.average(part, weights=mass)) for part in (wrong, wrong_of_kernel)]
    return (
        f"The learned metric is not better than its kernel: {loss} {values[0]:.3g} by {learned} "
        f"neighbours in the metric, but {values[1]:.3g} by {plain} in the kernel's own distances, "
        f"{len(rows)} rows each left out. Try another learner, another space such as KPCA(10), or "
        "the kernel as it is: KPCA(kernel=...) gives its coordinates."
    )


def _mass(weights: Weights | None, rows: np.ndarray) -> np.ndarray:
    """How much each judging row counts."""
    return np.ones(len(rows)) if weights is None else weights.shares[rows]


def _chosen(
    found: np.ndarray, rows: np.ndarray, targets: Any, mass: np.ndarray
) -> tuple[int, np.ndarray]:
    """The number of neighbours that predicts rows best, and what each row loses by it.

    Of numbers whose votes are wrong about as rarely, the one whose shares are the best
    probabilities.
    """
    counts = np.arange(1.0, found.shape[1] + 1.0)
    numbers = [k for k in VOTERS if k <= found.shape[1]]
    if targets.values is not None:
        means = np.cumsum(targets.values[found], axis=1) / counts[:, None]
        squares = np.sum((means - targets.values[rows, None]) ** 2, axis=2)
        number = min(numbers, key=lambda k: float(mass @ squares[:, k - 1]))
        return number, squares[:, number - 1]
    hits = np.cumsum(targets.key[found] == targets.key[rows, None], axis=1)
    classes = int(targets.key.max()) + 1
    losses = mass @ -np.log((hits + 1.0 / classes) / (counts + 1.0))
    wrong = {k: _wrong(targets.key, found[:, :k], rows) for k in numbers}
    shares = {k: float(np.average(wrong[k], weights=mass)) for k in numbers}
    least = min(shares.values())
    chance = np.sqrt(least * (1.0 - least) / len(rows))
    good = [k for k in numbers if shares[k] <= least + _CHANCE * chance]
    number = min(good, key=lambda k: float(losses[k - 1]))
    return number, wrong[number]


def _wrong(codes: np.ndarray, found: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """1 for each row that most of its neighbours give another class, 0 for the others."""
    n_classes = int(codes.max()) + 1
    cells = np.arange(len(rows))[:, None] * n_classes + codes[found]
    votes = np.bincount(cells.ravel(), minlength=len(rows) * n_classes).reshape(-1, n_classes)
    return (votes.argmax(axis=1) != codes[rows]).astype(np.float64)
