"""The one owner of BLAS's threads, and tiles shared among threads of our own.

A thread per core does the product of a tile and the elementwise work on it. Meanwhile BLAS has one
thread, as its own keep spinning after every product on the cores that ours need. Ours are as many
as BLAS would have used. Its setting is one of the whole process: the first block of code that wants
one limits BLAS to a single thread, the last one that leaves restores it.
"""

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from kernelmetric.compute.watch import GONE, leave_if_over, until_limit, watched

Item = TypeVar("Item")
Result = TypeVar("Result")

# Whether what runs here may start no threads: it has been told to use one, or is one of ours.
_ALONE: ContextVar[bool] = ContextVar("kernelmetric_alone", default=False)
_WORTH_BLAS = 2e10  # of one call among many others: half a second, many times what spinning costs
_WORTH_THREADS = 2e8  # floating-point operations: some milliseconds, many times what threads cost
LONG = 5e9  # multiplications and additions of one call: some tenths of a second
_STEP = 0.1  # seconds between two looks whether such a call is to be left


def small_steps(operations: float, *, largest: float = math.inf) -> AbstractContextManager[Any]:
    """Run many calls on small matrices, of so many operations together, as fast as they go.

    ``largest``: tiles are shared there too, and the largest other call has so many operations.
    """
    if not worth_threads(operations):  # more threads would only wait
        return repeatable()
    return nullcontext() if largest > _WORTH_BLAS else _one_blas_thread()


def repeatable() -> AbstractContextManager[Any]:
    """One thread, of BLAS, OpenMP and ours: digits and CPU time are those of any machine."""
    return nullcontext() if _ALONE.get() else _alone()


def bytes_at_once(block_bytes: float, operations: float = math.inf) -> float:
    """Bytes of the blocks that are worked on at once, of ``block_bytes`` each."""
    return tiles_at_once(operations) * block_bytes


def alone() -> bool:
    """Whether what runs here may start no threads."""
    return _ALONE.get()


def tiles_at_once(flops: float = math.inf) -> int:
    """Tiles that threads work on at once, in a reduction of so many operations."""
    return 1 if _ALONE.get() or not worth_threads(flops) else _BLAS.available()


def worth_threads(flops: float) -> bool:
    """Whether so many floating-point operations are worth more than one thread."""
    return flops > _WORTH_THREADS


def in_threads(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    flops: float,
    take: Callable[[Result], Any],
) -> None:
    """Work on every item in as many threads as pay; ``take`` gets the results in order."""
    # of one that is alone BLAS has one thread already
    with nullcontext(1) if _ALONE.get() else _one_blas_thread() as available:
        n_threads = min(available, len(items)) if worth_threads(flops) else 1
        if n_threads <= 1:
            for item in watched(items):
                take(work(item))
            return
        context = copy_context()  # the memory budget, for one
        context.run(_ALONE.set, True)
        gone = threading.Event()
        context.run(GONE.set, gone)
        pool = _pool(os.getpid(), available, _libraries())
        futures: deque[Future[Result]] = deque()
        try:
            futures.extend(pool.submit(context.copy().run, work, item) for item in items)
            for _ in watched(items):
                take(futures[0].result())
                futures.popleft()
        except KeyboardInterrupt:
            _pool.cache_clear()  # interrupted while it started a thread, it may not know of it
            raise
        finally:
            gone.set()  # those that are at work look between two blocks
            for future in futures:
                future.cancel()
            wait(futures)


def until_limit_in_threads(
    work: Callable[[Item], Result], items: Sequence[Item], take: Callable[[Result], Any]
) -> None:
    """Work on large items, some at once and the first in any case; a time limit ends that."""
    at_once = tiles_at_once()
    for first in until_limit(range(0, len(items), at_once), None):
        in_threads(work, items[first : first + at_once], math.inf, take)


def unlocked(work: Callable[[], Result], operations: float) -> Result:
    """What one call gives, of so many multiplications and additions; Ctrl-C does not wait for it.

    A thread makes a long call while this one waits, if ``work`` does not hold Python's lock. That
    of NumPy does not, that of SciPy does. A thread that is left ends by itself, and Python does not
    exit before: a BLAS that is at work then crashes.
    """
    if operations < LONG:
        return work()
    pool = ThreadPoolExecutor(1, "kernelmetric", _one_openmp_thread if _ALONE.get() else None)
    found = pool.submit(copy_context().run, work)
    pool.shutdown(wait=False)
    while not wait([found], _STEP).done:
        leave_if_over()
    return found.result()


@lru_cache(maxsize=1)
def _pool(process: int, n_threads: int, libraries: tuple[Any, ...]) -> ThreadPoolExecutor:
    """Threads that fits share, new ones after a fork or where another library was loaded."""
    return ThreadPoolExecutor(n_threads, "kernelmetric", _one_openmp_thread)


class _Blas:
    """The owner: the first in limits, the last out restores; to give back twice does no harm."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collected generator may give back in our own thread
        self._holders: set[Any] = set()
        self._before: list[tuple[Any, int]] = []

    def take(self, holder: Any) -> int:
        """Limit BLAS to one thread for the holder; how many it would have used."""
        with self._lock:
            self._holders.add(holder)
            if len(self._holders) == 1:
                self._before = _counts("blas")  # first of all: what is kept can be restored
                for library, count in self._before:
                    if count > 1:
                        _set(library, 1)
            return max((count for _, count in self._before), default=1)

    def available(self) -> int:
        """How many threads BLAS uses, or would use if nobody held it."""
        with self._lock:
            before = self._before if self._holders else _counts("blas")
        return max((count for _, count in before), default=1)

    def give_back(self, holder: Any) -> None:
        """Restore BLAS if nobody else holds it."""
        with self._lock:
            self._holders.discard(holder)
            if not self._holders:
                self._restore()

    def start_anew(self) -> None:
        """In a forked process, which has none of the other threads: nobody holds anything."""
        self._lock = threading.RLock()
        self._holders = set()
        self._restore()

    def _restore(self) -> None:
        for library, count in self._before:
            # else somebody has set another limit in the meantime
            if count > 1 and library.num_threads == 1:
                _set(library, count)
        self._before = []


_BLAS = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.start_anew)


@contextmanager
def _one_blas_thread(*, openmp: bool = False) -> Iterator[int]:
    """One thread for BLAS, and for OpenMP if asked; returns how many BLAS would have used."""
    # OpenMP's setting belongs to the calling thread, and an OpenBLAS built with it goes by it.
    holder, before = object(), _counts("openmp") if openmp or _blas_has_openmp() else []
    try:
        available = _BLAS.take(holder)
        for library, _ in before:
            library.set_num_threads(1)
        yield available
    finally:
        try:
            _BLAS.give_back(holder)
        except KeyboardInterrupt:
            _BLAS.give_back(holder)
            raise
        finally:
            for library, count in before:
                library.set_num_threads(count)


@contextmanager
def _alone() -> Iterator[None]:
    """One thread of BLAS, one of OpenMP, and none of ours."""
    earlier = _ALONE.get()  # no token: a generator may be closed in another context
    with _one_blas_thread(openmp=True):
        try:
            _ALONE.set(True)
            yield
        finally:
            _ALONE.set(earlier)


def _one_openmp_thread() -> None:
    """One thread for OpenMP, whose setting belongs to the calling thread."""
    for library, _ in _counts("openmp"):
        library.set_num_threads(1)


def _counts(user_api: str) -> list[tuple[Any, int]]:
    """Libraries of a kind, and how many threads each uses now."""
    asked = [library for library in _libraries() if library.user_api == user_api]
    counts = [(library, library.num_threads) for library in asked]
    return [(library, count) for library, count in counts if count]


def _set(library: Any, count: int) -> None:
    """Let a library use so many threads, whatever thread asks."""
    # From 3.8 on, threadpoolctl lets only one thread change an OpenBLAS, until it is released.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(count)
    release(force=True)


def _blas_has_openmp() -> bool:
    blas = [library for library in _libraries() if library.user_api == "blas"]
    return any(getattr(library, "threading_layer", "") == "openmp" for library in blas)


@lru_cache(maxsize=1)
def _libraries_among(n_modules: int, last: str) -> tuple[Any, ...]:
    return tuple(ThreadpoolController().lib_controllers)


def _libraries() -> tuple[Any, ...]:
    """Libraries with threads of their own; looked for again, in 10 ms, after further imports."""
    while True:
        with suppress(RuntimeError):  # another thread has imported something meanwhile
            return _libraries_among(len(sys.modules), next(reversed(sys.modules)))
