"""The compiled passes over a tile, and NumPy's where there is no compiler."""

import os
import subprocess
import sys

import numpy as np
import pytest

from kernelmetric.compute import nca_loss
from kernelmetric.compute.backends import _native

LOW, HIGH = -70.0, 60.0


@pytest.fixture(params=["compiled", "pure"])
def passes(request, monkeypatch):
    """Both ways, the first where this installation has it."""
    _native.native.cache_clear()
    if request.param == "pure":
        monkeypatch.setenv("KERNELMETRIC_PURE", "1")
        assert _native.native() is None
    elif _native.native() is None:
        pytest.skip("This installation has no compiled library.")
    yield _native
    _native.native.cache_clear()


@pytest.mark.parametrize("shape", [(1, 1), (3, 15), (7, 16), (5, 37), (40, 300)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_and_their_sums(passes, shape, dtype):
    K = np.random.RandomState(0).uniform(-90, 70, shape).astype(dtype)
    expected = np.exp(np.clip(K.astype(np.float64), LOW, HIGH))
    rows, columns = passes.exponentials(K, LOW, HIGH, without_diagonal=False)
    tolerance = 4 * np.finfo(np.float32).eps
    np.testing.assert_allclose(K, expected, rtol=tolerance)
    np.testing.assert_allclose(rows, expected.sum(axis=1), rtol=4 * tolerance)
    np.testing.assert_allclose(columns, expected.sum(axis=0), rtol=4 * tolerance)


def test_the_exponential_is_right_to_two_units_in_the_last_place(passes):
    x = np.linspace(LOW, HIGH, 200_001, dtype=np.float32)[None, :]
    expected = np.exp(x.astype(np.float64))
    K = x.copy()
    passes.exponentials(K, LOW, HIGH, without_diagonal=False)
    assert np.max(np.abs(K / expected - 1)) < 4 * 2.0**-24


@pytest.mark.parametrize("shape", [(4, 4), (4, 9), (9, 4)])
def test_a_point_is_not_its_own_neighbour(passes, shape):
    K = np.zeros(shape, dtype=np.float32)
    rows, columns = passes.exponentials(K, LOW, HIGH, without_diagonal=True)
    expected = 1.0 - np.eye(*shape)
    np.testing.assert_array_equal(K, expected)
    np.testing.assert_array_equal(rows, expected.sum(axis=1))
    np.testing.assert_array_equal(columns, expected.sum(axis=0))


@pytest.mark.parametrize("r", [0, 1, 15, 16, 17, 50, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_distances_of_pairs(passes, r, dtype):
    rng = np.random.RandomState(0)
    E = rng.standard_normal((40, r)).astype(dtype)
    first, second = rng.randint(40, size=(2, 100)).astype(np.int32)
    exact = E.astype(np.float64)
    expected = np.sum((exact[first] - exact[second]) ** 2, axis=1)
    for points in (E, np.asfortranarray(E)):
        found = passes.pair_squares(points, first, second)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=20 * np.finfo(dtype).eps)
    assert passes.pair_squares(E, first[:0], second[:0]).shape == (0,)


def test_pairs_of_rows_that_are_not_there_are_refused(passes):
    E, good = np.zeros((5, 3)), np.array([0, 4, 2])
    for bad in (np.array([0, 5, 2]), np.array([2**40, 1, 1])):
        for first, second in ((good, bad), (bad, good)):
            with pytest.raises(IndexError):
                passes.pair_squares(E, first, second)


def test_nan_stays_nan(passes):
    K = np.full((2, 20), np.nan, dtype=np.float32)
    rows, _ = passes.exponentials(K, LOW, HIGH, without_diagonal=False)
    assert np.isnan(K).all() and np.isnan(rows).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_of_rows_and_columns(passes, dtype):
    rng = np.random.RandomState(0)
    K, a, b = (rng.randn(*shape).astype(dtype) for shape in [(5, 33), (5,), (33,)])
    expected = K * (a[:, None] + b)
    passes.weigh(K, a, b)
    np.testing.assert_allclose(K, expected, rtol=1e-6, atol=1e-6)


def test_arrays_that_are_not_in_rows_are_left_to_numpy(passes):
    K = np.zeros((4, 6), dtype=np.float32, order="F")
    rows, _ = passes.exponentials(K, LOW, HIGH, without_diagonal=False)
    np.testing.assert_array_equal(rows, np.full(4, 6.0))


def test_the_loss_is_the_same_either_way(monkeypatch):
    rng = np.random.RandomState(0)
    X, L = rng.randn(700, 9).astype(np.float32), rng.randn(5, 9).astype(np.float32)
    codes = np.sort(rng.randint(0, 4, 700))
    _native.native.cache_clear()
    value, gradient = nca_loss(L, X, codes)
    monkeypatch.setenv("KERNELMETRIC_PURE", "1")
    _native.native.cache_clear()
    pure_value, pure_gradient = nca_loss(L, X, codes)
    _native.native.cache_clear()
    assert value == pytest.approx(pure_value, rel=1e-5)
    np.testing.assert_allclose(gradient, pure_gradient, rtol=1e-4, atol=1e-4)


def test_a_library_of_another_version_is_not_used(monkeypatch):
    _native.native.cache_clear()
    monkeypatch.setattr(_native, "_VERSION", -1)
    assert _native.native() is None
    _native.native.cache_clear()


def test_the_environment_turns_the_compiled_passes_off():
    program = "from kernelmetric.compute import native; print(native())"
    env = {**os.environ, "KERNELMETRIC_PURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "None"
