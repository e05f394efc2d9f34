"""The cluster as a fit sees it that runs on one of its workers: tiles shared among all of them.

A tile function travels without its large arrays, which Dask brings to each worker once.
"""

import pickle
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import wait

from kernelmetric.compute._arrays import is_read_only
from kernelmetric.compute.backends.dask._chunks import Pieces, on_worker
from kernelmetric.compute.backends.dask._pickles import Carried, Packer, loads
from kernelmetric.compute.backends.dask._rows import MappedRows, Rows

_FLOPS = 1e10  # that a thread does in a second
_BYTES = 4e8  # that reach a worker in a second
_AGAIN = 10  # times that an array is looked at which its maker keeps
_SECONDS = 0.05  # saved, below which work stays: the way there and back takes as long
_SHORTEST = 0.2  # seconds of a share of little work: each one costs its way, and may map points
_MOST_PER_THREAD = 16  # shares: nobody waits long for the last one
_LOOK = 1.0  # seconds between two looks whether the fit is still wanted
_NOT_PICKLED = (pickle.PicklingError, TypeError, AttributeError)


class AbandonedError(Exception):
    """Nobody waits for this fit any more."""


class Cluster:
    """All workers, for the fit of the task ``name``; ``wanted`` says whether it is awaited."""

    def __init__(self, client: Any, wanted: Callable[[], bool], name: str):
        self._client, self._wanted = client, wanted
        self._name = f"kernelmetric-tiles-{name.rpartition('-')[2]}"
        self._sent: dict[int, Any] = {}  # what Dask has of arrays that nobody writes into
        self._streams = False

    def share(
        self,
        work: Callable[[Any], Any],
        items: Sequence[Any],
        flops: float,
        take: Callable[[Any], Any],
    ) -> bool:
        """Work on every item on the workers, results to ``take`` in order; False if too small."""
        self._require_wanted()
        seconds = flops / _FLOPS
        if len(items) < 2 or seconds <= _SECONDS:
            return False
        n_threads = max(1, sum(self._client.nthreads().values()))
        packer = Packer()
        try:
            shares = [packer.packed((work, some)) for some in dealt(items, n_threads, seconds)]
        except _NOT_PICKLED:
            return False  # what holds a lock or an open file stays where it is
        new = self._new(packer).values()
        n_bytes = sum(array.nbytes / (_AGAIN if is_read_only(array) else 1) for array in new)
        saved = seconds * (1.0 - 1.0 / n_threads) - n_bytes / _BYTES
        if packer.rows is not None or saved <= _SECONDS:
            return False
        arrays, name = self._futures(packer), f"{self._name}-{uuid4().hex}"
        tasks = [
            self._client.submit(
                run_tiles,
                share,
                arrays,
                key=f"{name}-{number}",
                pure=False,
                priority=-number,  # the order in which results are taken
            )
            for number, share in enumerate(shares)
        ]

        def take_all(results: list[Any]) -> None:
            for result in results:
                take(result)

        self._take(tasks, take_all)
        return True

    def rows(self, points: Pieces, names: Any) -> Rows:
        """Pieces as rows to go through, each computed whenever it is needed."""
        self._streams = True
        return Rows(points, self._results, names)

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

    def _bound(self, work: Any) -> tuple[Rows, bytes, dict[int, Any]] | None:
        """The rows elsewhere that a function looks at, itself pickled, and its large arrays."""
        packer = Packer()
        try:
            function = packer.packed(work) if self._streams else b""
        except _NOT_PICKLED:
            if packer.rows is not None:
                raise
        return None if packer.rows is None else (packer.rows, function, self._futures(packer))

    def _results(self, tasks: list[Any]) -> list[Any]:
        """The results of delayed tasks, in their order."""
        results: list[Any] = []
        self._take(self._client.compute(tasks), results.append)
        return results

    def _take(self, futures: list[Any], take: Callable[[Any], Any]) -> None:
        """Hand over results in the order of the tasks; none of them is held afterwards."""
        try:
            while futures:
                try:
                    wait(futures[0], timeout=_LOOK)
                except TimeoutError:
                    self._require_wanted()
                else:
                    take(futures.pop(0).result())
        finally:
            futures.clear()  # Dask gives up what nobody holds

    def close(self) -> None:
        """Let the scheduler forget all tiles: it may keep some of a worker that died."""
        with suppress(Exception):
            self._client.run_on_scheduler(forget, self._name)

    def _require_wanted(self) -> None:
        if not self._wanted():
            raise AbandonedError("The fit was cancelled.")

    def _new(self, packer: Packer) -> dict[int, np.ndarray]:
        """Arrays of which Dask has no copy, or one that may no longer be true."""
        kept = self._sent.keys() & {k for k, array in packer.arrays.items() if is_read_only(array)}
        return {key: array for key, array in packer.arrays.items() if key not in kept}

    def _futures(self, packer: Packer) -> dict[int, Any]:
        """Arrays as data of Dask; those that nobody writes into are sent once."""
        new = self._new(packer)
        # Copies: Dask would keep the arrays alive, and they may be written into.
        copies = [Carried(array.copy("A")) for array in new.values()]
        futures = dict(zip(new, self._client.scatter(copies, hash=False), strict=True))
        for key, array in new.items():
            self._sent.pop(key, None)
            if is_read_only(array):
                self._sent[key] = futures[key]
                weakref.finalize(array, self._sent.pop, key, None)
        return {key: futures.get(key, self._sent.get(key)) for key in packer.arrays}


def dealt(items: Sequence[Any], n_threads: int, seconds: float) -> list[list[Any]]:
    """Items in shares of as many, so few that each takes a while, but one for each thread."""
    most = min(len(items), n_threads * _MOST_PER_THREAD)
    n_shares = min(most, max(n_threads, int(seconds / _SHORTEST)))
    edges = [len(items) * number // n_shares for number in range(n_shares + 1)]
    return [list(items[a:b]) for a, b in pairwise(edges)]


def forget(prefix: str, dask_scheduler: Any = None) -> None:
    """On the scheduler: release the tasks whose keys begin with ``prefix``."""
    for key in [key for key in dask_scheduler.tasks if str(key).startswith(prefix)]:
        for owner in list(dask_scheduler.tasks[key].who_wants or ()):
            dask_scheduler.client_releases_keys(keys=[key], client=owner.client_key)


def run_tiles(share: bytes, arrays: dict[int, Carried]) -> list[Any]:
    """The task: a pickled tile function on some tiles, on one thread."""
    return on_worker(*loads(share, arrays))
