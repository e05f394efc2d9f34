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
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController, threadpool_limits

from kernelmetric import LMNN, NCA, IdealizedKernel, Pairs
from kernelmetric.compute import _threads as room
from kernelmetric.compute._execute import over_tiles
from kernelmetric.compute._threads import _one_blas_thread as calm
from kernelmetric.compute._threads import repeatable, small_steps, tiles_at_once
from kernelmetric.compute.reductions import nearest_neighbors, sum_entries
from kernelmetric.solvers import _lbfgs, minimize_lbfgs
from kernelmetric.solvers._pair_curvature import Hessian

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


def share(work, items, flops=LARGE):
    """What the work gives for every item, by threads if there are so many operations."""
    return over_tiles(work, items, flops=flops)


def threads_used(_=None):
    """How many threads work on ten items, each of which waits for another thread if it may."""
    seen = set()

    def look(item):
        seen.add(threading.get_ident())
        time.sleep(0.005)

    share(look, range(10))
    return len(seen)


def points(n=60):
    rng = np.random.RandomState(0)
    y = np.arange(n) % 3
    return rng.randn(n, 4) + y[:, None], y


def small_fit(number=0):
    X, y = points()
    return NCA(2, max_iter=3, tol=1e9).fit(X + number % 3, y).components_


def fail_at(which, error):
    """A tile function that fails at one of its items."""

    def work(item):
        if item == which:
            raise error
        return small_fit(item)

    return work


# --- several at once --------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("n_threads", [2, 8, 32])
def test_fits_in_many_threads_leave_blas_as_it_was(n_threads):
    start = threading.Barrier(n_threads)

    def work(number):
        start.wait()
        if number % 4 == 1:
            with pytest.raises(RuntimeError, match="on purpose"):
                share(fail_at(2, RuntimeError("on purpose")), range(6))
        if number % 4 == 2:
            with pytest.raises(KeyboardInterrupt), repeatable():
                small_fit(number)
                raise KeyboardInterrupt
        if number % 4 == 3:
            with pytest.raises(KeyboardInterrupt):
                share(fail_at(1, KeyboardInterrupt()), range(6))
        return small_fit(number)

    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(work, range(n_threads)))
    for number, components in enumerate(found):
        assert_array_equal(components, found[number % 3] if number >= 3 else components)
    assert set(blas_threads()) == {2}


def test_the_last_one_out_restores_in_whatever_order_they_leave():
    second, entered, left = threading.Event(), threading.Event(), threading.Event()

    def other():
        with calm():
            entered.set()
            second.wait(30)
        left.set()

    thread = threading.Thread(target=other)
    with calm():
        thread.start()
        assert entered.wait(30)
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {1}  # the other is still at work
    second.set()
    assert left.wait(30)
    thread.join()
    assert set(blas_threads()) == {2}


def test_as_many_threads_beside_others_as_alone():
    """Else a fit would be slow for as long as another one runs."""
    assert threads_used() == 2
    with calm(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(threads_used).result() == 2
        assert pool.submit(tiles_at_once).result() == 2


def test_blas_has_one_thread_while_ours_run_and_all_of_them_before_and_after():
    assert share(lambda item: set(blas_threads()), range(3)) == [{1}] * 3
    assert set(blas_threads()) == {2}
    assert share(lambda item: set(blas_threads()), range(3), flops=10.0) == [{1}] * 3
    assert set(blas_threads()) == {2}


def test_blas_is_calm_among_our_threads_unless_a_call_is_worth_its_own():
    with small_steps(LARGE, largest=1e9):
        assert set(blas_threads()) == {1}
        assert threads_used() == tiles_at_once() == 2
    with small_steps(LARGE, largest=LARGE):
        assert set(blas_threads()) == {2}


@pytest.mark.slow
def test_newton_steps_leave_the_threads_to_a_large_inverse(monkeypatch):
    rng = np.random.RandomState(0)
    X, rows = rng.standard_normal((100, 24)), np.stack(np.triu_indices(100, 1), axis=1)
    pairs = Pairs(rows[:4000:2], rows[1:4000:2], 100)
    seen = {"move_to": set(), "solve": set()}
    for name, counts in seen.items():
        plain = getattr(Hessian, name)

        def look(*arguments, plain=plain, counts=counts, **named):
            counts.update(blas_threads())
            return plain(*arguments, **named)

        monkeypatch.setattr(Hessian, name, look)
    IdealizedKernel(C=10.0, max_iter=3).fit(X[:, :2], pairs=pairs)  # small: calm all through
    assert seen == {"move_to": {1}, "solve": {1}}
    seen["move_to"].clear()
    for worth, threads in ((room._WORTH_BLAS, 1), (1e6, 2)):
        monkeypatch.setattr(room, "_WORTH_BLAS", worth)
        with pytest.warns(ConvergenceWarning):
            IdealizedKernel(C=10.0, max_iter=3).fit(X, pairs=pairs)
        assert seen == {"move_to": {threads}, "solve": {1}}
        seen["move_to"].clear()


def test_the_steps_of_an_optimiser_leave_the_threads_to_its_objective(monkeypatch):
    passes, inside = [], set()

    def objective(x):
        inside.update(blas_threads())
        return float(np.sum(x * x)), 2.0 * x

    def counted(work, n_entries, operations):
        def look(some):
            passes.append((operations * n_entries > 1e4, set(blas_threads())))
            return work(some)

        return sum_entries(look, n_entries, operations)

    monkeypatch.setattr(_lbfgs, "sum_entries", counted)
    minimize_lbfgs(objective, np.arange(2000.0), max_iter=5, tol=0.0)
    assert inside == {2}
    assert {large for large, _ in passes} == {True, False}
    assert all(threads == ({1} if large else {2}) for large, threads in passes)


def test_small_work_runs_on_the_thread_that_asks():
    here = threading.get_ident()
    assert set(share(lambda item: threading.get_ident(), range(6), flops=10.0)) == {here}


@pytest.mark.slow
def test_work_shared_once_is_not_shared_again():
    def inner(item):
        return threads_used(), set(blas_threads())

    assert share(inner, range(4)) == [(1, {1})] * 4


def test_an_error_in_any_share_comes_out_and_what_is_left_is_not_begun():
    begun = []

    def fails(item):
        begun.append(item)
        time.sleep(0.001)
        raise RuntimeError("in a thread of ours")

    with pytest.raises(RuntimeError, match="in a thread of ours"):
        share(fails, range(1000))
    assert len(begun) < 1000


def test_what_is_within_one_thread_has_one():
    with repeatable():
        assert {library.num_threads for library in ThreadpoolController().lib_controllers} == {1}
        assert threads_used() == tiles_at_once() == 1
    assert tiles_at_once() == 2


def test_openmp_is_given_back_to_the_thread_that_gave_it():
    """Its setting belongs to a thread, that of BLAS to the process."""
    openmp = [lib for lib in room._libraries() if lib.user_api == "openmp"]
    if not openmp:
        pytest.skip("No library with OpenMP is loaded.")
    with threadpool_limits(3, user_api="openmp"):
        with calm():
            before = [library.num_threads for library in openmp]  # one, if a BLAS goes by it
            with repeatable():
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
    monkeypatch.setattr(room, "_libraries", lambda: (library, blas))
    assert share(lambda item: library.num_threads, range(9)) == [1] * 9
    with calm():
        assert library.num_threads == 1
    assert library.num_threads == 4


# --- limits of others -------------------------------------------------------------------------


def test_a_limit_lifted_while_a_fit_runs_stays_lifted():
    theirs = threadpool_limits(1, user_api="blas")
    with calm():
        theirs.restore_original_limits()
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("dropped", [False, True])
def test_a_library_loaded_later_is_limited_too(dropped, monkeypatch):
    """Also where as many modules have been dropped as imported since the last look."""

    class Library:
        user_api, num_threads = "blas", 5

        def set_num_threads(self, count):
            self.num_threads = count

    late = Library()
    found = ThreadpoolController().lib_controllers
    room._libraries_among.cache_clear()
    monkeypatch.setitem(sys.modules, "a_module_that_is_dropped", sys)
    with calm():
        pass
    monkeypatch.setattr(
        room, "ThreadpoolController", lambda: type("Found", (), {"lib_controllers": [*found, late]})
    )
    if dropped:
        del sys.modules["a_module_that_is_dropped"]
    monkeypatch.setitem(sys.modules, "a_module_with_a_blas_of_its_own", sys)
    with calm():
        assert late.num_threads == 1
    assert late.num_threads == 5
    room._libraries_among.cache_clear()


# --- interrupts -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_leaves_blas_as_it_was():
    """The signal comes at some twenty moments: before, while limits are set, after.

    Where it meets the search for libraries, a file of the system is closed later than it should.
    """
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for number in range(20):
            with calm():  # searches for libraries, in a callback that cannot raise
                pass
            timer = threading.Timer(1e-4 * number, signal.raise_signal, (signal.SIGINT,))
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                until = time.monotonic() + 30
                while time.monotonic() < until:
                    share(lambda item: sum(range(50)), range(4), flops=LARGE * (number % 2))
            timer.join()
            with calm():  # a traceback may have held a block open until now
                pass
            assert tiles_at_once() == 2
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
    with pytest.raises(KeyboardInterrupt), calm():
        pass
    assert set(blas_threads()) == {2}


# --- other contexts, other processes ----------------------------------------------------------


def test_a_context_handed_to_another_thread_may_use_threads():
    """As asyncio does, and threads of Python builds without the global lock."""
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(context.run, threads_used).result() == 2
    with repeatable():
        inside = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(inside.run, threads_used).result() == 1


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
        with calm():
            entered.set()
            stay.wait(60)

    def question():
        start = blas_threads()
        inside = threads_used()
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


@pytest.mark.slow
@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_forked_inside_a_block_does_not_wait_for_threads_it_does_not_have():
    with calm():
        assert threads_used() == 2
        assert in_a_child(threads_used) == 2


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_forked_by_a_tile_works_alone():
    assert share(lambda item: in_a_child(threads_used), range(2)) == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_joblib_gives_what_a_loop_gives(backend):
    expected = [small_fit(number) for number in range(3)]
    found = Parallel(n_jobs=2, backend=backend)(delayed(small_fit)(number) for number in range(6))
    for number, components in enumerate(found):
        np.testing.assert_allclose(components, expected[number % 3], rtol=1e-6, atol=1e-9)
    assert set(blas_threads()) == {2}


def test_neighbours_are_the_same_on_one_thread_and_on_many():
    X = np.random.RandomState(0).randn(400, 600)
    with repeatable():
        alone = nearest_neighbors(X, 5)[0]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: nearest_neighbors(X, 5)[0], range(8)):
            assert_array_equal(found, alone)


def test_a_learner_that_fails_in_a_thread_does_not_keep_blas():
    X, _ = points()

    def work(_):
        nearest_neighbors(X, 3)
        with pytest.raises(RuntimeError, match="gave up"):
            share(fail_at(0, RuntimeError("gave up")), range(4))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert set(blas_threads()) == {2}


def test_a_fit_is_the_same_on_any_number_of_threads(monkeypatch):
    """A descent in float32 would carry one rounding of a sum to the first digits of the map."""
    monkeypatch.setattr(room, "_WORTH_THREADS", 1e5)
    X, y = points(700)
    found = []
    for count in (1, 2, 4):
        with threadpool_limits(count, user_api="blas"):
            found.append(
                [
                    learner.fit(X.astype(np.float32), y).components_
                    for learner in (LMNN(max_iter=5, tol=1e9), NCA(2, max_iter=5, tol=1e9))
                ]
            )
    for several in found[1:]:
        for alone, shared in zip(found[0], several, strict=True):
            np.testing.assert_allclose(shared, alone, rtol=0, atol=1e-12 * np.abs(alone).max())
