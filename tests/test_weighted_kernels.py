"""Weights in kernels, spaces, the choice of a kernel, and kernelized learners."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import ITML, LDA, LMNN, MLKR, RBF, RCA, Delta, Kernelized, KernelTrick, Laplacian
from kernelmetric.inputs import WeightedLabels, Weights, labels_and_weights
from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA, _ridge_kpca
from kernelmetric.selection._relevance import relevance_loss
from kernelmetric.solvers._ridge_grid import left_out
from kernelmetric.spaces import KPCA, Nystroem, RandomFeatures


@pytest.fixture
def points():
    """60 points of three classes, weights from 0 to 3, and new points."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 4)) * [1.0, 2.0, 0.5, 1.0]
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int) + (X[:, 1] > 1.5)
    return X, y, rng.randint(0, 4, size=60), rng.standard_normal((7, 4))


def distances(Z):
    return np.linalg.norm(Z[:, None] - Z, axis=2)


SPACES = [
    KPCA(),
    KPCA(6),
    KPCA(0.9),
    KPCA(6, solver="randomized", random_state=0),
    KPCA(kernel=Laplacian(gamma="median")),
    KPCA(kernel=RBF(gamma="scale")),
    Nystroem(1000),
    RandomFeatures(200, n_components=10, random_state=0),
]
LABELLED = [
    RidgeKPCA(5, kernel=RBF(gamma=0.3)),
    RidgeKPCA(kernel=RBF(gamma=0.3) + 0.1 * Delta()),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_spaces_of_counted_points_are_those_of_repeated_rows(space, points):
    X, y, w, new = points
    a = clone(space).fit(X, y, sample_weight=w)
    b = clone(space).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    A, B = a.transform(new), b.transform(new)
    np.testing.assert_allclose(distances(A), distances(B), atol=1e-6)
    # lengths as well: the origin is the mean by weights
    np.testing.assert_allclose(np.sum(A**2, axis=1), np.sum(B**2, axis=1), atol=1e-6)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_mean_by_weights_is_the_origin(space, points):
    X, y, *_ = points
    w = np.random.RandomState(1).uniform(0.1, 3.0, len(X))
    Z = clone(space).fit_transform(X, y, sample_weight=w)
    np.testing.assert_allclose(w @ Z / w.sum(), 0.0, atol=1e-8)
    np.testing.assert_allclose(clone(space).fit(X, y, sample_weight=w).transform(X), Z, atol=1e-8)


@pytest.mark.parametrize("space", LABELLED, ids=repr)
def test_the_mean_by_weights_of_a_map_that_knows_labels_is_the_origin(space, points):
    X, y, *_ = points
    w = np.random.RandomState(1).uniform(0.1, 3.0, len(X))
    Z = clone(space).fit(X, y, sample_weight=w).transform(X)
    np.testing.assert_allclose(w @ Z / w.sum(), 0.0, atol=1e-8)


def test_predictions_of_counted_points_are_those_of_repeated_rows(points):
    X, y, w, new = points
    space = RidgeKPCA(5, kernel=RBF(gamma=0.3), ridge=0.1)
    A = clone(space).fit(X, y, sample_weight=w).transform(np.vstack([X, new]))
    B = clone(space).fit(np.repeat(X, w, axis=0), np.repeat(y, w)).transform(np.vstack([X, new]))
    # One linear map turns one into the other: a row is left out with all its weight, a copy of it
    # without the others, so their spreads differ.
    np.testing.assert_allclose(A @ np.linalg.lstsq(A, B, rcond=None)[0], B, atol=1e-6)


def test_a_space_places_rows_without_weight_too(points):
    X, y, w, _ = points
    Z = KPCA().fit_transform(X, y, sample_weight=w)
    assert len(Z) == len(X)
    np.testing.assert_allclose(Z, KPCA().fit(X[w > 0], sample_weight=w[w > 0]).transform(X))


def test_zero_weights_beside_a_gram_matrix_are_refused(points):
    X, y, w, _ = points
    K = RBF(gamma=0.3)(X)
    with pytest.raises(ValueError, match="rows and columns of these points"):
        KPCA(kernel="precomputed").fit(K, sample_weight=w)
    with pytest.raises(ValueError, match="rows and columns of these points"):
        Kernelized(LDA(), "precomputed").fit(K, y, sample_weight=w)


# --- kernelized learners ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "space"),
    [
        ("rbf", KPCA()),
        (Laplacian(gamma="median"), KPCA(10)),
        (RBF(gamma=0.3) + 0.1 * Delta(), KPCA()),
    ],
    ids=["rbf", "laplacian", "ridge"],
)
@pytest.mark.parametrize("learner", [LDA(), RCA()], ids=repr)
def test_kernelized_learners_of_counted_points_are_those_of_repeated_rows(
    learner, kernel, space, points
):
    X, y, w, new = points
    a = Kernelized(learner, kernel, space).fit(X, y, sample_weight=w)
    b = Kernelized(learner, kernel, space).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    D = b.pairwise_distances(new)
    np.testing.assert_allclose(a.pairwise_distances(new), D, atol=1e-5 * D.max())


def test_the_kernel_trick_of_counted_points_is_that_of_repeated_rows(points):
    X, y, w, new = points
    a = Kernelized(LDA(), RBF(gamma=0.3), KernelTrick()).fit(X, y, sample_weight=w)
    b = Kernelized(LDA(), RBF(gamma=0.3), KPCA()).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    D = b.pairwise_distances(new)
    np.testing.assert_allclose(a.pairwise_distances(new), D, atol=1e-5 * D.max())


def test_a_kernelized_learner_takes_weights_all_the_way(points):
    X, y, w, new = points
    learner = LDA(class_weight="balanced")
    plain = Kernelized(LDA()).fit(X, y)
    counted = Kernelized(LDA()).fit(X, y, sample_weight=w)
    assert repr(counted.kernel_) != repr(plain.kernel_)
    assert not np.allclose(counted.space_.offset_[:1], plain.space_.offset_[:1])
    assert not np.array_equal(
        Kernelized(learner).fit(X, y).pairwise_distances(new), plain.pairwise_distances(new)
    )
    same = Kernelized(LDA()).fit(X, y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(same.pairwise_distances(new), plain.pairwise_distances(new))
    assert Kernelized(LDA()).fit_transform(X, y, sample_weight=w).shape[0] == len(X)


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("weights", [None, np.ones(400)], ids=["none", "ones"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ones_leave_the_margins_of_easy_classes_to_the_points_between(monkeypatch, weights):
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 300)
    monkeypatch.setattr(_ridge_kpca, "EASY_ROWS", (60, 20))
    y = np.arange(400) % 2
    X = np.random.RandomState(0).standard_normal((400, 3)) + 6.0 * y[:, None]
    metric = Kernelized(LMNN(max_iter=5), LeaveOneOutRidge(max_samples=40), RidgeKPCA(8))
    plain = metric.fit(X, y).pairwise_distances(X[:9])
    assert len(metric.space_.anchors_) == 80
    again = metric.fit(X, y, sample_weight=weights).pairwise_distances(X[:9])
    np.testing.assert_array_equal(again, plain)


def test_a_learner_that_takes_no_weights_is_named(points):
    X, y, w, _ = points
    theirs = NeighborhoodComponentsAnalysis(max_iter=2, random_state=0)
    with pytest.raises(ValueError, match=r"NeighborhoodComponentsAnalysis\.fit takes none"):
        Kernelized(theirs, "rbf").fit(X, y, sample_weight=w)


def test_zero_weights_in_pairs_leave_pairs_out(points):
    X, *_ = points
    w = np.ones(len(X))
    w[3] = 0
    pairs = {"similar": [[0, 1], [3, 4]], "dissimilar": [[5, 6], [1, 9]]}
    a = ITML().fit(X, sample_weight=w, **pairs)
    b = ITML().fit(np.delete(X, 3, axis=0), similar=[[0, 1]], dissimilar=[[4, 5], [1, 8]])
    np.testing.assert_allclose(a.pairwise_distances(X), b.pairwise_distances(X), atol=1e-8)


# --- the choice of the kernel -------------------------------------------------------------------


def test_errors_by_weights_are_those_of_ridge_regression_with_weights(points):
    X, y, *_ = points
    w = np.random.RandomState(1).uniform(0.2, 3.0, len(X))
    K, Y = RBF(gamma=0.3)(X), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    errors = np.empty(Y.shape)
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        A = K[np.ix_(rest, rest)] + 1.0 + np.diag(0.1 / w[rest])
        errors[i] = (K[i, rest] + 1.0) @ np.linalg.solve(A, Y[rest]) - Y[i]
    expected = np.average(np.mean(errors**2, axis=1), weights=w)
    np.testing.assert_allclose(left_out(K, Y, 0.1, roots=np.sqrt(w))[0], expected, rtol=1e-8)


def test_scales_by_weights_go_down_their_own_slope(points):
    X, y, *_ = points
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    roots = np.sqrt(np.random.RandomState(1).uniform(0.2, 3.0, len(X)))
    at = np.append(np.full(4, -1.0), -2.0)
    step = 1e-6 * np.random.RandomState(2).standard_normal(5)
    up, down = (relevance_loss(at + s * step, X, Y, 0.0, roots)[0] for s in (1, -1))
    slope = relevance_loss(at, X, Y, 0.0, roots)[1] @ step
    np.testing.assert_allclose(slope, (up - down) / 2, rtol=1e-4)


def weights_of(w):
    return Weights(w, w)


def test_labels_come_back_without_their_weights():
    weights = weights_of(np.ones(2))
    assert labels_and_weights(WeightedLabels([0, 1], weights)) == ([0, 1], weights)
    assert labels_and_weights([0, 1]) == ([0, 1], None)


# --- metadata routing ---------------------------------------------------------------------------


def test_weights_are_routed_through_pipelines_and_searches(points):
    X, y, w, _ = points
    w = w + 0.5
    with config_context(enable_metadata_routing=True):
        learner = LDA().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        votes = KNeighborsClassifier(3).set_score_request(sample_weight=True)
        model = make_pipeline(scaler, learner, votes).fit(X, y, sample_weight=w)
        Z = StandardScaler().fit_transform(X)
        expected = LDA().fit(Z, y, sample_weight=w)
        np.testing.assert_array_equal(model[1].components_, expected.components_)
        weighed = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"lda__shrinkage": [0.1, 0.5]}, cv=3, scoring=weighed)
        search.fit(X, y, sample_weight=w)
        best = LDA(shrinkage=search.best_params_["lda__shrinkage"]).fit(Z, y, sample_weight=w)
        np.testing.assert_array_equal(search.best_estimator_[1].components_, best.components_)
        with pytest.raises(ValueError, match="sample_weight"):
            make_pipeline(StandardScaler(), LDA(), votes).fit(X, y, sample_weight=w)


def test_weights_are_routed_into_kernelized_learners(points):
    X, y, w, new = points
    expected = Kernelized(LMNN(max_iter=5, tol=1.0), "rbf").fit(X, y, sample_weight=w)
    with config_context(enable_metadata_routing=True):
        learner = LMNN(max_iter=5, tol=1.0).set_fit_request(sample_weight=True)
        model = make_pipeline(Kernelized(learner, "rbf"), KNeighborsClassifier(1))
        model.fit(X, y, sample_weight=w)
        np.testing.assert_array_equal(
            model[0].pairwise_distances(new), expected.pairwise_distances(new)
        )


def test_numbers_may_lose_a_value_to_zero_weights(points):
    X, y, *_ = points
    Kernelized(MLKR(max_iter=3, tol=1.0), "rbf").fit(X, y, sample_weight=(y != 2).astype(float))
