"""Tables: from a file or a data frame to features, the same way for the rows of every table.

A file is read by :func:`open_table`, cell by cell; :func:`plan_columns` says which of its columns
become features and how, and makes the :class:`TableEncoder` that keeps these decisions and reads
other files by them. A data frame says by its types what its columns are: :class:`TableSchema`
keeps that, and is what :class:`~kernelmetric.Kernelized` reads frames by::

    file ──open_table──▶ Table ──plan_columns──▶ ColumnPlan ──encoder()──▶ TableEncoder ──▶ X
    frame, or array of objects ──────────────────────────────────────────▶ TableSchema ──▶ X

    _text.py      bytes of delimited text to rows of cells
    _files.py     CSV, Parquet and npz to a Table, and back
    _parts.py     a table in many Parquet files, part by part
    _cells.py     what a single cell is: missing, a number, or a name
    _plan.py      what the columns of a file are good for
    _targets.py   labels, numbers to predict, weights
    _encoder.py   TableEncoder: cells to features, by a plan
    _frames.py    data frames: what a column holds
    _schema.py    TableSchema: typed columns to features
    _columns.py   what both need: columns by name or place, the spread of numbers
"""

from kernelmetric.tables._columns import require_columns
from kernelmetric.tables._encoder import TableEncoder, features_of
from kernelmetric.tables._files import Table, open_table, read_table, table_bytes, typed
from kernelmetric.tables._frames import is_frame, is_table
from kernelmetric.tables._plan import ColumnPlan, plan_columns
from kernelmetric.tables._schema import TableSchema
from kernelmetric.tables._targets import labels_of, targets_of, weights_of
from kernelmetric.tables._text import TableError

__all__ = [
    "ColumnPlan",
    "Table",
    "TableEncoder",
    "TableError",
    "TableSchema",
    "features_of",
    "is_frame",
    "is_table",
    "labels_of",
    "open_table",
    "plan_columns",
    "read_table",
    "require_columns",
    "table_bytes",
    "targets_of",
    "typed",
    "weights_of",
]
