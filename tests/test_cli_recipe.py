"""What was chosen: told by the command line, shown on the page, and used again."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd

from kernelmetric import load
from kernelmetric.tables import TableEncoder

pytestmark = pytest.mark.usefixtures("one_alternative")
FAST = ("--label", "kind", "--learner", "dne")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Ninety rows in three classes, with a name that two rows have."""
    rng = np.random.RandomState(0)
    codes = np.arange(90) % 3
    frame = pd.DataFrame(rng.randn(90, 3).round(3), columns=list("abc"))
    frame["a"] += 2.0 * codes
    frame["place"] = np.where(rng.rand(90) > 0.5, "north", "south")
    frame.loc[[4, 50], "place"] = "river"
    frame["share"] = rng.randint(1, 3, 90)
    frame["kind"] = np.array(["apple", "pear", "quince"])[codes]
    path = tmp_path_factory.mktemp("recipe") / "trees.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(table, invoke_once):
    path = table.with_name("first.km")
    assert invoke_once("fit", table, *FAST, "--out", path).exit_code == 0
    return path


@pytest.fixture(scope="module")
def invoke_once():
    """Run a command for all tests of this file."""
    from click.testing import CliRunner

    from kernelmetric import cli

    application = cli.build_application()
    return lambda *arguments: CliRunner().invoke(application, [str(part) for part in arguments])


def test_fit_tells_and_shows_what_was_chosen_and_why(run, table, tmp_path):
    page = tmp_path / "page.html"
    result = run("fit", table, *FAST, "--report", page)
    assert result.exit_code == 0, result.stderr
    told = result.stdout.partition("What was chosen:\n")[2].splitlines()[:7]
    assert [line.split()[0] for line in told[::2]] == ["kernel", "space", "learner", "rows"]
    assert "points left out" in told[1] and "the learner needs labels" in told[3]
    assert told[6].split() == ["rows", "all", "68", "rows"]  # a quarter is held out
    shown = page.read_text(encoding="utf-8").partition('<section id="chosen">')[2]
    assert shown.startswith("<h2>What was chosen</h2>")
    assert "the learner needs labels" in shown.partition("</section>")[0]
    assert "all 68 rows" in shown.partition("</section>")[0]


@pytest.mark.slow
def test_a_metric_without_a_kernel_has_nothing_to_tell(run, table, tmp_path):
    page = tmp_path / "page.html"
    result = run("fit", table, *FAST, "--kernel", "none", "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "What was chosen" not in result.stdout + page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_recipe_of_a_model_is_used_again(run, table, model, tmp_path, monkeypatch):
    from kernelmetric.selection import LeaveOneOutRidge

    def refuse(*_):
        raise AssertionError("the kernel was chosen again")

    monkeypatch.setattr(LeaveOneOutRidge, "bind", refuse)
    out, page = tmp_path / "again.km", tmp_path / "page.html"
    result = run("fit", table, *FAST, "--recipe", model, "--out", out, "--report", page, "--json")
    assert result.exit_code == 0, result.stderr
    chosen = json.loads(result.stdout)["chosen"]
    assert chosen["kernel"]["why"] == chosen["space"]["why"] == "from the recipe that was given"
    first, second = load(model), load(out)
    assert type(second["table"]) is TableEncoder  # as every model has one
    frame = pd.read_csv(table)
    placed = [
        m["predictor"].metric_.transform(m["table"].transform(frame)) for m in (first, second)
    ]
    np.testing.assert_allclose(*placed, atol=1e-9)


@pytest.mark.slow
def test_the_columns_of_a_recipe_are_those_of_its_model(run, table, model, tmp_path):
    """A name that no row has any more is a feature all the same: the kernel has a scale for it."""
    frame = pd.read_csv(table)
    frame = frame[frame["place"] != "river"].assign(new=1.5)
    frame.to_csv(tmp_path / "fewer.csv", index=False)
    out = tmp_path / "again.km"
    result = run("fit", tmp_path / "fewer.csv", *FAST, "--recipe", model, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "1 columns are unknown to the model and not used: new." in result.stdout
    features = [list(load(path)["table"].get_feature_names_out()) for path in (model, out)]
    assert features[0] == features[1] and "place=river" in features[0]


def test_evaluate_takes_a_recipe(run, table, model):
    result = run("evaluate", table, *FAST, "--folds", "2", "--recipe", model, "--json")
    assert result.exit_code == 0, result.stderr
    assert "flatters" in json.loads(result.stdout)["notes"][0]


@pytest.mark.parametrize(
    "options, sentence",
    [
        (("--kernel", "none"), "expected a kernel"),
        (("--ignore", "a"), "expected none of them"),
        (("--label", "place"), "a feature of the model"),
        (("--weights", "share"), "a feature of the model"),
        (("--out", "first.km"), "which would be lost"),
    ],
)
def test_what_does_not_go_with_a_recipe_is_refused(run, table, model, options, sentence):
    options = [model if part == "first.km" else part for part in options]
    result = run("fit", table, *FAST, "--recipe", model, *options)
    assert result.exit_code == 1 and sentence in " ".join(result.stderr.split())


@pytest.mark.slow
def test_a_model_without_a_recipe_is_refused(run, table, tmp_path):
    plain = tmp_path / "plain.km"
    assert run("fit", table, *FAST, "--kernel", "none", "--out", plain).exit_code == 0
    result = run("fit", table, *FAST, "--recipe", plain)
    assert result.exit_code == 1 and "has no recipe" in " ".join(result.stderr.split())


# --- how long it may take -----------------------------------------------------------------------


@pytest.mark.slow
def test_minutes_end_a_fit_and_the_output_says_what(run, table, tmp_path):
    out = tmp_path / "model.km"
    limited = ("--label", "kind", "--learner", "lmnn", "--minutes", "1e-9")
    result = run("fit", table, *limited, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "The time limit ended the choice of a kernel" in result.stdout
    assert "the model of all rows: The time limit ended" in result.stdout
    assert np.all(np.isfinite(load(out)["predictor"].metric_.components_))
    told = json.loads(run("fit", table, *limited, "--json").stdout)["warnings"]
    assert "time limit" in told["Kernelized LMNN"] and "the model of all rows" not in told
    result = run("evaluate", table, *limited, "--folds", "2")
    assert "The time limit ended" in result.stdout


@pytest.mark.slow
def test_ample_minutes_end_nothing(run, table):
    result = run("fit", table, *FAST, "--minutes", "600")
    assert result.exit_code == 0 and "time limit" not in result.stdout


@pytest.mark.parametrize("minutes", ["0", "-1", "soon"])
def test_minutes_are_above_zero(run, table, minutes):
    result = run("fit", table, *FAST, "--minutes", minutes)
    assert result.exit_code == 2 and "--minutes" in result.stderr
