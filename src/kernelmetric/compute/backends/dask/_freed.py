"""Memory that a tile frees, kept for the next one.

Dask starts workers with ``MALLOC_TRIM_THRESHOLD_`` set, so that the C library soon gives the system
back what is free. From then on, glibc also asks the system anew for every array beyond 128 kB, and
the system hands it out page by page: tiles of neighbours would take an eighth longer, those of LMNN
half as long again.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

_TRIM, _MMAP = -1, -3  # what glibc calls its two thresholds
_KEPT = 32 * 2**20  # up to where glibc raises its threshold by itself where nobody sets one
_OF_GLIBC = 128 * 2**10  # where it begins
_LOCK = threading.Lock()
_INSIDE = [0]


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let this process reuse memory it freed: inside, Dask's setting of glibc does not hold."""
    trim = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    set_threshold = _mallopt()
    if set_threshold is None or not trim.isdigit() or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        yield
        return
    with _LOCK:
        _INSIDE[0] += 1
        set_threshold(_MMAP, _KEPT)
        set_threshold(_TRIM, 2 * _KEPT)
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE[0] -= 1
            if not _INSIDE[0]:
                set_threshold(_MMAP, _OF_GLIBC)
                set_threshold(_TRIM, int(trim))


@cache
def _mallopt() -> Callable[[int, int], int] | None:
    """The function of glibc, on Linux."""
    try:
        return ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return None
