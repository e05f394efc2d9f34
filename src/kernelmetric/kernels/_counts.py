"""Counts of things: which ones two objects share, for kernels whose features are counted."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from kernelmetric.compute import namespace, precise, rough
from kernelmetric.inputs import Objects
from kernelmetric.inputs._parameters import require_word
from kernelmetric.kernels._objects import ObjectKernel

BASE = np.uint64(0x9E3779B97F4A7C15)  # of hashes; odd, so that no letter is lost
_DENSE = 1 / 256  # of all pairs of rows: where a thing meets more often, dense products are faster
_EXACT = 2.0**24  # whole numbers below are what they are in float32
_SIMILARITIES = ("cosine", "minmax", "tanimoto")


class Counts:
    """How often every object of a table has each thing; things are known by 64 bits.

    ``matrix`` has a column for each of ``ids``, which ascend.
    """

    def __init__(self, matrix: Any, ids: np.ndarray):
        self.matrix, self.ids = matrix, ids

    @classmethod
    def of(cls, rows: np.ndarray, ids: np.ndarray, n: int) -> Counts:
        """From what was found: the row and the thing, as often as it is there."""
        known, columns = np.unique(ids.astype(np.uint64), return_inverse=True)
        ones = np.ones(len(rows))
        matrix = csr_array((ones, (rows, columns.ravel())), shape=(n, len(known)))
        matrix.sum_duplicates()
        return cls(matrix, known)

    def __getitem__(self, rows: Any) -> Counts:
        return Counts(self.matrix[rows], self.ids)

    def unary(self) -> Counts:
        """The first, the second, ... of a thing as different ones: what is shared is the lesser."""
        found = self.matrix.tocoo()
        rows, ids = one_by_one(found.row, self.ids[found.col], found.data.astype(np.intp))
        return Counts.of(rows, ids, self.matrix.shape[0])

    def products(self, other: Counts) -> np.ndarray:
        """Inner products of the rows of two tables."""
        theirs = other.matrix
        if other.ids is not self.ids:
            places = np.searchsorted(self.ids, other.ids)
            places[places == len(self.ids)] = 0
            known = np.zeros(len(places), dtype=bool)
            if len(self.ids):
                known = self.ids[places] == other.ids
            kept = known[theirs.indices]
            ends = np.append(0, np.cumsum(kept))[theirs.indptr]
            parts = theirs.data[kept], places[theirs.indices[kept]], ends
            theirs = csr_array(parts, shape=(theirs.shape[0], len(self.ids)))
        own = self.matrix
        rows = [np.bincount(M.indices, minlength=len(self.ids)) for M in (own, theirs)]
        meetings = rows[0] * (rows[1] / _DENSE)
        often = meetings > own.shape[0] * theirs.shape[0]
        if not often.any():
            return (own @ theirs.T).toarray()
        exact = max(self.squares().max(), other.squares().max()) < _EXACT
        dense = [M[:, often].toarray() for M in (own, theirs)]
        dense = [rough(M) for M in dense] if exact else dense
        K = precise(dense[0] @ dense[1].T)
        return K + (own[:, ~often] @ theirs[:, ~often].T).toarray()

    def squares(self) -> np.ndarray:
        """Squared lengths of the rows."""
        return np.asarray(self.matrix.multiply(self.matrix).sum(axis=1), dtype=np.float64).ravel()


class CountKernel(ObjectKernel):
    """Base class of kernels of objects by what is counted in them; a subclass has ``_count``."""

    similarity: Any = "cosine"
    expects: ClassVar[str] = "objects"

    def count(self, items: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """What is in a list of objects: numbers of rows, and a code of 64 bits of each thing.

        Parameters
        ----------
        items : list of object
            Objects, as ``read`` returns them.

        Returns
        -------
        rows, ids : ndarray
            As often as a thing is there.
        """
        raise NotImplementedError(f"{type(self).__name__} must define count(items).")

    def features(self, items: list[Any]) -> Any:
        """Counts of things; with "minmax" those of the first, the second, ... of each."""
        counts = Counts.of(*self.count(items), len(items))
        return counts.unary() if self._checked_similarity() == "minmax" else counts

    def _checked_similarity(self) -> str:
        require_word("similarity", self.similarity, _SIMILARITIES)
        return self.similarity

    def _values(self, A: Objects, B: Objects | None) -> Any:
        F = self._made(A)
        G = F if B is None else self._made(B)
        return alike(F.products(G), F.squares(), G.squares(), self._checked_similarity())

    def _diagonal(self, A: Objects) -> Any:
        squares = self._made(A).squares()
        empty_too = self._checked_similarity() != "cosine"
        return (empty_too | (squares > 0)).astype(np.float64)


def alike(S: Any, own: Any, other: Any, similarity: str) -> Any:
    """Kernel values from inner products and from the squared lengths of rows and of columns."""
    xp = namespace(S)
    if similarity == "cosine":
        scale = xp.sqrt(own)[:, None] * xp.sqrt(other)[None, :]
        return S / (scale + xp.astype(scale == 0, S.dtype))
    either = own[:, None] + other[None, :] - S
    empty = xp.astype(either == 0, S.dtype)  # both are, as |S| <= (a + b) / 2: their value is 1
    return (S + empty) / (either + empty)


def mixed(a: np.ndarray, b: Any) -> np.ndarray:
    """Two codes of 64 bits in one, in which every bit counts."""
    with np.errstate(over="ignore"):
        code = (a ^ (b * BASE)) * np.uint64(0xBF58476D1CE4E5B9)
        code = (code ^ (code >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    return code ^ (code >> np.uint64(29))


def one_by_one(rows: Any, ids: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first, the second, ... of each thing as things of their own, with their rows."""
    order = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(rows, times), mixed(np.repeat(ids, times), order.astype(np.uint64))


def text_codes(texts: list[str]) -> np.ndarray:
    """A code of 64 bits for each text."""
    digests = (hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8) for t in texts)
    joined = b"".join(digest.digest() for digest in digests)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)
