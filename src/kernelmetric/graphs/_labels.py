"""Graphs that come from class labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute import class_neighbors
from kernelmetric.graphs._neighbor_graphs import neighbor_graph


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
    ndarray of shape (n, k)
        -1 where a class has no further members; a warning says which classes.
    """
    warn_small_classes(codes, k)
    return class_neighbors(X, codes, k, same=True)[0]


def discriminant_graph(X: Any, codes: np.ndarray, k: int) -> sparse.csr_array:
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

    Returns
    -------
    sparse array of shape (n, n)
        Symmetric, entries in {-1, 0, 1}.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    warn_small_classes(codes, k)
    same = neighbor_graph(class_neighbors(X, codes, k, same=True)[0])
    other = neighbor_graph(class_neighbors(X, codes, k, same=False)[0])
    return (same - other).tocsr()


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


def warn_small_classes(codes: np.ndarray, k: int) -> None:
    """Warn when a class has too few members for k neighbours inside it."""
    counts = np.bincount(codes)
    small = counts[(counts > 0) & (counts <= k)]
    if len(small):
        warnings.warn(
            f"Got {len(small)} class(es) with at most n_neighbors={k} members (smallest: "
            f"{small.min()}): their points use the neighbours that exist"
            + (", and points alone in their class use none." if small.min() == 1 else "."),
            UserWarning,
            stacklevel=4,
        )
