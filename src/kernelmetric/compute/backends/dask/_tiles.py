"""The cluster as a fit sees it that runs on one of its workers: tiles shared among all of them.

A tile function travels without its large arrays, which Dask brings to each worker once.
"""

from __future__ import annotations

import math
import pickle
import time
import weakref
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from distributed import get_worker, wait

from kernelmetric.compute._arrays import is_read_only
from kernelmetric.compute.backends.dask._chunks import on_worker, pieces_of
from kernelmetric.compute.backends.dask._pickles import Carried, Parts, dumps, loads
from kernelmetric.compute.backends.dask._rows import MappedRows, Rows

_FLOPS = 1e10  # that a thread does in a second
_BYTES = 4e8  # that reach a worker in a second
_AGAIN = 10  # times that an array is looked at which its maker keeps
_SECONDS = 0.05  # saved, below which work stays: the way there and back takes as long
_SHORTEST = 0.2  # seconds of a share of little work: each one costs its way, and may map points
_TASKS_PER_THREAD = 4  # so that whoever is slower does fewer
_FEWEST_TASKS = 16
_MOST_PER_THREAD = 16  # where each takes a second: nobody waits long for the last one
_SURELY_KNOWN = 5.0  # seconds after which the scheduler knows of a task
_LOOK = 1.0  # seconds between two looks whether the fit is still wanted
_NOT_PICKLED = (pickle.PicklingError, TypeError, AttributeError)


class AbandonedError(Exception):
    """Nobody waits for this fit any more."""


class Cluster:
    """All workers, for the fit of the task ``name``; ``wanted`` says whether it is awaited."""

    def __init__(self, client: Any, wanted: Callable[[], bool], name: str):
        self._client, self._wanted = client, wanted
        self._name = f"kernelmetric-tiles-{name.rpartition('-')[2]}"
        self._sent: dict[int, _Sent] = {}
        self._slots: list[str] = []
        self._asked, self._streams = -math.inf, False

    def share(
        self,
        work: Callable[[Any], Any],
        items: Sequence[Any],
        flops: float,
        take: Callable[[Any], Any],
    ) -> bool:
        """Work on every item on the workers, results to ``take`` in order; False if too small."""
        self._require_wanted()
        slots = self._threads()
        saved = flops / _FLOPS * (1.0 - 1.0 / len(slots))
        if len(items) < 2 or saved <= _SECONDS:
            return False
        parts = Parts()
        try:
            function = dumps(work, parts)
            shares = [dumps(some, parts) for some in dealt(items, len(slots), flops / _FLOPS)]
        except _NOT_PICKLED:
            return False  # what holds a lock or an open file stays where it is
        new = self._new(parts.arrays)
        n_bytes = sum(array.nbytes / (_AGAIN if is_read_only(array) else 1) for array in new)
        if parts.rows or saved <= _SECONDS + n_bytes / _BYTES:
            return False
        arrays = self._futures(parts.arrays, new)
        key = f"{self._name}-{uuid4().hex}"

        tasks = [
            self._client.submit(
                run_tiles,
                function,
                some,
                arrays,
                key=f"{key}-{number}",
                pure=False,
                workers=slots[number % len(slots)],  # a second pass finds what the first one kept
                allow_other_workers=True,  # Dask lets idle workers take from the others
                priority=-number,  # the order in which results are taken
            )
            for number, some in enumerate(shares)
        ]
        with closing(self._results(tasks)) as results:
            for some in results:
                for result in some:
                    take(result)
        return True

    def rows(self, X: Any, names: Any = None) -> Rows:
        """A Dask array as rows to go through; its chunks are computed each time they are needed."""
        self._streams = True
        parts = pieces_of(X, "X").delayed
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        if dtype != X.dtype:
            parts = [dask.delayed(np.asarray)(part, dtype) for part in parts]
        lengths = list(X.chunks[0])
        if any(math.isnan(length) for length in lengths):
            lengths = self._run([dask.delayed(len)(part) for part in parts])
        return Rows(parts, lengths, np.empty((0, X.shape[1]), dtype), self._run, names)

    def sum_rows(
        self, work: Callable[[slice], Any], bytes_per_row: float, most: int | None
    ) -> tuple[Any] | None:
        """The sum of what a function of rows gives, in a tuple; None where rows are local."""
        bound = self._bound(work)
        return None if bound is None else (bound[0].sum(*bound[1:], bytes_per_row, most),)

    def map_rows(self, work: Callable[[slice], Any]) -> MappedRows | None:
        """Rows that a function of rows gives, to be computed later; None where rows are local."""
        bound = self._bound(work)
        return None if bound is None else MappedRows(work, bound)

    def _bound(self, work: Any) -> tuple[Rows, bytes, list[Any]] | None:
        """The rows elsewhere that a function looks at, itself pickled, and its large arrays."""
        parts = Parts()
        try:
            function = dumps(work, parts) if self._streams else b""
        except _NOT_PICKLED:
            if parts.rows:
                raise
            return None
        if not parts.rows:
            return None
        return parts.rows[0], function, self._futures(parts.arrays, self._new(parts.arrays))

    def _run(self, tasks: list[Any]) -> list[Any]:
        """The results of delayed tasks, in their order."""
        return list(self._results(self._client.compute(tasks)))

    def _results(self, futures: list[Any]) -> Generator[Any, None, None]:
        """Results in the order of the tasks; those that nobody takes are cancelled."""
        try:
            while futures:
                try:
                    wait(futures[0], timeout=_LOOK)
                except TimeoutError:
                    self._require_wanted()
                else:
                    yield futures.pop(0).result()
        finally:
            if futures:
                with suppress(TimeoutError):  # the scheduler cancels only what it knows
                    wait(futures, timeout=_SURELY_KNOWN)
                self._client.cancel(futures)

    def close(self) -> None:
        """Let the scheduler forget all tiles: it may keep some of a worker that died."""
        with suppress(Exception):
            self._client.run_on_scheduler(forget, self._name)

    def _require_wanted(self) -> None:
        if not self._wanted():
            raise AbandonedError("The fit was cancelled.")

    def _threads(self) -> list[str]:
        """The address of its worker for every thread of all workers, asked for once a second."""
        if time.monotonic() - self._asked > _LOOK:
            known = sorted(self._client.nthreads().items())
            self._slots = [address for address, threads in known for _ in range(threads)]
            self._asked = time.monotonic()
        return self._slots or [get_worker().address]

    def _new(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Those of which Dask has no copy, or one that is no longer true."""
        sent = ((array, self._sent.get(id(array))) for array in arrays)
        return [array for array, copy in sent if copy is None or not copy.is_of(array)]

    def _futures(self, arrays: list[np.ndarray], new: list[np.ndarray]) -> list[Any]:
        """The copies of arrays that are data of Dask, for as long as these live unchanged."""
        if new:
            # Copies: Dask would keep the arrays alive, and they may be written into.
            held = self._client.scatter([Carried(array.copy("A")) for array in new], hash=False)
            for array, future in zip(new, held, strict=True):
                self._sent[id(array)] = _Sent(array, future, self._sent)
        return [self._sent[id(array)].future for array in arrays]


def dealt(items: Sequence[Any], n_threads: int, seconds: float) -> list[list[Any]]:
    """Items in shares for all threads in turn, each with as many items, the larger ones first."""
    each = max(_TASKS_PER_THREAD, -(-_FEWEST_TASKS // n_threads))
    each = max(1, min(each, int(seconds / n_threads / _SHORTEST)))
    each = max(each, min(_MOST_PER_THREAD, int(seconds / n_threads)))
    size, longer = divmod(len(items), n_shares := min(len(items), each * n_threads))
    starts = [size * i + min(i, longer) for i in range(n_shares + 1)]
    return [list(items[a:b]) for a, b in pairwise(starts)]


def forget(prefix: str, dask_scheduler: Any = None) -> None:
    """On the scheduler: release the tasks whose keys begin with ``prefix``."""
    for key in [key for key in dask_scheduler.tasks if str(key).startswith(prefix)]:
        for owner in list(dask_scheduler.tasks[key].who_wants or ()):
            dask_scheduler.client_releases_keys(keys=[key], client=owner.client_key)


class _Sent:
    """An array of which Dask has a copy."""

    def __init__(self, array: np.ndarray, future: Any, known: dict[int, _Sent]):
        key = id(array)
        self.future, self._sum = future, _checksum(array)
        self._array = weakref.ref(array, lambda _: known.pop(key, None))

    def is_of(self, array: np.ndarray) -> bool:
        """Whether the copy is one of this array as it is now."""
        return self._array() is array and self._sum == _checksum(array)


def _checksum(array: np.ndarray) -> int | None:
    """What changes with an array; None for one that nobody writes into."""
    if is_read_only(array):
        return None
    flat: Any = array if array.flags.c_contiguous else array.T
    return zlib.crc32(flat.reshape(-1).view(np.uint8))


def run_tiles(function: bytes, items: bytes, arrays: list[Carried]) -> list[Any]:
    """The task: a pickled tile function on some tiles, on one thread."""
    work, tiles = (loads(part, arrays) for part in (function, items))
    return on_worker(work, tiles)
