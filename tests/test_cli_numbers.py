"""``kernelmetric fit --task regression``: numbers as targets."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from kernelmetric.evaluation import baselines, holdout, run_trials
from kernelmetric.learners import MLKR
from kernelmetric.tables import TableError, labels_of, targets_of

FAST = ("--learner", "mlkr", "--kernel", "none")


@pytest.fixture
def houses(tmp_path):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(80, 3).round(3), columns=["area", "noise", "age"])
    frame["place"] = np.where(rng.rand(80) > 0.5, "north", "south")
    frame["price"] = (3 * frame["area"] + 0.1 * rng.randn(80)).round(2)
    frame["rooms"] = 1 + np.arange(80) % 40
    frame.loc[5, "price"] = np.nan
    path = tmp_path / "houses.csv"
    frame.to_csv(path, index=False)
    return path


def test_numbers_are_learned_from_compared_and_kept(run, houses, tmp_path):
    files = {"--out": tmp_path / "model.km", "--report": tmp_path / "page.html"}
    options = [part for pair in files.items() for part in pair]
    result = run("fit", houses, "--label", "price", "--task", "regression", *FAST, *options)
    assert result.exit_code == 0, result.stderr
    assert "R² on 20 rows held out" in result.output
    assert "1 rows have no price and are left out." in result.output
    assert "Predicted numbers" in files["--report"].read_text(encoding="utf-8")
    neighbors = run("neighbors", files["--out"], houses, "--row", "0")
    assert neighbors.exit_code == 0, neighbors.stderr


@pytest.mark.slow
def test_the_learned_metric_predicts_better_in_json(run, houses):
    result = run("fit", houses, "--label", "price", "--task", "regression", *FAST, "--json")
    found = json.loads(result.stdout)
    assert found["metric"] == "MLKR"
    assert found["scores"]["MLKR"][0] > found["scores"]["Euclidean"][0] + 0.1
    assert "confusion" not in found


def test_the_default_for_numbers_is_kernelized_mlkr(houses):
    from kernelmetric.cli._study import open_study

    options = {"pairs_file": None, "learner": None, "kernel": "auto", "components": None}
    study = open_study(
        houses, label="price", use=(), ignore=(), seed=0, task="regression", **options
    )
    assert study.name == "Kernelized MLKR"
    assert study.y.dtype == np.float64


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--label", "price"], "try --task regression to predict the numbers"),
        (
            ["--label", "place", "--task", "regression"],
            "but expected finite numbers to predict: try --task classification",
        ),
        (
            ["--label", "price", "--task", "regression", "--learner", "lmnn"],
            "which learns from no numbers: try --learner mlkr or rfm",
        ),
        (
            ["--label", "place", "--learner", "mlkr"],
            "learns from no classes: try --learner nca, or --task regression",
        ),
        (["--pairs", "pairs.csv", "--task", "regression"], "expected --label alone"),
    ],
    ids=["fractions", "words", "learner", "mlkr", "pairs"],
)
def test_what_does_not_fit_the_task_is_refused_in_a_sentence(run, houses, options, said):
    result = run("fit", houses, *options)
    assert result.exit_code != 0
    assert said in result.stderr.replace("\n", " ")


def test_numbers_that_may_be_classes_and_classes_that_may_be_numbers_are_pointed_out(houses):
    frame = pd.read_csv(houses)
    assert "--task regression" in " ".join(labels_of(frame, "rooms")[2])
    frame["floor"] = np.arange(80) % 3
    assert "only 3 different numbers" in targets_of(frame, "floor")[2][0]
    assert not targets_of(frame, "rooms")[2]


@pytest.mark.slow
@pytest.mark.usefixtures("one_alternative")
def test_whoever_asks_for_classes_is_not_asked_again(run, houses):
    options = ("--label", "rooms", "--learner", "dne", "--kernel", "none", "--ignore", "price")
    said = run("fit", houses, *options).output
    assert "--task regression would" in said
    assert "--task" not in run("fit", houses, *options, "--task", "classification").output


def test_the_same_number_everywhere_is_refused():
    with pytest.raises(TableError, match="the same number in every row"):
        targets_of(pd.DataFrame({"y": [2.0, 2.0, 2.0]}), "y")


def test_numbers_held_out_are_spread_like_the_others():
    y = np.random.RandomState(0).standard_normal(200)
    train, test = holdout(y, 0.25, regression=True)
    assert len(test) == 50
    assert sorted([*train, *test]) == list(range(200))
    assert abs(np.median(y[test]) - np.median(y)) < 0.1
    assert abs(y[test].std() - y.std()) < 0.15
    with pytest.raises(ValueError, match="at least 4"):
        holdout(y[:3], regression=True)


def test_trials_of_numbers_have_r2_and_no_scores_of_classes():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 2))
    y = X[:, 0]
    methods = {
        "Euclidean": baselines(y, regression=True)["Euclidean"],
        "MLKR": make_pipeline(MLKR(), KNeighborsRegressor(5)),
    }
    trials = list(run_trials(methods, X, y, [holdout(y, regression=True)]))
    assert [trial.scores for trial in trials] == [None, None]
    assert trials[1].accuracy > trials[0].accuracy > 0.5


def test_the_alternatives_of_numbers_can_be_tuned():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 2))
    y = 1000.0 * X[:, 0]  # the machine's tube is in units of the target
    for method in baselines(y, regression=True).values():
        assert method.fit(X, y).score(X, y) > 0.7
