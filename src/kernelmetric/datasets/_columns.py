"""From the columns of a table to features: which are used, how, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelmetric.datasets._cells import (
    is_code,
    is_plain_number,
    lost_digits,
    numbers_of,
    texts_of,
    writing_of,
)
from kernelmetric.datasets._encoder import TableEncoder
from kernelmetric.datasets._tables import require_columns
from kernelmetric.datasets._text import TableError

if TYPE_CHECKING:
    import pandas as pd

_MOST_CATEGORIES = 40
_FEW = 5  # names may all differ in a small table
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|index|key|row)($|[_\W\d])", re.IGNORECASE)
_MANY_VALUES = 20  # numbers that may not be names of classes
_FEW_VALUES = 5  # numbers that may be
_WHOLE = re.compile(r"^([+-]?[1-9][0-9]*|0)\.0+$")
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
    numbers : tuple of str
        Columns of numbers: missing ones become the median, then each is standardized.
    categories : tuple of str
        Columns of names: a feature of zeros and ones for each; a missing name is one of them.
    left_out : tuple of str
        Columns that are not used.
    notes : tuple of str
        A sentence for every decision that the user should know of.
    label : str or None
        The column of labels.
    commas : tuple of str
        Columns of numbers whose decimals follow a comma.
    missing : dict of str to tuple of str
        Words that stand for a missing number, by column.

    See Also
    --------
    plan_columns : Makes the plan of a table.

    Examples
    --------
    >>> from kernelmetric.datasets import ColumnPlan
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
        )


def plan_columns(
    frame: pd.DataFrame,
    *,
    label: str | None = None,
    use: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> ColumnPlan:
    """Decide what every column of a table is good for.

    Numbers are standardized, names become zeros and ones, missing values are filled. Columns
    that hold one value, nothing, or an identifier are left out, as are names of too many kinds.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str, default=None
        The column of labels, no feature.
    use : iterable of str, default=()
        Columns to use even though they look like identifiers.
    ignore : iterable of str, default=()
        Columns not to use.

    Returns
    -------
    ColumnPlan
        The decisions, with a sentence for each that is not plain.

    Raises
    ------
    TableError
        If a named column is not there, or none is left.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import plan_columns
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
        kind, said = _judge(look, forced=name in use)
        found[kind].append(name)
        notes += [f"{name}: {sentence}" for sentence in said]
    if not found["number"] and not found["category"]:
        raise TableError(
            "No column is left to learn from: "
            + (" ".join(notes) or "the table holds nothing but the label.")
            + " Try --use COLUMN for one that is left out wrongly."
        )
    numbers = found["number"]
    return ColumnPlan(
        tuple(numbers),
        tuple(found["category"]),
        tuple(sorted(set(found["out"]), key=frame.columns.get_loc)),
        tuple(notes),
        label,
        commas=tuple(name for name in numbers if looks[name].writing == "comma"),
        missing={name: words for name in numbers if (words := looks[name].words)},
    )


def labels_of(frame: pd.DataFrame, label: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Labels, the rows that have one, and sentences about them.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str
        The column of labels: names, or whole numbers.

    Returns
    -------
    y : ndarray of str
        The labels of the rows that have one.
    rows : ndarray of bool
        Which rows these are.
    notes : list of str
        Sentences on rows and classes.

    Raises
    ------
    TableError
        If the column holds no classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import labels_of
    >>> y, rows, notes = labels_of(pd.DataFrame({"kind": ["a", "b", None, "a", "b"]}), "kind")
    >>> y.tolist(), notes
    (['a', 'b', 'a', 'b'], ['1 rows have no kind and are left out.'])
    """
    require_columns(frame, [label])
    cells = texts_of(frame[label])
    rows = np.array([text is not None for text in cells], dtype=bool)
    column = frame[label][rows]
    texts = [text for text in cells if text is not None]
    writing = writing_of(texts)
    if writing in ("point", "comma") and not any(map(is_code, texts)):
        values = numbers_of(column, comma=writing == "comma")
        fractions = np.flatnonzero(values % 1 > 0)
        if len(fractions) and not np.isnan(values).any():
            raise TableError(
                f"The column {label!r} holds numbers with fractions such as {texts[fractions[0]]}, "
                "but expected classes: try --task regression to predict the numbers, another "
                "column, or cut them into classes first."
            )
    y = np.array([class_name(text) for text in texts])
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise TableError(
            f"The column {label!r} holds {len(classes)} class(es), but expected at least two."
        )
    if len(classes) > len(y) / 2:
        raise TableError(
            f"The column {label!r} holds {len(classes)} different values in {len(y)} rows, but "
            "expected classes of several rows each: is it the right column? Numbers are predicted "
            "with --task regression."
        )
    notes = [] if rows.all() else [f"{np.sum(~rows)} rows have no {label} and are left out."]
    if counts.min() == 1:
        alone = classes[counts == 1]
        notes.append(f"{len(alone)} classes have one row only, such as {alone[0]}.")
    if len(classes) > _MANY_VALUES and writing == "point" and not any(map(is_code, texts)):
        notes.append(
            f"The {len(classes)} numbers of {label} are taken for classes: --task regression would "
            "predict them as numbers."
        )
    return y, rows, notes


def weights_of(frame: pd.DataFrame, column: str) -> np.ndarray:
    """What the rows of a table count, by one of its columns.

    Parameters
    ----------
    frame : DataFrame
        The table.
    column : str
        The column of weights.

    Returns
    -------
    ndarray of float
        One for every row, not negative.

    Raises
    ------
    TableError
        If a row has none, or what it has is no weight.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import weights_of
    >>> weights_of(pd.DataFrame({"people": ["2", "0.5"]}), "people").tolist()
    [2.0, 0.5]
    """
    require_columns(frame, [column])
    cells = texts_of(frame[column])
    writing = writing_of([text for text in cells if text is not None])
    w = numbers_of(frame[column], comma=writing == "comma")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise TableError(
            f"The column {column!r} holds {cells[bad[0]] or 'nothing'} in row {bad[0]}, but "
            "expected weights: finite numbers that are not negative. Zero leaves a row out."
        )
    if not w.any():
        raise TableError(
            f"The column {column!r} holds zero in all rows, but expected some weight: leave "
            "--weights out, and all rows count alike."
        )
    return w


def targets_of(frame: pd.DataFrame, label: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Numbers to predict, the rows that have one, and sentences about them.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str
        The column of numbers.

    Returns
    -------
    y : ndarray of float
        The numbers of the rows that have one.
    rows : ndarray of bool
        Which rows these are.
    notes : list of str
        Sentences on rows and numbers.

    Raises
    ------
    TableError
        If the column does not hold numbers, or the same in every row.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import targets_of
    >>> y, rows, notes = targets_of(pd.DataFrame({"price": ["1.5", None, "3"]}), "price")
    >>> y.tolist(), notes[0]
    ([1.5, 3.0], '1 rows have no price and are left out.')
    """
    require_columns(frame, [label])
    cells = texts_of(frame[label])
    rows = np.array([text is not None for text in cells], dtype=bool)
    texts = [text for text in cells if text is not None]
    writing = writing_of(texts)
    y = numbers_of(frame[label][rows], comma=writing == "comma")
    if writing not in ("point", "comma") or np.isnan(y).any():
        odd = texts[int(np.argmax(np.isnan(y)))] if np.isnan(y).any() else texts[0] if texts else ""
        raise TableError(
            f"The column {label!r} holds {odd!r}, but expected finite numbers to predict: try "
            "--task classification, or another column."
        )
    n_values = len(np.unique(y))
    if n_values < 2:
        raise TableError(
            f"The column {label!r} holds the same number in every row, but expected different "
            "ones: nothing can be learned from it."
        )
    notes = [] if rows.all() else [f"{np.sum(~rows)} rows have no {label} and are left out."]
    if n_values <= _FEW_VALUES:
        notes.append(
            f"The column {label} holds only {n_values} different numbers: if they are classes, try "
            "--task classification."
        )
    return y, rows, notes


def class_name(text: str) -> str:
    """What a label is called: 2.0 is the class 2 in every file."""
    return _WHOLE.sub(r"\1", text)


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
        if not np.isnan(self.numbers).any():
            return ()
        strange = self.column[np.isnan(self.numbers)]
        return tuple(sorted({text for text in texts_of(strange) if text is not None}))


def _judge(look: _Look, *, forced: bool) -> tuple[str, list[str]]:
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
    codes = [text for text in look.texts if is_code(text)]
    if look.writing != "text" and not codes:
        numbers = look.numbers
        if len(np.unique(numbers[~np.isnan(numbers)])) > 1:
            return _judge_numbers(look, numbers, forced)
    said = []
    if look.writing != "text" and codes:
        said = [f"numbers with leading zeros such as {codes[0]!r} are taken as names."]
    own = kinds == n > 2 and _ID_NAME.search(look.name)
    if not forced and (own or kinds > max(_FEW, n_present / 2)):
        return "out", [*said, "left out, most rows have a text of their own, like an identifier."]
    if not forced and kinds > _MOST_CATEGORIES:
        return "out", [*said, f"left out, {kinds} different texts are too many for categories."]
    extra = "" if n_present == n else f", {n - n_present} missing ones included"
    width = kinds + (n_present < n)
    return "category", [*said, f"{kinds} names become {width} features of zeros and ones{extra}."]


def _judge_numbers(look: _Look, numbers: np.ndarray, forced: bool) -> tuple[str, list[str]]:
    n = len(look.column)
    values = np.sort(numbers[~np.isnan(numbers)])  # the order of the rows decides nothing
    own = len(values) == n > 2 and np.all(np.diff(values) > 0) and np.all(values % 1 == 0)
    counting = own and np.ptp(np.diff(values)) == 0
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
