"""``kernelmetric check``: whether an estimator is kernelizable."""

from __future__ import annotations

import ast
import csv
import importlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click


def command() -> click.Command:
    """The command ``check``.

    Returns
    -------
    click.Command
        It ends with exit code 0 if the estimator is kernelizable, 1 if not.
    """
    import click

    @click.command(name="check")
    @click.argument("path", metavar="ESTIMATOR")
    @click.option(
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter of the estimator; may be repeated.",
    )
    @click.option(
        "--data",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="CSV file with a header, numbers and the label in the last column, to try it on.",
    )
    @click.option("--tol", type=float, default=0.01, show_default=True, help="Change that is none.")
    @click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
    def check(
        path: str, params: tuple[str, ...], data: Path | None, tol: float, as_json: bool
    ) -> None:
        """Find out whether an ESTIMATOR becomes its kernel version on kernel coordinates.

        ESTIMATOR is a dotted path such as sklearn.cluster.KMeans. It is fitted on points that
        are moved, turned and embedded in more dimensions, and its answers are compared.
        """
        from kernelmetric.evaluation import check_kernelizable

        estimator = _estimator(path, params)
        X, y = (None, None) if data is None else _read(data)
        try:
            report = check_kernelizable(estimator, X, y, tol=tol)
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        click.echo(_as_json(report) if as_json else str(report))
        raise SystemExit(0 if report.kernelizable else 1)

    return check


def _estimator(path: str, params: tuple[str, ...]) -> Any:
    """The estimator named on the command line, or a sentence why there is none."""
    import click

    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.BadParameter(
            f"Got {path!r}, but expected a class that can be imported, such as "
            f"sklearn.cluster.KMeans: {error}."
        ) from error
    chosen = dict(_parameter(text) for text in params)
    try:
        return kind(**chosen)
    except TypeError as error:
        raise click.BadParameter(f"{name} could not be made: {error}.") from error


def _parameter(text: str) -> tuple[str, Any]:
    import click

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.BadParameter(f"Got {text!r}, but expected NAME=VALUE, such as n_clusters=3.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a word: kernel=linear


def _read(path: Path) -> tuple[Any, Any]:
    """Numbers and, in the last column, labels."""
    import click
    import numpy as np

    with path.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row][1:]
    try:
        X = np.array([[float(value) for value in row[:-1]] for row in rows])
        if X.ndim != 2 or not X.size:
            raise ValueError("no rows of equal length")
    except ValueError as error:
        raise click.ClickException(
            f"Got {path}, but expected a header and rows of numbers with the label last: {error}."
        ) from error
    labels = np.array([row[-1] for row in rows])
    try:
        return X, labels.astype(float) if any("." in label for label in labels) else labels.astype(
            int
        )
    except ValueError:  # names of classes
        return X, labels


def _as_json(report: Any) -> str:
    conditions = [asdict(condition) for condition in report.conditions]
    for condition in conditions:
        if condition["change"] == float("inf"):  # JSON knows no infinity
            condition["change"] = None
    return json.dumps(
        {
            "estimator": " ".join(repr(report.estimator).split()),
            "kernelizable": report.kernelizable,
            "verdict": report.verdict,
            "conditions": conditions,
        },
        indent=1,
    )
