"""Which documents belong to which query: pairs of row numbers of two tables, or of one."""

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute import backend_of, in_library_of
from kernelmetric.graphs._row_tuples import check_rows
from kernelmetric.inputs import check_labels, check_weights, label_column

_OF_LABELS = 100_000  # pairs that are drawn from labels, at most
_PER_QUERY = 10


@dataclass(eq=False, repr=False)
class Matches:
    """Pairs (query, document) with weights, and what else is known of the two tables.

    ``codes`` are classes of queries and documents, where labels made the pairs: all documents of
    the class then match, also those of which no pair was drawn. ``apart`` are pairs that do not
    match. In one table a row is never its own document.
    """

    pairs: np.ndarray
    weights: np.ndarray
    shape: tuple[int, int]
    _: KW_ONLY
    one_table: bool
    apart: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.intp))
    codes: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_pairs(
        cls,
        pairs: Any,
        n_queries: int,
        n_documents: int | None = None,
        *,
        weights: Any = None,
        apart: Any = None,
    ) -> Self:
        """From row numbers; without ``n_documents`` both count the rows of one table."""
        one_table = n_documents is None
        shape = n_queries, n_queries if n_documents is None else n_documents
        rows, others = (
            _check_pairs(given, name, shape, one_table)
            for given, name in ((pairs, "matching"), (apart, "dissimilar"))
        )
        if not len(rows):
            raise ValueError(
                "Got no pair of a query and its document, but expected some: row numbers of both, "
                "labels of both, or triplets."
            )
        w = check_weights(1.0 if weights is None else weights, len(rows), "pair_weight")
        rows, w = rows[w > 0], w[w > 0]
        codes, first, place = np.unique(_codes(rows, shape), return_index=True, return_inverse=True)
        if len(codes) < len(rows) and weights is None:
            again = rows[np.setdiff1d(np.arange(len(rows)), first)[0]].tolist()
            warn(
                f"Got {len(rows) - len(codes)} pairs that are listed again, such as {again}: each "
                "counts as often as it is listed. Pass weights to say so without this warning.",
            )
        rows, w = rows[first], np.bincount(place.ravel(), weights=w)
        both = np.flatnonzero(np.isin(_codes(others, shape), codes))
        if len(both):
            raise ValueError(
                f"Got {len(both)} pairs both as matching and as dissimilar, such as "
                f"{others[both[0]].tolist()}, but expected one of the two: leave out either."
            )
        return cls(rows, w, shape, one_table=one_table, apart=others)

    @classmethod
    def of_labels(cls, labels: Any, document_labels: Any = None, random_state: Any = 0) -> Self:
        """From classes: of each query some pairs are drawn, and all of its class match."""
        one_table = document_labels is None
        columns = [label_column(y) for y in (labels, labels if one_table else document_labels)]
        if len({column.dtype.kind in "OSU" for column in columns}) > 1:
            raise ValueError(
                f"Got labels of queries of {columns[0].dtype} and of documents of "
                f"{columns[1].dtype}, but expected the same kind: try astype(str) of both."
            )
        joint = np.concatenate(columns)
        joint, n = check_labels(joint, joint), len(columns[0])
        codes, shape = (joint[:n], joint[n:]), (n, len(columns[1]))
        order = np.argsort(codes[1], kind="stable")
        sizes = np.bincount(codes[1], minlength=joint.max() + 1)
        found = np.flatnonzero(sizes[codes[0]] > one_table)
        if not len(found):
            raise ValueError(
                "Got no label that a query shares with another document, but expected some: "
                "nothing can be found."
            )
        if len(found) < n:
            lost = int(np.setdiff1d(np.arange(n), found)[0])
            warn(
                f"Got {n - len(found)} queries whose label no document has, such as row {lost}: "
                "they have no match, and nothing is learned from them.",
            )
        rng = check_random_state(random_state)
        each = int(np.clip(_OF_LABELS // len(found), 1, _PER_QUERY))
        starts = np.cumsum(sizes) - sizes
        of = codes[0][found][:, None]
        drawn = order[starts[of] + rng.randint(0, 2**31 - 1, (len(found), each)) % sizes[of]]
        pairs = np.column_stack([np.repeat(found, each), drawn.ravel()])
        pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]] if one_table else pairs, axis=0)
        return cls(pairs, np.ones(len(pairs)), shape, one_table=one_table, codes=codes)

    @cached_property
    def queries(self) -> np.ndarray:
        """Rows of the queries with a match, ascending."""
        return np.unique(self.pairs[:, 0])

    def query_weights(self, queries: np.ndarray) -> np.ndarray:
        """What some queries count: the weights of their pairs, on average."""
        weights = np.bincount(self.pairs[:, 0], self.weights, self.shape[0])
        counts = np.bincount(self.pairs[:, 0], minlength=self.shape[0])
        return weights[queries] / np.maximum(counts[queries], 1)

    def without(self, queries: np.ndarray) -> Self:
        """The pairs that know nothing of some queries, which in one table are documents too."""
        held = np.zeros(self.shape[0], dtype=bool)
        held[queries] = True

        def kept(rows: np.ndarray) -> np.ndarray:
            return ~(held[rows[:, 0]] | (held[rows[:, 1]] if self.one_table else False))

        some = kept(self.pairs)
        apart = self.apart[kept(self.apart)]
        return replace(self, pairs=self.pairs[some], weights=self.weights[some], apart=apart)

    def relevant(self, queries: np.ndarray, documents: np.ndarray, S: Any) -> Any:
        """Which of some documents match which of some queries, where the scores S are."""
        if self.codes is not None:
            of_queries, of_documents = self.codes[0][queries], self.codes[1][documents]
            return in_library_of(of_queries, S)[:, None] == in_library_of(of_documents, S)
        rows, found = self._known[queries].nonzero()
        places = np.minimum(np.searchsorted(documents, found), len(documents) - 1)
        there = documents[places] == found
        nothing = S != S
        true = np.ones(there.sum(), bool)
        return backend_of(S).set_pairs(nothing, rows[there], places[there], true)

    def themselves(self, queries: np.ndarray, documents: np.ndarray, S: Any) -> Any:
        """Which documents are the queries, and never found; None for two tables."""
        if not self.one_table:
            return None
        return in_library_of(queries, S)[:, None] == in_library_of(documents, S)

    @cached_property
    def _known(self) -> sparse.csr_array:
        entries = np.ones(len(self.pairs), dtype=bool), tuple(self.pairs.T)
        return sparse.csr_array(entries, shape=self.shape)


def _codes(rows: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return rows[:, 0] * shape[1] + rows[:, 1]


def _check_pairs(given: Any, name: str, shape: tuple[int, int], one_table: bool) -> np.ndarray:
    """Row numbers of queries and documents, each in its own table."""
    rows = check_rows(given, name, max(shape))
    for column, (what, n) in enumerate(zip(("query", "document"), shape, strict=True)):
        beyond = np.flatnonzero(rows[:, column] >= n)
        if len(beyond):
            raise ValueError(
                f"Got a {name} pair with {what} {rows[beyond[0], column]} (pair {beyond[0]}), but "
                f"expected row numbers of {n}: (query, document), each counted from 0 in its own "
                "table."
            )
    itself = np.flatnonzero(rows[:, 0] == rows[:, 1])
    if one_table and len(itself):
        raise ValueError(
            f"Got a {name} pair with row {rows[itself[0], 0]} as its own document, but expected "
            "two different rows of the table."
        )
    return rows
