"""Links between tables in Parquet files, which need not fit into memory: DuckDB joins the keys.

::

    a.parquet ┐  keys, piece by piece   ┌─────────────┐  equal keys    ┌────────────────────┐
    b.parquet ┘ ──────────────────────▶ │ keys.duckdb │ ─────────────▶ │ candidates.parquet │
                                        └─────────────┘                └────────────────────┘
    RecordLinker learns from some of them ──▶ probability-00000.parquet, ... ──▶ Links

What is done stays in the folder, so that the same call goes on where it was interrupted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from kernelmetric._warnings import warn
from kernelmetric.compute import require_memory, within_budget
from kernelmetric.compute.watch import leave_if_over, stage
from kernelmetric.linkage._fields import column_of, is_whole, texts_of
from kernelmetric.linkage._links import Links, link
from kernelmetric.linkage._rules import EqualKeys
from kernelmetric.tables import read_pieces

_SAMPLE = 50_000  # candidates that a linker learns from
_AT_ONCE = 200_000  # pairs whose texts are in memory: as many as RecordLinker compares at once
_GROUP = 1_228_800  # candidates that are looked up together, a multiple of DuckDB's 2,048
_PAIR_BYTES = 2000.0  # of such a pair: two records, and a part of what DuckDB reads
_MIX = np.uint64(0x9E3779B97F4A7C15)


class GivenPairs:
    """A rule of candidates that were found before."""

    def __init__(self, pairs: np.ndarray):
        self.found = pairs

    def pairs(self, left: Any, right: Any = None) -> np.ndarray:
        """Those."""
        return self.found


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
) -> Links:
    """Links between Parquet files that need not fit into memory.

    DuckDB finds records with equal keys, on disk where the memory budget is too small. The linker
    learns from %d of these candidates and from records drawn from all. Then all candidates are
    compared, so many at a time. What is done stays in ``folder``, about 20 bytes a candidate and 16
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
    threshold, one_to_one : float, default=0.5, and bool, default=False
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
    duckdb = _duckdb()
    linker = _file_linker(linker)
    files = [_parquet(path) for path in (left, right) if path is not None]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    plan = {"files": [_state(path) for path in files], "rules": [_told(r) for r in linker.rules]}
    _keep_plan(place / "plan.json", plan)
    with stage("linking files"):
        sizes = _find_candidates(duckdb, files, linker.rules, place)
        store = _Store(duckdb, files, place, sizes)
        asked = {k: v for k, v in linker.get_params().items() if k != "rules"}
        learned = joblib.hash([plan, asked, np.asarray(pairs), np.asarray(same), by_kind])
        fitted: list[Any] = []
        parts = []
        with stage("comparing", len(store.groups)) as shown:
            for number, group in enumerate(store.groups):
                leave_if_over()
                path = place / f"probability-{learned[:12]}-{number:05}.npy"
                if not path.is_file():
                    if not fitted:
                        fitted.append(_learned(linker, store, pairs, same, by_kind))
                    _save(path, store.probabilities(fitted[0], group))
                parts.append(np.load(path))
                shown.step()
    all_pairs = np.concatenate([store.pairs(group) for group in store.groups])
    return link(
        all_pairs, np.concatenate(parts), *store.sizes, threshold=threshold, one_to_one=one_to_one
    )


link_files.__doc__ = (link_files.__doc__ or "") % _SAMPLE


def file_candidates(
    left: Any, right: Any, rules: Sequence[Any], folder: str | os.PathLike
) -> np.ndarray:
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
        own = [pairs[:, 0], pairs[:, 1]] if len(self._files) > 1 else [pairs.ravel()]
        rows = [np.union1d(*each).astype(np.intp) for each in zip(own, more, strict=False)]
        tables = [self.records(side, each) for side, each in enumerate(rows)]
        ends = [np.searchsorted(rows[k % len(rows)], pairs[:, k]) for k in range(2)]
        return tables[0], tables[1] if len(tables) > 1 else None, np.column_stack(ends)

    def probabilities(self, linker: Any, group: int) -> np.ndarray:
        """Of a match, for the candidates of a group."""
        left, right, pairs = self.tables(self.pairs(group))
        found = [np.empty(0)]
        for first in range(0, len(pairs), _AT_ONCE):
            some = pairs[first : first + _AT_ONCE]
            sides = [np.unique(some)] * 2 if right is None else [np.unique(c) for c in some.T]
            ends = np.column_stack(
                [np.searchsorted(rows, c) for rows, c in zip(sides, some.T, strict=True)]
            )
            other = None if right is None else right.iloc[sides[1]]
            found.append(linker.predict_proba(left.iloc[sides[0]], other, ends)[:, 1])
        return np.concatenate(found)


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
    known = np.empty((0, 2), np.intp) if pairs is None else np.asarray(pairs, np.intp)
    share = np.sqrt(len(chosen) / store.n_pairs)
    rng = np.random.RandomState(0)
    more = [rng.permutation(n)[: int(share * n)] for n in store.sizes if n is not None]
    left, right, places = store.tables(np.concatenate([chosen, known]), more)
    learner = clone(linker).set_params(rules=[GivenPairs(places[: len(chosen)])])
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
    database = place / "keys.duckdb"
    database.unlink(missing_ok=True)
    connection = _connected(duckdb, place, str(database))
    try:
        for side, path in enumerate(files):
            with stage(f"keys of {path.name}", sizes[side]) as shown:
                for piece, n_rows in _keys(path, rules, sizes[side]):
                    connection.register("piece", piece)
                    new = "CREATE TABLE IF NOT EXISTS {0} AS FROM piece LIMIT 0"
                    connection.execute(new.format(f"side{side}"))
                    connection.execute(f"INSERT INTO side{side} FROM piece")
                    shown.step(by=n_rows)
        _join(connection, rules, len(files) > 1, done)
    finally:
        connection.close()
    database.unlink()
    return sizes


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
    import pandas as pd
    import pyarrow

    if not n_rows:
        codes = {"rule": pyarrow.int8(), "code": pyarrow.uint64(), "row": pyarrow.int64()}
        yield pyarrow.schema(list(codes.items())).empty_table(), 0
        return
    whole: dict[Any, bool] = {}
    for piece in read_pieces(path):
        parts: list[list[Any]] = [[], [], []]
        for number, rule in enumerate(rules):
            code, there = np.zeros(len(piece.frame), np.uint64), np.ones(len(piece.frame), bool)
            for key in rule.keys:
                column = pd.Series(column_of(piece.frame, key))
                if _has_floats(column) and whole.setdefault(key, is_whole(column)) != is_whole(
                    column
                ):
                    raise ValueError(
                        f"Got numbers with fractions in {path.name} as the key {key!r}, but "
                        "expected texts or whole numbers: round them to texts."
                    )
                texts = texts_of(column)
                known = np.array([text is not None for text in texts], dtype=bool)
                there &= known
                texts[~known] = ""
                code = (code * _MIX) ^ pd.util.hash_array(texts, categorize=False)
            rows = np.flatnonzero(there)
            parts[0].append(np.full(len(rows), number, np.int8))
            parts[1].append(code[rows])
            parts[2].append(piece.rows[rows].astype(np.int64))
        columns = [np.concatenate(part) for part in parts]
        yield pyarrow.table(columns, names=["rule", "code", "row"]), len(piece.frame)


def _has_floats(column: Any) -> bool:
    return column.dtype.kind == "f" and bool(column.notna().any())


_STRICTER = "take a stricter rule of candidates."


def _duckdb() -> ModuleType:
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"Linking files needs {error.name}, which is not installed: try pip install "
            '"kernelmetric[duckdb]", or ".[duckdb]" in a checkout.',
            name=error.name,
        ) from error
    return duckdb


def _connected(duckdb: Any, place: Path, database: str) -> Any:
    """A database that takes the memory budget, and the folder for what is larger."""
    connection = duckdb.connect(database)
    connection.execute(f"SET memory_limit = '{max(within_budget(np.inf), 1e8) / 1e6:.0f}MB'")
    connection.execute(f"SET temp_directory = '{_quoted(place / 'duckdb')}'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


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


def _file_linker(linker: Any) -> Any:
    _require_keys(None if linker is None else linker.rules)
    return linker


def _parquet(path: Any) -> Path:
    path = Path(path)
    if path.suffix.lower() != ".parquet" or not path.is_file():
        raise ValueError(f"Got {path}, but expected a Parquet file that is there.")
    return path


def _state(path: Path) -> list[Any]:
    return [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]


def _told(rule: EqualKeys) -> list[Any]:
    """A rule as it stands in a plan; of a function its code."""
    keys = [
        key if isinstance(key, str) else joblib.hash([key.__code__.co_code, key.__code__.co_consts])
        for key in rule.keys
    ]
    return [keys, rule.most]


def _keep_plan(path: Path, plan: dict[str, Any]) -> None:
    """Write the plan of a folder; another one there is refused."""
    text = json.dumps(plan)
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        raise ValueError(
            f"Got the folder {path.parent}, which holds candidates of other files or rules: take "
            "an empty one, or remove it."
        )
    path.write_text(text, encoding="utf-8")


def _save(path: Path, values: np.ndarray) -> None:
    """Write an array, all of it or nothing."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.save(file, values)
    part.replace(path)
