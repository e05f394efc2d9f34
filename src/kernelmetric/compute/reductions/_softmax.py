"""The softmax of NCA over all other points: loss and gradient, by rows.

Each row has its own shift of the exponents. A backend may have a way of its own.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import in_library_of, like, namespace
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute._threads import small_steps
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._distances import CountsAndShares, robust_center
from kernelmetric.compute.reductions._products import product

_ROW_BLOCK_BYTES = 2**21  # of rows that see every column
# exp(-40) is far below float32 resolution beside the largest term, 1; smaller exponents would
# make denormals, which slow the product that follows down by an order of magnitude.
_LOWEST_EXPONENT = -40.0

Weigh = Callable[[Any, Any, Any], tuple[Any, Any]]


class Rows(NamedTuple):
    """What the exponents ``2 e_i e_j - |e_j|²`` of some rows are made of, in one product."""

    left: Any
    columns: Any
    squares: Any


def nca_loss(
    L: Any, X: Any, codes: Any, weights: CountsAndShares | None = None
) -> tuple[float, Any]:
    """NCA objective and its gradient (r, d), eq. (3) and (5) of [1]_; **rows sorted by class**.

    ``f(L) = -Σ_i Σ_{j: y_j = y_i} p_ij`` with ``p_ij ∝ exp(-|L x_i - L x_j|²)``, ``p_ii = 0``:
    minus the expected number of points that pick a neighbour of their own class. With
    ``W_ij = p_ij ([y_i = y_j] - p_i)`` the rows of W sum to zero, and
    ``∂f/∂E = 2 (diag(Wᵀ1) - W - Wᵀ) E`` for the embedding ``E = X Lᵀ``. O(n² r + n r d) time.

    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    host = backend_of(X).host
    with small_steps(6.0 * X.shape[0] ** 2 * L.shape[0]) if host else nullcontext():
        E = product(X, L.T)
        # Moving the embedding changes no distance but keeps its squares small in float32.
        E = E - robust_center(E)
        fused = backend_of(E).fused("softmax_sums", E) if weights is None else None
        if fused is not None:
            total, sums = fused(E, in_library_of(codes, E))
            value = -total
        else:
            value, sums = _over_rows(E, E, partial(_own_class, codes, weights), weights)
        gradient_E = 2.0 * (sums[:, -1:] * E - sums[:, :-1])
        gradient = product(gradient_E.T, X)  # on a device it is on its way before the value is read
        return float(value), gradient


def softmax_reduction(
    E: Any, F: Any, weigh: Weigh, weights: CountsAndShares | None = None
) -> tuple[float, Any]:
    """Loss of softmax neighbours and its derivative, for any loss that looks at them row by row.

    ``weigh(P, rows, logs) -> value, W`` gives for some rows, from ``p_ij = w_j exp(-d_ij) / s_i``,
    p_ii = 0, and ``log s_i``, their share of f and ``W_ij = ∂f/∂d_ij``; it may overwrite P. The
    product is ``(D - W - Wᵀ) F`` with the sums of ``W + Wᵀ`` on the diagonal of D: for
    ``E = X Lᵀ``, ``∂f/∂L = 2 productᵀ X`` with F = E, and ``∂f/∂M = Xᵀ product`` with F = X.
    """
    E = E - robust_center(E)
    value, sums = _over_rows(E, F, weigh, weights)
    return float(value), sums[:, -1:] * F - sums[:, :-1]


def _over_rows(E: Any, F: Any, weigh: Weigh, weights: CountsAndShares | None) -> tuple[Any, Any]:
    """The loss, and ``(W + Wᵀ) [F, 1]``."""
    n = E.shape[0]
    most = tile_rows(E, 4 * n, 4 * _ROW_BLOCK_BYTES)
    return sum_tiles(
        partial(_weighted_sums, _rows(E, weights), _with_ones(F), weigh),
        list(row_blocks(n, 6 * itemsize_of(E) * n, most=most)),
        flops=2.0 * n * n * (E.shape[1] + 2 * F.shape[1]),
        entries=n * F.shape[1],
        host=backend_of(E).host,
    )


def _weighted_sums(
    rows_of: Rows, augmented: Any, weigh: Weigh, blocks: list[slice]
) -> tuple[Any, Any]:
    """The tile: some blocks of rows of W; values are not looked at before the end."""
    xp = namespace(augmented)
    total, product = 0.0, xp.zeros_like(augmented)
    for rows in blocks:
        P, shift = _exponentials(rows_of, rows)
        sums = xp.sum(P, axis=1)
        P /= sums[:, None]
        value, W = weigh(P, rows, xp.log(sums) + shift - rows_of.squares[rows])
        total = total + value
        product += W.T @ augmented[rows, :]
        product[rows, :] += W @ augmented
    return total, product


def _own_class(
    codes: Any, weights: CountsAndShares | None, P: Any, rows: Any, logs: Any
) -> tuple[Any, Any]:
    """NCA's loss of some rows, and its derivatives, for :func:`softmax_reduction`."""
    xp = namespace(P)
    share = xp.ones_like(P[:, :1]) if weights is None else like(weights[1][rows], P)[:, None]
    if backend_of(P).host:  # classes are slices: no mask of all pairs
        return _own_slices(codes, share, P, codes[rows]), P
    codes = in_library_of(codes, P)
    same = codes[rows][:, None] == codes[None, :]
    p = xp.sum(xp.where(same, P, xp.zeros_like(P[:1, :1])), axis=1, keepdims=True)
    P *= xp.where(same, share * (1.0 - p), -share * p)
    return -xp.sum(share * p, dtype=xp.float64), P


def _own_slices(codes: np.ndarray, share: Any, P: Any, codes_of_rows: np.ndarray) -> float:
    """The same in place, class by class."""
    value = 0.0
    for start, stop in class_slices(codes_of_rows):
        part, code = slice(start, stop), codes_of_rows[start]
        own = slice(*(int(np.searchsorted(codes, code, side=s)) for s in ("left", "right")))
        inside = P[part, own]
        p = inside.sum(axis=1)[:, None]
        value -= float((share[part] * p).sum())
        inside = inside * (share[part] * (1.0 - p))
        P[part, :] *= -share[part] * p
        P[part, own] = inside
    return value


def class_slices(codes: np.ndarray) -> list[tuple[int, int]]:
    """Start and stop of every run of equal codes."""
    if np.any(codes[1:] < codes[:-1]):
        raise ValueError("Got unsorted codes, but expected rows sorted by class.")
    borders = np.flatnonzero(np.diff(codes)) + 1
    return list(pairwise([0, *borders.tolist(), len(codes)]))


def _with_ones(F: Any) -> Any:
    xp = namespace(F)
    return xp.concat([F, xp.ones_like(F[:, :1])], axis=1)


def _rows(E: Any, weights: CountsAndShares | None) -> Rows:
    """The rows; a neighbour that counts w times has log w more in its exponents."""
    xp = namespace(E)
    squares = xp.sum(E * E, axis=1)
    last = -squares
    if weights is not None:
        last = last + like(np.log(weights[0]), E)
    return Rows(_with_ones(E), xp.concat([2.0 * E, last[:, None]], axis=1).T, squares)


def _exponentials(rows_of: Rows, rows: slice) -> tuple[Any, Any]:
    """Unnormalised softmax of some rows, its own point left out, and the shift of each row."""
    S = rows_of.left[rows, :] @ rows_of.columns
    own = np.arange(rows.start, rows.stop)
    backend, xp = backend_of(S), namespace(S)
    S = backend.set_entries(S, own, -np.inf)
    shift = xp.max(S, axis=1, keepdims=True)
    S -= shift
    S = backend.exponential(S, _LOWEST_EXPONENT)
    return backend.set_entries(S, own, 0.0), shift[:, 0]
