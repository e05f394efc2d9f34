"""The LMNN hinge by lists: over listed impostors, a lower bound; and the looks that list them."""

from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import like, read_only, to_numpy
from kernelmetric.compute._execute import over_tiles, run_on_cluster, sum_tiles
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.backends._native import add_listed_hinge, add_pulled, hinge_compiled
from kernelmetric.compute.reductions._impostors import laplacian_product
from kernelmetric.compute.reductions._products import product
from kernelmetric.compute.reductions._smallest import smallest_of_rows, true_entries, upper_bounds
from kernelmetric.compute.reductions._triplets import (
    FLOPS_OF_ONE,
    Block,
    Margins,
    Points,
    Triplets,
    distances,
    impostor_blocks,
    pair_distances,
    points_of,
    targets_part,
)

_PARTS = 16  # of a list, for threads and workers to share
_LONG = 1.3  # pairs for each number of the points, from which sums of parts take their own product


def lmnn_step_on(
    pairs: np.ndarray,
    L: Any,
    X: Any,
    targets: np.ndarray,
    c: float,
    smoothing: float = 0.0,
    weighed: Triplets | None = None,
) -> tuple[float, np.ndarray]:
    """The LMNN objective of a map over listed impostors alone, and its float64 gradient.

    ``pairs`` (point, impostor) are sorted by point. Workers of a cluster share long lists.
    """
    L = like(L, X)
    if not hinge_compiled(X, pairs):
        E = product(X, L.T)
        value, sums = lmnn_hinge_on(pairs, E, E, targets, c, smoothing, weighed)
        return value, _gradient(sums, X)
    ends = [len(pairs) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [slice(a, b) for a, b in pairwise(ends) if a < b] or [slice(0, 0)]
    n, r, long = len(X), len(L), len(pairs) > _LONG * X.size
    # Of a short list the product with all points is taken once, and sums as large as these stay.
    with nullcontext() if long else run_on_cluster(None):
        value, sums = sum_tiles(
            partial(_step_sums, X if long else None, pairs, targets, c),
            parts,
            flops=FLOPS_OF_ONE * len(pairs) * r + (4.0 * X.size * r if long else 0.0),
            entries=n * r,
            once=partial(_pulled, X, L, targets, weighed, smoothing),
        )
    return value, sums if long else _gradient(sums, X)


def _pulled(
    X: np.ndarray, L: np.ndarray, targets: np.ndarray, *how: Any
) -> tuple[np.ndarray, float, Margins, np.ndarray]:
    """Mapped points, the sum of target distances, the margins beyond these, and their weights."""
    E = np.ascontiguousarray(product(X, L.T))
    return E, *targets_part(E, targets, *how)


def _step_sums(
    X: np.ndarray | None,
    pairs: np.ndarray,
    targets: np.ndarray,
    c: float,
    pulled: tuple[np.ndarray, float, Margins, np.ndarray],
    parts: list[slice],
) -> tuple[float, np.ndarray]:
    """The tile: hinge of some pairs, the targets' with the first, and its gradient or its sums."""
    E, pull, margins, weights_of_pull = pulled
    weights, sums = np.zeros(weights_of_pull.shape), np.zeros_like(E)
    value = c * sum(add_listed_hinge(E, pairs[part], margins, weights, sums) for part in parts)
    weights *= c
    sums *= c
    if parts[0].start == 0:
        value, weights = value + pull, weights + weights_of_pull
    add_pulled(E, targets, weights, sums)
    return value, sums if X is None else _gradient(sums, X)


def _gradient(sums: Any, X: Any) -> np.ndarray:
    """The gradient with respect to the map, from the Laplacian times mapped points."""
    return np.multiply(to_numpy(product(sums.T, X)), 2.0, dtype=np.float64)


def lmnn_hinge_on(
    pairs: np.ndarray,
    E: Any,
    V: Any,
    targets: np.ndarray,
    c: float,
    smoothing: float = 0.0,
    weighed: Triplets | None = None,
) -> tuple[float, Any]:
    """The LMNN objective over listed impostors alone, and ``Lap(ω) V``; see :func:`lmnn_hinge`."""
    value, margins, pull = targets_part(E, targets, weighed, smoothing)
    i, impostor = pairs[:, 0], pairs[:, 1]
    d = pair_distances(E, i, impostor)
    active = np.flatnonzero(d < margins.thresholds.max(axis=1)[i])
    i, impostor = i[active], impostor[active]
    hinge, weights, slopes = margins.costs(i, impostor, d[active])
    sums = c * laplacian_product(i, impostor, -weights, V)
    i, slot = np.nonzero(targets >= 0)
    weights = (pull + c * slopes)[i, slot]
    return value + c * hinge, sums + laplacian_product(i, targets[i, slot], weights, V)


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
    value, margins, _ = targets_part(E, targets, weighed)
    reach = (1.0 + slack) * margins.thresholds.max(axis=1)
    found = over_tiles(
        partial(_mined, points_of(E, codes), margins, reach, most),
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
    pulled, (thresholds, *_), _ = targets_part(E, targets, weighed)
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
    points: Points, margins: Margins, reach: np.ndarray, most: int, block: Block
) -> tuple[float, np.ndarray]:
    """The tile: the hinge of some rows, and their near pairs."""
    rows, D2 = block.rows, to_numpy(distances(points, block))
    near = np.ascontiguousarray(margins.thresholds[rows].T)
    farthest, within = near.max(axis=0).astype(D2.dtype), reach[rows].astype(D2.dtype)
    bounds = upper_bounds(D2, most)
    wide = np.maximum(farthest, np.minimum(within, bounds))
    i, columns = true_entries(D2 <= wide[:, None])  # one look for both
    d, impostor = D2[i, columns], block.of_all(columns)
    active, count = np.flatnonzero(d < farthest[i]), None
    if margins.weighed is not None:
        count = margins.weighed.of_pairs(i[active] + rows.start, impostor[active])
    loss = _hinge(near.take(i[active], axis=1) - d[active], count)
    listed = np.flatnonzero((d < within[i]) & (d <= bounds[i]))
    listed = listed[smallest_of_rows(i[listed], d[listed], most)]
    pairs = np.stack([i[listed] + rows.start, impostor[listed]], axis=1)
    return loss, pairs.astype(np.int32)


def _hinge(margins: np.ndarray, count: np.ndarray | None) -> float:
    """Plain hinges of margins, which are written into, times what each counts."""
    np.maximum(margins, 0.0, out=margins)
    return float(np.sum(margins if count is None else margins * count))
