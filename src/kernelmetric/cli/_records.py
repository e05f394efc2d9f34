"""Records of one table, or of two, as ``link`` and ``label`` take them, and answers about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from kernelmetric.cli._files import alone_at
from kernelmetric.cli._options import FILE, columns_option, together
from kernelmetric.cli._talk import count
from kernelmetric.linkage import NearestText, RecordLinker
from kernelmetric.report import write_atomically
from kernelmetric.tables import TableError, open_table, require_columns, table_bytes
from kernelmetric.tables._plan import _ID_NAME

ANSWERS: dict[str, bool | None] = {"yes": True, "no": False, "unsure": None}
Answer = tuple[int, int, bool | None]
_NAMES = ["left", "right", "answer"]
_WORDED = 0.5  # of the values of a column of words have a letter
_MOST_WORDED = 40  # columns, each two of which are compared
_FAR_OFTENER = 25.0  # two values in each other's column, beside in their own
_PRINTS = ["left_record", "right_record"]  # what the rows hold, where they have no ids

record_options = together(
    click.argument("left", type=FILE),
    click.argument("right", type=FILE, required=False),
    click.option("--id", "id_column", metavar="COL", help="The column that names records."),
    click.option("--column", "columns", multiple=True, metavar="COL", help="Compare these alone."),
    columns_option("--ignore", "Do not compare this column."),
    columns_option("--use", "Compare it though it looks like an id."),
    click.option(
        "--neighbors", type=click.IntRange(1), default=10, help="Candidates of each record."
    ),
)


class Side(NamedTuple):
    """A table: its rows, their ids (None: their numbers), and the columns to compare."""

    frame: Any
    ids: Any = None
    compared: Any = None

    def without(self, names: Sequence[str]) -> Side:
        """The side, without some of the columns to compare."""
        return self._replace(compared=self.compared.drop(columns=list(names), errors="ignore"))

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
    names: tuple[Any, Any]  # to call the records by on a page, None: by their numbers

    @property
    def compared(self) -> tuple[Any, Any]:
        """What is compared, None on the right for the left table itself."""
        return self.left.compared, None if self.right is self.left else self.right.compared


def open_records(
    left: Path,
    right: Path | None,
    *,
    id_column: str | None,
    columns: Sequence[str],
    ignore: Sequence[str],
    use: Sequence[str],
    neighbors: int,
) -> Records:
    """Read the tables, as the options say; columns that number records are not compared."""
    tables = [open_table(path) for path in (left, right) if path is not None]
    known = {name for table in tables for name in table.frame.columns}
    for name in (*ignore, *use):
        if name not in known:
            raise TableError(f"Got no column {name!r}, but expected one of {sorted(known)}.")
    sides = [_side(table.frame, id_column, columns) for table in tables]
    notes = [note for table in tables for note in table.notes]
    found = _identifiers([side.frame for side in sides])
    own = [] if columns else [c for c in found if c not in (*use, *ignore, id_column)]
    named = [name for name in found if _ID_NAME.search(str(name))]
    called = [side.frame[named[0]] if named and side.ids is None else side.ids for side in sides]
    if {*own, *ignore} >= {*sides[0].compared.columns}:
        own = []  # it is all there is to compare
    sides = [side.without([*own, *ignore]) for side in sides]
    notes += [
        f"{name}: not compared, it differs in every record, like an identifier. If equal values "
        f"mean a match, add --use {name}."
        for name in own
    ]
    sides, said = _exchanged(sides)
    notes += said
    linker = RecordLinker(rules=[NearestText(n_neighbors=neighbors)])
    return Records(sides[0], sides[-1], notes, linker, (called[0], called[-1]))


def _identifiers(frames: Sequence[Any]) -> list[str]:
    """Columns that name or count the records of every table."""
    import pandas as pd

    def own(column: Any) -> bool:
        return len(column) > 2 and column.astype(str).is_unique and not column.isna().any()

    def counts(column: Any) -> bool:
        numbers = pd.to_numeric(column, errors="coerce")  # those of a file are texts
        return bool((numbers % 1 == 0).all()) and np.ptp(numbers) < sum(map(len, frames))

    return [
        name
        for name in frames[0].columns
        if all(name in frame and own(frame[name]) for frame in frames)
        and (_ID_NAME.search(str(name)) or all(counts(frame[name]) for frame in frames))
    ]


def _exchanged(sides: Sequence[Side]) -> tuple[list[Side], list[str]]:
    """Put values back that stand in each other's column, where others have them far oftener."""
    import pandas as pd

    frames = [side.compared.copy() for side in sides]
    shared = [name for name in frames[0] if all(name in frame for frame in frames)]
    texts = [frame[shared].astype("string").apply(lambda c: c.str.casefold()) for frame in frames]
    counts = {name: pd.concat([each[name] for each in texts]).value_counts() for name in shared}
    lettered = {name: counts[name].index.str.contains(r"[^\W\d_]") for name in shared}
    worded = [name for name in shared if lettered[name].sum() > _WORDED * len(lettered[name])]
    notes = []
    for a, b in combinations(worded[:_MOST_WORDED], 2):
        n = 0
        for frame, each in zip(frames, texts, strict=True):
            own = (each[a].map(counts[a]) - 0.5) * (each[b].map(counts[b]) - 0.5)
            other = (each[a].map(counts[b]) + 0.5) * (each[b].map(counts[a]) + 0.5)
            found = (other > _FAR_OFTENER * own).fillna(False).to_numpy(bool)
            frame.loc[found, [a, b]] = frame.loc[found, [b, a]].to_numpy()
            n += int(found.sum())
        if n:
            records = count(n, "record")
            notes.append(f"{a} and {b}: exchanged in {records}, compared the right way round.")
    return [side._replace(compared=f) for side, f in zip(sides, frames, strict=True)], notes


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


class AnswerFile:
    """The answers about two sides in a file, to which others may write as well."""

    def __init__(self, path: Path, left: Side, right: Side):
        self.path, self.left, self.right = path, left, right
        self._seen: dict[tuple[int, int], bool | None] = {}  # as the file was last

    @property
    def has_answers(self) -> bool:
        """Whether the file is there, and holds anything."""
        return self.path.is_file() and self.path.stat().st_size > 0

    def read(self) -> tuple[list[Answer], list[str]]:
        """Row numbers and answers, and what to say of them."""
        table = open_table(self.path).frame
        self._require_format(table)
        sides, notes = [], []
        for name, column, side in self._sides():
            cells = table[name].astype(str).tolist()
            if side.ids is not None:
                sides.append(side.rows_named(cells, self.path))
                continue
            sides.append(self._moved(side, cells, table[column].astype(str).tolist()))
            if list(map(str, sides[-1])) != cells:
                notes.append(f"The {name} table has another order: its answers moved with it.")
        pairs = list(zip(*sides, strict=True))
        if self.left is self.right:
            pairs = [(min(pair), max(pair)) for pair in pairs]
        same = [ANSWERS[word] for word in table["answer"].astype(str)]
        self._seen = dict(zip(pairs, same, strict=True))
        return [(*pair, value) for pair, value in zip(pairs, same, strict=True)], notes

    def save(self, answers: list[Answer]) -> list[str]:
        """Write the answers; what others have written since goes into them, and is said."""
        with alone_at(self.path):
            notes = self._merge(answers) if self.has_answers else []
            write_atomically(self.path, table_bytes(self._table(answers), self.path))
        self._seen = {(i, j): same for i, j, same in answers}
        return notes

    def _merge(self, answers: list[Answer]) -> list[str]:
        """Bring what others have changed in the file into the answers."""
        seen, missing = self._seen, object()
        self.read()
        found, own = self._seen, {(i, j): same for i, j, same in answers}
        theirs = {pair: same for pair, same in found.items() if same != seen.get(pair, missing)}
        kept = {  # but for what others have taken back
            pair: same
            for pair, same in own.items()
            if pair not in theirs and (pair in found or same != seen.get(pair, missing))
        }
        answers[:] = [(*pair, same) for pair, same in (theirs | kept).items()]
        new = sum(pair not in own for pair in theirs)
        notes = [f"Read {count(new, 'answer')} that others have saved meanwhile."] if new else []
        if any(own.get(p, same) not in (same, seen.get(p, missing)) for p, same in theirs.items()):
            notes.append("Others have answered this pair meanwhile, and not alike: theirs stays.")
        return notes

    def _table(self, answers: list[Answer]) -> Any:
        import pandas as pd

        words = {value: word for word, value in ANSWERS.items()}
        left, right, same = zip(*answers, strict=True) if answers else ((), (), ())
        table: dict[str, Any] = {"left": left, "right": right}
        table["answer"] = [words[value] for value in same]
        for name, column, side in self._sides():
            if side.ids is None:
                table[column] = [side.fingerprint(row) for row in table[name]]
            else:
                table[name] = [side.ids[row] for row in table[name]]
        return pd.DataFrame(table)

    def _sides(self) -> Iterable[tuple[str, str, Side]]:
        return zip(_NAMES, _PRINTS, (self.left, self.right), strict=False)

    def _require_format(self, table: Any) -> None:
        """Refuse a file that no session has written, or one that was called in another way."""
        printed = list(table.columns) == [*_NAMES, *_PRINTS]
        if list(table.columns) != _NAMES and not printed:
            raise TableError(
                f"Got {self.path} with the columns {', '.join(map(str, table.columns))}, but "
                f"expected {', '.join(_NAMES)}, as kernelmetric label writes them."
            )
        if printed != (self.left.ids is None):
            given, then, now = ("--id", "without", "leave it out")
            if not printed:
                given, then, now = "no --id", "with", "give it"
            raise TableError(
                f"Got {given} for {self.path}, which was written {then} it: {now} here too."
            )
        words = table["answer"].astype(str)
        wrong = words[~words.isin(ANSWERS)]
        if len(wrong):
            raise TableError(
                f"Got the answer {wrong.iloc[0]!r} in {self.path}, but expected yes, no or unsure."
            )

    def _moved(self, side: Side, cells: list[str], prints: list[str]) -> list[int]:
        """The rows that hold now what the answered ones held; refused where that is not one row."""
        n = len(side.frame)
        rows = [int(cell) if cell.isdecimal() else n for cell in cells]
        held = [side.fingerprint(row) if row < n else None for row in rows]
        if held == prints:
            return rows
        places: dict[str, list[int]] = {}
        for row in range(n):
            places.setdefault(side.fingerprint(row), []).append(row)
        moved = []
        for cell, row, now, then in zip(cells, rows, held, prints, strict=True):
            found = [row] if now == then else places.get(then, [])
            if len(found) != 1:
                raise TableError(
                    f"Got {self.path} with an answer about row {cell}, which held another record "
                    f"then, and {'more than one' if found else 'none'} in the table is like it: "
                    "give the tables as they were, or name records with --id from the first "
                    "answer on."
                )
            moved += found
        return moved
