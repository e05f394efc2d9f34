"""Fits that are ended from outside: by Ctrl-C at any moment, by a time limit between two blocks."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from kernelmetric import (
    KPCA,
    LDA,
    LMNN,
    MCML,
    MLKR,
    NCA,
    RFM,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    TimeLimitWarning,
    TransductiveDistance,
    time_limit,
)
from kernelmetric.compute import _threads, watch
from kernelmetric.compute._execute import sum_tiles
from kernelmetric.compute._threads import unlocked
from kernelmetric.compute.rates import most_in_time
from kernelmetric.kernelized import _costs
from kernelmetric.learners import LEARNERS, Learner, _checks, _feature_rounds
from kernelmetric.selection import LeaveOneOutRidge, _leave_one_out


def drawn(n):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, 8))
    return X, (X[:, 0] * X[:, 1] + 0.7 * rng.standard_normal(n) > 0).astype(int)


def said_of_limits(work):
    """What work gives, and what it says of time limits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    return found, [str(w.message) for w in caught if w.category is TimeLimitWarning]


# --- Ctrl-C ---------------------------------------------------------------------------------------


def seconds_after_ctrl_c(fit, wait):
    """How long it takes until a fit that runs for long has been interrupted."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(wait, press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
            time.sleep(60)  # a fit that was faster
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    return time.monotonic() - pressed[0]


needs_signals = pytest.mark.skipif(os.name != "posix", reason="threads cannot be sent signals")


@pytest.mark.every(12)
@needs_signals
@pytest.mark.parametrize("learner", [NCA(), MLKR(), LMNN(), Kernelized(LDA())], ids=repr)
def test_ctrl_c_ends_a_long_fit(learner):
    X, y = drawn(8_000)
    assert seconds_after_ctrl_c(lambda: learner.fit(X, y), 0.4) < 10


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize(
    "metric",
    [
        *(kind() for kind in LEARNERS),
        Kernelized(NCA()),
        Kernelized(LMNN(), "rbf"),
        KernelizedCV(LDA()),
        KernelizedCV(NCA(), n_jobs=2),
        MetricClassifier(),
        TransductiveDistance(),
    ],
    ids=repr,
)
def test_ctrl_c_ends_every_fit(metric):
    X, y = drawn(30_000)
    assert seconds_after_ctrl_c(lambda: metric.fit(X, y), 2.0) < 20


@pytest.mark.slow
@needs_signals
def test_ctrl_c_does_not_wait_for_a_long_call():
    ended = threading.Event()
    try:
        waited = seconds_after_ctrl_c(lambda: unlocked(lambda: ended.wait(60), 1e12), 0.2)
    finally:
        ended.set()
    assert waited < 10


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("wait", [2.0, 5.0, 12.0])
def test_ctrl_c_ends_a_fit_of_full_rank(wait):
    X, y = drawn(4_000)
    metric = Kernelized(LDA(), "rbf", KPCA())
    assert seconds_after_ctrl_c(lambda: metric.fit(X, y), wait) < 5


def test_threads_at_work_leave_when_nobody_waits(monkeypatch):
    monkeypatch.setattr(_threads._BLAS, "take", lambda holder: 2)
    begun, wide_awake = [], threading.Event()

    def work(tiles):
        for tile in tiles:
            begun.append(tile)
            if tile == 1:  # of the second group
                wide_awake.set()
            if tile == 0:
                wide_awake.wait(30)
                raise KeyboardInterrupt
            time.sleep(0.01)
        return (0.0,)

    with pytest.raises(KeyboardInterrupt):
        sum_tiles(work, list(range(4_000)), flops=1e12, entries=1.0)
    assert len(begun) < 200  # of 250 in a group


def test_ctrl_c_leaves_the_last_round_of_recursive_features(monkeypatch):
    rounds = _feature_rounds.feature_rounds

    def two(*given, **how):
        whole = rounds(*given, **how)
        yield next(whole)
        yield next(whole)
        raise KeyboardInterrupt

    monkeypatch.setattr(
        _feature_rounds, "held_out_errors", lambda *_, **__: np.array([0.9, 0.5, 0.4])
    )
    monkeypatch.setattr(_feature_rounds, "feature_rounds", two)
    X, y = drawn(120)
    rfm = RFM()
    with pytest.raises(KeyboardInterrupt):
        rfm.fit(X, y)
    assert rfm.n_iter_ == 1 and rfm.loss_ == 0.5
    assert np.all(np.isfinite(rfm.transform(X)))


# --- time limits ----------------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [NCA(), MLKR(), MCML()], ids=repr)
def test_a_limit_ends_the_first_pass_between_two_blocks(learner):
    X, y = drawn(1_500)
    with time_limit(1e-6):
        metric, said = said_of_limits(lambda: learner.fit(X, y))
    assert metric.n_iter_ == 0 and np.isnan(metric.loss_) and metric.loss_curve_ == []
    assert len(said) == 1 and "after 0 iterations" in said[0]
    Z = metric.transform(X)
    assert np.all(np.isfinite(Z)) and np.ptp(Z) > 0


def test_passes_that_nobody_can_do_without_are_not_left():
    blocks = watch.watched(range(3))
    with time_limit(1e-6):
        assert list(blocks) == [0, 1, 2]
        with watch.leavable(), pytest.raises(watch.OutOfTime):
            list(watch.watched(range(3)))
        with watch.leavable():
            assert list(watch.watched(range(1))) == [0]


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_a_limit_leaves_rows_that_can_be_learned_from(kind, monkeypatch):
    monkeypatch.setattr(_checks, "least_seconds", lambda *_: 1e7)
    monkeypatch.setattr(Learner, "_least_rows", 60)
    monkeypatch.setattr(RFM, "_least_rows", 60)
    X, y = drawn(150)
    weights = np.linspace(0.5, 2.0, len(y)) if kind is NCA else None
    given = {} if weights is None else {"sample_weight": weights}
    with time_limit(1e6):
        metric, said = said_of_limits(lambda: kind().fit(X, y, **given))
    assert np.all(np.isfinite(metric.transform(X)))
    assert len(said) == 1
    assert f"draw of rows for {kind.__name__} at 60 of 150" in said[0]


def test_rows_in_time_grow_with_the_time():
    def seconds(n):
        return 1e-3 * n

    with time_limit(10):
        assert most_in_time(seconds, 1_000_000, 5) < 10_000 and most_in_time(seconds, 99, 5) == 99
        assert most_in_time(lambda n: 1e-6 * n, 1_000_000, 5) == 1_000_000
    with time_limit(1e-9):
        assert most_in_time(seconds, 1_000_000, 5) == 5
    assert most_in_time(lambda n: pytest.fail("measured without a limit"), 1_000, 5) == 1_000


@pytest.mark.parametrize("learner", [NCA(), NCA(solver="minibatch"), LDA(), RFM()], ids=repr)
def test_more_rows_and_more_features_take_longer_before_a_fit_is_worth_anything(learner):
    few, more, wide = ((1_000, 20), (5_000, 20), (1_000, 100))
    took = [_checks.least_seconds(learner, *shape) for shape in (few, more, wide)]
    assert 0 < took[0] < took[1] and took[0] < took[2]
    if learner._others:  # batches: one row more takes no longer than the one before
        assert took[1] == pytest.approx(5 * took[0])


@pytest.mark.every(2)
@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_a_space_of_some_rows_places_them_all(kernel, monkeypatch):
    X, y = drawn(200)
    monkeypatch.setattr(_costs, "_LEAST_ROWS", 80)
    monkeypatch.setattr(_costs, "fit_seconds", lambda *_: 1e7)
    metric = Kernelized(LDA(), kernel)
    with time_limit(1e6):
        Z, said = said_of_limits(lambda: metric.fit_transform(X, y, sample_weight=1.0 + y))
    assert Z.shape[0] == len(metric.embedding_) == 200 and np.all(np.isfinite(Z))
    assert metric.space_.anchors_.shape[0] == 80
    assert metric.recipe_.reasons["rows"] == "a sample of 80 rows of 200, for the time limit"
    assert len(said) == 1 and "the draw of rows for the space at 80 of 200" in said[0]


def test_nothing_is_said_where_all_is_done_when_the_time_ends(monkeypatch):
    X, y = drawn(120)
    choose = _leave_one_out.choose

    def and_then_over(*given):
        choice = choose(*given)
        watch._DEADLINE.set(0.0)
        return choice

    def no_rounds(*given, **how):
        watch._DEADLINE.set(0.0)
        return np.array([0.5, 0.9])

    monkeypatch.setattr(_leave_one_out, "choose", and_then_over)
    with time_limit(1e6):
        _, said = said_of_limits(lambda: LeaveOneOutRidge().bind(X, y))
    assert said == []
    monkeypatch.setattr(_feature_rounds, "held_out_errors", no_rounds)
    with time_limit(1e6):
        rfm, said = said_of_limits(lambda: RFM().fit(X, y))
    assert said == [] and rfm.n_iter_ == 0


def test_a_limit_is_told_at_the_line_of_the_user():
    X, y = drawn(120)
    for work in (Kernelized(LMNN()), MetricClassifier(cv=2), KernelizedCV(LMNN(), cv=2)):
        with time_limit(1e-6), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work.fit(X, y)
        limits = [w for w in caught if w.category is TimeLimitWarning]
        assert len(limits) == 1 and limits[0].filename == __file__
