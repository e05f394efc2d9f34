"""Kernels of texts and other strings of symbols."""

from collections.abc import Iterator
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from kernelmetric.inputs._parameters import Numbers, require_word
from kernelmetric.kernels._counts import BASE, CountKernel, text_codes

_VERSIONS = ((1, 3), (1, 2), (1, 4), (2, 4), 3, (2, 6), 5)  # of lengths, where labels choose
_MOST_LENGTH = 64


class NGrams(CountKernel):
    r"""What n-grams two strings share: names, texts, proteins, genes.

    .. math:: k(x, y) = \frac{\sum_g c_g(x)\, c_g(y)}{\|c(x)\|\, \|c(y)\|} \quad\text{or}\quad
              \frac{\sum_g \min(c_g(x), c_g(y))}{\sum_g \max(c_g(x), c_g(y))}

    where :math:`c_g(x)` is how often the n-gram g is in x: the spectrum kernel [1]_. With gaps,
    an n-gram may leave out letters in between. A string shorter than n is one n-gram.

    O(length) time for a string, once; then one product of sparse matrices.

    Parameters
    ----------
    n : int, tuple of two ints, or "auto", default="auto"
        Length of the n-grams, or the least and the greatest. "auto": where labels choose, the
        lengths that predict left-out points best; (1, 3) without labels.
    gaps : int, default=0
        How many letters an n-gram may leave out in between.
    unit : {"letters", "words"}, default="letters"
        What an n-gram is made of; words are what spaces part.
    similarity : {"cosine", "minmax", "tanimoto"}, default="cosine"
        The first or the second formula; or the second with products in the place of minima.

    References
    ----------
    .. [1] Leslie, Eskin and Noble, "The spectrum kernel: a string kernel for SVM protein
       classification", Pacific Symposium on Biocomputing 2002.

    Examples
    --------
    >>> from kernelmetric.kernels import NGrams
    >>> NGrams(2)(["banana", "bandana", "cherry"]).round(2)
    array([[1.  , 0.82, 0.  ],
           [0.82, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    expects: ClassVar[str] = "strings"
    _open = "n", _VERSIONS, ""

    def __init__(
        self, n: Any = "auto", *, gaps: int = 0, unit: str = "letters", similarity: str = "cosine"
    ):
        self.n = n
        self.gaps = gaps
        self.unit = unit
        self.similarity = similarity

    @property
    def is_bound(self) -> bool:
        """Whether the length is a number."""
        return not isinstance(self.n, str)

    def read(self, item: Any) -> str:
        """A string, refused where it is none."""
        if not isinstance(item, str):
            raise ValueError("it is no string")
        return str(item)

    def parts(self, item: str) -> Iterator[tuple[str, str]]:
        """Letters, each of them made one that is nowhere else."""
        for i, letter in enumerate(item):
            yield f"{letter} at {i}", f"{item[:i]}\N{REPLACEMENT CHARACTER}{item[i + 1 :]}"

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        return {"n": _VERSIONS[0] if isinstance(self.n, str) and self.n == "auto" else self.n}

    def count(self, items: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The n-grams of strings: the row and the code of each."""
        require_word("unit", self.unit, ("letters", "words"))
        codes, lengths = (_letters if self.unit == "letters" else _words)(items)
        rows = np.repeat(np.arange(len(items)), lengths)
        ends = np.repeat(np.cumsum(lengths), lengths)
        room = ends - np.arange(len(codes))  # symbols from here to the end of the string
        parts = [(rows[:0], codes[:0])]
        least, most = self._sizes()
        for size in range(least, most + 1):
            for places in self._patterns(size):
                at = np.flatnonzero(room > places[-1])
                parts.append((rows[at], _grams(codes, at, places)))
        starts = np.cumsum(lengths) - lengths
        for size in range(1, least):  # whole strings that are too short
            short = np.flatnonzero(lengths == size)
            parts.append((short, _grams(codes, starts[short], tuple(range(size)))))
        all_rows, all_codes = map(np.concatenate, zip(*parts, strict=True))
        return all_rows, all_codes

    def _sizes(self) -> tuple[int, int]:
        ends = self.n if isinstance(self.n, tuple | list) else (self.n, self.n)
        whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in ends)
        if len(ends) != 2 or not whole or not 1 <= ends[0] <= ends[1] <= _MOST_LENGTH:
            raise ValueError(
                f"Got n={self.n!r}, but expected 'auto', an integer from 1 to {_MOST_LENGTH}, or "
                "the least and the greatest length: try (1, 3)."
            )
        return int(ends[0]), int(ends[1])

    def _patterns(self, size: int) -> list[tuple[int, ...]]:
        """Where the symbols of an n-gram may be, from its first on."""
        Numbers(Integral, 0, 8).check(self, "gaps")
        if size == 1:
            return [(0,)]
        return [
            (0, *inner, last)
            for last in range(size - 1, size + int(self.gaps))
            for inner in combinations(range(1, last), size - 2)
        ]


def _letters(items: list[str]) -> tuple[np.ndarray, np.ndarray]:
    joined = "".join(items).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<u4").astype(np.uint64) + np.uint64(1)
    return codes, np.array([len(item) for item in items], dtype=np.intp)


def _words(items: list[str]) -> tuple[np.ndarray, np.ndarray]:
    words = [item.split() for item in items]
    codes = text_codes([word for line in words for word in line])
    return codes, np.array([len(line) for line in words], dtype=np.intp)


def _grams(codes: np.ndarray, at: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    """Codes of n-grams that begin at some places: of their symbols, and of where these are."""
    found = np.full(len(at), len(places), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for before, place in zip((0, *places), places, strict=False):
            found = (found * BASE + codes[at + place]) * BASE + np.uint64(place - before)
    return found
