"""Comparisons as data: each finished cell is kept, and none is run twice."""

import numpy as np

from reproduction.aligned import CHOICES, aligned_cells
from reproduction.cells import read_cells
from reproduction.idealized import IDEALIZED, PRINTED, Task, idealized_cells, idealized_points
from reproduction.problems import Problem
from reproduction.transductive import TABLE1, few_label_cells


def two_clouds(n, rng):
    y = rng.randint(2, size=n)
    return rng.standard_normal((n, 3)) + 3.0 * y[:, None], y


CLOUDS = Problem("clouds", 30, two_clouds)


def run_aligned(n_splits, out):
    return list(aligned_cells([CLOUDS], ["DNE"], n_splits, out))


def test_a_comparison_goes_on_where_it_stopped(tmp_path):
    out = tmp_path / "cells.jsonl"
    first = run_aligned(1, out)
    assert len(first) == 3
    assert read_cells(out) == first
    more = run_aligned(2, out)
    assert {cell.split for cell in more} == {1}
    assert read_cells(out) == first + more
    assert run_aligned(2, out) == []


def test_every_choice_of_kernel_separates_two_clouds(tmp_path):
    cells = run_aligned(1, tmp_path / "cells.jsonl")
    assert [cell.method for cell in cells] == [f"DNE, {choice}" for choice in CHOICES]
    assert min(cell.accuracy for cell in cells) > 0.9
    assert min(cell.seconds for cell in cells) > 0


def test_a_split_depends_on_its_seed_alone():
    first, again, other = CLOUDS.split(0), CLOUDS.split(0), CLOUDS.split(1)
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.array_equal(first.X_test, other.X_test)
    np.testing.assert_allclose(first.X_train.mean(axis=0), 0.0, atol=1e-12)


def run_idealized(table, methods, n_splits, out):
    return list(idealized_cells([Task(table, "toy, linear")], methods, n_splits, out))


def test_the_tables_of_idealized_kernels_go_on_where_they_stopped(tmp_path):
    out = tmp_path / "cells.jsonl"
    first = run_idealized(4, ["kernel", "solve"], 1, out)
    more = run_idealized(4, ["kernel", "solve"], 2, out)
    assert {cell.split for cell in more} == {1}
    assert read_cells(out) == first + more
    assert all("train=0." in cell.note for cell in first)


def test_every_form_of_the_learned_metric_finds_the_feature_of_the_toy_data(tmp_path):
    methods = [method for method in IDEALIZED if "auto" not in method]
    for table in PRINTED:
        cells = run_idealized(table, methods, 1, tmp_path / f"table{table}.jsonl")
        accuracy = {cell.method: cell.accuracy for cell in cells}
        before = accuracy.pop("kernel")
        assert before < 0.8
        assert min(accuracy.values()) > before + 0.05


def test_the_printed_tables_are_whole():
    assert {len(rows) for rows in PRINTED.values()} == {10}
    for rows in PRINTED.values():
        assert all(learned < before for before, learned, _ in rows.values())
        assert [name for name, row in rows.items() if row[2] is not None] == [
            "toy, linear",
            "soybean, linear",
            "wine, linear",
        ]


def test_a_repetition_has_its_own_order():
    X, y = idealized_points("wine", 0)
    Z, z = idealized_points("wine", 1)
    assert X.shape == (178, 13)
    assert not np.array_equal(X, Z)
    np.testing.assert_array_equal(np.sort(X[:, 12]), np.sort(Z[:, 12]))
    assert np.array_equal(np.bincount(y), np.bincount(z))


def test_few_labels_are_a_share_of_every_class_and_the_comparison_resumes(tmp_path):
    wine = next(problem for problem in TABLE1 if problem.name == "wine")
    known, truth = wine.partial_labels(0), wine.points()[1]
    assert np.sum(known >= 0) == 18
    assert set(known[known >= 0]) == {0, 1, 2}
    np.testing.assert_array_equal(known[known >= 0], truth[known >= 0])
    out = tmp_path / "cells.jsonl"
    cells = list(few_label_cells([wine], ["LE", "1-NN"], 1, out))
    assert [cell.method for cell in cells] == ["LE", "1-NN"]
    assert min(cell.accuracy for cell in cells) > 0.8
    assert list(few_label_cells([wine], ["LE", "1-NN"], 1, out)) == []
