"""Delimited text: from the bytes of a file to rows of cells, and what was found out on the way.

Nothing is guessed in silence. What can be read in one way only is read, what is unusual is told
in a note, and what could be meant in two ways is refused with the number of the line.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from itertools import dropwhile, islice, tee
from pathlib import Path
from typing import BinaryIO

from kernelmetric.tables._cells import is_plain_number

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
ROW_NAMES = "row names"
_SAMPLE = 1000  # records that show which delimiter parts them
_BLOCK = 1 << 20  # bytes that are read at once
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


def lines_of(stream: BinaryIO, path: Path, notes: list[str]) -> Iterator[str]:
    """The lines of a text file, in UTF-8 or what a mark tells, with what ends them."""
    block = stream.read(_BLOCK)
    encoding = next((name for mark, name in _MARKS.items() if block.startswith(mark)), "utf-8")
    if not encoding.startswith("utf-8"):
        notes.append(f"The text is {encoding.upper()}.")
    decoder = codecs.getincrementaldecoder(encoding)()
    rest, start = "", 0
    while True:
        waiting = len(decoder.getstate()[0])
        try:
            text = rest + decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = start - waiting + error.start
            raise TableError(
                f"Got {path}, whose text is not {encoding.removesuffix('-sig').upper()} (byte "
                f"{place}): save it as UTF-8, which Excel calls 'CSV UTF-8'."
            ) from error
        if "\0" in text:
            raise TableError(
                f"Got {path} with NUL characters, as in UTF-16 without its mark: save it as UTF-8."
            )
        lines = list(io.StringIO(text, newline=""))
        rest = lines.pop() if block and lines else ""  # it may go on in the next block
        yield from lines
        if not block:
            return
        start += len(block)
        block = stream.read(_BLOCK)


def read_records(
    lines: Iterator[str], path: Path, notes: list[str], most: int
) -> Iterator[tuple[list[str], list[Record]]]:
    """Names of the columns, and at most so many records of as many cells or more, as often as need.

    What looks like a row name or like nothing at all is decided by the first of these pieces. The
    notes are complete after the last.
    """
    first, *trials, lines = tee(lines, 2 + len(DELIMITERS))
    delimiter, start, said = _delimiter(next(first, ""), trials, path)
    del first, trials  # or else they would keep all lines
    notes += said
    records = _parsed(lines, delimiter, path, start)
    names = next(([name.strip() for name in fields] for _, fields in records), None)
    if names is None:
        raise TableError(f"The file {path} is empty.")
    kept = _without_blanks(records, len(names), notes)
    piece = list(islice(kept, most))
    names, width, said = _shape(names, piece, path)
    notes += said
    yield names, piece
    while piece := list(islice(kept, most)):
        _require_width(piece, width, path)
        for line, fields in piece if width > len(names) else ():
            if any(cell.strip() for cell in fields[len(names) :]):
                raise TableError(
                    f"Line {line} of {path} holds {fields[-1]!r} in a column that has no name, and "
                    "no value in the lines before: give it a name."
                )
        yield names, piece


def _is_blank(fields: list[str], width: int) -> bool:
    """Whether a record is a line without anything; in one column, a quoted nothing is a cell."""
    return not fields or (width > 1 and len(fields) == 1 and not fields[0].strip())


def _without_blanks(records: Iterator[Record], width: int, notes: list[str]) -> Iterator[Record]:
    """The records that are not blank; a note counts the blank lines between them."""
    n_blank = waiting = 0
    for record in records:
        if _is_blank(record[1], width):
            waiting += 1
            continue
        n_blank, waiting = n_blank + waiting, 0
        yield record
    if n_blank:
        notes.append(f"{n_blank} blank lines between the rows are skipped.")


def _records(lines: Iterator[str], delimiter: str, start: int = 0) -> Iterator[Record]:
    rest = islice(lines, start, None)
    reader = csv.reader(rest, delimiter=delimiter, skipinitialspace=True, strict=True)
    line = start + 1
    try:
        for fields in reader:
            yield line, fields
            line = start + reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(f"line {line}: {error}") from error


def _parsed(lines: Iterator[str], delimiter: str, path: Path, start: int) -> Iterator[Record]:
    records = _records(lines, delimiter, start)
    try:
        # blank lines above the names are none
        yield from dropwhile(lambda record: _is_blank(record[1], 2), records)
    except csv.Error as error:
        raise TableError(
            f"Cannot read {path}, {error}. Is a quote left open? A quote inside quotes is written "
            'twice: "5"" pipe". Cells of more than 131,072 letters are read from Parquet alone.'
        ) from error


def _delimiter(first: str, trials: list[Iterator[str]], path: Path) -> tuple[str, int, list[str]]:
    """What parts the cells, how many lines to pass over first, and what to say about it."""
    hint = _HINT.match(first)
    if hint:
        return hint[1], 1, [f"The first line says that {hint[1]!r} parts the cells."]
    lines = zip(DELIMITERS, trials, strict=True)
    widths = {mark: found for mark, trial in lines if (found := _widths(trial, mark))}
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


def _widths(lines: Iterator[str], delimiter: str) -> list[int]:
    """Numbers of cells of the first records, where this is the delimiter; none if it cannot be."""
    try:
        records = [fields for _, fields in islice(_records(lines, delimiter), _SAMPLE)]
    except csv.Error:
        return []
    return [len(fields) for fields in records if not _is_blank(fields, 2)]


def _shape(names: list[str], records: list[Record], path: Path) -> tuple[list[str], int, list[str]]:
    """Names, how many cells a record has, which may be more, and notes; uneven ones are refused."""
    notes = []
    width = len(names)
    if records and all(len(fields) == width + 1 for _, fields in records):
        if all(not fields[-1].strip() for _, fields in records):
            width += 1
            notes.append("Every row ends in a delimiter, which the names lack: nothing follows it.")
        elif _are_row_names([fields[0].strip() for _, fields in records]) and width > 1:
            names = ["", *names]
            width += 1
    _require_width(records, width, path)
    while len(names) > 1 and not names[-1]:
        if any(fields[len(names) - 1].strip() for _, fields in records):
            break
        names = names[:-1]
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
    return names, width, notes


def _require_width(records: list[Record], width: int, path: Path) -> None:
    for line, fields in records:
        if len(fields) != width:
            raise TableError(
                f"Line {line} of {path} has {len(fields)} cells, but expected {width} as in the "
                "line of names: a cell that holds the delimiter needs quotes around it."
            )


def _are_row_names(cells: list[str]) -> bool:
    """Whether a column above which there is no name holds what R calls the rows.

    They differ, and count where they are numbers; the whole part of a number with a decimal comma
    would hardly do both.
    """
    counting = cells == [str(i + 1) for i in range(len(cells))]
    return len(set(cells)) == len(cells) and (counting or not any(map(is_plain_number, cells)))
