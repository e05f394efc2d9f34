"""A model reads other files by the decisions of the one it learned from, or says why not."""

import io
import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from half_of_product import half_of
from kernelmetric import DNE, load, save
from kernelmetric.cli import _study
from kernelmetric.cli._files import load_model
from kernelmetric.cli._study import open_study
from kernelmetric.tables import (
    Table,
    TableEncoder,
    TableError,
    open_table,
    plan_columns,
)

FAST = ("--learner", "dne", "--kernel", "none", "--components", "2")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Euclidean distance as the only alternative: tuning others takes longer than all else."""
    original = _study.baselines
    monkeypatch.setattr(
        _study, "baselines", lambda y, **given: {"Euclidean": original(y, **given)["Euclidean"]}
    )


def rows_of(n=40):
    """Rows as text: two measures, one with a few question marks, codes, a code with gaps."""
    rng = np.random.RandomState(0)
    kinds = np.arange(n) % 2
    return [
        {
            "a": f"{x + 3 * kind:.3f}",
            "b": "?" if i % 10 == 9 else f"{z:.2f}",
            "code": ["01", "02", "A1"][i % 3],
            "plot": "" if i % 7 == 0 else ["w", "1", "2"][i % 3],
            "kind": ["elm", "fir"][kind],
        }
        for i, (kind, x, z) in enumerate(zip(kinds, rng.randn(n), rng.randn(n), strict=True))
    ]


def write(path, rows, delimiter=","):
    lines = [list(rows[0]), *([*row.values()] for row in rows)]
    path.write_text(
        "".join(delimiter.join(line) + "\n" for line in lines), encoding="utf-8", newline=""
    )
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "trees.csv", rows_of())


@pytest.fixture
def model(table, tmp_path):
    """A model of the table, in a file."""
    options = {"pairs_file": None, "learner": "dne", "kernel": "none", "components": 2}
    study = open_study(table, label="kind", use=(), ignore=(), seed=0, **options)
    path = tmp_path / "model.km"
    save(study.fitted(), path)
    return path


def transformed(run, model, path):
    result = run("transform", model, path)
    assert result.exit_code == 0, result.stderr
    Z = pd.read_csv(io.StringIO(result.stdout))
    return Z[[name for name in Z if name.startswith("z")]].to_numpy(), result.stderr


# --- the same cells, the same coordinates -------------------------------------------------------


def test_a_part_of_the_rows_is_encoded_as_in_the_whole(run, model, tmp_path, table):
    whole, _ = transformed(run, model, table)
    few = [0, 1, 3, 4]  # neither 'A1' nor '?' among them
    part, said = transformed(run, model, write(tmp_path / "few.csv", [rows_of()[i] for i in few]))
    np.testing.assert_allclose(part, whole[few], atol=1e-12)
    assert "never seen" not in said


def test_codes_without_the_letters_they_were_trained_with_are_still_codes(model):
    encoder = load(model)["table"]
    rows = [row for row in rows_of() if row["code"] != "A1"]
    names = list(encoder.get_feature_names_out())
    X = encoder.transform(pd.DataFrame(rows).replace("", np.nan))
    for code in ("01", "02"):
        expected = [row["code"] == code for row in rows]
        np.testing.assert_array_equal(X[:, names.index(f"code={code}")] > 0, expected)


def test_whole_numbers_beside_gaps_are_the_same_codes():
    trained = pd.DataFrame({"plot": ["1", "2"] * 2, "a": ["1", "2", "4", "5"]})
    encoder = TableEncoder(["a"], ["plot"]).fit(trained)
    new = pd.DataFrame({"plot": [1.0, np.nan, 2.0], "a": [1.0, 2.0, 4.0]})  # as pandas reads it
    found = encoder.transform(new)[:, 2:] > 0  # 1, 2, others
    np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert encoder.remarks(new) == [
        "Column 'plot' has no value in 1 of 3 rows, but had one in every row in fit: a state that "
        "nothing was learned of."
    ]


@pytest.mark.every(3)
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_changes_nothing(run, model, table, tmp_path, delimiter):
    same = write(tmp_path / "other.csv", rows_of(), delimiter)
    Z, said = transformed(run, model, same)
    np.testing.assert_array_equal(Z, transformed(run, model, table)[0])
    assert "The cells are parted by" in said


@pytest.mark.slow
def test_another_order_of_columns_changes_nothing(run, model, table, tmp_path):
    turned = [dict(reversed(row.items())) for row in rows_of()]
    Z, _ = transformed(run, model, write(tmp_path / "turned.csv", turned))
    np.testing.assert_array_equal(Z, transformed(run, model, table)[0])


@pytest.mark.slow
def test_a_trailing_comma_shifts_no_column(run, table, tmp_path):
    lines = table.read_text(encoding="utf-8").splitlines()
    shifted = tmp_path / "shifted.csv"
    shifted.write_text("\n".join([lines[0], *(f"{line}," for line in lines[1:])]), encoding="utf-8")
    first, second = (
        json.loads(run("fit", path, "--label", "kind", *FAST, "--json").stdout)
        for path in (table, shifted)
    )
    assert first["scores"] == second["scores"]
    assert first["numbers"] == second["numbers"] == ["a", "b"]
    assert any("ends in a delimiter" in note for note in second["notes"])


@pytest.mark.slow
def test_decimal_commas_give_what_points_give(run, table, tmp_path):
    rows = [{k: v.replace(".", ",") if k in "ab" else v for k, v in r.items()} for r in rows_of()]
    european = write(tmp_path / "european.csv", rows, ";")
    first, second = (
        json.loads(run("fit", path, "--label", "kind", *FAST, "--json").stdout)
        for path in (table, european)
    )
    assert first["scores"] == second["scores"]
    assert second["numbers"] == ["a", "b"]
    assert any(note.startswith("a: decimals follow a comma") for note in second["notes"])


@pytest.mark.slow
def test_quoted_tables_of_r_are_read(run, table, tmp_path):
    lines = table.read_text(encoding="utf-8").splitlines()
    quoted = [",".join(f'"{cell}"' for cell in line.split(",")) for line in lines]
    numbered = [f'"{i or ""}",{line}' for i, line in enumerate(quoted)]
    (tmp_path / "r.csv").write_text("\r\n".join(numbered), encoding="utf-8")
    printed = json.loads(run("fit", tmp_path / "r.csv", "--label", "kind", *FAST, "--json").stdout)
    assert printed["left_out"] == ["row names"]
    plain = json.loads(run("fit", table, "--label", "kind", *FAST, "--json").stdout)
    assert printed["scores"] == plain["scores"]


# --- what does not fit --------------------------------------------------------------------------


@pytest.mark.every(6)
@pytest.mark.parametrize(
    ("command", "cell"),
    half_of(["transform", "neighbors", "query", "evaluate"], ["1,5", "n/k", "1.5 m", "inf", "1_0"]),
)
def test_a_number_that_is_none_is_refused_with_its_line(run, model, table, tmp_path, command, cell):
    rows = rows_of()
    rows[6]["a"] = cell
    new = write(tmp_path / "new.csv", rows, ";")
    arguments = {
        "transform": ("transform", model, new),
        "neighbors": ("neighbors", model, new),
        "query": ("neighbors", model, table, "--query", new, "--row", 0),
        "evaluate": ("evaluate", table, "--label", "kind", *FAST, "--test", new),
    }[command]
    result = run(*arguments)
    assert result.exit_code == 1
    error = " ".join(result.stderr.split())
    assert f"Got {cell!r} in column 'a', line 8 of new.csv" in error
    assert "a number with a decimal point" in error
    assert "Traceback" not in error


def test_the_words_of_training_are_still_missing_and_no_others(model):
    encoder = load(model)["table"]
    frame = pd.DataFrame(rows_of()[:2])
    frame["b"] = ["?", "1.5"]
    assert encoder.read(frame)["b"].isna().tolist() == [True, False]
    frame["b"] = ["1.5", "??"]
    with pytest.raises(TableError, match=r"'\?\?' in column 'b', row 1, .* point or '\?'"):
        encoder.read(frame)
    frame["b"], frame["a"] = "1.5", ["?", "1.5"]
    with pytest.raises(TableError, match=r"'\?' in column 'a', row 0"):
        encoder.read(frame)


def test_a_model_of_decimal_commas_reads_no_points():
    trained = pd.DataFrame({"x": ["1,5", "2,5", "3", "7,25"]})
    encoder = plan_columns(trained).encoder().fit(trained)
    assert encoder.read(pd.DataFrame({"x": ["1,234", "2"]}))["x"].tolist() == [1.234, 2.0]
    with pytest.raises(TableError, match=r"'1\.234' .* a decimal comma"):
        encoder.read(pd.DataFrame({"x": ["1.234", "2"]}))
    assert encoder.read(pd.DataFrame({"x": [1.5, np.nan]}))["x"].isna().tolist() == [False, True]


def test_gaps_unknown_names_and_unknown_columns_are_told(run, model, tmp_path):
    rows = rows_of()[:4]
    for row, code in zip(rows, ["01", "B1", "B2", "B1"], strict=True):
        row |= {"code": code, "height": "3", "plot": "1"}
    rows[2]["a"] = ""
    result = run("transform", model, write(tmp_path / "new.csv", rows))
    assert result.exit_code == 0
    for sentence in (
        "Column 'a' has no value in 1 of 4 rows, but had one in every row in fit",
        "Column 'code' has 'B1', 'B2' in 3 of 4 rows, never seen in fit: taken as one of the",
        "1 columns are unknown to the model and not used: height.",
    ):
        assert sentence in result.stderr
        assert sentence not in result.stdout
    assert "plot" not in result.stderr
    assert len(result.stdout.splitlines()) == 5


def test_what_is_told_goes_into_the_json(run, model, table, tmp_path):
    rows = rows_of()[:2]
    rows[0]["code"] = "B1"
    new = write(tmp_path / "new.csv", rows, ";")
    result = run("neighbors", model, table, "--query", new, "--json")
    printed = json.loads(result.stdout)
    assert result.stderr == ""
    assert "new.csv: The cells are parted by semicolons." in printed["notes"]
    assert any(note.startswith("new.csv: Column 'code' has 'B1'") for note in printed["notes"])
    judged = run(
        "evaluate", table, "--label", "kind", *FAST,
        "--test", write(tmp_path / "test.csv", [*rows_of(), *rows]), "--json",
    )  # fmt: skip
    notes = json.loads(judged.stdout)["notes"]
    assert any(note.startswith("test.csv: Column 'code' has 'B1' in 1 of 42") for note in notes)


@pytest.mark.slow
def test_quiet_is_quiet(run, model, table):
    result = run("transform", model, table, "--quiet")
    assert result.stderr == ""


def test_a_missing_column_is_named(run, model, tmp_path):
    rows = [{("Code" if k == "code" else k): v for k, v in row.items()} for row in rows_of()]
    result = run("transform", model, write(tmp_path / "new.csv", rows))
    assert result.exit_code == 1
    assert "no column 'code'" in result.stderr
    assert "Did you mean 'Code'" in " ".join(result.stderr.split())


def test_what_is_carried_along_keeps_its_zeros(run, model, tmp_path):
    rows = [{**row, "tag": f"{i:03d}", "size": "1.50"} for i, row in enumerate(rows_of()[:3])]
    result = run("transform", model, write(tmp_path / "new.csv", rows))
    lines = [line.split(",") for line in result.stdout.splitlines()]
    assert lines[0][:3] == ["kind", "tag", "size"]
    assert [line[1] for line in lines[1:]] == ["000", "001", "002"]
    answer = run(
        "neighbors", model, tmp_path / "new.csv", "--show", "tag", "--show", "size", "--json"
    )
    shown = json.loads(answer.stdout)["queries"][0]["neighbors"][0]["columns"]
    assert (shown["tag"], shown["size"]) in {("001", 1.5), ("002", 1.5)}


# --- the encoder --------------------------------------------------------------------------------


def test_a_saved_encoder_reads_as_before(tmp_path, table):
    opened = open_table(table)
    plan = plan_columns(opened.frame, label="kind")
    fitted = Pipeline([("table", plan.encoder()), ("metric", DNE(2))])
    fitted.fit(opened, opened.frame["kind"].to_numpy())
    again = load(save(fitted, tmp_path / "model.km"))
    assert again["table"].get_params() == fitted["table"].get_params()
    np.testing.assert_array_equal(
        again["table"].transform(opened), fitted["table"].transform(opened)
    )
    assert again["table"].remarks(opened) == fitted["table"].remarks(opened)
    assert list(again["table"].get_feature_names_out()) == list(
        fitted["table"].get_feature_names_out()
    )


def test_a_file_of_another_kind_is_no_model(tmp_path, table):
    X, y = np.random.RandomState(0).randn(20, 3), np.arange(20) % 2
    other = Pipeline([("table", StandardScaler()), ("metric", DNE(2))]).fit(X, y)
    with pytest.raises(ValueError, match="expected a model that kernelmetric fit --out wrote"):
        load_model(save(other, tmp_path / "other.km"))
    columns = ColumnTransformer([("mine", StandardScaler(), [0, 1, 2])])
    other = Pipeline([("table", columns), ("metric", DNE(2))]).fit(X, y)
    with pytest.raises(ValueError, match="expected a model that kernelmetric"):
        load_model(save(other, tmp_path / "other.km"))


def test_the_encoder_is_an_estimator():
    frame = pd.DataFrame({"x": ["1", "?", "4"], "c": ["u", "u", None]}, index=[5, 3, 9])
    encoder = TableEncoder(["x"], ["c"], missing={"x": ["?"]})
    again = clone(encoder)
    assert again.get_params() == encoder.get_params()
    for method in (encoder.transform, encoder.remarks):
        with pytest.raises(NotFittedError):
            method(frame)
    with pytest.raises(NotFittedError):
        encoder.get_feature_names_out()
    X = encoder.fit_transform(frame)
    names = ["x", "x=(missing)", "c=u", "c=(other)", "c=(missing)"]
    assert list(encoder.get_feature_names_out()) == names
    np.testing.assert_allclose(X[:, 0], [-1, 0, 1], atol=1e-12)
    np.testing.assert_array_equal(X[:, 1:] > 0, [[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]])
    assert list(encoder.read(frame).index) == [5, 3, 9]
    assert encoder.remarks(frame) == []  # it has learned of gaps


def test_an_encoder_of_one_kind_of_columns_works():
    frame = pd.DataFrame({"x": ["1", "2", "4"], "c": ["u", "v", "u"]})
    assert TableEncoder(["x"]).fit_transform(frame).shape == (3, 2)
    names = TableEncoder((), ["c"]).fit(frame)
    assert names.transform(frame).shape == (3, 2)  # u, and the others
    assert names.remarks(Table(frame)) == []


def test_reading_twice_is_reading_once():
    frame = pd.DataFrame({"x": ["1,5", "2,5", "?", "9,5", "1"], "c": ["1.0", "2", "b", "b", "2"]})
    encoder = plan_columns(frame, use=["c"]).encoder()
    once = encoder.read(frame)
    pd.testing.assert_frame_equal(encoder.read(once), once)


def test_many_unknown_columns_are_counted():
    frame = pd.DataFrame({name: ["1", "2", "4"] for name in "abcdef"})
    encoder = TableEncoder(["a"], unused=["b"]).fit(frame)
    assert encoder.remarks(frame) == [
        "4 columns are unknown to the model and not used: c, d, e, ...."
    ]
    assert TableEncoder(["a"]).fit(frame).remarks(frame) == []
