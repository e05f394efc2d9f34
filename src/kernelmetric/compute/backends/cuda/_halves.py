"""Points in two halves of float16, with a power of two for every row."""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

_PROGRAMS = 528  # of rows and columns together that keep a large device busy
# Coordinates: rows and columns of a tile, warps, and tiles on their way.
_SHAPES = {
    16: (64, 128, 4, 3),
    32: (64, 128, 4, 3),
    64: (64, 128, 4, 2),
    128: (64, 64, 4, 2),
    256: (64, 32, 4, 2),
}
_FAST_STAGES = {64: 3}  # where a product of halves is one instead of three, room for one more


class Halves(NamedTuple):
    """Rows are ``scale (high + low / 2048)``; beyond the last point they are zero."""

    high: Any
    low: Any
    scale: Any
    squares: Any
    codes: Any  # -1 beyond the last point
    largest: Any  # of the scales


def padded_rows(n: int) -> int:
    """Rows that tiles of every size cover."""
    return -(-n // 128) * 128


def halves(E: Any, codes: Any, factor: float = 1.0) -> Halves:
    """Split points times ``factor`` into halves, padded with points of infinite squared length."""
    n, r = E.shape
    rows, width = padded_rows(n), max(16, triton.next_power_of_2(r))
    high, low = torch.empty((2, rows, width), dtype=torch.float16, device=E.device)
    scale, squares = torch.empty((2, rows), dtype=torch.float32, device=E.device)
    kinds = torch.empty((rows,), dtype=torch.int32, device=E.device)
    _split[(rows // 32,)](
        E.contiguous(), codes.contiguous(), high, low, scale, squares, kinds, n, r, factor,
        WIDTH=width, ROWS=32, num_warps=4,
    )  # fmt: skip
    return Halves(high, low, scale, squares, kinds, torch.amax(scale))


@triton.jit(do_not_specialize=["n", "r", "factor"])
def _split(
    E, codes, high, low, scale, squares, kinds, n, r, factor,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Some rows in halves."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, WIDTH)[None, :]
    x = tl.load(E + i[:, None] * r + k, mask=(i < n)[:, None] & (k < r), other=0.0) * factor
    largest = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-30)
    # The next power of two, by adding to the digits and cutting them off.
    bits = (largest.to(tl.int32, bitcast=True) + 0x007FFFFF) & 0x7F800000
    size = bits.to(tl.float32, bitcast=True)
    tl.store(scale + i, size)
    tl.store(kinds + i, tl.load(codes + i, mask=i < n, other=-1).to(tl.int32))
    tl.store(squares + i, tl.where(i < n, tl.sum(x * x, axis=1), float("inf")))
    x = x / size[:, None]
    first = x.to(tl.float16)
    tl.store(high + i[:, None] * WIDTH + k, first)
    tl.store(low + i[:, None] * WIDTH + k, ((x - first.to(tl.float32)) * 2048.0).to(tl.float16))


def plan(n: int, width: int) -> tuple[tuple[int, int], int, dict[str, Any]]:
    """Programs for n points: some rows each, a share of the columns, and how to compile them."""
    tile_rows, tile_columns, warps, stages = _SHAPES[width]
    products = 3 if precise() else 1
    if products == 1:
        stages = _FAST_STAGES.get(width, stages)
    down = -(-n // tile_rows)
    columns = padded_rows(n)
    across = max(1, min(-(-_PROGRAMS // down), columns // tile_columns))
    share = -(-columns // (across * tile_columns)) * tile_columns
    options = {
        "WIDTH": width,
        "ROWS": tile_rows,
        "COLUMNS": tile_columns,
        "PRODUCTS": products,
        "num_warps": warps,
        "num_stages": stages,
    }
    return (down, -(-columns // share)), share, options


def precise() -> bool:
    """Whether products are to be as good as in float32: unless the user said otherwise."""
    chosen = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    if chosen is None:  # before torch 2.9
        return torch.get_float32_matmul_precision() == "highest"
    return chosen != "tf32"


@triton.jit
def inner(high_i, low_i, high_j, low_j, PRODUCTS: tl.constexpr):
    """Products of rows i with rows j, both in halves."""
    S = tl.dot(high_i, tl.trans(high_j))
    if PRODUCTS == 3:
        low = tl.dot(high_i, tl.trans(low_j))
        low = tl.dot(low_i, tl.trans(high_j), low)
        S += low * (1.0 / 2048.0)
    return S


@triton.jit
def accumulate(W, high_j, low_j, total, rest, one, PRODUCTS: tl.constexpr):
    """Add W times rows j to a total, and what is 2048 times as small to the rest."""
    high = W.to(tl.float16)
    if PRODUCTS == 1:
        total = tl.dot(high, high_j, total)
    else:
        # Tensor cores cut off what does not fit when they add to a sum: a bias that grows with its
        # length. The factor keeps the compiler from letting them.
        total += tl.dot(high, high_j) * one
        low = ((W - high.to(tl.float32)) * 2048.0).to(tl.float16)
        rest = tl.dot(high, low_j, rest)
        rest = tl.dot(low, high_j, rest)
    return total, rest
