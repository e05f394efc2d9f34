"""Reductions over row blocks: each against its definition, its slope, and other libraries."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors, NeighborhoodComponentsAnalysis

from kernelmetric import memory_budget
from kernelmetric.compute._budget import current_budget, row_blocks
from kernelmetric.compute.reductions import (
    class_neighbors,
    lmnn_hinge,
    median_squared_distance,
    mine_impostors,
    nca_loss,
    nearest_neighbors,
    squared_distances,
)
from kernelmetric.compute.reductions._listed import lmnn_hinge_on
from kernelmetric.graphs import discriminant_graph, laplacian, target_neighbors

K = 3


@pytest.fixture
def points(labelled):
    """Points sorted by class, one class of two members only."""
    X, y = labelled
    keep = (y != 1) | (np.cumsum(y == 1) <= 2)
    X, y = X[keep], y[keep]
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


@pytest.fixture
def L():
    return np.random.RandomState(2).standard_normal((2, 4))


@pytest.fixture
def targets(points):
    X, codes = points
    return class_neighbors(X, codes, K, same=True)[0]


def nca_by_definition(L, X, y):
    value = 0.0
    E = X @ L.T
    for i in range(len(X)):
        weights = [0.0 if j == i else np.exp(-np.sum((E[i] - E[j]) ** 2)) for j in range(len(X))]
        value -= sum(w for w, label in zip(weights, y, strict=True) if label == y[i]) / sum(weights)
    return value


def hinge(t, smoothing):
    if t <= 0:
        return 0.0
    if smoothing and t < smoothing:
        return t**2 / (2 * smoothing)
    return t - smoothing / 2


def lmnn_by_definition(E, targets, y, c, smoothing):
    d = cdist(E, E, "sqeuclidean")
    value = 0.0
    for i in range(len(E)):
        for j in targets[i]:
            if j < 0:
                continue
            value += d[i, j]
            for impostor in range(len(E)):
                if y[impostor] != y[i]:
                    value += c * hinge(1 + d[i, j] - d[i, impostor], smoothing)
    return value


# --- NCA ----------------------------------------------------------------------------------------


def test_the_nca_loss_is_its_definition(points, L):
    X, y = points
    assert nca_loss(L, X, y)[0] == pytest.approx(nca_by_definition(L, X, y), rel=1e-12)


def test_the_nca_loss_is_that_of_scikit_learn(points, L):
    X, y = points
    theirs = NeighborhoodComponentsAnalysis()
    theirs.n_iter_ = 0
    same = y[:, None] == y[None, :]
    value, gradient = theirs._loss_grad_lbfgs(L.ravel(), X, same, -1.0)
    ours, slope = nca_loss(L, X, y)
    assert ours == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(slope.ravel(), gradient, rtol=1e-7, atol=1e-10)


def test_the_nca_gradient_is_the_slope(points, L):
    X, y = points
    error = check_grad(
        lambda x: nca_loss(x.reshape(L.shape), X, y)[0],
        lambda x: nca_loss(x.reshape(L.shape), X, y)[1].ravel(),
        L.ravel(),
    )
    assert error < 1e-5 * np.linalg.norm(nca_loss(L, X, y)[1])


def test_nca_survives_points_that_are_far_from_each_other(points, L):
    X, y = points
    value, gradient = nca_loss(1e3 * L, X, y)
    assert -len(X) <= value <= 0
    assert np.isfinite(gradient).all()


def test_unsorted_classes_are_refused(points, L, targets):
    X, y = points
    with pytest.raises(ValueError, match=r"unsorted codes.*sorted by class"):
        nca_loss(L, X, y[::-1])
    with pytest.raises(ValueError, match=r"unsorted codes.*sorted by class"):
        lmnn_hinge(X, X, targets, y[::-1], 1.0)


# --- LMNN ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("c", [0.3, 1.0])
def test_the_lmnn_objective_is_its_definition(points, L, targets, c, smoothing):
    X, y = points
    E = X @ L.T
    expected = lmnn_by_definition(E, targets, y, c, smoothing)
    assert (targets == -1).any()
    assert lmnn_hinge(E, E, targets, y, c, smoothing)[0] == pytest.approx(expected, rel=1e-12)


def test_the_smoothed_hinge_is_at_most_half_a_corner_below(points, L, targets):
    X, y = points
    E = X @ L.T
    plain = lmnn_hinge(E, E, targets, y, 1.0)[0]
    for corner in (1.0, 0.1, 0.01):
        smooth = lmnn_hinge(E, E, targets, y, 1.0, corner)[0]
        active = plain - lmnn_hinge(E, E, targets, y, 0.0)[0]
        n_triplets = np.sum(targets >= 0) * len(X)
        assert 0 < plain - smooth <= min(active, corner / 2 * n_triplets)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_lmnn_gradient_in_the_map_is_the_slope(points, L, targets, smoothing):
    X, y = points

    def value(x):
        E = X @ x.reshape(L.shape).T
        return lmnn_hinge(E, E, targets, y, 0.7, smoothing)[0]

    def gradient(x):
        E = X @ x.reshape(L.shape).T
        return (2 * lmnn_hinge(E, E, targets, y, 0.7, smoothing)[1].T @ X).ravel()

    error = check_grad(value, gradient, L.ravel())
    assert error < 1e-5 * np.linalg.norm(gradient(L.ravel()))


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_lmnn_gradient_in_the_matrix_is_the_slope(points, targets, smoothing):
    X, y = points
    M = np.diag([1.0, 0.5, 2.0, 1.5]) + 0.1

    def value(M):
        E = X @ np.linalg.cholesky(M)
        return lmnn_hinge(E, E, targets, y, 0.7, smoothing)[0]

    E = X @ np.linalg.cholesky(M)
    G = X.T @ lmnn_hinge(E, X, targets, y, 0.7, smoothing)[1]
    rng = np.random.RandomState(0)
    for _ in range(5):
        direction = rng.standard_normal((4, 4))
        direction += direction.T
        step = 1e-6 * direction
        slope = (value(M + step) - value(M - step)) / 2e-6
        assert slope == pytest.approx(np.sum(G * direction), rel=1e-5, abs=1e-4)


def test_mining_gives_the_exact_objective_and_every_active_impostor(points, L, targets):
    X, y = points
    E = X @ L.T
    exact, pairs = mine_impostors(E, targets, y, 0.7)
    assert exact == pytest.approx(lmnn_hinge(E, E, targets, y, 0.7)[0], rel=1e-12)
    d = cdist(E, E, "sqeuclidean")
    reach = np.where(targets >= 0, np.take_along_axis(d, targets, axis=1), -np.inf).max(axis=1) + 1
    active = np.argwhere((d < reach[:, None]) & (y[:, None] != y[None, :]))
    assert len(active)
    assert set(map(tuple, active.tolist())) <= set(map(tuple, pairs.tolist()))


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_objective_on_every_active_impostor_is_the_objective(points, L, targets, smoothing):
    X, y = points
    E = X @ L.T
    _, pairs = mine_impostors(E, targets, y, 0.7)
    value, product = lmnn_hinge_on(pairs, E, X, targets, 0.7, smoothing)
    expected, expected_product = lmnn_hinge(E, X, targets, y, 0.7, smoothing)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(product, expected_product, atol=1e-10)
    fewer, _ = lmnn_hinge_on(pairs[: len(pairs) // 2], E, X, targets, 0.7, smoothing)
    assert fewer < expected


# --- neighbours and graphs ----------------------------------------------------------------------


def test_neighbours_are_those_of_scikit_learn(points, fresh):
    X, _ = points
    theirs = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(X)
    for ours, expected in [
        (nearest_neighbors(X, 5), theirs.kneighbors()),
        (nearest_neighbors(X, 5, queries=fresh), theirs.kneighbors(fresh)),
    ]:
        np.testing.assert_array_equal(ours[0], expected[1])
        np.testing.assert_allclose(np.sqrt(ours[1]), expected[0], atol=1e-10)


def test_neighbours_survive_a_large_offset(points):
    X, _ = points
    indices, _ = nearest_neighbors(X + 1e5, 5)
    np.testing.assert_array_equal(indices, nearest_neighbors(X, 5)[0])


def test_a_duplicate_is_a_neighbour_and_the_point_itself_is_not():
    X = np.array([[0.0], [0.0], [1.0]])
    indices, distances = nearest_neighbors(X, 2)
    np.testing.assert_array_equal(indices, [[1, 2], [0, 2], [0, 1]])
    np.testing.assert_allclose(distances, [[0, 1], [0, 1], [1, 1]], atol=1e-12)


def test_missing_neighbours_are_minus_one():
    indices, distances = nearest_neighbors(np.array([[0.0], [1.0]]), 3)
    np.testing.assert_array_equal(indices, [[1, -1, -1], [0, -1, -1]])
    np.testing.assert_array_equal(distances[:, 1:], np.inf)


@pytest.mark.parametrize("same", [True, False])
def test_class_neighbours_are_the_nearest_of_their_kind(points, same):
    X, y = points
    indices, distances = class_neighbors(X, y, K, same=same)
    d = cdist(X, X, "sqeuclidean")
    for i in range(len(X)):
        candidates = [j for j in range(len(X)) if j != i and (y[j] == y[i]) == same]
        expected = sorted(candidates, key=lambda j: d[i, j])[:K]
        expected += [-1] * (K - len(expected))
        assert indices[i].tolist() == expected
        found = indices[i] >= 0
        np.testing.assert_allclose(distances[i][found], d[i, indices[i][found]], atol=1e-10)
        assert np.isinf(distances[i][~found]).all()


def test_the_discriminant_graph_is_its_definition(labelled):
    X, y = labelled
    graph = discriminant_graph(X, y, 2)
    W = graph.toarray()
    d = cdist(X, X)
    expected = np.zeros_like(W)
    for i in range(len(X)):
        for same, sign in ((True, 1), (False, -1)):
            candidates = [j for j in range(len(X)) if j != i and (y[j] == y[i]) == same]
            for j in sorted(candidates, key=lambda j: d[i, j])[:2]:
                expected[i, j] = expected[j, i] = sign
    np.testing.assert_array_equal(W, expected)
    z = np.random.RandomState(0).standard_normal(len(X))
    quadratic = 0.5 * np.sum(W * (z[:, None] - z[None, :]) ** 2)
    assert z @ (laplacian(graph) @ z) == pytest.approx(quadratic)


def test_small_classes_warn_and_keep_what_they_have(points):
    X, y = points
    with pytest.warns(UserWarning, match=r"1 class\(es\).*n_neighbors=3.*smallest: 2"):
        targets = target_neighbors(X, y, 3)
    two = np.flatnonzero(y == 1)
    np.testing.assert_array_equal(targets[two], [[two[1], -1, -1], [two[0], -1, -1]])


# --- distances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squared_distances_do_not_cancel_far_from_the_origin(points, fresh, dtype):
    X, _ = points
    X, Y = (X + 1000).astype(dtype), (fresh + 1000).astype(dtype)
    exact = cdist(X.astype(np.float64), Y.astype(np.float64), "sqeuclidean")
    result = squared_distances(X, Y)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, exact, rtol=2e-4 if dtype == np.float32 else 1e-10)
    own = squared_distances(X)
    np.testing.assert_array_equal(np.diag(own), 0)
    assert (own >= 0).all()


def test_the_median_distance_leaves_duplicates_out(points):
    X, _ = points
    i, j = np.triu_indices(len(X), 1)
    exact = np.median(np.sum((X[i] - X[j]) ** 2, axis=1))
    assert median_squared_distance(X) == pytest.approx(exact)
    half = np.zeros((30, 1))
    half[20:] = np.arange(1, 11)[:, None] * 1e3
    assert median_squared_distance(half) > 1e5


def test_the_median_distance_of_many_points_is_close():
    X = np.random.RandomState(0).standard_normal((2000, 3))
    exact = np.median(cdist(X, X, "sqeuclidean")[np.triu_indices(2000, 1)])
    assert median_squared_distance(X) == pytest.approx(exact, rel=0.03)


# --- memory -------------------------------------------------------------------------------------


def reductions(X, y, L, targets):
    E = X @ L.T
    value, gradient = nca_loss(L, X, y)
    pulled, product = lmnn_hinge(E, X, targets, y, 0.7, 0.1)
    mined, pairs = mine_impostors(E, targets, y, 0.7)
    return {
        "nca": value,
        "nca gradient": gradient,
        "lmnn": pulled,
        "lmnn product": product,
        "mined": mined,
        "pairs": pairs,
        "neighbours": nearest_neighbors(X, K)[0],
        "own": class_neighbors(X, y, K, same=True)[0],
        "others": class_neighbors(X, y, K, same=False)[0],
    }


@pytest.mark.parametrize("budget", ["1B", "3KB", "20KB"])
def test_blocks_change_nothing(points, L, targets, budget):
    expected = reductions(*points, L, targets)
    with memory_budget(budget):
        blocked = reductions(*points, L, targets)
    for name, result in expected.items():
        np.testing.assert_allclose(blocked[name], result, rtol=1e-10, atol=1e-10, err_msg=name)


def test_rows_are_cut_to_the_budget():
    with memory_budget("1KB"):
        blocks = list(row_blocks(25, 100))
        assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(25))
        assert [b.stop - b.start for b in blocks] == [8, 9, 8]  # at most 10, and alike in size
        assert max(b.stop - b.start for b in row_blocks(25, 100, most=6)) <= 6
        assert [b.stop - b.start for b in row_blocks(2, 1e9)] == [1, 1]
    assert list(row_blocks(0, 100)) == []


def test_the_budget_comes_from_the_context_then_from_the_environment(monkeypatch):
    monkeypatch.setenv("KERNELMETRIC_MEMORY", "7MB")
    with memory_budget(1000):
        with memory_budget("2 KB"):
            assert current_budget() == 2000
        assert current_budget() == 1000
    assert current_budget() == 7_000_000
    monkeypatch.delenv("KERNELMETRIC_MEMORY")
    assert current_budget() > 0


@pytest.mark.parametrize("size", ["much", "5 XB", 0, -1, ""])
def test_a_budget_must_be_a_number_of_bytes(size):
    with pytest.raises(ValueError, match=r"Got a memory budget of .*expected"), memory_budget(size):
        pass


# --- other precisions and libraries -------------------------------------------------------------


def test_float32_agrees_with_float64(points, L, targets):
    X, y = points
    wide = reductions(X, y, L, targets)
    narrow = reductions(X.astype(np.float32), y, L.astype(np.float32), targets)
    assert narrow["nca gradient"].dtype == narrow["lmnn product"].dtype == np.float32
    for name in ("nca", "nca gradient", "lmnn", "lmnn product", "mined", "neighbours"):
        scale = np.abs(wide[name]).max()
        np.testing.assert_allclose(narrow[name], wide[name], atol=1e-4 * scale, err_msg=name)


def test_strict_arrays_agree_with_numpy(points, L, targets, fresh):
    xp = pytest.importorskip("array_api_strict")
    X, y = points
    expected = reductions(X, y, L, targets)
    results = reductions(xp.asarray(X), y, xp.asarray(L), targets)
    assert isinstance(results["nca gradient"], type(xp.asarray(X)))
    assert isinstance(results["lmnn product"], type(xp.asarray(X)))
    for name, result in expected.items():
        np.testing.assert_allclose(
            np.asarray(results[name]), result, rtol=1e-9, atol=1e-10, err_msg=name
        )
    _, pairs = mine_impostors(X @ L.T, targets, y, 0.7)
    on = lmnn_hinge_on(pairs, xp.asarray(X @ L.T), xp.asarray(X), targets, 0.7, 0.1)
    assert on[0] == pytest.approx(expected["lmnn"])
    np.testing.assert_allclose(np.asarray(on[1]), expected["lmnn product"], atol=1e-10)
    D2 = squared_distances(xp.asarray(X), xp.asarray(fresh))
    np.testing.assert_allclose(np.asarray(D2), cdist(X, fresh, "sqeuclidean"))
    assert median_squared_distance(xp.asarray(X)) == pytest.approx(median_squared_distance(X))


# --- the softmax, and over near points alone ------------------------------------------------------


def softmax_by_definition(L, X, y):
    """NCA's objective and gradient, all pairs at once, in float64."""
    E = X @ L.T
    D2 = np.sum((E[:, None] - E) ** 2, axis=2)
    np.fill_diagonal(D2, np.inf)
    P = np.exp(D2.min(axis=1, keepdims=True) - D2)
    P /= P.sum(axis=1, keepdims=True)
    same = y[:, None] == y
    p = np.sum(P * same, axis=1)
    W = P * (same - p[:, None])
    W = W + W.T
    return -p.sum(), 2.0 * (W.sum(axis=1)[:, None] * E - W @ E).T @ X


@pytest.mark.parametrize("stretch", [0.01, 1.0, 5.0, 30.0])
@pytest.mark.parametrize(("dtype", "rel"), [("float64", 1e-9), ("float32", 1e-3)])
def test_the_softmax_is_its_definition_however_far_points_are(points, L, stretch, dtype, rel):
    X, y = points
    value, gradient = softmax_by_definition(stretch * L, X, y)
    ours, slope = nca_loss((stretch * L).astype(dtype), X.astype(dtype), y)
    assert ours == pytest.approx(value, rel=1e-4 if dtype == "float32" else 1e-12)
    scale = np.linalg.norm(gradient) + 1e-3 * stretch * len(X)
    assert np.linalg.norm(slope - gradient) < rel * scale


def test_one_point_far_from_all_others_gets_its_own_shift(points, L):
    X, y = points
    X = X.copy()
    X[3] += 100.0  # its nearest neighbour has a softmax weight of exp(-10,000): zero in float64
    value, gradient = softmax_by_definition(L, X, y)
    ours, slope = nca_loss(L, X, y)
    assert ours == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(slope, gradient, rtol=1e-8, atol=1e-8 * np.abs(gradient).max())


def test_the_hinge_of_few_points_is_that_of_blocks(points, targets, L, monkeypatch):
    from kernelmetric.compute.reductions import _impostors

    X, y = points
    E = X @ L.T
    for smoothing in (0.0, 0.5):
        whole = lmnn_hinge(E, X, targets, y, 0.7, smoothing)
        monkeypatch.setattr(_impostors, "_WHOLE_ROWS", 0)
        blocks = lmnn_hinge(E, X, targets, y, 0.7, smoothing)
        monkeypatch.undo()
        assert whole[0] == pytest.approx(blocks[0], rel=1e-12)
        np.testing.assert_allclose(whole[1], blocks[1], atol=1e-9 * np.abs(blocks[1]).max())
