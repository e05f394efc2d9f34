"""Frobenius products between Gram matrices, none of which is ever whole.

Tile by tile, the values of all kernels at the same pairs are multiplied with one GEMM::

    pairs (rows × columns) ──evaluate──▶ F (m, pairs) ──▶ products += F Fᵀ, row sums += F 1
"""

from collections.abc import Callable, Iterable
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import device_of, like, namespace, to_numpy
from kernelmetric.compute._budget import current_budget, row_blocks, tile_rows
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute.backends import backend_of

_TILE_BYTES = 8 * 2**20  # the tile of all kernels; smaller ones spend their time in Python
_PAIR_BYTES = 64  # per kernel value: float64, temporaries, some threads
_OPERATIONS = 60.0  # per kernel value, the exponential included: to judge what threads are worth

Evaluate = Callable[[slice, slice], Iterable[Any]]


class GramProducts(NamedTuple):
    """Sums over N points for m Gram matrices, from :func:`gram_products`.

    ``plain`` ⟨K, L⟩, ``centred`` ⟨HKH, HLH⟩ with H = I - 11ᵀ/N, tr K, 1ᵀK1, and means of the rows.
    """

    plain: np.ndarray
    centred: np.ndarray
    traces: np.ndarray
    totals: np.ndarray
    row_means: np.ndarray


def gram_products(
    evaluate: Evaluate, n: int, *, population: int | None = None, weights: np.ndarray | None = None
) -> GramProducts:
    """Frobenius products between Gram matrices, plain and centred, in one pass, in float64.

    ``⟨HKH, HLH⟩ = ⟨K, L⟩ - 2/n ⟨K1, L1⟩ + (1ᵀK1)(1ᵀL1) / n²``. ``evaluate(rows, columns)`` yields m
    blocks, one per matrix, for two slices of ``range(n)``, from several threads. With
    ``population`` N the n points are a random sample, and the results estimates for all N.
    """
    values = list(evaluate(slice(0, 1), slice(n - 1, n)))  # says how many, and of which library
    m = len(values)
    # Centring forgets constants; without one, the squares of a nearly constant kernel are small
    # and their sums lose nothing.
    shift = np.array([float(value[0, 0]) for value in values])
    pairs = min(tile_rows(values[0], 2 * m, _TILE_BYTES), current_budget() // (_PAIR_BYTES * m))
    blocks = list(row_blocks(n, 1, most=max(1, isqrt(pairs))))
    tiles = [(i, j) for k, i in enumerate(blocks) for j in blocks[k:]]

    products, sums, diagonals = sum_tiles(
        partial(_sums, evaluate, shift, n, weights),
        tiles,
        flops=_OPERATIONS * m * n * n / 2,
        entries=m * n,
        host=backend_of(values[0]).host,
    )
    with np.errstate(all="ignore"):
        counts = np.ones(n) if weights is None else weights
        return _scaled(products, sums, diagonals, shift, counts, population or n)


def row_products(
    evaluate: Evaluate,
    n: int,
    *,
    means: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Sums over j of k_ij l_ij, then k_ii l_ii, for every point i: an array (2, n, m, m).

    With ``means``, of the rows, matrices are centred; weights are those of both points.
    """
    parts = []
    everything = slice(0, n)
    grand = None if means is None else np.average(means, axis=1, weights=weights)[:, None, None]
    for rows in row_blocks(n, 2 * _PAIR_BYTES * n):
        F = np.stack([to_numpy(K).astype(np.float64) for K in evaluate(rows, everything)])
        if means is not None:
            F += grand - means[:, rows, None] - means[:, None, :]
        if weights is not None:
            F *= np.sqrt(np.outer(weights[rows], weights))
        own = np.take_along_axis(F, np.arange(n)[rows][None, :, None], axis=2)[:, :, 0]
        R = np.moveaxis(F, 1, 0)
        parts.append(np.stack([R @ np.moveaxis(R, 1, 2), np.einsum("ai,bi->iab", own, own)]))
    return np.concatenate(parts, axis=1)


def _sums(
    evaluate: Evaluate,
    shift: np.ndarray,
    n: int,
    weights: np.ndarray | None,
    tiles: list[tuple[slice, slice]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Products, row sums and diagonals of K - shift, over some of the tiles."""
    m = len(shift)
    products, sums, diagonals = np.zeros((m, m)), np.zeros((m, n)), np.zeros((m, n))
    for rows, columns in tiles:
        with np.errstate(all="ignore"):  # what overflows is seen in the sums
            F = _stacked(evaluate(rows, columns), shift)
            xp = namespace(F)
            across = down = G = F
            if weights is not None:
                a, b = like(weights[rows], F)[:, None], like(weights[columns], F)
                across, down, G = b * F, a * F, xp.sqrt(a) * xp.sqrt(b) * F
            flat = xp.reshape(G, (m, -1))
            tile = to_numpy(flat @ flat.T)
            sums[:, rows] += to_numpy(xp.sum(across, axis=2))
            if rows == columns:
                diagonals[:, rows] = to_numpy(xp.linalg.diagonal(F))
                products += tile
            else:  # its mirror image below the diagonal
                sums[:, columns] += to_numpy(xp.sum(down, axis=1))
                products += 2.0 * tile
    return products, sums, diagonals


def _stacked(blocks: Iterable[Any], shift: np.ndarray) -> Any:
    F = None
    for k, K in enumerate(blocks):  # one at a time: a block may be freed before the next comes
        if F is None:
            xp = namespace(K)
            F = xp.empty((len(shift), *K.shape), dtype=xp.float64, device=device_of(K))
        F[k, ...] = K
        F[k, ...] -= float(shift[k])
    return F


def _scaled(
    products: np.ndarray,
    sums: np.ndarray,
    diagonals: np.ndarray,
    shift: np.ndarray,
    weights: np.ndarray,
    N: int,
) -> GramProducts:
    """What sums over n points say of N: every kind of tuple counts as often as there are."""
    n = len(weights)
    every = N / n  # for how many single points, pairs and triples of N each of n stands
    two = every * (N - 1) / max(n - 1, 1)
    three = two * (N - 2) / max(n - 2, 1)
    total, beside = every * float(np.sum(weights)), sums - weights * diagonals
    mixed = (weights**2 * diagonals) @ beside.T
    D = (weights**2 * diagonals) @ diagonals.T
    off = float(np.mean(weights)) * (products - D)
    rows = every * (weights**3 * diagonals) @ diagonals.T + two * (mixed + mixed.T + off)
    rows += three * ((weights * beside) @ beside.T - off)
    totals = every * (diagonals @ weights**2) + two * (beside @ weights)
    centred = every * D + two * (products - D) - 2.0 / total * rows
    centred += np.outer(totals, totals) / total**2
    cross = np.outer(shift, sums @ weights + 0.5 * np.sum(weights) ** 2 * shift)
    moved = diagonals + shift[:, None]
    D = (weights**2 * moved) @ moved.T
    plain = every * D + two * (products + cross + cross.T - D)
    means = sums / np.sum(weights) + shift[:, None]
    return GramProducts(plain, centred, every * moved @ weights, totals + total**2 * shift, means)
