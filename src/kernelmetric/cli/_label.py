"""``kernelmetric label``: asks which pairs of records mean the same, the most telling first."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelmetric.cli._options import seed_option
from kernelmetric.cli._outputs import alone_at, require_outputs
from kernelmetric.cli._records import Records, open_records, record_options, rows_named
from kernelmetric.cli._talk import Talk, count, sentences
from kernelmetric.linkage import LabellingSession
from kernelmetric.report import plot_learning_curve, png_bytes, visible, write_atomically
from kernelmetric.tables import TableError, open_table, table_bytes
from kernelmetric.tables._cells import is_gap

if TYPE_CHECKING:
    import click

NAMES = ["left", "right", "answer"]
PRINTS = ["left_record", "right_record"]  # what the rows hold, where they have no ids
Answer = tuple[int, int, bool | None]
ANSWERS: dict[str, bool | None] = {"yes": True, "no": False, "unsure": None}
_KEYS = {key: word for word in (*ANSWERS, "back", "quit") for key in (word, word[0])}
_LONGEST = 60  # letters of a field that are shown


def command() -> click.Command:
    """The command."""
    import click

    file = click.Path(dir_okay=False, path_type=Path)

    @click.command()
    @click.option(
        "--out", type=file, metavar="FILE", required=True,
        help="Where answers go. They are saved one by one; an existing file is continued, and "
        "several people may write to it at a time.",
    )  # fmt: skip
    @record_options
    @click.option("--goal", type=click.IntRange(1), help="Stop at so many answers in all.")
    @click.option("--plot", type=file, metavar="FILE", help="Draw the learning curve at the end.")
    @seed_option
    def label(
        left: Path,
        right: Path | None,
        out: Path,
        id_column: str | None,
        goal: int | None,
        plot: Path | None,
        seed: int,
        **chosen: Any,
    ) -> None:
        """Answer which pairs of records mean the same.

        Two records are shown side by side. Answer y (yes), n (no) or u (unsure), b to go back
        and answer the last pair again, q to quit. The pairs asked about are those in doubt that
        are unlike the ones answered before. The answers are for link.

        \b
        Examples:
          kernelmetric label a.csv b.csv --out answers.csv
          kernelmetric link a.csv b.csv --answers answers.csv --out links.csv
        """
        talk = Talk(quiet=False, as_json=False)
        with sentences():
            require_outputs({"--out": out, "--plot": plot}, {"LEFT": left, "RIGHT": right})
            records = open_records(left, right, id_column=id_column, **chosen)
            store = _Store(out, records.ids, records.frames)
            earlier, notes = store.read()
            session = LabellingSession(
                *records.compared, records.linker, random_state=seed + len(earlier)
            )
            for i, j, same in earlier:
                session.answer(i, j, same)
            store.agree(session.answers)
        if earlier:
            talk.say(" ".join([f"Read {count(len(earlier), 'answer')} from {out}.", *notes]))
        with sentences():
            _ask(talk, session, records, store, goal)
            if plot is not None:
                _draw(session, plot)
                talk.say(f"Saved {plot}.")
        talk.say(f"{_said(session)} Saved {out}.")
        files = " ".join(str(path) for path in (left, right) if path is not None)
        named = "" if id_column is None else f" --id {id_column}"
        talk.suggest(
            {
                f"kernelmetric link {files}{named} --answers {out} --out links.csv": "the links",
            }
        )

    return label


def _ask(
    talk: Talk, session: LabellingSession, records: Records, store: _Store, goal: int | None
) -> None:
    """Ask until the goal, until all is answered, or until somebody quits."""
    import click

    back: tuple[int, int] | None = None
    while goal is None or len(session.answers) < goal:
        pair = back or session.question()
        if pair is None:
            talk.say("All candidates are answered.")
            return
        _show(talk, session, records, pair)
        try:
            said = click.prompt("Same? y(es) n(o) u(nsure) b(ack) q(uit)", prompt_suffix=" ")
        except click.Abort:  # the end of the input, or Ctrl-C: all answers are saved
            talk.say()
            return
        word = _KEYS.get(said.strip().lower())
        if word == "quit":
            return
        if word is None:
            talk.say(f"Got {visible(said, most=_LONGEST)!r}, but expected y, n, u, b or q.")
            continue
        if word == "back":
            before = session.undo()
            if before is None:
                talk.say("There is no answer to take back.")
                continue
            back = before
        else:
            session.answer(*pair, ANSWERS[word])
            back = None
        for note in store.save(session.answers):
            talk.say(note)


def _show(talk: Talk, session: LabellingSession, records: Records, pair: tuple[int, int]) -> None:
    """The two records side by side, and where things stand."""
    i, j = pair
    tables, ids = records.compared[: len(records.ids)], records.ids
    sides = [(tables[0], ids[0], i), (tables[-1], ids[-1], j)]
    names = [f"{row}" if named is None else str(named[row]) for _, named, row in sides]
    one, other = (table.iloc[row] for table, _, row in sides)
    rows = []
    for column in [c for c in one.index if c in other.index]:
        a, b = ("" if is_gap(value) else str(value) for value in (one[column], other[column]))
        mark = "=" if a and a.casefold().strip() == b.casefold().strip() else ""
        rows.append((column, a, mark, b))
    columns = [("field", "left"), (names[0], "left"), ("", "center"), (names[1], "left")]
    talk.say()
    talk.say(_said(session))
    talk.table(None, columns, rows)


def _said(session: LabellingSession) -> str:
    """The answers so far, and what the links would be worth."""
    words = [answer[2] for answer in session.answers]
    parts = ", ".join(f"{words.count(value)} {word}" for word, value in ANSWERS.items())
    found = session.expected()
    return (
        f"{count(len(words), 'answer')} ({parts}). "
        f"Expected of {count(session.n_candidates, 'pair')}: "
        f"{found.n_matches:,.0f} matches, precision {found.precision:.3f}, recall "
        f"{found.recall:.3f}, F1 {found.f1:.3f}."
    )


class _Store:
    """The file of answers, to which others may write as well."""

    def __init__(self, path: Path, ids: list[Any], frames: list[Any]):
        self.path, self.ids, self.frames = path, ids, frames
        self._before: dict[tuple[int, int], bool | None] = {}  # as the file was last seen

    def read(self) -> tuple[list[Answer], list[str]]:
        """The answers in the file, none where it is empty, and what there is to say of them."""
        if not self.path.is_file() or not self.path.stat().st_size:
            return [], []
        return read_answers(self.path, self.ids, self.frames)

    def agree(self, answers: list[Answer]) -> None:
        """Take note that these are the answers in the file."""
        self._before = {(i, j): same for i, j, same in answers}

    def save(self, answers: list[Answer]) -> list[str]:
        """Write the answers; what others have written since goes into them, and is said."""
        with alone_at(self.path):
            notes = self._merge(answers) if self.path.is_file() else []
            write_atomically(self.path, table_bytes(self._table(answers), self.path))
        self.agree(answers)
        return notes

    def _merge(self, answers: list[Answer]) -> list[str]:
        """Bring what others have changed in the file into the answers."""
        found = {
            ((i, j) if len(self.frames) == 2 else (min(i, j), max(i, j))): same
            for i, j, same in self.read()[0]
        }
        before, missing = self._before, object()
        own = {(i, j): same for i, j, same in answers}
        theirs = {
            pair: same
            for pair, same in found.items()
            if same != before.get(pair, missing)
        }  # fmt: skip
        taken_back = {pair for pair in before if pair not in found}
        clashes = [
            pair
            for pair, same in theirs.items()
            if own.get(pair, missing) not in (same, before.get(pair, missing), missing)
        ]
        kept = [
            (i, j, same)
            for i, j, same in answers
            if (i, j) not in theirs and not ((i, j) in taken_back and before[i, j] == same)
        ]
        answers[:] = [(i, j, same) for (i, j), same in theirs.items()] + kept
        new = sum(pair not in own for pair in theirs)
        notes = [f"Read {count(new, 'answer')} that others have saved meanwhile."] if new else []
        if clashes:
            notes.append("Others have answered this pair meanwhile, and not alike: theirs stays.")
        return notes

    def _table(self, answers: list[Answer]) -> Any:
        import pandas as pd

        words = {value: word for word, value in ANSWERS.items()}
        ids, frames = self.ids, self.frames
        if ids[0] is not None:
            rows = [[ids[0][i], ids[-1][j], words[same]] for i, j, same in answers]
            return pd.DataFrame(rows, columns=NAMES)
        numbers = [
            [i, j, words[same], fingerprint(frames[0], i), fingerprint(frames[-1], j)]
            for i, j, same in answers
        ]
        return pd.DataFrame(numbers, columns=[*NAMES, *PRINTS])


def fingerprint(frame: Any, row: int) -> str:
    """A few letters that stand for what a row holds, whatever the order of columns and rows."""
    names = sorted(range(frame.shape[1]), key=lambda k: str(frame.columns[k]))
    cells = [f"{frame.columns[k]}={frame.iat[row, k]}" for k in names]
    text = "\x1f".join(cells).encode("utf-8", "surrogatepass")
    return f"r{hashlib.sha256(text).hexdigest()[:16]}"  # no number for anybody who reads it


def read_answers(path: Path, ids: list[Any], frames: list[Any]) -> tuple[list[Answer], list[str]]:
    """Row numbers and answers of a file that this command has written, and what to say of them."""
    table = open_table(path).frame
    printed = list(table.columns) == [*NAMES, *PRINTS]
    if list(table.columns) != NAMES and not printed:
        raise TableError(
            f"Got {path} with the columns {', '.join(map(str, table.columns))}, but expected "
            f"{', '.join(NAMES)}, as kernelmetric label writes them."
        )
    if printed and ids[0] is not None:
        raise TableError(
            f"Got --id for {path}, which was written without it: leave it out here as well."
        )
    sides, notes = [], []
    for side, (name, known) in enumerate((("left", ids[0]), ("right", ids[-1]))):
        cells = table[name].astype(str)
        odd = [cell for cell in cells if known is None and not cell.isdecimal()]
        if odd:
            raise TableError(
                f"Got {odd[0]!r} in {path}, but expected a row number: was --id given when it was "
                "written?"
            )
        rows = [int(cell) for cell in cells] if known is None else rows_named(cells, known, path)
        sides.append(rows)
        if printed:
            sides[-1] = _moved(path, frames[-side], rows, table[PRINTS[side]].astype(str).tolist())
            if sides[-1] != rows:
                notes.append(f"The {name} table has another order: its answers moved with it.")
    if len(table) and ids[0] is None and not printed:
        notes = ["It does not say what its rows held: see that the tables are as they were."]
    words = table["answer"].astype(str)
    wrong = words[~words.isin(ANSWERS)]
    if len(wrong):
        raise TableError(
            f"Got the answer {wrong.iloc[0]!r} in {path}, but expected yes, no or unsure."
        )
    return [(i, j, ANSWERS[word]) for i, j, word in zip(*sides, words, strict=True)], notes


def _moved(path: Path, frame: Any, rows: list[int], prints: list[str]) -> list[int]:
    """The rows that hold now what the answered ones held; refused where that is not one row."""
    held = [fingerprint(frame, row) if row < len(frame) else None for row in rows]
    if held == prints:
        return rows
    place: dict[str, list[int]] = {}
    for row in range(len(frame)):
        place.setdefault(fingerprint(frame, row), []).append(row)
    moved = [
        [row] if now == then else place.get(then, [])
        for row, now, then in zip(rows, held, prints, strict=True)
    ]
    lost = [row for row, found in zip(rows, moved, strict=True) if len(found) != 1]
    if lost:
        raise TableError(
            f"Got {path} with an answer about row {lost[0]}, which held another record then, and "
            f"{'none' if not moved[rows.index(lost[0])] else 'more than one'} in the table is like "
            "it: give the tables as they were, or name records with --id from the first answer on."
        )
    return [found[0] for found in moved]


def _draw(session: LabellingSession, path: Path) -> None:
    points = session.curve
    axes = plot_learning_curve(
        [point.n_answers for point in points],
        {
            "expected F1": [point.f1 for point in points],
            "expected precision": [point.precision for point in points],
            "expected recall": [point.recall for point in points],
        },
        xlabel="answers",
    )
    write_atomically(path, png_bytes(axes))
