"""``python -m reproduction``: the papers' tables and figures, ours beside theirs."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from joblib import parallel_config
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kernelmetric.cli._files import require_folder
from kernelmetric.cli._talk import INTERRUPTED, make_console, spoken
from kernelmetric.report import png_bytes, visible, write_atomically
from reproduction.cells import CellFileError
from reproduction.cluster import cluster
from reproduction.comparison import compare
from reproduction.figures import FIGURES
from reproduction.pages import summary_line
from reproduction.papers import PAPERS
from reproduction.results import reproduced, result_pictures, write_pages
from reproduction.table import Plan, Table, plan, run_table
from reproduction.tables import STUDIES, TABLES


class Spoken(click.Command):
    """Fails as the commands of the library do: in a sentence that steers no terminal."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with spoken():
            return super().invoke(ctx)


@click.command(cls=Spoken, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[TABLE|FIGURE|all|studies]...")
@click.option("--smoke", is_flag=True, help="Few points, one split: does all of it run?")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction-output"),
    show_default=True,
    help="Folder of the cells and pages; what is there is continued.",
)
@click.option("--splits", type=click.IntRange(1), help="Splits, if not the paper's number.")
@click.option(
    "--jobs",
    type=click.IntRange(-1),
    default=1,
    show_default=True,
    help="Processes that share the work; -1 for one per core.",
)
@click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Share the work among the workers of this Dask scheduler, started in this checkout.",
)
def reproduce(
    names: tuple[str, ...],
    smoke: bool,
    out: Path,
    splits: int | None,
    jobs: int,
    address: str | None,
) -> None:
    """Reproduce tables and figures of the papers, ours beside theirs.

    Each finished cell is kept at once: stop whenever you like, the same command goes on. What
    needs data or methods that are missing is skipped, with a sentence. Without arguments, all
    tables and figures are listed.
    """
    if not names:
        _list()
        return
    require_folder(out)
    tables, figures = _chosen(names, smoke, splits)
    with ExitStack() as stack:
        if address is not None:
            stack.enter_context(cluster(address))
        sys.exit(_told(tables, figures, out, None if address else jobs, smoke))


def _told(tables: list[Table], figures: list[str], out: Path, jobs: int | None, smoke: bool) -> int:
    """Run, and say in a sentence what of the files went wrong."""
    try:
        return _reproduce(tables, figures, out, jobs, smoke)
    except CellFileError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot write to {out}: {error}") from error


def main() -> None:
    """Run the command line."""
    reproduce(prog_name="python -m reproduction")


def _list() -> None:
    tables = {name: f"{t.title} ({t.n_cells} fits)" for name, t in (TABLES | STUDIES).items()}
    lines = tables | {name: figure.title for name, figure in FIGURES.items()}
    groups = {title: [n for n in lines if n.startswith(paper)] for paper, title in PAPERS.items()}
    groups |= {"In none of the papers": ["beyond"], "Studies, which the guide shows": [*STUDIES]}
    for title, names in groups.items():
        click.echo(click.wrap_text(title, 100))
        for name in names:
            click.echo(f"  {name:<17} {lines[name]}")
    click.echo("Try: python -m reproduction 000-table1 --smoke")


def _chosen(
    names: tuple[str, ...], smoke: bool, splits: int | None
) -> tuple[list[Table], list[str]]:
    known = TABLES | STUDIES
    groups = {"all": [*TABLES, *FIGURES], "studies": [*STUDIES]}
    single = [*known, *FIGURES]
    unknown = [name for name in names if name not in (*single, *groups)]
    if unknown:
        near = difflib.get_close_matches(unknown[0], single, 3) or single
        raise click.UsageError(
            f"Got {unknown[0]!r}, but expected a table or a figure: try {', '.join(near)} or all."
        )
    chosen = list(dict.fromkeys(one for name in names for one in groups.get(name, [name])))
    tables = [known[name] for name in chosen if name in known]
    tables = [table.smoked() if smoke else table for table in tables]
    if splits is not None:
        tables = [replace(table, n_splits=splits) for table in tables]
    return tables, [name for name in chosen if name in FIGURES]


def _reproduce(
    tables: list[Table], figures: list[str], out: Path, jobs: int | None, smoke: bool
) -> int:
    """Run, render and save; return the exit code."""
    plans = [plan(table) for table in tables]
    for planned in plans:
        for sentence in planned.skipped:
            click.echo(sentence, err=True)
    finished = _run(list(zip(tables, plans, strict=True)), out, jobs)
    results = [
        reproduced(table, table.file_in(out).read(), planned.skipped)
        for table, planned in zip(tables, plans, strict=True)
    ]
    for result in results:
        compared = compare(result)
        n_cells = f"{len(result.cells)} fits"
        line = n_cells if not result.paper else f"{n_cells}. {summary_line(compared)}"
        click.echo(f"{result.name}: {line}")
    saved = write_pages(results, out) if results else []
    if finished:
        drawings = {name: partial(_figure, name, smoke) for name in figures}
        saved += _draw({**drawings, **result_pictures(tables, results)}, out)
    for path in saved:
        click.echo(f"Saved {visible(path)}")
    if not finished:
        click.echo("Interrupted: what was finished is kept, the same command goes on.", err=True)
        return INTERRUPTED
    wanted = sum(planned.n_cells(t) for t, planned in zip(tables, plans, strict=True))
    failed = wanted - sum(len(result.cells) for result in results)
    if failed > 0:
        click.echo(f"{failed} fits failed, see above; the same command tries again.", err=True)
        return 1
    return 0


def _run(work: list[tuple[Table, Plan]], out: Path, jobs: int | None) -> bool:
    """Run all cells under a progress bar; whether Ctrl-C left them complete.

    Without a number of jobs, they go to the workers of a cluster.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    workers = _workers if jobs is None else nullcontext
    bar = Progress(*columns, console=make_console(stderr=True), transient=True)
    try:
        with bar, workers(work) as shared:
            for table, planned in shared:
                done = len(table.file_in(out).read())
                total = planned.n_cells(table)
                task = bar.add_task(table.name.ljust(32), total=max(total, done), completed=done)
                for cell in run_table(table, out, n_jobs=jobs, planned=planned):
                    what = f"{table.name} {cell.dataset} {cell.method}"
                    bar.update(task, advance=1, description=what[:32].ljust(32))
    except KeyboardInterrupt:
        return False
    return True


@contextmanager
def _workers(work: list[tuple[Table, Plan]]) -> Iterator[list[tuple[Table, Plan]]]:
    """Send the data of all tables to the workers, once; what runs inside goes there.

    One block for all of them: joblib names what it sends by its contents, and a data set sent
    again while the workers still forget it may be lost.
    """
    drawn = {id(problem): problem for _, planned in work for problem in planned.problems}
    held = {name: problem.loaded() for name, problem in drawn.items()}
    with parallel_config(backend="dask", scatter=list(held.values())):
        yield [
            (table, planned._replace(problems=[held[id(problem)] for problem in planned.problems]))
            for table, planned in work
        ]


def _figure(name: str, smoke: bool) -> Any:
    figure = FIGURES[name]
    return figure.draw(figure.compute(smoke))


def _draw(drawings: Mapping[str, Callable[[], Any]], out: Path) -> list[Path]:
    """Draw pictures; what cannot be drawn is a sentence."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # files only: no window, no display
    saved = []
    for name, draw in drawings.items():
        try:
            image = png_bytes(draw())
        except (ImportError, OSError) as error:
            click.echo(f"{name}: skipped, {error}", err=True)
            continue
        saved.append(write_atomically(out / f"{name}.png", image))
    return saved
