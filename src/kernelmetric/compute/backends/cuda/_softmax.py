"""The softmax of NCA in two passes: sums of the rows, then their weights times the points.

With ``l_i`` the logarithm of the sum of row i, ``W_ij + W_ji`` is
``exp(-d_ij - l_i) (y_ij - p_i) + exp(-d_ij - l_j) (y_ij - p_j)``: no exponent is positive, however
far a row is from all others, and the sums of a row need no other row's.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernelmetric.compute.backends.cuda._halves import accumulate, halves, inner, plan

_LOG2_E = 1.4426950408889634


def softmax_sums(E: Any, codes: Any) -> tuple[Any, Any]:
    """``Σ_i p_i`` and ``(W + Wᵀ) [E, 1]``, as in ``nca_loss``, in O(n r) memory."""
    n, r = E.shape
    points = halves(E, codes, _LOG2_E**0.5)  # exponents of two are cheaper than those of e
    rows, width = points.high.shape
    grid, share, options = plan(n, width)
    parts = E.new_empty((3, grid[1], rows))
    _sums[grid](*points[:5], *parts, n, rows, share, **options)
    logs, p = E.new_empty((2, rows))
    _joined[(rows // 128,)](*parts, logs, p, n, rows, grid[1], ROWS=128, num_warps=4)
    out = E.new_empty((grid[1], n, r + 1))
    _products[grid](*points, logs, p, out, n, r, rows, share, 1.0, _LOG2_E**-0.5, **options)
    return torch.sum(p, dtype=torch.float64), torch.sum(out, dim=0)


@triton.jit(do_not_specialize=["n", "n_rows", "n_parts"])
def _joined(out_most, out_sum, out_inside, logs, p, n, n_rows, n_parts, ROWS: tl.constexpr):
    """The sums over all columns from those over some."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = i < n
    most = tl.full((ROWS,), -1e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    inside = tl.zeros((ROWS,), tl.float32)
    for part in range(0, n_parts):
        place = part * n_rows + i
        other = tl.load(out_most + place, mask=there, other=-1e30)
        new = tl.maximum(most, other)
        old_share, new_share = tl.exp2(most - new), tl.exp2(other - new)
        total = total * old_share + tl.load(out_sum + place, mask=there, other=0.0) * new_share
        inside = inside * old_share + tl.load(out_inside + place, mask=there, other=0.0) * new_share
        most = new
    there = there & (total > 0.0)  # a point that has no others has no sum
    tl.store(logs + i, tl.where(there, most + tl.log2(tl.where(there, total, 1.0)), 0.0))
    tl.store(p + i, tl.where(there, inside / tl.where(there, total, 1.0), 0.0))


@triton.jit(do_not_specialize=["n", "n_rows", "share"])
def _sums(
    high, low, scale, squares, codes, out_most, out_sum, out_inside, n, n_rows, share,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRODUCTS: tl.constexpr,
):  # fmt: skip
    """For some rows, over some columns: the largest exponent, and sums relative to it."""
    i, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    high_i = tl.load(high + i[:, None] * WIDTH + k[None, :])
    low_i = tl.load(low + i[:, None] * WIDTH + k[None, :])
    scale_i, squares_i = 2.0 * tl.load(scale + i), tl.load(squares + i)
    codes_i = tl.load(codes + i)
    most = tl.full((ROWS,), -1e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    inside = tl.zeros((ROWS,), tl.float32)
    start = tl.program_id(1) * share
    stop = tl.minimum(start + share, n_rows)
    for first in range(start, stop, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        high_j = tl.load(high + j[:, None] * WIDTH + k[None, :])
        low_j = tl.load(low + j[:, None] * WIDTH + k[None, :])
        S = inner(high_i, low_i, high_j, low_j, PRODUCTS)
        S = S * (scale_i[:, None] * tl.load(scale + j)[None, :])
        S = S - (squares_i[:, None] + tl.load(squares + j)[None, :])
        S = tl.where(i[:, None] == j[None, :], float("-inf"), tl.minimum(S, 0.0))
        new = tl.maximum(most, tl.max(S, axis=1))
        P = tl.exp2(S - new[:, None])
        shrink = tl.exp2(most - new)
        same = codes_i[:, None] == tl.load(codes + j)[None, :]
        total = total * shrink + tl.sum(P, axis=1)
        inside = inside * shrink + tl.sum(tl.where(same, P, 0.0), axis=1)
        most = new
    out = tl.program_id(1) * n_rows + i
    tl.store(out_most + out, most, mask=i < n)
    tl.store(out_sum + out, total, mask=i < n)
    tl.store(out_inside + out, inside, mask=i < n)


@triton.jit(do_not_specialize=["n", "r", "n_rows", "share", "one", "factor"])
def _products(
    high, low, scale, squares, codes, largest, logs, p, out, n, r, n_rows, share, one, factor,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRODUCTS: tl.constexpr,
):  # fmt: skip
    """For some rows, over some columns: weights times the points, and their sums."""
    i, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    high_i = tl.load(high + i[:, None] * WIDTH + k[None, :])
    low_i = tl.load(low + i[:, None] * WIDTH + k[None, :])
    scale_i, squares_i = 2.0 * tl.load(scale + i), tl.load(squares + i)
    codes_i, logs_i, p_i = tl.load(codes + i), tl.load(logs + i), tl.load(p + i)
    top = tl.load(largest)
    inverse = 1.0 / top
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    rest = tl.zeros((ROWS, WIDTH), tl.float32)
    weights = tl.zeros((ROWS,), tl.float32)
    start = tl.program_id(1) * share
    stop = tl.minimum(start + share, n_rows)
    for first in range(start, stop, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        high_j = tl.load(high + j[:, None] * WIDTH + k[None, :])
        low_j = tl.load(low + j[:, None] * WIDTH + k[None, :])
        S = inner(high_i, low_i, high_j, low_j, PRODUCTS)
        S = S * (scale_i[:, None] * tl.load(scale + j)[None, :])
        S = tl.minimum(S - (squares_i[:, None] + tl.load(squares + j)[None, :]), 0.0)
        same = codes_i[:, None] == tl.load(codes + j)[None, :]
        own = tl.where(same, 1.0, 0.0)
        W = tl.exp2(S - logs_i[:, None]) * (own - p_i[:, None])
        W += tl.exp2(S - tl.load(logs + j)[None, :]) * (own - tl.load(p + j)[None, :])
        W = tl.where(i[:, None] == j[None, :], 0.0, W)
        weights += tl.sum(W, axis=1)
        W = W * (tl.load(scale + j) * inverse)[None, :]
        total, rest = accumulate(W, high_j, low_j, total, rest, one, PRODUCTS)
    total = (total + rest * (1.0 / 2048.0)) * (top * factor)
    row = out + (tl.program_id(1).to(tl.int64) * n + i) * (r + 1)
    tl.store(row[:, None] + k[None, :], total, mask=(i < n)[:, None] & (k < r)[None, :])
    tl.store(row + r, weights, mask=i < n)
