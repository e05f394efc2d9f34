"""Graphs of neighbours: symmetric, whatever the points, their number and where they came from."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from kernelmetric import NCA, memory_budget
from kernelmetric.graphs import neighbor_graph

K = 5


@pytest.fixture(scope="module")
def X():
    return np.random.RandomState(0).standard_normal((80, 3))


@pytest.fixture(scope="module")
def directed(X):
    return kneighbors_graph(X, K).toarray()


@pytest.mark.parametrize(
    ("symmetrize", "of"),
    [("union", np.maximum), ("mutual", np.minimum), ("mean", lambda A, B: (A + B) / 2)],
)
def test_the_graph_is_that_of_scikit_learn_made_symmetric(symmetrize, of, X, directed):
    W = neighbor_graph(X, K, symmetrize=symmetrize)
    np.testing.assert_array_equal(W.toarray(), of(directed, directed.T))


def test_points_of_another_library_have_the_same_graph(X):
    xp = pytest.importorskip("array_api_strict")
    W = neighbor_graph(xp.asarray(X), K)
    np.testing.assert_array_equal(W.toarray(), neighbor_graph(X, K).toarray())


def test_gaussian_weights_have_the_median_for_their_unit(X, directed):
    W = neighbor_graph(X, K, weights="gaussian", symmetrize="mean")
    d = kneighbors_graph(X, K, mode="distance").toarray()
    expected = directed * np.exp(-(d**2) / np.median(d[directed > 0] ** 2))
    np.testing.assert_allclose(W.toarray(), (expected + expected.T) / 2, atol=1e-12)


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_units_do_not_matter(weights, X):
    one, other = (neighbor_graph(c * X, K, weights=weights).toarray() for c in (1, 1000))
    np.testing.assert_allclose(one, other)


def test_a_small_budget_changes_nothing(X):
    with memory_budget("4 KB"):
        blocked = neighbor_graph(X, K)
    np.testing.assert_array_equal(blocked.toarray(), neighbor_graph(X, K).toarray())


def test_a_metric_measures_the_distances(X):
    metric = NCA(2).fit(X, (X[:, 0] > 0).astype(int))
    W = neighbor_graph(X, K, metric=metric)
    np.testing.assert_array_equal(W.toarray(), neighbor_graph(metric.transform(X), K).toarray())


@pytest.mark.parametrize("with_themselves", [True, False])
def test_neighbours_found_elsewhere_give_the_same_graph(with_themselves, X):
    search = NearestNeighbors(n_neighbors=K + 3).fit(X)
    neighbors = search.kneighbors(X) if with_themselves else search.kneighbors()
    for weights in ("binary", "gaussian"):
        W = neighbor_graph(None, K, weights=weights, neighbors=neighbors)
        expected = neighbor_graph(X, K, weights=weights)
        np.testing.assert_allclose(W.toarray(), expected.toarray(), atol=1e-9)


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_duplicates_are_neighbours_of_weight_one(weights, X):
    W = neighbor_graph(np.vstack([X, X]), K, weights=weights)
    np.testing.assert_allclose(W.diagonal(80), 1, atol=1e-12)
    assert W.diagonal().max() == 0


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_points_that_all_coincide_make_a_graph_all_the_same(weights):
    W = neighbor_graph(np.ones((6, 2)), 2, weights=weights)
    assert np.all(W.data == 1)
    assert np.all(W.sum(axis=1) >= 2)


def test_mutual_neighbours_may_leave_a_point_alone():
    X = np.array([[0.0], [0.1], [0.2], [9.0]])
    W = neighbor_graph(X, 1, symmetrize="mutual")
    codes = connected_components(W, directed=False)[1]
    assert np.bincount(codes).tolist() == [2, 1, 1]
    assert W[[3]].nnz == 0


def test_all_others_are_neighbours_when_there_are_fewer(X):
    W = neighbor_graph(X[:4], 10)
    np.testing.assert_array_equal(W.toarray(), 1 - np.eye(4))


def test_lists_and_whole_numbers_are_points_too():
    assert neighbor_graph([[0], [1], [5]], 1).toarray().tolist() == [
        [0, 1, 0],
        [1, 0, 1],
        [0, 1, 0],
    ]


def test_a_point_alone_has_no_neighbours(X):
    assert neighbor_graph(X[:1], 3).nnz == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"X": np.full((4, 2), np.nan)}, "X contains NaN"),
        ({"X": np.zeros(4)}, "Expected 2D array"),
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"weights": "heat"}, "weights='heat', but expected 'binary' or"),
        ({"symmetrize": "max"}, "symmetrize='max', but expected 'union'"),
        ({"neighbors": (np.ones((80, 9)), np.ones((80, 9)))}, "integer indices"),
        ({"neighbors": (np.ones((80, 9)), np.full((80, 9), 80))}, "neighbour 80 of 80 points"),
        ({"neighbors": (np.ones((80, 2)), np.ones((80, 2), int))}, "lists of 1 neighbours"),
    ],
)
def test_bad_input_is_a_sentence(options, match, X):
    with pytest.raises(ValueError, match=match):
        neighbor_graph(**{"X": X, "n_neighbors": K} | options)
