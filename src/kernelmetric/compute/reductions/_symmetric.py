"""Half of a symmetric softmax, in tiles that stay in the cache.

Unnormalised, ``K_ij = exp(-d_ij)`` is symmetric: half of the products and of the exponentials give
all of it. That takes two passes, one for the sums of the rows and one for the weights, and one
shift of the exponents for all rows. As many tiles as there is room for are held between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._budget import current_budget, itemsize_of
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute.backends._native import exponentials, weigh

Block = tuple[Any, slice]  # rows of one class, as a slice or by number; the columns of that class

TILE_ROWS = 256  # a tile of float32 takes two megabytes: smaller ones slow the products down
_TILE_COLUMNS = 2048
_MOST_HELD = 2**29  # bytes of tiles kept from the first pass for the second, at most
_OWN, _OTHER, _MIXED = 0, 1, 2  # kinds of tiles: columns of the rows' class, of others, of both


class Tile:
    """Some rows, and columns from their diagonal on, of one kind."""

    __slots__ = ("area", "beyond", "columns", "kind", "rows", "shape")

    def __init__(self, rows: slice, columns: slice, kind: int):
        self.rows, self.columns, self.kind = rows, columns, kind
        self.shape = rows.stop - rows.start, columns.stop - columns.start
        self.area = self.shape[0] * self.shape[1]
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


def by_symmetry(
    E: np.ndarray, blocks: list[Block], codes: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """``Σ_i p_i``, and ``(W + Wᵀ) [E, 1]``, from the upper half of the softmax.

    With ``s_i`` the sum of row i of K, ``W_ij + W_ji = K_ij (a_i + a_j)``, where ``a`` is
    ``(1 - p) / s`` within a class and ``-p / s`` between classes.

    Parameters
    ----------
    E : ndarray of shape (n, r)
        The embedded points, rows sorted by class, about a centre of theirs.
    blocks : list of tuple
        Rows of one class, and the columns of that class.
    codes : ndarray of shape (n,)
        Class codes, ascending.

    Returns
    -------
    total : float
        Over the rows that are near others.
    product : ndarray of shape (n, r + 1)
        The part of these rows of W.
    near : ndarray of bool of shape (n,)
        False for rows too far from all others for a common shift: they are not in the sums.
    """
    limits = _RANGES[itemsize_of(E)]
    tiles = _Tiles(E, codes, limits)
    cut = _cut(blocks, len(E))
    held = _Held(cut, E)
    run = partial(sum_tiles, tiles=cut, flops=3.0 * E.size * len(E), cost=attrgetter("area"))
    ((inside, outside),) = run(partial(_sums, tiles, held), entries=2 * len(E))
    s = inside + outside
    near = s > len(E) * limits.safe * np.exp(limits.lowest)
    s[~near] = 1.0
    p = inside / s
    weights = np.stack([_without_specks(a, near, limits.least) / s for a in (1.0 - p, -p)])
    weights = weights.astype(E.dtype)
    (product,) = run(partial(_products, tiles, held, weights), entries=E.size)
    return float(np.sum(p[near])), product[:, : E.shape[1] + 1], near


def softmax_bytes(n: int) -> int:
    """Bytes that :func:`nca_loss` keeps of the softmax of n points."""
    return int(min(_MOST_HELD, current_budget() // 8, 4 * n * n // 2))


def _sums(tiles: _Tiles, held: _Held, cut: list[Tile]) -> tuple[np.ndarray]:
    """Sums of the rows of K, within classes and between classes, from some of the tiles."""
    sums, scratch = np.zeros((2, len(tiles.codes))), held.scratch()
    for tile in cut:
        K = held.place(tile, scratch)
        by_row, by_column = tiles.evaluate(tile, K)
        held.filled.add(id(tile))
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
    product, scratch = np.zeros_like(augmented), held.scratch()
    for tile in cut:
        rows, columns, beyond = tile.rows, tile.columns, tile.beyond
        K = held.place(tile, scratch)
        if not (tile in held and id(tile) in held.filled):
            tiles.evaluate(tile, K)
        if tile.kind == _MIXED:
            same, other = (a[rows, None] + a[columns] for a in weights)
            K *= np.where(_alike(tiles.codes, tile), same, other)
        else:
            a = weights[tile.kind]
            weigh(K, a[rows], a[columns])
        product[rows] += K @ augmented[columns]
        product[beyond] += K[:, beyond.start - columns.start :].T @ augmented[rows]
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
    """Room for the tiles that are kept from the first pass for the second.

    It stays where it is: on another machine there is room for none, and none is filled.
    """

    def __init__(self, cut: list[Tile], E: np.ndarray):
        most = min(_MOST_HELD, current_budget() // 8) // E.itemsize
        areas = [tile.area for tile in cut]
        ends = np.cumsum(areas)
        self._largest = max(areas)
        kept = ends[ends <= most].tolist()
        self._ends = {id(tile): end for tile, end in zip(cut, kept, strict=False)}
        self._memory = np.empty(kept[-1] if kept else 0, dtype=E.dtype)
        self.filled: set[int] = set()

    def __reduce__(self) -> Any:
        return _no_room, (self._largest, self._memory.dtype)

    def __contains__(self, tile: Tile) -> bool:
        return id(tile) in self._ends

    def place(self, tile: Tile, scratch: np.ndarray) -> np.ndarray:
        """Where a tile is held, or else the scratch."""
        return tile.of(
            self._memory[self._ends[id(tile)] - tile.area :] if tile in self else scratch
        )

    def scratch(self) -> np.ndarray:
        """Room for one tile that is not kept."""
        return np.empty(self._largest, dtype=self._memory.dtype)


def _no_room(largest: int, dtype: np.dtype) -> _Held:
    held = _Held.__new__(_Held)
    held._largest, held._ends, held.filled = largest, {}, set()
    held._memory = np.empty(0, dtype=dtype)
    return held


def _cut(blocks: list[Block], n: int) -> list[Tile]:
    """Tiles that cover what is above the diagonal: with many small classes, not a tile for each."""
    cut = []
    for group in together(blocks):
        rows, members = slice(group[0][0].start, group[-1][0].stop), group[-1][1]
        own = _OWN if group[0][1] == members else _MIXED
        for kind, start, stop in [(own, rows.start, members.stop), (_OTHER, members.stop, n)]:
            for first in range(start, stop, _TILE_COLUMNS):
                cut.append(Tile(rows, slice(first, min(first + _TILE_COLUMNS, stop)), kind))
    return cut


def _alike(codes: np.ndarray, tile: Tile) -> np.ndarray:
    """Where row and column are of one class."""
    return codes[tile.rows, None] == codes[tile.columns]


def _without_specks(a: np.ndarray, near: np.ndarray, least: float) -> np.ndarray:
    return np.where(near & (np.abs(a) > least), a, 0.0)


def together(blocks: Sequence[Block]) -> list[list[Block]]:
    """Neighbouring blocks of few rows in one: with many small classes, products would be tiny."""
    groups: list[list[Block]] = []
    height = TILE_ROWS
    for rows, members in blocks:
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        if height + size > TILE_ROWS:
            groups.append([])
            height = 0
        groups[-1].append((rows, members))
        height += size
    return groups
