"""Records of Parquet files that have equal keys: DuckDB joins the keys, on disk if they are many.

Columns are read piece by piece. Of each record that has all keys of a rule, 64 bits are kept.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelmetric._warnings import warn
from kernelmetric.compute import require_memory, within_budget
from kernelmetric.compute.watch import stage
from kernelmetric.inputs._extras import require
from kernelmetric.linkage._rules import STRICTER
from kernelmetric.tables import read_pieces

GROUP = 1_228_800  # candidates that are looked up together, a multiple of DuckDB's 2,048
_PAIR_BYTES = 2000.0  # of such a pair: two records, and a part of what DuckDB reads
_COLUMNS = "rule BIGINT, code UBIGINT, row BIGINT"


def find_candidates(files: list[Path], sizes: list[int], rules: Sequence[Any], done: Path) -> None:
    """Write the candidates of all rules."""
    place = done.parent
    _remove_keys(place)
    connection = connected(place, str(place / "keys.duckdb"))
    try:
        for side, path in enumerate(files):
            with stage(f"keys of {path.name}", sizes[side]) as shown:
                connection.execute(f"CREATE TABLE side{side} ({_COLUMNS})")
                for piece, n_rows in _keys(path, rules, sizes[side]):
                    connection.register("piece", piece)
                    connection.execute(f"INSERT INTO side{side} BY NAME FROM piece")
                    shown.step(by=n_rows)
        _join(connection, rules, len(files) > 1, done)
    finally:
        connection.close()
        _remove_keys(place)


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
    require_memory(100.0 * total, f"Links of up to {total} candidates", STRICTER)
    smaller = "" if two else "WHERE a.row < b.row"
    part = done.with_suffix(".part")
    with stage(f"joining keys: {total:,} pairs at most"):
        connection.execute(
            "COPY (SELECT DISTINCT a.row AS l, b.row AS r FROM sizes "
            f"JOIN side0 a USING (rule, code) JOIN {other} b USING (rule, code) {smaller} "
            f"ORDER BY l, r) TO '{quoted(part)}' "
            f"(FORMAT parquet, ROW_GROUP_SIZE {group_size()})"
        )
    part.replace(done)


def _keys(path: Path, rules: Sequence[Any], n_rows: int) -> Iterator[tuple[Any, int]]:
    """For each piece of a table the codes of its keys, rule by rule, without what is missing."""
    import pandas as pd

    whole: dict[Any, bool] = {}
    for piece in read_pieces(path) if n_rows else ():
        first, hashes = int(np.min(np.asarray(piece.rows), initial=n_rows)), dict[Any, Any]()
        found = [rule.coded(piece.frame, whole, hashes, first) for rule in rules]
        yield pd.concat([each.assign(rule=k) for k, each in enumerate(found)]), len(piece.frame)


def quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def connected(place: Path, database: str) -> Any:
    """A database that takes the memory budget, and the folder for what is larger."""
    connection = require("duckdb", "duckdb", "Linking files needs duckdb").connect(database)
    connection.execute(f"SET memory_limit = '{max(within_budget(np.inf), 1e8) / 1e6:.0f}MB'")
    connection.execute(f"SET temp_directory = '{quoted(place / 'duckdb')}'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def group_size() -> int:
    """Candidates of a group: whole vectors of DuckDB, within the memory budget."""
    return max(2048, int(min(GROUP, within_budget(np.inf) / _PAIR_BYTES)) // 2048 * 2048)
