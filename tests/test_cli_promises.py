"""What fit and evaluate promise: which rows are learned from, judged, shown; how they end."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import DNE, NCA, MetricClassifier, cli, load
from kernelmetric.cli import _application, _fit
from kernelmetric.cli._options import Wanted, metric_name
from kernelmetric.cli._study import MOST_CLASSES_FOR_SVM, open_study
from kernelmetric.cli._talk import Talk
from kernelmetric.evaluation import Trial, holdout, run_trials
from kernelmetric.tables import features_of

pytestmark = pytest.mark.usefixtures("one_alternative")
FAST = ("--learner", "dne", "--kernel", "none", "--components", "2")
OPTIONS = {"pairs_file": None, "learner": "dne", "kernel": "none", "components": 2}
OPTIONS |= {"use": (), "ignore": (), "seed": 0}


@pytest.fixture
def table(tmp_path):
    """Classes that overlap so much that rows learned from are judged better than others.

    Some rows, the first among them, have no label, so that numbers of rows in the file and
    numbers of rows learned from differ.
    """
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(90, 5), columns=list("abcde"))
    frame["kind"] = np.array(["apple", "pear", "quince"])[np.arange(90) % 3]
    frame["a"] += 0.7 * (np.arange(90) % 3)
    frame.loc[[0, 1, 2, 40, 41], "kind"] = None
    frame["name"] = [f"tree of row {i}" for i in range(90)]
    path = tmp_path / "trees.csv"
    frame.to_csv(path, index=False)
    return path


def standardized(train, *others):
    mean, scale = train.mean(axis=0), train.std(axis=0)
    return [(part - mean) / scale for part in (train, *others)]


def accuracy_by_hand(X, y, train, test, seed=0):
    """Of the learned metric and of the Euclidean one, without any of the library's pipelines."""
    X_train, X_test = standardized(X[train], X[test])
    learned = MetricClassifier(DNE(2), random_state=seed)
    found = [model.fit(X_train, y[train]) for model in (learned, KNeighborsClassifier(3))]
    return [np.mean(model.predict(X_test) == y[test]) for model in found]


def labelled(path):
    frame = pd.read_csv(path)
    rows = np.flatnonzero(frame["kind"].notna())
    return frame[list("abcde")].to_numpy()[rows], frame["kind"].to_numpy().astype(str)[rows], rows


# --- which rows -----------------------------------------------------------------------------------


class Watched(KNeighborsClassifier):
    """Notes the rows it learns from and those it is judged on."""

    seen = []  # noqa: RUF012 (shared by the copies that run_trials makes)

    def fit(self, X, y):
        self.seen.append(("fit", X[:, 0].tolist(), list(y)))
        return super().fit(X, y)

    def predict(self, X):
        self.seen.append(("predict", X[:, 0].tolist()))
        return super().predict(X)


def test_a_trial_learns_from_training_rows_and_is_judged_on_the_others():
    X = np.arange(40.0)[:, None]
    y = np.random.RandomState(0).randint(2, size=40)
    splits = [holdout(y, random_state=seed) for seed in range(2)]
    Watched.seen.clear()
    trials = list(run_trials({"watched": Watched(1)}, X, y, splits))
    expected = []
    for train, test in splits:
        expected.append(("fit", train.tolist(), y[train].tolist()))
        expected.append(("predict", test.tolist()))
    assert Watched.seen == expected
    for trial, (train, test) in zip(trials, splits, strict=True):
        knn = KNeighborsClassifier(1).fit(X[train], y[train])
        assert trial.accuracy == knn.score(X[test], y[test]) < 1


def test_fit_judges_on_the_rows_it_holds_out(run, table):
    printed = json.loads(run("fit", table, "--label", "kind", *FAST, "--json").stdout)
    X, y, _ = labelled(table)
    train, test = holdout(y, 0.25, 0)
    assert not set(train) & set(test)
    learned, euclidean = accuracy_by_hand(X, y, train, test)
    assert printed["scores"]["DNE"] == pytest.approx([learned])
    assert printed["scores"]["Euclidean"] == pytest.approx([euclidean])
    assert learned < accuracy_by_hand(X, y, train, train)[0]  # or the test could not tell


@pytest.mark.slow
def test_evaluate_judges_every_row_once_and_never_one_it_learned_from(run, table):
    printed = json.loads(run("evaluate", table, "--label", "kind", *FAST, "--json").stdout)
    X, y, _ = labelled(table)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    by_hand = np.array([accuracy_by_hand(X, y, *fold) for fold in folds])
    assert printed["scores"]["DNE"] == pytest.approx(by_hand[:, 0].tolist())
    assert printed["scores"]["Euclidean"] == pytest.approx(by_hand[:, 1].tolist())


def test_evaluate_on_another_table_learns_from_the_first_alone(run, table, tmp_path):
    frame = pd.read_csv(table)
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    frame[:60].to_csv(one, index=False)
    frame[60:].to_csv(other, index=False)
    arguments = ("--label", "kind", *FAST, "--test", other, "--json")
    printed = json.loads(run("evaluate", one, *arguments).stdout)
    X, y, rows = labelled(table)
    parts = np.flatnonzero(rows < 60), np.flatnonzero(rows >= 60)
    assert printed["scores"]["DNE"] == pytest.approx([accuracy_by_hand(X, y, *parts)[0]])
    swapped = json.loads(run("evaluate", other, *arguments[:-2], one, "--json").stdout)
    assert swapped["scores"]["DNE"] == pytest.approx([accuracy_by_hand(X, y, *parts[::-1])[0]])


@pytest.mark.slow
def test_the_model_that_is_saved_has_learned_from_all_rows(run, table, tmp_path):
    out = tmp_path / "model.km"
    assert run("fit", table, "--label", "kind", *FAST, "--out", out).exit_code == 0
    X, y, _ = labelled(table)
    by_hand = DNE(2).fit(standardized(X)[0], y)
    model = load(out)
    D = by_hand.pairwise_distances(standardized(X)[0])
    rows = features_of(pd.read_csv(table).dropna(), model["table"])
    Z = model["predictor"].metric_.transform(model["table"].transform(rows))
    found = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    np.testing.assert_allclose(found, D, atol=1e-8 * D.max())
    train, _ = holdout(y, 0.25, 0)
    held = standardized(X[train], X)
    other = DNE(2).fit(held[0], y[train]).pairwise_distances(held[1])
    assert np.abs(other - D).max() > 1e-2 * D.max()  # or the test could not tell


@pytest.mark.slow
def test_the_page_shows_the_model_that_has_not_seen_the_held_out_rows(run, table, tmp_path):
    page = tmp_path / "page.html"
    out = ("--out", tmp_path / "model.km", "--report", page, "--json")
    printed = json.loads(run("fit", table, "--label", "kind", *FAST, *out).stdout)
    data = data_of(page)
    held = np.array(data["points"]["codes"])[data["nTrain"] :]
    said = np.array(data["points"]["after"]["said"])
    assert np.mean(said == held) == pytest.approx(printed["scores"]["DNE"][0])


def data_of(page):
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


@pytest.mark.slow
def test_rows_on_the_page_have_the_numbers_they_have_in_the_file(run, table, tmp_path):
    page = tmp_path / "page.html"
    assert run("fit", table, "--label", "kind", *FAST, "--report", page).exit_code == 0
    frame, data = pd.read_csv(table), data_of(page)
    rows = data["points"]["rows"]
    assert sorted(rows) == np.flatnonzero(frame["kind"].notna()).tolist()
    named = data["columns"].index("name")
    assert [cells[named] for cells in data["cells"]] == [f"tree of row {row}" for row in rows]
    kinds = [data["classes"][code] for code in data["points"]["codes"]]
    assert kinds == frame["kind"][rows].tolist()
    _, y, numbers = labelled(table)
    train, test = holdout(y, 0.25, 0)
    assert rows == [*numbers[train], *numbers[test]]
    listed = re.findall(r"<td>row (\d+)</td><td>(\w+)</td>", page.read_text(encoding="utf-8"))
    assert listed
    for row, kind in listed:
        assert int(row) in numbers[test]
        assert frame["kind"][int(row)] == kind


def test_folds_are_even_in_their_classes_and_hold_every_row_once(table):
    study = open_study(table, label="kind", **OPTIONS)
    folds = study.folds(4)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(85))
    for train, test in folds:
        assert not set(train) & set(test)
        counts = np.unique(study.y[test], return_counts=True)[1]
        assert np.ptp(counts) <= 1


def test_hundreds_of_classes_are_not_compared_with_an_svm(tmp_path, untuned):
    for n_classes in (MOST_CLASSES_FOR_SVM, MOST_CLASSES_FOR_SVM + 1):
        frame = pd.DataFrame(np.random.RandomState(0).randn(2 * n_classes, 2), columns=["a", "b"])
        frame["who"] = [f"p{i // 2}" for i in range(2 * n_classes)]
        path = tmp_path / "people.csv"
        frame.to_csv(path, index=False)
        study = open_study(path, label="who", **OPTIONS)
        many = n_classes > MOST_CLASSES_FOR_SVM
        assert ("RBF-SVM, tuned" in study.methods) is not many
        assert "k-NN, tuned" in study.methods
        assert ("More than 100 classes: no tuned SVM beside." in study.notes) is many


# --- interruptions --------------------------------------------------------------------------------


@pytest.fixture
def ctrl_c():
    """Sends the signal of Ctrl-C to this process, which may be started so as to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda *arguments, **options: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "where",
    [
        "kernelmetric.DNE.fit",
        "kernelmetric.cli._fit.open_study",
        "kernelmetric.cli._fit.holdout",
        pytest.param("kernelmetric.cli._fit.report_page", marks=pytest.mark.slow),
        "kernelmetric.cli._fit.save",
        pytest.param("kernelmetric.cli._fit.write_atomically", marks=pytest.mark.slow),
        pytest.param("kernelmetric.cli._fit._show", marks=pytest.mark.slow),
        "kernelmetric.cli._fit._farewell",
    ],
)
def test_ctrl_c_at_any_time_of_a_fit_is_one_sentence(
    run, table, tmp_path, monkeypatch, ctrl_c, where
):
    out, page = tmp_path / "model.km", tmp_path / "page.html"
    page.write_text("old", encoding="utf-8")
    monkeypatch.setattr(where, ctrl_c)
    result = run("fit", table, "--label", "kind", *FAST, "--out", out, "--report", page)
    assert result.exit_code == 130
    assert result.stderr.strip() == "Interrupted: no file was left half written."
    assert {p.name for p in tmp_path.iterdir()} <= {"trees.csv", "model.km", "page.html"}
    written = where.endswith("_farewell")
    assert page.read_text(encoding="utf-8").startswith("<!doctype" if written else "old")
    if out.exists():
        assert load(out) is not None


def test_ctrl_c_while_a_file_is_written_leaves_the_old_one(
    run, table, tmp_path, monkeypatch, ctrl_c
):
    out = tmp_path / "model.km"
    out.write_text("old", encoding="utf-8")
    monkeypatch.setattr("pathlib.Path.replace", ctrl_c)  # all was written but for the name
    result = run("fit", table, "--label", "kind", *FAST, "--out", out)
    assert result.exit_code == 130
    assert out.read_text(encoding="utf-8") == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.km", "trees.csv"]


@pytest.mark.parametrize("command", ["evaluate", "transform", "neighbors", "check"])
def test_ctrl_c_ends_every_command_alike(run, table, tmp_path, monkeypatch, ctrl_c, command):
    arguments = {
        "evaluate": (table, "--label", "kind"),
        "transform": (table, table),
        "neighbors": (table, table),
        "check": ("sklearn.cluster.KMeans",),
    }[command]
    module = sys.modules[f"kernelmetric.cli._{command}"]
    first = {"evaluate": "open_study", "check": "_report"}
    monkeypatch.setattr(module, first.get(command, "load_model"), ctrl_c)
    result = run(command, *arguments)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.strip() == "Interrupted: no file was left half written."


def test_ctrl_c_before_the_commands_are_made_ends_the_program(monkeypatch, ctrl_c):
    monkeypatch.setattr(_application, "build_application", ctrl_c)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 130


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(run, table, tmp_path, monkeypatch):
    out = tmp_path / "model.km"
    assert run("fit", table, "--label", "kind", *FAST, "--out", out).exit_code == 0

    def broken(*arguments):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("kernelmetric.cli._transform._print", broken)
    result = run("transform", out, table)
    assert (result.exit_code, result.stderr) == (1, "")


@pytest.mark.slow
def test_the_page_is_made_before_the_model_is_written(run, table, tmp_path, monkeypatch):
    """A page that is refused must not leave a model without its page."""

    def refuse(*arguments, **options):
        raise ValueError("no page")

    monkeypatch.setattr(_fit, "report_page", refuse)
    out = ("--out", tmp_path / "model.km", "--report", tmp_path / "page.html")
    result = run("fit", table, "--label", "kind", *FAST, *out)
    assert (result.exit_code, "no page" in result.stderr) == (1, True)
    assert [p.name for p in tmp_path.iterdir()] == ["trees.csv"]


# --- two at once ----------------------------------------------------------------------------------


@pytest.mark.slow  # test_files.py has two processes that write one file
def test_two_processes_on_one_folder_leave_whole_files(table, tmp_path):
    """Both fit to the same model and page."""
    out, page = tmp_path / "model.km", tmp_path / "page.html"
    fit = ["fit", table, "--label", "kind", *FAST, "--seed", "{seed}", "--out", out]
    fit += ["--report", page, "--quiet", "--kernel", "none"]
    code = (
        "import sys, json\n"
        "sys.modules['matplotlib'] = None  # takes long, and pictures are files like others\n"
        "from kernelmetric.cli import _study, build_application\n"
        "original = _study.baselines\n"
        "_study.baselines = lambda y, **k: dict.fromkeys(\n"
        "    original(y, **k), original(y, **k)['Euclidean'])\n"
        "application = build_application()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "application(json.loads(sys.argv[1]))\n"
    )
    processes = []
    for seed in ("1", "2"):
        line = [str(a).format(seed=seed) for a in fit]
        command = [sys.executable, "-c", code, json.dumps(line)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        processes.append(subprocess.Popen(command, text=True, **pipes))
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # both at once, however long the imports took
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
    model = load(out)
    # Of five columns of numbers: each of them, and whether it is missing.
    assert model["predictor"].metric_.components_.shape == (2, 10)
    assert len(data_of(page)["points"]["codes"]) == 85
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"trees.csv", "model.km", "page.html"}


# --- options --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_as_many_rows_are_held_out_as_was_asked_for(run, table):
    result = run("fit", table, "--label", "kind", *FAST, "--test-size", 0.4)
    assert "Accuracy on 34 rows held out" in result.stdout
    X, y, _ = labelled(table)
    arguments = ("fit", table, "--label", "kind", *FAST, "--test-size", 0.4, "--seed", 3, "--json")
    printed = json.loads(run(*arguments).stdout)
    by_hand = accuracy_by_hand(X, y, *holdout(y, 0.4, 3), seed=3)
    assert printed["scores"]["DNE"] == pytest.approx([by_hand[0]])


def test_the_metric_is_the_one_that_the_options_describe():
    metric = Wanted(learner="nca", kernel="rbf", components=2, seed=7).metric()
    assert (metric.kernel, metric.random_state) == ("rbf", 7)
    assert (metric.learner.n_components, metric.learner.random_state) == (2, 7)
    linear = Wanted(learner="nca", kernel="none", seed=7).metric()
    assert (type(linear), linear.n_components, linear.random_state) == (NCA, None, 7)
    assert metric_name(metric) == "Kernelized NCA"
    assert metric_name(linear) == "NCA"
    with pytest.raises(ValueError, match="Got --components, but itml has no such choice"):
        Wanted(learner="itml", kernel="none", components=2).metric()


def test_the_best_score_is_the_first_and_in_bold(table, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    study = open_study(table, label="kind", **OPTIONS)
    trials = [
        Trial("Euclidean", 0, 0.5, 0.0, "", None, None),
        Trial("DNE", 0, 0.75, 0.0, "a remark", None, None),
    ]
    found = _fit.Found(trials, test=[0, 1])
    _fit._show(Talk(quiet=False, as_json=False), study, found, _fit._judged(study, found))
    lines = capsys.readouterr().out.splitlines()
    assert "Accuracy on 2 rows held out:" in lines[0]
    assert "\x1b[1m  DNE         75.0 %  (the learned metric)" in lines[1]
    assert lines[2] == "  Euclidean   50.0 %"
    assert "DNE: a remark" in lines[3]
