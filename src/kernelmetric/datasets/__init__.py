"""Data sets of the papers, and generators of synthetic ones.

``load(name)`` looks into the user's folder, scikit-learn and OpenML, in this order, and takes only
data with the checksums of the table ``sets.toml``. The generators return ``(X, y)``, or records as
texts. A user's own table is read in ``kernelmetric.tables``.
"""

from kernelmetric._warnings import moved
from kernelmetric.datasets._generators import (
    make_checkerboard,
    make_close_moons,
    make_fig2_circles,
    make_fig2_hyperbolas,
    make_toy004,
)
from kernelmetric.datasets._load import DataUnavailableError, available, describe, load
from kernelmetric.datasets._records import make_records
from kernelmetric.datasets._sources import ChecksumError, content_digest
from kernelmetric.tables import __all__ as _tables

__all__ = [
    "ChecksumError",
    "DataUnavailableError",
    "available",
    "content_digest",
    "describe",
    "load",
    "make_checkerboard",
    "make_close_moons",
    "make_fig2_circles",
    "make_fig2_hyperbolas",
    "make_records",
    "make_toy004",
]

# They were here before they had a room of their own.
__getattr__ = moved(__name__, dict.fromkeys(_tables, "tables"))
