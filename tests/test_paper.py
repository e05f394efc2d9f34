"""Numbers of the papers that are tests; run by `make test-paper`."""

import pytest

from kernelmetric import DNE, LMNN, NCA, datasets
from kernelmetric.experiments import width_accuracies

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
