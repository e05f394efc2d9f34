"""Verification, retrieval and clustering scores, and cross-validation over pairs."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmetric import LMNN, NCA, RBF, Kernelized
from kernelmetric.compute import memory_budget
from kernelmetric.evaluation import (
    PairVerifier,
    cross_validate_pairs,
    map_at_r,
    pair_counting_accuracy,
    recall_at_k,
)
from kernelmetric.evaluation._verification import best_threshold
from kernelmetric.graphs import Pairs, as_pairs
from kernelmetric.metric import Metric

pytestmark = pytest.mark.usefixtures("deadline")
CRITERIA = ["accuracy", "f_beta", "max_tpr", "max_tnr"]


class Whitening(Metric, BaseEstimator):
    """The simplest learner from pairs: differences of similar points become white noise."""

    def __init__(self, ridge=0.1):
        self.ridge = ridge

    def fit(self, X, y=None, *, pairs=None, similar=None, dissimilar=None):
        self.pairs_ = as_pairs(pairs, similar, dissimilar, y, len(X))
        self.X_ = np.asarray(X)
        difference = self.X_[self.pairs_.similar[:, 0]] - self.X_[self.pairs_.similar[:, 1]]
        within = difference.T @ difference / max(len(difference), 1)
        within += self.ridge * np.eye(len(within))
        self.components_ = np.linalg.inv(np.linalg.cholesky(within))
        return self

    def transform(self, X):
        return np.asarray(X) @ self.components_.T


@pytest.fixture
def stretched():
    """120 points of three classes, one useful feature among four of larger scale."""
    rng = np.random.RandomState(0)
    y = rng.permutation(np.repeat([0, 1, 2], 40))
    X = rng.standard_normal((120, 5)) * [1, 6, 6, 6, 6]
    X[:, 0] += 3 * y
    return X, y


@pytest.fixture
def identity():
    return FunctionTransformer()


# --- verification -------------------------------------------------------------------------------


def value_of(criterion, same, said, beta, min_rate):
    """The criterion by its definition."""
    tpr, tnr = said[same].mean(), 1 - said[~same].mean()
    if criterion == "accuracy":
        return np.mean(same == said)
    if criterion == "f_beta":
        precision, recall = same[said].mean() if said.any() else 0.0, tpr
        weighed = beta**2 * precision + recall
        return (1 + beta**2) * precision * recall / weighed if weighed else 0.0
    if criterion == "max_tpr":
        return tpr if tnr >= min_rate else -1
    return tnr if tpr >= min_rate else -1


@pytest.mark.every(4)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_no_threshold_is_better(criterion, beta):
    rng = np.random.RandomState(0)
    for n in (2, 3, 8, 60):
        for _ in range(10):
            same = rng.permutation(np.arange(n) % 2 == 0)
            distances = np.round(rng.rand(n) + ~same * rng.rand(), 1)  # with ties
            threshold, value = best_threshold(distances, same, criterion, beta=beta, min_rate=0.7)
            cuts = [-1.0, *distances]
            best = max(value_of(criterion, same, distances <= cut, beta, 0.7) for cut in cuts)
            assert value == pytest.approx(best)
            reached = value_of(criterion, same, distances <= threshold, beta, 0.7)
            assert reached == pytest.approx(best)


def test_a_threshold_lies_half_way_between_what_it_parts():
    distances, same = np.array([0.1, 0.2, 0.6, 0.7]), np.array([True, True, False, False])
    assert best_threshold(distances, same)[0] == pytest.approx(0.4)


def test_neighbouring_floats_are_told_apart():
    distances = np.array([1.0, np.nextafter(1.0, 2.0)])
    threshold, value = best_threshold(distances, np.array([True, False]))
    assert value == 1
    assert (distances <= threshold).tolist() == [True, False]


def test_accepting_nobody_is_possible_even_at_no_distance():
    threshold, value = best_threshold(np.zeros(3), np.array([True, False, False]))
    assert value == pytest.approx(2 / 3)
    assert threshold < 0


@pytest.mark.parametrize(("criterion", "rate"), [("max_tpr", "tnr_"), ("max_tnr", "tpr_")])
def test_the_rate_asked_for_is_kept(stretched, criterion, rate):
    X, y = stretched
    verifier = PairVerifier(NCA().fit(X, y), criterion, min_rate=0.9)
    verifier.calibrate(Pairs.from_labels(y), X)
    assert getattr(verifier, rate) >= 0.9
    other = {"tpr_": "tnr_", "tnr_": "tpr_"}[rate]
    assert verifier.criterion_value_ == pytest.approx(getattr(verifier, other))


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "metric", [NCA(), LMNN(), Kernelized(NCA(), RBF(sigma=2.0)), make_pipeline(StandardScaler())]
)
def test_any_metric_verifies(stretched, metric):
    X, y = stretched
    metric.fit(X, y)
    pairs = Pairs.from_labels(y, per_point=3, random_state=0)
    verifier = PairVerifier(metric).calibrate(pairs, X)
    Z = metric.transform(X)
    distances = np.linalg.norm(Z[pairs.rows[:, 0]] - Z[pairs.rows[:, 1]], axis=1)
    np.testing.assert_allclose(
        verifier.decision_pairs(pairs, X), verifier.threshold_ - distances, atol=1e-10
    )
    said = verifier.predict_pairs(pairs, X)
    np.testing.assert_array_equal(said, verifier.decision_pairs(pairs.rows, X) >= 0)
    assert accuracy_score(pairs.is_similar, said) == pytest.approx(verifier.criterion_value_)
    assert verifier.score_pairs(pairs, X) == roc_auc_score(pairs.is_similar, -distances)


def test_points_and_row_numbers_say_the_same(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=2, random_state=0)
    metric = NCA().fit(X, y)
    by_row = PairVerifier(metric).calibrate(pairs, X)
    answers = np.where(pairs.is_similar, 1, -1)
    by_point = PairVerifier(metric).calibrate(X[pairs.rows], y=answers)
    assert by_point.threshold_ == pytest.approx(by_row.threshold_)
    np.testing.assert_array_equal(
        by_point.predict_pairs(X[pairs.rows]), by_row.predict_pairs(pairs, X)
    )
    assert by_point.score_pairs(X[pairs.rows], y=answers) == pytest.approx(
        by_row.score_pairs(pairs.rows, X, y=pairs.is_similar)
    )


@pytest.mark.parametrize("calibration", ["logistic", "isotonic"])
def test_probabilities_are_frequencies(stretched, identity, calibration):
    X, y = stretched
    half = np.arange(120) < 60
    X = X[:, :1]
    learned = Pairs.from_labels(y).subset(half)
    verifier = PairVerifier(identity, calibration=calibration).calibrate(learned, X[half])
    new = Pairs.from_labels(y).subset(~half)
    probability = verifier.predict_proba_pairs(new, X[~half])
    assert probability.shape == (len(new), 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.all(np.diff(probability[np.argsort(verifier.decision_pairs(new, X[~half])), 1]) >= 0)
    for low, high in [(0.0, 0.3), (0.3, 0.7), (0.7, 1.01)]:
        within = (probability[:, 1] >= low) & (probability[:, 1] < high)
        assert within.sum() > 50
        assert new.is_similar[within].mean() == pytest.approx(
            probability[within, 1].mean(), abs=0.12
        )


def test_probabilities_of_pairs_parted_perfectly_are_not_certain(identity):
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    pairs = Pairs.from_labels([0, 0, 1, 1])
    verifier = PairVerifier(identity).calibrate(pairs, X)
    same = verifier.predict_proba_pairs(pairs, X)[:, 1]
    # Platt's targets for two and four pairs: 3/4 and 1/6
    np.testing.assert_allclose(same, np.where(pairs.is_similar, 3 / 4, 1 / 6), atol=0.01)


def test_a_verifier_pickles(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y)
    verifier = PairVerifier(NCA().fit(X, y), "f_beta", beta=2).calibrate(pairs, X)
    again = pickle.loads(pickle.dumps(verifier))
    np.testing.assert_array_equal(again.predict_pairs(pairs, X), verifier.predict_pairs(pairs, X))
    assert again.get_params()["beta"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "best"}, "criterion='best'"),
        ({"beta": 0}, "beta=0"),
        ({"min_rate": 1.5}, "min_rate=1.5"),
        ({"calibration": "exact"}, "calibration='exact'"),
    ],
)
def test_bad_parameters_are_refused(stretched, identity, options, message):
    X, y = stretched
    with pytest.raises(ValueError, match=message):
        PairVerifier(identity, **options).calibrate(Pairs.from_labels(y), X)


def test_what_cannot_be_verified_is_refused(stretched, identity):
    X, y = stretched
    pairs = Pairs.from_labels(y)
    verifier = PairVerifier(identity)
    with pytest.raises(NotFittedError):
        verifier.predict_pairs(pairs, X)
    with pytest.raises(ValueError, match="n_samples=120 points, but X has 119 rows"):
        verifier.calibrate(pairs, X[1:])
    with pytest.raises(ValueError, match="X has 0 rows"):
        verifier.calibrate(pairs)
    with pytest.raises(ValueError, match="0 dissimilar pairs"):
        verifier.calibrate(Pairs(pairs.similar, None, 120), X)
    with pytest.raises(ValueError, match="y beside Pairs"):
        verifier.calibrate(pairs, X, pairs.is_similar)
    with pytest.raises(ValueError, match="Got y=None"):
        verifier.calibrate(pairs.rows, X)
    with pytest.raises(ValueError, match="from 0 to 119"):
        verifier.calibrate([[0, 120], [1, 2]], X, [0, 1])
    with pytest.raises(ValueError, match="1 answers for 2 pairs"):
        verifier.calibrate([[0, 1], [1, 2]], X, [1])
    with pytest.raises(ValueError, match="no pair_distance"):
        verifier.calibrate(X[pairs.rows], y=pairs.is_similar)


# --- cross-validation ---------------------------------------------------------------------------


def test_folds_of_points_never_show_a_test_point(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=8, random_state=0)
    result = cross_validate_pairs(
        Whitening(), X, pairs, cv=3, random_state=0, return_estimator=True, return_indices=True
    )
    for metric, train, test, score in zip(
        result["estimator"],
        result["indices"]["train"],
        result["indices"]["test"],
        result["test_score"],
        strict=True,
    ):
        assert not set(train) & set(test)
        np.testing.assert_array_equal(metric.X_, X[train])
        seen = {frozenset(pair) for pair in train[metric.pairs_.similar].tolist()}
        inside = {frozenset(pair) for pair in combinations(train.tolist(), 2)}
        assert seen == {frozenset(pair) for pair in pairs.similar.tolist()} & inside
        held = pairs.subset(test)
        distances = metric.pair_distance(held.rows, X[test])
        assert score == pytest.approx(roc_auc_score(held.is_similar, -distances))


def test_folds_of_pairs_hold_every_pair_out_once(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=3, random_state=0)
    result = cross_validate_pairs(
        Whitening(), X, pairs, by="pair", cv=4, return_estimator=True, return_indices=True
    )
    held = np.concatenate(result["indices"]["test"])
    assert sorted(held) == list(range(len(pairs)))
    for metric, train, test, score in zip(
        result["estimator"], *result["indices"].values(), result["test_score"], strict=True
    ):
        assert metric.pairs_.n_samples == 120
        np.testing.assert_array_equal(metric.pairs_.rows, pairs.take(train).rows)
        part = pairs.take(test)
        assert 0.8 < part.is_similar.mean() / pairs.is_similar.mean() < 1.25  # stratified
        distances = metric.pair_distance(part.rows, X)
        assert score == pytest.approx(roc_auc_score(part.is_similar, -distances))


@pytest.mark.parametrize("by", ["point", "pair"])
def test_learning_from_pairs_beats_the_distances_as_they_are(stretched, identity, by):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=10, random_state=0)
    learned = cross_validate_pairs(Whitening(), X, pairs, by=by, random_state=0)
    given = cross_validate_pairs(identity, X, pairs, by=by, random_state=0)
    assert learned["test_score"].mean() > given["test_score"].mean() + 0.1


def test_several_scores_by_name_and_by_function(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=10, random_state=0)
    names = ["roc_auc", "average_precision", "accuracy", "f1"]
    result = cross_validate_pairs(
        Whitening(), X, pairs, cv=3, scoring=names, random_state=0, return_train_score=True
    )
    assert {f"{part}_{name}" for part in ("test", "train") for name in names} < set(result)
    assert np.all(result["train_accuracy"] >= 0.5)

    def precision(metric, X, pairs):
        return average_precision_score(pairs.is_similar, metric.pair_score(pairs.rows, X))

    own = cross_validate_pairs(
        Whitening(), X, pairs, cv=3, scoring={"mine": precision}, random_state=0
    )
    np.testing.assert_allclose(own["test_mine"], result["test_average_precision"])


def test_the_line_is_drawn_on_training_pairs(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=10, random_state=0)
    folds = list(KFold(3).split(X))
    result = cross_validate_pairs(Whitening(), X, pairs, cv=folds, scoring="accuracy")
    for (train, test), score in zip(folds, result["test_score"], strict=True):
        metric = Whitening().fit(X[train], pairs=pairs.subset(train))
        verifier = PairVerifier(metric).calibrate(pairs.subset(train), X[train])
        new = pairs.subset(test)
        assert score == np.mean(verifier.predict_pairs(new, X[test]) == new.is_similar)


def test_pipelines_and_kernels_take_pairs_too(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=5, random_state=0)
    for model in (
        make_pipeline(StandardScaler(), Whitening()),
        make_pipeline(StandardScaler(), Kernelized(Whitening(), "linear")),
        Kernelized(Whitening(), RBF(sigma=2.0)),
    ):
        result = cross_validate_pairs(
            model, X, pairs, cv=ShuffleSplit(2, random_state=0), return_estimator=True
        )
        for fitted in result["estimator"]:
            learner = fitted[-1] if hasattr(fitted, "steps") else fitted
            assert isinstance(getattr(learner, "learner_", learner).pairs_, Pairs)


def test_groups_of_points_keep_similar_pairs_whole(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, components=0.7, random_state=0)
    folds = list(GroupKFold(4).split(X, groups=pairs.components()))
    assert sum(len(pairs.subset(test).similar) for _, test in folds) == len(pairs.similar)
    scores = cross_validate_pairs(Whitening(), X, pairs, cv=iter(folds))["test_score"]
    assert np.all(np.isfinite(scores))


def test_a_precomputed_kernel_is_cut_in_rows_and_columns(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=5, random_state=0)
    options = {"cv": 3, "random_state": 0}
    direct = cross_validate_pairs(Kernelized(Whitening(), "linear"), X, pairs, **options)
    gram = cross_validate_pairs(Kernelized(Whitening(), "precomputed"), X @ X.T, pairs, **options)
    np.testing.assert_allclose(gram["test_score"], direct["test_score"], atol=1e-8)


@pytest.mark.slow
def test_processes_change_nothing(stretched):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=5, random_state=0)
    one = cross_validate_pairs(StandardScaler(), X, pairs, random_state=0)
    two = cross_validate_pairs(StandardScaler(), X, pairs, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(one["test_score"], two["test_score"])


def test_a_fold_without_dissimilar_pairs_has_no_score(identity):
    X = np.arange(12.0)[:, None]
    pairs = Pairs.from_labels([0, 0, 0, 1, 1, 1] * 2)
    folds = [(np.arange(6), np.arange(6, 12)), (np.arange(6), np.arange(6, 9))]
    with pytest.warns(FitFailedWarning, match="0 dissimilar"):
        scores = cross_validate_pairs(identity, X, pairs, cv=folds)["test_score"]
    assert np.isfinite(scores).tolist() == [True, False]
    with pytest.raises(ValueError, match="0 dissimilar"):
        cross_validate_pairs(identity, X, pairs, cv=folds, error_score="raise")
    with pytest.raises(ValueError, match="All the 1 fits failed"):
        cross_validate_pairs(identity, X, pairs, cv=folds[1:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "class"}, "by='class'"),
        ({"scoring": "r2"}, "scoring='r2'"),
        ({"pairs": [[0, 1]]}, "type list"),
        ({"pairs": Pairs([[0, 1]], None, 7)}, "n_samples=7"),
        ({"estimator": LMNN()}, "All the 5 fits failed"),
    ],
)
def test_bad_arguments_are_refused(stretched, options, message):
    X, y = stretched
    arguments = {"estimator": Whitening(), "pairs": Pairs.from_labels(y, per_point=2)} | options
    with pytest.raises(ValueError, match=message):
        cross_validate_pairs(X=X, **arguments)


# --- scikit-learn's own searches must not slice pairs -------------------------------------------


@pytest.mark.parametrize("n_pairs", [120, 100])  # as many as points: sliced; otherwise not
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_grid_search_with_pairs_raises(stretched, n_pairs, error_score):
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=5, random_state=0).take(np.arange(n_pairs))
    model = make_pipeline(Whitening(), KNeighborsClassifier(1))
    search = GridSearchCV(model, {"whitening__ridge": [0.1, 1]}, error_score=error_score)
    with pytest.raises((TypeError, ValueError), match=r"cannot be indexed|pairs\.subset"):
        search.fit(X, y, whitening__pairs=pairs)


@pytest.mark.parametrize("n_pairs", [120, 100])
def test_grid_search_with_row_numbers_raises(stretched, n_pairs):
    X, y = stretched
    similar = Pairs.from_labels(y).similar
    similar = similar[np.all(similar < 60, axis=1)][:n_pairs]  # they fit into every fold
    model = make_pipeline(Whitening(), KNeighborsClassifier(1))
    search = GridSearchCV(model, {"whitening__ridge": [0.1, 1]})
    with pytest.raises(ValueError, match="Got y beside similar"):
        search.fit(X, y, whitening__similar=similar)


def test_grid_search_without_labels_raises_where_row_numbers_leave_a_fold(stretched):
    X, y = stretched
    similar = Pairs.from_labels(y, per_point=1, random_state=0).similar
    search = GridSearchCV(Whitening(), {"ridge": [0.1, 1]}, scoring=lambda metric, X: 0.0)
    with pytest.raises(ValueError, match="expected row numbers from 0 to 95"):
        search.fit(X, similar=similar)


# --- retrieval ----------------------------------------------------------------------------------


def sorted_hits(X, y):
    """For every point, whether the others, nearest first, are of its class."""
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1)[:, :-1]
    return y[order] == y[:, None]


def test_recall_and_precision_are_their_definitions(stretched):
    X, y = stretched
    y = np.where(np.arange(120) < 2, [7] + [8] * 119, y)  # two points of rare classes
    hits = sorted_hits(X, y)
    alone = np.array([np.sum(y == label) == 1 for label in y])
    assert alone.any()
    expected = [np.mean(hits[~alone][:, :k].any(axis=1)) for k in (1, 3, 10)]
    np.testing.assert_allclose(recall_at_k(None, X, y, [1, 3, 10]), expected)
    assert recall_at_k(None, X, y, 3) == pytest.approx(expected[1])
    averages = []
    for row in hits[~alone]:
        R = row.sum()
        averages.append(sum(row[:k].mean() for k in range(1, R + 1) if row[k - 1]) / R)
    assert map_at_r(None, X, y) == pytest.approx(np.mean(averages))
    with memory_budget("50KB"):
        assert map_at_r(None, X, y) == pytest.approx(np.mean(averages))


def test_a_metric_scores_as_its_coordinates(stretched):
    X, y = stretched
    metric = NCA().fit(X, y)
    Z = metric.transform(X)
    assert recall_at_k(metric, X, y) == recall_at_k(None, Z, y)
    assert map_at_r(metric, X, y) == pytest.approx(map_at_r(None, Z, y))


def test_many_points_in_one_place_do_not_find_themselves():
    X = np.zeros((6, 1))
    assert map_at_r(None, X, [0, 0, 0, 0, 0, 0]) == 1
    assert map_at_r(None, X, [0, 0, 1, 1, 2, 2]) < 1
    assert recall_at_k(None, X, [0, 0, 1, 1, 2, 2], k=5) == 1


def test_retrieval_scores_take_lists_and_names():
    X, y = [[0.0], [0.1], [5.0], [5.2]], ["a", "a", "b", "b"]
    assert recall_at_k(None, X, y) == 1
    assert map_at_r(None, X, y) == 1


@pytest.mark.parametrize("k", [0, 1.5, [1, 0]])
def test_a_length_below_one_is_refused(k):
    with pytest.raises(ValueError, match="Got k="):
        recall_at_k(None, np.eye(3), [0, 0, 1], k)


def test_scores_without_anything_to_find_are_refused():
    with pytest.raises(ValueError, match="no class with two points"):
        map_at_r(None, np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="2 labels for 3 points"):
        recall_at_k(None, np.eye(3), [0, 1])


# --- clustering ---------------------------------------------------------------------------------


def test_pair_counting_is_the_definition_of_the_paper():
    rng = np.random.RandomState(0)
    for _ in range(20):
        true, found = rng.randint(3, size=30), rng.randint(4, size=30)
        agree = [
            (true[i] == true[j]) == (found[i] == found[j]) for i, j in combinations(range(30), 2)
        ]
        assert pair_counting_accuracy(true, found) == pytest.approx(np.mean(agree))


def test_many_points_are_counted_without_their_pairs():
    y = np.arange(200_000) % 1000
    assert pair_counting_accuracy(y, y[::-1]) == 1
    assert pair_counting_accuracy(y, y % 2) == pytest.approx(0.5, abs=0.01)


@pytest.mark.torch
def test_torch_points_score_as_numpy_ones(stretched):
    torch = pytest.importorskip("torch")
    X, y = stretched
    pairs = Pairs.from_labels(y, per_point=5, random_state=0)
    T = torch.asarray(X)
    metric, other = NCA(random_state=0).fit(X, y), NCA(random_state=0).fit(T, y)
    assert recall_at_k(None, T, y, 3) == recall_at_k(None, X, y, 3)
    assert map_at_r(None, T, y) == pytest.approx(map_at_r(None, X, y))
    known = PairVerifier(metric).calibrate(pairs, X)
    same = PairVerifier(other).calibrate(pairs, T)
    assert same.score_pairs(pairs, T) == pytest.approx(known.score_pairs(pairs, X), abs=1e-3)
    near = Pairs.from_labels(y).select(T)
    np.testing.assert_array_equal(near.rows, Pairs.from_labels(y).select(X).rows)
