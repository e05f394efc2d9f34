"""Distances between affine subspaces: points that may move along a few directions of their own."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from kernelmetric.compute._budget import row_blocks
from kernelmetric.compute._execute import over_tiles

_GATHER_BYTES = 2**20  # subspaces gathered for one product: they should stay in the second cache
_PAIRS = 8192  # small systems solved side by side


def subspace_distances(
    S: np.ndarray, T: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    r"""Squared distances between affine subspaces, for a list of pairs.

    .. math:: \min_{\alpha, \beta} \| (a + Q_a^\top \alpha) - (b + Q_b^\top \beta) \|^2
              = |\delta|^2 - |u|^2 - w^\top (I - M^\top M)^{-1} w

    with :math:`\delta = a - b,\; u = Q_a \delta,\; M = Q_a Q_b^\top,\; w = Q_b \delta - M^\top u`.
    All of it comes from the inner products between (a, Q_a) and (b, Q_b).

    Parameters
    ----------
    S : ndarray of shape (n, r + 1, d)
        The point a, then r rows Q_a, orthonormal or zero, of each subspace.
    T : ndarray of shape (m, r + 1, d)
        Other subspaces; may be S.
    first : ndarray of shape (p,)
        For each pair the row in S. Equal ones should stand together: S is read once for a run.
    second : ndarray of shape (p,)
        For each pair the row in T.

    Returns
    -------
    ndarray of shape (p,)
        Never negative. Directions that two subspaces share up to rounding count once.

    Notes
    -----
    O(p r² d) time; some megabytes beyond the arguments for each thread.
    """
    if len(first) == 0:
        return np.empty(0, dtype=S.dtype)
    per_pair = 4 * S.shape[1] ** 2 * S.itemsize
    tiles = over_tiles(
        partial(_distances, S, T, _inner_products(S), _inner_products(T), first, second),
        list(row_blocks(len(first), per_pair, most=_PAIRS)),
        flops=2.0 * len(first) * S.shape[1] ** 2 * S.shape[2],
    )
    return np.concatenate(tiles)


def _distances(
    S: np.ndarray,
    T: np.ndarray,
    own_s: np.ndarray,
    own_t: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    block: slice,
) -> np.ndarray:
    """The tile: some of the pairs."""
    i, j = first[block], second[block]
    return _from_products(_cross_products(S, T, i, j), own_s[i], own_t[j])


def _inner_products(S: np.ndarray) -> np.ndarray:
    """|a|² and Q_a a of every subspace."""
    return np.matmul(S, S[:, 0, :, None])[:, :, 0]


def _cross_products(S: np.ndarray, T: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Inner products between the rows of S[i] and of T[j], pair by pair."""
    grams = np.empty((len(i), S.shape[1], T.shape[1]), dtype=S.dtype)
    step = max(1, _GATHER_BYTES // (T[0].nbytes or 1))
    edges = np.flatnonzero(np.diff(i, prepend=-1, append=-1))
    for start, stop in pairwise(edges):
        row = S[i[start]]
        for low in range(start, stop, step):
            chunk = slice(low, min(low + step, stop))
            others = T[j[chunk]].reshape(-1, T.shape[2])
            products = others @ row.T  # one GEMM for a run of pairs
            grams[chunk] = products.reshape(-1, T.shape[1], S.shape[1]).transpose(0, 2, 1)
    return grams


def _from_products(grams: np.ndarray, own_a: np.ndarray, own_b: np.ndarray) -> np.ndarray:
    """The formula, for all pairs side by side: the small indices come first."""
    G = np.ascontiguousarray(grams.transpose(1, 2, 0))
    own_a, own_b = own_a.T, own_b.T
    M = G[1:, 1:]
    u = own_a[1:] - G[1:, 0]
    w = G[0, 1:] - own_b[1:] - np.einsum("ijp,ip->jp", M, u)
    B = -np.einsum("kip,kjp->ijp", M, M)
    r = len(B)
    # Where two subspaces share a direction, w is zero up to rounding and so may the pivot be.
    B[np.arange(r), np.arange(r)] += 1 + 64 * np.finfo(G.dtype).eps
    squared = own_a[0] + own_b[0] - 2 * G[0, 0] - np.einsum("ip,ip->p", u, u)
    for j in range(r):  # Cholesky without its roots
        squared -= w[j] ** 2 / B[j, j]
        factor = B[j + 1 :, j] / B[j, j]
        B[j + 1 :, j + 1 :] -= factor[:, None] * B[j, j + 1 :]
        w[j + 1 :] -= factor * w[j]
    return np.maximum(squared, 0)
