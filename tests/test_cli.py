"""The command line: what it writes, what it prints, how it fails."""

import csv
import json
import sys

import pytest

import kernelmetric

pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")


from kernelmetric import cli
from kernelmetric import demo as demo_module
from kernelmetric.demo import DATASETS, METHODS, Demo
from kernelmetric.report import Cell

TINY = Demo(datasets=DATASETS[:1], n_splits=1)


@pytest.fixture
def tiny(monkeypatch):
    """The quick demo made quicker, for tests that do not look at its numbers."""
    monkeypatch.setattr(Demo, "quick", classmethod(lambda cls, seed=0: TINY))


@pytest.fixture
def hide(monkeypatch):
    """A function that makes a package look as if it were not installed."""

    def hide_package(package):
        loaded = [name for name in sys.modules if name.partition(".")[0] == package]
        for name in [package, *loaded]:
            monkeypatch.setitem(sys.modules, name, None)

    return hide_package


def test_the_quick_demo_shows_a_table_and_writes_two_files(run, tmp_path):
    out = tmp_path / "new" / "folder"
    result = run("demo", "--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    for method in METHODS:
        assert method in result.stdout
    for name in ("fig2.png", "accuracies.csv"):
        assert name in result.stdout
    assert (out / "fig2.png").read_bytes().startswith(b"\x89PNG")
    with (out / "accuracies.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == Demo.quick().n_cells
    assert {row["method"] for row in rows} == set(METHODS)
    assert "Try next" in result.stdout
    assert sorted(path.name for path in out.iterdir()) == ["accuracies.csv", "fig2.png"]


def test_json_is_all_that_is_printed(run, tiny, tmp_path):
    result = run("demo", "--quick", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert result.stderr == ""
    assert printed["version"] == kernelmetric.__version__
    assert printed["finished"] is True
    assert [row["method"] for row in printed["summary"]] == list(METHODS)
    assert len(printed["cells"]) == TINY.n_cells


@pytest.mark.slow
def test_quiet_prints_nothing_and_writes_all(run, tiny, tmp_path):
    result = run("demo", "--quick", "--quiet", "--out", str(tmp_path))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert len(list(tmp_path.iterdir())) == 2


def test_the_table_fits_eighty_columns(run, tmp_path, monkeypatch, hide):
    def widest(demo):  # all data sets, and numbers that take the most letters
        for split, accuracy in enumerate((0.0, 1.0)):
            for dataset in demo.datasets:
                for method in demo.methods:
                    yield Cell(dataset.name, method, split, accuracy, 0.1)

    hide("matplotlib")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(demo_module, "run_cells", widest)
    result = run("demo", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("50.0±50.0") == len(DATASETS) * len(METHODS)
    assert "…" not in result.stdout


@pytest.mark.slow
def test_the_same_seed_gives_the_same_accuracies():
    first, second = ([c.accuracy for c in demo_module.run_cells(TINY)] for _ in range(2))
    assert first == second
    other = Demo(datasets=DATASETS[:1], n_splits=1, seed=1)
    assert [c.accuracy for c in demo_module.run_cells(other)] != first


@pytest.mark.parametrize(
    "arguments", [["demo", "--no-such-option"], ["demo", "--seed", "-1"], ["no-such-command"]]
)
def test_a_wrong_command_line_is_refused_with_exit_code_2(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output + result.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs(run, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    result = run("demo", "--quick", "--out", str(tmp_path / "file" / "below"))
    assert result.exit_code == 2
    assert "cannot make the folder" in " ".join(result.stderr.split())


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_reported_in_a_sentence(run, tiny, tmp_path):
    (tmp_path / "accuracies.csv").mkdir()  # a folder is in the way
    result = run("demo", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "accuracies.csv" in "".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["accuracies.csv"]


def test_the_version_is_printed(run):
    assert run("--version").output == f"kernelmetric {kernelmetric.__version__}\n"


def test_an_interruption_keeps_what_was_done(run, tiny, tmp_path, monkeypatch):
    original = demo_module.run_cells

    def interrupted(demo):
        cells = original(demo)
        yield next(cells)
        yield next(cells)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "run_cells", interrupted)
    result = run("demo", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 130
    assert f"2 of {TINY.n_cells}" in result.stderr
    lines = (tmp_path / "accuracies.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_extra_is_named_in_one_sentence(hide, capsys, package):
    hide(package)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        f"The kernelmetric command needs {package}, which is not installed: "
        'try pip install "kernelmetric[cli]", or pip install ".[cli]" in a checkout.\n'
    )


@pytest.mark.slow
def test_without_matplotlib_the_table_is_there_and_a_sentence(run, tiny, tmp_path, hide):
    hide("matplotlib")
    result = run("demo", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "KLMNN" in result.stdout
    assert 'pip install "kernelmetric[plot]"' in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["accuracies.csv"]


def test_main_runs_the_group(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kernelmetric", "--help"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert "demo" in capsys.readouterr().out
