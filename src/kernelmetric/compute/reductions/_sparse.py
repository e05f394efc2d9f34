"""The largest products of sparse rows, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._budget import row_blocks
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends._grams import most_alike_compiled

_PARTS = 4  # for each neighbour that is looked for, of a row of products
_ENTRY_BYTES = 40.0  # of a block of products, all arrays together
_ROWS = 4096  # of a block, at most


def most_alike(Q: Any, X: Any, n_neighbors: int, *, one: bool) -> np.ndarray:
    """Pairs of every row of Q and the rows of X with the largest positive products, not itself."""
    if Q.nnz == 0 or X.nnz == 0:
        return np.empty((0, 2), dtype=np.intp)
    XT = X.T.tocsr()
    most = float((Q.sign() @ np.diff(XT.indptr)).max())  # as many records have a row's n-grams

    def nearest(block: slice) -> np.ndarray:
        found = most_alike_compiled(Q[block], XT, n_neighbors, block.start if one else None)
        if found is not None:
            rows, places = np.nonzero(found >= 0)
            return np.column_stack([rows + block.start, found[rows, places]])
        rows, near, values = _largest(Q[block] @ XT, n_neighbors + one)
        order = np.lexsort((near, -values, rows))
        pairs = np.column_stack([rows + block.start, near])[order]
        if one:
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        place = np.arange(len(pairs)) - np.searchsorted(pairs[:, 0], pairs[:, 0])
        return pairs[place < n_neighbors]

    n_products = float(np.diff(XT.indptr)[Q.indices].sum())
    blocks = list(row_blocks(Q.shape[0], _ENTRY_BYTES * min(most, X.shape[0]), most=_ROWS))
    return np.concatenate(over_tiles(nearest, blocks, flops=2 * n_products))


def _largest(P: Any, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and value of entries among which are the n largest of every row."""
    counts, low = np.diff(P.indptr), np.zeros(P.shape[0], dtype=P.dtype)
    n_parts = _PARTS * n
    if counts.max() >= n_parts:
        # Of a row cut into parts, n entries are not below the n-th largest of their maxima.
        edges = (
            P.indptr[:-1, None] + counts[:, None] * np.arange(n_parts, dtype=np.int64) // n_parts
        )
        maxima = np.maximum.reduceat(P.data, np.minimum(edges, P.nnz - 1).ravel())
        nth = np.partition(maxima.reshape(-1, n_parts), n_parts - n, axis=1)[:, n_parts - n]
        low[counts >= n_parts] = nth[counts >= n_parts]
    at = np.flatnonzero(P.data >= np.repeat(low, counts))
    rows = np.searchsorted(P.indptr, at, side="right") - 1
    return rows, P.indices[at].astype(np.intp), P.data[at]
