"""A fit as one task on a worker, and its result in the estimator of the user."""

from __future__ import annotations

import logging
import math
import pickle
import warnings
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
import numpy as np
from dask.utils import format_bytes
from distributed import Future, KilledWorker, default_client, get_worker, wait, worker_client
from distributed.comm import CommClosedError

from kernelmetric._warnings import warn
from kernelmetric.compute._arrays import is_collection
from kernelmetric.compute._device import device_in_use
from kernelmetric.compute._execute import run_elsewhere
from kernelmetric.compute.backends.dask._chunks import Pieces, pieces_of, share_of_worker, together
from kernelmetric.compute.backends.dask._tiles import Cluster

_logger = logging.getLogger("kernelmetric")
_COPIES = 3.0  # of the points on the worker of a fit: the chunks, the array, what travels
_X = 0  # where the points are among the arguments
_FEW_BYTES = 2**26  # of points that one worker adds up as fast
_USABLE = 0.9  # of the memory limit of a worker
_LOOK, _PAUSED_LOOKS = 5.0, 6  # seconds between looks at paused workers, and looks until it is said


def run_there(estimator: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a method on a worker that gets all chunks, and copy the fitted state to ``estimator``."""
    if device_in_use() is not None:
        raise ValueError(
            "Got Dask collections inside use_device, but expected one of the two: the workers of a "
            "cluster compute on their own processors. Try without use_device."
        )
    if not args and "X" in options:
        args, options = (options["X"],), {k: v for k, v in options.items() if k != "X"}
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
    streams = client is not None and method == "fit" and _streams(client, estimator, pieces)
    delayed = {i: parts.delayed for i, parts in pieces.items() if not (streams and i == _X)}
    plain = [None if i in pieces else value for i, value in enumerate(values)]
    if streams:  # pickled, so that the task gets the graph and not what it stands for
        plain[_X] = cloudpickle.dumps(_as_array(values[_X]))
    names = list(options)
    if client is None:
        (found,) = dask.compute(delayed)
        return _finished(estimator, _called(estimator, method, plain, found, names))
    key = f"kernelmetric-{method}-{type(estimator).__name__}-{uuid4().hex}"
    task = dask.delayed(_drive, pure=False)(
        estimator, method, plain, delayed, names, key, dask_key_name=key
    )
    what, given = f"{type(estimator).__name__}.{method}", [values[i] for i in pieces]
    return _finished(estimator, _awaited(client, task, what, given))


def current_client() -> Any:
    """The client of the cluster in use; None where there is none."""
    try:
        return default_client()
    except ValueError:
        return None


def _awaited(client: Any, task: Any, what: str, given: list[Any]) -> Any:
    """The result of a task on collections; if it is given up here, it is given up there."""
    future = client.compute(task)
    try:
        return _watched(client, future, what)
    except KilledWorker as error:
        raise RuntimeError(
            f"{what} was given up: {error.task} was on a worker that died, and on as many others "
            "that died too. Expected workers that live: look at their logs, most often the memory "
            "did not suffice. Try fewer points, a space of lower rank, or larger workers."
        ) from error
    except (CommClosedError, OSError, CancelledError) as error:
        if client.status == "running" and future.status not in ("lost", "cancelled"):
            raise  # it is of the work
        other = _other_client(client, given)
        if other is not None:
            raise RuntimeError(
                f"{what} was not finished: its points lie on the cluster {_address(other)}, but "
                f"the client in use is that of the scheduler {_address(client)}. The estimator is "
                "as it was. Expected one cluster: fit inside `with client.as_current():` with the "
                "client that holds the points."
            ) from error
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


def _other_client(client: Any, collections: list[Any]) -> Any:
    """The client of a cluster that holds parts of collections, if it is another one than this."""
    for collection in collections:
        for value in dict(collection.__dask_graph__()).values():
            if isinstance(value, Future) and value.client is not client:
                return value.client
    return None


def _watched(client: Any, future: Any, what: str) -> Any:
    """The result, and a warning where nothing goes on for want of memory: Dask waits in silence."""
    looks = 0
    while True:
        try:
            wait(future, timeout=_LOOK)
        except TimeoutError:
            paused = False
            with suppress(Exception):
                paused = client.run_on_scheduler(all_paused)
            looks = looks + 1 if paused else 0
            if looks == _PAUSED_LOOKS:
                warn(
                    f"All workers are paused, and {what} waits for them: each holds more than "
                    "Dask lets it begin new work with, 80 % of its memory unless set otherwise. "
                    "Expected workers with room: stop, and try larger ones, or fewer threads."
                )
        else:
            return future.result()


def all_paused(dask_scheduler: Any = None) -> bool:
    """On the scheduler: whether there are workers, and all of them are paused."""
    states = [worker.status.name for worker in dask_scheduler.workers.values()]
    return bool(states) and all(state == "paused" for state in states)


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
    worker = get_worker()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        given_up = task is None or task.state in ("cancelled", "released", "forgotten")
        return not given_up and worker.status.name in ("init", "running", "paused")

    with worker_client() as client:
        cluster = Cluster(client, wanted, key)
        try:
            if plain and isinstance(plain[_X], bytes):
                plain = [cluster.rows(*pickle.loads(plain[_X])), *plain[1:]]
            with run_elsewhere(cluster), share_of_worker():
                return _called(estimator, method, plain, pieces, names)
        finally:
            cluster.close()


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
    return (vars(estimator), None, said) if result is estimator else (None, result, said)


def _finished(estimator: Any, outcome: tuple[Any, ...]) -> Any:
    """Let the user's estimator hold what was learned, and say what was to be said."""
    state, result, said = outcome
    for message, category in said:
        warnings.warn(message, category, stacklevel=5)
    if state is None:
        return result
    parameters = estimator.get_params(deep=False)
    held = vars(estimator)
    learned = {name: value for name, value in state.items() if name not in parameters}
    for name in [name for name in held if name not in parameters and name not in learned]:
        del held[name]
    held.update(learned)
    return estimator


def _as_array(X: Any) -> tuple[Any, Any]:
    """A Dask array of the points, and the names of its columns."""
    if not hasattr(X, "columns"):
        return X, None
    names = np.asarray(X.columns, dtype=object)
    return X.to_dask_array(lengths=True), names if all(isinstance(n, str) for n in names) else None


def _streams(client: Any, estimator: Any, pieces: dict[int, Pieces]) -> bool:
    """Whether a fit reads the rows chunk by chunk; if not, one worker must have room for all."""
    parts = pieces.get(_X)
    if parts is None or len(parts.shape) != 2:
        return False
    when = estimator._streams() if parts.numeric and hasattr(estimator, "_streams") else None
    if math.isnan(parts.shape[0]):
        parts = _counted(client, parts)
    n_bytes = parts.itemsize * math.prod(parts.shape)
    needed = _COPIES * n_bytes
    with suppress(Exception):  # parameters that fit will refuse in a sentence
        needed = 2.0 * n_bytes + estimator.estimate_memory(*map(int, parts.shape))
    least = least_memory(client)
    if when == "always" and n_bytes > _FEW_BYTES:
        return True
    if needed <= _USABLE * least:
        return False
    if when is not None:
        return True
    raise MemoryError(
        f"{type(estimator).__name__} on {parts.shape[0]} points with {parts.shape[1]} features "
        f"would take about {format_bytes(int(needed))} on a worker, but the smallest one has "
        f"{format_bytes(int(least))}: expected points that fit one worker. Try larger workers, "
        "float32, NCA(solver='minibatch'), or a space that goes through the rows: "
        "Nystroem(500) or RandomFeatures(1000)."
    )


def _counted(client: Any, parts: Pieces) -> Pieces:
    """Pieces whose rows were counted, because Dask did not know how many there are."""
    lengths = client.gather(client.compute([dask.delayed(len)(part) for part in parts.delayed]))
    _logger.info("The rows of %d chunks were counted: Dask did not know them.", len(lengths))
    return parts._replace(shape=(sum(lengths), *parts.shape[1:]))


def least_memory(client: Any) -> float:
    """The memory limit of the smallest worker; infinite where there is no limit, or no worker."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before 2025, it told of all of them
        workers = client.scheduler_info()["workers"]
    limits = [worker.get("memory_limit") for worker in workers.values()]
    return min((float(limit) for limit in limits if limit), default=math.inf)
