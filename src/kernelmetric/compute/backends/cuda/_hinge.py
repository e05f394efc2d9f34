"""The hinge of LMNN over all impostors in one pass: no list of them, on the device or off it."""

from typing import Any

import torch
import triton
import triton.language as tl

from kernelmetric.compute.backends.cuda._halves import accumulate, halves, inner, plan


def hinge_sums(
    E: Any, thresholds: Any, codes: Any, smoothing: float, *, gradient: bool
) -> tuple[Any, Any, Any]:
    """Hinge of all impostors, slopes (n, k) by target pair, and their Laplacian times E."""
    (n, r), k = E.shape, thresholds.shape[1]
    points = halves(E, codes)
    rows, width = points.high.shape
    beyond = 0, 0, 0, rows - n
    margins = torch.nn.functional.pad(thresholds.to(torch.float32), beyond, value=float("-inf"))
    reach = torch.amax(margins, dim=1)
    grid, share, options = plan(n, width)
    loss = E.new_zeros((grid[1], rows))
    per_target = E.new_zeros((grid[1], rows, k))
    out = E.new_empty((grid[1], n, r + 1) if gradient else (1,))
    _hinge[grid](
        *points, margins, reach, loss, per_target, out,
        n, r, rows, share, 1.0, float(smoothing), 1.0 / smoothing if smoothing > 0 else 0.0,
        TARGETS=k, SMOOTH=smoothing > 0, GRADIENT=gradient, **options,
    )  # fmt: skip
    total = torch.sum(loss, dtype=torch.float64)
    per_target = torch.sum(per_target, dim=0)[:n]
    if not gradient:
        return total, per_target, torch.zeros_like(E)
    sums = torch.sum(out, dim=0)
    return total, per_target, sums[:, -1:] * E - sums[:, :-1]


@triton.jit
def _costs(margin, smoothing, inverse, SMOOTH: tl.constexpr):
    """Hinge and slope of margins."""
    positive = tl.maximum(margin, 0.0)
    if SMOOTH:
        slope = tl.minimum(positive * inverse, 1.0)
        cost = slope * (positive - 0.5 * smoothing * slope)
    else:
        slope = tl.where(margin > 0.0, 1.0, 0.0)
        cost = positive
    return cost, slope


@triton.jit(do_not_specialize=["n", "r", "n_rows", "share", "one", "smoothing", "inverse"])
def _hinge(
    high, low, scale, squares, codes, largest, margins, reach, out_loss, out_target, out,
    n, r, n_rows, share, one, smoothing, inverse,
    TARGETS: tl.constexpr, SMOOTH: tl.constexpr, GRADIENT: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRODUCTS: tl.constexpr,
):  # fmt: skip
    """For some rows, over some columns: hinges of the rows, weights of the pairs times points."""
    i, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    high_i = tl.load(high + i[:, None] * WIDTH + k[None, :])
    low_i = tl.load(low + i[:, None] * WIDTH + k[None, :])
    scale_i, squares_i = 2.0 * tl.load(scale + i), tl.load(squares + i)
    codes_i, reach_i = tl.load(codes + i), tl.load(reach + i)
    top = tl.load(largest)
    inverse_top = 1.0 / top
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    rest = tl.zeros((ROWS, WIDTH), tl.float32)
    weights = tl.zeros((ROWS,), tl.float32)
    loss = tl.zeros((ROWS,), tl.float32)
    start = tl.program_id(1) * share
    stop = tl.minimum(start + share, n_rows)
    place = tl.program_id(1) * n_rows + i
    for first in range(start, stop, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        high_j = tl.load(high + j[:, None] * WIDTH + k[None, :])
        low_j = tl.load(low + j[:, None] * WIDTH + k[None, :])
        D = squares_i[:, None] + tl.load(squares + j)[None, :]
        S = inner(high_i, low_i, high_j, low_j, PRODUCTS)
        D = D - S * (scale_i[:, None] * tl.load(scale + j)[None, :])
        same = codes_i[:, None] == tl.load(codes + j)[None, :]
        D = tl.where(same, float("inf"), D)
        # Beyond all margins of row and column nothing costs: true for most tiles near the end.
        farthest = tl.maximum(reach_i[:, None], tl.load(reach + j)[None, :])
        if tl.max(tl.where(D < farthest, 1, 0)) > 0:
            W = tl.zeros((ROWS, COLUMNS), tl.float32)
            for t in tl.static_range(TARGETS):
                margin = tl.load(margins + i * TARGETS + t)[:, None] - D
                cost, slope = _costs(margin, smoothing, inverse, SMOOTH)
                loss += tl.sum(cost, axis=1)
                W += slope
                if GRADIENT:
                    collected = tl.load(out_target + place * TARGETS + t)
                    collected += tl.sum(slope, axis=1)
                    tl.store(out_target + place * TARGETS + t, collected)
                    margin = tl.load(margins + j * TARGETS + t)[None, :] - D
                    cost, slope = _costs(margin, smoothing, inverse, SMOOTH)
                    W += slope
            if GRADIENT:
                weights += tl.sum(W, axis=1)
                W = W * (tl.load(scale + j) * inverse_top)[None, :]
                total, rest = accumulate(W, high_j, low_j, total, rest, one, PRODUCTS)
    tl.store(out_loss + place, loss, mask=i < n)
    if GRADIENT:
        total = (total + rest * (1.0 / 2048.0)) * top
        row = out + (tl.program_id(1).to(tl.int64) * n + i) * (r + 1)
        tl.store(row[:, None] + k[None, :], total, mask=(i < n)[:, None] & (k < r)[None, :])
        tl.store(row + r, weights, mask=i < n)
