"""The report page on probabilities: curves, whether they come true, and what answers cost."""

import re

import numpy as np
import pytest
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from kernelmetric import LDA, MetricClassifier
from kernelmetric.report import report_page
from kernelmetric.report._page_curves import costs_section, curves_section, told_of

NAMES = np.array(["a", "b", "<c>"])


def drawn(n_classes=3, n=400, seed=0):
    """Classes, probabilities that mean what they say, and what the rows count."""
    rng = np.random.RandomState(seed)
    P = rng.dirichlet(np.linspace(1, 0.3, n_classes), n)
    codes = (rng.uniform(size=(n, 1)) > P.cumsum(axis=1)).sum(axis=1)
    return np.sort(NAMES[:n_classes])[codes], P, rng.uniform(0.5, 2, n)


def curves_of(section):
    """Points of the curves on the unit square, and of the dots."""
    found = [
        np.array([pair.split(",") for pair in points.split()], dtype=float)
        for points in re.findall(r'<polyline points="([^"]*)"', section)
    ]
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', section)
    return [(part - [100, 270]) / [346, -242] for part in [*found, np.array(dots, dtype=float)]]


def percents(section):
    return [float(text) / 100 for text in re.findall(r">([\d.]+)&nbsp;%<", section)]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curves_have_the_areas_that_are_written_beside_them(weighted):
    y, P, w = drawn()
    w = w if weighted else None
    section = curves_section(told_of(P, y, y, w, None), "kind")
    *lines, dots = curves_of(section)
    assert len(lines) == 6
    true = y[:, None] == np.unique(y)
    expected = []
    for c in range(3):
        given = {"y_true": true[:, c], "y_score": P[:, c], "sample_weight": w}
        area, precision = roc_auc_score(**given), average_precision_score(**given)
        expected += [np.average(true[:, c], weights=w), area, precision]
        assert auc(*lines[c].T) == pytest.approx(area, abs=0.01)
        assert auc(*lines[3 + c].T) == pytest.approx(precision, abs=0.03)
    np.testing.assert_allclose(percents(section), expected, atol=6e-4)
    assert len(dots) == 10
    np.testing.assert_allclose(dots[:, 1], dots[:, 0], atol=0.12)  # they mean what they say
    assert "&lt;c&gt;" in section
    assert "<c>" not in section


def test_probabilities_that_are_too_sure_lie_off_the_line():
    y, P, _ = drawn(2, 2000)
    sure = np.where(P > 0.5, 0.98, 0.02)
    said, came = curves_of(curves_section(told_of(sure, y, y, None, None), "kind"))[-1].T
    assert np.abs(said - came).max() > 0.15


def test_of_two_classes_the_rarer_has_curves():
    y, P, _ = drawn(2)
    section = curves_section(told_of(P, y, y, None, None), "kind")
    assert len(curves_of(section)) == 3
    rare = np.unique(y)[np.argmin(np.unique(y, return_counts=True)[1])]
    assert f"</span> {rare.replace('<', '&lt;').replace('>', '&gt;')}</td>" in section


def test_classes_that_cannot_be_judged_have_no_curve():
    y, P, _ = drawn()
    some = y != "a"
    section = curves_section(told_of(P[some], y, y[some], None, None), "kind")
    assert len(curves_of(section)) == 5  # two classes, and the dots
    alone = y == "a"
    assert curves_section(told_of(P[alone], y, y[alone], None, None), "kind") == ""
    new = np.where(some, y, "new")  # a class that the model does not know
    assert len(curves_of(curves_section(told_of(P, y, new, None, None), "kind"))) == 5


def test_costs_are_those_of_the_rows_held_out():
    y, P, w = drawn()
    costs = np.array([[0, 9, 2], [1, 0, 1], [3, 1, 0.0]])
    section = costs_section(told_of(P, y, y, w, costs), "kind")
    codes = np.unique(y, return_inverse=True)[1]
    said = [(P @ costs).argmin(axis=1), P.argmax(axis=1)]
    means = [np.average(costs[codes, answers], weights=w) for answers in said]
    means.append(min(np.average(costs[codes, c], weights=w) for c in range(3)))
    found = [float(text) for text in re.findall(r'class="n[^"]*"[^>]*>([\d.e-]+)</td>', section)]
    np.testing.assert_allclose(found[:3], means, rtol=1e-3)
    paid = [
        np.sum(w * (codes == i) * (said[0] == j)) * costs[i, j] / w.sum()
        for i in range(3)
        for j in range(3)
    ]
    np.testing.assert_allclose(found[3:], paid, rtol=5e-3, atol=1e-12)
    assert sum(found[3:]) == pytest.approx(found[0], rel=5e-3)


@pytest.mark.usefixtures("few_reasons")
def test_the_page_has_curves_where_there_are_probabilities():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((80, 3)), np.arange(80) % 2
    X[:, 0] += y
    model = MetricClassifier(LDA(), cv=2, decision={1: 3}).fit(X[:50], y[:50])
    given = {"X": X[:50], "y": y[:50], "X_test": X[50:], "y_test": y[50:]}
    plain = report_page(model.metric_, **given)
    assert 'id="curves"' not in plain
    P = model.predict_proba(X[50:])
    page = report_page(model.metric_, **given, probabilities=P, costs=model._costs())
    assert 'id="curves"' in page
    assert 'id="costs"' in page
    assert page.index('id="costs"') < page.index('id="map"') < page.index('id="curves"')
