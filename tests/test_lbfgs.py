"""L-BFGS takes the steps that SciPy's takes, on one thread or several, in either precision."""

import math

import numpy as np
import pytest
from scipy import optimize
from threadpoolctl import threadpool_limits

from kernelmetric.compute.reductions import sum_entries
from kernelmetric.solvers import minimize_lbfgs

RNG = np.random.RandomState(0)
A, B = RNG.randn(40, 30), np.sign(RNG.randn(40))


def valley(x):
    """Rosenbrock's banana in ten dimensions."""
    return optimize.rosen(x.ravel()), optimize.rosen_der(x.ravel()).reshape(x.shape)


def logistic(x):
    margins = B * (A @ x.ravel())
    value = np.sum(np.logaddexp(0.0, -margins)) + 0.01 * np.sum(x * x)
    return float(value), (A.T @ (-B / (1 + np.exp(margins)))).reshape(x.shape) + 0.02 * x


def waves(x):
    return float(np.sum(0.1 * x * x + np.cos(3 * x))), 0.2 * x - 3 * np.sin(3 * x)


def corner(x):
    return float(np.sum(np.abs(x))), np.sign(x)


def quartic(x):
    return float(np.sum(x**4)), 4 * x**3


PROBLEMS = [
    (valley, RNG.randn(2, 5)),
    (logistic, np.zeros((5, 6))),
    (waves, 3 * RNG.randn(3, 4)),
    (corner, RNG.randn(3, 4)),
    (quartic, np.full((2, 2), 9.0)),
]


def counted(objective):
    calls = []

    def count(x):
        calls.append(1)
        return objective(x)

    return count, calls


def scipys(objective, start, max_iter, tol, memory):
    """Values, number of evaluations and status of SciPy's optimiser."""
    values, (function, calls) = [], counted(objective)
    found = optimize.minimize(
        lambda x: (lambda value, gradient: (value, gradient.ravel()))(
            *function(x.reshape(start.shape))
        ),
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: values.append(float(intermediate_result.fun)),
        options={
            "maxiter": max_iter, "maxfun": 20 * max_iter + 20, "ftol": tol, "gtol": 1e-12,
            "maxcor": memory,
        },
    )  # fmt: skip
    return values, len(calls), found.status == 0


def ours(objective, start, max_iter, tol, memory):
    values, (function, calls) = [], counted(objective)
    found = minimize_lbfgs(
        function,
        start,
        max_iter=max_iter,
        tol=tol,
        memory=memory,
        report=lambda x, value: values.append(value),
    )
    return values, len(calls), found.converged


@pytest.mark.parametrize(("max_iter", "tol", "memory"), [(25, 1e-12, 10), (30, 1e-3, 3)])
@pytest.mark.parametrize(
    ("objective", "start"), PROBLEMS, ids=[problem.__name__ for problem, _ in PROBLEMS]
)
def test_the_steps_are_those_of_scipy(objective, start, max_iter, tol, memory):
    theirs = scipys(objective, start, max_iter, tol, memory)
    found = ours(objective, start, max_iter, tol, memory)
    assert found[1:] == theirs[1:]  # as many evaluations, and the same reason to stop
    np.testing.assert_allclose(found[0], theirs[0], rtol=1e-8)


def test_how_many_corrections_are_kept_makes_a_difference():
    few, many = (ours(valley, PROBLEMS[0][1], 25, 1e-12, memory)[0] for memory in (2, 10))
    assert few[:2] == pytest.approx(many[:2], rel=1e-12)
    assert few[-1] > 1.001 * many[-1]


def bowl(shape, dtype=np.float64):
    """A quadratic in many dimensions, its sums rounded alike on any number of threads."""
    scales = np.geomspace(1.0, 1e3, math.prod(shape)).reshape(shape)

    def objective(x):
        gradient = scales * (x - 1.0)
        return 0.5 * math.fsum((gradient * (x - 1.0)).sum(axis=1)), gradient.astype(dtype)

    return objective


@pytest.mark.slow
def test_a_long_descent_is_the_same_on_any_number_of_threads():
    shape = (400, 700)  # with ten corrections, threads share so many entries
    found = []
    for threads in (1, 3):
        with threadpool_limits(threads):
            found.append(minimize_lbfgs(bowl(shape), np.zeros(shape), max_iter=12, tol=0.0))
    assert found[0].value < 0.1 * bowl(shape)(np.zeros(shape))[0]
    for other in found[1:]:
        np.testing.assert_array_equal(other.x, found[0].x)


def test_blocks_of_entries_change_a_descent_by_rounding_alone(monkeypatch):
    shape = (30, 50)
    whole = minimize_lbfgs(bowl(shape), np.zeros(shape), max_iter=15, tol=0.0)
    monkeypatch.setattr("kernelmetric.compute._execute._CACHED", 64)
    blocks = minimize_lbfgs(bowl(shape), np.zeros(shape), max_iter=15, tol=0.0)
    np.testing.assert_allclose(blocks.x, whole.x, rtol=0, atol=1e-9)


def test_a_gradient_in_float32_is_added_up_in_float64():
    shape = (20, 30)
    exact, rounded = (
        minimize_lbfgs(bowl(shape, dtype), np.zeros(shape), max_iter=8, tol=0.0)
        for dtype in (np.float64, np.float32)
    )
    assert rounded.x.dtype == np.float64
    np.testing.assert_allclose(rounded.x, exact.x, atol=1e-4)


def test_the_start_is_left_as_it_was_and_iterates_stay_when_the_next_one_comes():
    start = RNG.randn(2, 5)
    before, seen = start.copy(), []

    def report(x, value):
        if seen:
            np.testing.assert_array_equal(*seen[-1])
        seen.append((x, x.copy()))

    minimize_lbfgs(valley, start, max_iter=12, tol=0.0, report=report)
    np.testing.assert_array_equal(start, before)
    assert len(seen) == 12


def test_a_flat_start_is_a_minimum():
    found = minimize_lbfgs(quartic, np.zeros((1, 3)), max_iter=5, tol=1e-9)
    assert (found.n_iter, found.converged) == (0, True)


def test_values_that_hide_a_decrease_end_a_line_search_at_once():
    def coarse(x):
        return float(np.float32(1e6 + 1e-6 * np.sum((x - 3.0) ** 2))), 2e-6 * (x - 3.0)

    count, calls = counted(coarse)
    found = minimize_lbfgs(count, np.zeros((2, 2)), max_iter=50, tol=1e-6)
    assert found.converged
    assert len(calls) <= 3


def test_an_equal_value_beyond_the_minimum_is_no_flat_ground():
    found = minimize_lbfgs(  # the first trial is as far beyond the minimum as the start before it
        lambda x: (float(np.sum((x - 0.5) ** 2)), 2.0 * (x - 0.5)),
        np.zeros((1, 1)),
        max_iter=9,
        tol=0,
    )
    np.testing.assert_allclose(found.x, 0.5)


def test_sums_over_entries_see_each_one_once(monkeypatch):
    monkeypatch.setattr("kernelmetric.compute._execute._CACHED", 10)
    for operations in (1.0, 1e9):
        seen = np.zeros(1037)

        def work(some, seen=seen):
            seen[some] += 1
            return seen[some].sum(), np.array([some.stop - some.start])

        total, length = sum_entries(work, len(seen), operations)
        assert total == len(seen) == length[0]
        assert np.all(seen == 1)


@pytest.mark.parametrize(("objective", "start"), PROBLEMS[:3])
@pytest.mark.parametrize("first", [1, 4, 12])
def test_a_descent_that_goes_on_takes_the_steps_of_one_without_a_break(objective, start, first):
    how = {"tol": 0.0, "memory": 5}
    whole = minimize_lbfgs(objective, start, max_iter=20, **how)
    begun = minimize_lbfgs(objective, start, max_iter=first, **how)
    rest = minimize_lbfgs(
        objective, begun.x, max_iter=20 - first, corrections=begun.corrections, **how
    )
    assert begun.n_iter + rest.n_iter == whole.n_iter
    np.testing.assert_allclose(rest.x, whole.x, rtol=1e-6, atol=1e-9)


def test_a_descent_that_begins_anew_takes_other_steps():
    start = PROBLEMS[0][1]
    begun = minimize_lbfgs(valley, start, max_iter=4, tol=0.0)
    anew = minimize_lbfgs(valley, begun.x, max_iter=1, tol=0.0)
    whole = minimize_lbfgs(valley, start, max_iter=5, tol=0.0)
    assert not np.allclose(anew.x, whole.x, rtol=1e-6)


def test_what_is_known_of_one_objective_serves_one_with_the_same_curvature():
    scales, goal = np.array([[1.0, 30.0], [4.0, 0.2]]), np.array([[3.0, -1.0], [2.0, 5.0]])

    def bowl(x, middle):
        return 0.5 * float(np.sum(scales * (x - middle) ** 2)), scales * (x - middle)

    first = minimize_lbfgs(lambda x: bowl(x, 0.0), 9 * goal, max_iter=60, tol=1e-15)
    known = first.corrections
    there = minimize_lbfgs(lambda x: bowl(x, goal), first.x, max_iter=1, tol=0.0, corrections=known)
    assert there.value < 1e-3 * bowl(first.x, goal)[0]  # in one step


def test_corrections_that_lead_upwards_are_forgotten():
    found = minimize_lbfgs(logistic, np.zeros((5, 6)), max_iter=8, tol=0.0)
    found.corrections.rows *= -1.0  # as if all steps had gone the other way
    found.corrections.curvatures *= -1.0
    found.corrections.inverse *= -1.0
    known = found.corrections
    again = minimize_lbfgs(logistic, found.x, max_iter=200, tol=1e-12, corrections=known)
    best = minimize_lbfgs(logistic, np.zeros((5, 6)), max_iter=300, tol=1e-12)
    assert again.converged
    assert again.value == pytest.approx(best.value, rel=1e-6)
