"""The registries: every learner, space and kernel that the contracts are run on.

A new one is one line here. A test that names the fixture ``learner``, ``descending_learner``,
``space`` or ``kernel`` runs once for each member, on a fresh copy; ``any_learner`` adds those that
learn from pairs, which the kernel trick does not take.
"""

import inspect
import re
import signal
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import (
    DLA,
    DNE,
    ITML,
    KPCA,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    MCML,
    MLKR,
    MMC,
    NCA,
    RBF,
    RCA,
    Cosine,
    Delta,
    IdealizedKernel,
    KernelTrick,
    Laplacian,
    Linear,
    Nystroem,
    Polynomial,
    RandomFeatures,
)

# The same examples on every run, however busy the machine is.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")

DESCENDING = [
    NCA(),
    NCA(2),
    NCA(reg=0.1),
    LMNN(),
    LMNN(2),
    LMNN(reg=0.5),
    LMNN(solver="projected", tol=5e-3),
    LMCA(),
    LMCA(2),
    LMCA(2, reg=0.5),
]
SPECTRAL = [
    DNE(),
    DNE(2),
    DNE(reg=0.05),
    DLA(beta=2.0),
    DLA(2, n_neighbors=2, n_others=4, beta=0.3),
    LDA(),
    LDA(1, shrinkage=0.1),
    LFDA(),
    LFDA(2, n_neighbors=3, shrinkage=0.1),
    LPP(),
    LPP(2, n_neighbors=5, shrinkage=0.1),
    RCA(),
    RCA(2, shrinkage=0.1),
]
CONVEX = [MCML(), MCML(2, reg=0.5), ITML(), ITML(gamma=10.0)]
REGRESSING = [MLKR(), MLKR(2), MLKR(reg=0.1)]
EVERY = DESCENDING + SPECTRAL + CONVEX + REGRESSING
PAIRED = [
    IdealizedKernel(C=3.0, nu=0.8),
    IdealizedKernel(C=3.0, nu=0.8, psd="clip"),
    MMC(tol=1e-8),
    MMC(diagonal=True, tol=1e-8),
]
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
    RBF(),
    RBF(sigma=1.0),
    Laplacian(),
    Polynomial(),
    Linear(),
    Cosine(),
    RBF() + 0.1 * Delta(),
    RBF(gamma=0.3) * Polynomial(),
]


@pytest.fixture(params=EVERY, ids=repr)
def learner(request):
    return clone(request.param)


@pytest.fixture(params=EVERY + PAIRED, ids=repr)
def any_learner(request):
    return clone(request.param)


@pytest.fixture(
    params=[a for a in EVERY if "gram" in inspect.signature(a.fit).parameters], ids=repr
)
def learner_with_gram(request):
    return clone(request.param)


@pytest.fixture(params=DESCENDING + REGRESSING, ids=repr)
def descending_learner(request):
    return clone(request.param)


@pytest.fixture(params=SPECTRAL, ids=repr)
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
    return SimpleNamespace(learners=DESCENDING + SPECTRAL, spaces=SPACES, kernels=KERNELS)


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


def pytest_make_parametrize_id(config, val, argname):
    """Name a test case by its value, without memory addresses: they differ between workers."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(val))
