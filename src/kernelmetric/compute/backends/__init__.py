"""What each library of arrays does in its own way.

A backend is imported when the first of its arrays comes, and imports no library. A new one is a
class like :class:`ArrayAPI`, and one line here::

    _array_api.py   any library that follows the array API standard
    _torch.py       torch, on the CPU or on a device (cuda/)
    _numpy.py       NumPy, whose tiles our own threads share
    _native.py      passes over pairs, compiled from _native.c or in NumPy
    _grams.py       n-grams of texts and products of their vectors, where that is compiled
    dask/           arrays and data frames of Dask: fits on a cluster
"""

from functools import lru_cache
from typing import Any

from kernelmetric.compute.backends._array_api import ArrayAPI
from kernelmetric.compute.backends._grams import compiled_grams
from kernelmetric.compute.backends._numpy import NumPy

_NUMPY, _ANY = NumPy(), ArrayAPI()
# Sparse matrices are made of NumPy arrays, and so are our rows on many machines.
_OF_NUMPY = {"numpy", "scipy", "kernelmetric"}


def backend_of(X: Any) -> ArrayAPI:
    """The backend of an array; that of the array API standard where its library has none."""
    kind: Any = type(X)
    return _backend_of(kind)


@lru_cache(maxsize=64)
def _backend_of(kind: Any) -> ArrayAPI:
    packages = {ancestor.__module__.partition(".")[0] for ancestor in kind.__mro__}
    if packages & _OF_NUMPY:
        return _NUMPY
    if "torch" in packages:
        from kernelmetric.compute.backends._torch import Torch

        return Torch()
    return _ANY


__all__ = ["ArrayAPI", "NumPy", "backend_of", "compiled_grams"]
