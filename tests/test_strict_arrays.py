"""Spaces and learners on arrays that obey the array API standard and nothing beyond it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from kernelmetric import LDA, Kernelized, TransductiveDistance, load, save
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions import class_neighbors, lmnn_hinge, nca_loss
from kernelmetric.kernels import RBF, Delta, FunctionKernel, Precomputed, Rescaled
from kernelmetric.selection import RidgeKPCA
from kernelmetric.spaces import KPCA, Nystroem, RandomFeatures
from tested_learners import weighable

xs = pytest.importorskip("array_api_strict")

MORE_SPACES = [
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


@pytest.mark.every(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_space_takes_strict_arrays(space, dtype, labelled, fresh):
    check(space, RBF(gamma=0.3), labelled[0].astype(dtype), fresh.astype(dtype))


@pytest.mark.parametrize("other", MORE_SPACES, ids=repr)
def test_every_solver_takes_strict_arrays(other, labelled, fresh):
    check(other, RBF(gamma=0.3), labelled[0], fresh)


@pytest.mark.every(3)
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


WEIGHED = [
    *(
        clone(a).set_params(**({"max_iter": 5} if "max_iter" in a.get_params() else {}))
        for a in {type(a): a for a in reversed(weighable())}.values()  # the first of each
        if a.learns_from in ("labels", "points", "targets")
    ),
    KPCA(5, kernel=RBF(gamma=0.3)),
    Nystroem(12, kernel=RBF(gamma=0.3), random_state=0),
    RandomFeatures(50, kernel=RBF(gamma=0.3), random_state=0),
    RidgeKPCA(5, kernel=RBF(gamma=0.3)),
    RidgeKPCA(5, kernel=RBF(gamma=0.3) + 0.1 * Delta()),
    Kernelized(LDA()),
    TransductiveDistance(graph="neighbors", n_neighbors=5, n_components=4, lam=1000.0),
    TransductiveDistance(graph="gaussian", n_components=4, lam=1000.0),
]


@pytest.mark.every(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Got .* class.es. with at most")
@pytest.mark.filterwarnings("ignore:.* eigenvectors live on the")
@pytest.mark.parametrize("weighed", [False, True], ids=["plain", "weighed"])
@pytest.mark.parametrize("estimator", WEIGHED, ids=repr)
def test_every_estimator_learns_the_same_from_strict_arrays(estimator, weighed, labelled):
    X, y = labelled
    if isinstance(estimator, TransductiveDistance):
        y = np.where(np.arange(len(y)) % 5 < 3, y, -1)
    elif getattr(estimator, "learns_from", "") == "targets":
        y = X[:, 0] + np.sin(3 * X[:, 1])
    weights = {"sample_weight": 1.0 + np.arange(len(X)) % 3} if weighed else {}
    here = clone(estimator).fit(X, y, **weights).transform(X)
    there = clone(estimator).fit(xs.asarray(X), y, **weights).transform(xs.asarray(X))
    D = pairwise_distances(here)
    np.testing.assert_allclose(pairwise_distances(np.asarray(there)), D, atol=1e-5 * D.max())


@pytest.mark.parametrize("metric", [LDA(), Kernelized(LDA(), kernel="rbf")], ids=repr)
def test_what_learned_from_strict_arrays_is_saved(metric, labelled, tmp_path):
    X, y = labelled
    fitted = metric.fit(xs.asarray(X), y)
    expected = np.asarray(fitted.transform(xs.asarray(X)))
    found = load(save(fitted, tmp_path / "a.km")).transform(X)
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("wrap", [np.asarray, xs.asarray], ids=["numpy", "strict"])
def test_a_solver_has_the_diagonal_of_the_inverse(wrap, monkeypatch):
    monkeypatch.setattr("kernelmetric.compute.backends._refined._TILE", 7)
    B = np.random.RandomState(0).standard_normal((30, 40))
    A = B @ B.T
    copy = wrap(A.copy())
    solve = backend_of(copy).positive_solver(copy)
    np.testing.assert_allclose(solve(B[:, :2]), np.linalg.solve(A, B[:, :2]), rtol=1e-9)
    np.testing.assert_allclose(solve.inverse_diagonal(), np.diag(np.linalg.inv(A)), rtol=1e-9)


def test_a_matrix_that_is_not_positive_has_no_solver():
    A = np.diag([1.0, 2.0, 4.0])
    solver_of = backend_of(xs.asarray(A)).positive_solver
    np.testing.assert_allclose(solver_of(xs.asarray(A))(np.ones((3, 1)))[:, 0], [1, 0.5, 0.25])
    with pytest.raises(np.linalg.LinAlgError):
        solver_of(xs.asarray(-A))
