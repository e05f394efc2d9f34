"""``kernelmetric transform``: learned coordinates of the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelmetric.cli._models import load_model
from kernelmetric.cli._options import data_argument, device_option
from kernelmetric.cli._outputs import require_outputs
from kernelmetric.cli._talk import Talk, count, sentences, visible
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
    @device_option
    @click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write a .csv, .tsv, .npz or .parquet file. Without it, print CSV.",
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
            require_outputs({"--out": out}, {"MODEL": model, "DATA": data})
            fitted, table = load_model(model), open_table(data)
            if out is not None:  # whether such a file can hold such columns, before the work
                table_bytes(carried_columns(fitted, table).head(0), out)
            result = coordinates(fitted, table)
            talk.aside([*table.notes, *fitted["table"].remarks(table)])
            if out is None:
                _print(table_bytes(result, "stdout.csv"))
                return
            write_atomically(out, table_bytes(result, out))
        talk.say(f"Saved {out}: {count(len(result), 'row')}, {count(result.shape[1], 'column')}.")

    return transform


def coordinates(model: Any, table: Any) -> Any:
    """The columns that the model does not use, then the learned coordinates."""
    import pandas as pd

    Z = model.transform(features_of(table, model["table"]))
    carried = carried_columns(model, table)
    prefix = "z"
    while any(f"{prefix}{j}" in carried for j in range(Z.shape[1])):
        prefix += "_"
    names = [f"{prefix}{j}" for j in range(Z.shape[1])]
    return pd.concat([carried.reset_index(drop=True), pd.DataFrame(Z, columns=names)], axis=1)


def carried_columns(model: Any, table: Any) -> Any:
    """The columns that the model does not use."""
    frame = table.frame if isinstance(table, Table) else table
    return typed(frame.drop(columns=list(features_of(table, model["table"]).columns)))


def _print(table: bytes) -> None:
    """Print a table: its very bytes to a pipe or a file, what can be shown to a terminal."""
    import click

    shown = visible(table.decode("utf-8"), keep="\n\t") if sys.stdout.isatty() else table
    click.echo(shown, nl=False)
