"""Fewer rows for a fit under a time limit that would not end a few passes over all pairs."""

from __future__ import annotations

import inspect
import math
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmetric.compute import in_memory
from kernelmetric.compute.reductions import squared_distances
from kernelmetric.compute.watch import time_left, warn_of_limit
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs import Weights
from kernelmetric.learners._checks import kept_rows

_TIMED_ROWS = 400  # whose distances tell how long a pair takes
_TIMES = 3  # the fastest counts, as others may use the machine too
_LEAST_OF_CLASS = 10
_OF_ROWS = {"X", "y", "gram", "sample_weight", "neighbors"}  # what a sample of rows can be taken of


def in_time(
    learner: Any, fit: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a fit, of so many rows as the time limit leaves time for."""
    if math.isinf(time_left()) or not learner._passes or learner._streams() is not None:
        return args, options
    given = inspect.signature(fit).bind(learner, *args, **options).arguments
    given.pop("self")
    X: Any = given.get("X")
    y: Any = given.get("y")
    told = {name for name, value in given.items() if value is not None}
    if y is None or told - _OF_ROWS or not in_memory(X) or len(getattr(X, "shape", ())) != 2:
        return args, options
    most = max(learner._least_rows, _rows_in_time(X.shape[1], learner._passes))
    if X.shape[0] <= most:
        return args, options
    rows = coded_targets(y, X).sample_of_all(most, _LEAST_OF_CLASS)
    given.update(kept_rows(given, X, y, rows))
    if isinstance(given.get("sample_weight"), Weights):
        given["sample_weight"] = given["sample_weight"].take(rows)
    name = type(learner).__name__
    warn_of_limit(f"the draw of rows for {name} at {len(rows):,} of {X.shape[0]:,}")
    return (), given


def _rows_in_time(n_features: int, n_passes: float) -> int:
    """The number of rows over whose pairs so many passes end within the time limit."""
    some = np.random.RandomState(0).standard_normal((_TIMED_ROWS, n_features))
    seconds = min(timeit.repeat(lambda: squared_distances(some), number=1, repeat=_TIMES))
    return int(_TIMED_ROWS * math.sqrt(max(time_left(), 0.0) / (n_passes * seconds)))
