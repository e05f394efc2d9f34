"""Which class probabilities lead to: by default the most probable, else by what answers cost."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from kernelmetric import LDA, MetricClassifier, load, save

NAMES = np.array(["ill", "odd", "well"])


def table(n=240, seed=0):
    """Three classes that overlap, one of them rare."""
    rng = np.random.RandomState(seed)
    codes = rng.choice(3, n, p=[0.1, 0.3, 0.6])
    X = rng.standard_normal((n, 3))
    X[:, 0] += 1.2 * codes
    X[:, 1] -= codes == 1
    return X, NAMES[codes]


@pytest.fixture(scope="module")
def model():
    return MetricClassifier(LDA(), cv=2).fit(*table())


@pytest.fixture
def asked(model):
    """The fitted model, whose decision a test may change, and new rows."""
    yield model, *table(400, seed=1)
    model.set_params(decision="accuracy")


def test_without_a_decision_the_most_probable_class_is_predicted(asked):
    model, X, _ = asked
    P = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), NAMES[P.argmax(axis=1)])


def test_any_costs_are_met_by_the_class_of_least_expected_cost(asked):
    model, X, _ = asked
    P = model.predict_proba(X)
    rng = np.random.RandomState(0)
    for _ in range(20):
        costs = rng.uniform(0, 5, (3, 3))
        np.fill_diagonal(costs, rng.uniform(-2, 0, 3))
        said = model.set_params(decision=costs).predict(X)
        expected = np.array([[P[i] @ costs[:, j] for j in range(3)] for i in range(len(P))])
        np.testing.assert_array_equal(said, NAMES[expected.argmin(axis=1)])
        moved = costs + rng.uniform(-9, 9, (3, 1))  # what all answers on a true class cost
        np.testing.assert_array_equal(model.set_params(decision=moved).predict(X), said)


def test_a_decision_changes_no_probability_and_needs_no_fit(asked):
    model, X, _ = asked
    before = model.predict_proba(X)
    for decision in ("balanced", {"ill": 9}, np.ones((3, 3)) - np.eye(3)):
        np.testing.assert_array_equal(model.set_params(decision=decision).predict_proba(X), before)


def test_balanced_finds_the_rare_class(asked):
    model, X, y = asked
    plain = balanced_accuracy_score(y, model.predict(X))
    said = model.set_params(decision="balanced").predict(X)
    assert balanced_accuracy_score(y, said) > plain + 0.05
    # A class is then answered where it is most above its share of the training rows.
    shares = np.unique(table()[1], return_counts=True)[1] / 240
    np.testing.assert_array_equal(said, NAMES[(model.predict_proba(X) / shares).argmax(axis=1)])


def test_balanced_takes_the_shares_of_the_weights():
    X, y = table()
    weights = 1.0 + 5.0 * (y == "ill")
    weighed = MetricClassifier(LDA(), cv=2, decision="balanced").fit(X, y, sample_weight=weights)
    shares = np.array([weights[y == name].sum() for name in NAMES])
    P = weighed.predict_proba(X)
    np.testing.assert_array_equal(weighed.predict(X), NAMES[(P / shares).argmax(axis=1)])
    even = MetricClassifier(LDA(), cv=2, class_weight="balanced").fit(X, y)
    said = even.predict(X)  # classes count alike already
    np.testing.assert_array_equal(even.set_params(decision="balanced").predict(X), said)


@pytest.mark.parametrize(
    ("named", "matrix"),
    [
        ({"ill": 5}, [[0, 5, 5], [1, 0, 1], [1, 1, 0]]),
        ({"ill": {"well": 5}}, [[0, 1, 5], [1, 0, 1], [1, 1, 0]]),
        ({"well": {"ill": 0, "well": -1}}, [[0, 1, 1], [1, 0, 1], [0, 1, -1]]),
        ({}, [[0, 1, 1], [1, 0, 1], [1, 1, 0]]),
    ],
)
def test_costs_by_names_are_a_matrix(asked, named, matrix):
    model, X, _ = asked
    said = model.set_params(decision=named).predict(X)
    np.testing.assert_array_equal(said, model.set_params(decision=matrix).predict(X))
    np.testing.assert_array_equal(model._costs(), matrix)


def test_a_decision_is_saved_with_the_model(asked, tmp_path):
    model, X, _ = asked
    for decision in ("balanced", {"ill": {"well": 7.5}}, [[0, 9, 9], [1, 0, 1], [1, 1, 0]]):
        said = model.set_params(decision=decision).predict(X)
        again = load(save(model, tmp_path / "model.km"))
        assert again.decision == decision
        np.testing.assert_array_equal(again.predict(X), said)


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        ("fair", "Got decision='fair', but expected 'accuracy', 'balanced', costs by names"),
        (None, "Got decision=None, but expected 'accuracy'"),
        ([[0, 1], [1, 0]], "a row for each of the 3 true classes"),
        ([[0, 1], [1]], "matrix of finite costs"),
        ({"ill": "much"}, "matrix of finite costs"),
        ({"ill": np.nan}, "matrix of finite costs"),
        ({"ill": 10**400}, "matrix of finite costs"),
        (10**400, "matrix of finite costs"),
        (1.0 - np.full((3, 3), np.inf), "matrix of finite costs"),
        (np.eye(3), "no wrong answer cheaper than the right one"),
        ({"sick": 5}, r"Got a cost of 'sick', but the classes are \['ill', 'odd', 'well'\]"),
        ({"ill": {"fine": 5}}, "Got a cost of 'fine', but the classes are"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_decision_that_makes_no_sense_is_refused(asked, decision, says):
    model, X, _ = asked
    with pytest.raises(ValueError, match=says):
        model.set_params(decision=decision).predict(X)

    class Unfitted(LDA):
        def fit(self, X, y=None, **given):
            raise AssertionError("the metric was fitted before the decision was looked at")

    with pytest.raises(ValueError, match=says):
        clone(model).set_params(metric=Unfitted()).fit(X, table(400, seed=1)[1])
