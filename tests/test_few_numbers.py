"""Few numbers: what is solved, what is promised, and what is refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_supervised_y_2d

from kernelmetric import (
    TimeLimitWarning,
    TransductiveDistance,
    TransductiveRegressor,
    load,
    save,
    time_limit,
)
from kernelmetric.graphs import neighbor_graph
from kernelmetric.transductive._diffusion import Diffusion
from kernelmetric.transductive._numbers import _Candidate, _covariance, _left_out


def roll(n=300, count=20, seed=0):
    X, along = make_swiss_roll(n, random_state=seed)
    y = np.full(n, np.nan)
    rows = np.random.RandomState(seed).permutation(n)[:count]
    y[rows] = along[rows]
    return X, y, along


def test_the_covariance_of_a_graph_is_an_inverse():
    W = neighbor_graph(np.random.RandomState(0).randn(30, 2), 5)
    d = np.asarray(W.sum(axis=1)).ravel()
    K = np.linalg.inv(np.diag(d) - W.toarray() + 0.1 * np.diag(d))
    found = Diffusion(W).covariance(np.array([3, 7]), np.eye(2), 0.1)
    assert_allclose(found, K[:, [3, 7]], atol=1e-4 * K.max())


def test_the_density_of_numbers_left_out_is_that_of_leaving_them_out():
    rng = np.random.RandomState(0)
    A, z, one = rng.randn(8, 8), rng.randn(8), _Candidate(("k",), 0.3)
    K = _covariance(one, {"k": A @ A.T})
    squares, logs = [], []
    for i in range(8):
        rest = np.delete(np.arange(8), i)
        w = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        variance = K[i, i] - K[i, rest] @ w
        squares.append((z[i] - w @ z[rest]) ** 2 / variance)
        logs.append(np.log(variance))
    expected = -0.5 * (np.sum(logs) + 8 * np.log(np.mean(squares)))
    assert_allclose(_left_out(one, {"k": A @ A.T}, z), expected)


@pytest.mark.slow
def test_a_graph_tells_what_features_do_not():
    t = np.sqrt(np.random.RandomState(0).uniform(0, 1, 600)) * 8 * np.pi
    X, truth = np.column_stack([t * np.cos(t), t * np.sin(t)]), np.cos(t / 2)  # by winding
    y = np.where(np.arange(600) < 40, truth, np.nan)
    model = TransductiveRegressor().fit(X, y)
    assert np.mean((model.transduction_ - truth)[40:] ** 2) < 0.3 * truth.var()
    assert_array_equal(model.transduction_[:40], y[:40])
    weights = model.candidates_[0]
    assert sum(w for name, w in weights.items() if name.startswith("graph")) > 0.9


def test_a_plane_is_found_from_five_numbers():
    X = np.random.RandomState(0).randn(100, 2)
    truth = X @ [1.0, -2.0] + 3.0
    y = np.where(np.arange(100) < 5, truth, np.nan)
    assert TransductiveRegressor().fit(X, y).score(X, truth) > 0.9


@pytest.mark.slow
def test_units_order_and_shift_of_numbers_do_not_matter():
    X, y, _ = roll(150)
    plain = TransductiveRegressor().fit(X, y)
    F = plain.predict(X)
    other = TransductiveRegressor().fit(X, 1e-6 * y - 5.0)
    assert_allclose(other.predict(X), 1e-6 * F - 5.0, atol=1e-3 * 1e-6 * np.ptp(F))
    order = np.random.RandomState(1).permutation(150)
    moved = TransductiveRegressor().fit(X[order], y[order])
    assert_allclose(moved.predict(X[order]), F[order], atol=0.02 * np.ptp(F))


@pytest.mark.slow
def test_outputs_are_learned_each_by_itself():
    X, y, _along = roll(150)
    second = np.where(np.arange(150) % 9 == 0, X[:, 1], np.nan)
    both = TransductiveRegressor().fit(X, np.column_stack([y, second]))
    assert both.predict(X).shape == both.transduction_.shape == (150, 2)
    assert both.predict_interval(X, 0.8).shape == (150, 2, 2)
    for j, one in enumerate((y, second)):
        alone = TransductiveRegressor().fit(X, one)
        assert_allclose(
            alone.predict(X), both.predict(X)[:, j], atol=1e-3 * np.ptp(alone.predict(X))
        )


@pytest.mark.slow
def test_intervals_hold_what_they_say():
    held = []
    for seed in range(6):
        X, _, along = roll(200, 40, seed)
        noisy = along + np.random.RandomState(seed).randn(200)
        y = np.where(np.arange(200) < 40, noisy, np.nan)
        low, high = TransductiveRegressor(cv=5).fit(X, y).predict_interval(X[40:], 0.8).T
        held.append(np.mean((low < noisy[40:]) & (noisy[40:] < high)))
    assert 0.72 < np.mean(held) < 0.92
    with pytest.warns(UserWarning, match="intervals are infinite"):
        assert np.all(np.isinf(TransductiveRegressor().fit(*roll(60, 5)[:2]).predict_interval(X)))


def test_new_points_are_where_they_would_have_been():
    X, y, along = roll(400, 40)
    new = np.isnan(y) & (np.arange(400) % 4 == 0)
    model = TransductiveRegressor().fit(X[~new], y[~new])
    inside = TransductiveRegressor().fit(X, y).predict(X[new])
    assert np.mean((model.predict(X[new]) - inside) ** 2) < 0.03 * along.var()


def test_it_is_saved_cloned_and_pickled(tmp_path):
    X, y, _ = roll(100)
    model = TransductiveRegressor().fit(X, y)
    save(model, tmp_path / "numbers.npz")
    for other in (load(tmp_path / "numbers.npz"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict(X + 0.01), model.predict(X + 0.01))
        assert_array_equal(other.predict_interval(X, 0.5), model.predict_interval(X, 0.5))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.slow
def test_a_given_graph_is_used_alone():
    X, y, along = roll(200)
    W = neighbor_graph(X, 8)
    model = TransductiveRegressor(graph=W).fit(np.zeros((200, 1)) + np.arange(200)[:, None], y)
    assert all(name.startswith("graph") for name in model.candidates_[0])
    assert np.corrcoef(model.transduction_, along)[0, 1] > 0.6
    blind = TransductiveRegressor().fit(np.arange(200.0)[:, None], y)
    assert np.corrcoef(blind.transduction_, along)[0, 1] < 0.4


@pytest.mark.every(4)
@pytest.mark.parametrize("change", ["copies", "constant", "equal", "two", "all"])
def test_degenerate_numbers_have_finite_answers(change):
    X, y, along = roll(60)
    if change == "copies":
        X = X[np.arange(60) % 7]
    elif change == "constant":
        X = np.c_[X, np.full(60, 1e9)]
    elif change == "equal":
        y[~np.isnan(y)] = 2.0
    elif change == "two":
        y[np.flatnonzero(~np.isnan(y))[2:]] = np.nan
    else:
        y = along
    model = TransductiveRegressor().fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    if change == "equal":
        assert_allclose(model.predict(X), 2.0)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.full(60, np.nan), "Got 0 known"),
        (np.where(np.arange(60) < 1, 1.0, np.nan), "Got 1 known"),
        (np.full(60, np.inf), "infinity"),
        (np.zeros((60, 2, 2)), "dim"),
        (np.array(["a"] * 60), "Got y with text"),
    ],
)
def test_numbers_that_are_none_are_refused(y, said):
    with pytest.raises(ValueError, match=said):
        TransductiveRegressor().fit(roll(60)[0], y)


def test_a_column_of_numbers_is_one_output_as_the_tags_say():
    X, y, _ = roll(60)
    tags = get_tags(TransductiveRegressor()).target_tags
    assert tags.multi_output
    assert tags.single_output
    check_supervised_y_2d("TransductiveRegressor", TransductiveRegressor())
    flat, column = (TransductiveRegressor().fit(X, Y) for Y in (y, y[:, None]))
    assert column.predict(X).shape == (60, 1)  # as of LinearRegression
    assert_array_equal(column.predict(X)[:, 0], flat.predict(X))


def test_classes_refuse_numbers_by_name():
    X, y, _ = roll(60)
    with pytest.raises(ValueError, match="Try TransductiveRegressor"):
        TransductiveDistance().fit(X, np.where(np.isnan(y), -1.0, y))


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_time_limit_leaves_fewer_rows_and_every_step_whole(n_outputs):
    X, y, along = roll(6000, 500)
    truth = along
    if n_outputs == 2:
        y, truth = np.column_stack([y, -y]), np.column_stack([along, -along])
    said = "draw of rows for TransductiveRegressor"
    with pytest.warns(TimeLimitWarning, match=said) as caught, time_limit(0.2):
        model = TransductiveRegressor().fit(X, y)
    assert not any("residuals" in str(w.message) for w in caught)
    assert model.transduction_.shape == truth.shape
    known = ~np.isnan(y)
    assert_array_equal(model.transduction_[known], truth[known])
    assert np.corrcoef(model.transduction_.ravel(), truth.ravel())[0, 1] > 0.9
