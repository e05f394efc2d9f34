"""Blocks of rows on several threads, each with a single-threaded BLAS.

A block is a small matrix product followed by elementwise work. BLAS would use all cores for the
first and NumPy one for the second; a thread per core that does both keeps all of them busy. While
they run, BLAS must stay calm: its own threads keep spinning for some milliseconds after every
product, on the cores that ours need. As many threads are used as BLAS would have used, so whatever
limits BLAS limits this too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_info

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
    """
    if _THREADS.get() is not None:
        yield
        return
    blas = _controller().select(user_api="blas").info()
    available = max((library["num_threads"] for library in blas), default=1)
    own = _Threads(available if flops > _WORTH_THREADS else 1)
    token = _THREADS.set(own)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _THREADS.reset(token)
        own.end()


class _Threads:
    """So many threads, started when first used and kept for all steps of an optimiser."""

    def __init__(self, count: int):
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[list[Any]], Result], shares: list[list[Any]]) -> list[Result]:
        """Work on each share in a thread of its own; this one takes the first."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count - 1)
        others = [self._pool.submit(work, share) for share in shares[1:]]
        token = _THREADS.set(_Threads(1))  # what the work itself would share runs in its thread
        try:
            first = work(shares[0])
        finally:
            _THREADS.reset(token)
            wait(others)
        return [first, *(other.result() for other in others)]

    def end(self) -> None:
        """Stop them."""
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
    own = _THREADS.get()
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


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def available_threads() -> int:
    """Threads that BLAS has now, which :func:`own_threads` would take; each has a block of its own.

    Returns
    -------
    int
        At least one.
    """
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return max((library["num_threads"] for library in libraries), default=1)
