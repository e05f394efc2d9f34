"""Dask arrays in, a plain metric out: the numbers of a fit on one machine, and what goes wrong."""

import os
import pickle
import signal
import threading
import time
import warnings
from collections import Counter
from functools import partial
from itertools import pairwise
from operator import itemgetter
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import (
    LDA,
    LFDA,
    LMNN,
    MMC,
    NCA,
    RCA,
    Kernelized,
    MetricClassifier,
    TransductiveDistance,
)
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inputs._methods import CollectionsMixin
from kernelmetric.kernels import Columns
from kernelmetric.selection import LeaveOneOutRidge
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
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler"),  # until 2024
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
    "NCA": NCA(4, max_iter=2),
    "LMNN": LMNN(4, max_iter=2),
    "LDA": LDA(),
    "LFDA": LFDA(3),
    "RCA": RCA(),
    "Nystroem": Nystroem(40, random_state=0),
    "RandomFeatures": RandomFeatures(60, random_state=0),
    "aligned": Kernelized(LDA(), "aligned", Nystroem(40, random_state=0)),
    "TransductiveDistance": TransductiveDistance(2, 1e3, 10, graph="neighbors"),
}
SHARED = ("NCA", "LMNN", "TransductiveDistance")  # whose tiles are worth sharing
ORDINARY = (*SHARED, "RandomFeatures")  # the other fits are for slow runs


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


def settings():
    """What lets tiles of few points be shared, as those of many are."""
    from kernelmetric.compute import _threads
    from kernelmetric.compute.reductions import _impostors, _neighbors, _softmax

    return [
        (_threads, "_WORTH_THREADS", 1e6),
        (_impostors, "_WHOLE_ROWS", 0),
        (_neighbors, "_TILE_BYTES", 2**18),
        (_softmax, "_ROW_BLOCK_BYTES", 2**16),
    ]


def send_everything():
    """Let a worker share tiles however little they are."""
    from kernelmetric.compute.backends.dask import _tiles

    for module, name, value in settings():
        setattr(module, name, value)
    _tiles._SECONDS, _tiles._BYTES = 0.0, 1e30


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
def client(forked_workers):
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
def sums_in_the_groups_of_many_points(monkeypatch):
    for module, name, value in settings():
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="module")
def fits(client):
    """Fits on one worker and on three; and whether their tiles were shared."""
    return fits_on(client, (1, 3), ORDINARY)


def fits_on(client, numbers, names):
    found, shared = {}, {}
    for n_workers in numbers:
        scale(client, n_workers)
        for name in names:
            before = tiles_done(client)
            labels = chunked(labels_for(name), (150, None))
            found[name, n_workers] = quietly(clone(FITS[name]).fit, DX, labels)
            shared[name, n_workers] = tiles_done(client) - before
    return found, shared


@pytest.fixture(scope="module")
def workers(client, fits):
    return client


@pytest.mark.parametrize("name", ORDINARY)
def test_a_fit_on_one_or_three_workers_has_the_numbers_of_a_fit_here(fits, name):
    here = quietly(clone(FITS[name]).fit, X, labels_for(name))
    for n_workers in (1, 3):
        same(here, fits[0][name, n_workers])


def test_tiles_are_shared_where_there_is_somebody_to_share_with(fits):
    shared = fits[1]
    assert all(shared[name, 1] == 0 for name in ORDINARY)
    for name in SHARED:
        assert shared[name, 3] > 0


def test_every_worker_takes_tiles(workers):
    with distributed.get_task_stream(workers) as stream:
        quietly(clone(FITS["NCA"]).fit, DX, chunked(labels_for("NCA"), (150, None)))
    done = Counter(task["worker"] for task in stream.data if "tiles" in str(task["key"]))
    assert len(done) == 3  # how many each takes depends on who else uses its core


def when_tiles_ran():
    """Worker, number and time of tiles that take a while, in the order of their results."""
    from kernelmetric.compute.backends.dask._tiles import Cluster

    def nap(number):
        import time

        time.sleep(0.02)
        return distributed.get_worker().address, number, time.time()

    with distributed.worker_client() as client:
        cluster, found = Cluster(client, lambda: True, "naps"), []
        assert cluster.share(nap, range(60), 6e11, found.append)
        cluster.close()
    return found


def test_tiles_run_in_the_order_in_which_their_results_are_taken(workers):
    found = workers.submit(when_tiles_ran, pure=False).result()
    assert [number for _, number, _ in found] == list(range(60))
    inversions = [
        first > second
        for (here, _, first), (there, _, second) in pairwise(sorted(found, key=itemgetter(0, 1)))
        if here == there
    ]
    assert np.mean(inversions) < 0.2  # none, but for those that somebody idle took over


def who_took_tiles(slow):
    """How many tiles each worker took, of which one takes its time."""
    from kernelmetric.compute.backends.dask._tiles import Cluster

    def nap(number):
        import time

        address = distributed.get_worker().address
        time.sleep(0.1 if address == slow else 0.01)
        return address, number

    with distributed.worker_client() as client:
        cluster, found = Cluster(client, lambda: True, "naps"), []
        assert cluster.share(nap, range(120), 6e11, found.append)
        cluster.close()
    assert [number for _, number in found] == list(range(120))
    return Counter(address for address, _ in found)


def test_a_slow_worker_takes_fewer_tiles(workers):
    slow, *_ = addresses = sorted(workers.nthreads())
    took = workers.submit(who_took_tiles, slow, pure=False, workers=addresses[-1]).result()
    assert 0 < took[slow] < 30  # of 120: a third, were all alike


def test_a_fitted_metric_is_plain_and_nothing_is_left_on_the_cluster(workers):
    metric = quietly(NCA(2, max_iter=2).fit, DX, DY)
    data = pickle.dumps(metric)
    assert b"dask" not in data and b"distributed" not in data
    assert_allclose(pickle.loads(data).transform(X), metric.transform(X))
    assert isinstance(metric.components_, np.ndarray) and metric.n_features_in_ == 8
    nothing_left(workers)


@pytest.mark.parametrize("moment", [0.4])
@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(workers, moment):
    estimator = NCA(4, max_iter=25, tol=0)
    here = quietly(clone(estimator).fit, X, Y)
    pids = workers.run(os.getpid)
    victim = np.random.RandomState(int(100 * moment)).choice(sorted(pids.values()))
    killer = threading.Timer(moment, os.kill, (int(victim), signal.SIGKILL))
    killer.start()
    try:
        same(here, quietly(clone(estimator).fit, DX, DY))
    finally:
        killer.join()
        workers.wait_for_workers(2, timeout=120)  # the third one is being started
        workers.run(send_everything)
    nothing_left(workers)


@pytest.mark.slow
def test_a_worker_added_in_the_middle_of_a_fit_changes_nothing(workers):
    estimator = NCA(4, max_iter=25, tol=0)
    here = quietly(clone(estimator).fit, X, Y)
    there = len(workers.nthreads())
    added = threading.Timer(0.2, workers.cluster.scale, (there + 1,))
    added.start()
    try:
        same(here, quietly(clone(estimator).fit, DX, DY))
    finally:
        added.join()
        workers.wait_for_workers(there + 1, timeout=120)
        workers.run(send_everything)
    nothing_left(workers)


def without_end():
    """A learner whose fit never ends by itself: any descent ends where it can go no lower."""

    class Endless(CollectionsMixin, BaseEstimator):
        def fit(self, X, y=None):
            while True:
                nearest_neighbors(X, 3)

    return Endless()


def test_a_fit_that_is_interrupted_leaves_nothing_running(workers):
    metric = without_end()
    metric.components_ = before = np.eye(2)
    # A program that was started in the background may ignore the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            metric.fit(DX, DY)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert metric.components_ is before
    nothing_left(workers)


def nothing_left(client):
    """No future and no task of ours, a moment later: Dask lets go in its own time."""
    deadline = time.monotonic() + 60
    while client.futures or client.run_on_scheduler(_ours):
        assert time.monotonic() < deadline, (client.futures, client.run_on_scheduler(_ours))
        time.sleep(0.1)


def _ours(dask_scheduler):
    return [
        (str(key), task.state, str(task.who_wants), str(task.processing_on))
        for key, task in dask_scheduler.tasks.items()
        if "kernelmetric" in str(key)
    ]


def test_workers_that_stand_still_for_want_of_memory_are_told_of(workers, monkeypatch):
    from kernelmetric.compute.backends.dask import _driver

    monkeypatch.setattr(_driver, "_LOOK", 0.01)
    monkeypatch.setattr(_driver, "_PAUSED_LOOKS", 3)
    monkeypatch.setattr(_driver, "all_paused", lambda workers: True)
    with pytest.warns(UserWarning, match="All workers are paused, and NCA.fit waits for them"):
        there = NCA(2, max_iter=5, tol=1.0).fit(DX, DY)
    same(NCA(2, max_iter=5, tol=1.0).fit(X, Y), there)


@pytest.mark.parametrize(
    ("states", "still"),
    [([], False), (["paused", "running"], False), (["paused", "paused"], True)],
    ids=str,
)
def test_workers_stand_still_where_all_are_paused(states, still):
    from kernelmetric.compute.backends.dask._driver import all_paused

    assert all_paused([{"status": state} for state in states]) is still


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_told_of_in_a_sentence():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False, timeout=3) as client,
        client.as_current(),
    ):
        metric = without_end()
        gone = threading.Timer(1.0, cluster.sync, (cluster.scheduler.close,))
        gone.start()
        with pytest.raises(RuntimeError, match=r"scheduler .* went away"):
            metric.fit(DX, DY)
        assert not vars(metric)
        gone.join()


def test_points_on_the_cluster_of_another_client_are_told_of_in_a_sentence(workers):
    X, y = dask.persist(DX, DY)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False, timeout=3) as other,
    ):
        metric = LDA()
        with other.as_current(), pytest.raises(RuntimeError, match="its points lie on") as error:
            metric.fit(X, y)
        for known in (workers, other):
            assert known.scheduler.address in str(error.value)
        assert not hasattr(metric, "components_")
        same(metric.fit(X, y), LDA().fit(*dask.compute(X, y)))


def test_a_chunk_with_nan_is_refused_with_its_number(workers):
    bad = X.copy()
    bad[300, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in chunk 3 of X \(from row 221 on\)"):
        NCA(2).fit(chunked(bad), DY)
    metric = LDA().fit(X, Y)
    with pytest.raises(ValueError, match="chunk 3 of X"):
        metric.transform(chunked(bad)).compute()


def test_a_chunk_of_another_width_or_dtype_is_refused_with_its_number(workers):
    def narrow(block, block_info=None):
        return block[:, :5] if block_info[0]["chunk-location"][0] == 1 else block

    def words(block, block_info=None):
        return block.astype(str) if block_info[0]["chunk-location"][0] == 1 else block

    whole = da.from_array(X, chunks=(200, 8))
    for spoil, message in [(narrow, r"chunk 1 of X .* \(rows, 8\)"), (words, "chunk 1 .* dtype")]:
        with pytest.raises(ValueError, match=message):
            LDA().fit(whole.map_blocks(spoil, dtype=X.dtype, chunks=whole.chunks), Y)


@pytest.mark.parametrize("what", ["X", "y"])
def test_what_a_mask_of_a_chunk_hides_is_not_learned_from(workers, what):
    hidden = da.ma.masked_where(np.arange(len(X)) < 3, chunked(Y, (len(X), None)))
    given = (DX, hidden) if what == "y" else (da.ma.masked_greater(DX, 1.0), DY)
    with pytest.raises(ValueError, match=r"masked array with \d+ masked entries of \d+"):
        LDA().fit(*given)
    if what == "X":
        there = LDA().fit(DX, DY).transform(given[0])
        with pytest.raises(ValueError, match="masked array"):
            there.compute()


def test_chunks_of_columns_are_refused(workers):
    with pytest.raises(ValueError, match=r"chunks of whole rows.*rechunk\(\{1: -1\}\)"):
        LDA().fit(da.from_array(X, chunks=(200, 4)), Y)


def test_rows_of_unknown_number_and_empty_chunks_change_nothing(workers):
    kept = DX[DX[:, 0] > -1]
    labels = DY.rechunk(DX.chunks[0])[DX[:, 0] > -1]
    rows = X[:, 0] > -1
    same(LDA().fit(X[rows], Y[rows]), LDA().fit(kept, labels))
    assert_allclose(LDA().fit(X, Y).transform(kept), LDA().fit(X, Y).transform(X[rows]))


def test_data_without_room_on_a_worker_are_refused_before_anything_moves(workers):
    large = da.zeros((10**8, 50), chunks=(10**6, 50))
    with pytest.raises(MemoryError, match="the smallest one has"):
        LMNN().fit(large, da.zeros(10**8, chunks=10**6))


def test_warnings_of_a_fit_are_heard_here(workers):
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        NCA(2, max_iter=2, tol=0).fit(DX, DY)


def test_errors_of_a_fit_are_raised_here_and_leave_the_metric_as_it_was(workers):
    metric = LDA().fit(DX, DY)
    before = metric.components_
    with pytest.raises(ValueError, match="n_components=99"):
        metric.set_params(n_components=99).fit(DX, DY)
    assert metric.components_ is before


def test_transform_waits_and_knows_its_chunks_and_dtype(workers):
    for dtype in (np.float32, np.float64):
        metric = Kernelized(LDA(), "rbf", Nystroem(20, random_state=0)).fit(X.astype(dtype), Y)
        Z = metric.transform(DX.astype(dtype))
        assert Z.chunks == (DX.chunks[0], (2,)) and Z.dtype == dtype
        later = Z.compute()
        assert_allclose(later, metric.transform(X.astype(dtype)), rtol=1e-4, atol=1e-5)
        assert isinstance(later, np.ndarray)


def test_what_is_learned_later_does_not_change_what_waits(workers):
    metric = LDA().fit(X, Y)
    expected = metric.transform(X)
    Z = metric.transform(DX)
    metric.fit(X[:, ::-1] * np.arange(1, 9), Y)
    assert_allclose(Z, expected)


def test_fit_transform_fits_and_waits(workers):
    assert_allclose(LDA().fit_transform(DX, DY), LDA().fit_transform(X, Y), atol=1e-8)
    space = Nystroem(20, random_state=0)
    assert_allclose(space.fit_transform(DX), clone(space).fit_transform(X), atol=1e-8)


@pytest.mark.slow
def test_rows_of_a_fit_are_placed_as_if_they_were_left_out(workers):
    metric = Kernelized(LDA(), "rbf")
    w = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.0)
    for given in ({}, {"sample_weight": w}):
        expected = clone(metric).fit_transform(X, Y, **given)
        found = metric.fit_transform(DX, DY, **given)
        assert found.chunks[0] == DX.chunks[0]
        assert_allclose(found, expected, atol=1e-6)
        assert np.abs(expected - metric.transform(X)).max() > 1e-3


def test_predictions_are_lazy_and_a_score_is_a_number(workers):
    model = MetricClassifier(LDA(), cv=3).fit(DX, DY)
    here = MetricClassifier(LDA(), cv=3).fit(X, Y)
    assert_allclose(model.predict_proba(DX), here.predict_proba(X), atol=1e-8)
    predicted = model.predict(DX)
    assert isinstance(predicted, da.Array) and (predicted.compute() == here.predict(X)).all()
    with pytest.raises(TypeError, match="kneighbors"):
        model.kneighbors(DX)
    embedded = TransductiveDistance(2, 1e3, 10, graph="neighbors").fit(X, PARTLY)
    assert embedded.score(DX, DY) == embedded.score(X, Y)


def test_distances_of_pairs_of_points_are_lazy_and_rows_are_not_paired(workers):
    metric = LDA().fit(X, Y)
    rows = np.random.RandomState(0).randint(len(X), size=(60, 2))
    near = metric.pair_distance(rows, X)
    ends = da.from_array(X[rows], chunks=(25, 2, 8))
    assert_allclose(metric.pair_distance(ends), near)
    assert_allclose(metric.pair_score(ends), -near)
    Z = metric.transform(DX)
    assert_allclose(np.linalg.norm(Z[rows[:, 0]] - Z[rows[:, 1]], axis=1), near)
    for use in (metric.pairwise_distances, metric.pairwise_kernels):
        with pytest.raises(TypeError, match=r"expected rows in memory: .* transform\(X\)"):
            use(DX)
    with pytest.raises(TypeError, match="Got a Dask collection for pair_distance"):
        metric.pair_distance(rows, DX)


def test_pairs_may_be_dask_arrays_of_row_numbers(workers):
    rows = np.random.RandomState(0).randint(len(X), size=(80, 2))
    rows = rows[rows[:, 0] != rows[:, 1]]
    alike = Y[rows[:, 0]] == Y[rows[:, 1]]
    similar, dissimilar = rows[alike], rows[~alike]
    here = quietly(lambda: MMC(max_iter=3).fit(X, similar=similar, dissimilar=dissimilar))
    pairs = {
        "similar": da.from_array(similar, chunks=(10, 2)),
        "dissimilar": da.from_array(dissimilar, chunks=(30, 2)),
    }
    same(here, quietly(lambda: MMC(max_iter=3).fit(DX, **pairs)))


def test_data_frames_keep_their_names_and_tables_their_columns(workers):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    parts = dd.from_pandas(frame, npartitions=3)
    there, here = LDA().fit(parts, dd.from_pandas(pd.Series(Y), npartitions=3)), LDA().fit(frame, Y)
    same(here, there)
    assert list(there.feature_names_in_) == list("abcdefgh")
    assert_allclose(there.transform(parts), here.transform(frame), atol=1e-8)
    table = frame[["a", "b"]].assign(colour=np.where(Y == 1, "red", "blue"), c=frame["c"])
    table.loc[5, "c"] = np.nan
    metric = Kernelized(LDA(), Columns(), Nystroem(30, random_state=0))
    here = clone(metric).fit(table, Y)
    parts = dd.from_pandas(table, npartitions=3)
    there = clone(metric).fit(parts, Y)
    same(here, there)
    assert_allclose(there.transform(parts), here.transform(table), atol=1e-8)


@pytest.fixture
def no_room(monkeypatch):
    """Workers so small that no data fit one."""
    from kernelmetric.compute.backends.dask import _driver

    monkeypatch.setattr(_driver, "_FEW_BYTES", 0)
    monkeypatch.setattr(_driver, "least_memory", lambda workers: 1000)


@pytest.mark.parametrize(
    "learner",
    [
        LDA(1, shrinkage=0.3),
        RCA(3),
        *(pytest.param(whole, marks=pytest.mark.slow) for whole in (LDA(), RCA())),
    ],
    ids=repr,
)
@pytest.mark.every(2)
def test_scatter_is_added_up_where_the_rows_are(workers, no_room, learner):
    moved, labels = X @ np.diag(np.arange(1, 9)) + 50, Y + 3
    for units in (np.ones(8), 10.0 ** np.arange(-1, 3, 0.5)):
        there = clone(learner).fit(chunked(moved * units), labels)
        same(clone(learner).fit(moved * units, labels), there)
    wanted = np.where(np.arange(500) % 3, labels, -1)
    if isinstance(learner, RCA):
        there = clone(learner).fit(chunked(moved), chunks=wanted)
        same(clone(learner).fit(moved, chunks=wanted), there)
    with pytest.raises(ValueError, match="vary in less than 9 directions"):
        clone(learner).fit(chunked(np.c_[moved, moved[:, 0]], (UNEVEN[0], 9)), labels)


@pytest.mark.parametrize(
    "landmarks",
    [
        "kmeans",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("uniform", "rpcholesky")),
        "features",
    ],
)
def test_a_space_goes_through_the_rows_and_ends_as_one_that_has_them(workers, no_room, landmarks):
    space = Nystroem(25, landmarks=landmarks, random_state=0)
    if landmarks == "features":
        space = RandomFeatures(40, random_state=0)
    there = clone(space).fit(DX)
    same(clone(space).fit(X), there)
    kept = DX[DX[:, 0] > -1]  # of unknown length
    same(clone(space).fit(X[X[:, 0] > -1]), clone(space).fit(kept))


def test_a_kernel_metric_adds_up_in_its_coordinates_where_the_rows_are(workers, no_room):
    metric = Kernelized(LDA(), "rbf", Nystroem(12, random_state=0))
    there = clone(metric).fit(DX, DY)
    same(clone(metric).fit(X, Y), there)


@pytest.mark.parametrize(
    "kernel", [*(pytest.param(k, marks=pytest.mark.slow) for k in ("rbf", "aligned")), "auto"]
)
@pytest.mark.slow
def test_batches_are_drawn_where_no_worker_has_room(workers, no_room, kernel):
    learner = NCA(2, solver="minibatch", max_iter=1, batch_size=250, random_state=0)
    metric = Kernelized(learner, kernel, Nystroem(25, random_state=0))
    there = quietly(clone(metric).fit, DX, DY)
    here = quietly(clone(metric).fit, X, Y)
    same(here.space_, there.space_)
    Z = there.transform(DX).compute()
    assert Z.shape == (500, 2)
    own = (Y[there.pairwise_distances(X).argsort(axis=1)[:, 1]] == Y).mean()
    guessed = np.mean(Y[:-1] == Y[1:])
    assert own > guessed + 0.1  # the share of points whose nearest is of their class
    assert own > (Y[here.pairwise_distances(X).argsort(axis=1)[:, 1]] == Y).mean() - 0.1


@pytest.mark.slow
def test_rows_elsewhere_choose_the_kernel_of_rows_that_are_here():
    from kernelmetric.compute.backends.dask._chunks import pieces_of
    from kernelmetric.compute.backends.dask._rows import Rows

    def run(tasks):
        return dask.compute(*tasks, scheduler="synchronous")

    there = LeaveOneOutRidge().bind(Rows(pieces_of(DX, "X"), run, None), Y)
    here = LeaveOneOutRidge().bind(X, Y)
    assert_allclose(there.scales, here.scales, rtol=1e-12)
    assert (there.ridge_, there.kernel.gamma) == (here.ridge_, here.kernel.gamma)


@pytest.mark.every(2)
@pytest.mark.parametrize("units", [(1, 1, 1, 1), (1, 100, 1, 1000)], ids=["one unit", "units"])
def test_kernels_of_mapped_rows_are_chosen_where_no_worker_has_room(workers, no_room, units):
    rng = np.random.RandomState(0)
    Z = rng.standard_normal((300, 4))
    codes = (Z[:, 0] + Z[:, 1] > 0).astype(int)
    Z = Z * units
    learner = NCA(2, solver="minibatch", max_iter=1, batch_size=100, random_state=0)
    metric = Kernelized(learner, "auto", Nystroem(25, random_state=0))
    there = quietly(clone(metric).fit, da.from_array(Z, chunks=(100, 4)), da.from_array(codes))
    here = quietly(clone(metric).fit, Z, codes)
    assert np.ndim(here.kernel_.scales) == 2
    assert_allclose(there.kernel_.scales, here.kernel_.scales, rtol=1e-9)
    assert there.kernel_.kernel.gamma == pytest.approx(here.kernel_.kernel.gamma)
    assert_allclose(there.space_.eigenvalues_, here.space_.eigenvalues_, rtol=1e-6)


def test_rows_elsewhere_are_never_gathered_silently(workers, no_room):
    with pytest.raises(MemoryError, match="smallest one has"):
        LMNN().fit(DX, DY)
    from kernelmetric.compute.backends.dask._chunks import Pieces
    from kernelmetric.compute.backends.dask._rows import Rows

    rows = Rows(Pieces([], (), (3,), np.dtype(float)), None, None)
    for gather in (np.asarray, list, lambda rows: rows + np.ones(3)):
        with pytest.raises((MemoryError, TypeError)):
            gather(rows)


def test_without_a_client_the_work_is_done_here_and_that_is_said(monkeypatch):
    from kernelmetric.compute.backends.dask import _driver

    monkeypatch.setattr(_driver, "current_client", lambda: None)
    with dask.config.set(scheduler="sync"), pytest.warns(UserWarning, match="without a distr"):
        there = LDA().fit(DX, DY)
    same(LDA().fit(X, Y), there)


def test_views_arrive_as_they_left():
    from kernelmetric.compute.backends.dask._pickles import Carried, Packer, loads

    base = np.arange(40_000.0).reshape(200, 200)
    columns = np.asfortranarray(base)
    things = [base[:150, 3:], base.T, base[::2, ::-1], columns[50:], columns, base[0], "text"]
    packer = Packer()
    data = packer.packed(things)
    assert len(packer.arrays) == 2 and len(data) < 10_000
    arrived = loads(data, {key: Carried(array.copy("A")) for key, array in packer.arrays.items()})
    for sent, found in zip(things, arrived, strict=True):
        assert np.array_equal(sent, found)
        assert getattr(sent, "strides", None) == getattr(found, "strides", None)


def test_an_array_that_arrives_at_an_odd_place_is_moved_once():
    from distributed.sizeof import sizeof

    from kernelmetric.compute.backends.dask._pickles import Carried, Packer, loads

    array = np.asfortranarray(np.arange(20_000.0).reshape(100, 200))
    packer, buffers = Packer(), []
    data = [packer.packed(array[:, i:]) for i in (0, 1)]
    ((key, root),) = packer.arrays.items()
    sent = pickle.dumps(Carried(root), protocol=5, buffer_callback=buffers.append)
    message = bytearray(b"-" + buffers[0].raw())
    carried = pickle.loads(sent, buffers=[memoryview(message)[1:]])
    assert carried.array.flags.aligned and sizeof(carried) >= array.nbytes
    found = [loads(some, {key: carried}) for some in data]
    assert all(np.shares_memory(part, carried.array) for part in found)
    assert np.array_equal(found[1], array[:, 1:])


@pytest.mark.parametrize("n_items", [2, 5, 16, 18, 59, 180, 2188])
@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("seconds", [1.0, 1000.0])
def test_shares_have_as_many_items_and_are_neither_many_nor_few(n_items, n_threads, seconds):
    from kernelmetric.compute.backends.dask._tiles import dealt

    shares = dealt(range(n_items), n_threads, seconds)
    assert [item for share in shares for item in share] == list(range(n_items)) and all(shares)
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert len(shares) == min(n_items, 16 * n_threads if seconds > 2.0 else max(5, n_threads))


def on_no_cluster(**parts):
    """The cluster of a fit whose client keeps what it is given; and what that is."""
    from kernelmetric.compute.backends.dask._tiles import Cluster

    sent = []

    def scatter(copies, hash):
        sent.extend(copy.array for copy in copies)
        return [object() for _ in copies]

    return Cluster(SimpleNamespace(scatter=scatter, **parts), lambda: True, "fit"), sent


def test_an_array_that_may_be_written_into_is_sent_each_time():
    from kernelmetric.compute.backends.dask._pickles import Packer

    cluster, sent = on_no_cluster()
    array = np.zeros((300, 300))
    for number in (0.0, 1.0):
        array[3, 4] = number
        packer = Packer()
        packer.packed(array[1:])
        assert list(cluster._futures(packer)) == [id(array)]
    assert [copy[3, 4] for copy in sent] == [0.0, 1.0]
    assert not cluster._sent


def test_an_array_that_its_maker_keeps_is_sent_once():
    from kernelmetric.compute.backends.dask._pickles import Packer
    from kernelmetric.compute.reductions import read_only

    cluster, sent = on_no_cluster()
    array = read_only(np.zeros((300, 300)))
    with pytest.raises(ValueError, match="read-only"):
        array[3, 4] = 1.0
    packer = Packer()
    packer.packed(array)
    assert cluster._futures(packer) == cluster._futures(packer) and len(sent) == 1
    array.flags.writeable = True
    cluster._futures(packer)
    assert len(sent) == 2  # somebody may have written into it
    del array, packer
    assert not cluster._sent
    view = np.zeros((300, 300))[:]
    assert read_only(view).flags.writeable  # its memory is another's


@pytest.mark.parametrize("keep", [False, True])
def test_a_large_array_goes_to_workers_for_little_work_only_if_it_is_kept(keep, monkeypatch):
    from kernelmetric.compute.reductions import read_only

    array = np.zeros(12_500_000)
    cluster, sent = on_no_cluster(
        submit=lambda *task, **options: None, nthreads=lambda: {"one": 1, "two": 1}
    )
    monkeypatch.setattr(cluster, "_take", lambda tasks, take: None)
    work = partial(np.add, read_only(array) if keep else array)
    assert cluster.share(work, [0.0, 1.0], 4e9, print) is keep
    assert len(sent) == keep


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 3, 2])
def test_every_fit_on_some_workers_has_the_numbers_of_a_fit_here(client, n_workers):
    found, shared = fits_on(client, (n_workers,), FITS)
    for name, estimator in FITS.items():
        same(quietly(clone(estimator).fit, X, labels_for(name)), found[name, n_workers])
    for name in SHARED:
        assert (shared[name, n_workers] > 0) == (n_workers > 1)


# --- the parts, in this process -----------------------------------------------------------------


class Done:
    """A future that is done."""

    def __init__(self, task):
        self._task = task

    def result(self):
        return self._task()


@pytest.fixture
def here(monkeypatch):
    """The cluster of a fit, all of whose tasks run in this process, and what was submitted."""
    from kernelmetric.compute.backends.dask import _tiles

    submitted = []

    def submit(task, *args, **options):
        submitted.append(options)
        return Done(partial(task, *args))

    def compute(tasks):
        return [Done(partial(task.compute, scheduler="sync")) for task in tasks]

    client = SimpleNamespace(
        scatter=lambda copies, hash: copies,
        submit=submit,
        compute=compute,
        nthreads=lambda: {"one": 2, "two": 2},
    )
    monkeypatch.setattr(_tiles, "wait", lambda future, timeout: None)
    cluster = _tiles.Cluster(client, lambda: True, "fit-17")
    cluster.submitted = submitted
    return cluster


def rows_of(cluster, chunks=(5, 0, 7, 3, 1, 2, 4), names=None, width=4):
    from kernelmetric.compute.backends.dask._chunks import Pieces

    A = np.random.RandomState(3).standard_normal((sum(chunks), width))
    parts = np.split(A, np.cumsum(chunks)[:-1])
    pieces = Pieces([dask.delayed(part) for part in parts], chunks, (width,), A.dtype)
    return A, cluster.rows(pieces, names)


def test_rows_elsewhere_look_like_an_array(here):
    A, rows = rows_of(here, names=list("abcd"))
    assert (len(rows), rows.shape, rows.ndim, rows.dtype) == (22, (22, 4), 2, A.dtype)
    assert rows.names.tolist() == list("abcd")
    assert rows_of(here, names=[1, 2, 3, 4])[1].names is None
    chosen = np.array([21, 0, 5, 5, 11, 4])
    for key in (chosen, slice(3, 9), slice(None, None, 5)):
        np.testing.assert_array_equal(rows[key], A[key])
        np.testing.assert_array_equal(rows[key, :], A[key])
    for use in (np.asarray, list, lambda rows: np.ones(22) @ rows):
        with pytest.raises((MemoryError, TypeError)):
            use(rows)
    with pytest.raises(MemoryError, match="Got 22 points on many machines"):
        np.asarray(rows)


@pytest.mark.parametrize("most", [None, 2])
def test_sums_over_rows_elsewhere_are_those_over_all(here, most):
    A, rows = rows_of(here)
    large = np.arange(22.0 * 500).reshape(22, 500)  # travels by itself
    seen = []

    def work(block):
        seen.append((block.start, block.stop))
        Z = rows[block, :]
        assert len(Z) == block.stop - block.start
        return Z.T @ large[block], float(np.sum(Z**2))

    (found,) = here.sum_rows(work, 8.0, most)
    np.testing.assert_allclose(found[0], A.T @ large)
    assert found[1] == pytest.approx(np.sum(A**2))
    assert here.sum_rows(lambda block: float(np.sum(A[block])), 8.0, None) is None  # nothing there


def test_a_single_chunk_is_its_own_sum(here):
    A, rows = rows_of(here, chunks=(9,))
    ((total,),) = here.sum_rows(lambda block: (np.sum(rows[block, :], axis=0),), 8.0, None)
    np.testing.assert_allclose(total, A.sum(axis=0))


def test_mapped_rows_are_computed_where_they_are_asked_for(here):
    A, rows = rows_of(here)
    B = np.random.RandomState(4).standard_normal((4, 3))
    mapped = here.map_rows(lambda block: rows[block, :] @ B)
    assert (len(mapped), mapped.shape, mapped.dtype, mapped.names) == (22, (22, 3), A.dtype, None)
    np.testing.assert_allclose(mapped[np.array([20, 3, 3, 7])], (A @ B)[[20, 3, 3, 7]])
    np.testing.assert_allclose(mapped[4:15, :], (A @ B)[4:15])
    # Of mapped rows, too, sums are added up where the rows are.
    ((gram,),) = here.sum_rows(lambda block: (mapped[block, :].T @ mapped[block],), 8.0, 3)
    np.testing.assert_allclose(gram, (A @ B).T @ (A @ B))
    again = here.map_rows(lambda block: 2.0 * mapped[block, :])
    np.testing.assert_allclose(again[[1, 0]], 2.0 * (A @ B)[[1, 0]])
    assert here.map_rows(lambda block: A[block]) is None


def test_one_row_can_be_mapped_too(here):
    A, rows = rows_of(here, chunks=(1,))
    mapped = here.map_rows(lambda block: rows[block, :2])
    assert mapped.shape == (1, 4)  # a window has all columns of its rows
    np.testing.assert_array_equal(mapped[:1], A)


def test_what_looks_at_rows_elsewhere_must_travel(here):
    _, rows = rows_of(here)
    lock = threading.Lock()

    def work(block):
        with lock:
            return float(np.sum(rows[block, :]))

    with pytest.raises(TypeError, match="lock"):
        here.sum_rows(lambda block, rows=rows: (rows, work(block)), 8.0, None)
    lonely = here.sum_rows(lambda block, lock=lock: lock, 8.0, None)
    assert lonely is None  # it looks at nothing elsewhere: it stays


def test_tiles_are_shared_in_their_order_and_little_work_stays(here):
    taken = []
    assert here.share(np.square, [1.0, 2.0, 3.0], 1e11, taken.append)
    assert taken == [1.0, 4.0, 9.0]
    assert [options["priority"] for options in here.submitted] == [0, -1, -2]
    assert all(options["key"].startswith("kernelmetric-tiles-17-") for options in here.submitted)
    assert len({options["key"] for options in here.submitted}) == 3
    assert not here.share(np.square, [1.0], 1e11, taken.append)  # nobody to share with
    assert not here.share(np.square, [1.0, 2.0], 5e8, taken.append)  # 0.05 s
    assert not here.share(np.square, [1.0, 2.0], 6e8, taken.append)  # three quarters of it saved
    assert here.share(np.square, [1.0, 2.0], 7e8, taken.append)
    assert not here.share(threading.Lock().acquire, [1.0, 2.0], 1e11, taken.append)
    assert taken == [1.0, 4.0, 9.0, 1.0, 4.0]
    _, rows = rows_of(here)
    assert not here.share(partial(map, rows), [1.0, 2.0], 1e11, taken.append)


def test_a_fit_that_nobody_wants_is_abandoned(here, monkeypatch):
    from kernelmetric.compute.backends.dask import _tiles

    here._wanted = lambda: False
    with pytest.raises(_tiles.AbandonedError):
        here.share(np.square, [1.0], 0.0, print)

    def late(future, timeout):
        raise TimeoutError

    monkeypatch.setattr(_tiles, "wait", late)
    futures = [Done(lambda: 1)]
    with pytest.raises(_tiles.AbandonedError):
        here._take(futures, print)
    assert not futures  # nothing is held


def test_tasks_of_a_fit_are_forgotten_and_no_others():
    from kernelmetric.compute.backends.dask._tiles import forget

    released = []
    owners = [SimpleNamespace(client_key="me")]
    tasks = {
        "fit-1-a": SimpleNamespace(who_wants=owners),
        "fit-1-b": SimpleNamespace(who_wants=None),
        "fit-2-a": SimpleNamespace(who_wants=owners),
    }
    release = lambda keys, client: released.append((keys, client))  # noqa: E731
    forget("fit-1", SimpleNamespace(tasks=tasks, client_releases_keys=release))
    assert released == [(["fit-1-a"], "me")]


@pytest.mark.parametrize(
    ("when", "needed", "found"),
    [
        (None, 0.89, False),
        (None, 0.91, MemoryError),
        ("at need", 0.89, False),
        ("at need", 0.91, True),
        ("always", 0.5, False),  # so few bytes are added up as fast by one worker
    ],
)
def test_a_fit_goes_through_the_rows_where_one_worker_has_no_room(monkeypatch, when, needed, found):
    from kernelmetric.compute.backends.dask import _driver
    from kernelmetric.compute.backends.dask._chunks import Pieces

    least = 1e9
    workers = [{"memory_limit": least}, {"memory_limit": 2 * least}, {"memory_limit": 0}]
    monkeypatch.setattr(_driver, "workers_of", lambda client: workers)
    points = Pieces([], (1000, 2000), (10,), np.dtype(np.float32))
    held = 2.0 * 4 * 3000 * 10
    estimator = SimpleNamespace(
        _streams=lambda: when, estimate_memory=lambda n, d: needed * least - held
    )
    if found is MemoryError:
        with pytest.raises(MemoryError, match="on 3000 points with 10 features"):
            _driver._streams(None, estimator, points)
    else:
        assert _driver._streams(None, estimator, points) is found
    words = points._replace(dtype=np.dtype(object))  # of which no sums are
    if needed > 0.9:
        with pytest.raises(MemoryError):
            _driver._streams(None, estimator, words)
    if when == "always":
        for rows, goes in ((1_677_721, False), (1_677_722, True)):  # 2**26 bytes
            many = points._replace(lengths=(rows,))
            assert _driver._streams(None, estimator, many) is goes


def test_the_least_memory_is_that_of_the_smallest_worker_with_a_limit():
    from kernelmetric.compute.backends.dask._driver import least_memory

    assert least_memory([{"memory_limit": 5}, {"memory_limit": 3}, {"memory_limit": None}]) == 3.0
    assert least_memory([{}, {"memory_limit": 0}]) == np.inf
    assert least_memory([]) == np.inf


def test_batches_drawn_from_rows_elsewhere_leave_a_metric_with_their_names(here):
    rng = np.random.RandomState(0)
    A, rows = rows_of(here, chunks=(20, 16), names=list("abcd"))
    found = NCA(2, solver="minibatch", batch_size=10, max_iter=2, random_state=0)
    quietly(found.fit, rows, rng.permutation(36) % 2)
    assert found.feature_names_in_.tolist() == list("abcd")
    assert found.n_features_in_ == 4
    assert found.components_.shape == (2, 4)
    assert np.all(np.isfinite(A @ found.components_.T))


# --- chunks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(2,), (2, 3), (0, 2), (2, 0, 3), (1, 2, 3), (0, 0)])
@pytest.mark.parametrize("kind", ["array", "sparse", "frame"])
def test_pieces_together_are_all_of_their_rows(lengths, kind):
    from kernelmetric.compute.backends.dask._chunks import together

    A = np.arange(2.0 * sum(lengths)).reshape(-1, 2)
    make = {"array": np.array, "sparse": sparse.csr_array, "frame": pd.DataFrame}[kind]
    found = together([make(part) for part in np.split(A, np.cumsum(lengths)[:-1])])
    np.testing.assert_array_equal(found.toarray() if kind == "sparse" else np.asarray(found), A)
    if kind == "frame":
        assert list(found.index) == list(range(len(A)))


def test_chunks_are_checked_by_shape_dtype_and_numbers():
    from kernelmetric.compute.backends.dask._chunks import _checked_chunk

    good = [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(_checked_chunk(good, 0, "X", 0.0, (2,), float), good)
    where = r"chunk 3 of X \(from row 7 on\)"
    for part, said in (
        ([[1.0, np.nan]], "Got NaN or infinity in " + where),
        (sparse.csr_array([[np.inf, 0.0]]), "Got NaN or infinity in " + where),
        ([[1.0]], where + r" of shape \(1, 1\), but expected \(rows, 2\)"),
        ([["a", "b"]], where + " of dtype <U1, but expected float64"),
    ):
        with pytest.raises(ValueError, match=said):
            _checked_chunk(part, 3, "X", 7.0, (2,), float)
    with pytest.raises(ValueError, match="infinity in chunk 3 of X: Input X"):  # of unknown place
        _checked_chunk([[np.inf, 0.0]], 3, "X", np.nan, (2,), float)
    large = np.full((2, 2), 1e308)  # whose sum is infinite, and none of them
    assert _checked_chunk(large, 0, "X", 0.0, (2,), float) is large
    words = np.array([["a", "b"]], dtype=object)
    assert _checked_chunk(words, 0, "X", 0.0, (2,), object) is words


def test_partitions_have_the_columns_of_the_whole():
    from kernelmetric.compute.backends.dask._chunks import _checked_partition

    frame = pd.DataFrame({"a": [1.0], "b": [2.0]}, index=[5])
    assert _checked_partition(frame, 2, "X", ["a", "b"]) is frame
    with pytest.raises(ValueError, match=r"partition 2 of X with the columns .*'a', 'b'.*'b', 'a'"):
        _checked_partition(frame, 2, "X", ["b", "a"])
    assert list(_checked_partition(frame["a"], 2, "y", None).index) == [0]


@pytest.mark.every(3)
@pytest.mark.parametrize("n_chunks", [1, 2, 15, 16, 17, 40])
def test_sums_of_any_number_of_chunks_are_those_of_all(here, n_chunks):
    A, rows = rows_of(here, chunks=(1,) * n_chunks)
    found = here.sum_rows(lambda block: rows[block, :].sum(axis=0), 8.0, None)
    np.testing.assert_allclose(found[0], A.sum(axis=0))
