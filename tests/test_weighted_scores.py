"""Weights in transductive distances, in alignment, and in the tools of evaluation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import (
    KPCA,
    LDA,
    RBF,
    KernelAlignment,
    Kernelized,
    PairVerifier,
    TransductiveDistance,
    map_at_r,
    recall_at_k,
)
from kernelmetric.evaluation import class_scores
from kernelmetric.inputs import WeightedLabels, Weights
from kernelmetric.selection import AlignedScales
from kernelmetric.selection._aligned_scales import u_alignment, u_centred


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3], np.random.RandomState(0).randint(0, 4, size=50)


def counts(w):
    w = w.astype(float)
    return Weights(w, w)


# --- alignment ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        KernelAlignment(),
        KernelAlignment(centered=True),
        KernelAlignment(target="regression", centered=True),
        KernelAlignment(local=RBF(gamma="median")),
    ],
    ids=repr,
)
def test_alignment_of_counted_points_is_that_of_repeated_rows(kernel, iris):
    X, y, w = iris
    some = w > 0
    a = kernel.bind(X[some], WeightedLabels(y[some], counts(w[some])))
    b = kernel.bind(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a(X), b(X), rtol=1e-8)
    np.testing.assert_allclose(a.alignment_, b.alignment_, rtol=1e-8)


def test_weights_count_in_an_alignment_on_a_sample(iris):
    X, y, _ = iris
    w = np.random.RandomState(1).uniform(0.5, 3.0, size=50)
    how = {"centered": True, "max_samples": 40, "random_state": 0}
    some = KernelAlignment(**how).bind(X, WeightedLabels(y, Weights(w, w)))
    whole = KernelAlignment(centered=True).bind(X, WeightedLabels(y, Weights(w, w)))
    assert abs(some.alignment_ - whole.alignment_) < 4 * some.alignment_error_ + 0.02
    ones = KernelAlignment(**how).bind(X, WeightedLabels(y, Weights(np.ones(50), np.ones(50))))
    plain = KernelAlignment(**how).bind(X, y)
    np.testing.assert_allclose(ones(X), plain(X), rtol=1e-8)
    np.testing.assert_allclose(ones.alignment_error_, plain.alignment_error_, rtol=1e-8)


def test_scales_align_by_weights(iris):
    # One feature tells half of the classes' points apart, another one the other half.
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((120, 3)), rng.randint(2, size=120)
    half = np.arange(120) < 60
    X[half, 0] += 3.0 * y[half]
    X[~half, 1] += 3.0 * y[~half]
    for heavy, first in ((half, True), (~half, False)):
        w = np.where(heavy, 1.0, 0.05)
        scales = (
            AlignedScales(kernel=RBF(gamma=1.0)).bind(X, WeightedLabels(y, Weights(w, w))).scales
        )
        assert (scales[0] > 1.5 * scales[1]) == first
        assert (scales[1] > 1.5 * scales[0]) != first
    ones = AlignedScales(kernel=RBF(gamma=1.0)).bind(
        X, WeightedLabels(y, Weights(*np.ones((2, 120))))
    )
    plain = AlignedScales(kernel=RBF(gamma=1.0)).bind(X, y)
    np.testing.assert_allclose(ones.scales, plain.scales, rtol=1e-4)


def test_the_slope_of_an_alignment_by_weights_is_that_of_its_value(iris):
    X, y, _ = iris
    mass = np.random.RandomState(1).uniform(0.2, 3.0, size=50)
    target = u_centred(lambda i, j: np.where(y[i, None] == y[None, j], 1.0, -0.5), 50, mass)
    step = 1e-5 * np.random.RandomState(2).standard_normal(4)
    up, down = (u_alignment(sign * step - 1.0, X, target, mass)[0] for sign in (1, -1))
    slope = u_alignment(np.full(4, -1.0), X, target, mass)[1] @ step
    np.testing.assert_allclose(slope, (up - down) / 2, rtol=1e-6)
    # A constant is nothing to it, whatever points count: rows have sum zero by weights.
    rows = target(slice(0, 50)) / np.sqrt(np.outer(mass, mass))
    np.testing.assert_allclose(rows @ mass, 0.0, atol=1e-12)


def test_an_aligned_kernel_takes_the_weights_of_a_fit(iris):
    X, y, w = iris
    metric = Kernelized(LDA(), "aligned", KPCA())
    a = clone(metric).fit(X, y, sample_weight=w)
    b = clone(metric).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a.pairwise_distances(X), b.pairwise_distances(X), rtol=1e-4)


# --- transductive distances ---------------------------------------------------------------------


def few_labels(y):
    return np.where(np.arange(len(y)) % 4 == 0, y, -1)


@pytest.mark.filterwarnings("ignore:Got a graph of")
def test_a_transductive_distance_embeds_every_row_with_weight_once(iris):
    X, y, w = iris
    w[::4] = np.maximum(w[::4], 1)  # the labelled ones stay
    y = few_labels(y)
    metric = TransductiveDistance(3, lam=5000.0, n_neighbors=10)
    for weights in (w, w + 0.3 * (w > 1), np.where(w > 0, 2.0, 0.0)):
        metric.fit(X, y, sample_weight=weights)
        assert metric.embedding_.shape == (np.sum(w > 0), 3)
        assert metric.transduction_.shape == (np.sum(w > 0),)
    assert metric.fit_transform(X, y, sample_weight=w).shape == (50, 3)


@pytest.mark.filterwarnings("ignore:Got (lam=|a graph of)")
def test_a_heavy_label_moves_an_embedding_and_equal_ones_do_not(iris):
    X, y, _ = iris
    y = few_labels(y)
    metric = TransductiveDistance(3, lam=0.5, n_neighbors=10)
    plain = metric.fit(X, y).embedding_
    alike = metric.fit(X, y, sample_weight=np.full(50, 5.0)).embedding_
    np.testing.assert_allclose(np.abs(alike), np.abs(plain), atol=1e-6)
    heavy = metric.fit(X, y, sample_weight=np.where(np.arange(50) == 4, 30.0, 1.0)).embedding_
    assert np.max(np.abs(np.abs(heavy) - np.abs(plain))) > 1e-2


@pytest.mark.filterwarnings("ignore:Got (lam=|a graph of)")
def test_pairs_of_a_transductive_distance_count_by_their_points(iris):
    X, _, _ = iris
    metric = TransductiveDistance(3, lam=0.5, n_neighbors=10)
    pairs = {"similar": [[0, 1], [3, 20]], "dissimilar": [[0, 40], [5, 30]]}
    w = np.ones(50)
    w[3] = 0.0
    fewer = {"similar": [[0, 1]], "dissimilar": [[0, 39], [4, 29]]}
    absent = metric.fit(X, **pairs, sample_weight=w).embedding_
    np.testing.assert_array_equal(absent, metric.fit(np.delete(X, 3, axis=0), **fewer).embedding_)
    w[3], w[40] = 1.0, 9.0
    heavy = metric.fit(X, **pairs, sample_weight=w).embedding_
    assert np.max(np.abs(np.abs(heavy) - np.abs(metric.fit(X, **pairs).embedding_))) > 1e-3


def test_weights_beside_a_cost_graph_are_refused(iris):
    X, y, w = iris
    with pytest.raises(ValueError, match="beside a cost graph"):
        TransductiveDistance().fit(X, cost_graph=np.zeros((50, 50)), sample_weight=w)
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


@pytest.mark.every(2)
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


@pytest.mark.every(4)
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
        (lambda same: same, "0 dissimilar pairs with weight"),
        (lambda same: 1 - same, "Got 0 similar and .* pairs with weight"),
        (lambda same: same - 1.0, "not negative"),
        (lambda same: np.ones(3), r"expected \(60,\)"),
    ],
    ids=["one-kind", "other-kind", "negative", "short"],
)
def test_bad_weights_of_pairs_are_refused(known_pairs, weights, said):
    metric, pairs, same, _ = known_pairs
    with pytest.raises(ValueError, match=said):
        PairVerifier(metric).calibrate(pairs, y=same, sample_weight=weights(same))
