"""One owner of BLAS's threads: whatever fits do at once, BLAS is afterwards as it was before."""

import contextvars
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_limits

from kernelmetric import NCA
from kernelmetric.compute import _threads as room
from kernelmetric.compute import nearest_neighbors, one_thread, own_threads
from kernelmetric.compute._threads import over_threads

LARGE = 1e12  # operations, so many that all threads are used


def blas_threads():
    """How many threads every BLAS would use now."""
    return [lib.num_threads for lib in ThreadpoolController().lib_controllers if is_blas(lib)]


def is_blas(library):
    """Whether it is a BLAS with one setting for the whole process, as those with OpenMP are not."""
    return library.user_api == "blas" and getattr(library, "threading_layer", "") != "openmp"


@pytest.fixture(autouse=True)
def two_threads():
    """Every BLAS at two threads, whatever the machine; and still so after the test."""
    with threadpool_limits(2, user_api="blas"):
        if set(blas_threads()) != {2}:
            pytest.skip("The BLAS here does not take a limit.")
        yield
        assert set(blas_threads()) == {2}


def points(n=60):
    rng = np.random.RandomState(0)
    y = np.arange(n) % 3
    return rng.randn(n, 4) + y[:, None], y


def small_fit(number=0):
    X, y = points()
    return NCA(2, max_iter=3, tol=1e9).fit(X + number % 3, y).components_


# --- several at once --------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [2, 8, 32])
def test_fits_in_many_threads_leave_blas_as_it_was(n_threads):
    start = threading.Barrier(n_threads)

    def work(number):
        start.wait()
        if number % 4 == 1:
            with pytest.raises(RuntimeError, match="on purpose"), own_threads(LARGE):
                small_fit(number)
                raise RuntimeError("on purpose")
        if number % 4 == 2:
            with pytest.raises(KeyboardInterrupt), own_threads(0.0), own_threads(LARGE):
                raise KeyboardInterrupt
        return small_fit(number)

    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(work, range(n_threads)))
    for number, components in enumerate(found):
        assert_array_equal(components, found[number % 3] if number >= 3 else components)
    assert set(blas_threads()) == {2}


def test_the_last_one_out_restores_in_whatever_order_they_leave():
    first, second = own_threads(0.0), threading.Event()
    entered, left = threading.Event(), threading.Event()

    def other():
        with own_threads(0.0):
            entered.set()
            second.wait(30)
        left.set()

    thread = threading.Thread(target=other)
    with first:
        thread.start()
        assert entered.wait(30)
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {1}  # the other is still at work
    second.set()
    assert left.wait(30)
    thread.join()
    assert set(blas_threads()) == {2}


def test_a_fit_gets_as_many_threads_beside_others_as_alone():
    """Else sums of floating-point numbers would depend on who else is at work."""
    counts = []

    def count():
        with own_threads(LARGE):
            counts.append(len(over_threads(list, range(10))))

    count()
    with own_threads(0.0):
        thread = threading.Thread(target=count)
        thread.start()
        thread.join()
    assert counts == [2, 2]


def test_blocks_within_blocks_change_nothing():
    with own_threads(LARGE):
        outside = room._current()
        with own_threads(0.0):
            assert room._current() is outside
        assert set(blas_threads()) == {1}
        assert len(over_threads(list, range(6))) == 2
    assert room._current() is None


def test_small_steps_run_on_one_thread():
    with own_threads(10.0):
        assert over_threads(list, range(6)) == [list(range(6))]
        assert set(blas_threads()) == {1}


def test_work_shared_once_is_not_shared_again():
    def inner(items):
        with own_threads(LARGE):
            return len(over_threads(list, range(10))), set(blas_threads())

    with own_threads(LARGE):
        assert over_threads(inner, range(4)) == [(1, {1}), (1, {1})]


def test_an_error_in_any_share_comes_out_and_leaves_nothing_behind():
    def fails(items):
        if 1 in items:
            raise RuntimeError("in a thread of ours")

    with pytest.raises(RuntimeError, match="in a thread of ours"), own_threads(LARGE):
        over_threads(fails, range(4))
    assert room._current() is None


def test_what_is_within_one_thread_has_one():
    with one_thread():
        assert {library.num_threads for library in ThreadpoolController().lib_controllers} == {1}
        with own_threads(LARGE):
            assert len(over_threads(list, range(6))) == 1


def test_openmp_is_given_back_to_the_thread_that_gave_it():
    """Its setting belongs to a thread, that of BLAS to the process."""
    openmp = [lib for lib in room._libraries(len(sys.modules)) if lib.user_api == "openmp"]
    if not openmp:
        pytest.skip("No library with OpenMP is loaded.")
    with threadpool_limits(3, user_api="openmp"):
        with own_threads(0.0):
            before = [library.num_threads for library in openmp]  # one, if a BLAS goes by it
            with one_thread():
                assert {library.num_threads for library in openmp} == {1}
            assert [library.num_threads for library in openmp] == before
        assert {library.num_threads for library in openmp} == {3}


def test_a_blas_that_goes_by_openmp_is_calm_in_every_thread(monkeypatch):
    """An OpenBLAS with OpenMP takes the number of threads from the thread that calls it."""
    settings = threading.local()

    class OpenMP:
        user_api = "openmp"
        num_threads = property(lambda self: getattr(settings, "count", 4))

        def set_num_threads(self, count):
            settings.count = count

    class Blas(OpenMP):
        user_api, threading_layer = "blas", "openmp"

    library, blas = OpenMP(), Blas()
    monkeypatch.setattr(room, "_libraries", lambda n_modules: [library, blas])
    seen = []
    with own_threads(LARGE):
        over_threads(lambda items: seen.append(library.num_threads), range(9))
        assert library.num_threads == 1
    assert seen == [1, 1, 1, 1]
    assert library.num_threads == 4


# --- limits of others -------------------------------------------------------------------------


def test_a_limit_lifted_while_a_fit_runs_stays_lifted():
    theirs = threadpool_limits(1, user_api="blas")
    with own_threads(0.0):
        theirs.restore_original_limits()
    assert set(blas_threads()) == {2}


def test_a_library_loaded_later_is_limited_too(monkeypatch):
    class Library:
        user_api, num_threads = "blas", 5

        def set_num_threads(self, count):
            self.num_threads = count

    late = Library()
    found = ThreadpoolController().lib_controllers
    room._libraries.cache_clear()
    with own_threads(0.0):
        pass
    monkeypatch.setattr(
        room, "ThreadpoolController", lambda: type("Found", (), {"lib_controllers": [*found, late]})
    )
    monkeypatch.setitem(sys.modules, "a_module_with_a_blas_of_its_own", sys)
    with own_threads(0.0):
        assert late.num_threads == 1
    assert late.num_threads == 5
    room._libraries.cache_clear()


# --- interrupts -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_leaves_blas_as_it_was():
    """The signal comes at some twenty moments: before, while limits are set, after.

    Where it meets the search for libraries, a file of the system is closed later than it should.
    """
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for number in range(20):
            with own_threads(0.0):  # searches for libraries, in a callback that cannot raise
                pass
            timer = threading.Timer(1e-4 * number, signal.raise_signal, (signal.SIGINT,))
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                until = time.monotonic() + 30
                while time.monotonic() < until:
                    with own_threads(0.0):
                        sum(range(50))
            timer.join()
            with own_threads(0.0):  # a traceback may have held a block open until now
                assert room._current() is not None
            assert room._current() is None
            assert set(blas_threads()) == {2}
    finally:
        signal.signal(signal.SIGINT, previous)


def test_giving_back_is_done_again_where_it_was_interrupted(monkeypatch):
    restore, calls = room._BLAS._restore, []

    def interrupted():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        restore()

    monkeypatch.setattr(room._BLAS, "_restore", interrupted)
    with pytest.raises(KeyboardInterrupt), own_threads(0.0):
        pass
    assert set(blas_threads()) == {2}


# --- other contexts, other processes ----------------------------------------------------------


def test_a_context_handed_to_another_thread_does_not_bring_our_threads_along():
    """As asyncio does, and threads of Python builds without the global lock."""
    counts = []

    def count():
        counts.append(len(over_threads(list, range(6))))
        with own_threads(LARGE):
            counts.append(len(over_threads(list, range(6))))

    with own_threads(LARGE):
        over_threads(list, range(6))
        context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(count,))
    thread.start()
    thread.join()
    context.run(count)  # after the end, in the same thread
    assert counts == [1, 2, 1, 2]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")


def in_a_child(question):
    """The answer, a number up to 255, of a forked process; it may not take longer than a minute."""
    pid = os.fork()
    if pid == 0:
        answer = 255
        try:
            answer = question()
        finally:
            os._exit(answer)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("The forked process hangs.")


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_with_all_threads():
    stay, entered = threading.Event(), threading.Event()

    def other():
        with own_threads(0.0):
            entered.set()
            stay.wait(60)

    def question():
        start = blas_threads()
        with own_threads(LARGE):
            inside = len(over_threads(list, range(8)))
        return 10 * max(start) + inside if blas_threads() == start else 254

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(60)
    try:
        assert in_a_child(question) == 22
        with room._BLAS._lock:  # held at the very moment of the fork
            assert in_a_child(question) == 22
    finally:
        stay.set()
        thread.join()
    assert set(blas_threads()) == {2}


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_forked_inside_a_block_does_not_wait_for_threads_it_does_not_have():
    def question():
        with own_threads(LARGE):
            return len(over_threads(list, range(8)))

    with own_threads(LARGE):
        over_threads(list, range(8))  # the pool has started
        assert in_a_child(question) == 2


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_gives_what_a_loop_gives(backend):
    expected = [small_fit(number) for number in range(3)]
    found = Parallel(n_jobs=2, backend=backend)(delayed(small_fit)(number) for number in range(6))
    for number, components in enumerate(found):
        np.testing.assert_allclose(components, expected[number % 3], rtol=1e-6, atol=1e-9)
    assert set(blas_threads()) == {2}


def test_neighbours_are_the_same_on_one_thread_and_on_many():
    X = np.random.RandomState(0).randn(400, 600)
    with one_thread():
        alone = nearest_neighbors(X, 5)[0]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: nearest_neighbors(X, 5)[0], range(8)):
            assert_array_equal(found, alone)


def test_a_learner_that_fails_in_a_thread_does_not_keep_blas():
    X, _ = points()

    def work(_):
        with pytest.raises(RuntimeError, match="gave up"), own_threads(LARGE):
            nearest_neighbors(X, 3)
            over_threads(fail, range(4))

    def fail(items):
        raise RuntimeError("gave up")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert set(blas_threads()) == {2}
