"""Columns of tables as texts that can be compared: trimmed, in small letters, missing as None."""

from __future__ import annotations

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
        return pd.DataFrame(records)
    raise ValueError(
        f"Got records of type {type(records).__name__}, but expected a data frame, or a list of "
        "dictionaries: try read_table for a file."
    )


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
    return table[key]


def texts_of(column: Any) -> np.ndarray:
    """One text for each value, None where it is missing or blank.

    Whole numbers lose the ".0" that a missing one beside them brings; days are written 20261130.
    """
    import pandas as pd

    column = pd.Series(column)
    there = column.notna().to_numpy()
    if column.dtype.kind == "M":
        values = column.dt.strftime("%Y%m%d").to_numpy(object)
    elif column.dtype.kind == "f" and np.all(np.mod(column[there], 1) == 0):
        values = column.map(lambda x: f"{x:.0f}").to_numpy(object)
    else:
        values = column.to_numpy(object)
    texts = np.empty(len(values), dtype=object)
    texts[:] = [
        " ".join(str(value).casefold().split()) or None if known else None
        for value, known in zip(values, there, strict=True)
    ]
    return texts
