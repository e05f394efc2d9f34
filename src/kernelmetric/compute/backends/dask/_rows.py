"""Rows that no machine holds together: gone through chunk by chunk, where the chunks lie.

:class:`Rows` are the points of a fit that needs only sums over them (``sum_rows``, added up in a
tree) and a few at a time. What ``map_rows`` makes of them is :class:`MappedRows`.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import array_api_compat.numpy
import dask
import numpy as np

from kernelmetric.compute._budget import row_blocks
from kernelmetric.compute._execute import added
from kernelmetric.compute.backends.dask._chunks import Pieces, on_worker
from kernelmetric.compute.backends.dask._pickles import Carried, aligned, loads

_BRANCHES = 4  # sums that are added up at once


class _ManyRows:
    """What looks like an array of shape (n, d) to who needs a few of its rows at a time."""

    streamed, ndim, device = True, 2, "cpu"
    shape: tuple[int, ...]
    dtype: Any
    take: Callable[[np.ndarray], np.ndarray]

    __array_ufunc__ = None  # arithmetic would bring all rows here

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise _refused(self.shape[0])

    def __iter__(self) -> Any:
        raise _refused(self.shape[0])

    def __array_namespace__(self, api_version: Any = None) -> Any:
        return array_api_compat.numpy

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        rows = key[0] if isinstance(key, tuple) else key
        return self.take(np.arange(len(self))[rows] if isinstance(rows, slice) else rows)


class Rows(_ManyRows):
    """Points in delayed chunks on many machines; ``run`` computes delayed tasks."""

    stays = True

    def __init__(self, pieces: Pieces, run: Any, names: Any):
        self.parts, self._run = pieces.delayed, run
        self.edges = np.cumsum([0, *pieces.lengths])
        self.shape, self.dtype = (int(self.edges[-1]), *pieces.width), pieces.dtype
        texts = names is not None and all(isinstance(name, str) for name in names)
        self.names = np.asarray(names, dtype=object) if texts else None

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows, in any order, from the chunks that have them."""
        return self.of_chunks(rows, lambda part, some: _some_rows(part, some, None, ()))

    def of_chunks(self, rows: np.ndarray, task: Callable[[Any, np.ndarray], Any]) -> np.ndarray:
        """What ``task(chunk, row_numbers)`` gives for each chunk with some of the rows."""
        wanted, order = np.unique(rows, return_inverse=True)
        ends = np.searchsorted(wanted, self.edges)
        chunks = zip(self.parts, self.edges, ends, ends[1:], strict=False)
        tasks = [task(part, wanted[a:b] - start) for part, start, a, b in chunks if a < b]
        return np.concatenate(self._run(tasks))[order]

    def sum(
        self, function: bytes, arrays: dict[int, Any], bytes_per_row: float, most: int | None
    ) -> Any:
        """The sum of what a pickled function of blocks of rows gives, chunk by chunk."""
        sums = [
            _sum_of_chunk(function, arrays, part, int(start), self.shape, bytes_per_row, most)
            for part, start in zip(self.parts, self.edges, strict=False)
        ]
        while len(sums) > 1:
            branches = [sums[i : i + _BRANCHES] for i in range(0, len(sums), _BRANCHES)]
            sums = [dask.delayed(reduce, pure=False)(added, some, None) for some in branches]
        return self._run(sums)[0]


class MappedRows(_ManyRows):
    """What a function gives for rows, computed when some are asked for."""

    names = None

    def __init__(
        self, work: Callable[[slice], np.ndarray], bound: tuple[Rows, bytes, dict[int, Any]]
    ):
        self._work: Any = work
        self._bound: Any = bound
        example = self.take(np.arange(min(2, len(bound[0]))))
        self.shape, self.dtype = (len(bound[0]), example.shape[1]), example.dtype

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows, in any order, computed where those that they are made from lie."""
        root, function, arrays = self._bound
        return root.of_chunks(rows, lambda part, some: _some_rows(part, some, function, arrays))

    def __getitem__(self, key: Any) -> np.ndarray:
        if self._bound is not None:
            return super().__getitem__(key)
        return self._work(key[0] if isinstance(key, tuple) else key)  # of the chunk of a worker

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bound": None}


class Window(_ManyRows):
    """A chunk in the place of all rows, whose numbers begin at ``start``: it has only its own."""

    def __init__(self, chunk: np.ndarray, start: int, shape: tuple[int, ...]):
        self.chunk, self.start, self.shape, self.dtype = chunk, start, shape, chunk.dtype

    def __getitem__(self, key: Any) -> np.ndarray:
        rows = key[0] if isinstance(key, tuple) else key
        return self.chunk[rows.start - self.start : rows.stop - self.start]


def _refused(n_rows: int) -> MemoryError:
    return MemoryError(
        f"Got {n_rows} points on many machines for work that takes all of them at once, but "
        "expected work that goes through them: try Nystroem or RandomFeatures as the space, and "
        "NCA(solver='minibatch') as the learner, or workers with more memory."
    )


@dask.delayed(pure=False)
def _some_rows(chunk: np.ndarray, rows: np.ndarray, function: Any, arrays: Any) -> np.ndarray:
    some = aligned(np.asarray(chunk[rows]))
    if function is None:
        return some
    work = loads(function, arrays, Window(some, 0, some.shape))
    return on_worker(work, [slice(0, len(some))])[0]


@dask.delayed(pure=False)
def _sum_of_chunk(
    function: bytes,
    arrays: dict[int, Carried],
    chunk: np.ndarray,
    start: int,
    shape: tuple[int, ...],
    bytes_per_row: float,
    most: int | None,
) -> Any:
    work = loads(function, arrays, Window(aligned(chunk), start, shape))

    def sums(_: Any) -> Any:
        blocks = row_blocks(len(chunk), bytes_per_row, most=most)
        parts = (work(slice(start + rows.start, start + rows.stop)) for rows in blocks)
        return reduce(added, parts, None)

    return on_worker(sums, [None])[0]
