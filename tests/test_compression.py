"""Smaller metrics: the best map on four fifths of the points, and a loss that is the true one."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    DNE,
    KPCA,
    NCA,
    RBF,
    Delta,
    IdealizedKernel,
    Kernelized,
    RandomFeatures,
    compress,
    memory_budget,
)
from kernelmetric.kernels import Rescaled
from kernelmetric.shipping._compress import without_ridge


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.RandomState(0)
    y = np.arange(200) % 3
    X = rng.standard_normal((1000, 4))
    X[:, 0] += 2 * (np.arange(1000) % 3)
    return X[:200], y, X[200:]


@pytest.fixture(scope="module")
def metric(cloud):
    X, y, _ = cloud
    return Kernelized(DNE(2), RBF(gamma=0.1), KPCA(40)).fit(X, y)


def losses(metric, small, X):
    T, S = metric.transform(X), small.transform(X)
    i, j = np.random.RandomState(5).randint(len(T), size=(2, 4000))
    d, e = (np.linalg.norm(E[i] - E[j], axis=1) for E in (T, S))
    residual = (S - T) - (S - T).mean(axis=0)
    return (
        np.sqrt(np.mean((d - e) ** 2) / np.mean(d**2)),
        np.sum(residual**2) / np.sum((T - T.mean(axis=0)) ** 2),
    )


@pytest.mark.slow
def test_the_stated_losses_are_those_of_new_points(metric, cloud):
    """Stated on 40 points; over several draws they are neither too small nor too large."""
    stated, true = [], []
    for seed in range(5):
        small = compress(metric, 8, random_state=seed)
        found = small.compression_
        assert set(found) == {"n_landmarks", "n_before", "distance_error", "variance_lost"}
        stated.append([found["distance_error"], found["variance_lost"]])
        true.append(losses(metric, small, cloud[2]))
    ratio = np.mean(stated, axis=0) / np.mean(true, axis=0)
    assert np.all(ratio > 0.5)
    assert np.all(ratio < 2.0)


def test_the_map_is_the_best_of_its_landmarks(metric, cloud):
    """Least squares on all points, four fifths of which made the map that the loss is stated of."""
    X, _, _ = cloud
    small = compress(metric, 12)
    T = metric.transform(X)
    F = small.space_.transform(X)
    F = np.column_stack([F, np.ones(len(F))])
    best = np.linalg.norm(T - F @ np.linalg.lstsq(F, T, rcond=None)[0])
    found = small.transform(X) - T
    found = np.linalg.norm(found - found.mean(axis=0))  # distances see no shift
    assert best > 0
    assert found <= best * (1 + 1e-6)


def test_small_blocks_change_nothing(metric, cloud):
    X, _, new = cloud
    expected = compress(metric, 10, X).transform(new)
    with memory_budget("200KB"):
        blocked = compress(metric, 10, X).transform(new)
    np.testing.assert_allclose(blocked, expected, atol=1e-6 * np.abs(expected).max())


def test_the_given_metric_is_as_it_was(metric):
    space, learner = metric.space_, metric.learner_
    before = [a.copy() for a in (space.offset_, space.projection_, learner.components_)]
    small = compress(metric, 10)
    assert metric.space_ is space
    assert metric.learner_ is learner
    for a, b in zip((space.offset_, space.projection_, learner.components_), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not hasattr(metric, "compression_")
    assert small.compression_["n_before"] == 200
    assert small.learner_.n_features_in_ == small.learner_.components_.shape[1]
    assert small.space.n_landmarks == 10  # so that a clone is as small


def test_random_features_are_counted_in_pairs(cloud):
    X, y, _ = cloud
    metric = Kernelized(DNE(2), RBF(gamma=0.1), RandomFeatures(30, random_state=0)).fit(X, y)
    n = metric.space_.projection_.shape[0]
    assert compress(metric, 10, X).compression_["n_before"] == n


@pytest.mark.parametrize(("m", "least"), [(23, None), (24, 31), (1, None)])
def test_a_fifth_of_the_points_must_be_left_for_the_loss(m, least, labelled):
    metric = Kernelized(DNE(2), "rbf").fit(*labelled)
    if least is None:
        assert compress(metric, m).compression_["n_landmarks"] <= m
        return
    with pytest.raises(ValueError, match=f"Got 30 points for {m} landmarks.*at least {least}"):
        compress(metric, m)


@pytest.mark.parametrize("n_landmarks", [0, -3, 30, 2.0, "5", None])
def test_numbers_of_landmarks_that_make_no_sense_are_refused(n_landmarks, labelled):
    metric = Kernelized(DNE(2), "rbf").fit(*labelled)
    with pytest.raises(ValueError, match=r"Got n_landmarks=.*an integer >= 1 and <= 29"):
        compress(metric, n_landmarks)


@pytest.mark.every(3)
@pytest.mark.parametrize("given", ["array", "frame", "list"])
def test_points_may_come_in_any_shape(given, metric, cloud):
    X, y, new = cloud
    made = {
        "array": lambda A: A,
        "frame": lambda A: pd.DataFrame(A),
        "list": lambda A: A.tolist(),
    }[given]
    fitted = Kernelized(DNE(2), RBF(gamma=0.1), KPCA(40)).fit(made(X), y)
    expected = compress(metric, 10, X).pairwise_distances(new)
    found = compress(fitted, 10, made(X)).pairwise_distances(made(new))
    np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())  # whatever the signs


def test_sparse_points_are_taken(metric, cloud):
    X, y, new = cloud
    fitted = Kernelized(DNE(2), RBF(gamma=0.1), KPCA(40)).fit(sparse.csr_matrix(X), y)
    small = compress(fitted, 20, sparse.csr_matrix(X))
    assert losses(fitted, small, sparse.csr_matrix(new[:100]))[0] < 0.2


def test_pipelines_hand_their_points_through(cloud):
    X, y, new = cloud
    model = make_pipeline(StandardScaler(), Kernelized(DNE(2), RBF(gamma=0.1))).fit(X * 50, y)
    inner = compress(model[-1], 20, model[0].transform(X * 50))
    small = compress(model, 20, X * 50)
    expected = inner.transform(model[0].transform(new * 50))
    np.testing.assert_allclose(
        small.transform(new * 50), expected, atol=1e-6 * np.abs(expected).max()
    )
    alone = make_pipeline(Kernelized(DNE(2), RBF(gamma=0.1))).fit(X, y)
    assert len(compress(alone, 20, X)[-1].space_.anchors_) == 20


def test_the_ridge_goes_wherever_it_stands():
    class Holder:
        pass

    for kernel, expected in [
        (RBF(gamma=1.0) + 2.0 * Delta(width=1.0), "RBF(gamma=1.0)"),
        (Rescaled(RBF(gamma=1.0) + Delta(width=1.0), [1.0, 2.0]), "RBF(gamma=1.0)"),
        (RBF(gamma=1.0) + RBF(gamma=2.0), "RBF(gamma=2.0)"),
    ]:
        holder, holder.space_ = Holder(), Holder()
        holder.space_.kernel_ = kernel
        plain = without_ridge(holder)
        assert "Delta" not in repr(plain.space_.kernel_)
        assert expected in repr(plain.space_.kernel_)
        assert holder.space_.kernel_ is kernel
    holder.space_.kernel_ = Delta(width=1.0)  # nothing would be left
    assert isinstance(without_ridge(holder).space_.kernel_, Delta)


def test_weights_beside_a_ridge_are_kept(labelled, fresh):
    X, y = labelled
    kernel = 3.0 * RBF(gamma=0.3) + 0.5 * Delta()
    metric = Kernelized(DNE(2), kernel, KPCA(5)).fit(X, y)
    plain = without_ridge(metric)
    np.testing.assert_allclose(plain.space_.kernel_(fresh, X), metric.space_.kernel_(fresh, X))
    assert plain.kernel_ is plain.space_.kernel_


def test_an_idealized_kernel_has_a_map_and_nothing_beside_it(cloud):
    X, y, new = cloud
    metric = IdealizedKernel("rbf", C=10.0, psd="clip").fit(X[:60], y[:60])
    small = compress(metric, 30)
    assert small.signature_ is None
    d, e = metric.pairwise_distances(new[:50]), small.pairwise_distances(new[:50])
    assert np.sqrt(np.mean((d - e) ** 2) / np.mean(d**2)) < 0.3


def test_metrics_without_points_are_refused(labelled):
    with pytest.raises(ValueError, match="expected a metric with a kernel"):
        compress(make_pipeline(StandardScaler(), NCA(2)).fit(*labelled), 5)
