"""Cells of a comparison in a file: each is kept when it is finished, and none is run twice."""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from kernelmetric.kernelized._folds import on_cluster
from kernelmetric.report import Cell
from kernelmetric.report._page import versions

log = logging.getLogger(__name__)


class CellFileError(ValueError):
    """A file of cells that must not be continued; the message says why and what to try."""


class CellFile:
    """Finished cells as JSON lines, appended one by one and never changed.

    The first line may say what the cells are about; further lines that are no cells say which
    versions made those that follow. A cell is on the disk before the next begins. A last line
    without an end was being written when the program was killed: it counts as not written.

    Parameters
    ----------
    path : path-like
        The file; made with the first cell.
    about : mapping, default=None
        The protocol of the cells. A file that tells of another protocol is refused.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from reproduction.cells import CellFile
    >>> from kernelmetric.report import Cell
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = CellFile(Path(folder) / "cells.jsonl", about={"table": "mine"})
    ...     file.append(Cell("iris", "NCA", 0, 0.9, 0.1))
    ...     len(file.read())
    1
    """

    def __init__(self, path: str | os.PathLike, about: Mapping[str, Any] | None = None):
        self.path = Path(path)
        self.about = None if about is None else json.loads(json.dumps(about))

    def read(self) -> list[Cell]:
        """All cells, each once, in the order of the file.

        Returns
        -------
        list of Cell
            Empty where there is no file yet.
        """
        cells: dict[tuple[str, str, int], Cell] = {}
        for number, line in enumerate(self._whole_lines(), start=1):
            fields = self._parsed(line, number)
            if "about" in fields:
                self._compare(fields["about"])
            elif "dataset" in fields:
                try:
                    cell = Cell(**fields)
                except TypeError as error:
                    raise self._corrupt(number, str(error)) from error
                cells.setdefault((cell.dataset, cell.method, cell.split), cell)
            elif "made_by" not in fields:
                raise self._corrupt(number, "it is no cell")
        return list(cells.values())

    def append(self, cell: Cell) -> None:
        """Add a cell; it is on the disk when this returns.

        Parameters
        ----------
        cell : Cell
            A finished cell.
        """
        self._append(cell._asdict())

    def begin(self, made_by: Mapping[str, Any] | None = None) -> None:
        """Make the file ready: cut off half a line, write what it is about, and who writes now.

        Parameters
        ----------
        made_by : mapping, default=None
            Versions and machine, for the cells that follow.
        """
        with self.path.open("a+b") as stream, _alone(stream):
            stream.seek(0)
            content = stream.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                log.warning("The last line of %s was cut short: its cell is run again.", self.path)
                stream.truncate(whole)
            if whole == 0 and self.about is not None:
                _add_line(stream, {"about": self.about})
            if made_by is not None:
                _add_line(stream, {"made_by": dict(made_by)})

    def _append(self, fields: Mapping[str, Any]) -> None:
        with self.path.open("ab") as stream, _alone(stream):
            _add_line(stream, fields)

    def _whole_lines(self) -> list[bytes]:
        if not self.path.exists():
            return []
        return self.path.read_bytes().split(b"\n")[:-1]

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise self._corrupt(number, str(error)) from error
        if not isinstance(fields, dict):
            raise self._corrupt(number, "it is no cell")
        return fields

    def _corrupt(self, number: int, why: str) -> CellFileError:
        return CellFileError(
            f"Got line {number} of {self.path} that cannot be read ({why}), but expected a "
            "finished cell. Nothing was changed: try removing that line, or moving the file away."
        )

    def _compare(self, found: Any) -> None:
        if self.about is None or found == self.about:
            return
        keys = {*self.about, *found} if isinstance(found, dict) else {"about"}
        changed = sorted(
            k for k in keys if not isinstance(found, dict) or self.about.get(k) != found.get(k)
        )
        raise CellFileError(
            f"Got {self.path} with cells of another protocol (it differs in "
            f"{', '.join(changed)}), but expected those of the protocol of today: results of the "
            "two must not be mixed. Nothing was changed: try another folder, or move the file away."
        )


def _add_line(stream: BinaryIO, fields: Mapping[str, Any]) -> None:
    stream.write((json.dumps(fields) + "\n").encode("utf-8"))
    stream.flush()
    os.fsync(stream.fileno())


@contextmanager
def _alone(stream: BinaryIO) -> Iterator[None]:
    """Hold other writers off a file: two that begin at once must not cut each other's lines.

    Where the system, or the file system, has no such locks, one writer at a time is up to the user.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with suppress(OSError):
        fcntl.flock(stream, fcntl.LOCK_EX)  # let go when the stream is closed
    yield


def resumed_cells(
    problems: Iterable[Any],
    methods: Iterable[Any],
    n_splits: int,
    file: CellFile,
    run: Callable[[Any, Any, int], Cell | None],
    *,
    left_out: frozenset[tuple[str, str]] = frozenset(),
    n_jobs: int | None = None,
    made_by: Mapping[str, Any] | None = None,
) -> Iterator[Cell]:
    """Run what is not in the file yet, append each finished cell to it, and yield it.

    Parameters
    ----------
    problems : iterable of Problem
        Data sets.
    methods : iterable of Method
        What is compared.
    n_splits : int
        Splits of each data set; they are the outer loop, so that whoever stops early has all
        data sets and all methods, on fewer splits.
    file : CellFile
        Where they are kept; made if missing.
    run : callable
        ``run(problem, method, seed) -> Cell``, or None for a fit that failed: it is not kept, and
        tried again another time.
    left_out : frozenset of (str, str)
        Names of data sets and methods that are not run.
    n_jobs : int, default=None
        Processes that share the cells; this one alone writes. Inside joblib's dask backend they
        are those of a cluster.
    made_by : mapping, default=None
        Versions and machine, written before the first new cell.

    Yields
    ------
    Cell
        Those run now, as they finish.
    """
    problems, methods = list(problems), list(methods)
    done = {(cell.dataset, cell.method, cell.split) for cell in file.read()}
    tasks = [
        (problem, method, seed)
        for seed in range(n_splits)
        for problem in problems
        for method in methods
        if (problem.name, method.name) not in left_out
        and (problem.name, method.name, seed) not in done
    ]
    if not tasks:
        return
    file.begin(made_by)
    for cell in _finished(run, tasks, n_jobs):
        if cell is not None:
            file.append(cell)
            yield cell


def _finished(
    run: Callable[..., Cell | None], tasks: list[tuple[Any, Any, int]], n_jobs: int | None
) -> Iterable[Cell | None]:
    if on_cluster():
        run = partial(_without_others, run)
    elif effective_n_jobs(n_jobs) == 1:
        return (run(*task) for task in tasks)
    # Unordered: a cell that waited for its turn would be lost to whoever pulls the plug.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    return parallel(delayed(run)(*task) for task in tasks)


def _without_others(run: Callable[..., Cell | None], *task: Any) -> Cell | None:
    """A cell on a worker of a cluster, which must not send its own loops to the cluster again."""
    with parallel_config(backend="sequential"):
        return run(*task)


def provenance() -> dict[str, str]:
    """Versions and machine, to be kept with results.

    Returns
    -------
    dict of str
        Package versions, Python, system.

    Examples
    --------
    >>> from reproduction.cells import provenance
    >>> "numpy" in provenance()
    True
    """
    return versions() | {
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "when": time.strftime("%Y-%m-%d"),
    }
