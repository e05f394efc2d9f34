"""PLDA: likelihoods are those of Gaussians, and of the largest likelihood; scores of enrolments."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from kernelmetric import Pairs, PairVerifier, load, save
from kernelmetric.retrieval import PLDA

B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.3]])
W = np.array([[0.5, -0.2, 0.1], [-0.2, 1.0, 0.0], [0.1, 0.0, 0.4]])


def people(n_classes=200, sizes=(1, 2, 3, 5), seed=0, between=B, within=W):
    rng = np.random.RandomState(seed)
    y = np.repeat(np.arange(n_classes), rng.choice(sizes, n_classes))
    d = len(between)
    places = rng.multivariate_normal(np.full(d, 3.0), between, n_classes)
    return places[y] + rng.multivariate_normal(np.zeros(d), within, len(y)), y


def covariances(plda):
    """B and W of a model of full rank."""
    back = np.linalg.inv(plda.components_)
    return (back * plda.spread_) @ back.T, back @ back.T


def joint(points, plda):
    """The log-likelihood of points of one class, as one Gaussian of all their numbers."""
    between, within = covariances(plda)
    n = len(points)
    covariance = np.kron(np.ones((n, n)), between) + np.kron(np.eye(n), within)
    mean = np.tile(plda.mean_, n)
    return multivariate_normal(mean, covariance).logpdf(np.ravel(points))


@pytest.fixture(scope="module")
def fitted():
    X, y = people()
    return PLDA(shrinkage=0.0, tol=1e-10).fit(X, y), X, y


def test_ratios_are_those_of_a_direct_gaussian_likelihood(fitted):
    plda, X, _ = fitted
    enrolled, names = X[:9], np.array(list("abbcccccc"))
    got = plda.log_likelihood_ratio(X[20:24], enrolled, names)
    for i, x in enumerate(X[20:24]):
        for j, name in enumerate("abc"):
            known = enrolled[names == name]
            expected = joint([*known, x], plda) - joint(known, plda) - joint([x], plda)
            assert got[i, j] == pytest.approx(expected, abs=1e-8)
    pairs = np.array([[0, 1], [5, 30]])
    expected = [joint(X[p], plda) - joint(X[p[:1]], plda) - joint(X[p[1:]], plda) for p in pairs]
    np.testing.assert_allclose(-plda.pair_distance(pairs, X), expected, atol=1e-8)
    np.testing.assert_allclose(
        plda.log_likelihood_ratio(X[:3], X[:3]).T, plda.log_likelihood_ratio(X[:3], X[:3])
    )


@pytest.mark.slow
def test_the_likelihood_is_that_of_the_training_vectors_and_the_largest(fitted):
    plda, X, y = fitted
    total = sum(joint(X[y == c], plda) for c in range(200))
    assert plda.log_likelihood_ * len(X) == pytest.approx(total, rel=1e-9)
    rng = np.random.RandomState(0)
    for size in (0.03, 0.003):
        for part in ("components_", "spread_", "mean_"):
            other = clone(plda)
            vars(other).update(vars(plda))
            values = getattr(plda, part)
            setattr(other, part, values * (1 + size * rng.standard_normal(values.shape)))
            assert sum(joint(X[y == c], other) for c in range(200)) < total


def test_covariances_are_found_again():
    X, y = people(3_000)
    between, within = covariances(PLDA().fit(X, y))
    np.testing.assert_allclose(between, B, atol=0.15)
    np.testing.assert_allclose(within, W, atol=0.05)


def test_the_likelihood_grows_with_every_iteration(fitted):
    _, X, y = fitted
    values = []
    for steps in range(1, 8):
        with pytest.warns(ConvergenceWarning, match="increase max_iter"):
            values.append(PLDA(shrinkage=0.0, max_iter=steps, tol=0).fit(X, y).log_likelihood_)
    assert np.all(np.diff(values) > -1e-12)


def test_low_rank_keeps_what_tells_classes_apart():
    rng = np.random.RandomState(0)
    V = rng.standard_normal((10, 2))
    X, y = people(400, between=4 * V @ V.T, within=np.eye(10))
    full, low = PLDA().fit(X, y), PLDA(2).fit(X, y)
    assert low.transform(X).shape == (len(X), 2)
    U = [np.linalg.qr(each.components_[:2].T)[0] for each in (full, low)]
    assert np.linalg.svd(U[0].T @ U[1])[1].min() > 0.99
    back = np.linalg.lstsq(low.components_, np.eye(2), rcond=None)[0]
    assert np.isfinite(back).all()
    assert low.log_likelihood_ == pytest.approx(full.log_likelihood_, abs=0.05)


def test_it_tells_more_than_a_cosine_where_directions_vary_unequally():
    spread = np.diag([9.0, 9.0, 0.2, 0.2, 0.2])
    X, y = people(300, (4,), between=np.eye(5), within=spread)
    new, z = people(100, (2,), seed=1, between=np.eye(5), within=spread)
    scores = PLDA().fit(X, y).log_likelihood_ratio(new, new)
    centred = new - X.mean(axis=0)
    U = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    same, some = z[:, None] == z, ~np.eye(len(z), dtype=bool)
    auc = [roc_auc_score(same[some], each[some]) for each in (scores, U @ U.T)]
    assert auc[0] > auc[1] + 0.1


def test_more_enrolments_are_surer():
    X, y = people(300, (6,), between=20 * B)
    plda = PLDA().fit(X, y)
    new, z = people(60, (6,), seed=1, between=20 * B)
    test, first = new[::6], np.flatnonzero(np.arange(len(new)) % 6 == 1)
    one = plda.log_likelihood_ratio(test, new[first], z[first])
    rest = np.arange(len(new)) % 6 > 0
    five = plda.log_likelihood_ratio(test, new[rest], z[rest])
    assert np.mean(five.argmax(axis=1) == np.arange(60)) > np.mean(
        one.argmax(axis=1) == np.arange(60)
    )
    assert np.mean(np.diag(five)) > np.mean(np.diag(one))


def test_a_verifier_finds_a_threshold_of_it():
    X, y = people(200, (4,), between=20 * B)
    pairs = Pairs.from_labels(y, per_point=5, random_state=0)
    plda = PLDA().fit(X, y)
    verifier = PairVerifier(plda).calibrate(pairs, X)
    new, z = people(100, (2,), seed=1, between=20 * B)
    rows = np.c_[np.arange(100), np.arange(100, 200)]
    both = np.vstack([rows, np.arange(200).reshape(100, 2)])
    same = z[both[:, 0]] == z[both[:, 1]]
    assert np.mean(verifier.predict_pairs(both, new) == same) > 0.8
    said = verifier.predict_proba_pairs(both, new)[:, 1]
    ratio = -plda.pair_distance(both, new)
    np.testing.assert_array_equal(np.argsort(said[::50]), np.argsort(ratio[::50]))


def test_what_is_saved_comes_back_and_single_precision_is_near(fitted, tmp_path):
    plda, X, y = fitted
    again = load(save(plda, tmp_path / "p.km"))
    np.testing.assert_array_equal(again.transform(X), plda.transform(X))
    np.testing.assert_array_equal(
        again.log_likelihood_ratio(X[:5], X[:5]), plda.log_likelihood_ratio(X[:5], X[:5])
    )
    near = clone(plda).fit(X.astype(np.float32), y).log_likelihood_ratio(X[:5], X[:5])
    np.testing.assert_allclose(near, plda.log_likelihood_ratio(X[:5], X[:5]), atol=1e-3)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_bad_input_is_refused_in_a_sentence():
    X, y = people(20)
    for given, says in (
        ((X, np.arange(len(X))), "some with several vectors"),
        ((X, np.zeros(len(X))), "at least two classes"),
        ((X, None), "requires y"),
        ((X[:, :1] * np.nan, y), "NaN"),
        ((X * 1e100, y), "divide both by one number"),
        ((y[:, None] * np.ones(2), y), "classes of equal vectors"),
    ):
        with pytest.raises(ValueError, match=says):
            PLDA().fit(*given)
    for wish in ({"n_components": 9}, {"shrinkage": 2.0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=r"^Got .*expected"):
            PLDA(**wish).fit(X, y)
