"""Half of a symmetric softmax, in tiles that stay in the cache.

``K_ij = exp(-d_ij)`` is symmetric. Its sums take one pass, the weights another; as many tiles as
there is room for are held between the two.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._budget import current_budget, itemsize_of, row_blocks
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute.backends._native import exponentials, weigh

TILE_ROWS = 256  # a tile of float32 takes two megabytes: smaller ones slow the products down
_TILE_COLUMNS = 2048
_MOST_HELD = 2**29  # bytes of tiles kept from the first pass for the second, at most
_SHARE = 8  # which part of the budget that is, at most
_OWN, _OTHER, _MIXED = 0, 1, 2  # kinds of tiles: columns of the rows' class, of others, of both


class Tile:
    """Some rows, and columns from their diagonal on, of one kind."""

    __slots__ = ("area", "beyond", "columns", "corner", "kind", "rows", "shape")

    def __init__(self, rows: slice, columns: slice, kind: int):
        self.rows, self.columns, self.kind = rows, columns, kind
        self.shape = rows.stop - rows.start, columns.stop - columns.start
        self.area = self.shape[0] * self.shape[1]
        self.corner = rows.start, columns.start
        #: The columns that are not rows too.
        self.beyond = slice(max(columns.start, rows.stop), columns.stop)

    def of(self, memory: np.ndarray) -> np.ndarray:
        """The first part of some memory, in the shape of the tile."""
        return memory[: self.area].reshape(self.shape)


class _Range(NamedTuple):
    """What a floating-point type can hold of a softmax with one shift for all rows."""

    shift: float  # the largest shift, so that no exponential overflows
    lowest: float  # exponents are clipped here: times the least weight, still no denormal
    least: float  # weights below this share of the largest possible one are dropped
    safe: float  # a row whose sum is this many times that of clipped terms is trusted


_RANGES = {4: _Range(60.0, -70.0, 1e-7, 1e6), 8: _Range(300.0, -300.0, 1e-15, 1e15)}


def by_symmetry(E: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """``Σ_i p_i``, ``(W + Wᵀ) [E, 1]``, and which rows are near enough to be in these sums.

    With ``s_i`` the sum of row i of K, ``W_ij + W_ji = K_ij (a_i + a_j)``, where ``a`` is
    ``(1 - p) / s`` within a class and ``-p / s`` between classes.
    """
    limits = _RANGES[itemsize_of(E)]
    tiles = _Tiles(E, codes, limits)
    cut = _cut(E, codes)
    held = _Held(max(tile.area for tile in cut), E.dtype, _most_held())
    run = partial(sum_tiles, tiles=cut, flops=3.0 * E.size * len(E))
    ((inside, outside),) = run(partial(_sums, tiles, held), entries=2 * len(E))
    s = inside + outside
    near = s > len(E) * limits.safe * np.exp(limits.lowest)
    s[~near] = 1.0
    p = inside / s
    weights = np.stack([1.0 - p, -p])  # specks would make denormal numbers
    weights = (np.where(near & (np.abs(weights) > limits.least), weights, 0.0) / s).astype(E.dtype)
    (product,) = run(partial(_products, tiles, held, weights), entries=E.size)
    return float(np.sum(p[near])), product[:, : E.shape[1] + 1], near


def softmax_bytes(n: int) -> int:
    """Bytes that :func:`nca_loss` keeps of the softmax of n points."""
    return int(min(_most_held(), 4 * n * n // 2))


def _most_held() -> int:
    return min(_MOST_HELD, current_budget() // _SHARE)


def _sums(tiles: _Tiles, held: _Held, cut: list[Tile]) -> tuple[np.ndarray]:
    """Sums of the rows of K, within classes and between classes, from some of the tiles."""
    sums, scratch = np.zeros((2, len(tiles.codes))), held.scratch()
    for tile in cut:
        K = held.place(tile, scratch)
        by_row, by_column = tiles.evaluate(tile, K)
        kinds: Any = tile.kind
        if tile.kind == _MIXED:
            alike, kinds = _alike(tiles.codes, tile), slice(None)
            by_row, by_column = (
                np.stack([np.sum(K, axis, float, where=where) for where in (alike, ~alike)])
                for axis in (1, 0)
            )
        sums[kinds, tile.rows] += by_row  # and by symmetry to the columns beyond
        sums[kinds, tile.beyond] += by_column[..., tile.beyond.start - tile.columns.start :]
    return (sums,)


def _products(
    tiles: _Tiles, held: _Held, weights: np.ndarray, cut: list[Tile]
) -> tuple[np.ndarray]:
    """``(W + Wᵀ) [E, 1]`` from some of the tiles."""
    augmented = tiles.augmented
    product, scratch, sums = np.zeros_like(augmented), held.scratch(), held.scratch()
    below = np.empty((max(tile.shape[1] for tile in cut), augmented.shape[1]), augmented.dtype)
    for tile in cut:
        rows, columns, beyond = tile.rows, tile.columns, tile.beyond
        kept = held.pop(tile)
        K = tile.of(scratch) if kept is None else kept
        if kept is None:
            tiles.evaluate(tile, K)
        if tile.kind == _MIXED:
            same, other = (a[rows, None] + a[columns] for a in weights)
            K *= np.where(_alike(tiles.codes, tile), same, other)
        else:
            a = weights[tile.kind]
            weigh(K, a[rows], a[columns], tile.of(sums))
        product[rows] += K @ augmented[columns]
        first = beyond.start - columns.start
        part = below[: tile.shape[1] - first]
        product[beyond] += np.matmul(K[:, first:].T, augmented[rows], out=part)
    return (product,)


class _Tiles:
    """Rows of the unnormalised softmax, from the diagonal on, with one shift for all."""

    def __init__(self, E: np.ndarray, codes: np.ndarray, limits: _Range):
        self.codes = codes
        n, r = E.shape
        square = np.einsum("ij,ij->i", E, E)
        self.left = np.empty((n, r + 2), dtype=E.dtype)
        self.left[:, :r], self.left[:, r] = E, 1.0
        self.right = np.empty((n, r + 2), dtype=E.dtype)
        np.multiply(E, 2.0, out=self.right[:, :r])
        self.right[:, r], self.right[:, r + 1] = -square, 1.0
        self.augmented = self.left[:, :-1]
        missing = -(r + 1) % 4
        if 0 < missing < 3:  # products with a multiple of four columns are faster
            self.augmented = np.pad(self.augmented, ((0, 0), (0, missing)))
        sample = np.arange(0, n, max(1, n // 8))
        exponents = self.left[sample, :-1] @ self.right[:, :-1].T - square[sample, None]
        exponents[np.arange(len(sample)), sample] = -np.inf
        typical = -float(np.sort(np.max(exponents, axis=1))[len(sample) // 2])
        shift = E.dtype.type(min(max(typical, 0.0), limits.shift))  # typical rows sum to about 1
        self.left[:, -1] = shift - square
        # None is beyond the shift but by rounding, which may be large where the points are.
        self.range = limits.lowest, float(shift)

    def evaluate(self, tile: Tile, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Let K become a tile, zero on the diagonal of the whole; the sums of rows and columns."""
        rows, columns = tile.rows, tile.columns
        np.matmul(self.left[rows], self.right[columns].T, out=K)
        own = columns.start == rows.start
        return exponentials(K, *self.range, without_diagonal=own)


class _Held:
    """Tiles kept from the first pass for the second, in so many bytes; none in other processes."""

    def __init__(self, largest: int, dtype: Any, n_bytes: int):
        self._largest, self._dtype = largest, dtype
        self._room = n_bytes // dtype.itemsize
        self._kept: dict[tuple[int, int], np.ndarray] = {}

    def __reduce__(self) -> Any:
        return _Held, (self._largest, self._dtype, 0)

    def place(self, tile: Tile, scratch: np.ndarray) -> np.ndarray:
        """Where a tile is kept, or else the scratch."""
        if tile.area > self._room:
            return tile.of(scratch)
        self._room -= tile.area
        K = self._kept[tile.corner] = np.empty(tile.shape, dtype=self._dtype)
        return K

    def pop(self, tile: Tile) -> np.ndarray | None:
        """A tile that is kept; None where it is not."""
        return self._kept.pop(tile.corner, None)

    def scratch(self) -> np.ndarray:
        """Room for one tile that is not kept."""
        return np.empty(self._largest, dtype=self._dtype)


def class_slices(codes: np.ndarray) -> list[tuple[int, int]]:
    """Start and stop of every run of equal codes."""
    if np.any(codes[1:] < codes[:-1]):
        raise ValueError("Got unsorted codes, but expected rows sorted by class.")
    borders = np.flatnonzero(np.diff(codes)) + 1
    return list(pairwise([0, *borders.tolist(), len(codes)]))


def _cut(E: np.ndarray, codes: np.ndarray) -> list[Tile]:
    """Tiles that cover what is above the diagonal: with many small classes, not a tile for each."""
    n = len(codes)
    height = next(row_blocks(n, 6 * n * itemsize_of(E), most=TILE_ROWS)).stop
    strips: list[tuple[slice, int]] = []  # rows, and where the class of the last one ends
    for start, stop in class_slices(codes):
        for first in range(start, stop, height):
            last = min(first + height, stop)
            if strips and last - strips[-1][0].start <= TILE_ROWS:
                first = strips.pop()[0].start
            strips.append((slice(first, last), stop))
    cut = []
    for rows, end in strips:
        own = _OWN if codes[rows.start] == codes[rows.stop - 1] else _MIXED
        for kind, start, stop in [(own, rows.start, end), (_OTHER, end, n)]:
            for first in range(start, stop, _TILE_COLUMNS):
                cut.append(Tile(rows, slice(first, min(first + _TILE_COLUMNS, stop)), kind))
    return cut


def _alike(codes: np.ndarray, tile: Tile) -> np.ndarray:
    """Where row and column are of one class."""
    return codes[tile.rows, None] == codes[tile.columns]
