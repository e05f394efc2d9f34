"""Compute: thresholds, messages and rare branches in which a small slip is easily overlooked."""

import inspect
import re
from contextlib import nullcontext
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from scipy.spatial.distance import cdist

import kernelmetric.compute as room
from kernelmetric import KPCA, memory_budget
from kernelmetric.compute import (
    _arrays,
    _budget,
    _machine,
    _threads,
    block_budget,
    require_memory,
)
from kernelmetric.compute._budget import current_budget
from kernelmetric.compute._threads import tiles_at_once
from kernelmetric.compute.backends import _native, _refined, backend_of, cuda
from kernelmetric.compute.reductions import (
    BlockProduct,
    Triplets,
    _distances,
    _gram_products,
    _impostors,
    _neighbors,
    _smallest,
    _softmax,
    _subspaces,
    _table,
    _triplets,
    class_neighbors,
    gram_products,
    lmnn_at_lengths,
    lmnn_hinge,
    map_points,
    median_squared_distance,
    mine_impostors,
    nca_loss,
    nearest_neighbors,
    row_products,
    sampled_squared_distances,
    softmax_reduction,
    subspace_distances,
)
from kernelmetric.compute.reductions._distances import exp_of_negative
from kernelmetric.compute.reductions._listed import lmnn_hinge_on
from kernelmetric.compute.reductions._smallest import upper_bounds
from kernelmetric.inputs import _methods, check_labels, check_points, unchanged_on_failure

MB = 10**6
EPS, EPS_32 = 2.0**-52, 2.0**-23


@pytest.fixture
def xp():
    return pytest.importorskip("array_api_strict")


# --- defaults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory_budget", "require_memory", "small_steps", "use_device"])
def test_what_a_docstring_says_of_defaults_is_what_the_signature_says(name):
    thing = getattr(room, name)
    text = inspect.getdoc(thing) or ""
    said = dict(re.findall(r"^ *(\w+) : .*default=(.+?)\.?$", text, re.MULTILINE))
    parameters = inspect.signature(thing).parameters
    for parameter, value in said.items():
        default = parameters[parameter].default
        default = getattr(default, "__name__", default)
        assert str(default) == value or float(default) == float(value)


# --- arrays, points and labels ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((3, 0), r"Found array with 3 sample\(s\) and 0 feature\(s\)"),
        ((1, 2), r"Found array with 1 sample\(s\) and 2 feature\(s\).* minimum of 2 sample"),
        ((3,), r"Got an array of shape \(3,\), but KPCA expected a 2D array"),
        ((3, 2, 2), r"Got an array of shape \(3, 2, 2\)"),
    ],
)
def test_arrays_of_other_libraries_need_points_and_features(shape, said, xp):
    with pytest.raises(ValueError, match=said):
        check_points(KPCA(), xp.zeros(shape), reset=True, ensure_min_samples=2)


def test_arrays_of_other_libraries_must_have_the_features_of_the_fit(xp):
    space = KPCA()
    found = check_points(space, xp.ones((2, 3)), reset=True, ensure_min_samples=2)
    assert found.shape == (2, 3)
    assert space.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 4 features, but KPCA is expecting 3 features"):
        check_points(space, xp.ones((2, 4)), reset=False)
    assert check_points(space, xp.ones((1, 3)), reset=False).shape == (1, 3)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="but KPCA learned from points without gaps"):
            check_points(space, xp.full((2, 3), bad), reset=False)


def test_numbers_become_double_precision_unless_they_are_single(xp):
    for given, expected in (("int64", "float64"), ("bool", "float64"), ("float32", "float32")):
        ones = np.ones((2, 3), dtype=given)
        assert check_points(KPCA(), ones, reset=True).dtype == expected
        theirs = check_points(KPCA(), xp.asarray(ones), reset=True)
        assert theirs.dtype == getattr(xp, expected)
    half = check_points(KPCA(), np.ones((2, 3), dtype=np.float16), reset=True)
    assert half.dtype == np.float64


def test_labels_become_codes_in_their_order():
    X = np.zeros((4, 1))
    assert_array_equal(check_labels(["b", "a", "c", "b"], X), [1, 0, 2, 1])
    assert_array_equal(check_labels(np.array([2.0, 1.0, 2.0, 1.0]), X), [1, 0, 1, 0])
    with pytest.raises(
        ValueError, match=r"Got 1 class \(.*7.* for all 4 samples\), but expected at least two"
    ):
        check_labels([7] * 4, X)
    with pytest.raises(ValueError, match="Input y contains NaN or infinity"):
        check_labels([0.0, np.nan, 1.0, 1.0], X)
    with pytest.raises(ValueError, match="the target y is None"):
        check_labels(None, X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_labels([0, 1], X)


def test_huge_numbers_are_finite_even_where_their_sum_is_not():
    assert _arrays.all_finite(np.full(3, 1e308))
    assert not _arrays.all_finite(np.array([np.inf, -np.inf]))
    assert not _arrays.all_finite(np.array([1.0, np.nan]))


def test_entries_are_set_in_any_library(xp):
    A, columns = np.arange(6.0).reshape(2, 3), np.array([2, 0])
    expected = [[0.0, 1.0, 9.0], [9.0, 4.0, 5.0]]
    theirs = backend_of(xp.asarray(A)).set_entries(xp.asarray(A), columns, 9.0)
    assert_array_equal(np.asarray(theirs), expected)
    rows, values = np.array([0, 1]), np.array([9.0, 9.0])
    theirs = backend_of(xp.asarray(A)).set_pairs(xp.asarray(A), rows, columns, values)
    assert_array_equal(np.asarray(theirs), expected)
    assert_array_equal(backend_of(A).set_entries(A.copy(), columns, 9.0), expected)
    assert_array_equal(backend_of(A).set_pairs(A.copy(), rows, columns, values), expected)


def test_values_take_the_type_of_sparse_points():
    X = sparse.eye_array(2, dtype=np.float32).tocsr()
    assert _arrays.like(np.ones(2), X).dtype == np.float32
    assert _arrays.namespace(X, None).asarray([1.0]).shape == (1,)


# --- the budget ---------------------------------------------------------------------------------


def test_a_refusal_says_the_numbers_as_they_are(monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 10**15)
    said = r"A fit would take about 8000000 MB .* memory budget is 4000000 MB: try less\.$"
    with memory_budget(4 * 10**12), pytest.raises(MemoryError, match=said):
        require_memory(10**13, "A fit", "try less.", in_full=8 * 10**12)
    monkeypatch.setattr(_budget, "_free_memory", lambda: 4 * 10**15)
    with pytest.raises(MemoryError, match=r"about 8000000\.0 GB, but 4000000\.0 GB are free: try"):
        require_memory(8 * 10**15, "A fit", "try less.")


def test_what_is_cut_into_blocks_is_not_counted_against_the_budget(monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 10**15)
    with memory_budget(1):
        require_memory(10**12, "A fit", "try less.")


def test_a_budget_within_a_budget_ends_with_it(monkeypatch):
    monkeypatch.delenv("KERNELMETRIC_MEMORY", raising=False)
    with memory_budget("1GB"):
        with memory_budget("2GB"), block_budget(100):
            assert current_budget() == 100
        assert current_budget() == 10**9
        with block_budget(2 * 10**9) as same:
            assert same == 2 * 10**9
            assert current_budget() == 10**9
    monkeypatch.setattr(_budget, "total_memory", lambda: 4 * MB)
    assert current_budget() == MB
    monkeypatch.setenv("KERNELMETRIC_MEMORY", "7KB")
    assert current_budget() == 7_000


def test_a_device_wants_large_tiles(xp):
    assert _budget.tile_rows(xp.ones((1, 1), dtype=xp.float32), 2**10, 1) == 2**18
    assert _budget.tile_rows(xp.ones((1, 1)), 2**10, 1) == 2**17


# --- the machine --------------------------------------------------------------------------------


@pytest.fixture
def silent(tmp_path, monkeypatch):
    """A system that tells nothing."""
    monkeypatch.setattr(_machine, "_pages", lambda name: None)
    monkeypatch.setattr(_machine, "_address_space", lambda root: iter(()))
    return tmp_path


def test_four_gigabytes_are_assumed_where_the_system_does_not_tell(silent):
    assert _machine._total_memory(silent) == 4 * 10**9
    assert _machine._free_memory(silent, 0) == 4 * 10**9


def test_pages_are_counted_where_there_is_no_other_number(silent, monkeypatch):
    pages = {"SC_PHYS_PAGES": 10**6, "SC_AVPHYS_PAGES": 10**5}
    monkeypatch.setattr(_machine, "_pages", lambda name: pages[name])
    assert _machine._total_memory(silent) == 10**6
    assert _machine._free_memory(silent, 0) == 10**5


def test_what_is_told_counts_in_kilobytes_of_1024(silent):
    (silent / "proc").mkdir()
    text = "MemTotal:  2000 kB\nMemFree: 7 kB\nMemAvailable:  1000 kB\n"
    (silent / "proc/meminfo").write_text(text)
    assert _machine._total_memory(silent) == 2000 * 1024
    assert _machine._free_memory(silent, 0) == 1000 * 1024


def test_a_limit_that_is_used_up_leaves_nothing(silent, monkeypatch):
    monkeypatch.setattr(_machine, "_address_space", lambda root: iter([(500, 700)]))
    assert _machine._total_memory(silent) == 500
    assert _machine._free_memory(silent, 0) == 0


@pytest.mark.skipif(not hasattr(_machine.os, "sysconf"), reason="The system has no pages.")
def test_pages_have_a_size_and_unknown_names_have_none():
    assert _machine._pages("SC_PHYS_PAGES") >= 2**20
    assert _machine._pages("no such name") is None


def test_the_address_space_is_limited_by_its_soft_limit(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    (tmp_path / "proc/self").mkdir(parents=True)
    text = "Name: x\nVmPeak: 9 kB\nVmSize:   3 kB\nVmRSS: 1 kB\n"
    (tmp_path / "proc/self/status").write_text(text)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**6, 2 * 10**6))
    assert list(_machine._address_space(tmp_path)) == [(10**6, 3 * 1024)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, 10**6))
    assert list(_machine._address_space(tmp_path)) == []


# --- compiled passes ----------------------------------------------------------------------------


@pytest.fixture
def fresh_library():
    _native.native.cache_clear()
    yield
    _native.native.cache_clear()


def test_without_a_compiled_library_there_is_none(fresh_library, monkeypatch):
    monkeypatch.setattr(_native, "_LIBRARY", "no such file")
    assert _native.native() is None
    E = np.array([[0.0, 0.0], [3.0, 4.0]], dtype=np.float32)
    assert_array_equal(_native.pair_squares(E, np.array([0, 1]), np.array([1, 1])), [25.0, 0.0])


@pytest.mark.parametrize(("value", "used"), [("", True), ("0", True), ("1", False), ("yes", False)])
def test_the_environment_decides_whether_the_library_is_asked_for(
    value, used, fresh_library, monkeypatch
):
    class Library:
        kernelmetric_pair_squares_float = kernelmetric_pair_squares_double = type("F", (), {})
        kernelmetric_listed_hinge_float = kernelmetric_listed_hinge_double = type("F", (), {})
        kernelmetric_pulled_float = kernelmetric_pulled_double = type("F", (), {})

        @staticmethod
        def kernelmetric_version():
            return _native._VERSION

    monkeypatch.setattr(_native.ctypes, "CDLL", lambda path: Library())
    monkeypatch.setenv("KERNELMETRIC_PURE", value)
    assert (_native.native() is not None) == used


# --- distances ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "middle"), [(1, 0), (2, 1), (5, 2), (64, 32), (128, 64), (150, 74)])
def test_the_centre_is_the_median_of_some_rows(n, middle):
    rows = np.random.RandomState(0).permutation(n)
    # 128 and more rows are looked at in steps, so there they are in order
    X = np.stack([np.arange(n) if n > 64 else rows, np.arange(n)], axis=1).astype(float)
    assert_array_equal(_distances.robust_center(X), [[middle, middle]])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_two_fifths_of_the_rows_cannot_move_the_centre(sign):
    X = np.random.RandomState(0).randn(50, 2)
    X[:20] += sign * 1e9
    assert np.all(np.abs(_distances.robust_center(X)) < 5)


@pytest.mark.parametrize(
    ("dtype", "eps"), [(np.float32, EPS_32), (np.float64, EPS)], ids=["single", "double"]
)
def test_the_bound_of_rounding_grows_with_the_terms_and_then_with_their_root(dtype, eps):
    for terms, expected in ((0, 8), (16, 16), (64, 40), (256, 72), (10_000, 408)):
        assert _distances.rounding(np.ones((1, terms), dtype)) == pytest.approx(expected * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_are_refused_from_an_eighth_of_the_largest_number_on(dtype):
    eighth = np.array([1.0, np.finfo(dtype).max / 8], dtype=dtype)
    _distances.require_squares(eighth[:0], np.nextafter(eighth, dtype(0)))
    for squares in (eighth, np.array([np.inf], dtype), np.array([np.nan], dtype)):
        with pytest.raises(ValueError, match=f"squared distances overflow {np.dtype(dtype)}"):
            _distances.require_squares(eighth[:1], squares)


def test_pairs_in_single_precision_may_not_be_farther_than_it_holds():
    A = np.array([[0.0, 0.0], [1e19, 1e19], [1.5e19, 0.0]], dtype=np.float32)
    found = _distances.pair_squares(A, A, np.array([0, 0]), np.array([1, 2]))
    assert found.dtype == np.float64
    assert_allclose(found, [2e38, 2.25e38], rtol=1e-6)
    with pytest.raises(ValueError, match="overflow float32"):
        _distances.pair_squares(2 * A, 2 * A, np.array([0]), np.array([1]))


def test_lengths_of_single_precision_are_summed_in_double():
    X = np.r_[4096.0, np.ones(4096)].astype(np.float32)[None, :]
    assert _distances.squared_lengths(X)[0] == 4096.0**2 + 4096
    assert _distances.squared_lengths(X).dtype == np.float32


@pytest.mark.parametrize(
    ("n", "n_pairs", "expected"),
    [(300, 20_000, 44_850), (400, 20_000, 79_800), (401, 20_000, 20_000), (9, 9, 36), (10, 9, 9)],
)
def test_all_pairs_are_looked_at_while_they_are_few(n, n_pairs, expected, monkeypatch):
    assert _distances._PAIRS == 20_000
    monkeypatch.setattr(_distances, "_PAIRS", n_pairs)
    X = np.random.RandomState(0).randn(n, 1)
    assert len(sampled_squared_distances(X)[0]) == expected


def test_the_same_pairs_are_drawn_every_time(monkeypatch):
    monkeypatch.setattr(_distances, "_PAIRS", 20)
    X = np.random.RandomState(0).randn(30, 2)
    first, again = (sampled_squared_distances(X)[0] for _ in range(2))
    assert_array_equal(first, again)
    assert median_squared_distance(X) == np.median(first)
    assert median_squared_distance(np.ones((5, 2))) == 1.0


@pytest.mark.every(4)
@pytest.mark.parametrize("kind", ["numpy", "strict"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3])
def test_neighbours_among_many_that_products_cannot_tell_apart(kind, dtype, k, xp):
    # Two clusters, so far apart that rounding drowns the distances within the farther one.
    rng = np.random.RandomState(0)
    far = 1e4 if dtype == np.float32 else 1e9
    X = rng.randint(0, 30, (60, 2)).astype(dtype)
    X[::2] += dtype(far)
    D2 = cdist(X.astype(float), X.astype(float), "sqeuclidean")
    np.fill_diagonal(D2, np.inf)
    expected = np.argsort(D2, axis=1, kind="stable")[:, :k]
    points = X if kind == "numpy" else xp.asarray(X)
    indices, squares = nearest_neighbors(points, k)
    assert_array_equal(indices, expected)
    exact = np.take_along_axis(D2, expected, axis=1)
    assert_allclose(squares, exact, rtol=1e-3 if dtype == np.float32 else 1e-9)
    codes = np.arange(60) // 30
    for same in (True, False):
        allowed = np.where((codes[:, None] == codes) == same, D2, np.inf)
        expected = np.argsort(allowed, axis=1, kind="stable")[:, :k]
        assert_array_equal(class_neighbors(points, codes, k, same=same)[0], expected)


def test_whoever_may_look_nowhere_finds_nothing():
    X = np.arange(4.0)[:, None]
    indices, squares = class_neighbors(X, np.array([0, 1, 1, 1]), 2, same=True)
    assert_array_equal(indices, [[-1, -1], [2, 3], [1, 3], [2, 1]])
    assert_array_equal(squares, [[np.inf, np.inf], [1, 4], [1, 1], [1, 4]])
    indices, squares = class_neighbors(X, np.zeros(4, dtype=int), 2, same=False)
    assert np.all(indices == -1)
    assert np.all(np.isinf(squares))


def test_ranges_of_some_queries_are_theirs(xp):
    ranges = _table.Ranges(np.array([0, 1, 3]), np.array([2, 3, 5]), np.array([1, 2, 3]))
    some = ranges.of(np.array([2, 0]))
    expected = np.ones((2, 6))
    expected[0, [0, 1, 2, 3, 5]] = expected[1, [1, 2, 3, 4, 5]] = np.inf
    assert_array_equal(some.forbid(np.ones((2, 6))), expected)
    assert_array_equal(np.asarray(some.forbid(xp.ones((2, 6)))), expected)
    apart = _table.Ranges(np.array([3, 1]), np.array([5, 2]))
    expected = np.ones((2, 6))
    expected[0, [3, 4]] = expected[1, 1] = np.inf
    assert_array_equal(apart.forbid(np.ones((2, 6))), expected)
    assert_array_equal(np.asarray(apart.forbid(xp.ones((2, 6)))), expected)


def test_small_classes_share_a_search_up_to_256_rows():
    groups = _neighbors._groups(np.array([100, 100, 56, 1, 300, 2]))
    assert groups == [(0, 256), (256, 257), (257, 557), (557, 559)]


def test_the_first_of_each_row_go_by_value_and_then_by_column():
    rows = np.array([0, 0, 0, 0, 2, 2, 2])
    values = np.array([2.0, 1.0, 1.0, np.inf, 5.0, 4.0, 4.0])
    found = _smallest.first_of_rows(rows, values, 3, 2)
    assert_array_equal(found[[0, 2]], [[1, 2], [5, 6]])
    assert [len(part) for part in _smallest.true_entries(np.ones((3, 0), dtype=bool))] == [0, 0]


# --- Gram matrices ------------------------------------------------------------------------------


def two_grams(n, constant=0.0):
    rng = np.random.RandomState(0)
    F = rng.randn(2, n, 3)
    return F @ F.transpose(0, 2, 1) + constant


def test_products_of_one_point_are_its_squares():
    K = np.array([[[2.0]], [[3.0]]])
    sums = gram_products(lambda i, j: iter(K[:, i, j]), 1)
    assert_allclose(sums.plain, [[4.0, 6.0], [6.0, 9.0]])
    assert_allclose(sums.centred, np.zeros((2, 2)), atol=1e-12)
    assert_allclose(sums.traces, [2.0, 3.0])
    assert_allclose(sums.totals, [2.0, 3.0])
    assert_allclose(sums.row_means, [[2.0], [3.0]])


@pytest.mark.parametrize("constant", [0.0, 1e7])
def test_sums_over_gram_matrices_are_their_definitions(constant):
    n, K = 7, two_grams(7, constant)
    H = np.eye(n) - 1 / n
    with memory_budget(64 * 2 * 9):  # tiles of three by three
        sums = gram_products(lambda i, j: iter(K[:, i, j]), n)
    C = H @ K @ H
    assert_allclose(sums.plain, np.einsum("aij,bij->ab", K, K), rtol=1e-12)
    assert_allclose(sums.centred, np.einsum("aij,bij->ab", C, C), rtol=1e-6)
    assert_allclose(sums.traces, np.einsum("aii->a", K), rtol=1e-12)
    assert_allclose(sums.totals, K.sum(axis=(1, 2)), rtol=1e-12, atol=1e-9)
    assert_allclose(sums.row_means, K.mean(axis=2), rtol=1e-12, atol=1e-12)


def test_estimates_from_all_samples_are_right_on_average():
    N, n, K = 6, 4, two_grams(6)
    found = []
    for chosen in combinations(range(N), n):
        part = K[np.ix_([0, 1], chosen, chosen)]
        found.append(gram_products(lambda i, j, K=part: iter(K[:, i, j]), n, population=N))
    plain, traces, totals = (
        np.mean([getattr(sums, name) for sums in found], axis=0)
        for name in ("plain", "traces", "totals")
    )
    assert_allclose(plain, np.einsum("aij,bij->ab", K, K), rtol=1e-9)
    assert_allclose(traces, np.einsum("aii->a", K), rtol=1e-9)
    assert_allclose(totals, K.sum(axis=(1, 2)), rtol=1e-9)


def test_estimates_count_points_pairs_and_triples_as_often_as_there_are():
    N, n, K = 9, 5, two_grams(5)
    sums = gram_products(lambda i, j: iter(K[:, i, j]), n, population=N)

    def times(*indices):
        kinds = len(set(indices))
        return np.prod([(N - t) / (n - t) for t in range(kinds)])

    def over(term, number):
        every = np.ndindex(*[n] * number)
        return sum(times(*index) * term(*index) for index in every)

    for a, b in ((0, 0), (0, 1), (1, 1)):
        total_a, total_b = (over(lambda i, j, c=c: K[c, i, j], 2) for c in (a, b))
        expected = (
            over(lambda i, j, a=a, b=b: K[a, i, j] * K[b, i, j], 2)
            - 2 / N * over(lambda i, j, k, a=a, b=b: K[a, i, j] * K[b, i, k], 3)
            + total_a * total_b / N**2
        )
        assert sums.centred[a, b] == pytest.approx(expected, rel=1e-9)
        assert sums.totals[a] == pytest.approx(total_a, rel=1e-9)


@pytest.mark.parametrize("budget", [1, 10**6])
@pytest.mark.parametrize("centre", [False, True])
def test_products_of_rows_are_their_definitions(budget, centre):
    n, K = 6, two_grams(6)
    means = K.mean(axis=2) if centre else None
    with memory_budget(budget):
        found = row_products(lambda i, j: iter(K[:, i, j]), n, means=means)
    H = np.eye(n) - 1 / n
    C = H @ K @ H if centre else K
    assert_allclose(found[0], np.einsum("aij,bij->iab", C, C), atol=1e-10)
    assert_allclose(found[1], np.einsum("aii,bii->iab", C, C), atol=1e-10)


def test_tiles_of_gram_matrices_fill_a_budget():
    shapes = []

    def evaluate(rows, columns):
        shapes.append((rows.stop - rows.start, columns.stop - columns.start))
        return iter(np.ones((3, *shapes[-1])))

    with memory_budget(_gram_products._PAIR_BYTES * 3 * 25):
        gram_products(evaluate, 20)
    assert sorted(set(shapes)) == [(1, 1), (5, 5)]
    assert len(shapes) == 1 + 10  # the first asks how many, then the upper half of 4 × 4


# --- products -----------------------------------------------------------------------------------


def test_a_map_that_overflows_names_the_largest_entry():
    with pytest.raises(ValueError, match=r"points up to 3e\+30, .* overflow float32"):
        map_points(np.array([[1e30, -3e30]], np.float32), np.array([[1e10, 0.0]], np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["sparse", "dense", "operator"])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_a_product_in_a_chosen_precision(kind, dtype, n):
    rng = np.random.RandomState(0)
    A = rng.randn(n, n) * (rng.uniform(size=(n, n)) < 0.5)
    V = rng.randn(n, 3).astype(dtype)
    given = {"sparse": sparse.csr_array(A), "dense": A, "operator": aslinearoperator(A)}[kind]
    product = BlockProduct(given, rough=dtype == np.float32)(V)
    assert product.dtype == dtype
    assert_allclose(product, A @ V, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert BlockProduct(given).dtype == np.float64
    assert BlockProduct(given).shape == (n, n)


@pytest.mark.parametrize("gathered", [1, 2**20])
@pytest.mark.parametrize("pairs_at_once", [2, 8192])
def test_distances_between_subspaces_are_least_squares(gathered, pairs_at_once, monkeypatch):
    monkeypatch.setattr(_subspaces, "_GATHER_BYTES", gathered)
    monkeypatch.setattr(_subspaces, "_PAIRS", pairs_at_once)
    rng = np.random.RandomState(0)

    def subspaces(n):
        directions = np.linalg.qr(rng.randn(n, 7, 2))[0].transpose(0, 2, 1)
        return np.concatenate([rng.randn(n, 1, 7), directions], axis=1)

    S, T = subspaces(4), subspaces(5)
    S[1, 2] = 0.0  # a point that moves in one direction alone
    T[0, 1] = S[0, 1]  # a direction that two share
    T[0, 2] -= (T[0, 2] @ T[0, 1]) * T[0, 1]
    T[0, 2] /= np.linalg.norm(T[0, 2])
    first, second = np.repeat(np.arange(4), 5), np.tile(np.arange(5), 4)
    expected = []
    for a, b in zip(S[first], T[second], strict=True):
        both = np.concatenate([a[1:], b[1:]]).T
        delta = a[0] - b[0]
        rest = delta - both @ np.linalg.lstsq(both, delta, rcond=None)[0]
        expected.append(rest @ rest)
    assert_allclose(subspace_distances(S, T, first, second), expected, rtol=1e-8, atol=1e-12)
    own = subspace_distances(S, S, np.arange(4), np.arange(4))
    assert_allclose(own, np.zeros(4), atol=1e-10)
    assert np.all(own >= 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_direction_that_two_points_share_to_the_last_bit_counts_once(dtype):
    S = np.array([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [[5.0, 3.0, 4.0], [1.0, 0.0, 0.0]]], dtype)
    found = subspace_distances(S, S, np.array([0, 0, 1]), np.array([0, 1, 0]))
    assert found.dtype == dtype
    assert_allclose(found, [0.0, 25.0, 25.0], atol=1e-4 if dtype == np.float32 else 1e-12)


# --- the softmax --------------------------------------------------------------------------------


@pytest.fixture
def three_classes():
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1, 2], [9, 14, 7])
    return rng.randn(30, 4) + codes[:, None], rng.randn(2, 4), codes


def softmax_of(E):
    D2 = cdist(E, E, "sqeuclidean")
    np.fill_diagonal(D2, np.inf)
    P = np.exp(-D2)
    return P / P.sum(axis=1, keepdims=True), np.log(P.sum(axis=1))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("budget", [2_000, 10**9])
def test_a_loss_is_given_the_softmax_and_the_logarithms_of_its_sums(
    budget, strict, three_classes, request
):
    X, L, _ = three_classes
    E, V = X @ L.T, np.random.RandomState(1).randn(30, 30)
    array = request.getfixturevalue("xp").asarray if strict else np.asarray
    P, logs = softmax_of(E)

    def weigh(some, rows, their_logs):
        assert_allclose(np.asarray(some), P[rows], atol=1e-12)
        assert_allclose(np.asarray(their_logs), logs[rows], atol=1e-9)
        return float(rows.stop - rows.start), array(V[rows])

    with memory_budget(budget):
        value, product = softmax_reduction(array(E), array(X), weigh)
    assert value == 30
    W = V + V.T
    assert_allclose(np.asarray(product), W.sum(axis=1)[:, None] * X - W @ X, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_far_from_all_others_pick_the_nearest_of_these(dtype):
    codes = np.repeat([0, 1], 20)
    X = np.random.RandomState(0).randn(40, 2).astype(dtype)
    X[[3, 25]] = [[300.0, 0.0], [0.0, -400.0]]
    value, _ = nca_loss(np.eye(2, dtype=dtype), X, codes)
    P, _ = softmax_of(np.delete(X.astype(float), [3, 25], axis=0))
    rest = np.delete(codes, [3, 25])
    D = cdist(X.astype(float), X.astype(float))
    np.fill_diagonal(D, np.inf)
    hits = codes[np.argmin(D[[3, 25]], axis=1)] == codes[[3, 25]]  # all of their softmax
    expected = np.sum(P * (rest[:, None] == rest)) + np.sum(hits)
    assert value == pytest.approx(-expected, rel=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("budget", [1, 4_000, 10**9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [[9, 14, 7], [2] * 15, [1, 28, 1]])
def test_the_loss_by_rows_is_its_definition(sizes, dtype, budget):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.RandomState(0)
    X, L = rng.randn(30, 3) + 0.3 * codes[:, None], rng.randn(2, 3)
    P, _ = softmax_of(X @ L.T)
    alike = codes[:, None] == codes
    p = np.sum(P * alike, axis=1)
    W = P * (alike - p[:, None])
    W = W + W.T
    expected = 2 * ((W.sum(axis=1)[:, None] * X - W @ X) @ L.T).T @ X
    with memory_budget(budget):
        value, gradient = nca_loss(L.astype(dtype), X.astype(dtype), codes)
    rtol = 1e-4 if dtype == np.float32 else 1e-9
    assert value == pytest.approx(-p.sum(), rel=rtol)
    assert_allclose(gradient, expected, atol=rtol * np.abs(expected).max())


def test_runs_of_equal_codes():
    assert _softmax.class_slices(np.array([0, 0, 2, 2, 2, 5])) == [(0, 2), (2, 5), (5, 6)]
    with pytest.raises(ValueError, match="Got unsorted codes"):
        _softmax.class_slices(np.array([0, 1, 0]))


# --- the hinge ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "stop"), [(0, 2), (2, 4), (1, 3), (3, 5), (0, 0), (0, 5)])
def test_rows_outside_a_class_are_where_they_belong(start, stop):
    block = _triplets.Block(slice(0, 1), slice(start, stop))
    others = np.r_[0:start, stop:5]
    spans = block.spans(5)
    assert [list(others[here]) for here, _ in spans] == [
        list(range(there.start, there.stop)) for _, there in spans
    ]
    assert sum(there.stop - there.start for _, there in spans) == len(others)


def hinge_of(E, V, targets, codes, c):
    """The objective and the Laplacian of its weights, triplet by triplet."""
    n = len(E)
    D2, weights, value = cdist(E, E, "sqeuclidean"), np.zeros((n, n)), 0.0
    for i, slot in zip(*np.nonzero(targets >= 0), strict=True):
        j = targets[i, slot]
        value += D2[i, j]
        weights[i, j] += 1
        for impostor in np.flatnonzero(codes != codes[i]):
            margin = 1 + D2[i, j] - D2[i, impostor]
            if margin > 0:
                value += c * margin
                weights[i, j] += c
                weights[i, impostor] -= c
    weights += weights.T
    return value, weights.sum(axis=1)[:, None] * V - weights @ V


@pytest.mark.every(4)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("crowd", [0.05, 3.0], ids=["most pairs cost", "few pairs cost"])
@pytest.mark.parametrize("sizes", [[8, 12, 10], [2] * 15, [1, 20, 9]])
def test_the_hinge_by_blocks_is_its_definition(sizes, crowd, strict, monkeypatch, request):
    monkeypatch.setattr(_impostors, "_WHOLE_ROWS", 0)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.RandomState(0)
    E, V = crowd * rng.randn(30, 2), rng.randn(30, 3)
    targets = class_neighbors(E, codes, 2, same=True)[0]
    array = request.getfixturevalue("xp").asarray if strict else np.asarray
    expected = hinge_of(E, V, targets, codes, 0.7)
    with memory_budget(8 * 30 * 8 * 4):
        value, product = lmnn_hinge(array(E), array(V), targets, codes, 0.7)
        mined, pairs = mine_impostors(array(E), targets, codes, 0.7)
    assert value == pytest.approx(expected[0], rel=1e-9)
    assert_allclose(np.asarray(product), expected[1], atol=1e-9)
    assert mined == pytest.approx(expected[0], rel=1e-9)
    assert pairs.dtype == np.int32
    value, product = lmnn_hinge_on(pairs, array(E), array(V), targets, 0.7)
    assert value == pytest.approx(expected[0], rel=1e-9)
    assert_allclose(np.asarray(product), expected[1], atol=1e-9)


def test_the_hinge_over_no_impostors_is_that_of_the_targets():
    E, targets = np.array([[0.0], [1.0], [3.0]]), np.array([[1], [2], [1]])
    value, product = lmnn_hinge_on(np.empty((0, 2), dtype=np.int32), E, E, targets, 1.0)
    assert value == 1 + 4 + 4
    assert_array_equal(product[:, 0], [-1.0, 1.0 - 4.0, 4.0])


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_the_nearest_impostors_are_listed_up_to_a_number(most):
    E = np.array([0.0, 0.1, 0.5, 0.6, 0.7, 0.8])[:, None]
    codes = np.array([0, 0, 1, 1, 1, 1])
    targets = np.array([[1], [0], [3], [2], [3], [4]])
    value, pairs = mine_impostors(E, targets, codes, 1.0, most=most)
    expected = [[i, j] for i in (0, 1) for j in range(2, 2 + min(most, 4))]
    expected += [[i, j] for i in range(2, 6) for j in ([1] if most == 1 else [0, 1])]
    assert sorted(pairs.tolist()) == expected
    assert value == pytest.approx(hinge_of(E, E, targets, codes, 1.0)[0])


@pytest.mark.parametrize("most", [1, 3, 7, 40])
@pytest.mark.parametrize("fewest", [1, 10**6], ids=["bounded by groups", "not bounded"])
def test_lists_of_impostors_are_their_definition(fewest, most, monkeypatch):
    monkeypatch.setattr(_smallest, "_FEWEST_ROWS", fewest)
    rng = np.random.RandomState(most)
    codes = np.repeat([0, 1, 2], [20, 15, 5])
    E = np.round(2.0 * rng.randn(40, 2))  # many ties, which go to the earlier column
    targets = class_neighbors(E, codes, 2, same=True)[0]
    targets[5] = -1  # a point without a target watches nobody
    value, pairs = mine_impostors(E, targets, codes, 0.7, slack=0.5, most=most)
    D2, expected = cdist(E, E, "sqeuclidean"), []
    for i in np.flatnonzero(targets[:, 0] >= 0):
        reach = 1.5 * (1.0 + D2[i, targets[i]].max())
        near = [j for j in range(40) if codes[j] != codes[i] and D2[i, j] < reach]
        nearest = sorted(near, key=lambda j: D2[i, j])[:most]
        expected += [[i, j] for j in sorted(nearest)]
    assert pairs.tolist() == expected
    assert value == pytest.approx(hinge_of(E, E, targets, codes, 0.7)[0], rel=1e-12)


def test_the_smallest_of_rows_are_kept_in_their_order():
    rows = np.array([0, 0, 0, 2, 2, 2, 2, 3])
    values = np.array([3.0, 1.0, 2.0, 5.0, 5.0, 4.0, 5.0, 9.0])
    assert _smallest.smallest_of_rows(rows, values, 2).tolist() == [1, 2, 3, 5, 7]
    assert _smallest.smallest_of_rows(rows, values, 3).tolist() == [0, 1, 2, 3, 4, 5, 7]
    assert _smallest.smallest_of_rows(rows[:0], values[:0], 2).tolist() == []


def test_one_block_in_so_many_counts_so_many_times():
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1], 8)
    E = 0.1 * rng.randn(16, 2)
    targets = class_neighbors(E, codes, 1, same=True)[0]
    pull = sum(cdist(E, E, "sqeuclidean")[np.arange(16), targets[:, 0]])
    with memory_budget(8 * 16 * 8 * 4):  # four rows a block
        (value,) = lmnn_at_lengths(E, targets, codes, 0.3, np.ones(1), every=2)
    seen = [0, 1, 2, 3, 8, 9, 10, 11]
    listed = np.array([(i, j) for i in seen for j in range(16) if codes[i] != codes[j]])
    hinge = lmnn_hinge_on(listed, E, E, targets, 0.3)[0] - pull
    assert value == pytest.approx(pull + 2 * hinge, rel=1e-9)


@pytest.mark.parametrize("weighs", [False, True], ids=["alike", "weighed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objectives_of_all_lengths_are_those_of_longer_and_shorter_points(dtype, weighs):
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1, 2, 3], [11, 9, 3, 2])  # large classes, and two that share blocks
    E = (0.5 * rng.randn(25, 3)).astype(dtype)
    targets = class_neighbors(E, codes, 2, same=True)[0]
    targets[3] = -1  # a point without a target has no margin
    weighed = Triplets(rng.rand(25, 2), rng.rand(25)) if weighs else None
    squares = 4.0 ** np.arange(-3, 4)
    with memory_budget(8 * 25 * 8 * 4):  # several blocks
        values = lmnn_at_lengths(E, targets, codes, 0.7, squares, weighed=weighed)
    for square, value in zip(squares, values, strict=True):
        longer = E * dtype(np.sqrt(square))
        expected, _ = mine_impostors(longer, targets, codes, 0.7, weighed=weighed)
        assert value == pytest.approx(expected, rel=1e-5 if dtype is np.float32 else 1e-10)


# --- threads and state --------------------------------------------------------------------------


def test_where_there_is_no_blas_there_is_one_thread(monkeypatch):
    monkeypatch.setattr(_threads, "_counts", lambda user_api: [])
    assert tiles_at_once() == 1
    assert _threads._Blas().take(object()) == 1


def test_threads_are_worth_their_cost_from_here_on():
    assert not _threads.worth_threads(2e8)
    assert _threads.worth_threads(2.1e8)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_a_refused_fit_added_is_taken_away_and_what_it_replaced_is_back(error):
    space = KPCA(3)
    space.rank_ = 3
    with pytest.raises(error), unchanged_on_failure(space):
        space.rank_, space.other_ = 4, 5
        raise error
    assert space.rank_ == 3
    assert not hasattr(space, "other_")
    with unchanged_on_failure(space):
        space.rank_ = 4
    assert space.rank_ == 4


# --- limits of numbers --------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, 40.0), (np.float64, 300.0)])
def test_what_is_as_good_as_nothing_becomes_no_smaller(dtype, least):
    D = np.array([[0.0, 1.0, 0.999 * least, 1.001 * least]], dtype=dtype)
    found = exp_of_negative(D, 1.0)
    np.testing.assert_allclose(found[0, :3], np.exp(-D[0, :3].astype(np.float64)), rtol=1e-5)
    assert found[0, 3] == pytest.approx(np.exp(-least), rel=1e-5, abs=0.0)
    assert D[0, 1] == 1.0  # not written into
    np.testing.assert_array_equal(exp_of_negative(D.copy(), 1.0, overwrite=True), found)


def test_a_matrix_that_is_not_positive_is_refused_with_the_last_shift_tried():
    shift = 1e-6
    with pytest.raises(np.linalg.LinAlgError) as seen:
        K = -np.eye(3, dtype=np.float32)
        _refined._factor(K, K.diagonal().copy(), shift, shift)
    said = re.match(r"Got a matrix of 3 rows with an eigenvalue below (\S+), but", str(seen.value))
    assert float(said[1]) == pytest.approx(-shift * 10.0 ** (_refined._ATTEMPTS - 1))


@pytest.mark.parametrize("n_tile", [2, 100])
def test_a_factor_is_found_with_a_little_more_on_the_diagonal(n_tile, monkeypatch):
    monkeypatch.setattr(_refined, "_TILE", n_tile)
    rng = np.random.RandomState(0)
    A = rng.standard_normal((5, 3))
    M = (A @ A.T).astype(np.float32)
    M = 0.5 * (M + M.T)
    M[np.diag_indices(5)] -= np.float32(1e-3)  # two eigenvalues of -0.001
    K = M.copy()
    L = np.tril(_refined._factor(K, M.diagonal().copy(), 1e-4, 1e-4))
    shifts = np.diag(L @ L.T - M)
    np.testing.assert_allclose(shifts, shifts[0], rtol=1e-2)
    assert 1e-3 <= shifts[0] < 0.2
    off = L @ L.T - M
    np.testing.assert_allclose(off - np.diag(np.diag(off)), 0.0, atol=1e-5)
    np.testing.assert_allclose(
        _refined.squares_of_columns(L.astype(np.float64)),
        np.sum(np.tril(L) ** 2, axis=0),
        rtol=1e-6,
    )


class Tensor:
    """What looks like a tensor on a device."""

    is_cuda = True

    def __init__(self, shape, dtype="torch.float32"):
        self.shape, self.dtype, self.device = shape, dtype, "cuda:0"


@pytest.mark.parametrize(
    ("shape", "dtype", "good"),
    [
        ((300, 5), "torch.float32", True),
        ((5, 300), "torch.float32", False),
        ((300, 1), "torch.float32", True),
        ((300, 0), "torch.float32", False),
        ((300, 256), "torch.float32", True),
        ((300, 257), "torch.float32", False),
        ((300, 5), "torch.float64", False),
    ],
)
def test_kernels_of_triton_take_few_coordinates_in_single_precision(
    shape, dtype, good, monkeypatch
):
    monkeypatch.setattr(cuda, "_TRITON", True)
    assert cuda.suits(Tensor(shape, dtype)) is good
    monkeypatch.setattr(cuda, "_TRITON", False)
    assert not cuda.suits(Tensor(shape, dtype))
    elsewhere = Tensor(shape, dtype)
    elsewhere.is_cuda = False
    assert not cuda.single_on_device(elsewhere)


def test_tensors_of_the_user_come_back_as_tensors(monkeypatch):
    monkeypatch.setattr(_methods, "is_torch_array", lambda thing: isinstance(thing, Tensor))
    monkeypatch.setattr(_methods, "to_numpy", lambda thing: "an array")
    monkeypatch.setattr(_methods, "working_on", lambda device: nullcontext())
    monkeypatch.setattr(_methods, "device_in_use", lambda: None)

    class Metric:
        @_methods.on_devices
        def transform(self, X):
            self.kept = X
            return X

    tensor, metric = Tensor((3, 2)), Metric()
    assert metric.transform(tensor) is tensor and metric.kept is tensor
    assert metric.transform(X=[1.0]) == [1.0]
    monkeypatch.setattr(_methods, "device_in_use", lambda: "cuda:0")
    assert metric.transform(tensor) is tensor  # where it lies, not on the device in use
    Metric.made = _methods.on_devices(lambda self, X: (tensor, {"in": [tensor]}, 3))
    Metric.itself = _methods.on_devices(lambda self, X: self)
    assert metric.made(np.ones(2)) == ("an array", {"in": ["an array"]}, 3)
    metric.kept = tensor
    assert metric.itself(np.ones(2)) is metric and metric.kept == "an array"
    assert not _methods._INSIDE.get()


@pytest.mark.parametrize(("n", "k", "size"), [(40, 3, 8), (400, 3, 32), (400, 40, 6), (41, 3, 9)])
def test_the_smallest_of_groups_bound_the_smallest_of_a_row(n, k, size):
    D2 = np.random.RandomState(0).standard_normal((6, n))
    width = n // size
    minima = [D2[:, g : width * size : width].min(axis=1) for g in range(width)]
    expected = np.sort(np.stack(minima, axis=1), axis=1)[:, k - 1]
    assert_array_equal(upper_bounds(D2, k), expected)
    assert np.all(np.sum(D2 <= expected[:, None], axis=1) >= k)
    assert np.all(np.isinf(upper_bounds(D2[:, :9], 3)))
