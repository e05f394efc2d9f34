"""NumPy arrays on a device: there for the work, back for the result.

Whoever has torch tensors needs none of this: they stay where they are. A user of NumPy or pandas
says where the work is to be done::

    with use_device("cuda"):
        metric.fit(X, y)

Inside, points that were checked go to the device (:func:`there`), and what the outermost method
returns, or keeps in its estimator, comes back as NumPy (:class:`DeviceMixin`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from inspect import isfunction
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from scipy import sparse

from kernelmetric.compute._budget import working_on
from kernelmetric.compute._elsewhere import CollectionsMixin
from kernelmetric.compute.backends import backend_of

_DEVICE: ContextVar[Any] = ContextVar("kernelmetric_device", default=None)
_INSIDE: ContextVar[bool] = ContextVar("kernelmetric_inside", default=False)
_METHODS = (
    "fit", "partial_fit", "transform", "fit_transform", "inverse_transform", "predict",
    "fit_predict", "pair_distance", "pair_score", "pairwise_distances", "pairwise_kernels",
    "get_mahalanobis_matrix",
)  # fmt: skip


@contextmanager
def use_device(name: Any) -> Iterator[Any]:
    """Do the work inside the ``with`` block on a device, for points that are NumPy's or pandas'.

    Results are NumPy arrays as before, and so is all that a fitted estimator keeps. Points of
    float64 are computed with in float64. Torch tensors stay where they are, with or without it.

    Parameters
    ----------
    name : str or torch.device
        As torch calls it: ``"cuda"``, ``"cuda:1"``, ``"xpu"``, ``"cpu"``.

    Yields
    ------
    torch.device
        The device.

    Raises
    ------
    ImportError
        Where torch is not installed.
    ValueError
        Where torch knows no such device here.

    Notes
    -----
    Fits that other processes do (``n_jobs`` above one) run on their CPUs.

    Examples
    --------
    >>> from kernelmetric import NCA, use_device
    >>> with use_device("cuda"):  # doctest: +SKIP
    ...     NCA(2).fit(X, y)
    """
    token = _DEVICE.set(_found(name))
    try:
        yield _DEVICE.get()
    finally:
        _DEVICE.reset(token)


@contextmanager
def device_like(X: Any) -> Iterator[None]:
    """Do the work inside the ``with`` block where a tensor lies; as before for NumPy's arrays."""
    token = _DEVICE.set(X.device if is_torch_array(X) and X.is_cuda else _DEVICE.get())
    try:
        yield
    finally:
        _DEVICE.reset(token)


def device_in_use() -> bool:
    """Whether work on NumPy's arrays is done on a device now."""
    return _DEVICE.get() is not None


def there(X: Any) -> Any:
    """A dense NumPy array as a tensor on the device in use; anything else as it is."""
    device = _DEVICE.get()
    if device is None or not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub":
        return X
    torch = import_module("torch")
    return torch.tensor(np.ascontiguousarray(X), device=device)


def matrix_there(A: Any) -> Any:
    """A matrix, sparse or dense, on the device in use; as it is where none is."""
    if _DEVICE.get() is None or not sparse.issparse(A):
        return there(A)
    torch = import_module("torch")
    parts = (there(part.astype(np.int32, copy=False)) for part in (A.indptr, A.indices))
    with warnings.catch_warnings():  # torch calls its sparse matrices a beta
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(*parts, there(A.data), size=A.shape)


def home(X: Any) -> Any:
    """A tensor that went to the device in use as a NumPy array; the user's own tensors stay."""
    return _on_host(X, set()) if _INSIDE.get() else X


class DeviceMixin(CollectionsMixin):
    """Methods that take NumPy arrays to the device in use, and bring back what they return."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _METHODS:
            method = cls.__dict__.get(name)
            if isfunction(method):
                setattr(cls, name, there_and_back(method))


def there_and_back(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that returns NumPy arrays from the device in use, if it was given such."""

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if _INSIDE.get():
            return method(self, *args, **options)
        tensors = [part for part in (*args, *options.values()) if is_torch_array(part)]
        token = _INSIDE.set(_DEVICE.get() is not None and not tensors)
        try:
            with working_on(tensors[0].device if tensors else _DEVICE.get()):
                result = method(self, *args, **options)
        except RuntimeError as error:
            if _ran_out(error):
                raise MemoryError(_too_much(error)) from None
            raise
        finally:
            moved = _INSIDE.get()
            _INSIDE.reset(token)
            if moved:
                _come_back(self, set())
        return _on_host(result, set()) if moved and result is not self else result

    return call


def _ran_out(error: RuntimeError) -> bool:
    """Whether the memory of a device did not suffice: torch says so, or one of its libraries."""
    words = str(error)
    return type(error).__name__ == "OutOfMemoryError" or any(
        sign in words for sign in ("CUDA error: out of memory", "_ALLOC_FAILED")
    )


def _too_much(error: Exception) -> str:
    reason = str(error).partition("\n")[0].partition(". ")[0]
    return (
        f"The device has not so much memory ({reason}): expected work that fits. Try points of "
        "float32, a space of lower rank such as Nystroem(500), or the CPU."
    )


def _on_host(value: Any, seen: set[int]) -> Any:
    """A value with NumPy arrays instead of tensors, also those inside of it."""
    if is_torch_array(value):
        return backend_of(value).to_numpy(value)
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


def _found(name: Any) -> Any:
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"Got device {name!r}, but torch is not installed: try pip install "
            "'kernelmetric[torch]', or leave the device out."
        ) from error
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"Got device {name!r}, but torch cannot compute there in float64 ({reason}): expected "
            "a device of this machine, such as 'cuda' where there is one, or 'cpu'."
        ) from error
    return device
