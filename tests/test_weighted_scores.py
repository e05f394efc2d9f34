"""Weights in transductive distances, in alignment, and in the tools of evaluation."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import (
    LDA,
    RBF,
    KernelAlignment,
    Kernelized,
    PairVerifier,
    TransductiveDistance,
    map_at_r,
    recall_at_k,
)
from kernelmetric.compute import Weighed, Weights, repeated_rows
from kernelmetric.evaluation import class_scores
from kernelmetric.selection import AlignedScales


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3], np.random.RandomState(0).randint(0, 4, size=50)


def counts(w):
    w = w.astype(float)
    return Weights(w, w - 1, w)


# --- alignment ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [KernelAlignment(), KernelAlignment(centered=True), AlignedScales(kernel=RBF(gamma=0.3))],
    ids=repr,
)
def test_alignment_of_counted_points_is_that_of_repeated_rows(kernel, iris):
    X, y, w = iris
    some = w > 0
    a = kernel.bind(X[some], Weighed(y[some], counts(w[some])))
    b = kernel.bind(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a(X), b(X), rtol=1e-8)


def test_an_aligned_kernel_takes_the_weights_of_a_fit(iris):
    X, y, w = iris
    a = Kernelized(LDA(), "aligned").fit(X, y, sample_weight=w)
    b = Kernelized(LDA(), "aligned").fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a.pairwise_distances(X), b.pairwise_distances(X), rtol=1e-4)


def test_weights_that_are_no_counts_are_repeated_in_proportion():
    w = np.array([0.5, 1.75, 0.75, 1.0])
    rows = repeated_rows(Weights(w, np.zeros(4), w))
    assert np.bincount(rows).tolist() == [1, 4, 1, 2]  # their sums are right, up to rounding


# --- transductive distances ---------------------------------------------------------------------


def few_labels(y):
    return np.where(np.arange(len(y)) % 4 == 0, y, -1)


@pytest.mark.filterwarnings("ignore:Got a graph of")
def test_a_transductive_distance_repeats_rows(iris):
    X, y, w = iris
    w[::4] = np.maximum(w[::4], 1)  # the labelled ones stay
    y = few_labels(y)
    a = TransductiveDistance(3, lam=5000.0, n_neighbors=10).fit(X, y, sample_weight=w)
    b = TransductiveDistance(3, lam=5000.0, n_neighbors=10)
    b.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_array_equal(a.transform(X), b.transform(X))
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    again = TransductiveDistance(3, lam=5000.0, n_neighbors=10)
    assert again.fit_transform(X, y, sample_weight=w).shape == (50, 3)


def test_equal_weights_change_no_transductive_distance(iris):
    X, y, _ = iris
    a = TransductiveDistance(3, lam=5000.0).fit(X, few_labels(y), sample_weight=np.full(50, 5))
    b = TransductiveDistance(3, lam=5000.0).fit(X, few_labels(y))
    np.testing.assert_array_equal(a.embedding_, b.embedding_)


def test_what_a_transductive_distance_cannot_repeat_is_refused(iris):
    X, y, w = iris
    with pytest.raises(ValueError, match="not whole numbers"):
        TransductiveDistance().fit(X, y, sample_weight=w + 0.3)
    with pytest.raises(ValueError, match="number the rows"):
        TransductiveDistance().fit(X, similar=[[0, 1]], dissimilar=[[0, 40]], sample_weight=w)
    with pytest.raises(ValueError, match="zero for all rows"):
        TransductiveDistance().fit(X, y, sample_weight=0 * w)


def test_a_transductive_score_counts_by_weights(iris):
    X, y, w = iris
    metric = TransductiveDistance(3, lam=5000.0).fit(X, few_labels(y))
    hits = metric.predict(X) == y
    assert metric.score(X, y, sample_weight=hits) == 1.0
    np.testing.assert_allclose(metric.score(X, y, w), np.average(hits, weights=w))


# --- scores -------------------------------------------------------------------------------------


def test_scores_by_weights_are_those_of_repeated_rows(iris):
    X, y, w = iris
    X = X[:, :1]
    model = KNeighborsClassifier(5).fit(X, y)
    a = class_scores(model, X, y, sample_weight=w)
    b = class_scores(model, np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a[:5], b[:5])
    assert a.confusion == b.confusion
    assert a.largest == b.largest


@pytest.mark.parametrize("score", [recall_at_k, map_at_r])
def test_queries_count_by_weights(score, iris):
    X, y, w = iris
    X = X[:, :1]
    each = [score(None, X, y, sample_weight=np.arange(50) == i) for i in range(50)]
    np.testing.assert_allclose(score(None, X, y, sample_weight=w), np.average(each, weights=w))
    np.testing.assert_allclose(score(None, X, y), np.mean(each))
    with pytest.raises(ValueError, match="expected finite weights"):
        score(None, X, y, sample_weight=-w - 1.0)


# --- pairs ---------------------------------------------------------------------------------------


@pytest.fixture
def known_pairs():
    rng = np.random.RandomState(0)
    pairs = rng.standard_normal((60, 2, 3))
    same = rng.randint(2, size=60)
    pairs[same == 1, 1] = pairs[same == 1, 0] + 0.7 * rng.standard_normal((same.sum(), 3))
    metric = LDA().fit(rng.standard_normal((30, 3)), rng.randint(2, size=30))
    return metric, pairs, same, rng.randint(0, 4, 60)


@pytest.mark.parametrize("calibration", ["logistic", "isotonic"])
@pytest.mark.parametrize("criterion", ["accuracy", "f_beta", "max_tpr", "max_tnr"])
def test_counted_pairs_are_repeated_pairs(known_pairs, criterion, calibration):
    metric, pairs, same, w = known_pairs
    verifier = PairVerifier(metric, criterion, min_rate=0.8, calibration=calibration)
    a = clone_of(verifier).calibrate(pairs, y=same, sample_weight=w)
    b = clone_of(verifier).fit(np.repeat(pairs, w, axis=0), np.repeat(same, w))
    for name in ("threshold_", "criterion_value_", "tpr_", "tnr_"):
        assert getattr(a, name) == pytest.approx(getattr(b, name))
    P = b.predict_proba_pairs(pairs)
    np.testing.assert_allclose(a.predict_proba_pairs(pairs), P, atol=1e-4)
    scores = (
        a.score_pairs(pairs, y=same, sample_weight=w),
        b.score_pairs(np.repeat(pairs, w, axis=0), y=np.repeat(same, w)),
    )
    assert scores[0] == pytest.approx(scores[1])


def clone_of(verifier):
    return PairVerifier(**verifier.get_params(deep=False))


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (lambda same: same, "all dissimilar pairs"),
        (lambda same: 1 - same, "all similar pairs"),
        (lambda same: same - 1.0, "not negative"),
        (lambda same: np.ones(3), r"expected \(60,\)"),
    ],
    ids=["one-kind", "other-kind", "negative", "short"],
)
def test_bad_weights_of_pairs_are_refused(known_pairs, weights, said):
    metric, pairs, same, _ = known_pairs
    with pytest.raises(ValueError, match=said):
        PairVerifier(metric).calibrate(pairs, y=same, sample_weight=weights(same))
