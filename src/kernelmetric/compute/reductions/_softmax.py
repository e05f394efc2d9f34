"""The softmax of NCA over all other points: loss and gradient, by rows or by symmetry.

NumPy does half of the matrix (``_symmetric.py``), and the rows too far from everything for that by
themselves, each with its own shift of the exponents. Other libraries do all rows that way, in few
large steps, unless their backend has one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import (
    device_of,
    in_library_of,
    like,
    namespace,
    set_entries,
)
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute._threads import calm_if_small
from kernelmetric.compute._weights import Weights
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._differences import robust_center
from kernelmetric.compute.reductions._products import product
from kernelmetric.compute.reductions._symmetric import TILE_ROWS, Block, by_symmetry, together

_ROW_BLOCK_BYTES = 2**22  # of rows that see every column
# exp(-40) is far below float32 resolution beside the largest term, 1; smaller exponents would
# make denormals, which slow the product that follows down by an order of magnitude.
_LOWEST_EXPONENT = -40.0

Weigh = Callable[[Any, slice, Any], tuple[float, Any]]


class Rows(NamedTuple):
    """What the exponents ``2 e_i e_j - |e_j|²`` of some rows are made of, in one product."""

    left: Any
    columns: Any
    squares: Any


def nca_loss(L: Any, X: Any, codes: Any, weights: Weights | None = None) -> tuple[float, Any]:
    """NCA objective and its gradient (r, d), eq. (3) and (5) of [1]_; **rows sorted by class**.

    ``f(L) = -Σ_i Σ_{j: y_j = y_i} p_ij`` with ``p_ij ∝ exp(-|L x_i - L x_j|²)``, ``p_ii = 0``:
    minus the expected number of points that pick a neighbour of their own class. With
    ``W_ij = p_ij ([y_i = y_j] - p_i)`` the rows of W sum to zero, and
    ``∂f/∂E = 2 (diag(Wᵀ1) - W - Wᵀ) E`` for the embedding ``E = X Lᵀ``.

    O(n² r + n r d) time, one block of rows × n in memory; on a CPU, besides, as much of half the
    softmax as an eighth of the memory budget holds. With weights the softmax is computed whole.

    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    if weights is not None:
        E = product(X, L.T)
        total, sums = softmax_reduction(E, E, partial(_own_class, codes, weights), weights)
        return total, 2.0 * product(sums.T, X)
    flops = 6.0 * X.shape[0] ** 2 * L.shape[0]
    with calm_if_small(flops) if backend_of(X).host else nullcontext():
        E = product(X, L.T)
        # Moving the embedding changes no distance but keeps its squares small in float32.
        E = E - robust_center(E)
        total, sums = _softmax(E, codes)
        gradient_E = 2.0 * (sums[:, -1:] * E - sums[:, :-1])
        gradient = product(gradient_E.T, X)  # on a device it is on its way before the value is read
        return -float(total), gradient


def _softmax(E: Any, codes: Any) -> tuple[Any, Any]:
    """``Σ_i p_i`` and ``(W + Wᵀ) [E, 1]``."""
    backend = backend_of(E)
    if not backend.host:
        codes = in_library_of(codes, E)
        return backend.softmax_sums(E, codes) or _all_rows(E, codes)
    blocks = _class_blocks(codes, E)
    total, sums, near = by_symmetry(E, blocks, codes)
    if near.all():
        return total, sums
    alone = [(rows.start + np.flatnonzero(~near[rows]), own) for rows, own in blocks]
    of_rows, sums_of_rows = _by_rows(E, [block for block in alone if len(block[0])])
    return total + of_rows, sums + sums_of_rows


def _own_class(codes: Any, weights: Weights, P: Any, rows: slice, logs: Any) -> tuple[float, Any]:
    """NCA's loss of some rows, and its derivatives, for :func:`softmax_reduction`."""
    xp, share = namespace(P), like(weights.shares[rows], P)[:, None]
    if backend_of(P).host:  # classes are slices: no mask of all pairs
        return _own_slices(codes, share, P, rows), P
    codes = in_library_of(codes, P)
    same = codes[rows][:, None] == codes[None, :]
    p = xp.sum(xp.where(same, P, xp.zeros_like(P[:1, :1])), axis=1, keepdims=True)
    P *= xp.where(same, share * (1.0 - p), -share * p)
    return -xp.sum(share * p), P


def _own_slices(codes: np.ndarray, share: Any, P: Any, rows: slice) -> float:
    """The same in place, class by class."""
    value = 0.0
    for start, stop in class_slices(codes[rows]):
        part, code = slice(start, stop), codes[rows.start + start]
        own = slice(*(int(np.searchsorted(codes, code, side=s)) for s in ("left", "right")))
        inside = P[part, own]
        p = inside.sum(axis=1)[:, None]
        value -= float((share[part] * p).sum())
        inside = inside * (share[part] * (1.0 - p))
        P[part, :] *= -share[part] * p
        P[part, own] = inside
    return value


def softmax_reduction(
    E: Any, F: Any, weigh: Weigh, weights: Weights | None = None
) -> tuple[float, Any]:
    """Loss of softmax neighbours and its derivative, for any loss that looks at them row by row.

    ``weigh(P, rows, logs) -> value, W`` gives for some rows, from ``p_ij = w_j exp(-d_ij) / s_i``,
    p_ii = 0, and ``log s_i``, their share of f and ``W_ij = ∂f/∂d_ij``; it may overwrite P. The
    product is ``(D - W - Wᵀ) F`` with the sums of ``W + Wᵀ`` on the diagonal of D: for
    ``E = X Lᵀ``, ``∂f/∂L = 2 productᵀ X`` with F = E, and ``∂f/∂M = Xᵀ product`` with F = X.
    """
    n = E.shape[0]
    E = E - robust_center(E)
    most = tile_rows(E, n, _ROW_BLOCK_BYTES)
    value, sums = sum_tiles(
        partial(_weighed, _rows(E, weights), _with_ones(F), weigh),
        list(row_blocks(n, 4 * itemsize_of(E) * n, most=most)),
        flops=2.0 * n**2 * (E.shape[1] + 2 * F.shape[1]),
        entries=n * F.shape[1],
        host=backend_of(E).host,
    )
    return value, sums[:, -1:] * F - sums[:, :-1]


def _weighed(rows_of: Rows, augmented: Any, weigh: Weigh, blocks: list[slice]) -> tuple[float, Any]:
    """What some blocks of rows of W give to the loss and to ``(W + Wᵀ) [F, 1]``."""
    xp = namespace(augmented)
    total, product = 0.0, xp.zeros_like(augmented)
    for rows in blocks:
        P, shift = _exponentials(rows_of, rows)
        sums = xp.sum(P, axis=1)
        P /= sums[:, None]
        value, W = weigh(P, rows, xp.log(sums) + shift - rows_of.squares[rows])
        total += float(value)
        product += W.T @ augmented[rows, :]
        product[rows, :] += W @ augmented
    return total, product


def class_slices(codes: np.ndarray) -> list[tuple[int, int]]:
    """Start and stop of every run of equal codes."""
    if np.any(codes[1:] < codes[:-1]):
        raise ValueError("Got unsorted codes, but expected rows sorted by class.")
    borders = np.flatnonzero(np.diff(codes)) + 1
    edges = [0, *borders.tolist(), len(codes)]
    return list(pairwise(edges))


def _by_rows(E: Any, blocks: Sequence[Block]) -> tuple[float, Any]:
    """What some rows of W give to ``Σ_i p_i`` and to ``(W + Wᵀ) [E, 1]``."""
    return sum_tiles(
        partial(_softmax_sums, _rows(E)),
        together(blocks),
        flops=6.0 * E.shape[0] ** 2 * E.shape[1],
        entries=E.shape[0] * E.shape[1],
    )


def _all_rows(E: Any, codes: Any) -> tuple[Any, Any]:
    """``Σ_i p_i`` and ``(W + Wᵀ) [E, 1]``, without a look at a number before the end."""
    n = E.shape[0]
    rows_of = _rows(E)
    xp, augmented = namespace(E), rows_of.left
    total, product = xp.zeros((), dtype=xp.float64, device=device_of(E)), xp.zeros_like(augmented)
    for rows in row_blocks(n, 6 * n * itemsize_of(E), most=tile_rows(E, 4 * n, 0)):
        P, _ = _exponentials(rows_of, rows)
        same = codes[rows][:, None] == codes[None, :]
        zero = xp.zeros_like(P[:1, :1])
        scale = 1.0 / xp.sum(P, axis=1, keepdims=True)
        p = xp.sum(xp.where(same, P, zero), axis=1, keepdims=True) * scale
        total += xp.sum(p, dtype=xp.float64)
        P *= xp.where(same, scale * (1.0 - p), -p * scale)
        product += P.T @ augmented[rows, :]
        product[rows, :-1] += P @ augmented[:, :-1]
    return total, product


def _softmax_sums(rows_of: Rows, groups: list[list[Block]]) -> tuple[float, Any]:
    """The sums over some groups of blocks."""
    augmented = rows_of.left
    xp = namespace(augmented)
    total, product = 0.0, xp.zeros_like(augmented)
    for group in groups:
        rows, parts = _rows_of(group)
        P, _ = _exponentials(rows_of, rows)
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
        product[rows, :-1] += P @ augmented[:, :-1]
    return total, product


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


def _with_ones(F: Any) -> Any:
    xp = namespace(F)
    return xp.concat([F, xp.ones_like(F[:, :1])], axis=1)


def _rows(E: Any, weights: Weights | None = None) -> Rows:
    """The rows; a neighbour that counts w times has log w more in its exponents."""
    xp = namespace(E)
    squares = xp.sum(E * E, axis=1)
    last = -squares
    if weights is not None:
        last = last + like(np.log(weights.counts), E)
    return Rows(_with_ones(E), xp.concat([2.0 * E, last[:, None]], axis=1).T, squares)


def _exponentials(rows_of: Rows, rows: slice | np.ndarray) -> tuple[Any, Any]:
    """Unnormalised softmax of some rows, its own point left out, and the shift of each row."""
    S = rows_of.left[rows, :] @ rows_of.columns
    own = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    S = set_entries(S, own, -np.inf)
    xp = namespace(S)
    shift = xp.max(S, axis=1, keepdims=True)
    S -= shift
    S = backend_of(S).exponential(S, _LOWEST_EXPONENT)
    return set_entries(S, own, 0.0), shift[:, 0]


def _class_blocks(codes: np.ndarray, E: Any) -> list[Block]:
    """Blocks of rows of one class, each with the columns of that class."""
    n = len(codes)
    height = next(row_blocks(n, 6 * n * itemsize_of(E), most=TILE_ROWS)).stop
    return [
        (slice(first, min(first + height, stop)), slice(start, stop))
        for start, stop in class_slices(codes)
        for first in range(start, stop, height)
    ]
