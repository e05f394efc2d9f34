"""From finished cells to pages: our tables beside the papers'."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path

from kernelmetric.experiments._table import Table
from kernelmetric.report import (
    Cell,
    Reproduction,
    reproduction_csv,
    reproduction_html,
    reproduction_markdown,
    write_atomically,
)


@lru_cache
def reasons(table: str) -> dict[tuple[str, str], str]:
    """Why cells of a table do not come out as printed, as far as it is known.

    Parameters
    ----------
    table : str
        Name of the table.

    Returns
    -------
    dict of str
        By data set and method; "*" stands for all.
    """
    source = resources.files("kernelmetric.experiments") / "printed" / "misses.csv"
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return {(row["dataset"], row["method"]): row["why"] for row in rows if row["table"] == table}


def reproduced(table: Table, cells: Sequence[Cell], skipped: Sequence[str] = ()) -> Reproduction:
    """A table with our cells, ready to be rendered.

    Parameters
    ----------
    table : Table
        The table.
    cells : sequence of Cell
        Ours.
    skipped : sequence of str
        What could not be run, in sentences.

    Returns
    -------
    Reproduction
        Ours beside the paper's.

    Examples
    --------
    >>> from kernelmetric.experiments import TABLES, reproduced
    >>> from kernelmetric.report import Cell, compare
    >>> cells = [Cell("iris", "NCA", 0, 0.97, 0.1)]
    >>> compare(reproduced(TABLES["000-table1"], cells))[0].verdict
    'within'
    """
    order = [problem.name for problem in table.problems]
    columns = [method.name for method in table.methods]
    cells = sorted(cells, key=lambda c: (order.index(c.dataset), columns.index(c.method), c.split))
    return Reproduction(
        table.name,
        table.title + (", smoke version" if table.is_smoke else ""),
        cells,
        {} if table.is_smoke else table.paper,
        table.n_splits,
        table.printed,
        table.protocol,
        {method.name: method.text for method in table.methods},
        table.against,
        reasons(table.name),
        tuple(skipped),
        table.reference,
    )


def write_pages(tables: Sequence[Reproduction], folder: str | Path) -> list[Path]:
    """Write what came out as Markdown, HTML and CSV.

    Parameters
    ----------
    tables : sequence of Reproduction
        Tables, in order.
    folder : path-like
        Where to.

    Returns
    -------
    list of Path
        The files.
    """
    contents = {
        "reproduction.md": f"# Reproduction\n\n{reproduction_markdown(tables)}\n",
        "reproduction.html": reproduction_html(tables),
        "reproduction.csv": reproduction_csv(tables),
    }
    return [write_atomically(Path(folder) / name, text) for name, text in contents.items()]
