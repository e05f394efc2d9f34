"""Texts as unit vectors of their n-grams, block by block.

N-grams are taken inside words, which have a space on both sides; a word shorter than they are is
one piece. Each is known by a hash of 64 bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from kernelmetric.compute import over_rows, rough
from kernelmetric.compute.backends import compiled_grams

_BLOCK = 2**20  # letters: few blocks, as each is looked up among all n-grams
_LETTER_BYTES = 400.0  # what the pieces that begin at a letter take, all arrays together
_BASE = np.uint64(0x9E3779B97F4A7C15)  # of the hashes; odd, so that no letter is lost
_TOL = 1e-6  # of a cosine that only ranks texts
_COMPILED_BLOCK = 2**15  # letters whose pieces stay in the cache


class TextWeights:
    """TF-IDF weights, of unit length, of n-grams that at most so many texts have."""

    def __init__(self, lines: list[str], sizes: range, most: int):
        self.sizes = sizes
        self._compiled = compiled_grams(sizes)
        if self._compiled is not None:
            _over_texts(self._compiled.count, lines, _COMPILED_BLOCK)
            _require_used(self._compiled.weigh(most), most, lines)
            return
        self._codes, counts = self._texts_of_each(lines)
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
        weights = C.data * self._idf[place][C.indices]
        rows = np.repeat(np.arange(len(texts)), np.diff(C.indptr))
        lengths = np.sqrt(np.bincount(rows, weights**2, len(texts)))
        columns = self._columns[place][C.indices]
        kept = np.flatnonzero(columns >= 0)
        rows = rows[kept]
        weights = rough(weights[kept] / lengths[rows], _TOL)
        starts = np.searchsorted(rows, np.arange(len(texts) + 1)).astype(np.int32)
        shape = len(texts), int(self._columns.max(initial=-1)) + 1
        return csr_array((weights, columns[kept], starts), shape)

    def _texts_of_each(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of all n-grams, ascending, and how many texts have each."""
        known, counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        new: list[tuple[np.ndarray, np.ndarray]] = []

        def count(texts: list[str]) -> None:
            codes, C = self._counted(texts)
            new.append((codes, np.bincount(C.indices, minlength=len(codes))))
            if sum(len(codes) for codes, _ in new) > len(known):
                merge()

        def merge() -> None:
            nonlocal known, counts
            codes, numbers = map(np.concatenate, zip((known, counts), *new, strict=True))
            known, inverse = np.unique(codes, return_inverse=True)
            counts = np.bincount(inverse, numbers, len(known)).astype(np.int64)
            new.clear()

        _over_texts(count, lines)
        merge()
        return known, counts

    def _counted(self, texts: list[str]) -> tuple[np.ndarray, Any]:
        """The n-grams of a block, and how often texts have each."""
        import pandas as pd

        rows, pieces = self._pieces(texts)
        found, codes = pd.factorize(pieces)
        ones, at = np.ones(len(rows), dtype=np.int32), (rows, found.astype(np.int32))
        return codes, coo_array((ones, at), shape=(len(texts), len(codes))).tocsr()

    def _pieces(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The text and the hash of every n-gram."""
        # Every word with two spaces of its own: a position is in exactly one padded word.
        joined = " ".join(filter(None, texts)).replace(" ", "  ")
        points = _code_points(f" {joined} " if joined else "")
        spaces = np.flatnonzero(points == ord(" ")).astype(np.int32)
        ends = np.repeat(spaces[1::2], spaces[1::2] - spaces[::2] + 1)
        left = ends - np.arange(len(ends), dtype=np.int32) + 1  # letters to the end of the word
        lengths = [len(text) + text.count(" ") + 2 if text else 0 for text in texts]
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), np.array(lengths, dtype=np.intp))
        codes = letters = points.astype(np.uint64)
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        for size in range(1, self.sizes.stop):
            if size > 1:
                codes = codes[:-1] * _BASE + letters[size - 1 :]
            room = left[: len(codes)]
            if size in self.sizes:
                at = np.flatnonzero(room >= size)
            else:  # whole words that are too short; from three letters on, as two are spaces
                whole = (room == size) & (points[: len(codes)] == ord(" "))
                at = np.flatnonzero(whole & (size > 2))
            parts.append((rows[at], codes[at]))
        all_rows, all_codes = map(np.concatenate, zip(*parts, strict=True))
        return all_rows, all_codes


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


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
