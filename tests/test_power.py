"""The power of a metric from pairs: what points left out are found by, and nothing worse."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import ITML, MMC, Pairs
from kernelmetric.learners._power import _ranks, choose_power, power_of

BOTH = pytest.mark.parametrize("kind", [ITML, MMC])


def two_tables(noise, n=120, d=12, known=60):
    """Things that either table has with noise of its own, and the nearest wrong ones of a query."""
    rng = np.random.RandomState(0)
    things = rng.standard_normal((n, d))
    X = np.concatenate([things + noise * rng.standard_normal((n, d)) for _ in range(2)])
    asked = np.arange(known)
    squares = np.sum((X[asked, None] - X[None, n:]) ** 2, axis=2)
    squares[asked, asked] = np.inf
    wrong = np.argsort(squares, axis=1)[:, :5]
    apart = np.column_stack([np.repeat(asked, 5), n + wrong.ravel()])
    return X, Pairs(np.column_stack([asked, asked + n]), apart, len(X)), np.arange(known, n)


def found(metric, X, asked):
    """Share of queries whose nearest row of the second table is theirs."""
    Z = metric.transform(X)
    D = Z[len(X) // 2 :]
    squares = np.sum((Z[asked, None] - D[None]) ** 2, axis=2)
    return np.mean(squares.argmin(axis=1) == asked)


@BOTH
def test_pairs_that_teach_nothing_leave_the_prior_metric_and_say_so(kind):
    X, pairs, asked = two_tables(np.full(12, 0.15))
    plain = found(kind(power=0).fit(X, pairs=pairs), X, asked)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        metric = kind().fit(X, pairs=pairs)
    assert found(metric, X, asked) >= plain
    said = [str(w.message) for w in seen if "The prior metric stays" in str(w.message)]
    assert len(said) == (metric.power_ == 0.0)


@pytest.mark.every(2)
@BOTH
def test_noise_of_some_features_is_unlearned(kind):
    X, pairs, asked = two_tables(np.where(np.arange(12) < 3, 3.0, 0.2), known=90)
    plain = found(kind(power=0).fit(X, pairs=pairs), X, asked)
    metric = kind().fit(X, pairs=pairs)
    assert metric.power_ > 0
    assert found(metric, X, asked) > plain + 0.1


@BOTH
def test_a_power_is_that_of_the_matrix_of_the_paper(kind):
    X, pairs, _ = two_tables(np.full(12, 0.5))
    M = kind(power=1).fit(X, pairs=pairs).get_mahalanobis_matrix()
    half = kind(power=0.5).fit(X, pairs=pairs)
    assert half.power_ == 0.5
    values, V = np.linalg.eigh(M)
    root = (V * np.sqrt(np.maximum(values, 1e-3 * values[-1]))) @ V.T
    np.testing.assert_allclose(half.get_mahalanobis_matrix(), root, atol=1e-8 * values[-1])
    none = kind(power=0).fit(X, pairs=pairs).get_mahalanobis_matrix()
    np.testing.assert_allclose(none, np.eye(12), atol=1e-12)


def test_a_power_of_zero_is_the_prior():
    X, pairs, _ = two_tables(np.full(12, 0.5))
    prior = np.diag(np.linspace(0.5, 2.0, 12))
    metric = ITML(prior=prior, power=0).fit(X, pairs=pairs)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), prior, atol=1e-12)


@pytest.mark.every(2)
@BOTH
def test_labels_and_few_pairs_have_the_metric_of_the_paper(kind):
    X, pairs, _ = two_tables(np.full(12, 0.15))
    y = np.arange(len(X)) % 3
    few = Pairs(pairs.similar[:9], pairs.dissimilar[:9], len(X))
    for given in ({"y": y}, {"pairs": few}):
        metric = kind().fit(X, **given)
        assert metric.power_ == 1.0
        other = kind(power=1).fit(X, **given)
        np.testing.assert_array_equal(metric.components_, other.components_)


@pytest.mark.every(2)
@BOTH
@pytest.mark.filterwarnings("ignore:The prior metric stays")
def test_labels_beside_pairs_change_no_power(kind):
    X, pairs, _ = two_tables(np.full(12, 0.15))
    beside = kind().fit(X, np.arange(len(X)) % 3, pairs=pairs)
    assert beside.power_ == kind().fit(X, pairs=pairs).power_ < 1.0


def test_choosing_a_power_changes_no_parameter():
    X, pairs, _ = two_tables(np.full(12, 0.5))
    learner = ITML(prior=2.0 * np.eye(12), warm_start=True)
    before = clone(learner).get_params()
    with warnings.catch_warnings(action="ignore"):
        learner.fit(X, pairs=pairs)
    after = learner.get_params()
    assert before.keys() == after.keys() and after["power"] == "auto" and after["warm_start"]
    with pytest.raises(ValueError, match="Got power='most', but ITML expected 'auto' or a number"):
        ITML(power="most").fit(X, pairs=pairs)


def test_a_power_of_one_is_the_matrix_itself():
    M = np.diag([1.0, 0.0])
    assert power_of(M, 1.0) is M
    np.testing.assert_allclose(power_of(M, 0.5), np.diag([1.0, np.sqrt(1e-3)]))


def test_a_place_counts_the_drawn_points_that_are_nearer_than_the_partner():
    rng = np.random.RandomState(0)
    Y, pairs = rng.standard_normal((50, 7)), rng.permutation(50).reshape(25, 2)
    for drawn in (np.arange(50), np.sort(rng.permutation(50)[:20])):
        right = []
        for a, b in [*pairs, *pairs[:, ::-1]]:
            squares = np.sum((Y - Y[a]) ** 2, axis=1)
            others = np.setdiff1d(drawn, [a, b])
            right.append(1 + np.sum(squares[others] < squares[b]))
        np.testing.assert_array_equal(_ranks(Y, pairs, drawn), right)


@pytest.mark.parametrize("better", [True, False])
def test_a_power_is_taken_by_what_points_left_out_are_found_by(better):
    rng = np.random.RandomState(0)
    things = rng.standard_normal((100, 4))
    X = np.concatenate(
        [things, things + np.array([4.0, 4.0, 0.1, 0.1]) * rng.standard_normal((100, 4))]
    )
    rows = np.arange(100)
    pairs = Pairs(np.c_[rows, rows + 100], np.c_[rows, 100 + (rows + 1) % 100], n_samples=200)
    M = np.diag([1e-3, 1e-3, 1.0, 1.0] if better else [1.0, 1.0, 1e-3, 1e-3])
    if better:
        assert choose_power(X, pairs, lambda _: M, 0) >= 0.6
    else:
        with pytest.warns(UserWarning, match="The prior metric stays"):
            assert choose_power(X, pairs, lambda _: M, 0) == 0.0
