"""What users of scikit-learn and metric-learn try first: scores, the way back, old names, gaps."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import (
    ITML,
    KPCA,
    LDA,
    LFDA,
    LMNN,
    LSML,
    MLKR,
    NCA,
    RCA,
    SCML,
    Kernelized,
    RandomFeatures,
)

X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def test_score_is_the_share_of_rows_that_their_nearest_others_tell():
    metric = LDA().fit(X, y)
    Z = metric.transform(X)
    right = 0
    for i in range(len(Z)):
        others = np.arange(len(Z)) != i
        vote = KNeighborsClassifier(3).fit(Z[others], y[others]).predict(Z[i : i + 1])
        right += vote[0] == y[i]
    assert metric.score(X, y) == pytest.approx(right / len(Z))


def test_score_of_numbers_is_that_of_the_mean_of_neighbours():
    rng = np.random.RandomState(0)
    points = rng.randn(60, 2)
    numbers = np.round(10 * points[:, 0]).astype(int)  # whole numbers, but no classes
    metric = MLKR().fit(points, numbers)
    assert metric.score(points, numbers) > 0.9
    assert metric.score(points[:, ::-1], numbers) < 0.1


def test_score_of_tuples():
    rng = np.random.RandomState(0)
    pairs = rng.randn(40, 2, 3)
    signs = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    assert ITML().fit(pairs, signs).score(pairs, signs) > 0.95
    assert ITML().fit(pairs, -signs).score(pairs, signs) < 0.7

    four = rng.randn(60, 4, 2)
    gap = np.abs(four[:, 0, 0] - four[:, 1, 0]) > np.abs(four[:, 2, 0] - four[:, 3, 0])
    four[gap] = four[gap][:, [2, 3, 0, 1]]
    metric = LSML().fit(four)
    assert metric.score(four) > 0.85
    assert metric.score(four[:, [2, 3, 0, 1]]) == pytest.approx(1 - metric.score(four))
    three = four[:, :3].copy()
    far = np.abs(three[:, 0, 0] - three[:, 1, 0]) > np.abs(three[:, 0, 0] - three[:, 2, 0])
    three[far] = three[far][:, [0, 2, 1]]
    metric = SCML(random_state=0).fit(three)
    assert metric.score(three) > 0.8
    assert metric.score(three[:, [0, 2, 1]]) == pytest.approx(1 - metric.score(three))


def test_metrics_have_scores_in_cross_validation():
    assert cross_val_score(LMNN(), X, y, cv=3, error_score="raise").mean() > 0.9
    assert cross_val_score(Kernelized(LDA(), "rbf"), X, y, cv=3, error_score="raise").mean() > 0.9


def test_the_way_back_ends_where_it_began():
    metric = LDA().fit(X, y)
    back = metric.inverse_transform(metric.transform(X))
    assert back.shape == X.shape
    assert np.allclose(metric.transform(back), metric.transform(X))
    full = LMNN().fit(X, y)
    assert np.allclose(full.inverse_transform(full.transform(X)), X)
    with pytest.raises(ValueError, match=r"\(178, 13\), but expected \(n_samples, 2\)"):
        metric.inverse_transform(X)


@pytest.mark.every(3)
@pytest.mark.parametrize("metric", [Kernelized(LMNN(), "rbf"), Kernelized(NCA(3)), KPCA(8)])
def test_the_way_back_from_a_kernel_ends_near_where_it_began(metric):
    metric = clone(metric).fit(X, y)
    back = metric.inverse_transform(metric.transform(X[:40]))
    np.testing.assert_allclose(back, X[:40], atol=1e-6)  # kept points are their own
    among = metric.transform(0.5 * (X[:20] + X[1:21]))
    spread = metric.transform(X)
    found = metric.transform(metric.inverse_transform(among))
    assert (
        np.square(found - among).sum() < 0.2 * np.square(spread - spread.mean(0)).sum() * 20 / 178
    )


def test_what_keeps_no_points_has_no_way_back():
    gram = Kernelized(LDA(), "precomputed").fit(X @ X.T, y)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(y == 1, "u", "v")})
    for metric, rows in (
        (gram, X @ X.T), (Kernelized(LDA()).fit(frame, y), frame), (RandomFeatures(50).fit(X), X),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="keeps no points of numbers"):
            metric.inverse_transform(metric.transform(rows))
    with pytest.raises(ValueError, match=r"\(178, 13\), but expected \(n_samples, 2\)"):
        KPCA(2).fit(X).inverse_transform(X)
    assert hasattr(Kernelized(LMNN()), "inverse_transform")
    assert not hasattr(Kernelized(KNeighborsClassifier()), "inverse_transform")


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda: LMNN(k=3), "it is called n_neighbors here"),
        (lambda: LFDA(num_dims=2), "it is called n_components here"),
        (lambda: ITML(n_constraints=20), "it is called max_pairs here"),
        (lambda: LMNN(learn_rate=1e-6), "not needed here, as the solver chooses its steps"),
        (lambda: LDA(k=3), "the parameters are n_components, shrinkage"),
    ],
)
def test_names_of_other_libraries_are_answered(make, answer):
    with pytest.raises(TypeError, match=answer):
        make()


def test_learners_with_options_of_their_own_are_made_copied_and_pickled():
    class Mine(LDA):
        def __init__(self, **options):
            super().__init__(**options)

    assert Mine(n_components=2).n_components == 2
    assert clone(LMNN(n_neighbors=4)).n_neighbors == 4
    assert pickle.loads(pickle.dumps(LMNN(n_neighbors=4))).n_neighbors == 4


def test_gaps_are_refused_with_our_own_way_out():
    gap = X.copy()
    gap[3, 2] = np.nan
    for refuses in (LMNN(), Kernelized(LDA())):
        with pytest.raises(ValueError, match=r"contains NaN.*Try Kernelized .* a data frame"):
            refuses.fit(gap, y)


@pytest.mark.parametrize(
    ("rows", "labels", "said"),
    [
        (X[:1], y[:1], "Got 1 rows and a y, but score expected"),
        (X, None, "Got 178 rows and no y, but score expected"),
        (X[:8].reshape(4, 2, 13), None, "tuples of 2 points with 0 different labels"),
        (X[:8].reshape(4, 2, 13), np.ones(4), "tuples of 2 points with 1 different labels"),
        (X[:10].reshape(2, 5, 13), None, "tuples of 5 points"),
    ],
)
def test_what_has_no_score_is_refused(rows, labels, said):
    with pytest.raises(ValueError, match=said):
        LDA().fit(X, y).score(rows, labels)


def test_texts_are_no_numbers_to_score_and_gaps_no_coordinates():
    with pytest.raises(ValueError, match="expected numbers to predict"):
        MLKR(1).fit(X, X[:, 0]).score(X, np.array(["a", "b", "c"])[y])
    with pytest.raises(ValueError, match="Z contains NaN"):
        LDA().fit(X, y).inverse_transform(np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("predict", r"MetricClassifier\(learner\).*MetricRegressor.*predict_pairs"),
        ("decision_function", r"PairVerifier\(learner\)\.calibrate\(pairs, X\)"),
        ("calibrate_threshold", "PairVerifier"),
        ("score_pairs", "called pair_score"),
        ("kneighbors", "to_faiss"),
    ],
)
def test_what_a_learner_lacks_is_named_where_it_is(name, instead):
    learner = LSML().fit(X, y)
    assert not hasattr(learner, name)  # so no tool of scikit-learn's takes it for a classifier
    with pytest.raises(
        AttributeError, match=f"^'LSML' object has no attribute '{name}': .*{instead}"
    ):
        getattr(learner, name)
    with pytest.raises(AttributeError) as told:
        _ = learner.component_
    assert (told.value.name, told.value.obj) == ("component_", learner)


def test_a_lone_chunk_is_the_covariance_of_metric_learn():
    M = RCA(shrinkage=0).fit(X, chunks=np.zeros(len(X), dtype=int)).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, np.linalg.inv(np.cov(X.T, bias=True)), rtol=1e-6)
