"""The quadratic program of metrics from pairs: what is returned is the optimum, and says so.

Propositions 2 and 3 of Kwok and Tsang (2003) are checked on every data set of their paper; those
that do not come with scikit-learn are marked ``paper``.
"""

import numpy as np
import pytest
from scipy import linalg

from half_of_product import half_of
from kernelmetric.graphs import Pairs
from kernelmetric.learners import IdealizedKernel
from kernelmetric.solvers import PairDual, solve_pairs
from kernelmetric.solvers._pair_dual import project_box_half_space
from reproduction.idealized import idealized_points

TRAINING = {"toy": 60, "colon": 50, "lymphoma": 60, "soybean": 30, "wine": 118}
BUNDLED = ["toy", "wine"]
DATA = [pytest.param(n, marks=() if n in BUNDLED else pytest.mark.paper) for n in TRAINING]


def points(name):
    """The training points of a repetition; features of wine are raw, one far larger than others."""
    try:
        X, y = idealized_points(name, seed=0)
    except OSError as error:
        pytest.skip(f"{name} is not to be had: {error}")
    return X[: TRAINING[name]], y[: TRAINING[name]]


def small_problem(name, n_pairs, C, psd, nu=0.3):
    X, y = points(name)
    X, y = X[:60], y[:60]
    pairs = Pairs.from_neighbors(X, y, 3, None)
    chosen = np.sort(np.random.RandomState(0).choice(len(pairs), n_pairs, replace=False))
    pairs = pairs.take(chosen)
    signs = np.where(pairs.is_similar, -1.0, 1.0)
    delta = X[pairs.rows[:, 0]] - X[pairs.rows[:, 1]]
    Z = X / np.sqrt(np.mean(np.sum(delta**2, axis=1)))
    upper = np.where(pairs.is_similar, C / len(pairs.similar), C / len(pairs.dissimilar))
    return PairDual(Z, pairs.rows, signs, upper, nu * C, psd=psd)


# --- the propositions ---------------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("psd", ["none", "solve"])
@pytest.mark.parametrize("kernel", ["linear", pytest.param("rbf", marks=pytest.mark.paper)])
@pytest.mark.parametrize("C", [1e3, 1e6])
@pytest.mark.parametrize("name", DATA)
def test_the_conditions_of_proposition_2_hold(name, C, kernel, psd):
    X, y = points(name)
    # A gap bounds a margin times its multiplier: where that is small, so must be the gap.
    metric = IdealizedKernel(kernel, C=C, psd=psd, tol=1e-8).fit(X, y)
    Z = X if metric.space_ is None else metric.space_.transform(X)
    pairs = metric.pairs_
    delta = Z[pairs.rows[:, 0]] - Z[pairs.rows[:, 1]]
    before = np.sum(delta**2, axis=1)
    after = np.sum((delta @ metric.get_mahalanobis_matrix()) * delta, axis=1)
    # d̃² - d² >= γ wanted of dissimilar pairs, d² - d̃² >= 0 of similar ones.
    margin = np.where(pairs.is_similar, before - after, after - before - metric.gamma_)
    tol = 1e-5 * max(np.mean(before), metric.gamma_, np.mean(np.abs(after)))
    fraction = metric.alpha_ / metric.upper_
    assert fraction.min() >= 0
    assert fraction.max() <= 1 + 1e-12
    inside = (fraction > 1e-6) & (fraction < 1 - 1e-6)
    assert np.all(np.abs(margin[inside]) < tol)
    assert np.all(margin[fraction <= 1e-6] > -tol)
    assert np.all(margin[fraction >= 1 - 1e-6] < tol)
    assert metric.duality_gap_ < 1e-6


@pytest.mark.parametrize(("psd", "nu"), half_of(["none", "solve"], [0.05, 0.3, 0.8, 1.0]))
@pytest.mark.parametrize("name", DATA)
@pytest.mark.every(12)
def test_nu_bounds_the_fractions_of_proposition_3(name, psd, nu):
    X, y = points(name)
    metric = IdealizedKernel(C=1e7, psd=psd, nu=nu).fit(X, y)
    n_dissimilar = len(metric.pairs_.dissimilar)
    assert metric.gamma_ > 0
    assert len(metric.support_pairs_.dissimilar) / n_dissimilar >= nu - 1e-9
    assert len(metric.error_pairs_.dissimilar) / n_dissimilar <= nu + 1e-9
    total = np.sum(metric.alpha_[~metric.pairs_.is_similar])
    assert total >= nu * np.sum(metric.upper_[~metric.pairs_.is_similar]) * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.every(4)
@pytest.mark.parametrize("psd", ["none", "solve"])
@pytest.mark.parametrize(("C", "nu"), [(1e7, 0.9), (1e10, 0.5), (1e10, 1.0)])
def test_a_metric_far_from_the_prior_is_reached_where_features_are_more_than_points(C, nu, psd):
    X = np.random.RandomState(0).randn(40, 60)
    metric = IdealizedKernel(C=C, nu=nu, psd=psd).fit(X, np.arange(40) % 2)
    assert metric.converged_
    assert metric.duality_gap_ < 1e-8


# --- an independent solver ----------------------------------------------------------------------


class Barrier:
    """The primal in M, γ and slacks, with logarithms that keep its constraints; dense.

    Shares nothing with the solvers under test: those move multipliers of the dual.
    """

    def __init__(self, problem):
        delta = problem.differences(slice(None))
        (N, self.r), self.psd = delta.shape, problem.psd
        self.i, self.j = np.triu_indices(self.r)
        self.root2 = np.where(self.i == self.j, 1.0, np.sqrt(2.0))
        self.k = k = len(self.i)
        self.cost = np.concatenate([np.zeros(k), [-problem.least], problem.upper])
        self.A = np.zeros((2 * N + 1, k + 1 + N))  # A x >= b: margins, γ >= 0, slacks >= 0
        self.A[:N, :k] = problem.signs[:, None] * delta[:, self.i] * delta[:, self.j] * self.root2
        self.A[:N, k], self.A[:N, k + 1 :] = -problem.apart.astype(float), np.eye(N)
        self.A[N:, k:] = np.eye(N + 1)
        self.b = np.concatenate([problem.signs * problem.d2, np.zeros(N + 1)])
        self.start = np.concatenate([(self.i == self.j) * 1.0, np.ones(1), np.full(N, 2.0)])

    def optimum(self, rtol=1e-8):
        x, mu = self.start, float(np.sum(self.cost[self.k + 1 :]))
        while (len(self.b) + self.r) * mu > rtol * abs(self.objective(x)):
            mu *= 0.1
            x = self.centered(x, mu)
        return self.objective(x)

    def objective(self, x):
        return 0.5 * x[: self.k] @ x[: self.k] + self.cost @ x

    def centered(self, x, mu):
        """Newton's method with steps cut in half until the objective falls."""
        for _ in range(60):
            gradient, H = self.derivatives(x, mu)
            d = 1.0 / np.sqrt(np.diag(H))
            step = -d * linalg.lstsq(d[:, None] * H * d, d * gradient)[0]
            decrement = -gradient @ step
            before, size = self.value(x, mu), 1.0
            while self.value(x + size * step, mu) > before - 1e-4 * size * decrement:
                size /= 2
                if size < 1e-10:
                    return x
            if decrement < 1e-9:
                return x
            x = x + size * step
        return x

    def value(self, x, mu):
        slack = self.A @ x - self.b
        if slack.min() <= 0:
            return np.inf
        values = np.linalg.eigvalsh(self.matrix(x)) if self.psd else np.ones(1)
        if values[0] <= 0:
            return np.inf
        return self.objective(x) / mu - np.sum(np.log(slack)) - np.sum(np.log(values))

    def derivatives(self, x, mu):
        i, j, k = self.i, self.j, self.k
        slack = self.A @ x - self.b
        gradient = self.cost / mu - self.A.T @ (1 / slack)
        gradient[:k] += x[:k] / mu
        H = (self.A.T / slack**2) @ self.A
        H[np.arange(k), np.arange(k)] += 1 / mu
        if self.psd:
            W = np.linalg.inv(self.matrix(x))
            gradient[:k] -= W[i, j] * self.root2
            pairs = W[i][:, i] * W[j][:, j] + W[i][:, j] * W[j][:, i]
            H[:k, :k] += 0.5 * self.root2[:, None] * self.root2 * pairs
        return gradient, H

    def matrix(self, x):
        M = np.zeros((self.r, self.r))
        M[self.i, self.j] = x[: self.k] / self.root2
        return M + M.T - np.diag(np.diag(M))


@pytest.mark.parametrize(
    ("case", "psd"),
    half_of(
        [("toy", 1e1), ("toy", 1e3), ("wine", 1e3), ("wine", 1e5), ("wine", 1e7)], [False, True]
    ),
)
@pytest.mark.every(8)
def test_the_objective_is_that_of_an_independent_solver(case, psd):
    name, C = case
    problem = small_problem(name, 40, C, psd)
    ours = solve_pairs(problem).certificate
    theirs = Barrier(problem).optimum()
    assert ours.dual == pytest.approx(theirs, rel=1e-6)
    assert ours.primal == pytest.approx(theirs, rel=1e-6)


# --- the parts of the solvers -------------------------------------------------------------------


def dual_and_gradient(problem, alpha):
    metric = problem.metric(problem.matrix(alpha))
    return problem.dual(alpha, metric), problem.signs * (problem.d2 - problem.forms(metric))


@pytest.mark.parametrize("psd", [False, True])
def test_the_gradient_is_that_of_the_objective(psd):
    problem = small_problem("toy", 30, 1e2, psd)
    alpha = problem.upper * np.random.RandomState(0).uniform(size=30)
    _, gradient = dual_and_gradient(problem, alpha)
    for p in range(30):
        step = np.zeros(30)
        step[p] = 1e-4 * problem.upper[p]
        rise = dual_and_gradient(problem, alpha + step)[0]
        rise -= dual_and_gradient(problem, alpha - step)[0]
        assert rise / (2 * step[p]) == pytest.approx(gradient[p], rel=1e-5, abs=1e-6)


@pytest.mark.every(4)
@pytest.mark.parametrize("psd", [False, True])
@pytest.mark.parametrize("C", [10.0, 1e3])
def test_both_solvers_certify_the_same_optimum(C, psd):
    problem = small_problem("toy", 100, C, psd)
    sharp = solve_pairs(problem, solver="interior").certificate
    rough = solve_pairs(problem, solver="first-order", tol=1e-5, max_iter=3000)
    assert rough.converged
    assert sharp.gap < 1e-8
    assert rough.certificate.dual <= sharp.primal + 1e-9 * abs(sharp.primal)
    assert rough.certificate.primal >= sharp.dual - 1e-9 * abs(sharp.dual)
    assert rough.certificate.gap <= 1e-5


@pytest.mark.parametrize("psd", [True, False])
def test_steps_in_single_precision_end_in_a_certificate_of_double(psd):
    problem = small_problem("toy", 100, 1e3, psd)
    single = problem.rough(1e-3, 1.0)
    alpha = np.random.RandomState(0).uniform(size=len(problem)) * problem.upper
    M = problem.matrix(alpha)
    size = np.abs(M).max()
    np.testing.assert_allclose(single.matrix(alpha), M, atol=1e-5 * size)
    exact = problem.forms(problem.metric(M))
    np.testing.assert_allclose(problem.forms(problem.metric(M)), exact, atol=1e-12 * exact.max())
    np.testing.assert_allclose(single.forms(single.metric(M)), exact, atol=1e-5 * exact.max())
    found = solve_pairs(problem, solver="first-order", tol=1e-3, max_iter=3000)
    again = problem.solution(found.alpha, found.n_iter, 1e-3, found.solver).certificate
    assert found.converged
    assert found.certificate.dual == pytest.approx(again.dual, rel=1e-12)
    optimum = solve_pairs(problem, solver="interior").certificate
    assert found.certificate.dual <= optimum.primal + 1e-9 * abs(optimum.primal)


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_the_nearest_feasible_point(seed):
    rng = np.random.RandomState(seed)
    v, weights = 3 * rng.standard_normal(50), rng.uniform(0.1, 10, size=50)
    upper, members = rng.uniform(0.1, 2, size=50), rng.uniform(size=50) < 0.5
    total = upper[members].sum()
    for least in (0.0, 0.3 * total, 0.9 * total, total):
        p = project_box_half_space(v, upper, members, least, weights)
        assert np.all((p >= 0) & (p <= upper))
        assert p[members].sum() >= least * (1 - 1e-12)
        for _ in range(20):  # the angle to any feasible point is obtuse
            x = project_box_half_space(
                3 * rng.standard_normal(50), upper, members, least, np.ones(50)
            )
            assert np.sum(weights * (v - p) * (x - p)) <= 1e-9


def test_matrices_and_distances_of_many_coordinates_are_sums_over_pairs():
    rng = np.random.RandomState(0)
    Z, pairs = rng.standard_normal((40, 300)), rng.randint(20, size=(200, 2)) + np.array([0, 20])
    signs, alpha = np.where(np.arange(200) % 2, 1.0, -1.0), rng.uniform(size=200)
    problem = PairDual(Z, pairs, signs, np.ones(200), 1.0)
    delta = Z[pairs[:, 0]] - Z[pairs[:, 1]]
    M = (delta * (signs * alpha)[:, None]).T @ delta
    np.testing.assert_allclose(problem.matrix(alpha), M, atol=1e-9)
    np.testing.assert_allclose(problem.forms(M), np.sum((delta @ M) * delta, axis=1), rtol=1e-9)
