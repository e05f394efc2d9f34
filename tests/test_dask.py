"""Dask arrays in, a plain metric out: the numbers of a fit on one machine, and what goes wrong."""

import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import (
    LDA,
    LFDA,
    LMNN,
    NCA,
    RCA,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    MMC,
    TransductiveDistance,
)
from kernelmetric.kernels import RBF
from kernelmetric.spaces import Nystroem, RandomFeatures

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

# What Dask and its parts say of themselves, and what is no matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*Port 8787.*"),
    pytest.mark.filterwarnings("ignore:.*large graph.*"),
]


def points(n=500, d=8, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int) + (X[:, 2] > 0.3)
    return X, y


X, Y = points()
UNEVEN = ((220, 1, 0, 180, 99), 8)
PARTLY = np.where(np.arange(len(Y)) % 5 == 0, Y, -1)


def chunked(values, chunks=UNEVEN):
    return da.from_array(values, chunks=chunks if values.ndim == 2 else chunks[0])


DX, DY = chunked(X), chunked(Y, (150, None))

FITS = {
    "NCA": NCA(4, max_iter=4),
    "NCA truncated": NCA(3, solver="truncated", max_iter=4),
    "LMNN": LMNN(4, max_iter=3),
    "LDA": LDA(),
    "LFDA": LFDA(3),
    "RCA": RCA(),
    "Nystroem": Nystroem(40, random_state=0),
    "RandomFeatures": RandomFeatures(60, random_state=0),
    "aligned": Kernelized(LDA(), "aligned", Nystroem(40, random_state=0)),
    "TransductiveDistance": TransductiveDistance(2),
}


def learned(estimator):
    """All numbers that an estimator ends with."""
    found = {}
    for part in (estimator, *(getattr(estimator, name, None) for name in ("space_", "learner_"))):
        for name, value in getattr(part, "__dict__", {}).items():
            if name.endswith("_") and isinstance(value, np.ndarray | float | int | list):
                found[type(part).__name__, name] = np.asarray(value)
    return found


def same(estimator, other, rtol=1e-8):
    mine, others = learned(estimator), learned(other)
    assert mine.keys() == others.keys()
    for name, value in mine.items():
        if value.dtype.kind in "fiu":
            scale = np.max(np.abs(value), initial=1e-300)
            assert_allclose(others[name], value, rtol=rtol, atol=rtol * scale, err_msg=str(name))


def labels_for(name):
    return PARTLY if name == "TransductiveDistance" else Y


def quietly(fit, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(*args)


def send_everything():
    """Let a process share tiles however little they are: points of a test are few."""
    from kernelmetric.compute import _threads
    from kernelmetric.compute.backends.dask import _tiles
    from kernelmetric.compute.reductions import _impostors

    _tiles._SECONDS, _tiles._BYTES = 0.0, 1e30
    _threads._WORTH_THREADS, _impostors._WHOLE_ROWS = 1e6, 0


def tiles_done(client):
    def count(dask_scheduler):
        prefix = dask_scheduler.task_prefixes.get("kernelmetric-tiles")
        return 0 if prefix is None else prefix.state_counts["memory"]

    return client.run_on_scheduler(count)


def scale(client, n_workers):
    client.cluster.scale(n_workers)
    client.wait_for_workers(n_workers, timeout=120)
    while len(client.nthreads()) != n_workers:
        time.sleep(0.05)
    client.run(send_everything)


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit="2GB",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def sums_in_the_groups_of_large_data(monkeypatch):
    from kernelmetric.compute import _threads
    from kernelmetric.compute.reductions import _impostors

    monkeypatch.setattr(_threads, "_WORTH_THREADS", 1e6)
    monkeypatch.setattr(_impostors, "_WHOLE_ROWS", 0)


@pytest.fixture(scope="module")
def fits(client):
    """Every fit on one worker, on two and on three; and whether its tiles were shared."""
    found, shared = {}, {}
    for n_workers in (1, 2, 3):
        scale(client, n_workers)
        for name, estimator in FITS.items():
            before = tiles_done(client)
            labels = chunked(labels_for(name), (150, None))
            found[name, n_workers] = quietly(clone(estimator).fit, DX, labels)
            shared[name, n_workers] = tiles_done(client) - before
    return found, shared


@pytest.fixture(scope="module")
def workers(client, fits):
    return client


@pytest.mark.parametrize("name", FITS)
def test_a_fit_on_one_two_or_three_workers_has_the_numbers_of_a_fit_here(fits, name):
    here = quietly(clone(FITS[name]).fit, X, labels_for(name))
    for n_workers in (1, 2, 3):
        same(here, fits[0][name, n_workers])


def test_tiles_are_shared_where_there_is_somebody_to_share_with(fits):
    shared = fits[1]
    assert all(shared[name, 1] == 0 for name in FITS)
    for name in ("NCA", "LMNN", "NCA truncated"):
        assert shared[name, 2] > 0 and shared[name, 3] > 0


def test_a_fitted_metric_is_plain_and_nothing_is_left_on_the_cluster(workers):
    metric = quietly(NCA(2, max_iter=2).fit, DX, DY)
    data = pickle.dumps(metric)
    assert b"dask" not in data and b"distributed" not in data
    assert_allclose(pickle.loads(data).transform(X), metric.transform(X))
    assert not workers.futures
    assert isinstance(metric.components_, np.ndarray) and metric.n_features_in_ == 8
    tasks = workers.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
    assert not [key for key in tasks if "kernelmetric" in str(key)]
