"""The largest products of sparse rows, block by block."""

from typing import Any

import numpy as np

from kernelmetric.compute._budget import row_blocks
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute._threads import tiles_at_once
from kernelmetric.compute.backends._grams import most_alike_compiled, products_compiled
from kernelmetric.compute.watch import watched

_PARTS = 4  # for each neighbour that is looked for, of a row of products
_ENTRY_BYTES = 40.0  # of a block of products, all arrays together
_ROWS = 4096  # of a block, at most
_PART = 2**15  # rows whose sums stay in the cache; of fewer, lists of an n-gram's texts get short


def most_alike(
    Q: Any, X: Any, n_neighbors: int, *, one: bool = False, both: bool = False
) -> np.ndarray:
    """Pairs of every row of Q and the rows of X with the largest positive products.

    With ``one``, Q is X, and no row is beside itself. With ``both``, pairs of every row of X and
    the rows of Q with the largest products follow, the row of Q first.
    """
    if Q.nnz == 0 or X.nnz == 0:
        return np.empty((0, 2), dtype=np.intp)
    n_products = float(np.bincount(X.indices, minlength=X.shape[1])[Q.indices].sum())
    if products_compiled(Q, X):
        return _compiled(Q, X, n_neighbors, 2 * n_products, one=one, both=both)
    if both:
        asked = most_alike(X, Q, n_neighbors)[:, ::-1]
        return np.concatenate([most_alike(Q, X, n_neighbors), asked])
    XT = X.T.tocsr()
    most = float((Q.sign() @ np.diff(XT.indptr)).max())  # as many records have a row's n-grams

    def nearest(block: slice) -> np.ndarray:
        rows, near, values = _largest(Q[block] @ XT, n_neighbors + one)
        order = np.lexsort((near, -values, rows))
        pairs = np.column_stack([rows + block.start, near])[order]
        if one:
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        place = np.arange(len(pairs)) - np.searchsorted(pairs[:, 0], pairs[:, 0])
        return pairs[place < n_neighbors]

    blocks = list(row_blocks(Q.shape[0], _ENTRY_BYTES * min(most, X.shape[0]), most=_ROWS))
    return np.concatenate(over_tiles(nearest, blocks, flops=2 * n_products))


def _compiled(
    Q: Any, X: Any, n_neighbors: int, flops: float, *, one: bool, both: bool
) -> np.ndarray:
    """The same part by part of X, with each product made once."""

    def of(block: slice) -> Any:
        rows = row_blocks(block.stop - block.start, 0.0, most=_PART)
        parts = ((block.start + part.start, X[block][part].T.tocsr()) for part in rows)
        return most_alike_compiled(Q, watched(parts), n_neighbors, one=one, both=both)

    most = -(-X.shape[0] // tiles_at_once(flops))  # a block for each thread
    blocks = list(row_blocks(X.shape[0], 8.0 + 24.0 * n_neighbors, most=most))
    (best, products, *_), *others = found = over_tiles(of, blocks, flops=flops)
    for more, values, *_ in others:
        values = np.hstack([products, values])
        order = np.argsort(-values, axis=1, kind="stable")[:, :n_neighbors]
        best = np.take_along_axis(np.hstack([best, more]), order, axis=1)
        products = np.take_along_axis(values, order, axis=1)
    pairs = [_listed(best)]
    for block, (_, _, *asked) in zip(blocks, found, strict=True):
        pairs += [_listed(each)[:, ::-1] + np.array([0, block.start]) for each in asked]
    return np.concatenate(pairs)


def _listed(near: np.ndarray) -> np.ndarray:
    rows, places = np.nonzero(near >= 0)
    return np.column_stack([rows, near[rows, places]])


def _largest(P: Any, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and value of entries among which are the n largest of every row."""
    counts, low = np.diff(P.indptr), np.zeros(P.shape[0], dtype=P.dtype)
    n_parts = _PARTS * n
    if counts.max() >= n_parts:
        # Of a row cut into parts, n entries are not below the n-th largest of their maxima.
        parts = np.arange(n_parts, dtype=np.int64)
        edges = P.indptr[:-1, None] + counts[:, None] * parts // n_parts
        maxima = np.maximum.reduceat(P.data, np.minimum(edges, P.nnz - 1).ravel())
        nth = np.partition(maxima.reshape(-1, n_parts), n_parts - n, axis=1)[:, n_parts - n]
        low[counts >= n_parts] = nth[counts >= n_parts]
    at = np.flatnonzero(P.data >= np.repeat(low, counts))
    rows = np.searchsorted(P.indptr, at, side="right") - 1
    return rows, P.indices[at].astype(np.intp), P.data[at]
