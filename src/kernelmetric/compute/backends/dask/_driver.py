"""A fit as one task on a worker, and its result in the estimator of the user."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from typing import Any
from uuid import uuid4

import dask
from dask.utils import format_bytes

from kernelmetric.compute._device import device_in_use
from kernelmetric.compute._elsewhere import is_collection
from kernelmetric.compute._execute import run_elsewhere
from kernelmetric.compute.backends.dask._chunks import Pieces, pieces_of, together
from kernelmetric.compute.backends.dask._tiles import Cluster

_COPIES = 3.0  # of the points on the worker of a fit: the chunks, the array, what travels
_USABLE = 0.9  # of the memory limit of a worker


def run_there(estimator: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a method on a worker of the cluster, which gets all chunks, and keep what it learned.

    Parameters
    ----------
    estimator : estimator
        Ours; it ends as if the method had run here.
    method : str
        Its name.
    args : tuple
        Its positional arguments.
    options : dict
        Its named arguments.

    Returns
    -------
    object
        The estimator, where the method returned itself; else what it returned.
    """
    if device_in_use():
        raise ValueError(
            "Got Dask collections inside use_device, but expected one of the two: the workers of a "
            "cluster compute on their own processors. Try without use_device."
        )
    named = [*(("X", "y")[i] if i < 2 else f"argument {i}" for i in range(len(args))), *options]
    values = [*args, *options.values()]
    pieces = {
        i: pieces_of(value, name)
        for i, (name, value) in enumerate(zip(named, values, strict=True))
        if is_collection(value)
    }
    client = current_client()
    if client is None:
        warnings.warn(
            "Got Dask collections without a distributed.Client: they are computed into this "
            "process, and the work is done here. Start a Client for a cluster, or a LocalCluster.",
            UserWarning,
            stacklevel=4,
        )
    else:
        _require_room(client, estimator, pieces)
    delayed = {i: parts.delayed for i, parts in pieces.items()}
    plain = [None if i in pieces else value for i, value in enumerate(values)]
    names = list(options)
    if client is None:
        (found,) = dask.compute(delayed)
        return _finished(estimator, _called(estimator, method, plain, found, names))
    key = f"kernelmetric-{method}-{type(estimator).__name__}-{uuid4().hex}"
    task = dask.delayed(_drive, pure=False)(
        estimator, method, plain, delayed, names, key, dask_key_name=key
    )
    return _finished(estimator, _awaited(client, task, f"{type(estimator).__name__}.{method}"))


def current_client() -> Any:
    """The client of the cluster in use; None where there is none."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _awaited(client: Any, task: Any, what: str) -> Any:
    """The result of a task; if it is given up here, it is given up there."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    future = client.compute(task)
    try:
        return future.result()
    except KilledWorker as error:
        raise RuntimeError(
            f"{what} was given up: {error.task} was on a worker that died, and on as many others "
            "that died too. Expected workers that live: look at their logs, most often the memory "
            "did not suffice. Try fewer points, a space of lower rank, or larger workers."
        ) from error
    except (CommClosedError, OSError, _cancelled()) as error:
        if client.status == "running" and future.status not in ("lost", "cancelled"):
            raise  # it is of the work
        raise RuntimeError(
            f"{what} was not finished: the scheduler {_address(client)} went away or gave the task "
            "up. The estimator is as it was. Expected a cluster that lives: connect to a new one "
            "and fit again."
        ) from error
    finally:
        with suppress(Exception):
            if not future.done():
                future.cancel()
            future.release()


def _cancelled() -> type[BaseException]:
    from concurrent.futures import CancelledError

    return CancelledError


def _address(client: Any) -> str:
    with suppress(Exception):
        return f"at {client.scheduler.address}"
    return "of the client"


def _drive(
    estimator: Any,
    method: str,
    plain: list[Any],
    pieces: dict[int, list[Any]],
    names: list[str],
    key: str,
) -> tuple[Any, ...]:
    """The task: the method on all points together, its tiles shared with the other workers."""
    from distributed import get_worker, worker_client

    tasks = get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    with worker_client() as client, run_elsewhere(Cluster(client, wanted)):
        return _called(estimator, method, plain, pieces, names)


def _called(
    estimator: Any, method: str, plain: list[Any], pieces: dict[int, list[Any]], names: list[str]
) -> tuple[Any, ...]:
    """What an estimator holds after a method, what that returned unless itself, and warnings."""
    values = [together(pieces.pop(i)) if i in pieces else v for i, v in enumerate(plain)]
    first = len(values) - len(names)
    options = dict(zip(names, values[first:], strict=True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = getattr(estimator, method)(*values[:first], **options)
    said = [(str(warning.message), warning.category) for warning in caught]
    if result is estimator:
        return vars(estimator), None, True, said
    return None, result, False, said


def _finished(estimator: Any, outcome: tuple[Any, ...]) -> Any:
    """Let the user's estimator hold what was learned, and say what was to be said."""
    state, result, itself, said = outcome
    for message, category in said:
        warnings.warn(message, category, stacklevel=5)
    if not itself:
        return result
    parameters = estimator.get_params(deep=False)
    held = vars(estimator)
    learned = {name: value for name, value in state.items() if name not in parameters}
    for name in [name for name in held if name not in parameters and name not in learned]:
        del held[name]
    held.update(learned)
    return estimator


def _require_room(client: Any, estimator: Any, pieces: dict[int, Pieces]) -> None:
    """Refuse points that no worker has room for, before anything moves."""
    parts = pieces.get(0)
    if parts is None or math.isnan(parts.n_bytes) or len(parts.shape) != 2:
        return
    n_bytes = _COPIES * parts.n_bytes
    with suppress(Exception):  # parameters that fit will refuse in a sentence
        n_bytes = 2.0 * parts.n_bytes + estimator.estimate_memory(*map(int, parts.shape))
    least = least_memory(client)
    if n_bytes > _USABLE * least:
        raise MemoryError(
            f"{type(estimator).__name__} on {parts.shape[0]} points with {parts.shape[1]} features "
            f"would take about {format_bytes(int(n_bytes))} on a worker, but the smallest one has "
            f"{format_bytes(int(least))}: expected points that fit one worker. Try larger workers, "
            "float32, NCA(solver='minibatch'), or a space that goes through the rows once: "
            "Nystroem(500) or RandomFeatures(1000)."
        )


def least_memory(client: Any) -> float:
    """The memory limit of the smallest worker; infinite where there is no limit, or no worker."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before 2025, it told of all of them
        workers = client.scheduler_info()["workers"]
    limits = [worker.get("memory_limit") for worker in workers.values()]
    return min((float(limit) for limit in limits if limit), default=math.inf)
