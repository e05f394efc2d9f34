"""The command line learns from triplets and quadruplets, and refuses them in a sentence."""

import json
import warnings

import numpy as np
import pytest

from half_of_product import half_of
from kernelmetric import LSML, Quadruplets, Triplets, cross_validate_pairs

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

_study = pytest.importorskip("kernelmetric.cli._study")


@pytest.fixture
def points():
    return np.random.RandomState(0).standard_normal((60, 4))


@pytest.fixture
def folder(tmp_path, points):
    """A table of which the first column matters, and files of comparisons that say so."""
    frame = pd.DataFrame(points.round(3), columns=list("abcd"))
    frame.to_csv(tmp_path / "songs.csv", index=False)
    rng = np.random.RandomState(1)
    rows = np.array([rng.permutation(60)[:4] for _ in range(150)])
    a = points[:, 0]
    wrong = abs(a[rows[:, 0]] - a[rows[:, 1]]) > abs(a[rows[:, 0]] - a[rows[:, 2]])
    three = np.where(wrong[:, None], rows[:, [0, 2, 1]], rows[:, :3])
    wrong = abs(a[rows[:, 0]] - a[rows[:, 1]]) > abs(a[rows[:, 2]] - a[rows[:, 3]])
    four = np.where(wrong[:, None], rows[:, [2, 3, 0, 1]], rows)
    np.savetxt(tmp_path / "three.csv", three, "%d", ",", header="song,near,far", comments="")
    np.savetxt(tmp_path / "four.csv", four, "%d", ",")
    return tmp_path


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("learner", "kind"),
    half_of(
        [None, "lsml", "lmnn", "scml", "lmca"], [("quadruplets", "four"), ("triplets", "three")]
    ),
)
def test_fit_learns_from_comparisons(run, folder, learner, kind):
    option, name = kind
    chosen = ("--learner", learner) if learner else ()
    result = run(
        "fit", folder / "songs.csv", f"--{option}", folder / f"{name}.csv", "--kernel", "none",
        *chosen, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    scores = json.loads(result.stdout)["scores"]
    plain, learned = (np.mean(values) for values in scores.values())
    assert plain < 0.8
    assert learned > plain + 0.1


def test_a_fold_that_failed_is_told_of(run, folder, monkeypatch):
    """A score of such folds is no number, and nothing else would say why."""

    def failing(metric, *arguments, **options):
        found = cross_validate_pairs(metric, *arguments, **options)
        if hasattr(metric, "steps"):
            found["test_score"][0] = np.nan
            warnings.warn("1 fits failed out of a total of 3.", stacklevel=2)
        return found

    monkeypatch.setattr(_study, "cross_validate_pairs", failing)
    page = folder / "page.html"
    arguments = (
        "fit",
        folder / "songs.csv",
        "--triplets",
        folder / "three.csv",
        "--learner",
        "lsml",
    )
    result = run(*arguments, "--kernel", "none", "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "LSML: 1 fits failed out of a total of 3." in result.stdout
    assert "nan" not in page.read_text(encoding="utf-8").split('id="data"')[0]


def test_a_model_and_a_page_of_comparisons_are_written(run, folder):
    out, page = folder / "model.km", folder / "page.html"
    result = run(
        "fit", folder / "songs.csv", "--triplets", folder / "three.csv", "--learner", "lsml",
        "--out", out, "--report", page,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "Share of held-out triplets that hold, 3 folds" in result.stdout
    assert "Share of held-out triplets that hold" in page.read_text(encoding="utf-8")
    asked = run("neighbors", out, folder / "songs.csv", "--row", 0, "-k", 2)
    assert asked.exit_code == 0, asked.stderr


def test_evaluate_judges_by_comparisons_that_were_left_out(run, folder):
    result = run(
        "evaluate", folder / "songs.csv", "--quadruplets", folder / "four.csv", "--learner",
        "lsml", "--kernel", "none", "--folds", 3, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["score"].startswith("Share of held-out quadruplets that hold in %")
    assert [len(values) for values in printed["scores"].values()] == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--triplets", "three.csv", "--learner", "nca"],
            "nca, which learns from no triplets: try",
        ),
        (
            ["--triplets", "three.csv", "--learner", "mmc"],
            "mmc, which learns from no triplets: try",
        ),
        (["--pairs", "three.csv", "--learner", "scml"], "scml, which learns from no pairs: try"),
        (["--triplets", "three.csv", "--quadruplets", "four.csv"], "expected one of them"),
        (["--triplets", "three.csv", "--task", "regression"], "expected --label alone"),
        (["--triplets", "four.csv"], "expected 3 row numbers"),
        (["--quadruplets", "three.csv"], "expected 4 row numbers"),
        (["--triplets", "three.csv", "--out", "three.csv"], "is the file of --triplets"),
    ],
)
def test_comparisons_that_do_not_fit_are_refused(run, folder, arguments, sentence, monkeypatch):
    monkeypatch.chdir(folder)
    result = run("fit", "songs.csv", *arguments)
    assert result.exit_code == 1
    assert sentence in " ".join(result.stderr.split())


def test_cross_validation_of_comparisons_is_the_share_that_holds(folder, points):
    triplets = Triplets.from_file(folder / "three.csv", 60)
    options = {"by": "pair", "cv": 3, "random_state": 0, "return_indices": True}
    found = cross_validate_pairs(LSML(), points, triplets, **options)
    assert found["test_score"].mean() > 0.85
    by_hand = []
    for train, test in zip(*found["indices"].values(), strict=True):
        metric, rest = LSML().fit(points, triplets=triplets.take(train)), triplets.take(test)
        near, far = (metric.pair_distance(rows, points) for rows in (rest.near, rest.far))
        by_hand.append(np.mean(near < far))
    np.testing.assert_allclose(found["test_score"], by_hand)


def test_other_scores_have_no_meaning_for_comparisons(folder, points):
    four = Quadruplets.from_file(folder / "four.csv", 60)
    with pytest.raises(ValueError, match="expected 'accuracy'"):
        cross_validate_pairs(LSML(), points, four, scoring="f1", by="pair", error_score="raise")
    by_point = cross_validate_pairs(LSML(), points, four, scoring="accuracy", cv=2, random_state=0)
    assert np.all(by_point["test_score"] > 0.5)
