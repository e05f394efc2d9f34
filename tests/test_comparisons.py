"""LSML, SCML and SDML: their theorems, and that they learn what they are told."""

import numpy as np
import pytest
from scipy import linalg
from scipy.optimize import check_grad, linprog
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import (
    ITML,
    LSML,
    MMC,
    RBF,
    SCML,
    SDML,
    Kernelized,
    Linear,
    Pairs,
    Quadruplets,
    Triplets,
)
from kernelmetric.learners import _scml
from kernelmetric.learners._lsml import ComparedPairs
from kernelmetric.learners._scml import (
    WeightedHinge,
    compared_squares,
    local_directions,
    nearest_weights,
)
from kernelmetric.learners._tuple_learner import PairCounts
from kernelmetric.solvers import sparse_precision


@pytest.fixture
def told():
    """Points of which the first two coordinates matter, and comparisons that say so."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 5))
    rows = rng.randint(60, size=(600, 3))
    rows = rows[(np.sort(rows, axis=1)[:, 1:] != np.sort(rows, axis=1)[:, :-1]).all(axis=1)]
    d2 = [np.sum((X[rows[:, 0], :2] - X[rows[:, k], :2]) ** 2, axis=1) for k in (1, 2)]
    rows[d2[0] > d2[1]] = rows[d2[0] > d2[1]][:, [0, 2, 1]]
    return X, Triplets(np.unique(rows, axis=0), 60)


def right(metric, X, tuples):
    """Share of comparisons that hold."""
    near, far = (metric.pair_distance(rows, X) for rows in (tuples.near, tuples.far))
    return np.mean(near < far)


@pytest.mark.parametrize("learner", [LSML(), SCML()], ids=repr)
def test_comparisons_of_new_points_hold_more_often_than_before(learner, told):
    X, triplets = told
    some = np.arange(len(triplets)) % 2 == 0
    metric = learner.fit(X, triplets=triplets.take(some))
    plain = LSML(gamma=1e-6).fit(X, triplets=triplets)
    rest = triplets.take(~some)
    assert right(plain, X, rest) < 0.8
    assert right(metric, X, rest) > 0.9
    M = metric.get_mahalanobis_matrix()
    assert np.trace(M[:2, :2]) > 0.8 * np.trace(M)


@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [LSML(tol=1e-9), SCML()], ids=repr)
def test_a_triplet_is_a_quadruplet(learner, told):
    X, triplets = told
    M = learner.fit(X, triplets=triplets).get_mahalanobis_matrix()
    N = learner.fit(X, quadruplets=triplets.as_quadruplets()).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, N, atol=1e-6 * np.abs(M).max())


@pytest.mark.parametrize("learner", [LSML(tol=1e-9), SCML(n_basis=30)], ids=repr)
def test_other_units_give_the_same_metric(learner, told):
    X, triplets = told
    D = learner.fit(X, triplets=triplets).pairwise_distances(X)
    E = learner.fit(1e3 * X, triplets=triplets).pairwise_distances(1e3 * X)
    if isinstance(learner, LSML):
        E = E / 1e3  # the prior metric has units
    np.testing.assert_allclose(E, D, rtol=1e-4, atol=1e-4 * D.max())


# --- LSML ---------------------------------------------------------------------------------------


def test_the_gradient_of_squared_residuals_is_that_of_finite_differences(told):
    X, triplets = told
    problem = ComparedPairs(X, triplets.near, triplets.far, 50.0, np.ones(len(triplets)))
    L = np.eye(5) + 0.2 * np.random.RandomState(1).standard_normal((5, 5))
    error = check_grad(
        lambda v: problem.objective(v.reshape(5, 5))[0],
        lambda v: problem.objective(v.reshape(5, 5))[1].ravel(),
        L.ravel(),
    )
    assert error < 1e-4 * linalg.norm(problem.objective(L)[1])


def test_squared_residuals_are_convex_in_the_matrix(told):
    X, triplets = told
    problem = ComparedPairs(X, triplets.near, triplets.far, 50.0, np.ones(len(triplets)))
    rng = np.random.RandomState(1)
    for _ in range(20):
        A, B = (x @ x.T + 0.1 * np.eye(5) for x in rng.standard_normal((2, 5, 5)))
        a, b, middle = (problem.objective(linalg.cholesky(M))[0] for M in (A, B, 0.5 * (A + B)))
        assert middle <= 0.5 * (a + b) * (1 + 1e-12)


def test_the_certificate_of_lsml_bounds_every_other_metric(told):
    X, triplets = told
    found = LSML(tol=1e-8).fit(X, triplets=triplets)
    problem = ComparedPairs(
        X - X.mean(axis=0), triplets.near, triplets.far, 1e4, np.ones(len(triplets))
    )
    least = found.loss_ * (1 - found.duality_gap_)
    rng = np.random.RandomState(1)
    L = linalg.cholesky(found.get_mahalanobis_matrix())
    assert problem.objective(L)[0] == pytest.approx(found.loss_, rel=1e-6)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(10):
            assert problem.objective(L + size * rng.standard_normal((5, 5)))[0] >= least * (
                1 - 1e-9
            )


def test_lsml_at_its_prior_has_nothing_to_do():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [0.0, 5.0]])
    found = LSML().fit(X, triplets=[[0, 1, 2], [0, 2, 3]])
    np.testing.assert_allclose(found.get_mahalanobis_matrix(), np.eye(2), atol=1e-9)
    assert found.loss_ == pytest.approx(0.0, abs=1e-12)


def test_a_descent_goes_on_where_the_curvature_jumps():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((30, 4))
    X[:, 0] += np.arange(30) % 3
    X[:, 1] -= np.arange(30) % 3 == 1
    found = LSML(tol=1e-9).fit(X, triplets=[[0, 3, 1], [1, 4, 0], [2, 5, 1]])
    assert found.converged_


def test_a_prior_is_kept_where_comparisons_cost_little(told):
    X, triplets = told
    P = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    found = LSML(gamma=1e-8, prior=P).fit(X, triplets=triplets)
    np.testing.assert_allclose(found.get_mahalanobis_matrix(), P, rtol=1e-5, atol=1e-5)


def test_what_comparisons_weigh_does_not_depend_on_the_unit_of_length(told):
    X, triplets = told
    counts = np.random.RandomState(3).uniform(0.5, 1.5, len(triplets))
    problem = ComparedPairs(X, triplets.near, triplets.far, 50.0, counts)
    squares = [np.sum((X[rows[:, 0]] - X[rows[:, 1]]) ** 2, axis=1) @ counts
               for rows in (triplets.near, triplets.far)]  # fmt: skip
    mean = 0.5 * sum(squares) / len(triplets)
    assert problem.weight == pytest.approx(50.0 / (len(triplets) * mean))
    assert problem.floor == pytest.approx(2e-20 * mean)


def test_labels_make_no_more_triplets_than_asked_for():
    X = np.random.RandomState(0).standard_normal((50, 2))
    assert len(LSML(max_tuples=20).fit(X, np.arange(50) % 2).tuples_) == 20


# --- SCML ---------------------------------------------------------------------------------------


def test_the_weights_of_scml_are_those_of_the_linear_program(told):
    X, triplets = told
    triplets = triplets.take(np.arange(80))
    each = np.ones(len(triplets))
    B = local_directions(X, triplets, 12, np.random.RandomState(0), each)
    D, _ = compared_squares(X, triplets, B, each)
    # min mean ξ + β Σw with ξ >= 1 + D w
    n, k = D.shape
    cost = np.concatenate([np.full(k, 0.02), np.full(n, 1.0 / n)])
    exact = linprog(cost, np.hstack([D, -np.eye(n)]), -np.ones(n)).fun
    found = SCML(beta=0.02, basis=B, tol=1e-5).fit(X, triplets=triplets)
    assert exact - 1e-9 <= found.loss_ <= exact + found.duality_gap_ + 1e-9
    assert found.duality_gap_ <= 1e-5
    M = (found.basis_.T * found.weights_) @ found.basis_
    np.testing.assert_allclose(found.get_mahalanobis_matrix(), M, atol=1e-9 * np.abs(M).max())


def test_the_gradient_of_the_rounded_hinge_is_that_of_finite_differences():
    rng = np.random.RandomState(0)
    problem = WeightedHinge(rng.standard_normal((50, 6)), 0.1, rng.uniform(0.5, 1.5, 50))
    problem.width = 0.5
    w = rng.random_sample(6)
    error = check_grad(lambda w: problem.objective(w)[0], lambda w: problem.objective(w)[1], w)
    assert error < 1e-5


def test_a_larger_price_gives_smaller_weights(told):
    X, triplets = told
    B = np.eye(5)
    totals = [
        np.sum(SCML(beta=beta, basis=B, tol=1e-5).fit(X, triplets=triplets).weights_)
        for beta in (1e-2, 0.1, 0.2)
    ]
    assert totals == sorted(totals, reverse=True)


def test_a_price_above_all_gains_ends_in_the_zero_metric_and_says_so(told):
    X, triplets = told
    with pytest.warns(UserWarning, match="zero metric"):
        found = SCML(beta=1e6).fit(X, triplets=triplets)
    assert not found.components_.any()


@pytest.mark.parametrize("basis", [np.ones((2, 3)), np.zeros((2, 5)), [[np.nan] * 5]], ids=np.shape)
def test_a_basis_that_is_none_is_refused(basis, told):
    X, triplets = told
    with pytest.raises(ValueError, match="expected directions"):
        SCML(basis=basis).fit(X, triplets=triplets)


def test_a_direction_in_which_no_points_differ_is_never_chosen(told):
    X, triplets = told
    X = np.c_[X, np.ones(60)]
    B = np.vstack([np.eye(6)[:2], np.eye(6)[5]])
    found = SCML(basis=B).fit(X, triplets=triplets)
    assert 0 < len(found.weights_) <= 2
    assert np.all(np.isfinite(found.components_))
    np.testing.assert_array_equal(found.components_[:, 2:], 0.0)


def test_without_iterations_the_weights_are_zero_and_the_gap_is_the_objective():
    problem = WeightedHinge(np.random.RandomState(0).standard_normal((9, 3)), 0.1, np.ones(9))
    w, value, gap, n_iter = problem.minimise(np.zeros(3), 1e-2, 0, lambda w, value: False)
    assert (value, gap, n_iter) == (1.0, 1.0, 1)
    np.testing.assert_array_equal(w, 0.0)


@pytest.mark.parametrize("width", [0.01, 0.3, 3.0])
def test_the_minimum_of_the_hinge_lies_between_its_bounds(width):
    rng = np.random.RandomState(0)
    problem = WeightedHinge(rng.standard_normal((60, 4)) - 0.3, 0.05, rng.uniform(0.5, 1.5, 60))
    problem.width = width
    report = lambda w, value: False  # noqa: E731
    least = problem.minimise(np.zeros(4), 1e-7, 2000, report)[1]
    problem.width = width
    for w in np.abs(rng.standard_normal((10, 4))):
        value, dual = problem.bounds(w)
        hinge = problem.counts * np.maximum(1.0 + problem.D @ w, 0.0)
        assert value == pytest.approx(np.mean(hinge) + 0.05 * np.sum(w))
        assert dual <= least + 1e-6 <= value + 2e-6


def test_weights_that_are_good_enough_are_kept_and_a_stop_is_heard():
    rng = np.random.RandomState(0)
    problem = WeightedHinge(rng.standard_normal((60, 4)) - 0.3, 0.05, np.ones(60))
    seen = []
    found = problem.minimise(np.zeros(4), 1e-3, 2000, lambda w, v: seen.append(v) or False)
    assert found[3] == len(seen) > 1
    assert found[2] <= 1e-3
    again = problem.minimise(found[0], 0.1, 2000, lambda w, v: pytest.fail("a step"))
    np.testing.assert_array_equal(again[0], found[0])
    assert again[1] == pytest.approx(found[1])
    assert problem.minimise(np.zeros(4), 1e-9, 2000, lambda w, v: True)[3] == 1


def test_the_nearest_weights_give_a_matrix_of_the_basis_back():
    rng = np.random.RandomState(0)
    B, w = rng.standard_normal((5, 3)), np.array([0.5, 0.0, 2.0, 0.0, 1.0])
    np.testing.assert_allclose(nearest_weights(B, (B.T * w) @ B), w, atol=1e-8)


@pytest.mark.parametrize(
    ("n", "sizes"), [(40, [40, 10, 20, 10]), (41, [41, 10, 20, 40]), (81, [81, 10, 20, 40])]
)
def test_directions_come_from_ever_more_comparisons_around_a_point(told, monkeypatch, n, sizes):
    X, triplets = told
    triplets, seen, parting = triplets.take(np.arange(n)), [], _scml._parting

    def watched(delta, epsilon, ridge):
        seen.append(len(delta))
        return parting(delta, epsilon, ridge)

    monkeypatch.setattr(_scml, "_parting", watched)
    B = local_directions(X, triplets, 15, np.random.RandomState(0), np.ones(n))
    assert seen == sizes  # all, then those near to a point
    assert B.shape == (15, 5)  # five of all, five principal axes, two of each place
    np.testing.assert_allclose(np.linalg.norm(B, axis=1), 1.0)


def test_directions_that_part_are_generalized_eigenvectors_of_length_one():
    rng = np.random.RandomState(0)
    delta, epsilon = rng.standard_normal((30, 3)), rng.standard_normal((30, 3)) * [1.0, 3.0, 0.2]
    V = _scml._parting(delta, epsilon, 0.5)
    S, D = delta.T @ delta, epsilon.T @ epsilon
    S += 0.5 * (np.trace(S) + 1e-3 * np.trace(D)) / 3 * np.eye(3)
    values = np.einsum("ki,ij,kj->k", V, D, V) / np.einsum("ki,ij,kj->k", V, S, V)
    np.testing.assert_allclose(V @ D, values[:, None] * (V @ S), atol=1e-9)
    assert np.all(np.diff(values) < 0)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1.0)
    np.testing.assert_allclose(np.abs(_scml._parting(0 * delta, 0 * epsilon, 0.5)), np.eye(3)[::-1])


# --- SDML ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.02, 0.2])
def test_the_sparse_matrix_is_that_of_the_graphical_lasso(penalty):
    X = np.random.RandomState(0).standard_normal((40, 6))
    X[:, 1] += X[:, 0]
    S = X.T @ X / 40
    found = sparse_precision(S, penalty, tol=1e-9)
    expected = graphical_lasso(S, penalty, tol=1e-5, max_iter=1000)[1]
    np.testing.assert_allclose(found.matrix, expected, atol=1e-3)
    np.testing.assert_array_equal(found.matrix == 0, expected == 0)
    assert found.converged


def test_without_a_penalty_the_matrix_is_the_inverse():
    X = np.random.RandomState(0).standard_normal((40, 4))
    S = X.T @ X / 40
    np.testing.assert_allclose(sparse_precision(S, 0.0, tol=1e-12).matrix, linalg.inv(S), rtol=1e-4)


def test_sdml_with_all_its_sparsity_is_a_diagonal_and_without_pairs_the_prior(told):
    X, _ = told
    pairs = Pairs([[0, 1], [2, 3]], [[4, 5], [6, 7], [8, 9]], 60)
    M = SDML(sparsity=1.0).fit(X, pairs=pairs).sparse_matrix_
    np.testing.assert_array_equal(M, np.diag(np.diag(M)))
    P = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    found = SDML(balance=0.0, sparsity=0.0, prior=P).fit(X, pairs=pairs)
    np.testing.assert_allclose(found.get_mahalanobis_matrix(), P, rtol=1e-3)
    assert found.loss_ == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("balance", [0.5, 0.999])
def test_sdml_has_a_minimum_however_much_dissimilar_pairs_pull(balance, told):
    X, _ = told
    pairs = Pairs(None, [[4, 5], [6, 7], [8, 9]], 60)
    found = SDML(balance=balance, max_iter=5000).fit(X, pairs=pairs)
    assert found.converged_
    D = found.pair_distance(pairs.rows, X)
    assert np.all(D > SDML(balance=0.0).fit(X, pairs=pairs).pair_distance(pairs.rows, X))


def test_sdml_goes_on_from_the_metric_of_the_last_fit(told):
    X, _ = told
    pairs = Pairs([[0, 1], [2, 3]], [[4, 5], [6, 7], [8, 9]], 60)
    found = SDML(warm_start=True, tol=1e-6).fit(X, pairs=pairs)
    first, M = found.n_iter_, found.sparse_matrix_
    assert first > 1
    found.fit(X, pairs=pairs)
    assert found.n_iter_ <= 1
    np.testing.assert_allclose(found.sparse_matrix_, M, rtol=1e-4, atol=1e-9)
    found.components_ = found.components_[:3]  # singular: there is no inverse to begin with
    found.fit(X, pairs=pairs)
    assert found.n_iter_ == first
    np.testing.assert_allclose(found.sparse_matrix_, M, rtol=1e-9)


@pytest.mark.parametrize("prior", [None, np.diag([1.0, 2.0, 3.0, 4.0, 5.0])], ids=["", "prior"])
@pytest.mark.parametrize("kinds", ["both", "similar"])
def test_the_balance_is_a_share_of_what_no_metric_could_bear(told, prior, kinds):
    X, _ = told
    dissimilar = [[4, 5], [6, 7], [8, 9]] if kinds == "both" else None
    learner = SDML(balance=0.5, prior=prior)
    learner.pairs_ = pairs = Pairs([[0, 1], [2, 3]], dissimilar, 60)
    root = None if prior is None else linalg.cholesky(prior, lower=True)
    S = learner._weighted_inverse(X, root, PairCounts(None, np.ones(60)))
    K = np.zeros((5, 5))
    for rows, sign in ((pairs.similar, 1.0), (pairs.dissimilar, -1.0)):
        for i, j in rows:
            K += sign * np.outer(X[i] - X[j], X[i] - X[j]) / len(rows)
    P = np.eye(5) if prior is None else prior
    values = linalg.eigvals(P @ K).real
    edge = max(-values.min(), 1e-3 * np.abs(values).max())
    np.testing.assert_allclose(S, np.linalg.inv(P) + 0.5 / edge * K, rtol=1e-9, atol=1e-9)


def test_a_descent_from_the_answer_is_done_and_from_elsewhere_ends_there():
    X = np.random.RandomState(0).standard_normal((40, 4)) * [1.0, 10.0, 0.1, 2.0]
    X[:, 1] += 10 * X[:, 0]
    S = X.T @ X / 40
    found = sparse_precision(S, 0.05, tol=1e-9)
    again = sparse_precision(S, 0.05, tol=1e-8, start=found.matrix)
    assert again.n_iter == 0
    assert again.value == pytest.approx(found.value)
    np.testing.assert_array_equal(again.matrix, found.matrix)
    other = sparse_precision(S, 0.05, tol=1e-9, start=np.diag([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(other.matrix, found.matrix, rtol=1e-3, atol=1e-6)
    log_det = np.linalg.slogdet(found.matrix)[1]
    edges = np.sum(np.abs(found.matrix)) - np.trace(np.abs(found.matrix))
    value = np.sum(S * found.matrix) - log_det - 4 + 0.05 * edges
    assert found.value == pytest.approx(value)


# --- what all of them refuse --------------------------------------------------------------------


@pytest.mark.parametrize("learner", [LSML(), SCML()], ids=repr)
def test_comparisons_come_from_one_place(learner, told):
    X, triplets = told
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="neither y nor tuples"):
        learner.fit(X)
    with pytest.raises(ValueError, match="triplets and y, but expected one"):
        learner.fit(X, y, triplets=triplets)
    with pytest.raises(ValueError, match="n_samples=60 points, but X has 59 rows"):
        learner.fit(X[1:], triplets=triplets)
    with pytest.raises(ValueError, match="no comparisons"):
        learner.fit(X, triplets=Triplets(None, 60))
    with pytest.raises(ValueError, match="coincide"):
        learner.fit(np.repeat([[0.0, 1.0], [1.0, 0.0]], [59, 1], axis=0), triplets=[[0, 1, 2]])


def test_iterations_that_do_not_suffice_are_told(told):
    X, triplets = told
    for learner in (LSML(max_iter=1, tol=1e-9), SCML(max_iter=1, tol=1e-9)):
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            learner.fit(X, triplets=triplets)


@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [LSML(tol=1e-8), SCML(tol=1e-4, n_basis=20)], ids=repr)
def test_comparisons_are_kernelized(learner, told):
    X, triplets = told
    alone = learner.fit(X, triplets=triplets).pairwise_distances(X)
    linear = Kernelized(learner, Linear()).fit(X, triplets=triplets).pairwise_distances(X)
    np.testing.assert_allclose(linear, alone, rtol=1e-2, atol=1e-2 * alone.max())
    curved = Kernelized(learner, RBF()).fit(X, triplets=triplets)
    assert right(curved, X, triplets) > 0.8


def test_quadruplets_are_learned_from(told):
    X, _ = told
    y = np.arange(60) % 3
    X = X.copy()
    X[:, 0] += 4 * y
    quadruplets = Quadruplets.from_labels(y, random_state=0)
    assert right(LSML().fit(X, quadruplets=quadruplets), X, quadruplets) > 0.95


# --- more of them later -------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.filterwarnings("ignore:The prior metric stays")  # what is drawn teaches nothing
@pytest.mark.parametrize("kind", [ITML, MMC, LSML], ids=lambda kind: kind.__name__)
def test_a_warm_start_in_two_halves_ends_where_one_fit_ends(kind, told):
    X, triplets = told
    pairs = Pairs.from_labels(np.arange(60) % 4, per_point=4, random_state=0)
    parts = [
        {"triplets": some} if kind is LSML else {"pairs": some}
        for whole in (triplets if kind is LSML else pairs,)
        for some in (whole.take(np.arange(len(whole)) % 2 == 0), whole)
    ]
    at_once = kind(tol=1e-9).fit(X, **parts[1])
    later = kind(tol=1e-9, warm_start=True).fit(X, **parts[0])
    assert later.loss_ != pytest.approx(at_once.loss_, rel=1e-3)
    later.fit(X, **parts[1])
    assert later.loss_ == pytest.approx(at_once.loss_, rel=1e-7)
    D = at_once.pairwise_distances(X)
    np.testing.assert_allclose(later.pairwise_distances(X), D, atol=1e-3 * D.max())


@pytest.mark.parametrize("kind", [ITML, MMC, LSML], ids=lambda kind: kind.__name__)
def test_a_warm_start_at_the_optimum_stays_there(kind, told):
    X, _ = told
    y = np.arange(60) % 3
    learner = kind(warm_start=True).fit(X, y)
    before = learner.n_iter_
    learner.fit(X, y)
    assert learner.n_iter_ <= max(1, before // 2)
    with pytest.raises(ValueError, match="expected 4 columns"):
        learner.fit(X[:, :4], y)
