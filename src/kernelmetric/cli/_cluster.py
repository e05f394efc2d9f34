"""Where parts of a table are worked on: here, in processes of this machine, or on a cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import click

from kernelmetric.cli._options import together

cluster_options = together(
    click.option(
        "--dask",
        "address",
        metavar="ADDRESS",
        help="Share the work among the workers of this Dask scheduler, such as tcp://host:8786. "
        "They must see the files under the same names.",
    ),
    click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Use N processes of this machine."
    ),
)


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """A Dask client of an address or of new processes, which end with the block; else None."""
    if address is None and workers is None:
        yield None
        return
    if address is not None and workers is not None:
        raise ValueError(f"Got --dask {address} and --workers {workers}, but expected one of them.")
    try:
        from dask.distributed import Client, KilledWorker
    except ImportError as error:
        raise ImportError(
            "Work on many machines needs dask and distributed, which are not installed: try "
            'pip install "kernelmetric[dask]".'
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its errors are ours to tell
    local: Any = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    local["silence_logs"] = logging.CRITICAL
    with Client(**local) if address is None else _connected(Client, address) as client:
        try:
            yield client
        except (KilledWorker, CancelledError) as error:
            raise OSError(
                f"Workers were killed over the same part, or the scheduler went away: {error} Try "
                "workers with more memory, or files with smaller groups of rows."
            ) from error
        except RuntimeError as error:  # what a fit says of the same
            if isinstance(error.__cause__, KilledWorker | CancelledError | OSError):
                raise OSError(str(error)) from error
            raise


def _connected(client: Any, address: str) -> Any:
    try:
        found = client(address)
    except (OSError, ValueError) as error:  # no answer in time is one too
        raise OSError(
            f"Got --dask {address}, but expected an address where a scheduler answers, such as "
            f"tcp://host:8786: {error} Start one with dask scheduler, and workers with dask worker "
            "ADDRESS."
        ) from error
    if not found.scheduler_info()["workers"]:
        found.close()
        raise OSError(
            f"Got --dask {address}, a scheduler without workers: start some with dask worker "
            f"{address}."
        )
    return found


def over_parts(
    client: Any, work: Callable[..., Any], parts: Iterable[Any], *shared: Any
) -> Iterator[tuple[int, Any]]:
    """Number and result of ``work(part, number, *shared)`` of every part; here without a client."""
    parts = list(parts)
    if client is None:
        for number, part in enumerate(parts):
            yield number, work(part, number, *shared)
        return
    from dask.distributed import as_completed

    held = client.scatter(list(shared), broadcast=True, hash=False)
    futures = client.map(
        work, parts, range(len(parts)), *([v] * len(parts) for v in held), pure=False
    )
    numbers = {future.key: number for number, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            yield numbers[future.key], future.result()
            future.release()  # what it holds is not needed on the worker any more
    finally:
        client.cancel(futures)
