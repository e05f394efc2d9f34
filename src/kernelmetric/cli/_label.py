"""``kernelmetric label``: asks which pairs of records mean the same, those in doubt first."""

from pathlib import Path
from typing import Any

import click

from kernelmetric.cli._files import require_outputs
from kernelmetric.cli._options import FILE, seed_option
from kernelmetric.cli._records import ANSWERS, AnswerFile, Records, open_records, record_options
from kernelmetric.cli._talk import Talk, count
from kernelmetric.linkage import LabellingSession
from kernelmetric.report import plot_learning_curve, png_bytes, visible, write_atomically
from kernelmetric.tables._cells import is_gap

_KEYS = {key: word for word in (*ANSWERS, "back", "quit") for key in (word, word[0])}
_LONGEST = 60  # letters of a field that are shown


@click.command()
@click.option(
    "--out",
    type=FILE,
    required=True,
    help="Where answers go. They are saved one by one; an existing file is continued, and "
    "several people may write to it at a time.",
)
@record_options
@click.option("--goal", type=click.IntRange(1), help="Stop at so many answers in all.")
@click.option("--plot", type=FILE, help="Draw the learning curve at the end.")
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
    require_outputs({"--out": out, "--plot": plot}, {"LEFT": left, "RIGHT": right})
    records = open_records(left, right, id_column=id_column, **chosen)
    talk.listed(records.notes)
    file = AnswerFile(out, records.left, records.right)
    earlier, notes = file.read() if file.has_answers else ([], [])
    session = LabellingSession(*records.compared, records.linker, random_state=seed + len(earlier))
    for i, j, same in earlier:
        session.answer(i, j, same)
    if earlier:
        talk.say(" ".join([f"Read {count(len(earlier), 'answer')} from {out}.", *notes]))
    _ask(talk, session, records, file, goal)
    if plot is not None:
        names = ("F1", "precision", "recall")
        curves = {
            f"expected {name}": [getattr(point, name.lower()) for point in session.curve]
            for name in names
        }
        n_answers = [point.n_answers for point in session.curve]
        axes = plot_learning_curve(n_answers, curves, xlabel="answers")
        write_atomically(plot, png_bytes(axes))
        talk.say(f"Saved {plot}.")
    talk.say(f"{_said(session)} Saved {out}.")
    files = " ".join(str(path) for path in (left, right) if path is not None)
    named = "" if id_column is None else f" --id {id_column}"
    talk.suggest(f"kernelmetric link {files}{named} --answers {out} --out links.csv")


def _ask(
    talk: Talk, session: LabellingSession, records: Records, file: AnswerFile, goal: int | None
) -> None:
    """Ask until the goal, until all is answered, or until somebody quits."""
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
            back = session.undo()
            if back is None:
                talk.say("There is no answer to take back.")
                continue
        else:
            session.answer(*pair, ANSWERS[word])
            back = None
        for note in file.save(session.answers):
            talk.say(note)


def _show(talk: Talk, session: LabellingSession, records: Records, pair: tuple[int, int]) -> None:
    """The two records side by side, and where things stand."""
    sides = list(zip((records.left, records.right), pair, strict=True))
    names = [str(row if side.ids is None else side.ids[row]) for side, row in sides]
    one, other = (side.compared.iloc[row] for side, row in sides)
    rows = []
    for column in [c for c in one.index if c in other.index]:
        a, b = ("" if is_gap(value) else str(value) for value in (one[column], other[column]))
        mark = "=" if a and a.casefold().strip() == b.casefold().strip() else ""
        rows.append((column, a, mark, b))
    talk.say()
    talk.say(_said(session))
    talk.table(None, ["field", names[0], "", names[1]], rows)


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
