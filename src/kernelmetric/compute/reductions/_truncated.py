"""The softmax of NCA over near points alone, with a certificate for what is left out.

A point at squared distance ``m_i + log(n / eps)`` from x_i, with ``m_i`` that of its nearest
neighbour, has at most a share ``eps / n`` of its softmax: all such points together, at most eps.
:func:`mine_softmax` lists the nearer ones, and :func:`nca_loss_on` looks at such a list alone.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy import sparse

from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._threads import over_threads, own_threads
from kernelmetric.compute.reductions._differences import robust_center
from kernelmetric.compute.reductions._selection import true_entries

_TILE_BYTES = 2**21
_CHUNK_BYTES = 2**21


class Listed(NamedTuple):
    """Row numbers of the near points of every point, in the layout of a sparse CSR matrix."""

    indptr: np.ndarray
    indices: np.ndarray


def mine_softmax(
    E: np.ndarray, codes: np.ndarray, eps: float, *, slack: float = 2.0, most: float = np.inf
) -> tuple[float, Listed | None]:
    """NCA objective to a certified accuracy, and the pairs that a descent should watch.

    Parameters
    ----------
    E : ndarray of shape (n, r)
        The embedded points.
    codes : ndarray of shape (n,)
        Their class codes.
    eps : float
        The most mass of the softmax of a point that may be left out.
    slack : float, default=2.0
        Points this much farther (in squared distance) are listed too, for when the map moves.
    most : float, default=inf
        The longest list, on average over the points, that is worth having.

    Returns
    -------
    value : float
        The objective over the listed pairs: within ``eps n`` of that over all pairs.
    listed : Listed or None
        None where the lists would be longer than ``most`` on average; the value is then nan.

    Notes
    -----
    O(n² r) time for the distances, exponentials for the listed pairs alone; one block of
    rows × n in memory, and the lists.
    """
    n = len(E)
    E = E - robust_center(E)
    square = np.sum(E * E, axis=1)
    columns = np.ascontiguousarray(np.concatenate([-2.0 * E, square[:, None]], axis=1).T)
    rows_of = np.concatenate([E, np.ones_like(square)[:, None]], axis=1)
    reach = np.log(n / eps) + slack
    tile = tile_rows(E, n, _TILE_BYTES)
    blocks = list(row_blocks(n, 3 * n * itemsize_of(E), most=tile))
    counts = np.zeros(n, dtype=np.int64)
    near: dict[int, np.ndarray] = {}

    def work(blocks: list[slice]) -> float:
        total = 0.0
        for rows in blocks:
            if np.sum(counts) > most * n:  # once passed, by whatever thread, it stays so
                return np.nan
            D2 = rows_of[rows] @ columns
            own = np.arange(rows.start, rows.stop)
            D2[own - rows.start, own] = np.inf
            D2 -= np.min(D2, axis=1, keepdims=True)
            i, j = true_entries(D2 <= reach)
            P = np.exp(-D2[i, j])
            height = len(own)
            hits = np.bincount(i, weights=P * (codes[own[i]] == codes[j]), minlength=height)
            total += float(np.sum(hits / np.bincount(i, weights=P, minlength=height)))
            counts[rows] = np.bincount(i, minlength=height)
            near[rows.start] = j.astype(np.int32)
        return total

    with own_threads(2.0 * n * n * E.shape[1]):
        totals = over_threads(work, blocks)
    if np.sum(counts) > most * n:
        return np.nan, None
    indices = np.concatenate([near[rows.start] for rows in blocks])
    return -sum(totals), Listed(np.concatenate([[0], np.cumsum(counts)]), indices)


def nca_loss_on(
    L: np.ndarray, X: np.ndarray, codes: np.ndarray, listed: Listed
) -> tuple[float, np.ndarray]:
    """NCA objective and gradient with the softmax of every point over its list alone.

    Parameters
    ----------
    L : ndarray of shape (r, d)
        The linear map.
    X : ndarray of shape (n, d)
        The points.
    codes : ndarray of shape (n,)
        Their class codes.
    listed : Listed
        The near points of every point, at least one each.

    Returns
    -------
    value : float
        As in :func:`nca_loss`, of which it is an approximation.
    gradient : ndarray of shape (r, d)
        Of the value.

    Notes
    -----
    O(pairs · r + n r d) time, a bounded number of pairs in memory besides the list.
    """
    indptr, indices = listed
    E = X @ L.T
    n, r = E.shape

    def work(chunks: list[slice]) -> tuple[float, np.ndarray]:
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

    width = max(1.0, len(indices) / n) * (2 * r + 8) * E.itemsize
    chunks = list(row_blocks(n, 4 * width, most=max(1, int(_CHUNK_BYTES / width))))
    with own_threads(8.0 * len(indices) * r):
        shares = over_threads(work, chunks)
    product = reduce(np.add, [part for _, part in shares])
    gradient_E = 2.0 * (product[:, -1:] * E - product[:, :-1])
    return -sum(total for total, _ in shares), gradient_E.T @ X
