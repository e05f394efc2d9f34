"""Records of one table, or of two, as ``link`` and ``label`` take them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from kernelmetric.cli._options import FILE, together
from kernelmetric.linkage import NearestText, RecordLinker
from kernelmetric.tables import TableError, open_table, require_columns

record_options = together(
    click.argument("left", type=FILE),
    click.argument("right", type=FILE, required=False),
    click.option("--id", "id_column", metavar="COL", help="The column that names records."),
    click.option("--column", "columns", multiple=True, metavar="COL", help="Compare these alone."),
    click.option(
        "--neighbors",
        type=click.IntRange(1),
        default=10,
        show_default=True,
        help="Candidates of each record: those whose letters are most alike.",
    ),
)


class Side(NamedTuple):
    """A table: its rows, their ids (None: their numbers), and the columns to compare."""

    frame: Any
    ids: Any = None
    compared: Any = None

    def rows_named(self, cells: Iterable[str], path: Path) -> list[int]:
        """The row numbers of records that a file names by their ids."""
        place = {name: row for row, name in enumerate(self.ids)}
        cells = list(cells)
        unknown = [cell for cell in cells if cell not in place]
        if unknown:
            raise TableError(f"Got the id {unknown[0]!r} in {path}, which no record has.")
        return [place[cell] for cell in cells]

    def fingerprint(self, row: int) -> str:
        """A few letters that stand for what a row holds, whatever the order of the columns."""
        columns = self.frame.columns
        order = sorted(range(len(columns)), key=lambda k: str(columns[k]))
        cells = [f"{columns[k]}={self.frame.iat[row, k]}" for k in order]
        text = "\x1f".join(cells).encode("utf-8", "surrogatepass")
        return f"r{hashlib.sha256(text).hexdigest()[:16]}"  # no number for anybody who reads it


class Records(NamedTuple):
    """The two sides, which are one and the same where there is one table."""

    left: Side
    right: Side
    notes: list[str]
    linker: RecordLinker

    @property
    def compared(self) -> tuple[Any, Any]:
        """What is compared, None on the right for the left table itself."""
        return self.left.compared, None if self.right is self.left else self.right.compared


def open_records(
    left: Path, right: Path | None, *, id_column: str | None, columns: Sequence[str], neighbors: int
) -> Records:
    """Read the tables, as the options say."""
    tables = [open_table(path) for path in (left, right) if path is not None]
    sides = [_side(table.frame, id_column, columns) for table in tables]
    notes = [note for table in tables for note in table.notes]
    linker = RecordLinker(rules=[NearestText(n_neighbors=neighbors)])
    return Records(sides[0], sides[-1], notes, linker)


def _side(frame: Any, id_column: str | None, columns: Sequence[str]) -> Side:
    """A table with its ids and the columns to compare; refused where ids are no names."""
    require_columns(frame, columns)
    compared = frame[list(columns)] if columns else frame
    if id_column is None:
        return Side(frame, None, compared)
    require_columns(frame, [id_column])
    ids = frame[id_column].astype(str)
    if ids.duplicated().any() or frame[id_column].isna().any():
        raise TableError(
            f"Got --id {id_column}, which is missing somewhere or there twice, but expected a "
            "different value for every record."
        )
    compared = compared if columns else frame.drop(columns=id_column)
    return Side(frame, ids.to_numpy(object), compared)
