"""``kernelmetric demo``: linear learners and their kernel versions compete."""

import os
import sys
from pathlib import Path

import click

from kernelmetric import __version__, report
from kernelmetric import demo as comparison
from kernelmetric.cli._files import require_folder
from kernelmetric.cli._options import FOLDER, output_options, seed_option
from kernelmetric.cli._talk import INTERRUPTED, Talk
from kernelmetric.demo import Demo
from kernelmetric.report import Cell, MissingExtraError, write_atomically


@click.command()
@click.option(
    "--out", type=FOLDER, default=Path("demo-output"), help="Folder for table and pictures."
)
@click.option("--quick", is_flag=True, help="Use fewer data sets and splits. Takes seconds.")
@output_options
@seed_option
def demo(talk: Talk, out: Path, quick: bool, seed: int) -> None:
    """Watch linear learners and their kernel versions compete.

    Euclidean distance, NCA, LMNN and DNE, and the kernel versions KNCA, KLMNN and KDNE, are
    compared by the accuracy of the nearest neighbours, on generated data and on data that
    come with scikit-learn.
    """
    require_folder(out)
    chosen = Demo.quick(seed) if quick else Demo(seed=seed)
    cells: list[Cell] = []
    files: dict[str, str | bytes] = {}
    finished, problem = True, ""
    try:
        cells.extend(talk.tracked(comparison.run_cells(chosen), ["comparing"] * chosen.n_cells))
        os.environ.setdefault("MPLBACKEND", "Agg")  # files only: no window, no display
        files["fig2.png"] = report.png_bytes(report.plot_fig2(comparison.fig2_panels(seed)))
    except KeyboardInterrupt:
        finished = False
    except MissingExtraError as error:
        problem = f"No pictures were drawn. {error}"
    if cells:
        files = {"accuracies.csv": report.csv_text(cells), **files}
    paths = {name: write_atomically(out / name, content) for name, content in files.items()}
    summary = [
        {"dataset": dataset, "method": method, **row._asdict()}
        for dataset, of_dataset in report.summarize(cells).items()
        for method, row in of_dataset.items()
    ]
    talk.answer(
        {
            "version": __version__,
            "seed": chosen.seed,
            "finished": finished,
            "summary": summary,
            "cells": [cell._asdict() for cell in cells],
            "files": {name: str(path) for name, path in paths.items()},
        }
    )
    if cells:
        n_splits = max(cell.split for cell in cells) + 1
        title = f"Accuracy of neighbours in %, mean±std over {n_splits} splits"
        talk.show(report.rich_table(cells, title=title))
    noted = sum(bool(cell.note) for cell in cells)
    if noted:
        talk.say(f"{noted} of {len(cells)} fits had something to say: column note of the CSV.")
    talk.saved(paths.values())
    if problem:
        click.echo(problem, err=True)
    if not finished:
        click.echo(f"Interrupted: {len(cells)} of {chosen.n_cells} fits were done.", err=True)
        sys.exit(INTERRUPTED)
    talk.suggest(f"kernelmetric demo --seed {chosen.seed + 1}")
