"""Tables as they come from other programs: what each must give, what it says, what is refused."""

import gzip

import numpy as np
import pytest

from kernelmetric.tables import TableError, labels_of, open_table, plan_columns, read_table

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")

PLAIN = [["1", "x"], ["2", "y"]]


def write(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def opened(folder, content, name="table.csv"):
    return open_table(write(folder, content, name))


def cells(table):
    """The cells, None where missing."""
    frame = table.frame.astype(object)
    return frame.where(frame.notna(), None).to_numpy().tolist()


# --- what is read, with what is said ------------------------------------------------------------

CORPUS = {
    # name: (content, names, rows, what the notes say)
    "plain": ("a,b\n1,x\n2,y\n", "ab", PLAIN, []),
    "no line end": ("a,b\n1,x\n2,y", "ab", PLAIN, []),
    "carriage returns": ("a,b\r\n1,x\r\n2,y\r\n", "ab", PLAIN, []),
    "old Mac": ("a,b\r1,x\r2,y\r", "ab", PLAIN, []),
    "quoted names": ('"a","b"\n1,"x"\n2,"y"\n', "ab", PLAIN, []),
    "quotes and blanks": ('"a", "b"\n1, "x"\n2, "y"\n', "ab", PLAIN, []),
    "blanks around": (" a , b \n 1 , x \n2 ,y\t\n", "ab", PLAIN, []),
    "semicolons": ("a;b\n1;x\n2;y\n", "ab", PLAIN, ["parted by semicolons"]),
    "tabs": ("a\tb\n1\tx\n2\ty\n", "ab", PLAIN, ["parted by tabs"]),
    "bars": ("a|b\n1|x\n2|y\n", "ab", PLAIN, ["parted by bars"]),
    "Excel's hint": ("sep=;\na;b\n1;x\n2;y\n", "ab", PLAIN, ["says that ';'"]),
    "a hint against looks": ("sep=|\na,c|b\n1|x\n2|y\n", ["a,c", "b"], PLAIN, ["says that '|'"]),
    "UTF-8 mark": ("\ufeffa,b\n1,x\n2,y\n", "ab", PLAIN, []),
    "Excel's Unicode text": (
        "a\tb\r\n1\tx\r\n2\ty\r\n".encode("utf-16"),
        "ab",
        PLAIN,
        ["UTF-16", "parted by tabs"],
    ),
    "UTF-16, other end": ("\ufeffa,b\n1,x\n2,y\n".encode("utf-16-be"), "ab", PLAIN, ["UTF-16"]),
    "UTF-32": ("a,b\n1,x\n2,y\n".encode("utf-32"), "ab", PLAIN, ["UTF-32"]),
    "trailing commas": ("a,b\n1,x,\n2,y,\n", "ab", PLAIN, ["Every row ends in a delimiter"]),
    "trailing commas, odd names": ("a;x;y,b\n1,2,\n3,4,\n", ["a;x;y", "b"],
                                   [["1", "2"], ["3", "4"]], ["Every row ends in a delimiter"]),
    "trailing commas everywhere": (
        "a,b,,\n1,x,,\n2,y,,\n",
        "ab",
        PLAIN,
        ["The last column has neither", "The last column has neither"],
    ),
    "a comma too many beside one column": ("a,\n1,\n2,\n", "a", [["1"], ["2"]], ["The last"]),
    "R's write.csv": (
        '"","a","b"\n"1",1,"x"\n"2",2,"y"\n',
        ["row names", "a", "b"],
        [["1", "1", "x"], ["2", "2", "y"]],
        ["Column 1 has no name and is called 'row names'"],
    ),
    "R's write.table": (
        '"a","b"\n"Mazda",1,"x"\n"Fiat",2,"y"\n',
        ["row names", "a", "b"],
        [["Mazda", "1", "x"], ["Fiat", "2", "y"]],
        ["Column 1 has no name and is called 'row names'"],
    ),
    "R's write.table, counted": (
        '"a","b"\n"1",7,"x"\n"2",7,"y"\n',
        ["row names", "a", "b"],
        [["1", "7", "x"], ["2", "7", "y"]],
        ["Column 1 has no name and is called 'row names'"],
    ),
    "a name missing": ("a,,c\n1,2,3\n", ["a", "column 2", "c"], [["1", "2", "3"]], ["Column 2"]),
    "a last name missing": ("a,b,\n1,,\n2,,3\n", ["a", "b", "column 3"],
                            [["1", None, None], ["2", None, "3"]], ["Column 3"]),
    "a quoted delimiter": ('a,b\n1,"x,y;|"\n', "ab", [["1", "x,y;|"]], []),
    "a quote in quotes": ('a,b\n1,"5"" pipe"\n', "ab", [["1", '5" pipe']], []),
    "a bare quote": ('a,b\n1,5" pipe\n', "ab", [["1", '5" pipe']], []),
    "a line in a cell": ('a,b\n1,"x\ny"\n2,z\n', "ab", [["1", "x\ny"], ["2", "z"]], []),
    "blank lines": ("\n\na,b\n\n1,x\n  \n2,y\n\n\n", "ab", PLAIN, ["2 blank lines"]),
    "one column": ("a\n1\n2\n", "a", [["1"], ["2"]], []),
    "one column with a gap": ('a\n1\n""\n2\n', "a", [["1"], [None], ["2"]], []),
    "empty cells": ("a,b\n,x\n2,\n,\n", "ab", [[None, "x"], ["2", None], [None, None]], []),
    "missing": ("a,b\nNA,NaN\nnull,#N/A\nN/A,None\n", "ab", [[None, None]] * 3, []),
    "not missing": ("a,b\n?,-999\nna,-\n", "ab", [["?", "-999"], ["na", "-"]], []),
    "no line of names": ("5.1,setosa\n4.9,setosa\n", ["5.1", "setosa"], [["4.9", "setosa"]],
                         ["first line is taken for the names of the columns, '5.1'"]),
    "decimal commas": ("a;b\n1,5;x\n2,5;y\n", "ab", [["1,5", "x"], ["2,5", "y"]], ["semicolons"]),
    "names with commas": ("a, cm;b\n1,5;x\n2;y\n", ["a, cm", "b"], [["1,5", "x"], ["2", "y"]],
                          ["semicolons"]),
    "text with semicolons": ("a,b\n1,x;y\n2,z\n", "ab", [["1", "x;y"], ["2", "z"]], []),
    "leading zeros": ("a,b\n007,x\n010,y\n", "ab", [["007", "x"], ["010", "y"]], []),
    "not only ASCII": ("größe,名\n1,π\n", ["größe", "名"], [["1", "π"]], []),
    "odd spaces": ("a,b\n1,x\u2028y\x0b\x1cz\n", "ab", [["1", "x\u2028y\x0b\x1cz"]], []),
}  # fmt: skip


@pytest.mark.parametrize(("content", "names", "rows", "said"), CORPUS.values(), ids=CORPUS)
def test_a_dirty_table_is_read_cell_by_cell(tmp_path, content, names, rows, said):
    table = opened(tmp_path, content)
    assert list(table.frame.columns) == list(names)
    assert cells(table) == rows
    assert len(table.notes) == len(said), table.notes
    for note, part in zip(table.notes, said, strict=True):
        assert part in note


def test_a_tsv_is_parted_by_tabs_whatever_else_could_be(tmp_path):
    table = opened(tmp_path, "a,b\tc\n1,2\t3\n", "table.tsv")
    assert (list(table.frame.columns), table.notes) == (["a,b", "c"], ())
    assert cells(opened(tmp_path, "a,b\n1,2\n", "table.tsv")) == [["1", "2"]]
    packed = opened(tmp_path, gzip.compress(b"a,b\tc\n1,2\t3\n"), "table.tsv.gz")
    assert cells(packed) == [["1,2", "3"]]


def test_lines_are_those_of_the_file(tmp_path):
    table = opened(tmp_path, 'sep=,\n\na,b\n1,"x\ny\nz"\n\n2,y\n3,z\n')
    assert table.lines.tolist() == [4, 8, 9]
    assert table.place(1) == "line 8 of table.csv"


# --- what is refused ----------------------------------------------------------------------------

REFUSED = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "no name and no value": ('""\n""\n', "is empty"),
    "names alone": ("a,b\n", "no rows"),
    "twins": ("a,b,a\n1,2,3\n", "two columns named 'a'"),
    "twins behind blanks": ("a, a\n1,2\n", "two columns named 'a'"),
    "quoted twins": ('"a",a\n1,2\n', "two columns named 'a'"),
    "too many cells": ("a,b\n1,2\n\n1,2,3\n", "Line 4 .* 3 cells, but expected 2"),
    "uneven rows and two marks": ("a,b,c;d\n1,2\n1,2,3\n", "Line 2 .* 2 cells, but expected 3"),
    "too few cells": ("a,b,c\n1,2,3\n1,2\n", "Line 3 .* 2 cells, but expected 3"),
    "a comma after some rows": ("a,b\n1,2\n1,2,\n", "Line 3 .* 3 cells"),
    "two commas after the rows": ("a,b\n1,2,,\n3,4,,\n", "Line 2 .* 4 cells"),
    "decimal commas between commas": ("a,b\n1,5,2\n1,7,3\n", "Line 2 .* 3 cells"),
    "decimal commas that differ": ("a,b\n1,5,2\n3,7,3\n", "Line 2 .* 3 cells"),
    "decimal commas in one column": ("a\n1,5\n2,5\n", "Line 2 .* 2 cells, but expected 1"),
    "an open quote": ('a,b\n1,x\n2,"y\n3,z\n', "line 3: .*quote left open"),
    "text behind a quote": ('a,b\n1,"x"y\n', "line 2: "),
    "a backslash before a quote": ('a,b\n1,"x \\" y"\n', "line 2: "),
    "two delimiters": ("a,b;c,d\n1,2;3,4\n", "parted by commas or by semicolons"),
    "three delimiters": ("a,b;c|d\n1,2;3|4\n", "parted by commas or by semicolons"),
    "European names": ("a, cm;b, cm\n1,5;2,5\n", "parted by commas or by semicolons"),
    "Latin-1": ("größe,b\n1,2\n".encode("latin-1"), r"not UTF-8 \(byte 2\)"),
    "half a UTF-16": ("a,b\n1,2\n".encode("utf-16")[:-1], "not UTF-16"),
    "UTF-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), "NUL characters"),
    "an endless cell": (f'a,b\n1,"{"x" * 140_000}"\n', "line 2: field larger"),
}


@pytest.mark.parametrize(("content", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_in_one_way_is_refused_with_its_place(tmp_path, content, sentence):
    with pytest.raises(TableError, match=sentence):
        opened(tmp_path, content)


@pytest.mark.parametrize("cut", [20, -12])
def test_a_damaged_gzip_is_refused(tmp_path, cut):
    data = gzip.compress(b"a,b\n" + b"1,2\n" * 500)
    broken = data[:cut] if cut > 0 else data[:15] + bytes(len(data) - 15)
    with pytest.raises(TableError, match="Cannot read"):
        opened(tmp_path, broken, "table.csv.gz")


def test_a_long_line_of_many_names_is_read_and_twins_are_found_among_them(tmp_path):
    names = [f"a rather long name of a column {j}" for j in range(6_000)]
    row = ",".join(["1.5"] * len(names))
    table = opened(tmp_path, f"{','.join(names)}\n{row}\n")
    assert table.frame.shape == (1, 6_000)
    assert sum(map(len, names)) > 131_072  # more than a single cell may hold
    with pytest.raises(TableError, match="two columns named 'a rather long name of a column 7'"):
        opened(tmp_path, f"{','.join([*names[1:], names[7]])}\n{row}\n")


@pytest.mark.slow
def test_thousands_of_columns_are_found_in_linear_time():
    seen = []
    frame = pd.DataFrame(np.random.RandomState(0).randn(4, 3_000))
    frame.columns = [f"c{j}" for j in range(3_000)]

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other):
            seen.append(1)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    encoder = plan_columns(frame, ignore=["c0"]).encoder()
    encoder.numbers = tuple(Counted(name) for name in encoder.numbers)
    encoder.read(frame)
    assert len(seen) < 100 * 3_000  # 9 million where every name meets every other


# --- npz ----------------------------------------------------------------------------------------


def test_arrays_of_an_npz_that_are_no_columns_are_told(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.eye(3), kind=["a", "nan", ""], size=[1, 2, 3], odd=np.ones(4))
    table = open_table(path)
    assert list(table.frame.columns) == ["x0", "x1", "x2", "kind", "size"]
    assert cells(table)[1] == [0, 1, 0, None, 2]
    assert len(table.notes) == 1
    assert "'odd' of shape (4,)" in table.notes[0]
    assert table.place(2) == "row 2, from 0, of t.npz"


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.eye(2), "x0": np.ones(2)}, "two columns named 'x0'"),
        ({"X": np.eye(2), "feature_names": ["a", "a"]}, "two columns named 'a'"),
        ({"X": np.eye(2), "feature_names": ["a"]}, r"shape \(1,\) for 2 columns"),
        ({"X": np.eye(2), "feature_names": [["a"], ["b"]]}, r"shape \(2, 1\) for 2 columns"),
        ({"X": np.ones(3)}, "array X of shape"),
        ({"X": np.empty((0, 2))}, "no rows"),
    ],
)
def test_an_npz_that_is_no_table_is_refused(tmp_path, arrays, sentence):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=sentence):
        read_table(tmp_path / "t.npz")


# --- types and kinds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-2", "+3"], "i"),
        (["1", "", "3"], "f"),
        (["1.5", ".5", "1e5"], "f"),
        (["123456789012345678901", "1", "2"], "f"),
        (["01", "2", "3"], "O"),
        (["1", "x", "3"], "O"),
        (["1_000", "2", "3"], "O"),
        (["inf", "2", "3"], "O"),
        (["٣", "2", "3"], "O"),
        (["0x1f", "2", "3"], "O"),
        (["1,5", "2", "3"], "O"),
        (["True", "False", "True"], "O"),
    ],
)
def test_read_table_makes_numbers_of_what_are_numbers_in_every_row(tmp_path, texts, kind):
    lines = "".join(f'"{text}"\n' for text in texts)
    column = read_table(write(tmp_path, f"a\n{lines}"))["a"]
    assert column.dtype.kind == kind
    if kind in "if":
        expected = [float(text or "nan") for text in texts]
        np.testing.assert_array_equal(column.to_numpy(dtype=float), expected)
    else:
        assert column.tolist() == texts


def plan_of(*texts, beside=("0.5", "0.25", "0.75", "0.1", "0.2", "0.3")):
    return plan_columns(pd.DataFrame({"odd": texts, "x": beside[: len(texts)]}))


KINDS = {
    "whole": (["1", "2", "2", "4", "9"], "number", []),
    "exponents": (["1e5", "2E-3", "-.5", "+4.", "9"], "number", []),
    "codes": (["01", "02", "01", "02", "11"], "category", ["zeros such as '01'", "3 names"]),
    "zero point": (["0.1", "0", "00.5", "0.0", "1"], "number", []),
    "mixed": (["1", "2", "A1", "2", "1"], "number", ["'A1' are no numbers", "1 of 5"]),
    "mostly text": (["1", "A2", "A1", "A2", "1"], "category", ["3 names"]),
    "words": (["yes", "no", "yes", "no", "no"], "category", ["yes or no"]),
    "truths": (["True", "False", "True", "False", "True"], "category", ["yes or no"]),
    "infinity": (["1", "2", "inf", "4", "8"], "number", ["'inf' are no numbers", "1 of 5"]),
    "too large": (["1", "2", "1e999", "4", "8"], "number", ["'1e999' are no numbers", "1 of 5"]),
    "sentinel": (["1", "2", "-999", "4", "8"], "number", []),
    "question": (["1", "2", "?", "4", "8"], "number", ["'?' are no numbers", "1 of 5"]),
    "decimal commas": (["1,5", "2,25", "3", "0,125", "7,5"], "number", ["'1,5' is 1.5"]),
    "comma and question": (["1,5", "2,25", "3", "0,125", "?"], "number",
                           ["'1,5' is 1.5", "'?' are no numbers", "1 of 5"]),
    "thousands": (["1,234,567", "2", "1,000", "3", "4"], "number", ["'1,234,567' is 1234567"]),
    "thousands and decimals": (["1,234.5", "2", "3", "4", "6"], "number", ["'1,234.5' is 1234.5"]),
    "points for thousands": (["1.234,5", "2", "3", "4", "6"], "number", ["'1.234,5' is 1234.5"]),
    "spaces for thousands": (["1 234", "2 500", "3", "4", "6"], "number", ["'1 234' is 1234"]),
    "either": (["1,234", "2,500", "3", "4", "6"], "out", ["'1,234' may be a number with"]),
    "both marks": (["1,5", "2.5", "3", "4", "6"], "out", ["points beside commas, as in '1,5'"]),
    "rows that count": (["3", "1", "2", "5", "4"], "out", ["odd: left out, whole numbers that"]),
    "tens that count": (["30", "10", "20", "50", "40"], "out", ["identifier"]),
    "own numbers": (["3", "1", "2", "5", "9"], "number", []),
    "own numbers with a gap": (["3", "1", "2", None, "4"], "number", ["1 of 5"]),
    "own fractions": (["3.5", "1.5", "2.5", "5.5", "4.5"], "number", []),
    "one value": (["7", "7", None, "7", "7"], "out", ["one value"]),
    "one number written twice": (["7", "7.0", "7", "7", "7"], "category", ["2 names"]),
    "nothing": ([None] * 5, "out", ["empty"]),
    "a gap among names": (["a", "b", None, "a", "b"], "category", ["2 names", "1 missing"]),
    "names of their own": (["a", "b", "c", "d", "e", "f"], "out", ["identifier"]),
    "few names": (["a", "b", "c", "d", "e"], "out", ["no name of it is in two rows"]),
    "mixed marks": (["1,234.5", "1.234,5", "3", "4", "6"], "out", ["points beside commas"]),
    "percent": (["5 %", "7.5 %", "12%", "3 %", "4 %"], "number", ["numbers in %"]),
    "currency": (["€ 1,234.50", "€ 3.10", "€4", "€ 5", "?"], "number",
                 ["numbers in €", "'€ 1,234.50' is 1234.5", "'?' are no numbers"]),
    "units": (["12 kg", "3.5 kg", "7 KG", "8kg", None], "number", ["numbers in kg", "1 of 5"]),
    "two units": (["12 kg", "500 g", "12 kg", "500 g", "12 kg"], "category", ["2 names"]),
    "dates": (["2024-02-29", "2023-01-31", "?", "2024-02-28", "2022-05-05"], "date",
              ["dates such as", "'?' are no dates", "1 of 5"]),
    "days first": (["31.12.2024", "01.02.2023", "03.04.2022", "1.5.2021", None], "date",
                   ["such as '31.12.2024'", "1 of 5"]),
    "months first": (["12/31/2024", "01/02/2023", "03/04/2022", "5/1/2021", None], "date", []),
    "days or months": (["01/02/2023", "03/04/2022", "05/06/2021", "07/08/2020", None], "out",
                       ["may begin with the day or with the month"]),
    "times": (["08:30", "23:15", "12:00", "00:05", "7:45"], "date", ["times of day such as"]),
    "ja": (["Ja", "nein", "ja", "Nein", None], "category", ["yes or no"]),
    "spellings": (["Berlin", "berlin", "BERLIN ", "Paris", "Paris"], "category",
                  ["'BERLIN' is 'Berlin'", "2 names"]),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "kind", "said"), KINDS.values(), ids=KINDS)
def test_what_a_column_is_and_what_is_said_of_it(texts, kind, said):
    plan = plan_of(*texts)
    where = {"number": plan.numbers, "category": plan.categories, "out": plan.left_out}
    where["date"] = plan.dates
    assert "odd" in where[kind], plan
    notes = [note for note in plan.notes if note.startswith("odd: ")]
    text = " ".join(notes)
    for part in said:
        assert part in text
    if not said and kind == "number":
        assert notes == []


def test_a_typed_column_is_judged_as_its_text_would_be():
    for values in ([1.0, 2.0, np.inf, 4.0, 8.0], [3, 1, 2, 5, 4], [True, False, True, True, False]):
        typed = plan_columns(pd.DataFrame({"odd": values, "x": [0.5, 0.1, 0.2, 0.7, 0.9]}))
        text = plan_of(*map(str, values))
        assert (typed.numbers, typed.categories, typed.left_out) == (
            text.numbers,
            text.categories,
            text.left_out,
        )
        assert typed.missing == text.missing


def test_a_thousand_or_a_decimal_is_told_by_the_other_columns():
    frame = pd.DataFrame({"odd": ["1,234", "2,500", "3,125"], "x": ["0,5", "1,5", "0,7"]})
    plan = plan_columns(frame)
    assert plan.commas == plan.numbers == ("odd", "x")
    assert plan.encoder().read(frame)["odd"].tolist() == [1.234, 2.5, 3.125]


@pytest.mark.parametrize("text", ["1,234", "2,000"])
def test_a_column_that_cannot_be_read_cannot_be_asked_for_either(text):
    frame = pd.DataFrame({"odd": [text, "2", "4", "8"], "x": ["0.5", "0.7", "0.1", "0.2"]})
    with pytest.raises(TableError, match=f"Cannot use the column 'odd': '{text}'"):
        plan_columns(frame, use=["odd"])


@pytest.mark.parametrize("name", ["id", "row names", "key", "patient_id", "ID"])
def test_few_texts_under_the_name_of_an_identifier_are_one(name):
    frame = pd.DataFrame({name: ["a", "b", "c"], "x": ["1", "2", "4"]})
    assert plan_columns(frame).left_out == (name,)
    with pytest.raises(TableError, match="no name of it is in two rows"):
        plan_columns(frame, use=[name])
    frame[name] = ["a", "b", "a"]
    assert plan_columns(frame).categories == (name,)


@pytest.mark.parametrize("name", ["id", "key2", "row_"])
def test_whole_numbers_of_their_own_under_the_name_of_an_identifier_are_one(name):
    frame = pd.DataFrame({name: ["5", "9", "4", "100"], "x": ["1", "2", "4", "4"]})
    assert plan_columns(frame).left_out == (name,)
    assert plan_columns(frame, use=[name]).numbers == (name, "x")
    frame["idle"] = frame[name]
    assert plan_columns(frame).numbers == ("x", "idle")
    frame[name] = ["5", "9", "9", "100"]
    assert plan_columns(frame).numbers == (name, "x", "idle")


@pytest.mark.parametrize(("kinds", "used"), [(40, True), (41, False)])
def test_forty_names_are_categories_and_no_more(kinds, used):
    frame = pd.DataFrame({"odd": [f"text {i % kinds}" for i in range(120)]})
    frame["x"] = [f"{i / 7:.3f}" for i in range(120)]
    plan = plan_columns(frame)
    assert ("odd" in plan.categories) == used
    assert ("odd" in plan.left_out) != used


def test_half_the_rows_may_have_a_name_of_their_own():
    frame = pd.DataFrame({"odd": list("abcdefabcdef"), "x": [f"{i / 7:.3f}" for i in range(12)]})
    assert plan_columns(frame).categories == ("odd",)
    frame["odd"] = list("abcdefgbcdef")
    assert plan_columns(frame).left_out == ("odd",)


def test_the_order_of_columns_is_that_of_the_table():
    frame = pd.DataFrame(
        {"c": ["k"] * 3, "b": ["1", "2", "4"], "a": ["x", "y", "x"], "i": ["1"] * 3}
    )
    plan = plan_columns(frame, label="a", ignore=["i"])
    assert plan.left_out == ("c", "i")
    assert plan.label == "a"
    assert plan.encoder().unused == ("c", "i", "a")


# --- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "classes"),
    [
        (["1", "2", "1", "2"], ["1", "2"]),
        (["1.0", "2.0", "1.0", "2"], ["1", "2"]),
        (["01", "1", "01", "1"], ["01", "1"]),
        (["1.50", "x", "1.50", "x"], ["1.50", "x"]),
        (["0.0", "10.0", "0", "10"], ["0", "10"]),
        (["-1.0", "1", "-1", "1"], ["-1", "1"]),
        (["yes ", "no", "yes", " no"], ["yes", "no"]),
    ],
)
def test_a_class_has_one_name_in_every_file(texts, classes):
    y, rows, notes = labels_of(pd.DataFrame({"y": texts}), "y")
    assert set(y) == set(classes)
    assert rows.all()
    assert notes == []


@pytest.mark.parametrize("texts", [["0.5", "1", "2", "1"], ["0,5", "1", "2", "1"]])
def test_fractions_are_no_classes_however_they_are_written(texts):
    with pytest.raises(TableError, match=f"fractions such as {texts[0]}"):
        labels_of(pd.DataFrame({"y": texts}), "y")


def test_classes_of_one_row_are_told():
    y = ["a", "a", "b", "b", "b", "c", None, " ", np.nan]
    found, rows, notes = labels_of(pd.DataFrame({"y": y}, dtype=object), "y")
    assert found.tolist() == ["a", "a", "b", "b", "b", "c"]
    assert rows.tolist() == [True] * 6 + [False] * 3
    assert notes == [
        "3 rows have no y and are left out.",
        "1 classes have one row only, such as c.",
    ]
