"""``kernelmetric predict``: what it says of new rows, and what it refuses."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd

from kernelmetric import load
from kernelmetric.tables import _files, _pieces

FAST = ("--learner", "lda", "--kernel", "none")


def people(n=90, seed=0):
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(rng.randn(n, 2).round(3), columns=["age", "visits"])
    frame.insert(0, "customer_id", [f"C{i + 1000 * seed}" for i in range(n)])
    frame["town"] = rng.choice(["Berlin", "Paris"], n)
    frame["leaves"] = np.where(frame["age"] + 0.4 * rng.randn(n) > 0.5, "yes", "no")
    frame["spent"] = (3 * frame["age"] + frame["visits"] + 0.2 * rng.randn(n)).round(2)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of classes, one of numbers, and a table to ask about."""
    from click.testing import CliRunner

    from kernelmetric.cli import _study, build_application

    here = tmp_path_factory.mktemp("predict")
    people().to_csv(here / "old.csv", index=False)
    people(30, seed=1).drop(columns=["leaves", "spent"]).to_csv(here / "new.csv", index=False)
    original = _study.baselines
    with pytest.MonkeyPatch.context() as patch:  # tuning takes longer than all else
        patch.setattr(
            _study, "baselines", lambda y, **o: {"Euclidean": original(y, **o)["Euclidean"]}
        )
        for name, options in {
            "classes": ("--label", "leaves", "--ignore", "spent", *FAST),
            "numbers": ("--label", "spent", "--ignore", "leaves", "--task", "regression",
                        "--learner", "mlkr", "--kernel", "none"),
        }.items():  # fmt: skip
            line = ["fit", str(here / "old.csv"), *options, "--out", str(here / f"{name}.km")]
            result = CliRunner().invoke(build_application(), line)
            assert result.exit_code == 0, result.output
    return here


def predicted(run, folder, model, *options, data="new.csv"):
    out = folder / "out.csv"
    result = run("predict", folder / f"{model}.km", folder / data, "--out", out, *options)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(out), result


def test_a_row_gets_its_class_probabilities_novelty_and_the_rows_behind(run, folder):
    found, _ = predicted(run, folder, "classes")
    model, new = load(folder / "classes.km"), pd.read_csv(folder / "new.csv")
    P = model.predict_proba(new)
    np.testing.assert_allclose(found[["probability_no", "probability_yes"]], P)
    assert found["predicted_leaves"].tolist() == model.predict(new).tolist()
    assert found["customer_id"].tolist() == new["customer_id"].tolist()
    predictor, X = model["predictor"], model["table"].transform(new)
    np.testing.assert_allclose(found["novelty"], -predictor.score_samples(X))
    old = pd.read_csv(folder / "old.csv").set_index("customer_id")
    rows = predictor.kneighbors(X, 3, return_distance=False)
    for i in range(3):
        assert found[f"neighbor_{i + 1}"].tolist() == old.index[rows[:, i]].tolist()
        labels = old["leaves"][found[f"neighbor_{i + 1}"]]
        assert found[f"neighbor_{i + 1}_leaves"].tolist() == labels.tolist()


def test_numbers_come_with_intervals(run, folder):
    found, _ = predicted(run, folder, "numbers")
    assert (found["low"] < found["predicted_spent"]).all()
    assert (found["predicted_spent"] < found["high"]).all()
    truth = people(30, seed=1)["spent"]
    assert np.mean((found["low"] < truth) & (truth < found["high"])) > 0.75
    wide, _ = predicted(run, folder, "numbers", "--coverage", 0.95)
    assert (wide["high"] > found["high"]).all()


def test_a_table_is_printed_where_no_file_is_asked_for(run, folder):
    result = run("predict", folder / "classes.km", folder / "new.csv", "-k", 1)
    assert result.exit_code == 0, result.stderr
    head = result.stdout.splitlines()[0]
    for name in ("customer_id", "leaves", "p(no)", "p(yes)", "novelty"):
        assert name in head
    assert "C1000" in result.stdout
    assert "... and 10 more rows: add --out predictions.csv for all of them." in result.stdout
    printed = json.loads(
        run("predict", folder / "numbers.km", folder / "new.csv", "-k", 0, "--json").stdout
    )
    assert len(printed["rows"]) == 30
    assert not any(name.startswith("neighbor") for name in printed["rows"][0])


def test_columns_may_be_permuted_added_and_new_in_their_names(run, folder):
    plain, _ = predicted(run, folder, "classes")
    frame = pd.read_csv(folder / "new.csv")
    frame = frame[frame.columns[::-1]].assign(shoe=43)
    frame.to_csv(folder / "odd.csv", index=False)
    found, result = predicted(run, folder, "classes", data="odd.csv")
    np.testing.assert_allclose(found["probability_yes"], plain["probability_yes"])
    assert "1 columns are unknown to the model and not used: shoe." in result.stderr
    frame.loc[0, "town"] = "Rome"
    frame.to_csv(folder / "odd.csv", index=False)
    _, result = predicted(run, folder, "classes", data="odd.csv")
    assert "'Rome'" in result.stderr
    frame.drop(columns="age").to_csv(folder / "odd.csv", index=False)
    refused = run("predict", folder / "classes.km", folder / "odd.csv")
    assert refused.exit_code == 1
    assert "no column 'age'" in " ".join(refused.stderr.split())


def test_far_rows_are_told(run, folder):
    frame = pd.read_csv(folder / "new.csv")
    frame.loc[4, "age"] = 60.0
    frame.to_csv(folder / "far.csv", index=False)
    found, result = predicted(run, folder, "classes", data="far.csv")
    assert found["novelty"].argmax() == 4
    assert "more than twice as far from the training rows as usual" in result.stderr


def test_pieces_are_predicted_like_the_whole(run, folder, monkeypatch, tmp_path):
    whole, _ = predicted(run, folder, "classes")
    monkeypatch.setattr(_files, "_PIECE_ROWS", 7)
    monkeypatch.setattr(_pieces, "_PIECE_BYTES", 400)
    pd.read_csv(folder / "new.csv").to_parquet(folder / "new.parquet")
    found, _ = predicted(run, folder, "classes", data="new.parquet")
    pd.testing.assert_frame_equal(found, whole)
    result = run(
        "predict", folder / "classes.km", folder / "new.parquet", "--output", tmp_path / "parts"
    )
    assert result.exit_code == 0, result.stderr
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) > 1
    joined = pd.concat(map(pd.read_parquet, parts), ignore_index=True)
    assert joined["predicted_leaves"].tolist() == whole["predicted_leaves"].tolist()


@pytest.mark.slow
def test_costs_change_classes_and_no_probability(run, folder):
    plain, _ = predicted(run, folder, "classes")
    model, new = load(folder / "classes.km"), pd.read_csv(folder / "new.csv")
    for options, decision in {
        ("--decision", "balanced"): "balanced",
        ("--cost", "yes", "no", 30): {"yes": {"no": 30.0}},
        ("--cost", "no", "yes", 2, "--cost", "yes", "no", 1e-9): {"no": 2, "yes": 1e-9},
    }.items():
        found, _ = predicted(run, folder, "classes", *options)
        model["predictor"].set_params(decision=decision)
        assert found["predicted_leaves"].tolist() == model.predict(new).tolist()
        other = [c for c in plain.columns if c != "predicted_leaves"]
        pd.testing.assert_frame_equal(found[other], plain[other])
    assert (found["predicted_leaves"] == "no").all()


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ("classes", ("--cost", "yes", "maybe", 3), "Got a cost of 'maybe', but the classes are"),
        ("classes", ("--cost", "yes", "no", -1), "no wrong answer cheaper than the right one"),
        ("classes", ("--cost", "yes", "no", 2, "--decision", "balanced"), "expected one of them"),
        ("numbers", ("--decision", "balanced"), "the model predicts numbers, not classes"),
    ],
)
def test_costs_that_make_no_sense_are_refused(run, folder, model, options, says):
    result = run("predict", folder / f"{model}.km", folder / "new.csv", *options)
    assert result.exit_code == 1
    assert says in " ".join(result.stderr.split())


@pytest.mark.slow
@pytest.mark.usefixtures("untuned")
def test_a_model_keeps_the_costs_of_its_fit(run, folder, tmp_path):
    given = ("--label", "leaves", "--ignore", "spent", *FAST, "--cost", "yes", "no", 30)
    files = ("--out", tmp_path / "m.km", "--report", tmp_path / "page.html")
    result = run("fit", folder / "old.csv", *given, *files)
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="curves"' in page
    assert "the class of least expected cost" in page
    assert "Beware: accuracy" not in page + result.stdout  # it is not what was asked for
    assert load(tmp_path / "m.km")["predictor"].decision == {"yes": {"no": 30.0}}
    answers = run("predict", tmp_path / "m.km", folder / "new.csv", "--json").stdout
    found, _ = predicted(run, folder, "classes", "--cost", "yes", "no", 30)
    said = [row["predicted_leaves"] for row in json.loads(answers)["rows"]]
    assert said == found["predicted_leaves"].tolist()
    numbers = ("--label", "spent", "--task", "regression", "--decision", "balanced")
    refused = run("fit", folder / "old.csv", *numbers)
    assert refused.exit_code == 1
    assert "expected --label with classes" in " ".join(refused.stderr.split())


def test_a_column_of_the_same_name_stays(run, folder):
    pd.read_csv(folder / "new.csv").assign(novelty="mine").to_csv(folder / "mine.csv", index=False)
    found, _ = predicted(run, folder, "classes", data="mine.csv")
    assert (found["novelty"] == "mine").all()
    assert found["_novelty"].dtype.kind == "f"


@pytest.mark.slow
def test_a_model_of_pairs_predicts_nothing(run, folder, tmp_path):
    lines = [f"{i},{i + 1},{(-1) ** i}" for i in range(40)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    model = tmp_path / "pairs.km"
    known = ("--pairs", tmp_path / "pairs.csv", "--learner", "mmc", "--kernel", "none")
    assert run("fit", folder / "old.csv", *known, "--out", model).exit_code == 0
    result = run("predict", model, folder / "new.csv")
    assert result.exit_code == 1
    assert "predicts nothing" in " ".join(result.stderr.split())
    assert run("transform", model, folder / "old.csv").exit_code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("one_alternative")
def test_neighbours_of_a_weighted_model_have_their_own_labels(run, tmp_path):
    frame = people()
    frame["counts"] = np.arange(len(frame)) % 3  # every third row counts nothing
    frame.to_csv(tmp_path / "old.csv", index=False)
    options = ("--label", "leaves", "--ignore", "spent", "--weights", "counts", *FAST)
    result = run("fit", tmp_path / "old.csv", *options, "--out", tmp_path / "m.km")
    assert result.exit_code == 0, result.stderr
    frame.to_csv(tmp_path / "new.csv", index=False)
    answers, _ = predicted(run, tmp_path, "m")
    known = frame.set_index("customer_id")
    for i in (1, 2, 3):
        near = known.loc[answers[f"neighbor_{i}"]]
        assert (near["counts"] > 0).all()
        assert near["leaves"].tolist() == answers[f"neighbor_{i}_leaves"].tolist()
