"""``kernelmetric transform``: learned coordinates of the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelmetric.cli._models import load_model, require_writable
from kernelmetric.cli._options import data_argument
from kernelmetric.cli._talk import Talk, count, sentences
from kernelmetric.datasets import Table, features_of, open_table, table_bytes, typed
from kernelmetric.report import write_atomically

if TYPE_CHECKING:
    import click


def command() -> click.Command:
    """The command."""
    import click

    @click.command()
    @click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
    @data_argument
    @click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A .csv, .tsv, .npz or .parquet file; without it, CSV is printed.",
    )
    @click.option("--quiet", is_flag=True, help="Print nothing but errors.")
    def transform(model: Path, data: Path, out: Path | None, quiet: bool) -> None:
        """Map rows of a table to the learned coordinates.

        Euclidean distance there is the learned distance, so any index of Euclidean distance can
        be filled with the result. Columns that the model does not use, such as names and labels,
        are carried along.

        \b
        Examples:
          kernelmetric transform model.km new.csv --out coordinates.npz
          kernelmetric transform model.km new.csv | head
        """
        talk = Talk(quiet=quiet, as_json=False)
        with sentences():
            require_writable(out)
            table, fitted = open_table(data), load_model(model)
            result = coordinates(fitted, table)
            talk.aside([*table.notes, *fitted["table"].remarks(table)])
            if out is None:
                click.echo(table_bytes(result, "stdout.csv").decode("utf-8"), nl=False)
                return
            write_atomically(out, table_bytes(result, out))
        talk.say(f"Saved {out}: {count(len(result), 'row')}, {count(result.shape[1], 'column')}.")

    return transform


def coordinates(model: Any, table: Any) -> Any:
    """The columns that the model does not use, then the learned coordinates."""
    import pandas as pd

    frame = table.frame if isinstance(table, Table) else table
    X = features_of(table, model["table"])
    Z = model.transform(X)
    names = [f"z{j}" for j in range(Z.shape[1])]
    carried = typed(frame.drop(columns=list(X.columns)))
    names = [f"z_{name}" if name in carried else name for name in names]
    return pd.concat([carried.reset_index(drop=True), pd.DataFrame(Z, columns=names)], axis=1)
