"""scikit-learn's own checks, for every public estimator; failures are expected by name only."""

import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.svm import SVC, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric import (
    DNE,
    LMNN,
    MLKR,
    NCA,
    Adapter,
    Kernelized,
    KernelizedCV,
    Linear,
    TransductiveDistance,
    TransductiveRegressor,
)
from kernelmetric.retrieval import PLDA
from tested_learners import expected_failures, robust


def brief(estimator):
    """A descent of a few steps: what it ends at is no matter here."""
    few = {"max_iter": 2} if "max_iter" in estimator.get_params() else {}
    return clone(estimator).set_params(**few)


# The checks fit noise.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Got .* class.es. with at most n_neighbors")
@pytest.mark.filterwarnings("ignore:DNE found no negative eigenvalue")
# Their clusters are apart, their labels sometimes as many as the points.
@pytest.mark.filterwarnings("ignore:Got a (graph of|single label)")
# With a single component of three an adapter finds less, and says so.
@pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._places.NotBetterWarning")
@parametrize_with_checks(
    [
        *map(brief, robust()),
        Kernelized(NCA(max_iter=2)),
        Kernelized(LMNN(max_iter=2)),
        Kernelized(DNE()),
        Kernelized(DNE(), kernel="auto"),
        Kernelized(Ridge(), kernel="rbf"),
        Kernelized(LogisticRegression(), kernel="rbf"),
        Kernelized(KMeans(2, n_init=1, random_state=0), kernel="rbf"),
        Kernelized(OneClassSVM(kernel="linear"), kernel="rbf"),
        Kernelized(SVC(kernel="linear"), kernel="rbf"),
        Kernelized(NeighborhoodComponentsAnalysis(max_iter=5, random_state=0), kernel="rbf"),
        KernelizedCV(MLKR(max_iter=2), Linear()),
        Adapter(cv=2, softmax=False),
        PLDA(),
        TransductiveDistance(cv=2, random_state=0),
        TransductiveDistance(lam=5000.0, penalty="warped", tol=1e-2),
        TransductiveRegressor(cv=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
