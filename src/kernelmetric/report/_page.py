"""One HTML file that explains a learned metric, and needs nothing beside itself."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from kernelmetric.evaluation import ClassScores
from kernelmetric.inspection import FeatureImportance
from kernelmetric.inspection._columns import Reading
from kernelmetric.report import _page_curves as _curves
from kernelmetric.report import _page_data as _points
from kernelmetric.report import _page_objects as _objects
from kernelmetric.report import _page_reasons as _reasons
from kernelmetric.report import _page_scores as _scores
from kernelmetric.report import _page_sections as _sections
from kernelmetric.report._text import html_text, short, visible
from kernelmetric.shipping._save import versions

_LONGEST = 300  # characters of a cell: more hide the others


class Page(str):
    """The text of a page; a notebook shows it, as a page within the page."""

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self)}" style="width:100%;height:45em"></iframe>'


def report_page(
    metric: Any,
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    scores: Mapping[str, Sequence[float]] | None = None,
    learned: str = "learned metric",
    score_name: str = "accuracy",
    class_scores: Mapping[str, ClassScores] | None = None,
    trained: float | None = None,
    predicted: Any = None,
    probabilities: Any = None,
    costs: Any = None,
    test_weight: Any = None,
    importance: FeatureImportance | None = None,
    pairs: Any = None,
    regression: bool = False,
    title: str = "A learned metric",
    label: str = "class",
    feature_names: Sequence[str] | None = None,
    rows: Sequence[int] | None = None,
    shown: Mapping[str, Sequence[Any]] | None = None,
    facts: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    command: str | None = None,
) -> Page:
    """Write the page of a fitted metric: what was learned, how well, and where it still errs.

    The page shows the points before and after, with the nearest training points of any that is
    clicked, and the shares of the features in the distance of any two of 40 points. It also has the
    Gram matrices, scores against the alternatives, curves of probabilities, what was chosen and
    why, what the kernel and the features count, the loss curve, and the points or pairs that are
    hardest. Of more than 2,000 points an even sample is shown: O(n²) distances, in blocks.

    Parameters
    ----------
    metric : fitted metric
        Anything with ``transform``, fitted to X.
    X : array of shape (n, d), or list of objects
        Training points; Euclidean distance between them is "before". Objects are drawn, where their
        kernel knows how, and "before" is the distance of their coordinates in ``metric.space_``.
    y : array of shape (n,), default=None
        Their labels.
    X_test, y_test : array of shape (m, d) and (m,), default=None
        Points the metric has not seen, and their labels.
    scores : mapping of str to sequence of float, default=None
        Scores of every method on every split, the learned metric's among them.
    learned, score_name : str
        Which of the methods is the learned metric, and what the scores are.
    class_scores : mapping of str to ClassScores, default=None
        Of every method, what its accuracy does not say; of the learned metric, the confusion is
        shown.
    trained : float, default=None
        The score on rows learned from, by which the page warns of overfitting.
    predicted : array of shape (m,), default=None
        What a model predicts for X_test; None asks the nearest training points.
    probabilities : array of shape (m, n_classes), default=None
        What a model says of X_test, in the order of the classes of y: for ROC, precision and
        recall, and whether probabilities come true.
    costs : array of shape (n_classes, n_classes), default=None
        What it costs to take a class (row) for another (column).
    test_weight : array of shape (m,), default=None
        What the rows of X_test count there.
    importance : FeatureImportance, default=None
        What each column counts; None asks ``metric``.
    pairs : Pairs, default=None
        Pairs of training points that were learned from, to list those that came out wrong.
    regression : bool, default=False
        Whether y and y_test are numbers. Points are then coloured by ranges of them, and the page
        shows how far predictions are off.
    title, label : str
        Title of the page, and what the labels are called.
    feature_names : sequence of str, default=None
        Names of the d features.
    rows : sequence of int or str, default=None
        Numbers or names to call the n + m points by; None counts them.
    shown : mapping of str to sequence, default=None
        Columns to show beside a point, with a value for each of the n + m points.
    facts : mapping of str to str, default=None
        What else to write under "How it was made".
    notes, command : iterable of str, and str
        Sentences on how the data were prepared, and the command that made the page.

    Returns
    -------
    str
        The text of an HTML file; write it with :func:`write_atomically`. In a notebook, the page
        shows itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.report import report_page
    >>> X, y = load_iris(return_X_y=True)
    >>> page = report_page(NCA(2).fit(X, y), X, y, title="Iris")
    >>> page.startswith("<!doctype html>"), "<title>Iris</title>" in page
    (True, True)
    """
    linear, X, X_test, objects = _objects.in_numbers(metric, X, X_test)
    points = _points.choose_points(
        linear, X, y, X_test, y_test, predicted=predicted, regression=regression
    )
    n_test = 0 if X_test is None else len(X_test)
    numbers = np.arange(len(X) + n_test) if rows is None else np.asarray(rows)
    if linear is not metric:
        feature_names = [f"coordinate {i}" for i in range(1, X.shape[1] + 1)]
    reading = _reasons.columns_of(linear, X, feature_names)
    data, shares = _data(points, numbers, label, {**objects, **(shown or {})}, reading)
    scores = {name: [float(value) for value in values] for name, values in (scores or {}).items()}
    given = scores, learned, score_name, len(X), n_test, class_scores or {}, trained
    judged = _scores.Judged(*given, by_costs=costs is not None).leading()
    told = _curves.told_of(probabilities, y, y_test, test_weight, costs)
    parts = [
        _curves.curves_section(told, label),
        _sections.chosen_section(metric),
        _sections.learned_section(metric, importance or _reasons.relevance(reading, X)),
        _sections.error_section(points, data, label),
        _sections.number_section(points, data, label),
        _sections.pairs_section(linear, X, pairs, numbers),
        _sections.details_section(metric, facts or {}, notes, command, versions()),
    ]
    script = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    values = {
        "lead": " ".join(_scores.in_html(_scores.verdict(judged))),
        "tiles": _scores.tiles(judged),
        "confusion": _scores.confusion_section(judged, label) + _curves.costs_section(told, label),
        **_sections.captions(points, shares, len(X) + n_test, label),
        "sections": "\n".join(filter(None, parts)),
        "js": _read("page.js"),
        "data": script.replace("<", "\\u003c"),  # a label might be "</script>"
    }
    return filled("page.html", title, values)


def filled(template: str, title: str, values: Mapping[str, Any]) -> Page:
    """A page from its template."""
    known = {"title": html_text(title), "version": html_text(versions()["kernelmetric"])}
    known |= {"css": _read("page.css"), **values}
    # in one pass: values may hold braces
    return Page(re.sub(r"\{\{(\w+)\}\}", lambda found: known[found[1]], _read(template)))


def _data(
    points: _points.Points,
    numbers: np.ndarray,
    label: str,
    shown: Mapping[str, Sequence[Any]],
    reading: Reading | None,
) -> tuple[dict[str, Any], tuple[float, float]]:
    """What the scripts of the page read."""
    before, after, shares = _points.in_planes(points)
    sides = {}
    asked = points.before, points.codes, points.n_train, _points.VOTERS
    for name, plane, Z, said in (
        ("before", before, points.before, _points.predictions(*asked)),
        ("after", after, points.after, _points.said_after(points)),
    ):
        neighbors, distances = _points.neighbors_of(Z, points.n_train)
        distances = np.where(np.isfinite(distances), distances, 0.0)  # JSON knows no infinity
        sides[name] = {
            "xy": _rounded(plane),
            "neighbors": neighbors.tolist(),
            "distances": _rounded(distances),
            "said": said.tolist(),
        }
    columns = [np.asarray(values, dtype=object)[points.rows] for values in shown.values()]
    names = () if reading is None else reading.names
    called = numbers[points.rows].tolist()
    names_of_rows = called if numbers.dtype.kind in "iu" else _texts(called)
    return {
        "why": _reasons.reasons(reading, points, np.asarray(sides["after"]["neighbors"])),
        "pairs": _reasons.compared(reading, points),
        "whyColumns": _texts(names),
        "values": None if points.values is None else [f"{value:.4g}" for value in points.values],
        "classes": _texts(points.classes),
        "label": visible(label, most=_LONGEST),
        "nTrain": points.n_train,
        "points": {"codes": points.codes.tolist(), "rows": names_of_rows, **sides},
        "columns": _texts(shown),
        "cells": [[_cell(values[i]) for values in columns] for i in range(len(points.codes))],
        "gram": _points.gram_picture(points),
    }, shares


def _texts(values: Iterable[Any]) -> list[str]:
    return [visible(short(value), most=_LONGEST) for value in values]


def _cell(value: Any) -> str | dict[str, str]:
    """A value beside a point: a text, or a drawing with its text."""
    if not isinstance(value, _objects.Drawn):
        return _texts([value])[0]
    (text,), svg = _texts([value.text()]), value.picture()
    return text if svg is None else {"svg": svg, "text": text}


def _rounded(values: np.ndarray) -> list[list[float]]:
    """Numbers with four digits: a screen shows no more."""
    return [[float(f"{value:.4g}") for value in row] for row in values.tolist()]


def _read(name: str) -> str:
    return (resources.files("kernelmetric.report") / "page" / name).read_text(encoding="utf-8")
