"""Cells of a comparison in a file: each is kept when it is finished, and none is run twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kernelmetric.report import Cell


def resumed_cells(
    problems: Iterable[Any],
    methods: Iterable[str],
    n_splits: int,
    out: Path,
    run: Callable[[Any, str, int], Cell],
) -> Iterator[Cell]:
    """Run what is not in the file yet, append each finished cell to it, and yield it.

    Parameters
    ----------
    problems : iterable of Problem
        Data sets.
    methods : iterable of str
        Names of what is compared.
    n_splits : int
        Splits of each data set; they are the outer loop.
    out : Path
        A file of JSON lines; made if missing.
    run : callable
        ``run(problem, method, seed) -> Cell``.

    Yields
    ------
    Cell
        Those run now.
    """
    problems, methods = list(problems), list(methods)
    done = {(c.dataset, c.method, c.split) for c in read_cells(out)}
    for seed in range(n_splits):
        for problem in problems:
            for method in methods:
                if (problem.name, method, seed) in done:
                    continue
                cell = run(problem, method, seed)
                with out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(cell._asdict()) + "\n")
                yield cell


def read_cells(path: Path) -> list[Cell]:
    """Cells that were finished before.

    Parameters
    ----------
    path : Path
        A file of JSON lines, or a path where none is yet.

    Returns
    -------
    list of Cell
        In the order of the file.
    """
    if not path.exists():
        return []
    return [Cell(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
