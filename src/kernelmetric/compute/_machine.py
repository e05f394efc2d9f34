"""How much memory there is: of the machine, its container (a control group) or ``ulimit -v``."""

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_ASSUMED = 4 * 10**9  # where the system does not tell
_USABLE = 0.8  # of what is free: the rest goes to buffers of BLAS and to gaps between arrays
_ROOT = Path("/")


# Where each version of control groups keeps limit and use, and the entry of memory.stat for pages
# that the kernel gives back when asked.
_VERSION_1 = (
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)  # fmt: skip
_VERSION_2 = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"


def total_memory() -> int:
    """Bytes this process may hope for: the least of machine, container and limit."""
    return _total_memory(_ROOT)


def free_memory() -> int:
    """Bytes that arrays may take now: four fifths of what is free, asked at most once a second."""
    return int(_USABLE * _free_memory(_ROOT, int(time.monotonic())))


@lru_cache(maxsize=8)
def _total_memory(root: Path) -> int:
    machine = 1024 * _entry(root / "proc/meminfo", "MemTotal:") or _pages("SC_PHYS_PAGES")
    limits = [limit for limit, _ in (*_groups(root), *_address_space(root))]
    return min([machine or _ASSUMED, *limits])


@lru_cache(maxsize=8)
def _free_memory(root: Path, _second: int) -> int:
    machine = 1024 * _entry(root / "proc/meminfo", "MemAvailable:") or _pages("SC_AVPHYS_PAGES")
    left = [limit - used for limit, used in (*_groups(root), *_address_space(root))]
    return max(0, min([machine or _ASSUMED, *left]))


def _pages(name: str) -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf(name)
    except (AttributeError, OSError, ValueError):
        return None


def _groups(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use of every control group that the process lies in, the inner ones first."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        # version 1 names at least one controller, or the hierarchy itself
        mount, limit_file, usage, cache = _VERSION_1 if controllers else _VERSION_2
        inside = Path(path.lstrip("/"))
        # A container may see its group as the root of the mount, under a path that is not there.
        for folder in dict.fromkeys([inside, *inside.parents, Path()]):
            place = root / mount / folder
            limit = _number(place / limit_file)
            if limit is not None:
                used = (_number(place / usage) or 0) - _entry(place / "memory.stat", f"{cache} ")
                yield limit, max(0, used)


def _address_space(root: Path) -> Iterator[tuple[int, int]]:
    """``ulimit -v`` and what is taken of it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft, 1024 * _entry(root / "proc/self/status", "VmSize:")


def _entry(path: Path, name: str) -> int:
    """The number behind a name at the beginning of a line; zero where there is none."""
    return next((int(line.split()[1]) for line in _lines(path) if line.startswith(name)), 0)


def _number(path: Path) -> int | None:
    """The number in a file; None for "max", and where there is no such file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
