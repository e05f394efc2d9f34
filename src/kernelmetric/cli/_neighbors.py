"""``kernelmetric neighbors``: who is nearest under a learned metric."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli._files import load_model, remarks_on, unused_columns
from kernelmetric.cli._options import FILE, device_option, model_and_data, output_options
from kernelmetric.cli._study import varying_columns
from kernelmetric.cli._talk import Talk
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inspection import feature_importance
from kernelmetric.metric import places_of, refuse_signed
from kernelmetric.report._text import short
from kernelmetric.tables import Table, TableError, features_of, open_table, require_columns, typed

_SHOWN_COLUMNS = 5


@click.command()
@model_and_data
@device_option
@click.option("--query", type=FILE, help="Find neighbours of the rows of this table.")
@click.option(
    "--row", "rows", multiple=True, type=click.IntRange(0), help="Ask for this row. Repeatable."
)
@click.option("-k", "--neighbors", "k", type=click.IntRange(1), default=5, help="How many to find.")
@click.option("--show", multiple=True, metavar="COL", help="Show this column. Repeatable.")
@output_options
def neighbors(
    talk: Talk,
    model: Path,
    data: Path,
    query: Path | None,
    rows: tuple[int, ...],
    k: int,
    show: tuple[str, ...],
) -> None:
    """Find the nearest rows under a learned metric.

    With --query the queries are the rows of another table, and --row chooses some of them.
    Without it the queries are the first five rows of DATA, or those of --row. A row does not
    find itself.

    The output shows the name and the label of each neighbour, and the columns that count
    most in the metric. In JSON they are under "columns".

    \b
    Examples:
      kernelmetric neighbors model.km flowers.csv --query new.csv
      kernelmetric neighbors model.km flowers.csv --row 7 -k 3 --show species
      kernelmetric neighbors model.km flowers.csv --query new.csv --json
    """
    fitted = load_model(model)
    table = open_table(data)
    queries = None if query is None else open_table(query)
    asked = table if queries is None else queries
    chosen = _chosen(rows, asked.frame, own=queries is None)
    answers = find_neighbors(fitted, table, queries, chosen, k, show)
    notes = remarks_on(table, fitted)
    if queries is not None:
        notes += [f"{queries.name}: {remark}" for remark in remarks_on(queries, fitted)]
    talk.aside(notes)
    what = "row" if query is None else f"{query.name} row"
    called = fitted["table"].identifier
    for answer in answers:
        found = answer["neighbors"]
        shown = list(found[0]["columns"]) if found else []
        rows_found = [(n["row"], n["distance"], *n["columns"].values()) for n in found]
        lines = [[short(value) for value in row] for row in rows_found]
        title = f"Nearest to {what} {answer['query']}"
        if called in asked.frame:
            title += f", {called} {asked.frame[called].iloc[answer['query']]}"
        talk.table(title, ["row", "distance", *shown], lines)
    talk.answer({"model": str(model), "data": str(data), "notes": notes, "queries": answers})


def find_neighbors(
    model: Any, table: Any, queries: Any, rows: np.ndarray, k: int, show: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The k nearest rows of a table for each query, with the columns to show."""
    refuse_signed(model)
    frame = table.frame if isinstance(table, Table) else table
    require_columns(frame, show)
    X = features_of(table, model["table"])
    shown = list(show) or _told(model, frame, X)
    frame = typed(frame[shown])
    if queries is None:
        Z = places_of(model, X)
        Q = Z[rows]
    else:
        Z, Q = _embed_together(model, X, features_of(queries, model["table"]).iloc[rows])
    # one more, where the query itself may be among them
    indices, _ = nearest_neighbors(Z, min(k + (queries is None), len(Z)), queries=Q)

    def described(i: int, query: np.ndarray) -> dict[str, Any]:
        columns = {name: frame[name].iloc[i] for name in shown}
        # by the difference: equal points are at no distance, to the last bit
        return {"row": i, "distance": float(np.linalg.norm(Z[i] - query)), "columns": columns}

    answers = []
    for row, query, found in zip(rows.tolist(), Q, indices.tolist(), strict=True):
        others = [i for i in found if i >= 0 and (queries is not None or i != row)][:k]
        answers.append({"query": row, "neighbors": [described(i, query) for i in others]})
    return answers


def _told(model: Any, frame: Any, X: Any) -> list[str]:
    """What a row is called, its label, its objects, and the columns that count most."""
    encoder = model["table"]
    known = encoder.identifier, encoder.label, *(encoder.objects or {})
    first = [name for name in known if name in frame]
    first = first or varying_columns(frame, unused_columns(model, frame), _SHOWN_COLUMNS)
    try:
        counted = [name for name, _ in feature_importance(model, X).ranked() if name in frame]
    except ValueError:  # the metric sees no difference between these rows
        counted = []
    return [*first, *counted[: max(1, _SHOWN_COLUMNS - len(first))]]


def _embed_together(model: Any, X: Any, queries: Any) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of a table and of queries, in which equal rows are equal to the last bit."""
    import pandas as pd

    both = pd.concat([X, queries], ignore_index=True)
    columns = [both.iloc[:, i] for i in range(both.shape[1])]
    alike = both.groupby(columns, dropna=False, sort=False, observed=True).ngroup().to_numpy()
    first = np.unique(alike, return_index=True)[1][alike]  # the first row with these values
    # a product may round the same row differently in another batch
    E = np.concatenate([places_of(model, X), model.transform(queries)])[first]
    return E[: len(X)], E[len(X) :]


def _chosen(rows: tuple[int, ...], frame: Any, *, own: bool) -> np.ndarray:
    if not rows:
        return np.arange(min(5, len(frame)) if own else len(frame))
    if max(rows) >= len(frame):
        raise TableError(f"Got --row {max(rows)}, but expected at most {len(frame) - 1}.")
    return np.array(rows)
