"""What commands print and write stays what it is, whatever stands in a user's table."""

import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import click
import pandas as pd
from rich.console import Console

from kernelmetric.cli import _fit, _transform
from kernelmetric.cli._files import require_outputs
from kernelmetric.cli._talk import json_text, spoken, visible
from kernelmetric.report import Cell, rich_table
from kernelmetric.tables import read_table, table_bytes

pytestmark = pytest.mark.usefixtures("one_alternative")
FAST = ("--learner", "dne", "--kernel", "none", "--components", "2")
posix = pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
# An escape sequence, a C1 control, a bell, a writing direction, a new line, markup, an emoji.
HOSTILE = "\x1b[2J\x9b31m\a\u202eevil\u2069 [/b] [a] q :pear: \u2028."
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def small_frame(n_rows=24):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(n_rows, 3), columns=list("abc"))
    frame["a"] += 3.0 * (np.arange(n_rows) % 2)
    frame["kind"] = np.array(["apple", "pear"])[np.arange(n_rows) % 2]
    return frame


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "trees.csv"
    small_frame().to_csv(path, index=False)
    return path


@pytest.fixture
def hostile(tmp_path):
    """A table whose name, column names, labels and cells want to be something else."""
    frame = small_frame().rename(columns={"b": f"b{HOSTILE}", "kind": f"kind{HOSTILE}"})
    label = f"kind{HOSTILE}"
    frame[label] = frame[label].map({"apple": f"apple{HOSTILE}", "pear": "[bold]pear"})
    frame[f"unit{HOSTILE}"] = f"one{HOSTILE}"
    frame["remark"] = [f"{i} [/b] {HOSTILE}" for i in range(len(frame))]
    frame.loc[2, f"b{HOSTILE}"] = np.nan
    path = tmp_path / "[b]hostile :pear:\x1b[1m.csv"
    frame.to_csv(path, index=False)
    return path, label


def told(result):
    """All that was printed, after a look at what must not be."""
    printed = result.stdout + result.stderr
    assert not STEERING.search(printed), ascii(printed)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return " ".join(printed.split())


# --- text -----------------------------------------------------------------------------------------


def test_what_would_steer_a_terminal_is_shown_as_its_number():
    assert visible("a\x1b[1mb\n\x9b\u202e\u2066\ud800") == r"a\x1b[1mb\n\x9b\u202e\u2066\ud800"
    assert visible("two\nlines", keep="\n") == "two\nlines"
    assert visible("äöü 中文 עברית 🍐‍🍐 [/b]") == "äöü 中文 עברית 🍐‍🍐 [/b]"
    assert visible("a" * 100, most=10) == "a" * 9 + "…"


@pytest.mark.every(2)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_text_of_a_table_reaches_the_terminal_as_text(run, hostile, command):
    path, label = hostile
    said = told(run(command, path, "--label", label, *FAST, "--ignore", "remark"))
    assert f"{visible(f'unit{HOSTILE}')}: left out" in said
    assert "[/b] [a] q :pear:" in said
    assert "hostile :pear:" in said


@pytest.mark.slow
def test_neighbours_show_cells_as_they_are(run, hostile, tmp_path):
    path, label = hostile
    model = tmp_path / "model.km"
    told(run("fit", path, "--label", label, *FAST, "--ignore", "remark", "--out", model))
    result = run("neighbors", model, path, "--query", path, "--row", 0, "-k", 2, "--show", "remark")
    assert "[/b] \\x1b[2J" in told(result)
    printed = run("neighbors", model, path, "--row", 0, "-k", 1, "--json", "--show", "remark")
    assert not STEERING.search(printed.stdout)
    (answer,) = json.loads(printed.stdout)["queries"]
    row, columns = answer["neighbors"][0]["row"], answer["neighbors"][0]["columns"]
    frame = read_table(path)
    assert columns == {name: frame[name][row] for name in columns}  # escaped, and nothing lost
    assert columns["remark"] == f"{row} [/b] {HOSTILE}"


def test_errors_show_names_as_they_are(run, hostile, tmp_path):
    path, label = hostile
    said = told(run("fit", path, "--label", f"no{HOSTILE}"))
    assert "The table has no column" in said
    for arguments in (
        ("fit", tmp_path / f"no{HOSTILE}.csv", "--label", "x"),
        ("fit", path, "--label", label, "--out", tmp_path / f"no{HOSTILE}" / "x.km"),
        ("transform", path, path),
        ("neighbors", tmp_path / HOSTILE, path),
        ("check", f"no.{HOSTILE}"),
        (f"no{HOSTILE}",),
    ):
        result = run(*arguments)
        assert result.exit_code in (1, 2)
        assert "Error: " in told(result)


def test_coordinates_are_printed_to_the_byte_but_never_steer_a_terminal(capsys, monkeypatch):
    text = f"remark,z0\n{HOSTILE},1\n"
    _transform._print(text.encode("utf-8"))
    assert capsys.readouterr().out == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    _transform._print(text.encode("utf-8"))
    assert capsys.readouterr().out == visible(text, keep="\n")


def test_a_table_of_accuracies_shows_names_as_they_are():
    cells = [Cell("[/b] :pear:", "[a] q", 0, 0.5, 0.0), Cell("[/b] :pear:", "[/]", 0, 0.25, 0.0)]
    stream = io.StringIO()
    Console(file=stream, width=80).print(rich_table(cells, title="[/x] all"))
    printed = stream.getvalue()
    for name in ("[/b] :pear:", "[a] q", "[/]", "[/x] all", "50.0±0.0"):
        assert name in printed


@pytest.mark.slow
def test_long_names_and_long_lists_are_cut_on_the_terminal(run, tmp_path):
    frame = small_frame()
    constants = pd.DataFrame({f"{j}{'x' * 1000}": ["one"] * len(frame) for j in range(100)})
    path = tmp_path / "wide.csv"
    pd.concat([frame, constants], axis=1).to_csv(path, index=False)
    said = run("fit", path, "--label", "kind", *FAST).stdout
    assert "and 60 more lines; --json prints all." in said
    assert len(said) < 40 * 310 + 1000
    printed = json.loads(run("fit", path, "--label", "kind", *FAST, "--json").stdout)
    assert printed["left_out"] == list(constants)
    assert len(printed["notes"]) == 100


def test_long_errors_are_cut():
    with pytest.raises(click.ClickException) as caught, spoken():
        raise ValueError("x" * 100_000)
    assert len(caught.value.message) == 2000
    assert caught.value.message.endswith("…")


# --- JSON -----------------------------------------------------------------------------------------


def refuse_constant(name):
    raise AssertionError(f"{name} is no JSON")


def test_what_is_no_finite_number_is_null():
    values = {"a": float("nan"), "b": [np.float64("inf"), (1.5, -np.inf)], "c": np.int64(3)}
    read = json.loads(json_text(values), parse_constant=refuse_constant)
    assert read == {"a": None, "b": [None, [1.5, None]], "c": 3}


def test_json_keeps_every_character_and_steers_nothing():
    text = "".join(map(chr, range(0x250))) + "\u2028\u2029\u202e\u2066\ud800🍐"
    printed = json_text({text: text})
    assert json.loads(printed) == {text: text}
    assert not STEERING.search(printed)
    assert printed.isascii()  # as any terminal can show it


def test_columns_named_like_the_answer_do_not_overwrite_it(run, table, tmp_path):
    named = {"row": "mine", "distance": "far", "columns": "many", "query": "which"}
    frame = read_table(table).assign(**named)
    frame.loc[::2, list(named)] = "other"
    path, model = tmp_path / "named.csv", tmp_path / "model.km"
    frame.to_csv(path, index=False)
    ignored = [part for name in named for part in ("--ignore", name)]
    assert run("fit", path, "--label", "kind", *FAST, *ignored, "--out", model).exit_code == 0
    show = [part for name in ("kind", *named) for part in ("--show", name)]
    result = run("neighbors", model, path, "--query", path, "--row", 3, "-k", 1, "--json", *show)
    (answer,) = json.loads(result.stdout)["queries"]
    assert answer["query"] == 3
    (neighbor,) = answer["neighbors"]
    assert (neighbor["row"], neighbor["distance"]) == (3, 0.0)
    assert neighbor["columns"] == {"kind": "pear", **named}
    lines = run("neighbors", model, path, "--row", 3, "-k", 1, *show).stdout.splitlines()
    assert lines[1].split() == ["row", "distance", "kind", "row", "distance", "columns", "query"]


@pytest.mark.slow
def test_missing_cells_are_null(run, table, tmp_path):
    frame = read_table(table).assign(note=np.arange(24) / 7, when="2020-01-01")
    frame.loc[:, "note"] = frame["note"].where(frame["kind"] == "apple")
    frame.loc[3:, "when"] = None
    path, model = tmp_path / "gaps.csv", tmp_path / "model.km"
    frame.to_csv(path, index=False)
    out = ("--out", model, "--ignore", "note", "--ignore", "when")
    assert run("fit", path, "--label", "kind", *FAST, *out).exit_code == 0
    arguments = ("--query", path, "--row", 5, "-k", 1, "--show", "note", "--show", "when")
    result = run("neighbors", model, path, *arguments, "--json")
    (answer,) = json.loads(result.stdout, parse_constant=refuse_constant)["queries"]
    assert answer["neighbors"][0]["columns"] == {"note": None, "when": None}


@pytest.mark.slow
def test_cells_of_a_parquet_file_that_are_missing_are_null(run, table, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `parquet`")
    frame = read_table(table)
    frame["note"] = pd.array(["dry"] + [None] * 23, dtype="string")
    frame["when"] = pd.to_datetime(["2020-01-01"] + [None] * 23)
    frame["number"] = pd.array([7] + [None] * 23, dtype="Int64")
    path, model = tmp_path / "gaps.parquet", tmp_path / "model.km"
    frame.to_parquet(path)
    names = ("note", "when", "number")
    out = ("--out", model, *(word for name in names for word in ("--ignore", name)))
    assert run("fit", path, "--label", "kind", *FAST, *out).exit_code == 0
    shown = [word for name in names for word in ("--show", name)]
    result = run("neighbors", model, path, "--query", path, "--row", 5, "-k", 1, *shown, "--json")
    (answer,) = json.loads(result.stdout, parse_constant=refuse_constant)["queries"]
    assert answer["neighbors"][0]["columns"] == dict.fromkeys(names)


def test_a_missing_package_is_a_sentence_and_exit_code_2():
    with pytest.raises(click.ClickException) as caught, spoken():
        raise ImportError("Parquet files need pyarrow.")
    assert caught.value.exit_code == 2
    assert caught.value.message == "Parquet files need pyarrow."


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["file", "args", "allow_pickle", "kwds", "self", "y"])
def test_an_npz_holds_columns_of_any_name(name, tmp_path):
    frame = pd.DataFrame({"z0": [1.0, 2.0], name: ["ä", "b"]})
    path = tmp_path / "z.npz"
    path.write_bytes(table_bytes(frame, path))
    pd.testing.assert_frame_equal(read_table(path), frame, check_dtype=False)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["X", "feature_names"])
def test_an_npz_refuses_a_text_column_whose_name_is_taken_before_the_work(
    run, table, tmp_path, name, monkeypatch
):
    path, model = tmp_path / "named.csv", tmp_path / "model.km"
    read_table(table).assign(**{name: [f"n{i % 3}" for i in range(24)]}).to_csv(path, index=False)
    arguments = ("--label", "kind", *FAST, "--ignore", name, "--out", model)
    assert run("fit", path, *arguments).exit_code == 0
    assert run("transform", model, path, "--out", tmp_path / "z.csv").exit_code == 0
    monkeypatch.setattr(_transform, "coordinates", lambda model, table: None)
    result = run("transform", model, path, "--out", tmp_path / "z.npz")
    assert result.exit_code == 1
    assert f"a column '{name}' of text" in told(result)
    assert not (tmp_path / "z.npz").exists()
    assert run("transform", model, path, "--out", tmp_path / "z.xlsx").exit_code == 1


@pytest.mark.slow
def test_coordinates_never_share_a_name_with_a_column(table, tmp_path, run):
    path, model = tmp_path / "named.csv", tmp_path / "model.km"
    read_table(table).assign(z0="x", z_1="y").to_csv(path, index=False)
    ignored = ("--ignore", "z0", "--ignore", "z_1")
    assert run("fit", path, "--label", "kind", *FAST, *ignored, "--out", model).exit_code == 0
    header = run("transform", model, path).stdout.splitlines()[0]
    assert header == "kind,z0,z_1,_z0,_z1"


@pytest.fixture
def no_work(monkeypatch):
    """Whatever is refused must be refused before any of the work."""

    def work(*arguments, **options):
        raise AssertionError("the work was begun")

    monkeypatch.setattr(_fit, "_learn", work)
    monkeypatch.setattr(_transform, "coordinates", work)


def other_names(path):
    """Names by which a file is the same."""
    link, hard = path.with_name("link"), path.with_name("hard")
    link.symlink_to(path.name)
    hard.hardlink_to(path)
    around = path.parent / ".." / path.parent.name / path.name
    return [path, link, hard, around, os.path.relpath(path)]


@posix
def test_an_output_that_is_an_input_is_refused_by_whatever_name(run, table, tmp_path, no_work):
    before = table.read_bytes()
    for option in ("--out", "--report"):
        for name in other_names(table) if option == "--out" else [table]:
            result = run("fit", table, "--label", "kind", *FAST, option, name)
            assert result.exit_code == 1
            assert f"Got {option}" in told(result)
            assert "is the file of DATA" in told(result)
            assert table.read_bytes() == before
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("0,1\n", encoding="utf-8")
    result = run("fit", table, "--pairs", pairs, "--ignore", "kind", "--out", pairs)
    assert (result.exit_code, "is the file of --pairs" in told(result)) == (1, True)
    assert pairs.read_text(encoding="utf-8") == "0,1\n"


@posix
def test_two_outputs_in_one_file_are_refused_by_whatever_name(run, table, tmp_path, no_work):
    one, other = tmp_path / "one", tmp_path / "other"
    other.symlink_to("one")  # neither is there yet
    for report in (one, other, os.path.relpath(one)):
        result = run("fit", table, "--label", "kind", *FAST, "--out", one, "--report", report)
        assert result.exit_code == 1
        assert "is the file of --out" in told(result)
    assert not one.exists()


@posix
def test_coordinates_take_the_place_of_neither_model_nor_table(run, table, tmp_path, no_work):
    model = tmp_path / "model.csv"
    model.write_bytes(b"a model")
    for out, what in ((model, "MODEL"), (table, "DATA")):
        result = run("transform", model, table, "--out", out)
        assert (result.exit_code, f"is the file of {what}" in told(result)) == (1, True)


def unwritable(tmp_path):
    """A file in a folder that even root cannot write to, or one that a plain user cannot."""
    if os.geteuid() == 0:
        folder = Path("/proc/self/fdinfo")
        if not folder.is_dir():
            pytest.skip("root may write everywhere here")
        return folder / "model.km"
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    return folder / "model.km"


@posix
@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_file_that_cannot_be_made_is_refused_before_the_work(
    run, table, tmp_path, no_work, option
):
    for path in (
        tmp_path / "no" / "such" / "model.km",
        tmp_path / "trees.csv" / "model.km",
        unwritable(tmp_path),
    ):
        result = run("fit", table, "--label", "kind", *FAST, option, path)
        assert result.exit_code == 1
        assert f"Error: Got {option} {path}, but" in told(result)


@posix
def test_a_write_protected_file_is_refused_before_the_work(
    run, table, tmp_path, no_work, monkeypatch
):
    path = tmp_path / "kept.km"
    path.write_text("kept", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK)  # for root
    result = run("fit", table, "--label", "kind", *FAST, "--out", path)
    assert (result.exit_code, "write-protected" in told(result)) == (1, True)


@posix
def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(run, tmp_path, monkeypatch):
    import tempfile

    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr("kernelmetric.demo.run_cells", None)
    result = run("demo", "--quick", "--out", tmp_path)
    assert result.exit_code == 2
    assert "Permission denied" in told(result)


def test_files_that_can_be_written_pass(tmp_path, monkeypatch):
    require_outputs({"--out": tmp_path / "a", "--report": None}, {"DATA": tmp_path / "b"})
    assert list(tmp_path.iterdir()) == []
    # A device is written to where it is: nothing is made in its folder, which only root may do.
    monkeypatch.setattr("tempfile.TemporaryFile", None)
    require_outputs({"--out": Path(os.devnull)})


@pytest.mark.slow
def test_a_note_on_a_small_class_is_a_line_and_no_traceback(run, tmp_path):
    rng = np.random.RandomState(0)
    path = tmp_path / "few.csv"
    labels = ["a"] * 14 + ["b"] * 14 + ["c"] * 2
    rows = [
        f"{a:.3f},{b:.3f},{name}" for (a, b), name in zip(rng.randn(30, 2), labels, strict=True)
    ]
    path.write_text("\n".join(["x,z,kind", *rows]), encoding="utf-8")
    result = run("fit", path, "--label", "kind")
    assert result.exit_code == 0
    assert "Traceback" not in result.output + result.stderr
