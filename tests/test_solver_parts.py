"""The parts of eigenvectors, non-negative programs and L-BFGS, each on its own."""

import re
import warnings

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy import linalg, sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from kernelmetric.solvers import _leading_eigenvectors as leading
from kernelmetric.solvers import (
    _nonnegative,
    minimize_lbfgs,
    right_singular,
    smallest_eigenvectors,
)
from kernelmetric.solvers import _smallest_eigenvectors as spectral

# --- eigenvectors -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array, aslinearoperator])
@pytest.mark.parametrize("with_null", [False, True])
def test_a_small_matrix_of_any_form_gives_the_eigenvectors_of_lapack(form, with_null):
    A = np.random.RandomState(0).standard_normal((20, 20))
    A = A + A.T
    null = np.ones(20) if with_null else None
    found = smallest_eigenvectors(form(A), 5, null=null, random_state=0)
    H = np.eye(20) - with_null / 20
    values = np.linalg.eigvalsh(H @ A @ H + with_null * 100.0 / 20)
    np.testing.assert_allclose(found.values, values[:5], atol=1e-10)
    assert found.converged


@pytest.mark.parametrize("size", [1e-4, 1e4])
def test_a_warning_counts_the_eigenvectors_beyond_the_tolerance(size):
    n, k = 1100, 12
    A = sparse.diags_array(size * np.linspace(-1.0, 1.0, n)).tocsr()
    start = np.eye(n)[:, :5]  # five eigenvectors, and nothing of the others
    with pytest.warns(ConvergenceWarning) as seen:
        found = smallest_eigenvectors(A, k, start=start, max_iter=1, random_state=0)
    beyond = int(np.sum(found.residuals > 1e-6 * size))
    said = re.match(r"(\d+) of (\d+) .* the largest (\S+) of the", str(seen[0].message))
    assert 0 < beyond < k
    assert (int(said[1]), int(said[2])) == (beyond, k)
    largest = found.residuals.max() / size  # the scale is a bound of the largest eigenvalue
    assert 0.4 * largest < float(said[3]) < 1.1 * largest


@pytest.mark.parametrize(
    ("diagonal", "interval"),
    [([1.0, 1.0, -1.0, -1.0], (-1.0, 1.0)), ([3.0, 3.0, 3.0, 3.0], (3.0, 3.0))],
)
def test_an_invariant_subspace_does_not_spoil_the_interval(diagonal, interval):
    A = leading.OnSubspace(lambda V: np.diag(diagonal) @ V, lambda V: V, 4)
    np.testing.assert_allclose(leading.ritz_interval(A, np.full((4, 1), 0.5)), interval)


def test_the_interval_holds_the_spectrum():
    for seed in range(5):
        rng = np.random.RandomState(seed)
        values = np.r_[-3.0, rng.uniform(-1, 2, 60), 7.0]
        A = leading.OnSubspace(lambda V, values=values: values[:, None] * V, lambda V: V, 62)
        lowest, upper = leading.ritz_interval(A, rng.standard_normal((62, 1)))
        assert 7.0 <= upper < 10.0
        assert -3.0 - 1e-9 <= lowest < -2.0


def search_of(values, k=3, width=4):
    """A Davidson search on a diagonal matrix after its first block."""
    A = np.diag(values)
    rng = np.random.RandomState(0)
    multiply = spectral.Deflated(A, np.empty((len(values), 0)))
    search = spectral.Davidson(A, multiply, k, width, k + spectral.GUARD + 4 * width, rng)
    search._grow(search._random(width))
    search._rotate()
    return search


def chebyshev_of(search, values, degree):
    """T_d on the spectrum, with the part beyond the edge moved to [-1, 1]."""
    edge = search._edge()
    center, half = (search.upper + edge) / 2, (search.upper - edge) / 2
    return lambda x: chebyshev.chebval((x - center) / half, np.eye(degree + 1)[degree])


def cosines(A, B):
    return np.abs(np.sum(A * B, axis=0)) / np.linalg.norm(A, axis=0) / np.linalg.norm(B, axis=0)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_the_filter_is_a_chebyshev_polynomial_without_the_part_along_the_vector(
    monkeypatch, degree
):
    values = np.linspace(0.0, 10.0, 80)
    search = search_of(values)
    monkeypatch.setattr(spectral, "_DEGREE", degree)
    monkeypatch.setattr(spectral, "_LARGEST", 1e300)  # so that the degree is the largest
    chosen = np.arange(3)
    T = chebyshev_of(search, values, degree)
    ritz = search.V[:, : search.m] @ search.S[:, chosen]
    wanted = T(values)[:, None] * ritz - ritz * T(search.theta[chosen])
    found = search._filter(search._residuals(chosen), search.theta[chosen])
    np.testing.assert_allclose(cosines(found, wanted), 1.0, atol=1e-5)


def test_random_vectors_pass_the_filter_as_they_are(monkeypatch):
    values = np.linspace(0.0, 10.0, 80)
    search = search_of(values)
    monkeypatch.setattr(spectral, "_DEGREE", 0.4)  # ten times as many for random vectors
    monkeypatch.setattr(spectral, "_LARGEST", 1e300)
    R = np.random.RandomState(1).standard_normal((80, 2))
    wanted = chebyshev_of(search, values, 4)(values)[:, None] * R
    np.testing.assert_allclose(cosines(search._filter(R, None), wanted), 1.0, atol=1e-5)


def test_the_filter_stays_below_what_single_precision_shows():
    values = np.r_[-1e4, np.linspace(0.0, 10.0, 79)]  # T_10 would be 1e30 at the first
    search = search_of(values)
    search._grow(np.eye(80)[:, :1])
    search._rotate()
    block = search._filter(np.random.RandomState(1).standard_normal((80, 2)), None)
    assert np.all(np.isfinite(block))
    assert np.abs(block).max() < 1e7


def test_where_nothing_lies_beyond_the_edge_nothing_is_filtered():
    search = search_of(np.linspace(0.0, 10.0, 80))
    search.upper = search._edge()
    R = np.random.RandomState(1).standard_normal((80, 2))
    np.testing.assert_array_equal(search._filter(R, None), R)


# --- non-negative programs ----------------------------------------------------------------------


@pytest.mark.parametrize("rank", [2, 5])
def test_the_root_of_a_program_squares_to_it(rank):
    rng = np.random.RandomState(0)
    F = rng.standard_normal((rank, 5))
    S, b = F.T @ F, F.T @ rng.standard_normal(rank)
    A, c = _nonnegative._square_root(S, b)
    assert A.shape == (rank, 5)
    np.testing.assert_allclose(A.T @ A, S, atol=1e-10)
    np.testing.assert_allclose(A.T @ c, b, atol=1e-10)


# --- L-BFGS -------------------------------------------------------------------------------------


@pytest.mark.parametrize("steep", [1.0, 1e200])
def test_lbfgs_that_hoped_for_more_than_all_numbers_comes_back(steep):
    def objective(x):
        value = steep * float(np.sum(x))
        return (value, np.full_like(x, steep)) if x.min() > 0.5 else (np.nan, x * np.nan)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = minimize_lbfgs(objective, np.full((1, 2), 1.0), max_iter=20, tol=1e-9)
    assert not found.converged
    assert np.all(found.x > 0.5)
    assert found.value == pytest.approx(steep * float(np.sum(found.x)))
    assert found.value <= 2.0 * steep


def test_singular_vectors_are_found_where_divide_and_conquer_fails(monkeypatch):
    A = np.random.RandomState(0).randn(6, 4)
    s, Vt = right_singular(A)
    original = linalg.svd

    def failing(A, **options):
        if options.get("lapack_driver") != "gesvd":
            raise linalg.LinAlgError("SVD did not converge")
        return original(A, **options)

    monkeypatch.setattr(linalg, "svd", failing)
    again, rows = right_singular(A)
    np.testing.assert_allclose(again, s, rtol=1e-12)
    np.testing.assert_allclose(np.abs(rows), np.abs(Vt), atol=1e-12)
    np.testing.assert_allclose((Vt.T * s**2) @ Vt, A.T @ A, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_depend_on_each_other_become_fewer_that_span_as_much(dtype):
    B = np.random.RandomState(0).standard_normal((50, 4)).astype(dtype)
    assert leading._independent(B) is B
    depends = np.hstack([B, 3.0 * B[:, :1] - B[:, 1:2], np.zeros((50, 1))]).astype(dtype)
    fewer = leading._independent(depends)
    assert fewer.shape == (50, 4)
    rest = B - fewer @ np.linalg.lstsq(fewer, B, rcond=None)[0]
    assert np.abs(rest).max() < 1e-4
