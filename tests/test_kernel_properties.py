"""Kernels composed at random: the laws of a kernel hold for every sum, product and rescaling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from kernelmetric import KPCA
from kernelmetric.kernels import (
    RBF,
    Cosine,
    Delta,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    Product,
    Rescaled,
    Sum,
    Tanimoto,
)

N_FEATURES = 3
numbers = st.floats(0.05, 3.0)
scales = st.lists(st.floats(0.0, 2.0), min_size=N_FEATURES, max_size=N_FEATURES)
settled = settings(max_examples=25, deadline=None, derandomize=True)


def products(A, B):
    return A @ B.T


formulas = st.one_of(
    st.builds(RBF, gamma=st.one_of(numbers, st.sampled_from(["median", "scale", "auto", None]))),
    st.builds(RBF, sigma=numbers),
    st.builds(Laplacian, gamma=st.one_of(numbers, st.just("median"))),
    st.builds(Polynomial, degree=st.integers(1, 3), gamma=numbers, coef0=st.floats(0.0, 2.0)),
    st.builds(Delta, width=st.one_of(st.none(), numbers)),
    st.builds(FunctionKernel, st.just(products)),
    st.builds(Linear),
    st.builds(Cosine),
    st.builds(Tanimoto),
)


@st.composite
def sums(draw, terms):
    kernels = draw(st.lists(terms, min_size=1, max_size=3))
    weights = st.lists(st.floats(0.0, 4.0), min_size=len(kernels), max_size=len(kernels))
    return Sum(kernels, draw(st.one_of(st.none(), weights)))


kernels = st.recursive(
    formulas,
    lambda inner: st.one_of(
        sums(inner),
        st.builds(Product, st.lists(inner, min_size=1, max_size=2)),
        st.builds(Rescaled, inner, scales),
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, w: w * a, inner, numbers),
    ),
    max_leaves=4,
)


@st.composite
def points(draw, most=9):
    n = draw(st.integers(2, most))
    seed = draw(st.integers(0, 2**16))
    return np.random.RandomState(seed).uniform(-1.5, 1.5, (n, N_FEATURES))


def close(K, expected, dtype=np.float64):
    expected = np.asarray(expected)
    atol = 1e4 * np.finfo(dtype).eps * max(np.abs(expected).max(), 1e-12)
    np.testing.assert_allclose(K, expected, rtol=0, atol=atol)


@settled
@given(kernels, points())
def test_a_composed_kernel_is_symmetric_and_positive_semi_definite(kernel, X):
    K = kernel.bind(X)(X)
    assert np.isfinite(K).all()
    close(K, K.T)
    values = np.linalg.eigvalsh((K + K.T) / 2)
    assert values[0] >= -1e-9 * max(np.trace(K), 1e-300)


@pytest.mark.slow
@settled
@given(kernels, points(), st.integers(1, 8))
def test_blocks_of_a_composed_kernel_are_blocks_of_its_gram_matrix(kernel, X, cut):
    bound = kernel.bind(X)
    cut = min(cut, len(X) - 1)
    K = bound(X)
    close(bound(X, X.copy()), K)
    close(bound(X[:cut], X[cut:]), K[:cut, cut:])
    close(bound(X[cut:], X[:cut]), K[cut:, :cut])
    close(bound.diag(X), np.diag(K))
    close(bound(X, bound.anchors(X, np.arange(cut))), K[:, :cut])


@settled
@given(kernels, points())
def test_binding_changes_neither_the_kernel_nor_what_is_bound(kernel, X):
    text = repr(kernel)
    bound = kernel.bind(X)
    assert repr(kernel) == text
    assert bound.is_bound
    again = bound.bind(X[:2] * 5)  # its parameters are numbers: other points are ignored
    assert again is not bound
    close(again(X), bound(X))


@settled
@given(kernels, points())
def test_a_clone_and_equal_parameters_give_an_equal_kernel(kernel, X):
    expected = kernel.bind(X)(X)
    copy = clone(kernel)
    assert repr(copy) == repr(kernel)
    close(copy.bind(X)(X), expected)
    bound = kernel.bind(X)
    copy = clone(bound)
    copy.set_params(**bound.get_params(deep=False))
    close(copy(X), expected)


@pytest.mark.slow
@settled
@given(kernels, kernels, points(), numbers)
def test_sums_products_and_weights_are_those_of_the_values(first, second, X, weight):
    a, b = first.bind(X), second.bind(X)
    A, B = a(X), b(X)
    close((a + b)(X), A + B)
    close((a * b)(X), A * B)
    close((weight * a)(X), weight * A)
    close((a * weight)(X), weight * A)
    close(((a + b) * b)(X), (A + B) * B)
    # bound before or after it is composed, it is the same kernel
    close((first + weight * second).bind(X)(X), A + weight * B)


@settled
@given(kernels, points(), scales)
def test_a_rescaled_kernel_is_the_kernel_of_rescaled_points(kernel, X, factors):
    inner = kernel.bind(X * np.array(factors))
    close(Rescaled(kernel, factors).bind(X)(X), inner(X * np.array(factors)))


@pytest.mark.slow
@settled
@given(st.lists(formulas, min_size=1, max_size=4), points(), numbers)
def test_nested_parameters_reach_their_term_and_no_other(terms, X, gamma):
    for whole in (Sum(terms), Product(terms)):
        whole = clone(whole)
        params = whole.get_params()
        assert [params[f"k{i}"] for i in range(len(terms))] == whole.kernels
        for i, term in enumerate(terms):
            if not isinstance(term, Laplacian):
                continue
            changed = clone(whole).set_params(**{f"k{i}__gamma": gamma})
            assert changed.kernels[i].gamma == gamma
            assert whole.kernels[i].gamma == term.gamma
            for j in set(range(len(terms))) - {i}:
                assert repr(changed.kernels[j]) == repr(terms[j])
        replaced = clone(whole).set_params(k0=Linear())
        assert isinstance(replaced.kernels[0], Linear)
        with pytest.raises(ValueError, match="Invalid parameter"):
            whole.set_params(**{f"k{len(terms)}": Linear()})


@settled
@given(kernels, points())
def test_single_precision_is_close_to_double(kernel, X):
    bound = kernel.bind(X)
    K = bound(X.astype(np.float32))
    assert K.dtype == np.float32
    close(K, bound(X.astype(np.float32).astype(np.float64)), np.float32)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(kernels, points())
def test_full_rank_coordinates_give_the_distances_of_any_composed_kernel(kernel, X):
    try:
        space = KPCA(kernel=kernel).fit(X)
    except ValueError as error:
        assert "coincide" in str(error)  # a weight or a scale may be zero
        return
    K = space.kernel_(X)
    H = np.eye(len(X)) - 1 / len(X)
    Z = space.transform(X)
    np.testing.assert_allclose(Z @ Z.T, H @ K @ H, atol=1e-6 * np.trace(K))
