"""Small faults that results alone would hide: affinities, refusals, lines of warnings, starts."""

import warnings
from numbers import Integral, Real
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import ITML, LDA, LFDA, MMC, NCA, IdealizedKernel
from kernelmetric.learners._checks import Numbers, check_choice, check_reach, check_spread
from kernelmetric.learners._factors import truncated
from kernelmetric.learners._lfda import _local_scatter, local_scatters
from kernelmetric.learners._spectral import about_centres, shrunk
from kernelmetric.learners._tuple_learner import differences, span
from kernelmetric.spaces import orthonormal


def test_repeated_points_leave_lfda_without_a_warning():
    rng = np.random.RandomState(0)
    X = np.r_[np.repeat(rng.standard_normal((1, 3)), 14, axis=0), rng.standard_normal((10, 3))]
    y = np.r_[np.zeros(12, dtype=int), np.ones(12, dtype=int)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = LFDA(n_neighbors=3).fit(X, y)
    assert np.all(np.isfinite(learner.components_))


def test_a_point_without_a_scale_is_near_to_itself_alone():
    Z = np.array([[0.0], [0.0], [1.0]])
    # The first two coincide and have no scale: the third is infinitely far from them.
    S = _local_scatter(Z, Z, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(S, [[0.0]], atol=1e-15)
    S = _local_scatter(Z, Z, np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(S, [[2 * np.exp(-0.5)]])  # two pairs, each counted twice, halved


def test_local_scatters_are_the_sums_of_the_paper():
    rng = np.random.RandomState(0)
    codes = np.arange(12) % 3
    Z = rng.standard_normal((12, 2))
    Z -= Z.mean(axis=0)
    within, between = local_scatters(Z, codes, Z, 2)
    n = len(Z)
    D2 = np.sum((Z[:, None] - Z) ** 2, axis=2)
    scale = [np.sqrt(np.sort(D2[i, codes == codes[i]])[2]) for i in range(n)]
    W, B = np.zeros((2, 2)), np.zeros((2, 2))
    for i in range(n):
        for j in range(n):
            delta = np.outer(Z[i] - Z[j], Z[i] - Z[j]) / 2
            if codes[i] == codes[j]:
                size = np.sum(codes == codes[i])
                A = np.exp(-D2[i, j] / (scale[i] * scale[j]))
                W += A / size * delta
                B += A * (1 / n - 1 / size) * delta
            else:
                B += delta / n
    np.testing.assert_allclose(within, W / n, atol=1e-12)
    np.testing.assert_allclose(between, B / n, atol=1e-12)


@pytest.mark.parametrize("shrinkage", ["auto", 0.0, 0.1, 1.0])
@pytest.mark.parametrize("n", [1, 6])
def test_lda_refuses_classes_that_do_not_vary(shrinkage, n):
    X = np.repeat([[0.1, 0.2], [0.3, 0.7]], n, axis=0)
    with pytest.raises(ValueError, match="Got classes of points that coincide, but expected some"):
        LDA(shrinkage=shrinkage).fit(X, np.repeat([0, 1], n))


@pytest.mark.parametrize("prior", [len, "x", object(), [[1.0, 2.0]], np.eye(3) * 1e308])
def test_a_prior_that_is_none_is_refused(prior, labelled):
    X, y = labelled
    for learner in (ITML(prior=prior), IdealizedKernel(C=1.0, prior=prior)):
        with pytest.raises(ValueError, match=r"Got (a )?prior .*, but expected"):
            learner.fit(X[:, :3], y)


@pytest.mark.parametrize("learner", [NCA(max_iter=1), ITML(max_iter=1), MMC(max_iter=1)], ids=repr)
def test_a_warning_names_the_line_that_called_fit(learner, labelled):
    with pytest.warns(ConvergenceWarning) as caught:
        learner.fit(*labelled)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("value", "kind", "options", "good"),
    [
        (0, Integral, {"low": 0}, True),
        (0, Integral, {"low": 0, "above": True}, False),
        (-1, Integral, {"low": 0}, False),
        (1.0, Integral, {"low": 0}, False),
        (1.0, Real, {"low": 0, "high": 1}, True),
        (1.5, Real, {"low": 0, "high": 1}, False),
        (np.inf, Real, {"low": 0}, False),
        (np.nan, Real, {"low": 0}, False),
        (True, Real, {"low": 0}, False),
        (np.True_, Real, {"low": 0}, False),
        (np.float32(2), Real, {"low": 0}, True),
        (np.int8(2), Integral, {"low": 2}, True),
    ],
)
def test_numbers_are_checked_against_both_bounds(value, kind, options, good):
    estimator = SimpleNamespace(tol=value)
    if good:
        Numbers(kind, **options).check(estimator, "tol")
    else:
        with pytest.raises(ValueError, match=r"Got tol=.*, but SimpleNamespace expected a"):
            Numbers(kind, **options).check(estimator, "tol")


def test_a_map_may_reach_as_far_as_squares_are_numbers():
    X = np.array([[0.0, 1.0], [2.0, 3.0]])
    check_reach(1e150 * np.eye(2), X, "init")
    with pytest.raises(ValueError, match=r"entries up to 1e\+154, but expected a map"):
        check_reach(1e154 * np.eye(2), X, "init")
    with pytest.raises(ValueError, match="range of float32"):
        check_reach(1e19 * np.eye(2), X.astype(np.float32), "init")
    with pytest.raises(ValueError, match=r"entries up to 1\b"):  # far points, a plain map
        check_reach(np.eye(2), 1e154 * X, "init")


def test_coordinates_of_what_points_span_keep_their_distances():
    X = np.random.RandomState(0).standard_normal((4, 9)) + 3.0
    Z, basis = span(X)
    assert Z.shape == (4, 3) and basis.shape == (3, 9)
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_allclose(np.linalg.norm(Z[:, None] - Z, axis=2), D)
    Z, basis = span(X[:, :3])
    assert basis is None
    np.testing.assert_allclose(Z, X[:, :3] - X[:, :3].mean(axis=0))
    rows = np.array([[0, 1], [3, 2]])
    np.testing.assert_allclose(differences(Z, rows), [Z[0] - Z[1], Z[3] - Z[2]])


def test_orthonormal_coordinates_have_unit_size_and_a_way_back():
    X = 1e3 * np.random.RandomState(0).standard_normal((7, 3)) + 5.0
    found = orthonormal(np.c_[X, X[:, :1]])
    assert found.Z.shape == (7, 3) and found.basis.shape == (3, 4)
    assert np.mean(np.sum(found.Z**2, axis=1)) == pytest.approx(1.0)
    about = np.c_[X, X[:, :1]] - np.c_[X, X[:, :1]].mean(axis=0)
    np.testing.assert_allclose(about @ found.basis.T, found.Z, atol=1e-12)
    assert found.size == pytest.approx(np.sqrt(np.mean(np.sum(about**2, axis=1))))


def test_shrinking_keeps_the_trace():
    S = np.diag([1.0, 3.0])
    np.testing.assert_allclose(shrunk(S, 0.25), np.diag([1.25, 2.75]), atol=1e-9)
    assert shrunk(np.zeros((2, 2)), 0.0)[0, 0] == pytest.approx(0.5e-10)


def test_points_about_their_centres_leave_those_of_no_group_out():
    Z = np.array([[0.0], [2.0], [5.0], [100.0], [9.0]])
    about = about_centres(Z, np.array([0, 0, 7, -1, 7]))
    np.testing.assert_allclose(about, [[-1.0], [1.0], [-2.0], [2.0]])


def test_a_truncated_map_has_the_nearest_matrix():
    L = np.diag([1.0, 3.0, 2.0])
    M = truncated(L, 2).T @ truncated(L, 2)
    np.testing.assert_allclose(M, np.diag([0.0, 9.0, 4.0]), atol=1e-12)
    assert truncated(L, 3) is L


def test_the_spread_is_measured_about_the_mean_of_every_feature():
    far = np.array([[1e160, 0.0], [1e160, 1.0]])
    check_spread(far)
    with pytest.raises(ValueError, match=r"spread over 2e\+160, in column 0.*, but expected"):
        check_spread(np.array([[1e160, 0.0], [5e160, 0.0]]))
    with pytest.raises(ValueError, match="Got 2 identical points, but expected"):
        check_spread(far[[0, 0]])


def test_a_choice_is_refused_with_all_the_words_there_are():
    estimator = SimpleNamespace(psd="sometimes")
    with pytest.raises(
        ValueError, match=r"^Got psd='sometimes', but expected 'solve', 'clip' or 'none'\.$"
    ):
        check_choice(estimator, "psd", ("solve", "clip", "none"))
