"""The hinge of LMNN for arrays that are not NumPy's: all impostors, and nothing leaves the device.

A device looks at all pairs in the time in which it would make a list of those that cost something.
"""

from __future__ import annotations

from typing import Any

from kernelmetric.compute._arrays import device_of, in_library_of, like, namespace
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._differences import robust_center, squared_lengths


def hinge_there(
    E: Any,
    V: Any,
    targets: Any,
    codes: Any,
    c: float,
    smoothing: float,
    weighed: Any = None,
) -> tuple[float, Any]:
    """The hinge of :func:`kernelmetric.compute.lmnn_hinge` on a device, and ``Lap(ω) V``.

    ``targets`` (n, k) are row numbers, -1 where missing.
    """
    xp, backend = namespace(E), backend_of(E)
    targets, codes = in_library_of(targets, E), in_library_of(codes, E)
    itself = V is E
    E = E - robust_center(E)
    V = E if itself else V  # a Laplacian does not see where the origin is
    there = targets >= 0
    rows = xp.arange(E.shape[0], dtype=targets.dtype, device=device_of(E))
    targets = xp.where(there, targets, rows[:, None])  # a missing one is the point: no difference
    slots = range(targets.shape[1])
    squares = xp.stack([_squares(E - xp.take(E, targets[:, t], axis=0)) for t in slots], axis=1)
    missing = xp.full_like(squares[:1, :1], -xp.inf)
    thresholds = xp.where(there, 1.0 + squares, missing)
    wanted = V.shape[1] > 0
    sums = None
    if weighed is not None:
        weighed = type(weighed)(*(like(part, E) for part in weighed))
    elif itself or not wanted:
        sums = backend.hinge_sums(E, thresholds, codes, smoothing, gradient=wanted)
    loss, per_target, product = sums or _all_impostors(E, V, thresholds, codes, smoothing, weighed)
    parts = xp.ones_like(squares) if weighed is None else weighed.parts
    value = float(xp.sum(parts * squares, dtype=xp.float64) + c * loss)
    product = -c * product
    for t in slots if wanted else ():
        weight = parts[:, t] + c * per_target[:, t]
        pull = weight[:, None] * (V - xp.take(V, targets[:, t], axis=0))
        product = backend.add_rows(product + pull, targets[:, t], -pull)
    return value, product


def _all_impostors(
    E: Any, V: Any, thresholds: Any, codes: Any, smoothing: float, weighed: Any = None
) -> tuple[Any, Any, Any]:
    """Hinge, slopes that target pairs collect, and the impostors' Laplacian times V."""
    xp, n = namespace(E), E.shape[0]
    squares = squared_lengths(E)
    loss, product = xp.zeros((), dtype=xp.float64, device=device_of(E)), xp.zeros_like(V)
    per_target = []
    for rows in row_blocks(n, 8 * n * itemsize_of(E), most=tile_rows(E, 4 * n, 0)):
        D2 = (-2.0 * E[rows, :]) @ E.T
        D2 += squares[None, :]
        D2 += squares[rows][:, None]
        same = codes[rows][:, None] == codes[None, :]
        D2 = xp.where(same, xp.full_like(D2[:1, :1], xp.inf), D2)
        W, collected = xp.zeros_like(D2), []
        for t in range(thresholds.shape[1]):
            h, slope = huber_hinge(thresholds[rows, t][:, None] - D2, smoothing, xp)
            if weighed is not None:
                count = weighed.parts[rows, t][:, None] * weighed.counts[None, :]
                h, slope = h * count, slope * count
            loss += xp.sum(h, dtype=xp.float64)
            collected.append(xp.sum(slope, axis=1))
            W += slope
        per_target.append(xp.stack(collected, axis=1))
        V_rows = V[rows, :]
        product[rows, :] += xp.sum(W, axis=1)[:, None] * V_rows - W @ V
        product += xp.sum(W, axis=0)[:, None] * V - W.T @ V_rows
    return loss, xp.concat(per_target), product


def huber_hinge(margin: Any, smoothing: float, xp: Any) -> tuple[Any, Any]:
    """Huber-smoothed hinge of a margin and its slope; ``smoothing`` is the width of the corner."""
    positive = xp.clip(margin, 0.0, None)
    if smoothing <= 0:
        return positive, xp.where(margin > 0, xp.ones_like(margin), xp.zeros_like(margin))
    slope = xp.clip(positive / smoothing, 0.0, 1.0)
    return slope * (positive - 0.5 * smoothing * slope), slope


def _squares(difference: Any) -> Any:
    return namespace(difference).sum(difference * difference, axis=1)
