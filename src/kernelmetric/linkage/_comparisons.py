"""How alike two records are, field by field; what is missing is a state of its own."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from kernelmetric.compute import map_rows
from kernelmetric.inputs._extras import require
from kernelmetric.linkage import _fields
from kernelmetric.linkage._compared import Compared, checked_pairs
from kernelmetric.linkage._text import Texts, learned_of

KINDS = ("text", "long_text", "code", "date", "number", "category", "vector")
_DATE = re.compile(r"(1[6-9]|20)\d\d[-/.]?\d\d[-/.]?\d\d")
_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+)(e[-+]?\d+)?")
_CODE = re.compile(r"[\d\s.+/()-]*\d[\d\s.+/()-]*[a-z]?")
_MOSTLY = 0.8  # of the values: the rest are slips of the pen
_LONG = 25  # letters, on average, of a text whose words may be exchanged
_FEW = 30  # values of a category, each of which returns this often:
_RETURNS = 20
_LOOKED_AT = 20_000  # records that decide on kinds
_MOST_LETTERS = 1000  # of a text that are compared: the time grows with their square
_NEARLY = 0.999  # how alike two longer texts are that begin alike
_EXCHANGED = 0.9  # how alike two days are whose day and month changed places


class RecordComparison:
    r"""Pairs of records as vectors: how alike each field is, and whether it is missing.

    ============  ===========================================================================
    kind          how alike, from 0 to 1
    ============  ===========================================================================
    text          Jaro-Winkler: letters in common, the first ones above all
    long_text     words in whatever order, by edits (rapidfuzz's token sort ratio)
    code          edits and exchanges of neighbours, as a part of the length: digits, numbers
    date          as a code, year month day; 0.9 at least where day and month changed places
    number        1 / (1 + \|a - b\| / s), s a tenth of the distance of the quartiles
    category      1 where equal, else 0
    vector        the cosine, 0 where it is negative: of what an embedding made of the record
    ============  ===========================================================================

    Upper and lower case are the same, and blanks at the ends are ignored. Of a text, the first
    1,000 letters are compared.

    Parameters
    ----------
    kinds : mapping of str to str, default=None
        Kinds by column. Columns that are not named are not compared. None compares all columns
        that the tables share, and recognizes their kinds by the values. Whole numbers are codes.

    Attributes
    ----------
    kinds_ : dict
        The kind of every field.
    scales_ : dict
        For numbers, s.
    fields_ : list of str
        Names of the fields.

    See Also
    --------
    kernelmetric.linkage.RecordLinker : Learns what the comparisons count.

    Examples
    --------
    >>> from kernelmetric.linkage import RecordComparison
    >>> left = [{"name": "Martha", "age": 31.5}]
    >>> right = [{"name": "Marhta", "age": None}]
    >>> compare = RecordComparison({"name": "text", "age": "number"}).fit(left, right)
    >>> compare.features(left, right, [[0, 0]]).round(2).tolist()  # doctest: +SKIP
    [[0.96, 0.0, 0.0, 1.0]]
    >>> compare.feature_names()
    ['name', 'name missing', 'age', 'age missing']
    """

    def __init__(self, kinds: Mapping[str, str] | None = None):
        self.kinds = kinds

    def fit(self, left: Any, right: Any = None) -> Self:
        """Decide on the kinds and the scales of numbers; no labels are needed.

        Parameters
        ----------
        left, right : DataFrame or list of dict
            The tables; without ``right`` records of one are compared.

        Returns
        -------
        RecordComparison
            Itself.
        """
        left, right = _tables(left, right)
        kinds = _guessed(left, right) if self.kinds is None else dict(self.kinds)
        wrong = {name: kind for name, kind in kinds.items() if kind not in KINDS}
        if wrong:
            raise ValueError(f"Got kinds {wrong}, but expected each one of {', '.join(KINDS)}.")
        if not kinds:
            raise ValueError(
                "Got no column to compare, but expected one that both tables have, not empty."
            )
        scales = {
            name: _scale(np.concatenate([_numbers(table, name) for table in (left, right)]))
            for name, kind in kinds.items()
            if kind == "number"
        }
        self.kinds_, self.scales_, self.fields_ = kinds, scales, list(kinds)
        self.text_ = None
        if "long_text" in kinds.values():
            self.text_ = learned_of(left, right, kinds, chosen=self.kinds is not None)
        return self

    def similarities(self, left: Any, right: Any, pairs: Any) -> np.ndarray:
        """How alike the fields of pairs are.

        Parameters
        ----------
        left, right : DataFrame or list of dict
            The tables; ``right`` None for one.
        pairs : array-like of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        ndarray of shape (n_pairs, n_fields)
            From 0 to 1; NaN where a side is missing.
        """
        left, right = _tables(left, right)
        return Compared(self, left, right, None)(pairs)

    def features(self, left: Any, right: Any, pairs: Any) -> np.ndarray:
        """Numbers without gaps, for any classifier.

        Parameters
        ----------
        left, right, pairs : DataFrame or list of dict, and array-like
            As in :meth:`similarities`.

        Returns
        -------
        ndarray of shape (n_pairs, 2 n_fields)
            For each field how alike it is, 0 where a side is missing, and 1 where it is missing.
        """
        S = self.similarities(left, right, pairs)
        missing = np.isnan(S)
        return np.stack([np.where(missing, 0, S), missing], axis=2).reshape(len(S), -1)

    def feature_names(self) -> list[str]:
        """Names of the columns of :meth:`features`.

        Returns
        -------
        list of str
            Two for each field.
        """
        return [part for name in self.fields_ for part in (name, f"{name} missing")]

    def between(self, left: Any, right: Any, candidates: Any = None) -> Compared:
        """All evidence on pairs of two tables, and with the candidates they are chosen from.

        Parameters
        ----------
        left, right : DataFrame or list of dict
            The tables; ``right`` None for one.
        candidates : array-like of shape (n_candidates, 2), default=None
            Row numbers of pairs that each pair is compared with: a record that has a better
            partner there is hardly a match of this one. None has no such rivals.

        Returns
        -------
        Compared
            Called with row numbers of pairs, it gives an array: columns of :meth:`similarities`,
            and those of the evidence from text, whose names it has.
        """
        one = right is None
        left, right = _tables(left, right)
        given = np.empty((0, 2), dtype=np.intp) if candidates is None else candidates
        rivals = checked_pairs(given, len(left), len(right))
        if one:
            rivals = np.concatenate([rivals, rivals[:, ::-1]])
        texts = None if self.text_ is None else Texts(self.text_, left, right, rivals)
        return Compared(self, left, right, texts)

    def column(self, name: str, left: Any, right: Any) -> Callable[[np.ndarray], np.ndarray]:
        """What tells how alike one field of pairs is; the column of each table is read once."""
        kind = self.kinds_[name]
        read = {"number": _numbers, "vector": _vectors}.get(kind)
        if read is None:
            compare = _of_texts(kind, *_coded(name, left, right))
        else:
            a = read(left, name)
            b = a if right is left else read(right, name)
            if kind == "vector" and a.shape[1] != b.shape[1]:
                raise ValueError(
                    f"Got vectors of {a.shape[1]} and {b.shape[1]} numbers in the column {name!r}, "
                    "but expected as many on both sides."
                )

            def compare(pairs: np.ndarray) -> np.ndarray:
                p, q = a[pairs[:, 0]], b[pairs[:, 1]]
                if kind == "vector":
                    return np.maximum(np.sum(p * q, axis=1), 0.0)
                return 1 / (1 + np.abs(p - q) / self.scales_[name])

        return lambda pairs: map_rows(
            lambda rows: compare(pairs[rows]), len(pairs), 400.0, most=100_000
        )


def _tables(left: Any, right: Any) -> tuple[Any, Any]:
    left, right = _fields.as_tables(left, right)
    return left, left if right is None else right


def _coded(name: str, left: Any, right: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which text each record of two tables has, -1 for none; and the texts, each once."""
    import pandas as pd

    a, texts = _fields.coded_texts(_fields.column_of(left, name))
    if right is left:
        return a, a, texts
    b, more = _fields.coded_texts(_fields.column_of(right, name))
    codes, both = pd.factorize(np.concatenate([texts, more]))
    own, other = np.split(codes, [len(texts)])
    return np.append(own, -1)[a], np.append(other, -1)[b], both


def _of_texts(kind: str, a: np.ndarray, b: np.ndarray, texts: np.ndarray) -> Callable:
    """What tells how alike the texts of pairs of records are; of equal ones nothing is compared."""
    import pandas as pd

    turned = np.full(len(texts), -1)
    if kind == "date":
        digits, texts = pd.factorize(np.array([re.sub(r"\D", "", t) for t in texts], dtype=object))
        a, b = (np.append(digits, -1)[codes] for codes in (a, b))
        exchanged = [t[:4] + t[6:8] + t[4:6] for t in texts]
        turned = pd.Index(texts, dtype=object).get_indexer(exchanged)

    def compare(pairs: np.ndarray) -> np.ndarray:
        p, q = a[pairs[:, 0]], b[pairs[:, 1]]
        known = (p >= 0) & (q >= 0)
        values = np.where(known, np.where(p == q, 1.0, 0.0), np.nan)
        if kind == "category":
            return values
        differ = known & (p != q)
        p, q = p[differ], q[differ]
        found = _scored("code" if kind == "date" else kind, texts[p], texts[q])
        values[differ] = np.where(p == turned[q], np.maximum(found, _EXCHANGED), found)
        return values

    return compare


def _scored(kind: str, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What a scorer of rapidfuzz says of each two texts, which differ."""
    fuzzy = require("rapidfuzz", "linkage", "Comparing texts needs rapidfuzz")
    scorer, most = {
        "text": (fuzzy.distance.JaroWinkler.normalized_similarity, 1),
        "long_text": (fuzzy.fuzz.token_sort_ratio, 100),
        "code": (fuzzy.distance.OSA.normalized_similarity, 1),
    }[kind]
    # Of longer texts only the beginnings: they are equal where all of their letters are.
    at = np.flatnonzero(np.maximum(list(map(len, p)), list(map(len, q))) > _MOST_LETTERS)
    for texts in (p, q):
        texts[at] = [text[:_MOST_LETTERS] for text in texts[at]]
    found = fuzzy.process.cpdist(p, q, scorer=scorer, dtype=np.float64) / most
    found[at] = np.minimum(found[at], _NEARLY)
    return found


def _numbers(table: Any, name: str) -> np.ndarray:
    import pandas as pd

    column = _fields.column_of(table, name)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    lost = int(np.sum(np.isnan(numbers) & column.notna().to_numpy()))
    if len(numbers) - lost < _MOSTLY * len(numbers):
        raise ValueError(
            f"Got {lost} values that are no numbers in the column {name!r} of kind 'number'."
        )
    return np.where(np.isinf(numbers), np.nan, numbers)


def _vectors(table: Any, name: str) -> np.ndarray:
    """Vectors of length one; NaN where one is missing, or has no direction."""
    cells = _fields.column_of(table, name)
    there = np.array([_fields.holds_numbers(cell) for cell in cells], dtype=bool)
    try:
        known = np.array([np.asarray(cell, dtype=np.float64) for cell in cells[there]])
        vectors = np.full((len(cells), known.shape[1] if len(known) else 1), np.nan)
        vectors[there] = known.reshape(len(known), -1) if len(known) else 0.0
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"Got vectors of different lengths, or of something else than numbers, in the column "
            f"{name!r}, but expected as many numbers in each; of words, make one text."
        ) from error
    with np.errstate(invalid="ignore"):
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _scale(numbers: np.ndarray) -> float:
    there = numbers[np.isfinite(numbers)]
    if not len(there):
        return 1.0
    low, high = np.percentile(there, [25, 75])
    return 0.1 * float(high - low) or 0.1 * float(np.std(there)) or 1.0


def _guessed(left: Any, right: Any) -> dict[str, str]:
    """Kinds of the columns that both tables have, by looking at their values."""
    import pandas as pd

    kinds = {}
    for name in [column for column in left.columns if column in right.columns]:
        both = pd.concat([_fields.column_of(side, name).head(_LOOKED_AT) for side in (left, right)])
        if both.dtype.kind == "M":
            kinds[name] = "date"
        elif both.dtype.kind == "f" and not _fields.is_whole(both):
            kinds[name] = "number"
        elif both.dtype == object and any(map(_fields.holds_numbers, both)):
            kinds[name] = "vector"
        elif texts := [text for text in _fields.texts_of(both) if text is not None]:
            kinds[name] = _kind_of(texts)
    return kinds


def _kind_of(texts: list[str]) -> str:
    n, distinct = len(texts), len(set(texts))

    def mostly(test: Any) -> bool:
        return sum(bool(test(text)) for text in texts) > _MOSTLY * n

    if mostly(_DATE.fullmatch):
        return "date"
    if mostly(_DECIMAL.fullmatch):
        return "number"
    if distinct <= _FEW and n >= _RETURNS * distinct:
        return "category"
    if mostly(_CODE.fullmatch):
        return "code"
    return "long_text" if sum(map(len, texts)) > _LONG * n else "text"
