"""Rows that are no rows of numbers, with the manners of an array: texts, series, sets, graphs.

A kernel of objects reads what a user has into :class:`Objects`. From there on they are points like
any others: they have a shape, rows can be taken, and a copy can be kept. What a kernel makes of all
objects of a table, such as counts of n-grams, is made once and shared by all of its parts.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Hashable, Mapping, Set
from typing import Any

import joblib
import numpy as np
from scipy import sparse


class Objects:
    """One object in every row, as an array of shape (n, 1).

    Parameters
    ----------
    values : list or ndarray
        The objects of a table; of an array, its rows are.
    rows : ndarray of int, default=None
        Which of them are the rows; None means all, in order.
    made : dict, default=None
        What was made of all of ``values`` before, by key.
    """

    ndim = 2
    dtype = np.dtype(np.float64)  # of what kernels make of them
    of_objects = True

    def __init__(
        self,
        values: list[Any] | np.ndarray,
        rows: np.ndarray | None = None,
        made: dict[Hashable, Any] | None = None,
    ):
        self.values, self.rows = values, rows
        self._made: dict[Hashable, Any] = {} if made is None else made
        self.readers: set[Hashable] = set()  # kernels that have read all values

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and one."""
        return len(self.values if self.rows is None else self.rows), 1

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Some rows, or the object of one: ``X[rows]``, ``X[rows, :]``, ``X[3]``."""
        if isinstance(key, tuple):
            key, *others = key
            if any(not (part is Ellipsis or part == slice(None)) for part in others):
                raise IndexError(f"Got columns {others} of objects, which have no columns.")
        own = np.arange(len(self.values)) if self.rows is None else self.rows
        chosen = own[key]
        if np.ndim(chosen) == 0:
            return self.values[int(chosen)]
        some = Objects(self.values, chosen, self._made)
        some.readers = self.readers
        return some

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            f"Got {len(self)} objects, such as {shown(self[0]) if len(self) else ''}, but expected "
            "rows of numbers: try coordinates, such as KPCA(kernel=...).fit_transform(X)."
        )

    def __getstate__(self) -> dict[str, Any]:
        return vars(self.copy()) | {"_made": {}, "readers": set()}

    def listed(self) -> Any:
        """The objects of the rows, in a list or an array as ``values`` are."""
        if self.rows is None or isinstance(self.values, np.ndarray):
            return self.values if self.rows is None else self.values[self.rows]
        return [self.values[i] for i in self.rows]

    def made(self, key: Hashable, make: Callable[[Any], Any]) -> Any:
        """What is made of all objects of the table, once, and of it the part of these rows."""
        if key not in self._made:
            self._made[key] = make(self.values)
        return _part(self._made[key], self.rows)

    def copy(self) -> Objects:
        """The rows alone, apart from the table and from the caller's objects."""
        made = {key: _part(value, self.rows) for key, value in self._made.items()}
        own = Objects(copy.deepcopy(self.listed()), made=made)
        own.readers = set(self.readers)
        return own

    def keys(self) -> np.ndarray:
        """A number of 64 bits for each row, the same for equal objects."""
        return np.array([_key(item) for item in self.listed()], dtype=np.uint64)


class MixedRows:
    """Rows of a table: numbers, and beside them columns of objects.

    Parameters
    ----------
    numbers : ndarray of shape (n, d)
        The features of all other columns.
    columns : dict of int to Objects
        Columns of objects, by their place in the table.
    """

    ndim = 2
    dtype = np.dtype(np.float64)
    of_objects = True

    def __init__(self, numbers: np.ndarray, columns: dict[int, Objects]):
        self.numbers, self.columns = numbers, columns

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of all columns."""
        n, d = np.shape(self.numbers)
        return n, d + len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> MixedRows:
        rows = key[0] if isinstance(key, tuple) else key
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            rows = slice(rows, rows + 1)
        columns = {j: column[rows] for j, column in self.columns.items()}
        return MixedRows(self.numbers[rows], columns)

    __array__ = Objects.__array__

    def copy(self) -> MixedRows:
        """A copy to keep."""
        return MixedRows(self.numbers.copy(), {j: C.copy() for j, C in self.columns.items()})

    def keys(self) -> np.ndarray:
        """A number of 64 bits for each row, the same for equal rows."""
        keys: Any = np.array([_key(row) for row in self.numbers + 0.0], dtype=np.uint64)
        for j, column in self.columns.items():
            keys = keys * np.uint64(0x9E3779B97F4A7C15) + column.keys() * np.uint64(2 * j + 1)
        return keys


def is_objects(X: Any) -> bool:
    """Whether X are rows that a kernel of objects has read."""
    return getattr(type(X), "of_objects", False)


def listed_objects(X: Any, expects: str = "objects") -> list[Any]:
    """The objects of a list, an array, a column, or a frame of one column."""
    odd = isinstance(X, str | bytes | Mapping | Set) or sparse.issparse(X)
    if odd or not getattr(X, "shape", hasattr(X, "__len__")):
        raise TypeError(f"Got {shown(X)}, but expected a list of {expects}.")
    shape: Any = getattr(X, "shape", (len(X),))
    if len(shape) == 2 and hasattr(X, "columns"):
        if shape[1] != 1:
            raise ValueError(
                f"Got a frame of {shape[1]} columns, but expected one of {expects}: try X['name'], "
                "Columns(['name'], kernel) for the whole table, or X.to_numpy() where every row is "
                "an object."
            )
        X = X.iloc[:, 0] if hasattr(X, "iloc") else X[X.columns[0]]
    elif len(shape) == 2 and shape[1] == 1 and getattr(X.dtype, "kind", "f") in "OUS":
        X = X[:, 0]
    texts = isinstance(X, np.ndarray) and X.dtype.kind in "US"
    return X.tolist() if texts else X.to_pylist() if hasattr(X, "to_pylist") else list(X)


def shown(item: Any, most: int = 60) -> str:
    """An object in a message."""
    text = " ".join(repr(item).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _part(made: Any, rows: np.ndarray | None) -> Any:
    return made if rows is None else made[rows]


def _key(item: Any) -> int:
    if isinstance(item, str):
        data = b"text" + item.encode("utf-8", "surrogatepass")
    elif isinstance(item, np.ndarray) and item.dtype.kind in "biuf":
        data = repr((item.shape, item.dtype.str)).encode() + np.ascontiguousarray(item).tobytes()
    else:
        data = joblib.hash(item).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
