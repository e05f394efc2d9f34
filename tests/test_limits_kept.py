"""Time limits: what is foretold, what is kept for the end, and what is said of fewer rows."""

import re
import runpy
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kernelmetric
from kernelmetric import (
    KPCA,
    LDA,
    MLKR,
    NCA,
    RBF,
    RCA,
    RFM,
    Adapter,
    IdealizedKernel,
    KernelAlignment,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
    TimeLimitWarning,
    TransductiveDistance,
    linkage,
    retrieval,
    selection,
    time_limit,
)
from kernelmetric.compute import rates, watch
from kernelmetric.compute.watch import time_kept, time_left, until_limit
from kernelmetric.kernelized import _folds
from kernelmetric.learners import LEARNERS, _feature_rounds, _idealized_choice
from kernelmetric.linkage import RecordLinker, _linker
from kernelmetric.prediction import _cross_fit
from kernelmetric.retrieval import _drift, _search
from kernelmetric.selection import LeaveOneOutRidge, _alignment, _leave_one_out
from kernelmetric.transductive import _learn


def drawn(n, n_features=6):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, n_features))
    return X, (X[:, 0] * X[:, 1] + 0.7 * rng.standard_normal(n) > 0).astype(int)


def limited(work, seconds=1e6):
    """What work gives, and the one thing that is said of its limit."""
    with warnings.catch_warnings(record=True) as caught, time_limit(seconds):
        warnings.simplefilter("always")
        found = work()
    said = [str(w.message) for w in caught if w.category is TimeLimitWarning]
    assert len(said) <= 1, said
    return found, "".join(said)


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    return now


def only(n):
    """In place of ``most_in_time``: so many rows, and nothing is measured."""

    def most_in_time(seconds, given, least, what=""):
        if what and n < given:
            watch.warn_of_limit(f"the draw of rows for {what} at {n:,} of {given:,}")
        return min(n, given)

    return most_in_time


# --- what all have in common --------------------------------------------------------------------

EVERY = [
    Kernelized(LDA(), "rbf", KPCA()),
    Kernelized(LDA(), "rbf", Nystroem(100)),
    Kernelized(LDA(), "aligned"),
    Kernelized(RFM()),
    KernelizedCV(NCA(), [RBF(gamma=0.1), RBF(gamma=1.0)], cv=2),
    KernelizedCV(NCA(), [RBF(gamma=0.1), RBF(gamma=1.0)], cv=2, n_jobs=2),
    MetricClassifier(),
    MetricClassifier(NCA(), cv=5),
    MetricRegressor(),
    MetricRegressor(MLKR(), cv=3),
    TransductiveDistance(),
    TransductiveDistance(n_neighbors=10),
    IdealizedKernel("rbf"),
]


@pytest.mark.every(6)
@pytest.mark.parametrize("estimator", EVERY, ids=repr)
def test_a_limit_is_told_once_and_leaves_what_can_be_used(estimator):
    X, y = drawn(600)
    target = X[:, 0] + X[:, 1] ** 2 if "Regressor" in repr(estimator) else y
    if isinstance(estimator, TransductiveDistance):
        target = np.where(np.arange(len(y)) % 3, -1, y)
    _, said = limited(lambda: estimator.fit(X, target), 1e-6)
    assert said.startswith("The time limit ended ") and said.endswith("allows more.")
    method = estimator.predict if hasattr(estimator, "predict") else estimator.transform
    assert np.all(np.isfinite(method(X)))


@pytest.mark.slow
def test_nothing_is_measured_without_a_limit(monkeypatch):
    monkeypatch.setattr(rates, "_measured", lambda: pytest.fail("measured without a limit"))
    X, y = drawn(40)
    for estimator in (RCA(), NCA(max_iter=2), IdealizedKernel(C=1.0), TransductiveDistance(2, 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
    MetricClassifier(LDA(), cv=2).fit(X, y)


def test_no_candidate_begins_that_would_end_too_late(clock):
    tried = []

    def work():
        for candidate in until_limit(range(9), "things"):
            tried.append(candidate)
            clock[0] += 3.0

    _, said = limited(work, 10.0)
    assert tried == [0, 1, 2] and "the choice of things after 3 candidates" in said


def test_time_that_is_kept_is_not_there_before(clock):
    with time_kept(5.0):
        assert time_left() == np.inf
    with time_limit(10.0):
        with time_kept(4.0):
            assert time_left() == 6.0
        with time_kept(-4.0):
            assert time_left() == 10.0
        assert time_left() == 10.0


# --- searches and predictors --------------------------------------------------------------------


@pytest.mark.slow
def test_a_search_keeps_time_for_the_last_fit(monkeypatch):
    kept = []
    monkeypatch.setattr(_folds, "time_kept", lambda s: kept.append(s) or time_kept(s))
    X, y = drawn(120)
    search = KernelizedCV(LDA(), [RBF(gamma=g) for g in (0.1, 1.0)], cv=2)
    _, said = limited(lambda: search.fit(X, y))
    assert said == "" and kept[0] == pytest.approx(4e5, rel=1e-3)
    assert len(kept) == 5 and all(0 < each < 100 for each in kept[1:])
    kept.clear()
    limited(lambda: search.set_params(refit=False).fit(X, y))
    assert kept == [0.0] * 5


def test_processes_that_would_begin_too_late_are_not_begun(monkeypatch):
    monkeypatch.setattr(_folds, "Parallel", lambda **how: pytest.fail("other processes"))
    X, y = drawn(120)
    search = KernelizedCV(LDA(), [RBF(gamma=g) for g in (0.1, 1.0)], cv=2, n_jobs=2)
    limited(lambda: search.fit(X, y), 9.0)
    assert np.all(np.isfinite(search.transform(X)))


@pytest.mark.parametrize(
    "metric", [pytest.param(Kernelized(NCA()), marks=pytest.mark.slow), LDA()], ids=repr
)
def test_few_points_judge_votes_where_time_is_short(metric, monkeypatch):
    X, y = drawn(700)
    monkeypatch.setattr(_cross_fit, "most_in_time", only(60))
    cv = "auto" if isinstance(metric, Kernelized) else 2
    classifier, said = limited(lambda: MetricClassifier(metric, cv=cv).fit(X, y))
    assert "the draw of rows for the judgement of votes at 60 of " in said
    assert np.isfinite(classifier.log_loss_) and classifier.score(X, y) > 0.5


# --- rows ---------------------------------------------------------------------------------------


def test_a_kernel_is_chosen_by_fewer_rows(monkeypatch):
    monkeypatch.setattr(_leave_one_out, "most_in_time", only(90))
    X, y = drawn(300)
    kernel, said = limited(lambda: LeaveOneOutRidge(max_samples=200).bind(X, y))
    assert "the draw of rows for the choice of a kernel at 90 of 200" in said
    same = LeaveOneOutRidge(max_samples=90).bind(X, y)
    np.testing.assert_array_equal(kernel.loo_errors_, same.loo_errors_)


def test_points_that_are_not_embedded_are_placed(monkeypatch):
    monkeypatch.setattr(_learn, "most_in_time", only(80))
    X, truth = drawn(200)
    y = np.where(np.arange(200) % 4, -1, truth)
    y[:2] = 2  # a class with two labels
    weights = 1.0 + np.arange(200) % 3
    how = {"n_neighbors": 5, "n_components": 2, "lam": 1e3}
    metric, said = limited(lambda: TransductiveDistance(**how).fit(X, y, sample_weight=weights))
    assert "the draw of rows for TransductiveDistance at 80 of 200" in said
    assert metric.embedding_.shape == (200, 2) and np.all(np.isfinite(metric.embedding_))
    np.testing.assert_array_equal(metric.transduction_[y >= 0], y[y >= 0])
    np.testing.assert_allclose(metric.transform(X), metric.embedding_)
    monkeypatch.setattr(_learn, "most_in_time", only(200))
    whole, said = limited(lambda: TransductiveDistance(**how).fit(X, y, sample_weight=weights))
    free = TransductiveDistance(**how).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(whole.embedding_, free.embedding_)


@pytest.mark.slow
def test_a_linker_links_the_first_records(monkeypatch):
    rng = np.random.RandomState(0)
    names = ["".join(row) for row in rng.choice(list("abcdefghij"), (300, 9))]
    left = pd.DataFrame({"name": names, "town": [name[2:7] for name in names]})
    right = left.assign(name=left["name"].str[1:])
    pairs = np.array([(i, i) for i in range(0, 300, 20)] + [(i, i + 9) for i in range(0, 280, 19)])
    same = np.repeat([1, 0], 15)
    monkeypatch.setattr(_linker, "_TIMED", 50)
    monkeypatch.setattr(_linker, "most_in_time", only(200))
    linker, said = limited(lambda: RecordLinker().fit(left, right, pairs, same))
    assert "RecordLinker at the first 200 records: others have no links" in said
    assert linker.candidates_.max() == 199 and linker.n_left_ == linker.n_right_ == 300
    assert len(linker.labelled_pairs_) == 30 and linker.labelled_probability_ is not None
    monkeypatch.setattr(_linker, "most_in_time", only(300))
    whole, said = limited(lambda: RecordLinker().fit(left, right, pairs, same))
    free = RecordLinker().fit(left, right, pairs, same)
    assert said == ""
    np.testing.assert_array_equal(whole.probability_, free.probability_)


def test_vectors_of_two_models_are_mapped_by_fewer_rows(monkeypatch):
    monkeypatch.setattr(_drift, "most_in_time", only(120))
    X, _ = drawn(300)
    Y = X @ np.random.RandomState(1).standard_normal((6, 6))
    drift, said = limited(lambda: _drift.Drift().fit(X, Y))
    assert "the draw of rows for Drift at 120 of 300" in said
    assert drift.recall_.value > 0.8
    monkeypatch.setattr(_drift, "most_in_time", only(300))
    whole, said = limited(lambda: _drift.Drift().fit(X, Y))
    assert said == ""
    np.testing.assert_array_equal(whole.components_, _drift.Drift().fit(X, Y).components_)


@pytest.mark.slow
def test_an_adapter_looks_among_fewer_documents(monkeypatch):
    rng = np.random.RandomState(0)
    things, noise = rng.standard_normal((300, 8)), np.repeat([3.0, 0.1], [3, 5])
    Q, D = (things + noise * rng.standard_normal((300, 8)) for _ in range(2))
    pairs = np.column_stack([np.arange(200)] * 2)

    def adapted(seconds):
        return limited(lambda: Adapter().fit(Q, documents=D, pairs=pairs), seconds)

    free = Adapter().fit(Q, documents=D, pairs=pairs)
    whole, said = adapted(1e6)
    assert said == ""
    np.testing.assert_array_equal(whole.components_, free.components_)
    monkeypatch.setattr(_search, "most_in_time", only(90))
    adapter, said = adapted(1e-6)
    assert "the draw of rows for Adapter at 90 of 300" in said and "the map after 1" in said
    assert "the search before the softmax" in said
    assert adapter.candidates_ and np.all(np.isfinite(adapter.transform(Q)))


def test_kernels_are_aligned_on_fewer_rows(monkeypatch):
    X, y = drawn(300)
    monkeypatch.setattr(_alignment, "most_in_time", only(90))
    kernel, said = limited(lambda: KernelAlignment(random_state=0).bind(X, y))
    assert "the draw of rows for KernelAlignment at 90 of 300" in said
    same = KernelAlignment(max_samples=90, random_state=0).bind(X, y)
    np.testing.assert_array_equal(kernel.weights_, same.weights_)


def test_the_benchmark_fits_every_learner_search_and_predictor():
    path = Path(__file__).parents[1] / "benchmarks" / "limits.py"
    listed = runpy.run_path(str(path))["ESTIMATORS"]
    named = {word for entry in listed for word in re.findall(r"\w+", entry)}
    rooms = (kernelmetric, linkage, retrieval, selection)
    public = {name: getattr(room, name) for room in rooms for name in room.__all__}
    with_fit = {name for name, each in public.items() if callable(getattr(each, "fit", None))}
    assert {kind.__name__ for kind in LEARNERS} < with_fit
    assert with_fit - named <= {"KernelTrick", "RidgeKPCA", "RecordComparison"}  # within others


# --- choices within a learner -------------------------------------------------------------------


@pytest.mark.slow
def test_the_choice_of_C_leaves_time_for_the_solution(monkeypatch):
    now, solved = [0.0], _idealized_choice._solved

    def slowly(*given):
        now[0] += 1.0
        return solved(*given)

    monkeypatch.setattr(_idealized_choice, "_solved", slowly)
    monkeypatch.setattr(_idealized_choice.time, "monotonic", lambda: now[0])
    X, y = drawn(90)
    for seconds, tried in ((7.0, 1), (16.0, 2)):
        now[0] = 0.0
        metric, said = limited(lambda: IdealizedKernel().fit(X, y), seconds)
        assert len(metric.C_scores_) == tried
        assert re.search(f"the choice of C after {tried} candidate", said)


def test_ctrl_c_while_rounds_are_chosen_leaves_the_first(monkeypatch):
    X, y = drawn(120)

    def pressed(*given, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(_feature_rounds, "held_out_errors", pressed)
    metric = RFM()
    with pytest.raises(KeyboardInterrupt):
        metric.fit(X, y)
    assert metric.n_iter_ == 1 and np.ptp(metric.transform(X)) > 0


# --- seconds ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "n"),
    [(LDA(), 400_000), (Kernelized(LDA(), "rbf", KPCA()), 4_000), (TransductiveDistance(), 20_000)],
    ids=repr,
)
def test_a_limit_of_a_second_is_kept_roughly(estimator, n):
    X, y = drawn(n, 20)
    begun = time.process_time()
    _, said = limited(lambda: estimator.fit(X, y), 1.0)
    assert time.process_time() - begun < 5.0  # each takes longer without
    assert "the draw of rows for" in said
