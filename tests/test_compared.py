"""Triplets and quadruplets for large margins and idealized kernels: theorems, and what is told."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.base import clone

from half_of_product import half_of
from kernelmetric import (
    ITML,
    LMCA,
    LMNN,
    LSML,
    NCA,
    RBF,
    SCML,
    IdealizedKernel,
    Kernelized,
    Linear,
    Quadruplets,
    Triplets,
)
from kernelmetric.learners._margin import ListedMargins
from kernelmetric.solvers import ComparisonDual, PairDual, solve_pairs

LEARNERS = [
    LMNN(),
    LMCA(2),
    IdealizedKernel(C=1e4),
    IdealizedKernel(C=1e4, psd="none"),
]


@pytest.fixture(scope="module")
def told():
    """Points of which the first two coordinates matter, and comparisons that say so."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 5))
    rows = rng.randint(60, size=(500, 3))
    rows = rows[(np.sort(rows, axis=1)[:, 1:] != np.sort(rows, axis=1)[:, :-1]).all(axis=1)]
    d2 = [np.sum((X[rows[:, 0], :2] - X[rows[:, k], :2]) ** 2, axis=1) for k in (1, 2)]
    rows[d2[0] > d2[1]] = rows[d2[0] > d2[1]][:, [0, 2, 1]]
    return X, Triplets(np.unique(rows, axis=0), 60)


def right(metric, X, tuples):
    """Share of comparisons that hold."""
    near, far = (metric.pair_distance(rows, X) for rows in (tuples.near, tuples.far))
    return np.mean(near < far)


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [*LEARNERS, IdealizedKernel()], ids=repr)
def test_comparisons_left_out_hold_more_often_than_before(learner, told):
    X, triplets = told
    some = np.arange(len(triplets)) % 2 == 0
    metric = clone(learner).fit(X, triplets=triplets.take(some))
    rest = triplets.take(~some)
    plain = np.mean(
        np.sum((X[rest.near[:, 0]] - X[rest.near[:, 1]]) ** 2, axis=1)
        < np.sum((X[rest.far[:, 0]] - X[rest.far[:, 1]]) ** 2, axis=1)
    )
    assert plain < 0.75
    assert right(metric, X, rest) > 0.9
    M = metric.get_mahalanobis_matrix()
    assert np.trace(M[:2, :2]) > 0.8 * np.trace(M)


@pytest.mark.every(4)
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_triplet_is_a_quadruplet_and_a_tuple_of_points(learner, told):
    X, triplets = told
    D = clone(learner).fit(X, triplets=triplets).pairwise_distances(X)
    as_four = clone(learner).fit(X, quadruplets=triplets.as_quadruplets())
    np.testing.assert_allclose(as_four.pairwise_distances(X), D, atol=1e-3 * np.abs(D).max())
    of_points = clone(learner).fit(X[triplets.rows])
    np.testing.assert_allclose(of_points.pairwise_distances(X), D, atol=5e-2 * np.abs(D).max())


@pytest.mark.parametrize("learner", [LEARNERS[0], *LEARNERS[2:]], ids=repr)
@pytest.mark.every(4)
def test_comparisons_go_through_a_kernel(learner, told):
    X, triplets = told
    D = clone(learner).fit(X, triplets=triplets).pairwise_distances(X)
    linear = Kernelized(learner, Linear()).fit(X, triplets=triplets)
    np.testing.assert_allclose(linear.pairwise_distances(X), D, atol=2e-2 * np.abs(D).max())
    curved = Kernelized(learner, RBF()).fit(X, triplets=triplets)
    assert right(curved, X, triplets) > 0.85
    of_points = Kernelized(learner, Linear()).fit(X[triplets.rows])
    assert right(of_points, X, triplets) > 0.9


def test_the_default_kernel_needs_no_labels_beside_comparisons(told):
    X, triplets = told
    metric = Kernelized(LMNN()).fit(X, triplets=triplets)
    assert right(metric, X, triplets) > 0.9


# --- large margins ------------------------------------------------------------------------------


def test_the_gradient_over_listed_comparisons_is_that_of_finite_differences(told):
    X, triplets = told
    problem = ListedMargins(X, triplets, 0.7, 0.3)
    L = 0.5 * np.random.RandomState(1).standard_normal((5, 5))
    none = np.empty((0, 2), dtype=np.int32)

    def of_map(v):
        return problem.of_map(v.reshape(5, 5), none, 0.2)

    error = check_grad(lambda v: of_map(v)[0], lambda v: of_map(v)[1].ravel(), L.ravel())
    assert error < 1e-5 * np.linalg.norm(of_map(L.ravel())[1])


def test_the_objective_over_listed_comparisons_is_its_formula(told):
    X, triplets = told
    L = np.random.RandomState(1).standard_normal((2, 5))
    near, far = (
        np.sum(((X[rows[:, 0]] - X[rows[:, 1]]) @ L.T) ** 2, axis=1)
        for rows in (triplets.near, triplets.far)
    )
    pulled = {tuple(sorted(pair)): d for pair, d in zip(triplets.near.tolist(), near, strict=True)}
    expected = sum(pulled.values()) + 0.7 * np.sum(np.maximum(1 + near - far, 0))
    expected += 0.3 * np.sum(L * L)
    found = ListedMargins(X, triplets, 0.7, 0.3).value(L)
    assert found == pytest.approx(expected)


def test_all_triplets_of_the_targets_are_what_labels_say():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((24, 3)), np.arange(24) % 3
    by_labels = LMNN(n_neighbors=1, tol=1e-5).fit(X, y)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    D[y[:, None] != y] = np.inf
    np.fill_diagonal(D, np.inf)
    target = D.argmin(axis=1)
    rows = [(a, target[a], c) for a in range(24) for c in range(24) if y[c] != y[a]]
    by_triplets = LMNN(tol=1e-5).fit(X, triplets=rows)
    # A pair that is a target both ways is drawn together once here, and twice there.
    twice = sum(target[target[a]] == a for a in range(24)) / 2
    assert by_triplets.loss_ <= by_labels.loss_
    assert by_triplets.loss_ > by_labels.loss_ * (1 - (twice + 1) / 24)


# --- idealized kernels --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.every(4)
@pytest.mark.parametrize(("psd", "nu"), half_of([True, False], [0.6, 0.2]))
def test_two_solvers_of_comparisons_agree(psd, nu, told):
    X, triplets = told
    upper = np.full(len(triplets), 1e3 / len(triplets))
    problem = ComparisonDual(X, triplets.near, triplets.far, upper, nu * 1e3, psd=psd)
    exact = solve_pairs(problem, solver="interior")
    other = solve_pairs(problem, solver="first-order", max_iter=500)
    assert exact.converged
    assert exact.certificate.gap < 1e-8
    low, high = other.certificate.dual, other.certificate.primal
    assert low - 1e-6 * abs(low) <= exact.certificate.primal <= high + 1e-6 * abs(high)


def test_matrix_and_forms_of_comparisons_are_adjoint_and_those_of_their_pairs(told):
    X, triplets = told
    n = len(triplets)
    problem = ComparisonDual(X, triplets.near, triplets.far, np.ones(n), 0.0)
    rng = np.random.RandomState(0)
    alpha, A = rng.random_sample(n), rng.standard_normal((5, 5))
    M = A + A.T
    assert np.sum(problem.matrix(alpha) * M) == pytest.approx(alpha @ problem.forms(M))
    far = PairDual(X, triplets.far, np.ones(n), np.ones(n), 0.0).forms(M)
    near = PairDual(X, triplets.near, np.ones(n), np.ones(n), 0.0).forms(M)
    np.testing.assert_allclose(problem.forms(M), far - near, atol=1e-10)
    one = np.zeros(n)
    one[3] = 1.0
    assert problem.sizes()[3] == pytest.approx(np.linalg.norm(problem.matrix(one)))


@pytest.mark.slow
def test_few_comparisons_in_many_coordinates_and_many_in_few_are_solved_alike():
    rng = np.random.RandomState(0)
    for n_tuples, r in ((40, 12), (1500, 4)):  # formed, and by low rank
        X = rng.standard_normal((80, r))
        rows = np.array([rng.permutation(80)[:4] for _ in range(n_tuples)])
        apart = [np.sum((X[rows[:, k], :2] - X[rows[:, k + 1], :2]) ** 2, axis=1) for k in (0, 2)]
        wrong = apart[0] > apart[1]
        rows[wrong] = rows[wrong][:, [2, 3, 0, 1]]
        found = IdealizedKernel(C=1e3).fit(X, quadruplets=Quadruplets(rows, 80))
        assert found.solver_ == "interior"
        assert found.duality_gap_ < 1e-8


def test_the_margin_of_nu_bounds_the_comparisons_in_error(told):
    X, triplets = told
    metric = IdealizedKernel(C=1e4, nu=0.3).fit(X, triplets=triplets)
    assert metric.gamma_ > 0
    gained = [
        metric.pair_distance(rows, X) ** 2 - np.sum((X[rows[:, 0]] - X[rows[:, 1]]) ** 2, axis=1)
        for rows in (triplets.near, triplets.far)
    ]
    missed = (gained[1] - gained[0]) < metric.gamma_ * (1 - 1e-6)
    assert np.mean(missed) <= 0.3
    assert np.mean(metric.alpha_ > 0) >= 0.3
    assert not hasattr(metric, "pairs_")


@pytest.mark.slow
def test_a_later_fit_begins_at_the_metric_of_fewer_comparisons(told):
    X, triplets = told
    at_once = IdealizedKernel(C=1e5).fit(X, triplets=triplets)
    later = IdealizedKernel(C=1e5, warm_start=True)
    later.fit(X, triplets=triplets.take(np.arange(len(triplets)) % 10 > 0))
    later.fit(X, triplets=triplets)
    assert later.n_iter_ < at_once.n_iter_
    assert later.loss_ == pytest.approx(at_once.loss_, rel=1e-7)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [LMNN(), LMCA(2), IdealizedKernel(C=1e3)], ids=repr)
def test_comparisons_stand_alone(learner, told):
    X, triplets = told
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="triplets and y, but expected one"):
        clone(learner).fit(X, y, triplets=triplets)
    with pytest.raises(ValueError, match="triplets and quadruplets"):
        clone(learner).fit(X, triplets=triplets, quadruplets=triplets.as_quadruplets())
    with pytest.raises(ValueError, match="n_samples=60 points, but X has 59 rows"):
        clone(learner).fit(X[1:], triplets=triplets)
    with pytest.raises(ValueError, match="no comparisons"):
        clone(learner).fit(X, triplets=Triplets(None, 60))
    with pytest.raises(ValueError, match="sample_weight"):
        clone(learner).fit(X, triplets=triplets, sample_weight=1.0 + y)
    with pytest.raises(ValueError, match="beside triplets or quadruplets of points"):
        clone(learner).fit(X[triplets.rows], np.ones(len(triplets)))


def test_what_needs_classes_is_refused_beside_comparisons(told):
    X, triplets = told
    for learner in (LMNN(init="lda"), LMNN(class_weight="balanced")):
        with pytest.raises(ValueError, match="expected class labels"):
            learner.fit(X, triplets=triplets)
    with pytest.raises(ValueError, match="requires y"):
        LMNN().fit(X)
    with pytest.raises(ValueError, match="requires y"):
        Kernelized(NCA()).fit(X, triplets=triplets)
    with pytest.raises(ValueError, match="does not learn from them"):
        Kernelized(ITML()).fit(X, triplets=triplets)


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [LSML(), SCML(), *LEARNERS], ids=repr)
def test_a_metric_of_comparisons_is_saved_and_restored(learner, told, tmp_path):
    from kernelmetric.shipping import load, save

    X, triplets = told
    metric = clone(learner).fit(X, triplets=triplets)
    save(metric, tmp_path / "metric.km")
    restored = load(tmp_path / "metric.km")
    np.testing.assert_array_equal(restored.transform(X), metric.transform(X))
