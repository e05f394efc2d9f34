"""scikit-learn's own checks, for every public estimator; no failure is expected."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric import DNE, LMCA, LMNN, NCA, Kernelized, TransductiveDistance


# The checks fit noise, and set max_iter to a handful themselves.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Their clusters are apart, their labels sometimes as many as the points.
@pytest.mark.filterwarnings("ignore:Got a (graph of|single label)")
@parametrize_with_checks(
    [
        NCA(),
        LMNN(),
        LMNN(solver="projected", max_iter=5),
        LMCA(),
        DNE(),
        Kernelized(NCA(max_iter=5)),
        Kernelized(LMNN(max_iter=5)),
        Kernelized(DNE()),
        Kernelized(DNE(), kernel="auto"),
        TransductiveDistance(cv=2, random_state=0),
        TransductiveDistance(lam=100.0, penalty="warped"),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
