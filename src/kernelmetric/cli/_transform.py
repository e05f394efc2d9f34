"""``kernelmetric transform``: learned coordinates of the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kernelmetric.cli._files import (
    load_model,
    remarks_on,
    require_folder,
    require_outputs,
    unused_columns,
)
from kernelmetric.cli._options import FILE, FOLDER, device_option, model_argument, several_data
from kernelmetric.cli._talk import Talk, count, visible
from kernelmetric.report import write_atomically
from kernelmetric.tables import features_of, open_table, read_pieces, table_bytes, typed


@click.command()
@model_argument
@several_data
@device_option
@click.option(
    "--out", type=FILE, help="Write a .csv, .tsv, .npz or .parquet file. Without it, print CSV."
)
@click.option(
    "--output",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Read files piece by piece, and write a Parquet file of each piece into this folder.",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def transform(
    model: Path,
    data: tuple[Path, ...],
    out: Path | None,
    folder: Path | None,
    quiet: bool,
) -> None:
    """Map rows of a table to the learned coordinates.

    Euclidean distance there is the learned distance, so any index of Euclidean distance can
    be filled with the result. Columns that the model does not use, such as names and labels,
    are carried along.

    \b
    Examples:
      kernelmetric transform model.km new.csv --out coordinates.npz
      kernelmetric transform model.km new.csv | head
      kernelmetric transform model.km data/*.parquet --output coordinates
    """
    talk = Talk(quiet=quiet, as_json=False)
    if folder is not None and out is not None:
        raise ValueError(f"Got --out {out} and --output {folder}, but expected one.")
    if folder is not None:
        _transform_pieces(talk, load_model(model), data, folder)
        return
    if len(data) > 1:
        raise ValueError(
            f"Got {len(data)} files, but no folder to write their pieces to: add --output FOLDER."
        )
    require_outputs({"--out": out}, {"MODEL": model, "DATA": data[0]})
    fitted, table = load_model(model), open_table(data[0])
    carried = typed(table.frame[unused_columns(fitted, table.frame)])
    if out is not None:  # whether such a file can hold such columns, before the work
        table_bytes(carried.head(0), out)
    result = coordinates(fitted, table, carried)
    talk.aside(remarks_on(table, fitted))
    if out is None:
        _print(table_bytes(result, "stdout.csv"))
        return
    write_atomically(out, table_bytes(result, out))
    talk.say(f"Saved {out}: {count(len(result), 'row')}, {count(result.shape[1], 'column')}.")


def _transform_pieces(talk: Talk, model: Any, data: tuple[Path, ...], folder: Path) -> None:
    """Write the coordinates of every piece to a file of its own."""
    require_folder(folder, empty=True)
    n_rows = number = 0
    with talk.busy("Transforming"):
        for number, table in enumerate(read_pieces(data), start=1):
            path = folder / f"part-{number - 1:05d}.parquet"
            carried = table.frame[unused_columns(model, table.frame)]  # as it is, in every piece
            write_atomically(path, table_bytes(coordinates(model, table, carried), path))
            talk.aside(f"{table.name}: {remark}" for remark in remarks_on(table, model))
            n_rows += len(carried)
    talk.say(f"Saved {folder}: {count(n_rows, 'row')} in {count(number, 'file')}.")


def coordinates(model: Any, table: Any, carried: Any) -> Any:
    """Some columns of a table, then the learned coordinates."""
    import pandas as pd

    Z = model.transform(features_of(table, model["table"]))
    prefix = "z"
    while any(f"{prefix}{j}" in carried for j in range(Z.shape[1])):
        prefix += "_"
    names = [f"{prefix}{j}" for j in range(Z.shape[1])]
    return pd.concat([carried.reset_index(drop=True), pd.DataFrame(Z, columns=names)], axis=1)


def _print(table: bytes) -> None:
    """Print a table: its very bytes to a pipe or a file, what can be shown to a terminal."""
    shown = visible(table.decode("utf-8"), keep="\n\t") if sys.stdout.isatty() else table
    click.echo(shown, nl=False)
