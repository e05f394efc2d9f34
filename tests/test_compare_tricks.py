"""compare_tricks: section 5.2 of the paper as a tool."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from kernelmetric import DNE, LMNN, NCA, RBF
from kernelmetric.evaluation import compare_tricks


def test_on_a_calm_problem_both_tricks_give_the_same_metric():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    found = compare_tricks(DNE(3), "rbf", X[::2], y[::2])
    assert found.objective_gap < 1e-6
    assert found.distance_gap < 1e-6
    said = [
        KNeighborsClassifier(1).fit(metric.transform(X[::2]), y[::2]).predict(metric.transform(X))
        for metric in (found.kpca, found.trick)
    ]
    np.testing.assert_array_equal(*said)
    assert np.mean(said[0][1::2] == y[1::2]) > 0.9
    assert found.verdict == "Both tricks give the same metric."
    assert found.condition_kept <= found.condition_gram < found.condition_problem


def test_an_ill_conditioned_gram_matrix_parts_the_tricks():
    # Many points on a line under a wide kernel: K is singular but for round-off, as the sets of
    # Fig. 5 of the paper are now and then, and the raw kernel trick divides by it.
    X = np.random.RandomState(0).standard_normal((60, 1))
    y = (np.sin(3 * X[:, 0]) > 0).astype(int)
    raw, calm = (
        compare_tricks(DNE(3), RBF(gamma=1.0), X, y, singular=singular, neighbors="input")
        for singular in ("raw", "range")
    )
    assert calm.condition_gram > 1e16 > 1e12 > calm.condition_kept
    assert calm.distance_gap < 1e-6
    assert raw.distance_gap > 0.1
    # Which of the other verdicts it is depends on rounding, divided by rounding.
    assert raw.verdict != calm.verdict == "Both tricks give the same metric."


@pytest.mark.slow
def test_gradient_learners_are_compared_by_their_objective(labelled):
    X, y = labelled
    found = compare_tricks(NCA(tol=1e-9, reg=0.1), RBF(gamma=1.5), X, y)
    assert found.objective_gap < 1e-6
    assert found.condition_problem is None
    found = compare_tricks(
        LMNN(reg=0.5, tol=1e-4, max_iter=3000), RBF(gamma=1.5), X, y, neighbors="input"
    )
    assert found.objectives[0] == pytest.approx(found.objectives[1], rel=1e-2)


def test_the_comparison_can_be_read(labelled):
    X, y = labelled
    found = compare_tricks(DNE(2), RBF(gamma=0.5), X, y)
    assert "condition number of K(D-W)K" in repr(found)
    assert found.verdict in repr(found)


def test_a_learner_without_a_kernel_trick_is_refused(labelled):
    with pytest.raises(ValueError, match="cannot take the Gram"):
        compare_tricks(PCA(2), "rbf", *labelled)
