"""What a whole kernelized fit takes: said before any of it is done, and not far off."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from kernelmetric import (
    DNE,
    KPCA,
    LDA,
    RBF,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Linear,
    Nystroem,
    Polynomial,
    RandomFeatures,
    memory_budget,
)
from kernelmetric.compute import _budget
from kernelmetric.kernelized import Recipe
from kernelmetric.kernelized._costs import coordinates_rank, search_bytes
from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA, _ridge_kpca
from kernelmetric.spaces import _base


class Greedy(TransformerMixin, BaseEstimator):
    """A learner that takes a known number of bytes, more than any space, and says so."""

    def __init__(self, arrays=6):
        self.arrays = arrays

    def estimate_memory(self, n_samples, n_features):
        return self.arrays * 8 * n_samples * n_features

    def fit(self, X, y=None):
        held = [X + i for i in range(self.arrays)]
        self.components_ = np.eye(2, X.shape[1]) * float(len(held))
        return self

    def transform(self, X):
        return X @ self.components_.T


def peak_of(estimator, X, y):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        estimator.fit(X, y)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def points(n, d=10):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.every(6)
@pytest.mark.parametrize("n", [250, pytest.param(400, marks=pytest.mark.slow), 600])
@pytest.mark.parametrize(
    "estimator",
    [
        Kernelized(Greedy(20), RBF(gamma=0.1)),
        Kernelized(Greedy(200), Polynomial(degree=2)),
        Kernelized(Greedy(300), RBF(gamma=0.1), KPCA(40)),
        Kernelized(Greedy(200), RBF(gamma=0.1), Nystroem(60, random_state=0)),
        KernelizedCV(Greedy(20), [RBF(gamma=0.1), RBF(gamma=1.0)], 2),
        KernelizedCV(Greedy(20), [RBF(gamma=0.1)], 3, refit=False),
    ],
    ids=repr,
)
def test_the_peak_is_estimated_within_a_factor_of_two(estimator, n):
    X, y = points(n)
    peak = peak_of(estimator, X, y)
    assert 0.5 * peak < estimator.estimate_memory(*X.shape) < 2 * peak


@pytest.mark.slow
def test_a_gram_matrix_in_float32_is_never_whole_in_float64(monkeypatch):
    monkeypatch.setattr(_ridge_kpca, "DOUBLE_ROWS", 500)
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 500)
    monkeypatch.setattr(_base, "BLOCK_BYTES", 2**20)
    X, y = points(2_500, 4)
    space = RidgeKPCA(5, kernel=RBF(gamma=0.1), ridge=1.0)
    with memory_budget("10GB"):  # which leaves blocks as large as they like
        assert peak_of(space, X, y) < 1.3 * space.estimate_memory(*X.shape)


@pytest.mark.every(4)
@pytest.mark.parametrize("n", [100, 140, 200])
def test_the_choice_of_the_kernel_is_estimated_within_a_factor_of_two(n):
    X, y = points(n, 4)

    class Bound(BaseEstimator):
        def fit(self, X, y):
            self.kernel_ = LeaveOneOutRidge().bind(X, y)

    Bound().fit(X[:40], y[:40])  # what is loaded at the first call does not count
    peak = peak_of(Bound(), X, y)
    assert 0.5 * peak < LeaveOneOutRidge().estimate_memory(*X.shape) < 2 * peak


@pytest.mark.parametrize(
    "estimator",
    [
        Kernelized(DNE(2), "auto"),
        Kernelized(LDA(), "rbf", Nystroem(10, random_state=0)),
        KernelizedCV(DNE(1), [RBF(gamma=0.1)]),
    ],
    ids=repr,
)
def test_what_cannot_fit_is_refused_before_any_work(estimator, monkeypatch, labelled):
    X, y = labelled
    needed = estimator.estimate_memory(*X.shape)
    monkeypatch.setattr(_budget, "_ALWAYS_ALLOWED", 10)
    monkeypatch.setattr(_budget, "_free_memory", lambda: needed - 1)

    def work(*_, **__):
        raise AssertionError("work was done before the memory was asked for")

    monkeypatch.setattr(LeaveOneOutRidge, "bind", work)
    monkeypatch.setattr(RBF, "bind", work)
    name = type(estimator).__name__
    with pytest.raises(MemoryError, match=rf"{name}\(\w+\) on 30 points would take about .*: try"):
        estimator.fit(X, y)
    assert not hasattr(estimator, "n_features_in_")


def test_a_part_that_takes_more_makes_the_whole_take_more():
    shape = 1_000, 10
    small, large = (Kernelized(Greedy(k), RBF()).estimate_memory(*shape) for k in (10, 20))
    assert large - small == pytest.approx(10 * 8 * 1_000 * 1_000, rel=0.01)
    one, four = (KernelizedCV(DNE(1), n_jobs=k).estimate_memory(*shape) for k in (1, 4))
    assert four > 2 * one


def test_distances_count_where_they_are_held():
    shape = 200, 10, 100
    with memory_budget("100MB"):
        held = search_bytes(Recipe(RBF(), KPCA(), Greedy(50)), *shape)
    with memory_budget("100KB"):
        computed_anew = search_bytes(Recipe(RBF(), KPCA(), Greedy(50)), *shape)
    assert held - computed_anew == 8 * 200 * (200 + 100)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("space", "kernel", "rank"),
    [
        (KPCA(), RBF(), 500),
        (KPCA(7), RBF(), 7),
        (KPCA(), Linear(), 6),
        (KPCA(), Polynomial(degree=2), 28),
        (KPCA(3), Linear(), 3),
        (Nystroem(60), RBF(), 60),
        (Nystroem(60, n_components=5), RBF(), 5),
        (RandomFeatures(80), RBF(), 80),
        (KernelTrick(), Linear(), 500),
    ],
    ids=repr,
)
def test_the_rank_is_known_before_the_space(space, kernel, rank):
    X, y = points(500, 6)
    assert coordinates_rank(space, kernel, *X.shape) == rank
    if rank < 500:
        Z = space.set_params(kernel=kernel).fit_transform(X, y)
        assert Z.shape[1] <= rank
