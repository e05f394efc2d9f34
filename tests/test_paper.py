"""Numbers of the papers that are tests; run by `make test-paper`."""

from dataclasses import replace

import numpy as np
import pytest

from reproduction.aligned import ALIGNED, CHOICES, LEARNERS
from reproduction.table import plan, run_table
from reproduction.tables import TABLES

pytestmark = pytest.mark.paper


@pytest.mark.parametrize("number", [1, 2, 3])
def test_searched_kernels_reach_the_papers_accuracy_on_ionosphere(number, tmp_path):
    table = TABLES[f"000-table{number}"]
    ionosphere = tuple(problem for problem in table.problems if problem.name == "ionosphere")
    table = replace(table, problems=ionosphere, methods=table.methods[1:2], n_splits=5)
    planned = plan(table)
    if planned.skipped:
        pytest.skip(planned.skipped[0])
    cells = list(run_table(table, tmp_path))
    paper = table.paper["ionosphere", table.methods[0].name].value
    assert np.mean([cell.accuracy for cell in cells]) >= paper - 0.02


@pytest.mark.parametrize("name", LEARNERS)
def test_aligned_kernels_are_as_good_as_searched_ones_and_far_faster(name, tmp_path):
    # Section 5.1 of 000, over its nine UCI sets.
    methods = tuple(method for method in ALIGNED.methods if method.family == name)
    table = replace(ALIGNED, methods=methods)
    planned = plan(table)
    if planned.skipped:
        pytest.skip(planned.skipped[0])
    cells = list(run_table(table, tmp_path))
    by_choice = {c: [cell for cell in cells if cell.method == f"{name}, {c}"] for c in CHOICES}
    assert {len(chosen) for chosen in by_choice.values()} == {10 * len(ALIGNED.problems)}
    accuracy = {c: np.mean([cell.accuracy for cell in chosen]) for c, chosen in by_choice.items()}
    seconds = {c: np.sum([cell.seconds for cell in chosen]) for c, chosen in by_choice.items()}
    for choice in ("aligned", "centred"):
        assert accuracy[choice] >= accuracy["CV"] - 0.01
        assert seconds[choice] < seconds["CV"] / 20
