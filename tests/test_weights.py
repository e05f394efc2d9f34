"""Weights: whole numbers are repeated rows, none are absent rows, equal ones change nothing."""

import inspect
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import (
    ITML,
    LMCA,
    LMNN,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    RFM,
    SCML,
    IdealizedKernel,
    Quadruplets,
    Triplets,
)
from kernelmetric.compute import Triplets as CountedTriplets
from kernelmetric.compute import (
    Weights,
    lmnn_hinge,
    lmnn_hinge_on,
    mine_impostors,
    nca_loss,
    repeated_quantiles,
    weigh,
)
from kernelmetric.graphs import counted_neighbors, target_neighbors
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
# The corner of LMNN's hinge is smoothed a little, and the flat valley around the optimum of a
# descent is wider than its depth: distances are compared less closely than objectives.
CLOSE = {LMNN: (1e-2, 5e-2), LMCA: (1e-2, 5e-2), MCML: (1e-7, 1e-3)}


def narrow(learner):
    return clone(learner).set_params(**NARROW.get(type(learner), {}))


@pytest.fixture(params=weighable(), ids=repr)
def precise(request):
    return narrow(request.param)


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
    loss, distance = CLOSE.get(type(b), (1e-6, 1e-4))
    np.testing.assert_allclose(a.loss_, b.loss_, rtol=loss)
    D = b.pairwise_distances(new)
    np.testing.assert_allclose(a.pairwise_distances(new), D, atol=distance * D.max())


def differ(a, b, new):
    """Whether two metrics are not the same; all orthonormal maps are, but not their objectives."""
    D = b.pairwise_distances(new)
    far = np.max(np.abs(a.pairwise_distances(new) - D)) > 1e-3 * D.max()
    return far or abs(a.loss_ / b.loss_ - 1) > 1e-5


def repeated(w, *arrays):
    return [np.repeat(array, w, axis=0) for array in arrays]


# --- the contract, over the registry ------------------------------------------------------------


def test_whole_numbers_are_repeated_rows(precise, points):
    X, y, w, new = points
    y = target(precise, X, y)
    X_rows, y_rows = repeated(w, X, y)
    if isinstance(precise, LMNN) and precise.n_components:
        # Cutting a map to low rank magnifies what is left to the optimum: so a certified one.
        precise.set_params(solver="projected", tol=1e-7, max_iter=5000)
    weighed, rows = clone(precise).fit(X, y, sample_weight=w), clone(precise)
    if isinstance(precise, LMCA):  # several minima: the end of one descent is that of the other
        rows.set_params(init=weighed.components_)
    same_metric(weighed, rows.fit(X_rows, y_rows), new)


def test_rows_without_weight_are_absent(learner, points):
    X, y, w, new = points
    y, kept = target(learner, X, y), w > 0
    a = clone(learner).fit(X, y, sample_weight=kept)
    b = clone(learner).fit(X[kept], y[kept])
    np.testing.assert_array_equal(a.pairwise_distances(new), b.pairwise_distances(new))


@pytest.mark.parametrize("constant", [1.0, 3, 0.01])
def test_equal_weights_change_nothing(learner, points, constant):
    X, y, _, new = points
    y = target(learner, X, y)
    a = clone(learner).fit(X, y, sample_weight=np.full(len(X), constant))
    b = clone(learner).fit(X, y)
    np.testing.assert_array_equal(a.pairwise_distances(new), b.pairwise_distances(new))


def test_of_weights_that_are_no_counts_only_ratios_matter(learner, points):
    X, y, _, new = points
    y, w = target(learner, X, y), np.random.RandomState(1).uniform(0.1, 3.0, len(X))
    a = clone(learner).fit(X, y, sample_weight=w)
    b = clone(learner).fit(X, y, sample_weight=4 * w)  # a power of two: no rounding
    np.testing.assert_array_equal(a.pairwise_distances(new), b.pairwise_distances(new))
    assert differ(a, clone(learner).fit(X, y), new)


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


def test_features_of_counted_numbers_are_those_of_repeated_ones(points):
    X, _, w, new = points
    Y = np.stack([X[:, 0] + X[:, 1], np.sin(X[:, 2])], axis=1)
    a = RFM().fit(X, Y, sample_weight=w)
    b = RFM().fit(*repeated(w, X, Y))
    np.testing.assert_allclose(a.loss_curve_, b.loss_curve_, rtol=1e-8)
    np.testing.assert_allclose(a.pairwise_distances(new), b.pairwise_distances(new), rtol=1e-6)


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


def test_counts_that_repeat_too_many_rows_are_refused(points):
    X, y, w, _ = points
    with pytest.raises(MemoryError, match="divide them by their mean"):
        RFM().fit(X, y, sample_weight=w * 10**13)


# --- the objectives, point by point -------------------------------------------------------------


@pytest.fixture
def sorted_points(points):
    X, y, w, _ = points
    rows = np.flatnonzero(w)[np.argsort(y[w > 0], kind="stable")]
    w = w[rows].astype(float)
    L = np.random.RandomState(2).standard_normal((3, 4))
    return X[rows], y[rows], Weights(w, w - 1, w), L


def test_the_softmax_of_counted_points_is_that_of_repeated_rows(sorted_points):
    X, y, weights, L = sorted_points
    X_rows, y_rows = repeated(weights.counts.astype(int), X, y)
    for ours, theirs in (
        (nca_loss(L, X, y, weights), nca_loss(L, X_rows, y_rows)),
        (mlkr_loss(L, X, X[:, :2], weights), mlkr_loss(L, X_rows, X_rows[:, :2])),
    ):
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
        np.testing.assert_allclose(ours[1], theirs[1], atol=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_hinge_of_counted_points_is_that_of_repeated_rows(sorted_points, smoothing):
    X, y, weights, L = sorted_points
    times = weights.counts.astype(int)
    X_rows, y_rows = repeated(times, X, y)
    targets, parts, _ = counted_neighbors(X, 3, weights, y)
    weighed = CountedTriplets(weights.shares[:, None] * parts, weights.counts)
    value, product = lmnn_hinge(X @ L.T, X, targets, y, 1.3, smoothing, weighed)
    expected, of_rows = lmnn_hinge(
        X_rows @ L.T, X_rows, target_neighbors(X_rows, y_rows, 3), y_rows, 1.3, smoothing
    )
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    np.testing.assert_allclose(product, np.add.reduceat(of_rows, first), atol=1e-9)
    exact, pairs = mine_impostors(X @ L.T, targets, y, 1.3, most=10**6, weighed=weighed)
    listed = lmnn_hinge_on(pairs, X @ L.T, X, targets, 1.3, smoothing, weighed)
    np.testing.assert_allclose(listed[0], value, rtol=1e-12)
    if smoothing == 0:
        np.testing.assert_allclose(exact, value, rtol=1e-12)


def test_weighted_gradients_are_those_of_their_values(sorted_points):
    X, y, weights, L = sorted_points
    rng = np.random.RandomState(3)
    uneven = Weights(weights.counts / 2, 0 * weights.own, weights.counts * rng.uniform(size=len(y)))
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
    targets, parts, _ = counted_neighbors(X, 3, weights, y)
    weighed = CountedTriplets(weights.shares[:, None] * parts, weights.counts)
    E = xp.asarray(X @ L.T)
    value, product = lmnn_hinge(E, there[1], xp.asarray(targets), there[2], 1.3, 0.5, weighed)
    expected = lmnn_hinge(X @ L.T, X, targets, y, 1.3, 0.5, weighed)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(product), expected[1], atol=1e-9)


def test_neighbours_are_counted_until_they_are_enough():
    X = np.array([[0.0], [1.0], [3.0], [6.0]])
    weights = Weights(
        *(np.array(part) for part in ([2.0, 1.0, 3.0, 1.0], [1.0, 0, 2, 0], [1.0] * 4))
    )
    rows, parts, squares = counted_neighbors(X, 3, weights)
    assert rows[0].tolist() == [0, 1, 2]  # a copy of itself, its neighbour, and
    assert parts[0].tolist() == [1.0, 1.0, 1.0]  # one of the three copies that are next
    assert parts[2].tolist() == [2.0, 1.0, 0.0]
    np.testing.assert_allclose(squares[0], [0.0, 1.0, 9.0])
    shares = Weights(np.full(4, 0.5), np.zeros(4), np.full(4, 0.5))
    assert counted_neighbors(X, 1, shares).parts[0].tolist() == [0.0, 0.5, 0.5]
    few = counted_neighbors(X, 10, shares)
    assert np.sum(few.parts, axis=1).tolist() == [1.5] * 4  # there are no more


def test_quantiles_of_counted_values_are_those_of_repeated_ones():
    rng = np.random.RandomState(0)
    values, counts = rng.standard_normal(9), rng.randint(1, 5, size=9)
    where = [0.0, 0.05, 0.3, 0.5, 0.77, 0.95, 1.0]
    expected = np.quantile(np.repeat(values, counts), where)
    np.testing.assert_allclose(repeated_quantiles(values, counts.astype(float), where), expected)


def test_whole_numbers_count_rows_and_others_are_scaled():
    X = np.zeros((3, 1))
    rows, weights = weigh([2, 0, 1], X)
    assert rows.tolist() == [0, 2]
    assert weights.counts.tolist() == [2.0, 1.0]
    assert weights.own.tolist() == [1.0, 0.0]
    rows, weights = weigh([0.2, 0.1, 0.3], X)
    assert rows is None
    np.testing.assert_allclose(weights.counts, [1.0, 0.5, 1.5])
    assert not weights.own.any()
    assert weigh(0.5, X) == (None, None)
