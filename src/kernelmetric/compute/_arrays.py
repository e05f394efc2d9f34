"""Which array library, how many digits, and what works for all of them."""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array, to_device
from array_api_compat import device as device_of
from scipy import sparse

from kernelmetric.compute._objects import is_objects
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.backends._array_api import for_other_library

_COLLECTIONS = {"dask", "dask_expr"}  # libraries of data that lie on many machines
_MANY_OPERATIONS = 1e6  # which take longer than a copy in fewer digits
_LARGEST = 1e15  # between it and its inverse, squares are far from the ends of float32


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    return sparse.issparse(X)


def is_collection(*values: Any) -> bool:
    """Whether the type of one of some values is a Dask collection."""
    return any(type(value).__module__.partition(".")[0] in _COLLECTIONS for value in values)


def in_memory(X: Any) -> bool:
    """Whether all rows of X are here; where not, sums over them and a few at a time can be had."""
    return not getattr(type(X), "streamed", False)


def namespace(*arrays: Any) -> Any:
    """Array namespace shared by all arguments (``None``, sparse ones and objects aside)."""
    dense = [a for a in arrays if a is not None and not is_sparse(a) and not is_objects(a)]
    return array_namespace(*dense) if dense else array_namespace(np.empty(0))


def to_numpy(X: Any) -> np.ndarray:
    """NumPy copy or view of an array of any supported library, from any device."""
    return X if is_numpy_array(X) else backend_of(X).to_numpy(X)


def like(values: Any, X: Any) -> Any:
    """Values as an array of the library, dtype and device of X."""
    if is_sparse(X) or is_objects(X):
        return np.asarray(values, dtype=X.dtype)
    if is_numpy_array(values) and not is_numpy_array(X):
        values = for_other_library(values)
    return array_namespace(X).asarray(values, dtype=X.dtype, device=device_of(X))


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array of any supported library, by a NumPy index array."""
    return backend_of(X).take_rows(X, rows)


def refuse_masked(*values: Any) -> None:
    """Refuse masked arrays that hide something: NumPy would go on with what lies below the mask."""
    for value in values:
        if isinstance(value, np.ma.MaskedArray) and (hidden := int(np.ma.count_masked(value))):
            raise ValueError(
                f"Got a masked array with {hidden} masked entries of {value.size}, but expected "
                "values everywhere: leave these rows out, or fill the gaps, such as by "
                "SimpleImputer of scikit-learn after array.filled(numpy.nan)."
            )


def read_only(array: Any) -> Any:
    """An array that its maker keeps and nobody writes into: no cluster need compare its copies."""
    if isinstance(array, np.ndarray) and array.base is None:
        array.flags.writeable = False
    return array


def is_read_only(array: np.ndarray) -> bool:
    """Whether nobody writes into an array, as :func:`read_only` has it."""
    return array.base is None and not array.flags.writeable


def rounding_of(X: Any) -> float:
    """By how much the numbers of X, of any supported library, may be off, relative to them."""
    single = str(X.dtype).endswith("float32")
    return float(np.finfo(np.float32 if single else np.float64).eps)


def precise(X: Any, *, if_cheap: bool = False) -> Any:
    """X in all digits, for small eigenvalues and long sums; ``if_cheap``: if they cost no time."""
    if if_cheap and not backend_of(X).wide_is_fast(X):
        return X
    return _in_dtype(X, "float64")


def rough(
    X: Any,
    tol: float | None = None,
    *,
    operations: float = math.inf,
    size: float = 1.0,
    dense: bool = False,
) -> Any:
    """X in half of the digits where these suffice and are faster; without ``tol``, for the memory.

    They suffice where numbers need be right to ``tol``, relative, and those of ``size`` have
    squares in range. They are faster in many ``operations``; of ``dense`` algebra, some devices do
    as many in all digits.
    """
    if tol is not None:
        suffice = tol >= float(np.finfo(np.float32).eps) and 1 / _LARGEST < size < _LARGEST
        faster = operations >= _MANY_OPERATIONS and not (dense and backend_of(X).wide_is_fast(X))
        if not (suffice and faster):
            return X
    return _in_dtype(X, "float32")


def _in_dtype(X: Any, name: str) -> Any:
    """X in a dtype; itself where it is so already, and where it is made of objects."""
    if is_objects(X):
        return X
    if is_sparse(X):
        return X.astype(name, copy=False)
    xp = array_namespace(X)
    return xp.astype(X, getattr(xp, name), copy=False)


def in_library_of(array: Any, X: Any) -> Any:
    """A fitted array in the library and on the device of X, its dtype as it is."""
    if is_sparse(array) or is_sparse(X) or not is_array_api_obj(X):
        return array
    xp = namespace(X)
    if is_array_api_obj(array) and namespace(array) is xp:
        return to_device(array, device_of(X))
    return xp.asarray(for_other_library(to_numpy(array)), device=device_of(X))


def all_finite(K: Any) -> bool:
    """Whether K holds neither NaN nor infinity; one sum decides nearly always."""
    if not in_memory(K):  # its chunks are looked at where they are made
        return True
    xp = namespace(K)
    with np.errstate(all="ignore"):
        return bool(xp.isfinite(xp.sum(K))) or bool(xp.all(xp.isfinite(K)))
