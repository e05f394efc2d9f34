"""What tables and plots read, and accuracies as a table: for the terminal, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table


class Cell(NamedTuple):
    """One fit: one method on one split of one data set.

    ``note`` are warnings; ``megabytes`` is the most memory meanwhile, 0 where it was not measured.
    """

    dataset: str
    method: str
    split: int
    accuracy: float
    seconds: float
    note: str = ""
    megabytes: float = 0.0


class Panel(NamedTuple):
    """One picture of an embedding: training points, test points and what neighbours say of them."""

    dataset: str
    method: str
    Z_train: np.ndarray
    y_train: np.ndarray
    Z_test: np.ndarray
    y_test: np.ndarray
    y_pred: np.ndarray

    @property
    def accuracy(self) -> float:
        """Fraction of the test points that are predicted right."""
        return float(np.mean(self.y_pred == self.y_test))


class Summary(NamedTuple):
    """Mean and standard deviation of a method's accuracies over the splits of a data set."""

    mean: float
    std: float
    n_splits: int


def summarize(cells: Iterable[Cell]) -> dict[str, dict[str, Summary]]:
    """Mean and standard deviation over the splits, by data set, then by method, in first order.

    >>> from kernelmetric.report import Cell, summarize
    >>> cells = [Cell("iris", "NCA", 0, 0.9, 0.1), Cell("iris", "NCA", 1, 1.0, 0.1)]
    >>> summarize(cells)["iris"]["NCA"].mean
    0.95
    """
    accuracies: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        accuracies.setdefault(cell.dataset, {}).setdefault(cell.method, []).append(cell.accuracy)
    return {
        dataset: {
            method: Summary(float(np.mean(values)), float(np.std(values)), len(values))
            for method, values in of_dataset.items()
        }
        for dataset, of_dataset in accuracies.items()
    }


def rich_table(cells: Iterable[Cell], title: str | None = None) -> Table:
    """Accuracies in percent for the terminal, a row per method, the best of each column bold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text  # names are shown as they are: "[b]" is no markup

    table = summarize(cells)
    methods = list(dict.fromkeys(method for row in table.values() for method in row))
    columns = [_texts(row, methods) for row in table.values()]
    heading = None if title is None else Text(title, style="table.title")
    rendered = Table(title=heading, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1))
    rendered.add_column("", no_wrap=True)
    for dataset in table:
        name = Text(dataset, style="table.header")
        rendered.add_column(name, justify="right", min_width=9, vertical="bottom")
    for method, texts in zip(methods, zip(*columns, strict=True), strict=True):
        shown = (Text(text, "bold green" if best else "") for text, best in texts)
        rendered.add_row(Text(method), *shown)
    return rendered


def csv_text(cells: Iterable[Cell]) -> str:
    """Comma-separated values, one line per fit, under a line of names."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(Cell._fields)
    writer.writerows(cells)
    return stream.getvalue()


def _texts(row: dict[str, Summary], methods: list[str]) -> list[tuple[str, bool]]:
    """Text of every method in a row, and whether its mean is the best as printed."""
    shown = {method: round(100 * summary.mean, 1) for method, summary in row.items()}
    best = max(shown.values())
    return [
        (f"{shown[method]:.1f}±{100 * row[method].std:.1f}", shown[method] == best)
        if method in row
        else ("", False)
        for method in methods
    ]
