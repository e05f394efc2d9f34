"""A paper's table as data, and the one function that runs any of them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.demo import Split
from kernelmetric.evaluation import measured
from kernelmetric.report import Cell
from reproduction.cells import CellFile, provenance, resumed_cells
from reproduction.papers import Printed, read_printed
from reproduction.problems import Problem, split_of

log = logging.getLogger(__name__)
_LONGEST_NOTE = 300  # characters


class MissingMethodError(ImportError):
    """A method that this installation does not have."""


@dataclass(frozen=True)
class Method:
    """One column of a table.

    Parameters
    ----------
    name : str
        Name, as the table shows it.
    text : str
        What it is, in a sentence; part of the protocol.
    build : callable
        ``build(problem) -> estimator``, or whatever the table's ``evaluate`` takes. Raises
        :class:`MissingMethodError` where a part of the library is not there.
    family : str, default=""
        What kind of method it is, where the table has many.
    """

    name: str
    text: str
    build: Callable[[Problem], Any]
    family: str = ""


class Smoke(NamedTuple):
    """The version of a table that shows within seconds that all of it runs.

    Parameters
    ----------
    problems : tuple of str
        Names of the data sets.
    n_train, n_test : int
        The most points.
    n_splits : int
        Splits.
    """

    problems: tuple[str, ...]
    n_train: int = 40
    n_test: int = 100
    n_splits: int = 1


class Score(NamedTuple):
    """What a fit is worth, where that is more than one number.

    Parameters
    ----------
    value : float
        Larger is better.
    seconds : float, default=None
        Time to be shown; None for that of all that was done.
    note : str, default=None
        What to keep beside; None for the warnings.
    """

    value: float
    seconds: float | None = None
    note: str | None = None


def accuracy(model: Any, split: Split) -> float:
    """Accuracy on the test points of a model that learns from the training points."""
    return float(model.fit(split.X_train, split.y_train).score(split.X_test, split.y_test))


def classify(problem: Problem, method: Method, seed: int) -> float:
    """Accuracy of a classifier on the test points of a split.

    Parameters
    ----------
    problem : Problem
        The data set.
    method : Method
        Builds a classifier.
    seed : int
        Number of the split.

    Returns
    -------
    float
        Accuracy.
    """
    return accuracy(method.build(problem), split_of(problem, seed))


def by_seed(problem: Problem, method: Method, seed: int) -> float | Score:
    """Score of a method that draws its own splits.

    Parameters
    ----------
    problem : Problem
        The data set.
    method : Method
        Builds a function of the seed.
    seed : int
        Number of the split.

    Returns
    -------
    float or Score
        What the function returns.
    """
    return method.build(problem)(seed)


@dataclass(frozen=True)
class Table:
    """A table of a paper: its data sets, methods, protocol, and where its numbers are printed.

    Parameters
    ----------
    name : str
        Name for the command line, such as "000-table1".
    title : str
        What it shows.
    problems : tuple of Problem
        Rows.
    methods : tuple of Method
        Columns.
    n_splits : int
        Splits of each data set.
    protocol : tuple of str
        What the paper leaves open and how it is settled here, in sentences.
    smoke : Smoke
        The small version.
    evaluate : callable
        ``evaluate(problem, method, seed) -> float or Score``, larger is better.
    printed : {"fraction", "percent", "error"}
        How the paper prints its numbers: accuracies as fractions or in percent, or errors in
        percent.
    against : mapping of str to str
        For the win / draw / loss row: a method, and the one it is compared with.
    reference : str
        For a table of many methods: the one that the others are ranked beside.
    left_out : frozenset of (str, str)
        Data sets and methods whose cell is empty.
    is_smoke : bool
        Whether this is the small version.

    Examples
    --------
    >>> from reproduction.tables import TABLES
    >>> table = TABLES["000-table1"]
    >>> [method.name for method in table.methods]
    ['NCA', 'KNCA', 'AKNCA']
    >>> table.n_cells
    1200
    """

    name: str
    title: str
    problems: tuple[Problem, ...]
    methods: tuple[Method, ...]
    n_splits: int
    protocol: tuple[str, ...]
    smoke: Smoke
    evaluate: Callable[[Problem, Method, int], float | Score] = classify
    printed: str = "fraction"
    against: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""
    left_out: frozenset[tuple[str, str]] = frozenset()
    is_smoke: bool = False

    @property
    def n_cells(self) -> int:
        """Number of fits."""
        return Plan(list(self.problems), list(self.methods), []).n_cells(self)

    @property
    def about(self) -> dict[str, Any]:
        """The protocol as plain data: what must not change between results that are compared."""
        return {
            "table": self.name,
            "smoke": self.is_smoke,
            "protocol": list(self.protocol),
            "problems": {p.name: [p.n_train, p.n_test, p.scaling] for p in self.problems},
            "methods": {method.name: method.text for method in self.methods},
        }

    @property
    def families(self) -> dict[str, str]:
        """Kinds of the methods, where the table tells them apart."""
        return {method.name: method.family for method in self.methods if method.family}

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of the protocol."""
        text = json.dumps(self.about, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]

    @property
    def paper(self) -> dict[tuple[str, str], Printed]:
        """The printed numbers, by data set and method; columns quoted from elsewhere included."""
        return read_printed(self.name, self.printed)

    def file_in(self, folder: str | Path) -> CellFile:
        """Where its cells are kept.

        Parameters
        ----------
        folder : path-like
            Folder of results.

        Returns
        -------
        CellFile
            The full and the smoke version have files of their own.
        """
        suffix = "-smoke" if self.is_smoke else ""
        return CellFile(Path(folder) / f"{self.name}{suffix}.jsonl", about=self.about)

    def smoked(self) -> Table:
        """The small version of the table.

        Returns
        -------
        Table
            The same methods on few points.
        """
        few = self.smoke
        problems = tuple(
            p._replace(n_train=min(p.n_train, few.n_train), n_test=min(p.n_test, few.n_test))
            for p in self.problems
            if p.name in few.problems
        )
        return replace(self, problems=problems, n_splits=few.n_splits, is_smoke=True)


class Plan(NamedTuple):
    """What of a table can be run here.

    Parameters
    ----------
    problems : list of Problem
        Data sets that are to be had.
    methods : list of Method
        Methods that this installation has.
    skipped : list of str
        A sentence for each of the others.
    """

    problems: list[Problem]
    methods: list[Method]
    skipped: list[str]

    def n_cells(self, table: Table) -> int:
        """Number of fits.

        Parameters
        ----------
        table : Table
            The table, which may leave cells empty.

        Returns
        -------
        int
            Over all splits.
        """
        pairs = {(p.name, m.name) for p in self.problems for m in self.methods}
        return len(pairs - table.left_out) * table.n_splits


def plan(table: Table) -> Plan:
    """See which data sets and methods of a table are there.

    Parameters
    ----------
    table : Table
        A table.

    Returns
    -------
    Plan
        What can be run, and why the rest cannot.
    """
    problems, methods, skipped = [], [], []
    for problem in table.problems:
        try:
            problem.draw(problem.n_train, np.random.RandomState(0))
        except OSError as error:
            skipped.append(f"{table.name}, {problem.name}: skipped, the data are missing. {error}")
        else:
            problems.append(problem)
    for method in table.methods:
        try:
            method.build(table.problems[0])
        except ImportError as error:
            skipped.append(f"{table.name}, {method.name}: skipped, {error}")
        else:
            methods.append(method)
    return Plan(problems, methods, skipped)


def run_table(
    table: Table, folder: str | Path, *, n_jobs: int | None = None, planned: Plan | None = None
) -> Iterator[Cell]:
    """Run the cells of a table that are not in the folder yet; each is kept when it is finished.

    A fit that fails is logged and left out; the next run tries it again.

    Parameters
    ----------
    table : Table
        What to run.
    folder : path-like
        Where the cells are kept, in a file of the table's own.
    n_jobs : int, default=None
        Processes that share the cells.
    planned : Plan, default=None
        What :func:`plan` found, where it was asked before.

    Yields
    ------
    Cell
        Those run now.
    """
    planned = plan(table) if planned is None else planned
    yield from resumed_cells(
        planned.problems,
        planned.methods,
        table.n_splits,
        table.file_in(folder),
        partial(_run, table.evaluate),
        left_out=table.left_out,
        n_jobs=n_jobs,
        made_by=provenance() | {"fingerprint": table.fingerprint},
    )


def _run(
    evaluate: Callable[..., float | Score], problem: Problem, method: Method, seed: int
) -> Cell | None:
    with suppress(OSError):  # let Linux count the peak of memory anew
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    try:
        found = measured(evaluate, problem, method, seed)
    except Exception:  # one bad fit must not end a run of hours
        log.exception("%s, %s, split %d failed and is left out.", problem.name, method.name, seed)
        return None
    score = found.value if isinstance(found.value, Score) else Score(found.value)
    return Cell(
        problem.name,
        method.name,
        seed,
        round(float(score.value), 6),
        found.seconds if score.seconds is None else score.seconds,
        (found.note if score.note is None else score.note)[:_LONGEST_NOTE],
        _peak(),
    )


def _peak() -> float:
    """Megabytes of memory at most since it was counted anew, as Linux tells; 0 elsewhere."""
    with suppress(OSError, IndexError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)
    return 0.0
