"""What a kernel is given: blocks of points, tables by their schema, numbers as parameters."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import clone

from kernelmetric.compute import is_sparse, like, namespace, to_numpy
from kernelmetric.compute.reductions import out_of_range
from kernelmetric.inputs import as_floats, is_objects, refuse_ambiguous
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.tables import TableSchema, is_frame, is_table


def as_block(A: Any, kernel: Any) -> Any:
    """Two-dimensional floating-point block; lists, frames and integers become float64."""
    if kernel.takes_objects or is_objects(A):
        return kernel.points(A)
    if is_frame(A) or is_table(A):
        schema = schema_of(kernel)
        A = A if schema is None else schema.transform(A)
    if is_sparse(A):
        if not kernel.accepts_sparse:
            raise TypeError(
                f"Got sparse points, but {type(kernel).__name__} expected a dense array: try "
                "X.toarray(), or a kernel that takes sparse data, such as RBF."
            )
        return as_floats(A.tocsr())
    if not is_array_api_obj(A) or isinstance(A, np.ndarray):
        A = _as_numbers(A)
    if A.ndim != 2:
        raise ValueError(
            f"Got an array of shape {tuple(A.shape)}, but expected a 2D array with points in rows: "
            "try X.reshape(1, -1) for a single point."
        )
    floats = as_floats(A)
    if floats is not A:
        refuse_ambiguous(A if isinstance(A, np.ndarray) else to_numpy(A), "X")
    return floats


def _as_numbers(A: Any) -> np.ndarray:
    """An array of NumPy's, refused where it hides something, or has no numbers to give."""
    refuse_ambiguous(A, "X")
    try:
        A = np.asarray(A)
        A = A.astype(np.float64) if A.dtype.kind in "OUS" else A
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Got points of type {type(A).__name__} that are no rows of numbers, but expected "
            "these: try Columns() and a data frame, or kernel='precomputed'."
        ) from None
    if A.dtype.kind not in "fiub" or (A.ndim == 2 and not A.shape[1]):
        raise ValueError(
            f"Got an array of shape {A.shape} and type {A.dtype}, but expected real numbers, at "
            "least one for each point."
        )
    return A


def same_dtype(A: Any, B: Any) -> tuple[Any, Any]:
    """Cast A and B to the wider of their two dtypes: torch and SciPy multiply only equal ones."""
    if A.dtype == B.dtype:
        return A, B
    if is_sparse(A) or is_sparse(B):
        dtype = np.result_type(A.dtype, B.dtype)
        return A.astype(dtype, copy=False), B.astype(dtype, copy=False)
    xp = namespace(A, B)
    dtype = xp.result_type(A, B)
    return xp.astype(A, dtype, copy=False), xp.astype(B, dtype, copy=False)


def overflow_error(kernel: Any, *blocks: Any) -> ValueError:
    """What to raise where a kernel has no finite values on blocks of points."""
    if any(map(is_objects, blocks)):
        return ValueError(f"Got non-finite values from {kernel!r}, but expected finite numbers.")
    sizes = [
        abs(A).max() if is_sparse(A) else to_numpy(namespace(A).max(namespace(A).abs(A)))
        for A in blocks
        if A is not None
    ]
    top = max(sizes)
    return out_of_range(f"non-finite values from {kernel!r} on points with entries up to {top:.3g}")


def check_number(name: str, value: Any, *, positive: bool = False) -> float:
    """``value`` as a float that is finite and non-negative (or positive), else a ValueError."""
    hint = "other values do not give a positive semi-definite kernel"
    Numbers(low=0, above=positive).require(name, value, hint=hint)
    return float(value)


def check_gamma(gamma: Any, words: dict[str, Callable[[], float]]) -> float:
    """A number as it is; one of the words as what the data say of it; anything else refused."""
    if isinstance(gamma, Real):
        return check_number("gamma", gamma)
    if isinstance(gamma, str) and gamma in words:
        return words[gamma]()
    *first, last = ["a number", *map(repr, words)]
    raise ValueError(f"Got gamma={gamma!r}, but expected {', '.join(first)} or {last}.")


def ones(A: Any) -> Any:
    """Ones, one per row of A, in its library and dtype."""
    return like(np.ones(A.shape[0]), A)


def schema_of(kernel: Any) -> TableSchema | None:
    """The schema that a kernel reads tables by, if any."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return next((part for part in parts if isinstance(part, TableSchema)), None)


def reads_columns(kernel: Any) -> bool:
    """Whether a part of a kernel takes the columns of a table."""
    return any(name.split("__")[-1] == "schema" for name in kernel.get_params(deep=True))


def object_columns(kernel: Any) -> list[Any]:
    """The columns of a table that parts of a kernel take as objects."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    found = [part for part in parts if getattr(part, "takes_object_column", False)]
    return [column for part in found for column in np.atleast_1d(part.columns).tolist()]


def with_schema(kernel: Any, schema: TableSchema) -> Any:
    """An unbound copy of a kernel for the features that a fitted schema makes of a table."""
    given = {"schema": schema, "groups": schema.groups_}
    kernel = clone(kernel, safe=False)
    names = [name for name in kernel.get_params(deep=True) if name.split("__")[-1] in given]
    return kernel.set_params(**{name: given[name.split("__")[-1]] for name in names})
