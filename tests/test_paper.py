"""Numbers of the papers that are tests; run by `make test-paper`."""

import numpy as np
import pytest

from kernelmetric import DNE, LMNN, NCA, datasets
from kernelmetric.experiments import CHOICES, LEARNERS, UCI, aligned_cells, width_accuracies

pytestmark = pytest.mark.paper


@pytest.mark.parametrize(
    ("learner", "paper"), [(NCA(), 0.94), (LMNN(), 0.95), (DNE(), 0.95)], ids=["NCA", "LMNN", "DNE"]
)
def test_kernelized_learners_reach_the_papers_accuracy_on_ionosphere(learner, paper):
    try:
        X, y = datasets.load("ionosphere", return_X_y=True)
    except OSError as error:
        pytest.skip(f"ionosphere is not to be had: {error}")
    accuracies = width_accuracies(learner, X, y, n_train=200, n_splits=10)
    assert accuracies.mean() >= paper - 0.02


@pytest.mark.parametrize("name", LEARNERS)
def test_aligned_kernels_are_as_good_as_searched_ones_and_far_faster(name, tmp_path):
    # Section 5.1 of 000, over its nine UCI sets.
    try:
        cells = list(aligned_cells(UCI, [name], 10, tmp_path / "cells.jsonl"))
    except OSError as error:
        pytest.skip(f"a data set is not to be had: {error}")
    by_choice = {c: [cell for cell in cells if cell.method == f"{name}, {c}"] for c in CHOICES}
    assert {len(chosen) for chosen in by_choice.values()} == {10 * len(UCI)}
    accuracy = {c: np.mean([cell.accuracy for cell in chosen]) for c, chosen in by_choice.items()}
    seconds = {c: np.sum([cell.seconds for cell in chosen]) for c, chosen in by_choice.items()}
    for choice in ("aligned", "centred"):
        assert accuracy[choice] >= accuracy["CV"] - 0.01
        assert seconds[choice] < seconds["CV"] / 20
