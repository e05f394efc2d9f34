"""Fewer rows for a fit that would not end in the time that is left."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from kernelmetric.compute import in_memory
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.watch import time_left, warn_of_limit
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs import Weights
from kernelmetric.learners._checks import kept_rows

_LEAST_OF_CLASS = 10
_OF_ROWS = {"X", "y", "gram", "sample_weight", "neighbors"}  # what a sample of rows can be taken of
_CELLS_A_ROW, _CELLS_A_NUMBER = 1_600, 60  # passes over numbers that scatter matrices take,
_PRODUCTS_A_ROW, _PRODUCTS_A_SOLUTION = 10, 15  # and products, times d²


def in_time(
    learner: Any, fit: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a fit, of so many rows as the time limit leaves time for."""
    if math.isinf(time_left()):
        return args, options
    given = inspect.signature(fit).bind(learner, *args, **options).arguments
    given.pop("self")
    X: Any = given.get("X")
    y: Any = given.get("y")
    told = {name for name, value in given.items() if value is not None}
    if y is None or told - _OF_ROWS or not in_memory(X) or len(getattr(X, "shape", ())) != 2:
        return args, options
    n, d = X.shape
    most = most_in_time(lambda rows: least_seconds(learner, rows, d), n, learner._least_rows)
    if n <= most:
        return args, options
    rows = coded_targets(y, X).sample_of_all(most, _LEAST_OF_CLASS)
    given.update(kept_rows(given, X, y, rows))
    if isinstance(given.get("sample_weight"), Weights):
        given["sample_weight"] = given["sample_weight"].take(rows)
    name = type(learner).__name__
    warn_of_limit(f"the draw of rows for {name} at {len(rows):,} of {n:,}")
    return (), given


def least_seconds(learner: Any, n: int, d: int) -> float:
    """Seconds before a fit is worth anything: a few passes over pairs of rows, or over rows."""
    rate = rates()
    if not learner._passes:
        each = rate.cell * (_CELLS_A_ROW + _CELLS_A_NUMBER * d)
        return n * each + rate.product * d**2 * (_PRODUCTS_A_ROW * n + _PRODUCTS_A_SOLUTION * d)
    pairs = learner._passes * n * learner._meets(n, d)
    products = 2.0 * d * pairs + learner._products(n, d)
    return rate.value * pairs + rate.product * products
