"""What is particular to each learner, and what every metric can do."""

import pickle
import sys

import numpy as np
import pytest
from scipy import linalg
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from kernelmetric import DNE, KPCA, LMCA, LMNN, NCA, RBF, Kernelized, memory_budget
from kernelmetric.compute.reductions import class_neighbors
from kernelmetric.datasets import make_fig2_circles
from kernelmetric.learners._descent import _discriminant_directions
from kernelmetric.solvers import minimize_lbfgs

pytestmark = pytest.mark.usefixtures("deadline")
INITS = ["auto", "identity", "pca", "lda", "random"]


def lmnn_value(L, X, y, targets, c):
    """The objective of LMNN by its definition, over all triplets at once."""
    d = cdist(X @ L.T, X @ L.T, "sqeuclidean")
    i, slot = np.nonzero(targets >= 0)
    pull = d[i, targets[i, slot]]
    margins = 1 + pull[:, None] - d[i]
    return pull.sum() + c * np.sum(np.maximum(margins, 0) * (y[i][:, None] != y[None, :]))


# --- all that descend ---------------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("learner", [NCA(), NCA(2), LMNN(), LMCA(2)], ids=repr)
@pytest.mark.parametrize("init", INITS)
def test_every_start_leads_downhill(learner, init, labelled):
    X, y = labelled
    learner.set_params(init=init, random_state=0).fit(X, y)
    assert learner.converged_
    with pytest.warns(ConvergenceWarning):
        hasty = clone(learner).set_params(max_iter=1).fit(X, y)
    assert learner.loss_ < hasty.loss_


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [NCA(2), LMNN(), LMCA(2)], ids=repr)
def test_a_random_start_repeats_itself_with_its_seed(learner, labelled):
    X, y = labelled
    learner.set_params(init="random", random_state=3)
    first = clone(learner).fit(X, y).components_
    np.testing.assert_array_equal(clone(learner).fit(X, y).components_, first)
    other = clone(learner).set_params(random_state=4).fit(X, y).components_
    assert np.abs(other - first).max() > 1e-3


def test_a_given_start_leaves_its_array_alone(descending_learner, labelled):
    X, y = labelled
    truncated = isinstance(descending_learner, LMNN)  # only after the descent
    rank = (not truncated and descending_learner.n_components) or 4
    init = np.eye(rank, 4)
    descending_learner.set_params(init=init).fit(X, y)
    np.testing.assert_array_equal(init, np.eye(rank, 4))


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "learner",
    [NCA(), NCA(2), LMNN(), LMCA(), LMCA(2)],
    ids=repr,
)
def test_a_warm_start_continues(learner, labelled):
    X, y = labelled
    learner.set_params(warm_start=True).fit(X, y)
    cold_iterations, cold_loss = learner.n_iter_, learner.loss_
    learner.fit(X, y)
    assert learner.n_iter_ < cold_iterations
    assert learner.loss_ <= cold_loss * (1 + 1e-3 * np.sign(cold_loss))


def test_a_cold_start_forgets(labelled):
    X, y = labelled
    learner = NCA().fit(X, y)
    first = learner.components_
    learner.fit(X[:20], y[:20])
    learner.fit(X, y)
    np.testing.assert_array_equal(learner.components_, first)


def test_the_nca_objective_never_rises(labelled):
    curve = NCA(2, init="random", random_state=0).fit(*labelled).loss_curve_
    assert len(curve) > 5
    assert (np.diff(curve) <= 1e-9).all()


# --- LMNN ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [LMNN(), LMCA(2), LMNN(2)], ids=repr)
@pytest.mark.parametrize("c", [0.2, 1.0])
def test_the_loss_is_the_objective_at_the_map(learner, c, labelled):
    X, y = labelled
    learner.set_params(c=c).fit(X, y)
    targets = class_neighbors(X, y, 3, same=True)[0]
    expected = lmnn_value(learner.components_, X, y, targets, c)
    assert learner.loss_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("reg", "optimum", "diagonal"),  # of projected gradients on M, to a small certified gap
    [
        (0.0, 809.062, [0.25681, 0.19225, 0.13957, 0.29893]),
        (5.0, 813.464, [0.25439, 0.19297, 0.13489, 0.29675]),
    ],
)
def test_descending_on_the_factor_finds_the_convex_optimum(reg, optimum, diagonal, labelled):
    factored = LMNN(reg=reg, tol=2e-4).fit(*labelled)
    assert factored.loss_ == pytest.approx(optimum, rel=2e-4)
    np.testing.assert_allclose(
        np.diag(factored.get_mahalanobis_matrix()), diagonal, atol=0.03 * max(diagonal)
    )


@pytest.mark.slow
def test_a_convex_optimum_does_not_depend_on_the_start():
    # Here no margin is violated any more after a few steps, and what remains is to shrink: the
    # rough tolerance of a first stage must not end the fit.
    X, y = np.random.RandomState(0).standard_normal((24, 3)), np.arange(24) % 2
    Z = KPCA(kernel=RBF(gamma=1.5)).fit_transform(X)
    losses = [
        LMNN(init=init, random_state=seed, reg=0.5, tol=1e-5, max_iter=2000).fit(Z, y).loss_
        for init, seed in [("identity", 0), ("random", 0), ("random", 1)]
    ]
    assert np.ptp(losses) < 5e-3 * 72  # 72 target pairs, each with a margin of 1


@pytest.mark.parametrize("learner", [LMNN(tol=1e-4), LMCA(2, tol=1e-4)], ids=repr)
def test_the_smoothed_objective_never_rises_within_a_stage(learner, labelled, monkeypatch):
    # A stage begins with a narrower corner, or more impostors, and so with a larger objective.
    lengths = []

    def watched(*args, **kwargs):
        minimum = minimize_lbfgs(*args, **kwargs)
        lengths.append(minimum.n_iter)
        return minimum

    monkeypatch.setattr("kernelmetric.learners._margin.minimize_lbfgs", watched)
    learner.fit(*labelled)
    curve = np.array(learner.loss_curve_)
    assert sum(lengths) == len(curve) == learner.n_iter_
    assert max(lengths) > 2
    for stage in np.split(curve, np.cumsum(lengths)[:-1]):
        assert (np.diff(stage) <= 1e-9 * curve.max()).all()


def test_truncation_is_the_best_approximation_of_the_optimal_matrix(labelled):
    X, y = labelled
    M = LMNN().fit(X, y).get_mahalanobis_matrix()
    values, V = linalg.eigh(M)
    for rank in (1, 2, 3):
        truncated = LMNN(rank).fit(X, y)
        assert truncated.components_.shape == (rank, 4)
        best = (V[:, -rank:] * values[-rank:]) @ V[:, -rank:].T
        np.testing.assert_allclose(truncated.get_mahalanobis_matrix(), best, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 2])
def test_lmca_beats_the_truncated_optimum_of_the_same_rank(rank, labelled):
    X, y = labelled
    assert LMCA(rank).fit(X, y).loss_ < LMNN(rank).fit(X, y).loss_


def test_lmca_of_full_rank_is_lmnn(labelled):
    X, y = labelled
    assert LMCA().fit(X, y).loss_ == pytest.approx(LMNN().fit(X, y).loss_, rel=1e-6)


def test_given_target_neighbours_are_honoured(labelled):
    X, y = labelled
    farthest = np.array(
        [
            max(np.flatnonzero(y == y[i]), key=lambda j, i=i: np.sum((X[i] - X[j]) ** 2))
            for i in range(len(X))
        ]
    )[:, None]
    given = LMNN().fit(X, y, neighbors=farthest)
    assert given.loss_ == pytest.approx(lmnn_value(given.components_, X, y, farthest, 1.0))
    nearest = class_neighbors(X, y, 3, same=True)[0]
    same = LMNN().fit(X, y, neighbors=nearest)
    np.testing.assert_array_equal(same.components_, LMNN().fit(X, y).components_)
    assert np.abs(given.components_ - same.components_).max() > 1e-2


def test_target_neighbours_may_come_from_other_coordinates(labelled):
    X, y = labelled
    other = np.random.RandomState(5).standard_normal((len(X), 2))
    targets = class_neighbors(other, y, 3, same=True)[0]
    expected = LMNN().fit(X, y, neighbors=targets)
    for where in (other, other.tolist()):
        result = LMNN().fit(X, y, neighbors=where)
        np.testing.assert_array_equal(result.components_, expected.components_)


@pytest.mark.parametrize("learner", [LMNN(), LMCA(2), DNE()], ids=repr)
def test_classes_smaller_than_k_warn_and_use_what_they_have(learner, labelled):
    X, y = labelled
    y = np.where(np.arange(len(X)) < 2, 7, y)
    y[2] = 8  # a class of one
    with pytest.warns(UserWarning, match=r"2 class\(es\).*n_neighbors=3.*alone in their class"):
        learner.fit(X, y)
    assert np.isfinite(learner.components_).all()


# --- DNE ----------------------------------------------------------------------------------------


def dne_by_definition(X, y, k):
    """Eigenvalues and eigenvectors of Xᵀ(D - W)X, with W built pair by pair."""
    n = len(X)
    W = np.zeros((n, n))
    d = cdist(X, X)
    for i in range(n):
        for same, sign in ((True, 1.0), (False, -1.0)):
            candidates = [j for j in range(n) if j != i and (y[j] == y[i]) == same]
            for j in sorted(candidates, key=lambda j: d[i, j])[:k]:
                W[i, j] = W[j, i] = sign
    return linalg.eigh(X.T @ (np.diag(W.sum(axis=1)) - W) @ X)


@pytest.mark.parametrize("k", [1, 3])
def test_dne_is_its_definition(k, labelled):
    X, y = labelled
    values, V = dne_by_definition(X, y, k)
    dne = DNE(n_neighbors=k).fit(X, y)
    np.testing.assert_allclose(dne.eigenvalues_, values, rtol=1e-9)
    negative = int(np.sum(values < 0))
    assert 1 <= negative < 4
    assert dne.components_.shape == (negative, 4)
    assert dne.loss_ == pytest.approx(values[:negative].sum())
    np.testing.assert_allclose(np.abs(dne.components_), np.abs(V[:, :negative].T), atol=1e-8)
    two = DNE(2, n_neighbors=k).fit(X, y)
    np.testing.assert_allclose(two.get_mahalanobis_matrix(), V[:, :2] @ V[:, :2].T, atol=1e-8)


def test_the_rows_of_dne_are_orthonormal_also_where_the_basis_is_not(labelled):
    X, y = labelled
    L = DNE(3).fit(X, y).components_
    np.testing.assert_allclose(L @ L.T, np.eye(3), atol=1e-10)
    B = np.random.RandomState(0).standard_normal((4, 4))  # a basis in columns
    general = DNE(3).fit(X @ B, y, gram=B.T @ B)
    G, U = B.T @ B, general.components_
    np.testing.assert_allclose(U @ G @ U.T, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(
        general.pairwise_distances(X @ B), DNE(3).fit(X, y).pairwise_distances(X), atol=1e-8
    )


def test_dne_without_a_negative_eigenvalue_warns_and_keeps_the_best_direction(labelled):
    X, y = labelled
    with pytest.warns(UserWarning, match=r"no negative eigenvalue.*more neighbours"):
        dne = DNE(reg=1e6).fit(X, y)
    assert dne.components_.shape == (1, 4)


def test_neighbours_of_dne_may_come_from_other_coordinates(labelled):
    X, y = labelled
    other = np.random.RandomState(5).standard_normal((len(X), 2))
    expected = DNE(2).fit(X, y, neighbors=other)
    np.testing.assert_array_equal(
        DNE(2).fit(X, y, neighbors=other.tolist()).components_, expected.components_
    )
    assert np.abs(expected.eigenvalues_ - DNE(2).fit(X, y).eigenvalues_).max() > 1e-3


# --- the metric mixin ---------------------------------------------------------------------------


@pytest.fixture(params=["linear", "kernelized"])
def metric(request, labelled):
    learner = LMNN(3)
    return (learner if request.param == "linear" else Kernelized(learner)).fit(*labelled)


@pytest.mark.every(2)
def test_distances_are_euclidean_after_the_map(metric, labelled, fresh):
    X, _ = labelled
    expected = cdist(metric.transform(fresh), metric.transform(X))
    np.testing.assert_allclose(metric.pairwise_distances(fresh, X), expected, atol=1e-7)
    D = metric.pairwise_distances(X)
    np.testing.assert_array_equal(np.diag(D), 0)
    np.testing.assert_allclose(D, D.T, atol=1e-7)
    assert metric.pairwise_distances(fresh.tolist(), X.tolist()).shape == (11, len(X))


def test_pairs_are_given_as_points_or_as_row_numbers(metric, labelled):
    X, _ = labelled
    D = metric.pairwise_distances(X)
    rows = np.array([[0, 1], [5, 2], [7, 7]])
    for pairs, points in [(rows, X), (rows.tolist(), X), (X[rows], None), (X[rows].tolist(), None)]:
        d = metric.pair_distance(pairs, points)
        np.testing.assert_allclose(d, D[rows[:, 0], rows[:, 1]], atol=1e-7)
        np.testing.assert_array_equal(metric.pair_score(pairs, points), -d)


def test_blocks_of_pairs_change_no_distance(metric, labelled):
    X, _ = labelled
    rows = np.random.RandomState(0).randint(len(X), size=(500, 2))
    whole = metric.pair_distance(rows, X)
    with memory_budget("2KB"):
        np.testing.assert_allclose(metric.pair_distance(rows, X), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.every(2)
def test_scores_tell_pairs_of_a_class_from_the_others(metric, labelled):
    X, y = labelled
    X = X + 3 * y[:, None]
    pairs = np.transpose(np.triu_indices(len(X), 1))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    assert roc_auc_score(same, clone(metric).fit(X, y).pair_score(pairs, X)) > 0.9


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("pairs", "indices", "match"),
    [
        ([[0, 1]], False, r"shape \(1, 2\), but expected \(n_pairs, 2, n_features\)"),
        ([[0.0, 1.0]], True, r"dtype float64, but expected integers"),
        ([[0, 1, 2]], True, r"shape \(1, 3\)"),
        ([[0, 30]], True, r"\(0, 30\)\), but expected row numbers from 0 to 29"),
        ([[-1, 3]], True, r"row 0 is \(-1, 3\)"),
    ],
)
def test_what_is_no_pair_is_refused(metric, labelled, pairs, indices, match):
    X, _ = labelled
    with pytest.raises(ValueError, match=match):
        metric.pair_distance(pairs, X if indices else None)


def test_the_learned_kernel_is_positive_semi_definite_and_serves_an_svc(metric, labelled, fresh):
    X, y = labelled
    K = metric.pairwise_kernels(X)
    np.testing.assert_allclose(K, metric.pairwise_kernels(X, X))
    assert linalg.eigvalsh(K)[0] > -1e-9 * linalg.eigvalsh(K)[-1]
    D2 = np.diag(K)[:, None] + np.diag(K)[None, :] - 2 * K
    np.testing.assert_allclose(D2, metric.pairwise_distances(X) ** 2, atol=1e-8 * K.max())
    svc = SVC(kernel=metric.pairwise_kernels).fit(X, y)
    explicit = SVC(kernel="linear").fit(metric.transform(X), y)
    np.testing.assert_array_equal(svc.predict(fresh), explicit.predict(metric.transform(fresh)))


@pytest.mark.every(2)
def test_the_metric_function_serves_nearest_neighbours(metric, labelled, fresh):
    X, y = labelled
    knn = KNeighborsClassifier(1, metric=metric.get_metric(), algorithm="brute").fit(X, y)
    explicit = KNeighborsClassifier(1).fit(metric.transform(X), y)
    np.testing.assert_array_equal(knn.predict(fresh), explicit.predict(metric.transform(fresh)))
    assert isinstance(metric.get_metric()(X[0], X[1]), float)


def test_the_mahalanobis_matrix_gives_the_distances(labelled, fresh):
    metric = LMNN(2).fit(*labelled)
    M = metric.get_mahalanobis_matrix()
    difference = fresh[0] - fresh[1]
    d = metric.pairwise_distances(fresh[:1], fresh[1:2])[0, 0]
    assert d**2 == pytest.approx(difference @ M @ difference)
    kernelized = Kernelized(LMNN(2)).fit(*labelled)
    L = kernelized.components_
    np.testing.assert_array_equal(kernelized.get_mahalanobis_matrix(), L.T @ L)


def test_pickling_changes_no_bit(learner, labelled, fresh):
    for metric in (learner, Kernelized(clone(learner), RBF(gamma=0.3), KPCA(6))):
        metric.fit(*labelled)
        again = pickle.loads(pickle.dumps(metric))
        np.testing.assert_array_equal(again.transform(fresh), metric.transform(fresh))


# --- watching a long fit ------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [NCA(), LMNN(), Kernelized(NCA())], ids=repr)
def test_progress_goes_to_standard_error(learner, labelled, capsys):
    name = "verbose" if "verbose" in learner.get_params() else "learner__verbose"
    learner.set_params(**{name: True}).fit(*labelled)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    fitted = getattr(learner, "learner_", learner)
    last = [line for line in err.splitlines() if "loss" in line][-1]
    assert f"{type(fitted).__name__} [" in last
    assert f"{fitted.n_iter_}/{fitted.max_iter}" in last
    learner.set_params(**{name: False}).fit(*labelled)
    assert capsys.readouterr() == ("", "")


class Recorder:
    """Callback that notes the loss of every iteration it sees."""

    max_propagation_depth = None

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.tasks, self.shapes, self.depth, self.start = [], [], 0, None

    def setup(self, estimator, context):
        self.depth += 1

    def teardown(self, estimator, context):
        self.depth -= 1

    def on_fit_task_begin(self, estimator, context, *, fitted_estimator=None, **_):
        if context.task_name == "iteration" and self.start is None:
            self.start = fitted_estimator.components_

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None, **_):
        self.tasks.append((type(estimator).__name__, context.task_name))
        if context.task_name != "iteration":
            return False
        if fitted_estimator is not None and X is not None:
            self.shapes.append(fitted_estimator.transform(X).shape)
        return self.stop_after is not None and self.tasks.count(self.tasks[-1]) >= self.stop_after


watched = pytest.mark.skipif(
    "sklearn.callback" not in sys.modules, reason="this scikit-learn has no callbacks"
)


@pytest.mark.every(3)
@watched
@pytest.mark.parametrize("wrap", [lambda x: x, Kernelized], ids=["alone", "kernelized"])
@pytest.mark.parametrize("learner", [NCA(2), LMNN(), LMCA(2)], ids=repr)
def test_a_callback_sees_every_iteration(learner, wrap, labelled):
    X, y = labelled
    recorder = Recorder()
    estimator = wrap(clone(learner)).set_callbacks(recorder).fit(X, y)
    fitted = getattr(estimator, "learner_", estimator)
    seen = recorder.tasks.count((type(learner).__name__, "iteration"))
    assert fitted.n_iter_ <= seen <= fitted.n_iter_ + 1
    assert recorder.shapes[0][0] == len(X)
    assert recorder.depth == 0


@watched
@pytest.mark.parametrize("learner", [NCA(), LMNN()], ids=repr)
def test_a_callback_can_stop_the_fit_without_a_warning(learner, labelled):
    estimator = clone(learner).set_callbacks(Recorder(stop_after=2)).fit(*labelled)
    assert estimator.n_iter_ == 2
    assert np.isfinite(estimator.components_).all()


@pytest.mark.every(3, 1)
@watched
@pytest.mark.parametrize("learner", [NCA(), LMNN(), LMCA()], ids=repr)
def test_a_given_start_and_a_warm_start_are_taken_as_they_are(learner, labelled):
    X, y = labelled
    init = np.diag([0.3, 0.2, 0.1, 0.4])
    learner.set_params(init=init, warm_start=True)
    recorder = Recorder()
    learner.set_callbacks(recorder).fit(X, y)
    np.testing.assert_allclose(recorder.start, init)
    recorder, first = Recorder(), learner.components_
    learner.set_callbacks(recorder).fit(X, y)
    np.testing.assert_allclose(recorder.start, first)


@watched
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("init", INITS)
def test_nca_starts_at_a_mean_squared_length_of_four(init, scale, labelled):
    # Kernel values are at most 1: from there the softmax would be too flat to leave.
    X, y = labelled
    recorder = Recorder(stop_after=1)
    NCA(init=init, random_state=0).set_callbacks(recorder).fit(scale * X, y)
    E = scale * (X - X.mean(axis=0)) @ recorder.start.T
    assert np.mean(np.sum(E**2, axis=1)) == pytest.approx(4.0)


@pytest.mark.slow
def test_one_thousand_points_in_two_dimensions_are_no_trouble():
    X, y = make_fig2_circles(1000, random_state=0)
    for learner in (NCA(max_iter=200), LMNN(), DNE(1)):
        assert learner.fit(X, y).components_.shape[1] == 2


@pytest.mark.parametrize("learner", [NCA(), LMNN(), LMCA(2)], ids=["NCA", "LMNN", "LMCA"])
def test_an_interrupted_fit_keeps_its_last_iteration_and_can_go_on(learner, labelled, monkeypatch):
    from kernelmetric.learners._progress import Iterations

    record = Iterations.__call__

    def interrupted(self, state, loss):
        record(self, state, loss)
        if len(self.loss_curve) == 3:
            raise KeyboardInterrupt
        return False

    learner = learner.set_params(warm_start=True)
    with monkeypatch.context() as patch:
        patch.setattr(Iterations, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.fit(*labelled)
    assert np.all(np.isfinite(learner.transform(labelled[0])))
    assert learner.fit(*labelled).converged_


def test_a_start_from_lda_is_orthonormal_and_needs_no_square_of_the_points():
    # Directions that nothing varies in come before those that are there already.
    rng = np.random.RandomState(0)
    codes = np.arange(40_000) % 3
    Z = np.zeros((len(codes), 8))
    Z[:, :4] = rng.randn(len(codes), 4) + codes[:, None]
    L = _discriminant_directions(Z, codes, 7)
    assert L.shape == (7, 8)
    np.testing.assert_allclose(L @ L.T, np.eye(7), atol=1e-8)
