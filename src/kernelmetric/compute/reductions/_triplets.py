"""What the LMNN hinge looks at: target pairs, and blocks of points beside other classes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import namespace, take_rows
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.backends._native import pair_squares
from kernelmetric.compute.reductions._distances import robust_center, squared_lengths
from kernelmetric.compute.reductions._softmax import class_slices

_TILE_BYTES = 8 * 2**20  # of a block of rows and all columns
_LARGE = 8  # a class with this part of all points is worth a table of the others
_SHARED_ROWS = 128  # of small classes in one block
_PAIR_CHUNK_BYTES = 2**20
FLOPS_OF_ONE = 15.0  # what takes as long as one number of a gathered row


class Block(NamedTuple):
    """Some rows, and the rows that these do not look at: those of their class, or none."""

    rows: slice
    unseen: slice

    def spans(self, n: int) -> list[tuple[slice, slice]]:
        """The other rows of n in one or two runs: where they are in the block, and of all."""
        first, width = self.unseen.start, self.unseen.stop - self.unseen.start
        runs = [(slice(0, first), slice(0, first))] if first else []
        if first + width < n:
            runs.append((slice(first, n - width), slice(first + width, n)))
        return runs

    def of_all(self, columns: np.ndarray) -> np.ndarray:
        """Which of all rows columns of the block stand for."""
        return columns + (self.unseen.stop - self.unseen.start) * (columns >= self.unseen.start)


class Points(NamedTuple):
    """Embedded points about a centre, beside each a one and its squared length."""

    augmented: Any
    codes: np.ndarray

    def facing(self, rows: slice) -> Any:
        """``(-2x, |x|², 1)`` of some: times ``augmented.T`` these are squared distances."""
        some = self.augmented[rows, :]
        return namespace(some).concat([-2.0 * some[:, :-2], some[:, -1:], some[:, -2:-1]], axis=1)


class Triplets(NamedTuple):
    """What the triplets (i, j, l) of a point, a target and an impostor count: ``parts_ij w_l``."""

    parts: np.ndarray  # (n, k): of target pairs, the weight of the point included
    counts: np.ndarray  # (n,): of impostors

    def of_pairs(self, i: np.ndarray, impostor: np.ndarray) -> np.ndarray:
        """What the triplets of pairs (point, impostor) count, a row for each target."""
        return self.parts.T.take(i, axis=1) * self.counts[impostor]


class Margins(NamedTuple):
    """Where hinges begin (n, k), -inf where a target is missing; their corners; their weights."""

    thresholds: np.ndarray
    smoothing: float
    weighed: Triplets | None

    def of(self, block: Block) -> Margins:
        """Those of the rows of a block, and of the impostors that it looks at."""
        weighed = self.weighed
        if weighed is not None:
            seen = np.delete(weighed.counts, block.unseen)
            weighed = Triplets(weighed.parts[block.rows], seen)
        return Margins(self.thresholds[block.rows], self.smoothing, weighed)

    def costs(
        self, i: np.ndarray, impostor: np.ndarray, squares: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The hinge of pairs at squared distances, slopes of the pairs, and slopes of targets."""
        h, slope = huber_hinge(self.thresholds[i] - squares[:, None], self.smoothing, np)
        if self.weighed is not None:
            count = self.weighed.parts[i] * self.weighed.counts[impostor][:, None]
            h, slope = h * count, slope * count
        n = len(self.thresholds)
        columns = [np.bincount(i, weights=column, minlength=n) for column in slope.T]
        return float(h.sum()), slope.sum(axis=1), np.stack(columns, axis=1)


def targets_part(
    E: Any, targets: np.ndarray, weighed: Triplets | None, smoothing: float = 0.0
) -> tuple[float, Margins, np.ndarray]:
    """Sum of target distances, the margins 1 + d_ij (-inf where missing), and weights of pairs."""
    i, slot = np.nonzero(targets >= 0)
    d = pair_distances(E, i, targets[i, slot])
    thresholds = np.full(targets.shape, -np.inf)
    thresholds[i, slot] = 1.0 + d
    margins = Margins(thresholds, smoothing, weighed)
    if weighed is not None:
        pull = np.where(targets >= 0, weighed.parts, 0.0)
        return float(pull[i, slot] @ d), margins, pull
    return float(d.sum()), margins, (targets >= 0).astype(np.float64)


def huber_hinge(margin: Any, smoothing: float, xp: Any) -> tuple[Any, Any]:
    """Huber-smoothed hinge of a margin and its slope; ``smoothing`` is the width of the corner."""
    positive = xp.clip(margin, 0.0, None)
    if smoothing <= 0:
        return positive, xp.where(margin > 0, xp.ones_like(margin), xp.zeros_like(margin))
    slope = xp.clip(positive / smoothing, 0.0, 1.0)
    return slope * (positive - 0.5 * smoothing * slope), slope


def impostor_blocks(codes: np.ndarray, E: Any, *, most: int | None = None) -> list[Block]:
    """Blocks of rows, large classes by themselves."""
    n = len(codes)
    fitting = tile_rows(E, n, _TILE_BYTES)
    most = min(fitting, most or fitting)

    def cut(first: int, last: int, unseen: slice, most: int) -> list[Block]:
        parts = row_blocks(last - first, 8 * n * itemsize_of(E), most=most)
        return [Block(slice(first + part.start, first + part.stop), unseen) for part in parts]

    blocks: list[Block] = []
    covered = 0
    for start, stop in [*class_slices(codes), (n, n)]:
        if stop - start >= n / _LARGE or start == n:
            blocks += cut(covered, start, slice(0, 0), min(most, _SHARED_ROWS))
            blocks += cut(start, stop, slice(start, stop), most)
            covered = stop
    return blocks


def points_of(E: Any, codes: np.ndarray) -> Points:
    """Embedded points and their classes, ready for :func:`distances`."""
    xp = namespace(E)
    E = E - robust_center(E)
    # One product gives |a|² - 2ab + |b|²: passes over its result cost as much again.
    augmented = xp.concat([E, xp.ones_like(E[:, :1]), squared_lengths(E)[:, None]], axis=1)
    return Points(augmented, codes)


def distances(points: Points, block: Block) -> Any:
    """Squared distances of a block to all that it looks at; infinite within a class."""
    augmented, codes = points
    rows, unseen = block
    seen = [others for _, others in block.spans(len(codes))] or [slice(0, 0)]
    left = points.facing(rows)
    D2 = left @ namespace(left).concat([augmented[run, :] for run in seen], axis=0).T
    if unseen.start == unseen.stop:
        for start, stop in class_slices(codes[rows]):
            code = codes[rows.start + start]
            own, last = (int(np.searchsorted(codes, code, side)) for side in ("left", "right"))
            D2[start:stop, own:last] = np.inf
    return D2


def pair_distances(E: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Squared distances of listed pairs, in float64, a bounded number of them at a time."""
    step = max(1, _PAIR_CHUNK_BYTES // (itemsize_of(E) * max(E.shape[1], 1)))
    chunks = [slice(start, start + step) for start in range(0, len(i), step)]
    flops, host = FLOPS_OF_ONE * len(i) * E.shape[1], backend_of(E).host
    parts = over_tiles(partial(_some_distances, E, i, j), chunks, flops=flops, host=host)
    return np.concatenate([np.empty(0), *parts])


def _some_distances(E: Any, i: np.ndarray, j: np.ndarray, chunk: slice) -> np.ndarray:
    """The tile: some of the pairs."""
    if isinstance(E, np.ndarray):
        return pair_squares(E, i[chunk], j[chunk])
    a, b = take_rows(E, i[chunk]), take_rows(E, j[chunk])
    return backend_of(E).squares_between(a, b, wide=False)
