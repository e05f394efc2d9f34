"""Generators of synthetic data: the papers' examples as ``(X, y)``, and records as texts.

A user's own table is read in ``kernelmetric.tables``.
"""

from kernelmetric._warnings import moved
from kernelmetric.datasets._generators import (
    make_checkerboard,
    make_close_moons,
    make_fig2_circles,
    make_fig2_hyperbolas,
    make_toy004,
)
from kernelmetric.datasets._records import make_records
from kernelmetric.tables import __all__ as _tables

__all__ = [
    "make_checkerboard",
    "make_close_moons",
    "make_fig2_circles",
    "make_fig2_hyperbolas",
    "make_records",
    "make_toy004",
]

# They were here before they had a room of their own.
__getattr__ = moved(__name__, dict.fromkeys(_tables, "tables"))
