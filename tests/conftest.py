"""The registries: every learner, space and kernel that the contracts are run on.

Learners come from ``tested_learners.py``, which reads the library's own list, and so do kernels; a
new space is one line here. A test that names the fixture ``learner``, ``learner_with_gram``,
``descending_learner``, ``spectral_learner``, ``space`` or ``kernel`` runs once for each member, on
a fresh copy.
"""

import gc
import importlib.util
import inspect
import os
import re
import signal
import sys
import zlib
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from sklearn.base import clone
from sklearn.svm import SVC

from kernelmetric.kernels import RBF, Delta, MinMax, Polynomial
from kernelmetric.kernels._registry import KERNELS as NAMED_KERNELS
from kernelmetric.spaces import KPCA, KernelTrick, Nystroem, RandomFeatures

sys.path.insert(0, str(Path(__file__).parent))  # for what test files share

from tested_learners import VARIANTS, descending, spectral, variants

# Workers of Dask are forked from one process that has imported all: each would take seconds.
if sys.platform == "linux":
    os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

# The same examples on every run, however busy the machine is, and whatever was imported before:
# Hypothesis would look for constants in all of our modules, which also takes seconds.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")
if importlib.util.find_spec("hypothesis.internal.conjecture.providers"):  # older ones look nowhere
    importlib.import_module("hypothesis.internal.conjecture.providers").is_local_module_file = (
        lambda path: False
    )

SPACES = [
    KPCA(),
    KPCA(6),
    KPCA(0.9),
    Nystroem(15, random_state=0),
    Nystroem(1000),
    RandomFeatures(200, n_components=10, random_state=0),
    KernelTrick(),
    KernelTrick(singular="ridge"),
]
KERNELS = [
    *(kind() for kind in NAMED_KERNELS if not kind.pairwise and kind not in (Delta, MinMax)),
    RBF(sigma=1.0),
    RBF() + 0.1 * Delta(),
    RBF(gamma=0.3) * Polynomial(),
]


@pytest.fixture(params=variants(), ids=repr)
def learner(request):
    return clone(request.param)


@pytest.fixture(
    params=[a for a in variants() if "gram" in inspect.signature(a.fit).parameters], ids=repr
)
def learner_with_gram(request):
    return clone(request.param)


@pytest.fixture(params=descending(), ids=repr)
def descending_learner(request):
    return clone(request.param)


@pytest.fixture(params=spectral(), ids=repr)
def spectral_learner(request):
    return clone(request.param)


@pytest.fixture(params=SPACES, ids=repr)
def space(request):
    return clone(request.param)


@pytest.fixture(params=KERNELS, ids=repr)
def kernel(request):
    return clone(request.param)


@pytest.fixture
def registry():
    """All members at once, for a test that combines them."""
    return SimpleNamespace(learners=descending() + spectral(), spaces=SPACES, kernels=KERNELS)


@pytest.fixture
def labelled():
    """30 points of three classes that overlap, so that no objective is zero."""
    rng = np.random.RandomState(0)
    y = np.arange(30) % 3
    X = rng.standard_normal((30, 4))
    X[:, 0] += y
    X[:, 1] -= y == 1
    return X, y


@pytest.fixture
def fresh(labelled):
    """Points the training never saw."""
    return np.random.RandomState(1).standard_normal((11, labelled[0].shape[1]))


@pytest.fixture
def deadline():
    """Make what would never end a failure: after half a minute of work, not of waiting."""
    if not hasattr(signal, "SIGPROF"):
        pytest.skip("this system cannot interrupt a test")

    def ring(number, frame):
        raise TimeoutError("still running after 30 seconds of processor time")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, 30)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """An empty scikit-learn data home, and nothing can be downloaded into it."""

    def refuse(request, *args, **kwargs):
        raise OSError("the network is off in this test")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit_learn_data"))
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)


@pytest.fixture
def invoke():
    """Call a command of click with arguments, and see its output and its exit code."""
    testing = pytest.importorskip("click.testing", reason="click comes with the extra `cli`")
    try:
        runner = testing.CliRunner(mix_stderr=False)  # click 8.1 mixes the two unless told
    except TypeError:
        runner = testing.CliRunner()
    return lambda command, *arguments: runner.invoke(command, [*map(str, arguments)])


@pytest.fixture
def few_reasons(monkeypatch):
    """Let a page explain fewer points: all pairs of 40 take half a second."""
    from kernelmetric.report import _page_reasons

    monkeypatch.setattr(_page_reasons, "COMPARED", 12)
    monkeypatch.setattr(_page_reasons, "EXPLAINED", 8)


@pytest.fixture
def run(invoke, few_reasons):
    """Run a command of the command line, and see its output and its exit code."""
    from kernelmetric import cli

    return lambda *arguments: invoke(cli.build_application(), *arguments)


@pytest.fixture(scope="session")
def forked_workers():
    """Let workers of Dask be forked from a process that has imported what they need."""
    utils = pytest.importorskip("distributed.utils")
    context = getattr(utils, "get_mp_context", lambda: utils.mp_context)()
    if context.get_start_method() == "forkserver":
        ours = ["compute.backends.dask", "kernelized", "learners", "spaces", "prediction"]
        others = ["distributed", "dask.array", "dask.dataframe", "pyarrow", "sklearn.neighbors"]
        context.set_forkserver_preload([*others, *(f"kernelmetric.{room}" for room in ours)])


@pytest.fixture
def untuned(monkeypatch):
    """The alternatives of the command line as they are: tuning takes longer than all else."""
    from kernelmetric.cli import _study
    from kernelmetric.evaluation import baselines

    def plain(y, **options):
        made = baselines(y, **options)
        return {**made, "k-NN, tuned": made["Euclidean"], "RBF-SVM, tuned": SVC()}

    monkeypatch.setattr(_study, "baselines", plain)


@pytest.fixture
def one_alternative(monkeypatch):
    """A single alternative on the command line, where others say no more."""
    from kernelmetric.cli import _study
    from kernelmetric.evaluation import baselines

    def plain(y, **options):
        return {"Euclidean": baselines(y, **options)["Euclidean"]}

    monkeypatch.setattr(_study, "baselines", plain)


# Of so many kinds of learners, a test takes every fourth.
MANY_KINDS = 6
_NAMES = {}  # by identity, beside the object itself: an estimator takes a millisecond to print


def _name(value):
    """How a value reads, without memory addresses: they differ between workers."""
    if id(value) not in _NAMES:
        _NAMES[id(value)] = value, re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return _NAMES[id(value)][1]


def pytest_make_parametrize_id(config, val, argname):
    """Name a test case by its value."""
    return _name(val)


def _stable(value):
    """How a parameter reads; a check of scikit-learn by its name."""
    call = getattr(value, "func", None)
    return f"{call.__name__} {value.keywords}" if hasattr(call, "__name__") else _name(value)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Look for no examples in the docstrings of tests: there are none, and it takes seconds."""
    found = yield
    return [module for module in found if not isinstance(module, DoctestModule)]


def pytest_collection():
    """Nothing that is collected is garbage: neither now, nor for any test that looks for some."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def _left_to_slow_runs(items):
    """Mark the cases that `every(n)` leaves out; by the sum of their places, all values are left.

    `every(n, first)` begins at another case: so one list of many tests is met as a whole.
    """
    seen = defaultdict(dict)
    for item in items:
        every = item.get_closest_marker("every")
        if every is not None:  # its cases are much alike, and take long
            n, first = (*every.args, 0)[:2]
            test, params = item.nodeid.partition("[")[0], item.callspec.params
            values = ((seen[test, name], _name(value)) for name, value in params.items())
            place = sum(known.setdefault(value, len(known)) for known, value in values)
            if (place - first) % n:
                item.add_marker(pytest.mark.slow)


def _by_kind(items):
    """The cases of each test with each kind of learner and the same other parameters."""
    kinds = {id(variant): kind for kind, variants in VARIANTS.items() for variant in variants}
    groups = defaultdict(list)
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "check" in params and item.get_closest_marker("xfail"):
            item.add_marker(pytest.mark.slow)
            continue
        for name, value in params.items():
            kind = value if isinstance(value, type) and value in VARIANTS else kinds.get(id(value))
            if name == "estimator" and "check" in params:
                kind = type(value)
            elif type(getattr(value, "estimator", None)) in VARIANTS:  # with what it learns from
                kind = type(value.estimator)
            if kind is not None:
                others = [_stable(other) for other in params.values() if other is not value]
                groups[item.nodeid.partition("[")[0], kind.__name__, *others].append(item)
                break
    return groups


@pytest.hookimpl(tryfirst=True)  # before what -m leaves out is left out
def pytest_collection_modifyitems(items):
    """Run every test on some kinds of learner, and every kind in some tests; on all in slow runs.

    A test of many kinds takes every fourth, and the next test perhaps begins at another one. Of the
    variants of a kind it takes one, and the next test perhaps another one: any kind and any variant
    meet many tests. So it is with the estimators of scikit-learn's checks, of which there may be
    more of a kind; those that are to fail are slow. Of these checks every run makes all with
    Kernelized, which is of each kind that scikit-learn knows, and some with each other estimator.
    """
    _left_to_slow_runs(items)
    groups = _by_kind(items)
    passed = {key[2:] for key in groups if key[1] == "Kernelized"}
    seen, others = defaultdict(dict), defaultdict(dict)
    for test, kind, *other in groups:
        seen[test].setdefault(kind, len(seen[test]))
        others[test].setdefault(tuple(other), len(others[test]))
    for key, members in groups.items():
        test, kind, *other = key
        first = zlib.crc32(" ".join(key).encode())
        if other and tuple(other) in passed:
            is_left = kind != "Kernelized" and first % 16 > 0
        else:
            is_plain = "Kernelized" not in seen[test] and not members[0].get_closest_marker("every")
            place = seen[test][kind] + others[test][tuple(other)] + zlib.crc32(test.encode())
            is_left = is_plain and len(seen[test]) >= MANY_KINDS and place % 4 > 0
        for place, item in enumerate(members):
            if is_left or (place - first) % min(len(members), 8):
                item.add_marker(pytest.mark.slow)
