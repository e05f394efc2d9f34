"""Data sets of the papers, and generators of synthetic ones.

``load(name)`` looks into three places, in this order, and never takes data that are not the
expected ones:

1. the folder named by the environment variable ``KERNELMETRIC_DATA`` (or ``data_home=``), where
   each file must have the sha256 of the table;
2. scikit-learn, for the sets it bundles;
3. OpenML, where the *values* must have the checksum of the table, whatever the order of the rows
   (:func:`content_digest`).

The table itself is the file ``sets.toml``. The generators return ``(X, y)``, or records as texts,
and depend on nothing but ``random_state``. A user's own table is read in ``kernelmetric.tables``,
whose names can be imported from here as well.
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
