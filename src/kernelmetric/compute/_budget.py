"""How much memory a block may take, and what is refused because it cannot fit.

The budget is a quarter of the memory of the machine, or of its container, unless the user says
otherwise by ``memory_budget`` or the environment variable ``KERNELMETRIC_MEMORY``. It decides how
large blocks are, and nothing else. What needs an array in full is refused where neither the budget
nor the free memory, of a CUDA device too, holds it (:func:`require_memory`).
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import pairwise
from numbers import Real
from typing import Any

from kernelmetric.compute._machine import free_memory as _free_memory
from kernelmetric.compute._machine import total_memory
from kernelmetric.compute.backends import backend_of, cuda
from kernelmetric.compute.watch import within

_BUDGET: ContextVar[int | None] = ContextVar("kernelmetric_memory_budget", default=None)
_BLOCKS: ContextVar[int | None] = ContextVar("kernelmetric_block_budget", default=None)
_ROOM: ContextVar[Callable[[], cuda.Room | None]] = ContextVar("kernelmetric_room")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_FRACTION_OF_TOTAL = 0.25
_USABLE_ON_DEVICE = 0.75  # of what is free on a device, whose eigensolvers want larger workspaces
_ALWAYS_ALLOWED = 64 * 10**6  # so little is not worth an estimate
_ALWAYS_IN_BUDGET = 8 * 10**6  # nor this, of arrays in full, however small a block should be


def memory_budget(size: int | float | str) -> AbstractContextManager[int]:
    """Limit the working memory of everything run inside the ``with`` block.

    Blocks of rows become small enough; the results stay the same up to rounding. A space whose
    arrays cannot be cut into blocks, such as the n × n Gram matrix of full-rank KPCA, is refused
    where they exceed the budget.

    Parameters
    ----------
    size : int, float or str
        Bytes, or a string such as ``"500MB"`` or ``"1.5 GB"``.

    Returns
    -------
    context manager
        What enters it gets the budget in bytes.

    See Also
    --------
    time_limit : Seconds instead of bytes.
    use_device : Another memory.

    Examples
    --------
    >>> from kernelmetric import memory_budget
    >>> with memory_budget("1.5 GB") as n_bytes:
    ...     n_bytes
    1500000000
    """
    return within(_BUDGET, parse_bytes(size))


def block_budget(n_bytes: int) -> AbstractContextManager[int]:
    """Make blocks smaller inside the ``with`` block, and refuse nothing for it."""
    return within(_BLOCKS, n_bytes)


def working_on(device: Any) -> AbstractContextManager[Any]:
    """Count the free memory of a CUDA device too, inside the ``with`` block."""
    if device is None:
        return nullcontext()
    return within(_ROOM, lru_cache(maxsize=1)(partial(cuda.room, device)))  # asked once, if at all


def current_budget() -> int:
    """Bytes that the working arrays of one step may take together."""
    budget, room = _chosen_budget(), _room()
    if budget is None:
        budget = int(_FRACTION_OF_TOTAL * (total_memory() if room is None else room.total))
    if room is not None:
        budget = min(budget, int(_USABLE_ON_DEVICE * room.free))
    blocks = _BLOCKS.get()
    return max(1, budget if blocks is None else min(budget, blocks))


def _room() -> cuda.Room | None:
    """The memory of the device that works, if one does and tells."""
    ask = _ROOM.get(None)
    return None if ask is None else ask()


def _chosen_budget() -> int | None:
    """The budget that the user asked for, if any."""
    chosen = _BUDGET.get()
    if chosen is not None:
        return chosen
    from_environment = os.environ.get("KERNELMETRIC_MEMORY")
    return parse_bytes(from_environment) if from_environment else None


def fits_budget(n_bytes: float, *, share: float = 1.0) -> bool:
    """Whether an array that can be computed again fits a share of the memory budget."""
    return n_bytes <= share * current_budget()


def within_budget(n_bytes: float) -> float:
    """The bytes of an array that is cut into blocks: the memory budget at most."""
    return min(n_bytes, float(current_budget()))


def row_blocks(n_rows: int, bytes_per_row: float, *, most: int | None = None) -> Iterator[slice]:
    """Cut ``range(n_rows)`` into slices within the memory budget, of ``most`` rows at most."""
    size = max(1, int(current_budget() // max(bytes_per_row, 1)))
    size = max(1, min(size, n_rows, most or n_rows))
    n_blocks = -(-n_rows // size)
    edges = [round(n_rows * i / n_blocks) for i in range(n_blocks + 1)] if n_blocks else []
    for start, stop in pairwise(edges):  # of equal size, so that threads share the work evenly
        yield slice(start, stop)


def tile_rows(X: Any, n_columns: int, cache_bytes: int) -> int:
    """Rows (32 or more) of a block of ``n_columns`` columns: within the cache for NumPy arrays."""
    n_bytes = backend_of(X).tile_bytes(cache_bytes, X)
    return max(32, n_bytes // (max(n_columns, 1) * itemsize_of(X)))


def itemsize_of(X: Any) -> int:
    """Bytes of one number of X."""
    return 4 if str(X.dtype).endswith("float32") else 8


def require_memory(n_bytes: float, who: str, advice: str, *, in_full: float = 0.0) -> None:
    """Refuse work of ``n_bytes`` that cannot fit, before it starts; ``advice`` says what to try.

    ``in_full`` bytes are of arrays that no block makes smaller: a chosen budget must hold them.
    """
    if n_bytes > _ALWAYS_ALLOWED:
        free, where, room = _free_memory(), "", _room()
        if room is not None and _USABLE_ON_DEVICE * room.free < free:
            free, where = int(_USABLE_ON_DEVICE * room.free), " on the device"
        if n_bytes > free:
            raise MemoryError(
                f"{who} would take about {n_bytes / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free"
                f"{where}: {advice}"
            )
    budget = _chosen_budget()
    if budget is not None and in_full > max(budget, _ALWAYS_IN_BUDGET):
        raise MemoryError(
            f"{who} would take about {in_full / 1e6:.0f} MB for arrays that it needs in full, "
            f"but the memory budget is {budget / 1e6:.0f} MB: {advice}"
        )


def parse_bytes(size: int | float | str) -> int:
    """Bytes from a number or from a string with a unit."""
    number: Any = size
    if isinstance(size, str):
        form = r"\s*(\d+\.?\d*|\.\d+)(e\d{1,3})?\s*([KMGT]?)B?\s*"
        match = re.fullmatch(form, size, re.IGNORECASE)
        if match is None:
            raise ValueError(
                f"Got a memory budget of {size!r}, but expected bytes or a string such as "
                "'500MB' or '1.5GB'."
            )
        digits, power, unit = match.groups()
        number = float(digits + (power or "")) * _UNITS[unit.upper()]
    real = isinstance(number, Real)
    if not (real and 1 <= number < float("inf")):
        raise ValueError(
            f"Got a memory budget of {size!r}, but expected a positive number of bytes: try '1GB'."
        )
    return int(number)
