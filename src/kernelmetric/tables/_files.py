"""Tables in files: CSV, Parquet and npz, as data frames and back."""

from __future__ import annotations

import gzip
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.compute.watch import stage
from kernelmetric.inputs._extras import require
from kernelmetric.tables._cells import MISSING, is_code, is_plain_number
from kernelmetric.tables._text import Record, TableError, lines_of, read_records

if TYPE_CHECKING:
    import pandas as pd

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")  # fits 64 bits
_TEXT = {".csv", ".tsv", ".txt"}
_PIECE_ROWS = 20_000  # of a text file
_KINDS = "a .csv, .tsv, .txt (each may end in .gz), .parquet or .npz file"


@dataclass(frozen=True)
class Table:
    """A table as a file holds it.

    Parameters
    ----------
    frame : DataFrame
        Its rows. Cells of a text file are text, as they stand there but for blanks around them:
        what they mean is decided by column, see :func:`plan_columns` and :class:`TableEncoder`.
    notes : tuple of str
        Sentences on how the file was read, where that is not plain.
    lines : ndarray of int or None
        The lines of a text file in which the rows begin, from 1.
    name : str
        What to call it in messages.
    rows : ndarray of int or None
        The numbers of the rows in their file, from 0, where these are some of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import Table
    >>> Table(pd.DataFrame({"kg": ["1.50"]})).notes
    ()
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    lines: np.ndarray | None = None
    name: str = "the table"
    rows: np.ndarray | None = None

    def place(self, row: int) -> str:
        """Where a row stands, for messages.

        Parameters
        ----------
        row : int
            Its number, from 0.

        Returns
        -------
        str
            The line of a text file, else the row.
        """
        number = row if self.rows is None else self.rows[row]
        place = f"row {number}, from 0," if self.lines is None else f"line {self.lines[row]}"
        return f"{place} of {self.name}"


def read_table(path: str | os.PathLike) -> pd.DataFrame:
    r"""Read a table; the kind of file is told by its name.

    Parameters
    ----------
    path : path-like
        Text (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``), in UTF-8 or with a mark of its
        encoding: a line of column names, then rows, columns parted by comma, semicolon, tab or
        bar; cells may be quoted. ``.parquet``: needs pyarrow. ``.npz``: an array ``X`` of shape
        (n, d) becomes the columns ``x0, x1, ...``, or those of an array ``feature_names``; every
        other array of length n becomes a column of its name.

    Returns
    -------
    DataFrame
        With at least one row and one column, no two columns of one name. In a text file, a column
        is one of numbers if all its cells are, see :func:`typed`; all else is text.

    See Also
    --------
    kernelmetric.tables.read_pieces : For files larger than the memory.
    kernelmetric.tables.labels_of : The column of classes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelmetric.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("weight;kind\n120;apple\n;pear\n", encoding="utf-8")
    ...     read_table(path).shape
    (2, 2)
    """
    return typed(open_table(path).frame)


def open_table(path: str | os.PathLike) -> Table:
    r"""Read a table with its cells as they are, and with notes on how that was done.

    Parameters
    ----------
    path : path-like
        As in :func:`read_table`.

    Returns
    -------
    Table
        Rows, notes and numbers of lines.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelmetric.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("code;kind\n007;apple\n;pear\n", encoding="utf-8")
    ...     table = open_table(path)
    >>> table.frame["code"].tolist(), table.notes, table.lines.tolist()
    (['007', nan], ('The cells are parted by semicolons.',), [2, 3])
    """
    path = Path(path)
    kind = path.suffix.lower()
    with readable(path):
        if is_text(path):
            table = _open_text(path)
        elif kind == ".parquet":
            require_arrow()
            table = Table(_pandas().read_parquet(path), name=path.name)
        elif kind == ".npz":
            table = _open_npz(path)
        else:
            raise TableError(f"Got {path}, but expected {_KINDS}.")
    check_names(table.frame, path)
    if not all(table.frame.shape):
        raise TableError(f"The table {path} has column names but no rows.")
    return table


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Within it, whatever keeps a file from being read becomes a TableError."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"There is no file {path}.") from None
    except TableError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise TableError(f"Cannot read {path}: {error}") from error


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with columns of text as numbers, where nothing but the way of writing is lost.

    Parameters
    ----------
    frame : DataFrame
        A table whose cells are text.

    Returns
    -------
    DataFrame
        Columns of nothing but numbers, none with a leading zero, are numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import typed
    >>> frame = typed(pd.DataFrame({"n": ["1", "2"], "code": ["01", "02"]}))
    >>> frame["n"].tolist(), frame["code"].tolist()
    ([1, 2], ['01', '02'])
    """
    return _pandas().DataFrame({name: _typed(frame[name]) for name in frame.columns})


def table_bytes(frame: pd.DataFrame, path: str | os.PathLike) -> bytes:
    r"""A table as the content of a file, of the kind that the name of the file tells.

    Parameters
    ----------
    frame, path : DataFrame, path-like
        The table, and where the bytes will be written: ``.csv``, ``.tsv``, ``.parquet``, ``.npz``.

    Returns
    -------
    bytes
        The content. In an npz, columns of numbers become the rows of ``X`` with
        ``feature_names``, and the other columns arrays of their own.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import table_bytes
    >>> table_bytes(pd.DataFrame({"a": [1, 2]}), "a.csv")
    b'a\n1\n2\n'
    """
    kind = Path(path).suffix.lower()
    if kind in _TEXT:
        text = frame.to_csv(index=False, sep="\t" if kind == ".tsv" else ",", lineterminator="\n")
        return text.encode("utf-8")
    stream = io.BytesIO()
    if kind == ".parquet":
        frame.to_parquet(stream, index=False)
    elif kind == ".npz":
        _write_npz(frame, stream)
    else:
        raise TableError(f"Got {path} to write, but expected a .csv, .tsv, .parquet or .npz file.")
    return stream.getvalue()


def _write_npz(frame: pd.DataFrame, stream: io.BytesIO) -> None:
    """Write columns of numbers as ``X``, the others as arrays of their names."""
    numbers = frame.select_dtypes("number")
    names = np.asarray(numbers.columns, dtype=str)
    arrays = {"X": numbers.to_numpy(), "feature_names": names}
    for name in frame.columns.difference(numbers.columns, sort=False):
        if str(name) in arrays:
            raise TableError(
                f"Got a column {str(name)!r} of text to write to an npz, where that name is taken: "
                "rename the column, or write a .csv or .parquet file."
            )
        arrays[str(name)] = np.asarray(frame[name].astype(str), dtype=str)
    # Not by np.savez: it takes names as keywords, and ``file`` is one of its own.
    with zipfile.ZipFile(stream, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(values), allow_pickle=False)


def _pandas() -> Any:
    return require("pandas", "cli", "Tables need pandas")


def require_arrow() -> None:
    """Refuse Parquet files where pyarrow is missing."""
    require("pyarrow", "parquet", "Parquet files need pyarrow")


def text_pieces(path: Path, notes: list[str]) -> Iterator[Table]:
    """A text file, some rows at a time; the notes are complete at its end."""
    n_rows = 0
    size = max(path.stat().st_size, 1) if path.is_file() else None
    with readable(path), path.open("rb") as raw, stage(f"reading {path.name}", size) as shown:
        stream: Any = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        for names, records in read_records(lines_of(stream, path, notes), path, notes, _PIECE_ROWS):
            n_rows += len(records)
            shown.step(f"bytes, {n_rows:,} rows", raw.tell() - shown.done)
            yield _text_table(names, records, path)


def is_text(path: Path) -> bool:
    """Whether the name of a file says that it holds delimited text."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return kind.lower() in _TEXT


def _open_text(path: Path) -> Table:
    notes: list[str] = []
    pieces = list(text_pieces(path, notes))
    frame = _pandas().concat([piece.frame for piece in pieces], ignore_index=True)
    lines = np.concatenate([piece.lines for piece in pieces])
    return Table(frame, tuple(notes), lines, path.name)


def _text_table(names: list[str], records: list[Record], path: Path) -> Table:
    columns: Any = zip(*(fields for _, fields in records), strict=True)
    cells = {
        j: [np.nan if (text := cell.strip()) in MISSING else text for cell in column]
        for j, column in zip(range(len(names)), columns, strict=False)
    }
    frame = _pandas().DataFrame(cells, columns=range(len(names)), dtype=object)
    frame.columns = names
    lines = np.array([line for line, _ in records], dtype=np.intp)
    return Table(frame, lines=lines, name=path.name)


def _typed(column: Any) -> Any:
    if column.dtype.kind in "iufcbmM":
        return column
    there = column.notna()  # what is missing may be NaN, None or NA
    texts = column[there].tolist()
    plain = all(isinstance(text, str) and is_plain_number(text) for text in texts)
    if not plain or any(map(is_code, texts)):
        return column
    if len(texts) == len(column) and all(map(_WHOLE.fullmatch, texts)):
        return column.astype(np.int64)
    numbers = column.astype(object)
    numbers[~there] = np.nan
    return numbers.astype(np.float64)


def _open_npz(path: Path) -> Table:
    try:
        # a stream of our own: NumPy leaves its file open where the archive is damaged
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, AttributeError, TypeError) as error:  # pickled objects; a lone array
        raise TableError(f"Cannot read {path} as an npz of plain arrays: {error}") from error
    X = arrays.pop("X", None)
    if X is None or X.ndim != 2:
        raise TableError(
            f"Got {path}, but expected an npz with an array X of shape (rows, columns)."
        )
    names = arrays.pop("feature_names", np.array([f"x{j}" for j in range(X.shape[1])]))
    if names.shape != (X.shape[1],):
        raise TableError(
            f"Got feature_names of shape {names.shape} for {X.shape[1]} columns in {path}."
        )
    pandas = _pandas()
    points = pandas.DataFrame(X, columns=[str(name) for name in names])
    columns, notes = {}, []
    for name, values in arrays.items():
        if values.shape != (len(X),):
            notes.append(f"The array {name!r} of shape {values.shape} is no column: not read.")
        elif values.dtype.kind == "U":  # text has no other way to be missing than by such a word
            columns[name] = [np.nan if text in MISSING else text for text in values.tolist()]
        else:
            columns[name] = values
    others = pandas.DataFrame(columns, index=points.index)
    return Table(pandas.concat([points, others], axis=1), tuple(notes), name=path.name)


def check_names(frame: Any, path: Path) -> None:
    """Make all names of columns text; refuse two that are alike."""
    frame.columns = [str(column) for column in frame.columns]
    twins = sorted(frame.columns[frame.columns.duplicated()])
    if twins:
        raise TableError(f"The table {path} has two columns named {twins[0]!r}: rename one.")
