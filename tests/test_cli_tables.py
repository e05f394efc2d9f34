"""The commands that work on a user's table: what they say, write and refuse."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd
from sklearn.pipeline import Pipeline

from kernelmetric.cli import _fit
from kernelmetric.cli._application import COMMANDS
from kernelmetric.cli._files import metric_of, unused_columns
from kernelmetric.cli._neighbors import find_neighbors
from kernelmetric.cli._options import LEARNERS, Wanted, takes
from kernelmetric.cli._study import open_study
from kernelmetric.cli._transform import coordinates, joined
from kernelmetric.inspection import feature_importance
from kernelmetric.tables import features_of

pytestmark = pytest.mark.usefixtures("one_alternative")
FAST = ("--learner", "dne", "--kernel", "none")


@pytest.fixture
def table(tmp_path):
    """Sixty rows in three classes, with all that tables have."""
    rng = np.random.RandomState(0)
    kinds = np.array(["apple", "pear", "quince"])[np.arange(60) % 3]
    frame = pd.DataFrame(rng.randn(60, 4), columns=list("abcd"))
    frame["a"] += 2.0 * (np.arange(60) % 3)
    frame.loc[[3, 7], "b"] = np.nan
    frame["tree"] = np.arange(60)
    frame["unit"] = "mm"
    frame["place"] = np.where(rng.rand(60) > 0.5, "north", "south")
    frame["kind"] = kinds
    path = tmp_path / "trees.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def pairs_file(tmp_path):
    lines = [f"{i},{j},{1 if i % 3 == j % 3 else -1}" for i in range(20) for j in range(i + 1, 20)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def model(table):
    options = {"pairs_file": None, "learner": "dne", "kernel": "none", "components": 2}
    study = open_study(table, label="kind", use=(), ignore=(), seed=0, **options)
    fitted = study.fitted()
    return Pipeline([fitted.steps[0], ("metric", metric_of(fitted))])


def test_fit_tells_every_decision_and_compares(run, table, tmp_path, untuned):
    page = tmp_path / "page.html"
    result = run("fit", table, "--label", "kind", *FAST, "--report", page)
    assert result.exit_code == 0, result.stderr
    for said in (
        "tree: left out",
        "unit: left out",
        "b: 2 of 60",
        "place: 2 names",
        "15 rows held",
    ):
        assert said in result.stdout
    for method in ("Euclidean", "DNE", "k-NN, tuned", "RBF-SVM, tuned"):
        assert method in result.stdout
    text = page.read_text(encoding="utf-8")
    assert "DNE on trees.csv" in text
    assert "unit: left out" in text


def test_fit_tells_of_cells_that_it_reads_as_missing(run, table):
    frame = pd.read_csv(table)
    frame.loc[:40:8, "c"] = 9999
    frame.to_csv(table, index=False)
    said = " ".join(run("fit", table, "--label", "kind", *FAST).output.split())
    assert said.count("Column 'c' holds 9999, 100 times as far from the median") == 1


def test_fit_in_json_is_all_that_is_printed(run, table, untuned):
    result = run("fit", table, "--label", "kind", *FAST, "--json")
    printed = json.loads(result.stdout)
    assert result.stderr == ""
    assert printed["metric"] == "DNE"
    assert printed["left_out"] == ["tree", "unit"]
    assert set(printed["scores"]) == {"Euclidean", "DNE", "k-NN, tuned", "RBF-SVM, tuned"}
    assert all(0 <= values[0] <= 1 for values in printed["scores"].values())


@pytest.mark.slow
def test_quiet_says_nothing(run, table, tmp_path):
    result = run("fit", table, "--label", "kind", *FAST, "--quiet", "--report", tmp_path / "p.html")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "p.html").exists()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores(run, table):
    first, again, other = (
        json.loads(run("fit", table, "--label", "kind", *FAST, "--json", "--seed", s).stdout)
        for s in (0, 0, 5)
    )
    assert first["scores"] == again["scores"]
    assert first["scores"] != other["scores"]


@pytest.mark.slow
def test_fit_learns_from_pairs_alone(run, table, pairs_file, tmp_path):
    page = tmp_path / "page.html"
    arguments = ("--pairs", pairs_file, "--learner", "mmc", "--kernel", "none", "--ignore", "kind")
    result = run("fit", table, *arguments, "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "AUC of held-out pairs" in result.stdout
    assert "The hardest pairs" in page.read_text(encoding="utf-8")


def test_labels_beside_pairs_are_not_learned_from(table, pairs_file):
    options = {"pairs_file": pairs_file, "learner": "mmc", "kernel": "none", "components": None}
    options |= {"use": (), "seed": 0}
    alone = open_study(table, label=None, ignore=("kind",), **options).fitted()
    beside = open_study(table, label="kind", ignore=(), **options).fitted()
    np.testing.assert_array_equal(alone["metric"].components_, beside["metric"].components_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The prior metric stays")  # what is drawn teaches nothing
def test_labels_beside_pairs_do_not_choose_the_kernel(table, pairs_file):
    options = {"pairs_file": pairs_file, "learner": "mmc", "kernel": "auto", "components": None}
    options |= {"use": (), "seed": 0}
    alone = open_study(table, label=None, ignore=("kind",), **options).fitted()
    beside = open_study(table, label="kind", ignore=(), **options).fitted()
    assert repr(alone["metric"].kernel_) == repr(beside["metric"].kernel_)


def test_evaluate_compares_by_folds_and_on_another_table(run, table, tmp_path, untuned):
    folds = run("evaluate", table, "--label", "kind", *FAST, "--folds", 3, "--json")
    printed = json.loads(folds.stdout)
    assert [len(values) for values in printed["scores"].values()] == [3, 3, 3, 3]
    frame = pd.read_csv(table)
    frame[::2].to_csv(tmp_path / "one.csv", index=False)
    frame[1::2].to_csv(tmp_path / "two.csv", index=False)
    other = run(
        "evaluate", tmp_path / "one.csv", "--label", "kind", *FAST, "--test", tmp_path / "two.csv"
    )
    assert other.exit_code == 0, other.stderr
    assert "two.csv" in " ".join(other.stdout.split())


def test_evaluate_judges_pairs(run, table, pairs_file):
    arguments = ("--pairs", pairs_file, "--learner", "mmc", "--kernel", "none", "--folds", 3)
    printed = json.loads(run("evaluate", table, *arguments, "--json").stdout)
    assert set(printed["scores"]) == {"Euclidean", "MMC"}


def test_classes_that_were_never_seen_are_refused(run, table, tmp_path):
    frame = pd.read_csv(table)
    frame["kind"] = frame["kind"].replace("pear", "plum")
    frame.to_csv(tmp_path / "other.csv", index=False)
    arguments = ("--label", "kind", *FAST, "--test", tmp_path / "other.csv")
    result = run("evaluate", table, *arguments)
    assert result.exit_code == 1
    assert "plum" in result.stderr


def test_neighbours_are_those_of_the_metric_and_no_row_finds_itself(table, model):
    frame = pd.read_csv(table)
    Z = model.transform(features_of(frame, model["table"]))
    D = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    np.fill_diagonal(D, np.inf)
    answers = find_neighbors(model, frame, None, np.array([4, 9]), 3, ())
    for answer in answers:
        row = answer["query"]
        assert [n["row"] for n in answer["neighbors"]] == np.argsort(D[row])[:3].tolist()
        assert answer["neighbors"][0]["distance"] == pytest.approx(D[row].min())
    assert list(answers[0]["neighbors"][0]) == ["row", "distance", "columns"]
    counted = [name for name, _ in feature_importance(model, frame).ranked()]
    assert list(answers[0]["neighbors"][0]["columns"]) == ["tree", "kind", *counted[:3]]


def test_a_query_that_is_in_the_table_finds_itself_at_no_distance(table, model):
    frame = pd.read_csv(table)
    (answer,) = find_neighbors(model, frame, frame.iloc[[7]], np.array([0]), 2, ("kind",))
    columns = {"kind": frame["kind"][7]}
    assert answer["neighbors"][0] == {"row": 7, "distance": 0.0, "columns": columns}


def test_coordinates_carry_the_columns_that_are_not_used(table, model):
    frame = pd.read_csv(table)
    result = joined(frame[unused_columns(model, frame)], coordinates(model, frame))
    assert list(result.columns) == ["tree", "unit", "kind", "z0", "z1"]
    assert len(result) == 60


def test_a_model_goes_through_a_file(run, table, tmp_path):
    out, coordinates_file = tmp_path / "model.km", tmp_path / "z.csv"
    assert run("fit", table, "--label", "kind", *FAST, "--out", out).exit_code == 0
    result = run("neighbors", out, table, "--query", table, "--row", 5, "-k", 2, "--json")
    (answer,) = json.loads(result.stdout)["queries"]
    assert answer["neighbors"][0]["row"] == 5
    assert "Nearest to row 5, tree 5" in run("neighbors", out, table, "--row", 5).stdout
    assert run("transform", out, table, "--out", coordinates_file).exit_code == 0
    printed = run("transform", out, table).stdout
    assert printed == coordinates_file.read_text(encoding="utf-8")


def test_a_file_that_is_no_model_is_refused(run, table):
    for command in ("neighbors", "transform"):
        result = run(command, table, table)
        assert result.exit_code == 1
        assert "Traceback" not in result.output + result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--label", "kinds"], "Did you mean 'kind'"),
        (["--label", "tree"], "several rows each"),
        (["--label", "unit"], "at least two"),
        (["--label", "a"], "fractions"),
        ([], "neither --label nor --pairs"),
        (["--label", "kind", "--use", "nothing"], "no column 'nothing'"),
        (["--label", "kind", "--components", "99", *FAST], "n_components=99"),
        (["--label", "kind", "--report", "no/such/folder.html"], "no folder"),
        (["--pairs", "trees.csv", "--learner", "nca"], "learns from no pairs"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_a_sentence(run, table, arguments, sentence):
    result = run("fit", table, *arguments)
    assert result.exit_code == 1
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_every_help_has_examples(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"  kernelmetric {command} " in result.output


def test_every_learner_can_be_named_and_built():
    for name, kind in LEARNERS.items():
        task = "regression" if vars(kind).get("learns_from") == "targets" else None
        metric = Wanted(learner=name, kernel="none", task=task).metric()
        assert isinstance(metric, kind)
    assert takes(LEARNERS["idealized"], "pairs")
    assert not takes(LEARNERS["nca"], "pairs")


def test_an_interruption_leaves_old_files_as_they_were(run, table, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("old", encoding="utf-8")

    def interrupted(study, found, judged):
        raise KeyboardInterrupt

    monkeypatch.setattr(_fit, "_page", interrupted)
    result = run("fit", table, "--label", "kind", *FAST, "--report", page)
    assert result.exit_code == 130
    assert page.read_text(encoding="utf-8") == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html", "trees.csv"]


def test_few_labels_spread_to_all_rows_and_rows_to_label_next_are_named(run, table, tmp_path):
    frame = pd.read_csv(table)
    truth = frame["kind"].copy()
    frame["a"] += 5.0 * (np.arange(60) % 3)
    frame.loc[6:, "kind"] = None
    frame.to_csv(table, index=False)
    filled = tmp_path / "filled.csv"
    result = run("spread", table, "--label", "kind", "--next", "3", "--out", filled)
    assert result.exit_code == 0
    assert "To label next" in result.output
    found = pd.read_csv(filled)
    assert found["kind found"][:6].tolist() == truth[:6].tolist()
    assert np.mean(found["kind found"] == truth) > 0.55  # a third by chance
    assert found["probability"].between(1 / 3, 1).all()
    told = json.loads(run("spread", table, "--label", "kind", "--json").stdout)
    assert len(told["next"]) == 5
    assert min(told["next"]) >= 6  # the others have a label
    assert len(told["rows"]) == 60


@pytest.mark.parametrize("known", [0, 1, 10**6])  # no class, one, and nothing to find
def test_spreading_without_two_classes_is_refused_in_a_sentence(run, table, known):
    frame = pd.read_csv(table)
    frame.loc[known:, "kind"] = None
    frame.to_csv(table, index=False)
    result = run("spread", table, "--label", "kind")
    assert result.exit_code == 1
    assert "expected" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
