"""Collections as pieces of rows, checked where they lie, and put together on one worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import get_worker
from scipy import sparse

from kernelmetric.compute._arrays import refuse_masked
from kernelmetric.compute._budget import block_budget
from kernelmetric.compute._execute import run_elsewhere
from kernelmetric.compute._machine import total_memory
from kernelmetric.compute._threads import in_threads

_NUMBERS = "fiub"
_SHARE = 0.25  # of the memory of a worker, for the blocks of its threads


class Pieces(NamedTuple):
    """A collection as delayed pieces in the order of its rows; NaN where Dask knows no shape."""

    delayed: list[Any]
    shape: tuple[Any, ...]
    itemsize: float
    numeric: bool


def pieces_of(collection: Any, name: str) -> Pieces:
    """A collection as pieces of rows, each checked when it is computed."""
    if isinstance(collection, da.Array):
        require_rows(collection, name)
        parts = collection.to_delayed().ravel().tolist()
        first, width = 0.0, collection.shape[1:]
        checked, check = [], dask.delayed(checked_chunk, pure=True)
        for number, (part, rows) in enumerate(zip(parts, collection.chunks[0], strict=True)):
            checked.append(check(part, number, name, first, width, collection.dtype))
            first += rows
        dtype = np.dtype(collection.dtype)
        return Pieces(checked, collection.shape, dtype.itemsize, dtype.kind in _NUMBERS)
    if not hasattr(collection, "to_delayed") or not hasattr(collection, "npartitions"):
        raise TypeError(
            f"Got {name} as {type(collection).__name__}, but expected a Dask array or data frame: "
            "try dask.array.from_delayed, or bag.to_dataframe()."
        )
    parts = collection.to_delayed()
    meta = collection._meta
    columns = list(meta.columns) if hasattr(meta, "columns") else None
    check = dask.delayed(checked_partition, pure=True)
    checked = [check(part, number, name, columns) for number, part in enumerate(parts)]
    dtypes = list(meta.dtypes) if columns is not None else [meta.dtype]
    numeric = all(isinstance(d, np.dtype) and d.kind in _NUMBERS for d in dtypes)
    return Pieces(checked, (math.nan, *np.shape(meta)[1:]), 8.0, numeric)


def require_rows(X: da.Array, name: str) -> None:
    """Refuse an array that is cut along another axis than its rows."""
    if X.ndim == 0:
        raise ValueError(f"Got {name} as a single number, but expected rows of points.")
    across = [axis for axis in range(1, X.ndim) if X.numblocks[axis] > 1]
    if across:
        raise ValueError(
            f"Got {name} in chunks {tuple(X.numblocks)}, but expected chunks of whole rows: moving "
            f"the data is yours to decide. Try {name}.rechunk({{{across[0]}: -1}})."
        )


def checked_chunk(
    part: Any, number: int, name: str, first: float, width: tuple[int, ...], dtype: Any
) -> Any:
    """A chunk of an array, refused with its number where its shape or dtype is another."""
    refuse_masked(part)
    where = f"chunk {number} of {name}"
    if not math.isnan(first):
        where += f" (from row {int(first)} on)"
    if not hasattr(part, "shape"):
        part = np.asarray(part)
    if part.shape[1:] != tuple(width):
        raise ValueError(
            f"Got {where} of shape {part.shape}, but expected {_shape(width)}, as the others have."
        )
    wanted = np.dtype(dtype)
    if wanted.kind in _NUMBERS and part.dtype.kind not in _NUMBERS:
        raise ValueError(f"Got {where} of dtype {part.dtype}, but expected {wanted}.")
    values = part.data if sparse.issparse(part) else part
    if part.dtype.kind == "f" and part.shape[0]:
        with np.errstate(all="ignore"):
            finite = np.isfinite(np.sum(values)) or np.isfinite(values).all()
        if not finite:
            raise ValueError(
                f"Got NaN or infinity in {where}: Input {name} contains NaN or infinity, but "
                "expected finite numbers. Fill or drop these rows first."
            )
    return part


def _shape(width: tuple[int, ...]) -> str:
    return f"(rows, {', '.join(map(str, width))})" if width else "(rows,)"


def checked_partition(part: Any, number: int, name: str, columns: list[Any] | None) -> Any:
    """A partition of a data frame; refused with its number where its columns are others."""
    if columns is not None and list(getattr(part, "columns", columns)) != columns:
        raise ValueError(
            f"Got partition {number} of {name} with the columns {list(part.columns)}, but expected "
            f"{columns}."
        )
    # Of labels, the index may be larger than they are, and nobody asks for it.
    return part.reset_index(drop=True) if columns is None else part


def together(parts: list[Any]) -> Any:
    """The rows of some pieces in one array or data frame, without the empty pieces."""
    filled = [part for part in parts if part.shape[0]] or parts[:1]
    first = filled[0]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(filled, ignore_index=True)
    if sparse.issparse(first):
        return sparse.vstack(filled, format="csr")
    return np.concatenate(filled) if len(filled) > 1 else np.asarray(first)


@contextmanager
def share_of_worker() -> Iterator[None]:
    """Blocks within the memory limit of this worker, divided by its threads, inside the block."""
    try:
        worker = get_worker()
    except ValueError:
        yield
        return
    limit = worker.memory_manager.memory_limit or total_memory()
    with block_budget(int(limit * _SHARE / worker.state.nthreads)):
        yield


def on_worker(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """What a function gives for each item, on one thread of this worker."""
    results: list[Any] = []
    with run_elsewhere(None), share_of_worker():
        in_threads(work, list(items), 0.0, results.append)
    return results
