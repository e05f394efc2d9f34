"""Collections as pieces of rows, checked where they lie, and put together on one worker."""

import logging
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
from kernelmetric.compute._execute import run_on_cluster
from kernelmetric.compute._machine import total_memory
from kernelmetric.compute._threads import in_threads

_logger = logging.getLogger("kernelmetric")
NUMBERS = "fiub"  # kinds of dtype
_SHARE = 0.25  # of the memory of a worker, for the blocks of its threads


class Pieces(NamedTuple):
    """A collection as delayed pieces in the order of its rows."""

    delayed: list[Any]
    lengths: tuple[Any, ...]  # NaN where Dask does not know them
    width: tuple[int, ...]
    dtype: np.dtype[Any]  # object of what are no numbers


def pieces_of(collection: Any, name: str) -> Pieces:
    """A collection as pieces of rows, each checked when it is computed."""
    if isinstance(collection, da.Array):
        _require_rows(collection, name)
        parts, lengths = collection.to_delayed().ravel().tolist(), collection.chunks[0]
        return _checked(Pieces(parts, lengths, collection.shape[1:], collection.dtype), name)
    if not hasattr(collection, "to_delayed") or not hasattr(collection, "npartitions"):
        raise TypeError(
            f"Got {name} as {type(collection).__name__}, but expected a Dask array or data frame: "
            "try dask.array.from_delayed, or bag.to_dataframe()."
        )
    meta, check = collection._meta, dask.delayed(_checked_partition, pure=True)
    columns = list(meta.columns) if hasattr(meta, "columns") else None
    parts = [check(part, i, name, columns) for i, part in enumerate(collection.to_delayed())]
    dtypes = list(meta.dtypes) if columns is not None else [meta.dtype]
    numeric = all(isinstance(d, np.dtype) and d.kind in NUMBERS for d in dtypes)
    dtype = np.result_type(*dtypes) if numeric else np.dtype(object)
    return Pieces(parts, (math.nan,) * len(parts), meta.shape[1:], dtype)


def counted(pieces: Pieces) -> Pieces:
    """Pieces whose lengths are known: counted where Dask does not know them."""
    if not any(map(math.isnan, pieces.lengths)):
        return pieces
    _logger.info("The rows of %d chunks are counted: Dask does not know them.", len(pieces.lengths))
    return pieces._replace(lengths=dask.compute(*map(dask.delayed(len), pieces.delayed)))


def as_floats(pieces: Pieces, name: str) -> Pieces:
    """Pieces of numbers as arrays of floats."""
    dtype = pieces.dtype if pieces.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    arrays = [dask.delayed(np.asarray)(part, dtype) for part in pieces.delayed]
    return _checked(pieces._replace(delayed=arrays, dtype=dtype), name)


def _checked(pieces: Pieces, name: str) -> Pieces:
    """Pieces that are arrays, each checked when it is computed."""
    check, first = dask.delayed(_checked_chunk, pure=True), np.cumsum([0.0, *pieces.lengths])
    parts = [
        check(part, number, name, first[number], pieces.width, pieces.dtype)
        for number, part in enumerate(pieces.delayed)
    ]
    return pieces._replace(delayed=parts)


def _require_rows(X: da.Array, name: str) -> None:
    """Refuse an array that is cut along another axis than its rows."""
    if X.ndim == 0:
        raise ValueError(f"Got {name} as a single number, but expected rows of points.")
    across = [axis for axis in range(1, X.ndim) if X.numblocks[axis] > 1]
    if across:
        raise ValueError(
            f"Got {name} in chunks {tuple(X.numblocks)}, but expected chunks of whole rows: moving "
            f"the data is yours to decide. Try {name}.rechunk({{{across[0]}: -1}})."
        )


def _checked_chunk(
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
            f"Got {where} of shape {part.shape}, but expected "
            f"({', '.join(map(str, ('rows', *width)))}), as the others have."
        )
    wanted = np.dtype(dtype)
    if wanted.kind in NUMBERS and part.dtype.kind not in NUMBERS:
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


def _checked_partition(part: Any, number: int, name: str, columns: list[Any] | None) -> Any:
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
    with run_on_cluster(None), share_of_worker():
        in_threads(work, list(items), 0.0, results.append)
    return results
