"""Dirty tables of numbers: what is learned from them is as good, or they are refused by column."""

import re
import warnings

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from half_of_product import half_of
from kernelmetric import (
    LDA,
    LFDA,
    LMNN,
    MLKR,
    NCA,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    MetricRegressor,
    TransductiveDistance,
)
from kernelmetric.inputs._far_cells import FarCellWarning, far_cells
from kernelmetric.kernels import TableSchema
from kernelmetric.selection import AlignedScales, LeaveOneOutRidge
from kernelmetric.selection._relevance import relevances, units_of
from kernelmetric.solvers import _ridge_grid
from kernelmetric.spaces import KPCA

N_TRAIN, N_NEW, N_FEATURES = 200, 2000, 6
A_POINT = 0.01
CENTRES = 4.0 * np.eye(3, N_FEATURES)  # columns 0 to 2 tell the classes apart, the others nothing


def clean():
    """Points, their classes, and a number that columns 0 and 1 tell."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, N_TRAIN + N_NEW)
    X = rng.standard_normal((len(codes), N_FEATURES)) + CENTRES[codes]
    return X, codes, np.sin(0.5 * X[:, 0]) + 0.3 * X[:, 1]


# --- what is done to the table: it is changed in place, new points come after the training points -


def one_cell(value):
    def spoil(X):
        X[3, 0] = value

    return spoil


def a_hundredth(X):
    hit = np.random.default_rng(1).random((N_TRAIN, N_FEATURES)) < 0.01
    X[:N_TRAIN][hit] = -9999.0


def heavy(draw):
    def spoil(X):
        X[:, -1] = getattr(np.random.default_rng(1), draw)(size=len(X))

    return spoil


def constant(X):
    X[:, -1] = 1e9


def times(column, factor):
    def spoil(X):
        X[:, column] *= factor

    return spoil


def plus(column, offset):
    def spoil(X):
        X[:, column] += offset

    return spoil


ALL = slice(None)
DAMAGES = {
    "9999 in one cell": one_cell(9999.0),
    "-9999 in a hundredth of the cells": a_hundredth,
    "1e18 in one cell": one_cell(1e18),
    "1e300 in one cell": one_cell(1e300),
    "a Cauchy column": heavy("standard_cauchy"),
    "a lognormal column": heavy("lognormal"),
    "a constant column": constant,
    "a column of 1e-170": times(0, 1e-170),
    "a column of 1e155": times(0, 1e155),
    "a column of 1e300": times(0, 1e300),
    "all of 1e-170": times(ALL, 1e-170),
    "all of 1e155": times(ALL, 1e155),
    "an offset of 1e6": plus(ALL, 1e6),
    "an offset of 1e9": plus(ALL, 1e9),
    "an offset of 1e12 in a column": plus(0, 1e12),
}
CELLS = (
    "9999 in one cell",
    "-9999 in a hundredth of the cells",
    "1e18 in one cell",
    "1e300 in one cell",
)


# --- what is fitted ------------------------------------------------------------------------------


def predicted(estimator, X, y, X_new):
    return estimator.fit(X, y).predict(X_new)


def by_nearest(estimator, X, y, X_new):
    voter = KNeighborsRegressor(5) if y.dtype.kind == "f" else KNeighborsClassifier(1)
    E = estimator.fit(X, y).transform(X)
    return voter.fit(E, y).predict(estimator.transform(X_new))


def by_ridge_regression(kernel, X, y, X_new):
    kernel = kernel.bind(X, y)
    alpha = np.linalg.solve(kernel(X) + 1.0, np.eye(3)[y])
    return np.argmax((kernel(X_new, X) + 1.0) @ alpha, axis=1)


def search():
    return KernelizedCV(LDA(), kernels=["auto"], cv=2, random_state=0)


CLASSIFIERS = {
    "MetricClassifier": (predicted, MetricClassifier),
    "Kernelized(LMNN)": (by_nearest, lambda: Kernelized(LMNN())),
    "Kernelized(NCA)": (by_nearest, lambda: Kernelized(NCA())),
    "Kernelized(LDA)": (by_nearest, lambda: Kernelized(LDA())),
    "KernelizedCV": (by_nearest, search),
    "LeaveOneOutRidge": (by_ridge_regression, LeaveOneOutRidge),
    "TransductiveDistance": (predicted, lambda: TransductiveDistance(random_state=0)),
}
REGRESSORS = {
    "MetricRegressor": (predicted, MetricRegressor),
    "Kernelized(MLKR)": (by_nearest, lambda: Kernelized(MLKR())),
}
EVERYTHING = CLASSIFIERS | REGRESSORS


def score(name, X, codes, numbers):
    """Accuracy, or R², on new points."""
    predict, make = EVERYTHING[name]
    y = numbers if name in REGRESSORS else codes
    found = predict(make(), X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:])
    truth = y[N_TRAIN:]
    if name in REGRESSORS:
        return 1.0 - np.mean((found - truth) ** 2) / np.var(truth)
    return np.mean(found == truth)


# The graph of TransductiveDistance is that of Euclidean distances, whatever the labels say: a wide
# column of noise makes the table another one.
OTHER_TABLE = [("TransductiveDistance", f"a {draw} column") for draw in ("Cauchy", "lognormal")]
# A tenth of the rows have lost a cell there, and the nearest of all is one of them at times.
POINTS = {("Kernelized(MLKR)", "-9999 in a hundredth of the cells"): 0.02}
_CLEAN: dict[str, float] = {}


def is_as_good_or_refused(name, damage):
    """Whether new points are predicted within a point of the clean table, or a column is named."""
    if name not in _CLEAN:
        _CLEAN[name] = score(name, *clean())
    X, codes, numbers = clean()
    DAMAGES[damage](X)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = score(name, X, codes, numbers)
        except ValueError as refusal:
            named = ["column "] if damage.startswith("all") else ["column 0", "column 'x0'"]
            assert any(name in str(refusal) for name in named)
            return
    assert found >= _CLEAN[name] - POINTS.get((name, damage), A_POINT)
    told = [str(w.message) for w in said if issubclass(w.category, FarCellWarning)]
    if damage in CELLS:
        assert any(re.search(r"olumn (0|'x0') holds", sentence) for sentence in told)
    elif damage != "a Cauchy column":
        assert not told


@pytest.mark.parametrize(
    ("name", "damage"), half_of(["Kernelized(LDA)", "LeaveOneOutRidge"], [*DAMAGES])
)
@pytest.mark.every(8)
def test_a_dirty_table_is_as_good_as_a_clean_one_or_refused_by_column(name, damage):
    is_as_good_or_refused(name, damage)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "TransductiveDistance"])
@pytest.mark.every(4)
def test_a_sentinel_in_a_hundredth_of_the_cells_costs_no_default_a_point(name):
    is_as_good_or_refused(name, "-9999 in a hundredth of the cells")


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", EVERYTHING)
def test_every_default_is_as_good_on_a_dirty_table_or_refuses_it_by_column(name, damage):
    if (name, damage) in OTHER_TABLE:
        pytest.skip("a wide column of noise makes other Euclidean distances")
    is_as_good_or_refused(name, damage)


# --- a sentinel ----------------------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", [2, 3, 5, 7])
def test_a_sentinel_does_not_stop_a_fit(seed):
    rng = np.random.default_rng(seed)
    rng.standard_normal((1000, 10))  # of the points that follow, each set stopped a fit once
    y, X = rng.integers(0, 3, 1000), rng.standard_normal((1000, 10))
    X[rng.random(X.shape) < 0.01] = -9999.0
    with pytest.warns(
        FarCellWarning, match="Column 0 holds -9999, column 1 holds -9999, .* 7 more"
    ):
        LeaveOneOutRidge().bind(X, y)


def test_one_sentinel_is_mentioned_with_its_column_and_the_fit_goes_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    plain = LeaveOneOutRidge().bind(X, y)
    X[0, 2] = 9999.0
    with pytest.warns(FarCellWarning, match="Column 2 holds 9999: 100 times as far"):
        dirty = LeaveOneOutRidge().bind(X, y)
    np.testing.assert_allclose(dirty.candidates_["RBF"], plain.candidates_["RBF"], rtol=0.05)


@pytest.mark.slow
def test_relevances_of_points_with_a_sentinel_are_like_those_without_it():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 4))
    Y = np.where(X[:, :1] * X[:, 1:2] > 0, 1.0, -1.0)
    dirty = X.copy()
    dirty[:6, 0] = -9999.0  # alike, and far from all others: their distances are small ones
    start = np.log([0.5, 0.5, 0.5, 0.5, 1e-3])
    for Z, targets in ((X[6:], Y[6:]), (dirty, Y)):
        logs = relevances([(Z, targets)], start, 20, np.arange(Z.shape[1]))[1][:-1]
        assert logs[:2].min() > logs[2:].max() + 1.0


@pytest.mark.parametrize("value", [9999.0, 1e18])
def test_aligned_scales_do_not_follow_a_sentinel(value):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[:2, 0] = value
    scales = AlignedScales().bind(X, y).scales
    assert scales[:2].min() > 2 * scales[2:].max()


@pytest.mark.every(4)
@pytest.mark.parametrize("learner", [LMNN(), NCA(max_iter=5), LDA(), LFDA()])
def test_a_linear_learner_mentions_the_cell_too(learner):
    X, codes, _ = clean()
    X[3, 1] = 9999.0
    with pytest.warns(FarCellWarning, match="Column 1 holds 9999"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, message="(?!Column)")
        learner.fit(X[:N_TRAIN], codes[:N_TRAIN])


def test_coordinates_of_a_kernel_are_no_cells():
    X, codes, _ = clean()
    X, codes = X[:N_TRAIN], codes[:N_TRAIN]
    X[3, 4] = 9999.0
    with pytest.warns(FarCellWarning, match="Column 0"):  # the first axis is that of column 4
        LDA().fit(KPCA(4, kernel="linear").fit_transform(X), codes)
    Kernelized(LDA(), "linear", KPCA(4)).fit(X, codes)
    KernelizedCV(LDA(), kernels=["linear"], n_components=[4], cv=2, random_state=0).fit(X, codes)


def test_a_table_is_scaled_without_its_sentinels():
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
    X, _, _ = clean()
    frame = pd.DataFrame(X[:N_TRAIN], columns=list("abcdef")).assign(g=["x", "y"] * 100)
    plain = TableSchema().fit(frame)
    frame.loc[3, "a"] = 9999.0
    with pytest.warns(UserWarning, match="Column 'a' holds 9999, 100 times"):
        dirty = TableSchema().fit(frame)
    np.testing.assert_allclose(dirty.scales_, plain.scales_, rtol=0.05)


# --- what is far, and what is not ----------------------------------------------------------------


def column(kind):
    rng = np.random.default_rng(0)
    return {
        "normal": rng.standard_normal(500),
        "lognormal": np.exp(2 * rng.standard_normal(500)),
        "Student, 2 degrees": rng.standard_t(2, 500),
        "an indicator": (rng.random(500) < 0.05) * 1.0,
        "counts": rng.poisson(0.2, 500) * 1.0,
        "mostly zero": np.where(rng.random(500) < 0.05, np.exp(rng.standard_normal(500)), 0.0),
        "two clusters": np.append(rng.standard_normal(400), 1e6 + rng.standard_normal(100)),
        "constant": np.ones(500),
        "few": np.append(np.arange(10.0), 1e9),
        "an offset": 1e12 + rng.standard_normal(500),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["normal", "lognormal", "Student, 2 degrees", "an indicator", "counts", "mostly zero",
     "two clusters", "constant", "few", "an offset"],
)  # fmt: skip
def test_ordinary_columns_have_no_far_cells(kind):
    assert not far_cells(column(kind)).any()


def test_a_cauchy_column_seldom_has_far_cells():
    rng = np.random.default_rng(0)
    told = [far_cells(rng.standard_cauchy(300)).any() for _ in range(300)]
    assert np.mean(told) < 0.04


def test_far_cells_are_found_on_both_sides_and_where_others_are_far_from_zero():
    values = 1e4 + np.random.default_rng(0).standard_normal(500)
    values[[3, 8]] = -9999.0
    values[[20, 21]] = 1e7
    assert np.flatnonzero(far_cells(values)).tolist() == [3, 8, 20, 21]


# --- units and integers --------------------------------------------------------------------------


def test_columns_of_a_usual_range_keep_their_units():
    X = np.random.default_rng(0).standard_normal((50, 3)) * [1e-15, 1.0, 1e9]
    assert units_of(X) is None


def test_a_kernel_on_other_units_is_the_same_kernel():
    X, codes, _ = clean()
    X, codes = X[:N_TRAIN], codes[:N_TRAIN]
    spoilt = X.copy()
    spoilt[:, 0] *= 2.0**900
    kernels = LeaveOneOutRidge().bind(X, codes), LeaveOneOutRidge().bind(spoilt, codes)
    errors = [min(kernel.candidates_.values()) for kernel in kernels]
    assert errors[1] < 1.3 * errors[0]
    assert np.isfinite(kernels[1](spoilt)).all()


@pytest.mark.parametrize("make", [LDA, LMNN, NCA, LFDA, TransductiveDistance])
@pytest.mark.parametrize("factor", [1e-170, 1e155, 1e300])
def test_linear_learners_refuse_a_column_whose_squares_are_no_numbers(make, factor):
    X, codes, _ = clean()
    X[:, 2] *= factor
    with pytest.raises(ValueError, match="column 2"):
        make().fit(X[:N_TRAIN], codes[:N_TRAIN])


@pytest.mark.every(3)
@pytest.mark.parametrize("make", [MetricClassifier, LDA, lambda: Kernelized(LDA())])
@pytest.mark.parametrize("form", ["array", "list", "frame"])
def test_integers_that_float64_does_not_tell_apart_are_refused(make, form):
    X = np.random.default_rng(0).integers(0, 500, (100, 3))
    y = (X[:, 0] > 250).astype(int)
    X[:, 1] += 2**60
    points = {"array": X, "list": X.tolist()}.get(form)
    if form == "frame":
        pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
        points = pd.DataFrame(X, columns=["0", "1", "2"])
    if form == "frame" and make is not LDA:  # a schema subtracts the median first
        assert make().fit(points, y).n_features_in_ == 3
        return
    with pytest.raises(ValueError, match=r"column '?1'?, that 64-bit floats cannot hold"):
        make().fit(points, y)


def test_integers_beyond_float64_that_stay_apart_are_welcome():
    X = np.random.default_rng(0).integers(0, 500, (100, 3))
    y = (X[:, 0] > 250).astype(int)
    X[:, 1] = X[:, 1] * 2**40 + 2**60
    assert LDA().fit(X, y).transform(X).shape == (100, 1)


def test_a_list_of_integers_is_bound_like_an_array():
    X = np.random.default_rng(0).integers(0, 9, (60, 3))
    y = (X[:, 0] > 4).astype(int)
    kernels = [LeaveOneOutRidge().bind(points, y) for points in (X.tolist(), X.astype(float))]
    np.testing.assert_array_equal(kernels[0](X), kernels[1](X))


@pytest.mark.slow
def test_where_single_precision_fails_double_precision_decides(monkeypatch):
    X, codes, _ = clean()
    expected = LeaveOneOutRidge().bind(X[:N_TRAIN], codes[:N_TRAIN])
    factor = _ridge_grid.cholesky_factor

    def fails_in_single(K, ridge):
        if K.dtype == np.float32:
            raise np.linalg.LinAlgError("rounding")
        return factor(K, ridge)

    monkeypatch.setattr(_ridge_grid, "cholesky_factor", fails_in_single)
    found = LeaveOneOutRidge().bind(X[:N_TRAIN], codes[:N_TRAIN])
    assert found.candidates_["RBF"] == pytest.approx(expected.candidates_["RBF"], rel=1e-3)
