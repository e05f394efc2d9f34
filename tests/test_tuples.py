"""Triplets and quadruplets: the same promises as pairs."""

import copy
import pickle

import numpy as np
import pytest

from kernelmetric import (
    ITML,
    LSML,
    MMC,
    SCML,
    SDML,
    IdealizedKernel,
    Kernelized,
    Linear,
    Pairs,
    Quadruplets,
    Triplets,
)
from kernelmetric.graphs import count_triplets, points_of_tuples

KINDS = [Triplets, Quadruplets]


@pytest.fixture
def points():
    rng = np.random.RandomState(0)
    y = np.arange(30) % 3
    X = rng.standard_normal((30, 4))
    X[:, 0] += 2 * y
    return X, y


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_labels_make_tuples_whose_near_pairs_are_of_one_class(kind):
    y = np.array([0, 1, 0, 2, 1, 1, 0, 2, 3])  # one class of a single point
    tuples = kind.from_labels(y, per_point=4, random_state=0)
    assert 2 * len(y) < len(tuples) <= 4 * len(y)
    assert np.all(y[tuples.near[:, 0]] == y[tuples.near[:, 1]])
    assert np.all(y[tuples.far[:, 0]] != y[tuples.far[:, 1]])
    assert np.all(tuples.near[:, 0] != tuples.near[:, 1])
    again = kind.from_labels(y, per_point=4, random_state=0)
    np.testing.assert_array_equal(tuples.rows, again.rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_class_makes_no_tuples(kind):
    assert len(kind.from_labels([1, 1, 1], per_point=2)) == 0


def test_all_triplets_are_those_of_every_point():
    triplets = Triplets.from_labels([0, 0, 1, 1])
    assert triplets.rows.tolist() == [
        [0, 1, 2],
        [0, 1, 3],
        [1, 0, 2],
        [1, 0, 3],
        [2, 3, 0],
        [2, 3, 1],
        [3, 2, 0],
        [3, 2, 1],
    ]
    assert count_triplets(np.array([0, 0, 1, 1])) == len(triplets)


def test_near_triplets_are_of_the_nearest_points():
    X, y = np.array([[0.0], [1.0], [2.5], [10.0], [11.0]]), [0, 0, 1, 1, 1]
    triplets = Triplets.from_neighbors(X, y, 1, 1)
    assert triplets.rows.tolist() == [[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 4, 1], [4, 3, 1]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0, 0, 1]], "a point and itself"),
        ([[0, 1, 0]], "a point and itself"),
        ([[0, 1, 1]], "of a pair with itself"),
        ([[0, 1, 2], [0, 1, 2]], "listed before"),
        ([[0, 1, 2], [0, 2, 1]], "the other way round"),
        ([[0, 1]], "of shape"),
        ([[0.0, 1.0, 2.0]], "of shape"),
        ([[0, 1, 9]], "from 0 to 4"),
        ([[0, 1, -1]], "from 0 to 4"),
    ],
)
def test_faulty_triplets_are_refused_by_name(rows, said):
    with pytest.raises(ValueError, match=said):
        Triplets(rows, 5)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0, 0, 1, 2]], "a point and itself"),
        ([[0, 1, 1, 0]], "of a pair with itself"),
        ([[0, 1, 2, 3], [1, 0, 3, 2]], "listed before"),
        ([[0, 1, 2, 3], [3, 2, 0, 1]], "the other way round"),
    ],
)
def test_faulty_quadruplets_are_refused_whichever_point_comes_first(rows, said):
    with pytest.raises(ValueError, match=said):
        Quadruplets(rows, 5)


def test_faults_that_are_dropped_are_told_and_the_first_of_duplicates_stays():
    rows = [[0, 1, 2], [0, 1, 2], [3, 1, 1], [1, 2, 3], [1, 3, 2]]
    with pytest.warns(UserWarning, match="Left out"):
        assert Triplets(rows, 4, faults="drop").rows.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_tuples_are_never_sliced_or_changed(kind):
    tuples = kind([list(range(kind.width))], 5)
    with pytest.raises(TypeError, match="cannot be indexed"):
        tuples[:1]
    with pytest.raises(AttributeError, match="do not change"):
        tuples.rows = tuples.rows
    with pytest.raises(ValueError, match="read-only"):
        tuples.rows[0, 0] = 3
    for again in (pickle.loads(pickle.dumps(tuples)), copy.deepcopy(tuples)):
        assert repr(again) == repr(tuples)
        np.testing.assert_array_equal(again.rows, tuples.rows)


def test_a_subset_counts_its_points_anew():
    triplets = Triplets([[0, 1, 2], [2, 3, 4]], 5)
    part = triplets.subset([4, 2, 3])
    assert (part.rows.tolist(), part.n_samples) == ([[1, 2, 0]], 3)
    with pytest.raises(ValueError, match="repetitions"):
        triplets.subset([0, 0, 1])
    assert triplets.take([1]).rows.tolist() == [[2, 3, 4]]


def test_triplets_are_quadruplets_that_share_a_point():
    triplets = Triplets([[0, 1, 2], [2, 3, 4]], 5)
    quadruplets = triplets.as_quadruplets()
    np.testing.assert_array_equal(triplets.near, quadruplets.near)
    np.testing.assert_array_equal(triplets.far, quadruplets.far)


def test_triplets_are_read_from_a_file(tmp_path):
    file = tmp_path / "triplets.csv"
    file.write_text("a,b,c\n0,1,2 # a comment\n\n2,3,4\n")
    assert Triplets.from_file(file, 5).rows.tolist() == [[0, 1, 2], [2, 3, 4]]
    file.write_text("0,1\n")
    with pytest.raises(ValueError, match="expected 3 row numbers"):
        Triplets.from_file(file, 5)


# --- arrays of points, as metric-learn takes them -----------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "learner", [ITML(), MMC(), SDML(), IdealizedKernel(C=3.0, nu=0.8)], ids=repr
)
def test_pairs_of_points_teach_what_their_row_numbers_teach(learner, points):
    X, y = points
    pairs = Pairs.from_labels(y, per_point=3, random_state=0)
    signs = np.where(pairs.is_similar, 1, -1)
    order = np.lexsort(X.T[::-1])  # points are told apart in this order
    place = np.argsort(order)
    by_rows = learner.fit(X[order], pairs=Pairs(place[pairs.similar], place[pairs.dissimilar], 30))
    M = by_rows.get_mahalanobis_matrix()
    for T in (X[pairs.rows], X[pairs.rows].tolist()):
        found = learner.fit(T, signs).get_mahalanobis_matrix()
        np.testing.assert_allclose(found, M, atol=1e-8 * np.abs(M).max())


@pytest.mark.every(4)
@pytest.mark.parametrize("learner", [LSML(tol=1e-9), SCML()], ids=repr)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_tuples_of_points_teach_what_their_row_numbers_teach(learner, kind, points):
    X, y = points
    tuples = kind.from_labels(y, per_point=3, random_state=0)
    order = np.lexsort(X.T[::-1])
    moved = kind(np.argsort(order)[tuples.rows], 30)
    M = learner.fit(X[order], **{f"{kind.kind}s": moved}).get_mahalanobis_matrix()
    found = learner.fit(X[tuples.rows]).get_mahalanobis_matrix()
    np.testing.assert_allclose(found, M, rtol=1e-6, atol=1e-6 * np.abs(M).max())


@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [ITML(tol=1e-10), LSML(tol=1e-10)], ids=repr)
def test_tuples_of_points_are_kernelized(learner, points):
    X, y = points
    if isinstance(learner, ITML):
        pairs = Pairs.from_labels(y, per_point=3, random_state=0)
        T, given = X[pairs.rows], (np.where(pairs.is_similar, 1, -1),)
    else:
        T, given = X[Triplets.from_labels(y, per_point=3, random_state=0).rows], ()
    alone = learner.fit(T, *given).pairwise_distances(X)
    kernelized = Kernelized(learner, Linear()).fit(T, *given).pairwise_distances(X)
    np.testing.assert_allclose(kernelized, alone, atol=1e-5 * alone.max())


@pytest.mark.parametrize("y", [None, [0, 1], [1]], ids=str)
def test_pairs_of_points_need_signs(y, points):
    T = points[0][[[0, 1], [2, 3]]]
    with pytest.raises(ValueError, match="1 for each similar and -1 for each dissimilar"):
        ITML().fit(T, y)


def test_tuples_of_points_stand_alone(points):
    X, _ = points
    T = X[[[0, 3, 1], [1, 4, 0]]]
    with pytest.raises(ValueError, match="beside triplets"):
        LSML().fit(T, triplets=[[0, 1, 2]])
    with pytest.raises(ValueError, match="expected none"):
        LSML().fit(T, [1, 1])
    with pytest.raises(ValueError, match="three or four points"):
        LSML().fit(X[[[0, 3], [1, 4]]])


def test_a_pair_of_points_listed_twice_counts_once(points):
    X, _ = points
    T, signs = X[[[0, 3], [1, 2]]], np.array([1, -1])
    with pytest.warns(UserWarning, match="listed before"):
        twice = ITML().fit(np.concatenate([T, T[:1]]), np.append(signs, 1))
    np.testing.assert_allclose(twice.components_, ITML().fit(T, signs).components_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64], ids=lambda t: t.__name__)
def test_points_of_tuples_are_told_apart_as_unique_rows(dtype):
    rng = np.random.RandomState(0)
    T = rng.randint(-2, 3, size=(200, 3, 2)).astype(dtype)
    T[T == 0] *= -1  # -0.0 is 0.0
    X, rows = np.unique(T.reshape(-1, 2), axis=0, return_inverse=True)
    Y, numbers = points_of_tuples(T)
    np.testing.assert_array_equal(Y, X)
    np.testing.assert_array_equal(numbers, rows.reshape(200, 3))


@pytest.mark.parametrize("first", [0, 1], ids=["by the last entries", "by the first entries"])
def test_points_of_tuples_have_the_order_of_unique_rows(first):
    T = np.random.RandomState(0).randint(-2, 2, size=(100, 4, 6)) / 4.0
    T[..., :5] *= first
    X, rows = np.unique(T.reshape(-1, 6), axis=0, return_inverse=True)
    Y, numbers = points_of_tuples(T)
    np.testing.assert_array_equal(Y, X)
    np.testing.assert_array_equal(numbers, rows.reshape(100, 4))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_faults_of_tuples_are_found_among_any_number_of_points(kind):
    last = 10**9  # four such numbers make no integer of 64 bits
    row = [0, last - 1, 1, last][: kind.width]
    with pytest.raises(ValueError, match="listed before"):
        kind([row, row], n_samples=last + 1)
    assert len(kind([row], n_samples=last + 1)) == 1
