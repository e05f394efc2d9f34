"""Transductive distances where things go wrong: refused in a sentence, or right."""

import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kernelmetric import NCA, TransductiveDistance
from kernelmetric.graphs import gaussian_graph
from kernelmetric.transductive import (
    KernelPenalty,
    PaperCost,
    RobustCost,
    WarpedPenalty,
    _classifying,
    _learn,
)
from kernelmetric.transductive._choice import GRID, choose_lam, hidden_folds
from kernelmetric.transductive._given import interpolate, neighbors_among

LAM = 1e5  # beyond the floor of every penalty here
PENALTIES = ["laplacian", "normalized", "kernel", "warped"]


@pytest.fixture
def cloud():
    """60 points of three classes, a third of them labelled."""
    rng = np.random.RandomState(0)
    truth = np.arange(60) % 3
    X = rng.standard_normal((60, 3))
    X[:, 0] += 2.5 * truth
    return X, np.where(np.arange(60) < 20, truth, -1), truth


# --- whose arrays they are ------------------------------------------------------------------


def test_a_graph_function_may_change_what_it_is_given(cloud):
    X, y, _ = cloud

    def graph(points):
        points -= points.mean(axis=0)
        return gaussian_graph(points)

    model = TransductiveDistance(4, LAM, graph=graph).fit(X, y)
    assert_allclose(model.transform(X), model.embedding_)
    assert_allclose(model.embedding_.T @ model.embedding_, np.eye(4), atol=1e-10)


# --- what is unknown ------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("unknown", [None, np.nan, -1, np.int64(-1), -1.0])
def test_labels_of_text_may_be_unknown(cloud, unknown):
    X, y, _ = cloud
    words = np.array([["ant", "bee", "cat"][code] if code >= 0 else unknown for code in y], object)
    expected = TransductiveDistance(3, LAM).fit(X, y)
    model = TransductiveDistance(3, LAM).fit(X, words)
    assert list(model.classes_) == ["ant", "bee", "cat"]
    assert_array_equal(model.transduction_, model.classes_[expected.transduction_])
    assert_array_equal(model.embedding_, expected.embedding_)


@pytest.mark.slow
def test_unknown_labels_of_pandas_are_unknown(cloud):
    pd = pytest.importorskip("pandas")
    X, y, _ = cloud
    expected = TransductiveDistance(3, LAM).fit(X, y).embedding_
    words = pd.Series([["ant", "bee", "cat"][code] if code >= 0 else None for code in y])
    for labels in (words, words.astype("category"), words.astype("string")):
        assert_array_equal(TransductiveDistance(3, LAM).fit(X, labels).embedding_, expected)


@pytest.mark.parametrize("unknown", [-1, -1.0, np.nan])
def test_a_number_that_became_text_is_refused(cloud, unknown):
    X, y, _ = cloud
    words = np.array([["ant", "bee", "cat"][code] if code >= 0 else unknown for code in y])
    assert words.dtype.kind == "U"
    with pytest.raises(ValueError, match=r"Got the text '(-1|-1.0|nan)' as a label, but expected"):
        TransductiveDistance(3, LAM).fit(X, words)
    with pytest.raises(ValueError, match=r"Got the text .*dtype=object"):
        TransductiveDistance(3, LAM).fit(X, words.astype(object))


def test_text_and_numbers_together_are_refused(cloud):
    X, y, _ = cloud
    mixed = np.array([["ant", 7, None][code] for code in y], dtype=object)
    with pytest.raises(ValueError, match="Got labels of text mixed with int, but"):
        TransductiveDistance(3, LAM).fit(X, mixed)


def test_objects_that_are_numbers_are_labels(cloud):
    X, y, _ = cloud
    expected = TransductiveDistance(3, LAM).fit(X, y)
    model = TransductiveDistance(3, LAM).fit(X, y.astype(object))
    assert_array_equal(model.transduction_, expected.transduction_)


# --- how many neighbours --------------------------------------------------------------------


def test_neighbours_are_others():
    assert [neighbors_among("auto", n) for n in (2, 3, 10, 10**6)] == [1, 2, 5, 5]
    assert [neighbors_among(7, n) for n in (5, 8, 9)] == [4, 7, 7]


def test_the_default_does_not_join_small_classes():
    """Five classes of nine points, three of each labelled."""
    rng = np.random.RandomState(0)
    truth = np.arange(45) % 5
    X = rng.randn(45, 5) + 4.0 * np.eye(5)[truth]
    y = np.where(np.arange(45) < 15, truth, -1)
    default = TransductiveDistance(random_state=0).fit(X, y)
    twenty = TransductiveDistance(10, np.inf, 20).fit(X, y)
    assert np.mean(default.transduction_ == truth) > 0.95
    assert np.mean(twenty.transduction_ == truth) < 0.75


# --- λ ----------------------------------------------------------------------------------------


def chosen(missed):
    """λ, where each of five misses some of 40 hidden labels, the default first."""
    codes = np.arange(40) % 2
    candidates = [2.0**exponent / 4.0 for exponent in GRID]

    def embed(known, lam):
        wrong = np.isin(np.arange(40), missed[candidates.index(lam)]) & (known < 0)
        return np.where(wrong, 1.0 - codes, codes)[:, None].astype(float)

    lam, scores = choose_lam(embed, codes, 4.0, n_folds=5, n_votes=1, rng=np.random.RandomState(0))
    assert_allclose(list(scores.values()), [1 - len(m) / 40 for m in missed])
    return candidates.index(lam)


@pytest.mark.slow
def test_the_default_lambda_gives_way_to_a_clear_gain_only():
    all_wrong = [list(range(40))] * 3
    # 3 of 40 found more and 2 found less: 1/40, and its standard error is 2.2/40
    assert chosen([[0, 1, 2], [3, 4], *all_wrong]) == 0
    # 8 of 40 found more: 8/40, and its standard error is 2.5/40
    assert chosen([list(range(8)), [], *all_wrong]) == 1
    assert chosen([[5], [5], *all_wrong]) == 0
    # of two clear gains the larger
    assert chosen([list(range(12)), [0, 1], [], *all_wrong[1:]]) == 2


def test_every_label_is_hidden_once_and_two_classes_remain():
    codes = np.array([0, 0, 0, 1, 1, 1, -1, 2])
    folds = list(hidden_folds(codes, 3, np.random.RandomState(0)))
    hidden = np.sum([kept != codes for kept in folds], axis=0)
    assert_array_equal(hidden, codes >= 0)
    assert all(len(set(kept[kept >= 0])) > 1 for kept in folds)
    many = list(hidden_folds(codes, 10**29, np.random.RandomState(0)))
    assert len(many) == 7


@pytest.mark.slow
def test_more_folds_than_labels_leave_out_one_label_each(cloud):
    X, y, _ = cloud
    y = np.where(np.arange(60) < 10, y, -1)
    options = {"n_components": 2, "n_neighbors": 8, "random_state": 0}
    most = TransductiveDistance(cv=10**29, **options).fit(X, y)
    one_each = TransductiveDistance(cv=10, **options).fit(X, y)
    assert most.lam_scores_ == one_each.lam_scores_


# --- new points -----------------------------------------------------------------------------


def test_interpolation_weighs_by_the_inverse_square_of_the_distance():
    points, E = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0, 5.0], [1.0, 5.0], [7.0, 5.0]])
    # at 1/4 the two weights are 16 and 16/9
    assert_allclose(interpolate(points, E, np.array([[0.25]]), 2)[0], [[0.1, 5.0]])
    # at 3 of all three: 1/9, 1/4, 1/36
    expected = (0 / 9 + 1 / 4 + 7 / 36) / (1 / 9 + 1 / 4 + 1 / 36)
    assert_allclose(interpolate(points, E, np.array([[3.0]]), 3)[0][0, 0], expected)
    # the square of it: 256 and 256/81
    assert_allclose(interpolate(points, E, np.array([[0.25]]), 2, 2)[0][0, 0], 1 / 82)


def test_points_that_coincide_give_their_mean_and_the_nearest_may_be_very_near():
    points, E = np.array([[0.0], [0.0], [1.0]]), np.array([[2.0], [4.0], [9.0]])
    found, there = interpolate(points, E, np.array([[0.0], [0.5]]), 3)
    assert_allclose(found[0], [3.0])
    assert_allclose(there, [True, False])
    with np.errstate(all="raise", under="ignore"):
        near = interpolate(points[1:], E[1:], np.array([[1e-158]]), 2)[0]
    assert_allclose(near, [[4.0]])


def test_new_points_beyond_the_range_of_numbers_are_refused(cloud):
    X, y, _ = cloud
    for penalty in ("laplacian", "warped"):
        model = TransductiveDistance(2, LAM, penalty=penalty).fit(X, y)
        for far in (1e160, -1e300, 1.7e308):
            try:
                found = model.transform(np.vstack([X[:1], np.full((1, 3), far)]))
            except ValueError as error:
                assert "overflow" in str(error)
            else:
                assert np.all(np.isfinite(found))
    model = TransductiveDistance(2, LAM).fit(X, y)
    with pytest.raises(ValueError, match="Got points so far apart that squared distances overflow"):
        model.transform(np.vstack([X[:1], np.full((1, 3), 1e300)]))
    assert np.all(np.isfinite(model.transform(np.full((1, 3), 1e100))))


def test_as_many_labels_as_points_are_scored(cloud):
    X, y, truth = cloud
    model = TransductiveDistance(2, LAM).fit(X, y)
    assert model.score(X, truth) == np.mean(model.predict(X) == truth)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, truth[:1])


# --- what is kept, and when -----------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_fitted_model_keeps_nothing_of_the_users(cloud, penalty):
    X, y, _ = (part.copy() for part in cloud)
    W = gaussian_graph(X)
    model = TransductiveDistance(2, LAM, penalty=penalty, graph=W).fit(X, y)
    new = X[:7] + 0.1
    before = model.transform(new), model.predict(new), model.embedding_.copy()
    X *= 3.0
    y[:] = -1
    W[:] = 1.0
    assert_array_equal(model.transform(new), before[0])
    assert_array_equal(model.predict(new), before[1])
    assert_array_equal(model.embedding_, before[2])


def test_neither_does_it_keep_what_the_prior_returned(cloud):
    X, y, _ = (part.copy() for part in cloud)
    model = TransductiveDistance(2, LAM, prior=lambda Z: Z).fit(X, y)
    before = model.transform(X[:5] + 0.1)
    new = X[:5] + 0.1
    X *= 3.0
    assert_array_equal(model.transform(new), before)


def test_what_is_returned_is_the_users(cloud):
    X, y, _ = cloud
    model = TransductiveDistance(2, LAM)
    model.fit_transform(X, y)[:] = 0.0
    assert np.any(model.embedding_)
    single = model.set_params(prior=lambda Z: Z.astype(float)).fit(X.astype(np.float32), y)
    assert single.embedding_.dtype == single.transform(X[:2].astype(np.float32)).dtype == np.float32


def state(model):
    return {key: np.array(value, copy=True) for key, value in vars(model).items()}


def refused_fits(X, y):
    """Ways for a second fit to fail, early and late."""
    B = np.hstack([X, X])[:40]
    return {
        "labels": lambda model: model.fit(B, np.full(40, -1)),
        "points": lambda model: model.fit(np.full((40, 6), 1e200) * np.arange(6), y[:40]),
        "graph": lambda model: model.set_params(graph=np.ones((3, 3))).fit(B, y[:40]),
        "components": lambda model: model.set_params(n_components=40).fit(B, y[:40]),
        "prior": lambda model: model.set_params(prior=lambda Z: Z * np.nan).fit(B, y[:40]),
    }


@pytest.mark.parametrize("reason", ["labels", "points", "graph", "components", "prior"])
def test_a_refused_fit_leaves_the_last_one_as_it_was(cloud, reason):
    X, y, _ = cloud
    model = TransductiveDistance(2, LAM, n_neighbors=8).fit(X, y)
    before, parameters = state(model), model.get_params()
    expected = model.transform(X + 0.1)
    with pytest.raises(ValueError, match="Got"):
        refused_fits(X, y)[reason](model)
    model.set_params(**parameters)
    after = state(model)
    assert list(after) == list(before)
    for key, value in before.items():
        assert_array_equal(after[key], value)
    assert_array_equal(model.transform(X + 0.1), expected)


@pytest.mark.every(2)
@pytest.mark.parametrize(("room", "where"), [(_learn, "solve"), (_classifying, "vote")])
def test_an_interrupt_leaves_the_last_fit_or_none(cloud, monkeypatch, room, where):
    X, y, truth = cloud

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    model, fresh = TransductiveDistance(2, LAM).fit(X, y), TransductiveDistance(2, LAM)
    before = model.transform(X + 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(room, where, interrupted)
        for each in (model, fresh):
            with pytest.raises(KeyboardInterrupt):
                each.fit(X[:30, :2], truth[:30])
    assert_array_equal(model.transform(X + 0.1), before)
    assert model.n_features_in_ == 3
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    assert not hasattr(fresh, "n_features_in_")


# --- hostile data and parameters ------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    ("scale", "dtype"),
    [(1e154, float), (1e300, float), (8e307, float), (1e-160, float), (1e19, "f4"), (1e-40, "f4")],
)
def test_features_whose_squares_are_no_numbers_are_refused(cloud, penalty, scale, dtype):
    X, y, _ = cloud
    X = (X / np.abs(X).max() * scale).astype(dtype)
    with pytest.raises(ValueError, match=r"Got (features that spread|60 identical points)"):
        TransductiveDistance(2, LAM, penalty=penalty).fit(X, y)


def test_identical_points_are_refused(cloud):
    _, y, _ = cloud
    with pytest.raises(ValueError, match="Got 60 identical points"):
        TransductiveDistance(2, LAM).fit(np.ones((60, 3)), y)


JUNK = [np.inf, np.nan, 1e308, -1, 0, "x", None, object(), len, True, 10**30, 10**400, [], NCA]


def fits_or_says_why(X, y, **parameters):
    """A finite fit, or an error that says what was got and what was expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = TransductiveDistance(**{"lam": LAM, "random_state": 0, **parameters}).fit(X, y)
        except (ValueError, TypeError) as error:
            assert "expected" in str(error) or "seed" in str(error).lower()
        else:
            assert np.all(np.isfinite(model.embedding_))


@pytest.mark.every(3)
@pytest.mark.parametrize("name", list(TransductiveDistance().get_params()))
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_parameter_fits_or_is_refused_in_a_sentence(cloud, name, half):
    X, y, _ = cloud
    for value in JUNK[(half + len(name)) % 2 :: 2]:
        fits_or_says_why(X[:30], y[:30], **{name: value})


@pytest.mark.parametrize(
    ("part", "make", "name"),
    [
        ("cost", RobustCost, "n_neighbors"),
        ("cost", RobustCost, "floor"),
        ("cost", PaperCost, "n_neighbors"),
        ("penalty", KernelPenalty, "space"),
        ("penalty", WarpedPenalty, "penalty"),
        ("penalty", WarpedPenalty, "space"),
    ],
)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_parameter_of_a_part_fits_or_is_refused_in_a_sentence(cloud, part, make, name, half):
    X, y, _ = cloud
    for value in JUNK[(half + len(name)) % 2 :: 2]:
        fits_or_says_why(X[:30], y[:30], **{part: make(**{name: value})})


def test_priors_that_return_no_points_are_refused(cloud):
    X, y, _ = cloud
    for prior in (len, lambda Z: Z[:5], lambda Z: Z[:, 0], lambda Z: Z.astype(str)):
        with pytest.raises(ValueError, match=r"from the prior, but expected numbers of shape \(60"):
            TransductiveDistance(2, LAM, prior=prior).fit(X, y)
    with pytest.raises(ValueError, match="Got NaN or infinity from the prior"):
        TransductiveDistance(2, LAM, prior=lambda Z: Z * np.nan).fit(X, y)


# --- memory -----------------------------------------------------------------------------------


@pytest.mark.every(8)
@pytest.mark.parametrize(
    ("n", "options"),
    [
        (700, {}),
        pytest.param(2000, {}, marks=pytest.mark.slow),
        pytest.param(5000, {}, marks=pytest.mark.slow),
        (1100, {"graph": "gaussian"}),
        (700, {"penalty": "kernel"}),
        (700, {"penalty": "warped"}),
    ],
)
def test_the_estimate_of_memory_is_within_a_factor_of_two(n, options):
    rng = np.random.RandomState(0)
    X, y = rng.randn(n, 20), np.where(np.arange(n) % 10 == 0, np.arange(n) // 10 % 5, -1)
    model = TransductiveDistance(lam=1e6, n_neighbors=10, random_state=0, **options)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    estimate = model.estimate_memory(*X.shape)
    assert peak / 2 < estimate < 2 * peak
