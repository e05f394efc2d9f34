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
from kernelmetric.learners import _lsml_solvers
from kernelmetric.learners._lsml_solvers import ComparedPairs
from kernelmetric.learners._scml import WeightedHinge, compared_squares, local_directions
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


def test_the_step_of_newton_is_where_the_gradient_of_its_model_is_zero(told):
    X, triplets = told
    counts = np.random.RandomState(3).uniform(0.5, 1.5, len(triplets))
    problem = ComparedPairs(X, triplets.near, triplets.far, 50.0, counts)
    here = problem.seen_by(np.eye(5) + 0.2 * np.random.RandomState(1).standard_normal((5, 5)))
    rng = np.random.RandomState(2)
    c, h = rng.uniform(0.5, 2.0, size=(2, len(here.wrong.rows)))
    D, E = np.split(here.ends, 2)
    U, V = D - np.sqrt(c)[:, None] * E, D + np.sqrt(c)[:, None] * E
    S = _lsml_solvers._step_of(here.gradient, U, V, h)
    products = np.einsum("ni,nj->nij", D, D) - c[:, None, None] * np.einsum("ni,nj->nij", E, E)
    at = np.einsum("n,nij->ij", h * np.einsum("nij,ij->n", products, S), products)
    np.testing.assert_allclose(here.gradient + S + at, 0, atol=1e-9 * np.abs(at).max())


def test_what_newton_sees_is_the_best_multiple_of_a_metric(told):
    X, triplets = told
    counts = np.random.RandomState(3).uniform(0.5, 1.5, len(triplets))
    problem = ComparedPairs(X, triplets.near, triplets.far, 50.0, counts)
    L = np.eye(5) + 0.2 * np.random.RandomState(1).standard_normal((5, 5))
    here = problem.seen_by(L)
    value, gap = problem.certificate(here.L)
    assert (here.value, here.gap) == pytest.approx((value, gap), rel=1e-9)
    for size in (0.3, 0.99, 1.01, 3.0):
        assert problem.certificate(size * here.L)[0] > here.value


def test_newton_ends_where_lbfgs_does_after_fewer_steps(told, monkeypatch):
    X, triplets = told
    found = LSML(tol=1e-9).fit(X, triplets=triplets)
    monkeypatch.setattr(_lsml_solvers, "MOST_SOLVED", 0)
    slow = LSML(tol=1e-9).fit(X, triplets=triplets)
    M = slow.get_mahalanobis_matrix()
    np.testing.assert_allclose(found.get_mahalanobis_matrix(), M, atol=1e-4 * np.abs(M).max())
    assert found.loss_ == pytest.approx(slow.loss_, rel=1e-8)
    assert 3 * found.n_iter_ < slow.n_iter_


def test_a_start_that_is_drawn_in_is_lower_and_ends_at_the_same_optimum(told, monkeypatch):
    X, triplets = told
    found = LSML(tol=1e-10).fit(X, triplets=triplets)
    monkeypatch.setattr(_lsml_solvers._Seen, "drawn_in", lambda self, problem: self)
    slow = LSML(tol=1e-10).fit(X, triplets=triplets)
    assert found.loss_curve_[0] < slow.loss_curve_[0]
    assert found.loss_ == pytest.approx(slow.loss_, rel=1e-9)


def test_a_metric_drawn_in_is_that_of_the_pulls_alone(told):
    X, triplets = told
    problem = ComparedPairs(X, triplets.near, triplets.far, 1e4, np.ones(len(triplets)))
    here = problem.seen_by(np.eye(5))
    after = here.drawn_in(problem)
    assert after.value < here.value
    near = X[triplets.near[here.wrong.rows, 0]] - X[triplets.near[here.wrong.rows, 1]]
    M = np.linalg.inv(np.eye(5) + (here.wrong.pull * near.T) @ near)
    found = after.L.T @ after.L
    np.testing.assert_allclose(found / np.trace(found), M / np.trace(M), rtol=1e-8, atol=1e-10)


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
