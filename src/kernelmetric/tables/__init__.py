"""Tables: from a file or a data frame to features, the same way for the rows of every table.

Cells of a file are text, so a plan says what its columns are; a data frame says it by its types::

    file ──open_table──▶ Table ──plan_columns──▶ ColumnPlan ──encoder()──▶ TableEncoder ──▶ X
    frame, or array of objects ──────────────────────────────────────────▶ TableSchema ──▶ X

    _moments.py   dates and times in text, and their cycles; _ngrams.py free text as numbers
    _files.py     CSV (_text.py), Parquet and npz to a Table, and back; _pieces.py by pieces
    _cells.py     what a single cell is: missing, a number, or a name
    _plan.py      what the columns of a file are good for; _targets.py labels, weights
    _frames.py    data frames: what a column holds, its middle and spread, columns of objects
    _encoder.py   TableEncoder: cells to features, by a plan
    _schema.py    TableSchema: typed columns to features
    _columns.py   what both need: their public methods, columns by name or place
"""

from kernelmetric.tables._columns import require_columns
from kernelmetric.tables._encoder import TableEncoder, features_of
from kernelmetric.tables._files import Table, open_table, read_table, table_bytes, typed
from kernelmetric.tables._frames import is_frame, is_table
from kernelmetric.tables._pieces import read_pieces, sample_table
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
    "read_pieces",
    "read_table",
    "require_columns",
    "sample_table",
    "table_bytes",
    "targets_of",
    "typed",
    "weights_of",
]
