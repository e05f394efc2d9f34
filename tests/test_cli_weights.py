"""``--weights COL`` and ``--class-weight balanced`` on the command line."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import LDA, LMNN, Kernelized, load
from kernelmetric.evaluation import baselines, holdout, run_trials
from kernelmetric.evaluation._baselines import name_of_weights
from kernelmetric.tables import TableError, weights_of

pytestmark = pytest.mark.usefixtures("one_alternative")
FAST = ("--label", "kind", "--learner", "lda", "--kernel", "none")


@pytest.fixture
def people(tmp_path):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(90, 3).round(3), columns=["age", "height", "noise"])
    frame["kind"] = np.where(frame["age"] + 0.5 * rng.randn(90) > 0.8, "rare", "common")
    frame["count"] = rng.randint(0, 4, 90)
    frame.loc[3, "kind"] = None
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path


def in_metric(metric):
    return Pipeline([("metric", metric), ("neighbors", KNeighborsClassifier(3))])


def kept(run, path, tmp_path, *options):
    model = tmp_path / "model.km"
    result = run("fit", path, *FAST, *options, "--out", model)
    assert result.exit_code == 0, result.stderr
    return load(model), result.output


def test_the_model_learns_from_the_rows_that_count(run, people, tmp_path):
    model, said = kept(run, people, tmp_path, "--weights", "count")
    assert "rows of weight zero are left out" in said
    frame = pd.read_csv(people)
    frame = frame[frame["kind"].notna() & (frame["count"] > 0)]
    X = model["table"].transform(frame)
    again = LDA().fit(X, frame["kind"], sample_weight=frame["count"])
    np.testing.assert_allclose(
        model["predictor"].metric_.transform(X), again.transform(X), atol=1e-9
    )


def test_balanced_classes_reach_the_learner_and_the_summary(run, people, tmp_path):
    model, said = kept(run, people, tmp_path, "--class-weight", "balanced", "--ignore", "count")
    assert model["predictor"].class_weight == "balanced"
    assert model["predictor"].metric_.class_weight == "balanced"
    assert "balanced" in said


def test_scores_count_by_weights(run, people):
    result = run("fit", people, *FAST, "--weights", "count", "--json")
    found = json.loads(result.stdout)
    frame = pd.read_csv(people).dropna()
    held_out = np.sum(found["confusion"]["rows"])
    assert 0.15 * frame["count"].sum() < held_out < 0.4 * frame["count"].sum()
    assert "count" not in found["numbers"]


@pytest.mark.slow
def test_an_evaluation_on_another_table_takes_its_weights(run, people):
    result = run("evaluate", people, *FAST, "--weights", "count", "--test", people, "--json")
    assert result.exit_code == 0, result.stderr
    frame = pd.read_csv(people).dropna()
    assert np.sum(json.loads(result.stdout)["confusion"]["rows"]) == frame["count"].sum()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--weights", "age"), "not negative"),
        (("--weights", "kind"), "expected weights"),
        (("--weights", "weight"), "no column 'weight'"),
        (("--learner", "itml", "--class-weight", "balanced"), "no weights of classes"),
    ],
    ids=["negative", "words", "missing", "no-classes"],
)
def test_what_is_no_weight_is_refused_in_a_sentence(run, people, options, said):
    result = run("fit", people, "--label", "kind", "--kernel", "none", *options)
    assert result.exit_code != 0
    assert said in " ".join(result.stderr.split())


def test_weights_beside_pairs_are_refused(run, people, tmp_path):
    (tmp_path / "pairs.csv").write_text("0,1,1\n2,4,-1\n")
    result = run("fit", people, "--pairs", tmp_path / "pairs.csv", "--weights", "count")
    assert "--weights or --class-weight with --pairs" in " ".join(result.stderr.split())


@pytest.mark.parametrize("cells", [["1", "", "2"], ["1", "-1", "2"], ["0", "0", "0"]])
def test_a_column_of_weights_has_one_for_every_row(cells):
    with pytest.raises(TableError, match="expected"):
        weights_of(pd.DataFrame({"w": cells}), "w")


def test_weights_go_to_the_step_that_takes_them():
    y = np.array([0, 1] * 20)
    assert name_of_weights(in_metric(Kernelized(LMNN()))) == "metric__sample_weight"
    svm = Pipeline([("scale", StandardScaler()), ("classifier", baselines(y)["RBF-SVM, tuned"])])
    assert name_of_weights(svm) == "scale__sample_weight"
    assert name_of_weights(baselines(y)["RBF-SVM, tuned"]) == "sample_weight"
    assert name_of_weights(baselines(y)["Euclidean"]) is None


def test_weighted_trials_are_those_of_repeated_test_rows():
    rng = np.random.RandomState(0)
    X = rng.randn(80, 3)
    y = (X[:, 0] + 0.7 * rng.randn(80) > 0).astype(int)
    w = rng.randint(1, 4, 80)
    train, test = holdout(y)
    methods = {"LDA": in_metric(LDA())}
    (weighted,) = run_trials(methods, X, y, [(train, test)], sample_weight=w)
    model = methods["LDA"].fit(X[train], y[train], metric__sample_weight=w[train])
    times = np.repeat(test, w[test])
    assert weighted.accuracy == pytest.approx(model.score(X[times], y[times]))
    assert weighted.scores.accuracy == pytest.approx(weighted.accuracy)
