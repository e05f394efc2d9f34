"""Texts as unit vectors of their n-grams, block by block.

N-grams are taken inside words, which have a space on both sides; a word shorter than they are is
one piece. Each is known by a hash of 64 bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from kernelmetric.compute import over_rows, rough
from kernelmetric.compute.backends import compiled_grams
from kernelmetric.linkage._bags import hashed, incidence, merged, pieces_of, unit, weighed

_BLOCK = 2**20  # letters: few blocks, as each is looked up among all n-grams
_LETTER_BYTES = 400.0  # what the pieces that begin at a letter take, all arrays together
_TOL = 1e-6  # of a cosine that only ranks texts
_COMPILED_BLOCK = 2**15  # letters whose pieces stay in the cache


class TextWeights:
    """TF-IDF weights, of unit length, of n-grams that at most so many texts have."""

    def __init__(self, lines: list[str], sizes: range, most: int):
        self._compiled = compiled_grams(sizes)
        if self._compiled is not None:
            _over_texts(self._compiled.count, lines, _COMPILED_BLOCK)
            _require_used(self._compiled.weigh(most), most, lines)
            return
        self._sizes = sizes
        found = merged(_over_texts(self._texts_of_each, lines), len(lines))
        self._codes, counts = found.codes, found.counts
        used = counts <= most
        _require_used(bool(used.any()), most, lines)
        self._idf = np.where(used, np.log((1 + len(lines)) / (1 + counts)) + 1, 0.0)
        used &= counts > 1  # one of a single text counts in the length, but in no product
        self._columns = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)

    def rows(self, lines: list[str]) -> Any:
        """The vectors of some of the texts, a sparse array."""
        if self._compiled is not None:
            blocks = _over_texts(self._compiled.rows, lines, _COMPILED_BLOCK)
        else:
            blocks = _over_texts(self._weighed, lines)
        return vstack(blocks, format="csr")

    def _weighed(self, texts: list[str]) -> Any:
        codes, C = self._counted(texts)
        place = np.searchsorted(self._codes, codes)
        U, columns = unit(weighed(C, self._idf[place])), self._columns[place]
        U = U[:, columns >= 0]
        shape = len(texts), int(self._columns.max(initial=-1)) + 1
        return csr_array(
            (rough(U.data, _TOL), columns[columns >= 0][U.indices], U.indptr), shape=shape
        )

    def _texts_of_each(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The n-grams of a block, and how many texts have each."""
        codes, C = self._counted(texts)
        return codes, np.bincount(C.indices, minlength=len(codes))

    def _counted(self, texts: list[str]) -> tuple[np.ndarray, Any]:
        """The n-grams of a block, and how often texts have each."""
        words, W = incidence([text.split() for text in texts])
        pieces, G = incidence([pieces_of(word, self._sizes) for word in words])
        return hashed(pieces), W @ G


def _require_used(used: bool, most: int, lines: list[str]) -> None:
    if not used:
        raise ValueError(
            f"Got no n-gram that at most most={most} of {len(lines)} records have: raise most."
        )


def _over_texts(
    work: Callable[[list[str]], Any], lines: list[str], most: int | None = None
) -> list[Any]:
    """What some work gives for blocks of texts that have about as many letters."""
    ends = np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1)

    def of_letters(letters: slice) -> Any:
        # A text belongs to the block in which it ends.
        first, last = np.searchsorted(ends, [letters.start, letters.stop], side="right")
        return work(lines[first:last])

    if not lines:
        return [work(lines)]
    return over_rows(of_letters, int(ends[-1]), _LETTER_BYTES, most=most or _BLOCK)
