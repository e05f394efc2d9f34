"""Work on blocks of rows or on tiles: run here, described by who needs it.

A caller says what is done with some rows and what a row of it takes in memory. Reductions hand over
functions of a tile, which threads may share, or workers while a fit runs on a cluster
(:func:`run_on_cluster`): results are put together in an order fixed by the tiles.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeVar

from kernelmetric.compute import _threads
from kernelmetric.compute._arrays import device_of, namespace
from kernelmetric.compute._budget import fits_budget, row_blocks
from kernelmetric.compute.watch import stage, watched, within

Item = TypeVar("Item")
Result = TypeVar("Result")

_GROUPS = (16, 8, 4)  # in which tiles are summed: each has a sum of its own to begin and to add
_FLOPS_PER_ENTRY = 1500  # of such a sum, that make it cheap
_CACHED = 8192  # entries of some twenty vectors that stay in the cache
_WAKING = 1e4  # operations for which BLAS wakes its threads, which then spin on cores of others
# Who else runs tiles, while a fit is on a cluster.
_CLUSTER: ContextVar[Any] = ContextVar("kernelmetric_elsewhere", default=None)
_FLOPS_OF_ONE = 10.0  # what takes as long as an operation on a number that comes from memory


def run_on_cluster(cluster: Any) -> AbstractContextManager[Any]:
    """Let a cluster run the tiles of what is inside; None is this process alone."""
    return within(_CLUSTER, cluster)


def over_rows(
    work: Callable[[slice], Result], n_rows: int, bytes_per_row: float, *, most: int | None = None
) -> list[Result]:
    """What ``work`` gives for each slice of rows; ``bytes_per_row`` counts all temporaries."""
    return [work(rows) for rows in row_blocks(n_rows, bytes_per_row, most=most)]


def map_rows(
    work: Callable[[slice], Any], n_rows: int, bytes_per_row: float, *, most: int | None = None
) -> Any:
    """One array from a function of a slice of rows that gives an array of as many rows."""
    cluster = _CLUSTER.get()
    rows_elsewhere = None if cluster is None else cluster.map_rows(work)
    if rows_elsewhere is not None:
        return rows_elsewhere
    blocks = watched(row_blocks(n_rows, bytes_per_row, most=most))
    first = work(next(blocks, slice(0, 0)))
    if first.shape[0] == n_rows:
        return first
    xp = namespace(first)
    whole = xp.empty((n_rows, *first.shape[1:]), dtype=first.dtype, device=device_of(first))
    whole[: first.shape[0], ...] = first  # filled, as a list of all blocks would be as large again
    with stage("rows", n_rows, told=False) as done:
        done.step(by=first.shape[0])
        for rows in blocks:
            part = work(rows)
            if part.dtype != whole.dtype:  # a longer text, or numbers beside whole ones
                whole = xp.astype(whole, xp.result_type(whole.dtype, part.dtype))
            whole[rows, ...] = part
            done.step(by=rows.stop - rows.start)
    return whole


def sum_rows(
    work: Callable[[slice], Any],
    n_rows: int,
    bytes_per_row: float,
    *,
    most: int | None = None,
    flops: float = 0.0,
) -> Any:
    """The sum, over slices of rows, of a number, an array, or a tuple of these.

    Threads share the blocks where ``flops``, of all together, are many; the order is the same.
    """
    cluster = _CLUSTER.get()
    sums_elsewhere = None if cluster is None else cluster.sum_rows(work, bytes_per_row, most)
    if sums_elsewhere is not None:
        return sums_elsewhere[0]
    blocks = list(row_blocks(n_rows, bytes_per_row, most=most)) or [slice(0, 0)]
    n_threads = _threads.tiles_at_once(flops)
    total: list[Any] = [None]

    def take(part: Any) -> None:
        total[0] = added(total[0], part)
        done.step(by=blocks[0].stop)

    with stage("rows", n_rows, told=False) as done:
        if n_threads > 1 and fits_budget(n_threads * blocks[0].stop * bytes_per_row):
            _threads.in_threads(work, blocks, flops, take)
        else:
            for rows in watched(blocks):
                take(work(rows))
    return total[0]


def over_tiles(
    work: Callable[[Item], Result], tiles: Sequence[Item], *, flops: float, host: bool = True
) -> list[Result]:
    """Results of a tile function in order; ``host`` is False for libraries with own threads."""
    results: list[Result] = []
    if host:
        _shared(work, tiles, flops, results.append)
    else:
        results.extend(map(work, tiles))
    return results


def sum_tiles(
    work: Callable[[list[Item]], tuple[Any, ...]],
    tiles: Sequence[Item],
    *,
    flops: float,
    entries: float,
    host: bool = True,
    once: Callable[[], Any] | None = None,
) -> tuple[Any, ...]:
    """The sums of what a function gives for groups of tiles, the same on any number of threads.

    ``once`` makes a first argument of ``work`` in each process, cheaper to make than to send.
    """
    if not (host and _threads.worth_threads(flops)):
        n_groups = 1
    else:
        worth = flops / (_FLOPS_PER_ENTRY * max(entries, 1.0))
        n_groups = next((number for number in _GROUPS if number <= worth), _GROUPS[-1])
    total: list[Any] = []

    def take(parts: tuple[Any, ...]) -> None:
        if not total:
            total.extend(parts)
            return
        for k, part in enumerate(parts):
            total[k] += part

    groups = [_Watched(tiles[k::n_groups]) for k in range(min(n_groups, len(tiles)))]
    prepared = work if once is None else _Prepared(work, once)
    if host:
        _shared(prepared, groups, flops, take)
    else:
        take(prepared(groups[0]))
    return tuple(total)


class _Watched(list):
    """Tiles of a group, between which a pass may be left."""

    def __iter__(self) -> Iterator[Any]:
        return watched(super().__iter__())


class _Prepared:
    """Work on tiles, and what it gets first: made once, and not pickled."""

    def __init__(self, work: Callable[..., Any], once: Callable[[], Any]):
        self._work, self._once, self._made = work, once, False

    def __call__(self, tiles: Any) -> Any:
        return self._work(self.ready(), tiles)

    def __reduce__(self) -> Any:
        return _Prepared, (self._work, self._once)

    def ready(self) -> Any:
        """Make it, if it is not there."""
        if not self._made:
            self._first, self._made = self._once(), True
        return self._first


def sum_entries(
    work: Callable[[slice], tuple[Any, ...]], n_entries: int, operations: float
) -> tuple[Any, ...]:
    """The sums of what a function gives for blocks of the entries of long vectors.

    ``work`` gives a tuple of what it made, and may write into its own entries.
    """
    flops = _FLOPS_OF_ONE * operations * n_entries
    if n_entries <= _CACHED and not _threads.worth_threads(flops):
        with _threads.repeatable() if operations * n_entries > _WAKING else nullcontext():
            return work(slice(0, n_entries))
    n_parts = _GROUPS[0] if _threads.worth_threads(flops) else 1
    blocks = [slice(k, min(k + _CACHED, n_entries)) for k in range(0, n_entries, _CACHED)]
    bounds = [len(blocks) * part // n_parts for part in range(n_parts + 1)]
    parts = [blocks[a:b] for a, b in pairwise(bounds) if a < b]
    sums: list[tuple[Any, ...]] = []  # on this machine, as work may write into vectors
    _threads.in_threads(lambda some: reduce(added, map(work, some)), parts, flops, sums.append)
    return reduce(added, sums)


def _shared(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    flops: float,
    take: Callable[[Result], Any],
) -> None:
    """Run work on every item, on a cluster where that is worth it, else in threads."""
    cluster = None if _threads.alone() else _CLUSTER.get()
    if cluster is None or not cluster.share(work, items, flops, take):
        if isinstance(work, _Prepared):
            work.ready()  # before threads share the items, for they may share this as well
        _threads.in_threads(work, items, flops, take)


def added(a: Any, b: Any) -> Any:
    """The sum of two numbers, arrays or tuples of these; None is no sum yet."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(map(add, a, b)) if isinstance(a, tuple) else a + b
