"""A fitted space owns what it keeps: the caller may change his arrays afterwards."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelmetric import DNE, KPCA, Kernelized, KernelTrick, Nystroem
from kernelmetric.kernels import RBF, FunctionKernel, PairwiseKernel, Precomputed, Rescaled
from kernelmetric.selection import KernelAlignment


def assert_same(Z, expected):
    """Equal up to rounding."""
    atol = np.sqrt(np.finfo(Z.dtype).eps) * np.abs(expected).max()
    np.testing.assert_allclose(Z, expected, rtol=0, atol=atol)


def fitted_or_none(space, kernel, X, y):
    try:
        return clone(space).set_params(kernel=clone(kernel)).fit(X, y)
    except ValueError as error:
        assert "RandomFeatures expected" in str(error)  # they exist for some kernels only
        return None


def more_kernels():
    return [
        Rescaled(RBF(gamma=0.5), np.array([1.0, 0.5, 2.0, 1.0])),
        Rescaled(RBF(gamma=0.5), np.eye(4)[:3]),
        FunctionKernel(lambda a, b, power: (a @ b.T + 1) ** power, {"power": 2}),
        FunctionKernel(lambda a, b: np.minimum(np.abs(a), np.abs(b)).sum()),
        KernelAlignment(centered=True),
        PairwiseKernel("polynomial", {"degree": 2}),
    ]


def more_spaces():
    return [
        Nystroem(8, landmarks="uniform", random_state=0),
        Nystroem(8, landmarks="rpcholesky", random_state=0),
        KPCA(3, solver="randomized", random_state=0),
    ]


@pytest.mark.parametrize(
    ("dtype", "order"),
    [
        pytest.param(np.float64, "C", marks=pytest.mark.slow),
        (np.float64, "F"),
        (np.float32, "C"),
    ],
)
@pytest.mark.every(2)
def test_a_change_of_the_training_points_changes_no_output(registry, labelled, fresh, dtype, order):
    _, y = labelled
    new = fresh.astype(dtype)
    kernels = registry.kernels + more_kernels()
    for space, kernel in itertools.product(registry.spaces + more_spaces(), kernels):
        X = np.array(labelled[0], dtype=dtype, order=order)
        targets = y.copy()
        fitted = fitted_or_none(space, kernel, X, targets)
        if fitted is None:
            continue
        before = fitted.transform(new)
        X *= 3
        targets[:] = 0
        assert_same(fitted.transform(new), before)
        for name, value in vars(fitted).items():
            if isinstance(value, np.ndarray):
                assert not np.may_share_memory(value, X), f"{name} of {fitted!r}"


def test_a_change_of_a_sparse_matrix_changes_no_output(space, labelled):
    X = sparse.csr_array(np.where(labelled[0] > 0.3, labelled[0], 0.0))
    new = X[:5].copy()
    fitted = space.set_params(kernel=RBF(gamma=0.3)).fit(X)
    before = fitted.transform(new)
    X.data *= 3
    X.indices[:] = 0
    assert_same(fitted.transform(new), before)


@pytest.mark.parametrize(
    "space", [KPCA(), KPCA(3), Nystroem(8, random_state=0), KernelTrick()], ids=repr
)
def test_a_change_of_a_gram_matrix_changes_no_output(space, labelled, fresh):
    kernel = RBF(gamma=0.3)
    K, K_new = kernel(labelled[0]), kernel(fresh, labelled[0])
    fitted = space.set_params(kernel=Precomputed()).fit(K)
    before = fitted.transform(K_new)
    K *= 3
    assert_same(fitted.transform(K_new), before)


def test_a_change_of_given_landmarks_changes_no_output(labelled, fresh):
    X, _ = labelled
    landmarks = X[:9].copy()
    fitted = Nystroem(landmarks=landmarks, kernel=RBF(gamma=0.3)).fit(X)
    before = fitted.transform(fresh)
    landmarks *= 3
    assert_same(fitted.transform(fresh), before)
    rows = np.arange(9)
    K = RBF(gamma=0.3)(X)
    fitted = Nystroem(landmarks=rows, kernel="precomputed").fit(K)
    before = fitted.transform(K[:4])
    rows[:] = 0
    assert_same(fitted.transform(K[:4]), before)


def test_a_change_of_the_parameters_of_a_kernel_changes_no_output(labelled, fresh):
    X, _ = labelled
    scales, params = np.ones(4), {"power": 2}
    kernels = [
        Rescaled(RBF(gamma=0.3), scales),
        FunctionKernel(lambda a, b, power: (a @ b.T + 1) ** power, params),
        RBF(gamma=0.3) + RBF(gamma=0.5),
    ]
    fitted = [KPCA(4, kernel=kernel).fit(X) for kernel in kernels]
    before = [space.transform(fresh) for space in fitted]
    scales *= 3
    params["power"] = 3
    kernels[2].kernels[0].set_params(gamma=9.0)
    for space, expected in zip(fitted, before, strict=True):
        assert_same(space.transform(fresh), expected)


def test_coordinates_handed_out_are_no_part_of_the_space(space, labelled, fresh):
    X, _ = labelled
    space.set_params(kernel=RBF(gamma=0.3))
    Z = space.fit_transform(X)
    before = space.transform(fresh)
    Z *= 3
    space.transform(X)[:] = 0
    assert_same(space.transform(fresh), before)


@pytest.mark.every(4)
def test_what_a_space_keeps_lies_in_memory_as_a_file_restores_it(space, kernel, labelled):
    """In one piece, rows or columns first: a product with other strides is rounded otherwise."""
    fitted = fitted_or_none(space, kernel, *labelled)
    for name, value in vars(fitted or space).items():
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous or value.flags.f_contiguous, name


# --- a fit that fails changes nothing -----------------------------------------------------------


@pytest.mark.parametrize("how", ["fit", "fit_transform"])
def test_a_refused_fit_leaves_the_space_as_it_was(space, labelled, fresh, how):
    X, y = labelled
    space.set_params(kernel="rbf").fit(X, y)
    before, state = space.transform(fresh), dict(vars(space))
    for bad in (np.full((20, 7), 0.1), 1e200 * X[:, :3], np.array([[1.0, np.nan]] * 3)):
        if isinstance(space, KernelTrick) and bad.shape == (20, 7):
            continue  # identical points are a basis all the same
        with pytest.raises(ValueError, match=r"Got|Input"):
            getattr(space, how)(bad)
    assert vars(space).keys() == state.keys()
    assert all(vars(space)[name] is state[name] for name in state)
    assert_same(space.transform(fresh), before)


def test_a_kernelized_learner_keeps_nothing_of_the_training_points(labelled, fresh):
    X, y = labelled[0].copy(), labelled[1]
    metric = Kernelized(DNE(2), "rbf").fit(X, y)
    before = metric.transform(fresh)
    X *= 3
    assert_same(metric.transform(fresh), before)
