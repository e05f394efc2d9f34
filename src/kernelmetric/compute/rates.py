"""How fast this machine is, or a device of it, which a short run measures once a process."""

import math
import timeit
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import Context
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._arrays import to_numpy
from kernelmetric.compute._device import device_in_use, to_device, use_device
from kernelmetric.compute._threads import repeatable, tiles_at_once
from kernelmetric.compute.reductions import exp_of_negative, l1_distances, squared_distances
from kernelmetric.compute.watch import time_left, warn_of_limit

_RUNS = 6  # of each piece of work; the fastest counts, as others may use the machine too
_SIZES = 256, 2_048  # rows of the product that is measured on the host, and on a device
_BLOCKS = (100, 500), (2_000, 5_000)  # rows and anchors of the kernel values, likewise
_FEATURES = 8, 64  # of these
_CELLS = 10_000, 20  # of the pass over points that is measured
_SHARE = 0.7  # of the time that is left may be planned for
_SHARED = 0.8  # a power of the number of threads: so many times as fast are all of them


class Rates(NamedTuple):
    """Seconds of a unit of each kind of work; threads share all but the last."""

    product: float  # a multiplication and addition within a large product, in float64
    value: float  # a kernel value, but for
    feature: float  # each feature of it
    cell: float  # a number in a pass over points

    def block(self, n_values: float, n_features: int) -> float:
        """Seconds of kernel values."""
        return n_values * (self.value + n_features * self.feature)


def rates(device: Any = None) -> Rates:
    """What a short run on this machine says, or on a device of it, once a process."""
    return Context().run(_measured, device)  # a time limit would end it


@cache
def _measured(device: Any) -> Rates:
    """How long products, kernel values and passes take, on one thread as others may be busy."""
    rng, far = np.random.RandomState(0), device is not None
    faster = 1.0 if far else tiles_at_once() ** _SHARED
    size, block = _SIZES[far], _BLOCKS[far]
    with repeatable(), use_device(device) if far else nullcontext():
        A, points = (to_device(rng.standard_normal(shape)) for shape in ((size, size), _CELLS))
        few, many = (_kernel_value(rng, block, d) for d in _FEATURES)
        product = fastest(lambda: A @ A) / size**3
        cell = fastest(lambda: points - points.mean(axis=0)) / math.prod(_CELLS)
    feature = max(many - few, 0.0) / (_FEATURES[1] - _FEATURES[0])
    value = max(few - _FEATURES[0] * feature, 1e-10)
    return Rates(product / faster, value / faster, feature / faster, cell)


def _kernel_value(rng: np.random.RandomState, block: tuple[int, int], n_features: int) -> float:
    """Seconds of a kernel value: between the two kinds, of which the labels will choose one."""
    X, Z = (to_device(rng.standard_normal((n, n_features))) for n in block)
    near = fastest(lambda: exp_of_negative(squared_distances(X, Z), 0.1))
    far = fastest(lambda: exp_of_negative(l1_distances(X, Z), 0.1))
    return math.sqrt(near * far) / math.prod(block)


def fastest(work: Callable[[], Any], n_runs: int = _RUNS) -> float:
    """Seconds of the fastest of some runs, each to the end of what it began on a device."""

    def ended() -> Any:
        return to_numpy(work()[:1]) if device_in_use() is not None else work()

    return min(timeit.repeat(ended, number=1, repeat=n_runs + 1)[1:])  # the first run warms up


def seconds_of(work: Callable[[], Any]) -> float:
    """How long some work takes, if there is a time limit; else nothing, and it is not done."""
    return timeit.timeit(work, number=1) if math.isfinite(time_left()) else 0.0


def most_in_time(seconds: Callable[[int], float], n: int, least: int, what: str = "") -> int:
    """As many of n rows as the time limit leaves time for, at least some; says so of ``what``."""
    most = n
    if math.isfinite(time_left()):
        seconds(n)  # the first question of a process measures the machine, which takes time, too
        left = _SHARE * time_left()
        while most > least and seconds(most) > left:
            most = max(least, int(0.8 * most))
    if most < n and what:
        warn_of_limit(f"the draw of rows for {what} at {most:,} of {n:,}")
    return most
