"""Compute: what is refused at which size, what a budget bounds, and small inputs' answers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.utils.multiclass import check_classification_targets

from kernelmetric import LDA, memory_budget
from kernelmetric.compute import _budget, _machine, precise, rough, rounding_of
from kernelmetric.compute._budget import (
    itemsize_of,
    parse_bytes,
    require_memory,
    row_blocks,
    tile_rows,
)
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions import (
    _distances,
    _smallest,
    _triplets,
    mine_impostors,
    squared_distances,
)
from kernelmetric.inputs import as_floats, check_labels, check_points

MB = 10**6
GB = 10**9

# --- what is refused ----------------------------------------------------------------------------


def test_64_megabytes_are_allowed_even_where_none_are_free(monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 0)
    require_memory(64 * MB, "A fit", "try less.")
    with pytest.raises(MemoryError, match=r"about 0\.1 GB, but 0\.0 GB are free: try less\."):
        require_memory(64 * MB + 1, "A fit", "try less.")


def test_what_is_free_may_be_taken_and_no_more(monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 3 * GB)
    require_memory(3 * GB, "A fit", "try less.")
    with pytest.raises(MemoryError, match=r"A fit would take about 4\.0 GB, but 3\.0 GB are free"):
        require_memory(4 * GB, "A fit", "try less.")


def test_arrays_in_full_may_take_the_budget_or_8_megabytes(monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 100 * GB)
    with memory_budget("1MB"):
        require_memory(GB, "A fit", "try less.", in_full=8 * MB)
        with pytest.raises(MemoryError, match=r"about 9 MB .* but the memory budget is 1 MB: try"):
            require_memory(GB, "A fit", "try less.", in_full=9 * MB)
    with memory_budget("50MB"):
        require_memory(GB, "A fit", "try less.", in_full=50 * MB)
        with pytest.raises(MemoryError, match=r"about 51 MB .* but the memory budget is 50 MB"):
            require_memory(GB, "A fit", "try less.", in_full=51 * MB)


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [
        ("500", 500),
        ("500B", 500),
        ("2K", 2 * 10**3),
        ("2kb", 2 * 10**3),
        ("2M", 2 * 10**6),
        ("2MB", 2 * 10**6),
        ("2 gb", 2 * 10**9),
        ("2T", 2 * 10**12),
        (".5K", 500),
        ("1e3", 1000),
        (1, 1),
        (1.9, 1),
    ],
)
def test_every_unit_of_a_budget_has_its_factor(size, n_bytes):
    assert parse_bytes(size) == n_bytes


@pytest.mark.parametrize("size", [0, 0.99, "0", "0.9B", -1, float("inf"), float("nan")])
def test_less_than_a_byte_is_no_budget(size):
    with pytest.raises(ValueError, match="Got a memory budget of"):
        parse_bytes(size)


# --- what a machine says ------------------------------------------------------------------------


def files_of(root, contents):
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_groups_without_memory_have_no_say(tmp_path):
    root = files_of(
        tmp_path,
        {
            "proc/self/cgroup": "12:cpu,cpuacct:/b\n1:name=systemd:/b\n3:cpu,memory:/a\n0::/b\n",
            "sys/fs/cgroup/memory.max": "11\n",  # encloses the others
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000\n",
            "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "700\n",
            "sys/fs/cgroup/memory/a/memory.stat": "inactive_file 1\ntotal_inactive_file 200\n",
            "sys/fs/cgroup/b/memory.max": "3000\n",
            "sys/fs/cgroup/b/memory.current": "400\n",
            "sys/fs/cgroup/b/memory.stat": "total_inactive_file 1\ninactive_file 500\n",
        },
    )
    found = sorted(_machine._groups(root))
    assert found == [(11, 0), (2000, 500), (3000, 0)]


# --- what a budget bounds -----------------------------------------------------------------------


def test_a_tile_has_at_least_32_rows_and_fills_the_cache():
    X = np.ones((1, 1))
    assert tile_rows(X, 10**9, 2**20) == 32
    assert tile_rows(X, 0, 8 * 100) == 100
    assert tile_rows(X, 10, 8 * 1000) == 100
    assert tile_rows(X.astype(np.float32), 10, 8 * 1000) == 200


@pytest.mark.every(4)
@pytest.mark.parametrize("n_rows", [0, 1, 7, 100])
@pytest.mark.parametrize("most", [None, 1, 3, 1000])
@pytest.mark.parametrize("per_row", [0, 1, 299, 300, 301, 10**9])
def test_blocks_cover_all_rows_within_the_budget(n_rows, most, per_row):
    with memory_budget(900):
        blocks = list(row_blocks(n_rows, per_row, most=most))
    rows = [row for block in blocks for row in range(block.start, block.stop)]
    assert rows == list(range(n_rows))
    sizes = [block.stop - block.start for block in blocks]
    assert all(1 <= size <= max(1, 900 // max(per_row, 1)) for size in sizes)
    assert all(size <= (most or n_rows) for size in sizes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 100])
def test_blocks_of_impostors_stay_within_the_budget(n_classes, dtype):
    n = 400
    codes = np.repeat(np.arange(n_classes), n // n_classes)
    E = np.ones((n, 2), dtype=dtype)
    with memory_budget(8 * n * itemsize_of(E) * 5):
        blocks = _triplets.impostor_blocks(codes, E)
    rows = [row for block, _ in blocks for row in range(block.start, block.stop)]
    assert rows == list(range(n))
    assert max(block.stop - block.start for block, _ in blocks) == 5


# --- answers of small inputs, however they are cut ----------------------------------------------


class Tensor(np.ndarray):
    """An array with the selection of torch, for machines without it."""

    def topk(self, k, dim, largest):
        assert dim == 1
        values = np.asarray(self)
        found = np.argsort(-values if largest else values, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(values, found, axis=1), found


@pytest.mark.parametrize("kind", [np.ndarray, Tensor])
@pytest.mark.parametrize(("k", "m"), [(1, 1), (1, 5), (4, 5), (5, 5), (3, 600), (1, 129), (2, 257)])
def test_the_smallest_are_found_by_every_way_of_looking(kind, k, m):
    D2 = np.random.RandomState(0).permutation(7 * m).reshape(7, m).astype(float)
    columns, values = _smallest.k_smallest(D2.view(kind), k)
    expected = np.argsort(D2, axis=1)[:, :k]
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(D2, expected, axis=1))


@pytest.mark.parametrize(("k", "m"), [(2, 9), (8, 9), (2, 600)])
def test_ties_go_to_the_earlier_column(k, m):
    D2 = np.ones((3, m))
    D2[1, -1] = 0.0
    columns, values = _smallest.k_smallest(D2, k)
    np.testing.assert_array_equal(columns[0], np.arange(k))
    np.testing.assert_array_equal(columns[1], [m - 1, *range(k - 1)])
    assert values[1, 0] == 0.0


@pytest.mark.parametrize("bytes_gathered", [1, 100, 2**22])
def test_short_distances_are_gathered_a_row_at_least(bytes_gathered, monkeypatch):
    monkeypatch.setattr(_distances, "_CHUNK_BYTES", bytes_gathered)
    rng = np.random.RandomState(0)
    P, Q = rng.randn(9, 5), rng.randn(4, 5)
    rows, columns = np.repeat(np.arange(4), 9), np.tile(np.arange(9), 4)
    found = _distances.pair_squares(Q, P, rows, columns)
    np.testing.assert_allclose(found.reshape(4, 9), squared_distances(Q, P), rtol=1e-9)


@pytest.mark.parametrize("chunk", [1, 100, 2**20])
def test_distances_of_pairs_do_not_depend_on_the_chunk(chunk, monkeypatch):
    monkeypatch.setattr(_triplets, "_PAIR_CHUNK_BYTES", chunk)
    E = np.random.RandomState(0).randn(8, 3)
    i, j = np.triu_indices(8, 1)
    found = _triplets.pair_distances(E, i, j)
    np.testing.assert_allclose(found, squared_distances(E)[i, j], rtol=1e-9)


def test_impostors_are_listed_up_to_the_margin_and_its_slack():
    E = np.array([[0.0], [1.0], [2.0], [3.0]])  # targets at 1, so the margin is at 2
    codes = np.array([0, 0, 1, 1])
    targets = np.array([[1], [0], [3], [2]])
    # squared distances to impostors are 1, 4, 4 and 9
    for slack, expected in (
        (0.0, [[1, 2], [2, 1]]),
        (0.9, [[1, 2], [2, 1]]),
        (1.1, [[0, 2], [1, 2], [1, 3], [2, 0], [2, 1], [3, 1]]),
    ):
        value, pairs = mine_impostors(E, targets, codes, 0.5, slack=slack)
        assert sorted(pairs.tolist()) == expected
        assert value == pytest.approx(4 * 1.0 + 0.5 * 2 * 1.0)  # whatever is listed


# --- plain arrays, which are checked here and not by scikit-learn ---------------------------------


def test_a_fit_on_an_array_forgets_the_names_of_a_table():
    X = np.random.RandomState(0).standard_normal((12, 2))
    y = np.arange(12) % 2
    metric = LDA().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        metric.transform(X)
    metric.fit(X, y)
    assert not hasattr(metric, "feature_names_in_")
    metric.transform(X)


def test_an_array_of_another_width_is_refused_as_scikit_learn_does():
    X = np.random.RandomState(0).standard_normal((12, 3))
    metric = LDA().fit(X, np.arange(12) % 2)
    assert metric.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features, but LDA is expecting 3"):
        metric.transform(X[:, :2])
    with pytest.raises(ValueError, match="contains NaN"):
        metric.transform(np.full((1, 3), np.nan))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        metric.fit(X[:1], [0])


def test_a_sum_beyond_the_range_is_no_infinity():
    X = np.full((4, 2), 1e308)
    X[::2] /= 2
    assert check_points(LDA(), X, reset=True) is X


def test_whole_labels_are_coded_as_others_and_many_of_them_are_warned_of():
    X = np.zeros((30, 1))
    for y in (np.array([3, 7, 3, 9] * 7 + [9, 7]), np.array([True, False] * 15)):
        codes = check_labels(y, X)
        np.testing.assert_array_equal(codes, check_labels(y.astype(str), X))
        np.testing.assert_array_equal(codes, check_labels(y.tolist(), X))
    said = []
    for look in (check_classification_targets, lambda y: check_labels(y, X)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            look(np.arange(30))
        said.append({str(warning.message) for warning in caught})
    assert said[0] == said[1]  # a warning from scikit-learn 1.7 on
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_labels(np.arange(3), X)


# --- what rooms above ask for -------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.ones, lambda shape: csr_array(np.ones(shape))])
def test_all_digits_and_half_of_them_are_there_and_back(make):
    X = make((3, 2))
    assert precise(X) is X
    few = rough(X)
    assert rounding_of(X) == 2.0**-52 and rounding_of(few) == 2.0**-23
    assert rough(few, 1e-3).dtype == few.dtype == np.float32
    assert precise(few).dtype == np.float64
    assert precise(few, if_cheap=True) is few  # no CPU has all digits for nothing


@pytest.mark.parametrize(
    ("asked", "few"),
    [
        ({"tol": 1e-6}, True),
        ({"tol": 1e-7}, False),
        ({"tol": 0.0}, False),
        ({"tol": 1e-3, "operations": 1e6}, True),
        ({"tol": 1e-3, "operations": 0.9e6}, False),
        ({"tol": 1e-3, "size": 0.9e15}, True),
        ({"tol": 1e-3, "size": 1e15}, False),
        ({"tol": 1e-3, "size": 1e-15}, False),
        ({"tol": 1e-3, "size": np.nan}, False),
        ({"tol": np.nan}, False),
        ({"tol": 1e-3, "dense": True}, True),
    ],
)
def test_half_of_the_digits_are_for_rough_work_that_is_long(asked, few):
    X = np.ones((2, 2))
    assert (rough(X, **asked).dtype == np.float32) is few
    assert (rough(X, **asked) is X) is not few


def test_dense_algebra_keeps_all_digits_where_they_cost_nothing(monkeypatch):
    X = np.ones((2, 2), np.float32)
    monkeypatch.setattr(type(backend_of(X)), "wide_is_fast", lambda self, X: True)
    assert precise(X, if_cheap=True).dtype == np.float64
    wide = X.astype(np.float64)
    assert rough(wide, 1e-3, dense=True) is wide
    assert rough(wide, 1e-3).dtype == rough(wide, dense=True).dtype == np.float32


def test_equations_in_few_digits_are_refined():
    B = np.random.RandomState(0).standard_normal((30, 40))
    A = np.kron(B @ B.T, np.ones((2, 2)))  # every row twice: no factor without a shift
    b = np.repeat(B[:, :2], 2, axis=0)
    few = rough(A)
    found = backend_of(few).positive_solver(few)(b)
    assert found.dtype == np.float64
    np.testing.assert_allclose(A @ found, b, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, bool, np.float32, np.float64])
def test_numbers_that_are_not_computed_with_become_floats(dtype):
    A = np.ones((2, 2), dtype)
    known = dtype in (np.float32, np.float64)
    assert as_floats(A).dtype == (dtype if known else np.float64)
    assert (as_floats(A) is A) is known
