"""Pairs of two tables as rows of numbers, and what the numbers say in words."""

from typing import Any

import numpy as np

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

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        text = self.comparison.text_
        more = [] if text is None else [f"{scope}: {said}" for scope, said in text.names]
        return self.comparison.fields_ + more

    def __call__(self, pairs: Any) -> np.ndarray:
        S = self.comparison.similarities(self.left, self.right, pairs)
        if self.texts is None:
            return S
        return np.hstack([S, self.texts.columns(np.asarray(pairs).reshape(-1, 2))])

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


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
