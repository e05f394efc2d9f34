"""What is not understood is refused in a sentence, or said: priors, labels, tuples, functions."""

import warnings

import numpy as np
import pytest

from kernelmetric import (
    ITML,
    LDA,
    LMCA,
    LMNN,
    LSML,
    MLKR,
    MMC,
    NCA,
    RCA,
    SCML,
    SDML,
    IdealizedKernel,
    Kernelized,
    MetricRegressor,
    Pairs,
    Quadruplets,
    Triplets,
)
from kernelmetric.evaluation import measured

pytestmark = pytest.mark.usefixtures("deadline")
X = np.random.RandomState(0).standard_normal((24, 3))
Y = np.arange(24) % 2
PAIRS = Pairs([[0, 2]], [[0, 1]], n_samples=24)
TRIPLETS, QUADRUPLETS = Triplets([[0, 2, 1]], 24), Quadruplets([[0, 2, 1, 3]], 24)
WEAK = [ITML(), MMC(), SDML(), LSML(), SCML(), RCA(), IdealizedKernel(C=10.0)]


# --- priors and starts --------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [SDML, ITML, LSML])
def test_a_prior_of_lower_rank_is_refused_whatever_its_rounding(learner):
    for first in np.linspace(-3, 3, 9):
        for second in np.linspace(-2.9, 3.1, 9):
            v = np.array([first, second])
            with pytest.raises(ValueError, match="Got a singular prior"):
                learner(prior=np.outer(v, v)).fit(X[:, :2], Y)


def test_a_prior_in_other_units_is_not_singular():
    units = np.array([1.0, 1e-2, 1e2])
    M = SDML(prior=np.diag(units**-2), balance=0.1).fit(X * units, Y).get_mahalanobis_matrix()
    assert np.linalg.eigvalsh(M * np.outer(units, units))[0] > 0.01


@pytest.mark.parametrize("learner", [LMNN, LMCA, NCA])
def test_a_start_of_another_rank_is_refused(learner):
    Z = np.random.RandomState(1).standard_normal((24, 4))
    with pytest.raises(ValueError, match=r"Got init of shape \(2, 4\).*\(3, 4\)"):
        learner(3, init=np.ones((2, 4))).fit(Z, Y)


def test_lmnn_may_start_whole_and_end_in_fewer_dimensions():
    assert LMNN(2, init=np.eye(3)).fit(X, Y).components_.shape == (2, 3)
    assert LMNN(init=np.eye(2, 3)).fit(X, Y).components_.shape == (3, 3)


# --- functions of two points, components --------------------------------------------------------


@pytest.mark.parametrize(
    "metric", [LDA(), Kernelized(LDA(), "rbf"), NCA(reg=0.1, warm_start=True)], ids=repr
)
def test_a_function_of_two_points_stays_as_it_was_made(metric):
    function = metric.fit(X, Y).get_metric()
    before = function(X[0], X[1])
    metric.fit(3 * X[:, ::-1], Y)
    assert function(X[0], X[1]) == before
    assert metric.get_metric()(X[0], X[1]) != pytest.approx(before)


def test_a_function_of_two_points_takes_rows_and_gives_squares():
    function = LDA().fit(X, Y).get_metric()
    distance = function(X[0], X[1])
    assert function(X[:1], X[1:2]) == distance
    assert function(X[0], X[1], squared=True) == pytest.approx(distance**2)
    with pytest.raises(ValueError, match="expected"):
        function(X[:2], X[:2])


# --- labels -------------------------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("learner", [*WEAK, Kernelized(ITML(), "rbf")], ids=repr)
def test_labels_of_minus_one_beside_others_are_a_class_with_a_word(learner):
    y = np.arange(24) % 4 - 1
    apart = X + 3 * np.eye(4)[y, :3]
    with pytest.warns(UserWarning, match=r"6 labels of -1 beside others.*X\[y != -1\]") as caught:
        learner.fit(apart, y)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.fit(apart, np.where(y > 0, 1, -1))
        learner.fit(apart, np.array(["a", "b", "-1"])[np.maximum(y, 0)])


@pytest.mark.parametrize("make", [Pairs.from_labels, Triplets.from_labels, Quadruplets.from_labels])
def test_tuples_from_labels_of_minus_one_say_so(make):
    with pytest.warns(UserWarning, match="labels of -1 beside others"):
        make(np.arange(24) % 3 - 1)


def test_chunks_of_minus_one_are_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (RCA().fit(X, chunks=np.arange(24) % 4 - 1).chunks_ == -1).sum() == 6


@pytest.mark.every(4)
@pytest.mark.parametrize("tuples", [PAIRS, TRIPLETS, QUADRUPLETS], ids=repr)
@pytest.mark.parametrize("kernelized", [False, True])
@pytest.mark.parametrize("learner", [*WEAK, LDA(), MLKR()], ids=repr)
def test_tuples_in_place_of_labels_are_told_their_name(learner, kernelized, tuples):
    learner = Kernelized(learner) if kernelized else learner
    name = type(tuples).__name__
    with pytest.raises(ValueError, match=rf"Got {name} in place.*fit\(X, {name.lower()}=\.\.\.\)"):
        learner.fit(X, tuples)


@pytest.mark.parametrize("kind", [str, object, list])
@pytest.mark.parametrize("model", [MLKR(), Kernelized(MLKR()), MetricRegressor()], ids=repr)
def test_text_in_place_of_numbers_is_told_so(model, kind):
    y = np.array(["low", "high"])[Y]
    y = y.tolist() if kind is list else y.astype(kind)
    with pytest.raises(ValueError, match=r"Got y with text, such as 'low'.*MetricClassifier"):
        model.fit(X, y)


def test_a_note_has_no_traceback():
    def fails():
        trace = "2 fits failed out of a total of 6.\nTraceback (most recent call last):\n  x\n"
        warnings.warn(f"\n{trace}ValueError: one class\n", stacklevel=1)
        warnings.warn("Scores are non-finite: [nan nan\n nan]", stacklevel=1)

    note = measured(fails).note
    assert note == (
        "2 fits failed out of a total of 6. ValueError: one class. Scores are non-finite."
    )


# --- optima -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("seed", "optimum"),  # certified by projected gradients, and by ever smaller tolerances
    [(0, 258.64535), pytest.param(6, 169.76980, marks=pytest.mark.slow), (9, 82.36684)],
)
def test_lmnn_with_a_small_tolerance_ends_at_the_optimum(seed, optimum):
    # The corner of the hinge stops short steps; a map of almost lower rank has almost no slope.
    rng = np.random.RandomState(seed)
    d, n_classes = int(rng.randint(2, 7)), int(rng.randint(2, 4))
    y = np.arange(46) % n_classes
    points = rng.randn(46, d) + rng.uniform(1, 3.5) * np.eye(max(d, n_classes))[y][:, :d]
    lmnn = LMNN(tol=1e-5).fit(points, y)
    assert lmnn.converged_
    assert lmnn.loss_ - optimum < 5e-5 * max(optimum, lmnn.n_neighbors * len(y))
