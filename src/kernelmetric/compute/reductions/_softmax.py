"""The softmax of NCA over all other points: loss and gradient, by rows or by symmetry.

Unnormalised, ``K_ij = exp(-d_ij)`` is symmetric: half of the products and of the exponentials give
all of it. That takes two passes, one for the sums of the rows and one for the weights, and one
shift of the exponents for all rows; rows too far from everything for that shift are done by
themselves, each with its own. Devices do all rows that way: they have no use for half a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import is_numpy, namespace, set_entries
from kernelmetric.compute._budget import current_budget, itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._threads import over_threads, own_threads
from kernelmetric.compute.backends._native import exponentials, weigh
from kernelmetric.compute.reductions._differences import robust_center

Block = tuple[Any, slice]  # rows of one class, as a slice or by number; the columns of that class

_TILE_ROWS = 256  # a tile of float32 takes two megabytes: smaller ones slow the products down
_TILE_COLUMNS = 2048
_ROW_BLOCK_BYTES = 2**22  # of rows that see every column
_MOST_HELD = 2**29  # bytes of tiles kept from the first pass for the second, at most
# exp(-40) is far below float32 resolution beside the largest term, 1; smaller exponents would
# make denormals, which slow the product that follows down by an order of magnitude.
_LOWEST_EXPONENT = -40.0


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


def nca_loss(L: Any, X: Any, codes: np.ndarray) -> tuple[float, Any]:
    """NCA objective and its gradient, eq. (3) and (5) of [1]_.

    ``f(L) = -Σ_i Σ_{j: y_j = y_i} p_ij`` with ``p_ij ∝ exp(-|L x_i - L x_j|²)``, ``p_ii = 0``:
    minus the expected number of points that pick a neighbour of their own class.

    Parameters
    ----------
    L : array of shape (r, d)
        The linear map.
    X : array of shape (n, d)
        The points, **rows sorted by class**.
    codes : ndarray of shape (n,)
        Class codes, ascending.

    Returns
    -------
    value : float
        Between -n and 0.
    gradient : array of shape (r, d)
        ∂f/∂L.

    Notes
    -----
    With ``W_ij = p_ij ([y_i = y_j] - p_i)`` the rows of W sum to zero, and
    ``∂f/∂E = 2 (diag(Wᵀ1) - W - Wᵀ) E`` for the embedding ``E = X Lᵀ``. O(n² r + n r d) time,
    one block of rows × n in memory; on a CPU, besides, as much of half the n × n softmax as an
    eighth of the memory budget holds, half a gigabyte at most: the rest is computed twice.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    with own_threads(6.0 * X.shape[0] ** 2 * L.shape[0]):
        E = X @ L.T
        # Moving the embedding changes no distance but keeps its squares small in float32.
        E = E - robust_center(E)
        blocks = _class_blocks(codes, E)
        total, product = _by_symmetry(E, blocks, codes) if is_numpy(E) else _by_rows(E, blocks)
        gradient_E = 2.0 * (product[:, -1:] * E - product[:, :-1])
        return -total, gradient_E.T @ X


def softmax_reduction(
    E: Any, F: Any, weigh: Callable[[Any, slice, Any], tuple[float, Any]]
) -> tuple[float, Any]:
    """Loss of softmax neighbours and its derivative, for any loss that looks at them row by row.

    Parameters
    ----------
    E : array of shape (n, r)
        Embedded points, whose squared distances d_ij the loss f depends on.
    F : array of shape (n, p)
        What the derivative is multiplied with: E for the gradient of a map, the points for that
        of a matrix.
    weigh : callable
        ``weigh(P, rows, logs) -> value, W`` for some rows: of ``p_ij = exp(-d_ij) / s_i``,
        p_ii = 0, and ``log s_i``, their share of f and its derivatives ``W_ij = ∂f/∂d_ij``. It may
        overwrite P.

    Returns
    -------
    value : float
        The loss f.
    product : array of shape (n, p)
        ``(D - W - Wᵀ) F`` with the sums of ``W + Wᵀ`` on the diagonal of D. For ``E = X Lᵀ``,
        ``∂f/∂L = 2 productᵀ X`` with F = E, and ``∂f/∂M = Xᵀ product`` with F = X.

    Notes
    -----
    O(n² (r + p)) time, one block of rows × n in memory.
    """
    with own_threads(2.0 * E.shape[0] ** 2 * (E.shape[1] + 2 * F.shape[1])):
        xp = namespace(E, F)
        n = E.shape[0]
        E = E - robust_center(E)
        square = xp.sum(E * E, axis=1)
        columns = xp.concat([2.0 * E, -square[:, None]], axis=1).T
        left = xp.concat([E, xp.ones_like(E[:, :1])], axis=1)
        augmented = xp.concat([F, xp.ones_like(F[:, :1])], axis=1)

        def work(blocks: list[slice]) -> tuple[float, Any]:
            total, product = 0.0, xp.zeros_like(augmented)
            for rows in blocks:
                P, shift = _exponentials(left[rows, :], columns, rows, xp)
                sums = xp.sum(P, axis=1)
                P /= sums[:, None]
                value, W = weigh(P, rows, xp.log(sums) + shift - square[rows])
                total += float(value)
                product += W.T @ augmented[rows, :]
                product[rows, :] += W @ augmented
            return total, product

        most = tile_rows(E, n, _ROW_BLOCK_BYTES)
        blocks = list(row_blocks(n, 4 * itemsize_of(E) * n, most=most))
        shares = over_threads(work, blocks, threads=is_numpy(E))
        product = sum((part for _, part in shares[1:]), start=shares[0][1])
        return sum(share for share, _ in shares), product[:, -1:] * F - product[:, :-1]


def softmax_bytes(n: int) -> int:
    """Bytes that :func:`nca_loss` keeps of the softmax of n points."""
    return int(min(_MOST_HELD, current_budget() // 8, 4 * n * n // 2))


def class_slices(codes: np.ndarray) -> list[tuple[int, int]]:
    """Start and stop of every run of equal codes."""
    if np.any(codes[1:] < codes[:-1]):
        raise ValueError("Got unsorted codes, but expected rows sorted by class.")
    borders = np.flatnonzero(np.diff(codes)) + 1
    edges = [0, *borders.tolist(), len(codes)]
    return list(pairwise(edges))


# --- by symmetry ------------------------------------------------------------------------------


def _by_symmetry(E: np.ndarray, blocks: list[Block], codes: np.ndarray) -> tuple[float, np.ndarray]:
    """``Σ_i p_i``, and ``(W + Wᵀ) [E, 1]``, from the upper half of the softmax.

    With ``s_i`` the sum of row i of K, ``W_ij + W_ji = K_ij (a_i + a_j)``, where ``a`` is
    ``(1 - p) / s`` within a class and ``-p / s`` between classes.
    """
    limits = _RANGES[itemsize_of(E)]
    tiles = _Tiles(E, limits)
    cut = _cut(blocks, len(E))
    held = _Held(cut, E)

    def add_sums(cut: list[Tile]) -> np.ndarray:
        sums, scratch = np.zeros((2, len(E))), held.scratch()
        for tile in cut:
            K = held[tile]
            K = tile.of(scratch) if K is None else K
            by_row, by_column = tiles(tile, K)
            kinds: Any = tile.kind
            if tile.kind == _MIXED:
                alike, kinds = _alike(codes, tile), slice(None)
                by_row, by_column = (
                    np.stack([np.sum(K, axis, float, where=where) for where in (alike, ~alike)])
                    for axis in (1, 0)
                )
            sums[kinds, tile.rows] += by_row  # and by symmetry to the columns beyond
            sums[kinds, tile.beyond] += by_column[..., tile.beyond.start - tile.columns.start :]
        return sums

    inside, outside = np.sum(over_threads(add_sums, cut, cost=attrgetter("area")), axis=0)
    s = inside + outside
    near = s > len(E) * limits.safe * np.exp(limits.lowest)
    s[~near] = 1.0
    p = inside / s
    weights = np.stack([_without_specks(a, near, limits.least) / s for a in (1.0 - p, -p)])
    weights = weights.astype(E.dtype)
    augmented = tiles.augmented

    def multiply(cut: list[Tile]) -> np.ndarray:
        product, scratch = np.zeros_like(augmented), held.scratch()
        for tile in cut:
            rows, columns, beyond = tile.rows, tile.columns, tile.beyond
            K = held[tile]
            if K is None:
                K = tile.of(scratch)
                tiles(tile, K)
            if tile.kind == _MIXED:
                same, other = (a[rows, None] + a[columns] for a in weights)
                K *= np.where(_alike(codes, tile), same, other)
            else:
                a = weights[tile.kind]
                weigh(K, a[rows], a[columns])
            product[rows] += K @ augmented[columns]
            product[beyond] += K[:, beyond.start - columns.start :].T @ augmented[rows]
        return product

    product = reduce(np.add, over_threads(multiply, cut, cost=attrgetter("area")))[
        :, : E.shape[1] + 1
    ]
    total = float(np.sum(p[near]))
    if not near.all():
        alone = [(rows.start + np.flatnonzero(~near[rows]), members) for rows, members in blocks]
        far_total, far_product = _by_rows(E, [block for block in alone if len(block[0])])
        total, product = total + far_total, product + far_product
    return total, product


class _Tiles:
    """Rows of the unnormalised softmax, from the diagonal on, with one shift for all."""

    def __init__(self, E: np.ndarray, limits: _Range):
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

    def __call__(self, tile: Tile, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Let K become a tile, zero on the diagonal of the whole; the sums of rows and columns."""
        rows, columns = tile.rows, tile.columns
        np.matmul(self.left[rows], self.right[columns].T, out=K)
        own = columns.start == rows.start
        return exponentials(K, *self.range, without_diagonal=own)


class _Held:
    """Room for the tiles that are kept from the first pass for the second."""

    def __init__(self, cut: list[Tile], E: np.ndarray):
        most = min(_MOST_HELD, current_budget() // 8) // E.itemsize
        areas = [tile.area for tile in cut]
        ends = np.cumsum(areas)
        self._largest = max(areas)
        kept = ends[ends <= most].tolist()
        self._ends = {id(tile): end for tile, end in zip(cut, kept, strict=False)}
        self._memory = np.empty(kept[-1] if kept else 0, dtype=E.dtype)

    def __getitem__(self, tile: Tile) -> np.ndarray | None:
        end = self._ends.get(id(tile))
        return None if end is None else tile.of(self._memory[end - tile.area :])

    def scratch(self) -> np.ndarray:
        """Room for one tile that is not kept."""
        return np.empty(self._largest, dtype=self._memory.dtype)


def _cut(blocks: list[Block], n: int) -> list[Tile]:
    """Tiles that cover what is above the diagonal: with many small classes, not a tile for each."""
    cut = []
    for group in _together(blocks):
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


# --- by rows ----------------------------------------------------------------------------------


def _by_rows(E: Any, blocks: Sequence[Block]) -> tuple[float, Any]:
    """What some rows of W give to ``Σ_i p_i`` and to ``(W + Wᵀ) [E, 1]``."""
    xp = namespace(E)
    square = xp.sum(E * E, axis=1)
    columns = xp.concat([2.0 * E, -square[:, None]], axis=1).T  # one product gives the exponents
    augmented = xp.concat([E, xp.ones_like(E[:, :1])], axis=1)

    def work(groups: list[list[Block]]) -> tuple[float, Any]:
        total, product = 0.0, xp.zeros_like(augmented)
        for group in groups:
            rows, parts = _rows_of(group)
            P, _ = _exponentials(augmented[rows, :], columns, rows, xp)
            scale = 1.0 / xp.sum(P, axis=1)
            inside = [P[part, members] for part, members in parts]
            p = xp.concat([xp.sum(own, axis=1) for own in inside]) * scale
            total += float(xp.sum(p))
            gain, loss = (scale * (1.0 - p))[:, None], (-p * scale)[:, None]
            inside = [own * gain[part, :] for own, (part, _) in zip(inside, parts, strict=True)]
            P *= loss
            for own, (part, members) in zip(inside, parts, strict=True):
                P[part, members] = own
            product += P.T @ augmented[rows, :]
            product[rows, :-1] += P @ E
        return total, product

    groups = _together(blocks) if is_numpy(E) else [[block] for block in blocks]
    shares = over_threads(work, groups, threads=is_numpy(E))
    total = sum(share for share, _ in shares)
    return total, sum((part for _, part in shares[1:]), start=shares[0][1])


def _together(blocks: Sequence[Block]) -> list[list[Block]]:
    """Neighbouring blocks of few rows in one: with many small classes, products would be tiny."""
    groups: list[list[Block]] = []
    height = _TILE_ROWS
    for rows, members in blocks:
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        if height + size > _TILE_ROWS:
            groups.append([])
            height = 0
        groups[-1].append((rows, members))
        height += size
    return groups


def _rows_of(group: list[Block]) -> tuple[slice | np.ndarray, list[tuple[slice, slice]]]:
    """The rows of a group of blocks; where each block lies among them, with its columns."""
    if len(group) == 1:
        rows, members = group[0]
        return rows, [(slice(None), members)]
    each = [
        np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows for rows, _ in group
    ]
    ends = np.cumsum([len(rows) for rows in each]).tolist()
    parts = [
        (slice(end - len(rows), end), members)
        for end, rows, (_, members) in zip(ends, each, group, strict=True)
    ]
    return np.concatenate(each), parts


def _exponentials(points: Any, columns: Any, rows: slice | np.ndarray, xp: Any) -> tuple[Any, Any]:
    """Unnormalised softmax of some rows, its own point left out, and the shift of each row."""
    S = points @ columns
    own = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    S = set_entries(S, own, -np.inf)
    shift = xp.max(S, axis=1, keepdims=True)
    S -= shift
    if is_numpy(S):
        np.exp(np.maximum(S, _LOWEST_EXPONENT, out=S), out=S)
    else:
        S = xp.exp(xp.clip(S, _LOWEST_EXPONENT, None))
    return set_entries(S, own, 0.0), shift[:, 0]


def _class_blocks(codes: np.ndarray, E: Any) -> list[Block]:
    """Blocks of rows of one class, each with the columns of that class."""
    n = len(codes)
    most = _TILE_ROWS if is_numpy(E) else tile_rows(E, n, 0)
    height = next(row_blocks(n, 6 * n * itemsize_of(E), most=most)).stop
    return [
        (slice(first, min(first + height, stop)), slice(start, stop))
        for start, stop in class_slices(codes)
        for first in range(start, stop, height)
    ]
