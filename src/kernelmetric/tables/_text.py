"""Delimited text: from the bytes of a file to rows of cells, and what was found out on the way.

Nothing is guessed in silence. What can be read in one way only is read, what is unusual is told
in a note, and what could be meant in two ways is refused with the number of the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kernelmetric.tables._cells import is_plain_number

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
ROW_NAMES = "row names"
_SAMPLE = 1000  # records that show which delimiter parts them
_HINT = re.compile(r"sep=(.)(\r\n|\r|\n)")  # what Excel reads and writes above the names
# The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
Record = tuple[int, list[str]]  # the line it begins in, from 1, and its fields


class TableError(ValueError):
    """A table that cannot be read or used; the message says what to change.

    Examples
    --------
    >>> from kernelmetric.tables import TableError, read_table
    >>> try:
    ...     read_table("points.xlsx")
    ... except TableError as error:
    ...     print(error)
    Got points.xlsx, but expected a .csv, .tsv, .txt (each may end in .gz), .parquet or .npz file.
    """


def decoded(data: bytes, path: Path) -> tuple[str, list[str]]:
    """The text of a file, and what to say about its encoding: UTF-8, or what a mark tells."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(
            f"Got {path}, whose text is not {encoding.removesuffix('-sig').upper()} (byte "
            f"{error.start}): save it as UTF-8, which Excel calls 'CSV UTF-8'."
        ) from error
    if "\0" in text:
        raise TableError(
            f"Got {path} with NUL characters, as in UTF-16 without its mark: save it as UTF-8."
        )
    notes = [] if encoding.startswith("utf-8") else [f"The text is {encoding.upper()}."]
    return text, notes


def read_records(data: bytes, path: Path) -> tuple[list[str], list[Record], list[str]]:
    """Names of the columns, records of as many cells each, and notes."""
    text, notes = decoded(data, path)
    delimiter, start, said = _delimiter(text, path)
    notes += said
    records = _parsed(text, delimiter, path, start)
    if not records:
        raise TableError(f"The file {path} is empty.")
    names = [name.strip() for name in records.pop(0)[1]]
    kept = [record for record in records if not _is_blank(record[1], len(names))]
    last = kept[-1][0] if kept else 0
    blank = sum(line < last and _is_blank(fields, len(names)) for line, fields in records)
    if blank:
        notes.append(f"{blank} blank lines between the rows are skipped.")
    names, kept, said = _squared(names, kept, path)
    notes += said
    return names, kept, notes


def _is_blank(fields: list[str], width: int) -> bool:
    """Whether a record is a line without anything; in one column, a quoted nothing is a cell."""
    return not fields or (width > 1 and len(fields) == 1 and not fields[0].strip())


def _records(text: str, delimiter: str, start: int = 0) -> Iterator[Record]:
    stream = io.StringIO(text, newline="")
    for _ in range(start):
        stream.readline()
    reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True, strict=True)
    while True:
        line = start + reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise csv.Error(f"line {line}: {error}") from error
        yield line, fields


def _parsed(text: str, delimiter: str, path: Path, start: int) -> list[Record]:
    try:
        records = list(_records(text, delimiter, start))
    except csv.Error as error:
        raise TableError(
            f"Cannot read {path}, {error}. Is a quote left open? A quote inside quotes is written "
            'twice: "5"" pipe".'
        ) from error
    while records and _is_blank(records[0][1], 2):  # blank lines above the names
        records.pop(0)
    return records


def _delimiter(text: str, path: Path) -> tuple[str, int, list[str]]:
    """What parts the cells, how many lines to pass over first, and what to say about it."""
    hint = _HINT.match(text)
    if hint:
        return hint[1], 1, [f"The first line says that {hint[1]!r} parts the cells."]
    widths = {mark: found for mark in DELIMITERS if (found := _widths(text, mark))}
    several = {mark: found for mark, found in widths.items() if found[0] > 1}
    if "\t" in several and ".tsv" in map(str.lower, path.suffixes):
        return "\t", 0, []
    # all records as wide as the names; else all one wider; else whatever parts the names best
    even = [mark for mark, found in several.items() if set(found) == {found[0]}]
    wider = [mark for mark, found in several.items() if set(found[1:]) == {found[0] + 1}]
    widest = max((found[0] for found in several.values()), default=0)
    best = even or wider or [mark for mark, found in several.items() if found[0] == widest]
    if len(best) > 1:
        one, two = (DELIMITERS[mark] for mark in best[:2])
        raise TableError(
            f"The cells of {path} may be parted by {one} or by {two}: put quotes around cells that "
            "hold such a character, or name the one that parts them in a first line like sep=;"
        )
    mark = best[0] if best else ","
    told = [] if mark == "," else [f"The cells are parted by {DELIMITERS[mark]}."]
    return mark, 0, told


def _widths(text: str, delimiter: str) -> list[int]:
    """Numbers of cells of the first records, where this is the delimiter; none if it cannot be."""
    try:
        records = [fields for _, fields in islice(_records(text, delimiter), _SAMPLE)]
    except csv.Error:
        return []
    return [len(fields) for fields in records if not _is_blank(fields, 2)]


def _squared(
    names: list[str], records: list[Record], path: Path
) -> tuple[list[str], list[Record], list[str]]:
    """Names and records of one width, or a refusal that names the line."""
    notes = []
    width = len(names)
    if records and all(len(fields) == width + 1 for _, fields in records):
        if all(not fields[-1].strip() for _, fields in records):
            records = [(line, fields[:-1]) for line, fields in records]
            notes.append("Every row ends in a delimiter, which the names lack: nothing follows it.")
        elif _are_row_names([fields[0].strip() for _, fields in records]) and width > 1:
            names = ["", *names]
    width = len(names)
    for line, fields in records:
        if len(fields) != width:
            raise TableError(
                f"Line {line} of {path} has {len(fields)} cells, but expected {width} as in the "
                "line of names: a cell that holds the delimiter needs quotes around it."
            )
    while width > 1 and not names[-1] and all(not fields[-1].strip() for _, fields in records):
        names, width = names[:-1], width - 1
        records = [(line, fields[:-1]) for line, fields in records]
        notes.append("The last column has neither a name nor a value and is dropped.")
    for j, name in enumerate(names):
        if not name:
            names[j] = ROW_NAMES if j == 0 else f"column {j + 1}"
            notes.append(f"Column {j + 1} has no name and is called {names[j]!r}.")
    numbers = [name for name in names if is_plain_number(name)]
    if numbers:
        notes.append(
            f"The first line is taken for the names of the columns, {numbers[0]!r} among them."
        )
    return names, records, notes


def _are_row_names(cells: list[str]) -> bool:
    """Whether a column above which there is no name holds what R calls the rows.

    They differ, and count where they are numbers; the whole part of a number with a decimal comma
    would hardly do both.
    """
    counting = cells == [str(i + 1) for i in range(len(cells))]
    return len(set(cells)) == len(cells) and (counting or not any(map(is_plain_number, cells)))
