"""Data sets of the papers, and generators of synthetic ones.

``load(name)`` looks into the user's folder, scikit-learn and OpenML, in this order, and takes only
data with the checksums of the table ``sets.toml``. The generators return ``(X, y)``, or records as
texts. A user's own table is read in ``kernelmetric.tables``, whose names can be imported from here
as well.
"""

from kernelmetric.datasets._content import ChecksumError, content_digest
from kernelmetric.datasets._generators import (
    make_checkerboard,
    make_close_moons,
    make_fig2_circles,
    make_fig2_hyperbolas,
    make_toy004,
)
from kernelmetric.datasets._load import DataUnavailableError, available, describe, load
from kernelmetric.datasets._records import make_records

# They were here before they had a room of their own.
from kernelmetric.tables import (
    ColumnPlan,
    Table,
    TableEncoder,
    TableError,
    features_of,
    labels_of,
    open_table,
    plan_columns,
    read_table,
    require_columns,
    table_bytes,
    targets_of,
    typed,
    weights_of,
)

__all__ = [
    "ChecksumError",
    "ColumnPlan",
    "DataUnavailableError",
    "Table",
    "TableEncoder",
    "TableError",
    "available",
    "content_digest",
    "describe",
    "features_of",
    "labels_of",
    "load",
    "make_checkerboard",
    "make_close_moons",
    "make_fig2_circles",
    "make_fig2_hyperbolas",
    "make_records",
    "make_toy004",
    "open_table",
    "plan_columns",
    "read_table",
    "require_columns",
    "table_bytes",
    "targets_of",
    "typed",
    "weights_of",
]
