"""The command line on tables in many Parquet files, read part by part."""

import json
import logging

import numpy as np
import pytest

pytest.importorskip("rich", reason="rich comes with the extra `cli`")
pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `parquet`")
pytest.importorskip("distributed", reason="distributed comes with the extra `dask`")
pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")

import dask
import pandas as pd
from dask.distributed import Client, LocalCluster

from kernelmetric.cli import _parts_study
from kernelmetric.cli._cluster import over_parts
from kernelmetric.cli._files import load_model
from kernelmetric.tables import TableError
from kernelmetric.tables._parts import counting_columns, open_parts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def address(forked_workers):
    """A scheduler with two workers of this machine."""
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, threads_per_worker=1, **quiet) as cluster:
        with Client(cluster, timeout="120s", set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield cluster.scheduler_address


def orchard(n_rows=600, seed=0):
    rng = np.random.RandomState(seed)
    codes = rng.randint(3, size=n_rows)
    frame = pd.DataFrame({f"m{j}": rng.standard_normal(n_rows) for j in range(4)})
    frame["m0"] += 2.5 * codes
    frame.loc[rng.choice(n_rows, n_rows // 30, replace=False), "m1"] = np.nan
    frame.insert(0, "tree", np.arange(n_rows))
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
def small_sample(monkeypatch):
    monkeypatch.setattr(_parts_study, "SAMPLE_ROWS", 150)


# --- parts --------------------------------------------------------------------------------------


def test_parts_cover_all_rows_in_their_order(files):
    parts = open_parts(files, part_bytes=8 * 7 * 200)
    assert [part.n_rows for part in parts] == [200, 50, 50, 200, 100]
    assert [part.first_row for part in parts] == [0, 200, 0, 0, 200]
    read = pd.concat([part.read().frame for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(read, orchard(), check_dtype=False)
    assert list(parts[0].read(["m1"]).frame.columns) == ["m1"]


def test_a_file_without_rows_is_no_part(tmp_path, files):
    orchard().head(0).astype({"fruit": object}).to_parquet(tmp_path / "none.parquet", index=False)
    parts = open_parts([*files, tmp_path / "none.parquet"])
    assert sum(part.n_rows for part in parts) == 600
    with pytest.raises(TableError, match="without a row"):
        open_parts([tmp_path / "none.parquet"])


def test_a_column_that_counts_the_rows_is_found_without_reading_them(tmp_path, files):
    assert counting_columns(open_parts(files)) == ["tree"]
    orchard(600).assign(tree=5, step=2 * np.arange(600)).to_parquet(tmp_path / "a.parquet")
    assert counting_columns(open_parts([tmp_path / "a.parquet"])) == []


def changed(tmp_path, **changes):
    path = tmp_path / "other.parquet"
    orchard(30).assign(**changes).to_parquet(path, index=False)
    return path


def test_a_file_with_other_columns_is_named(tmp_path, files):
    path = changed(tmp_path, extra=1.0)
    with pytest.raises(TableError, match=r"Got .*other.parquet, which has 'extra' unlike .*a\.par"):
        open_parts([*files, path])
    orchard(30).drop(columns=["m1", "m2"]).to_parquet(path, index=False)
    with pytest.raises(TableError, match=r"other.parquet, which lacks 'm1', 'm2' unlike"):
        open_parts([*files, path])


def test_a_column_of_another_type_is_named(tmp_path, files):
    path = changed(tmp_path, m1="many")
    with pytest.raises(TableError, match=r"other.parquet with text in the column 'm1', but .*numb"):
        open_parts([*files, path])
    assert open_parts([*files, changed(tmp_path, m1=None)])  # gaps alone have no type
    assert open_parts([*files, changed(tmp_path, m1=np.int8(3))])


def test_what_is_no_parquet_file_is_refused(tmp_path, files):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"no")
    with pytest.raises(TableError, match=r"Cannot read .*broken.parquet: Parquet "):
        open_parts([*files, broken])
    with pytest.raises(TableError, match=r"There is no file .*\*.parquet"):
        open_parts([tmp_path / "*.parquet"])
    with pytest.raises(TableError, match=r"Got .*a.csv, but expected .parquet files"):
        open_parts([tmp_path / "a.csv"])
    with pytest.raises(TableError, match="twice"):
        open_parts([*files, files[0]])


def test_parts_are_worked_on_here_without_a_cluster():
    found = list(over_parts(None, lambda part, number, power: part**power, [3, 4], 2))
    assert found == [(0, 9), (1, 16)]


# --- fit ----------------------------------------------------------------------------------------


def fit(run, address, files, *more):
    options = ["--label", "fruit", "--learner", "lda", "--kernel", "none", "--components", "2"]
    return run("fit", *files, *options, "--dask", address, *more)


@pytest.fixture(scope="module")
def fitted(address, files, tmp_path_factory):
    """What the command says, and the model that it writes."""
    from click.testing import CliRunner

    from kernelmetric import cli

    folder = tmp_path_factory.mktemp("fitted")
    out, page = folder / "model.km", folder / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parts_study, "SAMPLE_ROWS", 150)
        result = fit(
            lambda *arguments: CliRunner().invoke(cli.build_application(), arguments),
            address, files, "--out", str(out), "--report", str(page),
        )  # fmt: skip
    assert result.exit_code == 0, result.output
    return result.stdout, out, page


def test_a_model_learns_from_the_rows_of_all_files(fitted):
    said, out, _ = fitted
    assert "Reading 600 rows in 3 files, 3 parts." in said
    assert "2 rows have no fruit and are left out." in said
    assert "tree: left out, it counts the rows, like an identifier." in said
    model = load_model(out)
    frame = orchard().dropna(subset=["fruit"])
    encoder = model["table"]
    assert encoder.numbers == ("m0", "m1", "m2", "m3")
    assert encoder.categories == ("field",)
    plain = type(model["metric"])(2).fit(encoder.transform(frame), frame["fruit"].to_numpy(str))
    ours, theirs = (m.transform(encoder.transform(frame)) for m in (model["metric"], plain))
    assert np.abs(ours) == pytest.approx(np.abs(theirs), rel=1e-6, abs=1e-8)


def test_what_comes_of_a_sample_says_so(fitted):
    said, _, page = fitted
    assert "of 598 rows decides about columns" in said
    assert "rows of the sample, held out" in said
    text = page.read_text(encoding="utf-8")
    assert "of 598" in text
    assert "A sample of" in text


def test_json_counts_all_rows_and_those_of_the_sample(run, address, files, small_sample, untuned):
    result = fit(run, address, files, "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["rows"] == 598
    assert 100 < printed["sample"] < 200
    assert printed["scores"]["LDA"][0] > 0.6


def test_the_same_seed_draws_the_same_sample(address, files, small_sample):
    from kernelmetric.cli._talk import Talk

    options = {
        "label": "fruit", "pairs_file": None, "learner": "lda", "kernel": "none",
        "components": None, "use": (), "ignore": (),
    }  # fmt: skip
    talk = Talk(quiet=True, as_json=False)
    one, two, other = (
        _parts_study.open_parts_study(None, talk, files, **options, seed=seed) for seed in (1, 1, 2)
    )
    assert one.rows.tolist() == two.rows.tolist() != other.rows.tolist()
    whole = orchard()["fruit"].to_numpy()
    assert one.y.tolist() == whole[one.rows].tolist()


def test_beyond_some_rows_nca_learns_from_batches(files, small_sample, monkeypatch):
    from kernelmetric.cli._talk import Talk

    monkeypatch.setattr(_parts_study, "MOST_ROWS_EXACT", 500)
    options = {
        "label": "fruit", "pairs_file": None, "learner": None, "components": None, "use": (),
        "ignore": (), "seed": 0,
    }  # fmt: skip
    for kernel in ("none", "auto"):
        study = _parts_study.open_parts_study(
            None, Talk(quiet=True, as_json=False), files, kernel=kernel, **options
        )
        assert "solver='minibatch'" in repr(study.metric)
        assert any("learns from batches" in note for note in study.notes)


def test_processes_of_this_machine_do_as_a_cluster(run, files, tmp_path, small_sample, untuned):
    options = ["--label", "fruit", "--learner", "lda", "--kernel", "none", "--workers", "1"]
    result = run("fit", *files, *options, "--quiet", "--out", str(tmp_path / "model.km"))
    assert (result.exit_code, result.output) == (0, "")
    assert load_model(tmp_path / "model.km")["metric"].components_.shape[1] == 6


# --- transform ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_coordinates_are_written_part_by_part(shared, run, address, files, fitted, tmp_path):
    _, model, _ = fitted
    there = ["--dask", address] if shared else []
    result = run("transform", str(model), *files, "--output", str(tmp_path / "z"), *there)
    assert result.exit_code == 0, result.output
    assert "600 rows in 3 files" in result.stdout
    assert "a.parquet: m1:" in result.stderr
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
        (["fit", "FILES", "--label", "fruit"], "Got 3 files, but expected one: add --workers 2"),
        (["fit", "FILES", "--label", "fruits", "--dask", "ADDRESS"], "Did you mean 'fruit'?"),
        (["fit", "FILES", "--label", "m0", "--dask", "ADDRESS"], "holds numbers with fractions"),
        (["fit", "FILES", "--dask", "ADDRESS"], "but expected a column of classes"),
        (["fit", "FILES", "--label", "fruit", "--dask", "ADDRESS", "--workers", "2"], "one of"),
        (["fit", "FILES", "--label", "fruit", "--dask", "nonsense://x"], "expected an address"),
        (["fit", "no.parquet", "--label", "fruit", "--dask", "ADDRESS"], "There is no file"),
        (["transform", "MODEL", "FILES"], "add --output FOLDER"),
        (["transform", "MODEL", "FILES", "--output", "z", "--out", "z.csv"], "expected one"),
        (["transform", "MODEL", "FILES", "--output", "FULL"], "is not empty"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_bad_input_is_refused_in_a_sentence(
    arguments, sentence, run, address, files, fitted, tmp_path
):
    full = tmp_path / "full"
    full.mkdir()
    (full / "old").write_text("", encoding="utf-8")
    known = {"FILES": files, "ADDRESS": [address], "MODEL": [str(fitted[1])], "FULL": [str(full)]}
    given = [value for argument in arguments for value in known.get(argument, [argument])]
    result = run(*given)
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_scheduler_that_does_not_answer_is_a_sentence(run, files):
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        result = run("fit", *files, "--label", "fruit", "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 1
    assert "where a scheduler answers" in result.stderr


def test_without_dask_the_missing_extra_is_named(run, files, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    result = run("fit", *files, "--label", "fruit", "--workers", "2")
    assert result.exit_code == 2
    assert "kernelmetric[dask]" in result.stderr


def test_a_cell_that_is_no_number_is_named_with_its_file(run, address, files, fitted, tmp_path):
    frame = orchard(60).astype({"m2": object})
    frame["m2"] = frame["m2"].astype(str)
    frame.loc[5, "m2"] = "many"
    frame.to_parquet(tmp_path / "text.parquet", index=False)
    given = ["transform", str(fitted[1]), str(tmp_path / "text.parquet"), "--output"]
    for where in ([], ["--dask", address]):
        result = run(*given, str(tmp_path / f"z{len(where)}"), *where)
        assert result.exit_code == 1
        assert "Got 'many' in column 'm2'" in result.stderr
        assert "text.parquet" in result.stderr
