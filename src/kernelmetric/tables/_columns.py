"""Columns of a table: those asked for, how far numbers spread; what turns them into features."""

import difflib
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelmetric.tables._text import TableError

_FEWEST = 2  # rows of a name that has a feature of its own
MOST_NAMES = 100  # with features of their own, those of most rows
SHOWN = 3  # names and values of a kind in a message
_MOST_COLUMNS = 12


class TableTransformer(TransformerMixin, BaseEstimator):
    """From tables to features; classes define ``_fit``, ``_features``, ``_remarks``, ``_names``."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn what the columns are, their scales and their names.

        Parameters
        ----------
        X : DataFrame, Table or ndarray of objects
            The table.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._fit(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of a table.

        Parameters
        ----------
        X : DataFrame, Table or ndarray of objects
            A table with the columns that are used, in any order where they have names.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
            Finite numbers.
        """
        check_is_fitted(self)
        return self._features(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        ndarray of str
            The column, and for names the name.
        """
        check_is_fitted(self)
        return self._names()

    def remarks(self, X: Any) -> list[str]:
        """What a table holds that was not there in fit.

        Parameters
        ----------
        X : DataFrame, Table or ndarray of objects
            A table.

        Returns
        -------
        list of str
            Sentences on missing values, names never seen and unknown columns.
        """
        check_is_fitted(self)
        return self._remarks(X)


def require_columns(frame: Any, names: Iterable[str]) -> None:
    """Refuse names that are no columns, with those that were perhaps meant.

    Parameters
    ----------
    frame, names : DataFrame, iterable of str
        The table, and names that must be columns of it, or a TableError is raised.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import require_columns
    >>> require_columns(pd.DataFrame({"kind": ["apple"]}), ["kind"])
    """
    require_names([str(column) for column in frame.columns], names)


def require_names(found: list[str], wanted: Iterable[str], table: str = "The table") -> None:
    """Refuse names that are none of those found, with the one that was perhaps meant."""
    known = set(found)
    missing = [name for name in wanted if name not in known]
    if missing:
        near = difflib.get_close_matches(missing[0], found, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        columns = few(found, _MOST_COLUMNS, str)
        raise TableError(
            f"{table} has no column {few(missing, _MOST_COLUMNS)}; its columns are {columns}.{hint}"
        )


def places_of(columns: Any, n: int, names: list[str] | None = None) -> list[int]:
    """Places, among n columns, of those given by place, by name or by a mask."""
    many = isinstance(columns, Iterable) and not isinstance(columns, str)
    items: list[Any] = [columns] if getattr(columns, "ndim", 1 if many else 0) == 0 else [*columns]
    masked = [isinstance(item, bool | np.bool_) for item in items]
    if all(masked) and any(items) and len(items) == n:
        return np.flatnonzero(items).tolist()
    odd = [item for item in items if not isinstance(item, int | np.integer)]
    if any(masked) or not items or (names is None and odd):
        raise ValueError(
            f"Got columns={columns!r} for a table of {n} columns, but expected places, as whole "
            f"numbers, or a mask of {n} booleans: names need a data frame."
        )
    return [_place_of(item, n, names) for item in items]


def _place_of(column: Any, n: int, names: list[str] | None) -> int:
    """The place of a column, given by that or by its name."""
    name = str(column)
    if isinstance(column, int | np.integer) and -n <= column < n:
        place = int(column) % n
        if names is not None and name in names and names[place] != name:
            raise ValueError(
                f"Got column {column}, but expected one that is clear: a column of that name is "
                f"in place {names.index(name)}. Try its name as text, {name!r}."
            )
        return place
    if names is None:
        raise ValueError(f"Got column {column} of {n}, but expected a place from 0 to {n - 1}.")
    require_names(names, [name], "The table that was learned from")
    return names.index(name)


def spread_of(numbers: np.ndarray, name: str) -> float:
    """The standard deviation of a column, whose squares need not be numbers; 1 where all agree."""
    width = float(np.nanmax(numbers) - np.nanmin(numbers)) if len(numbers) else 0.0
    if width == 0:
        return 1.0
    spread = width * float(np.nanstd(numbers / width))
    if spread < np.finfo(np.float64).tiny:
        raise TableError(
            f"Got numbers in column {name!r} that differ by {width:.3g}: use a smaller unit."
        )
    return spread


def frequent(values: Collection[str | None]) -> tuple[list[str], list[str], float]:
    """Names with features of their own, sorted, the others, and the share of rows with these."""
    counts = Counter(value for value in values if value is not None)
    by_count = sorted(counts, key=lambda name: (-counts[name], name))
    kept = [name for name in by_count[:MOST_NAMES] if counts[name] >= _FEWEST]
    rare = sorted(set(counts) - set(kept))
    return sorted(kept), rare, sum(counts[name] for name in rare) / len(values)


def few(items: Iterable[Any], most: int = SHOWN, show: Any = repr) -> str:
    """The first of some names or values, for a message."""
    shown = list(items)
    return ", ".join(map(show, shown[:most])) + (", ..." if len(shown) > most else "")
