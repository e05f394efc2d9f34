"""PairKPCA: few coordinates that tell similar from dissimilar pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kernelmetric import KPCA, IdealizedKernel, Kernelized, Pairs
from kernelmetric.solvers import PairDual, solve_pairs
from kernelmetric.spaces import PairKPCA, automatic_space


def noisy_circles(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    angle = rng.uniform(0, 2 * np.pi, n)
    circle = np.c_[np.cos(angle), np.sin(angle)] * (1 + y)[:, None]
    return np.hstack([circle + 0.1 * rng.standard_normal((n, 2)), rng.standard_normal((n, 4))]), y


def some_pairs(y: np.ndarray, n_pairs: int, seed: int = 0) -> Pairs:
    rows = np.random.RandomState(seed).randint(len(y), size=(n_pairs, 2))
    rows = np.unique(rows[rows[:, 0] < rows[:, 1]], axis=0)
    same = y[rows[:, 0]] == y[rows[:, 1]]
    return Pairs(rows[same], rows[~same], len(y))


def area(coordinates: np.ndarray, pairs: Pairs) -> float:
    delta = coordinates[pairs.rows[:, 0]] - coordinates[pairs.rows[:, 1]]
    return roc_auc_score(~pairs.is_similar, np.sum(delta**2, axis=1))


@pytest.fixture(scope="module")
def circles():
    X, y = noisy_circles(130, seed=0)
    return X, y, some_pairs(y, 1200)


def test_coordinates_of_training_points_are_what_transform_gives(circles):
    X, _, pairs = circles
    space = PairKPCA(10)
    Z = space.fit_transform(X, pairs)
    assert Z.shape == (len(X), space.rank_) == (len(X), 10)
    np.testing.assert_allclose(space.transform(X), Z, atol=1e-6 * np.abs(Z).max())
    np.testing.assert_allclose(np.sum(Z**2, axis=0), space.eigenvalues_, rtol=1e-6)
    assert 0 < space.explained_variance_ratio_ < 1


def test_distances_are_never_longer_than_in_the_feature_space(circles):
    X, _, pairs = circles
    Z, full = PairKPCA(10).fit_transform(X, pairs), KPCA().fit_transform(X)
    i, j = pairs.rows.T
    short, whole = (np.linalg.norm(A[i] - A[j], axis=1) for A in (Z, full))
    assert np.all(short <= whole * (1 + 1e-6))


def test_where_all_coordinates_are_few_none_is_left_out(circles):
    X, _, pairs = circles
    Z, full = PairKPCA(kernel="linear").fit_transform(X, pairs), KPCA(kernel="linear").fit(X)
    np.testing.assert_allclose(Z @ Z.T, full.transform(X) @ full.transform(X).T, atol=1e-8)


def test_directions_of_pairs_tell_new_pairs_apart_better_than_as_many_leading_ones(circles):
    X, _, pairs = circles
    X_new, y_new = noisy_circles(200, seed=1)
    judged = some_pairs(y_new, 4000, seed=1)
    spaces = PairKPCA(8).fit(X, pairs), KPCA(8).fit(X)
    by_pairs, leading = (area(space.transform(X_new), judged) for space in spaces)
    assert by_pairs > leading + 0.05


@pytest.mark.parametrize("y", [None, np.arange(130) % 2, Pairs([[0, 2]], [], 130)], ids=type)
def test_without_dissimilar_pairs_it_says_what_it_expects(circles, y):
    with pytest.raises(ValueError, match="PairKPCA expected Pairs of the 130 points"):
        PairKPCA().fit(circles[0], y)


def test_few_directions_are_refused_by_name(circles):
    with pytest.raises(ValueError, match="Got n_components=0"):
        PairKPCA(0).fit(circles[0], circles[2])


@pytest.mark.slow
def test_the_default_learns_from_pairs_in_few_coordinates_and_says_so(circles):
    X, _, pairs = circles
    metric = Kernelized(IdealizedKernel(C=1e3)).fit(X, pairs=pairs)
    assert isinstance(metric.space_, PairKPCA)
    assert metric.space_.rank_ == PairKPCA().n_components
    assert metric.learner_.duality_gap_ < 1e-6
    own = IdealizedKernel("rbf", C=1e3).fit(X, pairs=pairs)
    other = Kernelized(IdealizedKernel(C=1e3), "rbf").fit(X, pairs=pairs)
    expected = np.linalg.norm(other.transform(X), axis=1)
    np.testing.assert_allclose(np.linalg.norm(own.transform(X), axis=1), expected, rtol=1e-5)


@pytest.mark.slow
def test_a_space_that_is_given_and_few_points_stay_exact(circles):
    X, _, pairs = circles
    given = Kernelized(IdealizedKernel(C=10.0, tol=0.5), space=KPCA()).fit(X, pairs=pairs)
    assert type(given.space_) is KPCA
    assert given.space_.rank_ == len(X) - 1
    assert type(automatic_space(100, paired=True)) is KPCA
    assert type(automatic_space(101, paired=True)) is PairKPCA
    assert type(automatic_space(2001, paired=True)) is KPCA


@pytest.mark.slow
def test_a_prior_is_written_in_all_coordinates(circles):
    X, _, pairs = circles
    learner = IdealizedKernel(C=10.0, tol=0.5, prior=np.eye(len(X) - 1))
    assert type(Kernelized(learner).fit(X, pairs=pairs).space_) is KPCA


def test_the_moments_of_four_coordinates_are_those_of_a_plain_product():
    from kernelmetric.solvers._pair_curvature import Hessian

    rng = np.random.RandomState(0)
    Z, rows = rng.standard_normal((60, 7)), rng.randint(60, size=(900, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    problem = PairDual(Z, rows, signs, np.full(len(rows), 0.1), 1.0, psd=False)
    hessian = Hessian(problem, np.ones(len(rows), dtype=bool), 1.0)
    theta = rng.uniform(0.5, 2.0, len(rows))
    hessian.move_to(None, theta)
    delta = problem.Z[problem.first] - problem.Z[problem.second]
    F = delta[:, hessian.i] * delta[:, hessian.j] * hessian.widths * hessian.scale[:, None]
    np.testing.assert_allclose(hessian._small(), F.T @ (F / theta[:, None]), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_many_coordinates_are_certified_too():
    rng = np.random.RandomState(0)
    Z, rows = rng.standard_normal((80, 26)), rng.randint(80, size=(700, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    problem = PairDual(Z, rows, signs, np.full(len(rows), 10.0 / len(rows)), 1.0)
    assert solve_pairs(problem, tol=1e-3).certificate.gap < 1e-6
