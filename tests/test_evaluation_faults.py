"""Evaluation where it is easily wrong: what is judged on what, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from kernelmetric import NCA, Pairs, PairVerifier, recall_at_k
from kernelmetric.evaluation import _verification as verification
from kernelmetric.evaluation import (
    baselines,
    check_kernelizable,
    cross_validate_pairs,
    holdout,
    map_at_r,
    run_trials,
)
from kernelmetric.evaluation._outcomes import Answer, constant, difference
from kernelmetric.evaluation._verification import best_threshold

IDENTITY = FunctionTransformer()


def line(*positions):
    return np.array(positions, dtype=float)[:, None]


# --- trials ---------------------------------------------------------------------------------


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the rows it has seen, by their only number, and says 0 of all others."""

    def fit(self, X, y):
        self.seen_ = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.asked_ = X[:, 0].tolist()
        return np.array([self.seen_.get(x, 0) for x in self.asked_])


def test_trials_learn_from_training_rows_and_are_scored_on_test_rows():
    y = np.arange(40) % 2
    X = np.arange(40.0)[:, None]
    splits = [(np.arange(0, 30), np.arange(30, 40)), (np.arange(10, 40), np.arange(0, 10))]
    for trial, (train, test) in zip(run_trials({"m": Memory()}, X, y, splits), splits, strict=True):
        assert sorted(trial.estimator.seen_) == X[train, 0].tolist()
        assert trial.estimator.asked_ == X[test, 0].tolist()
        assert trial.accuracy == 0.5  # all that is known of new rows
        assert trial.seconds > 0


def test_inner_folds_are_of_the_training_rows_alone():
    y = np.arange(60) % 2
    X = np.arange(60.0)[:, None]
    tuned = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, cv=3)
    (trial,) = run_trials({"tuned": tuned}, X, y, [(np.arange(30), np.arange(30, 60))])
    assert trial.estimator.best_estimator_.n_samples_fit_ == 30


def test_warnings_are_noted_once_each():
    class Talks(DummyClassifier):
        def fit(self, X, y):
            import warnings

            for _ in range(3):
                warnings.warn("first", stacklevel=1)
            warnings.warn("second", stacklevel=1)
            return super().fit(X, y)

    (trial,) = run_trials(
        {"t": Talks()}, line(*range(8)), np.arange(8) % 2, [(np.arange(6), [6, 7])]
    )
    assert trial.note == "first second"


def test_the_grids_of_the_baselines_fit_the_labels():
    few, many = baselines([0, 1] * 5), baselines([0, 1] * 100)
    assert few["k-NN, tuned"].param_grid["n_neighbors"] == [1]
    assert few["Euclidean"].n_neighbors == 2
    assert many["k-NN, tuned"].param_grid["n_neighbors"] == [1, 3, 5, 9, 15, 25]
    assert many["Euclidean"].n_neighbors == 3
    assert baselines([0, 1])["Euclidean"].n_neighbors == 1
    # six rows of a class may be parted in stratified thirds, also when half of them are left
    assert isinstance(baselines([0] * 20 + [1] * 6)["k-NN, tuned"].cv, StratifiedKFold)
    assert type(baselines([0] * 20 + [1] * 5)["k-NN, tuned"].cv) is KFold
    inner = many["RBF-SVM, tuned"].cv
    assert (inner.n_splits, inner.shuffle, inner.random_state) == (3, True, 0)
    assert baselines([0, 1] * 20, random_state=7)["k-NN, tuned"].cv.random_state == 7


def test_a_holdout_is_as_large_as_asked_and_has_every_class():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    train, test = holdout(y, 0.3)
    assert (len(train), len(test)) == (70, 30)
    assert np.bincount(y[test]).tolist() == [15, 9, 6]
    assert np.all(np.diff(train) > 0)
    assert np.all(np.diff(test) > 0)
    assert not np.array_equal(test, holdout(y, 0.3, random_state=1)[1])
    for share in (0.01, 0.99):  # one of each class at least, on either side
        parts = holdout(y, share)
        assert [set(y[part]) for part in parts] == [{0, 1, 2}] * 2
        assert min(map(len, parts)) == 3


@pytest.mark.parametrize("share", [0, 1, -0.1, np.nan, np.inf, "x", None, 10**400])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match=r"Got test_size=.*, but expected a number > 0 and < 1"):
        holdout([0, 1] * 10, share)


def test_labels_of_which_no_two_are_equal_cannot_be_held_out():
    with pytest.raises(ValueError, match="Got 9 labels of which no two are equal"):
        holdout(np.arange(9))


# --- cross-validation over pairs --------------------------------------------------------------


class Shift(BaseEstimator):
    """Moves each point that it has seen to the mean of those similar to it: knows its pairs."""

    def fit(self, X, y=None, *, pairs, weight=1.0):
        self.weight_, self.pairs_ = weight, pairs
        self.moved_ = {float(x): float(x) for x in X[:, 0]}
        for i, j in pairs.similar:
            self.moved_[float(X[j, 0])] = self.moved_[float(X[i, 0])]
        return self

    def transform(self, X):
        return np.array([[self.moved_.get(float(x), float(x))] for x in X[:, 0]])


@pytest.fixture
def pairs_on_a_line():
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    X = rng.permutation(np.arange(60.0))[:, None]
    return X, Pairs.from_labels(y, per_point=6, random_state=0)


@pytest.mark.parametrize("by", ["point", "pair"])
def test_pairs_that_were_learned_from_are_not_scored(pairs_on_a_line, by):
    """Similar pairs that were seen are at no distance; positions are random, so others are not."""
    X, pairs = pairs_on_a_line
    found = cross_validate_pairs(
        Shift(), X, pairs, by=by, cv=4, random_state=0, scoring=["roc_auc", "average_precision",
        "accuracy", "f1"], return_train_score=True, return_estimator=True, return_indices=True,
    )  # fmt: skip
    assert found["train_roc_auc"].mean() > 0.8
    assert by == "pair" or found["test_roc_auc"].mean() < 0.7  # pairs are known through others
    for fold in range(4):
        train, test = (found["indices"][part][fold] for part in ("train", "test"))
        metric = found["estimator"][fold]
        if by == "pair":
            parts = [(X, pairs.take(train)), (X, pairs.take(test))]
        else:
            parts = [(X[train], pairs.subset(train)), (X[test], pairs.subset(test))]
        assert_array_equal(metric.pairs_.rows, parts[0][1].rows)
        lengths = []
        for points, known in parts:
            Z = metric.transform(points)[:, 0]
            lengths.append(np.abs(Z[known.rows[:, 0]] - Z[known.rows[:, 1]]))
        for name, length, (_, known) in zip(("train", "test"), lengths, parts, strict=True):
            same = known.is_similar
            assert found[f"{name}_roc_auc"][fold] == pytest.approx(roc_auc_score(same, -length))
            assert found[f"{name}_average_precision"][fold] == pytest.approx(
                average_precision_score(same, -length)
            )
            for scoring, criterion in (("accuracy", "accuracy"), ("f1", "f_beta")):
                threshold, _ = best_threshold(lengths[0], parts[0][1].is_similar, criterion)
                said = length <= threshold
                value = np.mean(said == same) if scoring == "accuracy" else f1_score(same, said)
                assert found[f"{name}_{scoring}"][fold] == pytest.approx(value)


def test_the_folds_part_points_or_pairs_and_are_shuffled(pairs_on_a_line):
    X, pairs = pairs_on_a_line
    kept = {"return_indices": True, "cv": 3}
    points = cross_validate_pairs(IDENTITY, X, pairs, random_state=0, **kept)["indices"]["test"]
    assert sorted(np.concatenate(points)) == list(range(60))
    assert not np.array_equal(points[0], np.arange(20))
    other = cross_validate_pairs(IDENTITY, X, pairs, random_state=1, **kept)["indices"]["test"]
    assert not np.array_equal(points[0], other[0])
    by_pair = cross_validate_pairs(IDENTITY, X, pairs, by="pair", random_state=0, **kept)
    tests = by_pair["indices"]["test"]
    assert sorted(np.concatenate(tests)) == list(range(len(pairs)))
    shares = [pairs.is_similar[test].mean() for test in tests]
    assert np.ptp(shares) < 0.02  # stratified


def test_times_estimators_and_further_arguments(pairs_on_a_line):
    X, pairs = pairs_on_a_line
    plain = cross_validate_pairs(Shift(), X, pairs, cv=3, random_state=0)
    assert set(plain) == {"fit_time", "score_time", "test_score"}
    assert all(len(plain[key]) == 3 for key in plain)
    assert np.all(plain["fit_time"] > 0)
    assert np.all(plain["score_time"] > 0)
    given = cross_validate_pairs(
        Shift(), X, pairs, cv=3, params={"weight": 2.5}, return_estimator=True, random_state=0
    )
    assert [metric.weight_ for metric in given["estimator"]] == [2.5] * 3
    several = cross_validate_pairs(
        Shift(), X, pairs, cv=3, random_state=0, return_train_score=True,
        scoring={"auc": "roc_auc", "count": lambda metric, X, pairs: len(pairs)},
    )  # fmt: skip
    assert {"test_auc", "train_auc", "test_count", "train_count"} < set(several)
    assert np.all(several["train_count"] > several["test_count"])
    assert_allclose(several["test_auc"], plain["test_score"])


def test_a_pipeline_hands_pairs_to_its_last_step(pairs_on_a_line):
    X, pairs = pairs_on_a_line
    model = make_pipeline(FunctionTransformer(), make_pipeline(FunctionTransformer(), Shift()))
    found = cross_validate_pairs(model, X, pairs, cv=3, random_state=0)["test_score"]
    assert_allclose(
        found, cross_validate_pairs(Shift(), X, pairs, cv=3, random_state=0)["test_score"]
    )


def test_folds_that_fail_are_counted_and_the_reason_told(pairs_on_a_line):
    X, pairs = pairs_on_a_line

    class Fussy(Shift):
        def fit(self, X, y=None, *, pairs):
            if 0.0 in X[:, 0]:
                raise RuntimeError("zero is in it")
            return super().fit(X, pairs=pairs)

    with pytest.warns(
        FitFailedWarning, match=r"2 fits failed out of a total of 3(.|\n)*-7(.|\n)*zero"
    ):
        found = cross_validate_pairs(Fussy(), X, pairs, cv=3, random_state=0, error_score=-7)
    assert sorted(found["test_score"] == -7) == [False, True, True]
    assert np.isnan(found["fit_time"]).sum() == 2
    with pytest.raises(ValueError, match=r"All the 3 fits failed(.|\n)*RuntimeError: zero"):
        cross_validate_pairs(Fussy(), X * 0, pairs, cv=3)
    with pytest.raises(RuntimeError, match="zero is in it"):
        cross_validate_pairs(Fussy(), X, pairs, cv=3, error_score="raise")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"scoring": None}, "Got scoring=None, but expected one of roc_auc"),
        ({"scoring": 5}, "Got scoring=5"),
        ({"scoring": ["roc_auc", "best"]}, "Got scoring='best'"),
        ({"error_score": "x"}, "Got error_score='x', but expected 'raise' or a number"),
        ({"error_score": None}, "Got error_score=None"),
        ({"by": None}, "Got by=None, but expected 'point' or 'pair'"),
        ({"cv": 10**30}, "greater than the number of samples"),
        ({"cv": 0}, "at least one train/test split|n_splits"),
    ],
)
def test_absurd_arguments_are_refused(pairs_on_a_line, options, match):
    X, pairs = pairs_on_a_line
    with pytest.raises(ValueError, match=match):
        cross_validate_pairs(IDENTITY, X, pairs, **options)
    with pytest.raises(ValueError, match="Got pairs of type list, but expected Pairs"):
        cross_validate_pairs(IDENTITY, X, [[0, 1]])
    with pytest.raises(ValueError, match="n_samples=60 points, but X has 59 rows"):
        cross_validate_pairs(IDENTITY, X[1:], pairs)


# --- verification -----------------------------------------------------------------------------


@pytest.fixture
def known():
    """Points on a line, and pairs of them that a threshold parts but for one."""
    X = line(0, 1, 2, 3, 10, 11, 12, 13)
    similar = [[0, 1], [2, 3], [4, 5], [0, 4]]
    dissimilar = [[0, 5], [1, 6], [2, 7], [3, 5], [3, 4]]
    return X, Pairs(similar, dissimilar, 8)


def test_a_verifier_is_an_estimator_of_pairs_of_points(known):
    X, pairs = known
    metric = NCA(1).fit(line(0, 1, 5, 6), [0, 0, 1, 1])
    verifier = PairVerifier(FrozenEstimator(metric))
    with pytest.raises(NotFittedError):
        check_is_fitted(verifier)
    with pytest.raises(NotFittedError, match="call calibrate with pairs that are known"):
        verifier.predict_proba_pairs(pairs, X)
    fitted = clone(verifier).fit(X[pairs.rows], pairs.is_similar)
    check_is_fitted(fitted)
    expected = PairVerifier(metric).calibrate(pairs, X)
    assert fitted.threshold_ == pytest.approx(expected.threshold_)
    tags = get_tags(verifier)
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


def test_the_rates_are_those_of_the_threshold(known):
    X, pairs = known
    verifier = PairVerifier(IDENTITY).calibrate(pairs, X)
    # similar: 1, 1, 1, 10; dissimilar: 11, 11, 11, 8, 7
    assert verifier.threshold_ == pytest.approx(4.0)
    assert verifier.criterion_value_ == pytest.approx(8 / 9)
    assert (verifier.tpr_, verifier.tnr_) == (0.75, 1.0)
    assert_allclose(verifier.decision_pairs([[0, 1], [0, 7]], X), [3.0, -9.0])
    assert verifier.predict_pairs([[0, 1], [0, 7], [0, 3]], X).tolist() == [True, False, True]
    assert verifier.score_pairs(pairs, X) == pytest.approx(18 / 20)


def test_a_distance_at_the_threshold_is_the_same():
    verifier = PairVerifier(IDENTITY)
    verifier.threshold_, verifier.calibrator_ = 2.0, None
    assert verifier.predict_pairs([[0, 1]], line(0, 2)).tolist() == [True]


@pytest.mark.parametrize(
    ("criterion", "options", "accepted"),
    [
        ("max_tpr", {"min_rate": 1.0}, 3),
        ("max_tpr", {"min_rate": 0.6}, 6),
        ("max_tnr", {"min_rate": 0.75}, 3),
        ("max_tnr", {"min_rate": 1.0}, 6),
        ("f_beta", {"beta": 10.0}, 6),
        ("f_beta", {"beta": 0.1}, 3),
    ],
)
def test_criteria_accept_what_they_should(known, criterion, options, accepted):
    X, pairs = known
    verifier = PairVerifier(IDENTITY, criterion, **options).calibrate(pairs, X)
    assert verifier.predict_pairs(pairs, X).sum() == accepted


def test_of_equally_good_thresholds_the_strictest():
    distances, same = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False])
    assert best_threshold(distances, same) == (1.5, 0.75)
    # of cuts that let no more through, the one that accepts most
    distances, same = np.array([1.0, 2.0, 3.0]), np.array([True, True, False])
    assert best_threshold(distances, same, "max_tnr", min_rate=0.5) == (2.5, 1.0)
    assert best_threshold(distances, ~same, "accuracy") == (pytest.approx(1.0, abs=1e-9), 2 / 3)
    assert (
        best_threshold(np.array([1.0, 2.0]), np.array([False, True]), "max_tnr", min_rate=1)[0] == 2
    )


@pytest.mark.parametrize("criterion", ["max_tpr", "max_tnr"])
@pytest.mark.parametrize("weight", [None, 0.1])
def test_every_rate_that_a_count_of_pairs_has_is_reached(criterion, weight):
    n = 100
    weights = None if weight is None else np.full(2 * n, weight)
    for k in range(1, n):
        # of the pairs that must be right, k are beyond all others, and n - k among them
        right = np.concatenate([np.full(k, 3.0), np.full(n - k, 1.0)])
        other = np.concatenate([np.full(n - 20, 1.0), np.full(20, 2.0)])
        lengths = np.concatenate([other, right]) * (1 if criterion == "max_tpr" else -1)
        same = np.repeat([criterion == "max_tpr", criterion != "max_tpr"], n)
        _, value = best_threshold(lengths, same, criterion, min_rate=k / n, weights=weights)
        assert value == pytest.approx(1.0), k


def test_calibrations_are_curves_that_fall(known):
    X, pairs = known
    steps = PairVerifier(IDENTITY, calibration="isotonic").calibrate(pairs, X)
    assert isinstance(steps.calibrator_, IsotonicRegression)
    # 7 and 8, which differ, and 10, which is the same, make one step
    same = steps.predict_proba_pairs([[0, 1], [2, 4], [0, 7]], X)[:, 1]
    assert_allclose(same, [1, 1 / 3, 0], atol=1e-12)
    smooth = PairVerifier(IDENTITY).calibrate(pairs, X)
    near, far = smooth.predict_proba_pairs([[0, 1], [0, 7]], X)
    assert near[1] > 0.5 > far[1]
    assert_allclose([near.sum(), far.sum()], 1.0)


def test_a_refused_calibration_leaves_the_last_one_as_it_was(known, monkeypatch):
    X, pairs = known
    verifier = PairVerifier(IDENTITY).calibrate(pairs, X)
    before = dict(vars(verifier))

    def gives_up(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(verification, "_fit_probabilities", gives_up)
        with pytest.raises(KeyboardInterrupt):
            verifier.calibrate(pairs, 7 * X)
    with pytest.raises(ValueError, match="Got"):
        verifier.calibrate(pairs, X * np.array([np.nan]))
    assert vars(verifier) == before


JUNK = [np.inf, np.nan, 1e308, -1, "x", None, object(), len, True, 10**30, 10**400]


@pytest.mark.parametrize("name", ["metric", "criterion", "beta", "min_rate", "calibration"])
def test_any_parameter_verifies_or_is_refused_in_a_sentence(known, name):
    X, pairs = known
    for value in JUNK:
        verifier = PairVerifier(**{"metric": IDENTITY, "criterion": "f_beta", name: value})
        try:
            verifier.calibrate(pairs, X)
        except ValueError as error:
            assert str(error).startswith(f"Got {name}=")
        else:
            assert (name, value) in (("beta", 10**30),)
    for value in (0, 1):
        PairVerifier(IDENTITY, "max_tpr", min_rate=value).calibrate(pairs, X)


def test_distances_that_are_none_are_refused(known):
    X, pairs = known
    verifier = PairVerifier(IDENTITY).calibrate(pairs, X)
    broken = X.copy()
    broken[5] = np.nan
    with pytest.raises(ValueError, match="Got a distance of nan for pair 2, but expected finite"):
        verifier.predict_pairs([[0, 1], [1, 2], [4, 5]], broken)


@pytest.mark.parametrize("y", [None, [2, 0], [0.5, 1], ["a", "b"], [[0], [1]], [np.nan, 1]])
def test_answers_that_are_none_are_refused(y):
    with pytest.raises(ValueError, match=r"Got y=.*, but expected for every pair 1 where"):
        PairVerifier(IDENTITY).calibrate([[0, 1], [0, 2]], line(0, 1, 2), y=y)


def test_answers_come_as_signs_or_as_truth():
    X, rows = line(0, 1, 5), [[0, 1], [0, 2]]
    for y in ([1, 0], [1, -1], [True, False]):
        assert PairVerifier(IDENTITY).calibrate(rows, X, y).threshold_ == 3.0
    with pytest.raises(ValueError, match="Got 3 answers for 2 pairs"):
        PairVerifier(IDENTITY).calibrate(rows, X, [1, 0, 1])
    with pytest.raises(ValueError, match="Got 2 similar and 0 dissimilar pairs"):
        PairVerifier(IDENTITY).calibrate(rows, X, [1, 1])
    with pytest.raises(ValueError, match="Got 0 similar and 2 dissimilar pairs"):
        PairVerifier(IDENTITY).calibrate(rows, X, [0, 0])
    with pytest.raises(ValueError, match="which has no pair_distance: pass X"):
        PairVerifier(IDENTITY).calibrate(X[rows], y=[1, 0])


# --- retrieval ----------------------------------------------------------------------------------


def test_retrieval_by_hand():
    X, y = line(0, 1, 3, 7, 15, 40), [0, 1, 0, 0, 1, 2]
    # lists of 0: 1 3 7; of 1: 0 3 7 15; of 3: 1 0 7; of 7: 3 1 0; of 15: 7 3 1; 40 is alone
    assert_allclose(recall_at_k(None, X, y, k=[1, 2, 3, 4]), [1 / 5, 3 / 5, 4 / 5, 1.0])
    assert recall_at_k(None, X, y, k=2) == 3 / 5
    assert recall_at_k(None, X, y, k=10**9) == 1.0
    # R is 2 for class 0 and 1 for class 1: precisions where the k-th is of the class
    assert map_at_r(None, X, y) == pytest.approx((1 / 4 + 1 / 4 + 1 / 2 + 0 + 0) / 5)


def test_a_pair_of_twins_finds_each_other():
    assert recall_at_k(None, line(0, 9), [1, 1]) == 1.0
    assert map_at_r(None, line(0, 0, 5, 5), ["a", "a", "b", "b"]) == 1.0


@pytest.mark.parametrize("score", [recall_at_k, map_at_r])
def test_points_that_are_none_and_labels_that_are_too_few_are_refused(score):
    with pytest.raises(ValueError, match="Got points with NaN or infinity"):
        score(None, line(0, np.nan, 1), [0, 0, 1])
    with pytest.raises(ValueError, match="Got 2 labels for 3 points"):
        score(None, line(0, 1, 2), [0, 0])
    with pytest.raises(ValueError, match="Got no class with two points"):
        score(None, line(0, 1, 2), [0, 1, 2])


@pytest.mark.parametrize("k", [0, -1, 1.5, np.inf, np.nan, "x", None, [1, 0], [[1]], True])
def test_lengths_that_are_none_are_refused(k):
    with pytest.raises(ValueError, match=r"Got k=.*, but expected an integer >= 1, or several"):
        recall_at_k(None, line(0, 1, 2), [0, 0, 0], k=k)


# --- tricks, and what may be kernelized -----------------------------------------------------------


@pytest.fixture
def two_clouds():
    rng = np.random.RandomState(0)
    y = np.arange(24) % 2
    return rng.randn(24, 2) + 2.0 * y[:, None], y


@pytest.mark.parametrize("tol", [0, -1, np.nan, np.inf, "x", None, len])
def test_a_tolerance_that_is_none_is_refused(tol):
    with pytest.raises(ValueError, match=r"Got tol=.*, but expected a (finite )?number > 0"):
        check_kernelizable(StandardScaler(), tol=tol)


def test_differences_between_answers():
    a = np.array([0.0, 2.0, 4.0, 6.0])
    values = [Answer("predict", "values", a)]
    spread = np.sqrt(np.mean((a - 3) ** 2))
    assert difference(values, [Answer("predict", "values", a + 1)]) == pytest.approx(1 / spread)
    assert difference(values, [Answer("predict", "values", a[:2])]) == np.inf
    infinite = [Answer("predict", "values", np.array([np.inf, 1.0, 2.0]))]
    assert difference(infinite, infinite) == 0
    assert difference(infinite, [Answer("predict", "values", np.array([3.0, 1.0, 2.0]))]) == np.inf
    level = [Answer("predict", "values", np.full(3, 2.0))]
    assert difference(level, [Answer("predict", "values", np.full(3, 3.0))]) == pytest.approx(0.5)
    nothing = [Answer("predict", "values", np.zeros(3))]
    assert difference(nothing, [Answer("predict", "values", np.ones(3))]) == pytest.approx(1.0)
    labels = [Answer("predict", "labels", np.array([0, 1, 2, 3]))]
    assert difference(labels, [Answer("predict", "labels", np.array([0, 1, 2, 0]))]) == 0.25
    clusters = [Answer("predict", "clusters", np.array([0, 0, 1]))]
    assert difference(clusters, [Answer("predict", "clusters", np.array([5, 5, 2]))]) == 0
    assert difference(clusters, [Answer("predict", "clusters", np.array([0, 1, 2]))]) == (
        pytest.approx(1 / 3)
    )


def test_points_differ_by_their_distances_alone():
    Z = np.array([[0.0, 0.0], [3.0, 4.0]])
    points = [Answer("transform", "points", Z)]
    turned = [Answer("transform", "points", Z[:, ::-1] * [1, -1] + 7)]
    assert difference(points, turned) == pytest.approx(0, abs=1e-7)
    assert difference(points, [Answer("transform", "points", 2 * Z)]) == pytest.approx(1.0)
    assert difference(points, [Answer("transform", "points", Z * np.nan)]) == np.inf
    # the largest change counts, over the methods that are in both
    both = [*points, Answer("predict", "labels", np.array([0, 1]))]
    after = [*turned, Answer("predict", "labels", np.array([0, 0]))]
    assert difference(both, after) == 0.5
    assert difference(both, turned) == pytest.approx(0, abs=1e-7)


def test_answers_that_are_all_alike_show_nothing():
    same, other = np.ones((4, 2)), np.arange(8.0).reshape(4, 2)
    assert constant([Answer("transform", "points", same)])
    assert not constant([Answer("transform", "points", same), Answer("predict", "labels", other)])
