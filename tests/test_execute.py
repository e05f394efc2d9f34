"""Work on blocks of rows: the same whatever the budget."""

import numpy as np
import pytest

from kernelmetric import memory_budget
from kernelmetric.compute import map_rows, over_rows, sum_rows, within_budget, worth_keeping


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
        assert worth_keeping(1000)
        assert not worth_keeping(1001)
        assert worth_keeping(500, share=0.5)
        assert not worth_keeping(501, share=0.5)
        assert within_budget(10.0) == 10.0
        assert within_budget(1e9) == 1000.0
