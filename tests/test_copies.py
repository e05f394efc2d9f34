"""Copies of rows count as weights, because a copy knows the label of a row that is left out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    KPCA,
    LMNN,
    NCA,
    RBF,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    MetricRegressor,
    load,
    save,
)
from kernelmetric.kernelized import _copies
from kernelmetric.kernelized._copies import CopiesWarning, copied_rows
from kernelmetric.prediction import _features
from kernelmetric.selection import RidgeKPCA

COUNT = r"Got 140 copies of other rows among 210"


def drawn(n, seed=0):
    """Points of two classes that overlap, and numbers that go with them."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, 3))
    odds = 2.0 * X[:, 0] * X[:, 1] + X[:, 2]
    y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    return X, y, odds + rng.standard_normal(n)


X, Y, NUMBERS = drawn(70)
THREE = np.tile(np.arange(70), 3)
X_NEW, Y_NEW, NUMBERS_NEW = drawn(1000, seed=1)


@pytest.fixture(autouse=True)
def few_trees(request, monkeypatch):
    """What a forest says is of no interest here."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(_features, "_N_TREES", 4)


@pytest.fixture
def no_warning():
    """Copies that nobody made are no copies."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CopiesWarning)
        yield


# --- the theorem --------------------------------------------------------------------------------


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "metric",
    [
        Kernelized(NCA()),
        Kernelized(LMNN(), RBF(gamma=0.3)),
        Kernelized(NCA(class_weight="balanced")),
        Kernelized(NCA(), "auto", KPCA(10)),
    ],
)
def test_a_metric_of_copies_is_that_of_weights(metric):
    with pytest.warns(CopiesWarning, match=COUNT):
        E = metric.fit_transform(X[THREE], Y[THREE])
    found, chosen = metric.transform(X_NEW), getattr(metric, "n_neighbors_", None)
    assert metric.recipe_.reasons["rows"].endswith("; 140 copies of them count by weights")
    assert len(E) == len(THREE)
    np.testing.assert_array_equal(E[:70], E[-70:])
    assert metric.embedding_ is None or np.array_equal(metric.embedding_, E)
    np.testing.assert_allclose(metric.places(X[THREE]), E, rtol=0, atol=1e-9)
    once = metric.fit_transform(X, Y, sample_weight=np.full(70, 3.0))
    np.testing.assert_allclose(E[:70], once, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found, metric.transform(X_NEW), rtol=0, atol=1e-9)
    if chosen is not None:  # of neighbours that come with their copies
        assert chosen == 3 * metric.n_neighbors_


@pytest.mark.slow
def test_a_classifier_of_copies_is_that_of_weights_and_as_sure_as_it_may_be():
    with pytest.warns(CopiesWarning, match=COUNT) as said:
        model = MetricClassifier(cv=3).fit(X[THREE], Y[THREE])
    assert len([one for one in said if one.category is CopiesWarning]) == 1
    once = MetricClassifier(cv=3).fit(X, Y, sample_weight=np.full(70, 3.0))
    P = model.predict_proba(X_NEW)
    np.testing.assert_allclose(P, once.predict_proba(X_NEW), rtol=0, atol=1e-9)
    assert model.log_loss_ == pytest.approx(once.log_loss_, abs=1e-9)
    assert model.log_loss_ == pytest.approx(log_loss(Y_NEW, P), abs=0.15)


@pytest.mark.slow
def test_one_fit_of_many_copies_is_as_sure_as_it_may_be():
    points, y, _ = drawn(300)
    with pytest.warns(CopiesWarning):
        model = MetricClassifier().fit(np.repeat(points, 4, axis=0), np.repeat(y, 4))
    loss = log_loss(Y_NEW, model.predict_proba(X_NEW))
    assert model.log_loss_ == pytest.approx(loss, abs=0.08)


@pytest.mark.slow
def test_intervals_of_copies_hold_new_numbers():
    with pytest.warns(CopiesWarning, match=COUNT):
        model = MetricRegressor(cv=3).fit(X[THREE], NUMBERS[THREE])
    once = MetricRegressor(cv=3).fit(X, NUMBERS, sample_weight=np.full(70, 3.0))
    low, high = model.predict_interval(X_NEW, 0.8).T
    np.testing.assert_allclose(model.predict(X_NEW), once.predict(X_NEW), rtol=0, atol=1e-9)
    assert 0.7 < np.mean((low < NUMBERS_NEW) & (NUMBERS_NEW < high)) < 0.9


@pytest.mark.slow
def test_weights_of_copies_add_up_and_rows_without_weight_are_no_copies():
    w = np.random.RandomState(3).randint(0, 3, size=len(THREE)).astype(float)
    with pytest.warns(CopiesWarning):
        model = MetricClassifier(cv=2).fit(X[THREE], Y[THREE], sample_weight=w)
    total = np.bincount(THREE, weights=w)
    assert len(model.embedding_) == np.sum(total > 0)
    shares = total[THREE[model._kept]] / np.mean(total[total > 0])
    np.testing.assert_allclose(model._mass, shares, rtol=1e-12)
    with pytest.warns(CopiesWarning):
        metric = Kernelized(NCA())
        E = metric.fit_transform(X[THREE], Y[THREE], sample_weight=w)
    assert len(metric.embedding_) == np.sum(w > 0)
    assert np.all(np.isfinite(E))


def test_neighbours_are_rows_of_the_table_the_first_of_copies(tmp_path):
    rows = np.random.RandomState(0).permutation(THREE)
    with pytest.warns(CopiesWarning):
        model = MetricClassifier(cv=2).fit(X[rows], Y[rows])
    distances, found = model.kneighbors(X_NEW[:20], 5)
    firsts = np.unique(rows, return_index=True)[1]
    assert np.isin(found, firsts).all()
    assert np.all(np.diff(distances, axis=1) > 0)
    again = load(save(model, tmp_path / "model.km"))
    np.testing.assert_array_equal(again.kneighbors(X_NEW[:20], 5)[1], found)


def test_copies_with_other_labels_stay_one_row_for_each():
    y = np.append(Y[THREE], 1 - Y[:10])
    points = np.vstack([X[THREE], X[:10]])
    found = copied_rows(points, y)
    assert len(found.rows) == 80
    assert np.array_equal(y[found.rows][found.groups], y)
    assert np.array_equal(points[found.rows][found.groups], points)


def test_zeros_of_both_signs_are_equal():
    points = np.column_stack([X, np.zeros(70)])
    negative = np.column_stack([X, -np.zeros(70)])
    found = copied_rows(np.vstack([points, negative]), np.append(Y, Y))
    assert np.array_equal(found.rows, np.arange(70))


def test_a_search_tells_of_copies_once():
    search = KernelizedCV(NCA(), ["rbf", "poly"], 2, space=RidgeKPCA())
    with pytest.warns(CopiesWarning, match=COUNT) as said:
        E = search.fit_transform(X[THREE], Y[THREE])
    assert len([one for one in said if one.category is CopiesWarning]) == 1
    assert len(E) == len(THREE)


# --- inputs -------------------------------------------------------------------------------------


def as_frame(points):
    """A table with names, which are half of the rows'."""
    frame = pd.DataFrame(points, columns=["a", "b", "c"])
    frame["name"] = np.where(points[:, 0] > 0, "yes", "no")
    frame.loc[points[:, 1] > 1.5, "c"] = np.nan
    return frame


@pytest.mark.every(3)
@pytest.mark.filterwarnings("ignore:Got Dask collections without")
@pytest.mark.parametrize(
    "form",
    [
        np.float32,
        sparse.csr_array,
        sparse.csc_matrix,
        as_frame,
        np.ndarray.tolist,
        np.asfortranarray,
        lambda points: pytest.importorskip("dask.array").from_array(points, chunks=(50, 3)),
    ],
)
def test_copies_are_found_in_every_form(form):
    A = form(X[THREE])
    assert len(copied_rows(_copies.numbers_of(A), Y[THREE]).rows) == 70
    with pytest.warns(CopiesWarning, match=COUNT):
        metric = Kernelized(NCA()).fit(A, Y[THREE].astype(str))
    assert metric.space_.anchors_.shape[0] == 70
    assert metric.places(A).shape[0] == 210


def test_a_classifier_of_a_frame_has_no_copies():
    with pytest.warns(CopiesWarning, match=COUNT):
        model = MetricClassifier(cv=2).fit(as_frame(X[THREE]), Y[THREE])
    assert len(model.embedding_) == 70


def test_a_pipeline_gets_weights_too():
    model = MetricClassifier(make_pipeline(StandardScaler(), Kernelized(NCA())), cv=2)
    with pytest.warns(CopiesWarning, match=COUNT):
        model.fit(X[THREE], Y[THREE])
    assert len(model.embedding_) == 70


def test_texts_are_not_looked_at():
    assert _copies.numbers_of(["one", "two"]) is None
    assert _copies.numbers_of([[1.0], [2.0, 3.0]]) is None


@pytest.mark.slow
def test_who_takes_no_weights_says_that_copies_mislead():
    foreign = NeighborhoodComponentsAnalysis(2, max_iter=3, random_state=0)
    said = "which .* cannot count by weights, so left-out rows look surer"
    with pytest.warns(CopiesWarning, match=said):
        model = MetricClassifier(foreign, cv=2).fit(X[THREE], Y[THREE])
    assert len(model.embedding_) == len(THREE)
    with pytest.warns(CopiesWarning, match=said):
        Kernelized(foreign).fit(X[THREE], Y[THREE])
    with config_context(enable_metadata_routing=True), pytest.warns(CopiesWarning, match=said):
        Kernelized(NCA()).fit(X[THREE], Y[THREE])


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("metric", [Kernelized(LMNN(), RBF(gamma=0.3), KPCA(10)), LMNN()])
def test_where_no_row_is_left_out_copies_are_rows(metric, no_warning):
    metric.fit(X[THREE], Y[THREE])


def test_copies_of_many_rows_are_found_without_looking_at_all_pairs():
    points, y, _ = drawn(8000)
    rows = np.random.RandomState(0).randint(8000, size=24_000)
    found = copied_rows(points[rows], y[rows])
    assert len(found.rows) == len(np.unique(rows))
    assert np.array_equal(rows[found.rows][found.groups], rows)
    assert copied_rows(points, y) is None


# --- rows that are equal by chance --------------------------------------------------------------


def by_chance():
    """Honest tables with equal rows: name, X, y."""
    rng = np.random.RandomState(0)
    n = 600
    coins, noise = rng.randint(2, size=(n, 3)), rng.randint(2, size=n)
    rain = np.where(rng.uniform(size=n) < 0.6, 0.0, rng.exponential(size=n))
    doses = 10.0 ** rng.randint(8, size=(n, 2))
    stations = rng.standard_normal((40, 3))[rng.randint(40, size=n)]
    gaps = np.where(coins == 0, np.nan, coins)
    return [
        ("coins", coins, noise),
        ("coins that decide", coins, coins.sum(axis=1) % 2),
        ("ages that decide", (ages := rng.randint(18, 90, size=n)), (ages > 50).astype(int)),
        ("rain", rain, noise),
        ("rain and degrees", np.column_stack([rain, rng.randint(-9, 30, size=n)]), noise),
        ("rain and coins", np.column_stack([rain, coins]), noise),
        ("doses", doses, (doses[:, 0] > doses[:, 1]).astype(int)),
        ("rounded", np.round(rng.standard_normal((n, 2)), 1), noise),
        ("stations, observed anew", stations, noise),
        ("stations, measured anew", stations, rng.standard_normal(n)),
        ("gaps", gaps, noise),
        ("one row", np.ones((n, 2)), np.zeros(n)),
        ("a few doublets", np.vstack([X, X[:4]]), np.append(Y, Y[:4])),
    ]


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in by_chance()])
def test_rows_that_are_equal_by_chance_are_no_copies(X, y):
    assert copied_rows(np.asarray(X, float).reshape(len(y), -1), y) is None


@pytest.mark.slow
def test_a_table_of_categories_is_untouched(no_warning):
    rng = np.random.RandomState(0)
    points = rng.randint(2, size=(600, 3)).astype(float)
    y = (rng.uniform(size=600) < 0.2 + 0.6 * (points.sum(axis=1) > 1)).astype(int)
    model = MetricClassifier(use_features=False).fit(points, y)
    assert len(model.embedding_) == 600
    assert model.log_loss_ == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        (lambda rng, n: rng.standard_normal((n, 1)), "one number"),
        (lambda rng, n: np.column_stack([rng.standard_normal(n), rng.randint(2, size=(n, 3))]), ""),
        (lambda rng, n: 1e9 + rng.standard_normal((n, 2)), "far from zero"),
        (lambda rng, n: rng.randint(60, size=(n, 8)).astype(float), "many levels"),
    ],
)
def test_one_column_of_numbers_or_many_levels_tell_copies(columns, name):
    rng = np.random.RandomState(0)
    points, y = columns(rng, 100), rng.randint(2, size=100)
    assert copied_rows(points, y) is None
    rows = rng.randint(100, size=250)
    assert len(copied_rows(points[rows], y[rows]).rows) == len(np.unique(rows))


def test_a_vote_among_all_rows_is_as_good_as_one_without_copies():
    with pytest.warns(CopiesWarning):
        metric = Kernelized(NCA()).fit(X[THREE], Y[THREE])
    vote = KNeighborsClassifier(metric.n_neighbors_).fit(metric.embedding_, Y[THREE])
    assert vote.score(metric.transform(X_NEW), Y_NEW) > 0.6
