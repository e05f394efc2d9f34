"""Tiny, huge and long numbers count as plain ones do, or are refused by the name of the column."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import (
    ITML,
    LDA,
    LMNN,
    NCA,
    RBF,
    SCML,
    Kernelized,
    MetricClassifier,
    MetricRegressor,
    TransductiveDistance,
    TransductiveRegressor,
    load,
    save,
)
from kernelmetric.kernels import TableSchema, is_table
from kernelmetric.tables import TableEncoder, TableError, plan_columns

pd = pytest.importorskip("pandas")
pytest.importorskip("narwhals")

N = 60
KINDS = np.arange(N) % 2
NUMBERS = np.random.RandomState(0).randn(N) + 4 * KINDS
WHOLE = np.random.RandomState(1).randint(0, 40, N) + 60 * KINDS
OTHER = np.random.RandomState(2).permutation(["u", "v"] * (N // 2))


def features(column, **more):
    frame = pd.DataFrame({"a": column, "other": OTHER, **more})
    schema = TableSchema().fit(frame)
    return schema.transform(frame)[:, 0]


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-9, 1e9, 1e155, 1e300])
def test_the_unit_of_a_column_changes_no_feature(scale):
    assert np.allclose(features(NUMBERS * scale), features(NUMBERS))


@pytest.mark.parametrize(
    "column",
    [
        WHOLE + 2**60,
        WHOLE - 2**62,
        WHOLE.astype(np.uint64) + np.uint64(2**63 + 2**62),
        pd.array((WHOLE + 2**60).tolist(), dtype="Int64"),
        [10**30 + int(value) for value in WHOLE],
        [np.int64(2**60 + value) for value in WHOLE],
        [Decimal(int(value)) + 2**60 for value in WHOLE],
        [Decimal(int(value)) / 7 for value in WHOLE],
        [Fraction(int(value), 7) + 2**60 for value in WHOLE],
        [dt.timedelta(microseconds=int(value)) for value in WHOLE],
        (WHOLE + 10**18).astype("datetime64[ns]"),
        WHOLE.astype("timedelta64[ns]"),
        pd.Series((WHOLE + 10**18).astype("datetime64[ns]")).dt.tz_localize("UTC"),
    ],
    ids=lambda column: str(getattr(column, "dtype", type(column[0]).__name__)),
)
def test_an_offset_and_a_type_change_no_feature(column):
    assert np.allclose(features(column), features(WHOLE))


def test_the_same_offset_is_taken_from_other_rows_and_after_loading(tmp_path):
    frame = pd.DataFrame({"a": WHOLE + 2**60, "other": OTHER})
    plain = pd.DataFrame({"a": WHOLE, "other": OTHER})
    metric = Kernelized(LDA(), kernel=RBF()).fit(frame[:40], KINDS[:40])
    expected = Kernelized(LDA(), kernel=RBF()).fit(plain[:40], KINDS[:40]).transform(plain[40:])
    save(metric, tmp_path / "a.metric")
    for each in (metric, load(tmp_path / "a.metric")):
        assert np.allclose(each.transform(frame[40:]), expected)
        assert np.allclose(each.transform(frame[40:41]), expected[:1])


@pytest.mark.parametrize("factor", [1e-170, 1e155])
def test_a_metric_of_a_table_does_not_lose_a_column_by_its_unit(factor):
    frame = pd.DataFrame({"a": NUMBERS * factor, "other": OTHER})
    metric = Kernelized(LDA()).fit(frame[:40], KINDS[:40])
    found = KNeighborsClassifier(3).fit(metric.transform(frame[:40]), KINDS[:40])
    assert found.score(metric.transform(frame[40:]), KINDS[40:]) > 0.9


@pytest.mark.parametrize(
    "column",
    [
        [10**400, *range(N - 1)],
        [Fraction(10**400), *range(N - 1)],
        [Decimal("1e999999999"), *range(N - 1)],
        [1e308, *range(N - 1)],
        [float("-inf"), *range(N - 1)],
        [10**40 + int(value) for value in WHOLE],
        NUMBERS * 1e-312,
    ],
)
def test_what_floats_cannot_hold_is_refused_by_the_name_of_its_column(column):
    with pytest.raises(ValueError, match=r"in column 'a', but expected|in column 'a' that differ"):
        features(column)


def test_a_number_unlike_those_of_fit_is_refused_by_the_name_of_its_column():
    frame = pd.DataFrame({"a": NUMBERS * 1e-170, "other": OTHER})
    schema = TableSchema().fit(frame)
    with pytest.raises(ValueError, match=r"Got 1e\+200 in column 'a'"):
        schema.transform(frame.assign(a=1e200))


def test_a_column_that_is_the_same_in_every_row_is_still_told():
    for constant in (2**60 + 1, 1e-170, 1e300, Decimal("0.1"), 10**30 + 1):
        with pytest.warns(UserWarning, match="'a' is not used: it is the same in every row"):
            features([constant] * N, c=NUMBERS)


def test_a_frame_of_long_whole_numbers_is_a_table_and_one_of_wide_numbers_is_not():
    assert is_table(pd.DataFrame({"a": WHOLE + 2**60, "b": NUMBERS}))
    assert is_table(np.array([[10**400, 1.0], [2, 3.0]], dtype=object))
    wide = np.random.RandomState(0).randint(2**62, size=N)
    assert not is_table(pd.DataFrame({"a": wide, "b": NUMBERS}))
    assert not is_table(pd.DataFrame({"a": np.full(N, 2**60 + 1), "b": NUMBERS}))
    assert not is_table(pd.DataFrame({"a": WHOLE + 2**52, "b": NUMBERS}))


@pytest.mark.parametrize(
    "use",
    [
        lambda X: LMNN().fit(X, KINDS),
        lambda X: LMNN().fit(pd.DataFrame(X), KINDS),
        lambda X: LMNN().fit(X.tolist(), KINDS),
        lambda X: Kernelized(LDA()).fit(X, KINDS),
        lambda X: RBF(gamma=1.0)(X),
        lambda X: MetricRegressor().fit(np.column_stack([NUMBERS, WHOLE]), X[:, 1]),
    ],
)
def test_long_whole_numbers_of_an_array_are_refused_where_floats_lose_them(use):
    X = np.column_stack([WHOLE, WHOLE + 2**60])
    with pytest.raises(ValueError, match=r"Got whole numbers in [Xy], column [01], that 64-bit"):
        use(X)


def test_a_list_with_a_number_beyond_all_floats_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="Got whole numbers in X, column 0, that 64-bit"):
        LMNN().fit([[10**400, 1.0], [2, 3.0]] * 5, [0, 1] * 5)


def test_a_parameter_with_a_number_beyond_all_floats_is_refused_in_a_sentence():
    X, huge = np.column_stack([NUMBERS, WHOLE]), [[10**400, 0.0], [0.0, 1.0]]
    few = np.where(np.arange(N) < 12, KINDS, -1)
    for model, y, said in [
        (NCA(init=huge), KINDS, "Got init of type list"),
        (ITML(prior=huge), KINDS, "Got prior of type list"),
        (SCML(basis=huge), KINDS, "Got basis of type list"),
        (TransductiveDistance(class_sizes=[1, 10**400]), few, "Got class_sizes="),
        (MetricClassifier(class_weight={0: 1, 1: 10**400}), KINDS, "class_weight"),
    ]:
        with pytest.raises(ValueError, match=said):
            model.fit(X, y)


@pytest.mark.parametrize("y", [[10**400, *range(N - 1)], WHOLE + 2**60], ids=["huge", "long"])
def test_known_numbers_that_floats_lose_are_refused(y):
    with pytest.raises(ValueError, match="Got whole numbers in y, column 0, that 64-bit"):
        TransductiveRegressor().fit(np.column_stack([NUMBERS, WHOLE]), y)


@pytest.mark.parametrize("scale", [1e-170, 1e140])
def test_the_encoder_scales_numbers_whose_squares_are_none(scale):
    frame = pd.DataFrame({"a": NUMBERS * scale, "b": 0.1})
    Z = TableEncoder(["a", "b"]).fit(frame).transform(frame)
    assert np.allclose(Z[:, 0], (NUMBERS - np.median(NUMBERS)) / NUMBERS.std())


def test_the_encoder_scales_small_differences_far_from_zero():
    frame = pd.DataFrame({"a": 1e9 + np.round(NUMBERS, 3) * 2.0**-10})
    Z = TableEncoder(["a"]).fit(frame).transform(frame)[:, 0]
    assert np.std(Z) == pytest.approx(1)


@pytest.mark.parametrize("kind", [np.int64, str])
def test_a_plan_leaves_out_long_numbers_that_are_not_told_apart(kind):
    frame = pd.DataFrame({"a": (WHOLE + 2**60).astype(kind), "b": NUMBERS})
    plan = plan_columns(frame)
    assert plan.left_out == ("a",)
    assert "not told apart: subtract the smallest" in plan.notes[0]
    with pytest.raises(TableError, match="Cannot use the column 'a': numbers as long as"):
        plan_columns(frame, use=["a"])
    with pytest.raises(TableError, match="Got numbers in column 'a' that are too long"):
        TableEncoder(["a"]).fit(frame)
    wide = pd.DataFrame({"a": np.random.RandomState(0).randint(2**62, size=N), "b": NUMBERS})
    assert plan_columns(wide).left_out == ()


def test_the_encoder_refuses_differences_below_all_floats():
    with pytest.raises(TableError, match="in column 'a' that differ by"):
        TableEncoder(["a"]).fit(pd.DataFrame({"a": NUMBERS * 1e-312}))
