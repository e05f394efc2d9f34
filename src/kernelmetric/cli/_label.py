"""``kernelmetric label``: asks which pairs of records mean the same, the most telling first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelmetric.cli._link import compared, ids_of
from kernelmetric.cli._options import seed_option
from kernelmetric.cli._outputs import require_outputs
from kernelmetric.cli._talk import Talk, count, sentences
from kernelmetric.datasets import TableError, open_table, table_bytes
from kernelmetric.linkage import LabellingSession, NearestText, RecordLinker
from kernelmetric.report import plot_learning_curve, png_bytes, visible, write_atomically

if TYPE_CHECKING:
    import click

NAMES = ["left", "right", "answer"]
ANSWERS: dict[str, bool | None] = {"yes": True, "no": False, "unsure": None}
_KEYS = {key: word for word in (*ANSWERS, "back", "quit") for key in (word, word[0])}
_LONGEST = 60  # letters of a field that are shown


def command() -> click.Command:
    """The command."""
    import click

    file = click.Path(dir_okay=False, path_type=Path)

    @click.command()
    @click.argument("left", type=file)
    @click.argument("right", type=file, required=False)
    @click.option(
        "--out", type=file, metavar="FILE", required=True,
        help="Where answers go. They are saved one by one; an existing file is continued.",
    )  # fmt: skip
    @click.option("--id", "id_column", metavar="COL", help="The column that names records.")
    @click.option("--column", "columns", multiple=True, metavar="COL", help="Compare these alone.")
    @click.option(
        "--neighbors", type=click.IntRange(1), default=10, show_default=True,
        help="Candidates of each record: those whose letters are most alike.",
    )  # fmt: skip
    @click.option("--goal", type=click.IntRange(1), help="Stop at so many answers in all.")
    @click.option("--plot", type=file, metavar="FILE", help="Draw the learning curve at the end.")
    @seed_option
    def label(
        left: Path,
        right: Path | None,
        out: Path,
        id_column: str | None,
        columns: tuple[str, ...],
        neighbors: int,
        goal: int | None,
        plot: Path | None,
        seed: int,
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
            frames = [open_table(path).frame for path in (left, right) if path is not None]
            ids = [ids_of(frame, id_column) for frame in frames]
            earlier = read_answers(out, ids) if out.exists() and out.stat().st_size else []
            records = [compared(frame, id_column, columns) for frame in frames]
            linker = RecordLinker(rules=[NearestText(n_neighbors=neighbors)])
            session = LabellingSession(
                records[0], records[1] if right else None, linker,
                random_state=seed + len(earlier),
            )  # fmt: skip
            for i, j, same in earlier:
                session.answer(i, j, same)
        if earlier:
            talk.say(f"Read {count(len(earlier), 'answer')} from {out}.")
        with sentences():
            _ask(talk, session, records, ids, out, goal)
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
    talk: Talk, session: LabellingSession, records: list[Any], ids: list[Any], out: Path,
    goal: int | None,
) -> None:  # fmt: skip
    """Ask until the goal, until all is answered, or until somebody quits."""
    import click

    back: tuple[int, int] | None = None
    while goal is None or len(session.answers) < goal:
        pair = back or session.question()
        if pair is None:
            talk.say("All candidates are answered.")
            return
        _show(talk, session, records, ids, pair)
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
        _save(session, ids, out)


def _show(
    talk: Talk, session: LabellingSession, records: list[Any], ids: list[Any], pair: tuple[int, int]
) -> None:
    """The two records side by side, and where things stand."""
    i, j = pair
    sides = [(records[0], ids[0], i), (records[-1], ids[-1], j)]
    names = [f"{row}" if named is None else str(named[row]) for _, named, row in sides]
    one, other = (table.iloc[row] for table, _, row in sides)
    rows = []
    for column in [c for c in one.index if c in other.index]:
        a, b = ("" if _missing(value) else str(value) for value in (one[column], other[column]))
        mark = "=" if a and a.casefold().strip() == b.casefold().strip() else ""
        rows.append((column, a, mark, b))
    columns = [("field", "left"), (names[0], "left"), ("", "center"), (names[1], "left")]
    talk.say()
    talk.say(_said(session))
    talk.table(None, columns, rows)


def _missing(value: Any) -> bool:
    return value is None or value != value


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


def _save(session: LabellingSession, ids: list[Any], out: Path) -> None:
    import pandas as pd

    words = {value: word for word, value in ANSWERS.items()}
    rows = [
        [i if ids[0] is None else ids[0][i], j if ids[-1] is None else ids[-1][j], words[same]]
        for i, j, same in session.answers
    ]
    write_atomically(out, table_bytes(pd.DataFrame(rows, columns=NAMES), out))


def read_answers(path: Path, ids: list[Any]) -> list[tuple[int, int, bool | None]]:
    """Row numbers and answers of a file that this command has written."""
    table = open_table(path).frame
    if list(table.columns) != NAMES:
        raise TableError(
            f"Got {path} with the columns {', '.join(map(str, table.columns))}, but expected "
            f"{', '.join(NAMES)}, as kernelmetric label writes them."
        )
    sides = []
    for name, known in (("left", ids[0]), ("right", ids[-1])):
        cells = table[name].astype(str)
        place = {} if known is None else {each: row for row, each in enumerate(known)}
        if known is None:
            place = {cell: int(cell) for cell in cells if cell.isdecimal()}
        unknown = [cell for cell in cells if cell not in place]
        if unknown:
            hint = "a row number: was --id given when it was written?" if known is None else "an id"
            raise TableError(f"Got {unknown[0]!r} in {path}, but expected {hint}")
        sides.append([place[cell] for cell in cells])
    words = table["answer"].astype(str)
    wrong = words[~words.isin(ANSWERS)]
    if len(wrong):
        raise TableError(
            f"Got the answer {wrong.iloc[0]!r} in {path}, but expected yes, no or unsure."
        )
    return [(i, j, ANSWERS[word]) for i, j, word in zip(*sides, words, strict=True)]


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
