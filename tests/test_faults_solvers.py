"""Solvers, to the letter: stopping rules, starts, certificates with known answers, and memory."""

import importlib.util
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from kernelmetric.learners import _progress as progress
from kernelmetric.solvers import (
    PairDual,
    minimize_lbfgs,
    smallest_eigenvectors,
    solve_pairs,
)
from kernelmetric.solvers import _pair_curvature as curvature
from kernelmetric.solvers import _pair_dual as dual
from kernelmetric.solvers import _pair_interior as interior
from kernelmetric.solvers import _pair_solve as first
from kernelmetric.solvers import _smallest_eigenvectors as spectral


def problem_of_pairs(n=40, r=3, n_pairs=120, *, share=0.5, size=1.0, weight=1.0, **options):
    rng = np.random.RandomState(0)
    Z = size * rng.standard_normal((n, r))
    Z[:, 0] += 1.5 * size * (np.arange(n) % 2)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(len(i))[:n_pairs]
    pairs = np.stack([i[chosen], j[chosen]], axis=1)
    signs = np.where((pairs[:, 0] - pairs[:, 1]) % 2 == 0, -1.0, 1.0)
    upper = weight * np.where(signs > 0, 3.0, 2.0) / n_pairs / size**2
    return PairDual(Z, pairs, signs, upper, share * upper[signs > 0].sum(), **options)


# --- pairs: certificates ------------------------------------------------------------------------


def two_pairs(least):
    """A similar pair along one axis, a dissimilar one along the other; both of length 1."""
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return PairDual(Z, np.array([[0, 1], [0, 2]]), np.array([-1.0, 1.0]), np.full(2, 10.0), least)


@pytest.mark.parametrize("solver", ["interior", "first-order"])
@pytest.mark.parametrize(("least", "alpha", "gamma"), [(0.5, 1.0, 0.0), (2.0, 2.0, 1.0)])
def test_a_problem_of_two_pairs_has_the_answer_that_a_pencil_finds(solver, least, alpha, gamma):
    # max α - ½α² with α >= least; the multiplier of that bound is γ = α - 1
    found = solve_pairs(two_pairs(least), solver=solver, tol=1e-4)
    assert found.converged and found.solver == solver
    np.testing.assert_allclose(found.alpha, [0.0, alpha], atol=1e-3)
    np.testing.assert_allclose(found.metric, np.diag([0.0, alpha]), atol=1e-3)
    value = alpha - 0.5 * alpha**2
    assert found.certificate.dual == pytest.approx(value, abs=2e-4)
    assert found.certificate.primal == pytest.approx(value, abs=2e-4)
    assert found.certificate.gamma == pytest.approx(gamma, abs=1e-3)


@pytest.mark.parametrize("unequal", [False, True])
def test_a_sum_beyond_all_bounds_has_the_largest_margin(unequal):
    problem = problem_of_pairs()
    if unequal:
        problem.upper[np.flatnonzero(problem.apart)[-1]] *= 1.5
    problem.least = 1.2 * problem.upper[problem.apart].sum()
    margins = np.random.RandomState(0).uniform(1.0, 2.0, int(problem.apart.sum()))
    assert problem._best_gamma(margins) == margins.max()


def test_what_counts_as_nothing_is_a_billionth_of_all_that_pairs_could_pull():
    problem = problem_of_pairs()
    assert problem.least_scale == pytest.approx(1e-9 * problem.upper @ problem.d2)
    nothing, _ = problem.compare(0.0, np.zeros((3, 3)), np.zeros(120))
    assert nothing.dual == 0.0
    assert nothing.gap == pytest.approx(1.0)  # relative to the primal, which is larger


def test_sharp_answers_are_sharp_whatever_the_tolerance_and_others_are_not():
    problem = problem_of_pairs()
    sharp, rough = (solve_pairs(problem, tol=0.3, sharp=flag) for flag in (True, False))
    assert sharp.certificate.gap <= 1e-9 < rough.certificate.gap <= 0.3
    assert sharp.converged and rough.converged
    assert rough.n_iter < sharp.n_iter
    assert solve_pairs(problem).certificate.gap <= 1e-9  # sharp unless it is told otherwise


def test_an_answer_has_converged_where_its_gap_is_within_the_tolerance_asked_for():
    problem = problem_of_pairs()
    early = solve_pairs(problem, max_iter=2, sharp=True)
    assert 1e-6 < early.certificate.gap
    assert early.converged == (early.certificate.gap <= 1e-3)
    gap = early.certificate.gap
    assert solve_pairs(problem, max_iter=2, tol=1.01 * gap).converged
    assert not solve_pairs(problem, max_iter=2, tol=0.99 * gap).converged


def test_an_interior_point_takes_a_hundred_steps_at_most(monkeypatch):
    asked = []

    def seen(problem, *, tol, max_iter, report, metric=None):
        asked.append((tol, max_iter))
        return found

    problem = problem_of_pairs()
    found = solve_pairs(problem)
    monkeypatch.setattr(first.interior, "interior_point", seen)
    solve_pairs(problem, max_iter=2000, tol=1e-3)
    solve_pairs(problem, max_iter=30, tol=1e-12)
    solve_pairs(problem, max_iter=30, tol=1e-3, sharp=False)
    assert asked == [(1e-9, 100), (1e-12, 30), (1e-3, 30)]


# --- pairs: the interior-point method -----------------------------------------------------------


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
def test_pairs_at_a_bound_are_exactly_there_in_every_unit_of_length(size):
    problem = problem_of_pairs(size=size, weight=0.2)
    plain = problem_of_pairs(weight=0.2)
    found, expected = (solve_pairs(p, solver="interior") for p in (problem, plain))
    assert found.converged
    for at_bound, there in (
        (found.alpha == 0.0, expected.alpha == 0.0),
        (found.alpha == problem.upper, expected.alpha == plain.upper),
    ):
        assert np.sum(there) > 10
        assert np.sum(at_bound != there) <= 2


@pytest.mark.parametrize("bound", [0.0, 1e-200])
@pytest.mark.parametrize("solver", ["interior", "first-order"])
def test_pairs_that_may_not_pull_are_as_good_as_absent(solver, bound):
    problem = problem_of_pairs()
    kept = np.arange(120) % 5 > 0
    upper = np.where(kept, problem.upper, bound)
    pairs = np.stack([problem.first, problem.second], axis=1)
    least = 0.5 * upper[problem.apart].sum()
    muted = PairDual(problem.Z, pairs, problem.signs, upper, least)
    absent = PairDual(problem.Z, pairs[kept], problem.signs[kept], upper[kept], least)
    found, expected = (solve_pairs(p, solver=solver, tol=1e-5) for p in (muted, absent))
    assert found.converged
    np.testing.assert_allclose(found.alpha[~kept], 0.0, atol=bound)
    scale = np.abs(expected.metric).max()
    np.testing.assert_allclose(found.metric, expected.metric, atol=2e-2 * scale)


@pytest.mark.parametrize("psd", [True, False])
def test_the_interior_point_begins_at_the_prior_metric_and_the_middle_of_the_box(psd):
    problem = problem_of_pairs(share=0.6, psd=psd)
    newton = interior._Newton(problem, np.ones(120, dtype=bool), 0.6)
    np.testing.assert_allclose(newton.beta, np.where(problem.apart, 0.8, 0.5))
    np.testing.assert_allclose(newton.M / newton.root, np.eye(3))
    assert newton.x[-1] == pytest.approx(0.2)  # above the least sum
    assert np.abs(newton.gradient).max() < 1e-10
    pairs = newton.root * problem.matrix(problem.upper * newton.beta)
    off = newton.M - pairs - newton.missing
    np.testing.assert_allclose(off, newton.S if psd else 0.0, atol=1e-12 * np.abs(pairs).max())


@pytest.mark.parametrize("psd", [True, False])
def test_newton_steps_make_good_what_is_missing_and_balance_the_slopes(psd):
    problem = problem_of_pairs(share=0.6, psd=psd)
    newton = interior._Newton(problem, np.ones(120, dtype=bool), 0.6)
    before, mu = np.abs(newton.missing).max(), newton.mu()
    assert mu == pytest.approx(0.03 * (120 + 0.2 + 0.5 * 3 * psd) / (241 + 3 * psd))
    left = 1.0
    for _ in range(4):
        slope = newton.gradient - newton.y[:120] + newton.y[120:240] - newton.y[-1] * newton.a
        t = newton.step(newton.mu())
        left *= 1.0 - t
        after = newton.gradient - newton.y[:120] + newton.y[120:240] - newton.y[-1] * newton.a
        np.testing.assert_allclose(after, (1.0 - t) * slope, atol=0.05 * mu)
    assert np.abs(newton.missing).max() == pytest.approx(left * before)
    pairs = newton.root * problem.matrix(problem.upper * newton.beta)
    off = newton.M - pairs - newton.missing
    np.testing.assert_allclose(off, newton.S if psd else 0.0, atol=1e-9 * np.abs(pairs).max())
    assert newton.x.min() > 0
    np.testing.assert_allclose(newton.x[120:240], 1.0 - newton.beta, atol=1e-12)
    if psd:
        assert np.linalg.eigvalsh(newton.M)[0] > 0 and np.linalg.eigvalsh(newton.S)[0] > 0


@pytest.mark.parametrize("psd", [True, False])
def test_the_prior_metric_is_certified_where_a_large_C_gives_it_back(psd):
    rng = np.random.RandomState(0)
    pairs = rng.permutation(np.argwhere(np.triu(np.ones((40, 40)), 1)))[:300]
    signs = np.where(np.arange(300) % 2, 1.0, -1.0)  # no metric can tell them apart
    upper = np.full(300, 1e8 / 150)
    Z = rng.standard_normal((40, 3)) / np.sqrt(6.0)
    problem = PairDual(Z, pairs, signs, upper, 0.2 * 1e8, psd=psd)
    found = solve_pairs(problem)
    assert abs(found.certificate.gap) < 1e-7
    assert found.certificate.primal == pytest.approx(1.5, rel=1e-7)
    assert found.certificate.gamma == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(found.metric, np.eye(3), atol=1e-6)


def test_a_metric_between_another_and_the_prior_one_is_taken_where_it_is_better():
    problem = problem_of_pairs(weight=0.02)
    sharp = solve_pairs(problem)
    worse = problem.prior + 3.0 * (sharp.metric - problem.prior)
    found, metric = problem.compare(sharp.certificate.dual, worse, problem.forms(worse))
    values = []
    for share in np.linspace(0.0, 1.0, 2001):
        between = problem.prior + share * (worse - problem.prior)
        half = 0.5 * np.sum(between**2)
        values.append(problem.primal(half, problem.forms(between))[0])
    assert found.primal == pytest.approx(min(values), rel=1e-4)
    assert found.primal < values[-1]
    value, gamma = problem.primal(0.5 * np.sum(metric**2), problem.forms(metric))
    assert found.primal == pytest.approx(value)
    assert found.gamma == pytest.approx(gamma, abs=1e-9)


def test_a_far_goal_is_reached_by_beginning_anew():
    problem = problem_of_pairs(weight=1e6)
    found = solve_pairs(problem)
    assert found.certificate.gap < 1e-8 and found.converged


def test_a_part_of_the_features_is_two_thousand_columns_at_most():
    # Fewer pairs than products of coordinates: besides what any pair takes, four matrices of
    # pairs times pairs, and for every pair a part of its 5050 products.
    arrays = 8 * 100 * (100 + 30) + 6 * 8 * 100**2
    assert interior.pair_bytes(100, 100) == arrays + 8 * 100 * (4 * 100 + 2048)


def test_problems_that_a_newton_step_takes_too_long_for_go_step_by_step(monkeypatch):
    problem = problem_of_pairs()
    needed = interior.interior_flops(problem)
    monkeypatch.setattr(first.interior, "MOST_FLOPS", needed)
    assert solve_pairs(problem, tol=0.1).solver == "interior"
    monkeypatch.setattr(first.interior, "MOST_FLOPS", 0.999 * needed)
    assert solve_pairs(problem, tol=0.1).solver == "first-order"
    assert solve_pairs(problem, tol=0.1, solver="interior").solver == "interior"


# --- pairs: first-order steps -------------------------------------------------------------------


def test_no_step_is_longer_than_the_curvature_along_it_allows(monkeypatch):
    tried = []

    class Watched(first._Steps):
        def take(self, y, gradient, step):
            alpha = super().take(y, gradient, step)
            tried.append([step, float(np.sum(self.weights * (alpha - y) ** 2)), y])
            return alpha

        def rest(self, M, common):
            tried[-1].append(super().rest(M, common))
            return tried[-1][-1]

    monkeypatch.setattr(first, "_Steps", Watched)
    monkeypatch.setattr(first, "_DIRECTIONS", 1)
    first.first_order(problem_of_pairs(), tol=1e-8, max_iter=60)
    ratios = [step * curved / moved if moved else 0.0 for step, moved, _, curved in tried]
    taken = [
        ratio
        for ratio, this, after in zip(ratios, tried, [*tried[1:], None], strict=True)
        if after is None or after[2] is not this[2]  # the same y again: a shorter step from it
    ]
    assert 1.0 + 1e-9 < max(ratios)  # such a step was tried
    assert np.any(np.diff([step for step, *_ in tried]) > 0)  # they grow
    assert max(taken) <= 1.0 + 1e-9  # and not taken


def test_a_first_order_method_begins_near_zero_or_at_a_better_point(monkeypatch):
    begun = []

    class Watched(first._Steps):
        def take(self, y, gradient, step):
            begun.append(y)
            return super().take(y, gradient, step)

    monkeypatch.setattr(first, "_Steps", Watched)
    problem = two_pairs(2.0)
    first.first_order(problem, tol=1e-2, max_iter=1)
    np.testing.assert_allclose(begun[0], [0.0, 2.0])
    for start, taken in (([0.0, 1.0], [0.0, 1.0]), ([0.2, 20.0], [0.0, 0.5])):
        begun.clear()
        first.first_order(two_pairs(0.5), tol=1e-2, max_iter=1, start=np.array(start))
        np.testing.assert_allclose(begun[0], taken)


@pytest.mark.parametrize(("tol", "dtype"), [(1e-4, "float32"), (0.99e-4, "float64")])
def test_steps_are_in_single_precision_where_the_tolerance_is_rough(monkeypatch, tol, dtype):
    seen = []

    class Watched(first._Steps):
        def __init__(self, problem, precision, exact):
            seen.append(str(problem.Z.dtype))
            super().__init__(problem, precision, exact)

    monkeypatch.setattr(first, "_Steps", Watched)
    first.first_order(problem_of_pairs(), tol=tol, max_iter=5)
    assert seen == [dtype]


def test_directions_of_no_length_have_a_weight_all_the_same():
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    pairs = np.array([[0, 1], [0, 2], [2, 3]])
    steps = first._Steps(PairDual(Z, pairs, np.array([-1.0, 1.0, 1.0]), np.ones(3), 0.5), 1e-12)
    np.testing.assert_allclose(steps.weights, [1.0, 1.0, (1e-3 * 2 / 3) ** 2])


# --- descent ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [2.0, 1e3, 1e308])
def test_no_decrease_is_too_large_for_a_tolerance_of_two(tol):
    # From +0.79 past zero to -0.81: relative to the larger of both and 1, a decrease of 1.6.
    def objective(x):
        return float(np.sum((x - 1.3) ** 2) - 0.9), 2 * (x - 1.3)

    found = minimize_lbfgs(objective, np.zeros((1, 1)), max_iter=50, tol=tol)
    assert found.converged and found.n_iter == 1
    assert minimize_lbfgs(objective, np.zeros((1, 1)), max_iter=50, tol=1.0).n_iter > 1


def test_lbfgs_goes_on_as_long_as_a_step_gains_more_than_the_tolerance():
    scales = np.geomspace(1.0, 1e3, 12)[None, :]

    def objective(x):
        return 1.0 + 0.5 * float(np.sum(scales * x * x)), scales * x

    steps = [
        minimize_lbfgs(objective, np.ones((1, 12)), max_iter=300, tol=tol).n_iter
        for tol in (1e-1, 1e-4, 1e-9)
    ]
    assert steps == sorted(set(steps))
    values = []
    found = minimize_lbfgs(
        objective,
        np.ones((1, 12)),
        max_iter=300,
        tol=1e-4,
        report=lambda x, value: values.append(value),
    )
    gains = -np.diff([objective(np.ones((1, 12)))[0], *values]) / np.maximum(values, 1.0)
    assert found.converged
    assert gains[-1] <= 1e-4 < gains[:-1].min()


# --- eigenvectors -------------------------------------------------------------------------------


def path_graph(n):
    degrees = np.r_[1.0, np.full(n - 2, 2.0), 1.0]
    beside = -np.ones(n - 1)
    return sparse.diags_array([beside, degrees, beside], offsets=[-1, 0, 1])


def test_a_dense_eigendecomposition_asks_for_what_it_takes(monkeypatch):
    asked = []
    monkeypatch.setattr(
        spectral.compute, "require_memory", lambda n_bytes, *words: asked.append(n_bytes)
    )
    A = path_graph(400).tocsr()
    smallest_eigenvectors(A, 2, random_state=0)  # what is imported late, once
    tracemalloc.start()
    try:
        found = smallest_eigenvectors(A, 2, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert asked == [4 * 400 * 400 * 8] * 2  # four matrices of float64
    assert 0.5 < asked[0] / peak < 2.0
    k = np.arange(2)
    np.testing.assert_allclose(found.values, 4 * np.sin(np.pi * k / 800) ** 2, atol=1e-12)


def test_a_dense_eigendecomposition_that_does_not_fit_is_refused(monkeypatch):
    from kernelmetric.compute import _budget

    monkeypatch.setattr(_budget, "_ALWAYS_ALLOWED", 10)
    monkeypatch.setattr(_budget, "_free_memory", lambda: 32 * 50**2)
    assert smallest_eigenvectors(path_graph(50), 2).converged
    monkeypatch.setattr(_budget, "_free_memory", lambda: 32 * 50**2 - 1)
    with pytest.raises(MemoryError, match=r"^A dense eigendecomposition would take .*fewer"):
        smallest_eigenvectors(path_graph(50), 2)


@pytest.mark.parametrize(
    ("n", "k", "dense"), [(1000, 2, True), (1001, 2, False), (1001, 300, True)]
)
def test_few_eigenvectors_of_many_rows_are_searched_for(monkeypatch, n, k, dense):
    class AskedError(Exception):
        pass

    def stop(*arguments):
        raise AskedError

    monkeypatch.setattr(spectral, "_dense" if dense else "Davidson", stop)
    with pytest.raises(AskedError):
        smallest_eigenvectors(path_graph(n), k, random_state=0)


def test_a_warning_counts_the_eigenvectors_that_are_not_good(monkeypatch):
    values, vectors = np.linalg.eigh(path_graph(30).toarray())
    vectors = vectors[:, :3].copy()
    vectors[:, 2] = np.roll(vectors[:, 2], 1)

    monkeypatch.setattr(spectral, "_dense", lambda *rest: (values[:3], vectors, 4.0))
    with pytest.warns(ConvergenceWarning, match=r"^1 of 3 eigenvectors .* tol=1e-06, .*now 500"):
        found = smallest_eigenvectors(path_graph(30), 3)
    assert not found.converged
    assert found.residuals[:2].max() < 1e-12 < found.residuals[2]


# --- watching -----------------------------------------------------------------------------------


def test_older_versions_of_scikit_learn_go_without_callbacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)  # importing it fails
    spec = importlib.util.spec_from_file_location(
        "kernelmetric_without_callbacks", progress.__file__
    )
    older = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)
    assert older.CallbackSupportMixin.__module__ == spec.name

    def method():
        """Nothing."""

    assert older.with_callbacks(method) is method


# --- blocks -------------------------------------------------------------------------------------


def test_blocks_of_pairs_change_no_sum(monkeypatch):
    whole = problem_of_pairs()
    monkeypatch.setattr(dual, "_BLOCK_ROWS", 7)
    cut = problem_of_pairs()
    alpha = np.random.RandomState(1).uniform(size=120)
    M = whole.matrix(alpha)
    np.testing.assert_allclose(cut.matrix(alpha), M, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(cut.forms(M), whole.forms(M), rtol=1e-10)


# --- pairs: curvature -----------------------------------------------------------------------------


def positive(r, seed):
    A = np.random.RandomState(seed).standard_normal((r, r))
    return A @ A.T + 0.5 * np.eye(r)


def test_the_scaling_of_nesterov_and_todd_makes_both_matrices_one_diagonal():
    M, S = positive(4, 0), positive(4, 1)
    cone = curvature.Cone(M, S)
    G = (cone.Q * cone.root) @ cone.Yt
    back = np.linalg.inv(G)
    # Scaled, both are one matrix, diagonal with the singular values.
    np.testing.assert_allclose(back @ M @ back.T, np.diag(cone.d), atol=1e-9)
    np.testing.assert_allclose(G.T @ S @ G, np.diag(cone.d), atol=1e-9)
    np.testing.assert_allclose(cone.w, cone.root**2)
    dM, dS = (A + A.T for A in np.random.RandomState(2).standard_normal((2, 4, 4)))
    one, two = cone.unscaled(dM, dS)
    np.testing.assert_allclose(back @ one @ back.T, dM, atol=1e-9)
    np.testing.assert_allclose(G.T @ two @ G, dS, atol=1e-9)


def test_moves_in_the_cone_add_up_and_follow_the_pairs():
    M, S = positive(3, 0), positive(3, 1)
    cone = curvature.Cone(M, S)
    dF, E, second = (A + A.T for A in np.random.RandomState(3).standard_normal((3, 3, 3)))
    pull = cone.pull(0.7, second)
    dM, dS = cone.moves(dF, pull)
    D = np.diag(cone.d)
    # The products of the scaled matrices shall become the target: D dM + dM D + D dS + dS D.
    both = dM + dS
    np.testing.assert_allclose(
        0.5 * (D @ both + both @ D), 0.7 * np.eye(3) - D @ D - second, atol=1e-9
    )
    one, two = cone.unscaled(dM, dS)
    np.testing.assert_allclose(one - two, dF, atol=1e-9)  # as M - S is what the pairs add up to
    # Without a change of the pairs, the metric goes back by what is missing.
    one, two = cone.unscaled(*cone.moves(-E, pull))
    np.testing.assert_allclose(-one, cone.damped(E, pull), atol=1e-9)


@pytest.mark.parametrize(("lowest", "length"), [(0.5, 1.0), (0.0, 1.0), (-0.5, 1.0), (-4.0, 0.25)])
def test_a_step_in_the_cone_is_as_long_as_both_matrices_stay_positive(lowest, length):
    cone = curvature.Cone(positive(3, 0), positive(3, 1))
    up = np.diag(cone.d)  # scaled, the matrices themselves
    down = lowest * np.diag(cone.d)
    assert cone.longest(up, down) == pytest.approx(length)
    assert cone.longest(down, up) == pytest.approx(length)
    with pytest.raises(np.linalg.LinAlgError):
        curvature.Cone(np.eye(2), np.diag([1.0, 0.0]))


@pytest.mark.parametrize("psd", [False, True])
@pytest.mark.parametrize("n_pairs", [60, 720])
def test_the_formed_inverse_is_that_of_the_curvature_where_no_pair_is_decided(psd, n_pairs):
    problem = problem_of_pairs(n_pairs=n_pairs, psd=psd)
    free = np.arange(n_pairs) % 7 != 0
    n = int(np.sum(free))
    hessian = curvature.Hessian(problem, free, 1.3)
    cone = curvature.Cone(positive(3, 0), positive(3, 1)) if psd else None
    theta = np.random.RandomState(0).uniform(0.1, 1.0, n) * hessian.diagonal.max()
    hessian.diagonal = np.full(n, hessian.diagonal.max())  # all are undecided
    hessian.move_to(cone, theta)
    assert hessian.low_rank == (n_pairs == 720)
    delta = (problem.Z[problem.first] - problem.Z[problem.second])[free]
    delta = delta @ cone.Q if psd else delta
    weights = cone.weights if psd else np.ones((3, 3))
    forms = np.einsum("pi,pj->pij", delta, delta)
    H = np.einsum("pij,ij,qij->pq", forms, weights, forms)
    H = hessian.scale[:, None] * H * hessian.scale + np.diag(theta)
    x = np.random.RandomState(1).standard_normal(n)
    np.testing.assert_allclose(hessian._times(x), H @ x, rtol=1e-8)
    np.testing.assert_allclose(hessian._nearly(H @ x), x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(hessian.solve(H @ x, 1e-10 * np.abs(H @ x).max()), x, atol=1e-7)
    assert hessian.solved and hessian.n_products <= 3


def test_pairs_that_are_decided_do_without_the_curvature_of_others():
    problem = problem_of_pairs(n_pairs=60, psd=False)
    hessian = curvature.Hessian(problem, np.ones(60, dtype=bool), 1.0)
    theta = np.where(np.arange(60) < 20, 2e3, 0.5) * hessian.diagonal
    hessian.move_to(None, theta)
    np.testing.assert_array_equal(hessian.some, np.arange(20, 60))
    x = np.random.RandomState(1).standard_normal(60)
    np.testing.assert_allclose(hessian._nearly(x)[:20], x[:20] / theta[:20])
    y = hessian.solve(x, 1e-12)
    np.testing.assert_allclose(hessian._times(y), x, atol=1e-9)


@pytest.mark.parametrize("psd", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_known_metric_gives_a_first_point_whose_products_are_alike(psd, share):
    problem = problem_of_pairs(share=share, psd=psd)
    newton = interior._Newton(problem, np.ones(120, dtype=bool), share)
    M = positive(3, 0)
    best, start = interior._best_multiple(problem, M), newton.M
    newton.near(M)
    expected = 0.99 * newton.root * best + 0.01 * start
    np.testing.assert_allclose(newton.M, expected, rtol=1e-9)
    np.testing.assert_allclose(newton.x * newton.y, 0.1, rtol=1e-9)
    if psd:
        np.testing.assert_allclose(newton.M @ newton.S, 0.1 * np.eye(3), atol=1e-9)
    n = newton.n
    np.testing.assert_allclose(newton.x[:n] + newton.x[n : 2 * n], 1.0, atol=1e-9)
    tied = newton.y[-1] * newton.a if share else 0.0
    slopes = newton.y[:n] - newton.y[n : 2 * n] + tied
    np.testing.assert_allclose(slopes, newton.gradient, atol=1e-6)
    if share:
        assert newton.x[-1] == pytest.approx(newton.a @ newton.beta - share, rel=1e-5)


def test_the_best_multiple_of_a_metric_has_the_least_objective():
    problem = problem_of_pairs()
    M = positive(3, 0)
    best = interior._best_multiple(problem, M)

    def value(metric):
        return problem.primal(0.5 * np.sum(metric**2), problem.forms(metric))[0]

    np.testing.assert_allclose(best / best[0, 0], M / M[0, 0])
    for size in (0.5, 0.9, 1.1, 2.0):
        assert value(best) < value(size * best)


@pytest.mark.parametrize(
    ("N", "r", "psd", "finite"),
    [
        (3860, 154, True, True),  # 4 matrices of 8 bytes, N × N and N × 11935 but at most 10^4
        (4000, 154, True, True),
        (4001, 154, True, False),
        (4000, 5000, False, True),
        (4000, 20_000, False, False),
        (10_000, 140, True, False),
        (10_000, 120, True, True),
    ],
)
def test_a_newton_step_has_its_limits(N, r, psd, finite):
    products = r * (r + 1) / 2
    flops = interior._flops(N, r, psd=psd)
    assert np.isfinite(flops) == finite
    if finite and products < N:
        assert flops == N * products**2 + products**3
    elif finite:
        assert flops == N**2 * (products if psd else r) + N**3


@pytest.mark.parametrize(("k", "width", "needed"), [(12, 4, 3), (13, 4, 4), (3, 4, 1)])
def test_a_search_takes_the_steps_to_so_many_vectors_however_few_are_allowed(k, width, needed):
    A = np.diag(np.linspace(0.0, 10.0, 80))
    rng = np.random.RandomState(0)
    multiply = spectral.Deflated(A, np.empty((80, 0)))
    search = spectral.Davidson(A, multiply, k, width, k + spectral.GUARD + 4 * width, rng)
    steps, rotate = [], search._rotate
    search._rotate = lambda: steps.append(search.m) or rotate()
    values, V = search.run(np.empty((80, 0)), 1e-12, 0)
    assert len(steps) == needed + 1  # and one at the end
    assert values.shape == (k,) and V.shape == (80, k)


@pytest.mark.parametrize(("N", "r"), [(100, 3), (100, 60), (4000, 60), (3000, 90), (10**6, 300)])
def test_a_solver_of_pairs_counts_what_it_holds(N, r, monkeypatch):
    monkeypatch.setattr("kernelmetric.compute._threads._BLAS.available", lambda: 1)
    products = r * (r + 1) / 2
    held = 8 * N * (r + 30) + 48 * r * r
    if N == 10**6 or r == 90:  # a Newton step takes too long: blocks of differences
        # Products of 500 pairs, or twice the curvature of a quarter of them, at most of 2,000.
        products = max(4 * 500**2, 2 * min(N / 4, 2000) ** 2)
        expected = held + 8 * N * 90 + 8 * min(N, 8192) * 2 * r + 8 * products
    elif products < N:  # features of a tile of pairs, four matrices
        expected = held + 8 * min(N, 768) * products + 32 * products**2
    else:
        expected = held + 32 * N**2 + 8 * N * min(products, 2048)
    assert interior.pair_bytes(N, r) == int(expected)


def test_a_first_order_method_looks_at_the_gap_at_every_twentieth_step():
    problem = problem_of_pairs()
    seen = []
    found = first.first_order(
        problem, tol=-1.0, max_iter=25, report=lambda *told: seen.append(told[:2]) or False
    )
    assert [step for step, _ in seen] == [20, 25]
    gaps = [gap for _, gap in seen]  # of the best point so far
    assert gaps == sorted(gaps, reverse=True)
    assert found.certificate.gap == gaps[-1] and found.n_iter == 25
    stopped = first.first_order(problem, tol=-1.0, max_iter=25, report=lambda *told: True)
    assert stopped.n_iter == 20


def test_steps_beyond_the_finite_numbers_end_with_the_best_point_before(monkeypatch):
    problem = problem_of_pairs()
    rest, calls = first._Steps.rest, []

    def broken(self, M, common):
        calls.append(None)
        return rest(self, M, common) if len(calls) < 15 else np.nan

    monkeypatch.setattr(first._Steps, "rest", broken)
    monkeypatch.setattr(first, "_DIRECTIONS", 1)
    found = first.first_order(problem, tol=1e-12, max_iter=100, report=None)
    assert len(calls) == 15 and found.n_iter <= 15
    assert not found.converged and np.isfinite(found.certificate.gap)
    np.testing.assert_allclose(found.matrix, problem.matrix(found.alpha), rtol=1e-9, atol=1e-12)
