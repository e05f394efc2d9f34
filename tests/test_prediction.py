"""Predictions in a learned metric: judged by points that no metric has seen."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, pairwise_distances, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric import (
    DNE,
    LDA,
    LMNN,
    MLKR,
    NCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    LeaveOneOutRidge,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
    TransductiveDistance,
    load,
    save,
)
from kernelmetric.compute import _threads
from kernelmetric.inputs._keys import column_order
from kernelmetric.kernels import GlobalAlignment
from kernelmetric.prediction._classifier import _stacked
from kernelmetric.prediction._cross_fit import (
    Fold,
    left_out_fold,
    parts_of,
    settled,
    splits_of,
)
from kernelmetric.prediction._features import (
    Rows,
    _located,
    fit_feature_scores,
    score_features,
)
from kernelmetric.prediction._held_out import Votes
from kernelmetric.prediction._neighbors import (
    TEMPERATURES,
    Neighbors,
    class_shares,
    nearest,
    spread,
    weighted_moments,
)
from kernelmetric.prediction._regressor import _HeldOut
from kernelmetric.prediction._scores import log_odds, own_scores, sum_of_numbers
from kernelmetric.shipping._checks import check_fitted
from tested_learners import not_repeated_rows


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Got .* class")
@pytest.mark.filterwarnings("ignore:Got a (graph of|single label)")
@parametrize_with_checks(
    [
        MetricClassifier(Kernelized(DNE(), RBF(gamma=0.3)), cv=2),
        MetricClassifier(LDA(), cv=2),
        MetricRegressor(MLKR(max_iter=2), cv=2),
    ],
    expected_failed_checks=not_repeated_rows,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def uncertain(n, seed):
    """Two classes whose probabilities are known, and four features that say nothing."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-2, 2, size=(n, 6))
    p = expit(2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1])
    return X, (rng.uniform(size=n) < p).astype(int), p


def wavy(n, seed, loud=0.6):
    """Numbers with more noise where the second feature is positive."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    noise = np.where(X[:, 1] > 0, loud, 0.2)
    return X, np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n), noise


class Counting(TransformerMixin, BaseEstimator):
    """A metric that knows the labels of the points it saw, and counts its fits."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        self.known_ = {tuple(row): label for row, label in zip(X, y, strict=True)}
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        told = [self.known_.get(tuple(row), 0.5) for row in X]
        return np.column_stack([told, X[:, 0]])


class Signed(PCA):
    """A metric one of whose coordinates counts against the other."""

    signature_ = np.array([1.0, -1.0])


@pytest.fixture(scope="module")
def classifier():
    X, y, _ = uncertain(300, 0)
    return MetricClassifier().fit(X, y)


@pytest.fixture(scope="module")
def regressor():
    X, y, _ = wavy(200, 0)
    return MetricRegressor(MLKR()).fit(X, y)


@pytest.fixture(scope="module")
def linear():
    X, y, _ = uncertain(150, 0)
    return MetricClassifier(DNE(2)).fit(X, y)


# --- probabilities ------------------------------------------------------------------------------


@pytest.mark.slow
def test_probabilities_are_near_the_true_ones(classifier):
    X, y, p = uncertain(2000, 1)
    P = classifier.predict_proba(X)
    best = log_loss(y, p)
    assert log_loss(y, P) < best + 0.06
    assert np.mean(np.abs(P[:, 1] - p)) < 0.13
    votes = KNeighborsClassifier(5).fit(classifier.embedding_, uncertain(300, 0)[1])
    collapsed = votes.predict_proba(classifier.metric_.transform(X))
    assert log_loss(y, collapsed) > log_loss(y, P) + 0.5  # all neighbours agree


@pytest.mark.slow
def test_the_log_loss_it_expects_is_that_of_new_points(classifier):
    X, y, _ = uncertain(2000, 1)
    found = log_loss(y, classifier.predict_proba(X))
    assert abs(classifier.log_loss_ - found) < 0.08


@pytest.mark.slow
def test_probabilities_rank_better_than_the_nearest_neighbour_decides(classifier):
    X, y, _ = uncertain(2000, 1)
    rows = classifier.kneighbors(X, 1, return_distance=False)[:, 0]
    nearest_class = uncertain(300, 0)[1][rows]
    assert roc_auc_score(y, classifier.predict_proba(X)[:, 1]) > roc_auc_score(y, nearest_class)
    assert np.mean(classifier.predict(X) == y) >= np.mean(nearest_class == y) - 0.01


def test_no_class_is_impossible_however_far_a_point_is():
    X, _, _ = uncertain(150, 0)
    model = MetricClassifier(LDA()).fit(X, (X[:, 0] > 0).astype(int))
    assert model.weights_[1] > 0.5  # the linear score counts
    far = 1e6 * np.eye(6)
    P = model.predict_proba(np.vstack([far, -far]))
    assert P.min() > 1e-9
    assert np.isfinite(model.predict_log_proba(far)).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_names_of_classes_do_not_matter(linear):
    X, y, _ = uncertain(150, 0)
    named = MetricClassifier(DNE(2)).fit(X, np.array(["yes", "no"])[y])  # in reverse order
    assert named.classes_.tolist() == ["no", "yes"]
    assert set(named.predict(X)) <= {"no", "yes"}
    np.testing.assert_allclose(named.predict_proba(X)[:, ::-1], linear.predict_proba(X), atol=0.05)


def test_the_order_of_rows_matters_only_through_the_folds():
    X, y, _ = uncertain(120, 0)
    order = np.random.RandomState(0).permutation(120)
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    places = np.argsort(order)
    moved = [(places[train], places[test]) for train, test in splits]
    first = MetricClassifier(LDA(), cv=splits).fit(X, y)
    second = MetricClassifier(LDA(), cv=moved).fit(X[order], y[order])
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-4)


# --- points held out ----------------------------------------------------------------------------


def test_a_metric_that_learned_its_labels_by_heart_is_not_believed():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((200, 2)), rng.randint(2, size=200)
    model = MetricClassifier(Counting()).fit(X, y)
    assert model.log_loss_ > 0.6
    assert log_loss(y, model.predict_proba(X + 1e-3)) < 0.8
    targets = rng.standard_normal(200)
    low, high = MetricRegressor(Counting()).fit(X, targets).predict_interval(X + 1e-3, 0.8).T
    assert np.mean((low < targets) & (targets < high)) > 0.7


def expected_and_found(metric, n, draws, n_classes=2):
    """Mean of the log-loss that a model of pure noise expects, and of that on new points."""
    losses = []
    for seed in range(draws):
        rng = np.random.RandomState(seed)
        X, y = rng.uniform(-2, 2, size=(n + 400, 6)), rng.randint(n_classes, size=n + 400)
        model = MetricClassifier(metric).fit(X[:n], y[:n])
        P = model.predict_proba(X[n:])
        losses.append([model.log_loss_, log_loss(y[n:], P, labels=model.classes_)])
    return np.mean(losses, axis=0)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("n", "n_classes", "draws"),
    [
        (300, 2, 3),
        (60, 4, 6),
        pytest.param(30, 2, 15, marks=pytest.mark.slow),
        pytest.param(100, 2, 8, marks=pytest.mark.slow),
    ],
)
def test_of_pure_noise_no_less_is_expected_than_new_points_show(n, n_classes, draws):
    expected, found = expected_and_found(PCA(3), n, draws, n_classes)
    assert abs(expected - found) < (0.04 if n < 100 else 0.015)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n", "draws"), [(30, 100), (100, 40), (300, 15), (1000, 5)])
def test_a_kernel_chosen_by_its_points_expects_no_less_of_noise(n, draws):
    expected, found = expected_and_found(None, n, draws)
    assert abs(expected - found) < (0.05 if n < 100 else 0.015)


@pytest.mark.parametrize("n_folds", [1, 2, 4])
def test_what_judges_a_point_was_not_chosen_on_it(n_folds):
    rng = np.random.RandomState(0)
    truth = rng.standard_normal(40)
    votes = {(k, t): np.abs(rng.standard_normal((40, 2))) for k in (5, 10) for t in (0.1, 1.0)}
    lines = {ridge: (truth + rng.standard_normal(40))[:, None] for ridge in (0.1, 1.0)}

    def ratios(truth):
        gains = {vote: -((said[:, 0] - truth) ** 2) for vote, said in votes.items()}
        said = [Votes(votes.__getitem__, gains)]
        return _HeldOut(truth, said, lines, None, None).ratios(parts)

    rows = np.arange(40)
    folds = [Fold(rows, rows, rows, test) for test in np.split(rows, n_folds)]
    parts = parts_of(folds)
    assert sorted(np.concatenate([own for _, own in parts])) == list(rows)
    before = ratios(truth)
    others, own = parts[-1]
    assert not set(others) & set(own)
    assert len(others) + len(own) == 40
    moved = truth.copy()
    moved[own[0]] += 100.0
    after = ratios(moved)
    np.testing.assert_array_equal(after[own[1:]], before[own[1:]])
    assert after[own[0]] > before[own[0]]
    assert not np.allclose(after[others], before[others])  # for them it did choose


@pytest.mark.slow
def test_only_as_many_folds_are_fitted_as_hold_a_thousand_points_out():
    X = np.arange(4000.0)[:, None]
    y = (X[:, 0] % 2).astype(int)
    for n, fits in ((500, 5), (2000, 3), (4000, 2)):
        Counting.fits = 0
        MetricClassifier(Counting()).fit(X[:n], y[:n])
        assert Counting.fits == 1 + fits


@pytest.mark.every(3)
@pytest.mark.parametrize(("few", "times"), [(59, 1), (60, 4)])
def test_a_kernel_is_chosen_once_unless_points_are_few(monkeypatch, few, times):
    monkeypatch.setattr("kernelmetric.prediction._base.FEW", few)
    calls = []
    bind = LeaveOneOutRidge.bind
    monkeypatch.setattr(
        LeaveOneOutRidge, "bind", lambda self, X, y=None: calls.append(1) or bind(self, X, y)
    )
    X, y, _ = uncertain(60, 0)
    MetricClassifier(Kernelized(LDA()), cv=3).fit(X, y)
    assert len(calls) == times


@pytest.mark.slow
def test_what_a_metric_chose_is_settled_wherever_it_stands():
    X, y, _ = uncertain(60, 0)
    kernelized = Kernelized(LDA()).fit(X, y)
    assert settled(kernelized).recipe is kernelized.recipe_
    pipeline = make_pipeline(StandardScaler(), Kernelized(LDA())).fit(X, y)
    assert settled(pipeline)[-1].recipe is None  # its columns may be others in a fold
    search = KernelizedCV(LDA(), [RBF(gamma=0.1), RBF(gamma=1.0)]).fit(X, y)
    assert settled(search).kernel.gamma == search.best_estimator_.kernel_.gamma
    ideal = IdealizedKernel(random_state=0).fit(X[:30], y[:30])
    assert settled(ideal).C == ideal.C_


def test_every_class_stays_among_the_training_points_of_every_fold():
    y = np.repeat([0, 1, 2, 3], [40, 9, 2, 1])
    splits = splits_of(5, np.zeros((52, 1)), y, 0, classes=True)
    assert len(splits) == 5
    held_out = np.concatenate([test for _, test in splits])
    assert sorted(held_out) == list(range(51))  # the last is alone in its class
    for train, test in splits:
        assert set(y[train]) == {0, 1, 2, 3}
        assert len(train) + len(test) == 52


def test_folds_can_keep_rows_together():
    X, y, _ = uncertain(90, 0)
    groups = np.arange(90) // 3
    splits = list(GroupKFold(3).split(X, y, groups))
    model = MetricClassifier(LDA(), cv=splits).fit(X, y)
    assert np.isfinite(model.log_loss_)


@pytest.mark.filterwarnings("ignore:Got .* class")
def test_points_that_are_all_alone_in_their_class_still_vote():
    X = np.arange(6.0)[:, None]
    model = MetricClassifier(PCA(1)).fit(X, list("abcdef"))
    assert np.isnan(model.log_loss_)
    assert model.predict(X).tolist() == list("abcdef")


# --- the reason why, and novelty ----------------------------------------------------------------


def test_neighbours_are_those_of_the_metric(classifier):
    new = uncertain(20, 3)[0]
    distances, rows = classifier.kneighbors(new, 4)
    # training points are where they would be had they been left out
    D = pairwise_distances(classifier.metric_.transform(new), classifier.embedding_)
    np.testing.assert_allclose(np.take_along_axis(D, rows, axis=1), distances, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(np.sort(D, axis=1)[:, :4], distances, rtol=1e-5, atol=1e-8)
    assert classifier.kneighbors(new)[1].shape == (20, classifier.n_neighbors_)


@pytest.mark.parametrize("k", [0, 301, 2.0, "five"])
def test_a_wrong_number_of_neighbours_is_refused(classifier, k):
    with pytest.raises(ValueError, match="n_neighbors="):
        classifier.kneighbors(np.zeros((1, 6)), k)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["classifier", "linear", "regressor"])
def test_points_far_from_all_are_stranger_than_any_usual_one(name, request):
    model = request.getfixturevalue(name)
    usual = uncertain(300, 5)[0][:, : model.n_features_in_]
    scores = model.score_samples(usual)
    assert -1.5 < np.median(scores) < -0.6
    assert model.score_samples(usual + 12.0).max() < np.quantile(scores, 0.02)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "metric",
    [
        make_pipeline(StandardScaler(), Kernelized(LDA(), RBF(gamma=0.3))),
        make_pipeline(StandardScaler(), LDA()),
        KernelizedCV(LDA(), [RBF(gamma=0.1)]),
        Kernelized(LDA(), RBF(gamma=0.3), Nystroem(20, random_state=0)),
    ],
    ids=["pipeline", "linear", "search", "landmarks"],
)
def test_any_metric_will_do(metric):
    X, y, _ = uncertain(100, 0)
    model = MetricClassifier(metric, cv=2).fit(X, y)
    new = uncertain(200, 1)[0]
    assert model.predict_proba(new).shape == (200, 2)
    scores = model.score_samples(new)
    assert model.score_samples(new + 50.0).max() < np.median(scores)


def test_objects_are_as_usual_as_rows():
    X, y, _ = uncertain(60, 0)
    series = [np.repeat(row, 1 + i % 2) for i, row in enumerate(X)]
    kernel = GlobalAlignment(width=3.0, window=3, scale=False)
    model = MetricClassifier(Kernelized(LDA(), kernel), cv=2).fit(series[:50], y[:50])
    K, own = kernel(series[50:], series[:50]), kernel.diag(series)
    fifth = np.sqrt(np.sort(own[50:, None] + own[None, :50] - 2.0 * K, axis=1)[:, 4])
    expected = -fifth / model.usual_distance_
    np.testing.assert_allclose(model.score_samples(series[50:]), expected, rtol=1e-6)


@pytest.mark.slow
def test_a_gram_matrix_is_cut_in_rows_and_columns():
    X, y, _ = uncertain(80, 0)
    new = uncertain(30, 1)[0]
    kernel = RBF(gamma=0.3)
    points = MetricClassifier(Kernelized(LDA(), kernel)).fit(X, y)
    gram = MetricClassifier(Kernelized(LDA(), "precomputed")).fit(kernel(X, X), y)
    K = kernel(new, X)
    np.testing.assert_allclose(gram.predict_proba(K), points.predict_proba(new), atol=1e-6)
    assert gram.score_samples(K).shape == (30,)


@pytest.mark.slow
def test_a_gram_matrix_may_be_a_list_or_a_frame():
    X, y, _ = uncertain(60, 0)
    K = RBF(gamma=0.3)(X, X)
    expected = MetricClassifier(Kernelized(LDA(), "precomputed"), cv=3).fit(K, y).predict_proba(K)
    for same in (K.tolist(), pd.DataFrame(K)):
        model = MetricClassifier(Kernelized(LDA(), "precomputed"), cv=3).fit(same, y)
        np.testing.assert_allclose(model.predict_proba(same), expected, atol=1e-12)


def test_sparse_points_and_frames_are_taken():
    X, y, _ = uncertain(80, 0)
    X[np.abs(X) < 1] = 0
    metric = Kernelized(LDA(), RBF(gamma=0.3))
    plain = MetricClassifier(metric).fit(X, y)
    rows = MetricClassifier(metric).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(
        rows.predict_proba(sparse.csr_array(X)), plain.predict_proba(X), atol=1e-6
    )
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = MetricClassifier(metric).fit(frame, pd.Series(y))
    assert named.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(named.predict_proba(frame), plain.predict_proba(X), atol=1e-6)
    turned = named.predict_proba(frame[list("fedcba")])
    np.testing.assert_array_equal(turned, named.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[list("fedcb")])


def test_arrays_of_other_libraries_are_taken():
    strict = pytest.importorskip("array_api_strict")
    X, y, _ = uncertain(60, 0)
    points = strict.asarray(X)
    for metric in (LDA(), Kernelized(LDA(), RBF(gamma=0.3))):
        plain = MetricClassifier(metric, cv=2).fit(X, y)
        other = MetricClassifier(metric, cv=2).fit(points, strict.asarray(y))
        for method in ("predict_proba", "score_samples", "predict"):
            expected = getattr(plain, method)(X)
            np.testing.assert_allclose(getattr(other, method)(points), expected, atol=1e-6)
    numbers = MetricRegressor(SignsOnly(), cv=2).fit(points, strict.asarray(X[:, 0]))
    assert numbers.predict_interval(points).shape == (60, 2)


class SignsOnly(LDA):
    """LDA of the signs of numbers."""

    def fit(self, X, y):
        return super().fit(X, np.asarray(y) > 0)


# --- numbers and intervals ----------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_intervals_hold_as_many_new_points_as_they_promise(regressor, coverage):
    X, y, _ = wavy(3000, 1)
    low, high = regressor.predict_interval(X, coverage).T
    assert abs(np.mean((low <= y) & (y <= high)) - coverage) < 0.07


@pytest.mark.slow
def test_intervals_hold_what_they_promise_over_many_draws():
    held = []
    for seed in range(12):
        X, y, _ = wavy(60, seed)
        model = MetricRegressor(PCA(3)).fit(X, y)  # of fewer folds, more than it promises
        new, truth, _ = wavy(500, seed + 100)
        low, high = model.predict_interval(new, 0.8).T
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert abs(np.mean(held) - 0.8) < 0.05


@pytest.mark.every(2)
@pytest.mark.parametrize(("n", "folds"), [(150, 10), (151, 5)])
def test_few_numbers_are_held_out_in_more_folds(n, folds):
    sizes = []

    class Counted(PCA):
        def fit_transform(self, X, y=None):
            sizes.append(len(X))
            return super().fit_transform(X)

    X, y, _ = wavy(n, 0)
    MetricRegressor(Counted(2)).fit(X, y)
    assert sorted(set(sizes[1:])) == sorted({n - n // folds, n - math.ceil(n / folds)})
    assert len(sizes) == 1 + folds


def covered(metric, n, d, draws):
    """Part of new points within intervals of 0.8 and of 0.9, where d features tell little."""
    held = []
    for seed in range(draws):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-2, 2, size=(n + 400, d))
        y = np.sin(2 * X[:, 0]) + X[:, 1] / 2 + 0.3 * rng.standard_normal(n + 400)
        model = MetricRegressor(metric).fit(X[:n], y[:n])
        for coverage in (0.8, 0.9):
            low, high = model.predict_interval(X[n:], coverage).T
            held.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    return np.reshape(held, (draws, 2)).mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "draws"),
    [
        (100, 3, 8),
        *(pytest.param(*how, marks=pytest.mark.slow) for how in [(30, 20, 15), (300, 3, 4)]),
    ],
)
def test_what_was_chosen_on_points_does_not_shorten_intervals(n, d, draws):
    assert np.all(covered(PCA(3), n, d, draws) > np.array([0.8, 0.9]) - 0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n", "d", "draws"), [(30, 20, 100), (100, 3, 40), (300, 3, 15)])
def test_a_kernel_chosen_by_its_points_does_not_shorten_intervals(n, d, draws):
    assert np.all(covered(None, n, d, draws) > np.array([0.8, 0.9]) - 0.015)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_intervals_of_one_fit_hold_what_they_promise(draws):
    """Of more than 500 points: a learner that follows their noise would shorten them."""
    held = covered(None, 800, 3, draws)
    np.testing.assert_allclose(held, [0.8, 0.9], atol=0.05 if draws == 1 else 0.025)


def test_intervals_are_wider_where_neighbours_disagree():
    X, y, _ = wavy(400, 0, loud=2.0)
    model = MetricRegressor(PCA(3)).fit(X, y)
    new, _, noise = wavy(500, 1, loud=2.0)
    length = np.diff(model.predict_interval(new), axis=1)[:, 0]
    assert length[noise > 1].mean() > 1.3 * length[noise < 1].mean()


@pytest.mark.slow
def test_numbers_are_predicted_nearly_as_well_as_the_noise_allows(regressor):
    X, y, noise = wavy(2000, 1)
    error = np.mean((regressor.predict(X) - y) ** 2)
    assert error < 1.6 * np.mean(noise**2)
    middle = regressor.predict_interval(X).mean(axis=1)
    np.testing.assert_allclose(middle, regressor.predict(X))


@pytest.mark.every(3)
@pytest.mark.parametrize("coverage", [0, 1, -0.1, "most", None])
def test_a_coverage_that_is_no_probability_is_refused(regressor, coverage):
    with pytest.raises(ValueError, match="coverage="):
        regressor.predict_interval(np.zeros((1, 3)), coverage)


def test_few_points_cannot_promise_much():
    X, y, _ = wavy(20, 0)
    model = MetricRegressor(PCA(1)).fit(X, y)
    assert model.predict_interval(X, 0.9).shape == (20, 2)
    with pytest.raises(ValueError, match=r"at most 0\.952"):
        model.predict_interval(X, 0.96)


def test_a_constant_target_is_predicted():
    X, _, _ = wavy(30, 0)
    model = MetricRegressor(PCA(2)).fit(X, np.full(30, 4.0))
    np.testing.assert_allclose(model.predict(X), 4.0)
    np.testing.assert_allclose(model.predict_interval(X), 4.0)


# --- files, copies, faiss -----------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["classifier", "linear", "regressor"])
def test_a_saved_model_predicts_the_same(name, request, tmp_path):
    model = request.getfixturevalue(name)
    new = uncertain(40, 7)[0][:, : model.n_features_in_]
    for again in (load(save(model, tmp_path / "a.metric")), pickle.loads(pickle.dumps(model))):
        for method in ("predict", "score_samples", "predict_proba", "predict_interval"):
            if hasattr(model, method):
                expected = getattr(model, method)(new)
                np.testing.assert_allclose(getattr(again, method)(new), expected, atol=1e-7)
        np.testing.assert_array_equal(again.kneighbors(new)[1], model.kneighbors(new)[1])


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("_codes", np.full(150, 2)),
        ("embedding_", np.full((150, 2), np.inf)),
        ("n_neighbors_", 151),
        ("temperature_", 0.0),
        ("weights_", np.array([np.nan, 1.0])),
        ("metric_", "a text"),
    ],
    ids=["codes", "embedding", "neighbors", "temperature", "weights", "metric"],
)
def test_what_no_fit_leaves_is_not_saved(linear, attribute, value, tmp_path):
    broken = pickle.loads(pickle.dumps(linear))
    setattr(broken, attribute, value)
    with pytest.raises(ValueError, match=f"{attribute}"):
        save(broken, tmp_path / "a.metric")


def test_clones_know_parameters_and_no_fit(linear):
    copy = clone(linear)
    assert not hasattr(copy, "metric_")
    assert copy.get_params()["metric__n_components"] == 2


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"metric": LDA}, r"try LDA\(\)"),
        ({"metric": "auto"}, "expected a scikit-learn estimator"),
        ({"metric": KNeighborsClassifier()}, "has no transform"),
        ({"cv": 1}, "at least 2 folds"),
        ({"metric": Signed()}, "may be negative"),
    ],
    ids=["class", "text", "predictor", "cv", "indefinite"],
)
@pytest.mark.parametrize("kind", [MetricClassifier, MetricRegressor], ids=["classes", "numbers"])
def test_what_is_no_metric_is_refused_in_a_sentence(kind, parameters, sentence):
    X, y, _ = uncertain(30, 0)
    if kind is MetricRegressor and parameters.get("cv") is None:
        y = y.astype(float)
    with pytest.raises(ValueError, match=sentence):
        kind(**{"metric": PCA(2), **parameters}).fit(X, y)


def test_a_refused_fit_leaves_the_model_as_it_was():
    X, y, _ = uncertain(60, 0)
    model = MetricClassifier(LDA()).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="1 class"):
        model.fit(X[:, :2], np.zeros(60))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_several_targets_at_once_are_refused():
    X, y, _ = wavy(30, 0)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        MetricRegressor(PCA(1)).fit(X, np.column_stack([y, y]))


# --- the formulas -------------------------------------------------------------------------------


def test_shares_are_weighted_votes_and_one_more():
    found = Neighbors(np.array([[0, 1, 2]]), np.array([[0.0, 1.0, 4.0]]))
    weights = found.weights(3, width=1.0)
    np.testing.assert_allclose(weights, [[1.0, np.exp(-0.5), np.exp(-2.0)]])
    codes, priors = np.array([0, 1, 1]), np.array([0.25, 0.75])
    votes = np.array([1.0, np.exp(-0.5) + np.exp(-2.0)])
    expected = (votes + priors) / (votes.sum() + 1)
    np.testing.assert_allclose(class_shares(found, weights, codes, priors), expected[None])


def test_a_neighbour_that_was_not_found_has_no_weight():
    found = Neighbors(np.array([[0, -1]]), np.array([[1.0, np.inf]]))
    np.testing.assert_array_equal(found.weights(2, width=0.1), [[1.0, 0.0]])
    mean, spread = weighted_moments(found, found.weights(2, 0.1), np.array([3.0, 9.0]))
    assert (mean[0], spread[0]) == (3.0, 0.0)


def test_no_prediction_is_nan_far_from_all_points():
    rng = np.random.RandomState(0)
    X, new = rng.standard_normal((130, 3)), rng.standard_normal((40, 3))
    new[:2] += 1e25
    target = X[:, 0] + 0.1 * rng.standard_normal(130)
    model = MetricRegressor(PCA(2), cv=2).fit(X, target)
    assert np.isfinite(model.predict(new)).all()
    for k in (1, 5, 130):
        distances, rows = model.kneighbors(new, k)
        assert rows.min() >= 0 and np.isfinite(distances).all()
    classifier = MetricClassifier(PCA(2), cv=2).fit(X, target > 0)
    assert classifier.kneighbors(new, return_distance=False).min() >= 0
    assert np.isfinite(classifier.predict_proba(new)).all()


def test_all_points_are_neighbours_where_there_are_few():
    found = nearest(np.arange(3.0)[:, None], np.array([[1.9]]), 10)
    np.testing.assert_array_equal(found.rows, [[2, 1, 0]])


def test_weights_of_scores_are_found():
    rng = np.random.RandomState(0)
    scores = rng.standard_normal((4000, 3, 2))
    logits = scores @ [1.5, 0.0] + [0.5, 0.0, -0.5]
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    found = log_odds(scores, codes, np.array([0.5, 1.0]))
    np.testing.assert_allclose(found.weights, [1.5, 0.0], atol=0.1)
    np.testing.assert_allclose(found.biases, [0.5, 0.0, -0.5], atol=0.1)


def test_perfect_scores_do_not_drive_weights_to_infinity():
    codes = np.array([0, 1] * 10)
    scores = np.where(codes[:, None] == [0, 1], 1.0, -1.0)[:, :, None]
    assert 1.0 < log_odds(scores, codes, np.array([1.0])).weights[0] < 3.0


def test_scores_that_mislead_count_nothing():
    rng = np.random.RandomState(0)
    y = rng.standard_normal(500)
    scores = np.column_stack([-y, 2 * y + 1 + 0.1 * rng.standard_normal(500)])
    found = sum_of_numbers(scores, y, np.array([0.5, 0.5]))
    np.testing.assert_allclose(found.weights, [0.0, 0.5], atol=0.02)
    np.testing.assert_allclose(found.biases, [-0.5], atol=0.02)


def test_points_that_stay_where_they_are_stay_in_every_fold():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] > 0).astype(int)
    metric = TransductiveDistance().fit(X, y)
    fresh = settled(metric)
    assert (fresh.lam == "auto") == (metric.graph_ == "points")
    metric.graph_ = "points"
    assert settled(metric).lam == "auto"
    metric.graph_ = "neighbors"
    assert settled(metric).lam == metric.lam_


def test_an_int_that_no_float_can_hold_is_refused_in_a_sentence():
    X = np.array([[10**400], [1], [2], [3]], dtype=object)
    with pytest.raises(ValueError, match="learned coordinates that are no numbers"):
        MetricClassifier(FunctionTransformer(), cv=2).fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("factor", [1e-160, 1e200])
@pytest.mark.parametrize("predictor", [MetricClassifier, MetricRegressor])
def test_coordinates_whose_squares_are_no_numbers_are_refused(predictor, factor):
    X, y = factor * np.arange(40.0)[:, None], np.arange(40) % 2
    with pytest.raises(ValueError, match="Got learned coordinates that spread over"):
        predictor(FunctionTransformer()).fit(X, y)


def test_a_class_without_weight_leaves_all_scores_finite():
    votes, linear = np.log(np.full((3, 2), 0.5)), np.array([[-1.0, 1.0], [2.0, -2.0], [0.0, 0.0]])
    assert np.all(np.isfinite(_stacked([votes], linear, None, np.array([0.0, 1.0]))))


@pytest.mark.every(3)
@pytest.mark.parametrize("labels", [(-1, 1), (3, 7), ("no", "yes")])
def test_labels_that_a_frozen_metric_saw_are_no_codes(labels):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 4))
    y = np.asarray(labels)[(X[:, 0] + 0.3 * rng.standard_normal(300) > 0).astype(int)]
    metric = FrozenEstimator(Kernelized(LMNN()).fit(X[:150], y[:150]))
    model = MetricClassifier(metric).fit(X[150:], y[150:])
    assert np.all(np.any(model.coef_ != 0, axis=0))
    assert model.score(X[150:], y[150:]) > 0.85


def test_the_space_tells_numbers_by_weights():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((80, 2))
    y = X[:, 0] + rng.standard_normal(80)
    w = rng.randint(1, 4, 80).astype(float)
    metric = Kernelized(MLKR())
    E = metric.fit_transform(X, y)
    rows = np.repeat(np.arange(80), w.astype(int))
    found, expected = own_scores(metric, E, y, 0, w), own_scores(metric, E[rows], y[rows], 0)
    np.testing.assert_allclose(found(E), expected(E), atol=1e-9)
    assert np.abs(found(E) - own_scores(metric, E, y, 0)(E)).max() > 1e-4


def test_the_own_score_is_what_ridge_regression_predicts():
    rng = np.random.RandomState(0)
    X, X_new = rng.standard_normal((90, 3)), rng.standard_normal((20, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(90) > 0.8).astype(int)  # uneven, so means count
    metric = Kernelized(LMNN())
    E = metric.fit_transform(X, y)
    K, ridge = metric.kernel_(X), metric.space_.ridge_
    H = np.eye(90) - 1.0 / 90
    alpha = np.linalg.solve(H @ K @ H + ridge * np.eye(90), H @ (2.0 * y - 1.0))
    expected = (metric.kernel_(X_new, X) - K.mean(axis=0)) @ H @ alpha + np.mean(2.0 * y - 1.0)
    found = own_scores(metric, E, y, 2)(metric.transform(X_new))
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-6)
    np.testing.assert_allclose(found[:, 0], -expected, atol=1e-6)


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_that_hides_predictions_below_the_rounding_has_no_own_score(dtype):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((90, 3))
    y = (X[:, 0] > 0).astype(int)
    metric = Kernelized(LMNN())
    E = metric.fit_transform(X, y)
    # All of a direction that predictions need is there, but a hundred thousand times smaller.
    weak = metric.space_.predictor_[:, :1] / np.linalg.norm(metric.space_.predictor_[:, :1])
    L = np.eye(len(weak)) - (1.0 - 1e-5) * weak @ weak.T
    metric.learner_.components_ = L.astype(dtype)
    scores = own_scores(metric, E, y, 2)
    assert (scores is None) is (dtype is np.float32)


def test_a_higher_score_is_a_higher_log_probability():
    linear = np.linspace(-1.9, 1.9, 50)[:, None] * [-1.0, 1.0]
    scores = _stacked([np.zeros((50, 2))], linear, None, np.array([0.9, 0.1]))[:, :, 1]
    assert np.all(np.diff(scores[:, 1]) > 0) and np.all(np.diff(scores[:, 0]) < 0)
    shares = _stacked([np.zeros((1, 2))], np.array([[0.8, -0.8]]), None, np.array([0.9, 0.1]))
    np.testing.assert_allclose(shares[0, :, 1], 0.0, atol=1e-12)  # a class's share says nothing


def steps(n, seed=0):
    """Points whose class depends on steps of two features, and a trend in a third."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, (n, 8))
    odds = 3.0 * ((X[:, 0] > 0.3) ^ (X[:, 1] > -0.2)) - 1.5 + X[:, 2]
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-odds))).astype(int)


def test_features_count_where_they_tell_more():
    X, y = steps(1500)
    with_them, without = (
        MetricClassifier(use_features=u).fit(X[:510], y[:510]) for u in (True, False)
    )
    assert len(with_them.weights_) == 5 and len(without.weights_) == 2
    assert with_them.weights_[3] > 0.1
    losses = [log_loss(y[510:], m.predict_proba(X[510:])) for m in (with_them, without)]
    assert losses[0] < losses[1] - 0.01
    assert abs(with_them.log_loss_ - losses[0]) < 0.06  # what was said of new points


def patches(n, seed=0):
    """Points in a plane of small squares, as of a chess board, among six features."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(0, 12, (n, 2))
    y = (np.floor(X).sum(axis=1) % 2).astype(int)
    return np.column_stack([X, 0.01 * rng.standard_normal((n, 1))]) * [1.0, 100.0, 1.0], y


@pytest.mark.slow
def test_neighbours_by_the_features_vote():
    X, y = patches(4000)
    X[:, 2] = 0.0  # which would count as much as the others
    model = MetricClassifier(NCA(1, max_iter=3, tol=0.1), use_features=True).fit(X[:3000], y[:3000])
    assert model.weights_[4] > 0.3
    A = X[:, :2] / X[:3000, :2].std(axis=0)
    plain = KNeighborsClassifier(1).fit(A[:3000], y[:3000])
    assert model.score(X[3000:], y[3000:]) > plain.score(A[3000:], y[3000:]) - 0.02
    assert abs(model.log_loss_ - log_loss(y[3000:], model.predict_proba(X[3000:]))) < 0.06
    fitted = model.predict_proba(X[3000:])
    for name in ("_points", "_feature_neighbors", "_feature_width"):
        assert name in vars(model)
    X[:] = 0.0  # what is kept is a copy
    assert np.array_equal(model.predict_proba(patches(4000)[0][3000:] * [1, 1, 0]), fitted)


@pytest.mark.slow
def test_neighbours_by_the_features_tell_numbers():
    X, y = patches(3000)
    target = y + 0.05 * np.random.RandomState(1).standard_normal(len(y))
    X[:, 2] = 0.0
    metric = FunctionTransformer(lambda X: X[:, :1])  # which tells nothing
    model = MetricRegressor(metric, use_features=True).fit(X[:2000], target[:2000])
    assert model.weights_[4] > 0.2  # beside the forest
    error = np.sqrt(np.mean((model.predict(X[2000:]) - target[2000:]) ** 2))
    assert error < 0.8 * np.std(target)
    low, high = model.predict_interval(X[2000:], 0.9).T
    assert 0.87 < np.mean((low <= target[2000:]) & (target[2000:] <= high)) < 0.94


@pytest.mark.every(2)
@pytest.mark.parametrize("splits", ["auto", "given"])
def test_votes_by_the_features_know_nothing_of_the_row(splits):
    """Where labels are noise, nothing is told by neighbours, nor by copies of a row's own label."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((600, 3)), rng.randint(2, size=600)
    groups = np.arange(600) // 2
    X[1::2] = X[::2] + 1e-9 * rng.standard_normal((300, 3))  # twins, with the same label
    y[1::2] = y[::2]
    cv = 3 if splits == "auto" else list(GroupKFold(3).split(X, y, groups))
    model = MetricClassifier(NCA(1, max_iter=3, tol=0.1), use_features=True, cv=cv).fit(X, y)
    if splits == "given":  # twins are kept together, so that none tells of the other
        assert model.log_loss_ > 0.66
    else:
        assert model.log_loss_ < 0.3


def test_trees_say_of_rows_left_out_what_they_say_of_new_ones():
    X, y = steps(3000)
    Y = np.where(y[:, None] == np.arange(2), 1.0, -1.0)
    rows = np.arange(400)
    scores, said = fit_feature_scores(Rows(X[:400], y[:400], Y[:400], None, True, 0), rows)
    new = scores(X[400:])
    for column in (0, 1):  # the line, and the forest
        left_out, of_new, of_own = (
            roc_auc_score(labels, S[:, 1, column])
            for labels, S in ((y[:400], said), (y[400:], new), (y[:400], scores(X[:400])))
        )
        assert abs(left_out - of_new) < 0.05 < of_own - left_out + 0.05


@pytest.mark.slow
def test_trees_are_those_of_scikit_learn():
    X = steps(300)[0]
    target = X[:, 0] + (X[:, 1] > 0)
    found, _ = fit_feature_scores(Rows(X, target, target[:, None], None, False, 0))
    rng, total = np.random.RandomState(0), 0.0
    A = _located(X, found.location)
    np.testing.assert_allclose(A, (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-6)
    A = A[:, column_order(A)]
    for _ in found.roots:
        rows = rng.randint(300, size=300)
        tree = DecisionTreeRegressor(
            max_features=1 / 3, min_samples_leaf=3, random_state=rng.randint(2**31)
        )
        total = total + tree.fit(A[rows], target[rows]).predict(A)
    np.testing.assert_allclose(found(X)[:, 0, 1], total / len(found.roots), rtol=1e-4, atol=1e-5)


def test_rows_of_a_fold_keep_their_weights():
    """Rows of no weight lie on another line: taken for others, they would bend it."""
    X = np.random.RandomState(0).standard_normal((90, 2))
    mass = np.repeat([1.0, 0.0, 1.0], 30)
    y = np.where(mass > 0, 1.0, -1.0) * X[:, 0]
    folds = [
        Fold(X[train], train, X[test], test)
        for train, test in KFold(3).split(X)
        if mass[test].all()
    ]
    _, said = score_features(Rows(X, y, y[:, None], mass, False, 0), folds, one_by_one=False)
    expected = np.concatenate([y[fold.test] for fold in folds])
    np.testing.assert_allclose(said[:, 0, 0], expected, rtol=0.1, atol=0.1)


@pytest.mark.slow
def test_features_of_given_folds_are_not_seen():
    """Rows of one patient in one fold: a forest that drew the others would know the patient."""
    rng = np.random.RandomState(0)
    patients = np.repeat(np.arange(40), 5)
    X = rng.standard_normal((40, 6))[patients] + 1e-3 * rng.standard_normal((200, 6))
    y = rng.randint(2, size=40)[patients]
    given = MetricClassifier(cv=list(GroupKFold(4).split(X, y, patients))).fit(X, y)
    assert given.log_loss_ > 0.6  # nothing can be known of another patient


@pytest.mark.every(2)
@pytest.mark.parametrize("model", [MetricClassifier, MetricRegressor])
def test_features_of_what_is_no_table_are_refused(model):
    X, y = steps(60)
    with pytest.raises(
        ValueError, match="use_features=True with sparse points, objects or kernel values"
    ):
        model(use_features=True).fit(sparse.csr_matrix(X), y)
    with pytest.raises(ValueError, match=r"use_features=1\.5, but expected True, False or 'auto'"):
        model(use_features=1.5).fit(X, y)
    assert (
        len(model(Kernelized(LMNN() if model is MetricClassifier else MLKR())).fit(X, y).weights_)
        == 2
    )


@pytest.mark.every(4)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [MetricClassifier, MetricRegressor])
def test_gains_are_those_of_the_votes(kind, weighted):
    X, y = steps(60)
    w = 1.0 + np.arange(60) % 3 if weighted else None
    metric = LDA()  # its classes are numbers too
    model = kind(metric, cv=2).fit(X, y, sample_weight=w)
    fold = left_out_fold(model.embedding_, 0, None)
    numbers = [5, 10, 60]  # more than the others that there are
    gains = iter(model._gains(fold, numbers, y))
    for k in numbers:
        for temperature in TEMPERATURES:
            width = temperature * spread(fold.E)
            said = model._votes(fold.found, k, width, fold.train)
            votes = said[np.arange(60), y] if kind is MetricClassifier else -((said[:, 0] - y) ** 2)
            np.testing.assert_allclose(next(gains), votes, rtol=1e-9, atol=1e-12)


class Lengths(LDA):
    """A metric that takes texts, and must not be fitted before they are refused."""

    def fit(self, X, y=None, **given):
        raise AssertionError("the metric was fitted first")


@pytest.mark.parametrize("gap", [False, True])
def test_features_that_are_no_numbers_are_refused_before_the_metric_is_fitted(gap):
    X, y = steps(60)
    rows = pd.DataFrame(X)
    rows[1] = rows[1].where(X[:, 1] > 0) if gap else np.where(X[:, 1] > 0, "high", "low")
    for points in (rows, rows.to_numpy(dtype=object)):
        with pytest.raises(ValueError, match=r"no rows of finite numbers.*try use_features=False"):
            MetricClassifier(Lengths(), use_features=True).fit(points, y)
    texts = np.array(["aab", "bba", "aba", "bab"] * 15, dtype=object)
    with pytest.raises(ValueError, match=r"no rows of finite numbers.*objects and no table"):
        MetricClassifier(Kernelized(Lengths()), use_features=True).fit(texts, y)


def test_features_of_any_size_count_alike():
    X, y = steps(200)
    scales = np.array([1e-200, 1e-9, 1.0, 1e5, 1e150, 1.0, 1.0, 1.0])
    Y = np.where(y[:, None] == np.arange(2), 1.0, -1.0)
    plain, scaled = (fit_feature_scores(Rows(A, y, Y, None, True, 0))[0] for A in (X, X * scales))
    np.testing.assert_allclose(scaled(X * scales), plain(X), atol=0.2)
    assert np.mean(np.abs(scaled(X * scales) - plain(X))) < 0.01


@pytest.mark.every(2)
@pytest.mark.parametrize("frame", [False, True])
def test_features_are_saved_with_the_model(frame, tmp_path):
    X, y = steps(120)
    if frame:
        X = pd.DataFrame(X[:, :3]).set_axis(list("abc"), axis=1)
        X["d"] = np.where(X["a"] > 0, "yes", "no")
    model = MetricClassifier().fit(X, y)
    save(model, tmp_path / "model.km")
    again = load(tmp_path / "model.km")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_trees_that_lead_nowhere_are_refused():
    X, y = steps(120)
    model = MetricClassifier().fit(X, y)
    sound = model._features
    inner = np.flatnonzero(sound.nodes[:, 0] > 0)[-1]
    for column, value in ((0, inner), (1, 0), (1, len(sound.nodes)), (2, 8)):
        nodes = sound.nodes.copy()
        nodes[inner, column] = value
        with pytest.raises(ValueError, match=r"FeatureScores\.nodes"):
            check_fitted(replace(sound, nodes=nodes))
    check_fitted(sound)
    model.weights_ = model.weights_[:2]
    with pytest.raises(ValueError, match=r"MetricClassifier\.weights_"):
        check_fitted(model)


@pytest.mark.slow
def test_trees_are_the_same_on_any_number_of_threads(monkeypatch):
    rng = np.random.RandomState(0)
    Z, y = rng.standard_normal((300, 4)), rng.randint(3, size=300)

    def fitted():
        judged = np.arange(0, 300, 7)
        return fit_feature_scores(Rows(Z, y, np.eye(3)[y], None, True, 0), judged)

    alone, said = fitted()
    monkeypatch.setattr(_threads._BLAS, "take", lambda holder: 3)
    monkeypatch.setattr(_threads._BLAS, "available", lambda: 3)
    shared, said_by_three = fitted()
    for name in ("roots", "nodes", "cuts", "votes"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(shared, name))
    np.testing.assert_array_equal(said, said_by_three)
