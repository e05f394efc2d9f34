"""Tables of users: what is read, what becomes of each column, what is refused and how."""

import gzip

import numpy as np
import pytest

from kernelmetric.tables import (
    TableError,
    features_of,
    labels_of,
    plan_columns,
    read_table,
    table_bytes,
)

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")

FRAME = pd.DataFrame(
    {
        "size": [1.0, 2.0, np.nan, 4.0, 5.0, 7.0],
        "colour": ["red", "blue", None, "red", "blue", "red"],
        "unit": ["mm"] * 6,
        "kind": ["a", "b", "a", "b", "a", "b"],
    }
)


def write(path, frame):
    path.write_bytes(table_bytes(frame, path))
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "npz", "parquet"])
def test_what_was_written_is_read_again(tmp_path, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="comes with the extra `parquet`")
    frame = FRAME[["size", "kind"]]
    again = read_table(write(tmp_path / f"table.{kind}", frame))
    assert list(again.columns) == ["size", "kind"]
    np.testing.assert_array_equal(again["size"], frame["size"])
    assert list(again["kind"]) == list(frame["kind"])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path, separator):
    path = tmp_path / "table.csv"
    path.write_text(separator.join("abc") + "\n" + separator.join("123") + "\n", encoding="utf-8")
    assert read_table(path).shape == (1, 3)


def test_a_mark_of_utf8_and_a_compressed_file_are_understood(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\ufeffgröße,b\n1,2\n".encode()))
    assert list(read_table(path).columns) == ["größe", "b"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.csv", None, "There is no file"),
        ("empty.csv", b"", "is empty"),
        ("head.csv", b"a,b\n", "no rows"),
        ("twins.csv", b"a,b,a\n1,2,3\n", "two columns named 'a'"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3,4\n", "Line 3 .* has 4 cells, but expected 2"),
        ("latin.csv", "größe,b\n1,2\n".encode("latin-1"), "not UTF-8"),
        ("table.xlsx", b"PK", "but expected a .csv"),
        ("broken.npz", b"PK\x03\x04 not an archive", "Cannot read"),
        ("broken.csv.gz", b"no gzip", "Cannot read"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_a_sentence(tmp_path, name, content, sentence):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TableError, match=sentence):
        read_table(path)


def test_a_broken_parquet_file_is_refused_in_a_sentence(tmp_path):
    pytest.importorskip("pyarrow", reason="comes with the extra `parquet`")
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(TableError, match="Cannot read"):
        read_table(tmp_path / "table.parquet")


def test_an_npz_with_pickled_objects_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[object()]], dtype=object))
    with pytest.raises(TableError, match="plain arrays"):
        read_table(tmp_path / "t.npz")


def test_an_npz_needs_points(tmp_path):
    np.savez(tmp_path / "t.npz", Z=np.eye(2))
    with pytest.raises(TableError, match="array X"):
        read_table(tmp_path / "t.npz")


def test_every_decision_is_told():
    plan = plan_columns(FRAME, label="kind")
    assert (plan.numbers, plan.categories, plan.left_out) == (("size",), ("colour",), ("unit",))
    assert [note.split(":")[0] for note in plan.notes] == ["size", "colour", "unit"]


def test_the_encoder_scales_numbers_and_knows_gaps_and_names():
    encoder = plan_columns(FRAME, label="kind").encoder()
    X = encoder.fit_transform(features_of(FRAME, encoder))
    assert X.shape == (6, 2 + 4)  # size and whether it is missing; red, blue, others, missing
    assert np.isfinite(X).all()
    assert X[0, 0] == pytest.approx((1.0 - 4.0) / np.std([1, 2, 4, 5, 7]))  # from the median on
    assert X[:, 1].tolist() == [0, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(X[:, 2:].sum(axis=1), 0.5**0.5)


def test_names_that_were_never_seen_are_no_error():
    encoder = plan_columns(FRAME, label="kind").encoder().fit(features_of(FRAME, plan(FRAME)))
    new = pd.DataFrame({"size": [1.0], "colour": ["green"]})
    found = dict(zip(encoder.get_feature_names_out(), encoder.transform(new)[0], strict=True))
    assert found["colour=(other)"] > 0
    assert found["colour=red"] == found["colour=blue"] == 0


def plan(frame):
    return plan_columns(frame, label="kind").encoder()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.arange(120), "identifier"),
        ([f"tree {i}" for i in range(120)], "identifier"),
        ([f"text {i % 50}" for i in range(120)], "too many"),
        ([np.nan] * 120, "empty"),
        ([7] * 120, "one value"),
    ],
)
def test_columns_that_say_nothing_are_left_out(values, reason):
    frame = pd.DataFrame({"x": np.random.RandomState(0).randn(120), "odd": values})
    decided = plan_columns(frame)
    assert decided.left_out == ("odd",)
    assert reason in decided.notes[0]


def test_a_column_left_out_wrongly_can_be_used():
    frame = pd.DataFrame({"x": np.random.RandomState(0).randn(60), "year": np.arange(60)})
    assert plan_columns(frame, use=["year"]).numbers == ("x", "year")
    assert plan_columns(frame, ignore=["x"], use=["year"]).numbers == ("year",)


def test_numbers_with_a_few_question_marks_are_numbers():
    frame = pd.DataFrame({"x": [*map(str, range(10)), "?"], "y": np.arange(11) ** 2.0})
    decided = plan_columns(frame)
    assert "x" in decided.numbers
    assert any("'?'" in note for note in decided.notes)
    assert features_of(frame, decided.encoder())["x"].isna().sum() == 1


def test_infinity_is_a_missing_value():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.inf, 4.0]})
    encoder = plan_columns(frame).encoder()
    assert np.isfinite(encoder.fit_transform(features_of(frame, encoder))).all()


def test_a_missing_column_is_named_with_what_was_perhaps_meant():
    with pytest.raises(TableError, match=r"no column 'kinds'.*Did you mean 'kind'"):
        plan_columns(FRAME, label="kinds")
    encoder = plan(FRAME)
    with pytest.raises(TableError, match="no column 'size'"):
        features_of(FRAME.drop(columns="size"), encoder)


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(TableError, match="No column is left"):
        plan_columns(FRAME[["unit", "kind"]], label="kind")


def test_rows_without_a_label_are_left_out_and_whole_numbers_are_classes():
    frame = pd.DataFrame({"class": [1.0, 2.0, np.nan, 1.0, 2.0]})
    y, rows, notes = labels_of(frame, "class")
    assert list(y) == ["1", "2", "1", "2"]
    assert list(rows) == [True, True, False, True, True]
    assert notes == ["1 rows have no class and are left out."]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.5, 1.0, 2.0, 0.5], "fractions"),
        (["a"] * 4, "at least two"),
        (["a", "b", "c", "d"], "several rows each"),
    ],
)
def test_a_column_of_no_classes_is_refused(values, sentence):
    with pytest.raises(TableError, match=sentence):
        labels_of(pd.DataFrame({"y": values}), "y")


def test_names_can_be_imported_from_the_rooms_they_were_in():
    from kernelmetric import datasets, kernels, tables

    for name in tables.__all__:
        if name in kernels.__all__:
            assert getattr(kernels, name) is getattr(tables, name)
        with pytest.warns(DeprecationWarning, match=f"Got {name} .* lives in kernelmetric.tables"):
            assert getattr(datasets, name) is getattr(tables, name)


def test_a_user_says_what_a_column_is():
    frame = pd.DataFrame({"zip": ["10115", "20095"] * 30, "x": np.sqrt(np.arange(60))})
    assert plan_columns(frame).numbers == ("zip", "x")
    assert plan_columns(frame, kinds={"zip": "names"}).categories == ("zip",)
    with pytest.raises(TableError, match="Got --as zip date, but expected dates"):
        plan_columns(frame, kinds={"zip": "date"})


def test_dates_run_in_cycles_and_free_text_counts_by_its_letters():
    rng = np.random.RandomState(0)
    words = ["slow app and crashes", "very happy with the help", "asked about a late invoice"]
    frame = pd.DataFrame(
        {
            "day": pd.date_range("2020-01-01", periods=120, freq="9D").strftime("%d.%m.%Y"),
            "note": [f"{words[i % 3]} {words[rng.randint(3)]} {i}" for i in range(120)],
        }
    )
    plan = plan_columns(frame)
    assert (plan.dates, plan.texts) == ({"day": "%d.%m.%Y"}, ("note",))
    encoder = plan.encoder().fit(frame)
    names = encoder.get_feature_names_out().tolist()
    X = encoder.transform(frame)
    week = [names.index(f"day: week {part}") for part in ("sine", "cosine")]
    np.testing.assert_allclose(X[0, week], X[7, week], atol=1e-9)  # 63 days later
    note = [j for j, name in enumerate(names) if name.startswith("note: ")]
    alike = np.linalg.norm(X[0, note] - X[3::3][:, note], axis=1).mean()
    assert alike < np.linalg.norm(X[0, note] - X[1::3][:, note], axis=1).mean()
