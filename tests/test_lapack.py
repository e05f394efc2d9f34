"""LAPACK of large matrices: as SciPy has it, in place, and without Python's lock."""

import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg

from kernelmetric.compute import _threads, lapack, watch
from kernelmetric.compute._threads import unlocked
from kernelmetric.solvers import right_singular


@pytest.fixture
def all_are_long(monkeypatch):
    for module in (_threads, lapack):
        monkeypatch.setattr(module, "LONG", 0.0)


def symmetric(n, dtype=np.float64):
    A = np.random.RandomState(0).standard_normal((n, n))
    return (A + A.T).astype(dtype), A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_eigenpairs_of_large_matrices_are_those_of_scipy(all_are_long, dtype, order):
    S, P = symmetric(60, dtype)
    given = np.array(S, order=order)
    for B, driver in ((None, "evd"), (P, "gvd")):
        values, V = lapack.eigh(given, B)
        expected = linalg.eigh(S if B is None else S.astype(float), B, driver=driver)
        assert values.dtype == V.dtype == (dtype if B is None else np.float64)
        rounding = 100 * np.finfo(dtype).eps
        assert_allclose(values, expected[0], atol=rounding * np.abs(expected[0]).max())
        assert_allclose(np.abs(V), np.abs(expected[1]), atol=rounding)
    assert_array_equal(given, S)
    some = lapack.eigh(given, subset=(3, 7))
    assert_allclose(some[0], lapack.eigh(given)[0][3:8])
    assert some[1].shape == (60, 5)


def test_what_may_be_overwritten_is_not_copied(all_are_long):
    S = np.asfortranarray(symmetric(40)[0])
    assert np.shares_memory(lapack.eigh(S, overwrite=True)[1], S)
    assert not np.shares_memory(lapack.eigh(S)[1], S)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factors_and_their_inverses_are_made_in_place(all_are_long, dtype):
    P = symmetric(50)[1].astype(dtype)
    A = np.array(P, order="F")
    L = lapack.factor(A)
    assert L is A
    assert_allclose(np.tril(L), linalg.cholesky(P, lower=True), rtol=1e-4, atol=1e-5)
    inverse = lapack.inverse_factor(L.copy(order="F"))
    assert_allclose(np.tril(inverse) @ np.tril(L), np.eye(50), atol=1e-5)
    with pytest.raises(AssertionError):  # LAPACK would write where nothing is
        lapack.factor(np.ascontiguousarray(P)[:, ::2])


def test_singular_vectors_are_those_of_scipy(all_are_long):
    A = np.random.RandomState(0).standard_normal((30, 20))
    expected = linalg.svd(A, full_matrices=False)[1:]
    for found, wanted in zip(right_singular(A), expected, strict=True):
        assert_allclose(np.abs(found), np.abs(wanted), atol=1e-12)


def test_matrices_without_a_solution_are_refused(all_are_long):
    S, P = symmetric(30)
    with pytest.raises(linalg.LinAlgError, match="potrf finds no solution"):
        lapack.factor(np.asfortranarray(-P))
    with pytest.raises(linalg.LinAlgError, match="sygvd finds no solution"):
        lapack.eigh(S, -P)
    S[3, 4] = np.nan
    for given in ((S,), (P, S)):
        with pytest.raises(ValueError, match="infs or NaNs"):
            lapack.eigh(*given)


@pytest.mark.slow
def test_other_threads_run_while_a_matrix_is_decomposed(all_are_long):
    A, ticks, ended = symmetric(700)[0], [], threading.Event()

    def tick():
        while not ended.wait(1e-3):
            ticks.append(None)

    ticker = threading.Thread(target=tick)
    ticker.start()
    before = len(ticks)
    lapack.eigh(A)
    during = len(ticks) - before
    ended.set()
    ticker.join()
    assert during > 5  # SciPy's own function leaves time for one or two


def test_short_calls_are_made_here_and_long_ones_in_a_thread():
    here = threading.get_ident()
    assert unlocked(threading.get_ident, 1.0) == here != unlocked(threading.get_ident, 1e12)
    with watch.time_limit(50.0):
        assert unlocked(watch.time_left, 1e12) <= 50.0  # the thread has the context of the caller
    with pytest.raises(ZeroDivisionError):
        unlocked(lambda: 1 / 0, 1e12)


def test_a_long_call_that_nobody_waits_for_is_left():
    ended, gone = threading.Event(), threading.Event()
    token = watch.GONE.set(gone)
    try:
        threading.Timer(0.05, gone.set).start()
        with pytest.raises(watch.OutOfTime):
            unlocked(lambda: ended.wait(60), 1e12)
    finally:
        watch.GONE.reset(token)
        ended.set()


@pytest.mark.slow
def test_a_time_limit_leaves_a_long_call_only_where_it_may():
    ended = threading.Event()
    try:
        with watch.time_limit(0.05), watch.leavable(), pytest.raises(watch.OutOfTime):
            unlocked(lambda: ended.wait(60), 1e12)
    finally:
        ended.set()
    with watch.time_limit(1e-6):
        assert unlocked(lambda: time.sleep(0.2) or "all", 1e12) == "all"
