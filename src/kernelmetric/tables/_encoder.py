"""From cells to features, the same way for all files.

What a cell means is decided once, from the table that is learned from. Another file is read by
these decisions, never by its own looks, and what does not fit them is refused or told.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.inputs import FarCellWarning
from kernelmetric.tables._cells import Writing, lost_digits, numbers_of, strange_texts, texts_of
from kernelmetric.tables._columns import TableTransformer, few, require_columns
from kernelmetric.tables._files import Table
from kernelmetric.tables._frames import DATES, NAMES, NUMBERS, TEXT, Column, of_kind, with_objects
from kernelmetric.tables._moments import dates_of
from kernelmetric.tables._schema import TableSchema
from kernelmetric.tables._text import TableError

if TYPE_CHECKING:
    import pandas as pd

_MOST = 1e150


@dataclass(eq=False, repr=False)
class TableEncoder(TableTransformer):
    """The cells of a file as typed columns, and these as the features of a :class:`TableSchema`.

    Parameters
    ----------
    numbers, categories : sequence of str, default=()
        Columns of numbers, and columns of names.
    commas, marks, units : sequence of str, dict and dict of str to str, default=(), None and None
        Columns of numbers whose decimals follow a comma, and by column a mark between thousands
        and a unit, such as "kg" or "%", which cells may have.
    missing : dict of str to sequence of str, default=None
        Words that stand for a missing number or date, by column. All else that is none is refused.
    dates : dict of str to str, default=None
        How columns of dates and times write them, in the letters of ``strptime``.
    spellings : dict of str to dict, default=None
        By column, the names for what is written in several ways, by that in small letters.
    texts : sequence of str, default=()
        Columns of free text.
    objects : dict of str to str, default=None
        Columns of text that a kernel takes as they are, and the name of the kernel.
    unused : sequence of str or None, default=None
        Columns that are known, but are no features: others are told about. None tells of none.
    label, identifier : str or None, default=None
        The column to predict, and the one that names the rows, where there are such.

    Attributes
    ----------
    schema_ : TableSchema
        The features of the columns that are used.

    See Also
    --------
    kernelmetric.tables.plan_columns : Decides what each column is.
    kernelmetric.tables.TableSchema : For frames whose columns have types.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import TableEncoder
    >>> frame = pd.DataFrame({"kg": ["1", "3", "?", "2"], "code": ["01", "02", "01", "02"]})
    >>> encoder = TableEncoder(["kg"], ["code"], missing={"kg": ["?"]}).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['kg', 'kg=(missing)', 'code=01', 'code=02', 'code=(other)']
    """

    numbers: Sequence[str] = ()
    categories: Sequence[str] = ()
    _: KW_ONLY
    commas: Sequence[str] = ()
    marks: dict[str, str] | None = None
    units: dict[str, str] | None = None
    missing: dict[str, Sequence[str]] | None = None
    dates: dict[str, str] | None = None
    spellings: dict[str, dict[str, str]] | None = None
    texts: Sequence[str] = ()
    objects: dict[str, str] | None = None
    unused: Sequence[str] | None = None
    label: str | None = None
    identifier: str | None = None

    @property
    def used(self) -> list[str]:
        """The columns that become features."""
        featured = [*self.numbers, *(self.dates or {}), *self.categories, *self.texts]
        return [*featured, *(self.objects or {})]

    def read(self, X: Any) -> pd.DataFrame:
        """The columns that are used, in the types that the encoder works on.

        Parameters
        ----------
        X : DataFrame or Table
            A table as it was read, or what this method made of it.

        Returns
        -------
        DataFrame
            Numbers as float, NaN where missing; dates as dates; names and texts as text. A number
            or a date that is none is refused.
        """
        import pandas as pd

        table = _as_table(X)
        index = table.frame.index
        require_columns(table.frame, self.used)
        columns: dict[str, Any] = {name: self._read_numbers(name, table) for name in self.numbers}
        columns |= {name: self._read_dates(name, table) for name in self.dates or {}}
        for name in (*self.categories, *self.texts):
            known = (self.spellings or {}).get(name, {})
            texts = [
                np.nan if text is None else known.get(spelled(text), text)
                for text in texts_of(table.frame[name])
            ]
            # object: newer pandas would turn text with gaps into a type of its own
            columns[name] = pd.Series(texts, index, dtype=object)
        for name in self.objects or {}:
            whole = list(texts_of(table.frame[name]))
            for i in [i for i, text in enumerate(whole) if text is None][:1]:
                raise TableError(
                    f"Got nothing in column {name!r}, {table.place(i)}, but expected some text for "
                    "a kernel: leave the row out."
                )
            columns[name] = pd.Series(whole, index, dtype=object)
        return pd.DataFrame(columns, index)

    def _fit(self, X: Any) -> None:
        ready = self.read(X)
        for name in self.numbers:
            if lost_digits(_as_table(X).frame[name], ready[name].to_numpy()):
                raise TableError(
                    f"Got numbers in column {name!r} that are too long to be told apart, but "
                    "expected shorter ones: subtract the smallest of them first."
                )
        with warnings.catch_warnings():  # the plan says the same, but of cells that are far off
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", FarCellWarning)
            self.schema_ = TableSchema([*(self.objects or {})]).fit(self._columns(ready))

    def _features(self, X: Any) -> Any:
        columns = self._columns(self.read(X))
        return with_objects(self.schema_, columns, self.schema_.encoded(columns)[0])

    def _names(self) -> np.ndarray:
        return self.schema_.get_feature_names_out()

    def _columns(self, ready: pd.DataFrame) -> list[Column]:
        """What was read, as a schema takes it."""
        found = [of_kind(name, NUMBERS, ready[name].to_numpy()) for name in self.numbers]
        found += [of_kind(name, DATES, ready[name].to_numpy()) for name in self.dates or {}]
        for kind, names in ((NAMES, self.categories), (TEXT, [*self.texts, *(self.objects or {})])):
            found += [of_kind(name, kind, ready[name].to_numpy()) for name in names]
        return found

    def _remarks(self, X: Any) -> list[str]:
        said = self.schema_.encoded(self._columns(self.read(X)))[1]
        expected = {*self.used, *(self.unused or ())}
        extra = [str(name) for name in _as_table(X).frame.columns if name not in expected]
        if self.unused is not None and extra:
            names = few(extra, show=str)
            said.append(f"{len(extra)} columns are unknown to the model and not used: {names}.")
        return said

    def _read_numbers(self, name: str, table: Table) -> np.ndarray:
        """A column as floats; what is neither a number nor known to mean "missing" is refused."""
        comma, unit = name in self.commas, (self.units or {}).get(name, "")
        way = Writing("comma" if comma else "point", (self.marks or {}).get(name, ""), unit)
        values = numbers_of(table.frame[name], way)
        expected = f"a number with a decimal {'comma' if comma else 'point'}"
        self._refuse(name, table, values, f"{expected} in {unit}" if unit else expected)
        for i in np.flatnonzero(np.abs(values) > _MOST).tolist()[:1]:
            raise TableError(
                f"Got {values[i]:g} in column {name!r}, {table.place(i)}, but expected numbers up "
                f"to {_MOST:g}, whose squares can be added up: correct the cell, or its unit."
            )
        return values

    def _read_dates(self, name: str, table: Table) -> np.ndarray:
        """A column as dates, likewise."""
        column = table.frame[name]
        if column.dtype.kind in "mM":
            return column.to_numpy()
        way = (self.dates or {})[name]
        dates = dates_of(texts_of(column), way)
        self._refuse(name, table, np.where(np.isnat(dates), np.nan, 0.0), f"a date like {way}")
        return dates

    def _refuse(self, name: str, table: Table, values: np.ndarray, expected: str) -> None:
        """Refuse a cell that is no value, and not known to mean that there is none."""
        known = set((self.missing or {}).get(name, ()))
        for i, text in strange_texts(table.frame[name], values).items():
            if text not in known:
                also = f" or {few(sorted(known))}" if known else ""
                raise TableError(
                    f"Got {text!r} in column {name!r}, {table.place(i)}, but expected {expected}"
                    f"{also}, as in the table that was learned from: correct or empty the cell."
                )


def spelled(text: str) -> str:
    """A name in small letters, without the spaces that nobody sees."""
    return " ".join(text.casefold().split())


def _as_table(X: Any) -> Table:
    return X if isinstance(X, Table) else Table(X)


def features_of(table: pd.DataFrame | Table, encoder: TableEncoder) -> pd.DataFrame:
    """The columns that an encoder reads, in the types it reads them in.

    Parameters
    ----------
    table : DataFrame or Table
        A table as it was read.
    encoder : TableEncoder
        What :meth:`ColumnPlan.encoder` made, fitted or not.

    Returns
    -------
    DataFrame
        Numbers as float, NaN where missing; names as text.

    See Also
    --------
    kernelmetric.tables.labels_of : The column of classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import features_of, plan_columns
    >>> frame = pd.DataFrame({"kg": ["1", "2", "3", "4", "?"], "unit": ["EUR"] * 5})
    >>> features_of(frame, plan_columns(frame).encoder())["kg"].tolist()
    [1.0, 2.0, 3.0, 4.0, nan]
    """
    return encoder.read(table)
