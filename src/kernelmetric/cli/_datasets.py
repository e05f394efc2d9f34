"""``kernelmetric datasets``: the papers' data sets, and where they come from."""

from __future__ import annotations

from typing import Any

import click

from kernelmetric.cli._options import output_options
from kernelmetric.cli._talk import Talk
from kernelmetric.datasets import describe, load
from kernelmetric.datasets._sources import folder_of


@click.group()
def datasets() -> None:
    """List and describe the data sets of the papers.

    \b
    Examples:
      kernelmetric datasets list
      kernelmetric datasets describe wine
      kernelmetric datasets path
    """


@datasets.command(name="list")
@output_options
def list_all(talk: Talk) -> None:
    """List names, sizes and where each set would come from."""
    rows = describe()
    sizes = ("n_samples", "n_features", "n_classes")
    lines = [[row["name"], *(f"{row[size]:,}" for size in sizes), row["source"]] for row in rows]
    talk.table(None, ["name", "rows", "features", "classes", "source"], lines)
    talk.answer({"datasets": rows})


@datasets.command(name="describe")
@click.argument("name")
@output_options
def describe_one(talk: Talk, name: str) -> None:
    """Load a set and describe it: classes, missing values, origin."""
    found: Any = load(name)
    for line in found.DESCR.splitlines():
        talk.say(line)
    talk.answer(
        {
            "name": found.name,
            "shape": list(found.data.shape),
            "classes": [str(target) for target in found.target_names],
            "n_missing": found.n_missing,
            "source": found.source,
            "description": found.DESCR,
        }
    )


@datasets.command(name="path")
@output_options
def path(talk: Talk) -> None:
    """Print the folder of data files: the environment variable KERNELMETRIC_DATA."""
    folder = folder_of(None)
    if folder is None:
        raise click.ClickException(
            "KERNELMETRIC_DATA is not set: set it to the folder with the data files. Sets "
            "that scikit-learn or OpenML have need no folder."
        )
    talk.say(str(folder))
    talk.answer({"path": str(folder)})
