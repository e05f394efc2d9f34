"""Rounding is no property of the data: what centring leaves of identical points blames no kernel.

Every machine rounds a product of matrices in its own way, so these tests bring their own rounding:
symmetric noise of a few eps in the Gram matrix.
"""

import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import DNE, KPCA, Kernelized, KernelTrick, Nystroem, memory_budget
from kernelmetric.kernels import FunctionKernel, Linear, Precomputed
from kernelmetric.selection import KernelAlignment
from kernelmetric.spaces import RandomFeatures

SPACES = [
    KPCA(),
    KPCA(3),
    KPCA(0.9),
    KPCA(3, solver="randomized", random_state=0),
    Nystroem(12, landmarks="uniform", random_state=0),
    Nystroem(12, landmarks="rpcholesky", random_state=0),
    Nystroem(1000),
]


def noisy(K, n_eps=4.0, seed=0):
    """K with symmetric errors of up to some eps of its largest entry, as a BLAS may leave them."""
    n = len(K)
    noise = np.random.RandomState(seed).uniform(-1, 1, (n, n))
    # Tiles are rounded alike: half of the errors come in blocks.
    noise[: n // 2, n // 2 :] += 1.0
    noise = np.triu(noise) + np.triu(noise, 1).T
    eps = np.finfo(K.dtype).eps
    return (K + n_eps / 2 * eps * np.abs(K).max() * noise).astype(K.dtype)


@pytest.mark.every(3)
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 60])
@pytest.mark.parametrize("value", [0.04, 7e12])
def test_identical_points_coincide_however_their_gram_matrix_is_rounded(space, dtype, n, value):
    for seed in range(2):
        K = noisy(np.full((n, n), value, dtype), seed=seed)
        with pytest.raises(ValueError, match=rf"Got {n} points that coincide"):
            clone(space).set_params(kernel=Precomputed()).fit(K)


def test_identical_points_coincide_where_their_gram_matrix_is_not_held():
    K = noisy(np.full((60, 60), 0.04), seed=0)
    with memory_budget("10KB"), pytest.raises(ValueError, match="Got 60 points that coincide"):
        KPCA(2, kernel=Precomputed(), solver="randomized", random_state=0).fit(K)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_a_function_whose_values_are_rounded_blames_no_kernel(space):
    def product(A, B):
        i, j = np.arange(len(A))[:, None], np.arange(len(B))[None, :]
        return (A @ B.T) * (1 + 4 * np.finfo(float).eps * np.cos(3 * (i + j)))

    X = np.full((40, 4), 0.1)
    with pytest.raises(ValueError, match="Got 40 points that coincide"):
        clone(space).set_params(kernel=FunctionKernel(product)).fit(X)


@pytest.mark.every(3)
@pytest.mark.parametrize("n_features", [4, 2000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_identical_points_with_many_features_coincide(space, dtype, n_features):
    row = np.random.RandomState(0).uniform(0.05, 0.3, n_features)
    X = np.tile(row, (50, 1)).astype(dtype)
    for kernel in ("linear", "poly", "cosine", "rbf"):
        with pytest.raises(ValueError, match="Got 50 points that coincide"):
            clone(space).set_params(kernel=kernel).fit(X)


def test_random_features_of_identical_points_coincide():
    with pytest.raises(ValueError, match="Got 30 points that coincide"):
        RandomFeatures(50, random_state=0).fit(np.full((30, 4), 0.1))


@pytest.mark.parametrize("n_eps", [0.0, 4.0])
def test_the_kernel_trick_takes_the_rounded_gram_matrix_of_identical_points(n_eps):
    space = KernelTrick(Precomputed()).fit(noisy(np.full((30, 30), 0.04), n_eps))
    assert space.rank_ == 1
    assert len(space.eigenvalues_) == 0  # nothing is left when it is centred


def test_identical_points_are_refused_by_what_is_built_on_spaces(labelled):
    _, y = labelled
    K = noisy(np.full((30, 30), 0.04))
    with pytest.raises(ValueError, match="Got 30 points that coincide"):
        Kernelized(DNE(2), "precomputed").fit(K, y)


@pytest.mark.parametrize(
    ("solver", "share"), [("dense", 1e-5), ("dense", 0.3), ("randomized", 0.3)]
)
@pytest.mark.parametrize("shift", [0.0, 1.0, 100.0])
def test_an_indefinite_kernel_is_still_refused(solver, share, shift):
    """Also where a constant, which centring forgets, makes the values large."""
    rng = np.random.RandomState(0)
    A = rng.randn(60, 59)
    Q, _ = np.linalg.qr(A - A.mean(axis=0))
    values = np.linspace(0, 1, 59)
    values[0] = -share
    K = (Q * values) @ Q.T + shift
    space = KPCA(5, kernel="precomputed", solver=solver, random_state=0)
    with pytest.raises(ValueError, match="smallest eigenvalue is -"):
        space.fit((K + K.T) / 2)


def test_far_points_that_differ_by_rounding_alone_are_no_directions():
    X = 1e8 + np.random.RandomState(0).randn(30, 3)
    with pytest.raises(ValueError, match="Got 30 points that coincide"):
        KPCA(2, kernel="linear", solver="randomized", random_state=0).fit(1e9 * np.ones((30, 3)))
    assert KPCA(kernel="rbf").fit(X).rank_ > 3  # a radial kernel sees the differences


def test_constant_columns_are_aligned_without_blame(labelled):
    X, y = labelled
    X = np.column_stack([X, np.full(30, 3.0)])
    aligned = KernelAlignment([Linear(), "rbf", "poly"], centered=True).bind(X, y)
    assert np.isfinite(aligned.weights_).all()
    assert KPCA(kernel=aligned).fit(X).rank_ >= 4
