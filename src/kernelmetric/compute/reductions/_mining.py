"""Looks at all impostors: which ones a descent should watch, and what LMNN's objective is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import read_only, to_numpy
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._selection import smallest_of_rows, upper_bounds
from kernelmetric.compute.reductions._triplets import (
    Block,
    Points,
    Triplets,
    impostor_blocks,
    points_of,
    strips_of,
    targets_part,
)

_CROWDED = 3  # times as many as are listed: the farther ones are left out before the next strip
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
        impostor_blocks(codes, E, strips=True),
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
    blocks = impostor_blocks(codes, E, strips=True, most=_SAMPLED_ROWS if every > 1 else None)
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
    rows, sums = block.rows, np.zeros(len(margins))
    near = np.ascontiguousarray(near[rows].T)  # long rows: NumPy is slow on columns of three
    farthest = near.max(axis=0)[:, None] + margins.max()
    for D2, seen in strips_of(points, block):
        D2 = to_numpy(D2)
        entries = np.flatnonzero(D2 < farthest.astype(D2.dtype))
        i = entries // D2.shape[1]
        excess, count = near.take(i, axis=1) - D2.reshape(-1)[entries], None
        if weighed is not None:
            count = _counts(weighed.of(rows, seen), i, entries % D2.shape[1])
        sums += [_hinge(excess + margin, count) for margin in margins]
    return sums


def _mined(
    points: Points,
    thresholds: np.ndarray,
    reach: np.ndarray,
    most: int,
    weighed: Triplets | None,
    block: Block,
) -> tuple[float, np.ndarray]:
    """The tile: the hinge of some rows, and their near pairs."""
    rows, loss = block.rows, 0.0
    near = np.ascontiguousarray(thresholds[rows].T)
    nearest = _Nearest(rows.stop - rows.start, most)
    for D2, seen in strips_of(points, block):
        D2 = to_numpy(D2)
        farthest, within = near.max(axis=0).astype(D2.dtype), reach[rows].astype(D2.dtype)
        bounds = nearest.bounds(D2)
        wide = np.maximum(farthest, np.minimum(within, bounds))
        entries = np.flatnonzero(D2 <= wide[:, None])  # one look for both
        (i, impostor), d = np.divmod(entries, D2.shape[1]), D2.reshape(-1)[entries]
        active, count = np.flatnonzero(d < farthest[i]), None
        if weighed is not None:
            count = _counts(weighed.of(rows, seen), i[active], impostor[active])
        loss += _hinge(near.take(i[active], axis=1) - d[active], count)
        listed = np.flatnonzero((d < within[i]) & (d <= bounds[i]))
        nearest.add(i[listed], impostor[listed] + seen.start, d[listed])
    i, impostor = nearest.pairs()
    return loss, np.stack([i + rows.start, impostor], axis=1).astype(np.int32)


class _Nearest:
    """The nearest impostors of some rows, at most so many of each, while strips are looked at."""

    def __init__(self, n_rows: int, most: int):
        self._n_rows, self._most = n_rows, most
        self._bounds: np.ndarray | None = None
        none = np.empty(0, dtype=np.intp)
        self._parts: list[tuple[np.ndarray, ...]] = [(none, none, np.empty(0, dtype=np.float32))]
        self._counts = np.zeros(n_rows, dtype=np.intp)

    def bounds(self, D2: np.ndarray) -> np.ndarray:
        """What the nearest ones of every row do not exceed, as far as strips have told."""
        if self._bounds is None:
            self._bounds = upper_bounds(D2, self._most)
        return self._bounds

    def add(self, i: np.ndarray, impostor: np.ndarray, d: np.ndarray) -> None:
        """Pairs of the next strip, sorted by row, and their distances."""
        self._parts.append((i, impostor, d))
        self._counts += np.bincount(i, minlength=self._n_rows)
        if self._bounds is not None and self._counts.max(initial=0) > _CROWDED * self._most:
            i, _, d = self._cut()
            self._counts = np.bincount(i, minlength=self._n_rows)
            full = self._counts == self._most
            self._bounds[full] = d[full[i]].reshape(-1, self._most).max(axis=1)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and impostors, sorted by row."""
        i, impostor, _ = self._cut()
        return i, impostor

    def _cut(self) -> tuple[np.ndarray, ...]:
        """Leave out what is no longer among the nearest."""
        parts = [np.concatenate(part) for part in zip(*self._parts, strict=True)]
        # Few rows have short numbers, which NumPy sorts in one pass; their pairs stay in order.
        order = np.argsort(parts[0].astype(np.min_scalar_type(self._n_rows)), kind="stable")
        i, impostor, d = (part[order] for part in parts)
        kept = smallest_of_rows(i, d, self._most)
        self._parts = [(i[kept], impostor[kept], d[kept])]
        return self._parts[0]


def _hinge(margins: np.ndarray, count: np.ndarray | None) -> float:
    """Plain hinges of margins, which are written into, times what each counts."""
    np.maximum(margins, 0.0, out=margins)
    return float(np.sum(margins if count is None else margins * count))


def _counts(weighed: Triplets, i: np.ndarray, impostor: np.ndarray) -> np.ndarray:
    """What the triplets of pairs count, a row for each target."""
    return weighed.parts.T.take(i, axis=1) * weighed.counts[impostor]
