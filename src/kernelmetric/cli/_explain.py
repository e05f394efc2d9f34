"""``kernelmetric explain``: which columns shape a metric, and which part two rows."""

from pathlib import Path
from typing import Any

import click

from kernelmetric.cli._files import load_model, remarks_on
from kernelmetric.cli._options import model_and_data, output_options
from kernelmetric.cli._talk import Talk, count
from kernelmetric.inspection import explain_pair, feature_importance
from kernelmetric.report._text import percent, short
from kernelmetric.tables import TableError, features_of, open_table

_LISTED = 12  # columns; --json prints all
_BAR = 24  # characters of the longest bar
_RIDGE_TOLD = 0.01  # of the squared distance


@click.command()
@model_and_data
@click.option(
    "--rows", nargs=2, type=click.IntRange(0), metavar="I J", help="Explain two rows, from 0 on."
)
@output_options
def explain(talk: Talk, model: Path, data: Path, rows: tuple[int, int] | None) -> None:
    """Say which columns shape a metric, or make two rows near or far.

    Without --rows, columns are listed by how far their usual changes move a row of DATA. With
    it, the squared distance of the two rows is split into shares of the columns, which add up
    to it; a negative share brings the rows nearer.

    \b
    Examples:
      kernelmetric explain model.km flowers.csv
      kernelmetric explain model.km flowers.csv --rows 3 17
      kernelmetric explain model.km flowers.csv --rows 3 17 --json
    """
    fitted, table = load_model(model), open_table(data)
    notes = remarks_on(table, fitted)
    talk.aside(notes)
    X = features_of(table, fitted["table"])
    label = fitted["table"].label
    if rows is None and label in table.frame:  # as the page of fit, which knows no others
        X = X[table.frame[label].notna()]
    answer = _columns(talk, fitted, X) if rows is None else _pair(talk, fitted, X, rows)
    talk.answer({"model": str(model), "data": str(data), "notes": notes, **answer})


def _columns(talk: Talk, model: Any, X: Any) -> dict[str, Any]:
    ranked = feature_importance(model, X).ranked()
    _bars(talk, "How much each column counts", [], [([name], share) for name, share in ranked])
    return {"columns": [{"column": name, "share": share} for name, share in ranked]}


def _pair(talk: Talk, model: Any, X: Any, rows: tuple[int, int]) -> dict[str, Any]:
    if max(rows) >= len(X):
        raise TableError(f"Got --rows {rows[0]} {rows[1]}, but expected at most {len(X) - 1}.")
    why = explain_pair(model, X.iloc[[rows[0]]], X.iloc[[rows[1]]])
    square = why.squared_distance
    cells = {name: [short(X[name].iloc[row]) for row in rows] for name in why.names}
    _bars(
        talk,
        f"Rows {rows[0]} and {rows[1]}: distance {why.distance:.4g}, squared {square:.4g}",
        [f"row {row}" for row in rows],
        [([name, *cells[name]], share / (square or 1.0)) for name, share in why.ranked()],
    )
    if (why.shares < 0).any():
        talk.say("A negative share brings the rows nearer.")
    if abs(why.ridge) > _RIDGE_TOLD * abs(square):
        talk.say(
            "Training rows carry an extra offset, beyond their columns. It contributes "
            f"{100 * why.ridge / square:.0f} % here, split by the squared differences."
        )
    return {
        "rows": list(rows),
        "distance": why.distance,
        "squared_distance": square,
        "columns": [
            {"column": name, "values": cells[name], "share": share} for name, share in why.ranked()
        ],
        "ridge": why.ridge,
        "residual": why.residual,
        "derivatives": why.how,
    }


def _bars(talk: Talk, title: str, columns: list[str], rows: list[tuple[list[str], float]]) -> None:
    """A table whose last column is a bar list; of very many rows, the rest in one line."""
    shown, rest = rows[:_LISTED], rows[_LISTED:]
    largest = max((abs(share) for _, share in rows), default=0.0) or 1.0
    lines = [
        [*cells, percent(s), ("#" if s > 0 else "-") * round(_BAR * abs(s) / largest)]
        for cells, s in shown
    ]
    if rest:
        others = count(len(rest), "other column")
        lines.append([others, *[""] * len(columns), percent(sum(s for _, s in rest)), ""])
    talk.table(title, ["column", *columns, "share", ""], lines)
