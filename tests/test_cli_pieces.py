"""Tables of any size, read piece by piece: by the command line, and in Python."""

import json

import numpy as np
import pytest

pytest.importorskip("rich", reason="rich comes with the extra `cli`")
pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `parquet`")
pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")

import pandas as pd

from kernelmetric.cli import _study
from kernelmetric.cli._files import load_model
from kernelmetric.tables import (
    TableError,
    _files,
    _pieces,
    open_table,
    plan_columns,
    read_pieces,
    sample_table,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def orchard(n_rows=600, seed=0):
    rng = np.random.RandomState(seed)
    codes = rng.randint(3, size=n_rows)
    frame = pd.DataFrame({f"m{j}": rng.standard_normal(n_rows) for j in range(4)})
    frame["m0"] += 2.5 * codes
    frame.loc[rng.choice(n_rows, n_rows // 30, replace=False), "m1"] = np.nan
    frame.insert(0, "tree", rng.permutation(n_rows))
    frame["field"] = rng.choice(["north", "river"], n_rows)
    frame["fruit"] = np.array(["apple", "pear", "quince"])[codes]
    frame.loc[[7, n_rows - 20], "fruit"] = None
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of one table, of different lengths."""
    folder = tmp_path_factory.mktemp("data")
    frame = orchard()
    for name, rows in (("a", slice(0, 250)), ("b", slice(250, 300)), ("c", slice(300, 600))):
        frame[rows].to_parquet(folder / f"{name}.parquet", index=False, row_group_size=100)
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(_pieces, "_PIECE_BYTES", 8 * 7 * 120)
    monkeypatch.setattr(_files, "_PIECE_ROWS", 120)


def joined(pieces):
    return pd.concat([piece.frame for piece in pieces], ignore_index=True)


# --- pieces -------------------------------------------------------------------------------------


def test_pieces_cover_all_rows_in_their_order(files, small_pieces):
    pieces = list(read_pieces(files))
    assert [len(piece.frame) for piece in pieces] == [100, 100, 50, 50, 100, 100, 100]
    assert np.concatenate([piece.rows for piece in pieces]).tolist() == list(range(600))
    pd.testing.assert_frame_equal(joined(pieces), orchard(), check_dtype=False)


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv"])
def test_a_text_file_is_the_same_in_pieces_and_as_a_whole(kind, tmp_path, monkeypatch):
    path = tmp_path / f"orchard.{kind}"
    orchard().to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    whole = open_table(path)
    monkeypatch.setattr(_files, "_PIECE_ROWS", 7)
    monkeypatch.setattr("kernelmetric.tables._text._BLOCK", 11)  # bytes: it cuts cells and lines
    pieces = list(read_pieces(path))
    assert len(pieces) == 86
    pd.testing.assert_frame_equal(joined(pieces), whole.frame)
    assert np.concatenate([piece.lines for piece in pieces]).tolist() == whole.lines.tolist()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_blocks_may_end_anywhere(end, encoding, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    text = end.join(["größe;b", "1;ä", "", '2;"x', 'y"', "3;ü", ""])
    path.write_bytes(text.encode(encoding))
    whole = open_table(path)
    assert whole.frame["b"].tolist() == ["ä", f"x{end}y", "ü"]
    assert "1 blank lines between the rows are skipped." in whole.notes
    for size in (4, 5, 7):  # no less: a mark is read as a whole
        monkeypatch.setattr("kernelmetric.tables._text._BLOCK", size)
        again = open_table(path)
        pd.testing.assert_frame_equal(again.frame, whole.frame)
        assert (again.lines.tolist(), again.notes) == (whole.lines.tolist(), whole.notes)


def test_bytes_that_are_no_text_are_counted_from_the_start(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 10 + b"1,\xff\n")
    monkeypatch.setattr("kernelmetric.tables._text._BLOCK", 16)
    with pytest.raises(TableError, match=r"not UTF-8 \(byte 46\)"):
        open_table(path)


@pytest.mark.parametrize(
    ("first", "later", "sentence"),
    [
        ("a,b\n1,2\n3,4\n", "5,6,7\n", r"Line 4 of .* has 3 cells, but expected 2"),
        ("a,b\n1,2,\n3,4,\n", "5,6,7\n", r"Line 4 of .* holds '7' in a column that has no name"),
        ("a,b,\n1,2,\n3,4,\n", "5,6,7\n", r"Line 4 of .* holds '7' in a column that has no name"),
        ("a,b\n1,2\n3,4\n", '5,"6\n', r"line 4: .*Is a quote left open"),
    ],
)
def test_what_the_first_rows_have_shown_holds_for_the_rest(
    first, later, sentence, tmp_path, monkeypatch
):
    monkeypatch.setattr(_files, "_PIECE_ROWS", 2)
    path = tmp_path / "a.csv"
    path.write_text(first, encoding="utf-8")
    assert list(open_table(path).frame.columns) == ["a", "b"]
    path.write_text(first + later, encoding="utf-8")
    with pytest.raises(TableError, match=sentence):
        open_table(path)


def test_groups_of_rows_are_read_together_or_cut_as_their_size_asks(tmp_path, monkeypatch):
    monkeypatch.setattr(_pieces, "_PIECE_BYTES", 8 * 7 * 120)
    for size, expected in ((40, [120, 120, 60]), (300, [120, 120, 60]), (110, [110, 110, 80])):
        orchard(300).to_parquet(tmp_path / "a.parquet", index=False, row_group_size=size)
        pieces = list(read_pieces(tmp_path / "a.parquet"))
        assert [len(piece.frame) for piece in pieces] == expected
        pd.testing.assert_frame_equal(joined(pieces), orchard(300), check_dtype=False)


def test_a_file_without_rows_adds_none(tmp_path, files):
    orchard().head(0).astype({"fruit": object}).to_parquet(tmp_path / "none.parquet", index=False)
    assert len(joined(read_pieces([*files, tmp_path / "none.parquet"]))) == 600
    with pytest.raises(TableError, match="has column names but no rows"):
        list(read_pieces([tmp_path / "none.parquet"]))


def changed(tmp_path, **changes):
    path = tmp_path / "other.parquet"
    orchard(30).assign(**changes).to_parquet(path, index=False)
    return path


def test_a_file_with_other_columns_is_named(tmp_path, files):
    path = changed(tmp_path, extra=1.0)
    with pytest.raises(TableError, match=r"Got .*other.parquet, which has 'extra' unlike .*a\.par"):
        list(read_pieces([*files, path]))
    orchard(30).drop(columns=["m1", "m2"]).to_parquet(path, index=False)
    with pytest.raises(TableError, match=r"other.parquet, which lacks 'm1', 'm2' unlike"):
        list(read_pieces([*files, path]))


def test_a_column_of_another_type_is_named(tmp_path, files):
    path = changed(tmp_path, m1="many")
    with pytest.raises(TableError, match=r"other.parquet with text in the column 'm1', but .*numb"):
        list(read_pieces([*files, path]))
    for allowed in (None, np.int8(3)):  # gaps alone have no type
        assert len(joined(read_pieces([*files, changed(tmp_path, m1=allowed)]))) == 630


def test_what_is_no_table_is_refused(tmp_path, files):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"no")
    with pytest.raises(TableError, match=r"Cannot read .*broken.parquet: Parquet "):
        list(read_pieces([*files, broken]))
    with pytest.raises(TableError, match=r"There is no file .*\*.parquet"):
        list(read_pieces([tmp_path / "*.parquet"]))
    with pytest.raises(TableError, match="twice"):
        list(read_pieces([*files, files[0]]))


# --- samples ------------------------------------------------------------------------------------


def test_a_small_table_is_its_own_sample(files):
    table, n_rows, n_labelled = sample_table(files, "fruit", most=600)
    assert (n_rows, n_labelled) == (600, 598)
    pd.testing.assert_frame_equal(table.frame, orchard(), check_dtype=False)


def test_a_sample_has_rows_of_the_file_each_once_and_with_a_label(files, small_pieces):
    table, n_rows, n_labelled = sample_table(files, "fruit", most=150)
    assert (len(table.frame), n_rows, n_labelled) == (150, 600, 598)
    assert len(set(table.rows.tolist())) == 150
    whole = orchard().iloc[table.rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(table.frame, whole, check_dtype=False)
    assert table.frame["fruit"].notna().all()


def test_the_same_seed_draws_the_same_sample(files, small_pieces):
    one, two, other = (
        sample_table(files, "fruit", most=150, random_state=seed)[0].rows.tolist()
        for seed in (1, 1, 2)
    )
    assert one == two != other


@pytest.mark.slow
def test_every_row_has_the_same_chance(tmp_path, monkeypatch):
    monkeypatch.setattr(_pieces, "_PIECE_BYTES", 8 * 30)
    pd.DataFrame({"x": np.arange(120.0)}).to_parquet(tmp_path / "a.parquet")
    counts = np.zeros(120)
    for seed in range(60):
        rows = sample_table(tmp_path / "a.parquet", most=40, random_state=seed)[0].rows
        assert len(rows) == 40
        counts[rows] += 1
    thirds = counts.reshape(3, 40).sum(axis=1)
    assert np.all(np.abs(thirds - 800) < 75)  # four deviations
    assert 4 < counts.min() < counts.max() < 36  # of 20 on average, likewise


def test_rare_classes_rare_words_and_gaps_are_in_the_sample(tmp_path, small_pieces):
    frame = orchard(3_000)
    frame["fruit"] = frame["fruit"].fillna("pear")
    frame.loc[[11, 2_900], "fruit"] = "medlar"
    frame["m2"] = frame["m2"].astype(str)
    frame.loc[2_950, "m2"] = "?"
    frame.loc[1_234, "field"] = "hill"
    frame.loc[2_999, "field"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    table, _, _ = sample_table(tmp_path / "a.csv", "fruit", most=100)
    assert len(table.frame) < 130
    assert {11, 1_234, 2_900, 2_950, 2_999} <= set(table.rows.tolist())
    assert table.frame["fruit"].value_counts().min() == 2
    plan = plan_columns(table.frame, label="fruit", n_rows=3_000)
    assert plan.missing["m2"] == ("?",)
    encoder = plan.encoder().fit(table)
    assert [name for name in encoder.get_feature_names_out() if name.startswith("field")] == [
        "field=north", "field=river", "field=(other)", "field=(missing)",
    ]  # fmt: skip
    for piece in read_pieces(tmp_path / "a.csv"):
        assert not any("never seen" in remark for remark in encoder.remarks(piece))


@pytest.mark.slow
def test_many_classes_do_not_make_a_sample_much_larger(tmp_path, small_pieces):
    names = [f"c{i % 400}" for i in range(6_000)]
    pd.DataFrame({"x": np.arange(6_000.0), "y": names}).to_parquet(tmp_path / "a.parquet")
    table, _, _ = sample_table(tmp_path / "a.parquet", "y", most=1_000)
    assert 1_000 <= len(table.frame) < 1_450
    assert table.frame["y"].nunique() == 400


def test_a_counter_of_rows_is_known_by_a_sample(files, small_pieces):
    frame = sample_table(files, "fruit", most=150)[0].frame
    said = "tree: left out, whole numbers that differ in every row are an identifier."
    assert said in plan_columns(frame, label="fruit", n_rows=600).notes
    assert "tree" in plan_columns(frame, label="fruit").numbers
    wide = frame.assign(tree=frame["tree"] * 7)
    assert "tree" in plan_columns(wide, label="fruit", n_rows=600).numbers


def test_a_cell_is_named_by_its_row_in_the_file(files, small_pieces):
    table = sample_table(files, "fruit", most=150)[0]
    assert table.place(3) == f"row {table.rows[3]}, from 0, of 3 files"


def test_notes_and_places_of_several_files_name_them(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x;y\n1;2\n3;4\n", encoding="utf-8")
    table, n_rows, _ = sample_table([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert (n_rows, table.name, table.lines) == (4, "2 files", None)
    assert table.notes == tuple(f"{n}.csv: The cells are parted by semicolons." for n in "ab")
    alone, _, _ = sample_table(tmp_path / "a.csv")
    assert (alone.name, alone.lines.tolist()) == ("a.csv", [2, 3])


def test_a_column_that_is_not_there_is_missed_before_all_is_read(files, monkeypatch):
    monkeypatch.setattr(_study.tables, "sample_table", None)
    paths = [_study.Path(path) for path in files]
    for option in ({"use": ("trea",)}, {"ignore": ("trea",)}, {"weights": "trea"}):
        with pytest.raises(TableError, match="Did you mean 'tree'"):
            _study.open_study(paths, label="fruit", **option)


def test_labels_that_all_differ_are_refused_while_they_are_read(tmp_path):
    rows = np.arange(3_000)
    pd.DataFrame({"x": rows, "y": [f"n{i}" for i in rows]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match="expected classes of several rows each"):
        sample_table(tmp_path / "a.parquet", "y", most=1_000)
    table, _, _ = sample_table(tmp_path / "a.parquet", "x", most=1_000, classes=False)
    assert len(table.frame) < 1_200


# --- fit ----------------------------------------------------------------------------------------


FAST = ("--learner", "lda", "--kernel", "none", "--components", "2")


@pytest.fixture(scope="module")
def fitted(files, tmp_path_factory):
    """What the command says, and the model that it writes."""
    from click.testing import CliRunner

    from kernelmetric import cli

    folder = tmp_path_factory.mktemp("fitted")
    out, page = folder / "model.km", folder / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_study, "MOST_COMPARED", 120)
        patch.setattr(_study, "MOST_ROWS_FOR_SVM", 100)
        arguments = ["fit", *files, "--label", "fruit", *FAST, "--rows", "200"]
        result = CliRunner().invoke(
            cli.build_application(), [*arguments, "--out", str(out), "--report", str(page)]
        )
    assert result.exit_code == 0, result.output
    return result.stdout, out, page


@pytest.mark.slow
def test_what_comes_of_a_sample_says_so(fitted):
    said, out, page = fitted
    assert "Read 3 files: 598 rows, 7 columns." in said
    assert "A sample of 200 of 598 rows decides about columns" in said
    assert "The comparison takes a sample of 120 of 200 rows." in said
    assert "2 rows have no fruit and are left out." in said
    assert "Accuracy on 30 rows of a sample, held out, learned from 90:" in said
    assert said.count(" % ± ") == 3
    assert "LDA, 170 rows" in said  # the model does not see the 30 rows that judge it
    encoder = load_model(out)["table"]
    assert (encoder.numbers, encoder.categories) == (("m0", "m1", "m2", "m3"), ("field",))
    text = page.read_text(encoding="utf-8")
    assert "of 598" in text
    assert "A sample of" in text


@pytest.mark.slow
def test_json_counts_the_rows_of_all_kinds(run, files, monkeypatch, untuned):
    monkeypatch.setattr(_study, "MOST_COMPARED", 120)
    result = run("fit", *files, "--label", "fruit", *FAST, "--rows", "200", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["rows"], printed["sample"], printed["compared"]) == (598, 200, [90, 30])
    assert printed["scores"]["LDA"][0] > 0.6


def test_folds_of_a_large_table_are_those_of_a_sample(files, monkeypatch):
    monkeypatch.setattr(_study, "MOST_COMPARED", 100)
    study = _study.open_study([_study.Path(path) for path in files], label="fruit", learner="lda")
    assert study.n_read is None
    tested = np.concatenate([test for _, test in study.folds(5)])
    assert sorted(tested.tolist()) == study.compared.tolist()
    assert len(tested) == 100
    assert np.ptp(np.unique(study.y[tested], return_counts=True)[1]) < 25


@pytest.mark.slow
def test_a_large_table_to_judge_on_is_sampled_and_that_is_said(run, files, monkeypatch):
    from kernelmetric.cli import _evaluate

    for module in (_study, _evaluate):
        monkeypatch.setattr(module, "MOST_COMPARED", 120)
    monkeypatch.setattr(_study, "MOST_ROWS_FOR_SVM", 100)
    result = run("evaluate", files[2], "--label", "fruit", "--test", files[0], *FAST, "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert "a.parquet: 120 of 249 rows are judged." in printed["notes"]
    assert "The comparison takes a sample of 120 of 299 rows." in printed["notes"]
    right = 120 * printed["scores"]["LDA"][0]
    assert right == pytest.approx(round(right))


@pytest.mark.slow
def test_numbers_are_predicted_from_a_sample_too(run, files, monkeypatch, tmp_path):
    monkeypatch.setattr(_study, "MOST_ROWS_FOR_SVM", 100)
    options = ["--task", "regression", "--learner", "mlkr", "--kernel", "none", "--rows", "150"]
    out = tmp_path / "model.km"
    result = run("fit", *files, "--label", "m0", *options, "--minutes", "0.02", "--out", out)
    assert result.exit_code == 0, result.output
    assert "MLKR, 1" in result.stdout
    assert "±" not in result.stdout
    assert load_model(out)["metric"] is not None


def test_beyond_some_rows_linear_nca_learns_from_batches(files, monkeypatch):
    monkeypatch.setattr(_study, "MOST_ROWS_EXACT", 500)
    paths = [_study.Path(path) for path in files]
    study = _study.open_study(paths, label="fruit", kernel="none")
    assert "solver='minibatch'" in repr(study.metric)
    assert any("learns from batches" in note for note in study.notes)


# --- transform ----------------------------------------------------------------------------------


def test_coordinates_are_written_piece_by_piece(run, files, fitted, tmp_path):
    _, model, _ = fitted
    result = run("transform", str(model), *files, "--output", str(tmp_path / "z"))
    assert result.exit_code == 0, result.output
    assert "600 rows in 3 files" in result.stdout
    names = sorted(path.name for path in (tmp_path / "z").iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    written = pd.concat(
        [pd.read_parquet(tmp_path / "z" / name) for name in names], ignore_index=True
    )
    whole = orchard()
    assert list(written.columns) == ["tree", "fruit", "z0", "z1"]
    assert written["tree"].tolist() == whole["tree"].tolist()
    expected = load_model(model).transform(whole)
    assert written[["z0", "z1"]].to_numpy() == pytest.approx(expected)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "FILES", "--label", "fruits"], "Did you mean 'fruit'?"),
        (["fit", "FILES", "--label", "m0"], "holds numbers with fractions"),
        (["fit", "FILES"], "Got neither --label nor --pairs"),
        (["fit", "no.parquet", "--label", "fruit"], "There is no file"),
        (["transform", "MODEL", "FILES"], "add --output FOLDER"),
        (["transform", "MODEL", "FILES", "--output", "z", "--out", "z.csv"], "expected one"),
        (["transform", "MODEL", "FILES", "--output", "FULL"], "is not empty"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_bad_input_is_refused_in_a_sentence(arguments, sentence, run, files, fitted, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "old").write_text("", encoding="utf-8")
    known = {"FILES": files, "MODEL": [str(fitted[1])], "FULL": [str(full)]}
    given = [value for argument in arguments for value in known.get(argument, [argument])]
    result = run(*given)
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_cell_that_is_no_number_is_named_with_its_file(run, fitted, tmp_path):
    frame = orchard(60).astype({"m2": object})
    frame["m2"] = frame["m2"].astype(str)
    frame.loc[5, "m2"] = "many"
    frame.to_parquet(tmp_path / "text.parquet", index=False)
    given = ["transform", str(fitted[1]), str(tmp_path / "text.parquet"), "--output"]
    result = run(*given, str(tmp_path / "z"))
    assert result.exit_code == 1
    assert "Got 'many' in column 'm2', row 5, from 0, of text.parquet" in result.stderr
