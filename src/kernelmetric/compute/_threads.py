"""Blocks of rows on several threads, each with a single-threaded BLAS.

A block is a small matrix product followed by elementwise work. BLAS would use all cores for the
first and NumPy one for the second; a thread per core that does both keeps all of them busy. While
they run, BLAS must stay calm: its own threads keep spinning for some milliseconds after every
product, on the cores that ours need. As many threads are used as BLAS would have used, so whatever
limits BLAS limits this too.

How many threads BLAS uses is a setting of the whole process, so it has one owner here: the first
block of code that wants a calm BLAS limits it, the last one that leaves restores it, in whatever
threads they run. What a context variable says is only which threads the code around us may use.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

_THREADS: ContextVar[_Threads | None] = ContextVar("kernelmetric_threads", default=None)
_WORTH_THREADS = 2e8  # floating-point operations: some milliseconds, many times what threads cost


@contextmanager
def own_threads(flops: float) -> Iterator[None]:
    """Take the threads from BLAS, for :func:`over_threads` to use.

    Parameters
    ----------
    flops : float
        Floating-point operations of one step. Small steps run on one thread altogether: threads
        that wait for each other cost more than they give, on a busy machine many times more.

    Yields
    ------
    None
        Inside another such block nothing changes, so an optimiser takes them once for all steps.
        Elsewhere it gets as many threads as it would get alone, so that sums of floating-point
        numbers do not depend on who else is at work.
    """
    if _current() is not None:
        yield
        return
    with (
        _calm() as available,
        _using(_Threads(available if flops > _WORTH_THREADS else 1)),
    ):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep what is inside on one thread: BLAS, OpenMP, and :func:`own_threads`.

    On a few hundred rows the threads of a BLAS wait for each other, and where other programs run
    too that takes many times longer than the work.

    Yields
    ------
    None
        What was before is restored at the end, once nobody else wants a single thread.
    """
    with _calm(openmp=True), _using(_Threads(1)):
        yield


def available_threads() -> int:
    """Threads that BLAS has now, which :func:`own_threads` would take; each has a block of its own.

    Returns
    -------
    int
        At least one.
    """
    return max((count for _, count in _counts("blas")), default=1)


class _Blas:
    """The one owner of BLAS's threads in this process: the first in limits, the last out restores.

    A holder is known by its object, not counted, so that giving back twice does no harm: whoever
    is interrupted while giving back may do it again.
    """

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
                for library, _ in self._before:
                    _set(library, 1)
            return max((count for _, count in self._before), default=1)

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
            if library.num_threads == 1:  # else somebody has set another limit in the meantime
                _set(library, count)
        self._before = []


_BLAS = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.start_anew)


@contextmanager
def _calm(*, openmp: bool = False) -> Iterator[int]:
    """One thread for BLAS, and for OpenMP if asked; how many BLAS would have used.

    The setting of OpenMP belongs to the calling thread. An OpenBLAS that is built with it goes by
    it, so there it must be kept and restored thread by thread. Elsewhere, unless asked, it is
    left alone: other libraries of arrays live on it.
    """
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
def _using(own: _Threads) -> Iterator[None]:
    earlier = _THREADS.get()
    try:
        _THREADS.set(own)
        yield
    finally:
        _THREADS.set(earlier)
        own.end()


def _current() -> _Threads | None:
    """The threads of the code around us, unless another thread or process left us its own."""
    own = _THREADS.get()
    return own if own is not None and own.place == (os.getpid(), threading.get_ident()) else None


class _Threads:
    """So many threads, started when first used and kept for all steps of an optimiser."""

    def __init__(self, count: int):
        self.count = count
        self.place: tuple[int, int] | None = (os.getpid(), threading.get_ident())
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[list[Any]], Result], shares: list[list[Any]]) -> list[Result]:
        """Work on each share in a thread of its own; this one takes the first."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count - 1)

        def alone(share: list[Any]) -> Result:
            # What the work itself would share runs in its thread.
            with _calm(), _using(_Threads(1)):
                return work(share)

        others = [self._pool.submit(alone, share) for share in shares[1:]]
        try:
            first = alone(shares[0])
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]

    def end(self) -> None:
        """Stop them."""
        self.place = None
        if self._pool is not None:
            self._pool.shutdown()


def over_threads(
    work: Callable[[list[Any]], Result],
    items: Sequence[Any],
    *,
    threads: bool = True,
    cost: Callable[[Any], float] | None = None,
) -> list[Result]:
    """Share items among the threads of the enclosing :func:`own_threads`.

    Parameters
    ----------
    work : callable
        From a list of items to a result; called once per thread.
    items : sequence
        What there is to do. Each thread gets the same items always, so that sums of
        floating-point numbers repeat.
    threads : bool, default=True
        False runs everything in this thread, for arrays whose library has threads of its own.
    cost : callable, default=None
        What an item costs, for shares of equal cost. Without it threads take items in turn, in
        reverse order every second time, so that each gets its share of items that grow or shrink.

    Returns
    -------
    list
        One result per thread that had something to do, in the order of the threads.
    """
    own = _current()
    n_threads = min(own.count, len(items)) if threads and own is not None else 1
    if own is None or n_threads <= 1:
        return [work(list(items))]
    if cost is None:
        turns = [items[i : i + n_threads] for i in range(0, len(items), n_threads)]
        turns = [turn[::-1] if number % 2 else turn for number, turn in enumerate(turns)]
        shares = [[turn[t] for turn in turns if t < len(turn)] for t in range(n_threads)]
    else:
        shares = _equal_shares(items, cost, n_threads)
    return own.map(work, shares)


def _equal_shares(
    items: Sequence[Any], cost: Callable[[Any], float], n_shares: int
) -> list[list[Any]]:
    """The dearest item first, each to the share that has the least so far; then as they came."""
    costs = [cost(item) for item in items]
    shares: list[list[int]] = [[] for _ in range(n_shares)]
    totals = [0.0] * n_shares
    for i in sorted(range(len(items)), key=lambda i: -costs[i]):
        least = totals.index(min(totals))
        shares[least].append(i)
        totals[least] += costs[i]
    return [[items[i] for i in sorted(share)] for share in shares]


def _counts(user_api: str) -> list[tuple[Any, int]]:
    """Libraries of a kind, and how many threads each uses now."""
    counts = [
        (library, library.num_threads)
        for library in _libraries(len(sys.modules))
        if library.user_api == user_api
    ]
    return [(library, count) for library, count in counts if count]


def _set(library: Any, count: int) -> None:
    """Let a library use so many threads, whatever thread asks.

    threadpoolctl 3.8 lets only that thread change an OpenBLAS again which was the first to limit
    it; here the first to limit and the last to restore may be two.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


def _blas_has_openmp() -> bool:
    return any(
        library.user_api == "blas" and getattr(library, "threading_layer", "") == "openmp"
        for library in _libraries(len(sys.modules))
    )


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Any]:
    """Libraries with threads of their own; looked for again, in 10 ms, after further imports."""
    return ThreadpoolController().lib_controllers
