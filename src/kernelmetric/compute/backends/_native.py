"""Two passes over a tile of the NCA softmax: compiled where there is a compiler, else in NumPy.

NumPy has vector code for the exponential of float32 on some processors and not on others, and
takes clipping, exponentials, sums and weights in passes of their own. ``_native.c`` does them in
one each. It is compiled when the package is built (``hatch_build.py``); without it, or where the
environment has ``KERNELMETRIC_PURE=1``, all runs in NumPy, with the same results but for rounding.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

_LIBRARY = "libkernelmetric.so"
_VERSION = 1  # of the functions in _native.c; a file compiled from others is not used


@lru_cache(maxsize=1)
def native() -> Any | None:
    """The compiled library.

    Returns
    -------
    ctypes.CDLL or None
        None where there is none for this version and machine.

    Examples
    --------
    >>> from kernelmetric.compute import native
    >>> native() is None or native().kernelmetric_version() > 0
    True
    """
    if os.environ.get("KERNELMETRIC_PURE", "0") not in ("", "0"):
        return None
    try:
        library = ctypes.CDLL(str(Path(__file__).with_name(_LIBRARY)))
        if library.kernelmetric_version() != _VERSION:
            return None
    except (OSError, AttributeError):
        return None
    size, number, flag, floats = ctypes.c_int64, ctypes.c_float, ctypes.c_int, ctypes.c_void_p
    library.kernelmetric_exponentials.argtypes = [
        floats, size, size, number, number, flag, floats, floats,
    ]  # fmt: skip
    library.kernelmetric_weigh.argtypes = [floats, size, size, floats, floats]
    library.kernelmetric_exponentials.restype = library.kernelmetric_weigh.restype = None
    return library


def exponentials(
    K: np.ndarray, low: float, high: float, *, without_diagonal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Let K become ``exp(K)``, K clipped first, and sum its rows and columns.

    Parameters
    ----------
    K : ndarray of shape (m, n)
        Exponents in rows one after the other; overwritten.
    low, high : float
        Where they are clipped: within the range of the type.
    without_diagonal : bool
        Whether ``K[i, i]`` becomes 0.

    Returns
    -------
    rows : ndarray of shape (m,)
        Sums of the rows.
    columns : ndarray of shape (n,)
        Sums of the columns.

    Notes
    -----
    One pass over K where compiled, four in NumPy.
    """
    library = _suited(K)
    if library is not None:
        rows, columns = np.zeros(K.shape[0], K.dtype), np.zeros(K.shape[1], K.dtype)
        library.kernelmetric_exponentials(
            K.ctypes.data, *K.shape, low, high, without_diagonal, rows.ctypes.data,
            columns.ctypes.data,
        )  # fmt: skip
        return rows, columns
    np.clip(K, low, high, out=K)
    np.exp(K, out=K)
    if without_diagonal:
        np.fill_diagonal(K, 0.0)
    ones = np.ones(max(K.shape), dtype=K.dtype)
    return K @ ones[: K.shape[1]], ones[: len(K)] @ K


def weigh(K: np.ndarray, a: np.ndarray, b: np.ndarray, scratch: np.ndarray | None = None) -> None:
    """Let ``K_ij`` become ``K_ij (a_i + b_j)``.

    Parameters
    ----------
    K : ndarray of shape (m, n)
        Overwritten; rows one after the other.
    a : ndarray of shape (m,)
        Weights of the rows, of the type of K.
    b : ndarray of shape (n,)
        Weights of the columns.
    scratch : ndarray of shape (m, n), default=None
        Overwritten too: memory that is new for every tile has to be cleared by the system.
    """
    library = _suited(K, a, b)
    if library is None:
        K *= np.add(a[:, None], b, out=scratch)
        return
    library.kernelmetric_weigh(K.ctypes.data, *K.shape, a.ctypes.data, b.ctypes.data)


def _suited(*arrays: np.ndarray) -> Any | None:
    fit = all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays)
    return native() if fit else None
