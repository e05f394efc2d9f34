"""The workers of a Dask cluster, on which tables are computed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A Dask client of the scheduler of an address, for the block."""
    try:
        from dask.distributed import Client, KilledWorker
    except ImportError as error:
        raise ImportError(
            "Work on many machines needs dask and distributed, which are not installed: try "
            'pip install "kernelmetric[dask]".'
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its errors are ours to tell
    with _connected(Client, address) as client:
        try:
            yield client
        except (KilledWorker, CancelledError) as error:
            raise OSError(
                f"Workers were killed over the same work, or the scheduler went away: {error} Try "
                "workers with more memory."
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
