"""From the columns of a table to features: which are used, how, and why the others are not."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelmetric.tables import _cells as cells
from kernelmetric.tables._columns import require_columns
from kernelmetric.tables._encoder import TableEncoder, spelled
from kernelmetric.tables._moments import dates_of, formats_of
from kernelmetric.tables._text import TableError

_MOST_CATEGORIES = 40
_FEW = 5  # names may all differ in a small table
KINDS = ("number", "date", "names", "text")  # what a user may say that a column is
OBJECTS = {  # what kernels take as it is, by the names of these kernels
    "molecules": "molecules, by the substructures that they share",
    "ngrams": "strings, by the n-grams that they share",
}
_WORDS = 3  # of a text, at least, in the mean: fewer are a name
_OF_A_PLAN = ("left_out", "notes")  # and of no encoder
_YES = dict.fromkeys(("yes", "y", "true", "t", "ja", "oui", "si", "on"), "yes")
_NO = dict.fromkeys(("no", "n", "false", "f", "nein", "non", "off"), "no")
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|index|key|row)($|[_\W\d])", re.IGNORECASE)
_UNCLEAR = {
    "either": "{!r} may be a number with decimals or with thousands: write it without the comma",
    "mixed": "it has decimal points beside commas, as in {!r}: write all numbers in one way",
    "long": "numbers as long as {} are not told apart: subtract the smallest of them first",
}


@dataclass(eq=False, repr=False)
class ColumnPlan(TableEncoder):
    """Which columns of a table become features, and what was decided about the others.

    Parameters
    ----------
    numbers, categories, left_out : tuple of str
        Columns of numbers, columns of names, and columns that are not used.
    notes : tuple of str
        A sentence for every decision that the user should know of.
    commas, marks, units, missing, dates, spellings, texts, objects : tuple of str, and dicts
        As in :class:`TableEncoder`.
    unused : tuple of str
        What the encoder knows and does not use: see :meth:`encoder`.
    label, identifier : str or None
        The column of labels; the first column that names rows, each by a text of its own.

    See Also
    --------
    kernelmetric.tables.plan_columns : Makes it.

    Examples
    --------
    >>> from kernelmetric.tables import ColumnPlan
    >>> plan = ColumnPlan(numbers=("kg",), categories=("colour",), left_out=(), notes=())
    >>> plan.encoder()
    TableEncoder(categories=('colour',), numbers=('kg',), unused=())
    """

    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> list[str]:
        """The columns that become features."""
        named = [*self.categories, *self.texts, *(self.dates or {})]
        return [*named, *self.numbers, *(self.objects or {})]

    def encoder(self) -> TableEncoder:
        """The plan as a transformer, still to be fitted.

        Returns
        -------
        TableEncoder
            From tables to arrays of numbers.
        """
        own = {name: copy(part) for name, part in vars(self).items() if name not in _OF_A_PLAN}
        own["unused"] = (*self.left_out, *([] if self.label is None else [self.label]))
        return TableEncoder(**own)


def plan_columns(
    frame: Any,
    *,
    label: str | None = None,
    use: Iterable[str] = (),
    ignore: Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    n_rows: int | None = None,
) -> ColumnPlan:
    """Decide what every column of a table is good for.

    Columns that hold one value, nothing, or an identifier are left out, as are names of too many
    kinds that are no sentences.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str, default=None
        The column of labels, no feature.
    use, ignore : iterable of str, default=()
        Columns to use even though they look like identifiers, and columns not to use.
    kinds : mapping of str to str, default=None
        What columns are: 'number', 'date', 'names', 'text'; for kernels 'molecules', 'ngrams'.
    n_rows : int, default=None
        The rows of the table that these are a sample of; None, where they are all.

    Returns
    -------
    ColumnPlan
        The decisions, with a sentence for each that is not plain. That none is left is refused.

    See Also
    --------
    kernelmetric.tables.TableEncoder : Encodes by such a plan.
    kernelmetric.tables.ColumnPlan : What it returns.

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
    ('kg: 1 of 3 values are missing, which is a state of its own.',
     'colour: 2 names become features, one each.',
     'unit: left out, it holds one value only.')
    """
    use, ignore, kinds = tuple(use), tuple(ignore), dict(kinds or {})
    require_columns(frame, [*use, *ignore, *kinds, *([] if label is None else [label])])
    objects = {name: kind for name, kind in kinds.items() if kind in OBJECTS}
    others = {*ignore, *objects, label}
    looks = {name: _Look(frame[name]) for name in frame.columns if name not in others}
    # '1,234' is 1.234 in a table whose other columns have decimal commas, else who knows
    comma = any(look.way.kind == "comma" for look in looks.values())
    found: dict[str, list[str]] = {kind: [] for kind in KINDS} | {"out": [*ignore]}
    notes = [f"{name}: {OBJECTS[kind]}." for name, kind in objects.items()]
    for name, look in looks.items():
        if comma and look.way.kind == "either":
            look.way = look.way._replace(kind="comma")
        asked = kinds.get(name)
        forced = name in use or bool(asked)
        kind, said = _judge(look, n_rows or len(frame), forced=forced, asked=asked)
        found[kind].append(name)
        notes += [f"{name}: {sentence}" for sentence in said]
    if not objects and not any(found[kind] for kind in KINDS):
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
        tuple(found["names"]),
        tuple(sorted(set(found["out"]), key=frame.columns.get_loc)),
        tuple(notes),
        label=label,
        commas=tuple(name for name in numbers if looks[name].way.kind == "comma"),
        missing={c: words for c in (*numbers, *found["date"]) if (words := looks[c].words)},
        identifier=next(iter([*named, *own]), None),
        dates={name: looks[name].format for name in found["date"]},
        texts=tuple(found["text"]),
        marks={name: looks[name].way.mark for name in numbers if looks[name].way.mark},
        units={name: looks[name].way.unit for name in numbers if looks[name].way.unit},
        spellings={c: looks[c].spellings for c in found["names"] if looks[c].spellings},
        objects=objects,
    )


class _Look:
    """A column as it looks: how many kinds of values it has, and how it writes them."""

    def __init__(self, column: Any):
        self.name = str(column.name)
        self.column = column
        self.format = ""  # of dates
        self.spellings: dict[str, str] = {}
        if column.dtype.kind in "iufmM":  # the type has said all, texts are not needed
            self.texts: list[str] = []
            self.n_present, self.n_kinds = int(column.notna().sum()), int(column.nunique())
            self.way = cells.Writing()
        else:
            self.texts = [text for text in cells.texts_of(column) if text is not None]
            self.n_present, self.n_kinds = len(self.texts), len(set(self.texts))
            self.way = cells.way_of(self.texts)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The values of the rows, NaN where they are no numbers; of dates zeros."""
        if not self.format:
            return cells.numbers_of(self.column, self.way)
        dates = dates_of(cells.texts_of(self.column), self.format)
        return np.where(np.isnat(dates), np.nan, 0.0)

    @property
    def words(self) -> tuple[str, ...]:
        """What stands between the numbers or dates and is none."""
        if self.column.dtype.kind in "mM":
            return ()
        return tuple(sorted(set(cells.strange_texts(self.column, self.numbers).values())))


def _judge(
    look: _Look, n_rows: int, *, forced: bool, asked: str | None = None
) -> tuple[str, list[str]]:
    """What a column is, of ``KINDS``, or "out"; and what to say about it."""
    if look.n_present == 0:
        return "out", ["left out, it is empty."]
    if look.n_kinds == 1:
        return "out", ["left out, it holds one value only."]
    if asked == "names" or asked == "text":
        return _as_text(look) if asked == "text" else _as_names(look, [])
    if look.column.dtype.kind in "mM":
        look.format = "dates"
        return "date", ["dates count by their age, and by their places in the week and the year."]
    if asked == "date" or (asked is None and look.way.kind == "text"):
        formats = formats_of(look.texts)
        if formats:
            return _judge_dates(look, formats, forced)
        if asked:
            raise TableError(
                f"Got --as {look.name} date, but expected dates such as 2026-06-30 there, not "
                f"{next(iter(look.texts), '')!r}."
            )
    if look.way.kind == "point" and cells.lost_digits(look.column, look.numbers):
        look.way = look.way._replace(kind="long")
    if look.way.kind in _UNCLEAR:
        odd = (text for text in look.texts if not cells.is_plain_number(text))
        text = next(odd, f"{np.nanmax(look.numbers):.0f}")
        reason = _UNCLEAR[look.way.kind].format(text)
        return _left_out(look, reason, [], forced)
    code = next(filter(cells.is_code, look.texts), None)
    if look.way.kind != "text" and (code is None or asked == "number"):
        numbers = look.numbers
        if len(np.unique(numbers[~np.isnan(numbers)])) > 1:
            return _judge_numbers(look, numbers, n_rows, forced)
    if asked == "number":
        raise TableError(
            f"Got --as {look.name} number, but expected numbers there, not {look.texts[0]!r}."
        )
    said = []
    if look.way.kind != "text" and code is not None:
        said = [f"numbers with leading zeros such as {code!r} are taken as names."]
    return _judge_names(look, said, forced)


def _left_out(look: _Look, reason: str, said: list[str], forced: bool) -> tuple[str, list[str]]:
    """What is said of a column that cannot be used; refused where it has to be."""
    if forced:
        raise TableError(f"Cannot use the column {look.name!r}: {reason}.")
    return "out", [*said, f"left out, {reason}."]


def _judge_names(look: _Look, said: list[str], forced: bool) -> tuple[str, list[str]]:
    """Whether texts are names, sentences, or identifiers."""
    n, n_present, kinds = len(look.column), look.n_present, look.n_kinds
    own = kinds == n > 2 and _ID_NAME.search(look.name)
    many = own or kinds > max(_FEW, n_present / 2)
    if not own and (many or kinds > _MOST_CATEGORIES):
        n_words = np.mean([len(text.split()) for text in look.texts])
        different = {re.sub("[0-9]", "", text) for text in look.texts}  # 'tree of row 7' is a name
        if n_words >= _WORDS and len(different) > _FEW and n_present > _MOST_CATEGORIES:
            return _as_text(look)
    if not forced and many:
        return "out", [*said, "left out, most rows have a text of their own, like an identifier."]
    if max(Counter(map(spelled, look.texts)).values()) < 2:
        return _left_out(look, "no name of it is in two rows", said, forced)
    named = _as_names(look, said)
    n_names = len(set(look.spellings.values())) or kinds
    if not forced and n_names > _MOST_CATEGORIES:
        return "out", [*said, f"left out, {kinds} different texts are too many for categories."]
    return named


def _as_text(look: _Look) -> tuple[str, list[str]]:
    return "text", ["free text counts by its groups of three and four letters."]


def _as_names(look: _Look, said: list[str]) -> tuple[str, list[str]]:
    """Names, of which those that differ in spelling alone are one."""
    n, n_present, kinds = len(look.column), look.n_present, look.n_kinds
    ways = Counter(look.texts)
    folded = {spelled(text) for text in ways}
    if folded <= {*_YES, *_NO} and folded & {*_YES} and folded & {*_NO}:
        if folded != {"yes", "no"} or len(ways) > 2:
            look.spellings = _YES | _NO
        return "names", [*said, "yes or no."]
    if len(folded) < len(ways):
        # the most frequent way to write a name is its name
        rarest = sorted(ways, key=lambda text: (ways[text], text.istitle(), text))
        look.spellings = {spelled(text): text for text in rarest}
        twice = next(t for t in rarest if look.spellings[spelled(t)] != t)
        name = look.spellings[spelled(twice)]
        said = [*said, f"names that differ in capitals are one, {twice!r} is {name!r}."]
        kinds = len(folded)
    extra = "" if n_present == n else f", {n - n_present} missing ones another"
    return "names", [*said, f"{kinds} names become features, one each{extra}."]


def _judge_dates(look: _Look, formats: list[str], forced: bool) -> tuple[str, list[str]]:
    text = look.texts[0]
    if len(formats) > 1:
        reason = f"{text!r} may begin with the day or with the month: write 2026-06-30"
        return _left_out(look, reason, [], forced)
    look.format = formats[0]
    said = f"dates such as {text!r} count by their age, and by their places in the week and year."
    if "%Y" not in look.format:
        said = f"times of day such as {text!r} count by their place in the day."
    return "date", [said, *_gaps(look, int(np.sum(~np.isnan(look.numbers))), "dates")]


def _gaps(look: _Look, n_known: int, what: str) -> list[str]:
    """Sentences on values that are missing, or no numbers."""
    said, n = [], len(look.column)
    unreadable = look.n_present - n_known
    if unreadable:
        said.append(
            f"{unreadable} values such as {look.words[0]!r} are no {what}, taken as missing."
        )
    if n > n_known:
        said.append(f"{n - n_known} of {n} values are missing, which is a state of its own.")
    return said


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
    said, way = [], look.way
    if way.unit:
        said.append(f"numbers in {way.unit}.")
    if way.mark:
        text = next(text for text in look.texts if way.mark in way.bare(text))
        said.append(f"{way.mark!r} parts thousands, {text!r} is {way.number(text):.10g}.")
    elif way.kind == "comma":
        text = next(text for text in look.texts if "," in text)
        said.append(f"decimals follow a comma, {text!r} is {way.number(text):.10g}.")
    return "number", [*said, *_gaps(look, len(values), "numbers")]
