"""RidgeKPCA: few coordinates, and nothing lost of what the labels need."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import KPCA, LDA, LMNN, NCA, Kernelized, Nystroem, load, save
from kernelmetric.compute import memory_budget
from kernelmetric.datasets import make_checkerboard
from kernelmetric.kernels import RBF, Delta, Linear, Rescaled
from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA, _ridge_kpca, has_ridge
from kernelmetric.selection._ridge_kpca import without_ridge
from kernelmetric.selection._ridge_solution import telling_rows

KERNEL = RBF(gamma=0.5) + 0.1 * Delta()


@pytest.fixture(scope="module")
def problem():
    """Three classes in rings, a tenth of the labels wrong, and new points with right ones."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 3))
    y = np.digitize((X[:, :2] ** 2).sum(axis=1), [0.8, 2.2])
    noisy = y[:150].copy()
    noisy[:15] = (noisy[:15] + 1) % 3
    return X[:150], noisy, X[150:], y[150:]


@pytest.fixture
def by_landmarks(monkeypatch):
    """The way of many points, for few."""
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 50)
    monkeypatch.setattr(_ridge_kpca, "HELD_ROWS", 50)


@pytest.fixture
def in_single(monkeypatch):
    """The way of up to 12,000 points, for few."""
    monkeypatch.setattr(_ridge_kpca, "DOUBLE_ROWS", 50)
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 50)


def ridge_regression(kernel, X, y, X_new):
    """Predictions of every class, in the whole feature space."""
    K, K_new = kernel(X), kernel(X_new, X)
    mean = K.mean(axis=0)
    Kc = K - mean - mean[:, None] + mean.mean()
    K_new = K_new - mean - K_new.mean(axis=1, keepdims=True) + mean.mean()
    Y = (y[:, None] == np.unique(y)).astype(float)
    return K_new @ np.linalg.lstsq(Kc, Y - Y.mean(axis=0), rcond=1e-12)[0] + Y.mean(axis=0)


def regression_on(Z, y, Z_new):
    Y = (y[:, None] == np.unique(y)).astype(float)
    W = np.linalg.lstsq(Z, Y - Y.mean(axis=0), rcond=1e-10)[0]
    return Z_new @ W + Y.mean(axis=0)


@pytest.mark.parametrize("n_components", [1, 5, 30])
def test_ridge_regression_on_few_coordinates_is_that_of_the_whole_space(problem, n_components):
    X, y, X_new, _ = problem
    space = RidgeKPCA(n_components, kernel=KERNEL)
    Z = space.fit_transform(X, y)
    assert Z.shape[1] == space.rank_ == n_components + 2
    assert space.n_directions_ == 2
    expected = ridge_regression(space.kernel_, X, y, X_new)
    found = regression_on(Z, y, space.transform(X_new))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_leading_components_are_in_the_span(problem):
    X, y, X_new, _ = problem
    space = RidgeKPCA(5, kernel=KERNEL)
    Z = space.fit_transform(X, y)
    leading = KPCA(5, kernel=KERNEL).fit(X)
    W = np.linalg.lstsq(Z, leading.transform(X), rcond=None)[0]
    np.testing.assert_allclose(space.transform(X_new) @ W, leading.transform(X_new), atol=1e-8)


def test_coordinates_are_those_of_an_orthonormal_basis(problem):
    X, y, _, _ = problem
    space = RidgeKPCA(145, kernel=KERNEL)  # with the directions, all there are
    Z = space.fit_transform(X, y)
    K = space.kernel_(X)
    D = np.diag(K)[:, None] + np.diag(K) - 2 * K
    found = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    assert np.all(found <= D + 1e-8)  # a part of the space is never longer than the whole
    np.testing.assert_allclose(found.mean(), D.mean(), rtol=0.02)
    np.testing.assert_allclose(np.sum(Z**2, axis=0), space.eigenvalues_, rtol=1e-8)
    assert np.all(np.diff(space.eigenvalues_) <= 1e-12)
    assert 0.9 < space.explained_variance_ratio_ <= 1.0


def test_transform_knows_the_training_points_again(problem):
    X, y, _, _ = problem
    space = RidgeKPCA(8, kernel=KERNEL)
    Z = space.fit_transform(X, y)
    np.testing.assert_allclose(space.transform(X), Z, atol=1e-10)


def test_noisy_labels_cost_no_more_than_at_full_rank(problem):
    X, y, X_new, y_new = problem

    def accuracy(space):
        metric = Kernelized(LMNN(), KERNEL, space)
        judge = KNeighborsClassifier(1).fit(metric.fit_transform(X, y), y)
        return judge.score(metric.transform(X_new), y_new)

    assert accuracy(RidgeKPCA(8)) >= accuracy(KPCA()) - 0.03
    assert accuracy(RidgeKPCA(8)) >= accuracy(KPCA(10)) + 0.02


@pytest.mark.parametrize("target", ["one", "two"])
def test_numbers_are_targets_too(problem, target):
    X, _, X_new, _ = problem
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    y = y if target == "one" else np.column_stack([y, X[:, 2] ** 2])
    space = RidgeKPCA(4, kernel=KERNEL).fit(X, y)
    assert space.rank_ == 4 + (1 if target == "one" else 2)
    assert np.isfinite(space.transform(X_new)).all()


def test_labels_must_be_there(problem):
    with pytest.raises(ValueError, match=r"requires y.*try KPCA"):
        RidgeKPCA(kernel=KERNEL).fit(problem[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "Got n_components=0, but expected a positive integer"),
        ({"n_components": 0.5}, r"Got n_components=0\.5"),
        ({"n_landmarks": True}, "Got n_landmarks=True"),
    ],
    ids=["no components", "a fraction", "no number"],
)
def test_absurd_parameters_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        RidgeKPCA(**parameters, kernel=KERNEL).fit(problem[0], problem[1])


def test_an_indefinite_kernel_is_refused(problem):
    X, y, _, _ = problem
    G = X @ np.diag([1.0, 1.0, -3.0]) @ X.T
    with pytest.raises(ValueError, match="positive semi-definite"):
        RidgeKPCA(kernel="precomputed").fit(G, y)


def test_copies_of_a_point_with_other_labels_do_no_harm(problem):
    X, y, X_new, _ = problem
    X, y = np.vstack([X, X[:30]]), np.concatenate([y, (y[:30] + 1) % 3])
    space = RidgeKPCA(8, kernel=KERNEL)
    Z = space.fit_transform(X, y)
    np.testing.assert_allclose(Z[:30], Z[150:], atol=1e-6)
    assert np.abs(space.transform(X_new)).max() < 10


def test_many_classes_share_the_directions():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((450, 4))
    space = RidgeKPCA(4, kernel=KERNEL).fit(X, np.arange(450) % 225)
    assert space.n_directions_ == 128


# --- many points --------------------------------------------------------------------------------


def test_with_all_points_as_landmarks_nothing_changes(problem, by_landmarks):
    X, y, X_new, _ = problem
    many = RidgeKPCA(8, kernel=KERNEL)
    Z = many.fit_transform(X, y)
    assert many.n_landmarks_ > 0
    assert many.anchors_.shape == (many.n_landmarks_ + len(X), 3)
    np.testing.assert_allclose(many.transform(X), Z, atol=1e-9)
    expected = ridge_regression(many.kernel_, X, y, X_new)
    np.testing.assert_allclose(regression_on(Z, y, many.transform(X_new)), expected, atol=2e-2)


def test_fewer_landmarks_predict_nearly_as_well(problem, by_landmarks):
    X, y, X_new, y_new = problem
    space = RidgeKPCA(8, kernel=KERNEL, n_landmarks=60, random_state=0)
    found = regression_on(space.fit_transform(X, y), y, space.transform(X_new))
    expected = ridge_regression(space.kernel_, X, y, X_new)
    agree = np.mean(found.argmax(axis=1) == expected.argmax(axis=1))
    assert agree > 0.85
    right = np.mean(expected.argmax(axis=1) == y_new)
    assert np.mean(found.argmax(axis=1) == y_new) > right - 0.05


@pytest.mark.parametrize(
    "rescaled",
    [None, [1.0, 0.5, 0.0], [[1.0, 0.5, 0.0], [0.3, -1.0, 0.0]]],
    ids=["plain", "scales", "map"],
)
def test_known_points_are_known_by_where_they_lie(problem, by_landmarks, rescaled):
    X, y, _, _ = problem
    kernel = Rescaled(KERNEL, rescaled) if rescaled else KERNEL
    space = RidgeKPCA(8, kernel=kernel, n_landmarks=60, random_state=0)
    Z = space.fit_transform(X, y)
    noise = 1e-9 * np.random.RandomState(1).standard_normal(X.shape)
    np.testing.assert_allclose(space.transform(X + noise), Z, atol=1e-6)
    shuffled = np.random.RandomState(2).permutation(len(X))
    np.testing.assert_allclose(space.transform(X[shuffled]), Z[shuffled], atol=1e-9)
    moved = X + 0.05
    assert np.abs(space.transform(moved) - Z)[:15].max() > 1e-3  # a wrong label is left behind
    if rescaled:  # what the kernel does not see does not make another point
        moved = X + np.array([0.0, 0.0, 5.0])
        np.testing.assert_allclose(space.transform(moved), Z, atol=1e-9)


def test_a_second_fit_forgets_the_points_of_the_first(problem, by_landmarks):
    X, y, X_new, _ = problem
    space = RidgeKPCA(8, kernel=KERNEL, n_landmarks=60, random_state=0).fit(X, y)
    space.transform(X)
    labels = y[::-1].copy()
    Z = space.fit_transform(X_new, labels)
    np.testing.assert_allclose(space.transform(X_new), Z, atol=1e-9)
    once = RidgeKPCA(8, kernel=KERNEL, n_landmarks=60, random_state=0).fit(X_new, labels)
    np.testing.assert_allclose(space.transform(X), once.transform(X), atol=1e-9)


def test_many_sparse_points_have_landmarks_alone(problem, by_landmarks):
    X, y, X_new, y_new = problem
    space = RidgeKPCA(8, kernel=KERNEL, n_landmarks=100, random_state=0)
    Z = space.fit_transform(sparse.csr_matrix(X), y)
    assert len(space.projection_) == space.n_landmarks_ == space.anchors_.shape[0] <= 100
    np.testing.assert_allclose(space.transform(sparse.csr_matrix(X)), Z, atol=1e-9)
    found = regression_on(Z, y, space.transform(sparse.csr_matrix(X_new)))
    assert np.mean(found.argmax(axis=1) == y_new) > 0.6


def test_a_large_gram_matrix_is_refused(problem, by_landmarks):
    X, y, _, _ = problem
    with pytest.raises(ValueError, match=r"Got the Gram matrix of 150 points.*at most 50"):
        RidgeKPCA(kernel="precomputed").fit(X @ X.T, y)


def test_the_directions_of_all_classes_count_in_the_estimate_of_a_learner(problem):
    few = Kernelized(LMNN(), KERNEL, RidgeKPCA(2))
    assert few.estimate_memory(3000, 5) >= LMNN().estimate_memory(3000, 130)


def test_copies_among_many_points_share_their_place(problem, by_landmarks):
    X, y, _, _ = problem
    X, y = np.vstack([X, X[:30]]), np.concatenate([y, (y[:30] + 1) % 3])
    space = RidgeKPCA(8, kernel=KERNEL, n_landmarks=60, random_state=0)
    Z = space.fit_transform(X, y)
    shared = space.transform(X)
    np.testing.assert_allclose(shared[:30], shared[150:], atol=1e-9)
    np.testing.assert_allclose(Z, shared, atol=1e-9)


@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), KERNEL], ids=["plain", "with a ridge"])
@pytest.mark.parametrize("copied", [False, True])
def test_weights_among_many_points_are_repeated_rows(problem, by_landmarks, kernel, copied):
    X, y, X_new, _ = problem
    if copied:
        X, y = np.vstack([X, X[:30]]), np.concatenate([y, (y[:30] + 1) % 3])
    counts = 1.0 + (np.arange(len(X)) % 3)
    rows = np.repeat(np.arange(len(X)), counts.astype(int))
    marks = X[::3]
    landmarks = Nystroem(landmarks=marks)
    weighted, repeated = RidgeKPCA(8, kernel=kernel), RidgeKPCA(8, kernel=kernel)
    for space in (weighted, repeated):  # the same landmarks for both
        space._landmarks = lambda kernel: clone(landmarks).set_params(kernel=kernel)
    Z = weighted.fit_transform(X, y, sample_weight=counts)
    expected = repeated.fit_transform(X[rows], y[rows])
    np.testing.assert_allclose(pairwise_distances(Z[rows]), pairwise_distances(expected), atol=1e-7)
    np.testing.assert_allclose(
        pairwise_distances(weighted.transform(X_new), Z),
        pairwise_distances(repeated.transform(X_new), repeated.transform(X)),
        atol=1e-7,
    )
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-7)
    ratios = [space.explained_variance_ratio_ for space in (weighted, repeated)]
    assert ratios[0] == pytest.approx(ratios[1])
    assert np.abs(Z - RidgeKPCA(8, kernel=kernel).fit_transform(X, y)).max() > 1e-3


@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), KERNEL], ids=["plain", "with a ridge"])
def test_what_is_kept_of_many_points_survives_a_copy(problem, by_landmarks, kernel, tmp_path):
    X, y, X_new, _ = problem
    metric = Kernelized(LMNN(), kernel, RidgeKPCA(8, n_landmarks=60, random_state=0)).fit(X, y)
    E, E_new = metric.transform(X), metric.transform(X_new)
    save(metric, tmp_path / "metric.km")
    for copy in (pickle.loads(pickle.dumps(metric)), load(tmp_path / "metric.km")):
        np.testing.assert_allclose(copy.transform(X), E, atol=1e-10)
        np.testing.assert_allclose(copy.transform(X_new), E_new, atol=1e-10)
    Z = metric.space_.transform(X) @ metric.components_.T
    np.testing.assert_allclose(Z, E, atol=1e-9)  # folded or not


def test_sparse_points_are_taken_as_they_are(problem):
    X, y, X_new, _ = problem
    dense = RidgeKPCA(8, kernel=KERNEL).fit(X, y)
    thin = RidgeKPCA(8, kernel=KERNEL).fit(sparse.csr_matrix(X), y)
    a, b = dense.transform(X_new), thin.transform(sparse.csr_matrix(X_new))
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-7)


def test_single_precision_stays_single(problem):
    X, y, X_new, _ = problem
    space = RidgeKPCA(8, kernel=KERNEL)
    Z = space.fit_transform(X.astype(np.float32), y)
    assert Z.dtype == space.transform(X_new.astype(np.float32)).dtype == np.float32
    exact = RidgeKPCA(8, kernel=KERNEL).fit_transform(X, y)
    np.testing.assert_allclose(Z @ Z.T, exact @ exact.T, atol=1e-4)


# --- the automatic space ------------------------------------------------------------------------


def test_a_learner_from_labels_gets_it_where_the_kernel_has_a_ridge(problem):
    X, y, _, _ = problem
    assert isinstance(Kernelized(LMNN()).fit(X, y).space_, RidgeKPCA)
    assert isinstance(Kernelized(LMNN(), KERNEL).fit(X, y).space_, RidgeKPCA)
    assert isinstance(Kernelized(LDA(), "rbf").fit(X, y).space_, KPCA)


def test_who_needs_no_labels_does_not_see_them(problem):
    X, y, _, _ = problem
    model = Kernelized(KMeans(3, n_init=1, random_state=0), KERNEL)
    with_labels, without = (model.fit(X, labels).labels_ for labels in (y, None))
    assert isinstance(model.space_, KPCA)
    np.testing.assert_array_equal(with_labels, without)


def test_two_fits_of_the_same_points_are_the_same():
    X, y = make_checkerboard(450, random_state=0)  # more than LAPACK is asked for
    once, again = (Kernelized(LDA(), KERNEL).fit(X, y).transform(X) for _ in range(2))
    np.testing.assert_allclose(again, once, atol=1e-12 * np.abs(once).max())


def test_points_held_out_are_no_judges_where_coordinates_know_the_labels(problem, monkeypatch):
    monkeypatch.setattr("kernelmetric.learners._nca._EARLY_FROM", 100)
    X, y, _, _ = problem
    for kernel, judged in ((KERNEL, False), ("rbf", True)):
        metric = Kernelized(NCA(max_iter=3, tol=1), kernel).fit(X, y)
        assert (metric.learner_.validation_scores_ is not None) is judged
        assert metric.learner.early_stopping == "auto"


def test_where_coordinates_know_the_labels_nca_penalizes_the_spread_of_classes(problem):
    X, y, _, _ = problem
    for learner, reg in (
        (NCA(), "spread"),
        (NCA(early_stopping=False), "spread"),
        (NCA(reg=0.0), 0.0),
        (NCA(reg=0.5), 0.5),
    ):
        metric = Kernelized(learner, KERNEL).fit(X, y)
        assert metric.learner_.reg == reg
        assert metric.learner.get_params() == learner.get_params()
    assert Kernelized(NCA(), "rbf").fit(X, y).learner_.reg == "auto"  # which is 0 there


def test_nca_keeps_what_ridge_regression_makes_of_noisy_labels():
    """Without the penalty it ended at 70 % here, where ridge regression has 78."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1000, 6))
    right = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0).astype(int)
    y = np.where(rng.uniform(size=1000) < 0.3, 1 - right, right)[:400]
    kernel = (RBF(gamma=0.1) + 1.0 * Delta()).bind(X[:400])
    metric = Kernelized(NCA(), kernel)
    judge = KNeighborsClassifier(1).fit(metric.fit_transform(X[:400], y), y)
    score = judge.score(metric.transform(X[400:]), right[400:])
    rule = ridge_regression(kernel, X[:400], y, X[400:]).argmax(axis=1)
    assert score > np.mean(rule == right[400:]) - 0.03


def test_a_kernel_is_asked_for_its_ridge():
    X, y = make_checkerboard(60, random_state=0)
    assert has_ridge(LeaveOneOutRidge())
    assert has_ridge(LeaveOneOutRidge().bind(X, y))
    assert has_ridge(Rescaled(KERNEL, [1.0, 2.0]))
    assert not has_ridge(RBF())
    smooth, ridge, delta = without_ridge(Rescaled(KERNEL, [1.0, 2.0]).bind(X))
    assert ridge == pytest.approx(0.1)
    np.testing.assert_allclose(
        smooth(X) + ridge * delta(X), Rescaled(KERNEL, [1.0, 2.0]).bind(X)(X), atol=1e-12
    )


def test_few_different_points_among_many_have_their_eigenvalues():
    """A random start of which all but a few columns depend on the others once led astray."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((12, 3))[rng.randint(12, size=700)]
    found = KPCA(30, kernel="rbf", solver="randomized", random_state=0).fit(X)
    expected = KPCA(30, kernel="rbf", solver="dense").fit(X)
    np.testing.assert_allclose(found.eigenvalues_[:11], expected.eigenvalues_[:11], rtol=1e-6)
    assert found.rank_ == 11


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 1.0])
def test_single_precision_changes_no_distance(problem, ridge, in_single, monkeypatch):
    X, y, X_new, _ = problem
    kernel = RBF(gamma=0.5) + ridge * Delta()
    single = RidgeKPCA(8, kernel=kernel)
    Z = single.fit_transform(X, y)
    monkeypatch.undo()
    double = RidgeKPCA(8, kernel=kernel).fit(X, y)
    assert single.n_landmarks_ == 0
    assert single.rank_ == double.rank_
    assert single.projection_.dtype == Z.dtype == np.float64
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3)
    for points in (X, X_new):
        D = pairwise_distances(double.transform(points))
        found = pairwise_distances(single.transform(points))
        np.testing.assert_allclose(found, D, atol=2e-3 * D.max())
    np.testing.assert_allclose(Z, single.transform(X), atol=2e-3 * np.abs(Z).max())


def test_copies_with_other_labels_have_one_place_in_single_precision(problem, in_single):
    X, y, _, _ = problem
    X, y = np.repeat(X[:60], 2, axis=0), np.repeat(y[:60], 2)
    y[:10:2] = (y[:10:2] + 1) % 3
    Z = RidgeKPCA(8, kernel=KERNEL).fit_transform(X, y)
    assert np.all(np.isfinite(Z))
    np.testing.assert_allclose(Z[::2], Z[1::2], atol=1e-3 * np.abs(Z).max())


def test_where_memory_is_short_many_points_have_landmarks(problem, in_single):
    X, y, _, _ = problem
    held = RidgeKPCA(8, kernel=KERNEL, n_landmarks=20)
    assert held.fit(X, y).n_landmarks_ == 0
    with memory_budget(4 * len(X) ** 2):
        assert held.fit(X, y).n_landmarks_ == 20


def test_without_a_ridge_many_points_have_landmarks(problem, in_single):
    X, y, _, _ = problem
    assert RidgeKPCA(8, kernel=RBF(gamma=0.5), n_landmarks=20).fit(X, y).n_landmarks_ == 20


@pytest.mark.parametrize("rows_in_double", [50, 500])
def test_points_that_almost_coincide_are_as_copies(problem, monkeypatch, rows_in_double):
    monkeypatch.setattr(_ridge_kpca, "DOUBLE_ROWS", rows_in_double)
    X, y, X_new, _ = problem
    width = 0.02
    kernel = RBF(gamma=0.5) + 0.1 * Delta(width=width)
    y = np.repeat(y[:60], 2)
    y[:40:2] = (y[:40:2] + 1) % 3
    copies = np.repeat(X[:60], 2, axis=0)
    near = copies.copy()
    near[::2, 0] += 0.01 * width
    found, expected = (
        pairwise_distances(RidgeKPCA(8, kernel=kernel).fit(points, y).transform(X_new))
        for points in (near, copies)
    )
    np.testing.assert_allclose(found, expected, atol=1e-2 * expected.max())


def test_copies_count_as_one_point_with_their_mean_label(problem):
    X, _, X_new, _ = problem
    target = X[:60, 0] + 0.1 * np.random.RandomState(1).standard_normal((3, 60))
    copied = RidgeKPCA(8, kernel=KERNEL.bind(X[:60])).fit(np.tile(X[:60], (3, 1)), target.ravel())
    alone = RidgeKPCA(8, kernel=KERNEL.bind(X[:60])).fit(X[:60], target.mean(axis=0))
    found, expected = (pairwise_distances(space.transform(X_new)) for space in (copied, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.fixture
def many_easy_points(monkeypatch):
    """Two classes far apart, as many as are thinned out."""
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 300)
    monkeypatch.setattr(_ridge_kpca, "EASY_ROWS", (60, 20))
    rng = np.random.RandomState(0)
    y = np.arange(400) % 2
    return rng.standard_normal((400, 3)) + 6.0 * y[:, None], y


def test_ridge_regression_of_easy_classes_takes_some_of_the_points(many_easy_points):
    X, y = many_easy_points
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40))
    Z = space.fit_transform(X, y)
    assert space.kernel_.loo_mistakes_ <= 0.01
    assert len(space.anchors_) == 80
    np.testing.assert_allclose(Z, space.transform(X), atol=1e-8)
    assert KNeighborsClassifier(1).fit(Z[:200], y[:200]).score(Z[200:], y[200:]) == 1.0


def test_noisy_labels_take_all_points(many_easy_points):
    X, y = many_easy_points
    y = np.where(np.random.RandomState(1).uniform(size=400) < 0.1, 1 - y, y)
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40)).fit(X, y)
    assert space.kernel_.loo_mistakes_ > 0.01
    assert len(space.anchors_) == 400


def test_ridge_regression_of_easy_classes_takes_the_points_that_it_got_wrong(many_easy_points):
    X, y = many_easy_points
    wrong = np.array([17, 200, 381])
    y = y.copy()
    y[wrong] = 1 - y[wrong]
    Y = np.where(y[:, None] == [0, 1], 1.0, -1.0)
    rows = telling_rows(RBF(gamma=0.1), 0.1, X, Y, 60, 20)
    assert len(np.unique(rows)) == 80
    assert set(wrong) <= set(rows)


def test_every_class_is_among_the_points_that_tell_easy_classes_apart():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2, 3], [380, 14, 4, 2])
    X = rng.standard_normal((400, 3)) + 6.0 * y[:, None]
    Y = np.where(y[:, None] == np.arange(4), 1.0, -1.0)
    rows = telling_rows(RBF(gamma=0.1), 0.1, X, Y, 60, 20)
    assert len(np.unique(rows)) == 80
    counts = np.bincount(y[rows])
    assert counts[1] >= 10
    assert list(counts[2:]) == [4, 2]


def easily_told(learner, **parameters):
    kernel = LeaveOneOutRidge(max_samples=40)
    return Kernelized(learner, kernel, RidgeKPCA(8), **parameters)


def test_margins_of_easy_classes_are_learned_from_the_points_of_the_space(many_easy_points):
    X, y = many_easy_points
    metric = easily_told(LMNN())
    E = metric.fit_transform(X, y)
    taken = np.isin(X[:, 0], metric.space_.anchors_[:, 0])
    assert np.count_nonzero(taken) == 80
    alone = LMNN().fit(metric.space_.transform(X)[taken], y[taken])
    np.testing.assert_allclose(metric.learner_.loss_, alone.loss_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        metric.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix(), rtol=1e-5, atol=1e-6
    )
    assert E.shape[0] == 400
    np.testing.assert_allclose(E, metric.transform(X), atol=1e-8)
    assert KNeighborsClassifier(1).fit(E[:200], y[:200]).score(E[200:], y[200:]) == 1.0


@pytest.mark.parametrize(
    ("learner", "parameters"),
    [
        (LMNN(), {"neighbors": "input"}),
        (LMNN(n_neighbors=10), {}),
        (NCA(max_iter=2), {}),
    ],
    ids=["neighbours elsewhere", "many neighbours", "no margins"],
)
def test_who_needs_every_point_of_easy_classes_gets_it(
    many_easy_points, monkeypatch, learner, parameters
):
    X, y = many_easy_points
    seen = []
    check = type(learner)._check_training

    def watched(self, Z, y):
        seen.append(len(Z))
        return check(self, Z, y)

    monkeypatch.setattr(type(learner), "_check_training", watched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        metric = easily_told(learner, **parameters).fit(X, y)
    assert len(metric.space_.anchors_) == 80
    assert seen == [400]


def test_a_fit_to_noisy_labels_forgets_the_points_of_easy_ones(many_easy_points):
    X, y = many_easy_points
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40)).fit(X, y)
    assert len(space.boundary_rows) == 80
    assert pickle.loads(pickle.dumps(space)).boundary_rows is None
    space.fit(X, np.where(np.random.RandomState(1).uniform(size=400) < 0.1, 1 - y, y))
    assert space.boundary_rows is None


def test_easy_classes_that_are_many_take_all_points(many_easy_points, monkeypatch):
    monkeypatch.setattr(_ridge_kpca, "EASY_ROWS", (19, 20))
    X, y = many_easy_points
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40)).fit(X, y)
    assert space.kernel_.loo_mistakes_ <= 0.01
    assert len(space.anchors_) == 400


def test_kernel_values_beyond_all_products_are_refused(problem):
    X, y, _, _ = problem
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="try rescaling the features"):
        RidgeKPCA(kernel=Linear()).fit(1e100 * X, y)
