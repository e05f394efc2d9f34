"""Rows of the training table, each placed as if it had been left out, and how many vote there."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from kernelmetric.compute import Weights, is_sparse, nearest_neighbors, streamed, to_numpy
from kernelmetric.graphs import coded_targets
from kernelmetric.solvers import evenly

VOTERS = (1, 3, 5, 9, 15, 25, 40, 70, 100)
_JUDGES = 2_000  # rows that choose how many neighbours vote
_CHANCE = 1.0  # standard errors of the least error: numbers that make no more are as good


def fingerprint(X: Any) -> str | None:
    """What tells a table of checked points again; None of rows that stay on other machines."""
    if streamed(X):
        return None
    parts = (X.indptr, X.indices, X.data) if is_sparse(X) else (X,)
    digest = hashlib.blake2b(repr((X.shape, str(X.dtype))).encode(), digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(to_numpy(part)).data)
    return digest.hexdigest()


def other_neighbors(E: np.ndarray, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the other rows of E for some of its rows, and squared distances."""
    found = nearest_neighbors(E, k + 1, queries=E[rows])
    own = found[0] == rows[:, None]
    own[~own.any(axis=1), -1] = True  # one of many copies may not be among them
    indices, squares = (part[~own].reshape(len(rows), k) for part in found)
    return indices, squares


def chosen_voters(E: Any, y: Any, weights: Weights | None = None) -> int | None:
    """How many neighbours predict rows best that are left out; None of too few rows."""
    E = to_numpy(E)
    n = len(E)
    numbers = [k for k in VOTERS if k < n]
    if not numbers:
        return None
    targets = coded_targets(y, E)
    rows = evenly(n, min(n, _JUDGES))
    k = numbers[-1]
    found, _ = other_neighbors(E, rows, k)
    mass = np.ones(len(rows)) if weights is None else weights.shares[rows]
    counts = np.arange(1.0, k + 1.0)
    if targets.values is not None:
        means = np.cumsum(targets.values[found], axis=1) / counts[:, None]
        losses = mass @ np.sum((means - targets.values[rows, None]) ** 2, axis=2)
        return min(numbers, key=lambda number: float(losses[number - 1]))
    hits = np.cumsum(targets.key[found] == targets.key[rows, None], axis=1)
    classes = int(targets.key.max()) + 1
    losses = mass @ -np.log((hits + 1.0 / classes) / (counts + 1.0))
    wrong = {number: _wrong(targets.key, found[:, :number], rows, mass) for number in numbers}
    least = min(wrong.values())
    chance = np.sqrt(least * (1.0 - least) / len(rows))
    good = [number for number in numbers if wrong[number] <= least + _CHANCE * chance]
    return min(good, key=lambda number: float(losses[number - 1]))


def _wrong(codes: np.ndarray, found: np.ndarray, rows: np.ndarray, mass: np.ndarray) -> float:
    """Share of rows that most of their neighbours give another class."""
    n_classes = int(codes.max()) + 1
    cells = np.arange(len(rows))[:, None] * n_classes + codes[found]
    votes = np.bincount(cells.ravel(), minlength=len(rows) * n_classes).reshape(-1, n_classes)
    return float(np.average(votes.argmax(axis=1) != codes[rows], weights=mass))
