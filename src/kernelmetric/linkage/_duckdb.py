"""Links between tables in Parquet files, which need not fit into memory: DuckDB joins the keys.

::

    a.parquet ┐  keys, piece by piece   ┌─────────────┐  equal keys    ┌────────────────────┐
    b.parquet ┘ ──────────────────────▶ │ keys.duckdb │ ─────────────▶ │ candidates.parquet │
                                        └─────────────┘                └────────────────────┘
    RecordLinker learns from some of them ──▶ probability-...-00000.npy, ... ──▶ Links
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

from kernelmetric._warnings import warn
from kernelmetric.compute import require_memory, within_budget
from kernelmetric.compute.watch import leave_if_over, stage
from kernelmetric.inputs._extras import require
from kernelmetric.linkage._compared import checked_pairs
from kernelmetric.linkage._fields import coded_texts, column_of, is_whole
from kernelmetric.linkage._links import Links, link
from kernelmetric.linkage._rules import EqualKeys
from kernelmetric.tables import read_pieces

_SAMPLE = 50_000  # candidates that a linker learns from
_AT_ONCE = 200_000  # pairs whose texts are in memory: as many as RecordLinker compares at once
_GROUP = 1_228_800  # candidates that are looked up together, a multiple of DuckDB's 2,048
_PAIR_BYTES = 2000.0  # of such a pair: two records, and a part of what DuckDB reads
_COLUMNS = "rule BIGINT, code UBIGINT, row BIGINT"
_STRICTER = "take a stricter rule of candidates."
_MIX = np.uint64(0x9E3779B97F4A7C15)


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
    a key: the same call goes on where it was interrupted. The links alone are in memory in full,
    about 100 bytes a candidate. Needs the extra ``duckdb``.

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
    _require_keys(None if linker is None else linker.rules)
    duckdb, files = _duckdb(), [_parquet(path) for path in (left, right) if path is not None]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    states = [[str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns] for f in files]
    plan = [states, [_told(rule) for rule in linker.rules]]
    _keep_plan(place / "plan.json", json.dumps(plan))
    with stage("linking files"):
        sizes = _find_candidates(duckdb, files, linker.rules, place)
        store = _Store(duckdb, files, place, sizes)
        asked = {k: v for k, v in linker.get_params().items() if k != "rules"}
        learned = joblib.hash([plan, asked, np.asarray(pairs), np.asarray(same), by_kind])
        fitted, parts = None, []
        with stage("comparing", len(store.groups)) as shown:
            for number, group in enumerate(store.groups):
                leave_if_over()
                path = place / f"probability-{learned[:12]}-{number:05}.npy"
                if not path.is_file():
                    fitted = fitted or _learned(linker, store, pairs, same, by_kind)
                    _save(path, store.probabilities(fitted, group))
                parts.append(np.load(path))
                shown.step()
    all_pairs = np.concatenate([store.pairs(group) for group in store.groups])
    ways = {"one_to_one": one_to_one, "one_to_many": one_to_many}
    return link(all_pairs, np.concatenate(parts), *store.sizes, threshold=threshold, **ways)


def file_candidates(left: Any, right: Any, rules: Any, folder: str | os.PathLike) -> np.ndarray:
    """Row numbers of records of Parquet files with equal keys, each pair once, ascending."""
    duckdb, files = _duckdb(), [_parquet(path) for path in (left, right) if path is not None]
    _require_keys(rules)
    sizes = _find_candidates(duckdb, files, rules, Path(folder))
    store = _Store(duckdb, files, Path(folder), sizes)
    return np.concatenate([store.pairs(group) for group in store.groups])


class _Store:
    """Candidates in a file, by groups, and the records of tables by their row numbers."""

    def __init__(self, duckdb: Any, files: list[Path], place: Path, sizes: list[int]):
        from pyarrow.parquet import ParquetFile

        self._files, self._connection = files, _connected(duckdb, place, ":memory:")
        self._candidates = ParquetFile(place / "candidates.parquet")
        self.n_pairs = self._candidates.metadata.num_rows
        require_memory(100.0 * self.n_pairs, f"Links of {self.n_pairs} candidates", _STRICTER)
        self.sizes = sizes[0], sizes[1] if len(files) > 1 else None
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
            f"SELECT t.* FROM read_parquet('{_quoted(self._files[side])}', file_row_number=true) t "
            "SEMI JOIN wanted ON t.file_row_number = wanted.row ORDER BY t.file_row_number"
        ).to_arrow_table()
        return found.drop_columns(["file_row_number"]).to_pandas()

    def tables(self, pairs: np.ndarray, more: Sequence[Any] = ((), ())) -> tuple[Any, Any, Any]:
        """The records of pairs, and more of each table; and where in them the pairs are."""
        rows, ends = _placed(pairs, len(self._files) > 1, more)
        tables = [self.records(side, each) for side, each in enumerate(rows)]
        return tables[0], tables[1] if len(tables) > 1 else None, ends

    def probabilities(self, linker: Any, group: int) -> np.ndarray:
        """Of a match, for the candidates of a group."""
        left, right, pairs = self.tables(self.pairs(group))
        found = [np.empty(0)]
        # What texts say of all records of a group would take too much memory at once.
        step = max(1, len(pairs)) if linker.comparison_.text_ is None else _AT_ONCE
        for first in range(0, len(pairs), step):
            rows, ends = _placed(pairs[first : first + step], right is not None)
            other = None if right is None else right.iloc[rows[1]]
            found.append(linker.predict_proba(left.iloc[rows[0]], other, ends)[:, 1])
        return np.concatenate(found)


def _placed(
    pairs: np.ndarray, two: bool, more: Sequence[Any] = ((), ())
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of each table that pairs have, with some more; and where among them the pairs are."""
    own = [pairs[:, 0], pairs[:, 1]] if two else [pairs.ravel()]
    rows = [np.union1d(*each).astype(np.intp) for each in zip(own, more, strict=False)]
    return rows, np.column_stack([np.searchsorted(rows[k * two], pairs[:, k]) for k in range(2)])


def _learned(linker: Any, store: _Store, pairs: Any, same: Any, by_kind: bool) -> Any:
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
    left, right, places = store.tables(np.concatenate([chosen, known]), more)
    given = SimpleNamespace(pairs=lambda left, right=None: places[: len(chosen)])
    learner = clone(linker).set_params(rules=[given])
    labelled = (None, None) if pairs is None else (places[len(chosen) :], same)
    with stage(f"learning from {len(chosen):,} candidates"):
        return learner.fit(left, right, *labelled, by_kind=by_kind)


def _find_candidates(
    duckdb: Any, files: list[Path], rules: Sequence[Any], place: Path
) -> list[int]:
    """Write the candidates of all rules into the folder, unless they are there; table sizes."""
    from pyarrow.parquet import ParquetFile

    sizes = [ParquetFile(path).metadata.num_rows for path in files]
    done = place / "candidates.parquet"
    if done.is_file():
        return sizes
    _remove_keys(place)
    connection = _connected(duckdb, place, str(place / "keys.duckdb"))
    try:
        for side, path in enumerate(files):
            with stage(f"keys of {path.name}", sizes[side]) as shown:
                connection.execute(f"CREATE TABLE side{side} ({_COLUMNS})")
                for piece, n_rows in _keys(path, rules, sizes[side]):
                    connection.register("piece", piece)
                    connection.execute(f"INSERT INTO side{side} FROM piece")
                    shown.step(by=n_rows)
        _join(connection, rules, len(files) > 1, done)
    finally:
        connection.close()
        _remove_keys(place)
    return sizes


def _remove_keys(place: Path) -> None:
    for path in place.glob("keys.duckdb*"):  # and what DuckDB writes beside it
        path.unlink()


def _join(connection: Any, rules: Sequence[Any], two: bool, done: Path) -> None:
    """Pairs of equal keys, all rules together, into a file."""
    other, number = ("side1", "a.n * b.n") if two else ("side0", "a.n * (a.n - 1) / 2")
    connection.execute(
        f"CREATE TEMP TABLE sizes AS SELECT rule, code, ({number})::BIGINT AS pairs "
        "FROM (SELECT rule, code, count(*) AS n FROM side0 GROUP BY ALL) a "
        f"JOIN (SELECT rule, code, count(*) AS n FROM {other} GROUP BY ALL) b USING (rule, code)"
    )
    total = 0
    for k, rule in enumerate(rules):
        n_large, lost, kept = connection.execute(
            "SELECT count(*) FILTER (pairs > $2), sum(pairs) FILTER (pairs > $2), "
            "sum(pairs) FILTER (pairs <= $2) FROM sizes WHERE rule = $1",
            [k, rule.most],
        ).fetchone()
        if n_large:
            warn(rule.too_large(n_large, int(lost)))
        connection.execute(
            "DELETE FROM sizes WHERE rule = $1 AND (pairs > $2 OR pairs = 0)", [k, rule.most]
        )
        total += int(kept or 0)
    require_memory(100.0 * total, f"Links of up to {total} candidates", _STRICTER)
    smaller = "" if two else "WHERE a.row < b.row"
    part = done.with_suffix(".part")
    with stage(f"joining keys: {total:,} pairs at most"):
        connection.execute(
            "COPY (SELECT DISTINCT a.row AS l, b.row AS r FROM sizes "
            f"JOIN side0 a USING (rule, code) JOIN {other} b USING (rule, code) {smaller} "
            f"ORDER BY l, r) TO '{_quoted(part)}' "
            f"(FORMAT parquet, ROW_GROUP_SIZE {_group_size()})"
        )
    part.replace(done)


def _keys(path: Path, rules: Sequence[Any], n_rows: int) -> Iterator[tuple[Any, int]]:
    """For each piece of a table the codes of its keys, rule by rule, without what is missing."""
    import pyarrow

    whole: dict[Any, bool] = {}
    for piece in read_pieces(path) if n_rows else ():
        hashes: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        found = [_codes(rule.keys, piece.frame, whole, hashes) for rule in rules]
        rows = np.asarray(piece.rows, np.int64)
        columns = {
            "rule": np.repeat(np.arange(len(rules)), [there.sum() for _, there in found]),
            "code": np.concatenate([code[there] for code, there in found]),
            "row": np.concatenate([rows[there] for _, there in found]),
        }
        yield pyarrow.table(columns), len(rows)


def _codes(
    keys: Sequence[Any],
    frame: Any,
    whole: dict[Any, bool],
    hashes: dict[Any, tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """A hash of 64 bits for the keys of each record, and which records have all of them.

    What is kept from one call to the next: which columns hold whole numbers, and their hashes.
    """
    import pandas as pd

    code, there = np.zeros(len(frame), np.uint64), np.ones(len(frame), bool)
    for key in keys:
        if key not in hashes:
            column = pd.Series(column_of(frame, key))
            floats = column.dtype.kind == "f" and bool(column.notna().any())
            if floats and whole.setdefault(key, is_whole(column)) != is_whole(column):
                raise ValueError(
                    f"Got numbers, some with fractions, as the key {key!r}, but expected texts or "
                    "whole numbers: round them first, or write them as texts."
                )
            at, texts = coded_texts(column)
            of_texts = pd.util.hash_array(np.append(texts, ""), categorize=False)
            hashes[key] = of_texts[at], at >= 0
        more, known = hashes[key]
        there &= known
        code = (code * _MIX) ^ more
    return code, there


def _duckdb() -> Any:
    require("pyarrow", "duckdb", "Linking files needs pyarrow")
    return require("duckdb", "duckdb", "Linking files needs duckdb")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _connected(duckdb: Any, place: Path, database: str) -> Any:
    """A database that takes the memory budget, and the folder for what is larger."""
    connection = duckdb.connect(database)
    connection.execute(f"SET memory_limit = '{max(within_budget(np.inf), 1e8) / 1e6:.0f}MB'")
    connection.execute(f"SET temp_directory = '{_quoted(place / 'duckdb')}'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def _group_size() -> int:
    """Candidates of a group: whole vectors of DuckDB, within the memory budget."""
    return max(2048, int(min(_GROUP, within_budget(np.inf) / _PAIR_BYTES)) // 2048 * 2048)


def _require_keys(rules: Sequence[Any] | None) -> None:
    wrong = [rule for rule in rules or [None] if not isinstance(rule, EqualKeys)]
    if wrong:
        raise ValueError(
            f"Got the rule {wrong[0]!r} for files, but expected EqualKeys alone: other rules need "
            "the tables in memory, read them with kernelmetric.tables.read_table."
        )


def _parquet(path: Any) -> Path:
    path = Path(path)
    if path.suffix.lower() != ".parquet" or not path.is_file():
        raise ValueError(f"Got {path}, but expected a Parquet file that is there.")
    return path


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
