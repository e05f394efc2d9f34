"""Alignment for classes of several clusters: local targets, and scales that turn noise down."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric.compute import memory_budget
from kernelmetric.datasets import make_checkerboard
from kernelmetric.graphs import Pairs
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels import RBF, Delta, Polynomial, Rescaled, rbf_widths
from kernelmetric.learners import LMNN
from kernelmetric.selection import AlignedScales, AlignedSum, KernelAlignment
from kernelmetric.selection._aligned_scales import aligned_scales, u_alignment, u_centred
from kernelmetric.selection._alignment import ideal_kernel

BASES = [*rbf_widths(), Delta()]


def board(n, n_noise, seed=0, n_cells=3):
    X, y = make_checkerboard(n, n_noise, n_cells=n_cells, random_state=seed)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def noisy():
    return board(200, 3)


def ideal(y):
    return np.where(np.equal.outer(y, y), 1.0, -1.0 / (len(np.unique(y)) - 1))


def gram(logs, X):
    S = X * np.exp(0.5 * logs)
    return np.exp(-np.square(S[:, None] - S[None]).sum(axis=2))


def u_center(K):
    """The definition, by hand."""
    n = len(K)
    K = K - np.diag(np.diag(K))
    sums = K.sum(axis=1)
    U = K - sums / (n - 2) - sums[:, None] / (n - 2) + K.sum() / (n - 1) / (n - 2)
    return U - np.diag(np.diag(U))


def centre(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


# --- local targets ------------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [False, True])
def test_a_local_target_is_the_product_of_two_kernels(noisy, centered):
    X, y = noisy
    kernel = KernelAlignment(BASES, centered=centered, local=RBF(gamma=0.5)).bind(X, y)
    Y, K = ideal(y) * RBF(gamma=0.5)(X), kernel(X)
    if centered:
        Y, K = centre(Y), centre(K)
    expected = np.sum(K * Y) / np.linalg.norm(K) / np.linalg.norm(Y)
    assert kernel.alignment_ == pytest.approx(expected, abs=1e-9)


def test_a_local_target_of_one_neighbourhood_is_the_global_one(noisy):
    X, y = noisy
    everywhere = KernelAlignment(BASES, local=RBF(gamma=0.0)).bind(X, y)
    np.testing.assert_allclose(everywhere.weights_, KernelAlignment(BASES).bind(X, y).weights_)


def test_a_local_target_looks_at_the_sampled_rows(noisy):
    X, y = noisy
    spec = KernelAlignment(BASES, local="rbf", max_samples=150, random_state=0, centered=True)
    whole = clone(spec).set_params(max_samples=None).bind(X, y)
    sampled = spec.bind(X, y)
    assert 0 < abs(sampled.alignment_ - whole.alignment_) < 4 * sampled.alignment_error_


def test_clusters_of_a_class_may_stay_apart_under_a_local_target():
    centres = np.array([[0.0, 0.0], [20.0, 20.0], [0.0, 20.0], [20.0, 0.0]])
    X = np.random.RandomState(0).standard_normal((120, 2)) + np.tile(centres, (30, 1))
    y = np.arange(120) % 4 // 2
    bases = [RBF(gamma=g) for g in (1e-3, 0.01, 0.1)]
    narrow = KernelAlignment(bases, centered=True, local=RBF(gamma=0.01)).bind(X, y)
    assert narrow.alignment_ > 0.95  # a kernel that sees four clusters
    assert KernelAlignment(bases, centered=True).bind(X, y).alignment_ < 0.75  # must see two


# --- the alignment of scales --------------------------------------------------------------------


def test_products_are_those_of_the_definition(noisy):
    X, y = noisy
    logs = np.array([0.5, 0.0, -1.0, -2.0, 1.0])
    U, K = u_center(ideal(y)), u_center(gram(logs, X))
    target = u_centred(ideal_kernel(y, X, "classes"), len(y))
    np.testing.assert_allclose(target(slice(0, 200)), U / np.linalg.norm(U), atol=1e-12)
    expected = np.sum(K * U) / np.linalg.norm(K) / np.linalg.norm(U)
    # ‖K‖² of the U-centred matrix is the unbiased product of K with itself.
    assert u_alignment(logs, X, target)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", ["classes", "same", "regression"])
@pytest.mark.parametrize("shift", [-3.0, -1.0, 0.5])
def test_the_gradient_is_that_of_finite_differences(noisy, target, shift):
    X, y = noisy
    X, y = X[:60], y[:60] if target != "regression" else X[:60, 0] ** 2
    block = u_centred(ideal_kernel(y, X, target), 60)
    logs = shift + np.random.RandomState(0).standard_normal(5)
    error = check_grad(
        lambda p: u_alignment(p, X, block)[0], lambda p: u_alignment(p, X, block)[1], logs
    )
    size = np.linalg.norm(u_alignment(logs, X, block)[1])
    assert size > 1e-3
    assert error < 1e-4 * size


@pytest.mark.slow
def test_labels_by_chance_have_no_alignment_on_average(noisy):
    X, _ = noisy
    rng = np.random.RandomState(0)
    found = []
    for _ in range(200):
        y = rng.permutation(np.arange(60) % 2)
        block = u_centred(ideal_kernel(y, X[:60], "classes"), 60)
        found.append(u_alignment(np.full(5, 1.0), X[:60], block)[0])
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(200)
    # With its diagonal the same kernel is aligned with any labels.
    assert np.trace(centre(gram(np.full(5, 1.0), X[:60]))) / 60 > 0.8


@pytest.mark.slow
def test_blocks_do_not_matter(noisy):
    X, y = noisy
    whole = aligned_scales(X, ideal_kernel(y, X, "classes"))
    with memory_budget("100KB"):
        blocked = aligned_scales(X, ideal_kernel(y, X, "classes"))
    np.testing.assert_allclose(blocked, whole, rtol=1e-5)


# --- scales -------------------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_cells", "n_noise"), [(2, 20), (3, 4)])
def test_features_of_noise_are_turned_down(seed, n_cells, n_noise):
    X, y = board(300, n_noise, seed, n_cells)
    scales = AlignedScales(RBF()).bind(X, y).scales
    assert scales[:2].min() > 3 * scales[2:].max()


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(4))
def test_features_stay_together_where_labels_are_noise(seed):
    rng = np.random.RandomState(seed)
    X, y = rng.standard_normal((200, 6)), np.arange(200) % 2
    scales = AlignedScales(RBF()).bind(X, y).scales
    assert scales.max() < 3 * scales.min()


def test_the_aligned_gaussian_has_unit_width(noisy):
    X, y = noisy
    kernel = AlignedScales(RBF(gamma=1.0)).bind(X, y)
    Y = u_center(ideal(y))

    def alignment(gamma):
        K = u_center(RBF(gamma=gamma)(X * kernel.scales))
        return np.sum(K * Y) / np.linalg.norm(K)

    assert alignment(1.0) > max(alignment(0.7), alignment(1.4))


def test_units_of_features_are_no_scales_of_the_kernel(noisy):
    X, y = noisy
    one, other = (AlignedScales(RBF(gamma=1.0)).bind(c * X, y) for c in (1.0, 1e3))
    np.testing.assert_allclose(other(1e3 * X), one(X), atol=1e-3)


@pytest.mark.slow
def test_scales_help_the_nearest_neighbour_where_weights_of_widths_do_not():
    X, y = board(900, 4, seed=5)

    def accuracy(kernel):
        metric = Kernelized(LMNN(tol=0.01), kernel=kernel).fit(X[:300], y[:300])
        neighbour = KNeighborsClassifier(1).fit(metric.transform(X[:300]), y[:300])
        return neighbour.score(metric.transform(X[300:]), y[300:])

    assert accuracy(AlignedScales()) > accuracy(KernelAlignment(BASES, centered=True)) + 0.1


def test_any_kernel_can_be_rescaled(noisy):
    X, y = noisy
    default = AlignedScales().bind(X, y)
    assert isinstance(default, Rescaled)
    aligned = AlignedScales(KernelAlignment(BASES, centered=True)).bind(X, y)
    assert isinstance(aligned.kernel, AlignedSum)
    np.testing.assert_array_equal(aligned.scales, default.scales)
    other = AlignedScales(Polynomial(2)).bind(X, y)
    np.testing.assert_array_equal(other.scales, default.scales)
    np.testing.assert_allclose(other(X), Polynomial(2)(X * other.scales))
    np.testing.assert_allclose(default.diag(X), np.diagonal(default(X)))
    assert AlignedScales("linear").bind(X, y)(X).shape == (200, 200)


def test_numbers_can_be_the_target():
    X = np.random.RandomState(0).standard_normal((150, 5))
    scales = AlignedScales(target="regression").bind(X, np.sin(3 * X[:, 2])).scales
    assert np.argmax(scales) == 2
    assert scales[2] > 2 * np.delete(scales, 2).max()


@pytest.mark.slow
def test_a_sample_of_the_rows_is_enough_and_repeats():
    X, y = board(600, 4)
    sampled, again, whole = (
        AlignedScales(RBF(), max_samples=m).bind(X, y).scales for m in (300, 300, None)
    )
    np.testing.assert_array_equal(sampled, again)
    assert not np.array_equal(sampled, whole)
    assert sampled[:2].min() > 2 * sampled[2:].max()


@pytest.mark.torch
def test_tensors_give_the_same_kernel(noisy):
    torch = pytest.importorskip("torch", reason="comes with the extra `torch`")
    X, y = noisy
    kernel = AlignedScales().bind(torch.asarray(X), torch.asarray(y))
    K = kernel(torch.asarray(X))
    assert isinstance(K, torch.Tensor)
    np.testing.assert_allclose(K.numpy(), AlignedScales().bind(X, y)(X), atol=1e-8)


def test_binding_changes_nothing_and_repeats(noisy):
    X, y = noisy
    spec = AlignedScales(RBF() + 0.1 * Delta())
    before = repr(spec)
    kernel = spec.bind(X, y)
    assert repr(spec) == before
    assert not spec.is_bound
    assert kernel.is_bound
    np.testing.assert_array_equal(kernel.bind(X)(X), kernel(X))
    np.testing.assert_array_equal(clone(kernel)(X), kernel(X))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_points_keep_a_common_scale_or_a_finite_one(n):
    X = np.random.RandomState(0).standard_normal((n, 3))
    scales = AlignedScales(RBF()).bind(X, np.arange(n) % 2).scales
    assert np.all(np.isfinite(scales))
    assert np.all(scales > 0)
    if n < 4:
        assert np.ptp(scales) == 0


def test_points_that_coincide_keep_a_common_scale():
    scales = AlignedScales(RBF()).bind(np.ones((20, 3)), np.arange(20) % 2).scales
    assert np.ptp(scales) == 0


@pytest.mark.parametrize(
    ("spec", "y", "message"),
    [
        (AlignedScales(), None, "requires y"),
        (AlignedScales(), np.zeros(200), "Got 1 class"),
        (AlignedScales(), np.linspace(0, 1, 200), r"continuous y.*try target='regression'"),
        (AlignedScales(target="ideal"), np.arange(200) % 2, "Got target='ideal'"),
        (AlignedScales(max_samples=1), np.arange(200) % 2, "Got max_samples=1"),
    ],
)
def test_what_cannot_be_scaled_is_refused_with_a_remedy(noisy, spec, y, message):
    with pytest.raises(ValueError, match=message):
        spec.bind(noisy[0], y)


def test_scales_for_other_features_are_refused(noisy):
    with pytest.raises(ValueError, match=r"Got scales=\[1.0, 2.0\] for points with 5 features"):
        Rescaled(RBF(gamma=1.0), [1.0, 2.0])(noisy[0])


def test_pairs_are_no_numbers_to_align_with(labelled):
    X, _ = labelled
    pairs = Pairs([[0, 1]], n_samples=len(X))
    with pytest.raises(ValueError, match="Got Pairs in place of an array"):
        AlignedScales(target="regression").bind(X, pairs)
