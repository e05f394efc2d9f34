"""A fit that is refused or interrupted: what was fitted before stays whole, or nothing is there."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils.validation import check_is_fitted

from kernelmetric import (
    DNE,
    LMCA,
    LMNN,
    MCML,
    MLKR,
    NCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Nystroem,
    RandomFeatures,
    TransductiveDistance,
)
from kernelmetric.selection import RidgeKPCA

ESTIMATORS = [
    Kernelized(LMNN(), "rbf"),
    Kernelized(NCA(2), "auto"),
    Kernelized(DNE(2), "aligned"),
    Kernelized(DNE(2), "rbf", KernelTrick()),
    Kernelized(DNE(2), "rbf", Nystroem(10, random_state=0)),
    Kernelized(DNE(2), "rbf", RandomFeatures(20, random_state=0)),
    Kernelized(IdealizedKernel(C=3.0, nu=0.8, psd="none"), "rbf"),
    Kernelized(LogisticRegression(), "rbf"),
    KernelizedCV(DNE(1), [RBF(gamma=0.1), RBF(gamma=1.0)], 2),
    KernelizedCV(DNE(1), "linear", 2, refit=False),
]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def narrower(X):
    """Points with other features, so that what is left of them cannot pass for the old ones."""
    return X[:, :3]


def with_nan(X, y):
    bad = narrower(X).copy()
    bad[5, 1] = np.nan
    return bad, y


REFUSALS = {
    "points with NaN": with_nan,
    "one class": lambda X, y: (narrower(X), np.zeros(len(X), dtype=int)),
    "too few labels": lambda X, y: (narrower(X), y[:-3]),
    "labels with NaN": lambda X, y: (narrower(X), np.where(y == 0, np.nan, y)),
    "points out of range": lambda X, y: (1e300 * narrower(X), y),
    "no labels": lambda X, y: (narrower(X), None),
}


def answers(estimator, X):
    method = "predict" if hasattr(estimator, "predict") else "pairwise_distances"
    return getattr(estimator, method)(X) if hasattr(estimator, "n_features_in_") else None


@each
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.every(6)
def test_a_refused_refit_leaves_the_last_fit_whole(estimator, refusal, labelled):
    X, y = labelled
    estimator = clone(estimator).fit(X, y)
    before, expected = dict(vars(estimator)), answers(estimator, X)
    with pytest.raises((ValueError, TypeError)):
        estimator.fit(*REFUSALS[refusal](X, y))
    after = vars(estimator)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(answers(estimator, X), expected)


@each
def test_a_refused_first_fit_leaves_nothing(estimator, labelled):
    X, _ = labelled
    estimator = clone(estimator)
    params = dict(vars(estimator))
    with pytest.raises(ValueError, match="class"):
        estimator.fit(X, np.zeros(len(X), dtype=int))
    assert vars(estimator) == params
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_a_learner_that_fails_last_changes_nothing(labelled, monkeypatch):
    X, y = labelled
    metric = Kernelized(DNE(2), "rbf").fit(X, y)
    expected = metric.transform(X)

    def fail(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(DNE, "fit", fail)
    with pytest.raises(MemoryError, match="no room"):
        metric.fit(2.0 * X, y)  # a fit of the same shape, whose space would answer
    np.testing.assert_array_equal(metric.transform(X), expected)


def test_what_another_space_left_does_not_answer(labelled):
    # the first refusal that was seen: the old map in the new space, distances off by 4.7
    X, y = labelled
    metric = Kernelized(LMNN(), "rbf").fit(X, y)
    expected = metric.pairwise_distances(X)
    with pytest.raises(ValueError, match="no class with two members"), pytest.warns(UserWarning):
        metric.fit(3.0 * X[::-1], np.arange(len(X)))
    np.testing.assert_array_equal(metric.pairwise_distances(X), expected)


# --- Ctrl-C -------------------------------------------------------------------------------------


@pytest.fixture
def interrupt(monkeypatch):
    """Press Ctrl-C in the middle of the n-th iteration of whatever descends."""

    def press(n):
        from kernelmetric.learners._progress import Iterations

        called, call = [], Iterations.__call__

        def counting(self, state, loss):
            stop = call(self, state, loss)
            called.append(loss)
            if len(called) == n:
                raise KeyboardInterrupt
            return stop

        monkeypatch.setattr(Iterations, "__call__", counting)
        return called

    return press


@pytest.mark.every(4)
@pytest.mark.parametrize("learner", [NCA(), LMNN(), LMCA(2), MLKR(), MCML(max_iter=20)], ids=repr)
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_ctrl_c_keeps_the_best_map_so_far_inside_a_kernel_too(learner, method, labelled, interrupt):
    X, y = labelled
    metric = Kernelized(learner, RBF(gamma=0.3))
    called = interrupt(3)
    with pytest.raises(KeyboardInterrupt):
        getattr(metric, method)(X, y)
    assert len(called) == 3
    check_is_fitted(metric)
    assert metric.transform(X).shape[0] == len(X)
    alone, recipe = clone(metric.recipe_.learner), metric.recipe_
    Z = clone(recipe.space).set_params(kernel=recipe.kernel).fit_transform(X, y)
    called.clear()
    with pytest.raises(KeyboardInterrupt):
        alone.fit(Z, y)
    np.testing.assert_allclose(metric.components_, alone.components_, rtol=1e-6, atol=1e-8)


def test_ctrl_c_in_a_refit_keeps_the_new_space_with_the_new_map(labelled, interrupt):
    X, y = labelled
    metric = Kernelized(NCA(2), RBF(gamma=0.3)).fit(X, y)
    interrupt(2)
    with pytest.raises(KeyboardInterrupt):
        metric.fit(X[:, :3], y)
    assert metric.n_features_in_ == metric.space_.n_features_in_ == 3
    assert metric.transform(X[:, :3]).shape == (30, 2)


@pytest.mark.every(3)
@pytest.mark.parametrize("where", ["kernel", "space", "learner"])
def test_ctrl_c_before_there_is_a_map_leaves_the_last_fit(where, labelled, monkeypatch):
    X, y = labelled
    metric = Kernelized(NCA(2), "auto").fit(X, y)
    before, expected = dict(vars(metric)), metric.transform(X)
    fresh = clone(metric)
    params = dict(vars(fresh))

    def press(*_, **__):
        raise KeyboardInterrupt

    target, name = {
        "kernel": ("kernelmetric.selection._leave_one_out.choose", None),
        "space": (RidgeKPCA, "_learn"),
        "learner": (NCA, "_descend"),
    }[where]
    monkeypatch.setattr(*((target, press) if name is None else (target, name, press)))
    for interrupted, state in ((metric, before), (fresh, params)):
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(X[:, :3], y)
        assert vars(interrupted) == state
    np.testing.assert_array_equal(metric.transform(X), expected)
    with pytest.raises(NotFittedError):
        fresh.transform(X)


@pytest.mark.parametrize(
    "learner",
    [NeighborhoodComponentsAnalysis(2, max_iter=5), KMeans(2, n_init=1), LogisticRegression()],
    ids=repr,
)
def test_ctrl_c_in_a_learner_of_others_leaves_nothing_half_done(learner, labelled, monkeypatch):
    X, y = labelled

    def press(self, *_, **__):
        self.n_features_in_ = 7  # as theirs do before they begin
        raise KeyboardInterrupt

    monkeypatch.setattr(type(learner), "fit", press)
    metric = Kernelized(learner, "rbf")
    with pytest.raises(KeyboardInterrupt):
        metric.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(metric)


@pytest.mark.every(2)
@pytest.mark.parametrize("when", ["in a fold", "in the last fit"])
def test_ctrl_c_in_a_search_leaves_it_as_it_was(when, labelled, monkeypatch):
    X, y = labelled
    search = KernelizedCV(DNE(1), [RBF(gamma=0.1), RBF(gamma=1.0)], 2).fit(X, y)
    before, expected = dict(vars(search)), search.predict(X)
    fresh = clone(search)
    fits, fit = [], DNE.fit

    def press(self, *args, **options):
        fits.append(1)
        if len(fits) == (2 if when == "in a fold" else 5):
            raise KeyboardInterrupt
        return fit(self, *args, **options)

    monkeypatch.setattr(DNE, "fit", press)
    for interrupted in (search, fresh):
        fits.clear()
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(X[:, :3], y)
    assert vars(search) == before
    np.testing.assert_array_equal(search.predict(X), expected)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)


def assert_unchanged_by_refusals(estimator, X, y):
    estimator.fit(X, y)
    before, expected = dict(vars(estimator)), estimator.transform(X)
    for refusal in ("points with NaN", "points out of range"):
        with pytest.raises(ValueError):
            estimator.fit(*REFUSALS[refusal](X, y))
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[name] is before[name] for name in before)
    np.testing.assert_array_equal(estimator.transform(X), expected)


def test_every_learner_keeps_its_last_fit(learner, labelled):
    assert_unchanged_by_refusals(learner, *labelled)


def test_every_space_keeps_its_last_fit(space, labelled):
    assert_unchanged_by_refusals(space, *labelled)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "estimator", [IdealizedKernel("rbf", C=3.0), TransductiveDistance(2, 1000.0)], ids=repr
)
def test_metrics_with_a_space_of_their_own_keep_their_last_fit(estimator, labelled):
    assert_unchanged_by_refusals(clone(estimator), *labelled)
