"""RidgeKPCA: one smooth map for every point, and training rows where they would be left out."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import KPCA, LDA, LMNN, NCA, Kernelized, Nystroem, load, save
from kernelmetric.compute import memory_budget, rough
from kernelmetric.datasets import make_checkerboard
from kernelmetric.inputs import Weights
from kernelmetric.kernels import RBF, Delta, Laplacian, Linear, Rescaled
from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA, _ridge_kpca, _ridge_solution
from kernelmetric.selection._ridge_kpca import without_ridge
from kernelmetric.selection._ridge_solution import boundary_rows, mean_of_copies, ridge_of
from kernelmetric.spaces._centred_gram import CentredGram

# Few directions or a kernel of no particular width: some metrics are worse than their kernel.
pytestmark = pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._places.NotBetterWarning")

KERNEL = RBF(gamma=0.5)
RIDGE = 0.1


@pytest.fixture(scope="module")
def problem():
    """Three classes in rings, a tenth of the labels wrong, and new points with right ones."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 3))
    y = np.digitize((X[:, :2] ** 2).sum(axis=1), [0.8, 2.2])
    noisy = y[:150].copy()
    noisy[:15] = (noisy[:15] + 1) % 3
    return X[:150], noisy, X[150:], y[150:]


def thresholds(monkeypatch, **rows):
    for name, n in rows.items():
        monkeypatch.setattr(_ridge_kpca, name, n)


@pytest.fixture
def by_landmarks(monkeypatch):
    """The way of many points, for few."""
    thresholds(monkeypatch, ALL_ROWS=50, HELD_ROWS=50)


@pytest.fixture
def in_single(monkeypatch):
    """The way of up to 12,000 points, for few."""
    thresholds(monkeypatch, DOUBLE_ROWS=50, ALL_ROWS=50)


def space_of(n_components=8, **parameters):
    return RidgeKPCA(n_components, **({"kernel": KERNEL, "ridge": RIDGE} | parameters))


def columns(y):
    """A column for each class; numbers are one as they are."""
    if y.dtype.kind == "f":
        return y.reshape(len(y), -1)
    return np.where(y[:, None] == np.unique(y), 1.0, -1.0)


def predictions(K, Y, K_new, ridge=RIDGE, w=None):
    """Ridge regression with a free mean by its equations: what it predicts, less the mean."""
    n, w = len(Y), np.ones(len(Y)) if w is None else w
    A = np.block([[K + np.diag(ridge / w), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(A, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return K_new @ solved[:-1] + solved[-1] - w @ Y / w.sum()


def refitted(K, Y, ridge=RIDGE, w=None):
    """What ridge regression predicts of each row, fitted anew without it."""
    rest = [np.delete(np.arange(len(Y)), i) for i in range(len(Y))]
    return np.vstack(
        [
            predictions(K[np.ix_(r, r)], Y[r], K[i : i + 1, r], ridge, None if w is None else w[r])
            for i, r in enumerate(rest)
        ]
    )


def read_off(space, Z, X_new, f_new):
    """The linear function of coordinates that tells f of new points, at rows Z, and its misfit."""
    Z_new = space.transform(X_new)
    B = np.linalg.lstsq(Z_new, f_new, rcond=None)[0]
    return Z @ B, np.abs(Z_new @ B - f_new).max()


def misfit(space, X_new, f_new):
    return read_off(space, np.zeros((1, space.rank_)), X_new, f_new)[1]


# --- new points ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 5, 30])
def test_coordinates_of_new_points_hold_what_ridge_regression_predicts(problem, n_components):
    X, y, X_new, _ = problem
    space = space_of(n_components).fit(X, y)
    assert space.rank_ == n_components + 2
    assert space.n_directions_ == 2
    expected = predictions(KERNEL(X), columns(y), KERNEL(X_new, X))
    assert misfit(space, X_new, expected) < 1e-8
    found = (space.transform(X_new) @ space.predictor_ + space.means_)[
        :, np.argsort(space.classes_)
    ]
    np.testing.assert_allclose(found, expected + columns(y).mean(axis=0), atol=1e-8)


def test_the_leading_components_are_in_the_span(problem):
    X, y, X_new, _ = problem
    leading = KPCA(5, kernel=KERNEL).fit(X)
    assert misfit(space_of(5).fit(X, y), X_new, leading.transform(X_new)) < 1e-8


def test_coordinates_are_principal_axes_and_the_components_the_smaller_part(problem):
    X, y, _, _ = problem
    space = space_of(8)
    Z = space.fit_transform(X, y)
    np.testing.assert_allclose(Z.T @ Z, np.diag(space.eigenvalues_), atol=1e-9 * len(Z))
    assert np.all(np.diff(space.eigenvalues_) <= 1e-12)
    F = refitted(KERNEL(X), columns(y))
    assert np.sum(Z**2) == pytest.approx((1 + 0.3**2) * np.sum(F**2))
    kept = KPCA(8, kernel=KERNEL).fit(X).explained_variance_ratio_
    assert space.explained_variance_ratio_ == pytest.approx(kept, rel=1e-6)


@pytest.mark.every(4)
@pytest.mark.parametrize(
    ("kernel", "width"),
    [(KERNEL, 1.0), (RBF(gamma=8.0), 0.25), (Laplacian(gamma=0.3), 2.0), ("auto", None)],
    ids=["rbf", "narrow rbf", "laplacian", "auto"],
)
def test_a_row_that_moves_a_little_moves_its_place_a_little(problem, kernel, width):
    """Beside the width of the kernel, and training rows no farther than others."""
    X, y, X_new, _ = problem
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge() if kernel == "auto" else kernel).fit(X, y)
    if width is None:
        assert isinstance(space.kernel_, Laplacian)
        width = 1.0 / (space.kernel_.gamma * np.sqrt(3.0))
    step = np.random.RandomState(1).standard_normal((len(X), 3))
    step *= width / np.linalg.norm(step, axis=1, keepdims=True)

    def travel(rows, share):
        moved = space.transform(rows + share * step) - space.transform(rows)
        return np.linalg.norm(moved, axis=1).max()

    spread = np.sqrt(space.eigenvalues_.sum() / len(X))
    for share in (1e-6, 1e-4, 1e-2):
        assert travel(X, share) < 10 * share * spread
        assert travel(X, share) < 4 * travel(X_new, share)


def test_the_mean_of_the_map_over_the_rows_is_the_origin(problem):
    X, y, _, _ = problem
    space = space_of(8).fit(X, y)
    np.testing.assert_allclose(space.transform(X).mean(axis=0), 0.0, atol=1e-10)


# --- training rows ------------------------------------------------------------------------------


def targets_of(problem, kind):
    X, y, _, _ = problem
    numbers = np.sin(X[:, 0]) + 0.3 * np.random.RandomState(3).standard_normal(len(X))
    return {
        "classes": y,
        "two classes": y % 2,
        "numbers": numbers,
        "two numbers": np.column_stack([numbers, X[:, 2] ** 2]),
    }[kind]


@pytest.mark.parametrize("kind", ["classes", "two classes", "numbers", "two numbers"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "ridge", [1e-6, *(pytest.param(ridge, marks=pytest.mark.slow) for ridge in (1e-3, 1.0)), 0.1]
)
@pytest.mark.every(3)
def test_a_training_row_is_where_a_fit_without_it_places_it(problem, kind, weighted, ridge):
    X, _, X_new, _ = problem
    y = targets_of(problem, kind)
    w = np.random.RandomState(2).uniform(0.2, 3.0, len(X)) if weighted else None
    space = space_of(ridge=ridge)
    Z = space.fit_transform(X, y, sample_weight=w)
    f_new = predictions(KERNEL(X), columns(y), KERNEL(X_new, X), ridge, w)
    found, missed = read_off(space, Z, X_new, f_new)
    assert missed < 1e-7  # by rounding, where the ridge is a millionth
    expected = refitted(KERNEL(X), columns(y), ridge, w)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "ridge", [1e-3, *(pytest.param(ridge, marks=pytest.mark.slow) for ridge in (1e-2, 0.1)), 1.0]
)
def test_so_it_is_in_one_array_of_single_precision(problem, kind, weighted, ridge, in_single):
    X, _, X_new, _ = problem
    y = targets_of(problem, kind)
    w = np.random.RandomState(2).uniform(0.2, 3.0, len(X)) if weighted else None
    space = space_of(ridge=ridge)
    Z = space.fit_transform(X, y, sample_weight=w)
    assert space.n_landmarks_ == 0
    assert Z.dtype == space.projection_.dtype == np.float64
    f_new = predictions(KERNEL(X), columns(y), KERNEL(X_new, X), ridge, w)
    found, missed = read_off(space, Z, X_new, f_new)
    assert missed < 1e-3 * np.abs(f_new).max()
    expected = refitted(KERNEL(X), columns(y), ridge, w)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.every(2)
@pytest.mark.parametrize("weighted", [False, True])
def test_landmarks_know_how_far_a_row_moves_its_prediction_to_about_an_eighth(
    problem, weighted, by_landmarks
):
    X, y, X_new, _ = problem
    w = np.random.RandomState(2).uniform(0.2, 3.0, len(X)) if weighted else None
    Y, ridge = columns(y), 1.0
    space = space_of(ridge=ridge, n_landmarks=40)
    Z = space.fit_transform(X, y, sample_weight=w)
    assert space.n_landmarks_ == len(space.anchors_) == 40
    inner = Nystroem(40, kernel=KERNEL, random_state=0).fit(X, sample_weight=w)
    C, C_new = inner.transform(X), inner.transform(X_new)  # the model is linear on these
    found, missed = read_off(space, Z, X_new, predictions(C @ C.T, Y, C_new @ C.T, ridge, w))
    assert missed < 1e-6
    expected = refitted(C @ C.T, Y, ridge, w)
    w = np.ones(len(X)) if w is None else w
    H = C @ np.linalg.solve(C.T @ (w[:, None] * C) + ridge * np.eye(C.shape[1]), C.T) * w
    own = np.diag(H)  # of its residual, what the row's own label takes away
    others = (w @ Y - w[:, None] * Y) / (w.sum() - w)[:, None]
    wrong = np.abs(found - expected) / np.abs(Y - others - expected)
    bound = own / (1.0 - own)  # times the relative error of an estimate by 128 projections
    assert np.all(wrong <= 0.5 * bound[:, None])  # four standard deviations
    assert np.sqrt(np.mean((wrong / bound[:, None]) ** 2)) < 1.5 / 8.0
    assert np.abs(wrong).max() > 1e-6  # an estimate it is


def test_wrong_labels_are_not_seen_at_their_own_rows(problem):
    """In the map itself they are: its regression has learned them."""
    X, y, _, _ = problem
    wrong = np.arange(len(X)) < 15
    space = space_of(ridge=1e-2)
    Z = space.fit_transform(X, y)

    def agrees(places):
        judge = KNeighborsClassifier(5).fit(Z[~wrong], y[~wrong])
        return judge.score(places[wrong], y[wrong])

    assert agrees(Z) < 0.3 < 0.6 < agrees(space.transform(X))


def drawn(seed):
    """Two classes of 3,100 points, three in ten labels wrong."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((3100, 5))
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.5) ^ (rng.uniform(size=3100) < 0.3)


def distances_within_classes(E, y, E_other, y_other):
    """Between rows of the same label, no row in more than one distance."""
    parts = [(E[y == label], E_other[y_other == label]) for label in (False, True)]
    return np.concatenate([np.linalg.norm(a[: len(b)] - b[: len(a)], axis=1) for a, b in parts])


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [None, NCA()], ids=["the space", "NCA"])
def test_distances_to_kept_rows_are_as_those_among_new_ones(learner):
    """By a test of two samples, which training rows placed by the map itself do not pass."""
    space = RidgeKPCA(4, kernel=KERNEL, ridge=0.01)
    metric = space if learner is None else Kernelized(learner, KERNEL, RidgeKPCA(4, ridge=0.01))
    found = []
    for seed in range(5):
        X, y = drawn(seed)
        kept = metric.fit_transform(X[:700], y[:700])
        E = metric.transform(X)
        new = E[700:1900], y[700:1900]
        found.append(
            [
                distances_within_classes(E[1900:], y[1900:], *new),
                distances_within_classes(kept, y[:700], *new),
                distances_within_classes(E[:700], y[:700], *new),
            ]
        )
    among_new, to_kept, to_fitted = (np.concatenate(part) for part in zip(*found, strict=True))
    assert ks_2samp(to_kept, among_new).pvalue > 0.05
    assert ks_2samp(to_fitted, among_new).pvalue < 1e-4


# --- copies, and weights ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["double", "single", "landmarks"])
def test_copies_of_a_point_have_one_place_whatever_their_labels(problem, way, monkeypatch):
    if way != "double":
        thresholds(monkeypatch, DOUBLE_ROWS=50, ALL_ROWS=50)
    if way == "landmarks":
        thresholds(monkeypatch, HELD_ROWS=50)
    X, y, X_new, _ = problem
    X, y = np.vstack([X, X[:30]]), np.concatenate([y, (y[:30] + 1) % 3])
    space = space_of(n_landmarks=60)
    Z = space.fit_transform(X, y)
    np.testing.assert_allclose(Z[:30], Z[150:], atol=1e-12 * np.abs(Z).max())
    assert np.abs(space.transform(X_new)).max() < 10


def test_the_place_of_copies_is_the_mean_of_theirs(problem):
    X, y, X_new, _ = problem
    X, y = np.vstack([X, X[:30]]), np.concatenate([y, (y[:30] + 1) % 3])
    space = space_of()
    Z = space.fit_transform(X, y)
    found, _ = read_off(space, Z, X_new, predictions(KERNEL(X), columns(y), KERNEL(X_new, X)))
    expected = refitted(KERNEL(X), columns(y))
    np.testing.assert_allclose(found[:30], (expected[:30] + expected[150:]) / 2, atol=1e-7)
    np.testing.assert_allclose(found[30:150], expected[30:150], atol=1e-7)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: 1e-6 * X,
        lambda X: X + 1e9,
        lambda X: np.vstack([np.zeros((200, 3)), 1e-3 * X]),
        lambda X: np.vstack([X, [[1e15, 0.0, 0.0]]]),
        lambda X: sparse.csr_matrix(np.vstack([np.zeros((200, 3)), 1e-3 * X])),
    ],
    ids=["small", "far away", "mostly zero", "a sentinel", "sparse"],
)
def test_points_that_differ_are_no_copies(problem, change):
    X = change(problem[0])
    F = np.arange(float(X.shape[0]))[:, None]
    places = mean_of_copies(F, X, np.ones(len(F))).ravel()
    different = len(np.unique((X.toarray() if sparse.issparse(X) else X), axis=0))
    assert len(np.unique(places)) == different


def test_what_the_kernel_does_not_see_makes_no_other_point(problem):
    X, y, _, _ = problem
    X = np.column_stack([np.repeat(X[:75, :2], 2, axis=0), np.arange(150.0)])
    Z = space_of(kernel=Rescaled(KERNEL, [1.0, 0.5, 0.0])).fit_transform(X, y)
    np.testing.assert_allclose(Z[::2], Z[1::2], atol=1e-12 * np.abs(Z).max())


@pytest.mark.every(3)
@pytest.mark.parametrize("way", ["double", "single", "landmarks"])
def test_whole_weights_give_the_map_of_repeated_rows(problem, way, monkeypatch):
    """Up to a linear one: a row is left out with all its weight, a copy without the others."""
    if way != "double":
        thresholds(monkeypatch, DOUBLE_ROWS=50, ALL_ROWS=50)
    if way == "landmarks":
        thresholds(monkeypatch, HELD_ROWS=50)
    X, y, X_new, _ = problem
    counts = 1 + np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), counts)
    weighted, repeated = space_of(), space_of()
    for space in (weighted, repeated):  # the same landmarks for both
        marks = Nystroem(landmarks=X[::3])
        space._landmarks = lambda kernel, n, marks=marks: clone(marks).set_params(kernel=kernel)
    weighted.fit(X, y, sample_weight=counts)
    repeated.fit(X[rows], y[rows])
    expected = repeated.transform(X_new)
    tol = (1e-3 if way == "single" else 1e-7) * np.abs(expected).max()
    assert misfit(weighted, X_new, expected) < tol
    ratios = [space.explained_variance_ratio_ for space in (weighted, repeated)]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-5)
    plain = space_of().fit(X, y).transform(X_new)
    assert misfit(weighted, X_new, plain) > 10 * tol


WAYS = {
    "double": {},
    "single, always": {"DOUBLE_ROWS": 50},
    "single, where there is room": {"DOUBLE_ROWS": 50, "ALL_ROWS": 50},
    "landmarks": {"ALL_ROWS": 50, "HELD_ROWS": 50},
    "boundary": {"ALL_ROWS": 50, "EASY_ROWS": (40, 20)},
}


@pytest.mark.every(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("learner", [LDA(), NCA()], ids=["LDA", "NCA"])
def test_weights_of_nearly_one_are_nearly_no_weights_of_any_number_of_rows(
    problem, way, learner, monkeypatch
):
    thresholds(monkeypatch, **WAYS[way])
    X, y, X_new, _ = problem
    X, y = X[:80], y[:80]
    space = RidgeKPCA(8, rows="boundary" if way == "boundary" else "all", n_landmarks=40)
    metric = Kernelized(learner, KERNEL, space)
    D = metric.fit(X, y).pairwise_distances(X_new)
    assert (metric.space_.n_landmarks_ > 0) == (way == "landmarks")
    assert metric.space_.rows_ == ("boundary" if way == "boundary" else "all")
    nearly = 1.0 + 1e-6 * np.random.RandomState(1).uniform(size=80)
    found = metric.fit(X, y, sample_weight=nearly).pairwise_distances(X_new)
    np.testing.assert_allclose(found, D, atol=2e-2 * D.max())
    heavy = metric.fit(X, y, sample_weight=np.where(y == 1, 4.0, 1.0)).pairwise_distances(X_new)
    assert np.abs(heavy - D).max() > 5e-2 * D.max()


@pytest.mark.every(3)
@pytest.mark.parametrize("way", WAYS)
def test_of_weights_only_ratios_matter_where_the_ridge_is_chosen(problem, way, monkeypatch):
    thresholds(monkeypatch, **WAYS[way])
    X, y, X_new, _ = problem
    w = np.random.RandomState(1).uniform(0.2, 3.0, size=len(X))
    rows = "boundary" if way == "boundary" else "all"
    spaces = [
        RidgeKPCA(8, kernel=KERNEL, rows=rows, n_landmarks=40).fit(X, y, sample_weight=scale * w)
        for scale in (1.0, 1024.0)
    ]
    one, other = (pairwise_distances(space.transform(X_new)) for space in spaces)
    np.testing.assert_allclose(other, one, atol=1e-3 * one.max())
    assert spaces[1].ridge_ == pytest.approx(1024.0 * spaces[0].ridge_)


# --- the ridge ----------------------------------------------------------------------------------


def test_the_ridge_is_the_one_that_was_written(problem):
    X, y, X_new, _ = problem
    written = space_of(ridge=0.3).fit(X, y)
    summed = RidgeKPCA(8, kernel=KERNEL + 0.3 * Delta()).fit(X, y)
    assert written.ridge_ == summed.ridge_ == pytest.approx(0.3)
    np.testing.assert_allclose(summed.transform(X_new), written.transform(X_new), atol=1e-9)
    np.testing.assert_allclose(summed.kernel_(X), KERNEL(X))  # in which there is no Delta
    assert space_of(kernel=KERNEL + 0.3 * Delta(), ridge=2.0).fit(X, y).ridge_ == 2.0


def test_the_ridge_of_the_automatic_kernel_is_chosen_with_it(problem):
    X, y, _, _ = problem
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge()).fit(X, y)
    assert space.ridge_ == space.kernel_.ridge_
    assert without_ridge(space.kernel_)[1] == 0.0


@pytest.mark.every(2)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_ridge_of_a_given_kernel_predicts_left_out_rows_best(problem, weighted):
    X, y, _, _ = problem
    w = np.random.RandomState(2).uniform(0.2, 3.0, len(X)) if weighted else np.ones(len(X))
    w /= w.mean()
    K, Y = KERNEL(X), columns(y)
    chosen = RidgeKPCA(8, kernel=KERNEL).fit(X, y, sample_weight=w).ridge_
    assert chosen == pytest.approx(ridge_of(K, Y, np.sqrt(w))[0])

    def error(ridge):
        others = (w @ Y - w[:, None] * Y) / (w.sum() - w)[:, None]
        return np.sum(w[:, None] * (refitted(K, Y, ridge, w) + others - Y) ** 2)

    assert error(chosen) < min(error(chosen * 10**0.5), error(chosen / 10**0.5))


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_kernel_has_the_best_ridge_of_all_as_well(seed):
    """Next to no ridge leaves next to nothing of a residual, of which no digit may be lost."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((60, 6))
    Y = columns(((X[:, 0] > 0) ^ (rng.uniform(size=60) < 0.2)).astype(int))
    K, others = RBF(gamma=1.0)(X), (Y.sum(axis=0) - Y) / 59

    def error(ridge):
        return np.mean((refitted(K, Y, ridge) + others - Y) ** 2)

    chosen, *_ = ridge_of(K, Y, np.ones(60))
    least = min(error(chosen * 10.0**exponent) for exponent in np.arange(-6.0, 1.0, 0.5))
    assert error(chosen) <= 1.001 * least
    assert chosen > 0.01  # where ridges are as good as each other, a large one


def test_a_gram_matrix_has_the_ridge_of_its_kernel(problem):
    X, y, X_new, _ = problem
    given = RidgeKPCA(8, kernel="precomputed").fit(KERNEL(X), y)
    direct = RidgeKPCA(8, kernel=KERNEL).fit(X, y)
    assert given.ridge_ == pytest.approx(direct.ridge_)
    np.testing.assert_allclose(
        given.transform(KERNEL(X_new, X)), direct.transform(X_new), atol=1e-6
    )


def test_a_kernel_is_asked_for_the_ridge_that_is_written_in_it():
    X, _ = make_checkerboard(60, random_state=0)
    kernel = Rescaled(KERNEL + 0.1 * Delta(), [1.0, 2.0]).bind(X)
    smooth, ridge, delta = without_ridge(kernel)
    assert ridge == pytest.approx(0.1)
    np.testing.assert_allclose(smooth(X) + ridge * delta(X), kernel(X), atol=1e-12)
    assert without_ridge(RBF())[1:] == (0.0, None)


# --- what is refused ----------------------------------------------------------------------------


def test_labels_must_be_there(problem):
    with pytest.raises(ValueError, match=r"requires y.*try KPCA"):
        RidgeKPCA(kernel=KERNEL).fit(problem[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"n_components": 0},
            "Got n_components=0, but RidgeKPCA expected 'auto' or an integer >= 1",
        ),
        ({"n_components": 0.5}, r"Got n_components=0\.5"),
        ({"n_landmarks": True}, "Got n_landmarks=True"),
        ({"ridge": 0.0}, r"Got ridge=0\.0, but RidgeKPCA expected 'auto' or a number > 0"),
        ({"ridge": "none"}, "Got ridge='none'"),
        ({"rows": "some"}, "Got rows='some', but expected 'auto', 'all', 'boundary' or 'sample'"),
    ],
    ids=["no components", "a fraction", "no number", "no ridge", "a word", "some rows"],
)
def test_absurd_parameters_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        RidgeKPCA(**parameters, kernel=KERNEL).fit(problem[0], problem[1])


def test_an_indefinite_kernel_is_refused(problem):
    X, y, _, _ = problem
    G = X @ np.diag([1.0, 1.0, -3.0]) @ X.T
    with pytest.raises(ValueError, match="positive semi-definite"):
        RidgeKPCA(kernel="precomputed").fit(G, y)


def test_a_large_gram_matrix_is_refused(problem, by_landmarks):
    X, y, _, _ = problem
    with pytest.raises(ValueError, match=r"Got the Gram matrix of 150 points.*at most 50"):
        RidgeKPCA(kernel="precomputed").fit(X @ X.T, y)


@pytest.mark.parametrize("scale", [1e-100, 1e100, 1e140])
def test_the_unit_of_the_features_changes_no_coordinate_of_a_linear_kernel(scale, problem):
    X, y, _, _ = problem
    expected = RidgeKPCA(kernel=Linear()).fit_transform(X, y)
    found = RidgeKPCA(kernel=Linear()).fit_transform(scale * X, y)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)


def test_the_share_of_variance_is_that_of_the_leading_components(problem):
    X, y, _, _ = problem
    for w in (None, 1.0 + np.arange(len(X)) % 3):
        space = RidgeKPCA(5, kernel=RBF(gamma=0.3)).fit(X, y, sample_weight=w)
        plain = KPCA(5, kernel=RBF(gamma=0.3)).fit(X, sample_weight=w)
        assert 0 < plain.explained_variance_ratio_ < 0.99
        assert space.explained_variance_ratio_ == pytest.approx(plain.explained_variance_ratio_)


def test_large_kernel_values_change_nothing(problem):
    X, y, X_new, _ = problem
    plain, large = (RidgeKPCA(kernel=Linear()).fit(scale * X, y) for scale in (1.0, 2.0**400))
    Z, L = plain.transform(X_new), large.transform(2.0**400 * X_new)
    np.testing.assert_allclose(L @ L.T, Z @ Z.T, atol=1e-9)


@pytest.mark.parametrize("ridge", ["auto", 1e300])
def test_kernel_values_beyond_all_products_are_refused(problem, ridge):
    X, y, _, _ = problem
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="try rescaling the features"):
        RidgeKPCA(kernel=Linear(), ridge=ridge).fit(2e153 * X, y)


# --- how points may come ------------------------------------------------------------------------


def test_many_classes_share_the_directions():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((450, 4))
    space = space_of(4).fit(X, np.arange(450) % 225)
    assert space.n_directions_ == 128


def test_sparse_points_are_taken_as_they_are(problem):
    X, y, X_new, _ = problem
    dense, thin = space_of(), space_of()
    Z, S = dense.fit_transform(X, y), thin.fit_transform(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(Z @ Z.T, S @ S.T, atol=1e-6)
    a, b = dense.transform(X_new), thin.transform(sparse.csr_matrix(X_new))
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-6)


def test_many_sparse_points_have_landmarks_too(problem, by_landmarks):
    X, y, X_new, y_new = problem
    space = space_of(n_landmarks=100)
    Z = space.fit_transform(sparse.csr_matrix(X), y)
    assert len(space.projection_) == space.n_landmarks_ == space.anchors_.shape[0] <= 100
    judge = KNeighborsClassifier(5).fit(Z, y)
    assert judge.score(space.transform(sparse.csr_matrix(X_new)), y_new) > 0.6


def test_single_precision_stays_single(problem):
    X, y, X_new, _ = problem
    space = space_of()
    Z = space.fit_transform(X.astype(np.float32), y)
    assert Z.dtype == space.transform(X_new.astype(np.float32)).dtype == np.float32
    exact = space_of().fit_transform(X, y)
    np.testing.assert_allclose(Z @ Z.T, exact @ exact.T, atol=1e-3 * np.abs(exact @ exact.T).max())


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 1.0])
def test_one_array_of_single_precision_changes_no_distance(problem, ridge, in_single, monkeypatch):
    X, y, X_new, _ = problem
    single, double = space_of(ridge=ridge), space_of(ridge=ridge)
    Z = single.fit_transform(X, y)
    monkeypatch.undo()
    expected = double.fit_transform(X, y)
    assert single.rank_ == double.rank_
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=2e-3)
    for found, exact in ((Z, expected), (single.transform(X_new), double.transform(X_new))):
        D = pairwise_distances(exact)
        np.testing.assert_allclose(pairwise_distances(found), D, atol=2e-3 * D.max())


def heaps():
    """Twenty points of a ring, each with fifteen near copies: a kernel matrix of low rank."""
    rng = np.random.RandomState(0)
    angle = np.repeat(np.arange(20) * np.pi / 10, 15)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return ring + 1e-3 * rng.standard_normal(ring.shape), (angle / np.pi * 4).astype(int)


def test_a_ridge_that_single_precision_would_lose_is_solved_in_double(in_single, monkeypatch):
    X, y = heaps()
    spaces = [RidgeKPCA(8, kernel=RBF(gamma=0.5), ridge=ridge) for ridge in ("auto", 1e-9)]
    found = [space.fit_transform(X, y) for space in spaces]
    ridges = [space.ridge_ for space in spaces]
    assert ridges[0] < 1e-4 and ridges[1] == 1e-9
    monkeypatch.undo()
    for space, Z, ridge in zip(spaces, found, ridges, strict=True):
        D = pairwise_distances(space.fit_transform(X, y))
        assert space.ridge_ == ridge
        np.testing.assert_allclose(pairwise_distances(Z), D, atol=2e-3 * D.max())


def test_where_double_has_no_room_an_automatic_ridge_is_one_that_single_keeps(
    in_single, monkeypatch
):
    X, y = heaps()
    space = RidgeKPCA(8, kernel=RBF(gamma=0.5))
    with memory_budget(8 * len(X) ** 2):
        Z = space.fit_transform(X, y)
    assert space.n_landmarks_ == 0
    least = 40 * np.sqrt(len(X)) * np.finfo(np.float32).eps
    assert space.ridge_ == pytest.approx(least)
    monkeypatch.undo()
    D = pairwise_distances(RidgeKPCA(8, kernel=RBF(gamma=0.5), ridge=least).fit_transform(X, y))
    np.testing.assert_allclose(pairwise_distances(Z), D, atol=0.05 * D.max())


def test_where_memory_is_short_many_points_have_landmarks(problem, in_single):
    X, y, _, _ = problem
    held = space_of(n_landmarks=20)
    assert held.fit(X, y).n_landmarks_ == 0
    with memory_budget(4 * len(X) ** 2):
        assert held.fit(X, y).n_landmarks_ == 20


def test_fewer_landmarks_place_nearly_as_well(problem, by_landmarks, monkeypatch):
    X, y, X_new, y_new = problem
    few, all_ = space_of(n_landmarks=60), space_of()

    def accuracy(space):
        judge = KNeighborsClassifier(5).fit(space.fit_transform(X, y), y)
        return judge.score(space.transform(X_new), y_new)

    approximate = accuracy(few)
    monkeypatch.undo()
    assert approximate > accuracy(all_) - 0.05


def test_the_directions_of_all_classes_count_in_the_estimate_of_a_learner(problem):
    few = Kernelized(LMNN(), KERNEL, RidgeKPCA(2))
    assert few.estimate_memory(3000, 5) >= LMNN().estimate_memory(3000, 130)


@pytest.mark.every(2)
@pytest.mark.parametrize("n_landmarks", [None, 60])
def test_what_is_kept_survives_a_copy(problem, n_landmarks, monkeypatch, tmp_path):
    if n_landmarks:
        thresholds(monkeypatch, ALL_ROWS=50, HELD_ROWS=50)
    X, y, X_new, _ = problem
    metric = Kernelized(LMNN(), KERNEL, RidgeKPCA(8, n_landmarks=n_landmarks or 2000)).fit(X, y)
    E, E_new = metric.transform(X), metric.transform(X_new)
    save(metric, tmp_path / "metric.km")
    for copy in (pickle.loads(pickle.dumps(metric)), load(tmp_path / "metric.km")):
        np.testing.assert_allclose(copy.transform(X), E, atol=1e-10)
        np.testing.assert_allclose(copy.transform(X_new), E_new, atol=1e-10)
    Z = metric.space_.transform(X) @ metric.components_.T
    np.testing.assert_allclose(Z, E, atol=1e-9)  # folded or not


def test_a_second_fit_forgets_the_first(problem, by_landmarks):
    X, y, X_new, _ = problem
    space = space_of(n_landmarks=60).fit(X, y)
    space.transform(X)
    labels = y[::-1].copy()
    Z = space.fit_transform(X_new, labels)
    once = space_of(n_landmarks=60)
    np.testing.assert_allclose(Z, once.fit_transform(X_new, labels), atol=1e-9)
    np.testing.assert_allclose(space.transform(X), once.transform(X), atol=1e-9)


# --- the automatic space ------------------------------------------------------------------------


def test_every_learner_from_labels_gets_it(problem):
    X, y, _, _ = problem
    for kernel in ("auto", KERNEL, "rbf", lambda a, b: a @ b.T):
        assert isinstance(Kernelized(LDA(), kernel).fit(X, y).space_, RidgeKPCA)
    assert isinstance(Kernelized(LDA(), "precomputed").fit(KERNEL(X), y).space_, RidgeKPCA)


@pytest.mark.parametrize("rank", [2, 12])
def test_there_are_as_many_coordinates_as_the_learner_asks_for(problem, rank):
    X, y, _, _ = problem
    metric = Kernelized(NCA(rank), KERNEL).fit(X, y)
    assert metric.transform(X).shape[1] == rank
    assert metric.space_.rank_ == max(3, rank) + 2  # one component for every 50 points, or more


def test_who_needs_no_labels_does_not_see_them(problem):
    X, y, _, _ = problem
    model = Kernelized(KMeans(3, n_init=1, random_state=0), KERNEL)
    with_labels, without = (model.fit(X, labels).labels_ for labels in (y, None))
    assert isinstance(model.space_, KPCA)
    np.testing.assert_array_equal(with_labels, without)


@pytest.mark.slow
def test_noisy_labels_cost_less_than_at_full_rank(problem):
    X, y, X_new, y_new = problem

    def accuracy(space):
        metric = Kernelized(LMNN(), KERNEL, space)
        judge = KNeighborsClassifier(5).fit(metric.fit_transform(X, y), y)
        return judge.score(metric.transform(X_new), y_new)

    assert accuracy(RidgeKPCA(8)) >= accuracy(KPCA()) - 0.03
    assert accuracy(RidgeKPCA(8)) >= accuracy(KPCA(10)) + 0.02


def test_two_fits_of_the_same_points_are_the_same():
    X, y = make_checkerboard(450, random_state=0)  # more than LAPACK is asked for
    once, again = (Kernelized(LDA(), KERNEL).fit(X, y).transform(X) for _ in range(2))
    np.testing.assert_allclose(again, once, atol=1e-12 * np.abs(once).max())


def test_points_held_out_are_no_judges_where_coordinates_know_the_labels(problem, monkeypatch):
    monkeypatch.setattr("kernelmetric.learners._nca._EARLY_FROM", 100)
    X, y, _, _ = problem
    for space, judged in (("auto", False), (KPCA(), True)):
        metric = Kernelized(NCA(max_iter=3, tol=1), KERNEL, space).fit(X, y)
        assert (metric.learner_.validation_scores_ is not None) is judged
        assert metric.learner.early_stopping == "auto"


@pytest.mark.slow
def test_where_coordinates_know_the_labels_nca_shrinks(problem):
    X, y, _, _ = problem
    for learner, reg in (
        (NCA(), "shrink"),
        (NCA(early_stopping=False), "shrink"),
        (NCA(reg=0.0), 0.0),
        (NCA(reg=0.5), 0.5),
    ):
        metric = Kernelized(learner, KERNEL).fit(X, y)
        assert metric.learner_.reg == reg
        assert metric.learner.get_params() == learner.get_params()
    assert Kernelized(NCA(), KERNEL, KPCA()).fit(X, y).learner_.reg == "auto"  # which is 0 there


@pytest.mark.slow
def test_nca_keeps_what_ridge_regression_makes_of_noisy_labels():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1000, 6))
    right = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0).astype(int)
    y = np.where(rng.uniform(size=1000) < 0.3, 1 - right, right)[:400]
    kernel = RBF(gamma=0.1)
    metric = Kernelized(NCA(), kernel, RidgeKPCA(ridge=1.0))
    judge = KNeighborsClassifier(40).fit(metric.fit_transform(X[:400], y), y)
    score = judge.score(metric.transform(X[400:]), right[400:])
    rule = predictions(kernel(X[:400]), columns(y), kernel(X[400:], X[:400]), 1.0).argmax(axis=1)
    assert score > np.mean(rule == right[400:]) - 0.03


@pytest.mark.slow
def test_few_different_points_among_many_have_their_eigenvalues():
    """A random start of which all but a few columns depend on the others once led astray."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((12, 3))[rng.randint(12, size=700)]
    found = KPCA(30, kernel="rbf", solver="randomized", random_state=0).fit(X)
    expected = KPCA(30, kernel="rbf", solver="dense").fit(X)
    np.testing.assert_allclose(found.eigenvalues_[:11], expected.eigenvalues_[:11], rtol=1e-6)
    assert found.rank_ == 11


# --- boundary rows ------------------------------------------------------------------------------


@pytest.fixture
def many_easy_points(monkeypatch):
    """Two classes far apart, as many as are thinned out."""
    thresholds(monkeypatch, ALL_ROWS=300, EASY_ROWS=(60, 20))
    rng = np.random.RandomState(0)
    y = np.arange(400) % 2
    return rng.standard_normal((400, 3)) + 6.0 * y[:, None], y


def test_ridge_regression_of_easy_classes_takes_some_of_the_points(many_easy_points):
    X, y = many_easy_points
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40))
    Z = space.fit_transform(X, y)
    assert space.kernel_.loo_mistakes_ <= 0.01
    assert len(space.anchors_) == 80
    assert KNeighborsClassifier(1).fit(Z[:200], y[:200]).score(Z[200:], y[200:]) == 1.0


def test_rows_outside_the_boundary_are_placed_as_new_points(many_easy_points):
    X, y = many_easy_points
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40))
    Z = space.fit_transform(X, y)
    rows = space.boundary_rows
    others = np.setdiff1d(np.arange(400), rows)
    np.testing.assert_allclose(Z[others], space.transform(X[others]), atol=1e-10)
    alone = RidgeKPCA(8, kernel=space.kernel_, ridge=space.ridge_)
    np.testing.assert_allclose(Z[rows], alone.fit_transform(X[rows], y[rows]), atol=1e-8)
    assert np.abs(Z[rows] - space.transform(X[rows])).max() > 1e-3 * np.abs(Z).max()


def test_noisy_labels_take_all_points(many_easy_points):
    X, y = many_easy_points
    y = np.where(np.random.RandomState(1).uniform(size=400) < 0.1, 1 - y, y)
    space = RidgeKPCA(8, kernel=LeaveOneOutRidge(max_samples=40)).fit(X, y)
    assert space.kernel_.loo_mistakes_ > 0.01
    assert space.rows_ == "all"


def test_ridge_regression_of_easy_classes_takes_the_points_that_it_got_wrong(many_easy_points):
    X, y = many_easy_points
    wrong = np.array([17, 200, 381])
    y = y.copy()
    y[wrong] = 1 - y[wrong]
    rows = boundary_rows(RBF(gamma=0.1), 0.1, X, columns(y), 60, 20)
    assert len(np.unique(rows)) == 80
    assert set(wrong) <= set(rows)


def test_every_class_is_among_the_boundary_rows():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2, 3], [380, 14, 4, 2])
    X = rng.standard_normal((400, 3)) + 6.0 * y[:, None]
    rows = boundary_rows(RBF(gamma=0.1), 0.1, X, columns(y), 60, 20)
    assert len(np.unique(rows)) == 80
    counts = np.bincount(y[rows])
    assert counts[1] >= 10
    assert list(counts[2:]) == [4, 2]


def easily_told(learner, **parameters):
    kernel = LeaveOneOutRidge(max_samples=40)
    return Kernelized(learner, kernel, RidgeKPCA(8), **parameters)


@pytest.mark.slow
def test_margins_of_easy_classes_are_learned_from_the_boundary(many_easy_points):
    X, y = many_easy_points
    metric = easily_told(LMNN())
    E = metric.fit_transform(X, y)
    rows = metric.space_.boundary_rows
    assert len(rows) == 80
    Z = clone(metric.space_).set_params(kernel=metric.kernel).fit_transform(X, y)
    alone = LMNN().fit(Z[rows], y[rows])
    np.testing.assert_allclose(metric.learner_.loss_, alone.loss_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        metric.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix(), rtol=1e-5, atol=1e-6
    )
    assert E.shape[0] == 400
    others = np.setdiff1d(np.arange(400), rows)
    np.testing.assert_allclose(E[others], metric.transform(X[others]), atol=1e-8)
    assert KNeighborsClassifier(1).fit(E[:200], y[:200]).score(E[200:], y[200:]) == 1.0


@pytest.mark.slow
@pytest.mark.every(3)
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


def test_copies_of_a_point_share_their_weighted_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))[[0, 1, 2, 1, 4, 1]]
    F, counts = rng.normal(size=(6, 2)), np.array([1.0, 3.0, 2.0, 1.0, 1.0, 0.5])
    found, copies = mean_of_copies(F, X, counts), [1, 3, 5]
    shared = np.average(F[copies], axis=0, weights=counts[copies])
    np.testing.assert_allclose(found[copies], np.tile(shared, (3, 1)))
    np.testing.assert_allclose(found[[0, 2, 4]], F[[0, 2, 4]])


# --- many rows ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_very_many_rows_a_sample_is_learned_from(problem, monkeypatch):
    X, y, _, _ = problem
    thresholds(monkeypatch, ALL_ROWS=50, HELD_ROWS=50, ENOUGH_ROWS=100)
    space = space_of(n_landmarks=40)
    Z = space.fit_transform(X, y)
    assert space.rows_ == "sample" and len(Z) == len(X)
    placed = space.transform(X)
    moved = np.linalg.norm(Z - placed, axis=1) > 1e-9
    assert np.sum(moved) == 100  # rows of the sample are left out, the others are as new ones
    assert set(y[moved]) == set(y)
    every = space_of(n_landmarks=40, rows="all").fit(X, y)
    assert every.rows_ == "all"
    metric = Kernelized(LMNN(), KERNEL, RidgeKPCA(4, n_landmarks=40)).fit(X, y)
    assert metric.recipe_.reasons["rows"].startswith("a sample of 100 rows of")
    again = Kernelized(LMNN(), KERNEL, recipe=metric.recipe_, space=RidgeKPCA()).fit(X, y)
    assert again.space_.rows_ == "sample"


@pytest.mark.slow
def test_a_smooth_kernel_gets_landmarks_that_say_the_same(monkeypatch):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-1, 1, (900, 2)), rng.randint(2, size=900)
    y[X[:, 0] > 0.2] = 1
    exact = Kernelized(LDA(), LeaveOneOutRidge(max_samples=300)).fit(X, y)
    thresholds(monkeypatch, ALL_ROWS=300, HELD_ROWS=1000, EASY_ROWS=(40, 40), _SMOOTH=(4, 2))
    smooth = Kernelized(LDA(), LeaveOneOutRidge(max_samples=300)).fit(X, y)
    assert (exact.space_.n_landmarks_, smooth.space_.n_landmarks_) == (0, 450)
    new = rng.uniform(-1, 1, (200, 2))
    D = pairwise_distances(exact.transform(new))
    np.testing.assert_allclose(pairwise_distances(smooth.transform(new)), D, atol=0.05 * D.max())
    for parameters in ({"n_landmarks": 7}, {"rows": "boundary"}):  # what is written stays
        given = Kernelized(LDA(), smooth.kernel_, RidgeKPCA(**parameters)).fit(X, y)
        assert given.space_.n_landmarks_ == 0
    thresholds(monkeypatch, _SMOOTH=(400, 2))  # more than there are points
    assert Kernelized(LDA(), LeaveOneOutRidge(max_samples=300)).fit(X, y).space_.n_landmarks_ == 0


def test_more_rows_get_more_landmarks(problem, monkeypatch):
    X, y, _, _ = problem
    thresholds(monkeypatch, ALL_ROWS=50, HELD_ROWS=50, N_LANDMARKS=20, _ROWS_OF_LANDMARKS=len(X))
    assert space_of().fit(X, y).n_landmarks_ == 20
    thresholds(monkeypatch, _ROWS_OF_LANDMARKS=len(X) // 8, ENOUGH_ROWS=len(X) // 2)
    space = space_of().fit(X, y)
    assert space.n_landmarks_ == pytest.approx(40, abs=1)  # by all rows, not by those of the sample
    assert space.n_landmarks_ == space.most_landmarks(len(X))
    assert space_of(n_landmarks=15).fit(X, y).n_landmarks_ == 15


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_matrix_that_fills_the_memory_is_centred_where_it_lies(few, weighted, monkeypatch):
    monkeypatch.setattr(_ridge_solution, "_TILE", 7)
    X = np.random.RandomState(0).standard_normal((40, 3))
    w = 1.0 + np.arange(40) % 3
    weights = Weights(w, w) if weighted else None
    kind = rough(X) if few else X
    gram = CentredGram(
        RBF(gamma=0.3), X, hold=True, kind=kind, trace=w.sum(), rounding=2.0**-52, weights=weights
    )
    held, q = gram.K, np.sqrt(w / w.sum()) if weighted else np.full(40, 40**-0.5)
    wanted = held - np.outer(q, q @ held)
    wanted = wanted - np.outer(wanted @ q, q) + gram.centred_trace / 40 * np.outer(q, q)
    found = _ridge_solution._lifted(gram, q)
    assert np.shares_memory(found, held) is few
    np.testing.assert_allclose(found, wanted, atol=1e-5)
