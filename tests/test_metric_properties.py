"""The laws of a metric, tried on batches of points that Hypothesis draws, for every learner."""

import warnings
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from kernelmetric import (
    DNE,
    LDA,
    NCA,
    RBF,
    Delta,
    IdealizedKernel,
    Kernelized,
    KernelTrick,
    Laplacian,
    Nystroem,
    Polynomial,
    RandomFeatures,
    TransductiveDistance,
)
from kernelmetric.compute.reductions import squared_distances

KERNELIZED = [
    Kernelized(DNE(2), RBF()),
    Kernelized(LDA(), Polynomial()),
    Kernelized(LDA(), Laplacian()),
    Kernelized(DNE(2), RBF() + 0.1 * Delta()),
    Kernelized(LDA(), RBF(), Nystroem(15, random_state=0)),
    Kernelized(LDA(), RBF(), RandomFeatures(50, random_state=0)),
    Kernelized(DNE(2), RBF(), KernelTrick()),
    Kernelized(NCA(2, max_iter=20), RBF()),
    IdealizedKernel(kernel=RBF(), C=3.0, nu=0.8),
    TransductiveDistance(),
    TransductiveDistance(penalty="normalized"),
]
EXAMPLES = 4  # of each metric; every law is tried on each


@st.composite
def batches(draw):
    """Two to seven points, of ordinary size, far apart, near each other, or equal."""
    n = draw(st.integers(2, 7))
    points = draw(arrays(np.float64, (n, 4), elements=st.integers(-64, 64).map(lambda i: i / 16)))
    scales = draw(arrays(np.float64, (n, 1), elements=st.sampled_from([1.0, 1.0, 1e-3, 30.0])))
    return points * scales


def near(metric, A, B=None):
    """How far rounding may move each distance: in proportion to the coordinates of both points."""
    E = lengths(metric, A)
    F = E if B is None else lengths(metric, B)
    return 1e-7 * (E[:, None] + F[None, :])


def lengths(metric, A):
    return np.linalg.norm(metric.transform(A), axis=1) + typical_length(metric)


@lru_cache(maxsize=1)
def typical_length(metric):
    return np.linalg.norm(metric.transform(TRAINING), axis=1).max()


def assert_within(D, expected, tolerance):
    np.testing.assert_array_less(np.abs(D - expected), tolerance)


# --- the laws -----------------------------------------------------------------------------------


def distances_are_symmetric_and_not_negative(metric, A):
    D = metric.pairwise_distances(A)
    assert np.all(np.isfinite(D)) and np.all(D >= 0)
    assert np.all(np.diag(D) == 0)
    assert_within(D, D.T, near(metric, A))
    assert_within(metric.pairwise_distances(A, A[::-1]), D[:, ::-1], near(metric, A, A[::-1]))


def equal_rows_are_at_no_distance(metric, A):
    twice = np.concatenate([A, A])
    D = metric.pairwise_distances(twice)
    n = len(A)
    assert_within(np.diag(D[:n, n:]), 0.0, np.diag(near(metric, A)))


def a_detour_is_never_shorter(metric, A):
    D = metric.pairwise_distances(A)
    detours = (D[:, :, None] + D[None, :, :]).min(axis=1)
    assert np.all(D <= detours + 3 * near(metric, A))


def a_batch_is_its_rows_one_by_one(metric, A):
    D = metric.pairwise_distances(A)
    tolerance = near(metric, A)
    for i in (0, len(A) - 1):
        assert_within(metric.pairwise_distances(A[i : i + 1], A)[0], D[i], tolerance[i])
    assert_within(metric.pairwise_distances(A[:1], A[-1:]), D[:1, -1:], tolerance[:1, -1:])


def the_order_of_rows_does_not_matter(metric, A):
    order = np.argsort(A[:, 0] * np.arange(len(A)))
    D = metric.pairwise_distances(A)
    assert_within(
        metric.pairwise_distances(A[order]), D[np.ix_(order, order)], near(metric, A[order])
    )


def listed_pairs_have_the_distances_of_the_table(metric, A):
    i, j = np.triu_indices(len(A), 1)
    D, tolerance = metric.pairwise_distances(A)[i, j], near(metric, A)[i, j]
    assert_within(metric.pair_distance(np.stack([A[i], A[j]], axis=1)), D, tolerance)
    assert_within(metric.pair_distance(np.stack([i, j], axis=1), A), D, tolerance)
    assert_within(-metric.pair_score(np.stack([i, j], axis=1), A), D, tolerance)


def distances_are_those_of_coordinates(metric, A):
    E = metric.transform(A)
    expected = np.linalg.norm(E[:, None] - E[None], axis=2)
    assert_within(metric.pairwise_distances(A), expected, near(metric, A))


def a_huge_row_changes_no_other_distance(metric, A):
    D = metric.pairwise_distances(A)
    beside = metric.pairwise_distances(np.concatenate([A, np.full((1, 4), 1e7)]))
    assert_within(beside[:-1, :-1], D, near(metric, A))


def float32_is_float64_but_for_rounding(metric, A):
    D = metric.pairwise_distances(A)
    short = metric.pairwise_distances(A.astype(np.float32))
    # a kernel's coordinates are divided by the roots of eigenvalues as small as rounding
    assert_within(short, D, 1e5 * near(metric, A))


def a_shift_changes_no_distance(metric, A):
    moved = A + np.array([100.0, -30.0, 7.0, 50.0])
    D = metric.pairwise_distances(A)
    assert_within(metric.pairwise_distances(moved), D, near(metric, moved))


def coordinates_in_float32_keep_four_digits(metric, A):
    E = metric.transform(A).astype(np.float32)
    short = np.sqrt(squared_distances(E))
    assert short.dtype == np.float32
    assert_within(short, metric.pairwise_distances(A), 1e3 * near(metric, A))


LAWS = [
    distances_are_symmetric_and_not_negative,
    equal_rows_are_at_no_distance,
    a_detour_is_never_shorter,
    a_batch_is_its_rows_one_by_one,
    the_order_of_rows_does_not_matter,
    listed_pairs_have_the_distances_of_the_table,
    distances_are_those_of_coordinates,
    a_huge_row_changes_no_other_distance,
    float32_is_float64_but_for_rounding,
]
LINEAR_LAWS = [a_shift_changes_no_distance, coordinates_in_float32_keep_four_digits]

TRAINING = np.random.RandomState(0).standard_normal((30, 4))
CLASSES = np.arange(30) % 3
TRAINING[:, 0] += CLASSES


def fitted(metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit warns of is tested elsewhere
        return clone(metric).fit(TRAINING, CLASSES)


def keeps(laws, metric):
    """Try laws on batches, and show the smallest batch that breaks one of them."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )
    @given(batches())
    def on(batch):
        for law in laws:
            law(metric, batch)

    on()


@pytest.mark.every(4)
def test_every_learner_keeps_the_laws_of_a_metric(learner):
    keeps([*LAWS, *LINEAR_LAWS], fitted(learner))


@pytest.mark.parametrize("metric", KERNELIZED)
@pytest.mark.every(12)
def test_every_kernelized_metric_keeps_the_laws_of_a_metric(metric):
    keeps(LAWS, fitted(metric))
