"""The file of answers that ``label`` writes, also several at a time, and ``link`` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelmetric.cli._outputs import alone_at
from kernelmetric.cli._records import Side
from kernelmetric.cli._talk import count
from kernelmetric.report import write_atomically
from kernelmetric.tables import TableError, open_table, table_bytes

ANSWERS: dict[str, bool | None] = {"yes": True, "no": False, "unsure": None}
Answer = tuple[int, int, bool | None]
_NAMES = ["left", "right", "answer"]
_PRINTS = ["left_record", "right_record"]  # what the rows hold, where they have no ids


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
        printed = self._require_format(table)
        sides, notes = [], []
        for name, side, column in zip(_NAMES, (self.left, self.right), _PRINTS, strict=False):
            rows = self._rows(table[name].astype(str), side)
            sides.append(rows)
            if printed:
                sides[-1] = self._moved(side, rows, table[column].astype(str).tolist())
                if sides[-1] != rows:
                    notes.append(f"The {name} table has another order: its answers moved with it.")
        if len(table) and self.left.ids is None and not printed:
            notes = ["It does not say what its rows held: see that the tables are as they were."]
        words = table["answer"].astype(str)
        return [(i, j, ANSWERS[word]) for i, j, word in zip(*sides, words, strict=True)], notes

    def agree(self, answers: list[Answer]) -> None:
        """Take note that these are the answers in the file."""
        self._seen = {(i, j): same for i, j, same in answers}

    def save(self, answers: list[Answer]) -> list[str]:
        """Write the answers; what others have written since goes into them, and is said."""
        with alone_at(self.path):
            notes = self._merge(answers) if self.has_answers else []
            write_atomically(self.path, table_bytes(self._table(answers), self.path))
        self.agree(answers)
        return notes

    def _merge(self, answers: list[Answer]) -> list[str]:
        """Bring what others have changed in the file into the answers."""
        one = self.left is self.right
        found = {((min(i, j), max(i, j)) if one else (i, j)): same for i, j, same in self.read()[0]}
        seen, missing = self._seen, object()
        own = {(i, j): same for i, j, same in answers}
        theirs = {pair: same for pair, same in found.items() if same != seen.get(pair, missing)}
        clashes = [
            pair
            for pair, same in theirs.items()
            if own.get(pair, missing) not in (same, seen.get(pair, missing), missing)
        ]
        taken_back = {pair for pair in seen if pair not in found}
        rest = [
            (*pair, same)
            for pair, same in own.items()
            if pair not in theirs and not (pair in taken_back and seen[pair] == same)
        ]
        answers[:] = [(*pair, same) for pair, same in theirs.items()] + rest
        new = sum(pair not in own for pair in theirs)
        notes = [f"Read {count(new, 'answer')} that others have saved meanwhile."] if new else []
        if clashes:
            notes.append("Others have answered this pair meanwhile, and not alike: theirs stays.")
        return notes

    def _table(self, answers: list[Answer]) -> Any:
        import pandas as pd

        left, right = self.left, self.right
        words = {value: word for word, value in ANSWERS.items()}
        if left.ids is not None:
            rows = [[left.ids[i], right.ids[j], words[same]] for i, j, same in answers]
            return pd.DataFrame(rows, columns=_NAMES)
        numbers = [
            [i, j, words[same], left.fingerprint(i), right.fingerprint(j)] for i, j, same in answers
        ]
        return pd.DataFrame(numbers, columns=[*_NAMES, *_PRINTS])

    def _require_format(self, table: Any) -> bool:
        """Refuse a file that no session has written; whether it says what its rows held."""
        printed = list(table.columns) == [*_NAMES, *_PRINTS]
        if list(table.columns) != _NAMES and not printed:
            raise TableError(
                f"Got {self.path} with the columns {', '.join(map(str, table.columns))}, but "
                f"expected {', '.join(_NAMES)}, as kernelmetric label writes them."
            )
        if printed and self.left.ids is not None:
            raise TableError(
                f"Got --id for {self.path}, which was written without it: leave it out here too."
            )
        words = table["answer"].astype(str)
        wrong = words[~words.isin(ANSWERS)]
        if len(wrong):
            raise TableError(
                f"Got the answer {wrong.iloc[0]!r} in {self.path}, but expected yes, no or unsure."
            )
        return printed

    def _rows(self, cells: Any, side: Side) -> list[int]:
        if side.ids is not None:
            return side.rows_named(cells, self.path)
        odd = [cell for cell in cells if not cell.isdecimal()]
        if odd:
            raise TableError(
                f"Got {odd[0]!r} in {self.path}, but expected a row number: was --id given when it "
                "was written?"
            )
        return [int(cell) for cell in cells]

    def _moved(self, side: Side, rows: list[int], prints: list[str]) -> list[int]:
        """The rows that hold now what the answered ones held; refused where that is not one row."""
        n = len(side.frame)
        held = [side.fingerprint(row) if row < n else None for row in rows]
        if held == prints:
            return rows
        places: dict[str, list[int]] = {}
        for row in range(n):
            places.setdefault(side.fingerprint(row), []).append(row)
        moved = []
        for row, now, then in zip(rows, held, prints, strict=True):
            found = [row] if now == then else places.get(then, [])
            if len(found) != 1:
                raise TableError(
                    f"Got {self.path} with an answer about row {row}, which held another record "
                    f"then, and {'more than one' if found else 'none'} in the table is like it: "
                    "give the tables as they were, or name records with --id from the first "
                    "answer on."
                )
            moved += found
        return moved
