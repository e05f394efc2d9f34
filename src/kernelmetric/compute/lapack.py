"""LAPACK of large matrices, in their own memory and without Python's lock.

SciPy's functions hold that lock, so Ctrl-C would wait for their end. These call the same routines
by their addresses, in a thread (:func:`unlocked`). Small matrices are left to SciPy.
"""

import ctypes
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute._threads import LONG, unlocked

_address_of = ctypes.pythonapi.PyCapsule_GetPointer
_address_of.restype, _address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def eigh(
    A: np.ndarray,
    B: np.ndarray | None = None,
    *,
    subset: tuple[int, int] | None = None,
    overwrite: bool = False,
    driver: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of ``A v = λ B v``; B is the identity by default.

    ``subset`` has the numbers of the first and the last that are wanted. A may be overwritten if
    told so. ``driver`` is for small matrices; large ones are divided and conquered.
    """
    n = len(A)
    operations = 4.0 * n**3
    if operations < LONG:
        return linalg.eigh(A, B, subset_by_index=subset, overwrite_a=overwrite, driver=driver)
    kind = A.dtype if A.dtype == np.float32 and B is None else np.float64
    V = np.asfortranarray(A, kind) if overwrite else np.array(A, kind, order="F")
    np.asarray_chkfinite(V)
    values, work = np.empty(n, kind), np.empty(1 + 6 * n + 2 * n * n, kind)
    counts = np.empty(3 + 5 * n, np.int64)
    rest = values, work, len(work), counts, len(counts)
    if B is None:
        _call("syevd", operations, "V", "L", n, V, n, *rest)
    else:
        B = np.array(np.asarray_chkfinite(B), kind, order="F")
        _call("sygvd", operations, 1, "V", "L", n, V, n, B, n, *rest)
    some = slice(None) if subset is None else slice(subset[0], subset[1] + 1)
    return values[some], V[:, some]


def factor(A: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of A, in Fortran order, in its place; what lies above stays."""
    _call("potrf", len(A) ** 3 / 6, "L", len(A), A, len(A))
    return A


def inverse_factor(L: np.ndarray) -> np.ndarray:
    """The inverse of such a factor, in its place."""
    _call("trtri", len(L) ** 3 / 6, "L", "N", len(L), L, len(L))
    return L


def _call(name: str, operations: float, *arguments: Any) -> None:
    """Call a routine of LAPACK with letters, whole numbers, and arrays in Fortran order."""
    arrays = [given for given in arguments if isinstance(given, np.ndarray)]
    (wrapped,) = linalg.get_lapack_funcs((name,), arrays[:1])
    letters, numbers = np.dtype("S1"), wrapped.int_dtype
    dtypes = {str: letters, int: numbers}
    given = [np.asarray(each, dtypes.get(type(each))) for each in (*arguments, 0)]
    assert all(each.flags.f_contiguous for each in given)
    routine = ctypes.CFUNCTYPE(None)(_address_of(wrapped._cpointer, None))
    unlocked(lambda: routine(*(ctypes.c_void_p(each.ctypes.data) for each in given)), operations)
    if given[-1]:
        raise linalg.LinAlgError(
            f"Got a matrix of which LAPACK's {name} finds no solution, but expected one."
        )
