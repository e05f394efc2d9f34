"""Work on blocks of rows: the same whatever the budget."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernelmetric import memory_budget
from kernelmetric.compute import (
    fits_budget,
    map_rows,
    over_rows,
    sum_rows,
    within_budget,
)
from kernelmetric.compute._budget import current_budget
from kernelmetric.compute._execute import over_tiles, run_on_cluster, sum_tiles
from kernelmetric.compute._threads import repeatable


@pytest.mark.parametrize("budget", ["1GB", 400, 1])
def test_rows_are_mapped_and_summed_alike_under_every_budget(budget):
    X = np.arange(30.0).reshape(10, 3)
    with memory_budget(budget):
        mapped = map_rows(lambda rows: 2 * X[rows], 10, 8 * 9)
        total = sum_rows(lambda rows: X[rows].sum(axis=0), 10, 8 * 9)
        number, array = sum_rows(lambda rows: (X[rows].sum(), X[rows].T @ X[rows]), 10, 8 * 9)
    assert np.array_equal(mapped, 2 * X)
    assert np.array_equal(total, X.sum(axis=0))
    assert number == X.sum()
    assert np.array_equal(array, X.T @ X)


@pytest.mark.every(4)
@pytest.mark.parametrize(("budget", "n_threads"), [("1GB", 2), ("100KB", 1)])
def test_threads_share_the_blocks_of_a_sum_where_memory_allows(budget, n_threads):
    X, seen = np.random.RandomState(0).standard_normal((64, 3)), set()

    def work(rows):
        seen.add(threading.get_ident())
        time.sleep(0.01)
        return X[rows].sum(axis=0), 1.0

    with memory_budget(budget), threadpool_limits(2, user_api="blas"):
        total, n_blocks = sum_rows(work, 64, 80e3 / 8, most=8, flops=1e12)
        alone, _ = sum_rows(work, 64, 80e3 / 8, most=8)
    assert n_blocks == 8
    assert np.array_equal(total, alone)  # to the last bit
    assert len(seen - {threading.get_ident()}) in ({0} if n_threads == 1 else {1, 2})


@pytest.mark.parametrize("shared", [False, True])
def test_what_tiles_get_first_is_made_once_by_every_process(shared):
    made = []

    def once():
        made.append(len(made))
        return 10

    class Elsewhere:
        def share(self, work, items, flops, take):
            for item in items if shared else []:
                rebuild, how = work.__reduce__()  # as a worker gets it
                take(rebuild(*how)(item))
            return shared

    with run_on_cluster(Elsewhere()):
        (total,) = sum_tiles(
            lambda first, some: (first * sum(some),), [1, 2, 3], flops=1e12, entries=1, once=once
        )
    assert total == 60
    assert len(made) == (3 if shared else 1)


def test_blocks_come_in_order_and_are_no_larger_than_asked_for():
    with memory_budget(1000):
        by_budget = over_rows(lambda rows: (rows.start, rows.stop), 10, 250.0)
        by_most = over_rows(lambda rows: (rows.start, rows.stop), 10, 1.0, most=5)
    assert [start for start, _ in by_budget] == [0, *(stop for _, stop in by_budget[:-1])]
    assert max(stop - start for start, stop in by_budget) <= 4
    assert by_budget[-1][1] == 10
    assert by_most == [(0, 5), (5, 10)]


def test_what_only_saves_time_is_kept_where_it_fits():
    with memory_budget(1000):
        assert fits_budget(1000)
        assert not fits_budget(1001)
        assert fits_budget(500, share=0.5)
        assert not fits_budget(501, share=0.5)
        assert within_budget(10.0) == 10.0
        assert within_budget(1e9) == 1000.0


@pytest.mark.parametrize("flops", [0.0, 1e12])
def test_tiles_are_summed_in_an_order_that_does_not_depend_on_threads(flops):
    """Numbers of very different sizes: another order would round differently."""
    rng = np.random.RandomState(0)
    numbers = rng.standard_normal(100) * 10.0 ** rng.randint(-8, 8, 100)

    def work(tiles):
        return sum(numbers[tile] for tile in tiles), np.array([len(tiles)])

    def total():
        return sum_tiles(work, range(100), flops=flops, entries=2)

    with repeatable():
        alone = total()
    for count in (1, 2, 3, 4):
        with threadpool_limits(count, user_api="blas"):
            assert total() == alone
    assert alone[1] == [100]


def test_the_results_of_tiles_are_in_the_order_of_the_tiles():
    def slow_at_first(tile):
        time.sleep(0.02 * (tile == 0))
        return tile

    with threadpool_limits(2, user_api="blas"):
        assert over_tiles(slow_at_first, range(20), flops=1e12) == list(range(20))
    assert over_tiles(slow_at_first, range(20), flops=1e12, host=False) == list(range(20))


def test_tiles_see_the_memory_budget_of_who_asked_for_them():
    with memory_budget(1000), threadpool_limits(2, user_api="blas"):
        found = over_tiles(lambda tile: current_budget(), range(4), flops=1e12)
    assert found == [1000] * 4


@pytest.mark.parametrize(
    "values",
    [
        np.array(["ash", "oak", "silver birch", "elm"]),
        np.array([1, 2, 2.5, 3], dtype=object),
        np.array([False, True, 7, 0.5], dtype=object),
    ],
    ids=["texts", "numbers", "truths"],
)
def test_blocks_of_other_types_are_not_cut_to_that_of_the_first(values):
    with memory_budget(1):  # a row a block, each of the narrowest type
        mapped = map_rows(lambda rows: np.array(values[rows].tolist()), 4, 8.0)
    assert mapped.tolist() == np.array(values.tolist()).tolist()


def test_no_rows_are_mapped_to_none_and_sum_to_nothing():
    X = np.empty((0, 3))
    assert map_rows(lambda rows: X[rows], 0, 8.0).shape == (0, 3)
    assert sum_rows(lambda rows: X[rows].sum(axis=0), 0, 8.0).tolist() == [0.0, 0.0, 0.0]
