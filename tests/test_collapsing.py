"""MCML and MLKR: losses of softmax neighbours, beside their definitions."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import scale

from kernelmetric import KPCA, MCML, MLKR, RBF, Kernelized, KernelTrick, memory_budget
from kernelmetric.learners import _mlkr
from kernelmetric.learners._mcml import CollapsedClasses
from kernelmetric.learners._mlkr import mlkr_loss
from kernelmetric.solvers import positive_part

pytestmark = pytest.mark.usefixtures("deadline")


def softmax(E):
    D2 = cdist(E, E, "sqeuclidean")
    np.fill_diagonal(D2, np.inf)
    P = np.exp(-D2)
    return P / P.sum(axis=1, keepdims=True)


def divergence(M, X, y):
    """MCML's objective by its definition."""
    d = np.einsum("ijk,kl,ijl->ij", X[:, None] - X[None], M, X[:, None] - X[None])
    np.fill_diagonal(d, np.inf)
    logs = -d - np.log(np.sum(np.exp(-d), axis=1, keepdims=True))
    total = 0.0
    for i in range(len(X)):
        ideal = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        total += sum(-np.log(len(ideal)) - logs[i, j] for j in ideal) / max(len(ideal), 1)
    return total


def regression_error(L, X, Y):
    """MLKR's objective by its definition."""
    return np.sum((softmax(X @ L.T) @ Y - Y) ** 2)


# --- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["1GB", "2KB"])
def test_values_are_their_definitions(budget, labelled):
    X, y = labelled
    y = np.where(np.arange(30) == 4, 9, y)  # a class of one
    L = np.random.RandomState(0).standard_normal((3, 4))
    Y = X[:, :2] ** 2
    with memory_budget(budget):
        assert mlkr_loss(L, X, Y)[0] == pytest.approx(regression_error(L, X, Y))
        problem = CollapsedClasses(X, y, 0.5)
        expected = divergence(L.T @ L, X, y) + 0.5 * np.sum(L * L)
        assert problem.objective(L)[0] == pytest.approx(expected)


def test_gradients_match_finite_differences(labelled):
    X, y = labelled
    Y = X[:, :2] ** 2
    problem = CollapsedClasses(X, np.where(np.arange(30) == 4, 9, y), 0.5)
    for rank in (1, 3, 4):
        L = 0.5 * np.random.RandomState(rank).standard_normal((rank, 4))
        for loss in (lambda L: mlkr_loss(L, X, Y), problem.objective):
            error = check_grad(
                lambda x, f=loss, r=rank: f(x.reshape(r, 4))[0],
                lambda x, f=loss, r=rank: f(x.reshape(r, 4))[1].ravel(),
                L.ravel(),
            )
            assert error < 1e-5 * np.linalg.norm(loss(L)[1])
        # with respect to M, the chain rule gives that of L
        np.testing.assert_allclose(2 * L @ problem.gradient(L), problem.objective(L)[1])


# --- MCML ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mcml_finds_the_optimum_of_a_general_solver(labelled):
    X, y = labelled
    X = X[:, :2]
    mcml = MCML(tol=1e-12).fit(X, y)
    found = minimize(
        lambda v: divergence(v.reshape(2, 2).T @ v.reshape(2, 2), X, y),
        np.eye(2).ravel(),
        method="Nelder-Mead",
        tol=1e-10,
    )
    assert found.fun == pytest.approx(mcml.loss_, rel=1e-7)
    assert mcml.loss_ == pytest.approx(divergence(mcml.get_mahalanobis_matrix(), X, y))


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("reg", [0.0, 2.0])
def test_descending_on_the_factor_finds_the_convex_optimum(reg, labelled):
    X, y = labelled
    mcml = MCML(reg=reg, tol=1e-12).fit(X, y)
    problem = CollapsedClasses(X, y, reg)

    def of_matrix(M):
        values, V = np.linalg.eigh(M)
        L = (V * np.sqrt(np.maximum(values, 0.0))).T
        return problem.objective(L)[0], problem.gradient(L)

    M = ahead = np.eye(4)
    for step in range(500):  # accelerated projected gradients
        before, M = M, positive_part(ahead - 2e-3 * of_matrix(ahead)[1])
        ahead = M + step / (step + 3) * (M - before)
    assert mcml.loss_ == pytest.approx(of_matrix(M)[0], rel=1e-6)
    np.testing.assert_allclose(mcml.get_mahalanobis_matrix(), M, atol=1e-3)
    assert mcml.gap_ < 1e-4 * mcml.loss_


def test_the_gap_bounds_what_is_left(labelled):
    X, y = labelled
    best = MCML(tol=1e-12).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="MCML stopped after 2 iterations"):
        hasty = MCML(max_iter=2).fit(X, y)
    assert not hasty.converged_
    # The optimum, or where that is larger, the metric of its kind with the trace of the hasty one.
    M, bound = best.get_mahalanobis_matrix(), np.trace(hasty.get_mahalanobis_matrix())
    M = M * min(1.0, bound / np.trace(M))
    assert 0 < hasty.loss_ - divergence(M, X, y) <= hasty.gap_


def test_truncation_keeps_the_leading_directions(labelled):
    X, y = labelled
    values, V = np.linalg.eigh(MCML().fit(X, y).get_mahalanobis_matrix())
    two = MCML(2).fit(X, y)
    best = (V[:, -2:] * values[-2:]) @ V[:, -2:].T
    np.testing.assert_allclose(two.get_mahalanobis_matrix(), best, atol=1e-8)


@pytest.mark.parametrize("reg", [0.05, 1.0])
def test_both_tricks_bring_mcml_to_the_same_objective(reg, labelled):
    X, y = labelled
    a = Kernelized(MCML(reg=reg, tol=1e-10), RBF(gamma=0.5), KPCA()).fit(X, y)
    b = Kernelized(MCML(reg=reg, tol=1e-10), RBF(gamma=0.5), KernelTrick()).fit(X, y)
    assert b.learner_.loss_ == pytest.approx(a.learner_.loss_, rel=1e-6)


def test_the_linear_kernel_changes_no_metric(labelled):
    X, y = labelled
    alone, kernelized = (
        MCML(tol=1e-12).fit(X, y),
        Kernelized(MCML(tol=1e-12), "linear", KPCA()).fit(X, y),
    )
    D = alone.pairwise_distances(X)
    np.testing.assert_allclose(kernelized.pairwise_distances(X), D, atol=1e-4 * D.max())


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_only_classes_of_one_cannot_collapse(labelled):
    with pytest.raises(ValueError, match="no class with two members, but expected at least one"):
        MCML().fit(labelled[0], np.arange(30))


def test_what_the_trace_costs_does_not_depend_on_the_unit_it_is_told_in(labelled):
    X, y = labelled
    # ten times larger points, a metric a hundredth: the same price at a hundred times the weight
    D = MCML(reg=0.5, tol=1e-10).fit(X, y).pairwise_distances(X)
    scaled = MCML(reg=50.0, tol=1e-10).fit(10 * X, y).pairwise_distances(10 * X)
    np.testing.assert_allclose(scaled, D, atol=1e-6 * D.max())


# --- MLKR ---------------------------------------------------------------------------------------


def test_mlkr_finds_the_feature_that_predicts():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((80, 3))
    y = np.sin(2 * X[:, 0])
    mlkr = MLKR().fit(X, y)
    M = mlkr.get_mahalanobis_matrix()
    assert M[0, 0] > 10 * max(M[1, 1], M[2, 2])
    assert (np.diff(mlkr.loss_curve_) <= 1e-9).all()
    assert mlkr.loss_ < 0.2 * mlkr.loss_curve_[0]
    Y = ((y - y.mean()) / y.std())[:, None]
    assert mlkr.loss_ == pytest.approx(regression_error(mlkr.components_, X, Y))


def test_mlkr_lets_neighbours_predict_better():
    X, y = make_friedman1(400, n_features=10, random_state=0)  # five of them are noise
    X = scale(X)

    def score(E):
        return KNeighborsRegressor(5).fit(E[:200], y[:200]).score(E[200:], y[200:])

    assert score(MLKR(tol=1e-4).fit(X[:200], y[:200]).transform(X)) > score(X) + 0.1


def test_units_and_signs_of_targets_do_not_matter(labelled):
    X, _ = labelled
    y = X[:, 0] ** 2
    D = MLKR().fit(X, y).pairwise_distances(X)
    for other in (1e6 * y + 3, -y, y[:, None], 1e-200 * y):
        np.testing.assert_allclose(MLKR().fit(X, other).pairwise_distances(X), D, rtol=1e-5)


def test_several_targets_share_one_metric(labelled):
    X, _ = labelled
    Y = np.column_stack([X[:, 0] ** 2, X[:, 1]])
    both = MLKR(tol=1e-8).fit(X, Y)
    Y = Y - Y.mean(axis=0)
    Y = Y / np.sqrt(np.sum(Y**2) / 30)
    assert both.loss_ == pytest.approx(regression_error(both.components_, X, Y))


def test_an_automatic_kernel_serves_regression():
    X, y = load_diabetes(return_X_y=True)
    metric = Kernelized(MLKR(2), kernel="auto").fit(X[:120], y[:120])
    assert metric.learner_.loss_ < 120  # the variance of the targets


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (None, "MLKR requires y to be passed, but the target y is None"),
        (np.ones(30), "Got the same target for all points"),
        (np.ones(20), r"inconsistent numbers of samples: \[30, 20\]"),
        (np.full(30, np.nan), "Input y contains NaN"),
        (np.array(["a", "b", "c"] * 10), "Got y with text, such as 'a', but expected numbers"),
    ],
)
def test_targets_without_meaning_are_refused(y, match, labelled):
    with pytest.raises(ValueError, match=match):
        MLKR().fit(labelled[0], y)


@pytest.mark.filterwarnings("ignore::kernelmetric.inputs._far_cells.FarCellWarning")
@pytest.mark.parametrize("far", [0.0, 1e6], ids=["usual rows", "a far row"])
def test_mlkr_ends_in_all_digits_where_it_began_in_few(far, monkeypatch):
    rng = np.random.RandomState(0)
    X = rng.randn(200, 4)
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    X[-1] += far
    wide = MLKR(2).fit(X, y)
    few = []

    def halved(X, tol, operations):
        few.append(X.astype(np.float32))
        return few[-1]

    monkeypatch.setattr(_mlkr, "rough", halved)
    rough = MLKR(2).fit(X, y)
    assert few and rough.components_.dtype == np.float64
    assert rough.loss_ == pytest.approx(wide.loss_, rel=2e-2)
    assert rough.loss_ == pytest.approx(np.sum((y - left_out(rough, X, y)) ** 2) / np.var(y))


def left_out(model, X, y):
    """What kernel regression on the learned distances says of every point from all others."""
    E = model.transform(X)
    D2 = np.sum((E[:, None] - E[None]) ** 2, axis=2)
    np.fill_diagonal(D2, np.inf)
    P = np.exp(D2.min(axis=1, keepdims=True) - D2)
    return P @ y / P.sum(axis=1)


def test_mlkr_has_no_classes_to_start_from(labelled):
    with pytest.raises(ValueError, match="Got init='lda', but MLKR has no classes: try 'pca'"):
        MLKR(2, init="lda").fit(*labelled)
