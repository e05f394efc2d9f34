"""What a text is made of: words, model numbers, numbers with units, years, names of people."""

import html
import re
import unicodedata
from typing import NamedTuple

MOST_LETTERS = 20_000  # of a text that are read: what a page of words says, it says at once
_TAG = re.compile(r"</?[a-z][^<>]{0,300}>")
_DASHES = re.compile("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d\u00ad]")
_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_JOINED = re.compile(r"[^\W_]+(?:[-./][^\W_]+)*")
_MARKS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"(?:1[6-9]|20)\d\d")
_UNITS = {
    "in": "in inch inches '' \" ''", "ft": "ft foot feet", "mm": "mm", "cm": "cm", "m": "m meter",
    "gb": "gb gigabyte gig", "mb": "mb megabyte", "tb": "tb terabyte", "kg": "kg", "g": "g gram",
    "oz": "oz ounce", "lb": "lb lbs pound", "w": "w watt watts", "v": "v volt volts", "ghz": "ghz",
    "mhz": "mhz", "hz": "hz", "dpi": "dpi", "mp": "mp megapixel megapixels", "l": "l liter litre",
    "ml": "ml", "pack": "pack pk packs", "user": "user users pc seat", "x": "x", "mah": "mah",
}  # fmt: skip
_UNIT = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings.split()}
_QUANTITY = re.compile(
    r"(?<!\d)(\d++(?:\.\d++)?+)[\s-]*+"
    rf"({'|'.join(sorted(map(re.escape, _UNIT), key=len, reverse=True))})(?![^\W_])"
)
_LEAST_CODE = 3  # letters and digits of a model number, _LEAST_DIGITS where it has no letter
_LEAST_DIGITS = 5
_LIST = re.compile(r"\s*(?:[,;&|]|\band\b)\s*")


class Parts(NamedTuple):
    """What a text is made of."""

    words: frozenset[str]
    joined: str  # its letters and digits alone
    codes: frozenset[str]  # model numbers, without their punctuation
    numbers: frozenset[str]
    quantities: dict[str, frozenset[str]]  # numbers by unit
    years: frozenset[str]
    first: str  # word: of a product the brand, often


def folded(text: str | None) -> str:
    """One spelling of what looks alike: no case, no accents, no tags, one kind of hyphen."""
    if text is None:
        return ""
    text = text[:MOST_LETTERS]
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if text.isascii():
        return text.casefold()
    text = unicodedata.normalize("NFKD", _DASHES.sub("-", text))
    return "".join(c for c in text if not unicodedata.combining(c)).casefold()


def words_of(text: str) -> list[str]:
    """Words and numbers of a folded text, in order."""
    return _WORD.findall(text)


def parts_of(text: str) -> Parts:
    """The parts of a folded text."""
    words = words_of(text)
    quantities: dict[str, set[str]] = {}
    for number, unit in _QUANTITY.findall(text):
        quantities.setdefault(_UNIT[unit], set()).add(_plain(number))
    return Parts(
        frozenset(words),
        _MARKS.sub("", text),
        frozenset(filter(_is_code, (_MARKS.sub("", w) for w in _JOINED.findall(text)))),
        frozenset(map(_plain, _NUMBER.findall(text))),
        {unit: frozenset(numbers) for unit, numbers in quantities.items()},
        frozenset(word for word in words if _YEAR.fullmatch(word)),
        words[0] if words else "",
    )


def names_of(text: str) -> list[tuple[str, str]]:
    """Last name and initial of each name in a list: 'Ann B. Lee, C. Roe' and 'Lee A; Roe, C'."""
    names = []
    for piece in _LIST.split(text):
        words = words_of(piece)
        long = [word for word in words if len(word) > 1]
        if long:
            last = long[-1]
            names.append((last, next((w[0] for w in words if w != last), "")))
    return names


def lists_names(texts: list[str]) -> bool:
    """Whether most texts are short pieces without digits between commas: lists of names."""
    pieces = [[words_of(piece) for piece in _LIST.split(text)] for text in texts]
    named = [
        len(each) > 1 and all(0 < len(w) <= 5 and not any(map(str.isdigit, w)) for w in each)
        for each in pieces
    ]
    return 2 * sum(named) > len(texts)


def abbreviates(a: str, b: str) -> bool:
    """Whether one of two words is the beginning of the other, as conf is of conference."""
    short, long = sorted((a, b), key=len)
    return len(short) > 1 and long.startswith(short) and not any(map(str.isdigit, long))


def _is_code(word: str) -> bool:
    if word.isdigit():
        return len(word) >= _LEAST_DIGITS
    return len(word) >= _LEAST_CODE and any(map(str.isdigit, word))


def _plain(number: str) -> str:
    number = number.replace(",", "")
    return (number.rstrip("0").rstrip(".") if number.count(".") == 1 else number).lstrip("0") or "0"
