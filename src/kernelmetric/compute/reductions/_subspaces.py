"""Distances between affine subspaces: points that may move along a few directions of their own."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import namespace, to_numpy
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._device import to_device
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends import backend_of

_GATHER_BYTES = 2**20  # subspaces gathered for one product: they should stay in the second cache
_PAIRS = 8192  # small systems solved side by side


def subspace_distances(
    S: np.ndarray, T: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Squared distances between affine subspaces, for a list of pairs, in O(p r² d) time.

    ``min |(a + Q_aᵀα) - (b + Q_bᵀβ)|² = |δ|² - |u|² - wᵀ (I - MᵀM)⁻¹ w`` with δ = a - b, u = Q_a δ,
    M = Q_a Q_bᵀ and w = Q_b δ - Mᵀu. S and T (n, r + 1, d) have the point, then r rows, orthonormal
    or zero. Equal rows in ``first`` should stand together.
    """
    if len(first) == 0:
        return np.empty(0, dtype=S.dtype)
    same, S, first, second = T is S, to_device(S), to_device(first), to_device(second)
    T, host = S if same else to_device(T), backend_of(S).host
    most = _PAIRS if host else tile_rows(S, 3 * S.shape[1] * S.shape[2], 0)
    per_pair = 4 * S.shape[1] ** 2 * itemsize_of(S)
    tiles = over_tiles(
        partial(_distances, S, T, _inner_products(S), _inner_products(T), first, second),
        list(row_blocks(len(first), per_pair, most=most)),
        flops=2.0 * len(first) * S.shape[1] ** 2 * S.shape[2],
        host=host,
    )
    return np.concatenate(tiles)


def _distances(
    S: Any, T: Any, own_s: Any, own_t: Any, first: Any, second: Any, block: slice
) -> np.ndarray:
    """The tile: some of the pairs, whose subspaces a device gathers all at once."""
    i, j = first[block], second[block]
    cross = _cross_products(S, T, i, j) if isinstance(S, np.ndarray) else S[i] @ T[j].mT
    return to_numpy(_from_products(cross, own_s[i], own_t[j]))


def _inner_products(S: Any) -> Any:
    """|a|² and Q_a a of every subspace."""
    return (S @ S[:, 0, :, None])[:, :, 0]


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


def _from_products(grams: Any, own_a: Any, own_b: Any) -> Any:
    """The formula, for all pairs side by side: the small indices come first."""
    xp = namespace(grams)
    G = xp.asarray(xp.permute_dims(grams, (1, 2, 0)), copy=True)
    own_a, own_b = own_a.T, own_b.T
    M = G[1:, 1:]
    u = own_a[1:] - G[1:, 0]
    w = G[0, 1:] - own_b[1:] - xp.einsum("ijp,ip->jp", M, u)
    B = -xp.einsum("kip,kjp->ijp", M, M)
    squared = own_a[0] + own_b[0] - 2 * G[0, 0] - xp.einsum("ip,ip->p", u, u)
    for j in range(B.shape[0]):  # Cholesky without its roots
        # Where two subspaces share a direction, w is zero up to rounding and so may the pivot be.
        pivot = B[j, j] + (1 + 64 * xp.finfo(G.dtype).eps)
        squared -= w[j] ** 2 / pivot
        factor = B[j + 1 :, j] / pivot
        B[j + 1 :, j + 1 :] -= factor[:, None] * B[j, j + 1 :]
        w[j + 1 :] -= factor * w[j]
    return xp.clip(squared, 0.0, None)
