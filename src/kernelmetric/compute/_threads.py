"""Blocks of rows on several threads, each with a single-threaded BLAS.

A block is a small matrix product followed by elementwise work. BLAS would use all cores for the
first and NumPy one for the second; a thread per core that does both keeps all of them busy. As
many threads are used as BLAS would have used, so whatever limits BLAS limits this too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")


_WORTH_THREADS = 2e8  # floating-point operations: some milliseconds, many times what threads cost


def over_threads(
    work: Callable[[list[Any]], Result], items: Sequence[Any], *, flops: float, threads: bool = True
) -> list[Result]:
    """Share items among threads, and collect what each thread returns.

    Parameters
    ----------
    work : callable
        From a list of items to a result; called once per thread.
    items : sequence
        What there is to do. Thread t gets items t, t + T, t + 2T, ...: always the same, so that
        sums of floating-point numbers repeat.
    flops : float
        Floating-point operations of all items together; little work stays in this thread.
    threads : bool, default=True
        False runs everything in this thread, for arrays whose library has threads of its own.

    Returns
    -------
    list
        One result per thread that had something to do, in the order of the threads.
    """
    threads = threads and flops > _WORTH_THREADS
    n_threads = min(_blas_threads(), len(items)) if threads else 1
    if n_threads <= 1:
        return [work(list(items))]
    shares = [list(items[t::n_threads]) for t in range(n_threads)]
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, shares))


def calm_blas(flops: float) -> AbstractContextManager[Any]:
    """One BLAS thread while the steps of a fit are small.

    Parameters
    ----------
    flops : float
        Floating-point operations of one step.

    Returns
    -------
    context manager
        Threads that wait for each other between small products cost more than they give, and on
        a busy machine many times more.
    """
    if flops > _WORTH_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _blas_threads() -> int:
    """Threads BLAS would use now; 1 inside a worker of ours or of joblib's."""
    blas = _controller().select(user_api="blas").info()
    return max((library["num_threads"] for library in blas), default=1)
