"""Evidence from parts of texts: model numbers, numbers, years, words that are spelled in two ways.

Parts are columns of sparse arrays, whose rows are texts, so that many pairs are compared at once.
"""

from __future__ import annotations

from operator import contains
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelmetric.compute import map_rows
from kernelmetric.linkage._bags import incidence, sums
from kernelmetric.linkage._words import abbreviates, parts_of

PARTS = (
    "model number in both", "model numbers on the left alone", "model numbers on the right alone",
    "model numbers differ", "model numbers begin alike", "numbers in both",
    "numbers on the left alone", "numbers on the right alone", "quantities agree",
    "quantities differ", "years agree", "years differ", "rarest left word without a partner",
    "rarest right word without a partner", "left words with a partner",
    "right words with a partner", "first words alike",
)  # fmt: skip
_RAREST = 8  # words that one side has alone, looked for among those of the other
_ALIKE = 0.9  # of two spellings of a word, by Jaro and Winkler
_SPELLED = 4  # letters of a word that may be misspelled
_CUT = 3  # letters of a word that may stand in the other text glued to others, or cut
_DECIMALS = 12  # of sums of rarities, whose order must not show
_AT_ONCE = 20_000  # pairs
_COUPLE_BYTES, _WORD_BYTES = 60.0, 150.0  # of two words beside each other, and of a text's word
_LETTERS = 2**21  # more than there are code points


class PartedTexts:
    """The parts of the texts of two tables, ready to be compared pair by pair.

    Parameters
    ----------
    sides : list of list of str
        Folded texts of both tables.
    words, W, rarity : array of str, sparse array and array
        All words, which text of both tables has which, and how rare each is.
    """

    def __init__(self, sides: list[list[str]], words: np.ndarray, W: Any, rarity: np.ndarray):
        self._left, self._total = len(sides[0]), W @ rarity
        by_letters = np.argsort(words)
        rarest = by_letters[np.argsort(-rarity[by_letters], kind="stable")]
        self._words, self._W, self._rarity = words[rarest], W[:, rarest], rarity[rarest]
        self._W.sort_indices()
        self._begins = np.unique([word[:2] for word in self._words], return_inverse=True)[1]
        digits = np.array([any(map(str.isdigit, word)) for word in self._words], dtype=bool)
        self._plain = ~digits & (np.array(list(map(len, self._words)), dtype=int) >= _SPELLED)
        self._all = parts = [parts_of(text) for text in sides[0] + sides[1]]
        self._joined = np.array([each.joined for each in parts], dtype=object)
        self._first = np.array([each.first for each in parts], dtype=object)
        self._codes, self._C = incidence([each.codes for each in parts])
        self._N = incidence([each.numbers for each in parts])[1]
        self._Y = incidence([each.years for each in parts])[1]
        said = [[f"{x} {unit}" for unit, xs in p.quantities.items() for x in xs] for p in parts]
        quantities, self._Q = incidence(said)
        self._units = incidence([each.split()[1:] for each in quantities])[1]

    def columns(self, pairs: np.ndarray) -> np.ndarray:
        """What the parts of pairs have in common, in the order of PARTS."""

        def work(rows: slice) -> np.ndarray:
            i, j = pairs[rows].T + np.array([[0], [self._left]])
            numbers, years = (sums(B[i] * B[j]) for B in (self._N, self._Y))
            alone = [sums(self._N[own]) - numbers for own in (i, j)]
            agree = sums(((self._Q[i] * self._Q[j]) @ self._units).sign())
            units = (self._Q @ self._units).sign()
            differ = sums(units[i] * units[j]) - agree
            other = (years == 0) & (sums(self._Y[i]) > 0) & (sums(self._Y[j]) > 0)
            codes, words = self._of_codes(i, j), self._of_words(i, j)
            first = list(map(_begin, self._first[i], self._first[j]))
            return np.column_stack(
                [*codes, numbers, *alone, agree, differ, years, other, *words, first]
            )

        most = float(np.diff(self._W.indptr).max(initial=0))
        each = _COUPLE_BYTES * _RAREST**2 + _WORD_BYTES * most
        return map_rows(work, len(pairs), each, most=_AT_ONCE)

    def says(self, column: str, value: float, i: int, j: int) -> str | None:
        """In words what a column found in a pair, or None where it is a number."""
        a, b = self._all[i], self._all[self._left + j]
        codes_a = {code for code in a.codes if code not in b.joined}
        codes_b = {code for code in b.codes if code not in a.joined}
        beside = {
            "model numbers differ": (a.codes, b.codes),
            "years differ": (a.years, b.years),
            "first words alike": ([a.first], [b.first]),
        }
        found = {
            "rarest word in both": a.words & b.words,
            "rarest word on the left alone": a.words - b.words,
            "rarest word on the right alone": b.words - a.words,
            "model number in both": (a.codes - codes_a) | (b.codes - codes_b),
            "model numbers on the left alone": codes_a,
            "model numbers on the right alone": codes_b,
            "numbers in both": a.numbers & b.numbers,
            "numbers on the left alone": a.numbers - b.numbers,
            "numbers on the right alone": b.numbers - a.numbers,
            "years agree": a.years & b.years,
        }.get(column)
        if column in beside and (value or column == "first words alike"):
            return " beside ".join(map(_some, beside[column]))
        if found is None:
            return None
        if column.startswith("rarest"):
            places = np.unique(self._W[[i, self._left + j]].indices)  # the rarest first
            return _some([word for word in self._words[places] if word in found][:1])
        return _some(sorted(found, key=lambda word: (-len(word), word)))

    def _of_codes(self, i: np.ndarray, j: np.ndarray) -> list[np.ndarray]:
        """The longest model number in both, how many are alone, whether they differ or begin so."""
        longest, begin = np.zeros((2, len(i)))
        n_codes, lone = np.diff(self._C.indptr), []
        for own, other in ((i, j), (j, i)):
            rows, places, there = self._looked_for(self._C[own], self._codes, other)
            codes = self._codes[places]
            np.maximum.at(longest, rows[there], list(map(len, codes[there])))
            lone.append((rows[~there], codes[~there]))
        # Those that begin alike have the first letter in common.
        firsts = (rows * _LETTERS + [ord(code[0]) for code in codes] for rows, codes in lone)
        p, q = _met(*firsts)
        (rows, left), (others, right) = lone
        np.maximum.at(begin, rows[p], list(map(_begin, left[p], right[q])))
        alone = [np.bincount(each, minlength=len(i)) for each in (rows, others)]
        differ = (np.minimum(n_codes[i], n_codes[j]) > 0) & (longest == 0)
        return [longest, *alone, differ, begin]

    def _of_words(self, i: np.ndarray, j: np.ndarray) -> list[np.ndarray]:
        """The rarest word of each side without a partner, and the part of words that have one."""
        both, alone = self._W[i] * self._W[j], []
        for own, other in ((i, j), (j, i)):
            E = csr_array(self._W[own] - both)
            E.eliminate_zeros()
            rows, words, there = self._looked_for(E, self._words, other)
            alone.append((rows[~there], words[~there]))
        (rows, left), (others, right) = alone
        places = (np.arange(len(each)) - np.searchsorted(each, each) for each in (rows, others))
        p, q = (np.flatnonzero(place < _RAREST) for place in places)
        first, second = _met(rows[p], others[q])
        p, q = p[first], q[second]
        close = self._close(left[p], right[q])
        rarest, shares = np.zeros((2, 2, len(i)))
        for k, (at, own) in enumerate(((p, i), (q, j))):
            rows, words = (np.delete(each, at[close]) for each in alone[k])
            np.maximum.at(rarest[k], rows, self._rarity[words])
            total, lost = self._total[own], np.bincount(rows, self._rarity[words], len(own))
            np.divide(total - lost, total, out=shares[k], where=total > 0)
        return [*rarest, *shares.clip(0).round(_DECIMALS)]

    def _looked_for(
        self, E: Any, pieces: np.ndarray, other: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows and pieces of a matrix, and which the other texts hold, even glued or cut."""
        rows = np.repeat(np.arange(E.shape[0]), np.diff(E.indptr))
        there = list(map(contains, self._joined[other[rows]], pieces[E.indices]))
        long = np.array(list(map(len, pieces)), dtype=int) >= _CUT
        return rows, E.indices, np.array(there, dtype=bool) & long[E.indices]

    def _close(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Which couples of words are two spellings of one, or one and its abbreviation."""
        from rapidfuzz.distance.JaroWinkler import similarity
        from rapidfuzz.process import cpdist

        a, b = self._words[p], self._words[q]
        close, plain = np.zeros(len(p), dtype=bool), self._plain[p] & self._plain[q]
        # What is far from alike need not be computed to the end.
        alike = cpdist(
            a[plain], b[plain], scorer=similarity, score_cutoff=_ALIKE - 0.1, dtype=float
        )
        close[plain] = alike >= _ALIKE
        at = np.flatnonzero(self._begins[p] == self._begins[q])
        close[at] |= np.array(list(map(abbreviates, a[at], b[at])), dtype=bool)
        return close


def _met(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of all couples of equal keys."""
    order = np.argsort(q, kind="stable")
    begin, end = (np.searchsorted(q[order], p, side) for side in ("left", "right"))
    sizes = end - begin
    shift = np.repeat(begin - np.cumsum(sizes) + sizes, sizes)
    return np.repeat(np.arange(len(p)), sizes), order[np.arange(len(shift)) + shift]


def _begin(a: str, b: str) -> float:
    """How much of the longer of two words is a beginning of both."""
    short = min(len(a), len(b))
    same = next((k for k in range(short) if a[k] != b[k]), short)
    return same / max(len(a), len(b), 1)


def _some(words: Any) -> str:
    """A few words, or that there is none."""
    listed = list(words)
    return ", ".join(listed[:3]) + (" …" if len(listed) > 3 else "") or "none"
