"""Work on blocks of rows: cut under the memory budget here, described by who needs it.

A caller says what is done with some rows and what a row of it takes in memory. How many rows make
a block, and in what order blocks are put together, is known in this room alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, TypeVar

from kernelmetric.compute._arrays import namespace
from kernelmetric.compute._budget import current_budget, row_blocks

Result = TypeVar("Result")


def over_rows(
    work: Callable[[slice], Result], n_rows: int, bytes_per_row: float, *, most: int | None = None
) -> list[Result]:
    """What some work gives for each block of rows, in their order.

    Parameters
    ----------
    work : callable
        From a slice of rows to a result. It must give the same for a row in whatever block.
    n_rows : int
        Number of rows.
    bytes_per_row : float
        Working memory that one row of a block takes, all temporaries together.
    most : int, default=None
        Upper bound on the rows of a block, for work that should stay in the cache.

    Returns
    -------
    list
        One result a block.
    """
    return [work(rows) for rows in row_blocks(n_rows, bytes_per_row, most=most)]


def map_rows(
    work: Callable[[slice], Any], n_rows: int, bytes_per_row: float, *, most: int | None = None
) -> Any:
    """One array from a function of blocks of rows that gives an array of as many rows.

    Parameters
    ----------
    work : callable
        From a slice of rows to an array with a row for each.
    n_rows : int
        Number of rows, at least one.
    bytes_per_row : float
        Working memory that one row of a block takes, all temporaries together.
    most : int, default=None
        Upper bound on the rows of a block.

    Returns
    -------
    array
        The rows together, in the library of the blocks.
    """
    blocks = over_rows(work, n_rows, bytes_per_row, most=most)
    return blocks[0] if len(blocks) == 1 else namespace(*blocks).concat(blocks, axis=0)


def sum_rows(
    work: Callable[[slice], Any], n_rows: int, bytes_per_row: float, *, most: int | None = None
) -> Any:
    """The sum, over blocks of rows, of what a function gives for them.

    Parameters
    ----------
    work : callable
        From a slice of rows to a number or an array, or to a tuple of these.
    n_rows : int
        Number of rows, at least one.
    bytes_per_row : float
        Working memory that one row of a block takes, all temporaries together.
    most : int, default=None
        Upper bound on the rows of a block.

    Returns
    -------
    number, array or tuple
        The sum, of each part of a tuple by itself.
    """
    blocks = row_blocks(n_rows, bytes_per_row, most=most)
    total = work(next(blocks))
    if not isinstance(total, tuple):
        return reduce(add, map(work, blocks), total)
    for rows in blocks:
        total = tuple(a + b for a, b in zip(total, work(rows), strict=True))
    return total


def worth_keeping(n_bytes: float, *, share: float = 1.0) -> bool:
    """Whether an array may be kept that only saves time, as it can be computed again.

    Parameters
    ----------
    n_bytes : float
        What it takes.
    share : float, default=1.0
        The share of the memory budget that it may have.

    Returns
    -------
    bool
        True where it fits.
    """
    return n_bytes <= share * current_budget()


def within_budget(n_bytes: float) -> float:
    """What an array that is cut into blocks takes at most, for estimates of memory.

    Parameters
    ----------
    n_bytes : float
        What it would take in one piece.

    Returns
    -------
    float
        That, or the memory budget if that is less.
    """
    return min(n_bytes, float(current_budget()))
