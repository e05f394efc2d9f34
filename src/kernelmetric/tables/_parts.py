"""A table in many Parquet files, read part by part: no process ever holds all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelmetric.tables._columns import few
from kernelmetric.tables._files import Table, readable
from kernelmetric.tables._text import TableError

_PART_BYTES = 64_000_000  # of a part with all its columns as float64


@dataclass(frozen=True)
class Part:
    """Some groups of rows of a Parquet file, and the number of their first row, from 0."""

    path: str
    groups: tuple[int, ...]
    n_rows: int
    first_row: int = 0

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """The rows, with some columns, or with all where none are named."""
        import pyarrow.parquet as pq

        wanted = None if columns is None else list(columns)
        with readable(self.path), pq.ParquetFile(self.path) as file:
            frame = file.read_row_groups(list(self.groups), columns=wanted).to_pandas()
        name = self.path if self.first_row == 0 else f"{self.path} after row {self.first_row}"
        return Table(frame.reset_index(drop=True), name=name)


def open_parts(paths: Iterable[str | Path], part_bytes: int = _PART_BYTES) -> list[Part]:
    """Parts of Parquet files of the same columns, none without rows and none much too large."""
    parts: list[Part] = []
    first: tuple[str, dict[str, str]] | None = None
    for path in _files(paths):
        with readable(path):
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
        kinds = {field.name: _kind(field.type) for field in schema}
        if len(kinds) < len(schema):
            raise TableError(f"Got {path} with two columns of one name, but expected one each.")
        first = first or (path, kinds)
        _require_alike(path, kinds, *first)
        most = max(1, part_bytes // (8 * max(len(kinds), 1)))
        counts = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        parts += _cut(path, counts, most)
    if not parts:
        raise TableError("Got files without a row, but expected a table.")
    return parts


def columns_of(part: Part) -> Any:
    """The columns of a part as an empty data frame."""
    import pyarrow.parquet as pq

    return pq.read_schema(part.path).empty_table().to_pandas()


def counting_columns(parts: Iterable[Part]) -> list[str]:
    """Columns of whole numbers that run over as many numbers as there are rows, as counters do."""
    import pyarrow.parquet as pq

    found = defaultdict(list)
    n_rows = 0
    for path in dict.fromkeys(part.path for part in parts):
        metadata = pq.read_metadata(path)
        n_rows += metadata.num_rows
        for g in range(metadata.num_row_groups):
            for j in range(metadata.num_columns):
                column = metadata.row_group(g).column(j)
                found[column.path_in_schema].append(column.statistics)
    return [name for name, groups in found.items() if _is_counter(groups, n_rows)]


def _is_counter(groups: list[Any], n_rows: int) -> bool:
    """Whether the statistics of all groups of rows are those of a column that counts them."""
    for group in groups:
        known = group is not None and group.has_min_max and not group.null_count
        if not known or type(group.min) is not int:
            return False
    least, most = min(group.min for group in groups), max(group.max for group in groups)
    return most - least + 1 == n_rows > 2


def _files(paths: Iterable[str | Path]) -> list[str]:
    """Absolute names, for another process may run in another folder."""
    found = [str(Path(path).absolute()) for path in paths]
    wrong = next((name for name in found if Path(name).suffix.lower() != ".parquet"), None)
    if wrong is not None:
        raise TableError(
            f"Got {wrong}, but expected .parquet files: only these are read part by part. Try one "
            "file alone, without --workers, --dask and --output."
        )
    twice = next((name for i, name in enumerate(found) if name in found[:i]), None)
    if twice is not None:
        raise TableError(f"Got {twice} twice, but expected every file once.")
    return found


def _kind(dtype: Any) -> str:
    """What a column is to the encoder: "nothing" where a file has only gaps in it."""
    from pyarrow import types

    if types.is_null(dtype):
        return "nothing"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_dictionary(dtype):
        return _kind(dtype.value_type)
    text = types.is_string(dtype) or types.is_large_string(dtype)
    return "text" if text else str(dtype)


def _require_alike(path: str, kinds: dict[str, str], model: str, wanted: dict[str, str]) -> None:
    lacks = [name for name in wanted if name not in kinds]
    extra = [name for name in kinds if name not in wanted]
    if lacks or extra:
        said = [
            f"{verb} {few(names)}" for verb, names in (("lacks", lacks), ("has", extra)) if names
        ]
        raise TableError(
            f"Got {path}, which {' and '.join(said)} unlike {model}, but expected the same columns."
        )
    for name, kind in kinds.items():
        if "nothing" not in (kind, wanted[name]) and kind != wanted[name]:
            raise TableError(
                f"Got {path} with {kind} in the column {name!r}, but {model} has {wanted[name]} "
                "there: write both in one type."
            )


def _cut(path: str, counts: list[int], most: int) -> list[Part]:
    """Groups of rows put together to parts."""
    parts: list[Part] = []
    groups: list[int] = []
    n_rows = start = 0
    for g, count in enumerate(counts):
        if groups and n_rows + count > most:
            parts.append(Part(path, tuple(groups), n_rows, start))
            start, groups, n_rows = start + n_rows, [], 0
        groups.append(g)
        n_rows += count
    parts.append(Part(path, tuple(groups), n_rows, start))
    return [part for part in parts if part.n_rows]
