"""How much memory there is: of the machine, its container (a control group) or ``ulimit -v``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_ASSUMED = 4 * 10**9  # where the system does not tell
_USABLE = 0.8  # of what is free: the rest goes to buffers of BLAS and to gaps between arrays
_ROOT = Path("/")


class _Files(NamedTuple):
    """Where one version of control groups keeps its numbers."""

    mount: str
    limit: str
    usage: str
    cache: str  # the entry of memory.stat for pages that the kernel gives back when asked


_VERSIONS = {
    1: _Files(
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
    2: _Files("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
}


def total_memory() -> int:
    """Bytes this process may hope for: the least of machine, container and limit."""
    return _total_memory(_ROOT)


def free_memory() -> int:
    """Bytes that arrays may take now: four fifths of what is free, asked at most once a second."""
    return int(_USABLE * _free_memory(_ROOT, int(time.monotonic())))


@lru_cache(maxsize=8)
def _total_memory(root: Path) -> int:
    machine = _meminfo(root, "MemTotal:") or _pages("SC_PHYS_PAGES") or _ASSUMED
    limits = [limit for limit, _ in _groups(root)]
    return min([machine, *limits, *(limit for limit, _ in _address_space(root))])


@lru_cache(maxsize=8)
def _free_memory(root: Path, _second: int) -> int:
    machine = _meminfo(root, "MemAvailable:") or _pages("SC_AVPHYS_PAGES") or _ASSUMED
    bounds = [*_groups(root), *_address_space(root)]
    return max(0, min([machine, *(limit - used for limit, used in bounds)]))


def _meminfo(root: Path, entry: str) -> int | None:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith(entry):
            return int(line.split()[1]) * 1024
    return None


def _pages(name: str) -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf(name)
    except (AttributeError, OSError, ValueError):
        return None


def _groups(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use of every control group that the process lies in, the inner ones first."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 1 names at least one, or the hierarchy itself
            files = _VERSIONS[2]
        elif "memory" in controllers.split(","):
            files = _VERSIONS[1]
        else:
            continue
        mount = root / files.mount
        inside = Path(path.lstrip("/"))
        # A container may see its group as the root of the mount, under a path that is not there.
        for folder in dict.fromkeys([inside, *inside.parents, Path()]):
            limit = _number(mount / folder / files.limit)
            if limit is not None:
                yield limit, _in_use(mount / folder, files)


def _in_use(folder: Path, files: _Files) -> int:
    used = _number(folder / files.usage) or 0
    for line in _lines(folder / "memory.stat"):
        if line.startswith(files.cache + " "):
            used -= int(line.split()[1])
    return max(0, used)


def _address_space(root: Path) -> Iterator[tuple[int, int]]:
    """``ulimit -v`` and what is taken of it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return
    used = 0
    for line in _lines(root / "proc/self/status"):
        if line.startswith("VmSize:"):
            used = int(line.split()[1]) * 1024
    yield soft, used


def _number(path: Path) -> int | None:
    """The number in a file; None for "max", and where there is no such file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
