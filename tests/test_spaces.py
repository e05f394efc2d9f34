"""Spaces: the theorems about coordinates, the solvers, and what they refuse."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import chi2_kernel, euclidean_distances
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric.compute import memory_budget
from kernelmetric.kernels import (
    RBF,
    Cosine,
    Delta,
    FunctionKernel,
    Laplacian,
    Linear,
    PairwiseKernel,
    Polynomial,
    Precomputed,
)
from kernelmetric.spaces import KPCA, Gram, KernelTrick, Nystroem, RandomFeatures
from tested_learners import not_repeated_rows

KERNELS = [
    RBF(),
    RBF() + 0.1 * Delta(),
    Laplacian(),
    Polynomial(),
    Linear(),
    Cosine(),
    RBF(gamma=0.3) * Polynomial(),
    PairwiseKernel("chi2"),
    FunctionKernel(lambda a, b: np.minimum(a, b).sum()),
]
SPACES = [
    KPCA(),
    KPCA(5),
    KPCA(0.9),
    KPCA(5, solver="randomized", random_state=0),
    Nystroem(20, random_state=0),
    Nystroem(20, landmarks="uniform", random_state=0),
    Nystroem(20, landmarks="rpcholesky", n_components=6, random_state=0),
    RandomFeatures(200, random_state=0),
    KernelTrick(),
]


def centred(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


@pytest.fixture(scope="module")
def X():
    return np.random.RandomState(0).uniform(0.1, 2.0, size=(60, 4))


@pytest.fixture(scope="module")
def X_new():
    return np.random.RandomState(1).uniform(0.1, 2.0, size=(11, 4))


@pytest.mark.every(3)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("space", [KPCA(), Nystroem(1000)])
def test_full_rank_coordinates_reproduce_the_centred_gram_matrix(space, kernel, X):
    space = clone(space).set_params(kernel=kernel)
    Z = space.fit_transform(X)
    K = space.kernel_(X)
    np.testing.assert_allclose(Z @ Z.T, centred(K), atol=1e-8 * K.max())
    assert space.explained_variance_ratio_ == pytest.approx(1.0, abs=1e-8)
    assert Z.shape == (60, space.rank_)


@pytest.mark.parametrize("kernel", KERNELS)
def test_full_rank_coordinates_preserve_distances(kernel, X):
    space = KPCA(kernel=kernel).fit(X)
    K = space.kernel_(X)
    expected = np.diag(K)[:, None] + np.diag(K)[None, :] - 2 * K
    Z = space.transform(X)
    np.testing.assert_allclose(euclidean_distances(Z, squared=True), expected, atol=1e-8 * K.max())


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_landmarks_give_the_distances_of_full_rank(kernel, X, X_new):
    full = KPCA(kernel=kernel).fit(X).transform(X_new)
    landmarks = Nystroem(60, kernel=kernel).fit(X).transform(X_new)
    np.testing.assert_allclose(euclidean_distances(landmarks), euclidean_distances(full), atol=1e-6)


@pytest.mark.parametrize("solver", ["dense", "randomized"])
def test_kpca_is_scikit_learns_kernel_pca(solver, X, X_new):
    ours = KPCA(6, kernel=RBF(gamma=0.5), solver=solver, random_state=0)
    theirs = KernelPCA(6, kernel="rbf", gamma=0.5).fit(X)
    Z = ours.fit_transform(X)
    expected = theirs.transform(X)
    signs = np.sign((Z * expected).sum(axis=0))
    np.testing.assert_allclose(Z, expected * signs, atol=1e-7)
    np.testing.assert_allclose(ours.transform(X_new), theirs.transform(X_new) * signs, atol=1e-7)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("space", SPACES)
def test_transform_of_training_points_is_fit_transform(space, X):
    space = clone(space)
    Z = space.fit_transform(X)
    np.testing.assert_allclose(space.transform(X), Z, atol=1e-7)
    np.testing.assert_allclose(clone(space).fit(X).transform(X), Z, atol=1e-7)


@pytest.mark.parametrize("space", SPACES)
def test_rows_one_by_one_equal_the_batch(space, X, X_new):
    space = clone(space).fit(X)
    rows = np.vstack([space.transform(x[None, :]) for x in X_new])
    np.testing.assert_allclose(rows, space.transform(X_new), atol=1e-7)


@pytest.mark.parametrize("space", [KPCA(), KPCA(5), KPCA(0.9), KernelTrick()])
def test_permuting_rows_permutes_the_distances(space, X):
    order = np.random.RandomState(0).permutation(len(X))
    Z = clone(space).fit_transform(X)
    permuted = clone(space).fit_transform(X[order])
    np.testing.assert_allclose(
        euclidean_distances(permuted), euclidean_distances(Z[order]), atol=1e-7
    )


@pytest.mark.parametrize("space", SPACES)
def test_a_small_memory_budget_changes_nothing(space, X, X_new):
    reference = clone(space).fit(X)
    with memory_budget("20KB"):
        blocked = clone(space).fit(X)
        Z = blocked.transform(X_new)
    np.testing.assert_allclose(
        euclidean_distances(Z), euclidean_distances(reference.transform(X_new)), atol=1e-7
    )


def test_the_gram_matrix_is_recomputed_in_blocks_where_it_does_not_fit():
    X = np.random.RandomState(0).randn(700, 3)
    expected = KPCA(8, solver="dense").fit(X)
    with memory_budget("1MB"):
        space = KPCA(8, random_state=0).fit(X)
        Z = space.transform(X[:50])
    assert space.solver_ == "randomized"
    np.testing.assert_allclose(space.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(Z, expected.transform(X[:50]), atol=1e-6)
    assert space.explained_variance_ratio_ == pytest.approx(expected.explained_variance_ratio_)


@pytest.mark.every(3)
@pytest.mark.parametrize("n_components", [12, 0.9, 0.999])
def test_the_solvers_agree(n_components):
    X = np.random.RandomState(0).randn(600, 4)
    spaces = [
        KPCA(n_components, solver=solver, random_state=0).fit(X)
        for solver in ("dense", "randomized")
    ]
    reference = spaces[0].transform(X[:30])
    for space in spaces[1:]:
        assert space.rank_ == spaces[0].rank_
        np.testing.assert_allclose(space.eigenvalues_, spaces[0].eigenvalues_, rtol=1e-6)
        np.testing.assert_allclose(space.transform(X[:30]), reference, atol=1e-4)
        assert space.explained_variance_ratio_ == pytest.approx(
            spaces[0].explained_variance_ratio_, abs=1e-8
        )


def test_an_iterative_solver_finds_no_more_than_the_rank():
    X = np.random.RandomState(0).randn(600, 3)
    space = KPCA(20, kernel="linear", random_state=0).fit(X)
    assert space.solver_ == "randomized"
    assert space.rank_ == 3
    Z = space.transform(X)
    np.testing.assert_allclose(Z @ Z.T, centred(X @ X.T), atol=1e-9)


def test_auto_chooses_by_size():
    X = np.random.RandomState(0).randn(600, 3)
    assert KPCA().fit(X).solver_ == "dense"
    assert KPCA(5).fit(X[:400]).solver_ == "dense"
    assert KPCA(300).fit(X).solver_ == "dense"
    assert KPCA(5).fit(X).solver_ == "randomized"


@pytest.mark.parametrize("space", [KPCA(), Nystroem(30, random_state=0), KernelTrick()])
def test_a_precomputed_kernel_gives_the_coordinates_of_its_points(space, X, X_new):
    kernel = RBF(gamma=0.4)
    on_points = clone(space).set_params(kernel=kernel)
    on_matrix = clone(space).set_params(kernel="precomputed")
    if isinstance(space, Nystroem):
        on_points.set_params(landmarks="rpcholesky")
    K, K_new = kernel(X), kernel(X_new, X)
    before = K.copy()
    Z = on_matrix.fit_transform(K)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_allclose(
        euclidean_distances(Z), euclidean_distances(on_points.fit_transform(X)), atol=1e-6
    )
    np.testing.assert_allclose(
        euclidean_distances(on_matrix.transform(K_new)),
        euclidean_distances(on_points.transform(X_new)),
        atol=1e-6,
    )
    assert on_matrix.__sklearn_tags__().input_tags.pairwise
    assert not on_points.__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("space", SPACES)
def test_float32_stays_float32_and_is_close(space, X, X_new):
    if space.__class__ is Nystroem:
        space = clone(space).set_params(landmarks=X[:20])
    Z = clone(space).fit(X).transform(X_new)
    narrow = clone(space).fit(X.astype(np.float32))
    Z32 = narrow.transform(X_new.astype(np.float32))
    assert Z32.dtype == np.float32
    assert narrow.fit_transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(euclidean_distances(Z32), euclidean_distances(Z), atol=3e-3)


@pytest.mark.parametrize("space", SPACES)
def test_sparse_points_give_the_coordinates_of_dense_points(space, X, X_new):
    if space.__class__ is Nystroem:
        space = clone(space).set_params(landmarks=X[:20])
    dense = clone(space).fit(X).transform(X_new)
    result = clone(space).fit(sparse.csr_array(X)).transform(sparse.csr_array(X_new))
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(euclidean_distances(result), euclidean_distances(dense), atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("space", SPACES)
def test_torch_tensors_agree_with_numpy(space, X, X_new):
    torch = pytest.importorskip("torch")
    reference = clone(space).fit(X)
    fitted = clone(space).fit(torch.asarray(X))
    Z = fitted.transform(torch.asarray(X_new))
    assert isinstance(Z, torch.Tensor)
    expected = euclidean_distances(reference.transform(X_new))
    np.testing.assert_allclose(euclidean_distances(Z.numpy()), expected, atol=1e-6)
    single = clone(space).fit_transform(torch.asarray(X).float())
    assert single.dtype == torch.float32
    # Fitted here, applied there.
    np.testing.assert_allclose(euclidean_distances(fitted.transform(X_new)), expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.every(3)
@pytest.mark.parametrize("landmarks", ["kmeans", "uniform", "rpcholesky"])
def test_landmarks_keep_most_of_the_leading_variance(landmarks):
    X = np.random.RandomState(0).randn(1500, 5)
    best = KPCA(20).fit(X)
    space = Nystroem(150, n_components=20, landmarks=landmarks, random_state=0).fit(X)
    assert space.anchors_.shape == (150, 5)
    assert 0.93 < space.eigenvalues_.sum() / best.eigenvalues_.sum() <= 1 + 1e-9
    # Stated on the safe side of the truth.
    assert space.explained_variance_ratio_ <= best.explained_variance_ratio_ + 1e-9


def test_nystroem_streams_its_rows():
    X = np.random.RandomState(0).randn(3000, 4) + 100.0
    reference = Nystroem(50, random_state=0).fit(X)
    with memory_budget("300KB"):
        blocked = Nystroem(50, landmarks=reference.anchors_).fit(X)
        Z = blocked.transform(X)
    np.testing.assert_allclose(Z, reference.transform(X), atol=1e-6)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.diag(Z.T @ Z), blocked.eigenvalues_, rtol=1e-6)


def test_duplicate_points_are_no_obstacle_for_landmarks():
    X = np.repeat(np.random.RandomState(0).randn(8, 3), 10, axis=0)
    for landmarks in ("kmeans", "uniform", "rpcholesky"):
        space = Nystroem(30, landmarks=landmarks, random_state=0).fit(X)
        assert space.rank_ <= 7
        if landmarks != "uniform":
            Z = space.transform(X)
            np.testing.assert_allclose(Z @ Z.T, centred(space.kernel_(X)), atol=1e-6)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "kernel",
    [RBF(gamma=0.3), Laplacian(gamma=0.3), 0.7 * RBF(gamma=0.3) + 0.3 * Laplacian(gamma=0.5)],
)
def test_random_features_approach_the_kernel(kernel, X):
    expected = centred(kernel(X))
    errors = [
        np.abs(
            (Z := RandomFeatures(m, kernel=kernel, random_state=0).fit_transform(X)) @ Z.T
            - expected
        ).max()
        for m in (100, 10_000)
    ]
    assert errors[1] < 0.06
    assert errors[1] < errors[0] / 3


def test_the_kernel_trick_keeps_distances_through_its_gram_matrix(X):
    space = KernelTrick(RBF(gamma=0.5)).fit(X)
    Z = space.transform(X)
    K = RBF(gamma=0.5)(X)
    np.testing.assert_allclose(space.basis_gram_, K)
    np.testing.assert_allclose(Z, K, atol=1e-12)
    expected = np.sqrt(np.maximum(2 - 2 * K, 0))
    np.testing.assert_allclose(euclidean_distances(space.gram_.whiten(Z)), expected, atol=1e-4)
    full = KPCA(kernel=RBF(gamma=0.5)).fit(X)
    leading = full.eigenvalues_[:20]
    np.testing.assert_allclose(space.eigenvalues_[:20], leading, rtol=1e-8)


@pytest.mark.parametrize("singular", ["range", "ridge", "raw"])
def test_gram_solves_the_generalized_eigenproblem(singular):
    rng = np.random.RandomState(0)
    A, B = rng.randn(8, 8), rng.randn(8, 8)
    G, S = A @ A.T + np.eye(8), B + B.T
    values, U = Gram(G, singular, 1e-12).eigh(S)
    np.testing.assert_allclose(values, eigh(S, G, eigvals_only=True), atol=1e-8)
    np.testing.assert_allclose(S @ U, G @ U * values, atol=1e-8)
    np.testing.assert_allclose(np.abs(np.diag(U.T @ G @ U)), 1, atol=1e-8)
    W = Gram(G, singular, 1e-12).inv_sqrt()
    np.testing.assert_allclose(W @ W.T, np.linalg.inv(G), atol=1e-8)


@pytest.mark.parametrize("singular", ["range", "ridge", "raw"])
def test_a_singular_gram_matrix_never_crashes(singular):
    rng = np.random.RandomState(0)
    A = rng.randn(9, 3)
    G = A @ A.T
    S = G @ np.diag(rng.randn(9)) @ G
    gram = Gram(G, singular)
    values, U = gram.eigh(S)
    assert np.isfinite(values).all()
    assert np.isfinite(U).all()
    assert np.isfinite(gram.whiten(G)).all()
    assert gram.rank == 3
    if singular == "range":
        np.testing.assert_allclose(U.T @ G @ U, np.eye(3), atol=1e-10)
        np.testing.assert_allclose(gram.whiten(G) @ gram.whiten(G).T, G, atol=1e-10)


def test_the_gradient_of_the_gram_penalty_is_right():
    rng = np.random.RandomState(0)
    A, L, E = rng.randn(5, 5), rng.randn(2, 5), rng.randn(2, 5)
    gram = Gram(A @ A.T)
    value, gradient = gram.penalty(L)
    assert value == pytest.approx(np.trace(L @ gram.matrix @ L.T))
    slope = (gram.penalty(L + 1e-6 * E)[0] - gram.penalty(L - 1e-6 * E)[0]) / 2e-6
    assert slope == pytest.approx(np.sum(gradient * E))


def test_kernel_parameters_can_be_searched_through_a_pipeline(X):
    y = (X[:, 0] > X[:, 1]).astype(int)
    pipe = make_pipeline(KPCA(5, kernel=RBF() + 0.1 * Delta()), KNeighborsClassifier(1))
    search = GridSearchCV(pipe, {"kpca__kernel__k0__gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["kpca__kernel__k0__gamma"] in (0.1, 1.0)


def test_cross_validation_cuts_rows_and_columns_of_a_precomputed_kernel(X):
    y = (X[:, 0] > X[:, 1]).astype(int)
    pipe = make_pipeline(KPCA(kernel=Precomputed()), KNeighborsClassifier(1))
    search = GridSearchCV(pipe, {"kpca__n_components": [3, 5]}, cv=3, error_score="raise")
    assert search.fit(RBF(gamma=0.5)(X), y).best_score_ > 0.6


@pytest.mark.parametrize("space", SPACES)
def test_spaces_pickle_and_name_their_outputs(space, X):
    space = clone(space).fit(X)
    copy = pickle.loads(pickle.dumps(space))
    np.testing.assert_array_equal(copy.transform(X), space.transform(X))
    assert len(space.get_feature_names_out()) == space.transform(X).shape[1]
    pandas = pytest.importorskip("pandas")
    assert isinstance(space.set_output(transform="pandas").transform(X), pandas.DataFrame)


@pytest.mark.parametrize(
    "space, match",
    [
        (KPCA(0), "n_components=0"),
        (KPCA(1.5), "fraction of the variance"),
        (KPCA(solver="qr"), "'randomized'"),
        (KPCA(solver="randomized"), "full rank"),
        (KPCA(kernel="auto"), "Kernelized"),
        (Nystroem(0), "n_landmarks=0"),
        (Nystroem(landmarks="best"), "'kmeans'"),
        (Nystroem(landmarks=np.ones((3, 2))), r"\(m, 4\)"),
        (Nystroem(20, landmarks="kmeans", kernel="precomputed"), "square"),
        (RandomFeatures(kernel=Linear()), "try Nystroem"),
        (RandomFeatures(kernel=RBF() + Delta()), "try Nystroem"),
        (RandomFeatures(1), "n_features=1"),
        (KernelTrick(singular="none"), "'range'"),
        (KernelTrick(singular="ridge", ridge=0.0), "ridge=0.0"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(space, match, X):
    with pytest.raises(ValueError, match=match):
        space.fit(X)


@pytest.mark.parametrize("space", [KPCA(), KPCA(2, solver="randomized"), Nystroem(5)])
def test_points_that_coincide_are_refused(space):
    for X in (np.ones((20, 3)), 1e-300 * np.random.RandomState(0).randn(20, 3)):
        with pytest.raises(ValueError, match="coincide"):
            clone(space).fit(X)


@pytest.mark.parametrize("solver", ["dense", "randomized"])
def test_an_indefinite_kernel_is_refused(solver):
    rng = np.random.RandomState(0)
    Q, _ = np.linalg.qr(rng.randn(60, 60))
    values = np.linspace(0, 1, 60)
    values[0] = -0.3
    K = (Q * values) @ Q.T
    with pytest.raises(ValueError, match="smallest eigenvalue is -"):
        KPCA(5, kernel="precomputed", solver=solver, random_state=0).fit((K + K.T) / 2)


def test_huge_features_are_refused_with_advice():
    X = 1e300 * np.random.RandomState(0).randn(20, 3)
    for space in (KPCA(), Nystroem(5), KernelTrick()):
        with pytest.raises(ValueError, match="rescaling"):
            space.fit(X)


def test_a_callable_of_scikit_learn_serves_as_kernel(X):
    Z = KPCA(kernel=chi2_kernel).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, centred(chi2_kernel(X)), atol=1e-8)


def expected_failures(estimator):
    reasons = not_repeated_rows(estimator)
    if estimator.kernel is not None:
        reason = "the check truncates a Gram matrix to integers, which makes it indefinite"
        reasons["check_estimators_dtypes"] = reason
    if hasattr(estimator, "partial_fit"):
        reason = "a fit keeps no sums of its rows, so partial_fit does not go on from it"
        reasons["check_fit_score_takes_y"] = reason
    return reasons


@parametrize_with_checks(
    [KPCA(), KPCA(2), Nystroem(10), RandomFeatures(50), KernelTrick(), KPCA(kernel=Precomputed())],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
