"""metric-learn's learners, kernelized for real; `make test-peers` installs what they run on.

metric-learn 0.7 needs a scikit-learn in which ``check_array`` still knows ``force_all_finite``:
1.6 and 1.7 do, and this library runs on both.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import graphical_lasso
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import Kernelized, Pairs, Polynomial
from kernelmetric.datasets import make_fig2_circles, make_fig2_hyperbolas

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:'force_all_finite' was renamed:FutureWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
metric_learn = pytest.importorskip("metric_learn", reason="run by `make test-peers`")

QUADRATIC = Polynomial(degree=2, coef0=0)


def accuracy(metric, make, seed):
    X, y = make(40, random_state=seed)
    X_new, y_new = make(400, random_state=1000 + seed)
    Z = clone(metric).fit(X, y)
    return KNeighborsClassifier(1).fit(Z.transform(X), y).score(Z.transform(X_new), y_new)


@pytest.mark.parametrize("make", [make_fig2_circles, make_fig2_hyperbolas])
@pytest.mark.parametrize(
    "learner",
    [
        metric_learn.ITML_Supervised(n_constraints=100, max_iter=50, random_state=0),
        metric_learn.LMNN(learn_rate=1e-2, max_iter=100),
        metric_learn.NCA(),
    ],
)
def test_the_quadratic_kernel_sees_what_their_linear_maps_do_not(learner, make):
    kernelized = Kernelized(learner, QUADRATIC)
    assert np.mean([accuracy(kernelized, make, seed) for seed in range(3)]) >= 0.98
    assert np.mean([accuracy(learner, make, seed) for seed in range(3)]) <= 0.93


# --- tuples of points ---------------------------------------------------------------------------


@pytest.fixture
def rings():
    X, y = make_fig2_circles(24, random_state=0)
    pairs = np.array([(i, j) for i in range(24) for j in range(i)])
    pairs = pairs[np.random.RandomState(0).permutation(len(pairs))[:80]]
    return X, y, pairs, np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)


@pytest.fixture(autouse=True)
def sdml_runs(monkeypatch):
    """SDML calls scikit-learn's graphical lasso with a start that 1.5 took away."""

    def without_start(emp_cov, *, cov_init, **options):
        return graphical_lasso(emp_cov, **options)

    monkeypatch.setattr(metric_learn.sdml, "graphical_lasso", without_start)


PAIR_LEARNERS = [
    metric_learn.ITML(max_iter=100, random_state=0),
    metric_learn.MMC(max_iter=5, max_proj=200, random_state=0),
    metric_learn.SDML(prior="identity", balance_param=0.01, random_state=0),
]


@pytest.mark.parametrize("learner", PAIR_LEARNERS)
def test_pairs_may_be_points_row_numbers_or_similar_and_dissimilar(learner, rings):
    X, _, rows, alike = rings
    by_points = Kernelized(learner, QUADRATIC).fit(X[rows], alike)
    D = by_points.pairwise_distances(X)
    assert D.max() > 0
    by_rows = Kernelized(learner, QUADRATIC).fit(X, alike, tuples=rows)
    np.testing.assert_allclose(by_rows.pairwise_distances(X), D, atol=1e-4 * D.max())
    order = np.argsort(-alike, kind="stable")
    by_rows = Kernelized(learner, QUADRATIC).fit(X, alike[order], tuples=rows[order])
    D = by_rows.pairwise_distances(X)
    similar, dissimilar = rows[alike == 1], rows[alike == -1]
    for metric in (
        Kernelized(learner, QUADRATIC).fit(X, similar=similar, dissimilar=dissimilar),
        Kernelized(learner, QUADRATIC).fit(X, pairs=Pairs(similar, dissimilar, len(X))),
    ):
        np.testing.assert_allclose(metric.pairwise_distances(X), D, atol=1e-8 * D.max())


def test_what_their_pair_learners_predict_of_pairs_their_kernel_versions_do(rings):
    X, _, rows, alike = rings
    metric = Kernelized(PAIR_LEARNERS[0], QUADRATIC).fit(X[rows], alike)
    assert metric.score(X[rows], alike) > PAIR_LEARNERS[0].fit(X[rows], alike).score(X[rows], alike)
    np.testing.assert_allclose(metric.decision_function(X[rows]), -metric.pair_distance(X[rows]))
    assert set(metric.predict(X[rows])) == {-1, 1}


def test_quadruplets_are_kernelized(rings):
    X, y, _, _ = rings
    rng = np.random.RandomState(0)
    first, second = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    rows = np.stack([rng.choice(c, 60) for c in (first, first, first, second)], axis=1)
    rows = rows[rows[:, 0] != rows[:, 1]]
    metric = Kernelized(metric_learn.LSML(), QUADRATIC).fit(X, tuples=rows)
    linear = metric_learn.LSML().fit(X[rows])
    assert metric.score(X[rows]) > linear.score(X[rows])
    again = Kernelized(metric_learn.LSML(), QUADRATIC).fit(X[rows])
    D = metric.pairwise_distances(X)
    np.testing.assert_allclose(again.pairwise_distances(X), D, atol=0.05 * D.max())
