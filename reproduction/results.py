"""From finished cells to pages: our tables beside the papers'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kernelmetric.report import Cell, write_atomically
from reproduction.comparison import Compared, Reproduction, compare
from reproduction.pages import reproduction_csv, reproduction_html, reproduction_markdown
from reproduction.papers import reasons
from reproduction.pictures import plot_agreement
from reproduction.ranking import plot_ranking, rank_methods
from reproduction.table import Table


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
    >>> from kernelmetric.report import Cell
    >>> from reproduction.comparison import compare
    >>> from reproduction.results import reproduced
    >>> from reproduction.tables import TABLES
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


def result_pictures(
    tables: Sequence[Table], results: Sequence[Reproduction]
) -> dict[str, Callable[[], Any]]:
    """What there is to draw of results: our cells over the papers', tables of many methods.

    Parameters
    ----------
    tables : sequence of Table
        Tables.
    results : sequence of Reproduction
        What came out of each.

    Returns
    -------
    dict of callable
        By name; each draws and returns axes.
    """
    pictures: dict[str, Callable[[], Any]] = {}
    papers: dict[str, list[Compared]] = {}
    for table, result in zip(tables, results, strict=True):
        if table.reference and rank_methods(result.cells, table.reference):
            families = table.families
            pictures[table.name] = partial(plot_ranking, result.cells, table.reference, families)
        elif result.paper and result.cells:
            papers.setdefault(table.name.split("-")[0], []).extend(compare(result))
    if papers:
        pictures["agreement"] = partial(plot_agreement, papers)
    return pictures


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
