"""Passes over memory that are compiled where there is a compiler, and in NumPy elsewhere.

``_native.c`` is compiled when the package is built (``hatch_build.py``). Without it, or where the
environment has ``KERNELMETRIC_PURE=1``, all runs in NumPy, with the same results but for rounding.
"""

import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

_LIBRARY = "libkernelmetric.so"
_VERSION = 7  # of the functions in _native.c; a file compiled from others is not used

_SUFFIXES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


@lru_cache(maxsize=1)
def native() -> Any | None:
    """The compiled library; None where there is none for this version and machine."""
    if os.environ.get("KERNELMETRIC_PURE", "0") not in ("", "0"):
        return None
    try:
        library = ctypes.CDLL(str(Path(__file__).with_name(_LIBRARY)))
        if library.kernelmetric_version() != _VERSION:
            return None
    except (OSError, AttributeError):
        return None
    size, floats = ctypes.c_int64, ctypes.c_void_p
    square = [floats, size, size, floats, floats, size, floats]
    hinge = [floats, size, size, floats, size, floats, size, floats, floats, ctypes.c_double]
    takes = {"pair_squares": square, "pulled": square, "listed_hinge": [*hinge, *[floats] * 3]}
    for suffix in _SUFFIXES.values():
        for name, arguments in takes.items():
            function = getattr(library, f"kernelmetric_{name}_{suffix}")
            function.argtypes, function.restype = arguments, size
    return library


def pair_squares(E: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared distances of listed pairs of rows of E."""
    if not (E.dtype in _SUFFIXES and E.flags.c_contiguous and native() is not None):
        difference = E.take(first, axis=0)
        difference -= E.take(second, axis=0)
        return np.einsum("ij,ij->i", difference, difference)
    first, second = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (first, second))
    squares = np.empty(len(first), dtype=E.dtype)
    done = _run_on("pair_squares", E, first, second, len(first), squares)
    if done < len(first):
        raise _no_such_rows(first[done], second[done], E)
    return squares


def hinge_compiled(X: Any, pairs: np.ndarray) -> bool:
    """Whether :func:`add_listed_hinge` and :func:`add_pulled` take arrays like these."""
    listed = pairs.dtype == np.int32 and pairs.flags.c_contiguous
    return listed and isinstance(X, np.ndarray) and X.dtype in _SUFFIXES and native() is not None


def add_listed_hinge(
    E: np.ndarray, pairs: np.ndarray, margins: Any, slopes: np.ndarray, product: np.ndarray
) -> float:
    """The hinge over listed pairs; adds its slopes, and the Laplacian of their weights times E."""
    thresholds, corner, counted = margins
    value = np.zeros(1)
    weights: list[Any] = [np.ascontiguousarray(w, np.float64) for w in counted or ()]
    done = _run_on(
        "listed_hinge", E, pairs, len(pairs), thresholds, thresholds.shape[1],
        *(weights or [None, None]), corner, value, slopes, product,
    )  # fmt: skip
    if done < len(pairs):
        raise _no_such_rows(pairs[done, 0], pairs[done, 1], E)
    return float(value[0])


def add_pulled(
    E: np.ndarray, targets: np.ndarray, weights: np.ndarray, product: np.ndarray
) -> None:
    """Add the Laplacian of the float64 weights (n, k) of target pairs, times E, to ``product``."""
    targets, weights = np.ascontiguousarray(targets, np.int64), np.ascontiguousarray(weights)
    done = _run_on("pulled", E, targets, weights, weights.shape[1], product)
    if done < len(E):
        raise _no_such_rows(done, targets[done].tolist(), E)


def _run_on(name: str, E: np.ndarray, *arguments: Any) -> Any:
    """Call a compiled function, that of the dtype of E; it gets arrays by their place in memory."""
    places = (a.ctypes.data if isinstance(a, np.ndarray) else a for a in (E, *E.shape, *arguments))
    return getattr(native(), f"kernelmetric_{name}_{_SUFFIXES[E.dtype]}")(*places)


def _no_such_rows(first: int, second: Any, E: np.ndarray) -> IndexError:
    return IndexError(
        f"Got the pair {first}, {second} of {len(E)} points, but expected row numbers from 0 to "
        f"{len(E) - 1}."
    )
