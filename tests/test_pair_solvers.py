"""The parts of the solvers of pairs: every shortcut gives the same, every limit holds."""

import tracemalloc

import numpy as np
import pytest
from scipy import linalg

from kernelmetric import memory_budget
from kernelmetric.solvers import PairDual, solve_pairs
from kernelmetric.solvers import _pair_curvature as curvature
from kernelmetric.solvers import _pair_dual as pair_dual
from kernelmetric.solvers import _pair_interior as interior
from kernelmetric.solvers import _pair_newton as newton
from kernelmetric.solvers import _pair_solve as first
from kernelmetric.solvers._pair_dual import Certificate, project_box_half_space


def problem_of_pairs(n=40, r=3, n_pairs=120, *, share=0.5, weight=1.0, apart=None, **options):
    rng = np.random.RandomState(0)
    Z = rng.standard_normal((n, r))
    Z[:, 0] += 1.5 * (np.arange(n) % 2)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(len(i))[:n_pairs]
    pairs = np.stack([i[chosen], j[chosen]], axis=1)
    signs = np.where((pairs[:, 0] - pairs[:, 1]) % 2 == 0, -1.0, 1.0)
    if apart is not None:
        signs[:] = 1.0 if apart else -1.0
    upper = weight * np.where(signs > 0, 3.0, 2.0) / n_pairs
    return PairDual(Z, pairs, signs, upper, share * upper[signs > 0].sum(), **options)


# --- the problem --------------------------------------------------------------------------------


def test_a_projection_that_first_aims_too_far_still_ends_at_the_nearest_point():
    # From λ = 0 only the first entry moves: alone it would have to go far beyond its bound.
    v, upper = np.array([0.1, -0.1, 7.0]), np.array([1.0, 5.0, 2.0])
    members, weights = np.array([True, True, False]), np.array([1.0, 0.1, 1.0])
    found = project_box_half_space(v, upper, members, 4.0, weights)
    np.testing.assert_allclose(found, [0.1 + 4 / 11, -0.1 + 40 / 11, 2.0], rtol=1e-12)


def test_a_projection_without_members_is_onto_the_box():
    v = np.array([-1.0, 0.5, 2.0])
    found = project_box_half_space(v, np.ones(3), np.zeros(3, dtype=bool), 0.0, np.ones(3))
    np.testing.assert_array_equal(found, [0.0, 0.5, 1.0])


@pytest.mark.parametrize("solver", ["interior", "first-order"])
def test_without_dissimilar_pairs_there_is_no_margin(solver):
    problem = problem_of_pairs(apart=False)
    found = solve_pairs(problem, solver=solver)
    assert found.certificate.gamma == 0.0
    assert found.converged
    # Similar pairs only shrink: the positive part of what they ask for is nothing.
    np.testing.assert_allclose(found.metric, 0.0, atol=1e-6)


def test_bounds_of_zero_leave_a_margin_that_is_a_number():
    problem = problem_of_pairs()
    problem.upper[:], problem.least = 0.0, 0.0
    margins = np.random.RandomState(0).uniform(1.0, 2.0, size=int(problem.apart.sum()))
    assert problem._best_gamma(margins) == margins.min()


def test_differences_are_kept_where_they_are_few_and_the_budget_holds_them_twice():
    options = {"n": 40, "r": 3, "n_pairs": 120}
    kept = problem_of_pairs(**options)
    np.testing.assert_array_equal(kept._kept, kept.Z[kept.first] - kept.Z[kept.second])
    n_bytes = 8 * 3 * 120
    with memory_budget(2 * n_bytes):
        assert problem_of_pairs(**options)._kept is not None
    with memory_budget(2 * n_bytes - 2):
        anew = problem_of_pairs(**options)
        assert anew._kept is None
        alpha = np.random.RandomState(1).uniform(size=120)
        np.testing.assert_allclose(anew.matrix(alpha), kept.matrix(alpha), atol=1e-12)
        np.testing.assert_allclose(anew.d2, kept.d2)


@pytest.mark.parametrize(
    "change",
    [lambda p: p, lambda p: p.rough(1e-3, 1.0)],
    ids=["as it is", "in single"],
)
@pytest.mark.parametrize("compared", [False, True])
def test_sums_and_distances_are_the_same_with_products_of_coordinates(
    monkeypatch, change, compared
):
    rng = np.random.RandomState(0)
    Z, M, alpha = rng.standard_normal((30, 5)), rng.standard_normal((5, 5)), rng.uniform(size=60)
    rows, upper = rng.randint(30, size=(120, 2)), np.ones(60)

    def problem(n_bytes):
        monkeypatch.setattr(pair_dual, "_PRODUCT_BYTES", n_bytes)
        if compared:
            found = pair_dual.ComparisonDual(Z, rows[:60], rows[60:], upper, 1.0)
        else:
            found = PairDual(Z, rows[:60], np.where(np.arange(60) % 3, 1.0, -1.0), upper, 1.0)
        found = change(found)
        assert (found._products is None) == (n_bytes == 0)
        return found

    plain, fast = problem(0), problem(1e6)
    rtol = 1e-5 if fast.Z.dtype == np.float32 else 1e-12
    for name, given in (("matrix", alpha), ("forms", M)):  # M need not be symmetric
        expected, found = getattr(plain, name)(given), getattr(fast, name)(given)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def test_sums_over_pairs_of_near_points_far_away_keep_their_digits(monkeypatch):
    monkeypatch.setattr(pair_dual, "_PRODUCT_BYTES", 0)
    rng = np.random.RandomState(0)
    r, places = 100, 1e6 * rng.standard_normal((2, 100))
    Z = np.repeat(places, 5, axis=0) + rng.standard_normal((10, r))
    rows = np.array([(i, j) for i in range(10) for j in range(i) if (i < 5) == (j < 5)])
    pairs = np.concatenate([rows, rows])  # more than twice as many as points
    problem = PairDual(Z, pairs, np.ones(len(pairs)), np.ones(len(pairs)), 0.0)
    delta = problem.Z[pairs[:, 0]] - problem.Z[pairs[:, 1]]
    np.testing.assert_allclose(problem.d2, np.sum(delta**2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(problem.matrix(np.ones(len(pairs))), delta.T @ delta, atol=1e-9)


# --- first-order steps --------------------------------------------------------------------------


class Counting(PairDual):
    """Counts its projections."""

    projections = 0

    def project(self, alpha, weights):
        self.projections += 1
        return super().project(alpha, weights)


def test_a_step_takes_few_projections():
    problem = problem_of_pairs()
    problem.__class__ = Counting
    steps = first._Steps(problem, 1e-10)
    rng = np.random.RandomState(0)
    y = problem.project(rng.uniform(size=120) * problem.upper, steps.weights)
    for length in (0.01, 0.1, 1.0):
        problem.projections = 0
        steps.take(y, rng.standard_normal(120), length)
        assert 1 <= problem.projections <= 5  # Newton's method: halving a bracket takes thirty


def test_a_step_halves_its_bracket_where_newton_leaves_it():
    pairs, upper = np.array([[0, 1]]), 0.5
    problem = PairDual(np.array([[0.0], [1.0]]), pairs, np.ones(1), np.array([upper]), 0.0)
    steps = first._Steps(problem, 1e-12)
    np.testing.assert_allclose([abs(steps.W[0, 0]), steps.weights[0]], 1.0)
    # The steepest part weighs ten times the rest: at both ends of the bracket α is at a bound.
    found = steps.take(np.zeros(1), np.array([-2 * upper / 10.0]), 10.0)
    np.testing.assert_allclose(found, 2 * upper / 11, rtol=1e-9)


@pytest.mark.parametrize("growth", [1.5, 30.0])
def test_a_step_that_grew_too_long_is_found_out(monkeypatch, growth):
    problem = problem_of_pairs()
    monkeypatch.setattr(first, "_DIRECTIONS", 1)
    right = first.first_order(problem, tol=1e-5, max_iter=2000)
    take, taken = first._Steps.take, []

    def counted(self, y, gradient, step):
        taken.append(step)
        assert len(taken) < 20_000, "it tries steps for ever"
        return take(self, y, gradient, step)

    monkeypatch.setattr(first, "_GROWTH", growth)
    monkeypatch.setattr(first._Steps, "take", counted)
    found = first.first_order(problem, tol=1e-5, max_iter=2000)
    assert np.any(np.diff(taken) < 0)
    assert found.converged and right.converged
    scale = np.abs(right.metric).max()
    np.testing.assert_allclose(found.metric, right.metric, atol=2e-2 * scale)


@pytest.mark.slow
@pytest.mark.every(4)
@pytest.mark.parametrize("directions", [1, 7, 60])
def test_many_directions_end_where_the_interior_point_does(monkeypatch, directions):
    """However many are kept exactly, and looked for in a part of the pairs, the optimum is one."""
    rng = np.random.RandomState(3)
    Z = rng.standard_normal((90, 12)) * np.linspace(3.0, 0.3, 12)
    pairs = rng.permutation(np.argwhere(np.triu(np.ones((90, 90)), 1)))[:700]
    signs = np.where(rng.uniform(size=700) < 0.2, -1.0, 1.0)
    upper = np.where(signs > 0, 30.0, 120.0) / 700
    problem = PairDual(Z, pairs, signs, upper, 0.2 * float(np.sum(upper[signs > 0])))
    monkeypatch.setattr(first, "_DIRECTIONS", directions)
    monkeypatch.setattr(first, "_LOOKED_AT", 200)
    found = first.first_order(problem, tol=1e-6, max_iter=5000)
    right = interior.interior_point(problem, tol=1e-9, max_iter=100, report=None)
    assert found.converged and right.converged
    assert abs(found.certificate.dual - right.certificate.dual) <= 2e-6 * abs(
        right.certificate.primal
    )
    np.testing.assert_allclose(found.metric, right.metric, atol=1e-2 * np.abs(right.metric).max())


def test_steps_that_rounding_cut_short_go_on_in_double_precision(monkeypatch):
    problem, seen = problem_of_pairs(), []
    rest, take = first._Steps.rest, first._Steps.take

    def watched(self, y, gradient, step):
        seen.append(str(self.problem.Z.dtype))
        return take(self, y, gradient, step)

    def rounded(self, M, common):
        return 1e9 if self.problem.Z.dtype == np.float32 else rest(self, M, common)

    monkeypatch.setattr(first._Steps, "rest", rounded)
    monkeypatch.setattr(first._Steps, "take", watched)
    found = first.first_order(problem, tol=1e-4, max_iter=400)
    assert {"float32", "float64"} == set(seen) and seen[-1] == "float64"
    assert found.converged


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_steps_are_as_precise_as_the_tolerance_needs(monkeypatch, tol):
    asked = []

    class Seen(first._Steps):
        def __init__(self, problem, precision, exact):
            asked.append(precision)
            super().__init__(problem, precision, exact)

    monkeypatch.setattr(first, "_Steps", Seen)
    first.first_order(problem_of_pairs(), tol=tol, max_iter=10)
    assert 1e-8 * tol < asked[0] < 1e-4 * tol


@pytest.mark.parametrize("max_iter", [1, 7, 20, 43])
def test_first_order_steps_are_certified_every_twenty_and_at_the_end(max_iter):
    seen = []

    def report(step, gap, metric):
        seen.append(step)

    found = first.first_order(problem_of_pairs(), tol=-1.0, max_iter=max_iter, report=report)
    assert seen == sorted({*range(20, max_iter + 1, 20), max_iter})
    assert found.n_iter == max_iter
    assert not found.converged


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_first_order_steps_to_a_huge_metric_end_in_what_was_best(tol):
    problem = problem_of_pairs(weight=1e140)
    found = first.first_order(problem, tol=tol, max_iter=20)
    assert np.all(np.isfinite(found.alpha)) and np.all(np.isfinite(found.metric))
    assert np.isfinite(found.certificate.gap)


def test_first_order_steps_whose_metric_has_no_square_are_refused():
    with pytest.raises(ValueError, match=r"a metric of size .*e\+\d+, but .*: try smaller bounds"):
        first.first_order(problem_of_pairs(weight=1e170), tol=1e-3, max_iter=5)


# --- the interior-point method ------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 3, 4])
def test_the_interior_point_takes_no_more_steps_than_it_may(max_iter):
    seen = []

    def report(step, gap, metric):
        seen.append((step, gap))

    problem = problem_of_pairs()
    found = interior.interior_point(problem, tol=1e-12, max_iter=max_iter, report=report)
    assert found.n_iter == max_iter
    assert [step for step, _ in seen] == list(range(max_iter + 1))  # the last is certified too
    assert not found.converged
    assert found.certificate.gap <= 2.0 * min(gap for _, gap in seen)


@pytest.mark.parametrize(("solved", "length", "wasted"), [(True, 0.1, 5), (False, 0.1, 1)])
def test_the_interior_point_ends_where_rounding_leaves_no_direction(
    monkeypatch, solved, length, wasted
):
    step, lengths = interior._Newton.step, []

    def until_near(self, mu):
        if self.certify()[0].gap > 1e-6:
            return step(self, mu)
        self.hessian.solved = solved
        lengths.append(length)
        return length  # without a move

    monkeypatch.setattr(interior._Newton, "step", until_near)
    found = interior.interior_point(problem_of_pairs(), tol=1e-15, max_iter=50, report=None)
    assert len(lengths) == wasted
    assert found.certificate.gap <= 1e-6


def test_newton_steps_whose_matrices_are_too_large_are_never_affordable():
    # 126 coordinates have 8001 products, and four matrices of so many rows take 2 GB.
    assert np.isfinite(interior._flops(9000, 125, psd=True))
    assert interior._flops(9000, 126, psd=True) == np.inf
    assert interior._flops(9000, 300, psd=True) == np.inf
    assert np.isfinite(interior._flops(4000, 200, psd=False))
    assert interior._flops(4001, 200, psd=False) == np.inf


def test_the_memory_of_pairs_is_the_sum_of_its_arrays():
    # 3 coordinates, 6 products: features of a block of pairs.
    arrays = 8 * 5000 * (3 + 30) + 6 * 8 * 9
    assert interior.pair_bytes(5000, 3) == arrays + 8 * (768 * 6 + 4 * 36)
    assert interior.pair_bytes(100, 3) == (8 * 100 * 33 + 432) + 8 * (600 + 4 * 36)
    # Fewer pairs than products: four matrices of pairs times pairs.
    arrays = 8 * 100 * 80 + 6 * 8 * 2500
    assert interior.pair_bytes(100, 50) == arrays + 8 * 100 * (400 + 1275)
    # First-order steps: blocks, thirty directions three times, and the curvature of 2,000 pairs.
    arrays = 8 * 50_000 * (330 + 90) + 6 * 8 * 90_000
    assert interior.pair_bytes(50_000, 300) == arrays + 8 * 8192 * 600 + 8 * 8_000_000


@pytest.mark.every(2)
@pytest.mark.parametrize(("n", "r", "n_pairs"), [(400, 6, 20_000), (60, 30, 400)])
def test_the_memory_of_pairs_is_estimated_within_a_factor_of_two(n, r, n_pairs):
    tracemalloc.start()
    try:
        problem = problem_of_pairs(n, r, n_pairs)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        interior.interior_point(problem, tol=1e-2, max_iter=3, report=None)
        peak = tracemalloc.get_traced_memory()[1] - before + problem._kept.nbytes
    finally:
        tracemalloc.stop()
    assert 0.5 < interior.pair_bytes(n_pairs, r) / peak < 2.0


def hessian_of(problem, theta, cone=None):
    """The curvature of all pairs with a barrier."""
    hessian = interior.Hessian(problem, np.ones(len(problem), dtype=bool), np.sqrt(2.0))
    hessian.move_to(cone, theta)
    return hessian


@pytest.mark.parametrize(("n_pairs", "low_rank"), [(600, False), (601, True)])
def test_the_hessian_is_formed_unless_its_rank_is_low(n_pairs, low_rank):
    problem = problem_of_pairs(60, 3, n_pairs, psd=False)
    assert hessian_of(problem, np.full(n_pairs, 1e-12)).low_rank == low_rank


def test_pairs_that_are_decided_have_no_part_in_the_formed_inverse():
    problem = problem_of_pairs(60, 3, 100, psd=False)
    theta = np.where(np.arange(100) < 30, 1e-3, 1e30)
    np.testing.assert_array_equal(hessian_of(problem, theta).some, np.arange(30))


@pytest.mark.parametrize("psd", [True, False])
@pytest.mark.parametrize("n_pairs", [100, 700])
def test_newton_equations_are_solved_however_the_hessian_is_held(psd, n_pairs):
    problem = problem_of_pairs(60, 3, n_pairs, psd=psd)
    rng = np.random.RandomState(0)
    theta, x = 1e-3 * rng.uniform(0.5, 2.0, n_pairs), rng.standard_normal(n_pairs)
    delta = problem.Z[problem.first] - problem.Z[problem.second]
    cone, F = None, np.einsum("pi,pj->pij", delta, delta).reshape(n_pairs, 9)
    middle = np.eye(9)
    if psd:
        A, B = (X @ X.T + 0.1 * np.eye(3) for X in rng.standard_normal((2, 3, 3)))
        cone = interior.Cone(A, B)
        W = (cone.Q * cone.w) @ cone.Q.T
        np.testing.assert_allclose(W @ B @ W, A, atol=1e-10)  # Nesterov and Todd
        back = np.linalg.inv(W)
        middle = np.linalg.inv(np.eye(9) + np.kron(back, back))
    problem.upper = np.ones(n_pairs)  # more than the barrier
    scale = np.sqrt(2.0) * problem.signs
    H = scale[:, None] * (F @ middle @ F.T) * scale + np.diag(theta)
    for budget in ("1GB", "10KB"):
        with memory_budget(budget):
            hessian = hessian_of(problem, theta, cone)
            assert hessian.low_rank == (n_pairs == 700)
            found = hessian.solve(H @ x, 1e-9 * np.abs(H @ x).max())
            np.testing.assert_allclose(H @ found, H @ x, atol=1e-8 * np.abs(H @ x).max())
            np.testing.assert_allclose(hessian._times(x), H @ x, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("most", "solved"), [(40, True), (2, False)])
def test_it_is_told_whether_conjugate_gradients_sufficed(monkeypatch, most, solved):
    monkeypatch.setattr(curvature, "_MOST_PRODUCTS", most)
    problem = problem_of_pairs()
    hessian = hessian_of(problem, np.ones(120))
    monkeypatch.setattr(hessian, "_nearly", lambda rest: rest)
    hessian.solve(np.arange(120.0), 1e-3)
    assert hessian.solved == solved


def test_the_longest_step_ends_at_the_first_bound():
    longest = interior._longest
    assert longest(np.array([1.0, 2.0]), np.array([-4.0, -3.0])) == 0.25
    assert longest(np.array([1.0, 1.0]), np.array([-2.0, -1.25])) == 0.5
    assert longest(np.ones(2), np.array([5.0, -0.5])) == 1.0
    assert longest(np.ones(2), np.array([-1.0, -1.0])) == 1.0
    assert longest(np.zeros(1), np.zeros(1)) == 1.0  # what is zero and stays so stops nothing
    assert longest(np.empty(0), np.empty(0)) == 1.0


@pytest.mark.parametrize(
    "H",
    [
        np.diag([4.0, 1.0, -1e-14]),
        np.ones((2, 2)),
        np.diag([2.0, 3.0]),
    ],
)
def test_a_matrix_that_rounding_made_indefinite_is_moved_a_little(H):
    b = H @ np.arange(1.0, len(H) + 1.0)
    np.testing.assert_allclose(H @ curvature._inverse(H)(b), b, atol=1e-6)
    with pytest.raises(linalg.LinAlgError, match="not positive definite"):
        curvature._inverse(H - 2.0 * np.diag(np.diag(H)))


@pytest.mark.parametrize(("r", "worth"), [(20, True), (3, False)])
def test_where_a_low_rank_loses_the_digits_the_hessian_is_formed_if_that_is_worth_it(r, worth):
    problem, theta = problem_of_pairs(60, r, 700, psd=False), np.full(700, 1e-12)
    hessian = hessian_of(problem, theta)
    assert hessian.low_rank
    hessian.n_products = curvature._EXHAUSTED
    hessian.move_to(None, theta)
    assert hessian.low_rank
    hessian.n_products += 1
    hessian.move_to(None, theta)
    assert hessian.low_rank != worth
    hessian.n_products = 1
    hessian.move_to(None, theta)
    assert hessian.low_rank != worth  # from then on


def test_where_all_dissimilar_pairs_must_be_at_their_bound_they_are():
    problem = problem_of_pairs(share=1.0)
    found = solve_pairs(problem, solver="interior")
    assert found.converged
    np.testing.assert_array_equal(found.alpha[problem.apart], problem.upper[problem.apart])
    only = problem_of_pairs(share=1.0, apart=True)  # nothing is free
    found = solve_pairs(only, solver="interior")
    assert found.n_iter == 0
    np.testing.assert_array_equal(found.alpha, only.upper)


@pytest.mark.parametrize("psd", [True, False])
def test_without_a_least_sum_the_constraint_has_no_multiplier(psd):
    problem = problem_of_pairs(share=0.0, psd=psd)
    found = solve_pairs(problem, solver="interior")
    assert found.converged and found.certificate.gap < 1e-8
    rough = solve_pairs(problem, solver="first-order", tol=1e-5)
    scale = np.abs(found.metric).max() + 1e-3
    np.testing.assert_allclose(found.metric, rough.metric, atol=2e-2 * scale)


def test_values_beyond_the_numbers_certify_nothing():
    for dual, primal in ((-np.inf, np.nan), (np.nan, 1.0), (0.0, np.inf), (-np.inf, np.inf)):
        assert Certificate.of(dual, primal, 1.0, 0.0).gap == np.inf
    problem = problem_of_pairs()
    pairs = np.stack([problem.first, problem.second], axis=1)
    big = PairDual(1e90 * problem.Z, pairs, problem.signs, problem.upper, problem.least)
    with np.errstate(all="ignore"):
        found = interior.interior_point(big, tol=1e-6, max_iter=2, report=None)
    assert not found.converged


# --- Newton steps near the end ------------------------------------------------------------------


def crowded(psd=True):
    """Many more pairs than are between their bounds in the end."""
    rng = np.random.RandomState(3)
    Z = rng.standard_normal((90, 12)) * np.linspace(3.0, 0.3, 12)
    pairs = rng.permutation(np.argwhere(np.triu(np.ones((90, 90)), 1)))[:700]
    signs = np.where(rng.uniform(size=700) < 0.2, -1.0, 1.0)
    upper = np.where(signs > 0, 300.0, 1200.0) / 700
    return PairDual(Z, pairs, signs, upper, 0.2 * float(np.sum(upper[signs > 0])), psd=psd)


@pytest.mark.parametrize("psd", [True, False])
def test_newton_steps_end_in_few_where_the_interior_point_does(psd):
    problem, seen = crowded(psd), []
    right = interior.interior_point(problem, tol=1e-9, max_iter=100, report=None)
    slow = first.first_order(problem, tol=1e-4, max_iter=3000)
    found = solve_pairs(
        problem, solver="first-order", tol=1e-4, report=lambda step, *_: seen.append(step)
    )
    assert found.converged and seen == sorted(set(seen)) and seen[-1] <= found.n_iter
    assert found.n_iter < 0.7 * slow.n_iter
    scale = abs(right.certificate.primal)
    assert abs(found.certificate.dual - right.certificate.dual) <= 2e-4 * scale
    assert np.all((found.alpha >= 0) & (found.alpha <= problem.upper))
    assert found.alpha[problem.apart].sum() >= problem.least * (1 - 1e-9)


def test_without_a_cone_one_newton_step_is_the_solution():
    rng = np.random.RandomState(0)
    Z, rows = rng.standard_normal((60, 20)), np.arange(60).reshape(30, 2)
    signs = np.where(np.arange(30) % 3, 1.0, -1.0)
    problem = PairDual(Z, rows, signs, np.full(30, 0.05), 0.1, psd=False)
    start = problem.solution(problem.upper, 0, 1e-8, "start")
    found = first.newton(problem, start, tol=1e-6, max_iter=3)
    right = interior.interior_point(problem, tol=1e-10, max_iter=100, report=None)
    assert found.converged and found.n_iter == 1 and not start.converged
    scale = np.abs(right.metric).max()
    np.testing.assert_allclose(found.metric, right.metric, atol=1e-4 * scale)


@pytest.mark.parametrize("compared", [False, True])
@pytest.mark.parametrize("psd", [True, False])
def test_the_curvature_of_some_pairs_is_that_of_the_dual(psd, compared):
    rng = np.random.RandomState(0)
    Z, rows, upper = rng.standard_normal((30, 6)), rng.randint(30, size=(60, 2)), np.ones(30)
    if compared:
        problem = pair_dual.ComparisonDual(Z, rows[:30], rows[30:], upper, 1.0, psd=psd)
    else:
        signs = np.where(np.arange(30) % 3, 1.0, -1.0)
        problem = PairDual(Z, rows[:30], signs, upper, 1.0, psd=psd)
    alpha, some, lengths = rng.uniform(size=30), np.arange(0, 30, 2), rng.uniform(0.5, 2.0, 15)

    def slopes(at):
        return problem.signs * problem.forms(problem.metric(problem.matrix(at)))

    found = newton._curvature(problem, some, lengths, problem.matrix(alpha))
    for k, p in enumerate(some):
        step = np.where(np.arange(30) == p, 1e-5, 0.0)
        expected = (slopes(alpha + step) - slopes(alpha - step))[some] / 2e-5
        expected /= lengths * lengths[k]
        np.testing.assert_allclose(found[k], expected, atol=2e-2 * np.abs(found).max())


@pytest.mark.parametrize("rounds", [1, 2, 12])
def test_the_best_point_of_a_box_keeps_its_bounds_and_is_better_than_the_start(monkeypatch, rounds):
    monkeypatch.setattr(newton, "_ROUNDS", rounds)
    rng = np.random.RandomState(0)
    A, slopes, now = rng.standard_normal((20, 20)), rng.standard_normal(20), np.full(20, 0.1)
    H, upper, among = A @ A.T + np.eye(20), np.full(20, 0.3), 1.0 * (np.arange(20) < 10)
    x = newton._best_in_box(H, slopes, (now, upper), (among, 1.5))

    def value(at):
        return slopes @ (at - now) + 0.5 * (at - now) @ H @ (at - now)

    assert np.all((x >= 0) & (x <= upper)) and value(x) <= value(now)
    if rounds == 12:
        assert among @ x >= 1.5 - 1e-9
        for _ in range(200):
            y = rng.uniform(0, 0.3, 20)
            y = project_box_half_space(y, upper, among > 0, 1.5, np.ones(20))
            assert value(y) >= value(x) - 1e-9


def test_too_many_pairs_between_their_bounds_are_left_to_first_order_steps(monkeypatch):
    monkeypatch.setattr(newton, "_MOST", 10)
    found = solve_pairs(crowded(), solver="first-order", tol=1e-3)
    assert found.converged and found.n_iter % 20 == 0


def test_a_report_stops_newton_steps():
    seen = []

    def report(step, gap, metric):
        seen.append(gap)
        return gap <= first._NEAR

    found = solve_pairs(crowded(), solver="first-order", tol=1e-6, report=report)
    assert len([gap for gap in seen if gap <= first._NEAR]) == 1 and not found.converged
