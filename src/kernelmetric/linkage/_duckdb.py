"""Links between tables in Parquet files, which need not fit into memory: DuckDB joins the keys.

::

    a.parquet ┐  keys, piece by piece   ┌─────────────┐  equal keys    ┌────────────────────┐
    b.parquet ┘ ──────────────────────▶ │ keys.duckdb │ ─────────────▶ │ candidates.parquet │
                                        └─────────────┘                └────────────────────┘
    RecordLinker learns from some of them ──▶ probability-...-00000.npy, ... ──▶ Links

Texts are compared with those of the other candidates of a record as well. So these are gone through
twice: first for the two best of each record, which stay in memory.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from kernelmetric.compute import require_memory
from kernelmetric.compute.watch import leave_if_over, stage
from kernelmetric.inputs._extras import require
from kernelmetric.linkage import _joined
from kernelmetric.linkage._compared import Compared, checked_pairs
from kernelmetric.linkage._joined import GROUP, quoted
from kernelmetric.linkage._links import Links, link
from kernelmetric.linkage._rules import STRICTER, EqualKeys, require_keys
from kernelmetric.linkage._text import Texts

_SAMPLE = 50_000  # candidates that a linker learns from
_AT_ONCE = 200_000  # pairs whose texts are in memory: as many as RecordLinker compares at once
_FEWER = "name fewer columns in RecordComparison(kinds)."


def link_files(
    left: str | os.PathLike,
    right: str | os.PathLike | None = None,
    linker: Any = None,
    *,
    folder: str | os.PathLike,
    pairs: Any = None,
    same: Any = None,
    by_kind: bool = True,
    threshold: float = 0.5,
    one_to_one: bool = False,
    one_to_many: bool = False,
) -> Links:
    """Links between Parquet files that need not fit into memory.

    DuckDB finds records with equal keys, on disk where the memory budget is too small. The linker
    learns from 50,000 of these candidates and from records drawn from all. Then all candidates are
    compared, some at a time. What is done stays in ``folder``, about 20 bytes a candidate and 16
    a key: the same call goes on where it was interrupted. The links are in memory in full, about
    100 bytes a candidate; and of long texts, how many records have each word and each three
    letters, and the two best candidates of each record, some 200 bytes. Needs the extra
    ``duckdb``.

    Parameters
    ----------
    left, right : path-like
        Parquet files; without ``right``, copies inside ``left`` are looked for.
    linker : RecordLinker
        Its ``rules`` are :class:`EqualKeys`, at least one. It is not changed.
    folder : path-like
        Where candidates and probabilities are kept; made if it is not there.
    pairs, same, by_kind : array-like, default=None, and bool, default=True
        Labelled pairs, as in :meth:`RecordLinker.fit`.
    threshold, one_to_one, one_to_many : float, default=0.5, and bool, default=False
        As in :meth:`RecordLinker.links`.

    Returns
    -------
    Links
        With ``clusters()`` and ``to_frame()``.

    See Also
    --------
    kernelmetric.linkage.RecordLinker : Of tables in memory.
    kernelmetric.memory_budget : Sets how much memory DuckDB and the blocks take.

    Examples
    --------
    >>> from kernelmetric.linkage import EqualKeys, RecordLinker, link_files
    >>> linker = RecordLinker(rules=[EqualKeys("last", "born"), EqualKeys("phone")])
    >>> links = link_files("people.parquet", None, linker, folder="work")  # doctest: +SKIP
    """
    files = _parquet_files(left, right, None if linker is None else linker.rules)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    states = [[str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns] for f in files]
    plan = [states, [_told(rule) for rule in linker.rules]]
    _keep_plan(place / "plan.json", json.dumps(plan))
    with stage("linking files"):
        store = _Store(files, linker.rules, place)
        asked = {k: v for k, v in linker.get_params().items() if k != "rules"}
        learned = joblib.hash([plan, asked, np.asarray(pairs), np.asarray(same), by_kind])
        texts = place / f"texts-{joblib.hash([plan, asked['comparison']])[:12]}.npy"
        fitted, parts = None, []
        with stage("comparing", len(store.groups)) as shown:
            for number, group in enumerate(store.groups):
                leave_if_over()
                path = place / f"probability-{learned[:12]}-{number:05}.npy"
                if not path.is_file():
                    fitted = fitted or _learned(linker, store, pairs, same, by_kind, texts)
                    _save(path, store.probabilities(fitted, group))
                parts.append(np.load(path))
                shown.step()
    all_pairs = np.concatenate([store.pairs(group) for group in store.groups])
    ways = {"one_to_one": one_to_one, "one_to_many": one_to_many}
    return link(all_pairs, np.concatenate(parts), *store.sizes, threshold=threshold, **ways)


def file_candidates(left: Any, right: Any, rules: Any, folder: str | os.PathLike) -> np.ndarray:
    """Row numbers of records of Parquet files with equal keys, each pair once, ascending."""
    store = _Store(_parquet_files(left, right, rules), rules, Path(folder))
    return np.concatenate([store.pairs(group) for group in store.groups])


class _Store:
    """Candidates in a file, by groups, and the records of tables by their row numbers."""

    def __init__(self, files: list[Path], rules: Sequence[Any], place: Path):
        from pyarrow.parquet import ParquetFile

        sizes = [ParquetFile(path).metadata.num_rows for path in files]
        done = place / "candidates.parquet"
        if not done.is_file():
            _joined.find_candidates(files, sizes, rules, done)
        self._files, self._connection = files, _joined.connected(place, ":memory:")
        self._candidates = ParquetFile(done)
        self.n_pairs = self._candidates.metadata.num_rows
        require_memory(100.0 * self.n_pairs, f"Links of {self.n_pairs} candidates", STRICTER)
        self._two, self._sizes, self._begin = len(files) > 1, sizes, [0, *sizes[:-1]]
        self.sizes = sizes[0], sizes[1] if self._two else None
        self.groups = range(max(1, self._candidates.num_row_groups))

    def pairs(self, group: int) -> np.ndarray:
        """Row numbers of the candidates of a group."""
        if not self.n_pairs:
            return np.empty((0, 2), np.intp)
        table = self._candidates.read_row_group(group)
        return np.column_stack([table.column(k).to_numpy() for k in range(2)]).astype(np.intp)

    def records(self, side: int, rows: np.ndarray) -> Any:
        """Records of one of the tables, whose row numbers ascend."""
        import pyarrow

        self._connection.register("wanted", pyarrow.table({"row": rows}))
        found = self._connection.sql(
            f"SELECT t.* FROM read_parquet('{quoted(self._files[side])}', file_row_number=true) t "
            "SEMI JOIN wanted ON t.file_row_number = wanted.row ORDER BY t.file_row_number"
        ).to_arrow_table()
        return found.drop_columns(["file_row_number"]).to_pandas()

    def tables(
        self, pairs: np.ndarray, more: Sequence[Any] = ((), ())
    ) -> tuple[Any, Any, np.ndarray, list[np.ndarray]]:
        """The records of pairs, and more of each table; where in them the pairs are; their rows."""
        rows, ends = _placed(pairs, self._two, more)
        tables = [self.records(side, each) for side, each in enumerate(rows)]
        return tables[0], tables[1] if self._two else None, ends, rows

    def parts(self, group: int, step: int) -> Iterator[tuple[Any, Any, np.ndarray, list[Any]]]:
        """What :meth:`tables` gives for the candidates of a group, so many pairs at a time."""
        left, right, pairs, rows = self.tables(self.pairs(group))
        for first in range(0, len(pairs), step):
            own, ends = _placed(pairs[first : first + step], self._two)
            other = right.iloc[own[1]] if self._two else None
            known = [each[at] for each, at in zip(rows, own, strict=True)]
            yield left.iloc[own[0]], other, ends, known

    def blocks(self) -> Iterator[Any]:
        """All records of the tables, some at a time."""
        for side, n in enumerate(self._sizes):
            for first in range(0, n, _AT_ONCE):
                yield self.records(side, np.arange(first, min(n, first + _AT_ONCE)))

    def probabilities(self, linker: Any, group: int) -> np.ndarray:
        """Of a match, for the candidates of a group."""
        found = [np.empty(0)]
        # What texts say of all records of a group would take too much memory at once.
        step = GROUP if linker.comparison_.text_ is None else _AT_ONCE
        for left, right, ends, rows in self.parts(group, step):
            compare = self.compared(linker.comparison_, left, right, rows)
            found.append(linker._probability(compare, ends))
        return np.concatenate(found)

    def compared(self, comparison: Any, left: Any, right: Any, rows: list[np.ndarray]) -> Any:
        """What compares records of these rows, and texts beside the best of all candidates."""
        if comparison.text_ is None:
            return comparison.between(left, right)
        rivals, other = [], right if self._two else left
        for side in (0, -1):
            first, second, whom = self._best[:, rows[side] + self._begin[side]]
            near = rows[-1 - side]
            at = np.searchsorted(near, whom).clip(max=len(near) - 1)
            rivals.append((first, second, np.where(near[at] == whom, at, -1)))
        return Compared(comparison, left, other, Texts(comparison.text_, left, other, rivals))

    def learn_texts(self, comparison: Any, done: Path) -> None:
        """How rare words are in all records, and of each the two best candidates, also a file."""
        with stage("counting words"):
            comparison.text_ = comparison.text_.counted_in(self.blocks())
        shape = 3, sum(self._sizes), 2 * len(comparison.text_.scopes)
        require_memory(8.0 * np.prod(shape), f"Best candidates of {shape[1]} records", _FEWER)
        if done.is_file():
            self._best = np.load(done)
            return
        self._best = best = np.zeros(shape)
        best[2] = -1
        with stage("best candidates", len(self.groups)) as shown:
            for group in self.groups:
                for left, right, ends, rows in self.parts(group, _AT_ONCE):
                    found = comparison.between(left, right, ends).texts.rivals
                    for side, own in enumerate(rows):
                        first, second, whom = found[side]
                        whom = np.where(whom < 0, -1, rows[-1 - side][whom])
                        at = own + self._begin[side]
                        *before, partner = best[:, at]
                        best[:2, at] = np.sort([*before, first, second], axis=0)[:-3:-1]
                        best[2, at] = np.where(first > before[0], whom, partner)
                leave_if_over()
                shown.step()
        _save(done, best)


def _placed(
    pairs: np.ndarray, two: bool, more: Sequence[Any] = ((), ())
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of each table that pairs have, with some more; and where among them the pairs are."""
    own = [pairs[:, 0], pairs[:, 1]] if two else [pairs.ravel()]
    rows = [np.union1d(*each).astype(np.intp) for each in zip(own, more, strict=False)]
    return rows, np.column_stack([np.searchsorted(rows[k * two], pairs[:, k]) for k in range(2)])


def _learned(linker: Any, store: _Store, pairs: Any, same: Any, by_kind: bool, texts: Path) -> Any:
    """A linker that has learned from some candidates, and records among which they are as rare."""
    if not store.n_pairs:
        raise ValueError("Got rules that find no candidates: try a wider one.")
    step = -(-store.n_pairs // _SAMPLE)
    drawn, before = [], 0
    for group in store.groups:
        found = store.pairs(group)
        drawn.append(found[-before % step :: step])
        before += len(found)
    chosen = np.concatenate(drawn)
    n_left, n_right = store.sizes
    known = checked_pairs([] if pairs is None else pairs, n_left, n_right or n_left)
    share = np.sqrt(len(chosen) / store.n_pairs)
    rng = np.random.RandomState(0)
    more = [rng.permutation(n)[: int(share * n)] for n in store.sizes if n is not None]
    left, right, places, rows = store.tables(np.concatenate([chosen, known]), more)

    def compared(comparison: Any) -> Any:
        if comparison.text_ is not None:
            store.learn_texts(comparison, texts)
        return store.compared(comparison, left, right, rows)

    given = SimpleNamespace(pairs=lambda left, right=None: places[: len(chosen)])
    learner = clone(linker).set_params(rules=[given])
    labelled = (None, None) if pairs is None else (places[len(chosen) :], same)
    with stage(f"learning from {len(chosen):,} candidates"):
        return learner._fit(left, right, *labelled, by_kind, compared)


def _parquet_files(left: Any, right: Any, rules: Sequence[Any] | None) -> list[Path]:
    """The files, where they are there, their rules are of keys, and what reads them is there."""
    require_keys(rules)
    for package in ("pyarrow", "duckdb"):
        require(package, "duckdb", f"Linking files needs {package}")
    files = [Path(path) for path in (left, right) if path is not None]
    for path in files:
        if path.suffix.lower() != ".parquet" or not path.is_file():
            raise ValueError(f"Got {path}, but expected a Parquet file that is there.")
    return files


def _told(rule: EqualKeys) -> list[Any]:
    """A rule as it stands in a plan; of a function what its code does, wherever it is written."""

    def told(key: Any) -> str:
        if isinstance(key, str):
            return key
        code = getattr(key, "__code__", None)
        if code is None:
            return str(joblib.hash(key))
        inner = [getattr(value, "co_code", value) for value in code.co_consts]
        return str(joblib.hash([code.co_code, code.co_names, inner]))

    return [[told(key) for key in rule.keys], rule.most]


def _keep_plan(path: Path, plan: str) -> None:
    """Write the plan of a folder; another one there is refused."""
    if path.is_file() and path.read_text(encoding="utf-8") != plan:
        raise ValueError(
            f"Got the folder {path.parent}, which holds candidates of other files or rules: take "
            "an empty one, or remove it."
        )
    path.write_text(plan, encoding="utf-8")


def _save(path: Path, values: np.ndarray) -> None:
    """Write an array, all of it or nothing."""
    part = path.with_suffix(".part.npy")
    np.save(part, values)
    part.replace(path)
