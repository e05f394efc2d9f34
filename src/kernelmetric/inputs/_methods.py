"""What happens around a public method: other libraries' data come in, NumPy arrays go out.

The outermost method hands Dask collections over to that backend, and brings tensors that went to
the device in use back as NumPy arrays, also those that an estimator keeps.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from inspect import isfunction
from typing import Any

from array_api_compat import is_torch_array

from kernelmetric.compute._arrays import is_collection, refuse_masked, to_numpy
from kernelmetric.compute._budget import working_on
from kernelmetric.compute._device import device_in_use, use_device
from kernelmetric.compute.watch import told_once

_INSIDE: ContextVar[bool] = ContextVar("kernelmetric_inside", default=False)
_ON_CLUSTERS = (
    "fit", "transform", "fit_transform", "predict", "fit_predict", "predict_proba",
    "predict_log_proba", "predict_interval", "score_samples", "kneighbors",
    "pair_distance", "pair_score", "pairwise_distances", "pairwise_kernels", "score",
)  # fmt: skip
_ON_DEVICES = (
    "fit", "partial_fit", "transform", "fit_transform", "predict",
    "fit_predict", "pair_distance", "pair_score", "pairwise_distances", "pairwise_kernels",
    "get_mahalanobis_matrix",
)  # fmt: skip


def _wrap(cls: type, names: tuple[str, ...], wrapper: Callable[..., Any]) -> None:
    """Wrap the methods of these names that a class defines itself."""
    for name in names:
        method = cls.__dict__.get(name)
        if isfunction(method):
            setattr(cls, name, wrapper(method))


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Put an estimator back as it was when the work inside raises, or is interrupted.

    What a time limit ends inside is told once, after all of it.
    """
    before = dict(vars(estimator))
    try:
        with told_once():
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def on_clusters(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes Dask collections too, and refuses masked arrays."""

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if is_collection(*args, *options.values()):
            from kernelmetric.compute.backends import dask  # imported with the first collection

            return dask.call(self, method.__name__, args, options)
        refuse_masked(*args, *options.values())
        return method(self, *args, **options)

    return call


def device_like(X: Any) -> AbstractContextManager[Any]:
    """Do the work inside the ``with`` block where a tensor lies; as before for NumPy's arrays."""
    return use_device(X.device) if is_torch_array(X) and X.is_cuda else nullcontext()


def to_host(X: Any) -> Any:
    """A tensor that went to the device in use as a NumPy array; the user's own tensors stay."""
    return _on_host(X, set()) if _INSIDE.get() else X


def on_devices(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that returns NumPy arrays from the device in use, if it was given such."""

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if _INSIDE.get():
            return method(self, *args, **options)
        tensors = [part for part in (*args, *options.values()) if is_torch_array(part)]
        token = _INSIDE.set(device_in_use() is not None and not tensors)
        try:
            with working_on(tensors[0].device if tensors else device_in_use()):
                result = method(self, *args, **options)
        except RuntimeError as error:
            refusal = _out_of_memory(error)
            if refusal is None:
                raise
            raise refusal from None
        finally:
            moved = _INSIDE.get()
            _INSIDE.reset(token)
            if moved:
                _come_back(self, set())
        return _on_host(result, set()) if moved and result is not self else result

    return call


def _out_of_memory(error: RuntimeError) -> MemoryError | None:
    """What torch, or one of its libraries, says of a device whose memory did not suffice."""
    words = str(error)
    signs = "CUDA error: out of memory", "_ALLOC_FAILED"
    if type(error).__name__ != "OutOfMemoryError" and not any(sign in words for sign in signs):
        return None
    reason = words.partition("\n")[0].partition(". ")[0]
    return MemoryError(
        f"The device has not so much memory ({reason}): expected work that fits. Try points of "
        "float32, a space of lower rank such as Nystroem(500), or the CPU."
    )


def _on_host(value: Any, seen: set[int]) -> Any:
    """A value with NumPy arrays instead of tensors, also those inside of it."""
    if is_torch_array(value):
        return to_numpy(value)
    if isinstance(value, list | tuple):
        parts = [_on_host(part, seen) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        back = {key: _on_host(part, seen) for key, part in value.items()}
        return back if any(back[key] is not part for key, part in value.items()) else value
    if type(value).__module__.partition(".")[0] == __name__.partition(".")[0]:
        _come_back(value, seen)
    return value


def _come_back(thing: Any, seen: set[int]) -> None:
    """Let an object of ours hold NumPy arrays instead of tensors."""
    if id(thing) in seen or not hasattr(thing, "__dict__"):
        return
    seen.add(id(thing))
    for name, value in list(vars(thing).items()):
        back = _on_host(value, seen)
        if back is not value:
            vars(thing)[name] = back


class CollectionsMixin:
    """Methods that take Dask collections too, of a class whose parts do the rest."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _wrap(cls, _ON_CLUSTERS, on_clusters)


class DeviceMixin(CollectionsMixin):
    """Methods that take NumPy arrays to the device in use, and bring back what they return."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _wrap(cls, _ON_DEVICES, on_devices)
