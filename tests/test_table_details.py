"""Tables, to the letter: limits that hold on both of their sides, and what is said."""

import io
import sys

import numpy as np
import pytest

from kernelmetric.datasets import make_records
from kernelmetric.datasets._records import _mistyped
from kernelmetric.inputs._extras import MissingExtraError
from kernelmetric.tables import (
    Table,
    TableEncoder,
    TableError,
    labels_of,
    open_table,
    plan_columns,
    read_table,
    require_columns,
    table_bytes,
    typed,
)
from kernelmetric.tables._cells import Writing, numbers_of, text_of, writing_of

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")


def opened(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return open_table(path)


# --- cells --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "writing"),
    [
        ([], "text"),
        (["?"], "text"),
        (["1", "2", "3", "4", "?"], "point"),  # four of five are most
        (["1", "2", "3", "?", "?"], "text"),
        (["1,234", "5"], "either"),
        (["0,234", "5"], "comma"),  # no thousand begins with a zero
        (["1234,567", "5"], "comma"),  # nor follows four digits
        (["1,5", "2.5"], "mixed"),
    ],
)
def test_how_a_column_writes_numbers_is_told_by_most_of_its_cells(texts, writing):
    assert writing_of(texts) == writing


def test_beside_decimal_commas_a_decimal_point_is_no_number():
    column = pd.Series(["1,5", "2.5", "3", "x", None, "1e999"], dtype=object)
    np.testing.assert_array_equal(
        numbers_of(column, Writing("comma")), [1.5, np.nan, 3.0, np.nan, np.nan, np.nan]
    )
    np.testing.assert_array_equal(numbers_of(column), [np.nan, 2.5, 3.0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (2.5, "2.5"),
        (np.float32(4), "4"),
        (np.nan, None),
        (None, None),
        (pd.NaT, None),
        ("  ", None),
        ([1, None], "[1, None]"),
        (np.bool_(True), "True"),
    ],
)
def test_a_cell_of_any_type_has_a_text_unless_it_is_missing(value, text):
    assert text_of(value) == text


# --- files --------------------------------------------------------------------------------------


def test_a_row_is_called_by_its_number_where_there_are_no_lines():
    assert Table(pd.DataFrame({"a": [1]})).place(0) == "row 0, from 0, of the table"


@pytest.mark.parametrize(("n", "more"), [(12, False), (13, True)])
def test_twelve_columns_are_shown_and_of_more_that_there_are(n, more):
    frame = pd.DataFrame({f"column{i}": [1] for i in range(n)})
    with pytest.raises(TableError) as caught:
        require_columns(frame, ["zzz"])
    shown = ", ".join(f"column{i}" for i in range(12)) + (", ..." if more else "") + "."
    assert str(caught.value) == f"The table has no column 'zzz'; its columns are {shown}"


def test_the_nearest_name_is_offered_if_half_of_it_is_the_same():
    frame = pd.DataFrame({"weight": [1], "height": [1]})
    with pytest.raises(TableError, match=r" Did you mean 'weight'\?$"):
        require_columns(frame, ["wigth"])
    with pytest.raises(TableError, match=r"weight, height\.$"):
        require_columns(frame, ["white noise"])  # four letters of twice eight or nine are less


@pytest.mark.parametrize(("digits", "kind"), [(18, "i"), (19, "f")])
def test_whole_numbers_are_integers_as_far_as_64_bits_hold_them(digits, kind):
    text = "9" * digits
    column = typed(pd.DataFrame({"a": [text, "-" + text]}))["a"]
    assert column.dtype.kind == kind
    np.testing.assert_allclose(column.to_numpy(float), [float(text), -float(text)], rtol=1e-15)


def test_columns_that_have_a_type_keep_it():
    frame = pd.DataFrame({
        "truth": [True, False],
        "day": pd.to_datetime(["2020-01-01", "2020-01-02"]),
        "span": pd.to_timedelta([1, 2], unit="D"),
        "wave": [1j, 2j],
    })  # fmt: skip
    for rows in (frame, frame[:0]):
        assert typed(rows).dtypes.tolist() == frame.dtypes.tolist()
    never = pd.DataFrame({"day": pd.to_datetime([None, None])})
    assert typed(never).dtypes.tolist() == never.dtypes.tolist()


@pytest.mark.parametrize("dtype", [object, "string"])
@pytest.mark.parametrize("missing", ["NaN", "None", "NA"])
def test_numbers_are_numbers_whatever_stands_for_those_missing(missing, dtype):
    nothing = {"NaN": np.nan, "None": None, "NA": pd.NA}[missing]
    column = typed(pd.DataFrame({"a": pd.Series(["1", nothing, "2"], dtype=dtype)}))["a"]
    assert column.dtype == np.float64
    np.testing.assert_array_equal(column, [1.0, np.nan, 2.0])
    words = pd.Series(["1", nothing, "two"], dtype=dtype)
    assert typed(pd.DataFrame({"a": words}))["a"].equals(words)
    mixed = pd.Series(["1", nothing, 2], dtype=object)
    assert typed(pd.DataFrame({"a": mixed}))["a"].equals(mixed)


@pytest.mark.parametrize("name", ["a.parquet.gz", "a.npz.gz", "a.xlsx", "a.gz"])
def test_other_kinds_of_files_are_refused_by_their_names(name, tmp_path):
    with pytest.raises(TableError, match=r"but expected a \.csv, \.tsv, \.txt"):
        opened(tmp_path, "a\n1\n", name)


def test_the_ending_of_a_name_may_have_capitals(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    for name, separator in (("t.CSV", ","), ("t.TSV", "\t"), ("t.txt", ",")):
        data = table_bytes(frame, name)
        assert data.decode() == f"a{separator}b\n1.0{separator}x\n2.0{separator}y\n"
        assert opened(tmp_path, data, name).frame.columns.tolist() == ["a", "b"]
    path = tmp_path / "t.NPZ"
    path.write_bytes(table_bytes(frame, path))
    pd.testing.assert_frame_equal(read_table(path), frame, check_dtype=False)


@pytest.mark.parametrize("lacking", ["pyarrow", "pandas"])
def test_a_package_that_tables_lack_is_told(lacking, monkeypatch):
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(MissingExtraError, match=f"need {lacking}, which is not installed: try"):
        open_table("t.parquet")


@pytest.mark.parametrize("name", ["X", "feature_names"])
def test_a_column_of_text_cannot_take_the_name_of_the_points(name):
    with pytest.raises(TableError, match=f"Got a column '{name}' of text"):
        table_bytes(pd.DataFrame({name: ["p"], "m": [1]}), "t.npz")


def test_columns_of_text_in_an_npz_keep_their_order():
    frame = pd.DataFrame({"z": ["p", "q"], "m": [1, 2], "b": ["r", "s"]})
    with np.load(io.BytesIO(table_bytes(frame, "t.npz"))) as archive:
        assert archive.files == ["X", "feature_names", "z", "b"]


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_a_table_without_rows_or_columns_is_refused(shape, tmp_path):
    np.savez(tmp_path / "t.npz", X=np.zeros(shape))
    with pytest.raises(TableError, match="no rows"):
        read_table(tmp_path / "t.npz")


# --- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
def test_every_mark_of_an_encoding_is_known(encoding, tmp_path):
    table = opened(tmp_path, "\ufeffa,b\n1,ß\n".encode(encoding))
    assert table.frame.to_numpy().tolist() == [["1", "ß"]]
    assert table.notes == (f"The text is {encoding[:6].upper()}.",)


def test_what_is_no_utf8_is_refused_by_the_name_people_know(tmp_path):
    with pytest.raises(TableError, match=r"whose text is not UTF-8 \(byte "):
        opened(tmp_path, b"\xef\xbb\xbfa,b\n1,\xff\n")


def test_blank_lines_between_rows_are_counted_and_others_are_not(tmp_path):
    table = opened(tmp_path, "\n\na,b\n1,x\n\n \n2,y\n\n\n")
    assert table.notes == ("2 blank lines between the rows are skipped.",)
    assert table.lines.tolist() == [4, 7]


def test_below_a_hint_lines_are_those_of_the_file(tmp_path):
    assert opened(tmp_path, "sep=;\na;b\n1;x\n").lines.tolist() == [3]
    with pytest.raises(TableError, match=r", line 3: "):
        opened(tmp_path, 'sep=;\na;b\n1;"x\n')


def test_columns_without_names_are_called_by_their_numbers(tmp_path):
    table = opened(tmp_path, ",b,\n1,2,3\n4,5,6\n")
    assert table.frame.columns.tolist() == ["row names", "b", "column 3"]
    assert table.notes == (
        "Column 1 has no name and is called 'row names'.",
        "Column 3 has no name and is called 'column 3'.",
    )


def test_of_several_twins_and_numbers_among_names_the_first_is_told(tmp_path):
    with pytest.raises(TableError, match="two columns named 'a'"):
        opened(tmp_path, "b,b,a,a\n1,2,3,4\n")
    assert opened(tmp_path, "7,8\n1,2\n").notes == (
        "The first line is taken for the names of the columns, '7' among them.",
    )


def test_what_parts_the_cells_is_seen_beyond_the_first_lines(tmp_path):
    """Ten records are as wide by commas as by semicolons; the eleventh is not."""
    table = opened(tmp_path, "a,b;c\n" + "1,2;3\n" * 10 + "1;3\n")
    assert table.notes == ("The cells are parted by semicolons.",)
    assert table.frame.columns.tolist() == ["a,b", "c"]


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "used"), [(2, True), (3, False)])
def test_two_rows_that_differ_are_no_identifier(n, used):
    frame = pd.DataFrame({"row": range(n), "x": [0.5, 0.1, 0.2][:n]})
    assert plan_columns(frame).numbers == (("row", "x") if used else ("x",))


@pytest.mark.parametrize(("n", "used"), [(5, True), (6, False)])
def test_five_names_may_differ_in_most_rows(n, used):
    frame = pd.DataFrame({"odd": [*"abcdef"[:n], "a"], "x": np.sqrt(np.arange(n + 1))})
    assert plan_columns(frame).categories == (("odd",) if used else ())


def test_typed_dates_and_spans_of_time_are_used():
    frame = pd.DataFrame({
        "day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-02"]),
        "span": pd.to_timedelta([1, 2, 2], unit="D"),
        "x": [0.5, 0.1, 0.2],
    })  # fmt: skip
    plan = plan_columns(frame)
    assert list(plan.dates) == ["day", "span"]
    assert plan.encoder().fit_transform(frame).shape == (3, 6)


def test_the_first_word_that_is_no_number_is_shown():
    plan = plan_columns(pd.DataFrame({"a": [*map(str, [1, 2, 4, 8, 16, 32, 64, 3]), "u", "k"]}))
    assert plan.missing == {"a": ("k", "u")}
    assert plan.notes == (
        "a: 2 values such as 'k' are no numbers, taken as missing.",
        "a: 2 of 10 values are missing, which is a state of its own.",
    )


def test_codes_among_names_need_no_remark():
    plan = plan_columns(pd.DataFrame({"a": ["01", "A1", "B1", "01", "A1"]}))
    assert plan.notes == ("a: 3 names become features, one each.",)


def test_a_table_of_nothing_but_the_label_is_told_to_be_one():
    with pytest.raises(TableError, match="the table holds nothing but the label"):
        plan_columns(pd.DataFrame({"y": ["a", "b"]}), label="y")


def test_a_name_among_fractions_makes_them_names():
    y, _, _ = labels_of(pd.DataFrame({"y": ["1.5", "2", "1.5", "2", "2", "1.5", "x", "2"]}), "y")
    assert set(y) == {"1.5", "2", "x"}
    with pytest.raises(TableError, match=r"fractions such as 1\.25"):
        labels_of(pd.DataFrame({"y": ["1.25", "2", "1.25", "2"]}), "y")


@pytest.mark.parametrize(("texts", "classes"), [("aabb", True), ("aabbc", False)])
def test_half_as_many_classes_as_rows_are_the_most(texts, classes):
    frame = pd.DataFrame({"y": list(texts)})
    if classes:
        assert labels_of(frame, "y")[0].tolist() == list(texts)
    else:
        with pytest.raises(TableError, match="3 different values in 5 rows"):
            labels_of(frame, "y")


# --- the encoder --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoder():
    frame = pd.DataFrame({"kg": [1.0, 2.0, 4.0, 5.0], "kind": ["a", "b", "a", "b"]})
    return TableEncoder(["kg"], ["kind"], unused=()).fit(frame)


def test_three_names_that_were_never_seen_are_shown(encoder):
    frame = pd.DataFrame({"kg": 1.0, "kind": list("pqrsa")})
    assert encoder.remarks(frame) == [
        "Column 'kind' has 'p', 'q', 'r', ... in 4 of 5 rows, never seen in fit: taken as one of "
        "the other names."
    ]
    gap = pd.DataFrame({"kg": 1.0, "kind": ["a", None]})
    assert "no value in 1 of 2 rows" in encoder.remarks(gap)[0]


@pytest.mark.parametrize(("n", "more"), [(3, ""), (4, ", ...")])
def test_three_unknown_columns_are_shown(n, more, encoder):
    frame = pd.DataFrame({"kg": [1.0], "kind": ["a"]} | {f"u{i}": [0] for i in range(n)})
    assert encoder.remarks(frame) == [
        f"{n} columns are unknown to the model and not used: u0, u1, u2{more}."
    ]


def test_who_knows_no_other_columns_says_nothing_of_them(encoder):
    old = TableEncoder(["kg"], ["kind"])
    old.schema_ = encoder.schema_
    assert old.remarks(pd.DataFrame({"kg": [1.0], "kind": ["a"], "u": [0]})) == []


@pytest.mark.parametrize(("commas", "mark"), [((), "point"), (("kg",), "comma")])
def test_three_words_for_what_is_missing_are_offered(commas, mark):
    encoder = TableEncoder(["kg"], commas=commas, missing={"kg": ["d", "c", "b", "a"]})
    with pytest.raises(TableError) as caught:
        encoder.read(pd.DataFrame({"kg": ["1", "d", "?"]}))
    assert str(caught.value).startswith(
        "Got '?' in column 'kg', row 2, from 0, of the table, but expected a number with a decimal "
        f"{mark} or 'a', 'b', 'c', ..., as in"
    )


def test_rows_keep_their_index_and_features_the_names_of_columns(encoder):
    frame = pd.DataFrame({"kg": [1.0, 2.0], "kind": ["a", "b"]}, index=["p", "q"])
    assert encoder.read(frame).index.tolist() == ["p", "q"]
    names = ["kg", "kg=(missing)", "kind=a", "kind=b", "kind=(other)"]
    assert encoder.get_feature_names_out().tolist() == names


def test_a_column_without_any_number_is_no_feature():
    frame = pd.DataFrame({"kg": [1.0, 3.0], "none": [np.nan, np.nan]})
    Z = TableEncoder(["kg", "none"]).fit(frame).transform(frame)
    np.testing.assert_allclose(Z, [[-1.0, 0.0], [1.0, 0.0]])


# --- records ------------------------------------------------------------------------------------


def test_two_people_written_down_twice_are_enough():
    records, person = make_records(2, n_copies=2, random_state=0)
    assert len(records) == 4
    assert sorted(person) == [0, 0, 1, 1]


def test_a_slip_of_the_pen_loses_doubles_replaces_or_exchanges_letters():
    rng = np.random.RandomState(0)
    found = {_mistyped("abc", rng) for _ in range(2000)}
    letters = "abcdefghijklmnopqrstuvwxyz"
    assert found == (
        {"bc", "ac", "aabc", "abbc", "bac", "acb"}
        | {f"{letter}bc" for letter in letters}
        | {f"a{letter}c" for letter in letters}
    )
    assert {_mistyped("ab", rng) for _ in range(50)} == {"ab"}
    assert {_mistyped("", rng) for _ in range(5)} == {""}
    assert all(set(_mistyped("1-2", rng)) <= set("0123456789-" + letters) for _ in range(50))


def test_a_number_whose_square_overflows_is_refused_with_its_place():
    frame = pd.DataFrame({"kg": ["1", "2", "3e154", "4"]})
    with pytest.raises(TableError, match=r"Got 3e\+154 in column 'kg', .*numbers up to 1e\+150"):
        plan_columns(frame).encoder().fit(frame)
