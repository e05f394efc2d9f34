"""Weights of rows and of classes in predictions."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    LDA,
    LMNN,
    MLKR,
    Kernelized,
    MetricClassifier,
    MetricRegressor,
    load,
    save,
)


@pytest.fixture
def points():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] + X[:, 1] ** 2 / 2 + 0.5 * rng.standard_normal(120) > 1.6).astype(int)
    return X, y, rng.randint(0, 3, size=120)


def classifier(**options):
    return MetricClassifier(LDA(), **options)


def test_ones_and_equal_weights_of_classes_change_no_probability(points):
    X, y, _ = points
    plain = classifier().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(
        classifier().fit(X, y, sample_weight=np.ones(len(X))).predict_proba(X), plain
    )
    even = classifier(class_weight={0: 3.0, 1: 3.0}).fit(X, y)
    np.testing.assert_array_equal(even.predict_proba(X), plain)


@pytest.mark.slow
def test_rows_without_weight_are_absent_but_keep_their_numbers(points):
    X, y, w = points
    a = classifier().fit(X, y, sample_weight=w > 0)
    b = classifier().fit(X[w > 0], y[w > 0])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    np.testing.assert_array_equal(
        a.kneighbors(X[:5], 3)[1], np.flatnonzero(w)[b.kneighbors(X[:5], 3)[1]]
    )


def test_given_splits_are_of_all_rows(points):
    X, y, w = points
    w[:4], w[-4:] = 0, 0
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(120) >= 60, np.arange(60))]
    a = classifier(cv=splits).fit(X, y, sample_weight=w > 0)
    first = np.sum(w[:60] > 0)
    rows = np.arange(np.sum(w > 0))
    b = classifier(cv=[(rows[:first], rows[first:]), (rows[first:], rows[:first])])
    b.fit(X[w > 0], y[w > 0])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_weights_shift_probabilities_to_the_heavy_class(points):
    X, y, _ = points
    plain = classifier().fit(X, y).predict_proba(X)[:, 1].mean()
    heavy = classifier().fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    assert heavy.predict_proba(X)[:, 1].mean() > plain + 0.1
    balanced = classifier(class_weight="balanced").fit(X, y)
    assert balanced.predict_proba(X)[:, 1].mean() > plain + 0.1


def test_the_default_metric_has_the_weights_of_classes(points):
    model = MetricClassifier(class_weight="balanced")
    assert model._given_metric().learner.class_weight == "balanced"


def test_weights_reach_a_metric_inside_a_pipeline(points):
    X, y, w = points
    w = w + 0.5
    model = MetricClassifier(make_pipeline(StandardScaler(), LDA())).fit(X, y, sample_weight=w)
    expected = LDA().fit(StandardScaler().fit_transform(X), y, sample_weight=w)
    np.testing.assert_array_equal(model.metric_[-1].components_, expected.components_)


@pytest.mark.parametrize(
    ("options", "fit", "said"),
    [
        ({"metric": PCA(2)}, {"sample_weight": np.arange(120)}, r"PCA\.fit takes none"),
        ({"metric": LDA()}, {"sample_weight": -np.ones(120)}, "-1 for row 0"),
        ({"metric": LDA(), "class_weight": "even"}, {}, "expected None, 'balanced' or a dict"),
    ],
    ids=["metric", "negative", "classes"],
)
def test_what_cannot_be_weighed_is_refused_in_a_sentence(points, options, fit, said):
    X, y, _ = points
    with pytest.raises(ValueError, match=said):
        MetricClassifier(**options).fit(X, y, **fit)


def test_a_class_left_empty_is_refused(points):
    X, y, _ = points
    with pytest.raises(ValueError, match="zero for all rows of class 1"):
        classifier().fit(X, y, sample_weight=y == 0)


@pytest.mark.slow
def test_numbers_follow_the_heavy_points():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, size=(150, 1))
    up = np.arange(150) % 2 == 0
    y = np.where(up, 1.0, -1.0) + 0.1 * rng.standard_normal(150)
    metric = MLKR(max_iter=5, tol=1.0)
    model = MetricRegressor(metric).fit(X, y, sample_weight=np.where(up, 9.0, 1.0))
    np.testing.assert_allclose(model.predict(X).mean(), 0.8, atol=0.1)
    # of heavy points nearly all are within an interval, whatever the light ones say
    low, high = model.predict_interval(X, 0.85).T
    assert np.mean(((low < y) & (y < high))[up]) > 0.9
    plain = MetricRegressor(metric).fit(X, y)
    same = MetricRegressor(metric).fit(X, y, sample_weight=np.ones(150))
    np.testing.assert_array_equal(same.predict_interval(X), plain.predict_interval(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_keeps_what_weights_left(points, tmp_path):
    X, y, w = points
    for model, target in (
        (classifier(class_weight="balanced"), y),
        (MetricRegressor(MLKR(max_iter=3)), X[:, 0]),
    ):
        model.fit(X, target, sample_weight=w)
        save(model, tmp_path / "model.km")
        again = load(tmp_path / "model.km")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.kneighbors(X)[1], model.kneighbors(X)[1])
        if hasattr(model, "predict_interval"):
            np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))


def test_weights_are_routed_to_a_classifier(points):
    X, y, w = points
    w = w + 0.5
    expected = classifier().fit(X, y, sample_weight=w).predict_proba(X)
    with config_context(enable_metadata_routing=True):
        asking = classifier().set_fit_request(sample_weight=True)
        model = make_pipeline(asking).fit(X, y, sample_weight=w)
        np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_kernelized_metric_gets_its_weights(points):
    X, y, w = points
    metric = Kernelized(LMNN(max_iter=3, tol=1.0), "rbf")
    model = MetricClassifier(metric).fit(X, y, sample_weight=w)
    expected = metric.fit_transform(X, y, sample_weight=w)[w > 0]
    np.testing.assert_allclose(model.embedding_, expected, atol=1e-10)
