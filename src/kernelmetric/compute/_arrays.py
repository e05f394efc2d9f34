"""Which array library, which dtype, and what works for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array, to_device
from array_api_compat import device as device_of
from scipy import sparse

from kernelmetric.compute.backends import backend_of

_COLLECTIONS = {"dask", "dask_expr"}  # libraries of data that lie on many machines


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    return sparse.issparse(X)


def is_collection(*values: Any) -> bool:
    """Whether the type of one of some values is a Dask collection."""
    return any(type(value).__module__.partition(".")[0] in _COLLECTIONS for value in values)


def is_streamed(X: Any) -> bool:
    """Whether X are rows on many machines, of which a few are here at a time."""
    return getattr(type(X), "streamed", False)


def namespace(*arrays: Any) -> Any:
    """Array namespace shared by all arguments (``None`` and sparse arguments aside)."""
    dense = [a for a in arrays if a is not None and not is_sparse(a)]
    return array_namespace(*dense) if dense else array_namespace(np.empty(0))


def to_numpy(X: Any) -> np.ndarray:
    """NumPy copy or view of an array of any supported library, from any device."""
    return X if is_numpy_array(X) else backend_of(X).to_numpy(X)


def like(values: Any, X: Any) -> Any:
    """Values as an array of the library, dtype and device of X."""
    if is_sparse(X):
        return np.asarray(values, dtype=X.dtype)
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


def is_single(X: Any) -> bool:
    """Whether X, sparse or of any supported library, holds float32."""
    return str(X.dtype).endswith("float32")


def in_float64(X: Any) -> Any:
    """X in float64, where small eigenvalues do not drown; itself where it is so already."""
    if is_sparse(X):
        return X.astype(np.float64, copy=False)
    xp = array_namespace(X)
    return xp.astype(X, xp.float64, copy=False)


def in_library_of(array: Any, X: Any) -> Any:
    """A fitted array in the library and on the device of X, its dtype as it is."""
    if is_sparse(array) or is_sparse(X) or not is_array_api_obj(X):
        return array
    xp = namespace(X)
    if is_array_api_obj(array) and namespace(array) is xp:
        return to_device(array, device_of(X))
    return xp.asarray(to_numpy(array), device=device_of(X))


def all_finite(K: Any) -> bool:
    """Whether K holds neither NaN nor infinity; one sum decides nearly always."""
    xp = namespace(K)
    with np.errstate(all="ignore"):
        return bool(xp.isfinite(xp.sum(K))) or bool(xp.all(xp.isfinite(K)))
