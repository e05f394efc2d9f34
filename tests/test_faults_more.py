"""Faults that a random sample of planted ones showed no test to notice."""

import numpy as np
import pytest
from scipy.special import logsumexp

from kernelmetric import KPCA, IdealizedKernel, Nystroem
from kernelmetric.learners._mcml import CollapsedClasses
from kernelmetric.spaces._base import check_n_components


@pytest.mark.parametrize("wrong", [0, -1, 1.0, 0.0, 1.5, "three"])
def test_no_components_are_no_space(wrong):
    with pytest.raises(ValueError, match=r"Got n_components=.*, but expected None"):
        check_n_components(wrong)
    X = np.random.RandomState(0).randn(12, 2)
    for space in (KPCA(wrong), Nystroem(5, n_components=wrong)):
        with pytest.raises(ValueError, match="Got n_components"):
            space.fit(X)


def test_two_points_of_a_class_are_ideal_neighbours_and_one_alone_has_none():
    rng = np.random.RandomState(0)
    codes, Z, L = np.array([0, 0, 1, 1, 1, 2]), rng.randn(6, 3), rng.randn(2, 3)
    E = Z @ L.T
    D = np.sum((E[:, None] - E) ** 2, axis=2)
    expected = 0.0
    for i in range(5):  # the sixth is alone
        others = np.arange(6) != i
        alike = others & (codes == codes[i])
        log_p = -D[i, alike] - logsumexp(-D[i, others])
        expected += np.mean(-np.log(np.sum(alike)) - log_p)
    assert CollapsedClasses(Z, codes, 0.0).objective(L)[0] == pytest.approx(expected, rel=1e-10)


def test_pairs_are_judged_by_the_differences_of_their_points():
    """Points far from the origin, told apart along one axis only."""
    rng = np.random.RandomState(0)
    y = np.arange(40) % 2
    Z = rng.randn(40, 2) + np.outer(8.0 * y, [1.0, 0.0]) + 50.0
    metric = IdealizedKernel(random_state=0).fit(Z, y)
    assert metric.C_scores_.max() > 0.95
