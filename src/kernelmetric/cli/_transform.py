"""``kernelmetric transform``: learned coordinates of the rows of a table."""

import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
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
from kernelmetric.cli._options import device_option, model_argument, rows_out_options, several_data
from kernelmetric.cli._talk import Talk, count, visible
from kernelmetric.report import write_atomically
from kernelmetric.tables import features_of, read_pieces, table_bytes, typed

Made = Callable[[Any], Any]  # from a table to a frame of new columns


@click.command()
@model_argument
@several_data
@device_option
@rows_out_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def transform(
    model: Path, data: tuple[Path, ...], out: Path | None, folder: Path | None, quiet: bool
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
    require_places(model, data, out, folder)
    fitted = load_model(model)
    made = partial(coordinates, fitted)
    if folder is not None:
        write_pieces(talk, fitted, data, folder, made)
        return
    result, _ = in_one(talk, fitted, data, out, made)
    if out is None:
        _print(table_bytes(result, "stdout.csv"))


def require_places(
    model: Path, data: tuple[Path, ...], out: Path | None, folder: Path | None
) -> None:
    """Refuse a file and a folder, several tables for one file, and files that would be lost."""
    if folder is not None and out is not None:
        raise ValueError(f"Got --out {out} and --output {folder}, but expected one.")
    if folder is None and len(data) > 1:
        raise ValueError(
            f"Got {len(data)} files, but no folder to write their pieces to: add --output FOLDER."
        )
    require_outputs({"--out": out}, {"MODEL": model, "DATA": data[0]})


def in_one(talk: Talk, model: Any, data: tuple[Path, ...], out: Path | None, made: Made) -> Any:
    """What is made of a table beside the columns carried along, written to a file; and alone."""
    import pandas as pd

    parts: list[tuple[Any, Any]] = []
    n_rows = 0
    with talk.busy(f"Reading {data[0].name}") as update, closing(read_pieces(data)) as pieces:
        for table in pieces:
            carried = table.frame[unused_columns(model, table.frame)]
            if out is not None and not parts:  # whether such a file can hold such columns
                table_bytes(typed(carried).head(0), out)
            parts.append((carried, made(table)))
            told = remarks_on(table, model)
            talk.aside(told if not n_rows else [f"From row {n_rows:,} on: {t}" for t in told])
            n_rows += len(carried)
            update(f"{count(n_rows, 'row')} done")
    before, after = (pd.concat(some, ignore_index=True) for some in zip(*parts, strict=True))
    result = joined(typed(before), after)
    if out is not None:
        write_atomically(out, table_bytes(result, out))
        talk.say(f"Saved {out}: {count(len(result), 'row')}, {count(result.shape[1], 'column')}.")
    return result, after


def write_pieces(talk: Talk, model: Any, data: tuple[Path, ...], folder: Path, made: Made) -> None:
    """Write what is made of the rows of every piece to a file of its own."""
    require_folder(folder, empty=True)
    n_rows = number = 0
    with talk.busy("Reading"), closing(read_pieces(data)) as pieces:
        for number, table in enumerate(pieces, start=1):
            path = folder / f"part-{number - 1:05d}.parquet"
            carried = table.frame[unused_columns(model, table.frame)]  # as it is, in every piece
            write_atomically(path, table_bytes(joined(carried, made(table)), path))
            talk.aside(f"{table.name}: {remark}" for remark in remarks_on(table, model))
            n_rows += len(carried)
    talk.say(f"Saved {folder}: {count(n_rows, 'row')} in {count(number, 'file')}.")


def coordinates(model: Any, table: Any) -> Any:
    """The learned coordinates of the rows of a table."""
    import pandas as pd

    Z = model.transform(features_of(table, model["table"]))
    return pd.DataFrame(Z, columns=[f"z{j}" for j in range(Z.shape[1])])


def joined(carried: Any, made: Any) -> Any:
    """Columns of a table, then new ones, which get a line below where a name is taken."""
    import pandas as pd

    while set(carried.columns) & set(made.columns):
        made = made.add_prefix("_")
    return pd.concat([carried.reset_index(drop=True), made], axis=1)


def _print(table: bytes) -> None:
    """Print a table: its very bytes to a pipe or a file, what can be shown to a terminal."""
    shown = visible(table.decode("utf-8"), keep="\n\t") if sys.stdout.isatty() else table
    click.echo(shown, nl=False)
