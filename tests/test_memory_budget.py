"""The memory budget: whose it is, what it changes (blocks) and what it does not (results)."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from half_of_product import half_of
from kernelmetric import (
    DNE,
    KPCA,
    LDA,
    Kernelized,
    KernelTrick,
    Nystroem,
    RandomFeatures,
    memory_budget,
)
from kernelmetric.compute import _budget, _machine, block_budget
from kernelmetric.compute._budget import current_budget
from kernelmetric.spaces import automatic_space

GB = 10**9


# --- the budget changes blocks and nothing else -------------------------------------------------


BUDGETED = [
    (KPCA(), 500),
    (KPCA(8, random_state=0), 1200),
    (KPCA(300, random_state=0), 560),
    (KPCA(0.9, random_state=0), 560),
    (Nystroem(40, n_components=8, random_state=0), 1500),
    (Nystroem(60, landmarks="rpcholesky", n_components=8, random_state=0), 1500),
    (RandomFeatures(100, n_components=8, random_state=0), 1500),
    (KernelTrick(), 300),
]


@pytest.mark.every(6)
@pytest.mark.parametrize(("case", "dtype"), half_of(BUDGETED, [np.float64, np.float32]), ids=repr)
def test_no_result_of_a_space_depends_on_the_budget(case, dtype):
    space, n = case
    rng = np.random.RandomState(0)
    X, new = rng.randn(n, 3).astype(dtype), rng.randn(20, 3).astype(dtype)
    results = []
    for budget in ("500KB", "10MB", "1GB"):
        with memory_budget(budget):
            fitted = clone(space).set_params(kernel="rbf").fit(X)
            Z = fitted.transform(new)
        results.append((fitted, Z @ Z.T))
    last, expected = results[-1]
    tight = 1e-10 if dtype == np.float64 else 1e-3
    for fitted, products in results[:-1]:
        assert getattr(fitted, "solver_", None) == getattr(last, "solver_", None)
        assert fitted.rank_ == last.rank_
        k = min(8, len(last.eigenvalues_))
        np.testing.assert_allclose(fitted.eigenvalues_[:k], last.eigenvalues_[:k], rtol=tight)
        np.testing.assert_allclose(products, expected, atol=100 * tight * np.abs(expected).max())


@pytest.mark.slow
def test_no_result_of_the_automatic_space_depends_on_the_budget():
    rng = np.random.RandomState(0)
    X = rng.randn(450, 3)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    results = []
    for budget in ("500KB", "10MB", "1GB"):
        with memory_budget(budget):
            metric = Kernelized(DNE(2), "rbf", random_state=0).fit(X, y)
            results.append((repr(metric.space_), metric.pairwise_distances(X[:30])))
    for text, D in results[:-1]:
        assert text == results[-1][0]
        np.testing.assert_allclose(D, results[-1][1], atol=1e-8 * D.max())


@pytest.mark.parametrize("free", [GB // 100, GB, 10**15])
def test_the_automatic_space_is_the_same_whatever_is_free(free, monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: free)
    monkeypatch.setattr(_budget, "total_memory", lambda: free)
    assert automatic_space(2_000).n_components is None
    assert automatic_space(2_001).n_components == 256
    assert isinstance(automatic_space(10_000), KPCA)
    assert isinstance(automatic_space(10_001), Nystroem)


@pytest.mark.parametrize("n", [400, 4_000, 40_000])
@pytest.mark.parametrize("n_components", [10, 0.9, 3_000])
def test_the_solver_is_the_same_whatever_the_budget(n, n_components):
    space = KPCA(n_components)
    chosen = set()
    for budget in ("1MB", "1GB", "1TB"):
        with memory_budget(budget):
            chosen.add(space._chosen_solver(n))
    assert len(chosen) == 1


# --- whose it is --------------------------------------------------------------------------------


def test_the_default_budget_is_a_quarter_of_the_total_whatever_is_free(monkeypatch):
    monkeypatch.delenv("KERNELMETRIC_MEMORY", raising=False)
    monkeypatch.setattr(_budget, "total_memory", lambda: 8 * GB)
    for free in (10, GB, 100 * GB):
        monkeypatch.setattr(_budget, "_free_memory", lambda free=free: free)
        assert current_budget() == 2 * GB


@pytest.mark.slow
def test_processes_that_share_the_machine_have_smaller_blocks_but_refuse_nothing(monkeypatch):
    X = np.random.RandomState(0).randn(700, 2)
    with memory_budget("1GB"), block_budget(1000):
        assert current_budget() == 1000
        assert KPCA().fit(X).rank_ > 10
    with memory_budget("1KB"), block_budget(GB):
        assert current_budget() == 1000  # nor does a share widen what the user allowed


@pytest.mark.parametrize(
    "size", [None, "1.2.3GB", "GB", float("inf"), float("nan"), object(), "e3"]
)
def test_what_is_no_budget_is_refused_in_a_sentence(size):
    with pytest.raises(ValueError, match=r"Got a memory budget of .*expected"), memory_budget(size):
        pass


@pytest.mark.parametrize(
    ("size", "n_bytes"), [("5k", 5_000), ("1e3 MB", GB), (".5GB", GB // 2), ("7", 7), (2.5e3, 2500)]
)
def test_a_budget_may_be_written_in_many_ways(size, n_bytes):
    with memory_budget(size) as given:
        assert given == n_bytes


# --- the machine, and its container -------------------------------------------------------------


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 64 GB, 60 of them free, whose other files a test writes."""
    monkeypatch.setattr(_machine, "_address_space", lambda root: iter(()))

    meminfo = "MemTotal: 62500000 kB\nMemFree: 1 kB\nMemAvailable: 58593750 kB\n"
    _machine._total_memory.cache_clear()
    _machine._free_memory.cache_clear()

    def ask(files=None):
        for name, text in {"proc/meminfo": meminfo, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return _machine._total_memory(tmp_path), _machine._free_memory(tmp_path, 0)

    return ask


def test_a_machine_without_containers_has_its_own_memory(machine):
    assert machine() == (64 * GB, 60 * GB)


def test_a_container_of_version_2_has_its_limit(machine):
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "512000000\n",
        "sys/fs/cgroup/memory.current": "300000000\n",
        "sys/fs/cgroup/memory.stat": "anon 5\ninactive_file 100000000\n",
    }
    assert machine(files) == (512_000_000, 312_000_000)


def test_the_narrowest_of_the_enclosing_groups_counts(machine):
    files = {
        "proc/self/cgroup": "0::/user.slice/job\n",
        "sys/fs/cgroup/user.slice/job/memory.max": "max\n",
        "sys/fs/cgroup/user.slice/memory.max": "4000000000\n",
        "sys/fs/cgroup/user.slice/memory.current": "1000000000\n",
    }
    assert machine(files) == (4 * GB, 3 * GB)


def test_a_container_of_version_1_has_its_limit(machine):
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n",
        "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "2000000000\n",
        "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": "1500000000\n",
        "sys/fs/cgroup/memory/docker/abc/memory.stat": "total_inactive_file 500000000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert machine(files) == (2 * GB, 1 * GB)


def test_a_container_may_see_its_group_at_the_root(machine):
    files = {
        "proc/self/cgroup": "4:memory:/docker/abc\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000000\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "2000000000\n",
    }
    assert machine(files) == (1 * GB, 0)


def test_a_part_of_what_is_free_is_left_to_libraries(monkeypatch):
    monkeypatch.setattr(_machine, "_free_memory", lambda root, second: 10 * GB)
    assert _machine.free_memory() == 8 * GB


def test_the_memory_of_this_machine_is_known():
    assert 0 <= _machine.free_memory()
    assert 10**8 < _machine.total_memory() < 10**15


LIMITED = """
import resource
import numpy as np
from kernelmetric import KPCA
from kernelmetric.compute._machine import free_memory, total_memory
X = np.zeros((20_000, 1))
limit = 6 * 10**9
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
assert total_memory() <= limit, total_memory()
assert free_memory() < limit, free_memory()
try:
    KPCA().fit(X)
except MemoryError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where ulimit -v means something")
def test_what_exceeds_a_limit_of_the_process_is_refused_before_the_work():
    run = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "KPCA of 20000 points would take about 9.6 GB" in run.stdout
    assert "try n_components=100" in run.stdout


# --- what cannot fit is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "n"),
    [
        (KPCA(), 120_000),
        (KPCA(30_000), 120_000),
        (KernelTrick(), 120_000),
        (RandomFeatures(10**6), 2_000),
        (RandomFeatures(10**30), 10),
        (Nystroem(100_000), 120_000),
        (Nystroem(100_000, landmarks="uniform"), 50_000),
    ],
    ids=repr,
)
def test_a_space_that_cannot_fit_is_refused_before_the_work(space, n, monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 16 * GB)
    X = np.arange(n, dtype=float)[:, None]

    def never(*args):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("kernelmetric.kernels.RBF.bind", never)
    with pytest.raises(MemoryError, match=r"of \d+ points would take about .* GB are free: try "):
        space.fit(X)
    assert not hasattr(space, "n_features_in_")


@pytest.mark.parametrize("method", ["pairwise_distances", "pairwise_kernels"])
def test_distances_that_cannot_fit_are_refused_before_the_work(method, monkeypatch, labelled):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 16 * GB)
    metric = LDA().fit(*labelled)
    X = np.zeros((120_000, 4))
    monkeypatch.setattr(LDA, "transform", None)
    for blocks in ((X,), (X, X[:20_000])):
        with pytest.raises(MemoryError, match=r"between 120000 and \d+ points would .* try pair_d"):
            getattr(metric, method)(*blocks)


@pytest.mark.parametrize(
    "space", [KPCA(), KPCA(900), KernelTrick(), Nystroem(2_000), RandomFeatures(3_000)], ids=repr
)
def test_arrays_in_full_are_refused_where_the_budget_does_not_hold_them(space):
    X = np.random.RandomState(0).randn(2_000, 2)
    message = r"would take about \d+ MB for arrays that it needs in full, but .* is 10 MB: try"
    with memory_budget("10MB"), pytest.raises(MemoryError, match=message):
        space.fit(X)


# --- estimates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "sizes"),
    [
        (KPCA(), (450, 900)),
        (KernelTrick(), (450, 900)),
        (KPCA(20, solver="randomized", random_state=0), (700, 1_500)),
        (Nystroem(150, random_state=0), (1_000, 4_000)),
        (Nystroem(200, landmarks="rpcholesky", random_state=0), (1_000, 2_000)),
        (Nystroem(10**4), (450, 600)),
        (RandomFeatures(300, random_state=0), (1_000, 4_000)),
        (RandomFeatures(2_000, random_state=0), (100, 300)),
    ],
    ids=repr,
)
@pytest.mark.every(6)
def test_an_estimate_is_within_a_factor_of_two_of_the_peak(space, sizes):
    rng = np.random.RandomState(0)
    clone(space).fit(rng.randn(60, 12))  # what is imported at the first fit is not counted
    for n in sizes:
        X = rng.randn(n, 12)
        tracemalloc.start()
        try:
            clone(space).fit(X)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        estimate = space.estimate_memory(n, 12)
        assert 0.5 < estimate / peak < 2.0, (n, estimate, peak)
