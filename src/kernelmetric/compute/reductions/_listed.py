"""The LMNN hinge over a list of impostors, which ``mine_impostors`` makes: a lower bound."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import like, to_numpy
from kernelmetric.compute._execute import run_elsewhere, sum_tiles
from kernelmetric.compute.backends._native import add_listed_hinge, add_pulled, hinge_compiled
from kernelmetric.compute.reductions._impostors import laplacian_product
from kernelmetric.compute.reductions._products import product
from kernelmetric.compute.reductions._triplets import (
    FLOPS_OF_ONE,
    Margins,
    Triplets,
    pair_distances,
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
    with nullcontext() if long else run_elsewhere(None):
        value, sums = sum_tiles(
            partial(_step_sums, X if long else None, pairs, targets, c, smoothing, weighed),
            parts,
            flops=FLOPS_OF_ONE * len(pairs) * r + (4.0 * X.size * r if long else 0.0),
            entries=n * r,
            once=partial(_pulled, X, L, targets, weighed),
        )
    return value, sums if long else _gradient(sums, X)


def _pulled(
    X: np.ndarray, L: np.ndarray, targets: np.ndarray, weighed: Triplets | None
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Mapped points, the sum of target distances, the margins beyond these, and their weights."""
    E = np.ascontiguousarray(product(X, L.T))
    return E, *targets_part(E, targets, weighed)


def _step_sums(
    X: np.ndarray | None,
    pairs: np.ndarray,
    targets: np.ndarray,
    c: float,
    smoothing: float,
    weighed: Triplets | None,
    pulled: tuple[np.ndarray, float, np.ndarray, np.ndarray],
    parts: list[slice],
) -> tuple[float, np.ndarray]:
    """The tile: hinge of some pairs, the targets' with the first, and its gradient or its sums."""
    E, pull, thresholds, weights_of_pull = pulled
    weights, sums = np.zeros(thresholds.shape), np.zeros_like(E)
    how = thresholds, smoothing, weighed, weights, sums
    value = c * sum(add_listed_hinge(E, pairs[part], *how) for part in parts)
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
    value, thresholds, pull = targets_part(E, targets, weighed)
    i, impostor = pairs[:, 0], pairs[:, 1]
    d = pair_distances(E, i, impostor)
    active = np.flatnonzero(d < thresholds.max(axis=1)[i])
    i, impostor = i[active], impostor[active]
    hinge, weights, slopes = Margins(thresholds, smoothing, weighed).costs(i, impostor, d[active])
    sums = c * laplacian_product(i, impostor, -weights, V)
    i, slot = np.nonzero(targets >= 0)
    weights = (pull + c * slopes)[i, slot]
    return value + c * hinge, sums + laplacian_product(i, targets[i, slot], weights, V)
