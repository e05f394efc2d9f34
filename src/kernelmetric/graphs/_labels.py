"""Graphs that come from class labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute import (
    Weights,
    class_neighbors,
    label_column,
    nearest_neighbors,
    warn,
)
from kernelmetric.graphs._counted import counted_neighbors, union_counts
from kernelmetric.graphs._neighbors import union_graph


def target_neighbors(X: Any, codes: np.ndarray, k: int) -> np.ndarray:
    """Rows of the k nearest points of the same class, nearest first.

    Parameters
    ----------
    X : array of shape (n, d)
        The points in which nearness is measured.
    codes : ndarray of shape (n,)
        Class codes.
    k : int
        Number of neighbours wanted.

    Returns
    -------
    ndarray of shape (n, min(k, n))
        -1 where a class has no further members; a warning says which classes.
    """
    warn_small_classes(codes, k)
    return class_neighbors(X, codes, min(k, len(codes)), same=True)[0]


def discriminant_graph(
    X: Any, codes: np.ndarray, k: int, weights: Weights | None = None
) -> sparse.csr_array:
    """Weights of DNE: +1 to the k nearest of the same class, -1 to the k nearest of others.

    A pair counts when either point is among the neighbours of the other (section 2.3 of [1]_).

    Parameters
    ----------
    X : array of shape (n, d)
        The points in which nearness is measured.
    codes : ndarray of shape (n,)
        Class codes.
    k : int
        Number of neighbours on either side.
    weights : Weights, default=None
        Of the points.

    Returns
    -------
    sparse array of shape (n, n)
        Symmetric, entries in {-1, 0, 1}. With weights, how many pairs of rows two points stand for,
        times the mean weight of their classes.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    warn_small_classes(codes, k, weights)
    if weights is not None:
        same, other = (
            union_counts(counted_neighbors(X, k, weights, codes, same=inside).matrix(), weights)
            for inside in (True, False)
        )
        W = sparse.diags_array(0.5 * weights.classes) @ (same - other)
        return sparse.csr_array(W + W.T)
    k = min(k, len(codes))
    same = union_graph(class_neighbors(X, codes, k, same=True)[0])
    other = union_graph(class_neighbors(X, codes, k, same=False)[0])
    return (same - other).tocsr()


def patch_graph(
    X: Any,
    codes: np.ndarray,
    k_same: int,
    k_other: int,
    beta: float,
    weights: Weights | None = None,
) -> sparse.csr_array:
    """Weights of DLA: the patches of all points added up [1]_.

    The patch of a point joins it to the nearest of its class with weight 1, and to the nearest of
    other classes with weight -β; a pair that two patches share counts twice.

    Parameters
    ----------
    X : array of shape (n, d)
        The points in which nearness is measured.
    codes : ndarray of shape (n,)
        Class codes.
    k_same, k_other : int
        Number of neighbours on either side.
    beta : float
        Weight β of the neighbours of other classes.
    weights : Weights, default=None
        Of the points.

    Returns
    -------
    sparse array of shape (n, n)
        Symmetric.

    References
    ----------
    .. [1] Zhang, Tao, Li and Yang, "Patch alignment for dimensionality reduction", IEEE
       Transactions on Knowledge and Data Engineering 21 (2009).
    """
    warn_small_classes(codes, k_same, weights)
    if weights is not None:
        W = counted_neighbors(X, k_same, weights, codes).matrix()
        W = W - float(beta) * counted_neighbors(X, k_other, weights, codes, same=False).matrix()
        W = sparse.diags_array(weights.shares) @ W
        return sparse.csr_array(W + W.T)
    k_same, k_other = min(k_same, len(codes)), min(k_other, len(codes))
    W = _adjacency(class_neighbors(X, codes, k_same, same=True)[0])
    W = W - float(beta) * _adjacency(class_neighbors(X, codes, k_other, same=False)[0])
    return (W + W.T).tocsr()


def heat_graph(
    X: Any, k: int, codes: np.ndarray | None = None, weights: Weights | None = None
) -> sparse.csr_array:
    """Weights of LPP: ``exp(-|x_i - x_j|² / t)`` between near points.

    A pair counts when either point is among the k nearest of the other; t is the mean squared
    distance of such pairs.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    k : int
        Number of neighbours.
    codes : ndarray of shape (n,), default=None
        Class codes, where only points of one class may be neighbours.
    weights : Weights, default=None
        Of the points, which meet no copies of themselves.

    Returns
    -------
    sparse array of shape (n, n)
        Symmetric, entries between 0 and 1; with weights, times the pairs of rows they stand for.
    """
    if weights is not None:
        if codes is not None:
            warn_small_classes(codes, k, weights)
        found = counted_neighbors(X, k, weights, codes)
        some = weights.counts[:, None] * found.parts
        D2 = np.where(found.parts > 0, found.squares, 0.0)
        t = float(np.sum(some * D2) / max(np.sum(some), 1e-300)) or 1.0
        heat = found.matrix(np.exp(-D2 / t))
        return union_counts(found.matrix(), weights).multiply(heat.maximum(heat.T)).tocsr()
    if codes is None:
        neighbors, D2 = nearest_neighbors(X, min(k, X.shape[0]))
    else:
        warn_small_classes(codes, k)
        neighbors, D2 = class_neighbors(X, codes, min(k, len(codes)), same=True)
    D2 = D2[neighbors >= 0]
    t = float(np.mean(D2)) if D2.any() else 1.0
    W = _adjacency(neighbors)
    W.data = np.exp(-D2 / t)
    return W.maximum(W.T).tocsr()


def laplacian(W: Any) -> sparse.csr_array:
    """Graph Laplacian ``D - W`` of symmetric weights, which may be negative.

    Parameters
    ----------
    W : sparse array of shape (n, n)
        Symmetric weights.

    Returns
    -------
    sparse array of shape (n, n)
        ``zᵀ (D - W) z = ½ Σ_ij w_ij (z_i - z_j)²``.
    """
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return (sparse.diags_array(degrees) - W).tocsr()


def warn_small_classes(codes: np.ndarray, k: int, weights: Weights | None = None) -> None:
    """Warn when a class has too few members for k neighbours inside it."""
    counts = np.bincount(codes)
    if weights is not None and weights.own.any():
        counts = np.bincount(codes, weights=weights.counts).astype(np.intp)
    small = counts[(counts > 0) & (counts <= k)]
    if len(small):
        warn(
            f"Got {len(small)} class(es) with at most n_neighbors={k} members (smallest: "
            f"{small.min()}): their points use the neighbours that exist"
            + (", and points alone in their class use none." if small.min() == 1 else "."),
            UserWarning,
        )


def warn_unlabelled(y: Any) -> np.ndarray:
    """Warn where -1 may be meant for rows without a label, as elsewhere; the labels in a column."""
    labels = label_column(y)
    if labels.dtype.kind in "if" and np.any(labels == -1) and not np.all(np.abs(labels) == 1):
        warn(
            f"Got {np.count_nonzero(labels == -1)} labels of -1 beside others: they are taken for "
            "a class like any other. Where -1 means that a label is not known, leave these rows "
            "out: try X[y != -1] and y[y != -1].",
            UserWarning,
        )
    return labels


def _adjacency(neighbors: np.ndarray) -> sparse.csr_array:
    """Ones from every point to its neighbours, in their order."""
    n = neighbors.shape[0]
    found = neighbors >= 0
    ends = np.concatenate([[0], np.cumsum(np.sum(found, axis=1))])
    return sparse.csr_array((np.ones(ends[-1]), neighbors[found], ends), shape=(n, n))
