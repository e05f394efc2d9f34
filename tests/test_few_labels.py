"""Few labels that spread over a graph: what is solved, what is chosen, and what is said of it."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.utils import get_tags

from kernelmetric import TransductiveDistance, load, save, use_device
from kernelmetric.compute.conjugate_gradients import conjugate_gradients
from kernelmetric.graphs import gaussian_graph, local_graph, neighbor_graph
from kernelmetric.transductive._diffusion import Diffusion, joined
from kernelmetric.transductive._shares import shares_by_distance
from kernelmetric.transductive._sizes import offsets, shares_found, soft_shares
from kernelmetric.transductive._spread import _pool

ONE_EACH = pytest.mark.filterwarnings("ignore:Got a single label")


APART = pytest.mark.filterwarnings("ignore:Got a graph in which nothing joins")


def labelled(truth, count, seed=0):
    """So many labels of each class, -1 elsewhere."""
    rng, y = np.random.RandomState(seed), np.full(len(truth), -1)
    for c in np.unique(truth):
        y[rng.permutation(np.flatnonzero(truth == c))[:count]] = c
    return y


def moons(n=200, count=1, seed=0):
    X, truth = make_moons(n, noise=0.05, random_state=seed)
    return X, labelled(truth, count, seed), truth


def ring(n=40, seed=0):
    """Weights of a connected graph."""
    rng = np.random.RandomState(seed)
    W = np.diag(rng.uniform(0.5, 1.5, n - 1), 1)
    W[0, -1] = 1.0
    W[3, 20] = 0.4
    return W + W.T


def sources(n=40):
    """Three labels of two classes: their targets, centred, and what they count."""
    mass, targets = np.zeros((n, 1)), np.zeros((n, 2))
    mass[[2, 11, 30]], targets[[2, 11], 0], targets[30, 1] = 1.0, 1.0, 1.0
    return targets - (mass * targets).sum(axis=0) / mass.sum(), mass


def right(model, y, truth):
    return np.mean(model.transduction_[y < 0] == truth[y < 0])


# --- what is solved ---------------------------------------------------------------------------


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_an_infinite_ridge_solves_the_poisson_equation(as_given):
    W, (targets, mass) = ring(), sources()
    F = Diffusion(as_given(W)).spread(targets, mass, np.inf)
    d = W.sum(axis=1)
    assert_allclose((np.diag(d) - W) @ F / d.mean(), mass * targets, atol=2e-3)
    assert_allclose(d @ F, 0.0, atol=1e-3)  # centred by degree
    assert F[2, 0] > F[2, 1]
    assert F[30, 1] > F[30, 0]


def test_a_ridge_is_the_least_squares_less_its_mean():
    W, (targets, mass) = ring(), sources()
    d, lam = W.sum(axis=1), 3.0
    F = Diffusion(W).spread(targets, mass, lam)
    A = np.diag(mass[:, 0]) + lam * (np.diag(d) - W) / d.mean()
    exact = np.linalg.solve(A, mass * targets)
    exact -= d @ exact / d.sum()
    assert_allclose(F, lam * exact, atol=2e-3 * np.abs(exact).max() * lam)


def test_a_label_behind_a_weak_edge_does_not_outweigh_the_others():
    W = np.zeros((16, 16))
    W[:10, :10] = W[10:, 10:] = 1.0
    W[np.diag_indices(16)] = 0.0
    W[9, 10] = W[10, 9] = 1e-3
    targets, mass = np.full((16, 1), -1 / 3), np.zeros((16, 1))
    targets[15], mass[[0, 1, 15]] = 2 / 3, 1.0
    ridge, sources = (Diffusion(W).spread(targets, mass, lam) for lam in (10.0, np.inf))
    assert np.ptp(ridge) <= 10.0  # f lies between the targets, and is times λ
    assert np.ptp(sources) > 100.0


@pytest.mark.parametrize("lam", [0.01, 10.0, np.inf])
def test_a_factor_finds_what_conjugate_gradients_find(lam):
    W, (targets, mass) = ring(), sources()
    place = np.append(np.arange(40), [11, 7])  # copies, one of a label and one of none
    targets, mass = (np.vstack([part, part[[11]], 0 * part[[7]]]) for part in (targets, mass))
    targets -= (mass * targets).sum(axis=0) / mass.sum()
    slow = Diffusion(W, place).spread(targets, mass, lam)
    quick = Diffusion(W, place, mass[:, 0] > 0).spread(targets, mass, lam)
    assert_allclose(quick, slow, atol=1e-4 * np.abs(slow).max())
    fewer = np.where(np.arange(42) == 2, 0.0, mass[:, 0])[:, None]  # one is hidden
    quick = Diffusion(W, place, mass[:, 0] > 0).spread(targets, fewer, 3.0)
    slow = Diffusion(W, place).spread(targets, fewer, 3.0)
    assert_allclose(quick, slow, atol=1e-4 * np.abs(slow).max())


def test_a_walk_takes_means_and_labels_stay():
    W, Y = ring(), np.eye(3)[np.random.RandomState(0).randint(3, size=40)]
    fixed, expected = np.isin(np.arange(40), [4, 9]).astype(float), Y
    P = W / W.sum(axis=1, keepdims=True)
    for _ in range(5):
        expected = np.where(fixed[:, None] > 0, Y, P @ expected)
    assert_allclose(Diffusion(W).walk(Y, fixed, 5), expected, atol=1e-12)
    place = np.append(np.arange(40), [4, 7])  # copies, one of a label and one of none
    rows = np.vstack([Y, [[9.0, 9, 9]], Y[7:8]])
    found = Diffusion(W, place).walk(rows, np.append(fixed, [0.0, 0.0]), 5)
    assert_allclose(found, expected[place], atol=1e-12)


@pytest.mark.parametrize("lam", [1e-12, 1e-6])
def test_labels_that_pull_without_end_are_boundary_values(lam):
    W, (_, mass) = ring(), sources()
    values, known = np.zeros_like(mass), mass[:, 0] > 0
    values[[2, 11, 30], 0] = 1.0, -2.0, 5.0
    L = np.diag(W.sum(axis=1)) - W
    exact = values[:, 0].copy()
    exact[~known] = np.linalg.solve(L[~known][:, ~known], -L[~known][:, known] @ exact[known])
    F = Diffusion(W).spread(values, mass, lam)[:, 0] / lam
    d = W.sum(axis=1)
    assert_allclose(F, exact - d @ exact / d.sum(), atol=1e-4)


def test_conjugate_gradients_solve_every_column_by_itself():
    rng = np.random.RandomState(0)
    A = rng.standard_normal((30, 30))
    A, B = A @ A.T + 30 * np.eye(30), rng.standard_normal((30, 4))
    B[:, 2] = 0.0
    found = conjugate_gradients(lambda V: A @ V, B, tol=1e-10)
    assert_allclose(found.X, np.linalg.solve(A, B), atol=1e-8)
    assert found.residual <= 1e-10


def test_an_edge_is_the_mean_of_what_both_sides_say():
    nearest, squares = np.array([[1, 2], [0, 2], [1, 0]]), np.array([[1.0, 4], [1, 1], [1, 4]])
    W = local_graph(nearest, squares).toarray()
    assert_allclose(W, W.T)
    assert_allclose(W[0, 1], (np.exp(-1) + np.exp(-4)) / 2)
    assert np.all(local_graph(nearest, 0.0 * squares).data == 1.0)  # of copies


def test_an_edge_is_as_strong_as_many_neighbours_are_in_common():
    nearest = np.array([[1], [0], [3], [1]])  # 3 is near 2 but has another neighbour
    W = local_graph(nearest, np.ones((4, 1))).toarray() / np.exp(-4.0)
    assert_allclose(W[0, 1], 1.0)  # each has the other, both times
    assert_allclose(W[2, 3], (1 / 3) / 2)  # of 2, 3 and 1 only 3; on one side
    assert_allclose(W[3, 1], (1 / 3) / 2)


def test_parts_are_joined_by_one_weak_edge_at_their_nearest_points():
    X = np.concatenate([np.arange(5.0), 100 + np.arange(4.0), [300.0]])[:, None]
    W = neighbor_graph(X, 1) * 2.0
    W = W - sparse.diags_array(W.diagonal())
    W = W.tolil()
    W[9, :], W[:, 9] = 0.0, 0.0
    whole, part = joined(W.tocsr(), X)
    added = (whole - W.tocsr()).toarray()
    assert len(np.unique(part)) == 3
    assert added[4, 5] == added[5, 4] == 2.0
    assert np.count_nonzero(added) == 4


# --- what comes of it -------------------------------------------------------------------------


@ONE_EACH
def test_one_label_a_class_is_enough_on_two_moons():
    X, y, truth = moons()
    model = TransductiveDistance().fit(X, y)
    nearest = TransductiveDistance(method="eigenvectors", graph="neighbors", lam=np.inf)
    assert model.method_ == "diffusion"
    assert right(model, y, truth) == 1.0
    assert model.embedding_.shape == (200, 2)
    assert right(nearest.fit(X, y), y, truth) <= right(model, y, truth)


def test_a_single_label_is_warned_of_with_what_is_assumed():
    X, y, _ = moons()
    with pytest.warns(UserWarning, match="no label can be hidden to judge by, so λ is 10"):
        TransductiveDistance().fit(X, y)


@ONE_EACH
def test_the_embedding_are_probabilities_and_labels_are_corners():
    X, y, _ = moons(count=2)
    model = TransductiveDistance(method="diffusion").fit(X, y)
    E = model.embedding_
    assert_allclose(E.sum(axis=1), 1.0)
    assert_array_equal(E[y >= 0], np.eye(2)[y[y >= 0]])
    corners = model.pairwise_distances(X, X[y >= 0])
    assert_array_equal(y[y >= 0][corners.argmin(axis=1)], model.transduction_)
    assert_allclose(model.predict_proba(X), E)
    assert_array_equal(model.predict(X), model.transduction_)


@pytest.mark.slow
@ONE_EACH
def test_new_points_get_the_classes_that_they_would_have_had():
    X, truth = make_moons(500, noise=0.08, random_state=1)
    new = np.arange(500) % 5 == 0
    y = labelled(np.where(new, -1, truth), 3)
    y[new] = -1
    inside = TransductiveDistance(method="diffusion").fit(X, y)
    outside = TransductiveDistance(method="diffusion").fit(X[~new], y[~new])
    assert np.mean(outside.predict(X[new]) == inside.transduction_[new]) >= 0.98


def test_a_new_point_is_among_those_whose_neighbours_are_as_far():
    tight, wide = np.linspace(0, 1, 30), np.linspace(3, 60, 30)
    X, truth = np.concatenate([tight, wide])[:, None], np.repeat([0, 1], 30)
    model = TransductiveDistance(method="diffusion", lam=10.0).fit(X, labelled(truth, 5))
    new = np.array([[1.9]])  # nearer to the tight ones, but far out of them
    assert model.predict(new) == 1
    model._reach = None
    assert model.predict(new) == 0


def test_new_points_know_their_own_distances_to_the_labels():
    rng = np.random.RandomState(0)
    X, truth = rng.standard_normal((200, 10)), np.arange(200) % 2  # of which a graph says nothing
    y = labelled(truth, 20)
    model = TransductiveDistance(method="diffusion").fit(X, y)
    assert model.nearest_weight_ > 0
    at_labels = X[y >= 0] + 1e-3
    found = model.predict_proba(at_labels)
    assert np.mean(found.argmax(axis=1) == y[y >= 0]) > 0.9
    assert not np.allclose(found, model.predict_proba(X[y >= 0]))  # which are corners


@ONE_EACH
def test_neither_the_order_of_points_nor_the_names_of_classes_matter():
    X, y, _ = moons(count=2)
    order = np.random.RandomState(1).permutation(len(X))
    model = TransductiveDistance(method="diffusion", lam=10).fit(X, y)
    other = TransductiveDistance(method="diffusion", lam=10).fit(X[order], y[order])
    assert_allclose(other.embedding_, model.embedding_[order], atol=1e-3)
    names = np.array([None, "z", "a"], dtype=object)[y + 1]
    named = TransductiveDistance(method="diffusion", lam=10).fit(X, names)
    assert_allclose(named.embedding_[:, ::-1], model.embedding_, atol=1e-3)
    assert_array_equal(named.classes_, ["a", "z"])


@ONE_EACH
def test_only_the_ratio_of_weights_matters_and_a_heavier_label_pulls_more():
    X, truth = make_blobs(120, centers=[[0, 0], [3, 0]], random_state=0)
    y, how = labelled(truth, 3), {"method": "diffusion", "lam": 10}
    w = np.ones(120)
    plain = TransductiveDistance(**how).fit(X, y).transduction_
    assert_array_equal(
        TransductiveDistance(**how).fit(X, y, sample_weight=3 * w).transduction_, plain
    )
    w[y == 1] = 50.0
    heavy = TransductiveDistance(**how).fit(X, y, sample_weight=w).transduction_
    assert np.sum(heavy == 1) >= np.sum(plain == 1)
    w[y == 1] = 0.0
    w[np.flatnonzero(y == 1)[0]] = 1.0
    fewer = TransductiveDistance(**how).fit(X, y, sample_weight=w)
    assert len(fewer.transduction_) == 118  # a row of weight zero is left out


@pytest.mark.every(2)
@ONE_EACH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_points_are_those_points(dtype):
    X, y, _ = moons(count=2)
    X = np.where(np.abs(X) < 0.05, 0.0, X).astype(dtype)
    model = TransductiveDistance().fit(X, y)
    same = TransductiveDistance(method=model.method_).fit(sparse.csr_array(X), y)
    assert same.embedding_.dtype == dtype
    assert_allclose(same.embedding_, model.embedding_, atol=1e-3)
    assert_array_equal(same.transform(sparse.csr_array(X[:9])), same.embedding_[:9])
    assert_array_equal(same.predict(X), model.predict(sparse.csr_array(X)))


@ONE_EACH
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_copies_of_a_point_do_not_cut_it_off(kind):
    X, y, _ = moons(60)
    copies = np.repeat(np.arange(60), 30)
    known = np.where(np.arange(len(copies)) % 30 == 0, y[copies], -1)
    model = TransductiveDistance(method="diffusion").fit(kind(X[copies] + 0.0), known)
    alone = TransductiveDistance(method="diffusion").fit(kind(X), y)
    E = model.embedding_.reshape(60, 30, 2)
    assert_allclose(np.ptp(E[:, 1:], axis=1), 0.0, atol=1e-12)  # a label alone is in its corner
    assert_array_equal(model.transduction_, alone.transduction_[copies])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_point_at_a_label_is_there_up_to_round_off(dtype):
    rng = np.random.RandomState(0)
    E, codes = rng.standard_normal((30, 3)).astype(dtype), rng.randint(3, size=30)  # of no order
    P = shares_by_distance(E, codes, E)
    assert_allclose(P.max(axis=1), 0.99 + 0.01 / 3, rtol=1e-6)
    off = E * (1.0 + np.finfo(dtype).eps * rng.choice([-1.0, 1.0], E.shape)).astype(dtype)
    assert_allclose(shares_by_distance(E, codes, off), P, rtol=1e-5)


def test_settings_of_the_eigenproblem_refuse_sparse_points():
    X, y, _ = moons(count=5)
    with pytest.raises(ValueError, match=r"Got sparse X .* try\s+method='diffusion'"):
        TransductiveDistance(3).fit(sparse.csr_array(X), y)


@pytest.mark.every(6)
@ONE_EACH
@pytest.mark.filterwarnings("ignore::UserWarning")  # of so small a table
@pytest.mark.parametrize("method", ["auto", "diffusion", "eigenvectors", "x", np.array(["auto"])])
@pytest.mark.parametrize(
    "how",
    [
        *({}, {"graph": "gaussian"}, {"n_neighbors": 3}, {"class_sizes": "equal"}),
        *({"lam": 50.0}, {"n_components": 2}, {"cost": "paper"}, {"n_votes": 3}),
        *({"penalty": name} for name in ("normalized", "kernel", "warped", "x")),
    ],
    ids=str,
)
def test_the_tag_of_sparse_points_is_true(method, how):
    X, y, _ = moons(60, count=3)
    model = TransductiveDistance(method=method, **how)
    tagged = get_tags(model).input_tags.sparse
    try:
        model.fit(sparse.csr_array(X), y)
    except ValueError as error:
        assert str(error).startswith("Got ")
        assert not tagged
    else:
        assert tagged
        assert model.predict(sparse.csr_array(X)).shape == (60,)


@ONE_EACH
def test_it_is_saved_cloned_and_pickled(tmp_path):
    X, y, _ = moons(count=2)
    model = TransductiveDistance(method="diffusion", class_sizes="equal").fit(X, y)
    save(model, tmp_path / "few.npz")
    for other in (load(tmp_path / "few.npz"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict_proba(X[:7] + 0.01), model.predict_proba(X[:7] + 0.01))
        assert other.method_ == "diffusion"
    assert clone(model).get_params() == model.get_params()


# --- what is chosen ---------------------------------------------------------------------------


@pytest.mark.slow
def test_points_stay_where_a_graph_finds_fewer_hidden_labels():
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 4, (1200, 2))
    truth = np.floor(X).sum(axis=1).astype(int) % 2
    X = np.column_stack([X, np.where(truth, 3.0, 0.0)[:, None] * np.ones((1, 1))])
    X[:, :2] *= rng.choice([1, 30], (1200, 1))  # a graph of neighbours is ruled by these
    y = labelled(truth, 100)
    model = TransductiveDistance(method="auto").fit(X, y)
    diffusion = TransductiveDistance(method="diffusion").fit(X, y)
    assert right(model, y, truth) >= right(diffusion, y, truth) - 0.01


def test_distances_count_more_where_scores_find_no_hidden_label():
    classes = np.arange(12) % 3
    right_, wrong = np.eye(3)[classes], np.eye(3)[(classes + 1) % 3]
    both = np.array([_pool(Z, 0.0 * Z, classes, True) for Z in (right_, wrong)])
    scores, distances = both.T  # of distances that say nothing
    assert distances[0] / scores[0] < distances[1] / scores[1]
    few = slice(0, 6)  # two of each class say too little
    assert _pool(wrong[few], 0.0 * wrong[few], classes[few], True)[1] <= distances[1]
    assert _pool(wrong, 0.0 * wrong, classes, False)[1] == 0.0  # the user has set the graph


def test_scores_that_are_not_sharp_do_not_hold_distances_back():
    rng, classes = np.random.RandomState(0), np.arange(300) % 3
    chance = rng.standard_normal((300, 3))
    near = 0.3 * np.eye(3)[classes] + 0.3 * rng.standard_normal((300, 3))  # right, but not sure
    scores, distances = _pool(chance, near, classes, True)
    assert distances > 10 * scores


@ONE_EACH
def test_lambda_is_ten_unless_it_is_set_and_hidden_labels_say_how_good_it_is():
    X, y, _ = moons(count=6)
    model = TransductiveDistance(method="diffusion").fit(X, y)
    assert model.lam_ == 10.0
    assert set(model.lam_scores_) == {10.0}
    single = TransductiveDistance(method="diffusion").fit(*moons()[:2])
    assert single.lam_ == 10.0
    assert single.lam_scores_ == {}  # there is nothing to judge by
    assert TransductiveDistance(method="diffusion", lam=5.0).fit(X, y).lam_ == 5.0


def test_a_given_graph_is_spread_over():
    X, y, truth = moons(count=3)
    for graph in (neighbor_graph(X, 8), gaussian_graph(X, 0.02), "gaussian"):
        model = TransductiveDistance(method="diffusion", graph=graph).fit(X, y)
        assert model.graph_ == ("gaussian" if isinstance(graph, str) else "given")
        assert right(model, y, truth) > 0.85


@ONE_EACH
def test_parts_without_a_label_are_told_and_follow_the_nearest():
    X, truth = make_blobs(150, centers=[[0, 0], [40, 0], [50, 0]], random_state=0)
    y = np.where(truth < 2, labelled(truth, 2), -1)
    with pytest.warns(UserWarning, match="joins 50 of 150 points to a label, in 1 part"):
        model = TransductiveDistance(method="diffusion").fit(X, y)
    assert np.mean(model.transduction_[truth == 2] == 1) == 1.0


def test_no_label_of_a_part_is_no_reason_to_warn_where_all_have_one():
    X, y, _ = moons(count=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TransductiveDistance(method="diffusion").fit(X, y)


# --- sizes and probabilities ------------------------------------------------------------------


@pytest.mark.every(3)
@ONE_EACH
@pytest.mark.parametrize("sizes", [{0: 150, 1: 50}, [0.75, 0.25], np.array([3, 1])])
def test_classes_have_the_sizes_that_are_stated(sizes):
    X, truth = make_blobs([150, 50], centers=[[0, 0], [2.5, 0]], random_state=0)
    gain = []
    for seed in range(3):
        y = labelled(truth, 2, seed)
        free = TransductiveDistance(method="diffusion").fit(X, y)
        model = TransductiveDistance(class_sizes=sizes).fit(X, y)
        assert abs(np.sum(model.transduction_ == 0) - 150) <= 6
        assert_array_equal(model.transduction_[y >= 0], y[y >= 0])
        gain.append(right(model, y, truth) - right(free, y, truth))
    assert np.mean(gain) > 0


@ONE_EACH
def test_sizes_are_kept_against_the_graph():
    X, truth = make_blobs([150, 50], centers=[[0, 0], [4, 0]], random_state=0)
    model = TransductiveDistance(class_sizes="equal").fit(X, labelled(truth, 2))
    assert abs(np.sum(model.transduction_ == 0) - 100) <= 6


def drawn(shares, n, seed=0):
    """Probabilities under equal shares, of points of overlapping classes, and the classes."""
    rng, centres = np.random.RandomState(seed), 2.0 * np.eye(len(shares))
    truth = rng.choice(len(shares), size=n, p=shares)
    X = centres[truth] + rng.standard_normal((n, len(shares)))
    return soft_shares(2.0 * X, 1.0), truth


def test_shares_of_uneven_classes_are_found_by_labels_as_many_of_each():
    shares, each = np.array([0.7, 0.2, 0.1]), np.full(3, 40)
    P, _ = drawn(shares, 4000)
    hidden, classes = drawn(np.full(3, 1 / 3), 120, seed=1)
    assert_allclose(shares_found(P, hidden, classes, each), shares, atol=0.04)
    assert_allclose(P.mean(axis=0)[0], 0.58, atol=0.02)  # which is not their share


@pytest.mark.parametrize("seed", range(5))
def test_shares_stay_equal_where_luck_explains_the_difference(seed):
    P, _ = drawn(np.full(3, 1 / 3), 1000, seed=10 + seed)
    hidden, classes = drawn(np.full(3, 1 / 3), 12, seed)
    found = shares_found(P, hidden, classes, np.full(3, 4))
    assert_allclose(found, 1 / 3, atol=0.02)
    assert_allclose(found.sum(), 1.0)


def test_many_uneven_labels_tell_shares_and_few_do_not():
    P, told = np.full((50, 2), 0.5), np.full((6, 2), 0.5)  # which say nothing
    classes = np.array([0, 0, 0, 1, 1, 1])
    assert_allclose(shares_found(P, told, classes, np.array([180, 20])), [0.9, 0.1], atol=0.01)
    assert_allclose(shares_found(P, told, classes, np.array([4, 3])), 0.5)


@ONE_EACH
def test_uneven_classes_are_not_taken_to_be_equal():
    X, truth = make_blobs([900, 100], centers=[[0, 0], [1.5, 0]], random_state=0)
    y = labelled(truth, 30)
    model = TransductiveDistance(method="diffusion").fit(X, y)
    equal = TransductiveDistance(method="diffusion")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelmetric.transductive._spread.shares_found", lambda *_: np.full(2, 0.5))
        equal.fit(X, y)
    assert right(model, y, truth) > right(equal, y, truth) + 0.05
    near = X + 1e-9  # new points know of the shares, too
    some = y < 0
    assert np.mean(model.predict(near[some]) == model.transduction_[some]) > 0.98
    order = np.random.RandomState(1).permutation(len(X))
    other = TransductiveDistance(method="diffusion").fit(X[order], y[order])
    assert np.mean(other.transduction_ == model.transduction_[order]) > 0.99


def test_offsets_are_not_needed_where_shares_are_right():
    F = np.repeat(np.eye(3), 20, axis=0)
    assert_allclose(offsets(F, np.full(3, 1 / 3)), 0.0, atol=1e-6)
    added = offsets(F + np.random.RandomState(0).uniform(0, 3, F.shape), np.array([0.5, 0.3, 0.2]))
    assert added[0] > added[1] > added[2]


@pytest.mark.parametrize(
    "sizes",
    [{0: 1}, [1, 2, 3], [1, 0], [1, np.nan], "many", 3, [1, -1], [0.5, 0.3], [0.001, 0.999]],
)
def test_sizes_that_are_none_are_refused(sizes):
    X, y, _ = moons(count=2)
    with pytest.raises(ValueError, match="Got class_sizes"):
        TransductiveDistance(class_sizes=sizes).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "poisson"}, "Got method='poisson'"),
        ({"method": "diffusion", "n_components": 3}, "n_components"),
        ({"method": "diffusion", "cost": "paper", "n_votes": 3}, "cost and n_votes"),
        ({"method": "eigenvectors", "class_sizes": "equal"}, "Got class_sizes with settings"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, said):
    X, y, _ = moons(count=5)
    with pytest.raises(ValueError, match=said):
        TransductiveDistance(**settings).fit(X, y)


def test_pairs_do_not_spread():
    X, _, _ = moons()
    with pytest.raises(ValueError, match="pairs or a cost_graph"):
        TransductiveDistance(method="diffusion").fit(X, similar=[[0, 1]], dissimilar=[[0, 2]])


def test_probabilities_are_calibrated_where_classes_overlap():
    X, truth = make_blobs(400, centers=[[0, 0], [2, 0]], random_state=0)
    y = labelled(truth, 50)
    by_eigenvectors = {"lam": np.inf, "n_neighbors": 10, "n_components": 2}
    for settings in ({"method": "diffusion"}, by_eigenvectors):
        model = TransductiveDistance(**settings).fit(X, y)
        P = model.predict_proba(X)[y < 0]
        assert_allclose(P.sum(axis=1), 1.0)
        loss = -np.mean(np.log(np.clip(P[np.arange(len(P)), truth[y < 0]], 1e-3, 1)))
        assert loss < np.log(2)
        assert abs(P.max(axis=1).mean() - right(model, y, truth)) < 0.12


def test_a_label_does_not_speak_for_itself_where_probabilities_are_judged():
    rng = np.random.RandomState(0)
    E, codes = rng.standard_normal((200, 2)), rng.randint(2, size=200)
    P = shares_by_distance(E, codes, rng.standard_normal((50, 2)))
    E[codes == 1] += 20.0  # now they are
    assert shares_by_distance(E, codes, E + 0.01).max(axis=1).min() > 0.98
    assert P.max() < 0.7  # labels by lot are not found by the others


# --- labels that come later -------------------------------------------------------------------


@pytest.mark.every(3)
@ONE_EACH
@pytest.mark.parametrize("method", ["diffusion", "eigenvectors", "auto"])
def test_labels_that_come_later_are_as_if_they_had_been_there(method):
    X, y, truth = moons(120, count=3)
    later = np.flatnonzero(y < 0)[::17]
    w = np.where(np.arange(120) % 2, 1.0, 2.0)
    model = TransductiveDistance(method=method, random_state=0).fit(X, y, sample_weight=w)
    graph = model._graph
    assert model.add_labels(later, truth[later]) is model
    assert model._graph is graph or method == "eigenvectors"
    y[later] = truth[later]
    other = TransductiveDistance(method=method, random_state=0).fit(X, y, sample_weight=w)
    assert_allclose(model.embedding_, other.embedding_, atol=1e-6)
    assert_array_equal(model.transduction_, other.transduction_)


@ONE_EACH
def test_labels_are_added_after_loading_of_new_classes_and_taken_back(tmp_path):
    X, y, _truth = moons(count=2)
    names = np.array([None, "a", "b"], dtype=object)[y + 1]
    model = TransductiveDistance(method="diffusion").fit(X, names)
    save(model, tmp_path / "few.npz")
    before, row = model.embedding_, int(np.flatnonzero(y < 0)[0])
    model.add_labels([row], ["c"])
    assert_array_equal(model.classes_, ["a", "b", "c"])
    assert model.transduction_[row] == "c"
    assert_array_equal(
        load(tmp_path / "few.npz").add_labels([row], ["c"]).embedding_, model.embedding_
    )
    assert_allclose(model.add_labels([row], [None]).embedding_, before, atol=1e-6)


@pytest.mark.parametrize("rows", [[-1], [200], [0.5], [[1]], [1, 1]])
def test_rows_that_are_none_get_no_label(rows):
    X, y, _ = moons(count=2)
    model = TransductiveDistance(method="diffusion").fit(X, y)
    before = model.embedding_
    with pytest.raises(ValueError, match=r"Got rows=|1d array"):
        model.add_labels(rows, np.zeros(np.shape(rows)))
    assert model.embedding_ is before


@ONE_EACH
@APART
def test_what_to_label_next_is_where_there_is_most_doubt():
    X, truth = make_blobs(200, centers=[[0, 0], [8, 0], [0, 8], [8, 8]], random_state=0)
    y = np.where(truth < 2, labelled(truth, 2), -1)
    model = TransductiveDistance(method="diffusion", lam=10.0, n_neighbors=10).fit(X, y)
    found = model.to_label(2)
    assert set(truth[found]) == {2, 3}  # blobs without a label, one each
    assert pdist(X[model.to_label(10)]).min() > 1.0  # not next to each other
    assert len(set(model.to_label(30))) == 30
    assert np.all(y[model.to_label(5)] < 0)


def test_no_more_rows_are_named_than_have_no_label():
    X, truth = make_blobs(60, random_state=0)
    y = np.where(truth < 2, labelled(truth, 2), -1)
    model = TransductiveDistance(method="diffusion", lam=10.0, n_neighbors=10).fit(X, y)
    assert len(model.to_label(1000)) == np.sum(y < 0)


@pytest.mark.slow
@ONE_EACH
@APART
def test_doubt_finds_classes_with_fewer_labels_than_luck():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((400, 10)) + 4 * np.repeat(rng.standard_normal((8, 10)), 50, axis=0)
    truth = np.repeat(np.arange(8), 50)
    model = TransductiveDistance(method="diffusion").fit(
        X, labelled(np.where(truth < 2, truth, -2), 1).clip(-1)
    )
    for _ in range(9):
        row = model.to_label()
        model.add_labels(row, truth[row])
    assert len(model.classes_) >= 7  # of random rows, 6.2 of 8 on average


def test_labels_spread_on_a_device_as_they_do_here():
    pytest.importorskip("torch")
    X, y, _ = moons(count=3)
    here = TransductiveDistance().fit(X, y)
    with use_device("cpu"):  # whose tensors do not mix with arrays either
        there = TransductiveDistance().fit(X, y)
        placed = there.transform(X[:5] + 0.01)
    assert isinstance(placed, np.ndarray) and isinstance(there.embedding_, np.ndarray)
    np.testing.assert_allclose(there.embedding_, here.embedding_, atol=1e-6)
    np.testing.assert_allclose(placed, here.transform(X[:5] + 0.01), atol=1e-6)
