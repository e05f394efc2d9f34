"""Functions pickled for other workers: large arrays, and rows that lie elsewhere, travel apart."""

from __future__ import annotations

import io
import pickle
from typing import Any

import cloudpickle
import numpy as np

_LARGE = 2**16  # bytes of an array that travels by itself
_MOST_OF_BASE = 32  # times a view, that its base may be to travel instead of it
_ROWS = "rows"


class Packer(cloudpickle.Pickler):
    """Pickles without large arrays and distributed rows, which travel by themselves."""

    def __init__(self) -> None:
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self.arrays: dict[int, np.ndarray] = {}  # by their identity
        self.rows: Any = None

    def packed(self, thing: Any) -> bytes:
        """A pickle; what it leaves out is in ``arrays`` and ``rows``."""
        self._file.seek(0)
        self._file.truncate()
        self.clear_memo()
        self.dump(thing)
        return self._file.getvalue()

    def persistent_id(self, thing: Any) -> Any:
        """Where unpickling finds a large array, with its layout; None for anything else."""
        if getattr(type(thing), "stays", False):
            self.rows = thing
            return _ROWS
        if type(thing) is not np.ndarray or thing.nbytes < _LARGE or thing.dtype.hasobject:
            return None
        root = thing
        while type(root.base) is np.ndarray:
            root = root.base
        if not root.flags.forc or root.nbytes > _MOST_OF_BASE * thing.nbytes:
            root = thing
        if not root.flags.forc:
            return None
        self.arrays[id(root)] = root
        start = thing.ctypes.data - root.ctypes.data
        return id(root), thing.dtype, thing.shape, thing.strides, start


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, arrays: dict[int, Carried], rows: Any):
        super().__init__(file)
        self._arrays, self._rows = arrays, rows

    def persistent_load(self, place: Any) -> Any:
        if place == _ROWS:
            return self._rows
        root, dtype, shape, strides, start = place
        array = self._arrays[root].array
        memory = array if array.flags.c_contiguous else array.T
        return np.ndarray(shape, dtype, buffer=memory, offset=start, strides=strides)


def aligned(array: np.ndarray) -> np.ndarray:
    """The array, or an aligned copy: NumPy would copy an unaligned one for every product."""
    return array if array.flags.aligned else array.copy("A")


class Carried:
    """An array that many tasks share: aligned once, where it arrives unaligned."""

    def __init__(self, array: np.ndarray):
        self.array = aligned(array)

    def __reduce__(self) -> Any:
        return Carried, (self.array,)

    def __sizeof__(self) -> int:
        return self.array.nbytes


def loads(data: bytes, arrays: dict[int, Carried], rows: Any = None) -> Any:
    """What :class:`Packer` pickled, with its arrays, and ``rows`` for the distributed rows."""
    return _Unpickler(io.BytesIO(data), arrays, rows).load()
