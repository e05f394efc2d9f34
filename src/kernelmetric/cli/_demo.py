"""``kernelmetric demo``: linear learners and their kernel versions compete."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from kernelmetric import __version__
from kernelmetric import demo as comparison
from kernelmetric.cli._options import seed_option
from kernelmetric.cli._outputs import require_folder
from kernelmetric.cli._talk import INTERRUPTED, Talk
from kernelmetric.demo import Demo
from kernelmetric.report import (
    Cell,
    MissingExtraError,
    csv_text,
    plot_accuracies,
    plot_fig2,
    png_bytes,
    rich_table,
    summarize,
    write_atomically,
)


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the table and the pictures.",
)
@click.option("--quick", is_flag=True, help="Use fewer data sets and splits. Takes seconds.")
@click.option("--quiet", is_flag=True, help="Write the files and print nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@seed_option
def demo(out: Path, quick: bool, quiet: bool, as_json: bool, seed: int) -> None:
    """Watch linear learners and their kernel versions compete.

    Euclidean distance, NCA, LMNN and DNE, and the kernel versions KNCA, KLMNN and KDNE, are
    compared by the accuracy of the nearest neighbours, on generated data and on data that
    come with scikit-learn.
    """
    require_folder(out)
    chosen = Demo.quick(seed) if quick else Demo(seed=seed)
    try:
        code = _run_demo(chosen, out, Talk(quiet=quiet, as_json=as_json))
    except OSError as error:
        raise click.ClickException(f"cannot write to {out}: {error}") from error
    sys.exit(code)


def _run_demo(chosen: Demo, out: Path, talk: Talk) -> int:
    """Run, show and save; return the exit code."""
    cells, finished = _collect(chosen, talk)
    files = {}
    if cells:
        files["accuracies.csv"] = write_atomically(out / "accuracies.csv", csv_text(cells))
    problem = None
    if finished:
        try:
            pictures, problem = _draw(chosen, cells, out)
            files |= pictures
        except KeyboardInterrupt:
            finished = False
    talk.answer(_result(chosen, cells, files, finished))
    if cells:
        n_splits = max(cell.split for cell in cells) + 1
        title = f"Accuracy of neighbours in %, mean±std over {n_splits} splits"
        talk.show(rich_table(cells, title=title))
    noted = sum(bool(cell.note) for cell in cells)
    if noted:
        talk.say(f"{noted} of {len(cells)} fits had something to say: column note of the CSV.")
    if files:
        talk.say("Saved:")
        talk.listed(map(str, files.values()))
    if problem is not None:
        click.echo(problem, err=True)
    if not finished:
        click.echo(f"Interrupted: {len(cells)} of {chosen.n_cells} fits were done.", err=True)
        return INTERRUPTED
    talk.suggest(
        {
            f"kernelmetric demo --seed {chosen.seed + 1}": "other draws, the same story?",
            "python -m pydoc kernelmetric.Kernelized": "the class behind it",
        }
    )
    return 0


def _collect(chosen: Demo, talk: Talk) -> tuple[list[Cell], bool]:
    """All cells under a progress bar, and whether Ctrl-C left them complete."""
    cells: list[Cell] = []
    try:
        with talk.progress(chosen.n_cells) as begin:
            begin("starting")
            for cell in comparison.run_cells(chosen):
                cells.append(cell)
                begin(f"{cell.dataset}, split {cell.split + 1} of {chosen.n_splits}")
    except KeyboardInterrupt:
        return cells, False
    return cells, True


def _draw(chosen: Demo, cells: list[Cell], out: Path) -> tuple[dict[str, Path], str | None]:
    """Write the pictures; without matplotlib, none and a sentence."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # files only: no window, no display
    try:
        pictures = {
            "fig2.png": png_bytes(plot_fig2(comparison.fig2_panels(chosen.seed))),
            "accuracies.png": png_bytes(plot_accuracies(cells)),
        }
    except MissingExtraError as error:
        return {}, f"No pictures were drawn. {error}"
    return {name: write_atomically(out / name, image) for name, image in pictures.items()}, None


def _result(
    chosen: Demo, cells: list[Cell], files: dict[str, Path], finished: bool
) -> dict[str, Any]:
    """What ``--json`` prints."""
    summary = [
        {"dataset": dataset, "method": method, **row._asdict()}
        for dataset, of_dataset in summarize(cells).items()
        for method, row in of_dataset.items()
    ]
    return {
        "version": __version__,
        "seed": chosen.seed,
        "finished": finished,
        "summary": summary,
        "cells": [cell._asdict() for cell in cells],
        "files": {name: str(path) for name, path in files.items()},
    }
