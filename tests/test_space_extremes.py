"""Spaces and kernels on absurd parameters and extreme data: a fit, or a sentence."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from half_of_product import half_of
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
    Product,
    Rescaled,
    Sum,
)
from kernelmetric.selection import AlignedScales, KernelAlignment
from kernelmetric.spaces import KPCA, KernelTrick, Nystroem, RandomFeatures

JUNK = [np.inf, np.nan, 1e308, -1, 0, 1e-320, "x", None, object(), object, len, True]
JUNK += [10**30, 10**400, [], {}, 2.5]
SPACES = [
    KPCA(),
    KPCA(3, solver="randomized", random_state=0),
    Nystroem(5, random_state=0),
    RandomFeatures(20, random_state=0),
    KernelTrick(),
]
KERNELS = [
    RBF(),
    RBF(sigma=1.0),
    Delta(),
    Laplacian(),
    Polynomial(),
    PairwiseKernel("chi2"),
    FunctionKernel(lambda a, b: a @ b.T),
    Sum([RBF(), Linear()], [1.0, 2.0]),
    Product([RBF(), Linear()]),
    Rescaled(RBF(), [1.0, 2.0, 3.0]),
    Rescaled(RBF(), [[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]]),
    KernelAlignment(),
    AlignedScales(),
]
SENTENCE = r"Got|expected|must|cannot be used|Sparse data was passed|negative values|would take"


@pytest.fixture
def X():
    return np.random.RandomState(0).randn(20, 3)


def fits_or_says_why(space, X, new=None):
    y = np.arange(20) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            space.fit(X, y)
            Z = space.transform(X if new is None else new)
        except (ValueError, TypeError, MemoryError) as error:
            assert np.char.find(str(error), " ") > 0
            assert any(part in str(error) for part in SENTENCE.split("|")), str(error)
        else:
            assert np.isfinite(Z).all()


@pytest.mark.every(3)
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_absurd_parameters_of_a_space_end_in_a_sentence(space, half, X):
    for number, name in enumerate(space.get_params(deep=False), half):
        for value in JUNK[number % 2 :: 2]:
            fits_or_says_why(clone(space).set_params(**{name: value}), X)


@pytest.mark.every(4)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_absurd_parameters_of_a_kernel_end_in_a_sentence(kernel, half, X):
    for number, name in enumerate(kernel.get_params(deep=False), half):
        for value in JUNK[number % 2 :: 2]:
            fits_or_says_why(KPCA(kernel=clone(kernel).set_params(**{name: value})), X)


@pytest.mark.every(4)
@pytest.mark.parametrize(
    ("space", "made", "dtype"),
    half_of(SPACES, [np.asarray, sparse.csr_array], [np.float64, np.float32]),
)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_extreme_points_are_embedded_or_refused(space, dtype, made, half, X):
    kernels = [RBF(), Laplacian(), Linear(), Polynomial(), Cosine(), RBF() + Linear()]
    scales = [1e300, 1e200, 1e154, 1e150, 1e75, 1e-10, 1e-160, 1e-320, 0.0]
    if dtype == np.float32:
        scales = [1e38, 1e30, 1e19, 1e10, 1e-10, 1e-30, 1e-44, 0.0]
    for (i, scale), (j, kernel) in itertools.product(enumerate(scales), enumerate(kernels)):
        if (i + j) % 2 != half:
            continue
        points = np.clip(X * scale, np.finfo(dtype).min, np.finfo(dtype).max).astype(dtype)
        fits_or_says_why(clone(space).set_params(kernel=clone(kernel)), made(points))


@pytest.mark.every(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_extreme_queries_are_embedded_or_refused(space, dtype, X):
    values = [1e308, 1e200, 1e150, 1e38, 1e19, 1e10] if dtype == np.float64 else [3e38, 1e19, 1e10]
    for value, kernel in itertools.product(values, [RBF(), Laplacian(), Linear(), Polynomial(3)]):
        new = np.array([[value, -value, value], [1.0, 2.0, 3.0]], dtype=dtype)
        fits_or_says_why(clone(space).set_params(kernel=clone(kernel)), X.astype(dtype), new)


@pytest.mark.parametrize("space", [KPCA(), KPCA(3), KPCA(3, solver="randomized"), KernelTrick()])
def test_coordinates_beyond_single_precision_are_refused(space, X):
    """The kernel values are numbers of float64, the coordinates would be infinite in float32."""
    points = (1e19 * X).astype(np.float32)
    for kernel in (Polynomial(degree=3), Polynomial(degree=4)):
        for fit in (space.fit_transform, lambda points: space.fit(points).transform(points)):
            with pytest.raises(ValueError, match=r"Got .*(finite|overflow|large).* try rescaling"):
                space.set_params(kernel=kernel) and fit(points)


@pytest.mark.parametrize("scale", [1e15, 1e-15])
def test_single_precision_iterates_where_squares_would_leave_its_range(scale):
    X = np.random.RandomState(0).randn(600, 4).astype(np.float32)
    expected = KPCA(3, kernel="linear", random_state=0).fit(X)
    space = KPCA(3, kernel="linear", random_state=0).fit(np.float32(scale) * X)
    assert space.solver_ == "randomized"
    np.testing.assert_allclose(space.eigenvalues_, expected.eigenvalues_ * scale**2, rtol=1e-4)


def test_landmarks_of_a_precomputed_kernel_must_be_points_of_it(X):
    K = RBF(gamma=0.5)(X)
    for rows in ([3, 20], [-1], []):
        space = Nystroem(landmarks=np.array(rows, dtype=int), kernel=Precomputed())
        with pytest.raises(ValueError, match=r"at least one index from 0 to 19"):
            space.fit(K)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_landmarks_are_centres_also_where_squares_overflow(scale, X):
    near = Nystroem(8, kernel="cosine", random_state=0).fit(X)
    far = Nystroem(8, kernel="cosine", random_state=0).fit(scale * X)
    np.testing.assert_allclose(far.anchors_ / scale, near.anchors_, rtol=1e-6)


@pytest.mark.parametrize("degree", [10**30, 10_001])
def test_a_degree_beyond_all_numbers_is_refused(degree, X):
    with pytest.raises(ValueError, match="Got degree="):
        KPCA(kernel=Polynomial(degree)).fit(X)


@pytest.mark.parametrize("kernel", [RBF(sigma=1e308), Delta(width=1e308)])
def test_a_width_whose_square_overflows_is_refused(kernel, X):
    with pytest.raises(ValueError, match="whose square overflows"):
        KPCA(kernel=kernel).fit(X)
