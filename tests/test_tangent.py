"""Tangent distance: blind to small transformations, and the minimum that it claims to be."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, rotate, shift
from sklearn.datasets import load_digits

from kernelmetric import memory_budget
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.transductive import TANGENTS, tangent_distance, tangent_neighbors, tangent_vectors

SHAPE = (16, 16)


@pytest.fixture(scope="module")
def images():
    """Blurred strokes in the middle of the picture."""
    noise = np.random.RandomState(0).standard_normal((12, *SHAPE))
    inside = np.zeros(SHAPE)
    inside[4:12, 4:12] = 1
    return gaussian_filter(np.maximum(noise, 0) * inside, (0, 1, 1)) * 5


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


def by_least_squares(a, b, sigma=0.9):
    T_a, T_b = tangent_vectors(np.stack([a, b]), shape=a.shape, sigma=sigma)
    difference = (gaussian_filter(a, sigma) - gaussian_filter(b, sigma)).ravel()
    both = np.vstack([T_a, -T_b]).T
    coefficients = np.linalg.lstsq(both, -difference, rcond=None)[0]
    return np.linalg.norm(difference + both @ coefficients)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-8), (np.float32, 1e-3)])
def test_the_distance_is_the_minimum_over_both_planes(images, dtype, rtol):
    found = tangent_distance(images[:-1].astype(dtype), images[1:].astype(dtype), shape=SHAPE)
    expected = [by_least_squares(a, b) for a, b in pairwise(images)]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_the_distance_is_symmetric_and_no_longer_than_the_euclidean(images):
    there = tangent_distance(images[:-1], images[1:], shape=SHAPE)
    back = tangent_distance(images[1:], images[:-1], shape=SHAPE)
    smooth = gaussian_filter(images, (0, 0.9, 0.9)).reshape(12, -1)
    np.testing.assert_allclose(there, back, rtol=1e-10)
    assert np.all(there <= np.linalg.norm(smooth[:-1] - smooth[1:], axis=1))
    assert np.all(there > 0)


@pytest.mark.parametrize(
    "move",
    [
        lambda a: shift(a, (0, 0.5), order=3),
        lambda a: shift(a, (0.4, -0.3), order=3),
        lambda a: rotate(a, 5, reshape=False, order=3),
        lambda a: 1.0 * a,
    ],
    ids=["x", "both", "rotation", "nothing"],
)
def test_small_shifts_and_rotations_cost_next_to_nothing(move, images):
    moved = np.stack([move(a) for a in images])
    smooth = [gaussian_filter(A, (0, 0.9, 0.9)).reshape(12, -1) for A in (images, moved)]
    euclidean = np.linalg.norm(smooth[0] - smooth[1], axis=1)
    assert np.all(tangent_distance(images, moved, shape=SHAPE) <= 0.15 * euclidean + 1e-6)


@pytest.mark.parametrize(
    ("name", "move"),
    [
        ("shift in x", lambda a, t: shift(a, (0, -t), order=5, mode="nearest")),
        ("shift in y", lambda a, t: shift(a, (-t, 0), order=5, mode="nearest")),
        ("rotation", lambda a, t: rotate(a, np.degrees(t), reshape=False, mode="nearest")),
    ],
)
def test_tangents_are_the_derivatives_of_the_transformations(name, move, images):
    tangents = tangent_vectors(images, shape=SHAPE)[:, TANGENTS.index(name)]
    step = 1e-3
    smooth = gaussian_filter(images, (0, 0.9, 0.9))
    moved = np.stack([(move(a, step) - move(a, -step)) / (2 * step) for a in smooth])
    for tangent, slope in zip(tangents, moved.reshape(12, -1), strict=True):
        cosine = tangent @ slope / np.linalg.norm(tangent) / np.linalg.norm(slope)
        assert abs(cosine) >= 0.97


def test_blank_images_have_no_tangents_and_plain_distances(images):
    blank = np.zeros((1, *SHAPE))
    assert tangent_distance(blank, blank, shape=SHAPE)[0] == 0
    found = tangent_distance(blank, images[:1], shape=SHAPE)
    np.testing.assert_allclose(found, by_least_squares(blank[0], images[0]), rtol=1e-8)


def test_neighbours_are_sorted_and_at_the_distance_they_say(digits):
    X, _ = digits
    distances, indices = tangent_neighbors(X, 4, shape=(8, 8), n_candidates=20)
    assert np.all(np.diff(distances, axis=1) >= 0)
    for slot in range(4):
        again = tangent_distance(X, X[indices[:, slot]], shape=(8, 8))
        np.testing.assert_allclose(distances[:, slot], again, atol=1e-7)


def test_with_all_as_candidates_the_neighbours_are_exact(images):
    distances, indices = tangent_neighbors(images, 3, shape=SHAPE, n_candidates=11)
    for i, image in enumerate(images):
        everybody = tangent_distance(np.repeat(image[None], 12, axis=0), images, shape=SHAPE)
        everybody[i] = np.inf
        assert indices[i].tolist() == np.argsort(everybody)[:3].tolist()
        np.testing.assert_allclose(distances[i], np.sort(everybody)[:3])


def test_neighbours_by_tangents_are_transformed_copies(images):
    rng = np.random.RandomState(1)
    y = np.repeat(np.arange(12), 8)
    moved = np.stack(
        [
            shift(rotate(images[c], rng.uniform(-15, 15), reshape=False), rng.uniform(-1, 1, 2))
            for c in y
        ]
    )
    _, indices = tangent_neighbors(moved, 3, shape=SHAPE)
    euclidean, _ = nearest_neighbors(moved.reshape(len(y), -1), 3)
    errors = [np.mean(y[found] != y[:, None]) for found in (indices, euclidean)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.slow
def test_a_small_budget_changes_nothing(digits):
    X, _ = digits
    free = tangent_neighbors(X, 3, shape=(8, 8), n_candidates=10)
    with memory_budget("1 MB"):
        blocked = tangent_neighbors(X, 3, shape=(8, 8), n_candidates=10)
        pairs = tangent_distance(X[:-1], X[1:], shape=(8, 8))
    np.testing.assert_array_equal(free[1], blocked[1])
    np.testing.assert_allclose(free[0], blocked[0], atol=1e-7)
    np.testing.assert_allclose(pairs, tangent_distance(X[:-1], X[1:], shape=(8, 8)), atol=1e-7)


def test_candidates_may_come_from_elsewhere(digits):
    X, _ = digits
    candidates, _ = nearest_neighbors(X, 10)
    given = tangent_neighbors(X, 3, shape=(8, 8), candidates=candidates)
    np.testing.assert_array_equal(
        given[1], tangent_neighbors(X, 3, shape=(8, 8), n_candidates=10)[1]
    )


def test_missing_neighbours_are_marked(images):
    distances, indices = tangent_neighbors(images[:3], 4, shape=SHAPE)
    assert np.all(indices[:, 2:] == -1)
    assert np.all(np.isinf(distances[:, 2:]))
    assert np.all(indices[:, :2] >= 0)


@pytest.mark.parametrize("form", [np.uint8, np.int64])
def test_whole_grey_values_are_images_too(form, images):
    found = tangent_distance(images[:2].astype(form), images[2:4].astype(form), shape=SHAPE)
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda A: tangent_vectors(A, shape=(8, 8)), r"shape=\(8, 8\), but expected"),
        (lambda A: tangent_vectors(A * np.nan, shape=SHAPE), "NaN"),
        (lambda A: tangent_vectors(A, shape=SHAPE, sigma=0), "sigma=0"),
        (lambda A: tangent_distance(A, A[:2], shape=SHAPE), "12 and 2 images"),
        (lambda A: tangent_neighbors(A, 0, shape=SHAPE), "n_neighbors=0"),
        (lambda A: tangent_neighbors(A, 9, shape=SHAPE, n_candidates=5), "n_candidates=5"),
        (lambda A: tangent_neighbors(A, 1, shape=SHAPE, candidates=A[:, 0]), "candidates of"),
    ],
)
def test_bad_input_is_a_sentence(call, match, images):
    with pytest.raises(ValueError, match=match):
        call(images)
