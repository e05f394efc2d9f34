"""Kernelized as a citizen: any learner, any pipeline, and Fig. 2 of the paper."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from half_of_product import half_of
from kernelmetric import (
    DNE,
    KPCA,
    LMNN,
    NCA,
    RBF,
    Kernelized,
    KernelTrick,
    Linear,
    Nystroem,
    Pairs,
    Polynomial,
    RandomFeatures,
    memory_budget,
)
from kernelmetric.compute.reductions import class_neighbors
from kernelmetric.datasets import make_fig2_circles, make_fig2_hyperbolas
from kernelmetric.kernels import Precomputed
from kernelmetric.selection import RidgeKPCA

OPTIONAL = ["transform", "fit_transform", "predict", "predict_proba", "decision_function", "score"]

# --- the theorem, seen: Fig. 2 of the paper -----------------------------------------------------


def fig2_accuracy(metric, make):
    """Mean 1-NN accuracy on 400 points of the metric learned from 40, over 10 draws."""
    scores = []
    for seed in range(10):
        X, y = make(40, random_state=seed)
        X_new, y_new = make(400, random_state=1000 + seed)
        metric = clone(metric)
        knn = KNeighborsClassifier(1).fit(metric.fit_transform(X, y), y)
        scores.append(knn.score(metric.transform(X_new), y_new))
    return np.mean(scores)


@pytest.mark.every(4)
@pytest.mark.parametrize(
    ("case", "make"),
    half_of(
        [(NCA(), 0.98), (LMNN(), 0.98), (DNE(), 0.97)], [make_fig2_circles, make_fig2_hyperbolas]
    ),
)
def test_the_quadratic_kernel_sees_what_no_linear_map_does(case, make):
    learner, at_least = case
    assert fig2_accuracy(learner, make) <= 0.93
    kernel = Polynomial(degree=2, coef0=0)
    assert fig2_accuracy(Kernelized(learner, kernel), make) >= at_least


# --- the parts ----------------------------------------------------------------------------------


def test_kernelized_is_kernel_then_space_then_learner(labelled, fresh):
    X, y = labelled
    metric = Kernelized(LMNN(), RBF(gamma=0.4), KPCA(5)).fit(X, y)
    space = KPCA(5, kernel=RBF(gamma=0.4)).fit(X)
    learner = LMNN().fit(space.transform(X), y)
    expected = learner.transform(space.transform(fresh))
    np.testing.assert_allclose(np.abs(metric.transform(fresh)), np.abs(expected), atol=1e-6)
    assert metric.kernel_.gamma == 0.4
    assert metric.space_.rank_ == 5
    np.testing.assert_array_equal(metric.components_, metric.learner_.components_)


def test_a_fit_changes_no_parameter(labelled):
    kernel, space, learner = RBF(gamma="median"), KPCA(5), NCA(2)
    metric = Kernelized(learner, kernel, space).fit(*labelled)
    assert metric.kernel is kernel
    assert kernel.gamma == "median"
    assert metric.space is space
    assert space.kernel is None
    assert not hasattr(space, "rank_")
    assert metric.learner is learner
    assert not hasattr(learner, "components_")


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "kernel",
    ["rbf", "auto", "poly", "linear", "laplacian", "cosine", "sigmoid", rbf_kernel],
)
def test_kernels_may_be_names_and_functions(kernel, labelled, fresh):
    X, y = labelled
    try:
        metric = Kernelized(DNE(2), kernel).fit(X, y)
    except ValueError as error:
        assert kernel == "sigmoid"  # the one that is not positive semi-definite
        assert "positive semi-definite" in str(error)
    else:
        assert np.isfinite(metric.transform(fresh)).all()


def test_the_automatic_space_goes_by_size_alone(labelled):
    X, y = labelled
    for learner, space in ((DNE(2), RidgeKPCA), (PCA(2), KPCA)):
        metric = Kernelized(learner, "rbf", random_state=0).fit(X, y)
        with memory_budget("5KB"):
            small = Kernelized(learner, "rbf", random_state=0).fit(X, y)
        for fitted in (metric, small):
            assert isinstance(fitted.space_, space)
            assert fitted.space_.n_components == ("auto" if space is RidgeKPCA else None)
        D = metric.pairwise_distances(X)
        np.testing.assert_allclose(small.pairwise_distances(X), D, atol=1e-6)


def test_neighbours_may_come_from_the_input_space(labelled):
    X, y = labelled
    kernel = Polynomial(degree=2, coef0=0)  # x and -x coincide in its feature space
    nearest = class_neighbors(X, y, 3, same=True)[0]
    for learner in (LMNN(), DNE()):
        by_feature = Kernelized(learner, kernel, KPCA()).fit(X, y)
        by_input = Kernelized(learner, kernel, KPCA(), neighbors="input").fit(X, y)
        Z = by_feature.space_.transform(X)
        assert (class_neighbors(Z, y, 3, same=True)[0] != nearest).any()
        expected = clone(learner).fit(Z, y, neighbors=X)
        assert by_input.learner_.loss_ == pytest.approx(expected.loss_, rel=1e-6)
        assert by_feature.learner_.loss_ != pytest.approx(expected.loss_, rel=1e-3)


def test_further_arguments_reach_the_learner(labelled):
    X, y = labelled
    targets = class_neighbors(X, y, 3, same=True)[0]
    given = Kernelized(LMNN(), Polynomial(coef0=0)).fit(X, y, neighbors=targets)
    same = Kernelized(LMNN(), Polynomial(coef0=0), neighbors="input").fit(X, y)
    np.testing.assert_array_equal(given.components_, same.components_)


# --- other people's estimators ------------------------------------------------------------------


def test_scikit_learns_nca_is_kernelized_too(labelled, fresh):
    X, y = labelled
    foreign = NeighborhoodComponentsAnalysis(2, init="pca", random_state=0, max_iter=30)
    metric = Kernelized(foreign, RBF(gamma=0.3)).fit(X, y)
    assert metric.transform(fresh).shape == (11, 2)
    assert metric.components_.shape == (2, metric.space_.rank_)
    assert metric.pairwise_distances(fresh).shape == (11, 11)
    assert metric.get_feature_names_out().shape == (2,)


def test_a_kernelized_classifier_classifies(labelled):
    X, y = make_fig2_circles(80, random_state=0)
    X_new, y_new = make_fig2_circles(200, random_state=1)
    linear = LinearDiscriminantAnalysis().fit(X, y)
    kernelized = Kernelized(LinearDiscriminantAnalysis(), Polynomial(degree=2)).fit(X, y)
    assert linear.score(X_new, y_new) < 0.7
    assert kernelized.score(X_new, y_new) > 0.97
    assert np.mean(kernelized.predict(X_new) == y_new) == kernelized.score(X_new, y_new)
    np.testing.assert_allclose(kernelized.predict_proba(X_new).sum(axis=1), 1)
    assert kernelized.decision_function(X_new).shape == (200,)
    np.testing.assert_array_equal(kernelized.classes_, [0, 1])
    assert is_classifier(kernelized)


def test_a_kernelized_clusterer_clusters(labelled):
    X, y = labelled
    X = X + 4 * y[:, None]
    linear = KMeans(3, n_init=10, random_state=0).fit(X)
    metric = Kernelized(KMeans(3, n_init=10, random_state=0), Linear()).fit(X)
    assert adjusted_rand_score(metric.labels_, linear.labels_) == 1
    assert adjusted_rand_score(metric.labels_, y) > 0.9
    np.testing.assert_array_equal(metric.predict(X), metric.labels_)
    assert metric.transform(X).shape == (30, 3)
    assert is_clusterer(metric)


def test_a_kernelized_ridge_is_centred_kernel_ridge_regression(labelled, fresh):
    X, _ = labelled
    target = np.sin(X[:, 0]) + 0.5
    metric = Kernelized(Ridge(alpha=0.1), RBF(gamma=0.3), KPCA()).fit(X, target)
    K, K_new = rbf_kernel(X, gamma=0.3), rbf_kernel(fresh, X, gamma=0.3)
    H = np.eye(len(X)) - 1 / len(X)
    dual = np.linalg.solve(H @ K @ H + 0.1 * np.eye(len(X)), target - target.mean())
    expected = (K_new - K.mean(axis=0)) @ H @ dual + target.mean()
    np.testing.assert_allclose(metric.predict(fresh), expected, atol=1e-6)
    assert is_regressor(metric)
    assert metric.score(X, target) > 0.8


def test_an_unsupervised_transformer_needs_no_labels(labelled, fresh):
    X, _ = labelled
    metric = Kernelized(PCA(2), RBF(gamma=0.3)).fit(X)
    expected = KPCA(2, kernel=RBF(gamma=0.3)).fit(X).transform(fresh)
    np.testing.assert_allclose(np.abs(metric.transform(fresh)), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("learner", "methods"),
    [
        (NCA(), ["transform", "fit_transform", "score"]),
        (DNE(), ["transform", "fit_transform", "score"]),
        (Ridge(), ["predict", "score"]),
        (KMeans(2), ["transform", "fit_transform", "predict", "score"]),
        (LogisticRegression(), ["predict", "predict_proba", "decision_function", "score"]),
        (LinearDiscriminantAnalysis(), OPTIONAL),
    ],
    ids=repr,
)
def test_a_method_exists_where_the_learner_has_it(learner, methods, labelled):
    metric = Kernelized(learner)
    assert [name for name in OPTIONAL if hasattr(metric, name)] == methods
    metric.fit(*labelled)
    assert [name for name in OPTIONAL if hasattr(metric, name)] == methods


# --- searching and validating -------------------------------------------------------------------


@pytest.mark.slow
def test_everything_is_searched_through_a_pipeline(labelled):
    X, y = labelled
    pipeline = make_pipeline(
        StandardScaler(),
        Kernelized(NCA(2, tol=1e-2), RBF(gamma=1.0), KPCA(8)),
        KNeighborsClassifier(1),
    )
    grid = {
        "kernelized__kernel__gamma": [0.01, 1.0],
        "kernelized__learner__n_components": [1, 2],
        "kernelized__space__n_components": [4, 8],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    best = search.best_estimator_["kernelized"]
    assert best.kernel_.gamma == search.best_params_["kernelized__kernel__gamma"]
    assert best.learner_.n_components == search.best_params_["kernelized__learner__n_components"]
    assert best.space_.rank_ == search.best_params_["kernelized__space__n_components"]


def test_cross_validation_cuts_a_precomputed_kernel(labelled):
    X, y = labelled
    kernel = RBF(gamma=0.3)
    by_kernel = make_pipeline(Kernelized(DNE(2), kernel), KNeighborsClassifier(1))
    precomputed = make_pipeline(Kernelized(DNE(2), Precomputed()), KNeighborsClassifier(1))
    assert get_tags(precomputed).input_tags.pairwise
    assert not get_tags(by_kernel).input_tags.pairwise
    expected = cross_val_score(by_kernel, X, y, cv=4)
    np.testing.assert_allclose(cross_val_score(precomputed, kernel(X), y, cv=4), expected)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["precomputed", Precomputed()], ids=repr)
def test_a_precomputed_kernel_is_the_kernel(name, labelled, fresh):
    X, y = labelled
    kernel = RBF(gamma=0.3)
    expected = Kernelized(LMNN(), kernel).fit(X, y)
    metric = Kernelized(LMNN(), name).fit(kernel(X), y)
    np.testing.assert_allclose(  # the last bits of K grow along the descent
        metric.pairwise_distances(kernel(fresh, X)), expected.pairwise_distances(fresh), atol=1e-5
    )


@pytest.mark.every(4)
def test_clones_and_pickles_are_the_same(space, labelled, fresh):
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space, random_state=0).fit(*labelled)
    again = pickle.loads(pickle.dumps(metric))
    np.testing.assert_array_equal(again.transform(fresh), metric.transform(fresh))
    copy = clone(metric)
    assert not hasattr(copy, "space_")
    np.testing.assert_array_equal(copy.fit(*labelled).transform(fresh), metric.transform(fresh))


def test_kernels_and_learners_are_shown_in_the_repr():
    text = repr(Kernelized(LMNN(2), RBF(gamma=0.5), Nystroem(50)))
    assert all(part in text for part in ("LMNN(n_components=2)", "RBF(gamma=0.5)", "Nystroem"))


# --- frames, sparse matrices, metadata ----------------------------------------------------------


@pytest.mark.every(2)
@pytest.mark.parametrize("how", ["set_output", "config"])
def test_frames_go_in_and_come_out(how, labelled, fresh):
    pd = pytest.importorskip("pandas")
    X, y = labelled
    names = ["a", "b", "c", "d"]
    frame, new = pd.DataFrame(X, columns=names), pd.DataFrame(fresh, columns=names)
    new.index = new.index + 100
    for metric in (NCA(2), DNE(2), Kernelized(NCA(2)), Kernelized(DNE(2), space=KernelTrick())):
        plain = clone(metric).fit(frame, y)
        expected = plain.transform(new)
        assert isinstance(expected, np.ndarray)
        name = type(metric).__name__.lower()
        assert plain.feature_names_in_.tolist() == names
        assert plain.get_feature_names_out().tolist() == [f"{name}0", f"{name}1"]
        if how == "set_output":
            metric.set_output(transform="pandas")
            results = metric.fit(frame, y).transform(new), metric.fit_transform(frame, y)
        else:
            with config_context(transform_output="pandas"):
                results = metric.fit(frame, y).transform(new), metric.fit_transform(frame, y)
                D = metric.pairwise_distances(new)
            np.testing.assert_allclose(D, plain.pairwise_distances(new))
        for result, index in zip(results, (new.index, frame.index), strict=True):
            assert isinstance(result, pd.DataFrame)
            assert result.columns.tolist() == [f"{name}0", f"{name}1"]
            assert result.index.equals(index)
        np.testing.assert_allclose(results[0].to_numpy(), expected, atol=1e-10)
        np.testing.assert_allclose(metric.pairwise_distances(new), plain.pairwise_distances(new))
        with pytest.raises(ValueError, match="feature names"):
            plain.transform(new.rename(columns={"a": "z"}))


@pytest.mark.every(3)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("kernel", [RBF(gamma=0.3), Linear(), Polynomial()], ids=repr)
def test_sparse_points_are_dense_points(make, kernel, labelled, fresh):
    X, y = labelled
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    for neighbors in ("feature", "input"):
        expected = Kernelized(DNE(2), kernel, neighbors=neighbors).fit(X, y)
        metric = Kernelized(DNE(2), kernel, neighbors=neighbors).fit(make(X), y)
        np.testing.assert_allclose(
            metric.pairwise_distances(make(fresh)), expected.pairwise_distances(fresh), atol=1e-6
        )


def test_weights_reach_the_learner(labelled, fresh):
    X, _ = labelled
    target, weights = X[:, 0] ** 2, np.arange(30.0)
    space = KPCA(kernel=RBF(gamma=0.3)).fit(X)
    expected = Ridge().fit(space.transform(X), target, sample_weight=weights)
    metric = Kernelized(Ridge(), RBF(gamma=0.3), KPCA()).fit(X, target, sample_weight=weights)
    np.testing.assert_allclose(
        metric.predict(fresh), expected.predict(space.transform(fresh)), atol=1e-6
    )


def test_metadata_are_routed_to_the_learner_that_asks(labelled, fresh):
    X, _ = labelled
    target, weights = X[:, 0] ** 2, np.arange(30.0)
    space = KPCA(kernel=RBF(gamma=0.3)).fit(X)
    expected = Ridge().fit(space.transform(X), target, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        asking = Kernelized(Ridge().set_fit_request(sample_weight=True), RBF(gamma=0.3), KPCA())
        asking.fit(X, target, sample_weight=weights)
        Kernelized(NCA(2)).fit(*labelled)
        with pytest.raises(ValueError, match="sample_weight"):
            Kernelized(Ridge()).fit(X, target, sample_weight=weights)
    np.testing.assert_allclose(
        asking.predict(fresh), expected.predict(space.transform(fresh)), atol=1e-6
    )


def test_random_features_run_through_a_search(labelled):
    X, y = labelled
    metric = Kernelized(DNE(2), RBF(), RandomFeatures(50, random_state=0))
    search = GridSearchCV(
        make_pipeline(metric, KNeighborsClassifier(1)),
        {"kernelized__space__n_features": [10, 100]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 1 / 3


def test_scikit_learns_settings_are_left_alone(labelled):
    before = sklearn.get_config()
    Kernelized(NCA(2)).fit_transform(*labelled)
    assert sklearn.get_config() == before


def test_pairs_are_refused_by_a_learner_from_labels(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Got pairs, but LMNN learns from labels: pass y"):
        Kernelized(LMNN()).fit(X, y, pairs=Pairs([[0, 3]], [[0, 1]], len(X)))
