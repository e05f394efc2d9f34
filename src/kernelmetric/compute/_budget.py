"""How much memory a block may take.

The budget is a fraction of the memory that is free now, unless the caller says otherwise::

    with memory_budget("500MB"):
        metric.fit(X, y)

A context variable carries it, so threads and tasks do not disturb each other. The environment
variable ``KERNELMETRIC_MEMORY`` sets it for a whole process.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise
from typing import Any

from array_api_compat import is_numpy_array

_BUDGET: ContextVar[int | None] = ContextVar("kernelmetric_memory_budget", default=None)
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_FRACTION_OF_FREE = 0.25
_DEVICE_TILE_BYTES = 2**30
_ALWAYS_ALLOWED = 64 * 10**6  # so little is not worth an estimate
_ASSUMED_FREE = 4 * 10**9  # where the system does not tell


@contextmanager
def memory_budget(size: int | float | str) -> Iterator[int]:
    """Limit the working memory of everything run inside the ``with`` block.

    Parameters
    ----------
    size : int, float or str
        Bytes, or a string such as ``"500MB"`` or ``"1.5 GB"``.

    Yields
    ------
    int
        The budget in bytes.

    Examples
    --------
    >>> from kernelmetric import memory_budget
    >>> with memory_budget("1.5 GB") as n_bytes:
    ...     n_bytes
    1500000000
    """
    n_bytes = parse_bytes(size)
    token = _BUDGET.set(n_bytes)
    try:
        yield n_bytes
    finally:
        _BUDGET.reset(token)


def current_budget() -> int:
    """Bytes that the working arrays of one step may take together."""
    chosen = _BUDGET.get()
    if chosen is not None:
        return chosen
    from_environment = os.environ.get("KERNELMETRIC_MEMORY")
    if from_environment:
        return parse_bytes(from_environment)
    return int(_FRACTION_OF_FREE * _free_memory())


def row_blocks(n_rows: int, bytes_per_row: float, *, most: int | None = None) -> Iterator[slice]:
    """Cut ``n_rows`` into consecutive slices that each fit the memory budget.

    Parameters
    ----------
    n_rows : int
        Number of rows to cover.
    bytes_per_row : float
        Working memory that one row of a block takes, all temporaries together.
    most : int, default=None
        Upper bound on the rows of a block, for tiles that should stay in the cache.

    Yields
    ------
    slice
        At least one row each; together they cover ``range(n_rows)``.
    """
    size = max(1, int(current_budget() // max(bytes_per_row, 1)))
    size = max(1, min(size, n_rows, most or n_rows))
    n_blocks = -(-n_rows // size)
    edges = [round(n_rows * i / n_blocks) for i in range(n_blocks + 1)] if n_blocks else []
    for start, stop in pairwise(edges):  # of equal size, so that threads share the work evenly
        yield slice(start, stop)


def tile_rows(X: Any, n_columns: int, cache_bytes: int) -> int:
    """Rows of a block of ``n_columns`` columns that suits where X lives.

    Parameters
    ----------
    X : array
        Of the library and dtype of the block.
    n_columns : int
        Columns of the block.
    cache_bytes : int
        For NumPy, whose elementwise steps reread the block: what should stay in the cache. A
        device wants few large steps instead.

    Returns
    -------
    int
        At least 32.
    """
    n_bytes = cache_bytes if is_numpy_array(X) else _DEVICE_TILE_BYTES
    return max(32, n_bytes // (max(n_columns, 1) * itemsize_of(X)))


def itemsize_of(X: Any) -> int:
    """Bytes of one number of X."""
    return 4 if str(X.dtype).endswith("float32") else 8


def require_memory(n_bytes: float, who: str, advice: str) -> None:
    """Refuse work that cannot fit, before it starts rather than by an out-of-memory kill.

    Parameters
    ----------
    n_bytes : float
        What the work takes.
    who : str
        Who asks, for the message.
    advice : str
        What to try instead.
    """
    free = _free_memory()
    if n_bytes > max(free, _ALWAYS_ALLOWED):
        raise MemoryError(
            f"{who} would take about {n_bytes / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free: "
            f"{advice}"
        )


def parse_bytes(size: int | float | str) -> int:
    """Bytes from a number or from a string with a unit."""
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([KMGT]?B?)\s*", size, re.IGNORECASE)
        unit = match.group(2).upper() if match else "?"
        unit = unit if unit in _UNITS else unit + "B"
        if match is None or unit not in _UNITS:
            raise ValueError(
                f"Got a memory budget of {size!r}, but expected bytes or a string such as "
                "'500MB' or '1.5GB'."
            )
        size = float(match.group(1)) * _UNITS[unit]
    if not size > 0:
        raise ValueError(
            f"Got a memory budget of {size!r}, but expected a positive number of bytes."
        )
    return int(size)


def _free_memory() -> int:
    """Memory free now, asked of the system at most once a second."""
    return _ask_free_memory(int(time.monotonic()))


@lru_cache(maxsize=1)
def _ask_free_memory(_second: int) -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123 (a device, not a path)
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _ASSUMED_FREE
