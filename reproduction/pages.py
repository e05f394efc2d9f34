"""Pages that set our tables beside the papers': Markdown, HTML and CSV, from results alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import NamedTuple

from kernelmetric.report import Summary, summarize
from reproduction.comparison import (
    Compared,
    Reproduction,
    compare,
    paired_tests,
    win_draw_loss,
)
from reproduction.papers import Printed
from reproduction.ranking import rank_methods

_SIGNS = {"within": "=", "above": "▲", "below": "▼"}
_COLUMNS = (
    *("table", "dataset", "method", "ours", "std", "splits", "paper", "paper_std"),
    *("verdict", "seconds", "why"),
)


class Grid(NamedTuple):
    """Text in rows and columns.

    Parameters
    ----------
    header : list of str
        Names of the columns.
    rows : list of list of str
        The rows; each begins with its name.
    """

    header: list[str]
    rows: list[list[str]]


def tally(compared: Iterable[Compared]) -> dict[str, int]:
    """How many cells are within, above and below the paper's.

    Parameters
    ----------
    compared : iterable of Compared
        Cells beside the paper's.

    Returns
    -------
    dict of int
        By verdict, and "all": those that both have.

    Examples
    --------
    >>> from reproduction.comparison import Compared
    >>> from reproduction.pages import tally
    >>> tally([Compared("iris", "NCA", None, None, "within")])
    {'within': 1, 'above': 0, 'below': 0, 'all': 1}
    """
    counts = dict.fromkeys(_SIGNS, 0)
    for cell in compared:
        if cell.verdict in counts:
            counts[cell.verdict] += 1
    return counts | {"all": sum(counts.values())}


def summary_line(compared: Sequence[Compared]) -> str:
    """One sentence on how many cells reproduce.

    Parameters
    ----------
    compared : sequence of Compared
        Cells beside the paper's.

    Returns
    -------
    str
        Counts of the verdicts, and of the cells within 0.02 or above.

    Examples
    --------
    >>> from kernelmetric.report import Summary
    >>> from reproduction.comparison import Compared
    >>> from reproduction.pages import summary_line
    >>> from reproduction.papers import Printed
    >>> cell = Compared("iris", "NCA", Summary(0.94, 0.01, 9), Printed(0.96), "within")
    >>> summary_line([cell])
    'Of 1 cells, 1 are within 0.02 of or above the paper; verdicts: 1 within, 0 above, 0 below.'
    """
    counts = tally(compared)
    near = sum(
        cell.ours.mean >= cell.paper.value - 0.02 - 1e-9
        for cell in compared
        if cell.ours is not None and cell.paper is not None
    )
    return (
        f"Of {counts['all']} cells, {near} are within 0.02 of or above the paper; verdicts: "
        f"{counts['within']} within, {counts['above']} above, {counts['below']} below."
    )


def comparison_grid(table: Reproduction) -> Grid:
    """The table as the paper has it: ours, then theirs, then the verdict, in every cell.

    Parameters
    ----------
    table : Reproduction
        A table.

    Returns
    -------
    Grid
        One row per data set, and the win / draw / loss row where there is one.
    """
    compared = {(c.dataset, c.method): c for c in compare(table)}
    datasets = list(dict.fromkeys(dataset for dataset, _ in compared))
    methods = list(dict.fromkeys(method for _, method in compared))
    text = partial(_text, printed=table.printed, alone=not table.paper)
    rows = [
        [d, *(text(compared[d, m]) if (d, m) in compared else "" for m in methods)]
        for d in datasets
    ]
    if table.against:
        rows.append(["W/D/L", *(_wins_draws_losses(table, method) for method in methods)])
    return Grid(["", *methods], rows)


def tests_grid(table: Reproduction) -> Grid:
    """Paired tests between the methods that the paper compares.

    Parameters
    ----------
    table : Reproduction
        A table.

    Returns
    -------
    Grid
        One row per data set and pair of methods; empty where nothing can be tested.
    """
    found = [
        test
        for method, other in table.against.items()
        for test in paired_tests(table.cells, method, other)
    ]
    fraction = table.printed == "fraction"
    unit, scale, digits = ("", 1, 3) if fraction else (", points", 100, 2)  # of accuracy
    header = ["", "compared", f"difference{unit}", "95 % interval", "t: p", "Wilcoxon: p", "splits"]
    rows = [
        [
            test.dataset,
            f"{test.method} − {test.other}",
            f"{scale * test.difference:+.{digits}f}",
            f"{scale * test.low:+.{digits}f} to {scale * test.high:+.{digits}f}",
            _p_value(test.p_t),
            _p_value(test.p_wilcoxon),
            str(test.n_splits),
        ]
        for test in found
    ]
    return Grid(header, rows)


def ranking_grid(table: Reproduction) -> Grid:
    """How the methods do on all data sets together, the best first.

    Parameters
    ----------
    table : Reproduction
        A table with a reference.

    Returns
    -------
    Grid
        One row per method; empty where no data set has all methods.
    """
    ranked = rank_methods(table.cells, table.reference)
    wins = f"W/D/L against {table.reference}"
    header = ["", "mean rank", "mean accuracy, %", wins, "Wilcoxon: p", "seconds of a fit"]
    rows = [
        [
            row.method,
            f"{row.rank:.1f}",
            f"{100 * row.accuracy:.1f}",
            "" if row.method == table.reference else "/".join(map(str, row.counts)),
            "" if row.method == table.reference else _p_value(row.p),
            f"{row.seconds:.2g}",
        ]
        for row in ranked
    ]
    return Grid(header, rows)


def reproduction_markdown(tables: Sequence[Reproduction], *, level: int = 2) -> str:
    """A page on all tables, for the documentation.

    Parameters
    ----------
    tables : sequence of Reproduction
        Tables, in order.
    level : int, default=2
        Level of the headings.

    Returns
    -------
    str
        Markdown.
    """
    return "\n\n".join(
        part for table in tables for part in _parts(table, _markdown_grid, "#" * level + " {}")
    )


def reproduction_html(tables: Sequence[Reproduction], title: str = "Reproduction") -> str:
    """A page on all tables that needs nothing else.

    Parameters
    ----------
    tables : sequence of Reproduction
        Tables, in order.
    title : str, default="Reproduction"
        Title of the page.

    Returns
    -------
    str
        HTML, without script or network.
    """
    body = "\n".join(
        part if part.startswith("<") else f"<p>{escape(part)}</p>"
        for table in tables
        for part in _parts(table, _html_grid, "<h2>{}</h2>")
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def reproduction_csv(tables: Sequence[Reproduction]) -> str:
    """One line per cell of every table.

    Parameters
    ----------
    tables : sequence of Reproduction
        Tables, in order.

    Returns
    -------
    str
        Comma-separated values; accuracies as fractions where larger is better.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for table in tables:
        seconds = _mean_seconds(table)
        for cell in compare(table):
            ours = cell.ours or Summary(float("nan"), float("nan"), 0)
            paper = cell.paper or Printed(float("nan"))
            took = seconds.get((cell.dataset, cell.method), "")
            mine = f"{ours.mean:.4f}", f"{ours.std:.4f}", ours.n_splits
            theirs = f"{paper.value:.4f}", paper.std
            names = table.name, cell.dataset, cell.method
            writer.writerow([*names, *mine, *theirs, cell.verdict, took, cell.why])
    return stream.getvalue()


def _parts(table: Reproduction, grid: Callable[[Grid], str], heading: str) -> list[str]:
    """The parts of a table's section, in order."""
    compared = compare(table)
    parts = [heading.format(f"{table.name}: {table.title}")]
    if not table.cells:
        return [*parts, "Not run yet.", *table.skipped]
    splits = {c.ours.n_splits for c in compared if c.ours is not None}
    few = f"{min(splits)} to {max(splits)}" if len(splits) > 1 else f"{max(splits)}"
    if tally(compared)["all"]:
        parts.append(
            f"{summary_line(compared)} Ours over {few} splits (paper: {table.n_splits}), then "
            "the paper's, then = within, ▲ above, ▼ below."
        )
    ranking = ranking_grid(table) if table.reference else Grid([], [])
    if ranking.rows:
        n_datasets = sum(rank_methods(table.cells, table.reference)[0].counts)
        parts.append(
            f"Over {n_datasets} data sets, {few} splits of each. W/D/L counts data sets, by means "
            "of two digits; p is Wilcoxon's, over the data sets, not corrected for many methods."
        )
        parts.append(grid(ranking))
    parts.append(grid(comparison_grid(table)))
    misses = [c for c in compared if c.verdict == "below"]
    if misses:
        rows = [[c.dataset, c.method, c.why or "Not explained yet."] for c in misses]
        parts.append(grid(Grid(["", "below the paper", "why"], rows)))
    tests = tests_grid(table)
    if tests.rows:
        parts.append("Paired over the splits, with 95 % confidence intervals of the mean:")
        parts.append(grid(tests))
    by_text: dict[str, list[str]] = {}
    for name, text in table.methods.items():
        by_text.setdefault(text, []).append(name)
    parts += [*table.protocol, *(f"{', '.join(names)}: {text}" for text, names in by_text.items())]
    return [*parts, *table.skipped]


def _text(cell: Compared, printed: str, alone: bool) -> str:
    ours = "–" if cell.ours is None else _number(cell.ours.mean, printed)
    if alone:  # many columns, no room: the spreads are in the CSV file
        return ours
    if cell.ours is not None and cell.ours.n_splits > 1:
        ours += f" ± {_spread(cell.ours.std, printed)}"
    theirs = "–" if cell.paper is None else _number(cell.paper.value, printed)
    return f"{ours} / {theirs} {_SIGNS.get(cell.verdict, '')}".rstrip()


def _number(value: float, printed: str) -> str:
    if printed == "fraction":
        return f"{value:.2f}"
    return f"{100 * value:.1f}" if printed == "percent" else f"{100 * (1 - value):.1f}"


def _spread(std: float, printed: str) -> str:
    return f"{std:.2f}" if printed == "fraction" else f"{100 * std:.1f}"


def _wins_draws_losses(table: Reproduction, method: str) -> str:
    if method not in table.against:
        return ""
    other, digits = table.against[method], 2 if table.printed == "fraction" else 4
    means = {(d, m): s.mean for d, row in summarize(table.cells).items() for m, s in row.items()}
    theirs = {key: printed.value for key, printed in table.paper.items()}
    counts = [win_draw_loss(values, method, other, digits) for values in (means, theirs)]
    return " / ".join("–".join(map(str, count)) for count in counts)


def _mean_seconds(table: Reproduction) -> dict[tuple[str, str], float]:
    times: dict[tuple[str, str], list[float]] = {}
    for cell in table.cells:
        times.setdefault((cell.dataset, cell.method), []).append(cell.seconds)
    return {key: round(sum(values) / len(values), 3) for key, values in times.items()}


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _markdown_grid(grid: Grid) -> str:
    lines = ["| " + " | ".join(grid.header) + " |", "|" + "---|" * len(grid.header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in grid.rows)])


def _html_grid(grid: Grid) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in grid.header)
    rows = "\n".join(
        "<tr>" + "".join(f"<td{_colour(text)}>{escape(text)}</td>" for text in row) + "</tr>"
        for row in grid.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def _colour(text: str) -> str:
    for name, sign in _SIGNS.items():
        if text.endswith(f" {sign}"):
            return f' class="{name}"'
    return ""


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{display:block;overflow-x:auto;border-collapse:collapse;margin:1rem 0}"
    "th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child{text-align:left}"
    ".above{background:#d9efe5}.below{background:#fbe3d2}"
)
