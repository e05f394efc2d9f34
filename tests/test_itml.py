"""ITML: its optimum, its certificate, its pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import ITML, Kernelized, Pairs

pytestmark = pytest.mark.usefixtures("deadline")


def objective(X, metric, M):
    """The objective of a matrix by its definition, with the best slacks for it."""
    P = np.eye(len(M)) if metric.prior is None else np.asarray(metric.prior)
    value = np.trace(M @ np.linalg.inv(P)) - np.linalg.slogdet(M @ np.linalg.inv(P))[1] - len(M)
    u, lower = metric.bounds_
    for rows, bound, sign in [(metric.pairs_.similar, u, 1), (metric.pairs_.dissimilar, lower, -1)]:
        for i, j in rows:
            x = (X[i] - X[j]) @ M @ (X[i] - X[j]) / bound
            value += metric.gamma * (x - 1 - np.log(x)) * (sign * (x - 1) > 0)
    return value


@pytest.fixture
def few(labelled):
    X, _ = labelled
    return X[:, :2], {"similar": [[0, 1], [2, 3], [4, 5]], "dissimilar": [[0, 7], [1, 9], [6, 8]]}


@pytest.mark.every(3)
@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_the_optimum_is_that_of_a_general_solver(gamma, few):
    X, pairs = few
    metric = ITML(gamma=gamma, power=1, tol=1e-10).fit(X, **pairs)
    M = metric.get_mahalanobis_matrix()
    assert metric.loss_ == pytest.approx(objective(X, metric, M), rel=1e-8)

    def of_factor(entries):
        L = entries.reshape(2, 2)
        return objective(X, metric, L.T @ L)

    found = minimize(of_factor, np.eye(2).ravel(), method="Nelder-Mead", tol=1e-12)
    assert found.fun == pytest.approx(metric.loss_, rel=1e-6)


@pytest.mark.parametrize("prior", [None, np.diag([2.0, 0.5])])
def test_the_conditions_of_the_optimum_hold(prior, few):
    X, pairs = few
    metric = ITML(prior=prior, power=1, tol=1e-14).fit(X, **pairs)
    M, rows = metric.get_mahalanobis_matrix(), metric.pairs_.rows
    delta = X[rows[:, 0]] - X[rows[:, 1]]
    sign = np.where(metric.pairs_.is_similar, 1.0, -1.0)
    P = np.eye(2) if prior is None else prior
    inverse = np.linalg.inv(P) + (sign * metric.alpha_ * delta.T) @ delta
    np.testing.assert_allclose(np.linalg.inv(M), inverse, rtol=1e-6, atol=1e-7)
    distances = np.einsum("pi,ij,pj->p", delta, M, delta)
    bounds = np.where(sign > 0, *metric.bounds_)
    assert (metric.alpha_ >= 0).all()
    assert (sign * (distances - metric.slacks_) <= 1e-8 * bounds).all()  # every slackened bound
    binding = metric.alpha_ > 0
    assert binding.any()
    np.testing.assert_allclose(metric.slacks_[binding], distances[binding])
    # ξ moves from ξ⁰ by what its multiplier asks
    np.testing.assert_allclose(1 / metric.slacks_, 1 / bounds - sign * metric.alpha_ / metric.gamma)


def test_the_gap_bounds_what_is_left(labelled):
    X, y = labelled
    best = ITML(gamma=0.2, tol=1e-10).fit(X, y).loss_
    hasty = ITML(gamma=0.2, tol=1e-9, max_iter=3)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 3 iterations at a duality gap of"):
        hasty.fit(X, y)
    assert not hasty.converged_
    assert best < hasty.loss_
    assert hasty.loss_ - best <= hasty.duality_gap_ * hasty.loss_ * (1 + 1e-9)


def test_satisfied_pairs_leave_the_prior_alone(few):
    X, pairs = few
    prior = np.array([[2.0, 0.3], [0.3, 1.0]])
    metric = ITML(prior=prior, bounds=(1e3, 1e3)).fit(X, similar=pairs["similar"])
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), prior)
    assert metric.loss_ == metric.duality_gap_ == 0
    assert not metric.alpha_.any()


def test_a_unit_of_the_features_does_not_matter(labelled):
    X, y = labelled
    D = ITML(tol=1e-9).fit(X, y).pairwise_distances(X)
    np.testing.assert_allclose(ITML(tol=1e-9).fit(1e6 * X, y).pairwise_distances(1e6 * X), 1e6 * D)


def test_bounds_are_percentiles_in_the_prior_metric(labelled):
    X, y = labelled
    metric = ITML(prior=4 * np.eye(4), percentiles=(10, 60)).fit(X, y)
    squares = [4 * np.sum((X[i] - X[j]) ** 2) for i in range(30) for j in range(i)]
    np.testing.assert_allclose(metric.bounds_, np.percentile(squares, [10, 60]))


def test_similar_pairs_come_nearer_and_dissimilar_ones_part(labelled):
    X, y = labelled
    X = X + 2.0 * np.column_stack([y, 0 * y, 0 * y, 0 * y])  # the first feature tells
    M = ITML(gamma=10.0).fit(X, y).get_mahalanobis_matrix()
    assert int(np.argmax(np.diag(M))) == 0


def test_more_features_than_points_and_repeated_points_are_no_obstacle(labelled):
    X, y = labelled
    Q = np.random.RandomState(0).standard_normal((4, 60))
    wide = np.concatenate([X, X[:9]]) @ Q
    labels = np.concatenate([y, (y[:9] + np.arange(9) % 2) % 3])  # some contradict
    metric = ITML().fit(wide, labels)
    assert metric.components_.shape[1] == 60
    assert np.isfinite(metric.transform(wide)).all()


def test_many_points_use_random_pairs(labelled):
    X, y = labelled
    assert len(ITML(max_pairs=120).fit(X, y).pairs_) <= 120
    assert len(ITML().fit(X, y).pairs_) == 30 * 29 // 2


def test_pairs_are_kernelized_too(labelled):
    X, _ = labelled
    pairs = Pairs([[0, 3], [1, 4]], [[0, 1], [3, 5]], n_samples=30)
    metric = Kernelized(ITML(), "rbf").fit(X, pairs=pairs)
    listed = Kernelized(ITML(), "rbf").fit(X, similar=pairs.similar, dissimilar=pairs.dissimilar)
    np.testing.assert_allclose(metric.transform(X), listed.transform(X))


@pytest.mark.parametrize(
    ("learner", "match"),
    [
        (ITML(gamma=0.0), "Got gamma=0.0, but ITML expected a number > 0"),
        (ITML(gamma=np.inf), "Got gamma=inf, but ITML expected a number"),
        (ITML(bounds=(2.0, 1.0)), "Got bounds=.*two numbers in ascending order"),
        (ITML(bounds=(0.0, 1.0)), "Got an upper bound of 0.0"),
        (ITML(percentiles=(5, 101)), "Got percentiles=.*between 0 and 100"),
        (ITML(prior=np.eye(3)), r"Got a prior of shape \(3, 3\).*\(4, 4\)"),
        (ITML(prior=np.diag([1.0, 1, 1, 0])), "Got a singular prior"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_in_a_sentence(learner, match, labelled):
    with pytest.raises(ValueError, match=match):
        learner.fit(*labelled)
