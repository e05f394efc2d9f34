"""Columns of tables as texts that can be compared: trimmed, in small letters, missing as None."""

from collections.abc import Callable
from typing import Any

import numpy as np

Key = str | Callable[[Any], Any]


def as_table(records: Any) -> Any:
    """A data frame; of a list of dictionaries, or of a dictionary of columns, one is made."""
    import pandas as pd

    if isinstance(records, pd.DataFrame):
        return records
    if isinstance(records, dict | list | tuple):
        try:
            return pd.DataFrame(records)
        except UnicodeEncodeError:  # half of a surrogate pair: pandas keeps it as an object alone
            return pd.DataFrame(records, dtype=object).apply(_inferred)
    raise ValueError(
        f"Got records of type {type(records).__name__}, but expected a data frame or dictionaries."
    )


def as_tables(left: Any, right: Any) -> tuple[Any, Any]:
    """Two data frames, or one and None."""
    return as_table(left), None if right is None else as_table(right)


def column_of(table: Any, key: Key) -> Any:
    """A column by its name, or what a function makes of the table."""
    if callable(key):
        made = key(table)
        if len(made) != len(table):
            raise ValueError(
                f"Got a key of {len(made)} values for {len(table)} records: expected one each."
            )
        return made
    if key not in table.columns:
        raise ValueError(
            f"Got the column {key!r}, but expected one of {', '.join(map(str, table.columns))}."
        )
    column = table[key]
    if column.ndim != 1:
        raise ValueError(
            f"Got {column.shape[1]} columns of the name {key!r}, but expected one: rename them."
        )
    return column


def holds_numbers(value: Any) -> bool:
    """Whether a value is a vector, which has no text."""
    return type(value) is not str and isinstance(value, list | tuple | np.ndarray)


def is_whole(column: Any) -> bool:
    """Whether a column of floating-point numbers, missing ones aside, has none with a fraction."""
    with np.errstate(invalid="ignore"):  # infinity has a fraction that is none
        return bool(np.all(np.mod(column.dropna().to_numpy(np.float64), 1) == 0))


def texts_of(column: Any) -> np.ndarray:
    """One text for each value, None where it is missing, blank or a vector; of 2.0 it is 2."""
    codes, texts = coded_texts(column)
    return np.append(texts, np.array([None]))[codes]  # the last where the code is -1


def coded_texts(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which text each value has, -1 for none; and the texts, each once: each is folded once."""
    import pandas as pd

    column = as_series(column)
    if column.dtype.kind == "M":
        column = column.dt.strftime("%Y%m%d").astype(object)
    whole = column.dtype.kind == "f" and is_whole(column)
    at, values = np.arange(len(column)), column.to_numpy(object)
    if pd.api.types.infer_dtype(column, skipna=True) == "string":  # others may be equal: 1 and True
        at, values = pd.factorize(column)
        values = np.asarray(values, dtype=object)
    there = pd.notna(values)
    if whole:
        values[there] = [f"{x:.0f}" for x in values[there]]
    texts = np.empty(len(values), dtype=object)
    try:
        texts[:] = [
            (known and not holds_numbers(value) and " ".join(str(value).casefold().split())) or None
            for value, known in zip(values, there, strict=True)
        ]
    except ValueError as error:  # a whole number of more than 4,300 digits
        raise ValueError(
            f"Got a value in the column {column.name!r} that has no text: {error}."
        ) from error
    codes, texts = pd.factorize(texts)
    return np.append(codes, -1)[at], texts


def as_series(column: Any) -> Any:
    """A column of pandas; of objects, where half of a surrogate pair is no text for it."""
    import pandas as pd

    try:
        return pd.Series(column)
    except UnicodeEncodeError:
        return pd.Series(column, dtype=object)


def _inferred(column: Any) -> Any:
    """A column of objects by the kind of its values, where pandas has one for them."""
    try:
        return column.infer_objects()
    except UnicodeEncodeError:
        return column
