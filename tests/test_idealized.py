"""Metrics from pairs: the learned kernel, its choices, bad input. Optimality has its own file."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from half_of_product import half_of
from kernelmetric import RBF, Kernelized, KernelTrick, memory_budget
from kernelmetric.graphs import Pairs
from kernelmetric.kernels import ideal_alignment, ideal_gram, idealized_gram
from kernelmetric.learners import IdealizedKernel
from kernelmetric.learners._idealized_choice import _largest_good
from tested_learners import not_repeated_rows

pytestmark = pytest.mark.usefixtures("deadline")


def toy(n=60, seed=0):
    """The toy data of the paper: one feature that matters, ten of noise."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    X = 5 * rng.standard_normal((n, 11))
    X[:, 0] = rng.standard_normal(n) + np.where(y, -3, 3)
    return X, y


def wide(seed=0):
    """More features than points."""
    rng = np.random.RandomState(seed)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 60))
    X[:, 0] += 2 * y
    return X, y


def wine():
    """Raw, so that one feature is a thousand times larger than others."""
    X, y = load_wine(return_X_y=True)
    return X[::2], y[::2]


# --- the learned kernel -------------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("psd", ["solve", "clip"])
def test_the_learned_kernel_is_positive_semi_definite(psd):
    X, y = wide()
    metric = IdealizedKernel(C=1e3, psd=psd).fit(X, y)
    K = metric.pairwise_kernels(X)
    assert metric.negative_mass_ > 0.05
    assert np.linalg.eigvalsh(K)[0] > -1e-9 * np.abs(K).max()
    assert np.linalg.eigvalsh(metric.idealized_kernels(X))[0] > -1e-9 * np.abs(K).max()


def test_without_the_constraint_squared_distances_keep_their_sign():
    X, y = wide()
    metric = IdealizedKernel(C=1e3, psd="none").fit(X, y)
    M = metric.get_mahalanobis_matrix()
    assert np.linalg.eigvalsh(M)[0] < -0.1
    delta = X[:, None, :] - X[None, :, :]
    squares = np.einsum("abi,ij,abj->ab", delta, M, delta)
    D = metric.pairwise_distances(X)
    assert D.min() < 0
    np.testing.assert_allclose(np.sign(D) * D**2, squares, atol=1e-8 * np.abs(squares).max())
    rows = np.array([[0, 1], [3, 17], [5, 30]])
    np.testing.assert_allclose(metric.pair_distance(rows, X), D[rows[:, 0], rows[:, 1]], rtol=1e-6)
    np.testing.assert_allclose(metric.pair_distance(X[rows]), D[rows[:, 0], rows[:, 1]], rtol=1e-6)
    np.testing.assert_allclose(metric.pairwise_kernels(X), X @ M @ X.T, atol=1e-8 * np.abs(M).max())


def test_signs_are_right_in_any_array_library_and_any_order():
    xp = pytest.importorskip("array_api_strict")
    X, y = wide()
    metric = IdealizedKernel(C=1e3, psd="none").fit(X, y)
    D, K = metric.pairwise_distances(X), metric.pairwise_kernels(X)
    strict = xp.asarray(X)
    top = np.abs(D).max()
    np.testing.assert_allclose(np.asarray(metric.pairwise_distances(strict)), D, atol=1e-6 * top)
    there = IdealizedKernel(C=1e3, psd="none").fit(strict, y)
    np.testing.assert_allclose(np.asarray(there.pairwise_distances(strict)), D, atol=1e-6 * top)
    M = np.asarray(there.get_mahalanobis_matrix())
    np.testing.assert_allclose(M, metric.get_mahalanobis_matrix(), atol=1e-9 * np.abs(M).max())
    metric.components_ = np.ascontiguousarray(metric.components_[::-1])
    metric.signature_ = metric.signature_[::-1]
    np.testing.assert_allclose(metric.pairwise_distances(X), D, atol=1e-6 * top)
    np.testing.assert_allclose(metric.pairwise_kernels(X), K, atol=1e-9 * np.abs(K).max())


@pytest.mark.slow
def test_a_definite_metric_needs_no_signs():
    X, y = toy()
    assert IdealizedKernel(C=1e3).fit(X, y).signature_ is None
    plain = IdealizedKernel(C=1e3, psd="clip").fit(X, y)
    D = plain.pairwise_distances(X)
    for signs in (None, np.ones(len(plain.components_))):
        plain.signature_ = signs
        np.testing.assert_array_equal(plain.pairwise_distances(X), D)


def test_the_kernel_of_new_points_is_the_sum_over_pairs_of_section_3_3():
    X, y = toy(40)
    new = toy(10, seed=1)[0]
    kernel = RBF(gamma=0.01)
    metric = IdealizedKernel(kernel, C=1e3, psd="none").fit(X, y)
    rows, signs = metric.pairs_.rows, np.where(metric.pairs_.is_similar, -1.0, 1.0)
    K = kernel(new, X)
    F = K[:, rows[:, 0]] - K[:, rows[:, 1]]
    expected = F @ ((signs * metric.alpha_)[:, None] * F.T)
    found = metric.idealized_kernels(new)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("kernel", "psd"), half_of(["rbf", "poly", RBF(gamma=0.02)], ["clip", "solve"])
)
def test_a_kernel_inside_is_a_kernel_outside(kernel, psd):
    X, y = toy(40)
    new = toy(20, seed=1)[0]
    inside = IdealizedKernel(kernel, C=1e3, psd=psd).fit(X, y)
    outside = Kernelized(IdealizedKernel(C=1e3, psd=psd), kernel).fit(X, y)
    D = inside.pairwise_distances(new, X)
    np.testing.assert_allclose(outside.pairwise_distances(new, X), D, atol=1e-6 * D.max())


@pytest.mark.slow
def test_the_linear_kernel_changes_nothing():
    for X, y in (toy(40), wide()):
        D = IdealizedKernel(C=1e3).fit(X, y).pairwise_distances(X)
        kernelized = Kernelized(IdealizedKernel(C=1e3), "linear").fit(X, y)
        np.testing.assert_allclose(kernelized.pairwise_distances(X), D, atol=1e-6 * D.max())


@pytest.mark.slow
def test_pairs_pass_through_kernelized():
    X, y = toy(40)
    pairs = Pairs.from_neighbors(X, y)
    by_pairs = Kernelized(IdealizedKernel(C=1e3), "rbf").fit(X, pairs=pairs)
    listed = Kernelized(IdealizedKernel(C=1e3), "rbf").fit(
        X, similar=pairs.similar, dissimilar=pairs.dissimilar
    )
    D = by_pairs.pairwise_distances(X)
    np.testing.assert_allclose(listed.pairwise_distances(X), D, atol=1e-6 * D.max())


def test_the_kernel_trick_is_refused():
    with pytest.raises(ValueError, match=r"Got KernelTrick with IdealizedKernel.*use KPCA"):
        Kernelized(IdealizedKernel(C=1e3), "rbf", KernelTrick()).fit(*toy())


@pytest.mark.slow
def test_the_unit_of_the_features_does_not_matter():
    X, y = toy()
    metric = IdealizedKernel(C=1e3).fit(X, y)
    other = IdealizedKernel(C=1e3).fit(1000 * X + 7, y)
    M = metric.get_mahalanobis_matrix()
    np.testing.assert_allclose(other.get_mahalanobis_matrix(), M, atol=1e-5 * np.abs(M).max())
    assert other.gamma_ == pytest.approx(1e6 * metric.gamma_, rel=1e-5)


def test_the_prior_is_what_the_metric_starts_from():
    X, y = toy()
    plain = IdealizedKernel(C=1e3).fit(X, y)
    same = IdealizedKernel(C=1e3, prior=np.eye(11)).fit(X, y)
    np.testing.assert_allclose(same.components_, plain.components_, atol=1e-6)
    # A prior that knows the feature that matters asks less of the pairs.
    knowing = np.diag([20.0] + [0.1] * 10)
    assert IdealizedKernel(C=1e3, prior=knowing).fit(X, y).alignment_before_ > 0.5
    with pytest.raises(ValueError, match="Got a prior of shape"):
        IdealizedKernel(C=1e3, prior=-np.eye(11)).fit(X, y)


def test_the_metric_finds_the_feature_that_matters():
    X, y = toy()
    new, truth = toy(400, seed=1)
    metric = IdealizedKernel(C=1e3).fit(X, y)

    def accuracy(A, B):
        return KNeighborsClassifier(1).fit(A, y).score(B, truth)

    assert accuracy(X, new) < 0.75
    assert accuracy(metric.transform(X), metric.transform(new)) > 0.93
    assert metric.alignment_after_ > metric.alignment_before_ + 0.3
    assert metric.alignment_before_ == pytest.approx(ideal_alignment(X @ X.T, y))
    K = metric.idealized_kernels(X)
    assert metric.alignment_after_ == pytest.approx(ideal_alignment(K, y))


def test_the_learned_kernel_serves_others():
    X, y = toy()
    new, truth = toy(200, seed=1)
    metric = IdealizedKernel(C=1e3).fit(X, y)
    assert SVC(kernel=metric.pairwise_kernels).fit(X, y).score(new, truth) > 0.95
    svc = SVC(kernel="precomputed").fit(metric.pairwise_kernels(X), y)
    assert svc.score(metric.pairwise_kernels(new, X), truth) > 0.95
    labels = KMeans(2, n_init=5, random_state=0).fit_predict(metric.transform(new))
    assert max(np.mean(labels == truth), np.mean(labels != truth)) > 0.9


@pytest.mark.slow
def test_automatic_C_sees_that_raw_wine_needs_a_large_one():
    X, y = wine()
    metric = IdealizedKernel().fit(X, y)
    assert metric.C_ >= 1e6
    assert metric.C_scores_[-2:].max() > metric.C_scores_[:3].max() + 0.05


@pytest.mark.slow
def test_automatic_C_is_the_same_every_time():
    X, y = toy(30)
    metric = IdealizedKernel(psd="clip", random_state=3).fit(X, y)
    again = clone(metric).fit(X, y)
    np.testing.assert_array_equal(again.C_scores_, metric.C_scores_)
    np.testing.assert_array_equal(again.components_, metric.components_)


def test_automatic_C_takes_the_largest_that_is_not_worse():
    scores = np.array([[0.6, 0.7, 0.6], [0.9, 0.8, 0.9], [0.9, 0.8, 0.88], [0.7, 0.7, 0.7]])
    assert _largest_good(scores) == 2  # behind by its standard error
    assert _largest_good(scores[:2]) == 1
    assert _largest_good(scores[:, :1]) == 2  # of one fold there is no error: ties alone


@pytest.mark.slow
def test_automatic_C_ends_where_C_only_scales_the_metric():
    X, y = toy()
    metric = IdealizedKernel(psd="clip").fit(X, y)
    assert metric.C_ == 10.0 ** len(metric.C_scores_) < 1e8
    M = metric.get_mahalanobis_matrix()
    larger = IdealizedKernel(C=100 * metric.C_, psd="clip").fit(X, y).get_mahalanobis_matrix()
    assert np.sum(M * larger) / np.linalg.norm(M) / np.linalg.norm(larger) > 0.999


def test_support_pairs_alone_give_the_same_metric():
    X, y = toy()
    metric = IdealizedKernel(C=1e3, psd="none").fit(X, y)
    assert len(metric.support_pairs_) < len(metric.pairs_)
    support = metric.alpha_ > 1e-6 * metric.upper_
    rows, signs = metric.pairs_.rows[support], np.where(metric.pairs_.is_similar, -1, 1)[support]
    delta = X[rows[:, 0]] - X[rows[:, 1]]
    M = (delta * (signs * metric.alpha_[support])[:, None]).T @ delta
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), M, atol=1e-3 * np.abs(M).max())


@pytest.mark.slow
def test_many_pairs_of_few_raw_features_are_solved_too():
    X, y = load_wine(return_X_y=True)
    X = X[:, [0, 1, 4, 6, 9, 12]]  # of widths from 0.6 to 1400
    problem_pairs = Pairs.from_neighbors(X, y, 20, None)
    metric = IdealizedKernel(C=1e6, tol=1e-6).fit(X, pairs=problem_pairs)
    assert len(metric.alpha_) > 3000
    assert metric.solver_ == "interior"
    assert metric.duality_gap_ < 1e-6


def test_a_gap_that_stays_open_warns():
    X, y = toy()
    with pytest.warns(ConvergenceWarning, match=r"duality gap of .*above tol"):
        metric = IdealizedKernel(C=1e3, max_iter=2).fit(X, y)
    assert not metric.converged_
    assert metric.duality_gap_ > 1e-3


@pytest.mark.slow
def test_blocks_of_pairs_change_nothing():
    X, y = toy()
    whole = IdealizedKernel(C=1e3).fit(X, y)
    with memory_budget("2MB"):
        blocked = IdealizedKernel(C=1e3).fit(X, y)
    np.testing.assert_allclose(
        blocked.get_mahalanobis_matrix(), whole.get_mahalanobis_matrix(), atol=1e-5
    )


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0, -0.1, 1.01, "half", np.nan])
def test_nu_outside_its_range_is_refused(nu):
    with pytest.raises(ValueError, match=r"Got nu=.*expected a number > 0 and <= 1"):
        IdealizedKernel(C=1.0, nu=nu).fit(*toy())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, r"Got C=0, but IdealizedKernel expected 'auto' or a number >= 1e-100"),
        ({"C_similar": -1}, "Got C_similar=-1, but IdealizedKernel expected a number >= 1e-100"),
        ({"psd": "yes"}, "Got psd='yes'"),
        ({"n_neighbors": 0}, "Got n_neighbors=0"),
    ],
)
def test_parameters_without_meaning_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        IdealizedKernel(**parameters).fit(*toy())


def test_no_dissimilar_pairs_are_refused():
    X, _ = toy()
    with pytest.raises(ValueError, match=r"Got no dissimilar pairs.*the best metric is zero"):
        IdealizedKernel(C=1.0).fit(X, similar=[[0, 2]])


def test_dissimilar_pairs_alone_will_do():
    X, _ = toy()
    metric = IdealizedKernel().fit(X, dissimilar=[[0, 1], [2, 3]])
    assert metric.C_ == 1e3  # nothing to cross-validate with
    assert metric.pair_distance(np.array([[0, 1]]), X)[0] > np.linalg.norm(X[0] - X[1])


def test_contradictory_pairs_are_refused():
    X, _ = toy()
    with pytest.raises(ValueError, match="also dissimilar"):
        IdealizedKernel(C=1.0).fit(X, similar=[[0, 1]], dissimilar=[[0, 1]])


def test_pairs_of_identical_points_are_refused_unless_others_differ():
    X, _ = toy()
    X[1] = X[0]
    with pytest.raises(ValueError, match="Got pairs of points that coincide"):
        IdealizedKernel(C=1.0).fit(X, dissimilar=[[0, 1]])
    metric = IdealizedKernel(C=10.0).fit(X, similar=[[4, 5]], dissimilar=[[0, 1], [2, 3]])
    assert np.isfinite(metric.components_).all()
    assert metric.converged_


def test_missing_rows_and_missing_labels_are_refused():
    X, _ = toy()
    with pytest.raises(ValueError, match="row"):
        IdealizedKernel(C=1.0).fit(X, similar=[[0, 1]], dissimilar=[[0, 60]])
    with pytest.raises(ValueError, match="neither y nor pairs"):
        IdealizedKernel(C=1.0).fit(X)
    with pytest.raises(ValueError, match="n_samples"):
        IdealizedKernel(C=1.0).fit(X[:-1], pairs=Pairs([[0, 1]], [[1, 2]], 60))


def test_a_metric_that_collapses_says_so():
    X, _ = toy()
    X[1] = X[0]
    with pytest.warns(UserWarning, match="ended in the zero metric"):
        metric = IdealizedKernel(C=10.0).fit(X, similar=[[2, 3]], dissimilar=[[0, 1]])
    assert metric.transform(X).shape == (60, 1)
    assert not metric.pairwise_distances(X).any()


@pytest.mark.slow  # another variant passes them in test_estimator_checks.py
@parametrize_with_checks(
    [IdealizedKernel(C=10.0), IdealizedKernel("rbf", C=10.0, psd="clip")],
    expected_failed_checks=not_repeated_rows,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# --- the idealized Gram matrix ------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
@pytest.mark.parametrize("seed", range(8))
def test_idealizing_a_gram_matrix_raises_its_alignment(seed, class_weight):
    # Proposition 1, also where ⟨K, K*⟩ < 0 and γ is below the bound that it asks for.
    rng = np.random.RandomState(seed)
    y = np.concatenate([[0, 1, 2], rng.randint(3, size=12)])
    A = rng.standard_normal((15, 15))
    K = A @ A.T if seed % 2 else A + A.T - (1.0 * (y[:, None] == y))
    before = ideal_alignment(K, y, class_weight)
    assert seed % 2 or before < 0
    last = before
    for gamma in (1e-3, 0.1, 1.0, 10.0):
        after = ideal_alignment(idealized_gram(K, y, gamma, class_weight), y, class_weight)
        assert after > last
        last = after


def test_idealizing_moves_classes_apart_by_gamma():
    rng = np.random.RandomState(0)
    y = np.arange(10) % 3
    A = rng.standard_normal((10, 4))
    K = A @ A.T

    def squares(K):
        return np.diag(K)[:, None] + np.diag(K) - 2 * K

    moved = squares(idealized_gram(K, y, 3.0)) - squares(K)
    np.testing.assert_allclose(moved, 3.0 * (y[:, None] != y), atol=1e-12)
    assert np.linalg.eigvalsh(idealized_gram(K, y, 3.0, "balanced"))[0] > -1e-9


def test_balanced_classes_weigh_the_same_in_the_ideal_gram_matrix():
    y = np.array([0] * 9 + [1])
    K = ideal_gram(y, "balanced")
    assert K[:9].sum() / 9 == pytest.approx(K[9].sum())
    with pytest.raises(ValueError, match=r"Got gamma=-1"):
        idealized_gram(K, y, -1)
    with pytest.raises(ValueError, match="for 3 labels"):
        idealized_gram(K, y[:3], 1.0)
