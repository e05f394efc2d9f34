"""Searches and comparisons through joblib on the workers of a Dask cluster."""

import itertools
import logging

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

pytest.importorskip("distributed", reason="distributed comes with the extra `dask`")

from dask.distributed import Client, Future, LocalCluster

from kernelmetric import DNE, RBF, RCA, Pairs, cross_validate_pairs
from kernelmetric.kernelized import KernelizedCV

pytestmark = pytest.mark.slow  # a cluster of its own
WIDTHS = [RBF(sigma=sigma) for sigma in (2.0, 1.0, 0.3)]


@pytest.fixture(scope="module")
def client(forked_workers):
    """Two processes of one thread each; on a busy machine they may take their time to come."""
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster, timeout="120s") as client:
        client.wait_for_workers(2, timeout=120)
        yield client


DRAWS = itertools.count(3)


@pytest.fixture
def points():
    """Other points for every test.

    joblib names what it scatters by its contents. Points scattered again while the workers still
    forget them are lost now and then: "cancelled for reason: lost dependencies".
    """
    rng = np.random.RandomState(next(DRAWS))
    y = np.arange(300) % 3
    X = rng.standard_normal((300, 40))
    X[:, 0] += 2.0 * y
    return X, y


@pytest.fixture
def sent(monkeypatch):
    """Bytes of every task that leaves the client, and the futures that stand in for arrays."""
    seen = {"bytes": [], "futures": set()}
    submit = Client.submit

    def watched(self, function, *args, tasks=(), **options):
        plain = []
        for call, arguments, keywords in tasks:
            values = [*arguments, *keywords.values()]
            seen["futures"] |= {value.key for value in values if isinstance(value, Future)}
            plain.append((call, [value for value in values if not isinstance(value, Future)]))
        seen["bytes"].append(len(cloudpickle.dumps(plain)))
        return submit(self, function, *args, tasks=tasks, **options)

    monkeypatch.setattr(Client, "submit", watched)
    return seen


def test_a_search_on_a_cluster_finds_what_it_finds_here(client, points):
    here = KernelizedCV(DNE(2), WIDTHS, 3, [2, 5]).fit(*points)
    with joblib.parallel_config(backend="dask", scatter=list(points)):
        there = KernelizedCV(DNE(2), WIDTHS, 3, [2, 5]).fit(*points)
    for key in ("split0_test_score", "mean_test_score", "rank_test_score"):
        assert there.cv_results_[key] == pytest.approx(here.cv_results_[key])
    assert there.best_params_ == here.best_params_
    assert there.transform(points[0]) == pytest.approx(here.transform(points[0]))


def test_a_search_sends_the_points_once(client, points, sent):
    X, y = points
    with joblib.parallel_config(backend="dask", scatter=[X, y]) as config:
        scattered = {future.key for future in config["backend"].data_futures.values()}
        KernelizedCV(DNE(2), WIDTHS, 3, refit=False).fit(X, y)
    assert len(sent["bytes"]) >= 3
    assert max(sent["bytes"]) < X.nbytes / 4
    assert scattered & sent["futures"]


def test_a_search_that_was_not_told_to_scatter_sends_the_points_once_all_the_same(
    client, points, sent
):
    X, y = points
    with joblib.parallel_config(backend="dask"):
        KernelizedCV(DNE(2), WIDTHS, 3, refit=False).fit(X, y)
    assert max(sent["bytes"]) < X.nbytes / 4
    assert 1 <= len(sent["futures"]) <= 2


def test_a_fold_on_a_cluster_keeps_its_small_loops_to_itself(client, points):
    def loops(estimator, E, y):
        assert joblib.effective_n_jobs(None) == 1
        return estimator.score(E, y)

    with joblib.parallel_config(backend="dask"):
        KernelizedCV(
            DNE(2), WIDTHS[:1], 3, estimator=KNeighborsClassifier(1), scoring=loops,
            error_score="raise", refit=False,
        ).fit(*points)  # fmt: skip


def test_the_memory_of_this_machine_bounds_no_search_on_others(client):
    shape = 3_000, 40
    here = KernelizedCV(DNE(2), WIDTHS, n_jobs=8, refit=False).estimate_memory(*shape)
    with joblib.parallel_config(backend="dask"):
        there = KernelizedCV(DNE(2), WIDTHS, n_jobs=8, refit=False).estimate_memory(*shape)
    assert there < here / 100


@pytest.mark.parametrize("by", ["point", "pair"])
def test_pairs_on_a_cluster_are_judged_as_they_are_here(by, client, points, sent):
    X, y = points
    pairs = Pairs.from_labels(y, per_point=4, random_state=next(DRAWS))
    given = {"by": by, "cv": 3, "random_state": 0, "scoring": ["roc_auc", "accuracy"]}
    estimators = StandardScaler(), RCA()
    here = [cross_validate_pairs(estimator, X, pairs, **given) for estimator in estimators]
    with joblib.parallel_config(backend="dask", scatter=[X, pairs]):
        there = [cross_validate_pairs(estimator, X, pairs, **given) for estimator in estimators]
    for ours, theirs in zip(here, there, strict=True):
        assert theirs["test_roc_auc"] == pytest.approx(ours["test_roc_auc"])
        assert theirs["test_accuracy"] == pytest.approx(ours["test_accuracy"])
    assert max(sent["bytes"]) < X.nbytes / 4


# --- the papers' tables -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cells_of_a_table_are_the_same_on_a_cluster(client, tmp_path, invoke, sent):
    pytest.importorskip("click", reason="click comes with the extra `cli`")
    from reproduction.command import reproduce
    from reproduction.tables import TABLES

    table = TABLES["000-table1"].smoked()
    there, here = tmp_path / "there", tmp_path / "here"
    given = ["000-table1", "--smoke", "--out"]
    result = invoke(reproduce, *given, str(there), "--dask", client.scheduler.address)
    assert result.exit_code == 0, result.output
    assert invoke(reproduce, *given, str(here)).exit_code == 0
    shared, alone = (
        {(c.dataset, c.method, c.split): c.accuracy for c in table.file_in(folder).read()}
        for folder in (there, here)
    )
    assert shared == pytest.approx(alone)
    assert {method for _, method, _ in shared} == {method.name for method in table.methods}
    assert max(sent["bytes"]) < 20_000  # the data sets went before, once


def test_a_problem_with_its_points_draws_the_same_splits():
    from reproduction.problems import GROUPS

    problems = {problem.name: problem for group in GROUPS.values() for problem in group}
    for name in ("iris", "checkerboard"):
        carried = cloudpickle.loads(cloudpickle.dumps(problems[name].loaded()))
        for one, other in zip(carried.split(1), problems[name].split(1), strict=True):
            assert np.array_equal(one, other)


def test_a_scheduler_that_is_not_there_stops_the_tables_in_a_sentence(tmp_path, invoke):
    import dask

    from reproduction.command import reproduce

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        result = invoke(
            reproduce,
            "000-table1",
            "--smoke",
            "--out",
            str(tmp_path),
            "--dask",
            "tcp://127.0.0.1:9",
        )
    assert result.exit_code == 1
    assert "expected an address where a scheduler answers" in result.stderr
