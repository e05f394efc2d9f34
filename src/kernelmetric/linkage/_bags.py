"""Texts as bags of words and of three letters, weighted by how rare these are in both tables."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

from kernelmetric.linkage._words import words_of

_BLOCK = 50_000  # texts at a time
_LETTERS = range(3, 4)


@dataclass(frozen=True)
class Frequencies:
    """In how many of so many texts pieces are; pieces are known by hashes of 64 bits, ascending."""

    codes: np.ndarray
    counts: np.ndarray
    n_texts: int

    def rarity(self, pieces: np.ndarray) -> np.ndarray:
        """log((1 + n) / (1 + texts with the piece)) + 1, most for one never seen."""
        hashes, n = hashed(pieces), len(self.codes)
        at = np.minimum(np.searchsorted(self.codes, hashes), max(n - 1, 0))
        known = self.codes[at] == hashes if n else np.zeros(len(hashes), dtype=bool)
        counts = np.where(known, self.counts[at] if n else 0, 0)
        return np.log((1 + self.n_texts) / (1 + counts)) + 1

    def and_in(self, others: "Frequencies") -> "Frequencies":
        """In these texts and in others."""
        both = [(each.codes, each.counts) for each in (self, others)]
        return merged(both, self.n_texts + others.n_texts)


def counted(texts: list[list[str]]) -> tuple[Frequencies, Frequencies]:
    """Frequencies of words and of three letters, one block of texts at a time.

    ``texts`` are those of the two tables.
    """
    found: list[list[tuple[np.ndarray, np.ndarray]]] = [[], []]
    for side in texts:
        for begin in range(0, len(side), _BLOCK):
            bag = Bag(side[begin : begin + _BLOCK])
            for kind, (pieces, B) in enumerate((bag.of_words(), bag.of_letters())):
                found[kind].append((hashed(pieces), np.bincount(B.indices, minlength=B.shape[1])))
    n = sum(sum(map(bool, side)) for side in texts)
    return tuple(merged(kind, n) for kind in found)  # type: ignore[return-value]


def merged(parts: list[tuple[np.ndarray, np.ndarray]], n: int) -> Frequencies:
    """What parts of n texts have together."""
    if not parts:
        return Frequencies(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), n)
    codes, counts = map(np.concatenate, zip(*parts, strict=True))
    known, place = np.unique(codes, return_inverse=True)
    return Frequencies(known, np.bincount(place, counts, len(known)).astype(np.int64), n)


class Bag:
    """Which words, and which three letters, each of some texts has."""

    def __init__(self, texts: list[str]):
        self.words, self._W = incidence([words_of(text) for text in texts])

    def of_words(self) -> tuple[np.ndarray, Any]:
        """The words, and which text has which."""
        return self.words, _ones(self._W)

    def of_letters(self) -> tuple[np.ndarray, Any]:
        """The three letters in a row inside words, spaces around them, and which text has which."""
        grams, G = incidence([pieces_of(word, _LETTERS) for word in self.words])
        return grams, _ones(self._W @ G)


def incidence(lists: Sequence[Collection[str]]) -> tuple[np.ndarray, Any]:
    """The pieces that lists have, and how often which list has which, a sparse array."""
    import pandas as pd

    sizes = np.fromiter(map(len, lists), dtype=np.intp, count=len(lists))
    flat = np.empty(int(sizes.sum()), dtype=object)
    flat[:] = [piece for pieces in lists for piece in pieces]
    at, pieces = pd.factorize(flat)
    rows, ones = np.repeat(np.arange(len(lists)), sizes), np.ones(len(flat))
    return pieces, coo_array((ones, (rows, at)), shape=(len(lists), len(pieces))).tocsr()


def hashed(pieces: np.ndarray) -> np.ndarray:
    """The same 64 bits for the same piece, wherever and whenever."""
    import pandas as pd

    whole = np.array([p.encode("utf-8", "surrogatepass").decode("latin-1") for p in pieces], object)
    return pd.util.hash_array(whole, categorize=False) if len(whole) else np.empty(0, np.uint64)


def weighed(B: Any, weights: np.ndarray) -> Any:
    """Weights of pieces in place of ones."""
    return csr_array(B @ diags_array(weights))


def unit(B: Any) -> Any:
    """Rows of length one."""
    length = np.sqrt(np.asarray((B * B).sum(axis=1)).ravel())
    return csr_array(diags_array(1 / np.where(length > 0, length, 1)) @ B)


def sums(B: Any) -> np.ndarray:
    """Of every row."""
    return np.asarray(B.sum(axis=1), dtype=np.float64).ravel()


def largest(B: Any) -> np.ndarray:
    """The largest entry of every row, 0 where it has none."""
    found, there = np.zeros(B.shape[0]), np.diff(B.indptr) > 0
    if there.any():
        found[there] = np.maximum.reduceat(B.data, B.indptr[:-1][there])
    return found


def pieces_of(word: str, sizes: range) -> list[str]:
    """Letters in a row of a word with a space on both sides; all of it where it has fewer."""
    word = f" {word} "
    found = [word[k : k + size] for size in sizes for k in range(len(word) - size + 1)]
    return found or [word]


def _ones(B: Any) -> Any:
    B = csr_array(B)
    B.sum_duplicates()
    B.data = np.ones(len(B.data))
    return B
