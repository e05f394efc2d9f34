"""A fit is whole: refused, failed, interrupted or stopped, it leaves no mixture of two fits."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kernelmetric import (
    DLA,
    DNE,
    ITML,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    MCML,
    MLKR,
    MMC,
    NCA,
    IdealizedKernel,
)
from kernelmetric.learners._progress import Iterations

ITERATING = [
    NCA(2),
    NCA(2, solver="minibatch", batch_size=10),
    LMNN(2),
    LMCA(2),
    MLKR(2),
    MCML(2),
    ITML(tol=1e-9),
    ITML(tol=1e-9, prior=np.diag([1.0, 2.0, 3.0, 4.0])),
    MMC(tol=1e-9),
    MMC(diagonal=True, tol=1e-9),
    IdealizedKernel(C=3.0, nu=0.8),
    IdealizedKernel(C=3.0, nu=0.8, psd="clip"),
    IdealizedKernel("rbf", C=3.0, nu=0.8, psd="none"),
]
each_iterating = pytest.mark.parametrize("learner", ITERATING, ids=repr)


def interrupt_at(iteration, monkeypatch):
    """Ctrl-C in the middle of an iteration."""
    record = Iterations.__call__

    def interrupted(self, state, loss):
        answer = record(self, state, loss)
        if len(self.loss_curve) == iteration:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(Iterations, "__call__", interrupted)


# --- refused and failed fits ----------------------------------------------------------------------


def test_a_refused_refit_changes_nothing(learner, labelled):
    X, y = labelled
    learner.fit(X, y)
    before = pickle.dumps(learner)
    kept = dict(vars(learner))
    other = np.random.RandomState(3).standard_normal((12, 3))
    for points, labels in [
        (other * np.nan, y[:12]),
        (other, y[:11]),
        (other, None if learner.__sklearn_tags__().target_tags.required else np.zeros(12)),
        (np.ones((12, 3)), y[:12]),
    ]:
        with pytest.raises(ValueError):
            learner.fit(points, labels)
        assert vars(learner).keys() == kept.keys()
        assert all(vars(learner)[name] is value for name, value in kept.items())
    assert pickle.dumps(learner) == before


def test_a_fit_that_fails_at_its_end_changes_nothing(learner, labelled, monkeypatch):
    X, y = labelled
    learner.fit(X, y)
    kept = dict(vars(learner))
    distances = learner.pairwise_distances(X)

    def fail(self, L, X):
        raise ValueError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(type(learner), "_store", fail)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what it found before
            with pytest.raises(ValueError, match="the disk is full"):
                learner.fit(X[:, :3], y)
    assert vars(learner).keys() == kept.keys()
    np.testing.assert_array_equal(learner.pairwise_distances(X), distances)


def test_a_first_fit_that_fails_leaves_a_learner_that_is_not_fitted(learner, labelled):
    X, y = labelled
    parameters = dict(vars(learner))
    with pytest.raises(ValueError):
        learner.fit(X, y[:-1])
    assert vars(learner) == parameters
    with pytest.raises(NotFittedError):
        learner.transform(X)


@pytest.mark.slow
def test_nothing_of_an_earlier_fit_survives_the_next(labelled):
    X, y = labelled
    metric = IdealizedKernel("rbf", nu=0.8).fit(X, y)
    assert len(metric.C_scores_) and metric.space_ is not None
    metric.set_params(C=3.0, kernel="linear").fit(X, y)
    assert not hasattr(metric, "C_scores_")
    assert metric.space_ is None
    assert metric.C_ == 3.0


# --- what was learned is the learner's own --------------------------------------------------------


def test_changing_the_data_after_a_fit_changes_nothing(learner, labelled, fresh):
    X, y = (array.copy() for array in labelled)
    y = y.astype(float) if isinstance(learner, MLKR) else y
    learner.fit(X, y)
    before = learner.transform(fresh)
    state = pickle.dumps(learner)
    X *= 3
    y[:] = 0
    np.testing.assert_array_equal(learner.transform(fresh), before)
    assert pickle.dumps(learner) == state


@pytest.mark.parametrize("learner", [ITML(), MMC(), IdealizedKernel(C=3.0)], ids=repr)
def test_changing_the_pairs_after_a_fit_changes_nothing(learner, labelled, fresh):
    similar, dissimilar = np.array([[0, 3], [1, 4]]), np.array([[0, 1], [2, 4]])
    learner.fit(labelled[0], similar=similar, dissimilar=dissimilar)
    before = learner.transform(fresh)
    similar *= 0
    dissimilar *= 0
    assert learner.pairs_.rows.tolist() == [[0, 3], [1, 4], [0, 1], [2, 4]]
    np.testing.assert_array_equal(learner.transform(fresh), before)


@pytest.mark.parametrize("name", ["init", "prior"])
def test_changing_an_array_among_the_parameters_after_a_fit_changes_nothing(name, labelled, fresh):
    matrix = np.diag([1.0, 2.0, 3.0, 4.0])
    with pytest.warns(ConvergenceWarning):
        learner = (NCA(max_iter=1) if name == "init" else ITML(max_iter=1)).set_params(
            **{name: matrix}
        )
        learner.fit(*labelled)
    before = learner.transform(fresh)
    matrix *= 0
    np.testing.assert_array_equal(learner.transform(fresh), before)


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.every(4)
@each_iterating
def test_an_interrupted_fit_is_a_metric_of_its_last_iteration(learner, labelled, monkeypatch):
    X, y = labelled
    learner = clone(learner)
    interrupt_at(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, y)
    D = learner.pairwise_distances(X)
    assert np.all(np.isfinite(D)) and np.max(np.abs(D)) > 0
    if getattr(learner, "n_components", None):
        assert learner.components_.shape == (2, 4)
    assert not learner.converged_
    assert learner.n_iter_ == len(learner.loss_curve_) == 2
    assert learner.get_mahalanobis_matrix().shape[0] == learner.components_.shape[1]


@pytest.mark.every(3)
@each_iterating
def test_a_refit_that_is_interrupted_before_its_first_iteration_leaves_the_old_fit(
    learner, labelled, monkeypatch
):
    X, y = labelled
    learner = clone(learner).set_params(max_iter=3)
    with pytest.warns(ConvergenceWarning):
        learner.fit(X, y)
    kept = dict(vars(learner))

    def interrupted(self, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(Iterations, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(2.0 * X, y)
    assert vars(learner).keys() == kept.keys()
    assert all(vars(learner)[name] is value for name, value in kept.items())


def test_an_interrupted_refit_mixes_nothing_of_the_old_fit_in(labelled, monkeypatch):
    X, y = labelled
    metric = IdealizedKernel(C=3.0, nu=0.8).fit(X, y)
    interrupt_at(3, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        metric.fit(X[:, :3], y)
    assert metric.n_features_in_ == 3 == metric.components_.shape[1]
    assert not hasattr(metric, "alpha_")  # of the old pairs
    assert np.all(np.isfinite(metric.transform(X[:, :3])))


def test_what_an_interruption_keeps_is_nearly_the_answer_near_the_end(labelled, monkeypatch):
    X, y = labelled
    whole = IdealizedKernel(C=3.0, nu=0.8).fit(X, y)
    partly = IdealizedKernel(C=3.0, nu=0.8)
    interrupt_at(len(whole.loss_curve_) - 1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        partly.fit(X, y)
    M = whole.get_mahalanobis_matrix()
    np.testing.assert_allclose(partly.get_mahalanobis_matrix(), M, atol=1e-3 * np.abs(M).max())


# --- a stop is final ------------------------------------------------------------------------------


class Context:
    """What scikit-learn hands to a fit that is watched, reduced to the answer of one callback."""

    def __init__(self, answers):
        self.answers, self.begun, self.ended = answers, 0, 0

    def subcontext(self, task_name):
        return self

    def call_on_fit_task_begin(self, **options):
        self.begun += 1

    def call_on_fit_task_end(self, **options):
        self.ended += 1
        return next(self.answers, False)


def stopped_after(n, monkeypatch):
    """Let a callback ask for a stop after n iterations, once."""
    watching = Context(iter([False] * (n - 1) + [True]))
    start = Iterations.start

    def begin(self, state):
        self._root = watching
        start(self, state)

    monkeypatch.setattr(Iterations, "start", begin)
    return watching


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "learner",
    [
        NCA(5),
        NCA(5, solver="minibatch", batch_size=50),
        LMNN(),
        LMCA(5),
        MLKR(5),
        MCML(),
    ],
    ids=repr,
)
def test_a_stop_is_final_in_every_stage(learner, monkeypatch):
    # Large enough for NCA and LMNN to descend in float32 first, and then in float64.
    rng = np.random.RandomState(0)
    y = np.arange(210) % 3
    X = rng.standard_normal((210, 30))
    X[:, :3] += 2 * np.eye(3)[y]
    stopped_after(3, monkeypatch)
    learner = clone(learner).fit(X, y)
    assert learner.n_iter_ == len(learner.loss_curve_) == 3


@pytest.mark.parametrize("learner", [ITML(tol=1e-9), MMC(tol=1e-9)], ids=repr)
def test_a_stop_of_a_learner_from_pairs_is_final_and_says_how_far_it_got(
    learner, labelled, monkeypatch
):
    stopped_after(2, monkeypatch)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        learner = clone(learner).fit(*labelled)
    assert len(learner.loss_curve_) == 2


def test_a_stop_of_an_idealized_kernel_is_final(labelled, monkeypatch):
    stopped_after(3, monkeypatch)
    with pytest.warns(ConvergenceWarning, match="IdealizedKernel stopped after 2 iterations"):
        metric = IdealizedKernel(C=3.0, nu=0.8).fit(*labelled)
    assert len(metric.loss_curve_) == 3


# --- warm starts ----------------------------------------------------------------------------------

warm = pytest.mark.parametrize("learner", [NCA(2), LMCA(2), MLKR(2)], ids=repr)


@pytest.mark.every(3)
@warm
@pytest.mark.parametrize("n_components", [1, 3, None])
def test_a_warm_start_refuses_another_n_components(learner, n_components, labelled):
    learner = clone(learner).set_params(warm_start=True).fit(*labelled)
    last = learner.components_
    learner.set_params(n_components=n_components)
    rows = n_components or 4
    with pytest.raises(
        ValueError, match=rf"last map of shape \(2, 4\), but expected .* = \({rows}, 4\)"
    ):
        learner.fit(*labelled)
    assert learner.components_ is last
    learner.set_params(warm_start=False).fit(*labelled)
    assert learner.components_.shape == (rows, 4)


@pytest.mark.every(3, 1)
@pytest.mark.parametrize("learner", [NCA(2), LMNN(2), LMCA(2), MLKR(2)], ids=repr)
@pytest.mark.parametrize("n_features", [3, 5])
def test_a_warm_start_refuses_other_features(learner, n_features, labelled):
    X, y = labelled
    learner = clone(learner).set_params(warm_start=True).fit(X, y)
    other = np.c_[X, X[:, :1]][:, :n_features]
    with pytest.raises(ValueError, match=rf"last map of shape \(2, 4\).*{n_features}\)"):
        learner.fit(other, y)


@warm
def test_a_warm_start_refuses_an_init_of_another_shape(learner, labelled):
    learner = clone(learner).set_params(warm_start=True, n_components=None, init=np.eye(2, 4))
    learner.fit(*labelled).fit(*labelled)
    with pytest.raises(ValueError, match=r"last map of shape \(2, 4\), but expected .*\(3, 4\)"):
        learner.set_params(init=np.eye(3, 4)).fit(*labelled)


@pytest.mark.slow
def test_lmnn_goes_on_from_its_metric_whatever_the_rank_it_is_truncated_to(labelled):
    X, y = labelled
    learner = LMNN(2, warm_start=True).fit(X, y)
    learner.set_params(n_components=3).fit(X, y)
    assert learner.components_.shape == (3, 4)
    learner.set_params(n_components=None).fit(X, y)
    assert learner.loss_ == pytest.approx(LMNN().fit(X, y).loss_, rel=5e-3)


# --- neighbours from elsewhere --------------------------------------------------------------------


@pytest.mark.parametrize("learner", [DNE(), DLA(), LFDA(), LPP()], ids=repr)
def test_integers_are_row_numbers_wherever_neighbours_are_passed(learner, labelled):
    X, y = labelled
    rows = np.arange(60).reshape(30, 2) % 30
    with pytest.raises(ValueError, match=r"neighbors of dtype int.*Integers are row numbers"):
        learner.fit(X, y, neighbors=rows)
    learner.fit(X, y, neighbors=rows.astype(float))  # as coordinates they are welcome


@pytest.mark.parametrize("learner", [LMNN(), LMCA()], ids=repr)
def test_neighbours_that_are_neither_numbers_nor_rows_are_refused(learner, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"neighbors of dtype bool, but expected floats.*integers"):
        learner.fit(X, y, neighbors=np.ones((30, 2), dtype=bool))
