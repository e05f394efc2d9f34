"""Blocks of rows on several threads, each with a single-threaded BLAS.

A block is a small matrix product followed by elementwise work. BLAS would use all cores for the
first and NumPy one for the second; a thread per core that does both keeps all of them busy. While
they run, BLAS must stay calm: its own threads keep spinning for some milliseconds after every
product, on the cores that ours need. As many threads are used as BLAS would have used, so whatever
limits BLAS limits this too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

_THREADS: ContextVar[int | None] = ContextVar("kernelmetric_threads", default=None)
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
    token = _THREADS.set(available if flops > _WORTH_THREADS else 1)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _THREADS.reset(token)


def over_threads(
    work: Callable[[list[Any]], Result], items: Sequence[Any], *, threads: bool = True
) -> list[Result]:
    """Share items among the threads of the enclosing :func:`own_threads`.

    Parameters
    ----------
    work : callable
        From a list of items to a result; called once per thread.
    items : sequence
        What there is to do. Threads take items in turn, in reverse order every second time, so
        that each gets its share of items that grow or shrink; always the same, so that sums of
        floating-point numbers repeat.
    threads : bool, default=True
        False runs everything in this thread, for arrays whose library has threads of its own.

    Returns
    -------
    list
        One result per thread that had something to do, in the order of the threads.
    """
    n_threads = min(_THREADS.get() or 1, len(items)) if threads else 1
    if n_threads <= 1:
        return [work(list(items))]
    turns = [items[i : i + n_threads] for i in range(0, len(items), n_threads)]
    turns = [turn[::-1] if number % 2 else turn for number, turn in enumerate(turns)]
    shares = [[turn[t] for turn in turns if t < len(turn)] for t in range(n_threads)]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, shares))


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
