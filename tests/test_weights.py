"""Weights are importance: continuous, ones are none, zeros are absent rows, and they do count."""

import inspect
import re
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import (
    ITML,
    LDA,
    LMCA,
    LMNN,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    RCA,
    RFM,
    SCML,
    SDML,
    IdealizedKernel,
    Pairs,
    Quadruplets,
    Triplets,
)
from kernelmetric.compute.reductions import Triplets as CountedTriplets
from kernelmetric.compute.reductions import lmnn_hinge, mine_impostors, nca_loss, weighted_quantiles
from kernelmetric.compute.reductions._listed import lmnn_hinge_on
from kernelmetric.graphs import neighbor_parts, target_neighbors
from kernelmetric.inputs import Weights, rows_and_weights
from kernelmetric.inputs._weights import check_weights
from kernelmetric.learners._mlkr import mlkr_loss
from tested_learners import variants, weighable

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Got .* class.es. with at most"),
]

# Descents end where a tolerance says so: these are narrow enough to tell two paths from two aims.
NARROW = {
    NCA: {"tol": 1e-10, "max_iter": 2000, "reg": 0.1},
    MCML: {"tol": 1e-10, "max_iter": 2000, "reg": 0.1},
    MLKR: {"tol": 1e-10, "max_iter": 2000, "reg": 0.1},
    LMNN: {"tol": 1e-6, "max_iter": 2000, "reg": 0.5},
    LMCA: {"tol": 1e-6, "max_iter": 2000, "reg": 0.5},
    ITML: {"tol": 1e-8},
    MMC: {"tol": 1e-8},
    IdealizedKernel: {"tol": 1e-8},
}
# Sums over rows, or over pairs of rows: copies of a row are what its weight says. Where neighbours
# decide, or pairs of copies of a row count among the similar ones, they are not.
SUMS = (ITML, LDA, RCA)


def narrow(learner):
    return clone(learner).set_params(**NARROW.get(type(learner), {}))


@pytest.fixture(params=weighable(), ids=repr)
def learner(request):
    return clone(request.param)


@pytest.fixture
def points():
    """40 points of uneven classes, weights from 0 to 3, and new points."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 4)) * [1.0, 2.0, 0.5, 1.0]
    y = (X[:, 0] + 0.3 * rng.standard_normal(40) > 0).astype(int) + (X[:, 1] > 1.5)
    return X, y, rng.randint(0, 4, size=40), rng.standard_normal((7, 4))


def target(learner, X, y):
    """What a learner learns from: numbers, for those that want them."""
    return X[:, 0] + 0.2 * np.sin(5 * X[:, 1]) if learner.learns_from == "targets" else y


def same_metric(a, b, new):
    np.testing.assert_allclose(a.loss_, b.loss_, rtol=1e-6)
    D = b.pairwise_distances(new)
    np.testing.assert_allclose(a.pairwise_distances(new), D, atol=1e-4 * D.max())


def differ(a, b, new):
    """Whether two metrics are not the same; all orthonormal maps are, but not their objectives."""
    D = b.pairwise_distances(new)
    far = np.max(np.abs(a.pairwise_distances(new) - D)) > 1e-3 * D.max()
    return far or abs(a.loss_ / b.loss_ - 1) > 1e-5


def repeated(w, *arrays):
    return [np.repeat(array, w, axis=0) for array in arrays]


# --- the contract, over the registry ------------------------------------------------------------


@pytest.mark.parametrize("learner", [a for a in weighable() if isinstance(a, SUMS)], ids=repr)
def test_whole_numbers_are_repeated_rows_in_sums_over_rows(learner, points):
    X, y, w, new = points
    precise = narrow(learner)
    weighed = clone(precise).fit(X, y, sample_weight=w)
    same_metric(weighed, clone(precise).fit(*repeated(w, X, y)), new)


@pytest.mark.every(6)
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (lambda n: -np.ones(n), "-1 for row 0"),
        (lambda n: np.where(np.arange(n) == 3, np.nan, 1.0), "nan for row 3"),
        (lambda n: np.full(n, np.inf), "finite"),
        (lambda n: np.ones(n + 1), r"\(41,\), but expected \(40,\)"),
        (lambda n: np.ones((n, 1)), r"\(40, 1\), but expected \(40,\)"),
        (np.zeros, "zero for all rows"),
        (lambda n: ["heavy"] * n, "a number for each row"),
    ],
    ids=["negative", "nan", "infinite", "long", "column", "zero", "words"],
)
def test_bad_weights_are_refused_in_a_sentence(learner, points, weights, said):
    X, y, *_ = points
    with pytest.raises(ValueError, match=said):
        learner.fit(X, target(learner, X, y), sample_weight=weights(len(X)))


@pytest.mark.parametrize("labelled", weighable("labels"), ids=repr)
def test_weights_that_leave_a_class_empty_are_refused(labelled, points):
    X, y, *_ = points
    with pytest.raises(ValueError, match="zero for all rows of class 2"):
        clone(labelled).fit(X, y, sample_weight=y != 2)


@pytest.mark.parametrize("learner", variants(), ids=repr)
def test_every_learner_takes_weights_and_those_from_labels_take_them_of_classes(learner):
    assert "sample_weight" in inspect.signature(learner.fit).parameters
    assert ("class_weight" in learner.get_params()) == (learner.learns_from == "labels")


# --- weights of classes -------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", weighable("labels"), ids=repr)
def test_equal_weights_of_classes_change_nothing(labelled, points):
    X, y, _, new = points
    a = clone(labelled).set_params(class_weight={0: 7.0, 1: 7.0, 2: 7.0}).fit(X, y)
    b = clone(labelled).fit(X, y)
    np.testing.assert_array_equal(a.pairwise_distances(new), b.pairwise_distances(new))


@pytest.mark.parametrize("labelled", weighable("labels"), ids=repr)
@pytest.mark.every(8)
def test_balanced_is_the_dict_that_lets_all_classes_count_alike(labelled, points):
    X, y, w, new = points
    sizes = np.bincount(y, weights=w)
    by_name = clone(labelled).set_params(class_weight="balanced").fit(X, y, sample_weight=w)
    inverse = {"a": 1 / sizes[0], "b": 1 / sizes[1], "c": 1 / sizes[2]}
    by_hand = clone(labelled).set_params(class_weight=inverse)
    by_hand.fit(X, np.array(["a", "b", "c"])[y], sample_weight=w)
    D = by_name.pairwise_distances(new)
    np.testing.assert_allclose(by_hand.pairwise_distances(new), D, atol=1e-3 * D.max())
    once = clone(labelled).set_params(class_weight="balanced").fit(X, y)
    assert differ(once, clone(labelled).fit(X, y), new)


@pytest.mark.parametrize(
    ("class_weight", "said"),
    [
        ("even", "expected None, 'balanced' or a dict"),
        ({0: 1.0, 5: 2.0}, "Got class_weight for 5"),
        ({0: -1.0}, "above zero"),
        ({0: 0.0}, "above zero"),
        ({0: np.nan}, "above zero"),
        ({0: "heavy"}, "above zero"),
    ],
    ids=["word", "unknown", "negative", "zero", "nan", "text"],
)
@pytest.mark.parametrize("labelled", weighable("labels")[::3], ids=repr)
def test_bad_weights_of_classes_are_refused_in_a_sentence(labelled, points, class_weight, said):
    X, y, *_ = points
    with pytest.raises(ValueError, match=said):
        clone(labelled).set_params(class_weight=class_weight).fit(X, y)


# --- what only some learners have ---------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("kind", [LSML, SCML])
@pytest.mark.parametrize("width", [3, 4])
def test_comparisons_count_the_product_of_their_points(kind, width, points):
    X, _, w, new = points
    rng = np.random.RandomState(0)
    rows = np.stack([rng.permutation(len(X))[:width] for _ in range(30)])
    rows[0, -1] = rows[0, 1] if width == 4 else rows[0, -1]  # a point that is in both pairs
    name, make = ("triplets", Triplets) if width == 3 else ("quadruplets", Quadruplets)
    X_rows = np.repeat(X, w, axis=0)
    first = np.cumsum(w) - w
    copies = [
        dict(zip(set(row), chosen, strict=True))
        for row in rows.tolist()
        for chosen in product(*(range(first[p], first[p] + w[p]) for p in set(row)))
    ]
    owners = [row for row in rows.tolist() for _ in range(int(np.prod(w[list(set(row))])))]
    of_copies = [[copy[p] for p in row] for row, copy in zip(owners, copies, strict=True)]
    options = {"basis": np.eye(4)} if kind is SCML else {}
    learner = kind(tol=1e-8, **options)
    a = clone(learner).fit(X, **{name: make(rows, len(X))}, sample_weight=w)
    b = clone(learner).fit(X_rows, **{name: make(of_copies, len(X_rows))})
    np.testing.assert_allclose(a.loss_, b.loss_, rtol=1e-6)
    D = b.pairwise_distances(new)
    np.testing.assert_allclose(a.pairwise_distances(new), D, atol=1e-3 * D.max())


def test_comparisons_of_points_that_count_nearly_nothing_are_refused(points):
    X, *_ = points
    w = np.ones(len(X))
    w[:3] = 1e-99
    w[3:6] = 1e-98
    tuples = [[0, 1, 2, 3], [1, 2, 3, 4]]
    with pytest.raises(ValueError, match="too small for numbers"):
        LSML().fit(X, quadruplets=tuples, sample_weight=w)


@pytest.mark.parametrize(
    "learner",
    [
        ITML(power=1, tol=1e-8),
        MMC(power=1, tol=1e-8),
        SDML(tol=1e-10),
        IdealizedKernel(C=3.0, nu=0.8, tol=1e-8),
    ],
    ids=repr,
)
def test_given_pairs_count_the_product_of_their_points(learner, points):
    X, _, w, new = points
    w = np.maximum(w, 1)
    rng = np.random.RandomState(0)
    rows = rng.permutation(len(X)).reshape(-1, 2)
    first = np.cumsum(w) - w
    copied = [
        [
            [first[i] + a, first[j] + b]
            for i, j in part
            for a, b in product(range(w[i]), range(w[j]))
        ]
        for part in (rows[:10], rows[10:])
    ]
    if isinstance(learner, ITML):  # its bounds are percentiles of all distances
        learner = clone(learner).set_params(bounds=(1.0, 8.0))
    if isinstance(learner, SDML):  # the size of the prior is the variance of all points
        learner = clone(learner).set_params(prior=np.eye(4))
    a = clone(learner).fit(X, pairs=Pairs(rows[:10], rows[10:], len(X)), sample_weight=w)
    b = clone(learner).fit(np.repeat(X, w, axis=0), pairs=Pairs(*copied, int(w.sum())))
    same_metric(a, b, new)


def test_numbers_have_no_weights_of_classes(points):
    X, *_ = points
    with pytest.raises(ValueError, match="class_weight='balanced' with a target of numbers"):
        RFM(class_weight="balanced").fit(X, X[:, 0])


def test_gradients_count_by_weights():
    # Half of the points follow one direction, half another: who counts more is followed.
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 3))
    y = np.where(np.arange(200) < 100, X[:, 0], X[:, 1])
    w = np.where(np.arange(200) < 100, 1.0, 0.05)
    L = RFM(1).fit(X, y, sample_weight=w).components_[0]
    assert abs(L[0]) > 3 * abs(L[1])
    L = RFM(1).fit(X, y, sample_weight=w[::-1]).components_[0]
    assert abs(L[1]) > 3 * abs(L[0])


def test_large_weights_repeat_no_row(points):
    X, y, w, new = points
    a, b = (RFM().fit(X, y, sample_weight=w * scale) for scale in (1.0, 1e13))
    np.testing.assert_allclose(a.pairwise_distances(new), b.pairwise_distances(new), rtol=1e-6)


# --- the objectives, point by point -------------------------------------------------------------


@pytest.fixture
def sorted_points(points):
    X, y, w, _ = points
    rows = np.flatnonzero(w)[np.argsort(y[w > 0], kind="stable")]
    w = w[rows].astype(float)
    L = np.random.RandomState(2).standard_normal((3, 4))
    return X[rows], y[rows], Weights(w, w), L


def test_in_a_softmax_a_neighbour_counts_its_weight_and_a_row_its_share(sorted_points):
    X, y, weights, L = sorted_points
    shares = np.random.RandomState(3).uniform(size=len(y))
    weights, E = Weights(weights.counts, shares), X @ L.T
    P = weights.counts * np.exp(-np.sum((E[:, None] - E) ** 2, axis=2))
    np.fill_diagonal(P, 0.0)  # however much it counts, no row is its own neighbour
    P /= np.sum(P, axis=1, keepdims=True)
    hits = -shares @ np.sum(P * (y[:, None] == y), axis=1)
    np.testing.assert_allclose(nca_loss(L, X, y, weights)[0], hits, rtol=1e-10)
    errors = shares @ np.sum((X[:, :2] - P @ X[:, :2]) ** 2, axis=1)
    np.testing.assert_allclose(mlkr_loss(L, X, X[:, :2], weights)[0], errors, rtol=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_hinge_of_counted_points_is_that_of_repeated_rows(sorted_points, smoothing):
    X, y, weights, L = sorted_points
    times = weights.counts.astype(int)
    X_rows, y_rows = repeated(times, X, y)
    targets = target_neighbors(X, y, 3)
    weighed = CountedTriplets(np.repeat(weights.shares[:, None], 3, axis=1), weights.counts)
    value, product = lmnn_hinge(X @ L.T, X, targets, y, 1.3, smoothing, weighed)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    same = np.where(targets >= 0, first[targets], -1)  # copies have the neighbours of their row
    (same,) = repeated(times, same)
    expected, of_rows = lmnn_hinge(X_rows @ L.T, X_rows, same, y_rows, 1.3, smoothing)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(product, np.add.reduceat(of_rows, first), atol=1e-9)
    exact, pairs = mine_impostors(X @ L.T, targets, y, 1.3, most=10**6, weighed=weighed)
    listed = lmnn_hinge_on(pairs, X @ L.T, X, targets, 1.3, smoothing, weighed)
    np.testing.assert_allclose(listed[0], value, rtol=1e-12)
    if smoothing == 0:
        np.testing.assert_allclose(exact, value, rtol=1e-12)


def test_weighted_gradients_are_those_of_their_values(sorted_points):
    X, y, weights, L = sorted_points
    rng = np.random.RandomState(3)
    uneven = Weights(weights.counts / 2, weights.counts * rng.uniform(size=len(y)))
    step = 1e-6 * rng.standard_normal(L.shape)
    for loss in (
        lambda L: nca_loss(L, X, y, uneven),
        lambda L: mlkr_loss(L, X, X[:, :2], uneven),
    ):
        slope = (loss(L + step)[0] - loss(L - step)[0]) / 2
        np.testing.assert_allclose(np.sum(loss(L)[1] * step), slope, rtol=1e-5)


def test_arrays_of_other_libraries_have_the_same_weighted_objectives(sorted_points):
    xp = pytest.importorskip("array_api_strict")
    X, y, weights, L = sorted_points
    there = xp.asarray(L), xp.asarray(X), xp.asarray(y)
    value, gradient = nca_loss(*there, weights)
    expected = nca_loss(L, X, y, weights)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(gradient), expected[1], atol=1e-10)
    targets = target_neighbors(X, y, 3)
    parts = weights.shares[:, None] * neighbor_parts(targets, weights)
    weighed = CountedTriplets(parts, weights.masses)
    E = xp.asarray(X @ L.T)
    value, product = lmnn_hinge(E, there[1], xp.asarray(targets), there[2], 1.3, 0.5, weighed)
    expected = lmnn_hinge(X @ L.T, X, targets, y, 1.3, 0.5, weighed)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(product), expected[1], atol=1e-9)


def test_neighbours_share_what_their_row_counts_by_their_weights():
    weights = Weights(*np.array([[2.0, 1.0, 3.0, 6.0], [1.0] * 4]))
    parts = neighbor_parts(np.array([[1, 2], [0, 3], [-1, -1], [2, -1]]), weights)
    np.testing.assert_allclose(parts, [[0.5, 1.5], [0.5, 1.5], [0.0, 0.0], [1.0, 0.0]])


def test_quantiles_of_counted_values_are_those_of_repeated_ones():
    rng = np.random.RandomState(0)
    values, counts = rng.standard_normal(9), rng.randint(1, 5, size=9)
    where = [0.0, 0.05, 0.3, 0.5, 0.77, 0.95, 1.0]
    expected = np.quantile(np.repeat(values, counts), where)
    np.testing.assert_allclose(weighted_quantiles(values, counts.astype(float), where), expected)


def test_quantiles_are_continuous_in_the_weights_and_of_small_ones_only_ratios_matter():
    rng = np.random.RandomState(0)
    values, counts = rng.standard_normal(30), rng.randint(1, 4, size=30).astype(float)
    where = np.linspace(0, 1, 11)
    found = weighted_quantiles(values, counts, where)
    nearly = weighted_quantiles(values, counts + 1e-9 * rng.standard_normal(30), where)
    np.testing.assert_allclose(nearly, found, atol=1e-7)
    small, smaller = (weighted_quantiles(values, counts * size, where) for size in (1e-2, 1e-60))
    np.testing.assert_allclose(small, smaller, rtol=1e-10)
    assert np.all(np.isfinite(weighted_quantiles(values, counts * 1e60, where)))


def test_weights_are_taken_as_they_are_and_only_ones_are_none():
    X = np.zeros((3, 1))
    rows, weights = rows_and_weights([2, 0, 1], X)
    assert rows.tolist() == [0, 2]
    assert weights.counts.tolist() == weights.shares.tolist() == [2.0, 1.0]
    rows, weights = rows_and_weights([0.2, 0.1, 0.3], X)
    assert rows is None
    assert weights.counts.tolist() == [0.2, 0.1, 0.3]
    assert rows_and_weights(0.5, X)[1].counts.tolist() == [0.5] * 3
    assert rows_and_weights([1, 1, 1], X) == (None, None)
    rows, weights = rows_and_weights([1, 0, 1], X)
    assert rows.tolist() == [0, 2]
    assert weights is None


@pytest.mark.parametrize(("n_classes", "others"), [(5, ""), (6, " and others")])
def test_a_weight_of_an_unknown_class_names_five_that_are_there(n_classes, others):
    y = np.arange(3 * n_classes) % n_classes
    X = np.random.RandomState(0).standard_normal((len(y), 2))
    with pytest.raises(ValueError, match=re.escape(f"classes of y: [0, 1, 2, 3, 4]{others}.")):
        LDA(class_weight={99: 2.0}).fit(X, y)


@pytest.mark.parametrize(
    ("weights", "good"),
    [
        ([0.0, 1.0, 9e99], True),
        ([0.0, 2.0, 1.1e100], False),  # beyond the largest
        ([0.0, 1e-60, 1e39], True),
        ([0.0, 1e-60, 1.1e40], False),  # too many times the smallest
    ],
)
def test_weights_stay_so_small_that_their_products_are_numbers(weights, good):
    if good:
        np.testing.assert_array_equal(check_weights(weights, 3), weights)
    else:
        with pytest.raises(ValueError, match="products are in range"):
            check_weights(weights, 3)
