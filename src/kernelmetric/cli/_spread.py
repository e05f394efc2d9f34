"""``kernelmetric spread``: classes of all rows from a few labels, and which to label next."""

from pathlib import Path

import click
import numpy as np

from kernelmetric.cli._files import require_outputs
from kernelmetric.cli._options import FILE, data_argument, output_options
from kernelmetric.cli._talk import Talk
from kernelmetric.cli._transform import joined
from kernelmetric.report import write_atomically
from kernelmetric.report._text import short
from kernelmetric.tables import open_table, plan_columns, table_bytes, typed
from kernelmetric.tables._cells import texts_of
from kernelmetric.transductive import TransductiveDistance

_SHOWN_COLUMNS = 7


@click.command()
@data_argument
@click.option("--label", required=True, metavar="COL", help="Column of classes, mostly empty.")
@click.option("--next", "n", type=click.IntRange(1), default=5, help="Rows to name.")
@click.option("--out", type=FILE, help="Write the table with all classes to this file.")
@output_options
def spread(talk: Talk, data: Path, label: str, n: int, out: Path | None) -> None:
    """Find the classes of all rows from a few, and which row to label next.

    Near rows are joined in a graph, over which the labels spread. One label of each class is
    enough. The rows named are those with most doubt around them. Fill in their classes, and run
    the command again.

    \b
    Examples:
      kernelmetric spread plants.csv --label species
      kernelmetric spread plants.csv --label species --next 10 --out filled.csv
    """
    import pandas as pd

    require_outputs({"--out": out}, {"DATA": data})
    table = open_table(data)
    plan = plan_columns(table.frame, label=label)
    y = np.array(texts_of(table.frame[label]), dtype=object)
    if sum(text is None for text in y) in (0, len(y)):
        raise ValueError(f"Got {label!r} full or empty in all rows, but expected classes in some.")
    X = plan.encoder().fit_transform(table)
    with talk.busy("Spreading"):
        model = TransductiveDistance(random_state=0).fit(X, y)
        chance, rows = model.predict_proba(X).max(axis=1), model.to_label(n).tolist()
    found = {f"{label} found": model.transduction_, "probability": np.round(chance, 3)}
    result = joined(typed(table.frame), pd.DataFrame(found))
    columns = [*found, *(name for name in table.frame if name != label)][:_SHOWN_COLUMNS]
    talk.aside([*table.notes, *plan.notes])
    lines = [(row, *map(short, result.loc[row, columns])) for row in rows]
    talk.table("To label next", ["row", *columns], lines)
    if out is not None:
        write_atomically(out, table_bytes(result, out))
        talk.saved([out])
    talk.answer({"data": str(data), "next": rows, "rows": result.to_dict("records")})
