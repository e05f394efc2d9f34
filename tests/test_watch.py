"""How far work is, and until when it may run."""

import re
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import kernelmetric
from kernelmetric import (
    LMNN,
    NCA,
    RBF,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    Pairs,
    TimeLimitWarning,
    progress,
    time_limit,
)
from kernelmetric.compute import watch
from kernelmetric.compute._execute import map_rows, sum_rows
from kernelmetric.compute.watch import stage, time_left
from kernelmetric.learners import LEARNERS


@pytest.fixture
def shown(monkeypatch):
    """Work is shown from the first moment on, every step of it."""
    monkeypatch.setattr(watch, "_QUIET", -1.0)
    monkeypatch.setattr(watch, "_LOG_EVERY", 0.0)
    with progress():
        yield


@pytest.fixture(scope="module")
def problem():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((120, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


# --- progress -----------------------------------------------------------------------------------


def test_without_the_switch_nothing_is_said(problem, capsys):
    Kernelized(NCA()).fit(*problem)
    assert capsys.readouterr().err == ""


def test_the_switch_holds_until_it_is_turned_off(capsys):
    try:
        progress()
        assert watch._shown == [True]
        with progress(False):
            assert watch._shown == [False]
        assert watch._shown == [True]
    finally:
        progress(False)
    assert watch._shown == [False]


def test_short_work_is_not_shown(problem, capsys):
    with progress():
        NCA(max_iter=2, tol=0.5).fit(*problem)
    assert capsys.readouterr().err == ""


def test_every_level_of_a_fit_is_named(problem, capsys, shown):
    MetricClassifier().fit(*problem)
    said = capsys.readouterr().err
    assert "MetricClassifier: Kernelized(NCA): LeaveOneOutRidge: comparing kernels" in said
    assert "MetricClassifier: Kernelized(NCA): ridge regression of 120 rows" in said
    assert re.search(r"MetricClassifier: Kernelized\(NCA\): NCA \[#*\.*\] \d+/200  loss", said)
    assert re.fullmatch(r"MetricClassifier  \d+\.\d s", said.splitlines()[-1])


def test_rows_of_a_pass_are_counted(capsys, shown):
    with stage("a pass"):
        assert map_rows(lambda rows: np.arange(rows.start, rows.stop), 10, 1.0, most=3).sum() == 45
        assert sum_rows(lambda rows: rows.stop - rows.start, 10, 1.0, most=3) == 10
    said = capsys.readouterr().err
    assert said.count("a pass: rows [################....] 8/10") == 2
    assert re.fullmatch(r"a pass  \d\.\d s", said.splitlines()[-1])  # rows end without a line


def test_what_is_left_is_told_by_what_is_done(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: clock[0])
    with stage("work", 10) as work:
        work.done, clock[0] = 4, 20.0
        assert work.line() == "work [########............] 4/10  20.0 s  at most 30 s left"


def test_a_line_moves_while_one_call_runs(monkeypatch, capsys):
    monkeypatch.setattr(watch, "_EVERY", 0.02)
    monkeypatch.setattr(watch, "_LOG_EVERY", 0.0)
    with stage("one call", shown=True):
        deadline = time.monotonic() + 30
        said = ""
        while said.count("one call") < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
            said += capsys.readouterr().err
    assert said.count("one call") >= 4


def test_no_thread_outlives_its_work(shown, problem):
    before = threading.active_count()
    NCA(max_iter=2, tol=0.5).fit(*problem)
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_in_a_terminal_the_line_is_rewritten(monkeypatch, capsys, problem):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    NCA(max_iter=3, tol=0.5, verbose=True).fit(*problem)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("\rNCA [") and said.endswith("s left\n")


def test_progress_changes_no_result(problem, shown):
    watched = Kernelized(NCA(max_iter=5, tol=0.5)).fit(*problem)
    with progress(False):
        silent = Kernelized(NCA(max_iter=5, tol=0.5)).fit(*problem)
    np.testing.assert_array_equal(watched.components_, silent.components_)


def test_another_may_show_the_lines(capsys, problem, monkeypatch):
    monkeypatch.setattr(watch, "_QUIET", -1.0)
    lines = []
    with progress(to=lines.append):
        NCA(max_iter=3, tol=0.5).fit(*problem)
    assert capsys.readouterr().err == ""
    assert lines[0].startswith("NCA [") and "loss" in lines[-1]


# --- time limits --------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, -1.0, True, "10", np.nan])
def test_a_limit_is_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match="Got a time limit of"), time_limit(seconds):
        pass


def test_the_earliest_limit_counts():
    assert time_left() == np.inf
    with time_limit(1000), time_limit(5):
        assert 0 < time_left() <= 5
        with time_limit(2000), time_limit(None):
            assert time_left() <= 5
    assert time_left() == np.inf


def iterative():
    kinds = [kind for kind in LEARNERS if "max_iter" in kind().get_params()]
    return [kind for kind in kinds if kind.__name__ != "RFM"]  # a few rounds, without iterations


@pytest.mark.parametrize("kind", iterative(), ids=lambda kind: kind.__name__)
def test_a_limit_ends_every_iterative_learner_with_a_word(kind, problem):
    X, y = problem
    learner = kind()
    with warnings.catch_warnings(record=True) as caught, time_limit(1e-6):
        warnings.simplefilter("always")
        learner.fit(X, y)
    said = [w.message for w in caught if isinstance(w.message, TimeLimitWarning)]
    assert learner.n_iter_ <= 2
    assert learner.converged_ or re.search("ended .* after", str(said[0]))
    assert np.all(np.isfinite(learner.transform(X)))


def test_a_limit_reaches_through_kernelized(problem):
    with pytest.warns(TimeLimitWarning, match="ended LMNN after 1 iteration"), time_limit(1e-6):
        metric = Kernelized(LMNN()).fit(*problem)
    assert np.all(np.isfinite(metric.transform(problem[0])))


def test_an_ample_limit_changes_nothing(problem):
    plain = Kernelized(NCA()).fit(*problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TimeLimitWarning)
        with time_limit(1e6):
            limited = Kernelized(NCA()).fit(*problem)
    np.testing.assert_array_equal(plain.components_, limited.components_)


def test_a_limit_ends_a_search_with_the_best_so_far(problem, monkeypatch):
    X, y = problem
    search = KernelizedCV(NCA(max_iter=3, tol=0.5), [RBF(gamma=g) for g in (0.1, 1.0)], 3)
    fits = []

    class Counted(NCA):
        def fit(self, *data, **more):
            fits.append(len(fits))
            return super().fit(*data, **more)

    with time_limit(1e-6), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = clone(search).set_params(learner=Counted(max_iter=3, tol=0.5)).fit(X, y)
    assert any("ended the search after 1 of 6 fits" in str(w.message) for w in caught)
    assert first.n_splits_ == 1 and first.best_params_["kernel"].gamma == 0.1
    assert np.isnan(first.cv_results_["mean_test_score"][1])
    assert len(fits) == 2  # one candidate, and the last fit

    enough = [5]

    def after_five(*given):
        enough[0] -= 1
        return np.inf if enough[0] > 0 else -1.0

    monkeypatch.setattr("kernelmetric.kernelized._folds.time_left", lambda: -1.0)
    monkeypatch.setattr("kernelmetric.learners._progress.time_left", after_five)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        second = KernelizedCV(Plain(), [RBF(gamma=g) for g in (0.1, 1.0)], 3).fit(X, y)
    assert any("after 5 of 6 fits" in str(w.message) for w in caught)
    assert second.n_splits_ == 2  # folds that are not finished are left out
    assert np.all(np.isfinite(second.cv_results_["mean_test_score"]))


class Plain(kernelmetric.LDA):
    """A learner without iterations."""


def test_pairs_learners_end_too(problem):
    X, _ = problem
    rows = np.arange(80).reshape(40, 2)
    pairs = Pairs(rows[::2], rows[1::2], n_samples=len(X))
    with pytest.warns(TimeLimitWarning), time_limit(1e-6):
        kernelmetric.ITML().fit(X, pairs=pairs)
