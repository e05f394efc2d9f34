"""What a transductive distance chooses by itself: graph, width or neighbours, dimension."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import TransductiveDistance, load, save
from kernelmetric.graphs import gaussian_graph, neighbor_graph
from kernelmetric.transductive._choice import (
    DIMENSIONS,
    Graph,
    candidate_graphs,
    choose_geometry,
    hidden_scores,
)


def tight_in_wide(n=240, seed=0):
    """Two classes of one centre, one of them wide: neighbours of a wide one are tight ones."""
    rng = np.random.RandomState(seed)
    truth = (np.arange(n) % 3 > 0).astype(int)
    X = rng.standard_normal((n, 12)) * np.where(truth, 0.3, 1.3)[:, None]
    return X, np.where(np.arange(n) < n // 6, truth, -1), truth


def groups(n=90, seed=0):
    """Three groups of points far from each other."""
    rng = np.random.RandomState(seed)
    truth = np.arange(n) % 3
    return rng.standard_normal((n, 3)) + 20.0 * np.eye(3)[truth], truth


def checkerboard(n=120, seed=0):
    """Cells of a board, of which no graph makes more than the points are; half have labels."""
    X = np.random.RandomState(seed).uniform(0, 4, (n, 2))
    truth = np.floor(X).sum(axis=1).astype(int) % 2
    return X, np.where(np.random.RandomState(seed).permutation(n) < n // 2, truth, -1)


def eigenvectors(*args, **options):
    """The paper's method, which is one of two by default."""
    return TransductiveDistance(*args, method="eigenvectors", **options)


def right(model, y, truth):
    return np.mean(model.transduction_[y < 0] == truth[y < 0])


# --- what comes out ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_tight_class_in_a_wide_one_takes_a_full_graph():
    X, y, truth = tight_in_wide()
    model = eigenvectors(random_state=0).fit(X, y)
    assert model.graph_ == "gaussian"
    assert model.width_ > 0
    assert right(model, y, truth) > 0.9
    assert right(eigenvectors(10, n_neighbors=20).fit(X, y), y, truth) < 0.8


@pytest.mark.slow
def test_what_was_chosen_scored_best_but_for_chance():
    X, y, _ = tight_in_wide()
    model = eigenvectors(random_state=0).fit(X, y)
    assert len(model.graph_scores_) == 7  # three neighbours, three widths, the points
    assert model.graph_scores_[f"gaussian {model.width_:.4g}"] == max(model.graph_scores_.values())
    d = model.embedding_.shape[1]
    assert list(model.dimension_scores_) == list(DIMENSIONS)
    assert model.dimension_scores_[d] > np.median(list(model.dimension_scores_.values()))
    assert all(0 <= score <= 1 for score in model.graph_scores_.values())


@pytest.mark.slow
def test_the_unit_of_the_features_does_not_matter():
    X, y, _ = tight_in_wide()
    model, other = (eigenvectors(random_state=0).fit(k * X, y) for k in (1.0, 1024.0))
    assert_allclose(other.width_, 1024.0**2 * model.width_)
    assert_allclose(list(other.graph_scores_.values()), list(model.graph_scores_.values()), 1e-5)
    assert_array_equal(other.transduction_, model.transduction_)


@pytest.mark.slow
def test_labels_drawn_by_lot_are_found_by_chance():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((150, 4)), rng.permutation(150) % 2
    model = eigenvectors(random_state=0).fit(X, y)
    assert max(model.graph_scores_.values()) < 0.62  # of six, the best by luck
    assert np.median(list(model.graph_scores_.values())) < 0.56


def test_the_choice_is_the_same_twice():
    X, y, _ = tight_in_wide(120)
    first, second = (eigenvectors(lam=1e4).fit(X, y) for _ in range(2))
    assert first.graph_scores_ == second.graph_scores_
    assert_array_equal(first.embedding_, second.embedding_)


# --- the points as they are -------------------------------------------------------------------


def test_points_that_no_graph_is_better_than_stay_where_they_are():
    X, y = checkerboard()
    model = eigenvectors().fit(X, y)
    assert (model.graph_, model.width_, model.lam_) == ("points", None, np.inf)
    assert model.graph_scores_["points"] > 0
    assert model.dimension_scores_ == model.lam_scores_ == {}
    assert_array_equal(model.embedding_, X)
    assert_array_equal(model.eigenvalues_, np.zeros(2))
    nearest = KNeighborsClassifier(1).fit(X[y >= 0], y[y >= 0])
    assert_array_equal(model.transduction_, nearest.predict(X))
    new = np.random.RandomState(1).uniform(0, 4, (7, 2))
    assert_array_equal(model.transform(new), new)
    assert_array_equal(model.predict(new), nearest.predict(new))


def test_points_that_stay_are_those_of_the_prior():
    X, y = checkerboard()
    model = eigenvectors(prior=lambda X: 4.0 * X[:, ::-1]).fit(X, y)
    assert model.graph_ == "points"
    assert_array_equal(model.embedding_, 4.0 * X[:, ::-1])
    assert_array_equal(model.transform(X[:5]), 4.0 * X[:5, ::-1])


def test_points_that_stay_are_nobody_elses():
    X, y = checkerboard()
    X = X.astype(np.float32)
    given = X.copy()
    model = eigenvectors().fit(X, y)
    new = model.transform(X)
    assert new.dtype == model.embedding_.dtype == np.float32
    new[:] = 7.0
    X[:] = 7.0
    assert_array_equal(model.embedding_, given)
    assert_array_equal(model.transform(given), given)


def test_points_that_stay_are_saved(tmp_path):
    X, y = checkerboard()
    model = eigenvectors().fit(X, y)
    for same in (load(save(model, tmp_path / "points.metric")), pickle.loads(pickle.dumps(model))):
        assert same.graph_ == "points"
        assert_array_equal(same.transform(X + 0.1), X + 0.1)
        assert_array_equal(same.predict(X), model.predict(X))


def test_a_feature_of_zeros_stays_too():
    X, y = checkerboard()
    model = eigenvectors().fit(np.insert(X, 1, 0.0, axis=1), y)
    assert model.graph_ == "points"
    assert model.label_mass_[1] == 0.5  # the share of labels
    assert_array_equal(model.embedding_[:, [0, 2]], X)


@pytest.mark.slow
def test_a_second_fit_forgets_whether_points_stayed():
    X, y = checkerboard()
    other, known, _ = tight_in_wide(210)
    both = [(X, y), (other, known)]
    fresh = [eigenvectors(random_state=0).fit(*each) for each in both]
    assert [each.graph_ for each in fresh] == ["points", "gaussian"]
    again = eigenvectors(random_state=0, warm_start=True)
    for i in (0, 1, 0):
        again.fit(*both[i])
        assert_allclose(again.embedding_, fresh[i].embedding_, atol=1e-10)
        assert_allclose(again.transform(both[i][0]), again.embedding_, atol=1e-10)
        assert (again.graph_, again.lam_) == (fresh[i].graph_, fresh[i].lam_)


@pytest.mark.slow
def test_points_stay_only_where_all_is_left_open():
    X, y = checkerboard()
    by_hand = [
        {"n_components": 3}, {"lam": np.inf}, {"n_neighbors": 5}, {"graph": "neighbors"},
        {"penalty": "warped"},
    ]  # fmt: skip
    for settings in by_hand:
        model = eigenvectors(random_state=0, **settings).fit(X, y)
        assert model.graph_ != "points"
        assert "points" not in model.graph_scores_


def test_equal_points_of_two_classes_are_no_nearer_to_either():
    X = np.repeat(np.random.RandomState(0).standard_normal((10, 3)) + 1e6, 3, axis=0)
    codes = np.arange(30) % 3 % 2  # of three equal points two are of class 0
    kept = np.where(np.arange(30) % 3 == 0, -1, codes)
    assert_array_equal(hidden_scores(X, kept, codes, [3])[0], 0.5)


# --- what is given by hand --------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_given_by_hand_is_used():
    X, y, _ = tight_in_wide(90)
    seven = eigenvectors(4, 1e4, 7).fit(X, y)
    assert (seven.graph_, seven.n_neighbors_, seven.embedding_.shape[1]) == ("neighbors", 7, 4)
    assert seven.graph_scores_ == seven.dimension_scores_ == seven.lam_scores_ == {}
    same = eigenvectors(4, 1e4, graph=neighbor_graph(X, 7)).fit(X, y)
    assert same.graph_ == "given"
    assert_allclose(same.embedding_, seven.embedding_, atol=1e-10)
    full = eigenvectors(4, 1e4, graph="gaussian").fit(X, y)
    assert_array_equal(
        full.embedding_, eigenvectors(4, 1e4, graph=gaussian_graph(X)).fit(X, y).embedding_
    )
    wide = eigenvectors(graph="gaussian", random_state=0).fit(X, y)
    assert list(wide.graph_scores_) == ["gaussian"]
    assert len(wide.dimension_scores_) == len(DIMENSIONS)
    near = eigenvectors(3, graph="neighbors", random_state=0).fit(X, y)
    assert list(near.graph_scores_) == ["neighbors 5", "neighbors 10", "neighbors 20"]
    assert list(near.dimension_scores_) == [3]


@pytest.mark.slow
def test_a_penalty_without_a_graph_leaves_the_dimension_to_choose():
    X, y, _ = tight_in_wide(60)
    model = eigenvectors(penalty="kernel", random_state=0).fit(X, y)
    assert model.graph_ == "none"
    assert model.embedding_.shape[1] in model.dimension_scores_
    assert eigenvectors(2, penalty="kernel").fit(X, y).dimension_scores_ == {}


def test_pairs_choose_nothing_and_are_heard():
    X = groups()[0]
    X = X + np.random.RandomState(1).standard_normal(X.shape) * 6  # one part
    model = eigenvectors().fit(X, similar=[[0, 3], [1, 4]], dissimilar=[[0, 1]])
    assert model.embedding_.shape == (90, 10)
    assert model.graph_scores_ == {}
    assert np.isfinite(model.lam_)


# --- candidates -------------------------------------------------------------------------------


def kinds(X, y, graph="auto", n_neighbors="auto"):
    return [(each.kind, each.heard) for each in candidate_graphs(graph, n_neighbors, X, y)]


def test_only_a_thousand_points_are_all_joined():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((1001, 2)), np.arange(1001) % 2
    near, full, heard = ("neighbors", False), ("gaussian", False), ("gaussian", True)
    assert kinds(X, y) == [near] * 3
    assert kinds(X[:1000], y[:1000]) == [near] * 3 + [full, heard, heard]
    assert kinds(X[:200], y[:200], graph="neighbors") == [near] * 3
    assert kinds(X[:200], y[:200], n_neighbors=6) == [near]


def test_few_labels_take_the_fewest_neighbours_that_leave_no_part_without_a_label():
    rng = np.random.RandomState(0)
    line = np.sort(rng.uniform(0, 1, (60, 1)), axis=0)
    line[8:] += 0.5  # eight points apart: five neighbours join nobody else to them, ten do
    y = np.full(60, -1)
    y[[15, 20, 40, 50]] = [0, 0, 1, 1]
    (only,) = candidate_graphs("auto", "auto", line, y)
    assert only.size == 10
    y[3] = 0
    (only,) = candidate_graphs("auto", "auto", line, y)
    assert only.size == 5
    model = eigenvectors(random_state=0).fit(line, y)
    assert model.graph_scores_ == {}
    assert model.embedding_.shape[1] == 5  # as many as labels


@pytest.mark.slow
def test_a_part_that_no_number_of_neighbours_joins_to_a_label_is_warned_of():
    X, truth = groups()
    y = np.where((np.arange(90) < 30) & (truth < 2), truth, -1)
    with pytest.warns(UserWarning, match="graph of 3 connected components"):
        eigenvectors(2, graph="neighbors", random_state=0).fit(X, y)
    y = np.where(np.arange(90) < 30, truth, -1)
    eigenvectors(2, graph="neighbors", random_state=0).fit(X, y)  # no warning
    assert not next(candidate_graphs("auto", "auto", X, y)).gaps


def test_only_the_graph_that_is_used_is_warned_of():
    X, truth = groups()
    y = np.where((np.arange(90) < 60) & (truth < 2), truth, -1)
    assert next(candidate_graphs("auto", "auto", X, y)).gaps
    assert eigenvectors().fit(X, y).graph_ in ("points", "gaussian")  # no warning


def test_points_with_many_copies_have_no_width():
    X = np.repeat(np.random.RandomState(0).standard_normal((5, 2)), 10, axis=0)
    assert kinds(X, np.arange(50) % 2) == [("neighbors", False)] * 3


# --- the rule ---------------------------------------------------------------------------------


def test_hidden_scores_compare_the_nearest_of_either_class():
    E = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0]])
    codes, kept = np.array([0, 0, 1, 1]), np.array([-1, 0, 1, -1])
    scores = hidden_scores(E, kept, codes, [1, 2])
    assert_allclose(scores[0], [16 / 17, 1 / 17])  # distances 1 and 2
    assert_allclose(scores[1], [64 / 65, 1 / 65])  # 1 and √8
    kept[2] = -1  # no label of its class is left
    assert_allclose(hidden_scores(E, kept, codes, [2])[0, 1:], 0.0)


def test_many_hidden_labels_are_looked_for_in_every_class():
    codes = np.repeat([0, 1, 2], 200)  # in order
    points = np.arange(600.0)[:, None]
    kept = np.where(np.arange(600) % 2, codes, -1)
    points[codes == 2] -= 399.6  # between those of class 0: both are lost
    scores = hidden_scores(points, kept, codes, [1])[0]
    assert len(scores) == 200
    assert_allclose(np.mean(scores < 0.5), 2 / 3, atol=0.02)


def choose(*accuracies, points=None):
    """The graph chosen, where hidden labels of 60 are found with these shares."""
    codes = np.arange(60) % 2

    def embed(share, d, lam, known):
        wrong = np.random.RandomState(0).permutation(60) >= round(60 * share)
        moved = np.where(wrong & (known < 0), 1 - codes, codes)
        return SimpleNamespace(vectors=np.column_stack([10.0 * moved, np.arange(60) / 60.0]))

    def make(share):
        return _Shared(share)

    graphs = (Graph("neighbors", i, share, heard=True) for i, share in enumerate(accuracies))
    return choose_geometry(
        graphs, make, lambda geometry, *rest: embed(geometry.share, *rest), codes, 2, "auto", 60,
        n_folds=5, points=points,
    )  # fmt: skip


class _Shared(SimpleNamespace):
    def __init__(self, share):
        super().__init__(share=share, basis=None, scale=1.0)


def test_the_preferred_graph_gives_way_to_a_better_one():
    assert choose(0.9, 0.9, 0.9).graph.size == 0
    assert choose(0.9, 0.8, 0.9).graph.size == 0
    assert choose(0.7, 0.9, 0.6).graph.size == 1
    assert choose(0.6, 0.8, 1.0).graph.size == 2
    assert choose(0.7, 0.9).lam == 2.0**11
    assert list(choose(0.7, 0.9).graph_scores) == ["neighbors 0", "neighbors 1"]


def test_a_graph_must_be_better_than_the_points_by_more_than_a_standard_error():
    codes = np.arange(60) % 2
    wrong = np.random.RandomState(1).permutation(60) >= 42
    points = 10.0 * np.where(wrong, 1 - codes, codes)[:, None] + np.arange(60)[:, None] / 60.0
    own = choose(0.5, 0.5, points=points).graph_scores["points"]
    for lead, kind in ((-0.1, "points"), (0.03, "points"), (0.25, "neighbors")):
        assert choose(own + lead, 0.5, points=points).graph.kind == kind
    assert choose(0.5, 0.5, points=points).n_components == 1
