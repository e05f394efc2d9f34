"""From the columns of a table to features: which are used, how, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.tables._cells import (
    is_code,
    is_plain_number,
    lost_digits,
    numbers_of,
    strange_texts,
    texts_of,
    writing_of,
)
from kernelmetric.tables._columns import require_columns
from kernelmetric.tables._encoder import TableEncoder
from kernelmetric.tables._text import TableError

if TYPE_CHECKING:
    import pandas as pd

_MOST_CATEGORIES = 40
_FEW = 5  # names may all differ in a small table
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|index|key|row)($|[_\W\d])", re.IGNORECASE)
_UNCLEAR = {
    "either": "{!r} may be a number with decimals or with thousands: write it without the comma",
    "grouped": "{!r} has a mark of thousands: write numbers without it",
    "mixed": "it has decimal points beside commas, as in {!r}: write all numbers in one way",
    "long": "numbers as long as {} are not told apart: subtract the smallest of them first",
}


@dataclass(frozen=True)
class ColumnPlan:
    """Which columns of a table become features, and what was decided about the others.

    Parameters
    ----------
    numbers, categories, left_out : tuple of str
        Columns of numbers, columns of names, and columns that are not used.
    notes : tuple of str
        A sentence for every decision that the user should know of.
    label, identifier : str or None
        The column of labels, and the first that names the rows, each by a text of its own.
    commas, missing : tuple of str, dict of str to tuple of str
        As in :class:`TableEncoder`.

    Examples
    --------
    >>> from kernelmetric.tables import ColumnPlan
    >>> plan = ColumnPlan(numbers=("kg",), categories=("colour",), left_out=(), notes=())
    >>> plan.encoder()
    TableEncoder(categories=('colour',), missing={}, numbers=('kg',), unused=())
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    label: str | None = None
    commas: tuple[str, ...] = ()
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    identifier: str | None = None

    def encoder(self) -> TableEncoder:
        """The plan as a transformer, still to be fitted.

        Returns
        -------
        TableEncoder
            From tables to arrays of numbers.
        """
        return TableEncoder(
            self.numbers,
            self.categories,
            commas=self.commas,
            missing=dict(self.missing),
            unused=(*self.left_out, *([] if self.label is None else [self.label])),
            label=self.label,
            identifier=self.identifier,
        )


def plan_columns(
    frame: pd.DataFrame,
    *,
    label: str | None = None,
    use: Iterable[str] = (),
    ignore: Iterable[str] = (),
    n_rows: int | None = None,
) -> ColumnPlan:
    """Decide what every column of a table is good for.

    Columns that hold one value, nothing, or an identifier are left out, as are names of too many
    kinds.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str, default=None
        The column of labels, no feature.
    use, ignore : iterable of str, default=()
        Columns to use even though they look like identifiers, and columns not to use.
    n_rows : int, default=None
        The rows of the table that these are a sample of; None, where they are all.

    Returns
    -------
    ColumnPlan
        The decisions, with a sentence for each that is not plain. That none is left is refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import plan_columns
    >>> frame = pd.DataFrame({"kg": [1.0, 2.0, None], "colour": ["red", "red", "blue"],
    ...                       "unit": ["EUR"] * 3, "kind": ["a", "b", "a"]})
    >>> plan = plan_columns(frame, label="kind")
    >>> plan.numbers, plan.categories, plan.left_out
    (('kg',), ('colour',), ('unit',))
    >>> plan.notes
    ('kg: 1 of 3 values are missing and become the median.',
     'colour: 2 names become 2 features of zeros and ones.',
     'unit: left out, it holds one value only.')
    """
    use, ignore = tuple(use), tuple(ignore)
    require_columns(frame, [*use, *ignore, *([] if label is None else [label])])
    looks = {
        name: _Look(frame[name]) for name in frame.columns if name != label and name not in ignore
    }
    # '1,234' is 1.234 in a table whose other columns have decimal commas, else who knows
    comma = any(look.writing == "comma" for look in looks.values())
    found: dict[str, list[str]] = {"number": [], "category": [], "out": [*ignore]}
    notes: list[str] = []
    for name, look in looks.items():
        if comma and look.writing == "either":
            look.writing = "comma"
        kind, said = _judge(look, n_rows or len(frame), forced=name in use)
        found[kind].append(name)
        notes += [f"{name}: {sentence}" for sentence in said]
    if not found["number"] and not found["category"]:
        raise TableError(
            "No column is left to learn from: "
            + (" ".join(notes) or "the table holds nothing but the label.")
            + " Try --use COLUMN for one that is left out wrongly."
        )
    numbers = found["number"]
    own = [c for c in found["out"] if c in looks and looks[c].n_kinds == len(frame)]
    named = [name for name in own if _ID_NAME.search(name)]
    own = [name for name in own if not any(" " in text for text in looks[name].texts)]
    return ColumnPlan(
        tuple(numbers),
        tuple(found["category"]),
        tuple(sorted(set(found["out"]), key=frame.columns.get_loc)),
        tuple(notes),
        label,
        commas=tuple(name for name in numbers if looks[name].writing == "comma"),
        missing={name: words for name in numbers if (words := looks[name].words)},
        identifier=next(iter([*named, *own]), None),
    )


class _Look:
    """A column as it looks: how many kinds of values it has, and how it writes numbers."""

    def __init__(self, column: Any):
        self.name = str(column.name)
        self.column = column
        if column.dtype.kind in "iuf":  # the type has said all, texts are not needed
            self.texts: list[str] = []
            self.n_present, self.n_kinds = int(column.notna().sum()), int(column.nunique())
            self.writing = "point"
        else:
            self.texts = [text for text in texts_of(column) if text is not None]
            self.n_present, self.n_kinds = len(self.texts), len(set(self.texts))
            self.writing = writing_of(self.texts)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The values of the rows, NaN where they are no numbers."""
        return numbers_of(self.column, comma=self.writing == "comma")

    @property
    def words(self) -> tuple[str, ...]:
        """What stands between the numbers and is none."""
        return tuple(sorted(set(strange_texts(self.column, self.numbers).values())))


def _judge(look: _Look, n_rows: int, *, forced: bool) -> tuple[str, list[str]]:
    """What a column is: a number, a category or nothing; and what to say about it."""
    n, n_present, kinds = len(look.column), look.n_present, look.n_kinds
    if n_present == 0:
        return "out", ["left out, it is empty."]
    if look.column.dtype.kind in "mM":
        return "out", ["left out, dates say nothing as they are: make them numbers first."]
    if kinds == 1:
        return "out", ["left out, it holds one value only."]
    if look.writing == "point" and lost_digits(look.column, look.numbers):
        look.writing = "long"
    if look.writing in _UNCLEAR:
        odd = (text for text in look.texts if not is_plain_number(text))
        text = next(odd, f"{np.nanmax(look.numbers):.0f}")
        reason = _UNCLEAR[look.writing].format(text)
        if forced:
            raise TableError(f"Cannot use the column {look.name!r}: {reason}.")
        return "out", [f"left out, {reason}."]
    code = next(filter(is_code, look.texts), None)
    if look.writing != "text" and code is None:
        numbers = look.numbers
        if len(np.unique(numbers[~np.isnan(numbers)])) > 1:
            return _judge_numbers(look, numbers, n_rows, forced)
    said = []
    if look.writing != "text" and code is not None:
        said = [f"numbers with leading zeros such as {code!r} are taken as names."]
    own = kinds == n > 2 and _ID_NAME.search(look.name)
    if not forced and (own or kinds > max(_FEW, n_present / 2)):
        return "out", [*said, "left out, most rows have a text of their own, like an identifier."]
    if not forced and kinds > _MOST_CATEGORIES:
        return "out", [*said, f"left out, {kinds} different texts are too many for categories."]
    extra = "" if n_present == n else f", {n - n_present} missing ones included"
    width = kinds + (n_present < n)
    return "category", [*said, f"{kinds} names become {width} features of zeros and ones{extra}."]


def _judge_numbers(
    look: _Look, numbers: np.ndarray, n_rows: int, forced: bool
) -> tuple[str, list[str]]:
    n = len(look.column)
    values = np.sort(numbers[~np.isnan(numbers)])  # the order of the rows decides nothing
    own = len(values) == n > 2 and np.all(np.diff(values) > 0) and np.all(values % 1 == 0)
    # Of a sample, numbers that are not of the rows would hardly all differ in so small a range.
    counting = own and (np.ptp(np.diff(values)) == 0 or values[-1] - values[0] < n_rows)
    if not forced and own and (counting or _ID_NAME.search(look.name)):
        return "out", ["left out, whole numbers that differ in every row are an identifier."]
    said = []
    if look.writing == "comma":
        text = next(text for text in look.texts if "," in text)
        said.append(f"decimals follow a comma, {text!r} is {text.replace(',', '.')}.")
    unreadable = look.n_present - len(values)
    if unreadable:
        text = look.words[0]
        said.append(f"{unreadable} values such as {text!r} are no numbers, taken as missing.")
    missing = n - len(values)
    if missing:
        said.append(f"{missing} of {n} values are missing and become the median.")
    return "number", said
