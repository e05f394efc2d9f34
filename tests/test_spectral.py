"""Smallest eigenvectors: LAPACK's, whatever the spectrum, and a certificate that can be trusted."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from kernelmetric.compute.reductions import BlockProduct
from kernelmetric.graphs import laplacian, neighbor_graph
from kernelmetric.solvers import Eigenpairs, smallest_eigenvectors

N, K = 1100, 12  # beyond what LAPACK is given


@pytest.fixture(scope="module")
def graph():
    X = np.random.RandomState(0).standard_normal((N, 3))
    return neighbor_graph(X, 8)


@pytest.fixture(scope="module")
def indefinite(graph):
    """A Laplacian with negative weights between some points, as a cost of labels brings them."""
    rng = np.random.RandomState(1)
    i, j = rng.randint(N, size=(2, 200))
    C = sparse.csr_array((rng.choice([-2.0, 2.0], 200), (i, j)), shape=(N, N))
    return (laplacian(graph) + laplacian(C + C.T)).tocsr()


@pytest.fixture(scope="module")
def truth(indefinite):
    """All eigenpairs on the complement of the constant vector."""
    H = np.eye(N) - 1 / N
    values, vectors = np.linalg.eigh(H @ indefinite.toarray() @ H + 1e3 / N)
    return values, vectors


def same_subspace(A, B):
    return np.linalg.norm(A - B @ (B.T @ A)) < 1e-4


@pytest.mark.slow
def test_the_eigenvectors_are_those_of_lapack_also_when_the_matrix_is_indefinite(indefinite, truth):
    found = smallest_eigenvectors(indefinite, K, null=np.ones(N), random_state=0)
    values, vectors = truth
    assert found.converged
    assert values[0] < -0.1  # else nothing was indefinite
    np.testing.assert_allclose(found.values, values[:K], atol=1e-7)
    assert same_subspace(found.vectors, vectors[:, :K])


def test_eigenvectors_are_orthonormal_and_orthogonal_to_what_is_projected_out(indefinite):
    null = np.random.RandomState(2).standard_normal((N, 2))
    found = smallest_eigenvectors(indefinite, K, null=null, random_state=0)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(K), atol=1e-10)
    np.testing.assert_allclose(null.T @ found.vectors, 0, atol=1e-8)


@pytest.mark.slow
def test_vectors_projected_out_may_depend_on_each_other(indefinite, truth):
    null = np.ones((N, 3)) * [1.0, -2.0, 0.0]
    found = smallest_eigenvectors(indefinite, K, null=null, random_state=0)
    np.testing.assert_allclose(found.values, truth[0][:K], atol=1e-7)


@pytest.mark.every(3)
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-9])
def test_the_residuals_are_what_they_say(indefinite, tol):
    found = smallest_eigenvectors(indefinite, K, tol=tol, random_state=0)
    R = indefinite @ found.vectors - found.vectors * found.values
    np.testing.assert_allclose(found.residuals, np.linalg.norm(R, axis=0), atol=1e-12)
    largest = np.abs(np.linalg.eigvalsh(indefinite.toarray())).max()
    assert found.residuals.max() < 1.2 * tol * largest


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "form", [sparse.csr_matrix, sparse.coo_array, aslinearoperator, lambda A: A.toarray()]
)
def test_sparse_dense_and_operator_agree(form, indefinite, truth):
    found = smallest_eigenvectors(form(indefinite), K, null=np.ones(N), random_state=0)
    np.testing.assert_allclose(found.values, truth[0][:K], atol=1e-7)


@pytest.mark.parametrize("n", [2, 5, 60])
def test_small_matrices_give_all_their_eigenvectors(n):
    A = np.random.RandomState(n).standard_normal((n, n))
    A = A + A.T
    found = smallest_eigenvectors(A, n)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A), atol=1e-10)
    assert found.converged
    one_less = smallest_eigenvectors(A, n - 1, null=found.vectors[:, 0])
    np.testing.assert_allclose(one_less.values, found.values[1:], atol=1e-10)


@pytest.mark.every(2)
@pytest.mark.parametrize("n_parts", [3, 40])
def test_every_component_of_a_graph_brings_a_zero_eigenvalue(n_parts):
    ring = sparse.csr_array(np.roll(np.eye(60), 1, axis=0))
    W = sparse.block_diag([ring + ring.T] * n_parts + [sparse.eye_array(N)]).tocsr()
    found = smallest_eigenvectors(
        laplacian(W) + sparse.diags_array(np.r_[np.zeros(60 * n_parts), np.ones(N)]),
        n_parts + 2,
        random_state=0,
    )
    # 40 equal eigenvalues are more than the 16 vectors of a block can find at once
    np.testing.assert_allclose(found.values[:n_parts], 0, atol=1e-8)
    np.testing.assert_allclose(found.values[n_parts:], 2 - 2 * np.cos(2 * np.pi / 60), atol=1e-8)


@pytest.mark.slow
def test_clustered_eigenvalues_are_told_apart():
    exact = np.r_[1 + 1e-5 * np.arange(30), np.linspace(2, 50, N - 30)]
    Q = np.linalg.qr(np.random.RandomState(3).standard_normal((N, N)))[0]
    found = smallest_eigenvectors((Q * exact) @ Q.T, 30, tol=1e-8, random_state=0)
    np.testing.assert_allclose(found.values, exact[:30], atol=1e-9)
    assert same_subspace(found.vectors, Q[:, :30])


@pytest.mark.parametrize("value", [0.0, -3.0])
def test_a_multiple_of_the_identity_has_any_vectors(value):
    found = smallest_eigenvectors(value * sparse.eye_array(N), 20, random_state=0)
    np.testing.assert_allclose(found.values, value, atol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(20), atol=1e-10)


@pytest.mark.slow
def test_an_eigenvalue_far_below_all_others_disturbs_nobody(graph):
    A = laplacian(graph) + sparse.csr_array(([-1e6], ([7], [7])), shape=(N, N))
    found = smallest_eigenvectors(A, K, tol=1e-12, random_state=0)
    np.testing.assert_allclose(
        found.values, np.linalg.eigvalsh(A.toarray())[:K], rtol=1e-9, atol=1e-5
    )


@pytest.mark.slow
def test_a_warm_start_takes_fewer_products(indefinite, graph):
    before = smallest_eigenvectors(laplacian(graph), K, null=np.ones(N), random_state=0)
    nearby = laplacian(graph) + 0.01 * indefinite
    cold = smallest_eigenvectors(nearby, K, null=np.ones(N), random_state=0)
    warm = smallest_eigenvectors(nearby, K, null=np.ones(N), start=before.vectors, random_state=0)
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-6)
    assert warm.n_matvecs < 0.8 * cold.n_matvecs


def test_a_start_of_wrong_eigenvectors_is_left_behind(indefinite, truth):
    values, vectors = truth
    found = smallest_eigenvectors(
        indefinite, K, null=np.ones(N), start=vectors[:, 5 : 5 + K], random_state=0
    )
    np.testing.assert_allclose(found.values, values[:K], atol=1e-7)


def test_a_start_may_be_degenerate(indefinite, truth):
    values, vectors = truth
    for start in (np.zeros((N, K)), np.tile(vectors[:, :2], (1, K))):
        found = smallest_eigenvectors(indefinite, K, null=np.ones(N), start=start, random_state=0)
        np.testing.assert_allclose(found.values, values[:K], atol=1e-7)


def test_a_random_state_makes_runs_equal(indefinite):
    first, second = (smallest_eigenvectors(indefinite, K, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, second.vectors)


def test_too_few_iterations_warn_and_say_so(indefinite):
    with pytest.warns(ConvergenceWarning, match=r"residuals above tol=1e-06.*max_iter \(now 2\)"):
        found = smallest_eigenvectors(indefinite, K, max_iter=2, random_state=0)
    assert not found.converged
    assert found.residuals.max() > 1e-6


def test_a_result_is_a_tuple_with_names(indefinite):
    found = smallest_eigenvectors(indefinite, 3, random_state=0)
    assert isinstance(found, Eigenpairs)
    values, vectors, *_ = found
    assert vectors.shape == (N, len(values))
    assert found.n_matvecs > 0


@pytest.mark.slow
def test_products_are_counted():
    A = np.diag(np.arange(float(N)))
    asked = []

    def multiply(V):
        asked.append(V.shape[1] if V.ndim > 1 else 1)
        return A @ V

    operator = LinearOperator(A.shape, matvec=multiply, matmat=multiply, dtype=A.dtype)
    found = smallest_eigenvectors(operator, 3, random_state=0)
    assert found.n_matvecs == sum(asked)


@pytest.mark.parametrize(
    ("A", "options", "match"),
    [
        (np.ones((3, 4)), {}, "expected a square"),
        (np.triu(np.ones((4, 4))), {}, "not symmetric"),
        (np.full((4, 4), np.nan), {}, "NaN"),
        (np.eye(4), {"n_components": 0}, "n_components=0, but expected an integer >= 1 and <= 4"),
        (np.eye(4), {"n_components": 4, "null": np.ones(4)}, ">= 1 and <= 3"),
    ],
)
def test_bad_input_is_a_sentence(A, options, match):
    with pytest.raises(ValueError, match=match):
        smallest_eigenvectors(A, **{"n_components": 2} | options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_product_by_blocks_is_the_product(indefinite, dtype):
    V = np.random.RandomState(0).standard_normal((N, 5)).astype(dtype)
    product = BlockProduct(indefinite, rough=dtype == np.float32)(V)
    assert product.dtype == dtype
    np.testing.assert_allclose(product, indefinite @ V, atol=1e3 * np.finfo(dtype).eps)


def test_a_product_of_few_rows_is_the_product():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = sparse.csr_array(np.arange(9.0).reshape(3, 3))
        np.testing.assert_array_equal(BlockProduct(A)(np.eye(3)), A.toarray())
