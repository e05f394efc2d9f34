"""A fit as one task on a worker, and its result in the estimator of the user."""

import math
import pickle
import warnings
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
from dask.utils import format_bytes
from distributed import Future, KilledWorker, default_client, get_worker, wait, worker_client
from distributed.comm import CommClosedError

from kernelmetric._warnings import warn
from kernelmetric.compute._arrays import is_collection
from kernelmetric.compute._device import device_in_use
from kernelmetric.compute._execute import run_on_cluster
from kernelmetric.compute.backends.dask import _chunks
from kernelmetric.compute.backends.dask._tiles import Cluster

_COPIES = 3.0  # of the points on the worker of a fit: the chunks, the array, what travels
_FEW_BYTES = 2**26  # of points that one worker adds up as fast
_USABLE = 0.9  # of the memory limit of a worker
_LOOK, _PAUSED_LOOKS = 5.0, 6  # seconds between looks at paused workers, and looks until it is said


def run_on_worker(estimator: Any, method: str, given: dict[str, Any]) -> Any:
    """Run a method on a worker that gets all chunks, and copy the fitted state to ``estimator``."""
    if device_in_use() is not None:
        raise ValueError(
            "Got Dask collections inside use_device, but expected one of the two: the workers of a "
            "cluster compute on their own processors. Try without use_device."
        )
    pieces = {k: _chunks.pieces_of(v, k) for k, v in given.items() if is_collection(v)}
    plain = {name: None if name in pieces else value for name, value in given.items()}
    delayed = {name: parts.delayed for name, parts in pieces.items()}
    client = current_client()
    if client is None:
        warnings.warn(
            "Got Dask collections without a distributed.Client: they are computed into this "
            "process, and the work is done here. Start a Client for a cluster, or a LocalCluster.",
            UserWarning,
            stacklevel=4,
        )
        (found,) = dask.compute(delayed)
        return _finished(estimator, _called(estimator, method, plain, found))
    if method == "fit" and "X" in pieces and len(pieces["X"].width) == 1:
        points = _chunks.counted(pieces["X"])
        if _streams(client, estimator, points):
            del delayed["X"]  # pickled, so that the task gets the graph and not what it stands for
            names = getattr(given["X"], "columns", None)
            plain["X"] = cloudpickle.dumps((_chunks.as_floats(points, "X"), names))
    key = f"kernelmetric-{method}-{type(estimator).__name__}-{uuid4().hex}"
    drive = dask.delayed(_drive, pure=False)
    task = drive(estimator, method, plain, delayed, key, dask_key_name=key)
    what = f"{type(estimator).__name__}.{method}"
    return _finished(estimator, _awaited(client, task, what, [given[name] for name in pieces]))


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
        here, other = _address(client), _other_client(client, given)
        if other is not None:
            raise RuntimeError(
                f"{what} was not finished: its points lie on the cluster {_address(other)}, but "
                f"the client in use is that of the scheduler {here}. The estimator is as it was. "
                "Expected one cluster: fit inside `with client.as_current():` with the client that "
                "holds the points."
            ) from error
        raise RuntimeError(
            f"{what} was not finished: the scheduler {here} went away or gave the task up. The "
            "estimator is as it was. Expected a cluster that lives: connect to a new one and fit "
            "again."
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


def _address(client: Any) -> str:
    return getattr(client.scheduler, "address", "of the client")  # of one that is closed


def _watched(client: Any, future: Any, what: str) -> Any:
    """The result, and a warning where nothing goes on for want of memory: Dask waits in silence."""
    looks = 0
    while True:
        try:
            wait(future, timeout=_LOOK)
        except TimeoutError:
            looks = looks + 1 if all_paused(workers_of(client)) else 0
            if looks == _PAUSED_LOOKS:
                warn(
                    f"All workers are paused, and {what} waits for them: each holds more than "
                    "Dask lets it begin new work with, 80 % of its memory unless set otherwise. "
                    "Expected workers with room: stop, and try larger ones, or fewer threads."
                )
        else:
            return future.result()


def all_paused(workers: list[dict[str, Any]]) -> bool:
    """Whether there are workers, and all of them are paused."""
    return bool(workers) and all(worker["status"] == "paused" for worker in workers)


def workers_of(client: Any) -> list[dict[str, Any]]:
    """What the scheduler knows of its workers; nothing where it does not answer."""
    with suppress(OSError):
        try:
            return list(client.scheduler_info(n_workers=-1)["workers"].values())
        except TypeError:  # before 2025, it told of all of them
            return list(client.scheduler_info()["workers"].values())
    return []


def _drive(
    estimator: Any, method: str, plain: dict[str, Any], pieces: dict[str, list[Any]], key: str
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
            if isinstance(plain.get("X"), bytes):
                plain = {**plain, "X": cluster.rows(*pickle.loads(plain["X"]))}
            with run_on_cluster(cluster), _chunks.share_of_worker():
                return _called(estimator, method, plain, pieces)
        finally:
            cluster.close()


def _called(
    estimator: Any, method: str, plain: dict[str, Any], pieces: dict[str, list[Any]]
) -> tuple[Any, ...]:
    """What an estimator holds after a method, what that returned unless itself, and warnings."""
    given = {**plain, **{name: _chunks.together(pieces.pop(name)) for name in list(pieces)}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = getattr(estimator, method)(**given)
    said = [(str(warning.message), warning.category) for warning in caught]
    return (vars(estimator), None, said) if result is estimator else (None, result, said)


def _finished(estimator: Any, outcome: tuple[Any, ...]) -> Any:
    """Let the user's estimator hold what was learned, and say what was to be said."""
    state, result, said = outcome
    for message, category in said:
        warnings.warn(message, category, stacklevel=5)
    if state is None:
        return result
    held, parameters = vars(estimator), estimator.get_params(deep=False)
    own = {name: value for name, value in held.items() if name in parameters}
    after = {**state, **own}  # the state may be what is cleared
    held.clear()
    held.update(after)
    return estimator


def _streams(client: Any, estimator: Any, points: _chunks.Pieces) -> bool:
    """Whether a fit reads the rows chunk by chunk; if not, one worker must have room for all."""
    numeric = points.dtype.kind in _chunks.NUMBERS
    when = estimator._streams() if numeric and hasattr(estimator, "_streams") else None
    n_rows, n_features = sum(points.lengths), *points.width
    n_bytes = points.dtype.itemsize * n_rows * n_features
    needed = _COPIES * n_bytes
    with suppress(Exception):  # parameters that fit will refuse in a sentence
        needed = 2.0 * n_bytes + estimator.estimate_memory(n_rows, n_features)
    least = least_memory(workers_of(client))
    if when == "always" and n_bytes > _FEW_BYTES:
        return True
    if needed <= _USABLE * least:
        return False
    if when is not None:
        return True
    raise MemoryError(
        f"{type(estimator).__name__} on {n_rows} points with {n_features} features would take "
        f"about {format_bytes(int(needed))} on a worker, but the smallest one has "
        f"{format_bytes(int(least))}: expected points that fit one worker. Try larger workers, "
        "float32, NCA(solver='minibatch'), or a space that goes through the rows: "
        "Nystroem(500) or RandomFeatures(1000)."
    )


def least_memory(workers: list[dict[str, Any]]) -> float:
    """The memory limit of the smallest worker; infinite where there is no limit, or no worker."""
    limits = [worker.get("memory_limit") for worker in workers]
    return min((float(limit) for limit in limits if limit), default=math.inf)
