"""Objects as a tree of JSON, and back.

null, true, numbers, text and lists stand for themselves. Everything else is an object with one
key, which says what it is::

    {"float": "nan"}                      what JSON has no number for
    {"tuple": [...]}, {"slice": [...]}    by their items
    {"dict": [[key, value], ...]}         keys of any kind, in their order
    {"array": 3}, {"frozen": 3}           arrays/3.npy, writable or read-only
    {"objects": [shape, [...]]}           an array of Python objects, by its items
    {"masked": {...}}                     a masked array without a masked value, by its array
    {"scalar": ["<f8", 0.5]}              a number of NumPy
    {"dtype": "<f8"}, {"type": "float64"} a dtype, a type of numbers
    {"sparse": ["csr_matrix", shape, data, indices, indptr]}
    {"rows": [...]}                                      objects of a kernel, in a list or an array
    {"mixed": [{"array": 0}, {"dict": ...}]}             numbers, and columns of objects by place
    {"random": [keys, position, has_gauss, cached]}      a RandomState
    {"object": ["kernelmetric.RBF", {"gamma": 0.5}]}     an allowed class, with its attributes
"""

import hashlib
import inspect
import math
from collections import UserList
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from kernelmetric.compute import is_sparse, to_numpy
from kernelmetric.inputs import MixedRows, Objects
from kernelmetric.kernels import Kernel
from kernelmetric.shipping._allowed import NEIGHBORS, REFUSED, allowed_classes, names_of_classes
from kernelmetric.shipping._checks import check_fitted
from kernelmetric.shipping._container import KINDS, MOST_DIGITS, SavedFileError, npy_bytes

_NUMBERS: tuple[type, ...] = (np.float32, np.float64, np.int32, np.int64)
TYPES: dict[str, type] = {t.__name__: t for t in (bool, int, float, str, *_NUMBERS)}
SPARSE = {c.__name__: c for c in (sparse.csr_matrix, sparse.csr_array)}
# What watches or routes a later fit: no part of what was learned.
_LEFT_OUT = ("_skl_callbacks", "_parent_callback_ctx", "_metadata_request")
# One array stands in for equal ones: so many times, and so often as this is little.
_MOST_TIMES, _LITTLE = 8, 2**24
_DEEPEST = 100  # nodes in nodes
_KEYS = (str, int, float, np.generic, type(None))  # of a dict; others can be made to collide
_CACHE = "memory"  # of a Pipeline: a directory of pickles, which its next fit would open
_OTHERS = "others"  # where kernels of a user's own are, in the names of classes
_HELD = ("_fit_X", "_y", "classes_")  # by neighbours: what a fit makes the rest of


class TreeWriter:
    """Turns objects into nodes, and gathers their arrays, in NumPy's format, equal ones once."""

    def __init__(self) -> None:
        self.arrays: list[bytes] = []
        self._numbers: dict[bytes, tuple[int, int]] = {}  # numbers, and how often they were given
        self._open: list[int] = []  # objects whose nodes are being made

    def node(self, value: Any, where: str) -> Any:
        """The node of a value; ``where`` names it in messages."""
        kind = type(value)
        if kind is int and abs(value) >= 10**MOST_DIGITS:
            raise ValueError(
                f"Got {where}={str(value)[:9]}..., but expected integers of at most {MOST_DIGITS} "
                "digits."
            )
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) in self._open:
            raise ValueError(f"Got {where}, which contains itself, but expected a tree of objects.")
        self._open.append(id(value))
        try:
            return self._compound(value, kind, where)
        finally:
            self._open.pop()

    def _compound(self, value: Any, kind: type, where: str) -> Any:
        if isinstance(value, UserList):  # columns of a ColumnTransformer, in older scikit-learn
            value, kind = value.data, list
        if kind in (list, tuple):
            items = [self.node(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            pairs = [(_checked_key(key), item) for key, item in value.items()]
            key_of = f"a key of {where}"
            nodes = [[self.node(k, key_of), self.node(v, f"{where}[{k!r}]")] for k, v in pairs]
            return {"dict": nodes}
        if kind is slice:
            ends = (value.start, value.stop, value.step)
            return {"slice": [self.node(end, where) for end in ends]}
        if kind is Objects:
            return {"rows": self.node(value.listed(), where)}
        if kind is MixedRows:
            return {"mixed": [self.node(part, where) for part in (value.numbers, value.columns)]}
        if kind in names_of_classes() or (isinstance(value, Kernel) and kind not in REFUSED):
            check_fitted(value)
            name = names_of_classes().get(kind, f"{_OTHERS}.{kind.__name__}")
            return {"object": [name, self._state(value, where)]}
        if isinstance(value, np.dtype) and value.kind in KINDS + "O":
            return {"dtype": value.str}
        if isinstance(value, type) and value in TYPES.values():
            return {"type": value.__name__}
        if isinstance(value, np.generic) and value.dtype.kind in KINDS and value.itemsize <= 8:
            return {"scalar": [value.dtype.str, self.node(value.item(), where)]}
        if kind is np.random.RandomState:
            return {"random": [self.node(part, where) for part in value.get_state()[1:]]}
        if is_sparse(value):
            rows, name = value.tocsr(), "csr_matrix" if sparse.isspmatrix(value) else "csr_array"
            parts = [self._array(part, where) for part in (rows.data, rows.indices, rows.indptr)]
            return {"sparse": [name, [int(n) for n in rows.shape], *parts]}
        if kind is np.ma.MaskedArray and not np.ma.getmaskarray(value).any():
            return {"masked": self._array(value.data, where)}
        return self._array(value, where)

    def _state(self, value: Any, where: str) -> dict[str, Any]:
        """Attributes, but for what is computed again when asked for."""
        kind = type(value)
        kept = {
            name: item
            for name, item in vars(value).items()
            if not name.startswith(_LEFT_OUT)
            and not (kind is Pipeline and name == _CACHE)
            and not (kind in NEIGHBORS and name not in (*kind._get_param_names(), *_HELD))
            and not isinstance(inspect.getattr_static(kind, name, None), cached_property)
        }
        return {name: self.node(item, f"{where}.{name}") for name, item in kept.items()}

    def _array(self, value: Any, where: str) -> Any:
        array = to_numpy(value) if is_array_api_obj(value) else value  # of any library
        if type(array) is not np.ndarray:
            refuse(value, where)
        if array.dtype.kind == "O":
            items = [self.node(item, f"{where}[{i}]") for i, item in enumerate(array.ravel())]
            return {"objects": [list(array.shape), items]}
        if array.dtype.kind not in KINDS:
            raise ValueError(f"Got {where} of {array.dtype}, but expected numbers or text.")
        data = npy_bytes(array)
        digest = hashlib.sha256(data).digest()
        number, times = self._numbers.get(digest, (len(self.arrays), 0))
        if times == _MOST_TIMES:
            number, times = len(self.arrays), 0
        if times == 0:
            self.arrays.append(data)
        self._numbers[digest] = number, times + 1
        return {"array" if array.flags.writeable else "frozen": number}


def refuse(value: Any, where: str) -> None:
    """Raise the error for what cannot be restored without running code."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind in REFUSED:
        reason = REFUSED[kind]
    elif inspect.isroutine(value):
        reason = "a function is code; try a name, or a kernel of this library instead of your own"
    else:
        reason = "try pickle, or skops, where you trust whoever can write the file"
    raise TypeError(
        f"Got {where} of type {name}, but expected what can be restored without running code, an "
        f"estimator of kernelmetric or one of scikit-learn's preprocessing: {reason}."
    )


class TreeReader:
    """Turns nodes, and the arrays they refer to, into objects; ``names`` are the classes met.

    ``kernels`` are classes of the user, which are allowed beside those of the library.
    """

    def __init__(self, arrays: list[np.ndarray], kernels: Iterable[type] = ()):
        self.arrays = arrays
        self._others = {f"{_OTHERS}.{kind.__name__}": kind for kind in kernels}
        self.names: set[str] = set()
        self._given: set[int] = set()  # arrays that belong to an object already
        self._left = (_MOST_TIMES - 1) * sum(a.nbytes for a in arrays) + _LITTLE  # for copies
        self._depth = 0
        self._readers: dict[str, Callable[[Any], Any]] = {
            "array": self._array,
            "dict": self._dict,
            "dtype": lambda body: _dtype(body, KINDS + "O"),
            "float": _float,
            "frozen": self._frozen,
            "mixed": lambda body: _mixed(*self._list(body, 2)),
            "rows": lambda body: _rows(self.value(body)),
            "masked": lambda body: np.ma.MaskedArray(self.value(body), mask=False),
            "object": self._object,
            "objects": lambda body: _objects(*self._list(body, 2)),
            "random": lambda body: _random(*self._list(body, 4)),
            "scalar": lambda body: _scalar(*self._list(body, 2)),
            "slice": lambda body: slice(*self._list(body, 3)),
            "sparse": lambda body: _sparse(*self._list(body, 5)),
            "tuple": lambda body: tuple(self._list(body)),
            "type": lambda body: TYPES[body],
        }

    def value(self, node: Any) -> Any:
        """The object of a node."""
        if not isinstance(node, list | dict):
            return node
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SavedFileError("Got a tree of objects that is too deep to be a metric.")
        try:
            return self._compound(node)
        finally:
            self._depth -= 1

    def _compound(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        kind = next(iter(node), None)
        if len(node) != 1 or kind not in self._readers:
            raise SavedFileError(f"Got a node with the keys {list(node)[:4]}: of no known kind.")
        try:
            return self._readers[kind](node[kind])
        except SavedFileError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise SavedFileError(f"Got a {kind} that is none ({error}).") from error

    def _list(self, body: Any, length: int | None = None) -> list[Any]:
        if not isinstance(body, list) or (length is not None and len(body) != length):
            raise SavedFileError(f"Got {str(body)[:40]}, but expected a list of {length or 'any'}.")
        return [self.value(item) for item in body]

    def _dict(self, body: Any) -> dict[Any, Any]:
        return {_checked_key(key): value for key, value in (self._list(item, 2) for item in body)}

    def _array(self, body: Any) -> np.ndarray:
        if type(body) is not int or not 0 <= body < len(self.arrays):
            raise SavedFileError(f"Got array {body!r}, but the file holds {len(self.arrays)}.")
        array = self.arrays[body]
        if body not in self._given:
            self._given.add(body)
            return array
        self._left -= array.nbytes
        if self._left < 0:
            raise SavedFileError(
                f"Got array {body} in so many places that a small file would fill the memory."
            )
        return array.copy(order="K")  # or what changes one object would change another

    def _frozen(self, body: Any) -> np.ndarray:
        array = self._array(body)
        array.flags.writeable = False
        return array

    def _object(self, body: Any) -> Any:
        if not isinstance(body, list) or len(body) != 2 or not isinstance(body[1], dict):
            raise SavedFileError("Got an object without a class and attributes.")
        name, nodes = body
        known = self._others | allowed_classes()
        kind = known.get(name) if isinstance(name, str) else None
        if kind is None and str(name).startswith(f"{_OTHERS}."):
            own = str(name)[len(_OTHERS) + 1 :][:80]
            raise SavedFileError(
                f"Got {own}, a kernel of another package: where you trust it, import it and try "
                f"load(path, kernels=[{own}])."
            )
        if kind is None:
            raise SavedFileError(
                f"Got an object of class {str(name)[:80]!r}, but expected an estimator of "
                "kernelmetric, or of scikit-learn's preprocessing."
            )
        self.names.add(name)
        for attribute in nodes:
            own = inspect.getattr_static(kind, attribute, None)
            replaces = callable(getattr(kind, attribute, None)) or isinstance(own, cached_property)
            if attribute.startswith("__") or replaces:
                raise SavedFileError(
                    f"Got {attribute!r} among the attributes of {name}, where it would replace a "
                    "method: kernelmetric.save wrote no such file."
                )
        if kind is Pipeline and nodes.get(_CACHE) is not None:
            raise SavedFileError(f"Got {name} with a cache, which is a directory of pickles.")
        state = {attribute: self.value(node) for attribute, node in nodes.items()}
        restored: Any = object.__new__(kind)
        vars(restored).update(_defaults(kind, name, state) | state)
        try:
            check_fitted(restored)
        except (ValueError, TypeError, AttributeError) as error:
            raise SavedFileError(
                f"{error} No fit leaves that: the file is damaged, or is not of kernelmetric.save."
            ) from error
        return _refitted(restored) if kind in NEIGHBORS else restored


def _refitted(neighbors: Any) -> Any:
    """Nearest neighbours with their tree, which is no attribute that a file holds."""
    state = vars(neighbors)
    fresh = type(neighbors)(**neighbors.get_params(deep=False))
    if not set(_HELD[:2]) <= set(state):
        return fresh
    y = state["_y"] if "classes_" not in state else state["classes_"][state["_y"]]
    fresh.fit(state["_fit_X"], y).predict(state["_fit_X"][:1])  # or it is refused
    return fresh


def _defaults(kind: Any, name: str, state: dict[str, Any]) -> dict[str, Any]:
    """Parameters that the class has got since the file was written."""
    if not issubclass(kind, BaseEstimator):
        return {}
    signature = inspect.signature(kind).parameters
    missing = set(kind._get_param_names()) - set(state)
    defaults = {parameter: signature[parameter].default for parameter in missing}
    for parameter, default in defaults.items():
        if default is inspect.Parameter.empty:
            raise SavedFileError(f"Got {name} without its parameter {parameter!r}.")
    return defaults


def _checked_key(key: Any) -> Any:
    if not isinstance(key, _KEYS):
        raise ValueError(f"Got the key {str(key)[:40]}, but expected text or a number.")
    return key


def _dtype(name: Any, kinds: str = KINDS) -> np.dtype:
    if type(name) is not str or np.dtype(name).kind not in kinds:
        raise SavedFileError(f"Got the dtype {str(name)[:40]!r}, but expected one of numbers.")
    return np.dtype(name)


def _float(body: Any) -> float:
    if body not in ("nan", "inf", "-inf"):
        raise SavedFileError(f"Got the float {str(body)[:40]!r}, but expected nan, inf or -inf.")
    return float(body)


def _objects(shape: Any, items: Any) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _rows(values: Any) -> Objects:
    if not isinstance(values, list) and not (isinstance(values, np.ndarray) and values.ndim > 1):
        raise SavedFileError("Got rows that are neither a list nor an array of them.")
    return Objects(values)


def _mixed(numbers: Any, columns: Any) -> MixedRows:
    good = isinstance(numbers, np.ndarray) and numbers.ndim == 2 and isinstance(columns, dict)
    if not good or any(type(c) is not Objects or len(c) != len(numbers) for c in columns.values()):
        raise SavedFileError("Got columns of objects that are not as long as their table.")
    return MixedRows(numbers, columns)


def _scalar(name: Any, value: Any) -> np.generic:
    return _dtype(name).type(value)


def _sparse(name: Any, shape: Any, *parts: Any) -> Any:
    matrix = SPARSE[name](parts, shape=tuple(shape))
    matrix.check_format(full_check=True)  # compiled code trusts the indices
    return matrix


def _random(keys: Any, position: Any, has_gauss: Any, cached: Any) -> np.random.RandomState:
    if not 0 <= position <= 624:
        raise SavedFileError(f"Got a random state at position {position}.")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", keys, position, has_gauss, cached))
    return state
