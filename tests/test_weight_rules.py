"""Four rules of weights, for all that takes any: one table of estimators, one test of each rule.

Ones are no weights, to the bit. Zero is an absent row. A little more or less weight changes little,
whether numbers are whole or not. And weights do count.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from kernelmetric import (
    DLA,
    DNE,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    RBF,
    RCA,
    RFM,
    SCML,
    SDML,
    IdealizedKernel,
    KernelAlignment,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Laplacian,
    MetricClassifier,
    MetricRegressor,
    TransductiveDistance,
)
from kernelmetric.selection import AlignedScales, LeaveOneOutRidge, RidgeKPCA
from kernelmetric.spaces import KPCA, Nystroem, RandomFeatures
from tested_learners import weighable

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Got .* class.es. with at most"),
    pytest.mark.filterwarnings("ignore:Got a (graph of|single label)"),
    pytest.mark.filterwarnings("ignore:Got lam="),
]

# Descents end within a tolerance of their objective, which is compared then, and not distances.
DESCENTS = {
    NCA: {"tol": 1e-8, "max_iter": 500, "reg": 0.1},
    MCML: {"tol": 1e-8, "max_iter": 500, "reg": 0.1},
    MLKR: {"tol": 1e-8, "max_iter": 500, "reg": 0.1},
    LMNN: {"tol": 1e-4, "max_iter": 500, "reg": 0.5},
    LMCA: {"tol": 1e-4, "max_iter": 500, "reg": 0.5},
}
SCALE_FREE = (DLA, IdealizedKernel, LSML, MMC, RFM, SCML, SDML)  # whatever their parameters
CLOSE = 1e-3
# A descent on the scales of features takes few steps; a map that is cut to low rank afterwards
# magnifies what is left to the optimum.
LESS_CLOSE = 2e-2


class Case(NamedTuple):
    """An estimator, and what it learns from."""

    estimator: object
    learns_from: str = "labels"

    def fit(self, data, sample_weight=None):
        X, y = data[self.learns_from]
        return clone(self.estimator).fit(X, y, sample_weight=sample_weight)

    def answers(self, model, data):
        """Distances, probabilities or numbers at points: what does not depend on a rotation."""
        new = data["new"]
        if hasattr(model, "predict_interval"):
            return np.hstack([model.predict(new)[:, None], model.predict_interval(new)])
        if hasattr(model, "predict_proba") and not isinstance(model, KernelizedCV):
            return model.predict_proba(new)  # of a search, they are shares of a few neighbours
        Z = model.transform(new)
        return np.linalg.norm(Z[:, None] - Z, axis=2)

    @property
    def close(self):
        name = repr(self.estimator)
        cut = isinstance(self.estimator, LMNN) and self.estimator.n_components
        chosen = "LeaveOneOut" in name or ("Kernelized(" in name and "kernel=" not in name)
        chosen |= "MetricRegressor" in name  # folds may choose other widths of their intervals
        return LESS_CLOSE if cut or chosen or "AlignedScales" in name else CLOSE

    def compared(self, model, data):
        """What hardly changes with the weights: the objective of a descent, else the answers."""
        inner = getattr(model, "learner_", model)
        return inner.loss_ if type(inner) in DESCENTS else self.answers(model, data)


def few_labels(y):
    return np.where(np.arange(len(y)) % 3, y, -1)


def narrow(learner):
    options = dict(DESCENTS.get(type(learner), {}))
    if getattr(learner, "solver", None) == "projected":  # convex all the way, but slow
        options["tol"] = learner.tol
    return clone(learner).set_params(**options)


LEARNERS = [Case(narrow(a), a.learns_from) for a in weighable()]
SPACES = [
    KPCA(),
    KPCA(3, kernel=Laplacian(gamma="median")),
    KPCA(6, solver="randomized", random_state=0),
    Nystroem(20, random_state=0),
    RandomFeatures(50, n_components=5, random_state=0),
    RidgeKPCA(5, kernel=RBF(gamma=0.3)),
    RidgeKPCA(5, kernel=LeaveOneOutRidge()),
    KPCA(3, kernel=KernelAlignment()),
    KPCA(3, kernel=KernelAlignment(centered=True, max_samples=30, random_state=0)),
    KPCA(3, kernel=AlignedScales()),
]
KERNELIZED = [
    Kernelized(LDA(), "rbf"),
    Kernelized(LDA(), RBF(gamma=0.3), KernelTrick()),
    Kernelized(LDA()),
    Kernelized(DNE(), "aligned"),
    Kernelized(LMNN(tol=1e-5)),
    Kernelized(LogisticRegression(), "rbf"),
    KernelizedCV(LDA(), kernels=[RBF(gamma=0.3), RBF(gamma=1e3)], cv=3),
]
PREDICTORS = [
    Case(MetricClassifier(LDA(), cv=3)),
    Case(MetricClassifier(LDA(class_weight="balanced"), class_weight="balanced", cv=3)),
    Case(MetricClassifier(Kernelized(LDA()), cv=3)),
    Case(MetricRegressor(MLKR(tol=1e-8, reg=0.1), cv=3), "targets"),
    Case(TransductiveDistance(3, lam=0.5, n_neighbors=10), "few"),
    Case(TransductiveDistance(3, lam=0.5, penalty="warped"), "few"),
]
CASES = [*LEARNERS, *(Case(a) for a in [*SPACES, *KERNELIZED]), *PREDICTORS]


def named(case):
    return repr(case.estimator)


@pytest.fixture(params=CASES, ids=named)
def case(request):
    return request.param


@pytest.fixture
def data():
    return data_of(slice(None))


def data_of(rows):
    """60 points of uneven classes; labels, numbers, and labels of which some are missing."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 4)) * [1.0, 2.0, 0.5, 1.0]
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int) + (X[:, 1] > 1.5)
    numbers = X[:, 0] + 0.2 * np.sin(5 * X[:, 1])
    X_new = rng.standard_normal((7, 4))
    both = {"targets": (X[rows], numbers[rows]), "few": (X[rows], few_labels(y)[rows])}
    others = ("labels", "points", "chunks", "pairs", "comparisons")
    return dict.fromkeys(others, (X[rows], y[rows])) | both | {"new": X_new}


@cache
def unweighted(case):
    """The fit without weights, which several rules compare with."""
    return case.fit(data_of(slice(None)))


@pytest.mark.every(12)
def test_ones_are_no_weights_to_the_bit(case, data):
    a, b = case.fit(data, np.ones(60)), unweighted(case)
    np.testing.assert_array_equal(case.answers(a, data), case.answers(b, data))


@pytest.mark.every(8)
def test_zero_is_an_absent_row(case, data):
    w = np.random.RandomState(1).randint(0, 4, size=60)
    a, b = case.fit(data, w), case.fit(data_of(w > 0), w[w > 0])
    np.testing.assert_array_equal(case.answers(a, data), case.answers(b, data))


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.every(8)
def test_a_little_more_weight_changes_little(case, data, turn):
    whole = (CASES.index(case) + turn) % 2 == 0  # whole numbers and fractions take turns
    rng = np.random.RandomState(1)
    w = rng.randint(1, 4, size=60).astype(float) if whole else rng.uniform(0.2, 3.0, size=60)
    expected = case.compared(case.fit(data, w), data)
    nearly = w * (1 + 1e-6) + 1e-6 * rng.uniform(size=60)
    found = case.compared(case.fit(data, nearly), data)
    size = max(np.max(np.abs(expected)), 1e-3)  # an objective may be next to nothing
    np.testing.assert_allclose(found, expected, atol=case.close * size)


@pytest.mark.every(12)
def test_nearly_ones_are_nearly_no_weights(case, data):
    expected = case.compared(unweighted(case), data)
    w = 1.0 + 1e-6 * np.random.RandomState(1).uniform(size=60)
    found = case.compared(case.fit(data, w), data)
    np.testing.assert_allclose(found, expected, atol=case.close * np.max(np.abs(expected)))


@pytest.mark.every(6)
def test_weights_count(case, data):
    w = np.where(np.random.RandomState(1).uniform(size=60) < 0.5, 1.0, 5.0)
    a, b = case.fit(data, w), unweighted(case)
    A, B = case.answers(a, data), case.answers(b, data)
    # Of maps that are all orthonormal, the objective tells.
    by_loss = abs(getattr(a, "loss_", 1.0) / getattr(b, "loss_", 1.0) - 1) > 1e-5
    assert by_loss or np.max(np.abs(A - B)) > 1e-3 * np.max(np.abs(B))


@pytest.mark.every(6)
@pytest.mark.parametrize(
    "case",
    [
        *(Case(a, a.learns_from) for a in weighable() if type(a) in SCALE_FREE),
        *(Case(a(shrinkage=0.1), a.learns_from) for a in (LDA, LFDA, LPP, RCA)),
        *(Case(a) for a in SPACES),
        Case(Kernelized(NCA(tol=1e-8))),
        Case(MetricClassifier(LDA(shrinkage=0.1), cv=3)),
        Case(TransductiveDistance(3, lam=0.5, n_neighbors=10), "few"),
    ],
    ids=named,
)
@pytest.mark.parametrize(
    "scale", [pytest.param(4.0, marks=pytest.mark.slow), 2.0**-20], ids=["large", "small"]
)
def test_where_nothing_stands_beside_the_sum_only_ratios_matter(case, data, scale):
    w = np.random.RandomState(1).uniform(0.2, 3.0, size=60)
    a, b = (case.answers(case.fit(data, times * w), data) for times in (1.0, scale))
    np.testing.assert_allclose(a, b, atol=case.close * np.max(a))
