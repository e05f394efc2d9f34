"""Rows of the training table: where a metric keeps them, and how many neighbours vote there."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import KPCA, LDA, LMNN, MLKR, RBF, Kernelized, KernelizedCV
from kernelmetric.inputs import Weights
from kernelmetric.kernelized._places import (
    NotBetterWarning,
    chosen_voters,
    fingerprint,
    kernel_neighbors,
)
from kernelmetric.metric import places_of


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def metric(iris):
    return Kernelized(LMNN()).fit(*iris)


def test_a_metric_keeps_what_fit_transform_gave(iris, metric):
    X, y = iris
    E = Kernelized(LMNN()).fit_transform(X, y)
    np.testing.assert_array_equal(metric.embedding_, E)
    np.testing.assert_array_equal(metric.places(X), E)
    assert np.abs(metric.transform(X) - E).max() > 1e-3


def test_what_places_gives_belongs_to_the_caller(iris, metric):
    X, _ = iris
    before = metric.embedding_.copy()
    metric.places(X)[:] = 0.0
    np.testing.assert_array_equal(metric.embedding_, before)


@pytest.mark.parametrize("change", ["another cell", "another order", "fewer rows"])
def test_another_table_is_transformed(iris, metric, change):
    X = iris[0].copy()
    if change == "another cell":
        X[3, 2] += 1e-6
    X = {"another order": X[::-1], "fewer rows": X[:-1]}.get(change, X)
    np.testing.assert_array_equal(metric.places(X), metric.transform(X))


def test_a_pipeline_and_a_search_know_their_table(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), Kernelized(LMNN()))
    np.testing.assert_array_equal(places_of(pipeline.fit(X, y), X), pipeline[-1].embedding_)
    search = KernelizedCV(LMNN(), kernels=["auto"], cv=2).fit(X, y)
    np.testing.assert_array_equal(search.places(X), search.best_estimator_.embedding_)
    assert search.estimator_.n_neighbors == search.best_estimator_.n_neighbors_


def test_a_space_without_labels_keeps_nothing(iris):
    X, y = iris
    metric = Kernelized(LMNN(), "rbf", KPCA(5)).fit(X, y)
    assert metric.embedding_ is None and metric.n_neighbors_ is None
    np.testing.assert_array_equal(metric.places(X), metric.transform(X))


def test_tables_are_told_by_shape_type_and_every_bit():
    X = np.arange(6.0).reshape(2, 3)
    others = [X.T.copy(), X.reshape(3, 2), X.astype(np.float32), np.where(X == 5, 5 + 1e-15, X)]
    assert len({fingerprint(A) for A in [X, *others]}) == 5
    assert fingerprint(X) == fingerprint(np.asfortranarray(X))


def test_noisy_labels_ask_for_more_neighbours_than_clean_ones():
    rng = np.random.RandomState(0)
    x = rng.uniform(-1, 1, (400, 1))
    clean = (x[:, 0] > 0).astype(int)
    noisy = np.where(rng.uniform(size=400) < 0.3, 1 - clean, clean)
    assert chosen_voters(x, noisy) >= 25
    assert chosen_voters(x, clean) < chosen_voters(x, noisy)


def test_a_rare_class_is_not_outvoted():
    rng = np.random.RandomState(0)
    E = np.concatenate([rng.standard_normal((990, 2)), 8.0 + rng.standard_normal((10, 2))])
    assert chosen_voters(E, np.repeat([0, 1], [990, 10])) < 20


def test_numbers_are_averaged():
    rng = np.random.RandomState(0)
    x = rng.uniform(-1, 1, (400, 1))
    assert chosen_voters(x, x[:, 0]) <= 3
    assert chosen_voters(x, 0.1 * x[:, 0] + rng.standard_normal(400)) >= 40


def test_weights_of_rows_count_in_the_choice():
    rng = np.random.RandomState(0)
    x = rng.uniform(-1, 1, (400, 1))
    y = np.where(x[:, 0] < 0, rng.uniform(size=400) < 0.5, np.floor(8 * x[:, 0]) % 2).astype(int)
    left = np.where(x[:, 0] < 0, 1e6, 1.0)
    assert chosen_voters(x, y, Weights(left, left)) > chosen_voters(
        x, y, Weights(1 / left, 1 / left)
    )


def test_two_rows_have_one_neighbour():
    assert chosen_voters(np.array([[0.0], [1.0]]), [0, 1]) == 1
    assert chosen_voters(np.array([[0.0]]), [0]) is None


def ring(n: int = 160, classes: int = 8, seed: int = 0):
    """Classes around a circle: no direction alone can tell them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle = 2 * np.pi * y / classes
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.08 * rng.normal(size=(n, 2))
    return X, y


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", lambda a, b: float(np.exp(-((a - b) @ (a - b))))]
)
def test_a_metric_that_loses_what_its_kernel_had_says_so(kernel):
    X, y = ring()
    with pytest.warns(NotBetterWarning, match="not better than its kernel: share of wrong classes"):
        Kernelized(LDA(n_components=1), kernel=kernel).fit(X, y)


def test_a_gram_matrix_is_judged_by_its_own_distances():
    X, y = ring()
    with pytest.warns(NotBetterWarning, match="not better than its kernel"):
        Kernelized(LDA(n_components=1), kernel="precomputed").fit(X @ X.T, y)


def test_numbers_are_judged_by_their_squared_errors():
    X, _ = ring()
    with pytest.warns(NotBetterWarning, match="not better than its kernel: mean squared error"):
        Kernelized(MLKR(n_components=1), kernel="rbf").fit(X, X)


@pytest.mark.slow
@pytest.mark.every(3)
@pytest.mark.parametrize("kernel", ["auto", "rbf", "linear"])
def test_a_metric_as_good_as_its_kernel_says_nothing(kernel):
    X, y = ring()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Kernelized(LMNN(), kernel=kernel).fit(X, y)


def test_neighbours_by_a_kernel_are_those_of_its_feature_space():
    X, _ = ring(40)
    kernel = RBF(2.0).bind(X)
    K = kernel(X)
    D2 = np.diag(K)[:, None] + np.diag(K) - 2 * K
    np.fill_diagonal(D2, np.inf)
    rows = np.array([3, 17, 39])
    found = kernel_neighbors(kernel, X, rows, 5)
    assert np.array_equal(found, np.argsort(D2[rows], axis=1)[:, :5])


def test_of_the_candidates_of_a_search_only_the_best_says_so():
    X, y = ring(96)
    search = KernelizedCV(LDA(n_components=1), kernels=["rbf", "linear"], cv=2)
    with pytest.warns(NotBetterWarning) as said:
        search.fit(X, y)
    assert len([one for one in said if one.category is NotBetterWarning]) == 1
