"""What a single cell is: missing, a number, or a name; and how a column writes its numbers."""

import re
from collections import Counter
from collections.abc import Collection
from decimal import Decimal
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

# The words that pandas takes for a missing value, in files and here.
MISSING = frozenset([
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
])  # fmt: skip
_GAPS = ("NAType", "NaTType")  # of pandas, which need not be there
_NEAR = 1e6  # in steps of floats: rounding is a loss among numbers no farther apart
MOSTLY = 0.8  # of the values present: the rest are taken for ways to write "missing"
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+" + _EXPONENT)
_EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,234 is 1.234 or 1234
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}([., '’\u00a0\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_SIGN = "[€$£¥₹]|EUR|USD|GBP|CHF"
_WITH_UNIT = re.compile(
    rf"({_SIGN})?\s*[+-]?[0-9.,][0-9.,'’ \u00a0\u202f]*{_EXPONENT}\s*"
    rf"({_SIGN}|%|‰|°C|[^\W\d_]{{1,5}}[²³]?(?:/[^\W\d_]{{1,3}})?)?"
)
# A number with a decimal point, or a whole one; one that begins with a needless zero, as codes do.
_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)" + _EXPONENT
is_plain_number = re.compile(_PLAIN).fullmatch
_are_lines_of_numbers = re.compile(rf"(?:{_PLAIN}\n)*+").fullmatch
is_code = re.compile(r"0[0-9]+").fullmatch


def is_gap(value: Any) -> bool:
    """Whether a value says that there is none, in the way of whatever library."""
    if type(value) in (str, float):  # most are: what follows takes longer
        return value != value
    if value is None or type(value).__name__ in _GAPS:
        return True
    if isinstance(value, Decimal):  # of which some cannot be compared
        return value.is_nan()
    return isinstance(value, np.datetime64 | np.timedelta64 | Number) and bool(value != value)


def text_of(value: Any) -> str | None:
    """A value as text, None where it is missing; 2.0 as "2", for codes stand beside gaps."""
    if isinstance(value, str):
        return value.strip() or None
    if is_gap(value):
        return None
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def texts_of(column: Any) -> list[str | None]:
    """The cells of a column as text, None where missing."""
    values = column.to_numpy(dtype=object).tolist()
    return [v.strip() or None if type(v) is str else text_of(v) for v in values]


def are_plain_numbers(texts: Collection[str]) -> bool:
    """Whether all of some texts are plain numbers: one look at them together, for it is fast."""
    lines = "\n".join(texts) + "\n"
    return lines.count("\n") == len(texts) and _are_lines_of_numbers(lines) is not None


class Writing(NamedTuple):
    """How a column writes numbers: what :func:`writing_of` says, and what to take off the cells."""

    kind: str = "point"
    mark: str = ""  # of thousands
    unit: str = ""

    def bare(self, text: str) -> str:
        """A cell without its unit."""
        unit = self.unit.casefold()
        if not unit:
            return text
        if text.casefold().endswith(unit):
            text = text[: -len(unit)].rstrip()
        return text[len(unit) :].lstrip() if text.casefold().startswith(unit) else text

    def number(self, text: str) -> float:
        """A cell as a number, NaN where it is none."""
        text = self.bare(text)
        if self.mark and self.mark in text:
            grouped = _GROUPED.fullmatch(text)
            if not grouped or grouped[1] != self.mark:
                return np.nan
            text = text.replace(self.mark, "")
        return _number(text, self.kind == "comma")


def way_of(texts: list[str]) -> Writing:
    """How a column writes numbers, also with units and marks of thousands."""
    kind = writing_of(texts)
    unit = ""
    if kind == "text":
        unit = _unit_of(texts)
        texts = [Writing(unit=unit).bare(text) for text in texts]
        kind = writing_of(texts) if unit else kind
    if kind != "grouped":
        return Writing(kind, unit=unit)
    mark, kind = _grouping_of(texts)
    return Writing(kind, mark, unit)


def _unit_of(texts: list[str]) -> str:
    """The sign or unit that nearly all numbers carry, and that no number carries another beside."""
    found = [match for text in texts if (match := _WITH_UNIT.fullmatch(text))]
    units = Counter((match[1] or match[2] or "").casefold() for match in found)
    (unit, n), *_ = units.most_common(1) or [("", 0)]
    if n < MOSTLY * len(texts) or set(units) - {unit, ""}:
        return ""
    return next(match[1] or match[2] for match in found if match[1] or match[2]) if unit else ""


def _grouping_of(texts: list[str]) -> tuple[str, str]:
    """The mark of thousands of a column, and whether a point or a comma precedes decimals."""
    odd = [text for text in texts if not is_plain_number(text) and not _COMMA.fullmatch(text)]
    marks = {match[1] for text in odd if (match := _GROUPED.fullmatch(text))}
    if len(marks) != 1:
        return "", "mixed"
    mark = marks.pop()
    decimals = {".": ",", ",": "."}.get(mark, "," if any("," in text for text in texts) else ".")
    one, two = re.escape(mark), re.escape(decimals)
    right = re.compile(rf"[+-]?(?:[0-9]+|[0-9]{{1,3}}(?:{one}[0-9]{{3}})+)(?:{two}[0-9]+)?")
    known = [t for t in texts if is_plain_number(t) or _COMMA.fullmatch(t) or _GROUPED.fullmatch(t)]
    if not all(map(right.fullmatch, known)):
        return "", "mixed"
    return mark, "comma" if decimals == "," else "point"


_PLAINLY = Writing()


def numbers_of(column: Any, way: Writing = _PLAINLY) -> np.ndarray:
    """A column as floats; NaN for what is missing, infinite or no number."""
    if column.dtype.kind in "iuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        texts = texts_of(column)
        plain = way == _PLAINLY and are_plain_numbers([t for t in texts if t is not None])
        read = float if plain else way.number
        numbers = [np.nan if text is None else read(text) for text in texts]
        values = np.array(numbers, dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def strange_texts(column: Any, numbers: np.ndarray) -> dict[int, str]:
    """What stands in a column of numbers and is none, by row."""
    rows = np.flatnonzero(np.isnan(numbers)).tolist()
    texts = texts_of(column.iloc[rows])
    return {row: text for row, text in zip(rows, texts, strict=True) if text is not None}


def lost_digits(column: Any, numbers: np.ndarray) -> bool:
    """Whether floats lose numbers of a column that are long, and near each other."""
    there = np.unique(numbers[~np.isnan(numbers)])
    if not len(there):
        return False
    step = float(np.spacing(np.max(np.abs(there))))
    near = step > 1 and there[-1] - there[0] < _NEAR * step
    return near and column.nunique() > len(there)


def writing_of(texts: list[str]) -> str:
    """How a column writes numbers.

    "point", also for whole numbers; "comma"; "either", where each may be of decimals or thousands;
    "grouped", with marks of thousands; "mixed", with both; "text" where most are no numbers.
    """
    if are_plain_numbers(texts):
        return "point"
    odd = [text for text in texts if not is_plain_number(text)]
    commas = [text for text in odd if _COMMA.fullmatch(text)]
    grouped = [text for text in odd if not _COMMA.fullmatch(text) and _GROUPED.fullmatch(text)]
    known = len(texts) - len(odd) + len(commas) + len(grouped)
    if known < MOSTLY * len(texts) or not texts:
        return "text"
    if grouped:
        return "grouped"
    if not commas:
        return "point"
    if any("." in text for text in texts if is_plain_number(text)):
        return "mixed"
    return "either" if all(map(_EITHER.fullmatch, commas)) else "comma"


def _number(text: str, comma: bool) -> float:
    if comma and _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    elif not is_plain_number(text) or (comma and "." in text):
        return np.nan
    return float(text)
