"""The softmax of NCA over near points alone, with a certificate for what is left out.

A point at squared distance ``m_i + log(n / eps)`` from x_i, with ``m_i`` that of its nearest
neighbour, has at most a share ``eps / n`` of its softmax: all such points together, at most eps.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import over_tiles, sum_tiles
from kernelmetric.compute.reductions._distances import robust_center
from kernelmetric.compute.reductions._products import product
from kernelmetric.compute.reductions._selection import true_entries

_TILE_BYTES = 2**21
_CHUNK_BYTES = 2**21
_BLOCKS_AT_ONCE = 64  # between two looks at how long the lists have become


class Listed(NamedTuple):
    """Row numbers of the near points of every point, in the layout of a sparse CSR matrix."""

    indptr: np.ndarray
    indices: np.ndarray


def mine_softmax(
    E: np.ndarray, codes: np.ndarray, eps: float, *, slack: float = 2.0, most: float = np.inf
) -> tuple[float, Listed | None]:
    """NCA objective within ``eps n``, and the pairs that a descent should watch.

    Points farther by ``slack`` are listed too. NaN and None where lists would be longer than
    ``most`` on average, and for other libraries' arrays.
    """
    if not isinstance(E, np.ndarray):
        return np.nan, None
    n = len(E)
    E = E - robust_center(E)
    square = np.sum(E * E, axis=1)
    columns = np.ascontiguousarray(np.concatenate([-2.0 * E, square[:, None]], axis=1).T)
    rows_of = np.concatenate([E, np.ones_like(square)[:, None]], axis=1)
    reach = np.log(n / eps) + slack
    tile = tile_rows(E, n, _TILE_BYTES)
    blocks = list(row_blocks(n, 3 * n * itemsize_of(E), most=tile))
    work = partial(_listed, rows_of, columns, codes, reach)
    tiles: list[tuple[float, np.ndarray, np.ndarray]] = []
    for start in range(0, len(blocks), _BLOCKS_AT_ONCE):  # lists too long are not made to the end
        some = blocks[start : start + _BLOCKS_AT_ONCE]
        tiles += over_tiles(work, some, flops=2.0 * n * n * E.shape[1])
        if sum(len(near) for _, _, near in tiles) > most * n:
            return np.nan, None
    totals, counts, near = zip(*tiles, strict=True)
    pointers = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return -sum(totals), Listed(pointers, np.concatenate(near))


def _listed(
    rows_of: np.ndarray, columns: np.ndarray, codes: np.ndarray, reach: float, rows: slice
) -> tuple[float, np.ndarray, np.ndarray]:
    """The tile: expected hits of some points, how many points are near each, and which."""
    D2 = rows_of[rows] @ columns
    own = np.arange(rows.start, rows.stop)
    D2[own - rows.start, own] = np.inf
    D2 -= np.min(D2, axis=1, keepdims=True)
    i, j = true_entries(D2 <= reach)
    P = np.exp(-D2[i, j])
    height = len(own)
    hits = np.bincount(i, weights=P * (codes[own[i]] == codes[j]), minlength=height)
    total = float(np.sum(hits / np.bincount(i, weights=P, minlength=height)))
    return total, np.bincount(i, minlength=height), j.astype(np.int32)


def nca_loss_on(
    L: np.ndarray, X: np.ndarray, codes: np.ndarray, listed: Listed
) -> tuple[float, np.ndarray]:
    """NCA objective and gradient with the softmax of every point over its list alone."""
    E = product(X, L.T)
    n, r = E.shape
    n_pairs = len(listed.indices)
    width = max(1.0, n_pairs / n) * (2 * r + 8) * E.itemsize
    total, sums = sum_tiles(
        partial(_sums, E, codes, listed),
        list(row_blocks(n, 4 * width, most=max(1, int(_CHUNK_BYTES / width)))),
        flops=8.0 * n_pairs * r,
        entries=n * r,
    )
    gradient_E = 2.0 * (sums[:, -1:] * E - sums[:, :-1])
    return -total, product(gradient_E.T, X)


def _sums(
    E: np.ndarray, codes: np.ndarray, listed: Listed, chunks: list[slice]
) -> tuple[float, np.ndarray]:
    """What some rows of W give to ``Σ_i p_i`` and to ``(W + Wᵀ) [E, 1]``."""
    (indptr, indices), (n, r) = listed, E.shape
    total, product = 0.0, np.zeros((n, r + 1), dtype=E.dtype)
    for rows in chunks:
        begin, end = indptr[rows.start], indptr[rows.stop]
        j, starts = indices[begin:end], (indptr[rows] - begin)
        counts = np.diff(indptr[rows.start : rows.stop + 1])
        difference = E[j]
        difference -= np.repeat(E[rows], counts, axis=0)
        D2 = np.einsum("ij,ij->i", difference, difference)
        P = np.exp(np.repeat(np.minimum.reduceat(D2, starts), counts) - D2)
        same = codes[j] == np.repeat(codes[rows], counts)
        P /= np.repeat(np.add.reduceat(P, starts), counts)
        p = np.add.reduceat(P * same, starts)
        total += float(np.sum(p, dtype=np.float64))
        P *= same - np.repeat(p, counts)
        W = sparse.csr_array((P, j, indptr[rows.start : rows.stop + 1] - begin), (len(p), n))
        product[rows, :-1] += W @ E
        product += W.T @ np.concatenate([E[rows], np.ones((len(p), 1), E.dtype)], axis=1)
    return total, product
