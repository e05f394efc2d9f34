"""How far work is, and until when it may run."""

import math
import re
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
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
from kernelmetric.kernelized import _folds
from kernelmetric.learners import LEARNERS, _feature_rounds
from kernelmetric.learners._progress import Iterations
from kernelmetric.linkage import RecordLinker
from kernelmetric.selection import AlignedScales, LeaveOneOutRidge


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    return [kind for kind in LEARNERS if "max_iter" in kind().get_params()]


@pytest.mark.every(4)
@pytest.mark.parametrize("kind", iterative(), ids=lambda kind: kind.__name__)
def test_a_limit_ends_every_iterative_learner_with_a_word(kind, problem):
    X, y = problem
    learner = kind()
    with warnings.catch_warnings(record=True) as caught, time_limit(1e-6):
        warnings.simplefilter("always")
        learner.fit(X, y)
    said = [w.message for w in caught if isinstance(w.message, TimeLimitWarning)]
    assert learner.n_iter_ <= 2
    ended = getattr(learner, "converged_", False)  # RFM ends, it does not converge
    assert ended or re.search("ended (.* after|the rounds of)", str(said[0]))
    assert np.all(np.isfinite(learner.transform(X)))


def test_a_limit_reaches_through_kernelized(problem):
    metric = ended(
        lambda: Kernelized(LMNN()).fit(*problem),
        "the draw of rows for the space at 100 of 120",
        "the choice of a kernel: the best so far is kept",
        "LMNN after 1 iteration",
    )
    assert np.all(np.isfinite(metric.transform(problem[0])))


@pytest.mark.slow
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


# --- a limit in the middle of a fit -------------------------------------------------------------


@pytest.fixture
def limit_after(monkeypatch):
    """The time is over in the n-th iteration, or before the n-th candidate of a choice."""

    def over_at(n):
        called, call = [], Iterations.__call__

        def counting(self, state, loss):
            called.append(loss)
            if len(called) >= n:
                watch._DEADLINE.set(0.0)
            return call(self, state, loss)

        monkeypatch.setattr(Iterations, "__call__", counting)
        return called

    return over_at


@pytest.mark.every(6)
@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_no_iteration_begins_after_the_limit(kind, problem, limit_after, tmp_path):
    X, y = problem
    learner, free = kind(), kind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free.fit(X, y)
        limit_after(3)
        with time_limit(1e6):
            learner.fit(X, y)
    if "loss_curve_" in vars(learner) and kind is not kernelmetric.RFM:
        assert len(learner.loss_curve_) == min(3, len(free.loss_curve_))
    else:
        np.testing.assert_array_equal(learner.components_, free.components_)
    check_is_usable(learner, X, tmp_path)


@pytest.mark.every(6)
@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_what_a_limit_leaves_of_a_kernelized_learner_is_usable(kind, problem, tmp_path):
    X, y = problem
    with warnings.catch_warnings(), time_limit(1e-6):
        warnings.simplefilter("ignore")
        metric = Kernelized(kind()).fit(X, y)
    check_is_usable(metric, X, tmp_path)
    assert repr(kernelmetric.load(tmp_path / "model.km").recipe_) == repr(metric.recipe_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = Kernelized(kind(), recipe=metric.recipe_).fit(X, y)
    assert np.all(np.isfinite(again.transform(X)))


def check_is_usable(metric, X, folder):
    Z = metric.transform(X)
    assert np.all(np.isfinite(Z)) and np.ptp(Z) > 0
    kernelmetric.save(metric, folder / "model.km")
    np.testing.assert_array_equal(kernelmetric.load(folder / "model.km").transform(X), Z)


def ended(fit, *match):
    """What fit gives where no time is left, and what was said about it."""
    with warnings.catch_warnings(record=True) as caught, time_limit(1e-6):
        warnings.simplefilter("always")
        found = fit()
    said = [str(w.message) for w in caught if isinstance(w.message, TimeLimitWarning)]
    assert len(said) == 1 and re.search(".* It also ended ".join(match), said[0]), said
    assert said[0].count("ended") == len(match)
    return found


def test_recursive_features_end_after_a_round(problem):
    X, y = problem
    rfm = ended(lambda: kernelmetric.RFM().fit(X, y), "ended the rounds of RFM: the best so far")
    assert len(rfm.loss_curve_) == 6 and len(set(rfm.loss_curve_)) <= 2
    assert 0 < rfm.loss_ < 2  # a share of the variance, of one fold too


def test_rounds_go_on_while_there_is_time(problem, monkeypatch):
    X, y = problem
    whole = kernelmetric.RFM().fit(X, y)
    assert whole.n_iter_ > 1
    choice = _feature_rounds.held_out_errors

    def and_then_over(*given, **how):
        curve = choice(*given, **how)
        watch._DEADLINE.set(0.0)
        return curve

    monkeypatch.setattr(_feature_rounds, "held_out_errors", and_then_over)
    with pytest.warns(TimeLimitWarning, match="ended the rounds of RFM"), time_limit(1e6):
        rfm = kernelmetric.RFM().fit(X, y)
    assert rfm.loss_curve_ == whole.loss_curve_ and rfm.loss_ == rfm.loss_curve_[1]


def test_the_choice_of_C_ends_with_the_first(problem):
    X, y = problem
    idealized = ended(
        lambda: kernelmetric.IdealizedKernel().fit(X, y),
        "ended the choice of C after 1 candidate: the best so far is kept",
        "IdealizedKernel after 0 iterations",
    )
    assert idealized.C_ == 10.0 and len(idealized.C_scores_) == 1


def test_the_choice_of_a_graph_and_of_lam_ends(problem):
    X, y = problem
    y = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    metric = ended(
        lambda: kernelmetric.TransductiveDistance().fit(X, y),
        "the draw of rows for TransductiveDistance at 100 of 120",
        "the choice of the graph after 1 candidate",
        "the choice of lam after 1 candidate",
    )
    assert len(metric.graph_scores_) == 2  # one graph, and the points as they are
    assert np.all(np.isfinite(metric.transform(X)))
    metric = ended(
        lambda: kernelmetric.TransductiveDistance(2, n_neighbors=5).fit(X, y),
        "the draw of rows for TransductiveDistance at 100 of 120",
        "the choice of lam after 1 candidate",
    )
    assert list(metric.lam_scores_) == [np.inf] and metric.lam_ == np.inf


def test_scales_end_with_the_last_step(problem):
    X, y = problem
    kernel = ended(lambda: AlignedScales().bind(X, y), "the steps of AlignedScales")
    assert np.all(np.isfinite(kernel.scales)) and np.all(kernel.scales > 0)


def test_the_automatic_choice_says_that_it_ended(problem):
    X, y = problem
    kernel = ended(
        lambda: LeaveOneOutRidge().bind(X, y), "the choice of a kernel: the best so far is kept"
    )
    assert np.all(np.isfinite(kernel(X)))


NAMES = [f"{a}{b} {c}" for a in ("Ada", "Bo", "Cleo", "Dag") for b in "lmnr" for c in ("Oz", "Ur")]


def test_a_linker_goes_without_probabilities_of_pairs_left_out():
    left = pd.DataFrame({"name": NAMES, "town": NAMES[::-1]})
    right = left.assign(name=left["name"].str[1:])
    pairs = np.array([(i, i) for i in range(12)] + [(i + 12, i + 13) for i in range(12)])
    same = np.repeat([1, 0], 12)
    free = RecordLinker().fit(left, right, pairs, same)
    linker = ended(lambda: RecordLinker().fit(left, right, pairs, same), "ended RecordLinker")
    assert free.labelled_probability_ is not None and linker.labelled_probability_ is None
    np.testing.assert_array_equal(linker.probability_, free.probability_)


def test_a_limit_goes_on_while_work_waits_for_another_process():
    class Trial:
        def run(self, fold, X, y):
            left.append(time_left())
            yield [fold]
            yield [fold]

    left = []
    now = time.time()
    assert _folds._run_apart(Trial(), 0, None, None, 10**6, math.inf, now) == [[0], [0]]
    assert _folds._run_apart(Trial(), 0, None, None, 10**6, 50.0, now - 20) == [[0], [0]]
    assert _folds._run_apart(Trial(), 0, None, None, 10**6, 50.0, now - 60) == [[0]]
    assert _folds._run_apart(Trial(), 0, None, None, None, 50.0, now - 60) == [[0], [0]]
    assert math.isinf(left[0]) and left[2] <= 1e-6 < left[1] <= 30
    assert left[1] < left[3] <= 50  # clocks of other machines may be wrong


@pytest.mark.slow
def test_a_limit_ends_the_fits_of_a_search_in_other_processes(problem):
    X, y = problem
    search = KernelizedCV(LMNN(), [RBF(gamma=g) for g in (0.1, 1.0)], cv=2, n_jobs=2)
    with warnings.catch_warnings(record=True) as caught, time_limit(1e-6):
        warnings.simplefilter("always")
        search.fit(X, y)
    said = " ".join(str(w.message) for w in caught)
    assert "ended the search after 1 of 4 fits" in said and "tasks" not in said
    assert np.all(np.isfinite(search.transform(X)))


# --- Ctrl-C -------------------------------------------------------------------------------------


@pytest.mark.every(8, 2)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside Kernelized"])
@pytest.mark.parametrize(
    "kind", [kind for kind in iterative() if kind is not kernelmetric.RFM], ids=lambda k: k.__name__
)
def test_ctrl_c_in_an_iteration_leaves_the_last_map(kind, inside, problem, monkeypatch, shown):
    X, y = problem
    called, call, before = [], Iterations.__call__, threading.active_count()

    def press(self, state, loss):
        call(self, state, loss)
        called.append(loss)
        if len(called) == 2:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(Iterations, "__call__", press)
    metric = Kernelized(kind(), "rbf") if inside else kind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            metric.fit(X, y)
        except KeyboardInterrupt:
            learner = metric.learner_ if inside else metric
            assert learner.loss_curve_ == called and learner.n_iter_ == 2
            assert not learner.converged_
    assert len(called) <= 2  # some converge before
    assert np.all(np.isfinite(metric.transform(X)))
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before
