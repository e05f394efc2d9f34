"""Equations with a matrix that is kept in single precision, and overwritten."""

import numpy as np
import pytest
from scipy import linalg

from kernelmetric.compute.backends import _refined
from kernelmetric.compute.backends._refined import RefinedSolver


def gaussian(n, ridge, seed=0):
    X = np.random.RandomState(seed).standard_normal((n, 3))
    D2 = np.sum((X[:, None] - X) ** 2, axis=-1)
    return np.exp(-D2) + ridge * np.eye(n)


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_the_solution_is_that_of_double_precision(ridge):
    K = gaussian(150, ridge)
    B = np.random.RandomState(1).standard_normal((150, 4))
    expected = np.linalg.solve(K, B)
    held = K.astype(np.float32)
    X = RefinedSolver(held.copy(), tol=1e-6)(B)
    assert X.dtype == np.float64
    np.testing.assert_allclose(X, expected, atol=2e-3 * np.abs(expected).max())
    np.testing.assert_allclose(held.astype(np.float64) @ X, B, atol=5e-4 * np.abs(B).max())


def test_equal_columns_have_equal_solutions():
    B = np.random.RandomState(1).standard_normal((150, 2))
    X = RefinedSolver(gaussian(150, 0.1).astype(np.float32))(B[:, [0, 1, 0]])
    np.testing.assert_allclose(X[:, 0], X[:, 2], rtol=1e-9)
    np.testing.assert_allclose(gaussian(150, 0.1) @ X[:, 1], B[:, 1], atol=1e-3)


@pytest.mark.parametrize("tile", [16, 1024])
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_the_diagonal_of_the_inverse_is_that_of_double_precision(ridge, tile, monkeypatch):
    monkeypatch.setattr(_refined, "_TILE", tile)
    K = gaussian(150, ridge)
    solve = RefinedSolver(K.astype(np.float32))
    solve(np.ones((150, 1)))
    own = solve.inverse_diagonal()
    assert own.dtype == np.float64
    np.testing.assert_allclose(own, np.diag(np.linalg.inv(K)), rtol=3e-6 / ridge + 1e-4)


@pytest.mark.parametrize("width", [0.3, 3.0])
def test_the_diagonal_of_the_inverse_does_without_the_shift_of_the_factor(width):
    """The shift is a seventh of the ridge here, and what it changes goes by the kernel's width."""
    X = np.random.RandomState(0).standard_normal((600, 3))
    D2 = np.sum((X[:, None] - X) ** 2, axis=-1)
    K = np.exp(-D2 / (2 * width**2)) + 1e-4 * np.eye(600)
    solve = RefinedSolver(K.astype(np.float32))
    solve(np.ones((600, 1)))
    own = solve.inverse_diagonal()
    expected = np.diag(np.linalg.inv(K))
    assert np.linalg.norm(own - expected) < 3e-2 * np.linalg.norm(expected)


def test_a_matrix_that_is_clearly_positive_needs_no_shift(monkeypatch):
    monkeypatch.setattr(_refined, "_TERMS", None)  # it may not be needed
    K = gaussian(150, 0.01)
    solve = RefinedSolver(K.astype(np.float32), 0.01)
    X = solve(np.ones((150, 1)))
    np.testing.assert_allclose(K @ X, 1.0, atol=1e-3)
    np.testing.assert_allclose(solve.inverse_diagonal(), np.diag(np.linalg.inv(K)), rtol=1e-4)


def test_a_wrong_lowest_eigenvalue_is_found_out():
    K = gaussian(150, 0.1)
    K -= (np.linalg.eigvalsh(K)[0] + 1e-5) * np.eye(150)
    B = K @ np.ones((150, 1))
    X = RefinedSolver(K.astype(np.float32), 0.1)(B)
    np.testing.assert_allclose(K @ X, B, atol=1e-2)


def test_a_singular_matrix_is_solved_on_its_range():
    K = gaussian(60, 0.1)
    K = np.kron(K, np.ones((2, 2)))  # every point twice
    B = np.repeat(np.random.RandomState(1).standard_normal((60, 2)), 2, axis=0)
    X = RefinedSolver(K.astype(np.float32))(B)
    np.testing.assert_allclose(K @ X, B, atol=1e-3 * np.abs(B).max())


def test_a_factor_that_fails_is_begun_again_with_the_whole_matrix(monkeypatch):
    monkeypatch.setattr(_refined, "_TILE", 16)
    K = gaussian(50, 1e-4)
    lowest = np.linalg.eigvalsh(K)[0]
    K -= (lowest + 1e-4) * np.eye(50)  # a little below zero: the first shift is too small
    held = K.astype(np.float32)
    least = 4 * np.sqrt(50) * np.finfo(np.float32).eps
    factor = _refined._factor(held, held.diagonal().copy(), 0.0, least)
    L = np.tril(factor)
    np.testing.assert_allclose(L @ L.T, K, atol=2e-2)
    np.testing.assert_array_equal(np.tril(held, -1), np.tril(K.astype(np.float32), -1))


def test_a_matrix_with_a_clearly_negative_eigenvalue_is_refused():
    K = gaussian(40, 0.1) - 3.0 * np.eye(40)
    with pytest.raises(linalg.LinAlgError, match="positive semi-definite"):
        RefinedSolver(K.astype(np.float32))(np.ones((40, 1)))


def test_points_that_almost_coincide_leave_a_solution_of_a_finite_size():
    # Their ridge is a narrow Gaussian, which they share: with other labels, no small solution fits.
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 3))
    X[150:] = X[:150] + 1e-5 * rng.standard_normal((150, 3))
    D2 = np.sum((X[:, None] - X) ** 2, axis=-1)
    K = np.exp(-D2) + np.exp(-D2 / 2e-2)
    B = rng.standard_normal((300, 2))
    held = K.astype(np.float32)
    found = RefinedSolver(held.copy())(B)
    added = 4 * np.sqrt(300) * np.finfo(np.float32).eps * 2.0
    expected = np.linalg.solve(K + added * np.eye(300), B)
    assert np.linalg.norm(found) < 1.1 * np.linalg.norm(expected)
    left = B - held.astype(np.float64) @ found - added * found
    assert np.linalg.norm(left) < 0.1 * np.linalg.norm(B)


def test_equations_that_are_not_solved_are_refused():
    with pytest.raises(linalg.LinAlgError, match="does not find"):
        RefinedSolver(gaussian(40, 0.1).astype(np.float32), max_iter=0)(np.ones((40, 1)))
