"""Records of one table, or of two, as ``link`` and ``label`` take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelmetric.linkage import NearestText, RecordLinker
from kernelmetric.tables import TableError, open_table, require_columns


def record_options(function: Callable) -> Callable:
    """The tables, what names their records, and what of them is compared."""
    import click

    file = click.Path(dir_okay=False, path_type=Path)
    options: list[Callable[[Callable], Callable]] = [
        click.argument("left", type=file),
        click.argument("right", type=file, required=False),
        click.option("--id", "id_column", metavar="COL", help="The column that names records."),
        click.option(
            "--column", "columns", multiple=True, metavar="COL", help="Compare these alone."
        ),
        click.option(
            "--neighbors", type=click.IntRange(1), default=10, show_default=True,
            help="Candidates of each record: those whose letters are most alike.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


class Records(NamedTuple):
    """Rows of the tables, their ids (None: by number), what is compared (right may be None)."""

    frames: list[Any]
    ids: list[Any]
    compared: tuple[Any, Any]
    notes: list[str]
    linker: RecordLinker


def open_records(
    left: Path, right: Path | None, *, id_column: str | None, columns: Sequence[str], neighbors: int
) -> Records:
    """Read the tables, as the options say."""
    tables = [open_table(path) for path in (left, right) if path is not None]
    frames = [table.frame for table in tables]
    ids = [_ids_of(frame, id_column) for frame in frames]
    one, *other = [_compared(frame, id_column, columns) for frame in frames]
    notes = [note for table in tables for note in table.notes]
    linker = RecordLinker(rules=[NearestText(n_neighbors=neighbors)])
    return Records(frames, ids, (one, other[0] if other else None), notes, linker)


def rows_named(cells: Iterable[str], ids: Any, path: Path) -> list[int]:
    """The row numbers of records that a file names by their ids."""
    place = {name: row for row, name in enumerate(ids)}
    cells = list(cells)
    unknown = [cell for cell in cells if cell not in place]
    if unknown:
        raise TableError(f"Got the id {unknown[0]!r} in {path}, which no record has.")
    return [place[cell] for cell in cells]


def _compared(frame: Any, id_column: str | None, columns: Sequence[str]) -> Any:
    """The columns to compare."""
    require_columns(frame, columns)
    if columns:
        return frame[list(columns)]
    return frame if id_column is None else frame.drop(columns=id_column)


def _ids_of(frame: Any, id_column: str | None) -> Any:
    """What records are called, None for their row numbers."""
    if id_column is None:
        return None
    require_columns(frame, [id_column])
    ids = frame[id_column].astype(str)
    if ids.duplicated().any() or frame[id_column].isna().any():
        raise TableError(
            f"Got --id {id_column}, which is missing somewhere or there twice, but expected a "
            "different value for every record."
        )
    return ids.to_numpy(object)
