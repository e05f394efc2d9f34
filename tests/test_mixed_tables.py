"""Tables with names, dates and gaps: what becomes of them, and what is refused."""

import datetime as dt
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from kernelmetric import (
    DNE,
    LDA,
    LMNN,
    RBF,
    AlignedScales,
    Columns,
    Delta,
    Kernelized,
    KernelizedCV,
    LeaveOneOutRidge,
    Linear,
    compress,
    load,
    save,
)
from kernelmetric.kernels import TableSchema, is_frame, is_table
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.selection._relevance import descend

pd = pytest.importorskip("pandas")
pytest.importorskip("narwhals")

LIBRARIES = ("pandas", "polars", "pyarrow", "objects")


def fruit(n=60, seed=0):
    """A class that depends on a number, a name and a gap."""
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(
        {
            "kg": rng.gamma(2.0, size=n),
            "kind": rng.choice(["apple", "pear", "plum"], n),
            "ripe": rng.choice([True, False], n),
            "noise": rng.choice(list("abcdef"), n),
        }
    )
    y = (frame["kind"] == "pear") ^ (frame["kg"] > 2.0)
    frame.loc[rng.rand(n) < 0.15, "kg"] = np.nan
    return frame, np.where(y, "yes", "no")


def in_library(frame, library):
    if library == "objects":
        return frame.to_numpy(dtype=object)
    if library == "polars":
        polars = pytest.importorskip("polars")
        return polars.DataFrame(
            {
                name: [None if value != value else value for value in frame[name].tolist()]
                for name in frame
            }
        )
    if library == "pyarrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    return frame


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*args)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_features_of_a_table_do_not_depend_on_its_library(library):
    frame, _ = fruit()
    table = in_library(frame, library)
    expected = TableSchema().fit_transform(frame)
    assert np.allclose(TableSchema().fit_transform(table), expected)
    assert is_table(table)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_metric_of_one_library_takes_frames_of_another(library):
    frame, y = fruit()
    metric = Kernelized(LMNN()).fit(frame, y)
    assert np.allclose(metric.transform(in_library(frame, library)), metric.transform(frame))


def test_two_different_names_are_one_apart_and_a_gap_is_a_state_of_its_own():
    frame = pd.DataFrame({"kind": ["a", "b", None] * 3, "kg": [1.0, np.nan, 3.0] * 3})
    schema = TableSchema().fit(frame)
    Z = schema.transform(frame)
    names, numbers = (Z[:, schema.features_of([name])] for name in ("kind", "kg"))

    def squared(A, i, j):
        return np.sum((A[i] - A[j]) ** 2)

    assert np.allclose([squared(names, 0, 1), squared(names, 0, 2), squared(names, 1, 2)], 1.0)
    assert squared(names, 2, 5) == squared(numbers, 1, 4) == 0.0
    assert squared(numbers, 1, 0) > 1.0  # missing and known differ, and not by a guess alone


def test_ordered_names_are_as_far_apart_as_their_places():
    sizes = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
    frame = pd.DataFrame({"size": pd.Series(["S", "M", "L", "L"], dtype=sizes)})
    z = TableSchema().fit_transform(frame)[:, 0]
    assert np.isclose(z[2] - z[1], z[1] - z[0]) and z[2] > z[1]


def test_dates_durations_and_times_of_day_are_numbers():
    days = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None, dt.date(2020, 1, 4)]
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(pd.Series(days)),
            "object": pd.Series(days, dtype=object),
            "took": pd.to_timedelta([1, 2, np.nan, 4], unit="D"),
            "clock": pd.Series([dt.time(1), dt.time(2), None, dt.time(4)], dtype=object),
        }
    )
    schema = TableSchema().fit(frame)
    assert schema.kinds_ == ["dates", "dates", "durations", "durations"]
    Z = schema.transform(frame)
    for column in (Z[:, 2:4], Z[:, 4:6], Z[:, 6:8]):
        assert np.allclose(column, Z[:, :2])


@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [LMNN(), DNE(2)], ids=["LMNN", "DNE"])
def test_a_frame_with_names_and_gaps_simply_works(learner):
    frame, y = fruit(220)
    metric = Kernelized(learner).fit(frame[:160], y[:160])
    votes = KNeighborsClassifier(1).fit(metric.transform(frame[:160]), y[:160])
    assert votes.score(metric.transform(frame[160:]), y[160:]) > 0.75
    assert metric.feature_names_in_.tolist() == ["kg", "kind", "ripe", "noise"]
    assert metric.n_features_in_ == 4
    apart = metric.pairwise_distances(frame[:2])[0, 1]
    assert np.allclose(metric.pair_distance([[0, 1]], frame), apart)


def test_a_classifier_over_the_metric_takes_the_frame():
    frame, y = fruit(90)
    votes = MetricClassifier(Kernelized(DNE(2))).fit(frame[:60], y[:60])
    assert votes.predict_proba(frame[60:]).shape == (30, 2)
    assert votes.score_samples(frame[60:]).shape == (30,)
    assert votes.kneighbors(frame[60:], 3)[1].shape == (30, 3)


def test_a_frame_of_numbers_is_an_array_as_before():
    rng = np.random.RandomState(0)
    X, y = rng.randn(40, 3), np.repeat([0, 1], 20)
    frame = pd.DataFrame(X, columns=list("abc"))
    assert is_frame(frame) and not is_table(frame) and not is_table(X)
    metric = Kernelized(DNE(1)).fit(frame, y)
    assert not hasattr(metric, "schema_")
    assert np.allclose(metric.transform(frame), Kernelized(DNE(1)).fit(X, y).transform(X))


def test_numbers_kept_as_objects_are_numbers():
    X = np.random.RandomState(0).randn(10, 2)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(object)})
    assert not is_table(frame) and not is_table(X.astype(object))
    assert is_table(frame.assign(a=frame["a"].round().astype(int).astype("category")))


def test_a_fit_to_an_array_forgets_the_table_before():
    frame, y = fruit()
    metric = Kernelized(DNE(1)).fit(frame, y)
    X = np.random.RandomState(0).randn(60, 2)
    assert metric.fit(X, y).transform(X).shape == (60, 1)
    assert not hasattr(metric, "schema_") and not hasattr(metric, "feature_names_in_")


def test_columns_are_found_by_name_in_any_order():
    frame, y = fruit()
    metric = Kernelized(LMNN()).fit(frame, y)
    turned = frame[frame.columns[::-1]]
    assert np.array_equal(quietly(metric.transform, turned), metric.transform(frame))


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "model",
    [
        Kernelized(DNE(1)),
        LDA(1),
        MetricClassifier(),
        MetricClassifier(LDA(1), use_features=True),
        make_pipeline(DNE(1), LDA(1)),
        KernelizedCV(DNE(1), Linear()),
    ],
    ids=repr,
)
def test_columns_of_numbers_are_found_by_name_too(model):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(60, 4) * [1, 5, 1, 9], columns=list("dbac"))
    y = (frame["b"] > frame["c"]).astype(int)
    model.fit(frame, y)
    answer = getattr(model, "predict_proba", None) or model.transform
    expected, turned = answer(frame), frame[["a", "b", "c", "d"]]
    assert np.array_equal(answer(turned), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        answer(frame.rename(columns={"a": "A"}))
    with pytest.raises(ValueError, match="feature names should match"):
        answer(frame[["a", "b", "c"]])


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("model", [MetricRegressor(cv=2), MetricClassifier(cv=2)], ids=repr)
def test_a_model_does_not_depend_on_the_order_of_columns(model):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(90, 5), columns=list("abcde"))
    y = rng.randn(90) + 2 * frame["a"] * frame["b"]
    if isinstance(model, MetricClassifier):
        frame = frame.assign(f=rng.choice(["x", "y"], 90)).mask(rng.rand(90, 6) < 0.1)
        y = y > 0
    turned = frame[frame.columns[::-1]]
    found, other = (
        (getattr(fitted, "predict_proba", None) or fitted.predict)(table)
        for table in (frame, turned)
        for fitted in [clone(model).fit(table, y)]
    )
    np.testing.assert_allclose(found, other, atol=1e-6)


def test_features_of_the_training_table_keep_its_index():
    frame = fruit()[0]
    frame.index = np.arange(10, 10 + len(frame))
    schema = TableSchema().set_output(transform="pandas")
    found = quietly(schema.fit_transform, frame)
    pd.testing.assert_frame_equal(found, quietly(schema.fit(frame).transform, frame))
    assert found.index.equals(frame.index)


def test_names_never_seen_are_told_and_are_alike():
    frame, y = fruit()
    metric = Kernelized(LMNN()).fit(frame, y)
    new = frame[:2].assign(kind=["fig", "date"], kg=1.0, ripe=True, noise="a")
    with pytest.warns(UserWarning, match="'kind' has 'fig', 'date' in 2 of 2 rows, never seen"):
        Z = metric.transform(new)
    assert np.allclose(Z[0], Z[1])
    with pytest.warns(UserWarning, match="never seen"):
        assert not np.allclose(Z[0], metric.transform(new.assign(kind="apple", noise="?"))[0])


def test_a_name_of_one_row_is_rare_but_not_unknown():
    frame = pd.DataFrame({"kind": ["a", "a", "b", "b", "once"], "kg": np.arange(5.0)})
    schema = TableSchema().fit(frame)
    assert "kind=(other)" in schema.get_feature_names_out()
    assert "kind=once" not in schema.get_feature_names_out()
    assert quietly(schema.remarks, frame) == []
    assert len(schema.remarks(frame.assign(kind="never"))) == 1


def test_gaps_where_there_were_none_are_told():
    frame, y = fruit()
    frame = frame.assign(kg=frame["kg"].fillna(1.0))
    metric = Kernelized(LMNN()).fit(frame, y)
    with pytest.warns(UserWarning, match="'kg' has no value in 60 of 60 rows"):
        metric.transform(frame.assign(kg=np.nan))


def test_more_columns_are_told_and_not_used():
    frame, y = fruit()
    metric = Kernelized(LMNN()).fit(frame, y)
    with pytest.warns(UserWarning, match="not there in fit, and are not used: 'colour'"):
        Z = metric.transform(frame.assign(colour="red"))
    assert np.array_equal(Z, metric.transform(frame))


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda frame: frame.drop(columns="kg"), "has no column 'kg'"),
        (lambda frame: frame.rename(columns={"kind": "kinds"}), "Did you mean 'kinds'"),
        (lambda frame: frame.assign(kg="heavy"), "names in column 'kg', but expected numbers"),
        (lambda frame: frame.assign(kind=1.5), "numbers in column 'kind', but expected names"),
        (lambda frame: frame.assign(kg=np.inf), "infinity in column 'kg'"),
        (lambda frame: frame.to_numpy(dtype=object), "expected a table with the columns 'kg'"),
        (lambda frame: pd.concat([frame, frame[["kg"]]], axis=1), "2 columns named 'kg'"),
    ],
    ids=["missing", "renamed", "text", "numbers", "infinite", "array", "twins"],
)
def test_another_table_than_that_of_the_fit_is_refused(spoil, sentence):
    frame, y = fruit()
    metric = Kernelized(LMNN()).fit(frame, y)
    with pytest.raises(ValueError, match=sentence):
        metric.transform(spoil(frame))


def test_twins_among_the_columns_are_refused_in_fit():
    frame, y = fruit()
    with pytest.raises(ValueError, match="2 columns named 'kg'"):
        Kernelized(LMNN()).fit(pd.concat([frame, frame[["kg"]]], axis=1), y)


def test_columns_that_say_nothing_are_named_and_not_used():
    frame, y = fruit()
    frame = frame.assign(empty=None, same="x", key=[f"id{i}" for i in range(60)], one=1.0)
    with pytest.warns(UserWarning, match="'empty' is not used: every value of it is missing"):
        metric = Kernelized(LMNN()).fit(frame, y)
    assert len(metric.schema_.notes_) == 4
    Z = metric.transform(frame.assign(empty=3.0, same="y", one=np.nan))
    assert np.array_equal(Z, metric.transform(frame))


def test_a_frame_without_narwhals_is_refused_and_an_array_of_objects_is_not(monkeypatch):
    frame, _ = fruit()
    table = frame.to_numpy(dtype=object)
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(ImportError, match="needs narwhals: try pip install narwhals"):
        TableSchema().fit(frame)
    assert len(TableSchema().fit(table).groups_) == 16


def test_a_table_of_nothing_is_refused():
    with pytest.raises(ValueError, match="none of whose 2 columns tells rows apart"):
        TableSchema().fit(pd.DataFrame({"a": [None] * 9, "b": ["x"] * 9}))


@pytest.mark.slow
def test_a_hundred_thousand_names_are_no_hundred_thousand_features():
    n = 100_000
    frame = pd.DataFrame({"user": [f"u{i % (n // 2)}" for i in range(n)], "kg": np.arange(n) % 7})
    with pytest.warns(UserWarning, match="50000 names: the 100 most frequent are told apart"):
        schema = TableSchema().fit(frame)
    assert len(schema.groups_) == 103
    assert schema.remarks(frame[:1000]) == []


def test_cells_of_other_kinds_are_refused():
    with pytest.raises(TypeError, match="list objects in column 'x1'"):
        TableSchema().fit(np.array([["a", [1]], ["b", [2]]], dtype=object))


def test_columns_compose_with_other_kernels_on_frames():
    frame, _ = fruit()
    parts = Columns(["kg"]), Columns(["kind", "ripe"], RBF(gamma=1.0))
    kernel = (parts[0] * parts[1] + 0.5 * parts[1]).bind(frame)
    one, two = (part.bind(frame)(frame) for part in parts)
    assert np.allclose(kernel(frame), one * two + 0.5 * two)
    assert np.allclose(kernel(frame, kernel.anchors(frame, [3, 5])), kernel(frame)[:, [3, 5]])
    assert np.allclose(kernel.diag(frame), 1.5)
    assert np.linalg.eigvalsh(kernel(frame)).min() > -1e-9
    assert np.allclose(clone(kernel)(frame), kernel(frame))


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "kernel",
    [
        Columns(["kg", "kind"]) + 0.1 * Delta(),
        Columns(kernel=LeaveOneOutRidge()),
        Columns(["kind"], AlignedScales()),
        AlignedScales(),
        "rbf",
        "aligned",
    ],
    ids=["columns", "ridge", "aligned columns", "scales", "rbf", "alignment"],
)
def test_every_kernel_takes_a_table_inside_kernelized(kernel):
    frame, y = fruit()
    metric = Kernelized(DNE(2), kernel).fit(frame, y)
    again = metric.transform(frame)
    assert np.all(np.isfinite(again)) and len(again) == 60


def test_columns_that_are_left_out_change_nothing():
    frame, y = fruit()
    metric = Kernelized(DNE(1), Columns(["kg", "kind"])).fit(frame, y)
    assert np.array_equal(metric.transform(frame.assign(noise="a")), metric.transform(frame))


def test_columns_of_other_libraries_stay_there():
    xp = pytest.importorskip("array_api_strict")
    X = np.random.RandomState(0).randn(20, 4)
    kernel = Columns([1, 3], RBF(gamma=0.5)).bind(xp.asarray(X))
    K = kernel(xp.asarray(X))
    assert isinstance(K, type(xp.asarray(X)))
    assert np.allclose(np.asarray(K), RBF(gamma=0.5)(X[:, [1, 3]]))


def test_columns_of_an_array_are_taken_as_they_are():
    X = np.random.RandomState(0).randn(20, 4)
    kernel = Columns([1, 3], RBF(gamma=0.5))
    assert np.allclose(kernel.bind(X)(X), RBF(gamma=0.5)(X[:, [1, 3]]))
    with pytest.raises(ValueError, match="names need a data frame"):
        Columns(["kg"], RBF(gamma=0.5)).bind(X)


@pytest.mark.parametrize("mask", [[False, True, False, True], np.array([0, 1, 0, 1], dtype=bool)])
def test_booleans_are_a_mask_over_the_columns(mask):
    X = np.random.RandomState(0).randn(20, 4)
    expected = RBF(gamma=0.5)(X[:, [1, 3]])
    assert np.allclose(Columns(mask, RBF(gamma=0.5)).bind(X)(X), expected)
    schema = TableSchema().fit(pd.DataFrame(X, columns=list("abcd")))
    assert schema.features_of(mask).tolist() == schema.features_of(["b", "d"]).tolist()


@pytest.mark.parametrize(
    "columns",
    [[False, True], [True] * 5, [False] * 4, [0, True], [0.9], [1.0], 0.9, ["1"], [None], [[0, 1]],
     [], [4], [-5], [2**70]],
)  # fmt: skip
def test_columns_that_are_neither_places_nor_a_mask_are_refused(columns):
    X = np.random.RandomState(0).randn(20, 4)
    with pytest.raises(ValueError, match=r"Got column.* but expected"):
        Columns(columns, RBF(gamma=0.5)).bind(X)
    schema = TableSchema().fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match=r"Got column.* but expected|has no column"):
        schema.features_of(columns)


def test_one_column_needs_no_list_and_a_name_is_not_read_by_its_letters():
    schema = TableSchema().fit(pd.DataFrame(np.eye(3), columns=["a", "b", "ab"]))
    assert schema.features_of("ab").tolist() == schema.features_of([2]).tolist() == [4, 5]
    assert schema.features_of(-1).tolist() == schema.features_of(np.int32(2)).tolist() == [4, 5]


def test_a_number_that_is_the_name_of_another_column_is_refused():
    schema = TableSchema().fit(pd.DataFrame(np.eye(3), columns=[2, 1, 7]))
    assert schema.features_of([7, 1]).tolist() == [2, 3, 4, 5]
    assert schema.features_of(["2"]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="of that name is in place 0"):
        schema.features_of([2])


def test_a_kernel_of_numbers_refuses_a_table_by_itself():
    with pytest.raises(ValueError, match=r"RBF\(\) expected numbers: try Columns"):
        RBF().bind(fruit()[0])


@pytest.mark.slow
def test_a_name_that_matters_gets_one_scale_for_all_its_features():
    frame, _ = fruit(200)
    y = frame["kind"].to_numpy() == "pear"
    schema = TableSchema().fit(frame)
    X = schema.transform(frame)
    for kernel in (LeaveOneOutRidge(groups=schema.groups_), AlignedScales(groups=schema.groups_)):
        scales = kernel.bind(X, y).scales
        by_column = [np.unique(scales[schema.features_of([name])]) for name in frame]
        assert [len(found) for found in by_column] == [1, 1, 1, 1]
        assert by_column[1][0] > 2 * max(by_column[0][0], by_column[3][0])


def test_the_automatic_kernel_of_a_frame_scales_columns():
    frame, _ = fruit(160)
    metric = Kernelized(DNE(1)).fit(frame, frame["kind"] == "pear")
    scales = metric.kernel_.scales
    found = [np.unique(scales[metric.schema_.features_of([name])]) for name in frame]
    assert [len(column) for column in found] == [1, 1, 1, 1]
    assert np.argmax(np.concatenate(found)) == 1


def test_groups_of_one_feature_each_are_no_groups():
    rng = np.random.RandomState(0)
    target = rng.randn(5)

    def loss(logs):
        return float(np.sum((logs - target) ** 2)), 2 * (logs - target)

    _, found = descend(loss, np.zeros(5), np.arange(5), prior=0.0)
    assert np.allclose(found, target, atol=1e-4)
    _, found = descend(loss, np.zeros(5), np.array([0, 0, 1, 1, 1]), prior=0.0)
    assert np.allclose(found, np.repeat([target[:2].mean(), target[2:].mean()], [2, 3]), atol=1e-4)


def test_groups_of_another_length_are_refused():
    X, y = np.random.RandomState(0).randn(40, 3), np.repeat([0, 1], 20)
    with pytest.raises(ValueError, match="expected the number of a group for each"):
        LeaveOneOutRidge(groups=[0, 1]).bind(X, y)


def test_a_metric_of_a_table_is_saved_with_its_schema(tmp_path):
    frame, y = fruit()
    metric = Kernelized(LMNN(), Columns(["kg", "kind"]) + 0.1 * Delta()).fit(frame, y)
    save(metric, tmp_path / "fruit.kmetric")
    again = load(tmp_path / "fruit.kmetric")
    assert np.allclose(again.transform(frame), metric.transform(frame))
    with pytest.warns(UserWarning, match="never seen"):
        again.transform(frame.assign(kind="fig"))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("kinds_", ["numbers"]), ("groups_", np.arange(3)), ("scales_", np.zeros(4))],
    ids=["kinds", "groups", "scales"],
)
def test_a_schema_that_no_fit_left_is_not_saved(tmp_path, attribute, value):
    metric = Kernelized(DNE(1)).fit(*fruit())
    setattr(metric.schema_, attribute, value)
    with pytest.raises(ValueError, match=f"TableSchema.{attribute}|features"):
        save(metric, tmp_path / "fruit.kmetric")


def test_a_smaller_metric_of_a_table_takes_the_table():
    frame, y = fruit()
    metric = Kernelized(DNE(2)).fit(frame, y)
    small = compress(metric, 30)
    assert small.transform(frame).shape == (60, 2)
    assert np.array_equal(small.transform(frame), compress(metric, 30, frame).transform(frame))
    with pytest.raises(ValueError, match="no column 'kg'"):
        small.transform(frame.drop(columns="kg"))


def test_a_search_takes_numbers_alone_and_says_so():
    with pytest.raises(ValueError, match="put TableSchema"):
        KernelizedCV(LMNN(), kernels=["rbf"]).fit(*fruit())


@pytest.mark.slow
def test_linear_learners_and_searches_take_tables_behind_a_schema():
    frame, y = fruit()
    assert make_pipeline(TableSchema(), LMNN()).fit(frame, y).transform(frame).shape[0] == 60
    votes = make_pipeline(Kernelized(DNE(1)), KNeighborsClassifier())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a fold may lack a rare name
        search = GridSearchCV(votes, {"kneighborsclassifier__n_neighbors": [1, 3]}, cv=2)
        assert search.fit(frame, y).best_score_ > 0.5


@pytest.mark.parametrize("metric", [LDA(), Kernelized(LDA())], ids=repr)
def test_two_columns_of_one_name_are_refused_among_numbers_too(metric):
    X = np.random.RandomState(0).standard_normal((30, 3))
    twins = pd.DataFrame(X, columns=["kg", "m", "kg"])
    with pytest.raises(ValueError, match="2 columns named 'kg'"):
        metric.fit(twins, np.arange(30) % 2)
    fitted = clone(metric).fit(pd.DataFrame(X, columns=["kg", "m", "s"]), np.arange(30) % 2)
    with pytest.raises(ValueError, match="2 columns named 'kg'"):
        fitted.transform(twins)


def test_names_that_are_mostly_not_told_apart_are_told_of():
    names = [f"c{i % 1000}" for i in range(3000)]
    frame = pd.DataFrame({"place": names, "kg": np.arange(3000.0)})
    with pytest.warns(UserWarning, match="1000 names: .* in 90 % of the rows"):
        schema = TableSchema().fit(frame)
    assert len(schema.get_feature_names_out()) == 103


def test_a_gap_where_no_training_row_had_one_is_told_so(tmp_path):
    numbers = np.random.RandomState(0).standard_normal((31, 2))
    X = pd.DataFrame(numbers, columns=["a", "b"])
    y = (numbers[:, 0] > 0).astype(int)
    model = MetricClassifier(Kernelized(LMNN(), "rbf")).fit(X, y)
    gaps = X.mask(X > 1.0)
    with pytest.warns(UserWarning, match=r"no value in \d+ cells of \['a', 'b'\].*Medians of fit"):
        found = model.predict_proba(gaps)
    np.testing.assert_array_equal(found, model.predict_proba(gaps.fillna(X.median())))
    again = load(save(model, tmp_path / "model.km"))
    with pytest.warns(UserWarning, match="Medians of fit"):
        np.testing.assert_allclose(again.predict_proba(gaps[["b", "a"]]), found)
    with pytest.raises(ValueError, match=r"learned from points without gaps.*SimpleImputer"):
        MetricClassifier(Kernelized(LMNN(), "rbf")).fit(numbers, y).predict(gaps.to_numpy())
    with pytest.raises(ValueError, match="contains infinity"):
        model.predict(X.where(X < 1.0, np.inf))
