"""``kernelmetric check``: whether an estimator is kernelizable."""

import ast
import importlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kernelmetric.cli._options import FILE
from kernelmetric.cli._talk import json_text, spoken, visible
from kernelmetric.tables import TableError, read_table

_ERROR = 2


@click.command()
@click.argument("path", metavar="ESTIMATOR")
@click.option(
    "--param", "params", multiple=True, metavar="NAME=VALUE", help="Set a parameter. Repeatable."
)
@click.option("--data", type=FILE, help="Try it on this table of numbers, the label last.")
@click.option(
    "--tol", type=click.FloatRange(0), default=0.01, help="The largest change that counts as none."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def check(path: str, params: tuple[str, ...], data: Path | None, tol: float, as_json: bool) -> None:
    """Find out whether an ESTIMATOR becomes its kernel version on kernel coordinates.

    ESTIMATOR is a dotted path such as sklearn.cluster.KMeans. The command moves the points,
    turns them, and puts them into more dimensions. It fits the estimator each time and
    compares the answers.

    The exit code is 0 for yes, 1 for no (or if the data cannot tell), and 2 for an error.

    \b
    Examples:
      kernelmetric check sklearn.cluster.KMeans --param n_clusters=3
      kernelmetric check sklearn.linear_model.Lasso --data points.csv --json
    """
    estimator = _estimator(path, params)
    with spoken(_ERROR):
        X, y = (None, None) if data is None else _read(data)
        report = _report(estimator, X, y, tol)
    found = {
        "estimator": " ".join(repr(report.estimator).split()),
        "kernelizable": report.kernelizable,
        "verdict": report.verdict,
        "conditions": [asdict(condition) for condition in report.conditions],
    }
    click.echo(json_text(found) if as_json else visible(report, keep="\n"))
    raise SystemExit(0 if report.kernelizable else 1)


def _report(estimator: Any, X: Any, y: Any, tol: float) -> Any:
    from kernelmetric.evaluation import check_kernelizable

    try:
        return check_kernelizable(estimator, X, y, tol=tol)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001, RUF100 (code of others may raise whatever it likes)
        raise ValueError(
            f"{type(estimator).__name__} could not be tried: {type(error).__name__}: {error}"
        ) from error


def _estimator(path: str, params: tuple[str, ...]) -> Any:
    """The estimator named on the command line, or a sentence why there is none."""
    module, _, name = path.replace(":", ".").rpartition(".")
    chosen = dict(_parameter(text) for text in params)
    try:
        kind = getattr(importlib.import_module(module), name)
        # Looked at before it is called: a function may do anything at all.
        if not isinstance(kind, type) or not all(hasattr(kind, m) for m in ("fit", "get_params")):
            raise TypeError(f"{name} is no class with fit and get_params")
        return kind(**chosen)
    except Exception as error:  # noqa: BLE001, RUF100 (code of others may raise whatever it likes)
        raise click.BadParameter(
            f"Got {path!r}, but expected an estimator's class, such as sklearn.cluster.KMeans, and "
            f"what it needs as --param NAME=VALUE: {type(error).__name__}: {error}."
        ) from error


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.BadParameter(f"Got {text!r}, but expected NAME=VALUE, such as n_clusters=3.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value  # a word: kernel=linear


def _read(path: Path) -> tuple[Any, Any]:
    """Numbers and, in the last column, labels."""
    frame = read_table(path)
    try:
        if frame.shape[1] < 2:
            raise ValueError("there is one column only")
        X = frame.iloc[:, :-1].to_numpy(dtype=float)
    except (ValueError, TypeError) as error:
        raise TableError(
            f"Got {path}, but expected a header and rows of numbers with the label last: {error}."
        ) from error
    y = frame.iloc[:, -1]
    if y.isna().any():
        raise TableError(f"Got {path}, but expected a label in every row: fill the last column.")
    return X, y.to_numpy() if y.dtype.kind in "iuf" else y.astype(str).to_numpy(dtype=str)
