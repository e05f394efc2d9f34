"""Recursive feature machines: gradients, rounds, and what they find."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from kernelmetric import LDA, RFM, Kernelized, load, save, to_onnx
from kernelmetric.inspection import explain_pair
from kernelmetric.learners._feature_rounds import (
    KERNELS,
    average_gradient_outer_product,
    feature_rounds,
    held_out_errors,
)


def directions(n, seed=0, d=10):
    """XOR of two directions that are no features, and the directions."""
    rng = np.random.RandomState(seed)
    Q = np.linalg.qr(np.random.RandomState(5).standard_normal((d, 2)))[0]
    X = rng.standard_normal((n, d))
    Z = X @ Q
    return X, (Z[:, 0] > 0) ^ (Z[:, 1] > 0), Q


@pytest.fixture(scope="module")
def xor():
    return directions(250)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_outer_product_is_that_of_finite_differences(kernel):
    rng = np.random.RandomState(0)
    X, Y = rng.standard_normal((30, 3)), rng.standard_normal((30, 2))
    fit = next(feature_rounds(X, Y, kernel))
    found = average_gradient_outer_product(fit.E, fit.alpha, fit.slopes)
    step = 1e-5
    gradients = np.zeros((30, 2, 3))
    for k in range(3):
        move = step * np.eye(3)[k]
        for i in range(30):  # without its own term, which has no derivative
            others = fit._replace(alpha=np.where(np.arange(30)[:, None] == i, 0.0, fit.alpha))
            change = others.predict(X[i : i + 1] + move) - others.predict(X[i : i + 1] - move)
            gradients[i, :, k] = change[0] / (2 * step)
    wanted = np.einsum("ica,icb->ab", gradients, gradients)
    np.testing.assert_allclose(found / np.trace(found), wanted / np.trace(wanted), atol=1e-6)


def test_more_outputs_than_are_kept_change_the_outer_product_little():
    rng = np.random.RandomState(0)
    E, slopes = rng.standard_normal((60, 4)), rng.uniform(size=(60, 60))
    few = rng.standard_normal((60, 20))
    turned = few @ np.linalg.qr(rng.standard_normal((50, 20)))[0].T  # 50 outputs of rank 20
    A, B = (average_gradient_outer_product(E, alpha, slopes) for alpha in (few, turned))
    np.testing.assert_allclose(A, B, rtol=1e-8)


def test_directions_are_found_that_are_no_features(xor):
    X, y, Q = xor
    rfm = RFM(2).fit(X, y)
    U = np.linalg.qr(rfm.components_.T)[0]
    cosines = np.linalg.svd(U.T @ Q, compute_uv=False)
    assert cosines.min() > 0.9
    X_test, y_test, _ = directions(500, seed=1)
    plain = KNeighborsClassifier(5).fit(X, y).score(X_test, y_test)
    learned = KNeighborsClassifier(5).fit(rfm.transform(X), y)
    assert learned.score(rfm.transform(X_test), y_test) > plain + 0.2


@pytest.mark.slow
def test_a_diagonal_one_gives_every_feature_a_scale():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 6))
    rfm = RFM(diagonal=True).fit(X, X[:, 0] * X[:, 1] > 0)
    L = rfm.components_
    np.testing.assert_array_equal(L, np.diag(np.diag(L)))
    assert np.diag(L)[:2].min() > 2 * np.diag(L)[2:].max()


def test_where_no_round_helps_the_map_is_a_multiple_of_the_identity():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((120, 5)), rng.randint(2, size=120)
    rfm = RFM().fit(X, y)
    assert rfm.n_iter_ == np.argmin(rfm.loss_curve_) == 0
    np.testing.assert_allclose(rfm.components_, rfm.components_[0, 0] * np.eye(5), atol=1e-12)


@pytest.mark.slow
def test_the_number_of_rounds_is_the_one_with_the_least_error(xor):
    rfm = RFM(max_iter=3).fit(*xor[:2])
    assert len(rfm.loss_curve_) == 4
    assert rfm.loss_ == rfm.loss_curve_[rfm.n_iter_] == min(rfm.loss_curve_)
    assert rfm.loss_ < rfm.loss_curve_[0]


def test_the_error_is_of_points_that_no_round_has_seen():
    rng = np.random.RandomState(0)
    X, Y = rng.standard_normal((90, 30)), rng.standard_normal((90, 1))
    assert held_out_errors(X, Y, 2, kernel="laplace", diagonal=False).min() > 0.9


def test_numbers_are_predicted_better():
    X, y = make_friedman1(400, noise=0.5, random_state=0)
    rfm = RFM().fit(X[:200], y[:200])
    plain = KNeighborsRegressor(9).fit(X[:200], y[:200]).score(X[200:], y[200:])
    model = KNeighborsRegressor(9).fit(rfm.transform(X[:200]), y[:200])
    assert model.score(rfm.transform(X[200:]), y[200:]) > plain + 0.1


@pytest.mark.slow
def test_several_targets_share_a_metric():
    X = np.random.RandomState(0).standard_normal((200, 8))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]])
    L = np.abs(RFM().fit(X, Y).components_)
    assert np.diag(L)[:2].min() > 2 * np.diag(L)[2:].max()


@pytest.mark.slow
def test_the_map_is_scaled_to_the_kernel_of_the_regression(xor):
    X, y, _ = xor
    for name, power in (("laplace", 1), ("rbf", 2)):
        rfm = RFM(regression=name, max_iter=1).fit(X, y)
        D = rfm.pairwise_distances(X)
        typical = np.median(D[D > 0]) ** power
        widths = 1 / KERNELS[name].widths
        assert 0.9 * widths.min() < typical < 1.1 * widths.max()


@pytest.mark.slow
def test_neither_moving_nor_scaling_the_points_changes_a_neighbour(xor):
    X, y, _ = xor
    some = slice(0, 150)
    D = RFM().fit(X[some], y[some]).pairwise_distances(X[some])
    moved = 7.0 * X[some] + 3.0
    E = RFM().fit(moved, y[some]).pairwise_distances(moved)
    np.testing.assert_allclose(E, D, rtol=1e-4, atol=1e-6 * D.max())


@pytest.mark.slow
def test_the_order_of_rows_and_the_names_of_classes_change_nothing(xor):
    X, y, _ = xor
    rows = np.random.RandomState(3).permutation(len(y))
    M = RFM().fit(X, y).get_mahalanobis_matrix()
    N = RFM().fit(X[rows], np.where(y[rows], "a", "b")).get_mahalanobis_matrix()
    np.testing.assert_allclose(N, M, rtol=1e-5, atol=1e-8 * np.abs(M).max())


def test_of_many_rows_a_sample_is_learned_from():
    X, y, _ = directions(1500, d=4)
    small, same = (RFM(max_samples=200, max_iter=1).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(small.components_, same.components_)
    assert RFM().estimate_memory(10**6, 4) == RFM().estimate_memory(1000, 4)


def test_more_features_than_points_are_no_hindrance():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 300))
    rfm = RFM(3).fit(X, X[:, 0] > 0)
    assert rfm.components_.shape == (3, 300)
    assert RFM().fit(X, X[:, 0] > 0).transform(X).shape[0] == 40


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"regression": "cubic"}, "Got regression='cubic', but expected 'laplace' or 'rbf'"),
        ({"max_iter": 0}, "Got max_iter=0"),
        ({"max_samples": 3}, "Got max_samples=3"),
    ],
    ids=["regression", "max_iter", "max_samples"],
)
def test_parameters_that_mean_nothing_are_refused(params, message, labelled):
    with pytest.raises(ValueError, match=message):
        RFM(**params).fit(*labelled)


def test_targets_that_are_all_the_same_are_refused(labelled):
    X = labelled[0]
    with pytest.raises(ValueError, match="same target for all points"):
        RFM().fit(X, np.full((len(X), 2), 0.5))


@pytest.fixture(scope="module")
def mapped():
    X, y, _ = directions(300, d=6)
    metric = Kernelized(LDA()).fit(X, y)
    assert np.ndim(metric.kernel_.scales) == 2
    return metric, X


def test_a_metric_of_mapped_points_is_saved_and_read_again(mapped, tmp_path):
    metric, X = mapped
    again = load(save(metric, tmp_path / "metric.km"))
    np.testing.assert_array_equal(again.transform(X), metric.transform(X))


def test_a_metric_of_mapped_points_is_the_same_in_onnx(mapped):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    metric, X = mapped
    session = runtime.InferenceSession(to_onnx(metric, dtype="float64").SerializeToString())
    new = X[:20] + 0.1
    (found,) = session.run(None, {session.get_inputs()[0].name: new})
    wanted = metric.transform(new)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_the_distance_of_mapped_points_is_split_over_the_features(mapped):
    metric, X = mapped
    for pair in (X[:2], X[:2] + 0.1):
        why = explain_pair(metric, *pair)
        assert abs(why.shares.sum() - why.squared_distance) < 1e-8 * why.squared_distance


@pytest.mark.slow
def test_weights_take_part_in_the_search_for_a_map():
    X, y, _ = directions(300, d=6)
    w = np.random.RandomState(0).uniform(0.5, 2.0, len(X))
    assert np.ndim(Kernelized(LDA()).fit(X, y, sample_weight=w).kernel_.scales) == 2
    # Of the points that count, few follow the directions: the map of the others is of no use.
    noise = np.random.RandomState(1).randint(2, size=len(y))
    mixed = np.where(np.arange(len(y)) % 2 == 0, noise, y)
    w = np.where(np.arange(len(y)) % 2 == 0, 1.0, 0.01)
    kernel = Kernelized(LDA()).fit(X, mixed, sample_weight=w).kernel_
    assert np.ndim(getattr(kernel, "scales", 0.0)) < 2
