"""Optimisers at their limits: no value counts as converged that is not a number."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import LMNN, MLKR, NCA
from kernelmetric.learners._progress import Iterations
from kernelmetric.solvers import (
    PairDual,
    minimize_lbfgs,
    nonnegative_qp,
    positive_part,
    solve_pairs,
)
from kernelmetric.solvers._nonnegative import kkt_residual
from kernelmetric.solvers._pair_dual import Certificate, project_box_half_space
from kernelmetric.solvers._pair_interior import MOST_FLOPS, interior_flops, interior_point
from kernelmetric.solvers._pair_solve import _Record, _Steps, first_order
from kernelmetric.spaces import Gram


def bowl(x):
    """A quadratic with its minimum, of value 3, at (1, 2)."""
    away = x - np.array([[1.0, 2.0]])
    return 3.0 + float(np.sum(away * away)), 2.0 * away


def cliff(edge, beyond=np.nan):
    """A slope down to a wall behind which there are no numbers."""

    def objective(x):
        value = float(np.sum(x))
        return (value, np.ones_like(x)) if value > edge else (beyond, np.full_like(x, beyond))

    return objective


# --- L-BFGS -----------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_lbfgs_refuses_a_start_without_a_finite_value(beyond):
    with pytest.raises(ValueError, match=r"Got a start at which the objective, now .*, but"):
        minimize_lbfgs(cliff(0.0, beyond), np.full((1, 2), -1.0), max_iter=5, tol=1e-6)


def test_lbfgs_refuses_a_start_whose_gradient_is_not_finite():
    with pytest.raises(ValueError, match="gradient is not finite"):
        minimize_lbfgs(lambda x: (1.0, x * np.nan), np.ones((1, 2)), max_iter=5, tol=1e-6)


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_lbfgs_that_meets_the_end_of_the_numbers_has_not_converged(beyond):
    found = minimize_lbfgs(cliff(0.5, beyond), np.full((1, 2), 5.0), max_iter=50, tol=1e-9)
    assert not found.converged
    assert np.all(np.isfinite(found.x)) and np.isfinite(found.value)
    assert found.value == pytest.approx(float(np.sum(found.x)))
    assert 0.5 < found.value <= 10.0


def test_lbfgs_finds_the_minimum_and_says_so():
    seen = []
    found = minimize_lbfgs(
        bowl,
        np.zeros((1, 2)),
        max_iter=50,
        tol=1e-12,
        report=lambda x, value: seen.append((x.copy(), value)),
    )
    assert found.converged
    assert found.x.shape == (1, 2)
    np.testing.assert_allclose(found.x, [[1.0, 2.0]], atol=1e-6)
    assert found.value == pytest.approx(3.0)
    assert found.n_iter == len(seen) > 0
    assert seen[-1][1] == found.value
    np.testing.assert_array_equal(seen[-1][0], found.x)


def test_lbfgs_stops_when_it_is_told_to():
    found = minimize_lbfgs(
        lambda x: (float(np.sum(x**4)), 4 * x**3),
        np.full((2, 2), 9.0),
        max_iter=50,
        tol=0.0,
        report=lambda x, value: True,
    )
    assert found.n_iter == 1
    assert not found.converged


def test_lbfgs_at_its_iteration_limit_has_not_converged():
    found = minimize_lbfgs(
        lambda x: (float(np.sum(x**4)), 4 * x**3), np.full((2, 2), 9.0), max_iter=2, tol=0.0
    )
    assert (found.n_iter, found.converged) == (2, False)


def test_lbfgs_takes_any_tolerance():
    found = minimize_lbfgs(bowl, np.zeros((1, 2)), max_iter=50, tol=1e308)
    assert found.converged
    assert found.n_iter == 1


# --- learners whose objective overflows -------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        NCA(init=1e160 * np.eye(4)),
        NCA(solver="minibatch", init=1e160 * np.eye(4)),
        LMNN(init=1e160 * np.eye(4)),
        MLKR(init=1e160 * np.eye(4)),
    ],
    ids=lambda learner: f"{type(learner).__name__} {getattr(learner, 'solver', '')}",
)
def test_a_start_that_overflows_is_refused(learner, labelled):
    with pytest.raises(ValueError, match=r"Got init with entries up to 1e\+160, but expected"):
        learner.fit(*labelled)
    assert not hasattr(learner, "converged_")


def test_batches_that_go_too_far_end_with_the_pass_before(labelled, monkeypatch):
    from kernelmetric.learners import _nca_solvers

    exact = _nca_solvers.NCAProblem.objective
    calls = []

    def failing(self, L):
        calls.append(L)
        value, gradient = exact(self, L)
        return (np.nan, gradient) if len(calls) > 120 else (value, gradient)

    monkeypatch.setattr(_nca_solvers.NCAProblem, "objective", failing)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        learner = NCA(solver="minibatch", random_state=0).fit(*labelled)
    assert not learner.converged_
    assert np.isfinite(learner.loss_) and np.all(np.isfinite(learner.components_))
    assert learner.loss_ == learner.loss_curve_[-1]


@pytest.mark.every(2)
@pytest.mark.parametrize("data", ["two points", "classes of one"])
def test_batches_without_anything_to_gain_end_soon(data, labelled):
    X, _ = labelled
    n = 2 if data == "two points" else 12
    learner = NCA(solver="minibatch", random_state=0).fit(X[:n], np.arange(n))
    assert learner.converged_
    assert learner.n_iter_ <= 4
    assert learner.loss_ == 0.0


# --- quadratic programs over non-negative vectors ---------------------------------------------


def program(m, rank, seed):
    rng = np.random.RandomState(seed)
    A = rng.standard_normal((rank, m))
    return A.T @ A, A.T @ rng.standard_normal(rank)


@pytest.mark.parametrize(("m", "rank"), [(1, 1), (5, 5), (8, 12), (8, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_the_nonnegative_minimum_beats_its_neighbours(m, rank, seed):
    S, b = program(m, rank, seed)
    v, residual = nonnegative_qp(S, b)
    assert np.all(v >= 0)
    assert residual == kkt_residual(S, b, v) <= 1e-9 * max(1.0, np.abs(b).max())
    value = v @ S @ v - 2 * b @ v
    rng = np.random.RandomState(seed)
    for size in (1e-3, 1e-1, 10.0):
        others = np.maximum(v + size * rng.standard_normal((200, m)), 0.0)
        values = np.einsum("ij,jk,ik->i", others, S, others) - 2 * others @ b
        assert values.min() >= value - 1e-9 * max(1.0, abs(value))


def test_the_residual_is_the_largest_violation():
    S, b = np.diag([2.0, 4.0]), np.array([2.0, 4.0])
    assert kkt_residual(S, b, np.array([1.0, 1.0])) == 0.0
    assert kkt_residual(S, b, np.array([1.5, 1.0])) == pytest.approx(1.0)  # g = 1 where v > 0
    assert kkt_residual(S, b, np.array([0.5, 1.0])) == pytest.approx(1.0)  # g = -1 where v > 0
    assert kkt_residual(S, b, np.array([1.0, 0.0])) == pytest.approx(4.0)  # g = -4 where v = 0
    assert kkt_residual(S, -b, np.array([0.0, 0.0])) == 0.0  # g > 0 where v = 0 is as it should be


def test_a_nearly_singular_program_is_solved_to_the_last_digits():
    rng = np.random.RandomState(0)
    A = rng.standard_normal((40, 6))
    A = np.c_[A, A[:, :1] + 1e-7 * rng.standard_normal((40, 1))]  # two nearly equal columns
    S, b = A.T @ A, A.T @ np.abs(A).sum(axis=1)
    v, residual = nonnegative_qp(S, b)
    assert residual <= 1e-10 * np.abs(b).max()
    assert np.all(v >= 0)


def test_a_program_without_curvature_stays_at_zero():
    v, residual = nonnegative_qp(np.zeros((3, 3)), np.zeros(3))
    assert v.tolist() == [0.0, 0.0, 0.0]
    assert residual == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_program_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="Got a program with NaN or infinity"):
        nonnegative_qp(np.diag([1.0, bad]), np.ones(2))
    with pytest.raises(ValueError, match="Got a program with NaN or infinity"):
        nonnegative_qp(np.eye(2), np.array([1.0, bad]))


def test_where_scipys_first_solver_gives_up_another_finds_the_minimum(monkeypatch):
    def gives_up(A, c):
        raise RuntimeError("too many iterations")

    monkeypatch.setattr("kernelmetric.solvers._nonnegative.nnls", gives_up)
    S, b = program(8, 12, 0)
    v, residual = nonnegative_qp(S, b)
    assert residual <= 1e-9
    monkeypatch.undo()
    np.testing.assert_allclose(v, nonnegative_qp(S, b)[0], atol=1e-8)


# --- Gram matrices ----------------------------------------------------------------------------


def singular_gram(n=6, rank=4, seed=0):
    A = np.random.RandomState(seed).standard_normal((n, rank))
    return A @ A.T


@pytest.mark.parametrize("singular", ["range", "ridge", "raw"])
def test_whitening_measures_with_the_inverse_gram(singular):
    A = np.random.RandomState(0).standard_normal((5, 9))
    G = A @ A.T
    gram = Gram(G, singular, ridge=1e-9)
    Z = np.random.RandomState(1).standard_normal((7, 5))
    W = gram.whiten(Z)
    expected = Z @ np.linalg.inv(G) @ Z.T
    np.testing.assert_allclose(W @ W.T, expected, atol=1e-5 * np.abs(expected).max())
    assert gram.rank == 5


def test_the_range_of_a_singular_gram_has_its_rank():
    gram = Gram(singular_gram())
    assert gram.rank == 4
    W = gram.inv_sqrt()
    assert W.shape == (6, 4)
    np.testing.assert_allclose(W.T @ gram.matrix @ W, np.eye(4), atol=1e-9)
    assert gram.eigenvalues.shape == (6,)
    assert np.all(np.diff(gram.eigenvalues) >= 0)


def test_the_cut_off_is_relative_to_the_largest_eigenvalue_or_to_rounding():
    gram = Gram(np.diag([1e-7, 1e-9, 100.0]))
    assert gram.cut_off == pytest.approx(1e-8)
    assert gram.rank == 2
    many = Gram(np.eye(800) * 1e3)
    assert many.cut_off == pytest.approx(800 * np.finfo(float).eps * 8e5)


def test_the_ridge_is_a_share_of_the_mean_eigenvalue():
    gram = Gram(np.diag([2.0, 4.0]), "ridge", ridge=0.1)
    np.testing.assert_allclose(gram.inv_sqrt(), np.diag([2.3**-0.5, 4.3**-0.5]), atol=1e-12)


@pytest.mark.parametrize("singular", ["range", "ridge", "raw"])
def test_generalized_eigenvectors_solve_their_equation(singular):
    rng = np.random.RandomState(0)
    A = rng.standard_normal((5, 9))
    B = rng.standard_normal((5, 5))
    gram = Gram(A @ A.T, singular, ridge=1e-12)
    values, U = gram.eigh(B)  # of which the symmetric half counts
    S = (B + B.T) / 2
    np.testing.assert_allclose(S @ U, gram.matrix @ U * values, atol=1e-7)
    np.testing.assert_allclose(np.diag(U.T @ gram.matrix @ U), np.ones(5), atol=1e-7)
    assert np.all(np.diff(values) >= 0)


def test_the_penalty_is_the_norm_in_the_feature_space():
    G, L = singular_gram(), np.random.RandomState(1).standard_normal((2, 6))
    value, gradient = Gram(G).penalty(L)
    assert value == pytest.approx(np.trace(L @ G @ L.T))
    np.testing.assert_allclose(gradient, 2 * L @ G)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((np.eye(2), "both"), "Got singular='both', but expected 'range'"),
        ((np.eye(2), "ridge", 0.0), "Got ridge=0.0, but expected a number > 0"),
        ((np.eye(2), "range", -1.0), "Got ridge=-1.0"),
        ((np.eye(2), "range", np.inf), "Got ridge=inf"),
        ((np.ones((2, 3)),), r"Got a matrix of shape \(2, 3\), but expected a square"),
        ((np.ones(3),), r"Got a matrix of shape \(3,\), but expected a square"),
    ],
)
def test_a_gram_that_is_none_is_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Gram(*arguments)


# --- problems of pairs ------------------------------------------------------------------------


def problem_of_pairs(
    n=12, r=3, n_pairs=20, *, weight=1.0, psd=True, seed=0, unequal=False, **options
):
    rng = np.random.RandomState(seed)
    Z = rng.standard_normal((n, r)) + 5.0
    Z[:, 0] += 1.5 * (np.arange(n) % 2)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(len(i))[:n_pairs]
    pairs = np.stack([i[chosen], j[chosen]], axis=1)
    signs = np.where((pairs[:, 0] - pairs[:, 1]) % 2 == 0, -1.0, 1.0)
    upper = weight * np.where(signs > 0, 3.0, 2.0) / n_pairs
    upper = upper * (1 + unequal * rng.uniform(size=n_pairs))
    return PairDual(Z, pairs, signs, upper, 0.5 * upper[signs > 0].sum(), psd=psd, **options)


def differences_of(problem):
    return problem.Z[problem.first] - problem.Z[problem.second]


def test_the_matrix_and_the_forms_of_pairs_are_their_sums():
    problem = problem_of_pairs()
    delta = differences_of(problem)
    alpha = np.random.RandomState(1).uniform(size=20)
    M = sum(s * a * np.outer(d, d) for s, a, d in zip(problem.signs, alpha, delta, strict=True))
    np.testing.assert_allclose(problem.matrix(alpha), M)
    np.testing.assert_allclose(problem.forms(M), [d @ M @ d for d in delta])
    np.testing.assert_allclose(problem.d2, np.sum(delta**2, axis=1))
    P = positive_part(M)
    np.testing.assert_allclose(
        problem.forms(problem.metric(M)), [d @ P @ d for d in delta], atol=1e-12
    )
    unconstrained = problem_of_pairs(psd=False)
    np.testing.assert_allclose(
        unconstrained.forms(unconstrained.metric(M)), [d @ M @ d for d in delta]
    )


def test_a_prior_measures_what_pairs_were_apart():
    prior = np.diag([1.0, 2.0, 3.0])
    problem = problem_of_pairs(prior=prior)
    delta = differences_of(problem)
    np.testing.assert_allclose(problem.d2, np.sum(delta**2 * [1.0, 2.0, 3.0], axis=1))


def test_single_precision_is_near():
    problem = problem_of_pairs()
    single = problem.rough(1e-3, 1.0)
    alpha = np.random.RandomState(1).uniform(size=20)
    assert single.Z.dtype == np.float32 and problem.Z.dtype == np.float64
    np.testing.assert_allclose(single.matrix(alpha), problem.matrix(alpha), rtol=1e-4, atol=1e-4)


@pytest.mark.every(4)
@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.99, 1.0])
def test_the_margin_is_the_best_there_is(unequal, share):
    problem = problem_of_pairs(unequal=unequal)
    upper = problem.upper[problem.apart]
    problem.least = share * upper.sum()
    margins = np.random.RandomState(2).standard_normal(len(upper)) + 1.0

    def cost(gamma):
        return -problem.least * gamma + np.sum(upper * np.maximum(gamma - margins, 0.0))

    gamma = problem._best_gamma(margins)
    assert gamma >= 0
    grid = np.r_[np.linspace(0, 5, 2001), np.maximum(margins, 0)]
    assert cost(gamma) <= min(cost(g) for g in grid) + 1e-12


def test_the_optimum_lies_between_the_two_values():
    for psd in (True, False):
        problem = problem_of_pairs(psd=psd, unequal=True)
        best = solve_pairs(problem, solver="interior").certificate
        assert best.gap < 1e-8
        rng = np.random.RandomState(0)
        for _ in range(20):
            alpha = problem.project(rng.uniform(size=20) * problem.upper, np.ones(20))
            metric = problem.metric(problem.matrix(alpha))
            seen, _ = problem.compare(problem.dual(alpha, metric), metric, problem.forms(metric))
            assert seen.dual <= best.primal + 1e-9
            assert seen.primal >= best.dual - 1e-9
            assert seen.gap >= 0


def test_a_gap_is_relative_to_the_largest_of_all_values():
    assert Certificate.of(1.0, 3.0, 0.5, 0.0).gap == pytest.approx(2 / 3)
    assert Certificate.of(-4.0, 1.0, 0.5, 0.0).gap == pytest.approx(5 / 4)
    assert Certificate.of(1.0, 3.0, 10.0, 0.0).gap == pytest.approx(0.2)
    assert Certificate.of(0.0, 0.0, 0.0, 0.0).gap == 0.0


@pytest.mark.parametrize("least", [0.0, 1.0, 2.9, 3.0])
def test_a_projection_is_the_nearest_feasible_point(least):
    rng = np.random.RandomState(0)
    v = 2 * rng.standard_normal(8)
    upper, weights = rng.uniform(0.5, 1.0, 8), rng.uniform(0.1, 3.0, 8)
    members = np.arange(8) < 4
    least = least * upper[members].sum() / 3.0
    p = project_box_half_space(v, upper, members, least, weights)
    assert np.all(p >= 0) and np.all(p <= upper)
    assert p[members].sum() >= least * (1 - 1e-12)
    np.testing.assert_allclose(p[~members], np.clip(v, 0, upper)[~members])
    for _ in range(300):
        q = rng.uniform(size=8) * upper
        if q[members].sum() >= least:
            # the angle at a projection is obtuse
            assert np.sum(weights * (v - p) * (q - p)) <= 1e-9


@pytest.mark.parametrize("where", ["Z", "upper", "least"])
def test_pairs_with_nan_are_refused_before_they_are_solved(where):
    Z, upper, least = np.eye(3), np.ones(2), 0.5
    if where == "Z":
        Z[0, 0] = np.nan
    elif where == "upper":
        upper[1] = np.inf
    else:
        least = np.nan
    with pytest.raises(ValueError, match="Got a problem of pairs with NaN or infinity"):
        PairDual(Z, np.array([[0, 1], [1, 2]]), np.array([-1.0, 1.0]), upper, least)


@pytest.mark.parametrize("psd", [True, False])
def test_both_methods_find_the_same_metric(psd):
    problem = problem_of_pairs(30, 4, 120, psd=psd)
    sharp = interior_point(problem, tol=1e-10, max_iter=100, report=None)
    rough = first_order(problem, tol=1e-3, max_iter=1000)
    assert sharp.solver == "interior" and rough.solver == "first-order"
    assert sharp.converged and rough.converged
    scale = np.abs(sharp.metric).max()
    np.testing.assert_allclose(rough.metric, sharp.metric, atol=3e-2 * scale)
    assert rough.certificate.dual <= sharp.certificate.primal + 1e-9
    assert rough.certificate.primal >= sharp.certificate.dual - 1e-9
    assert sharp.n_iter < 40
    assert np.all((sharp.alpha >= 0) & (sharp.alpha <= problem.upper))
    assert np.sum(sharp.alpha[problem.apart]) >= problem.least * (1 - 1e-9)


def test_a_first_order_method_may_begin_at_the_answer():
    problem = problem_of_pairs(60, 12, 400)
    found = first_order(problem, tol=1e-6, max_iter=1000)
    again = first_order(problem, tol=1e-6, max_iter=1000, start=found.alpha)
    assert again.n_iter == 20 < found.n_iter  # the first look


def test_an_unknown_method_for_pairs_is_refused():
    with pytest.raises(ValueError, match="Got solver='simplex', but expected 'auto', 'interior'"):
        solve_pairs(problem_of_pairs(), solver="simplex")


def test_a_stop_ends_either_method_with_what_it_has():
    problem = problem_of_pairs(30, 4, 120)
    for solver in ("interior", "first-order"):
        seen = []

        def stop(step, gap, metric, seen=seen):
            seen.append((step, gap, metric))
            return len(seen) == 2

        found = solve_pairs(problem, solver=solver, tol=1e-12, report=stop)
        assert len(seen) == 2
        assert not found.converged
        assert all(metric.shape == (4, 4) for _, _, metric in seen)
        assert seen[1][1] >= found.certificate.gap * (1 - 1e-6)


def test_the_best_size_of_a_metric_counts():
    problem = problem_of_pairs(30, 4, 120)
    sharp = solve_pairs(problem, solver="interior")
    record = _Record(problem)
    # At half of the optimal α the metric is half as long; its best size is nearly the optimum's.
    metric = 0.8 * sharp.metric
    gap = record.see(0.8 * sharp.alpha, metric)
    dual = problem.dual(0.8 * sharp.alpha, metric)
    plain, _ = problem.primal(0.5 * np.sum(metric**2), problem.forms(metric))
    assert record.primal - dual < 0.7 * (plain - dual)
    assert gap == pytest.approx((record.primal - dual) / record.primal, rel=1e-6)
    assert record.primal >= sharp.certificate.dual - 1e-9


def test_a_step_minimises_its_model_over_the_feasible_points():
    problem = problem_of_pairs(30, 4, 40)
    steps = _Steps(problem, 1e-12)
    rng = np.random.RandomState(0)
    y = problem.project(rng.uniform(size=40) * problem.upper, steps.weights)
    gradient, step = rng.standard_normal(40), 0.5

    def model(a):
        move = a - y
        return (
            gradient @ move
            + 0.5 * np.sum(steps.weights * move**2) / step
            + 0.5 * np.sum((move @ steps.W) ** 2)
        )

    taken = steps.take(y, gradient, step)
    for _ in range(200):
        other = problem.project(taken + 0.05 * rng.standard_normal(40), np.ones(40))
        assert model(taken) <= model(other) + 1e-9
    M = problem.matrix(y)
    common = y @ steps.W  # its length is at most that of M: all B are orthonormal
    assert 0 < common @ common <= np.sum(M * M) * (1 + 1e-9)
    assert steps.rest(M, common) == pytest.approx(np.sum(M * M) - common @ common, abs=1e-9)


def test_a_step_of_some_pairs_is_that_of_all_where_the_others_stay_at_zero():
    problem = problem_of_pairs(30, 4, 40)
    problem.least *= 0.1  # some pairs alone can reach it
    steps, rng = _Steps(problem, 1e-12), np.random.RandomState(0)
    rows = np.flatnonzero(rng.uniform(size=40) < 0.5)
    outside = np.setdiff1d(np.arange(40), rows)
    y, gradient = np.zeros(40), rng.standard_normal(40)
    y[rows] = problem.upper[rows]
    gradient[outside] = 1e6
    some = steps.part(rows)
    taken = some.take(y[rows], gradient[rows], 0.5)
    everything = steps.take(y, gradient, 0.5)
    np.testing.assert_allclose(taken, everything[rows], rtol=1e-9)
    assert not everything[outside].any()
    np.testing.assert_allclose(some.problem.matrix(taken), problem.matrix(everything), rtol=1e-9)
    M = problem.matrix(everything)
    np.testing.assert_allclose(some.problem.forms(M), problem.forms(M)[rows], rtol=1e-9)


@pytest.mark.slow
def test_pairs_that_are_pulled_from_zero_take_part_in_the_next_steps(monkeypatch):
    see, part, now, pulled = _Record.see, _Steps.part, [], []

    def seen(self, alpha, mean):
        gap = see(self, alpha, mean)
        now[:] = [alpha, self.pull]
        return gap

    def parted(self, rows):
        alpha, pull = now
        assert np.isin(np.flatnonzero((pull < 0) | (alpha > 0)), rows).all()
        pulled.append(np.sum((pull < 0) & (alpha == 0)))
        return part(self, rows)

    monkeypatch.setattr(_Record, "see", seen)
    monkeypatch.setattr(_Steps, "part", parted)
    monkeypatch.setattr("kernelmetric.solvers._pair_solve._FEW", 2.0)
    monkeypatch.setattr("kernelmetric.solvers._pair_solve._CHECK_EVERY", 1)
    first_order(problem_of_pairs(100, 6, 1500, weight=1e3), tol=1e-4, max_iter=100)
    assert sum(pulled) > 0


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("share", [0.0, 2.0])
def test_pairs_that_are_left_out_of_steps_change_no_answer(monkeypatch, share):
    problem, left = problem_of_pairs(60, 12, 400, weight=300.0), []
    part = PairDual.part

    def watched(self, rows):
        left.append(len(self) - len(rows))
        return part(self, rows)

    monkeypatch.setattr(PairDual, "part", watched)
    monkeypatch.setattr("kernelmetric.solvers._pair_solve._FEW", share)
    found = first_order(problem, tol=1e-6, max_iter=3000)
    assert found.converged and (max(left) > 0) == (share > 0)
    sharp = interior_point(problem, tol=1e-10, max_iter=100, report=None).certificate
    assert found.certificate.dual <= sharp.primal + 1e-9
    assert found.certificate.primal == pytest.approx(sharp.primal, rel=3e-6)


def test_an_interior_point_is_for_problems_that_it_can_afford():
    assert interior_flops(problem_of_pairs()) < MOST_FLOPS
    small, large = problem_of_pairs(12, 3, 20), problem_of_pairs(60, 3, 1000)
    assert interior_flops(large) == 1000 * 6.0**2 + 6.0**3
    assert interior_flops(small) == 20 * 6.0**2 + 6.0**3
    wide = problem_of_pairs(12, 10, 20)  # more products of coordinates than pairs
    assert interior_flops(wide) == 20 * 20 * 55 + 20**3
    assert interior_flops(problem_of_pairs(12, 10, 20, psd=False)) == 20 * 20 * 10 + 20**3


@pytest.mark.every(4)
@pytest.mark.parametrize("psd", [True, False])
@pytest.mark.parametrize("n_pairs", [120, 1400])  # the Hessian formed, and by its low rank
def test_the_interior_point_meets_the_conditions_of_optimality(psd, n_pairs):
    n, weight = (30, 1.0) if n_pairs == 120 else (60, 0.2)
    problem = problem_of_pairs(n, 4, n_pairs, weight=weight, psd=psd)
    found = interior_point(problem, tol=1e-9, max_iter=100, report=None)
    assert found.converged
    pull = problem.signs * (problem.forms(found.metric) - problem.d2)
    pull -= np.where(problem.apart, found.certificate.gamma, 0.0)
    scale = np.abs(pull).max()
    alpha, upper = found.alpha, problem.upper
    assert np.all(pull[alpha < upper * (1 - 1e-6)] >= -1e-4 * scale)
    assert np.all(pull[alpha > upper * 1e-6] <= 1e-4 * scale)
    np.testing.assert_allclose(found.matrix, problem.matrix(alpha))
    assert np.mean(alpha == 0.0) > 0.1 and np.mean(alpha == upper) > 0.1  # exactly so


# --- watching ---------------------------------------------------------------------------------


class Watched:
    verbose = False


def test_iterations_keep_a_curve_and_the_last_state():
    record = Iterations(Watched(), 5, lambda state: {"components_": state}, None, None)
    record.start(np.zeros(2))
    state = np.ones(2)
    with record.running():
        assert record(state, 3) is False
    state[:] = 7.0
    assert record.loss_curve == [3.0]
    assert record.state.tolist() == [1.0, 1.0]


def test_a_progress_bar_is_shown_where_it_is_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("kernelmetric.compute.watch._LOG_EVERY", 0.0)
    watched = Watched()
    watched.verbose = True
    record = Iterations(watched, 4, lambda state: {}, None, None)
    record.start(None)
    with record.running():
        for loss in (4.0, 2.0):
            record(np.zeros(1), loss)
    record.finish()
    said = capsys.readouterr().err
    assert "Watched [#####...............] 1/4  loss 4 " in said
    assert "Watched [##########..........] 2/4  loss 2 " in said
    assert said.endswith("s left\n")
