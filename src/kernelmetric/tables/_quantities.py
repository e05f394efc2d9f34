"""Numbers of a column: their middle, their spread, and how far each is from it."""

from __future__ import annotations

import numpy as np

from kernelmetric.tables._columns import spread_of
from kernelmetric.tables._frames import Column


def quantities(column: Column, levels: list[str]) -> np.ndarray:
    """The values of a column of quantities; of ordered names their places."""
    if column.values.dtype.kind == "f":
        return column.values
    place = {name: float(i) for i, name in enumerate(levels)}
    return np.array([place.get(value, np.nan) for value in column.values])


def apart(column: Column, numbers: np.ndarray, centre: float, rest: float = 0.0) -> np.ndarray:
    """Differences of numbers and a centre; what floats have lost of both is in them."""
    return numbers - centre + ((0.0 if column.lost is None else column.lost) - rest)


def median_and_spread(column: Column, numbers: np.ndarray) -> tuple[float, float, float]:
    """Median, what a float has lost of it, and a spread: the standard deviation."""
    centre = float(np.nanmedian(numbers))
    rest = 0.0 if column.lost is None else float(np.nanmedian(apart(column, numbers, centre)))
    return centre, rest, spread_of(apart(column, numbers, centre, rest), column.name)
