"""Graphs that come from class labels."""

from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric._warnings import warn
from kernelmetric.compute.reductions import class_neighbors, nearest_neighbors
from kernelmetric.graphs._neighbors import adjacency, union_graph
from kernelmetric.inputs import Weights, label_column


def target_neighbors(X: Any, codes: np.ndarray, k: int) -> np.ndarray:
    """Rows of the k nearest points of the same class; -1, and a warning, where there are fewer."""
    warn_small_classes(codes, k)
    return class_neighbors(X, codes, min(k, len(codes)), same=True)[0]


def neighbor_parts(neighbors: np.ndarray, weights: Weights) -> np.ndarray:
    """What each neighbour of a point counts: in proportion to its weight, one on average."""
    found = neighbors >= 0
    parts = np.where(found, weights.masses[neighbors], 0.0)
    sums = np.sum(parts, axis=1, keepdims=True)
    return parts * (np.sum(found, axis=1, keepdims=True) / np.where(sums > 0, sums, 1.0))


def discriminant_graph(
    X: Any, codes: np.ndarray, k: int, weights: Weights | None = None
) -> sparse.csr_array:
    """Weights of DNE: +1 to the k nearest of the same class, -1 to the k nearest of others.

    A symmetric sparse array. A pair counts when either point is among the neighbours of the other
    (section 2.3 of [1]_); with weights, times what the two points give the pair.

    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    same = target_neighbors(X, codes, k)
    other = class_neighbors(X, codes, min(k, len(codes)), same=False)[0]
    return (_union(same, weights) - _union(other, weights)).tocsr()


def patch_graph(
    X: Any,
    codes: np.ndarray,
    k_same: int,
    k_other: int,
    beta: float,
    weights: Weights | None = None,
) -> sparse.csr_array:
    """Weights of DLA: the patches of all points added up [1]_, a symmetric sparse array.

    The patch of a point joins it to the nearest of its class with weight 1, and to the nearest of
    other classes with weight -β; a pair that two patches share counts twice.

    .. [1] Zhang, Tao, Li and Yang, "Patch alignment for dimensionality reduction", IEEE
       Transactions on Knowledge and Data Engineering 21 (2009).
    """
    same = target_neighbors(X, codes, k_same)
    other = class_neighbors(X, codes, min(k_other, len(codes)), same=False)[0]
    W = adjacency(same, _given(same, weights))
    W = W - float(beta) * adjacency(other, _given(other, weights))
    return (W + W.T).tocsr()


def heat_graph(
    X: Any, k: int, codes: np.ndarray | None = None, weights: Weights | None = None
) -> sparse.csr_array:
    """Weights of LPP: ``exp(-|x_i - x_j|² / t)`` between near points, a symmetric sparse array.

    A pair counts when either point is among the k nearest of the other, of one class if ``codes``
    are given; t is the mean squared distance of such pairs.
    """
    if codes is None:
        neighbors, D2 = nearest_neighbors(X, min(k, X.shape[0]))
    else:
        warn_small_classes(codes, k)
        neighbors, D2 = class_neighbors(X, codes, min(k, len(codes)), same=True)
    found, given = neighbors >= 0, _given(neighbors, weights)
    counted = None if given is None else given[found]
    t = float(np.average(D2[found], weights=counted)) if D2[found].any() else 1.0
    W = adjacency(neighbors, np.exp(-D2 / t))
    W = W.maximum(W.T).tocsr()
    return W if weights is None else W.multiply(_union(neighbors, weights)).tocsr()


def laplacian(W: Any) -> sparse.csr_array:
    """Graph Laplacian of symmetric weights: ``zᵀ (D - W) z = ½ Σ_ij w_ij (z_i - z_j)²``."""
    return (sparse.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W).tocsr()


def warn_small_classes(codes: np.ndarray, k: int) -> None:
    """Warn when a class has too few members for k neighbours inside it."""
    counts = np.bincount(codes)
    small = counts[(counts > 0) & (counts <= k)]
    if len(small):
        warn(
            f"Got {len(small)} class(es) with at most n_neighbors={k} members (smallest: "
            f"{small.min()}): their points use the neighbours that exist"
            + (", and points alone in their class use none." if small.min() == 1 else "."),
        )


def warn_unlabelled(y: Any) -> np.ndarray:
    """Warn where -1 may be meant for rows without a label, as elsewhere; the labels in a column."""
    labels = label_column(y)
    if labels.dtype.kind in "if" and np.any(labels == -1) and not np.all(np.abs(labels) == 1):
        warn(
            f"Got {np.count_nonzero(labels == -1)} labels of -1 beside others: they are taken for "
            "a class like any other. Where -1 means that a label is not known, leave these rows "
            "out: try X[y != -1] and y[y != -1].",
        )
    return labels


def _given(neighbors: np.ndarray, weights: Weights | None) -> np.ndarray | None:
    """What every point gives each of its neighbours by weights."""
    if weights is None:
        return None
    return weights.shares[:, None] * neighbor_parts(neighbors, weights)


def _union(neighbors: np.ndarray, weights: Weights | None) -> sparse.csr_array:
    """Neighbours on either side; with weights, the mean of what those that are give the pair."""
    if weights is None:
        return union_graph(neighbors)
    A, givers = adjacency(neighbors, _given(neighbors, weights)), adjacency(neighbors)
    givers = givers + givers.T
    givers.data = 1.0 / givers.data
    return ((A + A.T).multiply(givers)).tocsr()
