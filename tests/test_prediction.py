"""Predictions in a learned metric."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric import DNE, LDA, MLKR, Kernelized, MetricClassifier, MetricRegressor


# The checks fit noise, and set max_iter to a handful themselves.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Got .* class")
@pytest.mark.filterwarnings("ignore:Got a (graph of|single label)")
@parametrize_with_checks(
    [
        MetricClassifier(Kernelized(DNE(), "rbf"), cv=2),
        MetricClassifier(LDA(), cv=2),
        MetricRegressor(Kernelized(MLKR(max_iter=5), "rbf"), cv=2),
        MetricRegressor(MLKR(max_iter=5), cv=2),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
