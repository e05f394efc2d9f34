"""Distances and neighbours against brute force, on points of hostile scales."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from kernelmetric import LDA, RBF, Delta, Pairs
from kernelmetric.compute.reductions import (
    class_neighbors,
    l1_distances,
    lmnn_hinge,
    map_points,
    mine_impostors,
    nca_loss,
    nearest_neighbors,
    pair_squares,
    sampled_squared_distances,
    squared_distances,
)
from kernelmetric.graphs import neighbor_graph
from kernelmetric.learners._base import check_spread

RELATIVE = {np.float64: 1e-9, np.float32: 2e-4}
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def cloud(kind, n=60, d=6, seed=0):
    """Points that a product about a mean gets wrong, each in its own way."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    if kind == "one huge row":
        X[n // 3] = 1e10
    elif kind == "a third is huge":
        X[::3] *= 1e10
    elif kind == "two tight clusters":
        X = 0.03 * X + 100.0 * (np.arange(n) % 2)[:, None]
    elif kind == "many tight clusters":
        X = 0.03 * X + 1e3 * (np.arange(n) % 12)[:, None]
    elif kind == "all scales":
        X *= 10.0 ** rng.uniform(-6, 6, (n, 1))
    elif kind == "far from the origin":
        X += 1e6
    elif kind == "copies":
        X = np.repeat(X[: n // 10], 10, axis=0)
    elif kind == "a wide column":
        X[:, 0] *= 1e7
    elif kind == "nearly one point":
        X = 1.0 + 1e-6 * X
    return X


KINDS = [
    "ordinary",
    "one huge row",
    "a third is huge",
    "two tight clusters",
    "many tight clusters",
    "all scales",
    "far from the origin",
    "copies",
    "a wide column",
    "nearly one point",
]
CLOUDS = pytest.mark.parametrize("kind", KINDS)


def brute(A, B, dtype=np.float64):
    """Squared distances from differences."""
    difference = A[:, None].astype(dtype) - B[None].astype(dtype)
    return np.einsum("ijk,ijk->ij", difference, difference).astype(np.float64)


def assert_close(D2, true, dtype):
    np.testing.assert_array_less(np.abs(D2 - true), RELATIVE[dtype] * true + (true == 0) * 1e-300)
    assert np.all(D2[true == 0] == 0)


# --- squared distances --------------------------------------------------------------------------


@pytest.mark.every(4)
@DTYPES
@CLOUDS
def test_every_distance_is_right_whatever_else_is_in_the_batch(kind, dtype):
    X = cloud(kind).astype(dtype)
    Y = np.concatenate([cloud(kind, seed=1), X[:20]]).astype(dtype)
    for D2, true in [
        (squared_distances(X), brute(X, X, np.longdouble)),
        (squared_distances(X, Y), brute(X, Y, np.longdouble)),
        (squared_distances(Y[:1], X), brute(Y[:1], X, np.longdouble)),
    ]:
        assert D2.dtype == dtype
        assert_close(D2, true, dtype)


@DTYPES
@CLOUDS
def test_sparse_distances_are_right_too(kind, dtype):
    X = cloud(kind).astype(dtype)
    X[np.abs(X) < np.quantile(np.abs(X), 0.4)] = 0.0
    S = sparse.csr_array(X)
    true = brute(X, X)
    assert_close(squared_distances(S), true, dtype)
    assert_close(squared_distances(S, S[10:30].copy()), true[:, 10:30], dtype)
    assert_close(squared_distances(S[:5], X), true[:5], dtype)


@pytest.mark.every(4)
@DTYPES
@CLOUDS
def test_other_array_libraries_get_the_same_distances(kind, dtype):
    xp = pytest.importorskip("array_api_strict")
    X = cloud(kind).astype(dtype)
    D2 = squared_distances(xp.asarray(X))
    assert D2.dtype == getattr(xp, np.dtype(dtype).name)
    assert_close(np.asarray(D2), brute(X, X), dtype)
    assert_close(
        np.asarray(squared_distances(xp.asarray(X[:7]), xp.asarray(X))), brute(X[:7], X), dtype
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.lists(st.floats(-(2.0**40), 2.0**40, width=32), min_size=3, max_size=3),
        min_size=2,
        max_size=25,
    ),
    st.sampled_from([np.float64, np.float32]),
)
def test_any_distances_are_those_of_differences(rows, dtype):
    X = np.array(rows).astype(dtype)
    X[np.abs(X) < 1e-12] = 0.0  # whose squares float32 cannot hold
    true = brute(X, X)
    true[true < 1e-30] = 0.0
    assert_close(squared_distances(X), true, dtype)


def test_a_row_more_changes_no_other_distance():
    X = cloud("ordinary")
    alone = squared_distances(X)
    beside = squared_distances(np.concatenate([X, np.full((1, 6), 1e12)]))
    np.testing.assert_allclose(beside[:-1, :-1], alone, rtol=1e-9)


def test_distances_of_listed_pairs_are_those_of_the_table():
    X = cloud("all scales")
    i, j = np.triu_indices(len(X), 1)
    true = brute(X, X)[i, j]
    np.testing.assert_allclose(pair_squares(X, X, i, j), true, rtol=1e-12)
    np.testing.assert_allclose(pair_squares(sparse.csr_array(X), X, i, j), true, rtol=1e-12)
    X32 = X.astype(np.float32)
    np.testing.assert_allclose(pair_squares(X32, X32, i, j), brute(X32, X32)[i, j], rtol=1e-12)
    np.testing.assert_allclose(np.sort(sampled_squared_distances(X)[0]), np.sort(true), rtol=1e-12)


def test_a_metric_does_not_see_the_other_rows_of_a_batch():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40, 4)), np.arange(40) % 2
    metric = LDA().fit(X, y)
    batch = [[0.0] * 4, [0.0] * 4, [0.0, 0.0, 0.0, 1.8e8]]
    D = metric.pairwise_distances(batch)
    assert D[0, 1] == 0
    pairs = np.array([[batch[i], batch[j]] for i in range(3) for j in range(3)])
    np.testing.assert_allclose(D.ravel(), metric.pair_distance(pairs), rtol=1e-9)


def test_a_radial_kernel_stays_positive_beside_a_huge_row():
    X = cloud("one huge row")
    K = RBF(gamma=0.3)(X)
    np.testing.assert_allclose(K, np.exp(-0.3 * np.minimum(brute(X, X), 1e3)), atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10


# --- neighbours ---------------------------------------------------------------------------------


def assert_neighbors(X, indices, squares, true, k):
    """Nearest first; equal distances, of float64 differences, in the order of the rows."""
    order = np.argsort(true, axis=1, kind="stable")[:, :k]
    expected = np.take_along_axis(true, order, axis=1)
    got = np.take_along_axis(true, np.maximum(indices, 0), axis=1)
    got[indices < 0] = np.inf
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_allclose(squares, expected, rtol=2e-3 if X.dtype == np.float32 else 1e-8)
    assert np.all(squares[expected == 0] == 0)


@pytest.mark.every(3)
@DTYPES
@CLOUDS
def test_neighbours_are_those_of_differences(kind, dtype):
    X = cloud(kind, n=150).astype(dtype)
    Y = np.concatenate([cloud(kind, n=30, seed=2), X[:20]]).astype(dtype)
    true = brute(X, X)
    np.fill_diagonal(true, np.inf)
    assert_neighbors(X, *nearest_neighbors(X, 5), true, 5)
    assert_neighbors(X, *nearest_neighbors(X, 5, queries=Y), brute(Y, X), 5)
    assert_neighbors(X, *nearest_neighbors(X, 149), true, 149)


@pytest.mark.every(5)
@DTYPES
@CLOUDS
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("n_classes", [2, 11, 50])
def test_neighbours_in_classes_are_those_of_differences(kind, dtype, same, n_classes):
    X = cloud(kind, n=120).astype(dtype)
    codes = np.random.RandomState(1).randint(n_classes, size=120)
    true = brute(X, X)
    np.fill_diagonal(true, np.inf)
    true[(codes[:, None] == codes) != same] = np.inf
    indices, squares = class_neighbors(X, codes, 3, same=same)
    missing = np.isinf(np.sort(true, axis=1)[:, :3])
    np.testing.assert_array_equal(indices < 0, missing)
    assert_neighbors(X, indices, squares, true, 3)


@pytest.mark.parametrize("kind", ["copies", "ordinary"])
def test_equal_distances_go_to_the_earlier_row(kind):
    grid = np.random.RandomState(0).randint(0, 3, size=(200, 3)).astype(np.float32)
    X = grid + (1000.0 if kind == "copies" else 0.0)
    codes = np.arange(200)[::-1] % 5
    true = brute(X, X)
    np.fill_diagonal(true, np.inf)
    np.testing.assert_array_equal(
        nearest_neighbors(X, 6)[0], np.argsort(true, axis=1, kind="stable")[:, :6]
    )
    for same in (True, False):
        allowed = np.where((codes[:, None] == codes) == same, true, np.inf)
        np.testing.assert_array_equal(
            class_neighbors(X, codes, 6, same=same)[0],
            np.argsort(allowed, axis=1, kind="stable")[:, :6],
        )


@pytest.mark.parametrize("spread", [0.3, 0.1, 0.03])
def test_float32_neighbours_in_far_clusters_are_those_of_float64(spread):
    rng = np.random.RandomState(0)
    centres = 100.0 * rng.standard_normal((8, 10))
    X = (centres[np.arange(600) % 8] + spread * rng.standard_normal((600, 10))).astype(np.float32)
    theirs = NearestNeighbors(n_neighbors=5, algorithm="kd_tree").fit(X.astype(np.float64))
    distances, indices = theirs.kneighbors()
    ours, squares = nearest_neighbors(X, 5)
    np.testing.assert_array_equal(ours, indices)
    np.testing.assert_allclose(np.sqrt(squares), distances, rtol=1e-3)


@pytest.mark.every(4)
@DTYPES
@pytest.mark.parametrize("kind", ["ordinary", "one huge row", "two tight clusters", "copies"])
def test_other_array_libraries_get_the_same_neighbours(kind, dtype):
    xp = pytest.importorskip("array_api_strict")
    X = cloud(kind).astype(dtype)
    codes = np.arange(len(X)) % 3
    ours = nearest_neighbors(xp.asarray(X), 4)[0]
    np.testing.assert_array_equal(ours, nearest_neighbors(X, 4)[0])
    for same in (True, False):
        np.testing.assert_array_equal(
            class_neighbors(xp.asarray(X), codes, 4, same=same)[0],
            class_neighbors(X, codes, 4, same=same)[0],
        )


def test_products_do_nearly_all_the_work_on_ordinary_points(monkeypatch):
    """Else the search would be right but slow: differences cost many times a product."""
    from kernelmetric.compute.reductions import _distances, _table

    asked = []

    def counted(A, B, i, j):
        asked.append(len(i))
        return pair_squares(A, B, i, j)

    monkeypatch.setattr(_distances, "pair_squares", counted)
    for module in (_distances, _table):
        monkeypatch.setattr(module, "cdist", None)
    X = cloud("ordinary", n=600, d=20)
    nearest_neighbors(X, 10)
    squared_distances(X)
    assert sum(asked) == 0
    outlying = np.concatenate([X, [[1e9] * 20]])
    nearest_neighbors(outlying, 10)
    squared_distances(outlying)
    assert sum(asked) <= 12 * 2  # the outlier's own neighbours
    nearest_neighbors(X.astype(np.float32), 10)
    squared_distances(X.astype(np.float32))
    assert sum(asked) <= 0.05 * 600 * 600


# --- losses over all pairs ----------------------------------------------------------------------


def test_losses_over_pairs_do_not_follow_one_huge_row():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 3))
    X[-1] = 1e9
    codes = np.sort(np.arange(60) % 3)
    D2 = brute(X, X)
    np.fill_diagonal(D2, np.inf)
    P = np.exp(-(D2 - D2.min(axis=1, keepdims=True)))
    P /= P.sum(axis=1, keepdims=True)
    expected = -np.sum(P * (codes[:, None] == codes))
    assert nca_loss(np.eye(3), X, codes)[0] == pytest.approx(expected, rel=1e-6)
    targets = class_neighbors(X[:-1], codes[:-1], 2, same=True)[0]
    targets = np.concatenate([targets, [[-1, -1]]])
    np.fill_diagonal(D2, 0.0)
    hinge = 0.0
    for i, row in enumerate(targets):
        for j in row[row >= 0]:
            others = codes != codes[i]
            hinge += D2[i, j] + np.maximum(1 + D2[i, j] - D2[i, others], 0).sum()
    assert lmnn_hinge(X, X, targets, codes, 1.0)[0] == pytest.approx(hinge, rel=1e-9)


# --- what overflows -----------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize("share", [0.55, 0.9, 1.0])
def test_squares_that_overflow_are_refused_everywhere(dtype, share):
    huge = float(np.finfo(dtype).max) ** share
    X = np.random.RandomState(0).standard_normal((12, 3)).astype(dtype)
    X[3] = huge
    X[4] = -huge
    codes = np.arange(12) % 2
    S = sparse.csr_array(X)
    for work in (
        lambda: squared_distances(X),
        lambda: squared_distances(X[3:4], X[5:]),
        lambda: squared_distances(S),
        lambda: nearest_neighbors(X, 2),
        lambda: nearest_neighbors(X[5:], 2, queries=X[:5]),
        lambda: class_neighbors(X, codes, 2, same=True),
        lambda: class_neighbors(X, codes, 2, same=False),
        lambda: pair_squares(X, X, np.array([3]), np.array([5])),
        lambda: pair_squares(S, S, np.array([3]), np.array([5])),
        lambda: sampled_squared_distances(X),
        lambda: neighbor_graph(X, 2),
        lambda: RBF(gamma=1.0)(X),
        lambda: RBF().bind(X),
    ):
        with pytest.raises(ValueError, match=f"overflow {np.dtype(dtype).name}.*rescaling"):
            work()
    with pytest.raises(ValueError, match="squares within the range"):
        check_spread(X)


@pytest.mark.parametrize("scale", [1e150, 1e155, 1e200, 1e300, 1.7e308])
def test_a_metric_answers_hostile_queries_or_refuses_them(scale):
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40, 4)), np.arange(40) % 2
    metric = LDA().fit(X, y)
    queries = scale * np.array([[1.0, -1.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0]])
    for work in (
        lambda: metric.transform(queries),
        lambda: metric.pairwise_distances(queries),
        lambda: metric.pairwise_distances(queries, X),
        lambda: metric.pair_distance(queries[None]),
    ):
        try:
            assert np.all(np.isfinite(work()))
        except ValueError as error:
            assert "overflow" in str(error)
            assert scale > 1e150


def test_a_map_that_overflows_is_refused():
    with pytest.raises(ValueError, match=r"points up to 1e\+300.*overflow float64"):
        map_points(np.array([[1e300, 1.0], [0.0, 0.0]]), np.array([[1e10, 0.0]]))
    with pytest.raises(ValueError, match="overflow"):  # infinity less infinity
        map_points(np.array([[1e300, 1e300]]), np.array([[1e10, -1e10]]))


@pytest.mark.parametrize("kernel", [RBF(sigma=1e308), RBF(sigma=1e-200), Delta(width=1e308)])
def test_a_width_whose_square_cannot_be_held_is_refused(kernel):
    X = np.random.RandomState(0).standard_normal((5, 2))
    with pytest.raises(ValueError, match=r"(sigma|width)=1e.*square (over|under)flows"):
        kernel.bind(X)(X)


@DTYPES
def test_the_narrowest_kernel_is_one_on_the_diagonal(dtype):
    X = np.arange(4, dtype=dtype)[:, None]
    np.testing.assert_allclose(RBF(gamma=1e300)(X), np.eye(4), atol=1e-15)


def test_a_radius_beyond_all_numbers_leaves_no_pair_out():
    X = np.random.RandomState(0).standard_normal((20, 2))
    y = np.arange(20) % 2
    wide, unlimited = (Pairs.from_neighbors(X, y, radius=radius) for radius in (1e308, None))
    np.testing.assert_array_equal(wide.rows, unlimited.rows)


def test_many_small_classes_are_searched_together(monkeypatch):
    """A search per class would take eight times as long for 1,500 classes as for three."""
    from kernelmetric.compute.reductions import _neighbors

    tables = []
    original = _neighbors.Table

    def counted(*arguments):
        tables.append(1)
        return original(*arguments)

    monkeypatch.setattr(_neighbors, "Table", counted)
    X = np.random.RandomState(0).standard_normal((1500, 2))
    codes = np.arange(1500) % 700
    for same in (True, False):
        tables.clear()
        class_neighbors(X, codes, 2, same=same)
        assert len(tables) <= 8


def test_no_warning_leaks_from_spreads_and_neighbours():
    X = np.array([[1.7e308, 0.0], [-1.7e308, 1.0], [0.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for work in (lambda: check_spread(X), lambda: neighbor_graph(X, 1), lambda: cdist(X, X)):
            try:
                work()
            except ValueError:
                continue


@pytest.mark.every(3)
@pytest.mark.parametrize("sizes", [[300, 300, 40, 1, 2, 5], [2] * 150, [1, 500, 1, 1, 300]])
def test_impostors_are_sought_in_all_other_classes_whatever_their_sizes(sizes):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    n = len(codes)
    X = np.random.RandomState(0).standard_normal((n, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        targets = class_neighbors(X, codes, 1, same=True)[0]
    D2 = brute(X, X)
    own = np.where(targets[:, 0] >= 0, D2[np.arange(n), targets[:, 0]], -np.inf)
    margins = 1 + own[:, None] - np.where(codes[:, None] == codes, np.inf, D2)
    expected = own[np.isfinite(own)].sum() + margins[margins > 0].sum()
    assert lmnn_hinge(X, X, targets, codes, 1.0)[0] == pytest.approx(expected, rel=1e-9)
    value, pairs = mine_impostors(X, targets, codes, 1.0, most=n)
    assert value == pytest.approx(expected, rel=1e-9)
    assert np.all(codes[pairs[:, 0]] != codes[pairs[:, 1]])
    listed = set(map(tuple, pairs.tolist()))
    assert listed.issuperset(zip(*np.nonzero(margins > 0), strict=True))
    assert np.all(np.diff(pairs[:, 0]) >= 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [None, 1e20, 1e308])
def test_l1_distances_of_columns_with_few_values_are_sums_of_differences(dtype, far):
    rng = np.random.RandomState(0)
    X = rng.randint(4, size=(150, 9)) * rng.uniform(0.1, 2.0, size=9)
    X[:, :3] = rng.standard_normal((150, 3))
    X[:, 3] = 7.0
    X[:75] = X[75:]
    if far is not None:
        X[:, 4] = np.where(X[:, 4] > 0, min(far, 1e30 if dtype == np.float32 else far), 0.0)
    X = X.astype(dtype)
    with np.errstate(over="ignore"):
        for A, B in ((X, X), (X[:90], X[::-1]), (X[:3], X)):
            D = l1_distances(A, B)
            assert D.dtype == dtype
            np.testing.assert_allclose(D, cdist(A, B, "cityblock").astype(dtype), rtol=1e-9)
        D = l1_distances(X)
    assert np.all(D[np.arange(75), np.arange(75, 150)] == 0.0)
    order = rng.permutation(9)
    few = slice(3, None)
    if far is None:
        np.testing.assert_array_equal(l1_distances(X[:, few]), l1_distances(X[:, order[order > 2]]))


def test_l1_distances_of_columns_that_are_not_finite_are_left_as_they_are():
    X = np.random.RandomState(0).randint(2, size=(80, 3)).astype(float)
    X[0, 1], X[1, 2] = np.nan, np.inf
    np.testing.assert_array_equal(l1_distances(X), cdist(X, X, "cityblock"))
