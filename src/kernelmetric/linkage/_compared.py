"""Pairs of two tables as rows of numbers, and what the numbers say in words."""

from typing import Any

import numpy as np

from kernelmetric.graphs import check_rows
from kernelmetric.linkage._fields import column_of

_SHOWN = 40  # letters of a value in a reason


class Compared:
    """Pairs of two tables as rows of numbers: how alike the fields are, and what texts say.

    Parameters
    ----------
    comparison : RecordComparison
        Fitted.
    left, right : DataFrame
        The tables.
    texts : Texts, or None
        Where the comparison has a field of long text.
    """

    def __init__(self, comparison: Any, left: Any, right: Any, texts: Any):
        self.comparison, self.left, self.right, self.texts = comparison, left, right, texts
        self._columns = [comparison.column(name, left, right) for name in comparison.fields_]

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        text = self.comparison.text_
        more = [] if text is None else [f"{scope}: {said}" for scope, said in text.names]
        return self.comparison.fields_ + more

    def __call__(self, pairs: Any) -> np.ndarray:
        pairs = checked_pairs(pairs, len(self.left), len(self.right))
        S = np.column_stack([compare(pairs) for compare in self._columns])
        return S if self.texts is None else np.hstack([S, self.texts.columns(pairs)])

    def says(self, place: int, row: np.ndarray, pair: np.ndarray) -> str:
        """In words what a column of a row says; columns beyond tell what is missing."""
        n, value = len(self.comparison.fields_), row[place] if place < len(row) else 0.0
        if place >= len(row):
            return "missing" if np.isnan(row[place - len(row)]) else "on both sides"
        if place >= n:
            return self.texts.says(place - n, value, *pair.tolist())
        sides = zip((self.left, self.right), pair, strict=True)
        a, b = (column_of(table, self.comparison.fields_[place]).iloc[k] for table, k in sides)
        return "missing" if np.isnan(value) else f"{_short(a)} beside {_short(b)}"


def checked_pairs(pairs: Any, n_left: int, n_right: int) -> np.ndarray:
    """Row numbers of two tables, refused where they are outside."""
    rows = check_rows(pairs, "given", max(n_left, n_right))
    largest = rows.max(axis=0, initial=-1)
    if np.any(largest >= (n_left, n_right)):
        raise ValueError(
            f"Got the row numbers {largest.tolist()} at most, but expected 0 to {n_left - 1} on "
            f"the left and 0 to {n_right - 1} on the right."
        )
    return rows


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
