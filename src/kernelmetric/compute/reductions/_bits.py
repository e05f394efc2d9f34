"""Bits that are packed eight to a byte: their products, and the most similar among many rows."""

from typing import Any

import numpy as np

from kernelmetric.compute._arrays import like, namespace, rough, to_numpy
from kernelmetric.compute._device import to_device
from kernelmetric.compute._execute import map_rows
from kernelmetric.compute.reductions._smallest import k_smallest
from kernelmetric.compute.watch import watched

_POINTS, _QUERIES = 8192, 1024  # rows of a block: unpacked, they take a quarter of their products
_COUNTS = np.array([n.bit_count() for n in range(256)], dtype=np.uint8)


def unpacked(packed: Any) -> Any:
    """Bits of float32, whose inner products are exact up to 2²⁴ bits, on the device in use."""
    there = to_device(packed)
    if isinstance(there, np.ndarray):
        return rough(np.unpackbits(there, axis=1))
    bits = (there[:, :, None] >> like(np.arange(7, -1, -1), there)) & 1
    return rough(namespace(there).reshape(bits, (there.shape[0], -1)))


def bit_counts(packed: np.ndarray) -> np.ndarray:
    """How many bits of each row are set."""

    def counts(rows: slice) -> np.ndarray:
        return _COUNTS[packed[rows]].sum(axis=1, dtype=np.int64)

    return map_rows(counts, len(packed), 2.0 * packed.shape[1])


def most_similar_bits(
    points: np.ndarray, k: int, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with the largest Tanimoto coefficients, largest first, ties by row; exact.

    Rows of similar counts are compared first: with a and b bits the coefficient is at most
    min(a, b) / max(a, b), so blocks of other counts need not be looked at.
    """
    k = min(k, len(points))
    own, other = bit_counts(points), bit_counts(queries)
    order = np.argsort(own, kind="stable")
    blocks = [np.sort(order[i : i + _POINTS]) for i in range(0, len(order), _POINTS)]
    ends = np.array([[own[rows].min(), own[rows].max()] for rows in blocks])
    indices, values = np.empty((len(queries), k), np.intp), np.empty((len(queries), k))
    asked = np.argsort(other, kind="stable")
    groups = [asked[i : i + _QUERIES] for i in range(0, len(asked), _QUERIES)]
    for rows in watched(groups):
        Q, counts = unpacked(queries[rows]), other[rows].astype(np.float64)
        bounds = _bounds(counts[:, None], ends.T)
        found: Any = np.empty((len(rows), 0), np.intp)
        best: Any = np.empty((len(rows), 0))
        for j in np.argsort(-bounds.max(axis=0), kind="stable"):
            if best.shape[1] == k and np.all(bounds[:, j] < best[:, -1]):
                continue
            S = Q @ unpacked(points[blocks[j]]).T
            either = like(counts, S)[:, None] + like(own[blocks[j]], S)[None, :] - S
            empty = namespace(S).astype(either == 0, S.dtype)
            columns, near = k_smallest(-(S + empty) / (either + empty), min(k, S.shape[1]))
            found = np.hstack([found, blocks[j][to_numpy(columns)]])
            best = np.hstack([best, -to_numpy(near)])
            first = np.lexsort((found, -best), axis=1)[:, :k]
            found, best = (np.take_along_axis(part, first, axis=1) for part in (found, best))
        indices[rows], values[rows] = found, best
    return indices, values


def _bounds(counts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The largest coefficients that counts of bits allow, with blocks of so many at most."""
    least, most = np.maximum(counts, 1.0), np.maximum(ends, 1)
    return np.minimum(np.minimum(least / most[0], most[1] / least), 1.0)
