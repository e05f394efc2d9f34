"""Kernel alignment: the theorems of the quadratic program, then the kernel that comes out."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric.compute import memory_budget
from kernelmetric.compute.reductions import gram_products
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels import (
    RBF,
    Delta,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sum,
    polynomial_degrees,
    rbf_widths,
)
from kernelmetric.learners import LMNN
from kernelmetric.selection import AlignedSum, KernelAlignment
from kernelmetric.solvers import nonnegative_qp
from kernelmetric.solvers._nonnegative import kkt_residual
from kernelmetric.spaces import KPCA

BASES = [*[RBF(sigma=s) for s in (0.1, 0.3, 1.0, 3.0)], Polynomial(2), Laplacian(), Delta()]


def standardized(data):
    X, y = data
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def iris():
    return standardized(load_iris(return_X_y=True))


@pytest.fixture(scope="module")
def noisy():
    """90 points of three classes that overlap: a sum of several kernels is best."""
    rng = np.random.RandomState(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 4))
    X[:, 0] += 1.5 * y
    X[:, 1] -= y == 1
    return X, y


def ideal(y, target="classes"):
    same = np.equal.outer(y, y)
    if target == "regression":
        return np.outer(y - y.mean(), y - y.mean())
    return np.where(same, 1.0, 0.0 if target == "same" else -1.0 / (len(np.unique(y)) - 1))


def centre(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def alignment(K, Y, centered=False):
    if centered:
        K, Y = centre(K), centre(Y)
    return np.sum(K * Y) / np.linalg.norm(K) / np.linalg.norm(Y)


def base_grams(kernel, X):
    return [base(X) for base in kernel.base_kernels_]


# --- the quadratic program ----------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("rank", [3, 12, 40])
def test_the_solution_meets_the_optimality_conditions(seed, rank):
    rng = np.random.RandomState(seed)
    A = rng.standard_normal((rank, 12)) + rng.uniform(0, 2)
    S, b = A.T @ A, A.T @ rng.standard_normal(rank)
    v, residual = nonnegative_qp(S, b)
    assert v.min() >= 0
    assert residual == kkt_residual(S, b, v)
    assert residual < 1e-8


def test_the_conditions_are_met_by_nearly_equal_columns():
    A = np.random.RandomState(0).uniform(size=(30, 1)) ** np.linspace(1, 1.001, 15)
    A /= np.linalg.norm(A, axis=0)
    v, residual = nonnegative_qp(A.T @ A, A.T @ np.linspace(0, 1, 30))
    assert v.max() > 0
    assert residual < 1e-8


def test_the_residual_sees_each_kind_of_violation():
    S, b = np.eye(2), np.array([1.0, -1.0])
    assert kkt_residual(S, b, np.array([1.0, 0.0])) == 0
    assert kkt_residual(S, b, np.array([0.5, 0.0])) == 0.5  # a gradient on the support
    assert kkt_residual(S, b, np.array([0.0, 0.0])) == 1.0  # a descent left unused


def test_the_program_is_solved_without_the_help_of_nnls(monkeypatch):
    def give_up(*args):
        raise RuntimeError("Maximum number of iterations reached.")

    A = np.random.RandomState(1).standard_normal((20, 8))
    S, b = A.T @ A, A.T @ np.ones(20)
    expected = nonnegative_qp(S, b)[0]
    monkeypatch.setattr("kernelmetric.solvers._nonnegative.nnls", give_up)
    np.testing.assert_allclose(nonnegative_qp(S, b)[0], expected, atol=1e-10)


def test_nothing_is_gained_where_every_direction_goes_up():
    v, residual = nonnegative_qp(np.eye(3), -np.ones(3))
    assert np.all(v == 0)
    assert residual == 0


# --- products of Gram matrices ------------------------------------------------------------------


@pytest.fixture(scope="module")
def grams(noisy):
    X, y = noisy
    kernels = [*rbf_widths(), Polynomial(3), Linear()]
    return np.stack([kernel.bind(X)(X) for kernel in kernels] + [ideal(y)])


@pytest.mark.parametrize("budget", ["1GB", "20KB"])
def test_products_by_tiles_are_those_of_whole_matrices(grams, budget):
    tiles = []

    def evaluate(rows, columns):
        tiles.append((rows, columns))
        return iter(grams[:, rows, columns])

    with memory_budget(budget):
        sums = gram_products(evaluate, grams.shape[1])
    assert (len(tiles) > 3) == (budget == "20KB")
    plain = np.einsum("aij,bij->ab", grams, grams)
    np.testing.assert_allclose(sums.plain, plain, rtol=1e-10, atol=1e-10 * plain.max())
    np.testing.assert_allclose(sums.traces, np.trace(grams, axis1=1, axis2=2))
    np.testing.assert_allclose(sums.totals, grams.sum(axis=(1, 2)), atol=1e-9)
    np.testing.assert_allclose(sums.row_means, grams.mean(axis=2), atol=1e-12)
    centred = np.stack([centre(K) for K in grams])
    expected = np.einsum("aij,bij->ab", centred, centred)
    norms = np.sqrt(np.diagonal(expected))
    # Relative to the *centred* norms: widths of 1000 have lost six digits to their mean.
    assert np.max(np.abs(sums.centred - expected) / np.outer(norms, norms)) < 1e-9


@pytest.mark.slow
def test_products_of_a_sample_estimate_those_of_all(grams):
    n = grams.shape[1]
    estimates = []
    for seed in range(200):
        rows = np.random.RandomState(seed).choice(n, 30, replace=False)
        K = grams[:, rows][:, :, rows]
        estimates.append(gram_products(lambda i, j, K=K: iter(K[:, i, j]), 30, population=n).plain)
    plain = np.einsum("aij,bij->ab", grams, grams)
    error = np.std(estimates, axis=0) / np.sqrt(200)
    assert np.all(np.abs(np.mean(estimates, axis=0) - plain) < 5 * error + 1e-9 * plain.max())
    # The raw products of 30 points, scaled by the number of pairs alone, would not do: narrow
    # kernels live on the diagonal.
    raw = np.mean(grams[0] ** 2) * n**2
    naive = (30 / 30**2) * n**2
    assert abs(naive - raw) > 0.5 * raw


# --- the kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("target", ["classes", "same", "regression"])
def test_alignments_are_those_of_the_definition(noisy, target, centered):
    X, y = noisy
    kernel = KernelAlignment(BASES, target, centered).bind(X, y)
    Y = ideal(y, target)
    assert kernel.alignment_ == pytest.approx(alignment(kernel(X), Y, centered), abs=1e-9)
    expected = [alignment(K, Y, centered) for K in base_grams(kernel, X)]
    np.testing.assert_allclose(kernel.base_alignments_, expected, atol=1e-9)


@pytest.mark.parametrize("centered", [False, True])
def test_the_program_is_that_of_equation_12(noisy, centered):
    X, y = noisy
    kernel = KernelAlignment(BASES, centered=centered).bind(X, y)
    Y = ideal(y)
    grams = base_grams(kernel, X)
    if centered:
        Y, grams = centre(Y), [centre(K) for K in grams]
    unit = [K / np.linalg.norm(K) for K in grams]
    np.testing.assert_allclose(kernel.S_, [[np.sum(K * L) for L in unit] for K in unit], atol=1e-9)
    np.testing.assert_allclose(kernel.b_, [np.sum(K * Y) for K in unit], atol=1e-9 * len(y))
    gamma = kernel.weights_
    assert gamma.min() >= 0
    assert gamma @ kernel.b_ == pytest.approx(1.0)
    assert kkt_residual(kernel.S_, kernel.b_, gamma / (gamma @ kernel.S_ @ gamma)) < 1e-8
    # The sum itself is that of (12), up to one factor.
    total = sum(g * K for g, K in zip(gamma, unit, strict=True))
    K = centre(kernel(X)) if centered else kernel(X)
    np.testing.assert_allclose(K / np.linalg.norm(K), total / np.linalg.norm(total), atol=1e-10)


@pytest.mark.parametrize("centered", [False, True])
def test_a_general_solver_of_the_constrained_program_finds_the_same_kernel(noisy, centered):
    X, y = noisy
    kernel = KernelAlignment(BASES, centered=centered).bind(X, y)
    S, b = kernel.S_, kernel.base_alignments_
    general = minimize(  # eq. (11): min αᵀSα with αᵀb = 1, α >= 0
        lambda a: a @ S @ a,
        np.full(len(b), 1 / b.sum()),
        jac=lambda a: 2 * S @ a,
        bounds=[(0, None)] * len(b),
        constraints={"type": "eq", "fun": lambda a: a @ b - 1, "jac": lambda a: b},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert general.success
    norms = [np.linalg.norm(centre(K) if centered else K) for K in base_grams(kernel, X)]
    K = sum(a / r * G for a, r, G in zip(general.x, norms, base_grams(kernel, X), strict=True))
    ours = kernel(X)
    if centered:
        K, ours = centre(K), centre(ours)
    assert np.sum(K * ours) / np.linalg.norm(K) / np.linalg.norm(ours) > 1 - 1e-8


@pytest.mark.every(4)
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("target", ["classes", "same"])
def test_no_other_combination_is_better_aligned(noisy, target, centered):
    X, y = noisy
    kernel = KernelAlignment(BASES, target, centered).bind(X, y)
    assert kernel.alignment_ > kernel.base_alignments_.max() + 1e-4  # a sum of several
    assert np.count_nonzero(kernel.weights_) > 1
    grams, Y = np.stack(base_grams(kernel, X)), ideal(y, target)
    rng = np.random.RandomState(0)
    for exponent in rng.uniform(0, 8, size=100):  # from even to very uneven weights
        weights = rng.uniform(size=len(grams)) ** exponent * kernel.weights_.max()
        near = kernel.weights_ * rng.uniform(0.5, 2, size=len(grams))
        for w in (weights, near):
            w = w / np.linalg.norm(grams, axis=(1, 2))
            assert alignment(np.tensordot(w, grams, 1), Y, centered) <= kernel.alignment_ + 1e-9


@pytest.mark.parametrize("centered", [False, True])
def test_rescaled_base_kernels_give_the_same_kernel(noisy, centered):
    X, y = noisy
    factors = [1e-3, 7.0, 1e4, 0.5, 1.0, 30.0, 1e-6]
    rescaled = [factor * kernel for factor, kernel in zip(factors, BASES, strict=True)]
    K = KernelAlignment(BASES, centered=centered).bind(X, y)
    other = KernelAlignment(rescaled, centered=centered).bind(X, y)
    np.testing.assert_allclose(other(X), K(X), atol=1e-9)
    np.testing.assert_allclose(other.weights_, K.weights_, atol=1e-9)


@pytest.mark.parametrize("centered", [False, True])
def test_the_kernel_is_positive_semi_definite_of_unit_variance(iris, centered):
    X, y = iris
    kernel = KernelAlignment(centered=centered).bind(X, y)
    values = np.linalg.eigvalsh(kernel(X))
    assert values[0] > -1e-12 * values[-1]
    assert np.trace(centre(kernel(X))) / len(y) == pytest.approx(1.0)


def test_wide_kernels_keep_their_digits_when_centred(iris):
    X, y = iris
    widths = [RBF(sigma=s) for s in (1.0, 10.0, 100.0)]
    kernel = KernelAlignment(widths, centered=True).bind(X, y)
    expected = [alignment(K, ideal(y), True) for K in base_grams(kernel, X)]
    np.testing.assert_allclose(kernel.base_alignments_, expected, atol=1e-8)


def test_kernels_without_digits_or_news_get_no_weight(iris):
    X, y = iris
    twice = [RBF(gamma=1.0), RBF(gamma=1.0), RBF(gamma=1e-14), 0.0 * RBF(gamma=1.0)]
    kernel = KernelAlignment(twice, centered=True).bind(X, y)
    assert kernel.kernels == [kernel.base_kernels_[0]]
    assert kernel.base_alignments_[0] == kernel.base_alignments_[1] > 0.1
    np.testing.assert_array_equal(kernel.weights_[1:], 0)
    np.testing.assert_array_equal(kernel.base_alignments_[2:], 0)


def test_of_two_kernels_that_hardly_differ_one_gets_the_weight(noisy):
    X, y = noisy

    def misalignment(log_gamma):
        return -alignment(RBF(gamma=np.exp(log_gamma))(X), ideal(y), True)

    exactly = {"xatol": 1e-9}
    best = np.exp(minimize_scalar(misalignment, bounds=(-6, 2), options=exactly).x)

    def n_terms(difference):  # a mixture of the two lies nearer to the best width than either
        pair = [RBF(gamma=best * (1 - difference)), RBF(gamma=best * (1 + difference))]
        return len(KernelAlignment(pair, centered=True).bind(X, y).kernels)

    assert n_terms(1e-1) == 2
    assert n_terms(1e-5) == 1


def test_a_ridge_gets_weight_where_labels_are_noise():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((60, 3)), rng.randint(2, size=60)
    kernel = KernelAlignment([RBF(sigma=1.0), Delta()], centered=True).bind(X, y)
    assert kernel.weights_[1] > kernel.weights_[0]


def test_single_precision_gives_the_same_kernel(noisy):
    X, y = noisy
    for centered in (False, True):
        double = KernelAlignment(centered=centered).bind(X, y)
        single = KernelAlignment(centered=centered).bind(X.astype(np.float32), y)
        assert single.alignment_ == pytest.approx(double.alignment_, abs=1e-4)
        K = single(X.astype(np.float32))
        assert K.dtype == np.float32
        np.testing.assert_allclose(centre(K), centre(double(X)), atol=2e-2)


def test_blocks_and_threads_do_not_matter(noisy):
    X, y = noisy
    whole = KernelAlignment(BASES).bind(X, y)
    with memory_budget("20KB"):
        blocked = KernelAlignment(BASES).bind(X, y)
    np.testing.assert_allclose(blocked.weights_, whole.weights_, atol=1e-10)


def test_sparse_points_are_welcome_where_the_base_kernels_take_them(noisy):
    from scipy.sparse import csr_matrix

    X, y = noisy
    bases = [RBF(sigma=1.0), Polynomial(2)]
    assert KernelAlignment(bases).accepts_sparse
    assert not KernelAlignment(BASES).accepts_sparse  # Laplacian
    dense, sparse = (KernelAlignment(bases).bind(points, y) for points in (X, csr_matrix(X)))
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=1e-10)


@pytest.mark.torch
def test_tensors_give_the_same_weights(noisy):
    torch = pytest.importorskip("torch", reason="comes with the extra `torch`")
    X, y = noisy
    numbers = KernelAlignment(BASES, max_samples=50, random_state=0).bind(X, y)
    tensors = KernelAlignment(BASES, max_samples=50, random_state=0).bind(
        torch.asarray(X), torch.asarray(y)
    )
    np.testing.assert_allclose(tensors.weights_, numbers.weights_, atol=1e-10)
    assert tensors.alignment_error_ == pytest.approx(numbers.alignment_error_)
    assert isinstance(tensors(torch.asarray(X)), torch.Tensor)


# --- a sample of the rows -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("centered", [False, True])
def test_the_error_of_a_sample_covers_the_truth(centered):
    rng = np.random.RandomState(0)
    y = np.arange(900) % 3
    X = rng.standard_normal((900, 4)) + 1.5 * (np.arange(4) == y[:, None])
    bases = [RBF(sigma=0.1), RBF(sigma=1.0), RBF(sigma=3.0), Delta()]
    truth = KernelAlignment(bases, centered=centered).bind(X, y)
    assert truth.alignment_error_ == 0.0
    found = [
        KernelAlignment(bases, centered=centered, max_samples=150, random_state=s).bind(X, y)
        for s in range(40)
    ]
    estimates = np.array([kernel.alignment_ for kernel in found])
    errors = np.array([kernel.alignment_error_ for kernel in found])
    assert np.mean(np.abs(estimates - truth.alignment_) < 2 * errors) > 0.85
    assert 0.7 < errors.mean() / estimates.std() < 1.4  # neither hopeful nor timid


def test_a_sample_of_all_rows_is_no_sample(noisy):
    X, y = noisy
    kernel = KernelAlignment(BASES, max_samples=90, random_state=0).bind(X, y)
    assert kernel.alignment_error_ == 0.0
    np.testing.assert_array_equal(kernel.weights_, KernelAlignment(BASES).bind(X, y).weights_)


def test_a_sample_repeats_with_its_seed(noisy):
    X, y = noisy
    one, same, other = (
        KernelAlignment(BASES, max_samples=40, random_state=s).bind(X, y).alignment_
        for s in (0, 0, 1)
    )
    assert one == same != other


# --- life as an estimator -----------------------------------------------------------------------


def test_the_kernel_runs_on_new_points_and_composes(noisy, fresh):
    X, y = noisy
    kernel = KernelAlignment(BASES).bind(X, y)
    assert kernel(fresh, X).shape == (11, 90)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X)))
    both = (KernelAlignment(BASES) + 0.5 * Linear()).bind(X, y)
    np.testing.assert_allclose(both(fresh), kernel(fresh) + 0.5 * Linear()(fresh))


def test_a_clone_is_the_same_kernel_and_binding_keeps_what_was_learned(noisy, fresh):
    X, y = noisy
    kernel = KernelAlignment(BASES).bind(X, y)
    assert isinstance(kernel, AlignedSum)
    copy = clone(kernel)
    np.testing.assert_array_equal(copy(fresh), kernel(fresh))
    assert not hasattr(copy, "alignment_")
    again = kernel.bind(fresh)
    np.testing.assert_array_equal(again(fresh), kernel(fresh))
    assert again.alignment_ == kernel.alignment_
    assert again is not kernel
    assert repr(kernel) == repr(Sum(kernel.kernels, kernel.weights))


def test_binding_changes_nothing_of_the_original(noisy):
    spec = KernelAlignment([RBF(sigma=1.0), "linear"], "same", centered=True, max_samples=50)
    before = repr(spec)
    spec.bind(*noisy)
    assert repr(spec) == before == repr(clone(spec))
    assert not spec.is_bound
    with pytest.raises(ValueError, match="still wait for data"):
        spec(noisy[0])


@pytest.mark.slow
def test_it_is_tuned_by_a_grid_like_any_kernel(iris):
    X, y = iris
    model = make_pipeline(
        StandardScaler(),
        Kernelized(LMNN(tol=0.1), kernel=KernelAlignment(BASES)),
        KNeighborsClassifier(1),
    )
    grid = {"kernelized__kernel__centered": [False, True]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9
    kernel = search.best_estimator_["kernelized"].kernel_
    assert kernel.alignment_ >= kernel.base_alignments_.max() - 1e-9


def test_a_space_alone_can_be_aligned(noisy):
    X, y = noisy
    space = KPCA(kernel=KernelAlignment(BASES)).fit(X, y)
    assert space.kernel_.alignment_ > 0


def test_the_families_are_those_of_the_paper():
    widths = [0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
    widths += [25, 50, 75, 100, 250, 500, 750, 1000]
    assert [kernel.sigma for kernel in rbf_widths()] == widths
    x, z = np.array([[1.0, 2.0, 2.0]]), np.array([[3.0, 0.0, 3.0]])
    values = [kernel.bind(x)(x, z).item() for kernel in polynomial_degrees()]
    np.testing.assert_allclose(values, 3.0 ** np.arange(1, 6))


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "y", "message"),
    [
        (KernelAlignment(), None, r"requires y.*try kernel='rbf'"),
        (KernelAlignment(), np.zeros(90), "Got 1 class"),
        (KernelAlignment(), np.linspace(0, 1, 90), r"continuous y.*try target='regression'"),
        (KernelAlignment(), np.arange(89) % 2, "inconsistent numbers of samples"),
        (KernelAlignment(target="regression"), np.ones(90), "constant"),
        (KernelAlignment(target="regression"), np.array(["a", "b"] * 45), "not numeric"),
        (KernelAlignment(target="regression"), np.r_[np.nan, np.arange(89)], "not finite"),
        (KernelAlignment(target="ideal"), np.arange(90) % 2, r"Got target='ideal'"),
        (KernelAlignment([]), np.arange(90) % 2, "Got no kernels"),
        (KernelAlignment(RBF()), np.arange(90) % 2, "expected a list of kernels"),
        (KernelAlignment("rbf"), np.arange(90) % 2, "expected a list of kernels"),
        (KernelAlignment([Precomputed(), RBF()]), np.arange(90) % 2, "Got Precomputed as a term"),
        (KernelAlignment(max_samples=2), np.arange(90) % 2, r"Got max_samples=2.*try 2000"),
        (KernelAlignment(max_samples=0.5), np.arange(90) % 2, r"Got max_samples=0.5"),
    ],
)
def test_what_cannot_be_aligned_is_refused_with_a_remedy(noisy, spec, y, message):
    with pytest.raises(ValueError, match=message):
        spec.bind(noisy[0], y)


def test_kernels_that_see_nothing_of_the_labels_are_refused():
    X, y = np.zeros((10, 2)), np.arange(10) % 2
    with pytest.raises(ValueError, match=r"alignment with y is at most .*: try other kernels"):
        KernelAlignment([RBF(gamma=1.0)], centered=True).bind(X, y)


def test_values_that_overflow_name_their_kernel(noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=r"non-finite values from Polynomial.*rescaling"):
        KernelAlignment([RBF(sigma=1.0), Polynomial(90)]).bind(1e3 * X, y)


# --- at size ------------------------------------------------------------------------------------

ALIGN_20_000 = """
import json, time
from pathlib import Path
import numpy as np
from kernelmetric.selection import KernelAlignment
X = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
y = (X[:, 0] * X[:, 1] > 0).astype(int)
start = time.perf_counter()
kernel = KernelAlignment(centered=True).bind(X, y)
seconds = time.perf_counter() - start
status = dict(line.split(":", 1) for line in Path("/proc/self/status").open())
peak = int(status["VmHWM"].split()[0]) / 1024  # ru_maxrss would begin at the parent's peak
print(json.dumps({"peak_mb": peak, "seconds": seconds, "alignment": kernel.alignment_}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are told by Linux")
def test_20_000_points_are_aligned_in_little_memory():
    done = subprocess.run(
        [sys.executable, "-c", ALIGN_20_000], capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    assert 0 < result["alignment"] < 1
    assert result["peak_mb"] < 600  # one Gram matrix alone would take 1600
    assert result["seconds"] < 600
