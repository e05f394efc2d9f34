"""Sparse points: every space and kernel that takes them, in both precisions and formats."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import cosine_similarity

from kernelmetric import DNE, KPCA, Kernelized, Nystroem
from kernelmetric.kernels import RBF, Cosine, Linear, Rescaled
from kernelmetric.selection import KernelAlignment

SPACES = [
    KPCA(4, solver="randomized", random_state=0),
    Nystroem(12, landmarks="uniform", random_state=0),
]
KERNELS = [RBF() + Linear(), Rescaled(RBF(gamma=0.5), np.array([1.0, 0.5, 2.0, 1.0]))]
KERNELS += [Rescaled(RBF(gamma=0.5), np.array([[1.0, 0.5, 2.0, 1.0], [0.0, 1.0, 0.0, -1.0]]))]
FORMATS = [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array]


def some_zeros(X):
    return np.where(np.abs(X) > 0.5, X, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_what_was_fitted_sparse_is_transformed_sparse(registry, labelled, fresh, dtype):
    X, y = some_zeros(labelled[0]).astype(dtype), labelled[1]
    new = some_zeros(fresh).astype(dtype)
    n_fits = 0
    for space in registry.spaces[::2] + SPACES:
        for kernel in registry.kernels + KERNELS:
            if not kernel.accepts_sparse:
                continue
            made = FORMATS[n_fits % len(FORMATS)]
            fitted = clone(space).set_params(kernel=clone(kernel))
            try:
                Z = fitted.fit_transform(made(X), y)
            except ValueError as error:
                assert "RandomFeatures expected" in str(error)  # they exist for some kernels only
                continue
            n_fits += 1
            scale = np.abs(Z).max()
            atol = (1e-6 if dtype == np.float64 else 5e-2) * scale
            assert Z.dtype == dtype
            for other in (sparse.csr_matrix, sparse.csc_array):
                again = fitted.transform(other(X))
                assert again.dtype == dtype
                np.testing.assert_allclose(again, Z, atol=atol, err_msg=f"{fitted!r}")
            dense = fitted.transform(new)
            np.testing.assert_allclose(fitted.transform(FORMATS[0](new)), dense, atol=atol)
            # The other precision is taken too.
            other = np.float32 if dtype == np.float64 else np.float64
            assert fitted.transform(FORMATS[2](new.astype(other))).dtype == other
    assert n_fits > 40


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_single_precision_gives_the_distances_of_dense_points(dtype, labelled):
    X, y = some_zeros(labelled[0]).astype(dtype), labelled[1]
    dense = Kernelized(DNE(2), RBF(gamma=0.3)).fit(X, y)
    rows = sparse.csr_array(X)
    D = Kernelized(DNE(2), RBF(gamma=0.3)).fit(rows, y).pairwise_distances(rows)
    expected = dense.pairwise_distances(X)
    np.testing.assert_allclose(D, expected, atol=2e-2 * expected.max())


@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("landmarks", ["auto", "uniform", "rpcholesky"])
def test_a_matrix_of_zeros_is_refused_in_a_sentence(made, landmarks):
    X = made((20, 5))
    for kernel in ("linear", "cosine", "rbf"):
        with pytest.raises(ValueError, match="Got 20 points that coincide"):
            Nystroem(6, landmarks=landmarks, kernel=kernel, random_state=0).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_the_cosine_of_sparse_points_is_that_of_dense_ones(dtype, scale, labelled):
    X = some_zeros(labelled[0])
    X[3] = 0.0
    rows = sparse.csr_array((X * scale).astype(dtype))
    atol = 1e-12 if dtype == np.float64 else 1e-6
    expected = cosine_similarity(X)
    np.testing.assert_allclose(Cosine()(rows), expected, atol=atol)
    np.testing.assert_allclose(Cosine()(rows, rows[:4]), expected[:, :4], atol=atol)
    np.testing.assert_allclose(Cosine().diag(rows), np.diag(expected), atol=atol)


def test_the_squares_of_huge_sparse_points_stay_in_range(labelled):
    X = some_zeros(labelled[0])
    D = pairwise_distances(KPCA(kernel="cosine").fit_transform(sparse.csr_array(X)))
    huge = KPCA(kernel="cosine").fit_transform(sparse.csr_array(1e200 * X))
    np.testing.assert_allclose(pairwise_distances(huge), D, atol=1e-7)


def test_weights_are_learned_from_sparse_single_precision(labelled):
    X, y = labelled
    rows = sparse.csr_array(some_zeros(X).astype(np.float32))
    space = KPCA(kernel=KernelAlignment([RBF(), Linear()], centered=True)).fit(rows, y)
    assert space.transform(rows).dtype == np.float32
