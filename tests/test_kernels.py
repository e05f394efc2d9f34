"""Kernels: values, composition, binding to data, and what they refuse."""

import ast
import pickle
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF as GaussianProcessRBF  # noqa: N811 (two classes, one name)
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from kernelmetric.kernels import (
    RBF,
    Cosine,
    Delta,
    FunctionKernel,
    Kernel,
    Laplacian,
    Linear,
    MinMax,
    PairwiseKernel,
    Polynomial,
    Precomputed,
    Product,
    Rescaled,
    Sum,
    Tanimoto,
    as_kernel,
    values_of,
)
from kernelmetric.kernels._registry import KERNELS as NAMED


def histogram(A, B):
    return np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2)


KERNELS = [
    *(kind() for kind in NAMED if not kind.pairwise),
    RBF(gamma="scale"),
    RBF(gamma="auto"),
    RBF(sigma=0.7),
    Laplacian(gamma="median"),
    Polynomial(degree=3, gamma="auto", coef0=0.0),
    RBF() + 0.1 * Delta() + Linear(),
    RBF(gamma=0.3) * Polynomial(),
    2.0 * (RBF(sigma=1.0) + RBF(sigma=3.0)),
]
PORTABLE = [*KERNELS, FunctionKernel(lambda A, B: A @ B.T)]
ALL = [*PORTABLE, PairwiseKernel("chi2"), FunctionKernel(histogram)]


@pytest.fixture(scope="module")
def X():
    return np.random.RandomState(0).uniform(0.1, 2.0, size=(23, 4))


@pytest.fixture(scope="module")
def Y():
    return np.random.RandomState(1).uniform(0.1, 2.0, size=(7, 4))


@pytest.mark.parametrize("name", sorted(pairwise.PAIRWISE_KERNEL_FUNCTIONS))
def test_a_kernel_of_scikit_learn_takes_points_that_must_not_be_written(name, X, Y):
    kernel = PairwiseKernel(name)
    expected, alone = kernel(X, Y), kernel(X)
    X, Y = X.copy(), Y.copy()
    X.flags.writeable = Y.flags.writeable = False
    np.testing.assert_array_equal(kernel(X, Y), expected)
    np.testing.assert_array_equal(kernel(X), alone)


@pytest.mark.parametrize("kernel", ALL)
def test_a_kernel_is_symmetric_and_positive_semi_definite(kernel, X):
    K = kernel.bind(X)(X)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


@pytest.mark.parametrize("kernel", ALL)
def test_the_diagonal_is_the_diagonal_of_the_gram_matrix(kernel, X):
    bound = kernel.bind(X)
    np.testing.assert_allclose(bound.diag(X), np.diag(bound(X)), rtol=1e-12)


@pytest.mark.parametrize("kernel", ALL)
def test_rows_one_by_one_equal_the_block(kernel, X, Y):
    bound = kernel.bind(X)
    rows = np.vstack([bound(y[None, :], X) for y in Y])
    np.testing.assert_allclose(rows, bound(Y, X), rtol=1e-10, atol=1e-12)
    # Training points among others: a narrow kernel must not tell the two computations apart.
    np.testing.assert_allclose(bound(X[3:5], X), bound(X)[3:5], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kernel", ALL)
def test_bind_gives_numbers_changes_nothing_and_is_idempotent(kernel, X):
    before = repr(kernel), pickle.dumps(kernel.get_params()) if kernel not in ALL[-3:] else None
    bound = kernel.bind(X)
    assert bound is not kernel
    assert bound.is_bound
    after = repr(kernel), pickle.dumps(kernel.get_params()) if kernel not in ALL[-3:] else None
    assert before == after
    again = bound.bind(2 * X)
    assert repr(again) == repr(bound)
    np.testing.assert_array_equal(again(X), bound(X))


@pytest.mark.parametrize("kernel", ALL)
def test_float32_stays_float32_and_agrees(kernel, X, Y):
    bound = kernel.bind(X)
    K = bound(X.astype(np.float32), Y.astype(np.float32))
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, bound(X, Y), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("kernel", PORTABLE)
def test_strict_arrays_agree_with_numpy(kernel, X, Y):
    xp = pytest.importorskip("array_api_strict")
    A, B = xp.asarray(X), xp.asarray(Y)
    bound = kernel.bind(A)
    reference = kernel.bind(X)
    for result, expected in [
        (bound(A, B), reference(X, Y)),
        (bound(A), reference(X)),
        (bound.diag(A), reference.diag(X)),
    ]:
        assert isinstance(result, type(A))
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.torch
@pytest.mark.parametrize("kernel", PORTABLE)
def test_torch_tensors_agree_with_numpy(kernel, X, Y):
    torch = pytest.importorskip("torch")
    A, B = torch.asarray(X), torch.asarray(Y)
    bound = kernel.bind(A)
    reference = kernel.bind(X)
    for result, expected in [
        (bound(A, B), reference(X, Y)),
        (bound(A), reference(X)),
        (bound.diag(A), reference.diag(X)),
    ]:
        assert isinstance(result, torch.Tensor)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-10, atol=1e-12)
    assert bound(A.float(), B.float()).dtype == torch.float32


@pytest.mark.torch
def test_gradients_flow_through_torch_kernels(X):
    torch = pytest.importorskip("torch")
    A = torch.asarray(X).requires_grad_()
    kernel = 0.5 * RBF(gamma=0.3) + Linear() * Polynomial()
    kernel(A, torch.asarray(X[:5])).sum().backward()
    assert bool(torch.isfinite(A.grad).all())


@pytest.mark.parametrize(
    "kernel, expected",
    [
        (RBF(gamma=0.3), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.3)),
        (Laplacian(gamma=0.3), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.3)),
        (Laplacian(), pairwise.laplacian_kernel),
        (
            Polynomial(3, gamma=0.5, coef0=2.0),
            lambda A, B: pairwise.polynomial_kernel(A, B, degree=3, gamma=0.5, coef0=2.0),
        ),
        (Linear(), pairwise.linear_kernel),
        (Cosine(), pairwise.cosine_similarity),
        (PairwiseKernel("sigmoid"), pairwise.sigmoid_kernel),
        (PairwiseKernel("chi2", {"gamma": 0.2}), lambda A, B: pairwise.chi2_kernel(A, B, 0.2)),
        (as_kernel(GaussianProcessRBF(0.7)), GaussianProcessRBF(0.7)),
    ],
)
def test_values_are_those_of_scikit_learn(kernel, expected, X, Y):
    np.testing.assert_allclose(kernel.bind(X)(X, Y), expected(X, Y), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if k.accepts_sparse and type(k) is not MinMax]
)
def test_sparse_points_give_the_values_of_dense_points(kernel, X, Y):
    dense = X * (X > 1.0)
    A, B = sparse.csr_array(dense), sparse.csr_array(Y)
    bound = kernel.bind(A)
    reference = kernel.bind(dense)
    for one, other in [(A, B), (A, Y), (dense, B), (A, None)]:
        K = bound(one, other)
        assert isinstance(K, np.ndarray)
        np.testing.assert_allclose(
            K, reference(dense, Y if other is not None else None), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(bound.diag(A), reference.diag(dense), rtol=1e-12)


def test_a_sparse_block_is_refused_by_a_dense_kernel(X):
    with pytest.raises(TypeError, match="toarray"):
        Laplacian(gamma=1.0)(sparse.csr_array(X))


def test_widths_follow_their_formulas(X):
    d2 = pairwise.euclidean_distances(X, squared=True)[np.triu_indices(len(X), 1)]
    assert RBF().bind(X).gamma == pytest.approx(1 / np.median(d2))
    assert RBF(gamma="median").bind(X).gamma == RBF().bind(X).gamma
    assert RBF(gamma="scale").bind(X).gamma == pytest.approx(1 / (4 * X.var()))
    assert RBF(gamma="scale").bind(sparse.csr_array(X)).gamma == pytest.approx(1 / (4 * X.var()))
    assert RBF(gamma="auto").bind(X).gamma == 0.25
    assert RBF(sigma=2.0).bind(X).gamma == 1 / (2 * 4 * 4)
    assert Delta().bind(X).width == pytest.approx(0.01 * np.sqrt(np.median(d2)))
    assert Laplacian().bind(X).gamma == 0.25
    assert Polynomial(gamma="auto").bind(X).gamma == 0.25


def test_delta_is_the_identity_on_distinct_points_and_survives_round_off(X):
    delta = Delta().bind(X)
    np.testing.assert_allclose(delta(X), np.eye(len(X)), atol=1e-12)
    shaken = X * (1 + 4e-16)
    np.testing.assert_allclose(np.diag(delta(shaken, X)), 1.0, atol=1e-9)
    single = delta(X.astype(np.float32), X.astype(np.float32).copy())
    np.testing.assert_allclose(single, np.eye(len(X)), atol=1e-6)


def test_sums_and_products_are_sums_and_products(X, Y):
    rbf, poly, linear = RBF(gamma=0.5), Polynomial(), Linear()
    np.testing.assert_allclose((rbf + poly)(X, Y), rbf(X, Y) + poly(X, Y), rtol=1e-12)
    np.testing.assert_allclose((rbf * poly)(X, Y), rbf(X, Y) * poly(X, Y), rtol=1e-12)
    nested = 0.5 * (rbf + 2 * linear) * poly
    expected = 0.5 * (rbf(X, Y) + 2 * linear(X, Y)) * poly(X, Y)
    np.testing.assert_allclose(nested(X, Y), expected, rtol=1e-12)


def test_composition_flattens_and_keeps_weights():
    a, b, c = RBF(gamma=1.0), Linear(), Cosine()
    total = 3 * (a + 0.5 * b) + c
    assert isinstance(total, Sum)
    assert total.kernels == [a, b, c]
    assert total.weights == [3.0, 1.5, 1.0]
    assert repr(total) == "3 * RBF(gamma=1.0) + 1.5 * Linear() + Cosine()"
    product = a * b * c
    assert isinstance(product, Product)
    assert product.kernels == [a, b, c]
    assert repr(a * (b + c)) == "RBF(gamma=1.0) * (Linear() + Cosine())"
    assert (np.float64(2.0) * a).weights == [2.0]
    assert (a * 2).weights == [2.0]
    with pytest.raises(TypeError):
        a + 1.0


def test_radial_terms_of_nested_sums_share_one_distance_block(X, monkeypatch):
    from kernelmetric.compute import reductions
    from kernelmetric.kernels import _terms

    calls = []

    def counted(A, B):
        calls.append(1)
        return original(A, B)

    original = reductions.squared_distances
    monkeypatch.setattr(_terms, "squared_distances", counted)
    monkeypatch.setattr(reductions, "squared_distances", counted)
    inner = Sum([RBF(gamma=0.1), RBF(gamma=2.0)], [0.3, 0.7])
    kernel = Sum([inner, Delta(width=0.1), Linear()], [2.0, 0.5, 1.0])
    K = kernel(X)
    assert len(calls) == 1
    expected = 0.6 * RBF(gamma=0.1)(X) + 1.4 * RBF(gamma=2.0)(X)
    expected += 0.5 * Delta(width=0.1)(X) + Linear()(X)
    np.testing.assert_allclose(K, expected, rtol=1e-12)


def test_factors_of_the_distance_share_one_block_of_it(X, Y, monkeypatch):
    from kernelmetric.kernels import _terms

    calls = []
    original = _terms.squared_distances

    def counted(A, B):
        calls.append(1)
        return original(A, B)

    monkeypatch.setattr(_terms, "squared_distances", counted)
    parts = [RBF(gamma=0.1) + Delta(width=0.1), RBF(gamma=2.0), Linear()]
    expected = parts[0](X, Y) * parts[1](X, Y) * parts[2](X, Y)
    calls.clear()
    np.testing.assert_allclose(Product(parts)(X, Y), expected, rtol=1e-12)
    assert len(calls) == 1


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_of_the_distance_are_those_that_say_so(kernel, X, Y):
    kernel = kernel.bind(X)
    D2 = pairwise.euclidean_distances(X, Y, squared=True)
    if kernel.is_radial:
        np.testing.assert_allclose(kernel.of_squared_distances(D2), kernel(X, Y), rtol=1e-9)
    else:
        with pytest.raises(TypeError, match="expected a kernel of the distance"):
            kernel.of_squared_distances(D2)


def test_several_kernels_on_the_same_points_are_each_by_itself(X, Y):
    kernels = [kernel.bind(X) for kernel in ALL]
    for kernel, K in zip(kernels, values_of(kernels, X, Y), strict=True):
        np.testing.assert_allclose(K, kernel(X, Y), rtol=1e-12)


def test_a_sum_leaves_the_array_of_a_function_alone(X):
    kept = np.eye(len(X))
    kernel = 3.0 * FunctionKernel(lambda A, B: kept, form="blocks") + Linear()
    kernel(X)
    np.testing.assert_array_equal(kept, np.eye(len(X)))


def test_parameters_are_reachable_by_nested_names():
    class Holder(BaseEstimator):
        def __init__(self, kernel=None):
            self.kernel = kernel

    holder = Holder(0.5 * RBF(gamma=1.0) + Polynomial() * Laplacian())
    params = holder.get_params()
    assert params["kernel__k0__gamma"] == 1.0
    assert params["kernel__k1__k0__degree"] == 2
    other = clone(holder).set_params(
        kernel__k0__gamma=7.0, kernel__k1__k0=Linear(), kernel__weights=[1.0, 2.0]
    )
    assert repr(other.kernel) == "RBF(gamma=7.0) + 2 * Linear() * Laplacian()"
    assert repr(holder.kernel) == "0.5 * RBF(gamma=1.0) + Polynomial() * Laplacian()"
    with pytest.raises(ValueError, match=r"Invalid parameter 'k5' for estimator .*'kernels'"):
        holder.kernel.set_params(k5__gamma=1.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_clone_and_pickle(kernel, X):
    bound = kernel.bind(X)
    for copy in (clone(bound), pickle.loads(pickle.dumps(bound))):
        assert copy is not bound
        assert repr(copy) == repr(bound)
        np.testing.assert_array_equal(copy(X), bound(X))


@pytest.mark.parametrize(
    "kernel",
    [*ALL, Rescaled(RBF(), np.ones(4)), Precomputed()],
    ids=lambda kernel: type(kernel).__name__,
)
def test_binding_keeps_a_subclass_and_its_further_parameters(kernel, X):
    base = type(kernel)

    class Derived(base):
        def __init__(self, note=None, **params):
            super().__init__(**params)
            self.note = note

        @classmethod
        def _get_param_names(cls):
            return [*base._get_param_names(), "note"]

    derived = Derived(note=["kept"], **kernel.get_params(deep=False))
    points = X @ X.T if kernel.pairwise else X
    bound = derived.bind(points)
    assert type(bound) is Derived
    assert bound.note == ["kept"]
    assert bound.note is not derived.note  # what is bound shares nothing that could be changed
    np.testing.assert_array_equal(bound(points), kernel.bind(points)(points))


@pytest.mark.parametrize("name", ["AlignedScales", "AlignedSum", "KernelAlignment"])
def test_kernels_that_learn_are_still_found_where_they_were(name):
    with pytest.warns(
        DeprecationWarning, match=f"Got {name} from kernelmetric.kernels, but it lives"
    ):
        found = getattr(import_module("kernelmetric.kernels"), name)
    assert found is getattr(import_module("kernelmetric.selection"), name)


def test_other_names_are_not_found_in_the_room():
    with pytest.raises(AttributeError, match="has no attribute 'Alignment'"):
        import_module("kernelmetric.kernels").Alignment  # noqa: B018


@pytest.mark.parametrize("room", ["kernels", "selection"])
def test_files_of_a_room_import_each_other_in_no_circle(room):
    package = f"kernelmetric.{room}"
    uses = {}
    for file in Path(import_module(package).__file__).parent.glob("_[!_]*.py"):
        tree = ast.walk(ast.parse(file.read_text(encoding="utf-8")))  # also inside functions
        named = [(n.module, a.name) for n in tree if isinstance(n, ast.ImportFrom) for a in n.names]
        assert all(name.startswith("_") for module, name in named if module == package)
        modules = {f"{package}.{name}" if m == package else m for m, name in named}
        uses[f"{package}.{file.stem}"] = [m for m in modules if m.startswith(f"{package}.")]
    assert len(list(TopologicalSorter(uses).static_order())) == len(uses) > 5


def test_a_kernel_serves_as_kernel_of_an_svc(X):
    y = (X[:, 0] > 1).astype(int)
    ours = SVC(kernel=RBF(gamma=0.5)).fit(X, y)
    theirs = SVC(kernel="rbf", gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [RBF(), RBF(sigma=1.0), Delta(), Laplacian(), Polynomial(gamma="auto"), RBF() + Linear()],
)
def test_a_kernel_that_waits_for_data_says_so(kernel, X):
    assert not kernel.is_bound
    for call in (kernel, kernel.diag):
        with pytest.raises(ValueError, match=r"kernel\.bind\(X\)"):
            call(X)


@pytest.mark.parametrize(
    "kernel, match",
    [
        (RBF(gamma=1.0, sigma=1.0), "one of them"),
        (RBF(gamma=-1.0), "a number >= 0"),
        (RBF(gamma=np.nan), "a finite number >= 0"),
        (RBF(gamma=np.inf), "a finite number >= 0"),
        (RBF(gamma="wide"), "'median', 'scale' or 'auto'"),
        (RBF(sigma=0.0), "positive"),
        (RBF(sigma=1e-200), "underflows"),
        (Delta(width=0.0), "positive"),
        (Laplacian(gamma=-1), "a number >= 0"),
        (Laplacian(gamma="scale"), "'auto' or 'median'"),
        (Polynomial(degree=0), "an integer >= 1"),
        (Polynomial(degree=1.5), "an integer >= 1"),
        (Polynomial(coef0=-1.0), "coef0"),
        (Polynomial(gamma="scale"), "'auto'"),
        (Sum([]), "at least one"),
        (Sum([Linear()], [1.0, 2.0]), "one weight per kernel"),
        (Sum([Linear()], [-1.0]), "weight=-1.0"),
        (Sum(["rbf"]), "as_kernel"),
        (Product([Precomputed()]), "combining the matrices"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(kernel, match, X):
    with pytest.raises(ValueError, match=match):
        kernel.bind(X)


def test_negative_weights_and_precomputed_terms_are_refused_at_once():
    with pytest.raises(ValueError, match="weight=-2"):
        -2 * RBF()
    for compose in (lambda k: k + RBF(), lambda k: RBF() * k, lambda k: 2 * k):
        with pytest.raises(ValueError, match="combining the matrices"):
            compose(Precomputed())


@pytest.mark.parametrize("kernel", [k for k in KERNELS if type(k) not in (Cosine, MinMax)])
def test_overflow_is_an_error_that_advises_rescaling(kernel):
    huge = 1e308 * np.array([[1.0, 1.7], [-1.0, 1.5], [1.2, -1.4]])
    with pytest.raises(ValueError, match="rescaling the features"):
        kernel.bind(huge)(huge)


@pytest.mark.parametrize("kernel", KERNELS)
def test_underflow_and_identical_points_stay_finite(kernel):
    for X in (1e-300 * np.arange(6.0).reshape(3, 2), np.ones((4, 2)), np.zeros((3, 2))):
        assert np.isfinite(kernel.bind(X)(X)).all()


def test_cosine_survives_huge_and_tiny_features():
    X = np.array([[1.0, 1.0], [1.0, 0.0]])
    expected = Cosine()(X)
    for scale in (1e300, 1e-300):
        np.testing.assert_allclose(Cosine()(scale * X), expected, rtol=1e-12)


def test_far_points_make_no_denormal_numbers():
    for dtype in (np.float32, np.float64):
        D = np.linspace(0, 60, 500, dtype=dtype)[:, None]
        K = RBF(gamma=1.0)(D)
        assert K.min() > np.finfo(dtype).tiny


def test_blocks_must_be_two_dimensional_and_match():
    with pytest.raises(ValueError, match="2D array"):
        Linear()(np.ones(3))
    with pytest.raises(ValueError, match="2 and 3 features"):
        Linear()(np.ones((1, 2)), np.ones((1, 3)))


def test_precomputed_picks_columns(X):
    gram = Linear()(X)
    kernel = Precomputed().bind(gram)
    assert kernel.pairwise
    np.testing.assert_array_equal(kernel(gram), gram)
    np.testing.assert_array_equal(kernel(gram[:2], kernel.anchors(gram)), gram[:2])
    np.testing.assert_array_equal(kernel(gram[:2], kernel.anchors(gram, [5, 1])), gram[:2, [5, 1]])
    np.testing.assert_array_equal(kernel.diag(gram), np.diag(gram))


@pytest.mark.parametrize(
    "matrix, match",
    [
        (np.ones((3, 2)), r"shape \(3, 2\).*square"),
        (np.array([[1.0, 2.0], [0.5, 1.0]]), r"up to 1\.5"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN"),
    ],
)
def test_a_precomputed_kernel_must_be_a_gram_matrix(matrix, match):
    with pytest.raises(ValueError, match=match):
        Precomputed().bind(matrix)


def test_precomputed_refuses_points_and_diagonals_of_new_rows():
    with pytest.raises(ValueError, match="anchors"):
        Precomputed()(np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match="square"):
        Precomputed().diag(np.ones((2, 3)))


@pytest.mark.parametrize("n_features", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "function, form",
    [
        (lambda a, b: float(np.dot(a, b)), "points"),
        (lambda a, b: a @ b, "points"),
        (lambda a, b: np.exp(-np.sum((a - b) ** 2)), "points"),
        (lambda A, B: A @ B.T, "blocks"),
        (GaussianProcessRBF(), "blocks"),
    ],
    ids=["dot", "matmul", "gauss", "blocks", "gaussian process"],
)
def test_functions_of_points_and_of_blocks_are_told_apart(function, form, n_features):
    X = np.random.RandomState(0).randn(5, n_features)
    kernel = as_kernel(function)
    assert kernel.bind(X).form == form
    assert kernel(X, X[:2]).shape == (5, 2)
    assert kernel.form == "auto"


@pytest.mark.parametrize(
    "function, match",
    [
        (lambda A, B: A, "expected an array of shape"),
        (lambda A, B: None, "expected an array of shape"),
        (lambda A, B: 1 / 0, "ZeroDivisionError"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "non-finite"),
    ],
)
def test_functions_that_are_no_kernels_are_refused(function, match, X):
    with pytest.raises(ValueError, match=match):
        as_kernel(function).bind(X)(X)


def test_function_parameters_are_passed_on(X):
    kernel = FunctionKernel(pairwise.rbf_kernel, {"gamma": 0.5})
    np.testing.assert_allclose(kernel(X), RBF(gamma=0.5)(X), rtol=1e-10)


@pytest.mark.parametrize(
    "name, cls",
    [
        ("rbf", RBF),
        ("laplacian", Laplacian),
        ("poly", Polynomial),
        ("polynomial", Polynomial),
        ("linear", Linear),
        ("cosine", Cosine),
        ("jaccard", Tanimoto),
        ("delta", Delta),
        ("precomputed", Precomputed),
        ("chi2", PairwiseKernel),
        (len, FunctionKernel),
        (None, RBF),
    ],
)
def test_names_become_kernels(name, cls):
    kernel = as_kernel(name)
    assert type(kernel) is cls
    assert isinstance(kernel, Kernel)
    assert as_kernel(kernel) is kernel


@pytest.mark.parametrize(
    "spec, match",
    [
        ("gauss", "laplacian, linear"),
        ("auto", "Kernelized"),
        ("aligned", "labels"),
        (3, "a function of two blocks"),
        (RBF, r"try RBF\(\)"),
    ],
)
def test_what_is_no_kernel_is_refused_with_the_list_of_names(spec, match):
    with pytest.raises(ValueError, match=match):
        as_kernel(spec)
