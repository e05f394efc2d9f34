"""Comparisons that the guide quotes: tables like those of the papers, run by the same loop."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

from reproduction.aligned import CHOICES
from reproduction.idealized import FORMS, TABLES_OF_004, idealized_points
from reproduction.multimodal import PROBLEMS
from reproduction.problems import Problem
from reproduction.table import run_table
from reproduction.tables import STUDIES, TABLES
from reproduction.transductive import partial_labels, points

STORED = Path(__file__).parents[1] / "reproduction" / "studies"


def two_clouds(n, rng):
    y = rng.randint(2, size=n)
    return rng.standard_normal((n, 3)) + 3.0 * y[:, None], y


def moons(n, rng):
    return make_moons(n, noise=0.1, random_state=rng)


CLOUDS = Problem("clouds", 30, two_clouds)


def part(name, methods, problem, n_splits=1):
    """A study with a few of its methods, on one of its problems or on another."""
    table = STUDIES[name]
    problems = (problem,) if isinstance(problem, Problem) else ()
    problems = problems or tuple(p for p in table.problems if p.name == problem)
    chosen = tuple(method for method in table.methods if method.name in methods)
    assert len(problems) == 1
    assert len(chosen) == len(methods)
    return replace(table, problems=problems, methods=chosen, n_splits=n_splits)


DNES = [f"DNE, {choice}" for choice in CHOICES]


@pytest.mark.slow
def test_a_study_goes_on_where_it_stopped(tmp_path):
    first = list(run_table(part("aligned", DNES[:1], CLOUDS), tmp_path))
    table = part("aligned", DNES[:1], CLOUDS, n_splits=2)
    more = list(run_table(table, tmp_path))
    assert {cell.split for cell in more} == {1}
    assert table.file_in(tmp_path).read() == first + more
    assert list(run_table(table, tmp_path)) == []


@pytest.mark.slow
def test_every_choice_of_kernel_separates_two_clouds_and_is_timed(tmp_path):
    cells = list(run_table(part("aligned", DNES, CLOUDS), tmp_path))
    assert [cell.method for cell in cells] == DNES
    assert min(cell.accuracy for cell in cells) > 0.9
    seconds = {cell.method: cell.seconds for cell in cells}
    assert 0 < seconds["DNE, aligned"] < seconds["DNE, CV"]


def test_a_split_depends_on_its_seed_alone():
    first, again, other = CLOUDS.split(0), CLOUDS.split(0), CLOUDS.split(1)
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.array_equal(first.X_test, other.X_test)
    np.testing.assert_allclose(first.X_train.mean(axis=0), 0.0, atol=1e-12)


def test_the_automatic_kernel_is_compared_with_what_selected_it(tmp_path):
    table = part("automatic-ten", ["Euclidean", "selecting ridge"], Problem("moons", 30, moons))
    assert min(cell.accuracy for cell in run_table(table, tmp_path)) > 0.8


@pytest.mark.every(4)
@pytest.mark.parametrize("number", [2, pytest.param(3, marks=pytest.mark.slow), 4])
def test_every_form_of_the_learned_metric_finds_the_feature_of_the_toy_data(number, tmp_path):
    forms = [form for form in FORMS if "auto" not in form]
    cells = list(run_table(part(f"idealized-table{number}", forms, "toy, linear"), tmp_path))
    score = {cell.method: cell.accuracy for cell in cells}
    before = score.pop("kernel")
    assert before < 0.8
    assert min(score.values()) > before + 0.05
    notes = [cell.note for cell in cells if cell.method != "Xing"]
    assert all(("train=0." in note) == (number == 4) for note in notes)


def test_the_papers_columns_are_forms_of_the_learned_metric(tmp_path):
    tables = TABLES["004-table2"], STUDIES["idealized-table2"]
    wine = tuple(p for p in tables[0].problems if p.name == "wine, linear")
    cells = [
        next(run_table(replace(t, problems=wine, methods=t.methods[:1], n_splits=1), tmp_path))
        for t in tables
    ]
    assert [cell.method for cell in cells] == ["Euclidean", "kernel"]
    assert cells[0].accuracy == cells[1].accuracy


def test_the_printed_tables_of_idealized_kernels_are_whole():
    for table in TABLES_OF_004:
        values = {key: printed.value for key, printed in table.paper.items()}
        rows = {problem.name for problem in table.problems}
        assert all(values[row, "idealized"] > values[row, "Euclidean"] for row in rows)
        xing = {row for row, method in values if method == "Xing"}
        assert xing == {"toy, linear", "soybean, linear", "wine, linear"}
        assert rows - xing == {row for row, _ in table.left_out}


def test_a_repetition_has_its_own_order():
    X, y = idealized_points("wine", 0)
    Z, z = idealized_points("wine", 1)
    assert X.shape == (178, 13)
    assert not np.array_equal(X, Z)
    np.testing.assert_array_equal(np.sort(X[:, 12]), np.sort(Z[:, 12]))
    assert np.array_equal(np.bincount(y), np.bincount(z))


def test_few_labels_are_a_share_of_every_class(tmp_path):
    table = part("few-labels", ["LE", "1-NN"], "wine")
    truth = points(table.problems[0])[1]
    known = partial_labels(truth, 0.1, 0)
    assert np.sum(known >= 0) == 18
    assert set(known[known >= 0]) == {0, 1, 2}
    np.testing.assert_array_equal(known[known >= 0], truth[known >= 0])
    cells = list(run_table(table, tmp_path))
    assert [cell.method for cell in cells] == ["LE", "1-NN"]
    assert min(cell.accuracy for cell in cells) > 0.8


@pytest.mark.slow
def test_kernels_for_classes_of_several_clusters_learn_xor(tmp_path):
    xor = next(p for p in PROBLEMS["clean"] if p.name == "XOR")._replace(n_train=60)
    cells = list(run_table(part("multimodal-clean", ["median", "clusters"], xor), tmp_path))
    assert [cell.method for cell in cells] == ["clusters", "median"]
    assert min(cell.accuracy for cell in cells) > 0.7


def test_every_drawn_problem_has_both_classes():
    for problem in (*PROBLEMS["noisy"], *PROBLEMS["clean"]):
        split = problem.split(0)
        assert split.X_train.shape[0] == problem.n_train
        assert set(split.y_train) == set(split.y_test)


def test_a_stored_cell_comes_out_again(tmp_path):
    table = part("learners-regression", ["Euclidean"], "diabetes")
    (cell,) = run_table(table, tmp_path)
    stored = STUDIES[table.name].file_in(STORED).read()
    (same,) = [c for c in stored if (c.method, c.split) == ("Euclidean", 0)]
    assert cell.accuracy == pytest.approx(same.accuracy, abs=1e-5)


def test_stored_cells_follow_the_protocol_of_today():
    names = {path.stem for path in STORED.glob("*.jsonl")} - {"learners-metric-learn"}  # a peer's
    assert names
    for name in names:
        table = STUDIES[name]
        cells = table.file_in(STORED).read()  # refuses those of another protocol
        assert {cell.dataset for cell in cells} <= {p.name for p in table.problems}
        assert {cell.method for cell in cells} <= {m.name for m in table.methods}
