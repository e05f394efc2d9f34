"""The device on which points of NumPy are computed with.

Inside ``use_device``, points that were checked go to the device (:func:`to_device`); what the
outermost method returns, or keeps in its estimator, comes back as NumPy (``inputs/_methods.py``).
"""

import warnings
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute.watch import within

_DEVICE: ContextVar[Any] = ContextVar("kernelmetric_device", default=None)


def use_device(name: Any) -> AbstractContextManager[Any]:
    """Do the work inside the ``with`` block on a device, for points that are NumPy's or pandas'.

    Results are NumPy arrays as before, and so is all that a fitted estimator keeps. Points of
    float64 are computed with in float64. Torch tensors stay where they are, with or without it.

    Parameters
    ----------
    name : str or torch.device
        As torch calls it: ``"cuda"``, ``"cuda:1"``, ``"xpu"``, ``"cpu"``.

    Returns
    -------
    context manager
        What enters it gets the device, a ``torch.device``.

    Raises
    ------
    ImportError
        Where torch is not installed.
    ValueError
        Where torch knows no such device here.

    See Also
    --------
    memory_budget : How much of its memory blocks may take.

    Notes
    -----
    Fits that other processes do (``n_jobs`` above one) run on their CPUs.

    Examples
    --------
    >>> from kernelmetric import NCA, use_device
    >>> with use_device("cuda"):  # doctest: +SKIP
    ...     NCA(2).fit(X, y)
    """
    return within(_DEVICE, _found(name))


def device_in_use() -> Any:
    """The device on which work on NumPy's arrays is done now; None where it is the host."""
    return _DEVICE.get()


def found_device() -> str | None:
    """A device that could be used where none is, if torch is installed and finds one."""
    if _DEVICE.get() is None and find_spec("torch") is not None:
        with suppress(ImportError, OSError):  # a torch that is broken finds none
            return "cuda" if import_module("torch").cuda.is_available() else None
    return None


def to_device(X: Any) -> Any:
    """A dense NumPy array as a tensor on the device in use; anything else as it is."""
    device = _DEVICE.get()
    if device is None or not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub":
        return X
    return import_module("torch").tensor(np.ascontiguousarray(X), device=device)


def matrix_to_device(A: Any) -> Any:
    """A matrix, sparse or dense, on the device in use; as it is where none is."""
    if _DEVICE.get() is None or not sparse.issparse(A):
        return to_device(A)
    torch = import_module("torch")
    parts = (to_device(part.astype(np.int32, copy=False)) for part in (A.indptr, A.indices))
    with warnings.catch_warnings():  # torch calls its sparse matrices a beta
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(*parts, to_device(A.data), size=A.shape)


def _found(name: Any) -> Any:
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"Got device {name!r}, but torch is not installed: try pip install "
            "'kernelmetric[torch]', or '.[torch]' in a checkout, or leave the device out."
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
