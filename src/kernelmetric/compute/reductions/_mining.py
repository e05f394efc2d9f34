"""Looks at all impostors: which ones a descent should watch, and what LMNN's objective is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import read_only, to_numpy
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._selection import smallest_of_rows, true_entries, upper_bounds
from kernelmetric.compute.reductions._triplets import (
    Block,
    Points,
    Triplets,
    distances,
    impostor_blocks,
    points_of,
    targets_part,
)

_SAMPLED_ROWS = 32  # of a block, where some blocks stand for all: many small ones tell more


def mine_impostors(
    E: Any,
    targets: np.ndarray,
    codes: np.ndarray,
    c: float,
    *,
    slack: float = 0.5,
    most: int = 200,
    weighed: Triplets | None = None,
) -> tuple[float, np.ndarray]:
    """The exact LMNN objective, and the pairs (point, impostor) that a descent should watch.

    A pair is listed when its squared distance is below (1 + slack) times the row's margin, the
    ``most`` nearest of a row; int32, sorted by point, read-only.
    """
    value, thresholds, _ = targets_part(E, targets, weighed)
    reach = (1.0 + slack) * thresholds.max(axis=1)
    found = over_tiles(
        partial(_mined, points_of(E, codes), thresholds, reach, most, weighed),
        impostor_blocks(codes, E),
        flops=2.0 * len(codes) ** 2 * E.shape[1],
        host=backend_of(E).host,
    )
    value += c * sum(loss for loss, _ in found)
    return value, read_only(np.concatenate([pairs for _, pairs in found]))


def lmnn_at_lengths(
    E: Any,
    targets: np.ndarray,
    codes: np.ndarray,
    c: float,
    squares: np.ndarray,
    *,
    every: int = 1,
    weighed: Triplets | None = None,
) -> np.ndarray:
    """The LMNN objective with squared distances times each of ``squares``, in one look at them.

    ``[1 + s d_ij - s d_il]_+ = s [1/s + d_ij - d_il]_+``. ``every``: one block of rows in so many.
    """
    pulled, thresholds, _ = targets_part(E, targets, weighed)
    blocks = impostor_blocks(codes, E, most=_SAMPLED_ROWS if every > 1 else None)
    found = over_tiles(
        partial(_hinges, points_of(E, codes), thresholds - 1.0, 1.0 / squares, weighed),
        blocks[::every],
        flops=2.0 * len(codes) ** 2 * E.shape[1] / every,
        host=backend_of(E).host,
    )
    return squares * (pulled + c * every * np.sum(found, axis=0))


def _hinges(
    points: Points, near: np.ndarray, margins: np.ndarray, weighed: Triplets | None, block: Block
) -> np.ndarray:
    """The tile: the plain hinges of some rows, for every margin beyond the target distances."""
    rows, D2 = block.rows, to_numpy(distances(points, block))
    near = np.ascontiguousarray(near[rows].T)  # long rows: NumPy is slow on columns of three
    farthest = near.max(axis=0)[:, None] + margins.max()
    i, columns = true_entries(D2 < farthest.astype(D2.dtype))
    excess, count = near.take(i, axis=1) - D2[i, columns], None
    if weighed is not None:
        count = weighed.of_pairs(i + rows.start, block.of_all(columns))
    return np.array([_hinge(excess + margin, count) for margin in margins])


def _mined(
    points: Points,
    thresholds: np.ndarray,
    reach: np.ndarray,
    most: int,
    weighed: Triplets | None,
    block: Block,
) -> tuple[float, np.ndarray]:
    """The tile: the hinge of some rows, and their near pairs."""
    rows, D2 = block.rows, to_numpy(distances(points, block))
    near = np.ascontiguousarray(thresholds[rows].T)
    farthest, within = near.max(axis=0).astype(D2.dtype), reach[rows].astype(D2.dtype)
    bounds = upper_bounds(D2, most)
    wide = np.maximum(farthest, np.minimum(within, bounds))
    i, columns = true_entries(D2 <= wide[:, None])  # one look for both
    d, impostor = D2[i, columns], block.of_all(columns)
    active, count = np.flatnonzero(d < farthest[i]), None
    if weighed is not None:
        count = weighed.of_pairs(i[active] + rows.start, impostor[active])
    loss = _hinge(near.take(i[active], axis=1) - d[active], count)
    listed = np.flatnonzero((d < within[i]) & (d <= bounds[i]))
    listed = listed[smallest_of_rows(i[listed], d[listed], most)]
    pairs = np.stack([i[listed] + rows.start, impostor[listed]], axis=1)
    return loss, pairs.astype(np.int32)


def _hinge(margins: np.ndarray, count: np.ndarray | None) -> float:
    """Plain hinges of margins, which are written into, times what each counts."""
    np.maximum(margins, 0.0, out=margins)
    return float(np.sum(margins if count is None else margins * count))
