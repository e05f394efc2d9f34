"""Optimisers at their limits: no value counts as converged that is not a number."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import LMNN, MLKR, NCA
from kernelmetric.solvers import (
    minimize_lbfgs,
    minimize_projected,
)


def bowl(x):
    """A quadratic with its minimum, of value 3, at (1, 2)."""
    away = x - np.array([[1.0, 2.0]])
    return 3.0 + float(np.sum(away * away)), 2.0 * away


def cliff(edge, beyond=np.nan):
    """A slope down to a wall behind which there are no numbers."""

    def objective(x):
        value = float(np.sum(x))
        return (value, np.ones_like(x)) if value > edge else (beyond, np.full_like(x, beyond))

    return objective


# --- L-BFGS -----------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_lbfgs_refuses_a_start_without_a_finite_value(beyond):
    with pytest.raises(ValueError, match=r"Got a start at which the objective, now .*, but"):
        minimize_lbfgs(cliff(0.0, beyond), np.full((1, 2), -1.0), max_iter=5, tol=1e-6)


def test_lbfgs_refuses_a_start_whose_gradient_is_not_finite():
    with pytest.raises(ValueError, match="gradient is not finite"):
        minimize_lbfgs(lambda x: (1.0, x * np.nan), np.ones((1, 2)), max_iter=5, tol=1e-6)


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_lbfgs_that_meets_the_end_of_the_numbers_has_not_converged(beyond):
    found = minimize_lbfgs(cliff(0.5, beyond), np.full((1, 2), 5.0), max_iter=50, tol=1e-9)
    assert not found.converged
    assert np.all(np.isfinite(found.x)) and np.isfinite(found.value)
    assert found.value == pytest.approx(float(np.sum(found.x)))
    assert 0.5 < found.value <= 10.0


def test_lbfgs_finds_the_minimum_and_says_so():
    seen = []
    found = minimize_lbfgs(
        bowl,
        np.zeros((1, 2)),
        max_iter=50,
        tol=1e-12,
        report=lambda x, value: seen.append((x.copy(), value)),
    )
    assert found.converged
    assert found.x.shape == (1, 2)
    np.testing.assert_allclose(found.x, [[1.0, 2.0]], atol=1e-6)
    assert found.value == pytest.approx(3.0)
    assert found.n_iter == len(seen) > 0
    assert seen[-1][1] == found.value
    np.testing.assert_array_equal(seen[-1][0], found.x)


def test_lbfgs_stops_when_it_is_told_to():
    found = minimize_lbfgs(
        lambda x: (float(np.sum(x**4)), 4 * x**3),
        np.full((2, 2), 9.0),
        max_iter=50,
        tol=0.0,
        report=lambda x, value: True,
    )
    assert found.n_iter == 1
    assert not found.converged


def test_lbfgs_at_its_iteration_limit_has_not_converged():
    found = minimize_lbfgs(
        lambda x: (float(np.sum(x**4)), 4 * x**3), np.full((2, 2), 9.0), max_iter=2, tol=0.0
    )
    assert (found.n_iter, found.converged) == (2, False)


def test_lbfgs_takes_any_tolerance():
    found = minimize_lbfgs(bowl, np.zeros((1, 2)), max_iter=50, tol=1e308)
    assert found.converged
    assert found.n_iter == 1


# --- projected gradient -----------------------------------------------------------------------


def never(x, value, gradient):
    return False


def nonnegative(x):
    return np.maximum(x, 0.0)


def test_the_projected_gradient_refuses_a_start_without_a_finite_value():
    with pytest.raises(ValueError, match="Got a start at which the objective, now nan"):
        minimize_projected(
            cliff(0.0), nonnegative, np.full((1, 2), -1.0), max_iter=5, converged=never
        )


def test_the_projected_gradient_stays_among_the_numbers():
    found, _ = minimize_projected(
        cliff(0.5), lambda x: x, np.full((1, 2), 5.0), max_iter=30, converged=never
    )
    assert not found.converged
    assert np.isfinite(found.value) and np.all(np.isfinite(found.x))
    assert found.value == pytest.approx(float(np.sum(found.x)))


def test_the_projected_gradient_finds_the_minimum_on_the_edge_of_the_set():
    target = np.array([[1.0, -2.0]])

    def objective(x):
        return float(np.sum((x - target) ** 2)), 2.0 * (x - target)

    def close(x, value, gradient):
        return float(np.max(np.abs(x - nonnegative(x - gradient)))) < 1e-10

    found, step = minimize_projected(
        objective, nonnegative, np.full((1, 2), 4.0), max_iter=100, converged=close
    )
    assert found.converged and found.message == "tolerance reached"
    np.testing.assert_allclose(found.x, [[1.0, 0.0]], atol=1e-9)
    assert found.value == pytest.approx(4.0)
    assert 0.1 < step < 2.0
    assert found.n_iter < 100


@pytest.mark.parametrize("condition", [10.0, 1e4])
def test_the_projected_gradient_is_accelerated(condition):
    # Plain gradient steps need some condition · log(1/ε) of them.
    scales = np.geomspace(1.0, condition, 20)[None, :]

    def objective(x):
        return 0.5 * float(np.sum(scales * x * x)), scales * x

    def close(x, value, gradient):
        return value < 1e-8

    found, _ = minimize_projected(
        objective, lambda x: x, np.ones((1, 20)), max_iter=2000, converged=close, step=1 / condition
    )
    assert found.converged
    assert found.n_iter < 30 * np.sqrt(condition)


def test_the_projected_gradient_stops_when_it_is_told_to():
    calls = []
    found, _ = minimize_projected(
        bowl,
        lambda x: x,
        np.zeros((1, 2)),
        max_iter=50,
        converged=lambda *a: calls.append(a),
        step=0.01,
        report=lambda x, value: len(calls) == 2,
    )
    assert found.n_iter == 3
    assert not found.converged
    assert found.message == "stopped by a callback"


def test_the_projected_gradient_says_when_its_iterations_did_not_suffice():
    found, _ = minimize_projected(
        bowl, lambda x: x, np.zeros((1, 2)), max_iter=4, converged=never, step=0.01
    )
    assert (found.n_iter, found.converged, found.message) == (4, False, "iteration limit reached")
    assert found.value == pytest.approx(bowl(found.x)[0])


def test_the_projected_gradient_shortens_a_step_that_is_too_long():
    found, step = minimize_projected(
        bowl, lambda x: x, np.zeros((1, 2)), max_iter=1, converged=never, step=1e6
    )
    assert found.value < bowl(np.zeros((1, 2)))[0]
    assert step <= 0.55  # the inverse of the curvature, grown by a tenth


# --- learners whose objective overflows -------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        NCA(init=1e160 * np.eye(4)),
        NCA(solver="truncated", init=1e160 * np.eye(4)),
        NCA(solver="minibatch", init=1e160 * np.eye(4)),
        LMNN(init=1e160 * np.eye(4)),
        LMNN(solver="projected", init=1e160 * np.eye(4)),
        MLKR(init=1e160 * np.eye(4)),
    ],
    ids=lambda learner: f"{type(learner).__name__} {getattr(learner, 'solver', '')}",
)
def test_a_start_that_overflows_is_refused(learner, labelled):
    with pytest.raises(ValueError, match=r"Got init with entries up to 1e\+160, but expected"):
        learner.fit(*labelled)
    assert not hasattr(learner, "converged_")


def test_batches_that_go_too_far_end_with_the_pass_before(labelled, monkeypatch):
    from kernelmetric.learners import _nca_solvers

    exact = _nca_solvers.NCAProblem.objective
    calls = []

    def failing(self, L):
        calls.append(L)
        value, gradient = exact(self, L)
        return (np.nan, gradient) if len(calls) > 120 else (value, gradient)

    monkeypatch.setattr(_nca_solvers.NCAProblem, "objective", failing)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        learner = NCA(solver="minibatch", random_state=0).fit(*labelled)
    assert not learner.converged_
    assert np.isfinite(learner.loss_) and np.all(np.isfinite(learner.components_))
    assert learner.loss_ == learner.loss_curve_[-1]


@pytest.mark.parametrize("data", ["two points", "classes of one"])
def test_batches_without_anything_to_gain_end_soon(data, labelled):
    X, _ = labelled
    n = 2 if data == "two points" else 12
    learner = NCA(solver="minibatch", random_state=0).fit(X[:n], np.arange(n))
    assert learner.converged_
    assert learner.n_iter_ <= 4
    assert learner.loss_ == 0.0
