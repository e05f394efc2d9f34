"""From cells to features, the same way for all files.

What a cell means is decided once, from the table that is learned from. Another file is read by
these decisions, never by its own looks, and what does not fit them is refused or told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelmetric.tables._cells import lost_digits, numbers_of, strange_texts, texts_of
from kernelmetric.tables._columns import TableTransformer, few, require_columns, spread_of
from kernelmetric.tables._files import Table
from kernelmetric.tables._text import TableError

if TYPE_CHECKING:
    import pandas as pd

_MISSING = "(missing)"
_MOST = 1e150


@dataclass(eq=False, repr=False)
class TableEncoder(TableTransformer):
    """Numbers are filled and standardized, names become zeros and ones.

    Parameters
    ----------
    numbers : sequence of str, default=()
        Columns of numbers: missing ones become the median, then each is standardized.
    categories : sequence of str, default=()
        Columns of names: a feature of zeros and ones for each; a missing name is one of them.
    commas : sequence of str, default=()
        Columns of numbers whose decimals follow a comma.
    missing : dict of str to sequence of str, default=None
        Words that stand for a missing number, by column. All else that is no number is refused.
    unused : sequence of str or None, default=None
        Columns that are known, but are no features: others are told about. None tells of none.
    label, identifier : str or None, default=None
        The column to predict, and the one that names the rows, where there are such.

    Attributes
    ----------
    columns_ : ColumnTransformer
        The fitted transformer of the columns that are used.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import TableEncoder
    >>> frame = pd.DataFrame({"kg": ["1", "3", "?"], "code": ["01", "02", "A1"]})
    >>> encoder = TableEncoder(["kg"], ["code"], missing={"kg": ["?"]}).fit(frame)
    >>> encoder.transform(frame[1:])[:, 1:].tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    numbers: Sequence[str] = ()
    categories: Sequence[str] = ()
    _: KW_ONLY
    commas: Sequence[str] = ()
    missing: dict[str, Sequence[str]] | None = None
    unused: Sequence[str] | None = None
    label: str | None = None
    identifier: str | None = None

    @classmethod
    def of_columns(cls, columns: ColumnTransformer) -> TableEncoder:
        """The encoder of a fitted transformer that older files hold in its place.

        Parameters
        ----------
        columns : ColumnTransformer
            With the parts "numbers" and "categories".

        Returns
        -------
        TableEncoder
            Fitted.
        """
        names = {part: tuple(chosen) for part, _, chosen in columns.transformers}
        if not set(names) <= {"numbers", "categories"}:
            raise TableError(
                f"Got a transformer with the parts {', '.join(names)}, but expected numbers and "
                "categories: fit the model anew."
            )
        encoder = cls(names.get("numbers", ()), names.get("categories", ()))
        encoder.columns_ = columns
        return encoder

    def read(self, X: Any) -> pd.DataFrame:
        """The columns that are used, in the types that the encoder works on.

        Parameters
        ----------
        X : DataFrame or Table
            A table as it was read, or what this method made of it.

        Returns
        -------
        DataFrame
            Numbers as float, NaN where missing; names as text. A number that is none is refused.
        """
        import pandas as pd

        table = _as_table(X)
        index = table.frame.index
        require_columns(table.frame, [*self.numbers, *self.categories])
        columns: dict[str, Any] = {name: self._read_numbers(name, table) for name in self.numbers}
        for name in self.categories:
            texts = [np.nan if text is None else text for text in texts_of(table.frame[name])]
            # object: newer pandas would turn text with gaps into a type of its own
            columns[name] = pd.Series(texts, index, dtype=object)
        return pd.DataFrame(columns, index)

    def _fit(self, X: Any) -> None:
        parts: list[tuple[str, Any, list[str]]] = []
        if self.numbers:
            scaled = make_pipeline(
                SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
            )
            parts.append(("numbers", scaled, list(self.numbers)))
        if self.categories:
            named = make_pipeline(
                SimpleImputer(strategy="constant", fill_value=_MISSING),
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            )
            parts.append(("categories", named, list(self.categories)))
        ready = self.read(X)
        for name in self.numbers:
            if lost_digits(_as_table(X).frame[name], ready[name].to_numpy()):
                raise TableError(
                    f"Got numbers in column {name!r} that are too long to be told apart, but "
                    "expected shorter ones: subtract the smallest of them first."
                )
        self.columns_ = ColumnTransformer(parts, verbose_feature_names_out=False).fit(ready)
        if self.numbers:
            filler, scaler = self.columns_.named_transformers_["numbers"]
            filled = filler.transform(ready[list(self.numbers)]) - scaler.mean_
            scaler.scale_ = np.array(list(map(spread_of, filled.T, self.numbers)))

    def _features(self, X: Any) -> np.ndarray:
        return self.columns_.transform(self.read(X))

    def _names(self) -> np.ndarray:
        return self.columns_.get_feature_names_out()

    def _remarks(self, X: Any) -> list[str]:
        ready, said = self.read(X), []
        gaps = ready[list(self.numbers)].isna().sum()
        for name, n_gaps in gaps[gaps > 0].items():
            said.append(
                f"{name}: {n_gaps} of {len(ready)} values are missing: taken as the median."
            )
        encoder = self.columns_.named_transformers_.get("categories", [None])[-1]
        for name, known in zip(self.categories, getattr(encoder, "categories_", ()), strict=True):
            values = ready[name].where(ready[name].notna(), _MISSING)
            new = values[~values.isin(known)]
            if len(new):
                said.append(
                    f"{name}: {len(new)} of {len(ready)} values were never seen in training, such "
                    f"as {few(new.unique())}: all its features are zero there."
                )
        expected = {*self.numbers, *self.categories, *(self.unused or ())}
        extra = [str(name) for name in _as_table(X).frame.columns if name not in expected]
        if self.unused is not None and extra:
            names = few(extra, show=str)
            said.append(f"{len(extra)} columns are unknown to the model and not used: {names}.")
        return said

    def _read_numbers(self, name: str, table: Table) -> np.ndarray:
        """A column as floats; what is neither a number nor known to mean "missing" is refused."""
        column = table.frame[name]
        comma = name in self.commas
        values = numbers_of(column, comma=comma)
        known = set((self.missing or {}).get(name, ()))
        for i, text in strange_texts(column, values).items():
            if text not in known:
                expected = f"a number with a decimal {'comma' if comma else 'point'}"
                also = f" or {few(sorted(known))}" if known else ""
                raise TableError(
                    f"Got {text!r} in column {name!r}, {table.place(i)}, but expected {expected}"
                    f"{also}, as in the table that was learned from: correct or empty the cell."
                )
        for i in np.flatnonzero(np.abs(values) > _MOST).tolist()[:1]:
            raise TableError(
                f"Got {values[i]:g} in column {name!r}, {table.place(i)}, but expected numbers up "
                f"to {_MOST:g}, whose squares can be added up: correct the cell, or its unit."
            )
        return values


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

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import features_of, plan_columns
    >>> frame = pd.DataFrame({"kg": ["1", "2", "3", "4", "?"], "unit": ["EUR"] * 5})
    >>> features_of(frame, plan_columns(frame).encoder())["kg"].tolist()
    [1.0, 2.0, 3.0, 4.0, nan]
    """
    return encoder.read(table)
