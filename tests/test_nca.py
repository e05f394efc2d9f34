"""NCA for many points: batches, and a start that suits them."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from kernelmetric import MLKR, NCA, Kernelized, memory_budget
from kernelmetric.compute.reductions import nca_loss
from kernelmetric.inputs import Weights
from kernelmetric.learners._nca import shrinking, softmax_start
from kernelmetric.learners._progress import Iterations

pytestmark = pytest.mark.usefixtures("deadline")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(600, n_features=5, centers=4, cluster_std=4.0, random_state=0)


def first_iteration(nca, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return nca.set_params(max_iter=1).fit(X, y)


@pytest.mark.slow
def test_batches_go_a_good_part_of_the_way(blobs):
    X, y = blobs
    before = first_iteration(NCA(2), X, y).loss_
    exact = NCA(2).fit(X, y)
    batched = NCA(2, solver="minibatch", batch_size=200, random_state=0).fit(X, y)
    order = np.argsort(y, kind="stable")
    value = nca_loss(batched.components_, X[order], y[order])[0]
    assert value < before - 0.3 * (before - exact.loss_)
    again = NCA(2, solver="minibatch", batch_size=200, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.components_, batched.components_)


@pytest.mark.parametrize(("most", "solver"), [(60**2 * 2, "lbfgs"), (60**2 * 2 - 1, "minibatch")])
def test_of_many_points_batches_are_enough(most, solver, monkeypatch):
    monkeypatch.setattr("kernelmetric.learners._nca._MANY_PRODUCTS", most)
    X, y = make_blobs(60, n_features=3, centers=3, cluster_std=2.0, random_state=0)
    few = {"max_iter": 2, "tol": 1.0, "batch_size": 20, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        auto, told = (NCA(2, solver=which, **few).fit(X, y) for which in ("auto", solver))
    assert auto.solver_ == told.solver_ == solver
    np.testing.assert_array_equal(auto.components_, told.components_)
    assert auto._meets(60, 3) == told._meets(60, 3) == (60 if solver == "lbfgs" else 20)


@pytest.mark.every(3)
@pytest.mark.parametrize("solver", ["lbfgs", "minibatch"])
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_no_solver_of_nca_goes_beyond_max_iter(solver, max_iter, monkeypatch):
    monkeypatch.setattr("kernelmetric.learners._nca_solvers._LEAST_BATCHES", 4)
    X, y = make_blobs(1200, n_features=3, centers=3, cluster_std=4.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        nca = NCA(solver=solver, max_iter=max_iter, tol=0, random_state=0).fit(X, y)
    assert nca.n_iter_ == max_iter


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"solver": "newton"}, "solver='newton'"),
        ({"batch_size": 1}, "batch_size=1"),
    ],
)
def test_nca_says_which_solver_parameter_is_wrong(blobs, wrong, words):
    with pytest.raises(ValueError, match=words):
        NCA(**wrong).fit(*blobs)


def test_the_start_of_nca_suits_the_number_of_points():
    # Where the softmax of a point spreads over many others, the start is longer.
    X, _ = make_blobs(3000, n_features=10, centers=3, random_state=0)
    length = [
        np.mean(np.sum((Z - Z.mean(axis=0)) ** 2, axis=1))
        for Z in (A @ softmax_start(np.eye(10), A).T for A in (X[:30], X))
    ]
    assert length[0] == pytest.approx(4.0)
    assert length[1] > 8.0


def by_definition(L, X, codes):
    """The value and the gradient of NCA, from whole n × n matrices."""
    E = X @ L.T
    K = np.exp(-np.sum((E[:, None] - E) ** 2, axis=2))
    np.fill_diagonal(K, 0.0)
    P = K / K.sum(axis=1, keepdims=True)
    alike = codes[:, None] == codes
    p = np.sum(P * alike, axis=1)
    W = P * (alike - p[:, None])
    W = W + W.T
    return -p.sum(), 2.0 * (W.sum(axis=1)[:, None] * E - W @ E).T @ X


@pytest.mark.every(4)
@pytest.mark.parametrize("budget", ["1GB", "100kB"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "sizes",
    [[3] * 120, [1, 5, 300, 2, 2, 260, 40, 1], [300, 44, 100, 212, 5], [1, 1, 900, 1]],
    ids=["all small", "small beside large", "rests of large ones", "one large"],
)
def test_classes_of_every_size_share_the_tiles_of_the_softmax(sizes, dtype, budget):
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    X, L = rng.normal(size=(len(codes), 5)), 0.5 * rng.normal(size=(4, 5))
    expected, slope = by_definition(L, X, codes)
    with memory_budget(budget):
        value, gradient = nca_loss(L.astype(dtype), X.astype(dtype), codes)
    tol = 1e-11 if dtype == np.float64 else 2e-4
    assert value == pytest.approx(expected, rel=tol)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=tol * np.abs(slope).max())


# --- points held out ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    """Two classes that overlap along one of eight features."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((400, 8))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(400) > 0).astype(int)


def test_the_map_that_served_points_held_out_best_is_kept(noisy):
    X, y = noisy
    nca = NCA(early_stopping=True, random_state=0).fit(X, y)
    scores = nca.validation_scores_
    assert len(scores) == nca.n_iter_ + 1
    whole = NCA(early_stopping=False, random_state=0).fit(X, y)
    assert whole.validation_scores_ is None
    assert nca.n_iter_ < whole.n_iter_
    assert nca.converged_
    # the points held out are every tenth of the rows sorted by class, from a random first
    order = np.argsort(y, kind="stable")
    held = order[np.random.RandomState(0).randint(10) :: 10]
    rest = np.setdiff1d(order, held)
    E = nca.transform(X)
    D = ((E[held][:, None] - E[rest][None]) ** 2).sum(axis=2)
    assert np.mean(y[rest][D.argmin(axis=1)] == y[held]) == pytest.approx(max(scores))


def test_the_fit_ends_ten_iterations_after_the_best(noisy):
    nca = NCA(early_stopping=True, random_state=0).fit(*noisy)
    best = int(np.argmax(nca.validation_scores_))
    assert len(nca.validation_scores_) - 1 <= best + 10


def test_few_points_are_not_held_out_unless_asked(noisy, monkeypatch):
    X, y = noisy
    assert NCA(max_iter=3, tol=1).fit(X, y).validation_scores_ is None
    monkeypatch.setattr("kernelmetric.learners._nca._EARLY_FROM", 400)
    assert NCA(max_iter=3, tol=1).fit(X, y).validation_scores_ is not None


@pytest.mark.every(2)
@pytest.mark.parametrize("solver", ["lbfgs", "minibatch"])
def test_every_solver_listens_to_points_held_out(noisy, solver):
    nca = NCA(2, solver=solver, early_stopping=True, max_iter=40, batch_size=100, random_state=0)
    nca.fit(*noisy)
    assert max(nca.validation_scores_) >= nca.validation_scores_[0]
    assert len(nca.validation_scores_) >= 2


def test_no_class_loses_the_pair_it_is_learned_from():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((60, 3)), np.repeat(np.arange(30), 2)
    nca = NCA(2, early_stopping=True, max_iter=2, tol=1, random_state=0)
    with pytest.raises(ValueError, match="no class has a point to spare"):
        nca.fit(X, y)


def test_early_stopping_is_yes_or_no_or_auto(noisy):
    with pytest.raises(ValueError, match="Got early_stopping='no', but expected True, False"):
        NCA(early_stopping="no").fit(*noisy)


def test_without_a_random_state_the_same_points_are_held_out(noisy):
    once, again = (NCA(2, early_stopping=True).fit(*noisy) for _ in range(2))
    assert once.validation_scores_ == again.validation_scores_
    np.testing.assert_allclose(again.components_, once.components_, rtol=1e-8, atol=1e-8)


def test_a_map_handed_to_a_callback_is_no_array_of_the_optimiser(noisy, monkeypatch):
    X, y = noisy
    kept = []

    class Task:
        def call_on_fit_task_begin(self, **_):
            pass

        def call_on_fit_task_end(self, reconstruction_attributes=None, **_):
            if callable(reconstruction_attributes):
                kept.append(reconstruction_attributes()["components_"])
            return False

    def begin(self, state):
        self._open = self._root = Task()

    monkeypatch.setattr(Iterations, "start", begin)
    nca = NCA(2, max_iter=6, tol=0, early_stopping=False)
    with pytest.warns(ConvergenceWarning, match="6 iterations"):
        nca.fit(X, y)
    assert len({L.tobytes() for L in kept}) == len(kept) == 6


# --- the penalty of coordinates that are made of labels -----------------------------------------


def variance(X):
    return np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))


def test_shrinking_is_the_penalty_that_it_says(noisy):
    X, y = noisy
    nca = NCA(reg="shrink").fit(X, y)
    L = nca.components_
    order = np.argsort(y, kind="stable")
    hits = nca_loss(L, X[order], y[order])[0]
    reg = 1e-3 * np.sqrt(1600 / len(X)) * variance(X) * len(X)
    assert nca.loss_ == pytest.approx(hits + reg * np.sum(L**2), rel=1e-5)
    same = NCA(reg=reg, tol=1e-4).fit(X, y)
    assert same.loss_ == pytest.approx(nca.loss_, rel=1e-6)


def test_shrinking_does_not_depend_on_the_unit_of_the_points(noisy):
    X, y = noisy
    one, other = (NCA(reg="shrink", tol=1e-9).fit(scale * X, y) for scale in (1.0, 1024.0))
    assert other.loss_ == pytest.approx(one.loss_, rel=1e-6)
    D = one.pairwise_distances(X)
    np.testing.assert_allclose(other.pairwise_distances(1024.0 * X), D, atol=1e-2 * D.max())


def test_what_shrinks_keeps_neighbourhoods_wide(noisy):
    X, y = noisy
    shrunk, free = (NCA(reg=reg).fit(X, y) for reg in ("shrink", 0.0))
    assert np.sum(shrunk.components_**2) < 0.5 * np.sum(free.components_**2)


def test_a_fit_that_goes_on_with_the_penalty_is_at_the_end_already(noisy):
    X, y = noisy
    nca = NCA(2, reg="shrink", warm_start=True).fit(X, y)
    loss = nca.loss_
    again = nca.fit(X, y)
    assert again.n_iter_ <= 3
    assert again.loss_ == pytest.approx(loss, rel=1e-3)
    given = NCA(2, reg="shrink", init=nca.components_).fit(X, y)
    assert given.loss_ == pytest.approx(again.loss_, rel=1e-3)


@pytest.mark.every(2)
@pytest.mark.parametrize("solver", ["lbfgs", "minibatch"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_solver_knows_the_penalty(noisy, solver, monkeypatch):
    nca = NCA(2, reg="shrink", solver=solver, batch_size=100, max_iter=4, random_state=0)
    size = np.sum(nca.fit(*noisy).components_ ** 2)
    monkeypatch.setattr("kernelmetric.learners._nca._PULL", 0.1)
    assert np.sum(nca.fit(*noisy).components_ ** 2) < 0.5 * size


def test_a_fit_of_some_points_with_the_penalty_is_nearly_one_of_all(noisy, monkeypatch):
    X, y = noisy
    whole = NCA(2, reg="shrink").fit(X, y)
    monkeypatch.setattr("kernelmetric.learners._nca._PULLED_COARSE", (400, 300, 1e-4))
    begun = NCA(2, reg="shrink").fit(X, y)
    assert begun.n_iter_ < whole.n_iter_
    assert begun.loss_ == pytest.approx(whole.loss_, rel=2e-2)


def test_weights_beside_the_penalty_are_repeated_rows(noisy):
    X = noisy[0][:80]
    w = np.random.RandomState(0).randint(1, 4, size=80)
    # A row is no neighbour of itself, but a copy is: the penalty alone is compared.
    counted, repeated = (
        shrinking("shrink", points, weights) * total
        for points, weights, total in (
            (X, Weights(w.astype(float), w.astype(float)), w.sum()),
            (np.repeat(X, w, axis=0), None, w.sum()),
        )
    )
    assert counted == pytest.approx(repeated, rel=1e-12)


def test_beside_the_penalty_only_ratios_of_weights_matter(noisy):
    X, y = noisy[0][:80], noisy[1][:80]
    w = np.random.RandomState(0).uniform(0.5, 3.0, size=80)
    light, heavy = (NCA(2, reg="shrink").fit(X, y, sample_weight=s * w) for s in (1.0, 64.0))
    assert heavy.loss_ == pytest.approx(64.0 * light.loss_, rel=1e-6)
    assert light.loss_ != pytest.approx(NCA(2, reg="shrink").fit(X, y).loss_, rel=1e-2)


@pytest.mark.slow
def test_kernel_regression_shrinks_as_well(noisy):
    X, _ = noisy
    y = X[:, 0] + np.random.RandomState(1).standard_normal(len(X))
    shrunk, free = (MLKR(reg=reg, tol=1e-3).fit(X, y) for reg in ("shrink", "auto"))
    reg = 1e-3 * np.sqrt(1600 * len(X)) * variance(X)
    given = MLKR(reg=reg, tol=1e-3).fit(X, y)
    assert shrunk.loss_ == pytest.approx(given.loss_, rel=1e-6)
    assert np.sum(shrunk.components_**2) < 0.5 * np.sum(free.components_**2)
    metric = Kernelized(MLKR(), "rbf").fit(X[:100], y[:100])
    assert metric.learner_.reg == "shrink"
    with pytest.raises(ValueError, match="Got reg='norm'"):
        MLKR(reg="norm").fit(X, y)


def test_a_penalty_is_a_number_or_shrinks(noisy):
    expected = "but NCA expected 'shrink', 'auto' or a number >= 0"
    with pytest.raises(ValueError, match=f"Got reg='norm', {expected}"):
        NCA(reg="norm").fit(*noisy)
    with pytest.raises(ValueError, match=f"Got reg=-1, {expected}"):
        NCA(reg=-1).fit(*noisy)


@pytest.mark.every(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learner", [NCA(2), MLKR(2)], ids=["NCA", "MLKR"])
def test_a_descent_ends_as_low_in_any_unit_of_the_points(learner, dtype):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    usual = learner.fit(X, y).loss_
    for unit in (1e-12, 1e-6, 1e3, 1e9):
        assert learner.fit((unit * X).astype(dtype), y).loss_ < usual + 0.5
