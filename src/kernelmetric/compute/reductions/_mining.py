"""Looks at all impostors: which ones a descent should watch, and what LMNN's objective is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import to_numpy
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._selection import k_smallest, true_entries
from kernelmetric.compute.reductions._triplets import (
    Block,
    Points,
    Triplets,
    distances,
    impostor_blocks,
    of_block,
    points_of,
    strips_of,
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

    Parameters
    ----------
    E : array of shape (n, r)
        The embedded points, rows sorted by class.
    targets : ndarray of shape (n, k)
        Row numbers of the target neighbours, -1 where missing.
    codes : ndarray of shape (n,)
        Class codes, ascending.
    c : float
        Weight of the hinge.
    slack : float, default=0.5
        A pair is listed when its squared distance is below (1 + slack) times the row's margin.
    most : int, default=200
        The nearest impostors of a row to list, at most.
    weighed : Triplets, default=None
        What each target pair and each impostor counts, where points have weights.

    Returns
    -------
    value : float
        The objective with the plain hinge, over all triplets.
    pairs : ndarray of shape (n_pairs, 2), dtype int32
        Sorted by point.

    Notes
    -----
    O(n² r) time, one block of rows × n and the pairs in memory.
    """
    value, thresholds, _ = targets_part(E, targets, weighed)
    reach = (1.0 + slack) * thresholds.max(axis=1)
    found = over_tiles(
        partial(_mined, points_of(E, codes), thresholds, reach, c, most, weighed),
        impostor_blocks(codes, E),
        flops=2.0 * len(codes) ** 2 * E.shape[1],
        host=backend_of(E).host,
    )
    value += sum(loss for loss, _ in found)
    return value, np.concatenate([pairs for _, pairs in found])


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
    """The LMNN objective of longer and shorter maps, in one look at the distances.

    Parameters
    ----------
    E : array of shape (n, r)
        The embedded points, rows sorted by class.
    targets : ndarray of shape (n, k)
        Row numbers of the target neighbours, -1 where missing.
    codes : ndarray of shape (n,)
        Class codes, ascending.
    c : float
        Weight of the hinge.
    squares : ndarray of shape (m,)
        What squared distances are multiplied with, positive.
    every : int, default=1
        Look at one block of rows in so many, and count its hinge so many times: an estimate.
    weighed : Triplets, default=None
        What each target pair and each impostor counts, where points have weights.

    Returns
    -------
    ndarray of shape (m,)
        The objective with the plain hinge for each of them.

    Notes
    -----
    ``[1 + s d_ij - s d_il]_+ = s [1/s + d_ij - d_il]_+``: only the margin differs.
    """
    pulled, thresholds, _ = targets_part(E, targets, weighed)
    blocks = impostor_blocks(codes, E, strips=True, most=_SAMPLED_ROWS if every > 1 else None)
    found = over_tiles(
        partial(_hinges, points_of(E, codes), thresholds - 1.0, 1.0 / squares, weighed),
        blocks[::every],
        flops=2.0 * len(codes) ** 2 * E.shape[1] / every,
        host=backend_of(E).host,
    )
    return squares * (pulled + c * every * np.sum(found, axis=0))


def _hinges(
    points: Points,
    near: np.ndarray,
    margins: np.ndarray,
    weighed: Triplets | None,
    block: Block,
) -> np.ndarray:
    """The tile: the plain hinges of some rows, for every margin beyond the target distances."""
    rows, sums = block.rows, np.zeros(len(margins))
    near = np.ascontiguousarray(near[rows].T)  # long rows: NumPy is slow on columns of three
    farthest = near.max(axis=0)[:, None] + margins.max()
    for D2, seen in strips_of(points, block):
        D2 = to_numpy(D2)
        entries = np.flatnonzero(D2 < farthest.astype(D2.dtype))
        i = entries // D2.shape[1]
        excess = near.take(i, axis=1) - D2.reshape(-1)[entries]
        count = None
        if weighed is not None:
            counts = weighed.counts[seen][entries % D2.shape[1]]
            count = weighed.parts[rows].T.take(i, axis=1) * counts
        for number, margin in enumerate(margins):
            hinge = excess + margin
            np.maximum(hinge, 0.0, out=hinge)
            sums[number] += np.sum(hinge if count is None else hinge * count)
    return sums


def _mined(
    points: Points,
    thresholds: np.ndarray,
    reach: np.ndarray,
    c: float,
    most: int,
    weighed: Triplets | None,
    block: Block,
) -> tuple[float, np.ndarray]:
    """The tile: the hinge of some rows, and their near pairs."""
    rows = block.rows
    D2 = to_numpy(distances(points, block))
    loss = _plain_hinge(D2, thresholds[rows], c, of_block(weighed, block, D2))
    near = D2 < reach[rows][:, None].astype(D2.dtype)
    crowded = np.flatnonzero(np.count_nonzero(near, axis=1) > most)
    if len(crowded):
        nearest, _ = k_smallest(D2[crowded], most)
        near[crowded] = False
        near[crowded[:, None], nearest] = True
    i, impostor = true_entries(near)
    return loss, np.stack([i + rows.start, block.of_all(impostor)], axis=1).astype(np.int32)


def _plain_hinge(
    D2: np.ndarray, thresholds: np.ndarray, c: float, weighed: Triplets | None = None
) -> float:
    """Plain hinge of a block."""
    i, impostor = true_entries(D2 < thresholds.max(axis=1, keepdims=True).astype(D2.dtype))
    margin = thresholds[i] - D2[i, impostor][:, None]
    if weighed is not None:
        count = weighed.parts[i] * weighed.counts[impostor][:, None]
        return c * float(np.sum(np.maximum(margin, 0.0) * count))
    return c * float(np.sum(margin, where=margin > 0))
