"""Neighbours of points that count more or less than once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kernelmetric.compute import Weights, class_neighbors, nearest_neighbors


class Counted(NamedTuple):
    """The nearest points of each point, until they count k together.

    Attributes
    ----------
    rows : ndarray of int of shape (n, m)
        Nearest first, -1 for none. Copies of a point are its own row, and come first of all.
    parts : ndarray of shape (n, m)
        How much each of them counts; of the last one, what is missing to k.
    squares : ndarray of shape (n, m)
        Their squared distances; inf for none.
    """

    rows: np.ndarray
    parts: np.ndarray
    squares: np.ndarray

    def matrix(self, values: np.ndarray | None = None) -> sparse.csr_array:
        """The parts, or other numbers of each, as a matrix; copies of a point left out."""
        n = len(self.rows)
        there = (self.rows >= 0) & (self.rows != np.arange(n)[:, None])
        i, slot = np.nonzero(there)
        entries = (self.parts if values is None else values)[i, slot]
        return sparse.csr_array((entries, (i, self.rows[i, slot])), shape=(n, n))


def counted_neighbors(
    X: Any, k: float, weights: Weights, codes: np.ndarray | None = None, *, same: bool = True
) -> Counted:
    """The k nearest neighbours among rows repeated as often as they count.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    k : float
        How much the neighbours of a point count together, where there are so many.
    weights : Weights
        What each point counts, and how many copies of itself it meets.
    codes : ndarray of shape (n,), default=None
        Class codes, where neighbours are sought inside the class of a point, or outside it.
    same : bool, default=True
        Whether inside.

    Returns
    -------
    Counted
        As many columns as the point with most neighbours needs.
    """
    n = X.shape[0]
    first = np.minimum(weights.own, k) if same else np.zeros(n)
    width = int(min(k, n))
    while True:
        if codes is None:
            rows, squares = nearest_neighbors(X, width)
        else:
            rows, squares = class_neighbors(X, codes, width, same=same)
        counts = np.where(rows >= 0, weights.counts[rows], 0.0)
        before = np.cumsum(counts, axis=1) - counts + first[:, None]
        reached = before[:, -1] + counts[:, -1] >= k
        if width >= n or np.all(reached | (rows[:, -1] < 0)):
            break
        width = min(2 * width, n)
    parts = np.clip(k - before, 0.0, counts)
    own = np.where(first > 0, np.arange(n), -1)
    rows = np.column_stack([own, np.where(parts > 0, rows, -1)])
    parts = np.column_stack([first, parts])
    squares = np.column_stack([np.where(first > 0, 0.0, np.inf), squares])
    used = max(int(np.flatnonzero((parts > 0).any(axis=0))[-1]) + 1, 1) if parts.any() else 1
    return Counted(rows[:, :used], parts[:, :used], np.where(rows < 0, np.inf, squares)[:, :used])


def union_counts(parts: sparse.csr_array, weights: Weights) -> sparse.csr_array:
    """Pairs of repeated rows one of which is a neighbour of the other, for each pair of points.

    Each of the w_i copies of point i has the first t_ij copies of point j among its neighbours,
    and the other way round: ``w_i t_ij + w_j t_ji - t_ij t_ji`` pairs have either.

    Parameters
    ----------
    parts : sparse array of shape (n, n)
        t: how much each point counts among the neighbours of another.
    weights : Weights
        w.

    Returns
    -------
    sparse array of shape (n, n)
        Symmetric.
    """
    one_way = sparse.diags_array(weights.counts) @ parts
    return sparse.csr_array(one_way + one_way.T - parts.multiply(parts.T))
