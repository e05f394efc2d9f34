"""What to label next: the choice of pairs, sessions of questions, and the command that asks."""

import threading
from importlib.metadata import version

import numpy as np
import pytest

pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

from kernelmetric import PairVerifier, cli
from kernelmetric.cli._records import AnswerFile, Side
from kernelmetric.datasets import make_records
from kernelmetric.evaluation import _to_label, pairs_to_label
from kernelmetric.learners import IdealizedKernel
from kernelmetric.linkage import LabellingSession
from kernelmetric.report import plot_learning_curve

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `linkage`")


# --- the choice ----------------------------------------------------------------------------------


def test_pairs_in_doubt_are_chosen_and_known_ones_are_not():
    p = np.concatenate([np.full(500, 1e-4), np.full(20, 0.5), np.full(500, 1 - 1e-4)])
    chosen = pairs_to_label(p, n_pairs=15, known=np.arange(500, 505), random_state=0)
    assert np.all((chosen >= 505) & (chosen < 520))
    assert len(np.unique(chosen)) == 15


def test_the_threshold_says_where_the_doubt_is():
    p = np.concatenate([np.full(50, 0.5), np.full(50, 0.99)])
    chosen = pairs_to_label(p, n_pairs=20, threshold=0.99, random_state=0)
    assert np.mean(chosen >= 50) > 0.9


def test_pairs_like_a_known_one_are_passed_over():
    rng = np.random.RandomState(0)
    P = np.repeat(np.eye(4), 50, axis=0) + 1e-3 * rng.standard_normal((200, 4))
    chosen = pairs_to_label(np.full(200, 0.5), P, 3, known=[0], random_state=0)
    assert sorted(chosen // 50) == [1, 2, 3]


def test_where_fewer_are_left_all_of_these_are_chosen():
    P = np.zeros((4, 2))  # all alike
    chosen = pairs_to_label([0.5, 0.0, 1.0, 0.2], P, 10, known=[1], random_state=0)
    assert sorted(chosen) == [0, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 2.0],), "one number from 0 to 1"),
        (([0.5, -1e-9],), "one number from 0 to 1"),
        (([0.5, np.nan],), "one number from 0 to 1"),
        (([[0.5]],), r"shape \(1, 1\)"),
        (([0.5], [[np.nan]]), "finite"),
        (([0.5, 0.5], [[1.0]]), "expected 2 rows"),
        (([0.5], [[1.0], [2.0]]), "expected 1 rows"),
        (([0.5], [1.0]), r"points of shape \(1,\)"),
        (([0.5], None, 0), "n_pairs=0"),
        (([0.5], None, True), "n_pairs=True"),
        (([0.5], None, 1.0), "n_pairs=1.0"),
    ],
    ids=str,
)
def test_bad_candidates_are_refused_in_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        pairs_to_label(*arguments)
    with pytest.raises(ValueError, match="threshold=1"):
        pairs_to_label([0.5], threshold=1)


class Chances:
    """A source of chances that remembers the probabilities, and takes the most likely ones."""

    def __init__(self, monkeypatch):
        self.seen = []
        monkeypatch.setattr(_to_label, "check_random_state", lambda random_state: self)

    def choice(self, what, size=None, replace=True, p=None):
        self.seen.append(np.array(p))
        order = np.argsort(-p, kind="stable")
        what = np.arange(what) if isinstance(what, int) else what
        return what[order[0]] if size is None else what[order[:size]]


def test_chances_are_those_of_the_formula(monkeypatch):
    chances = Chances(monkeypatch)
    p, t = np.array([0.2, 0.5, 0.0, 0.9]), 0.7
    P = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    odds = np.clip(p, 1e-12, 1 - 1e-12) / (1 - np.clip(p, 1e-12, 1 - 1e-12)) * (1 - t) / t
    q = odds / (1 + odds)
    doubt = np.maximum((4 * q * (1 - q)) ** 2, 1e-9)  # what is sure may be drawn, too
    pairs_to_label(p, n_pairs=2, threshold=t)
    np.testing.assert_allclose(chances.seen.pop(), doubt / doubt.sum(), rtol=1e-6)
    first, second = pairs_to_label(p, P, 2, known=[0], threshold=t)
    s = 0.25 * np.sum(np.var(P, axis=0))
    away = np.sum((P - P[0]) ** 2, axis=1)
    for found, before in ((chances.seen[0], []), (chances.seen[1], [first])):
        away = np.min([away, *(np.sum((P - P[i]) ** 2, axis=1) for i in before)], axis=0)
        expected = doubt * (1 - np.exp(-away / s))
        expected[[0, *before]] = 0.0
        np.testing.assert_allclose(found, expected[1:] / expected.sum(), rtol=1e-6, atol=1e-15)
    assert first != second


def test_of_many_candidates_five_thousand_are_compared(monkeypatch):
    chances = Chances(monkeypatch)
    p = np.linspace(0.1, 0.5, 5001)
    assert len(pairs_to_label(p, n_pairs=3)) == 3
    assert [len(seen) for seen in chances.seen] == [5001, 5000]
    chances.seen.clear()
    assert len(pairs_to_label(p[1:], n_pairs=3)) == 3
    assert [len(seen) for seen in chances.seen] == [5000]
    assert len(pairs_to_label(np.tile(p, 2), n_pairs=6000)) == 6000


@pytest.mark.slow
def test_it_serves_any_learner_of_pairs_of_points():
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    X = np.column_stack([4 * y + 0.3 * rng.standard_normal(60), rng.standard_normal((60, 2))])
    i, j = np.triu_indices(60, 1)
    pairs, same = np.column_stack([i, j]), y[i] == y[j]
    known = rng.permutation(len(pairs))[:40]
    for _ in range(2):
        metric = IdealizedKernel("linear").fit(
            X, similar=pairs[known][same[known]], dissimilar=pairs[known][~same[known]]
        )
        verifier = PairVerifier(metric).calibrate(pairs[known], X, same[known])
        p = verifier.predict_proba_pairs(pairs, X)[:, 1]
        new = pairs_to_label(p, np.abs(X[i] - X[j]), 20, known=known, random_state=0)
        assert np.abs(p[new] - 0.5).mean() < np.abs(p - 0.5).mean()
        known = np.concatenate([known, new])
    assert len(np.unique(known)) == 80


# --- sessions ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def register():
    pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")
    records, person = make_records(100, n_typos=2.0, random_state=3)
    return pd.DataFrame(records), person


@pytest.mark.slow
def test_a_session_learns_more_from_its_questions_than_from_chance(register):
    table, person = register

    def f1(linker):
        pairs = linker.links().pairs
        hits = np.sum(person[pairs[:, 0]] == person[pairs[:, 1]])
        return 2 * hits / (len(pairs) + 300)

    asked = LabellingSession(table, random_state=0)
    pairs = asked.linker().candidates_
    for _ in range(60):
        i, j = asked.question()
        asked.answer(i, j, person[i] == person[j])
    drawn = LabellingSession(table)
    for i, j in pairs[np.random.RandomState(0).permutation(len(pairs))[:60]]:
        drawn.answer(i, j, person[i] == person[j])
    assert f1(asked.linker()) > f1(drawn.linker())
    assert [point.n_answers for point in asked.curve] == list(range(0, 60, 5))


@pytest.mark.slow
def test_undo_takes_back_and_asks_again(register):
    session = LabellingSession(register[0])
    assert session.undo() is None
    first = session.question()
    assert session.question() == first
    session.answer(*first, True)
    second = session.question()
    assert second != first
    assert session.undo() == first
    assert session.question() == first
    session.answer(*first, None)  # not asked again, and nothing is learned
    assert session.question() == second
    assert session.linker().labelled_pairs_.shape == (0, 2)
    with pytest.raises(ValueError, match="second answer"):
        session.answer(*first, True)
    with pytest.raises(ValueError, match="different records"):
        session.answer(3, 3, True)


def test_another_answer_in_place_of_the_last_is_learned(register):
    table, person = register
    seen = []
    for last in (True, False):
        session = LabellingSession(table, random_state=0)
        for k in range(5):
            pair = session.question()
            session.answer(*pair, person[pair[0]] == person[pair[1]] if k < 4 else True)
        session.question()
        if not last:
            session.undo()
            session.answer(*pair, False)
            for place in session._queue[1:]:  # the questions that were chosen before
                session.answer(*session._named(place), None)
        session.question()
        seen.append(session.probability(*pair))
    assert seen[1] < seen[0]


def test_when_all_is_answered_there_is_no_question():
    pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")
    people = [{"name": name} for name in ("Anna Berg", "Anna Burg", "Anne Berg", "Anna Bergh")]
    session = LabellingSession(people)
    asked = 0
    while (pair := session.question()) is not None:
        session.answer(*pair, True)
        asked += 1
    assert asked == session.n_candidates == 6


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def label(tmp_path):
    """Run the command on two tables with what somebody types, and see what is saved."""
    pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    testing = pytest.importorskip("click.testing", reason="click comes with the extra `cli`")
    records, person = make_records(40, n_copies=2, random_state=2)
    table = pd.DataFrame(records)
    table.insert(0, "id", [f"r{k}" for k in range(len(table))])
    first = np.unique(person, return_index=True)[1]
    table.iloc[first].to_csv(tmp_path / "a.csv", index=False)
    table.drop(first).to_csv(tmp_path / "b.csv", index=False)

    def call(typed, *options, name="label"):
        files = [tmp_path / "a.csv", tmp_path / "b.csv", *options]
        runner = testing.CliRunner()
        return runner.invoke(cli.build_application(), [name, *map(str, files)], input=typed)

    call.folder = tmp_path
    return call


def saved(path):
    return pd.read_csv(path)[["left", "right", "answer"]].to_numpy().tolist()


def test_answers_are_saved_one_by_one_and_a_session_goes_on(label):
    out = label.folder / "answers.csv"
    said = label("y\nn\nu\nq\n", "--out", out, "--id", "id")
    assert said.exit_code == 0, said.output
    assert [row[2] for row in saved(out)] == ["yes", "no", "unsure"]
    assert "3 answers (1 yes, 1 no, 1 unsure)" in said.output
    assert "F1" in said.output
    before = saved(out)
    # The input ends without q, except for the runner of click 8.1: it reads empty lines then.
    said = label("y\n" if version("click") >= "8.2" else "y\nq\n", "--out", out, "--id", "id")
    assert said.exit_code == 0, said.output
    assert "Read 3 answers" in said.output
    assert saved(out)[:3] == before
    assert len({tuple(row[:2]) for row in saved(out)}) == 4


@pytest.mark.slow
def test_back_takes_the_last_answer_back_also_that_of_an_earlier_session(label):
    out = label.folder / "answers.csv"
    label("y\ny\nq\n", "--out", out)
    kept = saved(out)
    said = label("b\nn\nq\n", "--out", out)
    assert said.exit_code == 0, said.output
    assert saved(out) == [kept[0], [*kept[1][:2], "no"]]
    said = label("b\nb\nb\nq\n", "--out", out)
    assert "no answer to take back" in said.output
    assert saved(out) == []
    assert "Read" not in label("q\n", "--out", out).output


@pytest.mark.slow
def test_a_gap_is_shown_as_nothing_whatever_the_table_says_for_it(label):
    pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `parquet`")
    out, typed = label.folder / "answers.csv", label.folder / "a.parquet"
    frame = pd.read_csv(label.folder / "a.csv", dtype="string")  # gaps are NA, neither None nor NaN
    frame["born"] = frame["born"].where(frame.index < 0)
    frame.to_parquet(typed)
    runner = pytest.importorskip("click.testing").CliRunner()
    files = [typed, label.folder / "b.csv", "--out", out]
    said = runner.invoke(cli.build_application(), ["label", *map(str, files)], input="y\nq\n")
    assert said.exit_code == 0, said.output
    assert "<NA>" not in said.output
    assert len(saved(out)) == 1


@pytest.mark.parametrize(("option", "sign"), [("--pairs", "1"), ("--answers", "yes")])
def test_an_id_that_no_record_has_is_refused_by_its_name(label, option, sign):
    known, out = label.folder / "known.csv", label.folder / "links.csv"
    left = pd.read_csv(label.folder / "a.csv")["id"][0]
    known.write_text(f"left,right,answer\n{left},nobody,{sign}\n", encoding="utf-8")
    said = label("", "--id", "id", option, known, "--out", out, name="link")
    assert said.exit_code == 1
    assert "Got the id 'nobody'" in " ".join(said.output.split())
    assert not out.exists()


def store_of(path, n=40, *, ids=True, two=True):
    """A file of answers as a session has it."""
    frame = pd.DataFrame({"name": [f"Ann {k}" for k in range(n)]})
    names = [f"r{k}" for k in range(n)] if ids else None
    left = Side(frame, names)
    return AnswerFile(path, left, Side(frame, names) if two else left)


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "rows"])
def test_two_sessions_on_one_file_keep_each_others_answers(tmp_path, ids):
    out = tmp_path / "answers.csv"
    one, other = (store_of(out, ids=ids) for _ in range(2))
    mine, yours = [(0, 0, True)], [(1, 1, False)]
    assert one.save(mine) == []
    assert "1 answer that others" in other.save(yours)[0]
    assert yours == [(0, 0, True), (1, 1, False)]
    mine.append((2, 2, None))
    assert "1 answer that others" in one.save(mine)[0]
    mine.pop()  # taken back, and the other session does not bring it again
    one.save(mine)
    yours.append((3, 3, True))
    other.save(yours)
    assert sorted(store_of(out, ids=ids).read()[0]) == [(0, 0, True), (1, 1, False), (3, 3, True)]
    mine.append((3, 3, False))  # not alike
    assert "theirs stays" in one.save(mine)[-1]
    assert (3, 3, True) in mine
    assert (3, 3, False) not in mine


def test_sessions_that_save_at_once_lose_nothing(tmp_path):
    pytest.importorskip("fcntl", reason="Windows has no such locks")
    out = tmp_path / "answers.csv"

    def work(first):
        store, answers = store_of(out), []
        for k in range(first, 30, 2):
            answers.append((k, k, True))
            store.save(answers)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store_of(out).read()[0]) == [(k, k, True) for k in range(30)]


@pytest.mark.slow
def test_answers_move_with_the_rows_of_a_table_in_another_order(label):
    out = label.folder / "answers.csv"
    label("y\nn\nq\n", "--out", out)
    before = saved(out)
    table = pd.read_csv(label.folder / "a.csv")
    table.iloc[::-1].to_csv(label.folder / "a.csv", index=False)
    said = label("u\nq\n", "--out", out)
    assert said.exit_code == 0, said.output
    assert "The left table has another order" in said.output
    assert saved(out)[:2] == [[len(table) - 1 - i, j, word] for i, j, word in before]
    said = label("", "--answers", out, "--out", label.folder / "links.csv", name="link")
    assert "2 pairs known" in said.output


@pytest.mark.slow
def test_answers_about_records_that_are_gone_are_refused(label):
    out = label.folder / "answers.csv"
    label("y\nn\nq\n", "--out", out)
    text = out.read_text("utf-8")
    said = label("y\n", "--out", out, "--id", "id")
    assert "written without it" in said.output
    table = pd.read_csv(label.folder / "a.csv")
    table.loc[saved(out)[0][0], "last"] = "Another"
    table.to_csv(label.folder / "a.csv", index=False)
    for options in (["--out", out], ["--answers", out, "--out", label.folder / "links.csv"]):
        said = label("y\n", *options, name="link" if len(options) > 2 else "label")
        assert said.exit_code == 1
        assert "none in the table is like it" in said.output
    assert out.read_text("utf-8") == text


def test_answers_about_one_of_two_equal_records_that_moved_are_refused(tmp_path):
    out = tmp_path / "answers.csv"
    store = store_of(out, ids=False, two=False)
    store.save([(0, 1, True)])
    twice = pd.DataFrame({"name": ["Eve", "Ann 1", "Ann 0", "Ann 0"]})
    with pytest.raises(ValueError, match=r"row 0, .* more than one in the table"):
        AnswerFile(out, Side(twice), Side(twice)).read()


def test_a_row_that_is_no_number_is_found_by_what_it_held(tmp_path):
    out = tmp_path / "answers.csv"
    store = store_of(out, ids=False)
    store.save([(1, 2, True)])
    out.write_text(out.read_text("utf-8").replace("1,2,yes", "one,2000,yes"), encoding="utf-8")
    answers, notes = store.read()
    assert answers == [(1, 2, True)]
    assert len(notes) == 2


def test_a_word_that_is_no_answer_is_asked_again_and_a_goal_ends(label):
    out = label.folder / "answers.csv"
    said = label("maybe\nYES\nno\ny\ny\n", "--out", out, "--goal", 2)
    assert "Got 'maybe', but expected y, n, u, b or q" in said.output
    assert [row[2] for row in saved(out)] == ["yes", "no"]


@pytest.mark.slow
def test_the_two_records_stand_side_by_side(label):
    out = label.folder / "answers.csv"
    said = label("y\nq\n", "--out", out, "--id", "id")
    left, right, _ = saved(out)[0]
    heads = [line.split() for line in said.output.splitlines() if line.split()[:1] == ["field"]]
    assert heads[0] == ["field", left, right]
    assert sum(line.split()[:1] == ["born"] for line in said.output.splitlines()) == 2


@pytest.mark.slow
def test_the_learning_curve_is_drawn(label):
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `plot`")
    picture = label.folder / "curve.png"
    said = label("y\n" * 6 + "q\n", "--out", label.folder / "answers.csv", "--plot", picture)
    assert said.exit_code == 0, said.output
    assert picture.read_bytes()[1:4] == b"PNG"


@pytest.mark.slow
def test_links_learn_from_the_answers(label):
    out = label.folder / "answers.csv"
    label("u\nq\n", "--out", out, "--id", "id")
    options = ("--id", "id", "--answers", out, "--out", label.folder / "links.csv")
    said = label("", *options, name="link")
    assert said.exit_code == 0, said.output
    assert "no pairs known" in said.output
    label("y\nn\nq\n", "--out", out, "--id", "id")
    assert "2 pairs known" in label("", *options, name="link").output
    said = label("", *options, "--pairs", out, name="link")
    assert "--answers beside --pairs" in said.output


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n", [], "expected left, right, answer"),
        ("left,right,answer\n{},{},perhaps\n", ["--id", "id"], "Got the answer 'perhaps'"),
        ("left,right,answer\n1,2,yes\n", [], "which was written with it"),
        ("left,right,answer\n{},{},yes\n{},{},no\n", ["--id", "id"], "Got a second answer for"),
    ],
    ids=["columns", "answer", "id", "twice"],
)
def test_another_file_is_not_overwritten(label, text, options, message):
    out = label.folder / "answers.csv"
    ids = [pd.read_csv(label.folder / name)["id"][0] for name in ("a.csv", "b.csv")]
    text = text.format(*ids, *ids)
    out.write_text(text, encoding="utf-8")
    said = label("y\n", "--out", out, *options)
    assert said.exit_code == 1
    assert message in said.output
    assert out.read_text("utf-8") == text


@pytest.mark.slow
def test_a_learning_curve_is_the_mean_of_its_runs():
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `plot`")
    ax = plot_learning_curve([1, 2], {"a": [[0.1, 0.2], [0.3, 0.6]], "b": [0.5, 0.5]}, ylabel="F1")
    assert ax.lines[0].get_ydata() == pytest.approx([0.2, 0.4])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(ValueError, match="for 'a'"):
        plot_learning_curve([1, 2, 3], {"a": [0.1, 0.2]})
