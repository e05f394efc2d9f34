"""Pairs: where they come from, what follows from them, and which points they number."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from kernelmetric.compute import memory_budget
from kernelmetric.graphs import Pairs, as_pairs, pair_distances

pytestmark = pytest.mark.usefixtures("deadline")


def as_set(rows):
    return {frozenset(pair) for pair in rows.tolist()}


def same_pairs(first, second):
    return (
        first.n_samples == second.n_samples
        and np.array_equal(first.similar, second.similar)
        and np.array_equal(first.dissimilar, second.dissimilar)
    )


@pytest.fixture
def points():
    rng = np.random.RandomState(0)
    y = rng.permutation(np.repeat([3, 5, 9], [20, 25, 5]))
    return rng.randn(50, 4), y


# --- from labels --------------------------------------------------------------------------------


def test_labels_make_every_pair_once(points):
    _, y = points
    pairs = Pairs.from_labels(y)
    assert len(pairs) == 50 * 49 // 2
    everything = {frozenset(pair) for pair in combinations(range(50), 2)}
    assert as_set(pairs.similar) == {pair for pair in everything if len({y[i] for i in pair}) == 1}
    assert as_set(pairs.dissimilar) == everything - as_set(pairs.similar)


@pytest.mark.parametrize("per_point", [1, 3, 100])
def test_every_point_gets_its_partners_of_either_kind(points, per_point):
    _, y = points
    pairs = Pairs.from_labels(y, per_point=per_point, random_state=0)
    assert np.all(y[pairs.similar[:, 0]] == y[pairs.similar[:, 1]])
    assert np.all(y[pairs.dissimilar[:, 0]] != y[pairs.dissimilar[:, 1]])
    sizes = np.array([np.sum(y == label) for label in y])
    similar = np.bincount(pairs.similar.ravel(), minlength=50)
    dissimilar = np.bincount(pairs.dissimilar.ravel(), minlength=50)
    assert np.all(similar >= np.minimum(per_point, sizes - 1))
    assert np.all(dissimilar >= np.minimum(per_point, 50 - sizes))
    assert len(pairs) <= 2 * per_point * 50


def test_random_pairs_repeat_themselves_with_their_seed_and_reach_everywhere(points):
    _, y = points
    draws = [Pairs.from_labels(y, per_point=1, random_state=seed) for seed in range(200)]
    assert same_pairs(draws[3], Pairs.from_labels(y, per_point=1, random_state=3))
    everything = Pairs.from_labels(y)
    assert set().union(*(as_set(d.similar) for d in draws)) == as_set(everything.similar)
    assert set().union(*(as_set(d.dissimilar) for d in draws)) == as_set(everything.dissimilar)


@pytest.mark.parametrize("fraction", [1.0, 0.7, 0.3, 0.06])
def test_similar_pairs_are_drawn_until_so_many_components_are_left(points, fraction):
    _, y = points
    pairs = Pairs.from_labels(y, components=fraction, random_state=0)
    assert np.all(y[pairs.similar[:, 0]] == y[pairs.similar[:, 1]])
    assert pairs.components().max() + 1 == round(fraction * 50)
    assert len(pairs.dissimilar) == len(Pairs.from_labels(y).dissimilar)
    if len(pairs.similar):  # and not one pair more
        fewer = pairs.take(np.arange(len(pairs.similar) - 1))
        assert fewer.components().max() + 1 == round(fraction * 50) + 1


@pytest.mark.slow
def test_components_are_drawn_uniformly_from_all_similar_pairs():
    y = np.repeat([0, 1], [3, 4])  # 3 and 6 pairs
    draws = [Pairs.from_labels(y, components=6 / 7, random_state=seed) for seed in range(450)]
    firsts = [frozenset(draw.similar[0].tolist()) for draw in draws]
    counts = [firsts.count(pair) for pair in as_set(Pairs.from_labels(y).similar)]
    assert len(counts) == 9
    assert all(23 < count < 77 for count in counts)  # 50 expected, four deviations of 6.7


def test_fewer_components_than_classes_are_refused(points):
    with pytest.raises(ValueError, match=r"components=0\.05.*at least 0\.06"):
        Pairs.from_labels(points[1], components=0.05)


def test_one_class_has_no_dissimilar_pairs():
    for options in ({}, {"per_point": 2}, {"components": 0.5}):
        pairs = Pairs.from_labels(np.zeros(6), random_state=0, **options)
        assert len(pairs.dissimilar) == 0
        assert len(pairs.similar) > 0


# --- from chunks, neighbours and files ----------------------------------------------------------


def test_chunks_make_similar_pairs_and_clusters_dissimilar_ones_too():
    codes = [7, 7, -1, 2, 2, 2]
    chunks = Pairs.from_chunks(codes)
    assert as_set(chunks.similar) == {frozenset(p) for p in [(0, 1), (3, 4), (3, 5), (4, 5)]}
    assert len(chunks.dissimilar) == 0
    clusters = Pairs.from_chunks(codes, between=True)
    assert as_set(clusters.dissimilar) == {frozenset((a, b)) for a in (0, 1) for b in (3, 4, 5)}
    assert clusters.n_samples == 6


def test_near_pairs_are_those_selected_from_all(points):
    X, y = points
    for radius in ("median", 1.5, None):
        direct = Pairs.from_neighbors(X, y, n_neighbors=3, radius=radius)
        selected = Pairs.from_labels(y).select(X, n_neighbors=3, radius=radius)
        assert as_set(direct.similar) == as_set(selected.similar)
        assert as_set(direct.dissimilar) == as_set(selected.dissimilar)


@pytest.mark.parametrize(
    "text",
    [
        "0,1,1\n1,2,1\n0,3,-1\n",
        "first second sign\n0 1 1\n1 2 1 # known to all\n\n0 3 0\n",
        "# pairs\na, b, same\n0, 1, 1\n1, 2, 1\n0, 3, 0",
    ],
)
def test_a_file_has_two_row_numbers_and_a_sign(tmp_path, text):
    path = tmp_path / "pairs.txt"
    path.write_text(text, encoding="utf-8")
    pairs = Pairs.from_file(path, 4)
    assert pairs.similar.tolist() == [[0, 1], [1, 2]]
    assert pairs.dissimilar.tolist() == [[0, 3]]


def test_two_columns_are_similar_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("0,1\n", encoding="utf-8")
    assert Pairs.from_file(path, 4).similar.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n1 x\n", "line 2 .*two row numbers"),
        ("0 1 1\n1 2\n", "'1, 2' in line 2 .*as many columns"),
        ("0 1 2\n", "the sign 2 in line 1"),
        ("0 1 1 1\n", "line 1 .*two row numbers"),
        ("a b\n", "without a line"),
        ("0 9\n", r"row 0 is \(0, 9\)"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(tmp_path, text, message):
    path = tmp_path / "pairs.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Pairs.from_file(path, 4)


# --- faults -------------------------------------------------------------------------------------

FAULTY = {
    "self": (([[0, 1], [2, 2]], []), r"itself \(row 1 is \(2, 2\)\)"),
    "duplicate": (([[0, 1], [1, 0]], []), r"listed before \(row 1 is \(1, 0\)\)"),
    "contradiction": (([[0, 1], [3, 2]], [[2, 3]]), r"also dissimilar \(row 1 is \(3, 2\)\)"),
}


@pytest.mark.parametrize(("given", "message"), FAULTY.values(), ids=FAULTY)
def test_faults_are_named_with_their_rows_or_dropped_with_a_warning(given, message):
    with pytest.raises(ValueError, match=message):
        Pairs(*given, n_samples=4)
    with pytest.warns(UserWarning, match=message):
        kept = Pairs(*given, n_samples=4, faults="drop")
    assert kept.similar.tolist() == [[0, 1]]
    assert len(kept.dissimilar) == 0


@pytest.mark.parametrize("bad", [[[0, 4]], [[-1, 2]]])
def test_row_numbers_outside_the_data_are_refused_even_when_faults_are_dropped(bad):
    with pytest.raises(ValueError, match=r"row 0 is .* expected row numbers from 0 to 3"):
        Pairs(None, bad, 4, faults="drop")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0, 1.0]], None, 4), "dtype float64"),
        (([[0, 1, 2]], None, 4), r"shape \(1, 3\)"),
        (([0, 1], None, 4), r"shape \(2,\)"),
        (([[0, 1]], None), "n_samples=None"),
        (([[0, 1]], None, 4.0), "n_samples=4.0"),
    ],
)
def test_what_is_not_a_list_of_row_numbers_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Pairs(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_point": 0}, "per_point=0"),
        ({"components": 0}, "components=0"),
        ({"components": 1.2}, "components=1.2"),
    ],
)
def test_bad_options_of_labels_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Pairs.from_labels([0, 1, 0], **options)


def test_more_pairs_than_memory_are_refused_before_they_are_made():
    with pytest.raises(MemoryError, match="per_point"):
        Pairs.from_labels(np.arange(5_000_000) % 2)


# --- what follows from pairs --------------------------------------------------------------------


def test_the_closure_is_what_labels_of_the_groups_would_say(points):
    _, y = points
    groups = Pairs.from_labels(y, components=0.06, random_state=0)  # as connected as can be
    assert as_set(groups.closure().similar) == as_set(Pairs.from_labels(y).similar)
    one_each = [[np.flatnonzero(y == a)[0], np.flatnonzero(y == b)[0]] for a, b in [(3, 5), (5, 9)]]
    closed = Pairs(groups.similar, one_each, 50).closure()
    expected = {
        frozenset((i, j)) for i, j in combinations(range(50), 2) if {y[i], y[j]} in ({3, 5}, {5, 9})
    }
    assert as_set(closed.dissimilar) == expected
    assert as_set(closed.closure().dissimilar) == expected


def test_a_closure_that_contradicts_itself_is_refused():
    pairs = Pairs([[0, 1], [1, 2]], [[3, 4], [0, 2]], 5)
    with pytest.raises(ValueError, match=r"row 1, \(0, 2\)"):
        pairs.closure()


def test_a_subset_numbers_the_same_points(points):
    _, y = points
    pairs = Pairs.from_labels(y, per_point=4, random_state=0)
    rows = np.random.RandomState(1).permutation(50)[:30]
    part = pairs.subset(rows)
    assert part.n_samples == 30
    inside = as_set(pairs.similar) & {frozenset(pair) for pair in combinations(rows.tolist(), 2)}
    assert as_set(rows[part.similar]) == inside
    assert np.all(y[rows][part.dissimilar[:, 0]] != y[rows][part.dissimilar[:, 1]])
    mask = np.isin(np.arange(50), rows)
    assert same_pairs(pairs.subset(mask), pairs.subset(np.flatnonzero(mask)))
    with pytest.raises(ValueError, match="repetitions"):
        pairs.subset([0, 0, 1])


def test_selection_keeps_the_nearest_of_each_kind_within_the_radius(points):
    X, y = points
    D = squareform(pdist(X))
    pairs = Pairs.from_labels(y)
    R = np.median(D[np.triu_indices(50, 1)])
    chosen = pairs.select(X, n_neighbors=2)
    for kind, same in ((chosen.similar, True), (chosen.dissimilar, False)):
        expected = set()
        for i in range(50):
            others = [j for j in range(50) if j != i and (y[i] == y[j]) == same]
            nearest = sorted(others, key=lambda j, i=i: D[i, j])[:2]
            expected |= {frozenset((i, j)) for j in nearest if D[i, j] <= R}
        assert as_set(kind) == expected
    assert same_pairs(chosen, pairs.select(D, n_neighbors=2, metric="precomputed"))


def test_the_radius_spares_similar_pairs_that_are_all_there_is(points):
    X, y = points
    labelled = Pairs.from_labels(y)
    known = Pairs(labelled.similar, labelled.dissimilar, 50)
    without = known.select(X, n_neighbors=5)
    assert as_set(without.similar) == as_set(known.select(X, 5, radius=None).similar)
    assert as_set(without.dissimilar) == as_set(labelled.select(X).dissimilar)
    assert same_pairs(known.select(X, limit_similar=True), labelled.select(X))
    assert len(labelled.select(X).similar) < len(without.similar)


def test_selection_refuses_other_points(points):
    X, y = points
    pairs = Pairs.from_labels(y)
    with pytest.raises(ValueError, match=r"n_samples=50.*X has 49 rows"):
        pairs.select(X[1:])
    with pytest.raises(ValueError, match="radius=-1"):
        pairs.select(X, radius=-1)
    with pytest.raises(ValueError, match="n_neighbors=0"):
        pairs.select(X, 0)
    with pytest.raises(ValueError, match="NaN"):
        pairs.select(np.where(np.arange(50)[:, None] == 3, np.nan, X))
    assert same_pairs(pairs.select(X.tolist()), pairs.select(X))


def test_distances_of_pairs_are_the_same_in_blocks_and_for_sparse_points(points):
    X, y = points
    rows = Pairs.from_labels(y).rows
    expected = squareform(pdist(X))[rows[:, 0], rows[:, 1]]
    np.testing.assert_allclose(pair_distances(X, rows), expected, rtol=1e-12)
    np.testing.assert_allclose(pair_distances(sparse.csr_array(X), rows), expected, rtol=1e-12)
    with memory_budget("2KB"):
        np.testing.assert_allclose(pair_distances(X, rows), expected, rtol=1e-12)


# --- as objects ---------------------------------------------------------------------------------


def test_pairs_pickle_print_and_do_not_change():
    pairs = Pairs([[0, 1]], [[1, 2], [2, 3]], 4, labelled=True)
    again = pickle.loads(pickle.dumps(pairs))
    assert same_pairs(pairs, again)
    assert again.labelled
    assert repr(pairs) == "Pairs(1 similar, 2 dissimilar, n_samples=4)"
    assert len(pairs) == 3
    assert pairs.is_similar.tolist() == [True, False, False]
    for one in (pairs, again):
        with pytest.raises(ValueError, match="read-only"):
            one.similar[0, 0] = 3
        with pytest.raises(AttributeError, match="do not change"):
            one.n_samples = 5


def test_the_given_array_is_copied():
    rows = np.array([[0, 1]])
    pairs = Pairs(rows, None, 4)
    rows[0, 0] = 3
    assert pairs.similar.tolist() == [[0, 1]]


def test_indexing_is_refused_with_the_reason():
    pairs = Pairs([[0, 1]], [[1, 2]], 4)
    for attempt in (lambda: pairs[0], lambda: pairs[:1], lambda: list(pairs)):
        with pytest.raises(TypeError, match="cross_validate_pairs"):
            attempt()


# --- what a fit got -----------------------------------------------------------------------------


def test_a_fit_takes_pairs_row_numbers_or_labels():
    pairs = Pairs([[0, 1]], [[1, 2]], 3)
    assert as_pairs(pairs, None, None, None, 3) is pairs
    assert as_pairs(pairs, None, None, [0, 0, 1], 3) is pairs
    assert same_pairs(as_pairs(None, [[0, 1]], [[1, 2]], None, 3), pairs)
    assert len(as_pairs(None, None, None, ["a", "a", "b"], 3)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Pairs([[0, 1]], None, 3), None, None, None, 4), "n_samples=3.*X has 4 rows"),
        ((Pairs([[0, 1]], None, 3), [[0, 1]], None, None, 3), "beside similar"),
        (([[0, 1]], None, None, None, 3), "type list"),
        ((None, [[0, 1]], None, [0, 0, 1], 3), "Got y beside similar"),
        ((None, None, None, None, 3), "neither y nor pairs"),
        ((None, None, None, [0, 1], 3), "X has 3 rows"),
        ((None, [[0, 3]], None, None, 3), "from 0 to 2"),
    ],
)
def test_what_a_fit_cannot_use_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        as_pairs(*arguments)
