"""What holds for every table, however nasty its text: what is written is read, cell by cell."""

import csv
import io

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")

import pandas as pd
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kernelmetric.tables import TableError, open_table, plan_columns, read_table, table_bytes
from kernelmetric.tables._cells import MISSING, is_plain_number, writing_of

quick = settings(
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NASTY = ["", '"', '""', ",", ";", "\t", "|", "\n", "\r\n", "a\nb", " x ", "007", "0", "1e5", "1,5"]
NASTY += [
    "NA",
    "nan",
    "?",
    "-999",
    "inf",
    "True",
    "no",
    "2020-01-01",
    "é",
    "\u2028",
    "'",
    "\\",
    "#",
]
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
sized = st.floats(-1e150, 1e150) | st.sampled_from([np.nan, np.inf])
cell = st.one_of(st.sampled_from(NASTY), any_text, st.integers().map(str), sized.map(str))
name = any_text.filter(lambda text: text.strip() and not text.startswith(("sep=", "\ufeff")))
number = st.one_of(
    st.integers(-50, 50).map(str), st.floats(-9, 9).map(lambda x: f"{x:.2f}"), st.just("?")
)
decimal = st.floats(-9, 9).map(lambda x: f"{x:.2f}".replace(".", ","))
code = st.sampled_from(["01", "02", "1", "A1", "2.0", "b, c", 'd"', "é", "NA", ""])


@st.composite
def tables(draw):
    names = draw(st.lists(name, min_size=1, max_size=4, unique_by=str.strip))
    width = len(names)
    rows = draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=5))
    return names, rows


@st.composite
def frames(draw):
    """Frames of text with columns of all kinds."""
    n = draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from([number, decimal, code, cell]), min_size=1, max_size=4))
    columns = {
        f"c{j}": draw(st.lists(kind, min_size=n, max_size=n)) for j, kind in enumerate(kinds)
    }
    return pd.DataFrame(columns, dtype=object).map(as_read)


def as_read(text):
    """What a cell is in a table that was read."""
    return np.nan if text.strip() in MISSING else text.strip()


def written(names, rows, delimiter, quoting, end):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(names)
    writer.writerows(rows)
    return stream.getvalue()


DIALECTS = [
    (delimiter, quoting, end)
    for delimiter in ",;\t|"
    for quoting, end in ((csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\n"))
]


@quick
@given(table=tables(), dialect=st.sampled_from(DIALECTS), mark=st.sampled_from(["", "\ufeff"]))
def test_every_cell_is_read_as_it_was_written(tmp_path, table, dialect, mark):
    names, rows = table
    if len(names) == 1:  # whose text may look like several columns
        dialect = (dialect[0], csv.QUOTE_ALL, dialect[2])
    path = tmp_path / "table.csv"
    path.write_bytes((mark + written(names, rows, *dialect)).encode("utf-8"))
    try:
        again = open_table(path)
    except TableError as error:
        # text that could be parted in two ways is refused, never taken in the wrong one
        assert "may be parted by" in str(error)
        return
    assert list(again.frame.columns) == [name.strip() for name in names]
    got = [[None if value != value else value for value in row] for row in again.frame.to_numpy()]
    assert got == [[None if (t := text.strip()) in MISSING else t for text in row] for row in rows]
    # a cell that holds no line end stands in the line that is named for its row
    lines = path.read_bytes().decode("utf-8-sig")
    if not any("\n" in text or "\r" in text for row in [names, *rows] for text in row):
        assert again.lines.tolist() == list(range(2, 2 + len(rows)))
        assert len(lines.split("\n")) == 2 + len(rows)


@pytest.mark.slow
@quick
@given(frame=frames(), seed=st.integers(0, 99))
def test_the_order_of_rows_decides_nothing(frame, seed):
    def decided(frame):
        try:
            plan = plan_columns(frame)
        except TableError:
            return None
        return plan.numbers, plan.categories, plan.left_out, plan.commas, plan.missing

    assert decided(frame) == decided(frame.sample(frac=1, random_state=seed))


@pytest.mark.slow
@quick
@given(frame=frames(), data=st.data())
def test_some_rows_are_encoded_as_they_are_among_all(tmp_path, frame, data):
    try:
        encoder = plan_columns(frame).encoder()
    except TableError:
        assume(False)
    X = encoder.fit_transform(frame)
    assert np.isfinite(X).all()
    n = len(frame)
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n))
    part = frame.iloc[rows]
    np.testing.assert_array_equal(encoder.transform(part), X[rows])
    # and through a file, in which the other rows cannot help to tell what a cell is
    path = tmp_path / "part.csv"
    cells = part.astype(object).where(part.notna(), "").to_numpy().tolist()
    text = written(list(part), cells, ",", csv.QUOTE_ALL, "\n")
    path.write_text(text, encoding="utf-8", newline="")
    again = open_table(path)
    np.testing.assert_array_equal(encoder.transform(again), X[rows])
    assert not any("never seen" in remark for remark in encoder.remarks(again))


@quick
@given(texts=st.lists(cell.map(str.strip), min_size=1, max_size=6))
def test_what_the_pattern_calls_a_number_float_reads(texts):
    for text in filter(is_plain_number, texts):
        float(text)
    assert writing_of(texts) == writing_of(texts[::-1])


@quick
@given(
    values=st.lists(st.floats(allow_infinity=False, allow_subnormal=False), min_size=1, max_size=8),
    kind=st.sampled_from(["csv", "tsv", "npz"]),
)
def test_numbers_survive_every_kind_of_file_to_the_last_bit(tmp_path, values, kind):
    path = tmp_path / f"t.{kind}"
    path.write_bytes(table_bytes(pd.DataFrame({"x": values, "y": values[::-1]}), path))
    np.testing.assert_array_equal(read_table(path)["x"].to_numpy(dtype=float), values)
