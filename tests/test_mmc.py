"""The metric of Xing et al.: its optimum, its certificate, its bad input."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric import Kernelized
from kernelmetric.graphs import Pairs
from kernelmetric.learners import MMC
from tested_learners import not_repeated_rows

pytestmark = pytest.mark.usefixtures("deadline")


def sums(X, pairs, M):
    """Mean distance of dissimilar pairs, mean squared distance of similar ones."""
    near = X[pairs.similar[:, 0]] - X[pairs.similar[:, 1]]
    far = X[pairs.dissimilar[:, 0]] - X[pairs.dissimilar[:, 1]]
    return (
        np.mean(np.sqrt(np.einsum("pi,ij,pj->p", far, M, far))),
        np.mean(np.einsum("pi,ij,pj->p", near, M, near)),
    )


@pytest.mark.parametrize("diagonal", [False, True])
def test_no_other_metric_keeps_dissimilar_pairs_farther_apart(diagonal, labelled):
    X, y = labelled
    metric = MMC(diagonal=diagonal, reg=0.0, tol=1e-6).fit(X, y)
    M = metric.get_mahalanobis_matrix()
    apart, near = sums(X, metric.pairs_, M)
    assert near == pytest.approx(1.0, abs=1e-6)
    assert apart == pytest.approx(-metric.loss_, rel=1e-6)
    rng = np.random.RandomState(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            A = rng.standard_normal((4, 4))
            other = M + size * np.abs(M).max() * (np.diag(A[0] ** 2) if diagonal else A @ A.T)
            far, squares = sums(X, metric.pairs_, other)
            assert far / np.sqrt(squares) <= apart * (1 + 1e-6)


def test_the_diagonal_metric_is_that_of_a_general_solver(labelled):
    X, y = labelled
    metric = MMC(diagonal=True, reg=0.0, tol=1e-8).fit(X, y)

    def negated(weights):
        far, near = sums(X, metric.pairs_, np.diag(weights))
        return -far / np.sqrt(near)

    found = minimize(negated, np.ones(4), bounds=[(1e-9, None)] * 4, method="L-BFGS-B", tol=1e-12)
    assert found.fun == pytest.approx(metric.loss_, rel=1e-5)


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_gap_bounds_what_is_left(diagonal, labelled):
    X, y = labelled
    best = -MMC(diagonal=diagonal, tol=1e-7).fit(X, y).loss_
    with pytest.warns(ConvergenceWarning, match="MMC stopped after 1 iterations"):
        early = MMC(diagonal=diagonal, max_iter=1, tol=1e-6).fit(X, y)
    assert 0 < (best + early.loss_) / best <= early.gap_ / (1 - early.gap_)


def test_raw_wine_needs_no_scaling():
    X, y = load_wine(return_X_y=True)

    def accuracy(transform):
        knn = KNeighborsClassifier(1).fit(transform(X[::2]), y[::2])
        return knn.score(transform(X[1::2]), y[1::2])

    metric = MMC().fit(X[::2], y[::2])
    assert metric.converged_
    assert accuracy(metric.transform) > accuracy(lambda X: X) + 0.15


def test_the_linear_kernel_changes_nothing(labelled):
    X, y = labelled
    D = MMC(tol=1e-7).fit(X, y).pairwise_distances(X)
    kernelized = Kernelized(MMC(tol=1e-7), "linear").fit(X, y)
    np.testing.assert_allclose(kernelized.pairwise_distances(X), D, atol=1e-3 * D.max())
    assert kernelized.learner_.loss_ == pytest.approx(MMC(tol=1e-7).fit(X, y).loss_, rel=1e-6)


def test_more_features_than_points_are_no_obstacle():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((20, 50)), np.arange(20) % 2
    for diagonal in (False, True):
        metric = MMC(diagonal=diagonal, tol=1e-2).fit(X, y)
        assert np.isfinite(metric.transform(X)).all()
    assert metric.components_.shape[1] == 50


def test_many_points_use_random_pairs(labelled):
    X, y = labelled
    metric = MMC(max_pairs=120).fit(X, y)
    assert len(metric.pairs_) <= 120
    assert len(MMC().fit(X, y).pairs_) == 30 * 29 // 2


def test_pairs_without_meaning_are_refused(labelled):
    X, _ = labelled
    with pytest.raises(ValueError, match="Got no similar pairs"):
        MMC().fit(X, dissimilar=[[0, 1]])
    with pytest.raises(ValueError, match="Got no dissimilar pairs"):
        MMC().fit(X, similar=[[0, 1]])
    X = X.copy()
    X[1] = X[0]
    with pytest.raises(ValueError, match="dissimilar pairs of points that coincide"):
        MMC().fit(X, pairs=Pairs([[2, 3]], [[0, 1]], len(X)))


@pytest.mark.slow  # another variant passes them in test_estimator_checks.py
@parametrize_with_checks([MMC(), MMC(diagonal=True)], expected_failed_checks=not_repeated_rows)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
