"""Ours beside theirs: verdicts on cells, wins and losses, paired tests; pure functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import stats

from kernelmetric.report import Cell, Summary, summarize
from reproduction.papers import Printed

TOLERANCE = 0.02  # as far as the rounding, the splits and the scaling of a paper are unknown


@dataclass(frozen=True)
class Reproduction:
    """Our cells of a table, and what the paper prints: all that a page about it needs.

    Parameters
    ----------
    name, title : str
        Names of the table.
    cells : list of Cell
        Ours.
    paper : mapping of (str, str) to Printed
        Theirs, by data set and method.
    n_splits : int
        Splits of the paper, and of a complete run.
    printed : {"fraction", "percent", "error"}
        How the paper prints its numbers.
    protocol : tuple of str
        What was settled, in sentences.
    methods : mapping of str to str
        What the methods are, in sentences.
    against : mapping of str to str
        Methods to be compared, each with another.
    reasons : mapping of (str, str) to str
        Why a cell is not the paper's, by data set and method; "*" stands for all.
    skipped : tuple of str
        What could not be run, in sentences.
    reference : str
        For a table of many methods: the one that the others are ranked beside.
    """

    name: str
    title: str
    cells: list[Cell]
    paper: Mapping[tuple[str, str], Printed]
    n_splits: int
    printed: str = "fraction"
    protocol: tuple[str, ...] = ()
    methods: Mapping[str, str] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    reference: str = ""


class Compared(NamedTuple):
    """One cell of a table, ours beside theirs.

    Parameters
    ----------
    dataset, method : str
        Row and column.
    ours : Summary or None
        Mean and spread over our splits; None where it was not run.
    paper : Printed or None
        What the paper prints; None where it prints nothing.
    verdict : str
        "within", "above" or "below" the paper; "quoted" where only the paper has a number,
        "ours" where only we have.
    why : str
        For what is below: the likely reason.
    """

    dataset: str
    method: str
    ours: Summary | None
    paper: Printed | None
    verdict: str
    why: str = ""


class PairedTest(NamedTuple):
    """Two methods on the same splits of a data set.

    Parameters
    ----------
    dataset, method, other : str
        What is compared.
    difference : float
        Mean of method minus other.
    low, high : float
        95 % confidence interval of the mean, by Student's t over the splits.
    p_t, p_wilcoxon : float
        Two-sided p-values of the paired t-test and of Wilcoxon's signed-rank test.
    n_splits : int
        Splits that both have.
    """

    dataset: str
    method: str
    other: str
    difference: float
    low: float
    high: float
    p_t: float
    p_wilcoxon: float
    n_splits: int


def verdict(ours: Summary, paper: Printed, n_paper: int) -> str:
    """How a mean of ours stands to a printed one.

    Parameters
    ----------
    ours : Summary
        Mean and spread over our splits.
    paper : Printed
        Mean and spread that are printed.
    n_paper : int
        Number of the paper's splits.

    Returns
    -------
    {"within", "above", "below"}
        Within 0.02 or two standard errors of the difference, or else better or worse.

    Examples
    --------
    >>> from kernelmetric.report import Summary
    >>> from reproduction.comparison import verdict
    >>> from reproduction.papers import Printed
    >>> verdict(Summary(0.93, 0.01, 40), Printed(0.95, 0.02), 40)
    'within'
    >>> verdict(Summary(0.90, 0.01, 40), Printed(0.95, 0.02), 40)
    'below'
    """
    difference = ours.mean - paper.value
    error = np.sqrt(ours.std**2 / ours.n_splits + (paper.std or 0.0) ** 2 / n_paper)
    if abs(difference) <= max(TOLERANCE, 2 * error) + 1e-9:
        return "within"
    return "above" if difference > 0 else "below"


def compare(table: Reproduction) -> list[Compared]:
    """All cells of a table, ours beside theirs.

    Parameters
    ----------
    table : Reproduction
        A table.

    Returns
    -------
    list of Compared
        Ours in the order they were run, then what only the paper has.
    """
    ours = summarize(table.cells)
    keys = [(dataset, method) for dataset, row in ours.items() for method in row]
    keys += [key for key in table.paper if key not in set(keys)]
    compared = []
    for dataset, method in keys:
        mine, theirs = ours.get(dataset, {}).get(method), table.paper.get((dataset, method))
        if mine is None or theirs is None:
            compared.append(Compared(dataset, method, mine, theirs, "ours" if mine else "quoted"))
            continue
        judged = verdict(mine, theirs, table.n_splits)
        why = _reason(table.reasons, dataset, method) if judged == "below" else ""
        compared.append(Compared(dataset, method, mine, theirs, judged, why))
    return compared


def win_draw_loss(
    values: Mapping[tuple[str, str], float], method: str, other: str, digits: int = 2
) -> tuple[int, int, int]:
    """Data sets on which a method is better than, equal to and worse than another.

    As the papers count: by means as printed, so that what differs in a later digit is a draw.

    Parameters
    ----------
    values : mapping of (str, str) to float
        Means by data set and method.
    method, other : str
        What is compared.
    digits : int, default=2
        Digits that are printed.

    Returns
    -------
    tuple of int
        Wins, draws and losses.

    Examples
    --------
    >>> from reproduction.comparison import win_draw_loss
    >>> means = {("iris", "NCA"): 0.95, ("iris", "KNCA"): 0.954, ("wine", "NCA"): 0.9,
    ...          ("wine", "KNCA"): 0.96}
    >>> win_draw_loss(means, "KNCA", "NCA")
    (1, 1, 0)
    """
    counts = {1: 0, 0: 0, -1: 0}
    for dataset, name in values:
        if name == method and (dataset, other) in values:
            mine, theirs = (round(values[dataset, m], digits) for m in (method, other))
            counts[int(np.sign(mine - theirs))] += 1
    return counts[1], counts[0], counts[-1]


def paired_tests(cells: Iterable[Cell], method: str, other: str) -> list[PairedTest]:
    """Compare two methods on the splits that both have, data set by data set.

    The splits of a data set overlap, so the intervals are somewhat too narrow as statements about
    other samples of the same population; about these data they are right.

    Parameters
    ----------
    cells : iterable of Cell
        Finished fits.
    method, other : str
        What is compared.

    Returns
    -------
    list of PairedTest
        One for each data set with at least two common splits.

    Examples
    --------
    >>> from kernelmetric.report import Cell
    >>> from reproduction.comparison import paired_tests
    >>> cells = [Cell("iris", m, i, a + i / 100, 0.0)
    ...          for i in range(4) for m, a in (("NCA", 0.9), ("KNCA", 0.92 + i / 1000))]
    >>> test, = paired_tests(cells, "KNCA", "NCA")
    >>> test.low < test.difference < test.high
    True
    """
    by_key = {(c.dataset, c.method, c.split): c.accuracy for c in cells}
    tests = []
    for dataset in dict.fromkeys(key[0] for key in by_key):
        splits = [s for d, m, s in by_key if (d, m) == (dataset, method)]
        splits = [s for s in splits if (dataset, other, s) in by_key]
        if len(splits) < 2:
            continue
        pairs = [(by_key[dataset, method, s], by_key[dataset, other, s]) for s in splits]
        tests.append(PairedTest(dataset, method, other, *_paired(np.diff(pairs)[:, 0] * -1.0)))
    return tests


def _paired(differences: np.ndarray) -> tuple[float, float, float, float, float, int]:
    n, mean = len(differences), float(np.mean(differences))
    error = float(np.std(differences, ddof=1) / np.sqrt(n))
    if error < 1e-12:  # all splits agree: there is nothing to test
        p = 1.0 if abs(mean) < 1e-12 else 0.0
        return mean, mean, mean, p, p, n
    reach = float(stats.t.ppf(0.975, n - 1)) * error
    p_t = float(2 * stats.t.sf(abs(mean) / error, n - 1))
    return mean, mean - reach, mean + reach, p_t, signed_rank_p(differences), n


def signed_rank_p(differences: np.ndarray) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test; one where nothing differs."""
    if not np.any(differences):
        return 1.0
    with warnings.catch_warnings():  # the normal approximation: exact p-values need no ties
        warnings.simplefilter("ignore", UserWarning)  # older SciPy finds ten splits few
        return float(stats.wilcoxon(differences, method="approx").pvalue)


def _reason(reasons: Mapping[tuple[str, str], str], dataset: str, method: str) -> str:
    for key in ((dataset, method), (dataset, "*"), ("*", method), ("*", "*")):
        if key in reasons:
            return reasons[key]
    return ""
