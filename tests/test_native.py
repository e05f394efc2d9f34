"""The compiled passes over pairs, and NumPy's where there is no compiler."""

import pickle

import numpy as np
import pytest

from kernelmetric.compute import _threads
from kernelmetric.compute._execute import run_on_cluster
from kernelmetric.compute.backends import _native
from kernelmetric.compute.reductions import Triplets, _listed, lmnn_step_on
from kernelmetric.compute.reductions._listed import lmnn_hinge_on


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


def listed(dtype, r, p):
    """Points in three classes, what belongs to each, targets with one missing, and a list."""
    rng = np.random.RandomState(0)
    codes = np.sort(rng.randint(3, size=60))
    E, V = (rng.standard_normal((60, width)).astype(dtype) for width in (r, p))
    targets = np.stack([np.roll(np.arange(60), shift) for shift in (1, 2)], axis=1)
    targets = np.where(codes[targets] == codes[:, None], targets, -1)
    pairs = np.argwhere((codes[:, None] != codes) & (rng.uniform(size=(60, 60)) < 0.5))
    return np.ascontiguousarray(pairs, dtype=np.int32), E, V, targets


def by_definition(pairs, E, targets, corner, counted):
    """The objective, c = 0.7, and the weights of pairs in its derivative, triplet by triplet."""
    E, parts = E.astype(np.float64), np.ones((60, 2)) if counted is None else counted.parts
    d = np.sum((E[:, None] - E) ** 2, axis=2)
    value, W = 0.0, np.zeros((60, 60))
    for i, slot in np.argwhere(targets >= 0):
        value += parts[i, slot] * d[i, targets[i, slot]]
        W[i, targets[i, slot]] += parts[i, slot]
    for i, other in pairs:
        for slot in np.flatnonzero(targets[i] >= 0):
            t = 1.0 + d[i, targets[i, slot]] - d[i, other]
            if t > 0:
                count = 0.7 * parts[i, slot] * (1.0 if counted is None else counted.counts[other])
                inside = t < corner
                value += count * (t * t / (2 * corner) if inside else t - corner / 2)
                slope = count * (t / corner if inside else 1.0)
                W[i, targets[i, slot]] += slope
                W[i, other] -= slope
    W = W + W.T
    return value, np.diag(W.sum(axis=1)) - W


CLOSE = {np.float32: {"rtol": 1e-4, "atol": 1e-3}, np.float64: {"rtol": 1e-9, "atol": 1e-10}}


def some_counts(weighed):
    rng = np.random.RandomState(1)
    return Triplets(rng.uniform(size=(60, 2)), rng.uniform(size=60)) if weighed else None


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("corner", [0.0, 0.5])
@pytest.mark.parametrize(("r", "p"), [(1, 0), (5, 3), (17, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.every(6)
def test_the_hinge_over_a_list_is_what_its_definition_says(passes, dtype, r, p, corner, weighed):
    pairs, E, V, targets = listed(dtype, r, p)
    counted, E = some_counts(weighed), E / np.sqrt(r).astype(dtype)
    value, product = lmnn_hinge_on(pairs, E, V, targets, 0.7, corner, counted)
    expected, laplacian = by_definition(pairs, E, targets, corner, counted)
    np.testing.assert_allclose(value, expected, **CLOSE[dtype])
    np.testing.assert_allclose(product, laplacian @ V, **CLOSE[dtype])
    assert product.dtype == dtype


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("corner", [0.0, 0.5])
@pytest.mark.parametrize(("d", "r"), [(1, 1), (5, 3), (17, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.every(4)
def test_a_step_over_a_list_is_what_its_definition_says(
    passes, dtype, d, r, corner, weighed, in_parts, monkeypatch
):
    pairs, X, _, targets = listed(dtype, d, 1)
    counted = some_counts(weighed)
    L = np.random.RandomState(2).standard_normal((r, d)) / np.sqrt(d * r)
    assert passes.hinge_compiled(X, pairs) == (passes.native() is not None)
    if in_parts:
        monkeypatch.setattr(_threads, "_WORTH_THREADS", 0.0)
    value, gradient = lmnn_step_on(pairs, L, X, targets, 0.7, corner, counted)
    E = X.astype(np.float64) @ L.T
    expected, laplacian = by_definition(pairs, E, targets, corner, counted)
    np.testing.assert_allclose(value, expected, **CLOSE[dtype])
    np.testing.assert_allclose(gradient, 2.0 * E.T @ laplacian @ X, **CLOSE[dtype])
    assert gradient.dtype == np.float64


def test_a_step_over_a_list_of_another_kind_or_of_none_is_the_same(passes):
    pairs, X, _, targets = listed(np.float64, 5, 1)
    L = np.random.RandomState(2).standard_normal((3, 5)) / 4
    value, gradient = lmnn_step_on(pairs, L, X, targets, 0.7, 0.5)
    others = [(pairs.astype(np.int64), X), (np.asfortranarray(pairs), X)]
    others += [(pairs, np.asfortranarray(X)), (pairs, np.repeat(X, 2, axis=1)[:, ::2])]
    for some, points in others:
        found, slope = lmnn_step_on(some, L, points, targets, 0.7, 0.5)
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slope, gradient, rtol=1e-10, atol=1e-12)
    value, gradient = lmnn_step_on(pairs[:0], L, X, targets, 0.7)
    expected, laplacian = by_definition(pairs[:0], X @ L.T, targets, 0.0, None)
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(gradient, 2.0 * L @ X.T @ laplacian @ X, rtol=1e-10)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_over_a_long_list_has_the_same_bits_on_other_workers(
    passes, dtype, long, monkeypatch
):
    monkeypatch.setattr(_threads, "_WORTH_THREADS", 0.0)
    monkeypatch.setattr(_listed, "_LONG", 1.3 if long else 1e9)
    pairs, X, _, targets = listed(dtype, 5, 1)
    L = np.random.RandomState(2).standard_normal((3, 5)) / 4
    shared = []

    class Elsewhere:
        def share(self, work, items, flops, take):
            if not hasattr(work, "ready"):
                return False
            with run_on_cluster(None):
                for item in items:
                    take(pickle.loads(pickle.dumps(work))(item))
            shared.append(len(pickle.dumps(work)))
            return True

    value, gradient = lmnn_step_on(pairs, L, X, targets, 0.7, 0.5)
    with run_on_cluster(Elsewhere()):
        found, slope = lmnn_step_on(pairs, L, X, targets, 0.7, 0.5)
    assert found == value
    np.testing.assert_array_equal(slope, gradient)
    # Mapped points do not travel: what does is hardly more than what was given.
    given = sum(array.nbytes for array in (pairs, L.astype(dtype), X, targets))
    assert bool(shared) == (long and passes.native() is not None)
    assert all(size < given + X.nbytes + 2_000 for size in shared)


def test_a_list_of_rows_that_are_not_there_is_refused(passes):
    pairs, X, _, targets = listed(np.float64, 5, 1)
    L = np.eye(5)
    for bad in ((3, 60), (60, 3)):
        with pytest.raises(IndexError):
            lmnn_step_on(np.array([bad], dtype=np.int32), L, X, targets, 0.7)
    with pytest.raises(IndexError):
        lmnn_step_on(pairs, L, X, np.where(targets == 7, 60, targets), 0.7)


def test_a_library_of_another_version_is_not_used(monkeypatch):
    _native.native.cache_clear()
    monkeypatch.setattr(_native, "_VERSION", -1)
    assert _native.native() is None
    _native.native.cache_clear()


def test_the_environment_turns_the_compiled_passes_off(monkeypatch):
    monkeypatch.setenv("KERNELMETRIC_PURE", "1")
    assert _native.native.__wrapped__() is None  # what a first call finds
