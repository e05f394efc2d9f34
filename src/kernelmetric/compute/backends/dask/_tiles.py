"""Tiles of a fit that runs on one worker, shared among all workers of the cluster.

What a tile function is bound to is pickled, and each large array in it is replaced by its place in
a list. The arrays themselves stay on the worker of the fit as data of Dask, which brings each one
to a worker once, from whoever has it; a view travels as the array that it is a view of. Tasks are
pure, and their results are taken in the order of the tiles.
"""

from __future__ import annotations

import io
import pickle
import time
import weakref
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any
from uuid import uuid4

import cloudpickle
import numpy as np
from distributed import wait

from kernelmetric.compute._execute import run_elsewhere
from kernelmetric.compute._threads import in_threads

_LARGE = 2**16  # bytes of an array that travels by itself
_MOST_OF_BASE = 32  # times a view, that its base may be to travel instead of it
_FLOPS = 1e10  # that a thread does in a second
_BYTES = 4e8  # that reach a worker in a second
_SECONDS = 0.05  # of work, below which it stays: a task takes some milliseconds to get there
_TASKS_PER_THREAD = 4  # so that whoever is slower does fewer
_FEWEST_TASKS = 16
_LOOK = 1.0  # seconds between two looks whether the fit is still wanted


class AbandonedError(Exception):
    """Nobody waits for this fit any more."""


class Cluster:
    """The workers, as a fit that runs on one of them sees them.

    Parameters
    ----------
    client : distributed.Client
        Of the task that runs the fit.
    wanted : callable
        Whether somebody still waits for it.
    """

    def __init__(self, client: Any, wanted: Callable[[], bool]):
        self._client, self._wanted = client, wanted
        self._sent: dict[int, _Sent] = {}
        self._threads, self._asked = 1, -np.inf

    def share(
        self,
        work: Callable[[Any], Any],
        items: Sequence[Any],
        flops: float,
        take: Callable[[Any], Any],
    ) -> bool:
        """Work on every item on the workers, if that is worth the way; False if it is not.

        Parameters
        ----------
        work : callable
            From an item to a result.
        items : sequence
            Pieces of the work.
        flops : float
            Floating-point operations of all together.
        take : callable
            Gets the results, in the order of the items.

        Returns
        -------
        bool
            Whether it was done.
        """
        self._require_wanted()
        threads = self._count()
        saved = flops / _FLOPS * (1.0 - 1.0 / threads)
        if len(items) < 2 or saved <= _SECONDS:
            return False
        arrays = _Arrays()
        n_tasks = min(len(items), max(_FEWEST_TASKS, _TASKS_PER_THREAD * threads))
        edges = [round(len(items) * i / n_tasks) for i in range(n_tasks + 1)]
        try:
            bound = _dumps(work, arrays)
            parts = [_dumps(list(items[a:b]), arrays) for a, b in pairwise(edges)]
        except (pickle.PicklingError, TypeError, AttributeError):
            return False  # what holds a lock or an open file stays where it is
        if saved <= _SECONDS + sum(a.nbytes for a in arrays.roots if not self._has(a)) / _BYTES:
            return False
        data = [self._future(root) for root in arrays.roots]
        token = uuid4().hex
        futures = [
            self._client.submit(
                run_tiles, bound, part, data, key=f"kernelmetric-tiles-{token}-{i}", pure=False
            )
            for i, part in enumerate(parts)
        ]
        futures.reverse()
        try:
            while futures:
                for result in self._result(futures[-1]):
                    take(result)
                futures.pop()
        finally:
            if futures:
                self._client.cancel(futures)
        return True

    def _result(self, future: Any) -> Any:
        while True:
            try:
                wait(future, timeout=_LOOK)
            except TimeoutError:
                self._require_wanted()
            else:
                return future.result()

    def _require_wanted(self) -> None:
        if not self._wanted():
            raise AbandonedError("The fit was cancelled.")

    def _count(self) -> int:
        """Threads of all workers, asked for once a second."""
        if time.monotonic() - self._asked > _LOOK:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._asked = time.monotonic()
        return self._threads

    def _has(self, root: np.ndarray) -> bool:
        sent = self._sent.get(id(root))
        return sent is not None and sent.is_of(root)

    def _future(self, root: np.ndarray) -> Any:
        """The copy of an array that is data of Dask, for as long as the array lives unchanged."""
        if not self._has(root):
            # A copy: Dask would keep the array alive, and it may be written into.
            (future,) = self._client.scatter([root.copy("A")], hash=False)
            self._sent[id(root)] = _Sent(root, future, self._sent)
        return self._sent[id(root)].future


class _Sent:
    """An array of which Dask has a copy."""

    def __init__(self, root: np.ndarray, future: Any, known: dict[int, _Sent]):
        key = id(root)
        self.future, self._sum = future, _checksum(root)
        self._root = weakref.ref(root, lambda _: known.pop(key, None))

    def is_of(self, root: np.ndarray) -> bool:
        """Whether the copy is one of this array as it is now."""
        return self._root() is root and self._sum == _checksum(root)


def _checksum(root: np.ndarray) -> int:
    flat: Any = root if root.flags.c_contiguous else root.T
    return zlib.crc32(flat.reshape(-1).view(np.uint8))


class _Arrays:
    """Large arrays met while pickling, each once."""

    def __init__(self) -> None:
        self.roots: list[np.ndarray] = []
        self._places: dict[int, int] = {}

    def place(self, thing: Any) -> Any:
        """Where an array is found by who unpickles: in the list, and how it lies in that array."""
        if type(thing) is not np.ndarray or thing.nbytes < _LARGE or thing.dtype.hasobject:
            return None
        root = thing
        while type(root.base) is np.ndarray:
            root = root.base
        whole = root.flags.c_contiguous or root.flags.f_contiguous
        if not whole or root.nbytes > _MOST_OF_BASE * thing.nbytes or root.dtype.hasobject:
            if not (thing.flags.c_contiguous or thing.flags.f_contiguous):
                return None
            root = thing
        if id(root) not in self._places:
            self._places[id(root)] = len(self.roots)
            self.roots.append(root)
        start = thing.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        place = self._places[id(root)]
        return place, thing.dtype, thing.shape, thing.strides, start


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: Any, arrays: _Arrays):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._arrays = arrays

    def persistent_id(self, thing: Any) -> Any:
        return self._arrays.place(thing)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, roots: list[np.ndarray]):
        super().__init__(file)
        self._roots = roots

    def persistent_load(self, place: Any) -> np.ndarray:
        number, dtype, shape, strides, start = place
        root = self._roots[number]
        memory = root if root.flags.c_contiguous else root.T
        return np.ndarray(shape, dtype, buffer=memory, offset=start, strides=strides)


def _dumps(thing: Any, arrays: _Arrays) -> bytes:
    file = io.BytesIO()
    _Pickler(file, arrays).dump(thing)
    return file.getvalue()


def run_tiles(bound: bytes, items: bytes, roots: list[np.ndarray]) -> list[Any]:
    """The task: a tile function on some tiles, on one thread.

    Parameters
    ----------
    bound : bytes
        The pickled function.
    items : bytes
        The pickled tiles.
    roots : list of ndarray
        The large arrays of both.

    Returns
    -------
    list
        One result a tile.
    """
    work, tiles = (_Unpickler(io.BytesIO(part), roots).load() for part in (bound, items))
    results: list[Any] = []
    with run_elsewhere(None):
        in_threads(work, tiles, 0.0, results.append)
    return results
