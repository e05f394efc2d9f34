"""Tables in files: CSV, Parquet and npz, as data frames and back."""

from __future__ import annotations

import difflib
import io
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = ",;\t|"
_TEXT = {".csv", ".tsv", ".txt"}
_KINDS = "a .csv, .tsv, .txt (each may end in .gz), .parquet or .npz file"


class TableError(ValueError):
    """A table that cannot be read or used; the message says what to change.

    Examples
    --------
    >>> from kernelmetric.datasets import TableError, read_table
    >>> try:
    ...     read_table("points.xlsx")
    ... except TableError as error:
    ...     print(error)
    Got points.xlsx, but expected a .csv, .tsv, .txt (each may end in .gz), .parquet or .npz file.
    """


def read_table(path: str | os.PathLike) -> pd.DataFrame:
    r"""Read a table; the kind of file is told by its name.

    Parameters
    ----------
    path : path-like
        Text (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``): a line of column names, then one
        row per line, columns parted by comma, semicolon, tab or bar, whichever the first line
        has most of. ``.parquet``: needs pyarrow. ``.npz``: an array ``X`` of shape (n, d) becomes
        the columns ``x0, x1, ...``, or those that an array ``feature_names`` names; every other
        array of length n becomes a column of its name.

    Returns
    -------
    DataFrame
        The table, with at least one row and one column, no two columns of one name.

    Raises
    ------
    TableError
        If there is no such table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelmetric.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("weight;kind\n120;apple\n;pear\n", encoding="utf-8")
    ...     read_table(path).shape
    (2, 2)
    """
    path = Path(path)
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    try:
        if kind.lower() in _TEXT:
            frame = _read_text(path)
        elif kind.lower() == ".parquet" and path.suffix != ".gz":
            frame = _pandas().read_parquet(path)
        elif kind.lower() == ".npz" and path.suffix != ".gz":
            frame = _read_npz(path)
        else:
            raise TableError(f"Got {path}, but expected {_KINDS}.")
    except FileNotFoundError:
        raise TableError(f"There is no file {path}.") from None
    except ImportError as error:
        if "pyarrow" not in str(error):
            raise
        raise TableError(
            'Parquet files need pyarrow, which is not installed: try pip install "kernelmetric'
            '[parquet]", or save the table as CSV.'
        ) from error
    except UnicodeDecodeError as error:
        raise TableError(
            f"Got {path}, whose text is not UTF-8 (byte {error.start}): save it as UTF-8."
        ) from error
    except (OSError, EOFError, zipfile.BadZipFile, _arrow_error()) as error:
        raise TableError(f"Cannot read {path}: {error}") from error
    return _checked(frame, path)


def table_bytes(frame: pd.DataFrame, path: str | os.PathLike) -> bytes:
    r"""A table as the content of a file, of the kind that the name of the file tells.

    Parameters
    ----------
    frame : DataFrame
        The table.
    path : path-like
        Where the bytes will be written: ``.csv``, ``.tsv``, ``.parquet`` or ``.npz``.

    Returns
    -------
    bytes
        The content. In an npz, columns of numbers become the rows of ``X`` with
        ``feature_names``, and the other columns arrays of their own.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import table_bytes
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
    """Write columns of numbers as ``X``, the others as arrays of their names.

    Not by np.savez: it takes names as keywords, and ``file`` is one of its own.
    """
    numbers = frame.select_dtypes("number")
    arrays = {
        "X": numbers.to_numpy(),
        "feature_names": np.asarray(numbers.columns, dtype=str),
    }
    for name in frame.columns.difference(numbers.columns, sort=False):
        if str(name) in arrays:
            raise TableError(
                f"Got a column {str(name)!r} of text to write to an npz, where that name is taken: "
                "rename the column, or write a .csv or .parquet file."
            )
        arrays[str(name)] = np.asarray(frame[name].astype(str), dtype=str)
    with zipfile.ZipFile(stream, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(values), allow_pickle=False)


def require_columns(frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse names that are no columns, with those that were perhaps meant.

    Parameters
    ----------
    frame : DataFrame
        The table.
    names : iterable of str
        Names that must be columns of it.

    Raises
    ------
    TableError
        If one is not.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import require_columns
    >>> require_columns(pd.DataFrame({"kind": ["apple"]}), ["kind"])
    """
    columns = [str(column) for column in frame.columns]
    missing = [name for name in names if name not in columns]
    if missing:
        near = difflib.get_close_matches(missing[0], columns, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
        raise TableError(
            f"The table has no column {', '.join(map(repr, missing))}; its columns are {shown}."
            + hint
        )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise TableError(
            'Tables need pandas, which is not installed: try pip install "kernelmetric[cli]".'
        ) from error
    return pandas


def _arrow_error() -> type[Exception]:
    """What pyarrow raises for a damaged file, where pyarrow is there."""
    try:
        from pyarrow import ArrowInvalid
    except ImportError:
        return EOFError
    return ArrowInvalid


def _read_text(path: Path) -> Any:
    pandas = _pandas()
    try:
        # The first line alone, as one column: its most frequent separator parts all the others.
        # Its names, read as data, also show two columns of one name, which pandas would rename.
        first = pandas.read_csv(path, sep="\x01", nrows=1, header=None, dtype=str, engine="python")
        line = str(first.iloc[0, 0])
        separator = max(_SEPARATORS, key=line.count)
        options = {"sep": separator, "encoding": "utf-8-sig"}
        names = pandas.read_csv(path, nrows=1, header=None, dtype=str, **options)
        _refuse_twins(names.iloc[0].dropna().tolist(), path)
        return pandas.read_csv(path, skipinitialspace=True, **options)
    except pandas.errors.EmptyDataError:
        raise TableError(f"The file {path} is empty.") from None
    except pandas.errors.ParserError as error:
        reason = str(error).strip().rpartition("C error: ")[2]
        raise TableError(f"Cannot read {path} as a table: {reason}") from error


def _read_npz(path: Path) -> Any:
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
    if len(names) != X.shape[1]:
        raise TableError(f"Got {len(names)} feature_names for {X.shape[1]} columns in {path}.")
    frame = _pandas().DataFrame(X, columns=[str(name) for name in names])
    for name, values in arrays.items():
        if values.shape == (len(X),):
            frame[name] = values
    return frame


def _checked(frame: Any, path: Path) -> Any:
    frame.columns = [str(column) for column in frame.columns]
    _refuse_twins(list(frame.columns), path)
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise TableError(f"The table {path} has column names but no rows.")
    return frame


def _refuse_twins(names: list[str], path: Path) -> None:
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise TableError(f"The table {path} has two columns named {twins[0]!r}: rename one.")
