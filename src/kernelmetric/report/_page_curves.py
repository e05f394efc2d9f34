"""The report page on probabilities: how they rank rows, whether they come true, what they cost."""

from typing import Any, NamedTuple

import numpy as np
from sklearn import metrics

from kernelmetric.report import _page_html as html
from kernelmetric.report._text import html_text, percent

_MOST_CLASSES = 20  # with a curve each, and of a table of costs
_MOST_CORNERS = 200  # of a curve
_PARTS = 10  # of the probabilities, by their size
_ENDS = ("0 %", "100 %", "0 %", "100 %")


class Told(NamedTuple):
    """What a model says of rows held out, and what is true of them."""

    classes: list[str]
    P: np.ndarray  # a column for each class
    true: np.ndarray  # likewise, whether a row is of the class
    weights: np.ndarray  # with sum one
    costs: np.ndarray | None  # of taking a class (row) for another (column)


def told_of(P: Any, y: Any, y_test: Any, weights: Any, costs: Any) -> Told | None:
    """What the page is given of probabilities, None where that is nothing."""
    if P is None:
        return None
    classes = np.unique(np.asarray(y))
    true = np.asarray(y_test)[:, None] == classes
    w = np.ones(len(true)) if weights is None else np.asarray(weights, dtype=float)
    return Told([str(name) for name in classes], np.asarray(P), true, w / w.sum(), costs)


def curves_section(told: Told | None, label: str) -> str:
    """ROC, precision and recall of each class, or of the rarer one of two; and what came true."""
    if told is None:
        return ""
    shares, counts = told.weights @ told.true, told.true.sum(axis=0)
    shown = np.flatnonzero((counts > 0) & (counts < len(told.true)))[:_MOST_CLASSES]
    if len(told.classes) == 2:
        shown = shown[np.argsort(shares[shown], kind="stable")][:1]
    if not len(shown):
        return ""
    ranked, precise, lines, w = html.DIAGONAL, "", "", {"sample_weight": told.weights}
    for c in shown.tolist():
        given, colour = (told.true[:, c], told.P[:, c]), f"c{c % 8}"
        false, found, _ = metrics.roc_curve(*given, **w)
        precision, recall, _ = metrics.precision_recall_curve(*given, **w)
        ranked += html.curve(*_thinned(false, found), colour)
        precise += html.curve(*_thinned(recall, precision), colour)
        areas = metrics.auc(false, found), metrics.average_precision_score(*given, **w)
        cells = "".join(f'<td class="n">{percent(v)}</td>' for v in (shares[c], *areas))
        patch = f'<span class="swatch" style="background: var(--{colour})"></span>'
        lines += f"<tr><td>{patch} {html_text(told.classes[c])}</td>{cells}</tr>"
    heads = "share of rows", "ROC-AUC", "average precision"
    numbers = html.table([html_text(label)], heads, lines)
    share, right = "found of the class", "right where it is answered"
    said = "probability", "how often it came true"
    boxes = {
        "ROC": html.chart(ranked, _ENDS, ("others taken for the class", share)),
        "Precision and recall": html.chart(precise, _ENDS, (share, right)),
        "Calibration": html.chart(html.dots(*_came_true(told, shown)), _ENDS, said),
        "Areas": numbers,
    }
    body = "".join(html.figure(title, content) for title, content in boxes.items())
    note = (
        "Of the rows held out. The two curves go through all thresholds of a probability: the "
        "higher they run, the better rows are ranked. Each dot is a tenth of the probabilities: "
        "on the line, they come true as often as they say."
    )
    return html.section("Probabilities", note, f'<div class="two">{body}</div>', name="curves")


def costs_section(told: Told | None, label: str) -> str:
    """What answers cost that were chosen by costs, beside the most probable ones."""
    if told is None or told.costs is None:
        return ""
    costs = told.true @ told.costs  # of each answer, row by row
    answers = {
        "the class of least expected cost": (told.P @ told.costs).argmin(axis=1),
        "the most probable class": told.P.argmax(axis=1),
        "the same class for all": np.full(len(costs), (told.weights @ costs).argmin()),
    }
    lines = ""
    for name, said in answers.items():
        lines += html.line([name], [f"{told.weights @ costs[np.arange(len(costs)), said]:.4g}"])
    body = html.table(["what is answered"], ["mean cost of a row"], lines)
    if len(told.classes) <= _MOST_CLASSES:
        said = np.eye(len(told.classes))[next(iter(answers.values()))]
        paid = told.costs * ((told.true * told.weights[:, None]).T @ said)
        corner = f"mean cost by true {label} / predicted"
        matrix = html.grid(told.classes, paid.tolist(), corner, ".3g")
        body = f'<div class="two">{body}{matrix}</div>'
    return html.section("What wrong answers cost", "", body, name="costs")


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of many corners of a curve, both ends among them."""
    kept = np.unique(np.linspace(0, len(x) - 1, _MOST_CORNERS).astype(int))
    return x[kept], y[kept]


def _came_true(told: Told, shown: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean probability, and how often it came true, of parts of all probabilities of classes."""
    P, true = told.P[:, shown].ravel(), told.true[:, shown].ravel()
    weights = np.repeat(told.weights, len(shown))
    parts = np.array_split(np.argsort(P, kind="stable"), min(_PARTS, len(P)))
    means = [np.average([P[part], true[part]], axis=1, weights=weights[part]) for part in parts]
    return tuple(np.transpose(means))
