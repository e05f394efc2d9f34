"""The numbers that the papers print, one CSV file per table in the folder ``printed``."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources
from typing import NamedTuple


class Printed(NamedTuple):
    """A number that a paper prints.

    Parameters
    ----------
    value : float
        The mean, as a fraction where larger is better.
    std : float or None
        Standard deviation over the paper's splits, where it is printed.
    """

    value: float
    std: float | None = None


#: How a paper prints: what makes its number a fraction where larger is better, and its spread.
SCALES = {
    "fraction": (lambda value: value, 1.0),
    "percent": (lambda value: value / 100, 0.01),
    "error": (lambda value: 1 - value / 100, 0.01),
}


#: The papers that tables and figures are named after.
PAPERS = {
    "000": "Chatpatanasiri, Korsrilabutr, Tangchanachaianan and Kijsirikul: A new kernelization "
    "framework for Mahalanobis distance learning algorithms. Neurocomputing, 2010",
    "001": "Li, Yang and Wang: A transductive framework of distance metric learning by spectral "
    "dimensionality reduction. ICML, 2007",
    "003": "Chatpatanasiri, Korsrilabutr, Tangchanachaianan and Kijsirikul: On kernelizing "
    "Mahalanobis distance learning algorithms. The earlier version of 000",
    "004": "Kwok and Tsang: Learning with idealized kernels. ICML, 2003",
}


@lru_cache
def read_printed(table: str, scale: str = "fraction") -> dict[tuple[str, str], Printed]:
    """The numbers of a table, as fractions where larger is better.

    Parameters
    ----------
    table : str
        Name of the table.
    scale : {"fraction", "percent", "error"}
        How the paper prints them.

    Returns
    -------
    dict
        Printed numbers by (data set, method); empty for a table that no paper has.

    Examples
    --------
    >>> from reproduction.papers import read_printed
    >>> read_printed("000-table1")["iris", "KNCA"]
    Printed(value=0.96, std=0.01)
    """
    source = resources.files("reproduction") / "printed" / f"{table}.csv"
    if not source.is_file():
        return {}
    turn, factor = SCALES[scale]
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return {
        (row["dataset"], row["method"]): Printed(
            turn(float(row["value"])), factor * float(row["std"]) if row["std"] else None
        )
        for row in rows
    }


@lru_cache
def reasons(table: str) -> dict[tuple[str, str], str]:
    """Why cells of a table do not come out as printed, as far as it is known.

    Parameters
    ----------
    table : str
        Name of the table.

    Returns
    -------
    dict of str
        By data set and method; "*" stands for all.
    """
    source = resources.files("reproduction") / "printed" / "misses.csv"
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return {(row["dataset"], row["method"]): row["why"] for row in rows if row["table"] == table}
