"""N-grams of texts in one table, and products of their vectors: what is compiled of both."""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelmetric.compute.backends._native import native

_BASE = 0x9E3779B97F4A7C15  # of the hashes; odd, so that no letter is lost
_GRAM = np.dtype(
    [
        ("code", np.uint64), ("weight", np.float64), ("texts", np.int32), ("column", np.int32),
        ("last", np.int32), ("unused", np.int32),
    ]
)  # fmt: skip
_BITS = 12  # of an empty table


class Grams:
    """How many texts have each n-gram, and texts as vectors; 32 bytes for each place of a table."""

    def __init__(self, sizes: range):
        self._sizes, self._bits, self._n, self.n_texts = sizes, _BITS, 0, 0
        self._table = np.zeros(2**_BITS, _GRAM)

    def count(self, texts: Sequence[str]) -> None:
        """Count more texts, which have no line feed."""
        codes, ends = self._pieces(texts)
        while 2 * (self._n + len(codes)) > len(self._table):
            self._bits += 1
            larger = np.zeros(2**self._bits, _GRAM)
            _call("regrow", self._table, len(self._table), larger, self._bits)
            self._table = larger
        found = codes, ends, len(ends), ctypes.c_int32(self.n_texts)
        self._n += _call("count", self._table, self._bits, *found)
        self.n_texts += len(texts)

    def weigh(self, most: int) -> bool:
        """Weigh by rarity those that at most so many texts have; whether there are any."""
        table = self._table
        kept = np.flatnonzero((table["texts"] > 0) & (table["texts"] <= most))
        table["weight"][kept] = np.log((1 + self.n_texts) / (1 + table["texts"][kept])) + 1
        kept = kept[table["texts"][kept] > 1]  # one of a single text counts in the length alone
        table["column"], table["last"] = -1, 0
        table["column"][kept] = np.arange(len(kept))
        self.n_columns = len(kept)
        return bool(np.any(table["weight"]))

    def rows(self, texts: Sequence[str]) -> Any:
        """The unit vectors of texts, a sparse array."""
        codes, ends = self._pieces(texts)
        slots, columns = np.empty(len(codes), np.int64), np.empty(len(codes), np.int32)
        values, starts = np.empty(len(codes), np.float32), np.zeros(len(ends) + 1, np.int32)
        known = self._table, self._bits, codes, ends, len(ends)
        _call("weigh", *known, slots, columns, values, starts[1:])
        n = starts[-1]
        parts = values[:n].copy(), columns[:n].copy(), starts
        return csr_array(parts, (len(ends), self.n_columns))

    def _pieces(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of all n-grams, and where those of each text end."""
        joined = "".join(f"{text}\n" for text in texts)
        letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        # A word has two spaces of its own, one of which is counted with the letters.
        room = (len(letters) + joined.count(" ") + len(texts)) * len(self._sizes)
        codes, ends = np.empty(room, np.uint64), np.empty(len(texts), np.int64)
        sizes = self._sizes.start, self._sizes.stop - 1
        _call("pieces", letters, len(letters), *sizes, ctypes.c_uint64(_BASE), codes, ends)
        return codes[: ends[-1] if len(ends) else 0], ends


def compiled_grams(sizes: range) -> Grams | None:
    """An empty table of n-grams; None where nothing is compiled."""
    return None if native() is None else Grams(sizes)


def products_compiled(Q: Any, X: Any) -> bool:
    """Whether :func:`most_alike_compiled` takes arrays like these."""
    return native() is not None and Q.dtype == X.dtype == np.float32


def most_alike_compiled(
    Q: Any, parts: Iterable[tuple[int, Any]], n_best: int, *, one: bool, both: bool
) -> list[np.ndarray]:
    """Rows of X with the largest positive products with each row of Q, and the products.

    They are -1 and 0 where there are no more. X comes in parts, each with the number of its first
    row and transposed. With ``one`` X is Q, and a row is not its own neighbour. With ``both`` the
    rows of Q for each row of the parts follow.
    """
    query, found = _sparse_parts(Q), _none_yet(Q.shape[0], n_best)
    asked: list[Any] = []
    for first, XT in parts:
        n = XT.shape[1]
        of_part = _none_yet(n, n_best) if both else (None, None)
        room = np.zeros(n, np.float32), np.empty(n + 1, np.int32)
        known = *query, Q.shape[0], *_sparse_parts(XT), first, one, n_best
        _call("most_alike", *known, *room, *found, *of_part)
        asked.append(of_part[0])
    return [*found, np.concatenate(asked)] if both else [*found]


def _none_yet(n: int, n_best: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full((n, n_best), -1, np.int32), np.zeros((n, n_best), np.float32)


def _sparse_parts(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return A.indptr.astype(np.int64), A.indices.astype(np.int32, copy=False), A.data


def _call(name: str, *arguments: Any) -> Any:
    """Call a compiled function with arrays by their place in memory, and whole numbers."""
    function = getattr(native(), f"kernelmetric_{name}")
    function.restype = ctypes.c_int64
    return function(
        *(
            ctypes.c_void_p(None if a is None else a.ctypes.data)
            if a is None or isinstance(a, np.ndarray)
            else a if isinstance(a, ctypes._SimpleCData) else ctypes.c_int64(int(a))
            for a in arguments
        )
    )  # fmt: skip
