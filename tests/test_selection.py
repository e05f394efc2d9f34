"""kernel="auto": the leave-one-out ridge, its invariances, and what it does without labels."""

import tracemalloc

import numpy as np
import pytest
from scipy import linalg, optimize, sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelmetric import DNE, LDA, LMNN, RBF, Kernelized, Laplacian, memory_budget
from kernelmetric.datasets import make_checkerboard
from kernelmetric.graphs import coded_targets
from kernelmetric.kernels import Rescaled
from kernelmetric.selection import LeaveOneOutRidge, _leave_one_out, automatic_kernel
from kernelmetric.selection._leave_one_out import FAMILIES
from kernelmetric.selection._many_rows import LANDMARKS, errors_by_landmarks, for_many_rows
from kernelmetric.selection._relevance import (
    Judged,
    Sample,
    better_units,
    learned_map,
    relevance_loss,
    relevances,
)
from kernelmetric.solvers import RIDGES, Grid
from kernelmetric.solvers._ridge_grid import left_out


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def board():
    """Eight cells of two colours, and two features that say nothing."""
    return make_checkerboard(160, n_noise=2, n_cells=3, random_state=0)


@pytest.fixture(scope="module")
def chosen(wine, board):
    """What is chosen for either, once for all tests that compare with it."""
    return {
        name: LeaveOneOutRidge().bind(*data) for name, data in (("wine", wine), ("board", board))
    }


def leave_one_out_errors(K, Y, ridges=RIDGES):
    return np.array([left_out(K, Y, ridge)[0] for ridge in ridges])


def width_and_ridge(kernel):
    inner = kernel.kernel if isinstance(kernel, Rescaled) else kernel
    return inner.gamma, kernel.ridge_


# --- the closed form ----------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 3])
def test_the_closed_form_is_what_refitting_without_each_point_gives(p):
    rng = np.random.RandomState(0)
    X, Y = rng.randn(25, 3), rng.randn(25, p)
    K = RBF(gamma=0.3)(X)
    ridges = [1e-3, 0.1, 5.0]
    for ridge, found in zip(ridges, leave_one_out_errors(K, Y, ridges), strict=True):
        squares = []
        for i in range(len(X)):
            rest = np.delete(np.arange(len(X)), i)
            G = K[np.ix_(rest, rest)] + 1.0 + ridge * np.eye(len(rest))
            prediction = (K[i, rest] + 1.0) @ linalg.solve(G, Y[rest])
            squares.append((Y[i] - prediction) ** 2)
        assert found == pytest.approx(np.mean(squares), rel=1e-8)


def classes_of(sizes):
    """Labels of classes of these sizes, in no order."""
    return np.random.RandomState(0).permutation(np.repeat(np.arange(len(sizes)), sizes))


@pytest.mark.parametrize("sizes", [[1] * 40, [1] * 30 + [2, 3], [0] * 20 + [2] * 10 + [3] * 5])
def test_many_classes_have_the_errors_of_their_columns_one_by_one(sizes):
    codes = classes_of(sizes)
    X = np.random.RandomState(1).randn(len(codes), 3)
    Y = np.where(codes[:, None] == np.arange(len(sizes)), 1.0, -1.0)
    K = RBF(gamma=0.3)(X)
    alone = [leave_one_out_errors(K, column[:, None]) for column in Y.T]
    np.testing.assert_allclose(leave_one_out_errors(K, Y), np.mean(alone, axis=0), rtol=1e-9)
    at = np.array([-1.0, -2.0, 0.0, -3.0])
    losses, gradients = zip(
        *(relevance_loss(at, X, column[:, None]) for column in Y.T), strict=True
    )
    loss, gradient = relevance_loss(at, X, Y)
    errors = np.exp(losses)
    assert np.exp(loss) == pytest.approx(errors.mean(), rel=1e-9)
    expected = errors @ np.array(gradients) / errors.sum()  # of the logarithm of the mean
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)


def test_labels_unrelated_to_the_points_cannot_be_predicted():
    rng = np.random.RandomState(0)
    X, y = rng.randn(60, 2), np.repeat([0, 1], 30)
    Y = coded_targets(y, X).columns()
    K = RBF(gamma=100.0)(X)
    assert leave_one_out_errors(K, Y).min() > 0.99  # 1 is guessing
    H = np.eye(60) - 1 / 60
    centred = H @ K @ H - 1.0  # the function adds the one
    assert leave_one_out_errors(centred, Y, [1e-4])[0] < 0.1  # why K + 1, and not the centred K


def test_the_gradient_of_the_relevances_is_that_of_finite_differences(wine):
    X, y = wine
    X, y = X[::3, :5], y[::3]
    Y = coded_targets(y, X).columns()
    at = np.append(np.random.RandomState(0).uniform(-3, 0, 5), -1.0)
    error = optimize.check_grad(
        lambda p: relevance_loss(p, X, Y)[0], lambda p: relevance_loss(p, X, Y)[1], at
    )
    assert error < 1e-6


def test_single_precision_is_enough_for_the_descent(wine):
    X, y = wine
    Y = coded_targets(y, X).columns()
    for ridge in (1e-3, 1.0):
        at = np.append(np.random.RandomState(0).uniform(-5, -2, 13), np.log(ridge))
        (loss, gradient), (near, slope) = (relevance_loss(at, X, Y, tol) for tol in (0.0, 1e-6))
        assert near == pytest.approx(loss, abs=1e-3)
        np.testing.assert_allclose(slope, gradient, atol=1e-3)


def test_the_descent_on_blocks_lowers_the_mean_of_their_losses(board):
    X, y = board
    Y = coded_targets(y, X).columns()
    blocks = [(X[k::2], Y[k::2]) for k in (0, 1)]
    start = np.log([5.0, 5.0, 5.0, 5.0, 0.1])
    before, after = (
        np.mean([relevance_loss(at, *block)[0] for block in blocks])
        for at in (start, relevances(blocks, start, 5, np.arange(len(start) - 1))[1])
    )
    assert after < before - 0.1


def test_the_relevance_loss_is_the_logarithm_of_the_error(wine):
    X, y = wine
    Y = coded_targets(y, X).columns()
    found, _ = relevance_loss(np.append(np.full(13, np.log(0.1)), np.log(0.01)), X, Y)
    assert np.exp(found) == pytest.approx(leave_one_out_errors(RBF(gamma=0.1)(X), Y, [0.01])[0])


# --- the choice ---------------------------------------------------------------------------------


def test_the_chosen_kernel_has_the_smallest_error_of_the_grid(wine, chosen):
    X, y = wine
    kernel = chosen["wine"]
    Y = coded_targets(y, X).columns()
    gamma, ridge = width_and_ridge(kernel)
    error = leave_one_out_errors(kernel(X), Y, [ridge])[0]
    assert error == pytest.approx(np.nanmin(kernel.loo_errors_))
    assert gamma in kernel.gammas_
    assert ridge in kernel.ridges_
    assert kernel.loo_errors_.shape == (len(kernel.gammas_), len(kernel.ridges_))
    errors = {name: error for name, error in kernel.candidates_.items() if name != "mapped"}
    rescaled, common = (
        min(errors[name] for name in errors if name.endswith("rescaled") is kind)
        for kind in (True, False)
    )
    better = min(common, rescaled if rescaled < 0.9 * common else common)
    assert isinstance(kernel, Rescaled) == (better < 0.9 * common)


@pytest.mark.every(2)
@pytest.mark.parametrize("family", FAMILIES, ids=["RBF", "Laplacian"])
def test_the_search_finds_what_the_whole_grid_has(wine, board, family):
    for X, y in (wine, board):
        Y = coded_targets(y, X).columns()
        found, whole = Grid(X, Y, family).sweep(), Grid(X, Y, family)
        whole.look(np.ndindex(whole.errors.shape))
        assert not np.isnan(whole.errors).any()
        assert np.isnan(found.errors).any()  # what it passed by
        assert found.error < 1.01 * whole.error


def test_all_rows_look_at_a_narrower_width_that_is_nearly_as_good(wine):
    grid = Grid(wine[0], coded_targets(wine[1], wine[0]).columns(), FAMILIES[0])
    grid.errors[6, 3], grid.errors[5, 3], grid.errors[2, 1] = 1.0, 1.01, 1.1
    assert grid.valleys == [(6, 3), (2, 1)]
    grid.errors[2, 1] = 2.0
    assert grid.valleys == [(6, 3), (6, 3)]


@pytest.mark.parametrize("name", ["wine", "board"])
def test_the_effective_dimension_counts_the_directions_that_are_not_shrunk(name, chosen, request):
    X, _ = request.getfixturevalue(name)
    kernel = chosen[name]
    ridge = width_and_ridge(kernel)[1]
    w = linalg.eigvalsh(kernel(X) + 1.0)
    assert kernel.effective_dimension_ == pytest.approx(np.sum(w / (w + ridge)), rel=1e-6)


def test_what_is_chosen_is_smooth_and_its_ridge_stands_beside_it(chosen, wine, board):
    for name, (X, _) in (("wine", wine), ("board", board)):
        kernel = chosen[name]
        K = kernel(X[:5] + 1e-9, X[:5])
        np.testing.assert_allclose(np.diag(K), 1.0, atol=1e-6)  # no bump at a training point
        assert kernel.ridge_ in RIDGES


@pytest.mark.slow
def test_the_number_of_threads_does_not_matter():
    X, y = make_checkerboard(420, n_noise=3, random_state=0)
    chosen = LeaveOneOutRidge().bind(X, y)
    with threadpool_limits(1):
        alone = LeaveOneOutRidge().bind(X, y)
    assert alone.candidates_ == pytest.approx(chosen.candidates_, rel=1e-12)
    np.testing.assert_allclose(alone.scales, chosen.scales, rtol=1e-12)


def test_binding_what_was_chosen_changes_nothing(board, chosen):
    X, y = board
    kernel = chosen["board"]
    again = kernel.bind(X[::-1], y)
    assert np.array_equal(kernel(X), again(X))
    assert np.array_equal(clone(kernel)(X), kernel(X))


@pytest.mark.every(2)
@pytest.mark.parametrize("groups", [None, [1, 0, 2, 2, 3, 3]])
def test_the_order_of_columns_does_not_matter(groups):
    X, y = make_checkerboard(300, n_noise=4, random_state=1)
    order = np.array([4, 0, 5, 3, 1, 2])
    kernel = LeaveOneOutRidge(groups=groups).bind(X, y)
    moved = None if groups is None else np.array(groups)[order]
    other = LeaveOneOutRidge(groups=moved).bind(X[:, order], y)
    np.testing.assert_array_equal(other.scales, kernel.scales[..., order])
    assert other.candidates_ == kernel.candidates_ and other.ridge_ == kernel.ridge_


@pytest.mark.parametrize("name", ["wine", "board"])
def test_the_order_of_rows_does_not_matter(name, chosen, request):
    X, y = request.getfixturevalue(name)
    order = np.random.RandomState(1).permutation(len(y))
    kernel, other = chosen[name], LeaveOneOutRidge().bind(X[order], y[order])
    assert np.allclose(kernel(X), other(X), atol=1e-3)
    assert width_and_ridge(kernel)[1] == width_and_ridge(other)[1]


def test_names_of_classes_do_not_matter(wine, chosen):
    X, y = wine
    names = np.array(["c", "a", "b"])[y]
    assert width_and_ridge(LeaveOneOutRidge().bind(X, names)) == pytest.approx(
        width_and_ridge(chosen["wine"])
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("max_samples", [500, 60])
def test_the_order_of_the_names_of_odd_classes_does_not_matter(max_samples):
    sizes = [11, 17, 9, 23, 15]
    rng = np.random.RandomState(0)
    y = rng.permutation(np.repeat(np.arange(5), sizes))
    X = rng.randn(5, 3)[y] + 0.8 * rng.randn(75, 3)
    chosen = LeaveOneOutRidge(max_samples).bind(X, y)
    if max_samples > len(y):  # nor does the order of rows, unless it decides which are looked at
        order = rng.permutation(len(y))
        other = LeaveOneOutRidge(max_samples).bind(X[order], y[order])
        assert other.candidates_ == pytest.approx(chosen.candidates_, rel=1e-6)
    for names in ([4, 3, 2, 1, 0], [2, 0, 1, 4, 3]):
        other = LeaveOneOutRidge(max_samples).bind(X, np.array(list("abcde"))[names][y])
        assert other.candidates_ == pytest.approx(chosen.candidates_, rel=1e-6)
        np.testing.assert_allclose(other.loo_errors_, chosen.loo_errors_, rtol=1e-6)


@pytest.mark.every(6)
@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1e-3, 0.0), (1.0, 50.0)])
def test_scale_and_position_of_the_data_do_not_matter(wine, board, chosen, scale, shift):
    for name, (X, y) in (("wine", wine), ("board", board)):
        moved = LeaveOneOutRidge().bind(scale * X + shift, y)
        assert np.allclose(moved(scale * X + shift), chosen[name](X), atol=1e-3)


def test_noise_features_lose_their_scale(board, chosen):
    X, y = board
    kernel = chosen["board"]
    assert isinstance(kernel, Rescaled)
    assert kernel.scales[:2].min() > 3 * kernel.scales[2:].max()
    X_new, y_new = make_checkerboard(400, n_noise=2, n_cells=3, random_state=1)

    def accuracy(kernel):
        metric = Kernelized(LMNN(), kernel=kernel)
        knn = KNeighborsClassifier(1).fit(metric.fit_transform(X, y), y)
        return knn.score(metric.transform(X_new), y_new)

    assert accuracy(kernel) > accuracy(RBF()) + 0.1


@pytest.mark.slow
def test_noise_that_fills_the_distance_is_found_out_too():
    # No common width predicts better than guessing, so the descent must begin elsewhere.
    draws = [make_checkerboard(300, n_noise=4, random_state=seed) for seed in (1, 2, 4)]
    for kernel in [LeaveOneOutRidge().bind(X, y) for X, y in draws]:
        assert min(kernel.candidates_["RBF"], kernel.candidates_["Laplacian"]) > 0.9
        assert np.nanmin(kernel.loo_errors_) < 0.5
        assert kernel.scales[:2].min() > 3 * kernel.scales[2:].max()


def test_features_without_meaning_keep_a_common_scale():
    rng = np.random.RandomState(0)
    X, y = rng.randn(80, 40), rng.randint(2, size=80)
    assert isinstance(LeaveOneOutRidge().bind(X, y), RBF | Laplacian)


@pytest.mark.slow
def test_a_target_with_jumps_gets_the_laplacian_and_a_smooth_one_the_rbf():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, size=(150, 2))
    smooth = np.sin(3 * X[:, 0]) + np.cos(3 * X[:, 1])
    jumps = np.floor(2.5 * X[:, 0]) + np.floor(2.5 * X[:, 1]) + 0.25
    for y, family in ((smooth, RBF), (jumps, Laplacian)):
        kernel = LeaveOneOutRidge().bind(X, y)
        inner = kernel.kernel if isinstance(kernel, Rescaled) else kernel
        assert isinstance(inner, family)


# --- what y may be ------------------------------------------------------------------------------


def test_without_labels_it_is_the_median_rbf(wine):
    X, _ = wine
    assert repr(LeaveOneOutRidge().bind(X)) == repr(RBF(gamma="median").bind(X))


@pytest.mark.parametrize(("X", "y"), [([[0.0], [1.0]], [0, 1]), (np.eye(20), [3] * 20)])
def test_labels_that_cannot_choose_give_the_median_rbf_with_a_ridge(X, y):
    X = np.asarray(X)
    kernel = LeaveOneOutRidge().bind(X, y)
    assert repr(kernel) == repr(RBF(gamma="median").bind(X))
    assert kernel.ridge_ == 0.1


def test_a_continuous_target_is_regressed_itself():
    X, y = load_diabetes(return_X_y=True)
    assert (y == np.round(y)).all()  # whole numbers, but nearly each its own
    X, y = X[:120], y[:120]
    targets = coded_targets(y, X)
    assert targets.columns().shape == (120, 1)
    assert np.array_equal(targets.key, y)
    assert np.nanmin(LeaveOneOutRidge().bind(X, y).loo_errors_) < 0.8  # 1 is predicting the mean
    model = make_pipeline(StandardScaler(), Kernelized(Ridge(), kernel="auto"))
    assert model.fit(X, y).score(X, y) > 0.3


def test_whole_numbers_with_many_rows_each_are_classes(wine):
    X, y = wine
    Y = coded_targets(y.astype(float), X).columns()
    assert np.array_equal(np.unique(Y), [-1.0, 1.0])
    assert Y.shape == (len(y), 3)


def test_classes_of_one_member_and_repeated_points_are_taken(wine):
    X, y = wine
    X, y = np.vstack([X, X[:30], X[:1]]), np.concatenate([y, y[:30], [7]])
    kernel = LeaveOneOutRidge().bind(X, y)
    assert np.isfinite(kernel(X)).all()


@pytest.mark.filterwarnings("error")
def test_constant_features_and_points_that_coincide_are_taken(wine):
    X, y = wine
    X = np.column_stack([X, np.ones(len(X))])
    assert np.nanmin(LeaveOneOutRidge().bind(X, y).loo_errors_) < 0.2
    assert np.isfinite(
        LeaveOneOutRidge().bind(np.zeros((50, 3)), np.arange(50) % 2)(X[:, :3])
    ).all()


@pytest.mark.parametrize(
    ("kernel", "y", "match"),
    [
        (LeaveOneOutRidge(), np.full(178, np.nan), "y contains NaN"),
        (LeaveOneOutRidge(), np.zeros(3), "inconsistent numbers of samples"),
        (LeaveOneOutRidge(max_samples=2), np.arange(178) % 2, "Got max_samples=2, but"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(wine, kernel, y, match):
    with pytest.raises(ValueError, match=match):
        kernel.bind(wine[0], y)


def test_scales_for_another_number_of_features_are_refused():
    with pytest.raises(ValueError, match="expected one finite number per feature"):
        Rescaled(RBF(gamma=1.0), [1.0, 2.0])(np.ones((2, 3)))


def test_it_must_be_bound_before_it_is_evaluated(wine):
    with pytest.raises(ValueError, match="still wait for data"):
        LeaveOneOutRidge()(wine[0])


# --- how X may come -----------------------------------------------------------------------------


def test_float32_chooses_as_float64(board, chosen):
    X, y = board
    kernel, single = chosen["board"], LeaveOneOutRidge().bind(X.astype("f4"), y)
    assert np.allclose(kernel(X), single(X), atol=1e-2)
    assert single(X.astype("f4")).dtype == np.float32


def test_torch_chooses_as_numpy(board):
    torch = pytest.importorskip("torch")
    X, y = board
    kernel = LeaveOneOutRidge().bind(torch.asarray(X), torch.asarray(y))
    found = kernel(torch.asarray(X))
    assert isinstance(found, torch.Tensor)
    assert np.allclose(found.numpy(), LeaveOneOutRidge().bind(X, y)(X), atol=1e-6)


def test_sparse_points_get_an_rbf(board):
    X, y = board
    kernel = LeaveOneOutRidge().bind(sparse.csr_matrix(X), y)
    assert isinstance(kernel, RBF)
    assert np.allclose(kernel(sparse.csr_matrix(X)), kernel(X), atol=1e-6)
    rescaled = Rescaled(RBF(gamma=1.0), np.arange(1.0, X.shape[1] + 1))
    assert np.allclose(rescaled(sparse.csr_matrix(X)), rescaled(X), atol=1e-6)


@pytest.mark.slow
def test_a_sample_chooses_nearly_as_well_as_all_rows_and_always_the_same():
    def error(kernel, X, y):
        return leave_one_out_errors(kernel(X), coded_targets(y, X).columns(), [kernel.ridge_])[0]

    ratios = []
    for seed in range(3):
        X, y = make_checkerboard(160, n_noise=1, n_cells=2, random_state=seed)
        whole, part = (LeaveOneOutRidge(max_samples=m).bind(X, y) for m in (160, 100))
        ratios.append(error(part, X, y) / error(whole, X, y))
        assert error(part, X, y) < 0.8  # 1 is guessing
    assert np.mean(ratios) < 1.1
    again = LeaveOneOutRidge(max_samples=100).bind(X, y)
    assert np.array_equal(part(X), again(X))


def test_targets_of_rows_that_are_not_looked_at_take_no_memory():
    rng = np.random.RandomState(0)
    y = np.arange(5000) % 500
    X = rng.randn(500, 2)[y] + 0.1 * rng.randn(5000, 2)
    tracemalloc.start()
    try:
        LeaveOneOutRidge(max_samples=40).bind(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 8 * 5000 * 500  # a column of numbers for each class


def test_a_budget_does_not_change_the_sample(board, chosen):
    X, y = board
    with memory_budget("1MB"):
        small = LeaveOneOutRidge().bind(X, y)
    np.testing.assert_allclose(small.loo_errors_, chosen["board"].loo_errors_, rtol=1e-9)


# --- in its place -------------------------------------------------------------------------------


def test_auto_is_the_leave_one_out_ridge(wine):
    X, y = wine
    assert isinstance(automatic_kernel("auto"), LeaveOneOutRidge)
    metric = Kernelized(DNE(), kernel="auto").fit(X, y)
    assert metric.kernel_.loo_errors_.shape[1] == len(RIDGES)


def test_rows_one_by_one_are_transformed_as_in_a_batch(wine):
    X, y = wine
    X, y = X[::2], y[::2]
    model = make_pipeline(StandardScaler(), PCA(), Kernelized(LMNN(), kernel="auto")).fit(X, y)
    batch = model.transform(X)
    one_by_one = np.vstack([model.transform(row[None, :]) for row in X])
    assert np.abs(batch - one_by_one).max() < 1e-6 * np.abs(batch).max()


@pytest.mark.slow
def test_auto_is_one_of_the_kernels_of_a_grid_search(wine):
    X, y = wine
    model = make_pipeline(Kernelized(DNE(), kernel="auto"), KNeighborsClassifier(1))
    search = GridSearchCV(clone(model), {"kernelized__kernel": ["auto", "linear"]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.9
    search = GridSearchCV(
        make_pipeline(Kernelized(DNE(), kernel=LeaveOneOutRidge()), KNeighborsClassifier(1)),
        {"kernelized__kernel__max_samples": [20, 38]},
        cv=2,
        error_score="raise",
    )
    assert search.fit(X, y).best_score_ > 0.9


def test_the_last_points_alone_are_left_out_where_so_many_are_judged():
    rng = np.random.RandomState(0)
    X, Y = rng.standard_normal((30, 2)), rng.standard_normal((30, 3))
    K = RBF(gamma=0.5)(X)
    G = np.linalg.inv(K + 1.0 + 0.1 * np.eye(30))
    squares = (G @ Y / np.diag(G)[:, None]) ** 2
    for judged in (1, 7, 30, None):
        error, dimension = left_out(K, Y, 0.1, judged)
        assert error == pytest.approx(squares[-(judged or 30) :].mean(), rel=1e-9)
        assert np.isnan(dimension) == (judged in (1, 7))


def test_a_grid_that_judges_some_points_ends_with_the_error_of_all(wine):
    X, Y = wine[0], coded_targets(wine[1], wine[0]).columns()
    some = Grid(X, Y, FAMILIES[0], judged=60).sweep()
    place = some.best
    estimate = some.errors.copy()
    assert some.settle().best == place
    K = RBF(gamma=float(some.gammas[place[0]]))(X)
    expected = left_out(K, Y, RIDGES[place[1]])
    assert (some.error, some.dimensions[place]) == pytest.approx(expected, rel=1e-9)
    ratios = (some.errors / estimate)[np.isfinite(estimate)]
    np.testing.assert_allclose(ratios, ratios[0])


@pytest.mark.slow
def test_directions_that_are_no_features_are_mapped():
    rng = np.random.RandomState(0)
    Q = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    X = rng.standard_normal((300, 6))
    Z = X @ Q
    kernel = LeaveOneOutRidge().bind(X, (Z[:, 0] > 0) ^ (Z[:, 1] > 0))
    assert kernel.scales.shape == (6, 6)
    errors = dict(kernel.candidates_)
    assert errors.pop("mapped") < 0.9 * min(errors.values())
    along, across = kernel.scales @ Q, kernel.scales @ np.linalg.svd(Q)[0][:, 2:]
    assert linalg.svdvals(along)[-1] > 2 * linalg.svdvals(across)[0]


@pytest.mark.slow
def test_a_direction_of_a_number_is_mapped_too():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 8))
    u = np.ones(8) / np.sqrt(8)
    kernel = LeaveOneOutRidge().bind(X, np.sin(2 * X @ u) + 0.1 * rng.standard_normal(300))
    assert kernel.scales.ndim == 2
    assert np.linalg.norm(kernel.scales @ u) > 0.9 * linalg.norm(kernel.scales)


@pytest.mark.slow
def test_scales_that_serve_are_not_given_up_for_a_map():
    X, y = make_checkerboard(300, n_noise=4, random_state=1)
    kernel = LeaveOneOutRidge().bind(X, y)
    assert "mapped" in kernel.candidates_
    assert kernel.scales.shape == (6,)


@pytest.mark.parametrize(
    ("gain", "won", "lost", "better"),
    [
        (0.9, 20.0, 8.0, True),
        (0.9, 12.0, 8.0, False),  # surer predictions alone are no reason for a map
        (0.96, 20.0, 8.0, False),
        (0.7, 8.0, 8.0, True),
        (0.7, 0.0, 0.0, True),
        (0.7, 8.0, 16.0, False),
        (0.92, np.nan, np.nan, False),  # numbers have no classes
        (0.88, np.nan, np.nan, True),
    ],
)
def test_a_map_is_used_where_errors_and_classes_say_so(gain, won, lost, better):
    assert Judged(gain, won, lost, np.eye(2)).is_better is better


def test_a_map_begins_where_scales_end():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 6))
    Z = X[:, :2] @ np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    Y = np.where((Z[:, 0] > 0) ^ (Z[:, 1] > 0), 1.0, -1.0)[:, None] * [1.0, -1.0]
    scales = np.array([1.0, 1.0, 1e-9, 1e-9, 1e-9, 1e-9])  # of features that say nothing
    found = learned_map(Sample(X, Y), FAMILIES[0], (4, 3), [scales] * 2)
    assert found.is_better
    np.testing.assert_allclose(found.L[:, 2:], 0.0, atol=1e-6)


@pytest.mark.slow
def test_classes_that_differ_little_along_many_directions_are_mapped():
    rng = np.random.RandomState(0)
    Q = np.linalg.qr(rng.standard_normal((12, 4)))[0]
    X = rng.standard_normal((400, 12))
    centres = rng.standard_normal((26, 4))
    y = np.argmin(cdist(X @ Q, centres), axis=1)
    assert LeaveOneOutRidge().bind(X, y).scales.shape == (12, 12)


@pytest.mark.every(3)
@pytest.mark.parametrize(("n", "d"), [(90, 10), (150, 130), (150, 60)])
def test_few_points_or_many_features_are_not_mapped(n, d):
    X = np.random.RandomState(0).standard_normal((n, d))
    kernel = LeaveOneOutRidge().bind(X, X[:, 0] + X[:, 1] > 0)
    assert np.ndim(getattr(kernel, "scales", 0)) < 2
    assert "mapped" not in kernel.candidates_


def test_features_that_share_a_scale_are_not_mapped():
    X = np.random.RandomState(0).standard_normal((300, 6))
    kernel = LeaveOneOutRidge(groups=[0, 0, 1, 1, 2, 2]).bind(X, X.sum(axis=1) > 0)
    assert "mapped" not in kernel.candidates_


def test_where_all_points_are_right_no_map_is_looked_for():
    rng = np.random.RandomState(0)
    y = np.arange(150) % 3
    X = rng.standard_normal((150, 4)) + 8.0 * np.eye(3, 4)[y]
    assert "mapped" not in LeaveOneOutRidge().bind(X, y).candidates_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "judges"), [pytest.param(4000, [], marks=pytest.mark.slow), (6000, [750])]
)
def test_of_many_points_an_eighth_judges_width_and_ridge(n, judges, monkeypatch):
    seen, again = [], _leave_one_out.choose_again

    def watched(choice, sample):
        seen.append(len(sample.X))
        return again(choice, sample)

    monkeypatch.setattr(_leave_one_out, "choose_again", watched)
    X, y = make_checkerboard(n, n_noise=1, random_state=0)
    kernel = LeaveOneOutRidge().bind(X, y)
    assert seen == judges
    assert kernel.effective_dimension_ > 0


# --- many rows ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fine_board():
    """Squares so small that few rows hardly show them."""
    return make_checkerboard(3000, n_cells=8, random_state=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_by_landmarks_are_those_of_ridge_regression(fine_board, weighted):
    X, y = fine_board[0][:600], coded_targets(fine_board[1], fine_board[0]).columns()[:600]
    masses = np.linspace(0.5, 1.5, 600) if weighted else np.ones(600)
    learn, judge = (Sample(X[s], y[s], np.sqrt(masses[s])) for s in (slice(400), slice(400, 600)))
    assert len(learn.Y) < LANDMARKS  # every row is one
    kernel, ridges = RBF(gamma=2.0), np.array([1.0, 0.1])
    w = masses[:400]
    means = np.average(learn.Y, axis=0, weights=w)
    for found, ridge in zip(errors_by_landmarks(kernel, learn, judge, ridges), ridges, strict=True):
        alpha = linalg.solve(kernel(learn.X) + ridge * np.diag(1.0 / w), learn.Y - means)
        missed = kernel(judge.X, learn.X) @ alpha + means - judge.Y
        wanted = np.average(np.mean(missed**2, axis=1), weights=masses[400:])
        assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.slow
def test_many_rows_get_a_narrower_kernel_where_it_predicts_better(fine_board, monkeypatch):
    X, labels = fine_board
    y = coded_targets(labels, X).columns()
    wide = RBF(gamma=1.0)
    narrow, _ = for_many_rows(wide, 0.1, Sample(X, y))
    assert 16.0 < narrow.gamma < 1024.0  # squares are an eighth wide
    monkeypatch.setattr(_leave_one_out, "for_many_rows", lambda k, r, s: (RBF(7.0), 0.5))
    assert LeaveOneOutRidge(100).bind(X, labels).ridge_ != 0.5
    monkeypatch.setattr(_leave_one_out, "MANY_ROWS", 2000)
    chosen = LeaveOneOutRidge(100).bind(X, labels)
    assert (chosen.gamma, chosen.ridge_) == (7.0, 0.5)


@pytest.mark.slow
def test_many_rows_leave_a_kernel_as_wide_as_it_is_good(fine_board):
    X, smooth = fine_board[0], RBF(gamma=1.0)
    noise = 0.1 * np.random.default_rng(0).normal(size=(len(X), 1))
    assert for_many_rows(smooth, 0.1, Sample(X, X[:, :1] + noise)) == (smooth, 0.1)


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_in_other_units_do_not_hide_those_that_tell(dtype):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((600, 4))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(600) > 0).astype(int)
    units = np.array([1.0, 1.0, 1e4, 1e4])
    plain, scaled = (Kernelized(LDA()).fit(A[:300].astype(dtype), y[:300]) for A in (X, X * units))

    def accuracy(metric, A):
        judge = KNeighborsClassifier(15).fit(metric.embedding_, y[:300])
        return judge.score(metric.transform(A[300:].astype(dtype)), y[300:])

    assert accuracy(scaled, X * units) > accuracy(plain, X) - 0.03 > 0.7


@pytest.mark.slow
def test_columns_keep_their_widths_where_left_out_points_prefer_them():
    rng = np.random.RandomState(0)
    X = np.hstack([rng.standard_normal((300, 2)), 0.02 * rng.standard_normal((300, 8))])
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # the narrow columns are noise
    assert better_units(X, lambda A: np.mean(np.std(A, axis=0)[2:])) is None
    units = better_units(X, lambda A: -np.mean(np.std(A, axis=0)[2:]))
    widths = np.std(X * units, axis=0)
    np.testing.assert_allclose(widths, widths[0])
    kernel = LeaveOneOutRidge(max_samples=200).bind(X, y)
    assert np.max(getattr(kernel, "scales", np.ones(10))[2:]) <= 1.0
    assert better_units(np.ones((5, 3)), np.sum) is None  # no column tells anything
    assert better_units(X[:, :2], np.sum) is None  # of one width
