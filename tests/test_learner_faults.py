"""Small faults that results alone would hide: affinities, refusals, lines of warnings, starts."""

import warnings
from numbers import Integral, Real
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from kernelmetric import (
    ITML,
    LDA,
    LFDA,
    LSML,
    MMC,
    NCA,
    RBF,
    IdealizedKernel,
    Laplacian,
    Pairs,
    Triplets,
)
from kernelmetric.inputs._parameters import Numbers, require_word
from kernelmetric.learners import _spectral
from kernelmetric.learners._checks import check_reach, check_spread
from kernelmetric.learners._factors import factor, signed_factor, truncated
from kernelmetric.learners._feature_rounds import KERNELS
from kernelmetric.learners._idealized_choice import _largest_good, _tells
from kernelmetric.learners._lfda import _local_scatter, local_scatters
from kernelmetric.learners._margin import ListedMargins
from kernelmetric.learners._mcml import CollapsedClasses
from kernelmetric.learners._mmc import FarApart
from kernelmetric.learners._progress import Iterations
from kernelmetric.learners._spectral import LeftOut, about_centres, ledoit_wolf, shrunk
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
        require_word("psd", estimator.psd, ("solve", "clip", "none"))


# --- scatter of rows that are elsewhere -----------------------------------------------------------


class Elsewhere:
    """Rows that are not in memory: some at a time can be had."""

    streamed, ndim = True, 2

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, key):
        assert isinstance(key[0], slice)
        return self._X[key]


def in_groups(n=60, d=3, offset=5.0):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) + offset
    codes = np.arange(n) % 4 - 1  # a quarter of them in no group
    X[:, 0] += codes
    return X, codes


@pytest.mark.parametrize("shrinkage", ["auto", 0.3])
@pytest.mark.parametrize("n", [60, 12])
def test_scatter_by_passes_is_that_of_points_in_memory(shrinkage, n, monkeypatch):
    X, codes = in_groups(n)
    monkeypatch.setattr(_spectral, "_SHIFT_ROWS", 7)
    here = _spectral.scatter_of(X, codes, shrinkage, None, None)
    there = _spectral.scatter_of(Elsewhere(X), codes, shrinkage, None, None)
    assert there.shrinkage == pytest.approx(here.shrinkage, rel=1e-9)
    assert np.trace(there.total) == pytest.approx(1.0)
    for name in ("total", "within"):
        # The same matrix, once both are in the coordinates of the points.
        A, B = (scatter.leave(np.eye(3)) for scatter in (here, there))
        one, two = (np.linalg.inv(M) @ getattr(s, name) @ np.linalg.inv(M).T
                    for M, s in ((A, here), (B, there)))  # fmt: skip
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9 * np.abs(one).max())
    assert there.Z is None


def test_a_share_is_looked_for_by_points_left_out_also_of_rows_elsewhere():
    # Ledoit and Wolf would shrink all, which makes points along the long axis unlikely.
    rng = np.random.RandomState(1)
    X = rng.standard_normal((200, 4)) * [1e3, 1e-3, 1.0, 1.0]
    codes = np.arange(200) % 2
    here = _spectral.scatter_of(X, codes, "auto", None, None).shrinkage
    there = _spectral.scatter_of(Elsewhere(X), codes, "auto", None, None).shrinkage
    about = about_centres(X, codes) / np.sqrt(np.trace(np.cov(X.T, ddof=0)))
    alone = ledoit_wolf(about.T @ about / 200, np.sum(np.sum(about**2, axis=1) ** 2), 200)
    assert there == pytest.approx(here, rel=1e-6)
    assert there < 0.5 * alone


@pytest.mark.parametrize("flat", ["a constant", "a sum", "all"])
def test_rows_elsewhere_that_vary_in_fewer_directions_are_refused(flat):
    X, codes = in_groups()
    X[:, 2] = {"a constant": 1.0, "a sum": X[:, 0] + X[:, 1], "all": 1.0}[flat]
    if flat == "all":
        X[:] = 2.0
    with pytest.raises(ValueError, match="vary in less than 3 directions"):
        _spectral.scatter_of(Elsewhere(X), codes, "auto", None, None)


# --- points left out --------------------------------------------------------------------------


def unlikely(point, others, own, share, mean):
    """Minus the logarithm of Student's t, a dimension, of a point by the points without it."""
    groups = [others[own[1] == code] for code in np.unique(own[1])]
    p = others.shape[1]
    centre = others[own[1] == own[0]].mean(axis=0)
    scatter = sum((g - g.mean(axis=0)).T @ (g - g.mean(axis=0)) for g in groups)
    freedom = len(others) - len(groups)
    C = (1 - share) * scatter / freedom + share * mean * np.eye(p)
    size = 1.0 + 1.0 / np.sum(own[1] == own[0])  # of the point, and of the centre
    delta = point - centre
    q = delta @ np.linalg.solve(C, delta) / size
    return (0.5 * np.linalg.slogdet(C)[1] + p * np.log1p(q / p)) / p


def test_points_left_out_are_as_unlikely_as_the_others_say():
    rng = np.random.RandomState(0)
    codes = np.arange(14) % 2
    Z = rng.standard_normal((14, 3)) * [1.0, 2.0, 0.3] + codes[:, None]
    about = about_centres(Z, codes)
    scatter = about.T @ about
    left_out = LeftOut(scatter, np.array([7.0, 7.0]), 0.4)
    np.testing.assert_allclose(left_out.shares, 0.4 * 10.0 ** -np.arange(0.0, 12.1, 0.5))
    mean = np.trace(scatter) / (12 * 3)
    found = left_out.losses(about, np.full(14, 7.0), np.ones(14))
    for k in (0, 1, 5):
        expected = 0.0
        for i in range(14):
            rest = np.arange(14) != i
            expected += unlikely(Z[i], Z[rest], (codes[i], codes[rest]), left_out.shares[k], mean)
        assert found[k] == pytest.approx(expected, rel=1e-9)
    halves = [left_out.losses(about[part], np.full(7, 7.0), np.ones(7))
              for part in (slice(0, 7), slice(7, 14))]  # fmt: skip
    np.testing.assert_allclose(sum(halves), found)


def test_rows_alone_in_their_group_are_not_left_out():
    about = np.array([[1.0, 0.5], [-1.0, 0.2], [0.3, -0.7], [9.0, 9.0]])
    left_out = LeftOut(about.T @ about, np.array([9.0, 1.0]), 0.5)
    with_it = left_out.losses(about, np.array([9.0, 9.0, 9.0, 1.0]), np.ones(4))
    np.testing.assert_allclose(left_out.losses(about[:3], np.full(3, 9.0), np.ones(3)), with_it)


@pytest.mark.parametrize(
    ("values", "inside", "share", "n_shares"),
    [
        ([0.0, 1.0], [10.0, 10.0], 0.5, 25),  # one direction of two varies
        ([1.0, 2.0], [10.0], 0.5, 25),
        ([1.0, 2.0], [3.0], 0.5, 1),  # as many dimensions as degrees of freedom
        ([1.0, 2.0], [4.0], 0.5, 25),
        ([0.0, 0.0], [10.0], 0.5, 1),
        ([1.0, 2.0], [10.0], 0.0, 1),
    ],
)
def test_shares_fall_where_points_say_enough(values, inside, share, n_shares):
    left_out = LeftOut(np.diag(values), np.array(inside), share)
    assert len(left_out.shares) == n_shares
    assert left_out.shares[0] == share
    if n_shares == 1:
        assert left_out.losses(np.ones((2, 2)), np.ones(2), np.ones(2)).tolist() == [0.0]


def test_the_largest_share_is_taken_that_harms_little():
    left_out = LeftOut(np.eye(2), np.array([10.0]), 1.0)
    losses = np.full(25, 10.0)
    losses[:4] = [14.0, 12.6, 12.4, 9.9]
    assert left_out.share(losses, 10.0) == left_out.shares[2]  # a quarter, for each point


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_shrinkage_of_ledoit_and_wolf_is_that_of_scikit_learn(scale):
    Z = scale * np.random.RandomState(0).standard_normal((20, 4)) * [1.0, 2.0, 3.0, 4.0]
    fourth = float(np.sum(np.sum(Z**2, axis=1) ** 2))
    expected = ledoit_wolf_shrinkage(Z, assume_centered=True)
    assert ledoit_wolf(Z.T @ Z / 20, fourth, 20.0) == pytest.approx(expected)
    assert ledoit_wolf(np.eye(2), 4.0, 5.0) == 0.0  # nothing to gain
    assert ledoit_wolf(np.diag([1.0, 2.0]), 1e6, 5.0) == 1.0


# --- certificates, guards and words ---------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.0, 50.0])
def test_the_gap_of_mcml_is_what_a_metric_of_no_larger_trace_could_gain(reg, labelled):
    X, y = labelled
    problem = CollapsedClasses(X, y, reg)
    L = 0.3 * np.random.RandomState(0).standard_normal((4, 4))
    G = problem.gradient(L)
    least = np.linalg.eigvalsh(G)[0]
    assert (least > 1) == (reg > 0)
    best = min(least, 0.0) * np.trace(L.T @ L)  # all along one direction, or the zero metric
    assert problem.gap(L) == pytest.approx(np.sum(G * (L.T @ L)) - best)
    assert problem.gap(0.0 * L) == 0.0


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_gap_of_mmc_bounds_every_other_metric_in_any_unit(diagonal):
    rng = np.random.RandomState(0)
    Y, rows = rng.standard_normal((20, 3)), rng.permutation(20).reshape(-1, 2)
    problem, other = (
        FarApart(size * Y, rows, np.ones(10), diagonal=diagonal) for size in (1.0, 1e3)
    )
    L = np.abs(rng.standard_normal(3)) if diagonal else rng.standard_normal((3, 3))
    assert problem.gap(L) == pytest.approx(other.gap(L), rel=1e-9)
    most = problem.objective(L) * (1 + problem.gap(L))
    for _ in range(20):
        N = rng.standard_normal(L.shape)
        assert problem.objective(N) <= most * (1 + 1e-12)
    better = problem.polished(L, 0.05)
    assert problem.gap(better) <= 0.05 < problem.gap(L)
    assert problem.objective(better) >= problem.objective(L)


def test_rows_of_a_factor_go_from_the_longest_to_the_shortest():
    L = factor(np.diag([1.0, 9.0, -4.0, 4.0, 0.0]))
    np.testing.assert_allclose(np.abs(L), np.eye(5)[[1, 3, 0]] * [[3.0], [2.0], [1.0]])
    L, signs = signed_factor(np.diag([1.0, 9.0, -4.0, -16.0]))
    np.testing.assert_allclose(np.abs(L).max(axis=1), [3.0, 1.0, 4.0, 2.0])
    assert signs.tolist() == [1, 1, -1, -1]
    np.testing.assert_array_equal(factor(-np.eye(2)), np.zeros((1, 2)))


@pytest.mark.parametrize("corner", [0.0, 0.5, 3.0])
def test_given_comparisons_cost_what_their_formula_says(corner):
    X = np.random.RandomState(0).standard_normal((60, 2))
    triplets = Triplets(np.arange(60).reshape(-1, 3), 60)
    problem = ListedMargins(X, triplets, 2.0, 0.0)

    def square(i, j):
        return np.sum((X[i] - X[j]) ** 2)

    expected = 0.0
    for i, j, k in triplets.rows:
        excess = max(1.0 + square(i, j) - square(i, k), 0.0)
        hinge = excess if excess >= corner else 0.5 * excess**2 / corner
        hinge = hinge - 0.5 * corner if excess >= corner else hinge
        expected += square(i, j) + 2.0 * hinge
    assert problem._over_all(X, np.empty((60, 0)), corner)[0] == pytest.approx(expected)
    step = 1e-6 * np.random.RandomState(1).standard_normal(X.shape)
    slope = 2.0 * np.sum(step * problem._over_all(X, X, corner)[1])
    ends = [problem._over_all(X + t * step, np.empty((60, 0)), corner)[0] for t in (-1.0, 1.0)]
    assert 2.0 * slope == pytest.approx(ends[1] - ends[0], rel=1e-5)


def test_lfda_has_a_zero_map_where_nothing_parts_classes(labelled, monkeypatch):
    monkeypatch.setattr(
        "kernelmetric.learners._lfda.local_scatters", lambda *a: (np.eye(4), -np.eye(4))
    )
    found = LFDA().fit(*labelled)
    np.testing.assert_array_equal(found.components_, np.zeros((1, 4)))
    assert found.loss_ > 0


@pytest.mark.parametrize("beside", [0.99, 1.01])
def test_a_prior_is_refused_where_squares_of_squared_distances_are_no_numbers(labelled, beside):
    X, _ = labelled
    n, largest = len(X), np.abs(X - X.mean(axis=0)).max()
    points = SimpleNamespace(Z=X - X.mean(axis=0), n_features=4, enter=lambda P: P)
    limit = np.sqrt(np.finfo(float).max) / (4 * n * largest**2)  # |a - b|² is up to 4 |a|²
    learner = ITML(prior=beside * limit / 4 * np.eye(4))
    if beside < 1:
        assert learner._check_prior(points) is not None
    else:
        with pytest.raises(ValueError, match="well inside the range"):
            learner._check_prior(points)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("least", "singular"), [(1e-14, True), (1e-10, False)])
def test_a_prior_is_singular_by_the_share_of_its_least_eigenvalue(labelled, size, least, singular):
    X, _ = labelled
    points = SimpleNamespace(Z=X, n_features=4, enter=lambda P: P)
    learner = LSML(prior=size * np.diag([1.0, 1.0, 1.0, least]))
    if singular:
        with pytest.raises(ValueError, match="singular prior"):
            learner._prior_root(points)
    else:
        root = learner._prior_root(points)
        np.testing.assert_allclose(root @ root.T, learner.prior, atol=1e-15 * size)


@pytest.mark.parametrize(
    ("kernel", "sparse"), [("linear", False), ("rbf", True), (RBF(), True), (Laplacian(), False)]
)
def test_tags_say_whether_a_kernel_takes_sparse_points(kernel, sparse):
    assert get_tags(IdealizedKernel(kernel)).input_tags.sparse == sparse


@pytest.mark.parametrize(("max_iter", "subtasks"), [(0, 2), (1, 2), (7, 8)])
def test_callbacks_hear_of_one_iteration_more_than_there_may_be(max_iter, subtasks):
    told = []

    class Context:
        def call_on_fit_task_begin(self, **what):
            told.append(what["X"])

    def context(max_subtasks):
        told.append(max_subtasks)
        return Context()

    estimator = SimpleNamespace(_init_callback_context=context, verbose=False)
    Iterations(estimator, max_iter, None, "points", None)
    assert told == [subtasks, "points"]


def test_rfm_looks_over_powers_of_two():
    assert KERNELS["rbf"].widths.tolist() == [2.0**k for k in range(-4, 5)]
    assert KERNELS["laplace"].widths.tolist() == [2.0**k for k in range(-2, 5)]


def test_pairs_are_sorted_by_the_bound_that_they_are_at(labelled):
    found = IdealizedKernel(C=5.0, nu=0.3).fit(*labelled)
    share = found.alpha_ / found.upper_
    rows = found.pairs_.rows
    assert 0 < len(found.error_pairs_.rows) < len(found.support_pairs_.rows) < len(rows)
    np.testing.assert_array_equal(found.support_pairs_.rows, rows[share > 1e-6])
    np.testing.assert_array_equal(found.error_pairs_.rows, rows[share >= 1 - 1e-6])


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([[0.9, 0.8], [0.95, 0.7], [0.1, 0.1]], 1),  # behind by less than its standard error
        ([[0.9, 0.8], [0.88, 0.78], [0.1, 0.1]], 0),  # always behind by as much
        ([[0.9], [0.9], [0.89]], 1),
        ([[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.9, 0.9, 0.9]], 2),
    ],
)
def test_the_last_score_as_good_as_the_best_is_chosen(scores, chosen):
    assert _largest_good(np.array(scores)) == chosen


def test_the_best_map_so_far_is_the_last_or_that_of_points_held_out():
    estimator = SimpleNamespace(verbose=False)
    report = Iterations(estimator, 5, None, None, None)
    start = np.zeros(2)
    best, loss, converged = report.best(start)
    assert best is start and np.isnan(loss) and not converged
    report.state, report.loss_curve = np.ones(2), [3.0, 2.0, 1.0]
    best, loss, converged = report.best(start)
    assert (best.tolist(), loss, converged) == ([1.0, 1.0], 1.0, False)
    report.held_out = SimpleNamespace(best=np.full(2, 7.0))
    assert report.best(start)[0].tolist() == [7.0, 7.0]


@pytest.mark.parametrize(("n_similar", "n_dissimilar"), [(0, 0), (0, 2), (2, 0), (1, 1)])
def test_folds_teach_where_both_kinds_of_pairs_are(n_similar, n_dissimilar):
    rows = np.arange(8).reshape(-1, 2)
    pairs = Pairs(rows[:n_similar], rows[2 : 2 + n_dissimilar], 8)
    assert _tells(pairs) is bool(n_similar and n_dissimilar)
    triplets = Triplets(np.arange(9)[: 3 * n_similar].reshape(-1, 3), 9)
    assert _tells(triplets) is (n_similar > 0)
