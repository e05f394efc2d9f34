"""Spaces on arrays that obey the array API standard and nothing beyond it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from kernelmetric.compute import class_neighbors, lmnn_hinge, nca_loss
from kernelmetric.kernels import RBF, FunctionKernel, Precomputed, Rescaled
from kernelmetric.spaces import KPCA, Nystroem

xs = pytest.importorskip("array_api_strict")

MORE_SPACES = [
    KPCA(4, solver="lanczos", random_state=0),
    KPCA(4, solver="randomized", random_state=0),
    Nystroem(12, landmarks="uniform", random_state=0),
    Nystroem(12, landmarks="rpcholesky", random_state=0),
]


def check(space, kernel, X, new):
    space = clone(space).set_params(kernel=clone(kernel))
    try:
        expected = clone(space).fit(X).transform(new)
    except ValueError as error:
        assert "RandomFeatures expected" in str(error)  # they exist for some kernels only
        return
    points = xs.asarray(X)
    fitted = clone(space)
    Z = fitted.fit_transform(points)
    assert isinstance(Z, type(points))
    found = fitted.transform(xs.asarray(new))
    assert isinstance(found, type(points))
    assert str(found.dtype).endswith(str(X.dtype))
    D = pairwise_distances(expected)
    atol = (1e-6 if X.dtype == np.float64 else 2e-2) * D.max()
    np.testing.assert_allclose(pairwise_distances(np.asarray(found)), D, atol=atol)
    # Fitted there, applied here.
    assert isinstance(fitted.transform(new), np.ndarray)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_space_takes_strict_arrays(space, dtype, labelled, fresh):
    check(space, RBF(gamma=0.3), labelled[0].astype(dtype), fresh.astype(dtype))


@pytest.mark.parametrize("other", MORE_SPACES, ids=repr)
def test_every_solver_takes_strict_arrays(other, labelled, fresh):
    check(other, RBF(gamma=0.3), labelled[0], fresh)


def test_every_kernel_takes_strict_arrays(kernel, labelled, fresh):
    check(KPCA(), kernel, labelled[0], fresh)


def test_functions_and_gram_matrices_may_be_strict_arrays(labelled, fresh):
    X, _ = labelled
    gram = RBF(gamma=0.3)
    check(KPCA(), FunctionKernel(lambda a, b: a @ b.T), X, fresh)
    check(KPCA(), Rescaled(gram, np.ones(4)), X, fresh)
    check(KPCA(), Rescaled(gram, np.eye(4)[:3]), X, fresh)
    check(KPCA(), Precomputed(), gram(X), gram(fresh, X))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_sums_over_all_pairs_are_those_of_numpy(smoothing, labelled):
    X, y = labelled
    order = np.argsort(y, kind="stable")
    X, y = X[order], np.r_[y[order][:-1], y.max() + 1]  # the last point has no target neighbour
    targets = class_neighbors(X, y, 3, same=True)[0]
    assert np.any(targets < 0)
    L = np.random.RandomState(0).standard_normal((2, X.shape[1]))
    points, E = xs.asarray(X), X @ L.T
    for found, expected in (
        (nca_loss(xs.asarray(L), points, y), nca_loss(L, X, y)),
        (
            lmnn_hinge(points, points, targets, y, 0.7, smoothing),
            lmnn_hinge(X, X, targets, y, 0.7, smoothing),
        ),
        (
            lmnn_hinge(xs.asarray(E), points, targets, y, 0.7, smoothing),
            lmnn_hinge(E, X, targets, y, 0.7, smoothing),
        ),
    ):
        assert found[0] == pytest.approx(expected[0], rel=1e-10)
        scale = np.abs(expected[1]).max()
        np.testing.assert_allclose(np.asarray(found[1]), expected[1], atol=1e-10 * scale)
