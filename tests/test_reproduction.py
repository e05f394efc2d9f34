"""Tables of the papers as data: what is printed, what is kept, what is refused, what is shown."""

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import DNE, LDA, LMNN, NCA, RBF, IdealizedKernel, Kernelized
from kernelmetric.evaluation import measured
from kernelmetric.kernels import Delta, rbf_widths
from kernelmetric.report import Cell, Summary, png_bytes
from reproduction import cells as cells_module
from reproduction import documentation
from reproduction.beyond import TunedNeighbors, settled
from reproduction.cells import CellFile, CellFileError
from reproduction.classifiers import TunedSVM
from reproduction.comparison import (
    Compared,
    Reproduction,
    compare,
    paired_tests,
    verdict,
    win_draw_loss,
)
from reproduction.figures import FIGURES
from reproduction.kernelization import SearchedKernel, distinct_kernels
from reproduction.pages import (
    comparison_grid,
    ranking_grid,
    reproduction_csv,
    reproduction_html,
    reproduction_markdown,
    summary_line,
)
from reproduction.papers import PAPERS, Printed, read_printed
from reproduction.pictures import plot_agreement
from reproduction.problems import Problem
from reproduction.ranking import plot_ranking, rank_methods
from reproduction.results import reproduced, result_pictures, write_pages
from reproduction.table import Method, MissingMethodError, Score, Smoke, Table, plan, run_table
from reproduction.tables import STUDIES, TABLES

ROOT = Path(__file__).parents[1]


def two_clouds(n, rng):
    y = rng.randint(2, size=n)
    return rng.standard_normal((n, 3)) + 3.0 * y[:, None], y


def neighbours(problem):
    return KNeighborsClassifier(1)


def make_table(**changes):
    table = Table(
        name="clouds",
        title="two clouds",
        problems=(Problem("clouds", 30, two_clouds, n_test=50),),
        methods=(
            Method("1-NN", "One neighbour.", neighbours),
            Method("3-NN", "Three neighbours.", lambda problem: KNeighborsClassifier(3)),
        ),
        n_splits=2,
        protocol=("Random splits.",),
        smoke=Smoke(("clouds",), n_train=10, n_test=10),
        against={"3-NN": "1-NN"},
    )
    return replace(table, **changes)


# --- what the papers print ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "kernel", "aligned"),
    [(1, (9, 1, 0), (8, 0, 2)), (2, (10, 0, 0), (9, 1, 0)), (3, (9, 1, 0), (7, 3, 0))],
)
def test_the_printed_means_of_000_give_the_printed_wins_and_losses(number, kernel, aligned):
    table = TABLES[f"000-table{number}"]
    values = {key: printed.value for key, printed in table.paper.items()}
    linear, searched, summed = (method.name for method in table.methods)
    assert len(values) == 30
    assert win_draw_loss(values, searched, linear) == kernel
    assert win_draw_loss(values, summed, linear) == aligned


@pytest.mark.parametrize("name", [name for name in TABLES if name != "beyond"])
def test_every_cell_of_a_paper_has_its_row_and_column(name):
    table = TABLES[name]
    rows, columns = {p.name for p in table.problems}, {m.name for m in table.methods}
    quoted = {"GWPC", "KTDA"} if name == "001-table1" else set()
    assert {dataset for dataset, _ in table.paper} == rows
    assert {method for _, method in table.paper} - quoted <= columns
    assert all(0 <= printed.value <= 1 for printed in table.paper.values())
    printed = {(d, m) for d in rows for m in columns if (d, m) in table.paper}
    assert not printed & table.left_out
    assert set(table.smoke.problems) <= rows


def test_errors_and_percents_become_accuracies():
    assert read_printed("004-table4", "error")["toy, linear", "idealized"].value == pytest.approx(
        1 - 0.0308
    )
    assert read_printed("001-table1", "percent")["wine", "TDL"] == pytest.approx((0.9309, 0.04))
    assert read_printed("no-such-table") == {}


# --- what is kept -------------------------------------------------------------------------------


def test_a_table_goes_on_where_it_stopped(tmp_path):
    table = make_table()
    first = list(run_table(replace(table, n_splits=1), tmp_path))
    rest = list(run_table(table, tmp_path))
    assert [(c.method, c.split) for c in first] == [("1-NN", 0), ("3-NN", 0)]
    assert {c.split for c in rest} == {1}
    assert table.file_in(tmp_path).read() == first + rest
    assert list(run_table(table, tmp_path)) == []
    assert min(c.megabytes for c in first) > 0


@pytest.mark.slow
def test_processes_share_the_cells_of_a_table(tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for folder, n_jobs in ((alone, 1), (shared, 2)):
        folder.mkdir()
        list(run_table(make_table(), folder, n_jobs=n_jobs))
    one, two = (
        {(c.method, c.split): c.accuracy for c in make_table().file_in(folder).read()}
        for folder in (alone, shared)
    )
    assert one == two


def test_half_a_line_counts_as_not_written_and_its_cell_is_run_again(tmp_path):
    table = make_table()
    cells = list(run_table(table, tmp_path))
    path = table.file_in(tmp_path).path
    content = path.read_bytes()
    path.write_bytes(content[:-20])  # as kill -9 would leave it
    assert table.file_in(tmp_path).read() == cells[:-1]
    again = list(run_table(table, tmp_path))
    assert [(c.method, c.split) for c in again] == [(cells[-1].method, cells[-1].split)]
    assert len(table.file_in(tmp_path).read()) == len(cells)


@pytest.mark.parametrize(
    "line", ["{broken", "[1, 2]", '{"dataset": "iris"}', '{"no": "cell"}'], ids=repr
)
def test_a_corrupt_file_is_refused_and_left_as_it_is(tmp_path, line):
    table = make_table()
    list(run_table(table, tmp_path))
    path = table.file_in(tmp_path).path
    with path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    before = path.read_bytes()
    number = before.count(b"\n")
    with pytest.raises(CellFileError, match=f"line {number} .* Nothing was changed"):
        list(run_table(replace(table, n_splits=3), tmp_path))
    assert path.read_bytes() == before


def test_results_of_another_protocol_are_refused_and_left_as_they_are(tmp_path):
    table = make_table()
    list(run_table(table, tmp_path))
    before = table.file_in(tmp_path).path.read_bytes()
    changed = make_table(protocol=("Random splits, features scaled.",))
    assert changed.fingerprint != table.fingerprint
    with pytest.raises(CellFileError, match=r"another protocol \(it differs in protocol\)"):
        list(run_table(changed, tmp_path))
    assert table.file_in(tmp_path).path.read_bytes() == before


def test_more_splits_and_the_smoke_version_are_no_other_protocol_of_the_same_file(tmp_path):
    table = make_table()
    assert replace(table, n_splits=9).fingerprint == table.fingerprint
    assert table.smoked().file_in(tmp_path).path != table.file_in(tmp_path).path
    assert table.smoked().problems[0].n_train == 10


ENDLESS = """
import sys, time
from pathlib import Path
from reproduction.problems import Problem
from reproduction.table import Method, Smoke, Table, run_table

def draw(n, rng):
    return rng.standard_normal((n, 2)), rng.randint(2, size=n)

def evaluate(problem, method, seed):
    time.sleep(0.02)
    return 0.5 + seed / 1000

table = Table("slow", "slow", (Problem("noise", 5, draw, n_test=5),),
              (Method("m", "Sleep.", lambda problem: None),), int(sys.argv[2]), (),
              Smoke(("noise",)), evaluate)
for cell in run_table(table, Path(sys.argv[1])):
    print(cell.split, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_kill_9_loses_and_repeats_no_finished_cell(tmp_path, monkeypatch, capsys):
    script = tmp_path / "slow.py"
    script.write_text(ENDLESS, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(script), str(tmp_path)]
    with subprocess.Popen([*command, "100000"], env=environment, stdout=subprocess.PIPE) as endless:
        seen = [endless.stdout.readline() for _ in range(5)]
        time.sleep(0.05)
        os.kill(endless.pid, signal.SIGKILL)
        seen += endless.stdout.read().split(b"\n")
    finished = CellFile(tmp_path / "slow.jsonl").read()
    n_seen = sum(line.strip().isdigit() for line in seen)
    assert n_seen <= len(finished) <= n_seen + 1  # kept before it is told
    wanted = len(finished) + 3
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path), str(wanted)])
    runpy.run_path(str(script))
    said = capsys.readouterr().out.split()
    assert [int(line) for line in said] == [*range(len(finished), wanted)]
    cells = CellFile(tmp_path / "slow.jsonl").read()
    assert [c.split for c in cells] == [*range(wanted)]
    lines = (tmp_path / "slow.jsonl").read_bytes().splitlines()
    assert sum(b'"dataset"' in line for line in lines) == wanted


@pytest.mark.slow
def test_two_that_begin_one_file_of_cells_lose_and_cut_nothing(tmp_path, monkeypatch):
    """In threads, which the system's locks keep apart like processes: each opens the file."""
    pytest.importorskip("fcntl", reason="the locks of POSIX")
    add_line = cells_module._add_line

    def slowly(stream, fields):  # so that the other comes between the look and the line
        time.sleep(0.05)
        add_line(stream, fields)

    monkeypatch.setattr(cells_module, "_add_line", slowly)
    for before in (b"", b'{"dataset": "cut sho'):
        path = tmp_path / f"cells{len(before)}.jsonl"
        path.write_bytes(before)
        together = threading.Barrier(2)

        def write(method, path=path, together=together):
            file = CellFile(path, about={"table": "mine"})
            together.wait()
            file.begin({"by": method})
            for split in range(2):
                file.append(Cell("iris", method, split, 0.5, 0.1))

        writers = [threading.Thread(target=write, args=(method,)) for method in ("one", "two")]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        cells = CellFile(path, about={"table": "mine"}).read()
        assert sorted((cell.method, cell.split) for cell in cells) == [
            (method, split) for method in ("one", "two") for split in range(2)
        ]
        lines = path.read_text(encoding="utf-8").splitlines()
        assert sum("about" in json.loads(line) for line in lines) == 1
        assert sum("made_by" in json.loads(line) for line in lines) == 2


def test_a_fit_that_fails_is_left_out_and_tried_again(tmp_path, caplog):
    def broken(problem):
        class Broken(KNeighborsClassifier):
            def fit(self, X, y):
                raise FloatingPointError("no number")

        return Broken()

    table = make_table()
    fails = replace(table, methods=(table.methods[0], replace(table.methods[1], build=broken)))
    assert {c.method for c in run_table(fails, tmp_path)} == {"1-NN"}
    assert "clouds, 3-NN, split 1 failed" in caplog.text
    assert {c.method for c in run_table(table, tmp_path)} == {"3-NN"}


def test_a_score_may_bring_its_own_time_and_note(tmp_path):
    def evaluate(problem, method, seed):
        warnings.warn("look here", UserWarning, stacklevel=1)
        return 0.5 if method.name == "1-NN" else Score(0.75, 7.0, "chosen: a")

    plain, told = run_table(make_table(evaluate=evaluate, n_splits=1), tmp_path)
    assert (plain.accuracy, plain.note, plain.seconds < 7) == (0.5, "look here", True)
    assert (told.accuracy, told.note, told.seconds) == (0.75, "chosen: a", 7.0)


# --- what is skipped ----------------------------------------------------------------------------


def test_missing_data_and_missing_methods_are_named_and_the_rest_is_run(tmp_path):
    def no_data(n, rng):
        raise FileNotFoundError("No source has the data set.")

    def no_method(problem):
        raise MissingMethodError("this version has no such thing.")

    table = make_table(
        problems=(*make_table().problems, Problem("gone", 5, no_data)),
        methods=(*make_table().methods, Method("future", "Not yet.", no_method)),
    )
    planned = plan(table)
    assert len(planned.skipped) == 2
    assert "gone: skipped, the data are missing" in planned.skipped[0]
    assert "future: skipped, this version has no such thing" in planned.skipped[1]
    cells = list(run_table(table, tmp_path, planned=planned))
    assert len(cells) == planned.n_cells(table) == 4


def test_empty_cells_of_a_paper_are_not_run(tmp_path):
    table = make_table(left_out=frozenset({("clouds", "3-NN")}))
    assert {c.method for c in run_table(table, tmp_path)} == {"1-NN"}
    assert table.n_cells == 2


# --- what is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [
        (0.93, 0.0, "within"),
        (0.929, 0.0, "below"),
        (0.971, 0.0, "above"),
        (0.92, 0.1, "within"),  # two standard errors are 0.032
        (0.90, 0.1, "below"),
    ],
)
def test_a_verdict_is_0_02_or_two_standard_errors(mean, std, expected):
    assert verdict(Summary(mean, std, 40), Printed(0.95), 40) == expected


def test_an_empty_test_set_difference_has_no_doubt():
    cells = [Cell("a", m, s, 0.9, 0.0) for m in ("x", "y") for s in range(5)]
    (test,) = paired_tests(cells, "x", "y")
    assert (test.difference, test.p_t, test.p_wilcoxon) == (0.0, 1.0, 1.0)


def test_a_clear_difference_is_significant_and_its_interval_leaves_out_zero():
    rng = np.random.RandomState(0)
    cells = [
        Cell("a", m, s, 0.8 + 0.05 * (m == "x") + 0.01 * rng.standard_normal(), 0.0)
        for s in range(20)
        for m in ("x", "y")
    ]
    (test,) = paired_tests(cells, "x", "y")
    assert 0 < test.low < 0.05 < test.high < 0.07
    assert max(test.p_t, test.p_wilcoxon) < 1e-3
    assert paired_tests(cells[:1], "x", "y") == []


def example():
    cells = [
        Cell(dataset, method, split, value + 0.01 * split, 0.5)
        for dataset, row in {"iris": (0.95, 0.90), "glass": (0.60, 0.62)}.items()
        for method, value in zip(("NCA", "KNCA"), row, strict=True)
        for split in range(2)
    ]
    paper = {("iris", "NCA"): Printed(0.96, 0.03), ("iris", "KNCA"): Printed(0.96, 0.01)}
    paper |= {("glass", "NCA"): Printed(0.5), ("glass", "quoted"): Printed(0.7)}
    reasons = {("iris", "KNCA"): "Too few <splits>."}
    return Reproduction(
        "a-table", "an example", cells, paper, 40, against={"KNCA": "NCA"}, reasons=reasons
    )


def test_ours_stands_beside_theirs_with_a_verdict_and_a_reason():
    table = example()
    found = {(c.dataset, c.method): (c.verdict, c.why) for c in compare(table)}
    assert found == {
        ("iris", "NCA"): ("within", ""),
        ("iris", "KNCA"): ("below", "Too few <splits>."),
        ("glass", "NCA"): ("above", ""),
        ("glass", "KNCA"): ("ours", ""),
        ("glass", "quoted"): ("quoted", ""),
    }
    assert summary_line(compare(table)).startswith("Of 3 cells, 2 are within 0.02 of or above")
    grid = comparison_grid(table)
    assert grid.header == ["", "NCA", "KNCA", "quoted"]
    assert grid.rows[0] == ["iris", "0.95 ± 0.01 / 0.96 =", "0.91 ± 0.01 / 0.96 ▼", ""]
    assert grid.rows[-1][2] == "1–0–1 / 0–1–0"


def test_the_pages_say_the_same_and_html_is_escaped():
    table = example()
    markdown, html = reproduction_markdown([table]), reproduction_html([table])
    assert "| iris | KNCA | Too few <splits>. |" in markdown
    assert "Too few &lt;splits&gt;." in html
    assert "<splits>" not in html
    assert 'class="below"' in html
    assert "http" not in html
    assert "a-table,iris,KNCA,0.9050,0.0050,2,0.9600,0.01,below,0.5," in reproduction_csv([table])


def test_errors_are_shown_as_errors():
    cells = [Cell("toy", "idealized", 0, 0.97, 0.1)]
    paper = {("toy", "idealized"): Printed(0.969)}
    table = Reproduction("t", "t", cells, paper, 50, printed="error")
    assert comparison_grid(table).rows == [["toy", "3.0 / 3.1 ="]]


def make_ranking():
    accuracies = {"x": 0.9, "y": 0.8, "z": 0.8}
    return [Cell(d, m, 0, a, 0.25) for d in ("a", "b") for m, a in accuracies.items()]


def test_a_table_of_many_methods_shows_ranks_wins_and_seconds():
    table = Reproduction("t", "t", make_ranking(), {}, 1, reference="y")
    assert comparison_grid(table).rows[0] == ["a", "0.90", "0.80", "0.80"]
    rows = ranking_grid(table).rows
    assert [row[:2] for row in rows] == [["x", "1.0"], ["y", "2.5"], ["z", "2.5"]]
    assert [row[3] for row in rows] == ["2/0/0", "", "0/2/0"]
    assert {row[-1] for row in rows} == {"0.25"}
    assert "mean rank" in reproduction_markdown([table])


def test_data_sets_without_all_methods_are_not_ranked():
    cells = [*make_ranking(), Cell("c", "y", 0, 1.0, 9.0)]
    assert rank_methods(cells, "y") == rank_methods(make_ranking(), "y")
    assert rank_methods([*make_ranking()[:3], Cell("b", "w", 0, 1.0, 0.1)], "y") == []


def test_the_signed_rank_test_over_data_sets_sees_a_difference():
    rng = np.random.default_rng(0)
    cells = []
    for i in range(20):
        base = rng.uniform(0.5, 0.9)
        cells += [Cell(f"d{i}", "SVM", 0, base, 0.1), Cell(f"d{i}", "same", 0, base, 0.1)]
        cells += [Cell(f"d{i}", "better", 0, base + rng.uniform(0.0, 0.1), 0.1)]
    p = {row.method: row.p for row in rank_methods(cells, "SVM")}
    assert p["better"] < 0.001
    assert p["same"] == p["SVM"] == 1.0


def test_what_cannot_be_ranked_is_not_drawn():
    table = replace(make_table(), reference="absent")
    cells = [Cell("clouds", "1-NN", 0, 0.9, 0.1)]
    assert rank_methods(cells, "absent") == []
    assert result_pictures([table], [reproduced(table, [])]) == {}
    assert result_pictures([table], [Reproduction("t", "t", cells, {}, 1)]) == {}


@pytest.mark.slow
def test_a_ranking_is_drawn_with_the_best_on_top():
    pytest.importorskip("matplotlib")
    axes = plot_ranking(make_ranking(), "y", {"x": "linear", "y": "aligned"})
    labels = [text.get_text() for text in axes[0].get_yticklabels()]
    assert [label.split()[0] for label in labels] == ["x", "y", "z"]
    assert axes[0].yaxis_inverted()
    assert png_bytes(axes).startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="run more of the table"):
        plot_ranking([Cell("a", "x", 0, 0.9, 0.1), Cell("b", "y", 0, 0.9, 0.1)], "y")


@pytest.mark.slow
def test_cells_are_drawn_over_the_papers_with_one_mark_for_each():
    pytest.importorskip("matplotlib")
    both = Compared("iris", "NCA", Summary(0.9, 0.0, 1), Printed(0.95), "below")
    alone = Compared("wine", "NCA", Summary(0.9, 0.0, 1), None, "ours")
    axes = plot_agreement({"000": [both, alone], "001": []})
    assert [ax.get_title() for ax in axes] == ["000, 1 cells", "001, 0 cells"]
    marks = np.vstack([np.asarray(drawn.get_offsets()) for drawn in axes[0].collections[1:]])
    np.testing.assert_allclose(marks, [[95.0, 90.0]])
    assert png_bytes(axes).startswith(b"\x89PNG")


def test_every_table_and_figure_is_named_after_a_paper_that_is_listed():
    assert {name.split("-")[0] for name in (*TABLES, *FIGURES)} == {*PAPERS, "beyond"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:IdealizedKernel stopped")  # by rounding, on some processors
def test_a_settled_metric_chooses_nothing_anew():
    X, y = load_iris(return_X_y=True)
    chosen = IdealizedKernel().fit(X[::3], y[::3])
    assert settled(chosen).get_params()["C"] == chosen.C_
    assert settled(LMNN(2)).get_params() == LMNN(2).get_params()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelmetric.inputs.FarCellWarning")
def test_votes_are_chosen_also_where_a_cell_is_read_as_missing():
    X, y = load_iris(return_X_y=True)
    X[0, 0] = 9999.0
    model = TunedNeighbors(lambda d: Kernelized(LDA())).fit(X[::2], y[::2])
    assert hasattr(model.metric_, "schema_")  # its kernel is of other columns than those of X
    assert model.score(X[1::2], y[1::2]) > 0.8


@pytest.mark.slow
def test_where_labels_are_noisy_more_than_one_neighbour_votes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (X[:, 0] > 0).astype(int)
    y[rng.permutation(150)[:40]] ^= 1
    model = TunedNeighbors(lambda d: NCA()).fit(X, y)
    assert model.votes_["n_neighbors"] > 1
    assert model.pca_ is None
    assert TunedNeighbors(lambda d: LDA(1), n_pca=1).fit(X, y).pca_.n_components_ == 1


@pytest.mark.slow
def test_all_tables_tune_the_svm_on_one_grid():
    X, y = load_iris(return_X_y=True)
    model = TunedSVM().fit(X[::5], y[::5])
    assert len(model.model_.cv_results_["params"]) == 40
    by_name = {"beyond": "SVM", "automatic-ten": "SVM, grid of 40"}
    for name, column in by_name.items():
        table = (TABLES | STUDIES)[name]
        (method,) = [method for method in table.methods if method.name == column]
        assert isinstance(method.build(table.problems[0]), TunedSVM)


def test_pages_are_written_for_what_is_there(tmp_path):
    table = make_table()
    cells = list(run_table(table, tmp_path))
    paths = write_pages([reproduced(table, cells, ["glass: skipped."])], tmp_path)
    assert [path.name for path in paths] == [
        "reproduction.md", "reproduction.html", "reproduction.csv",
    ]  # fmt: skip
    text = paths[0].read_text(encoding="utf-8")
    for part in ("clouds: two clouds", "glass: skipped.", "Random splits.", "3-NN − 1-NN"):
        assert part in text


def test_the_documented_page_is_what_the_stored_results_say():
    stored = (documentation.DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert documentation.page() == stored


def test_the_stored_results_follow_the_protocols_of_today():
    stored = documentation.stored_protocols()
    assert stored == {name: TABLES[name].fingerprint for name in stored}
    assert {path.stem for path in documentation.RESULTS.glob("*.csv")} == set(stored)


def test_a_run_goes_on_from_the_stored_results(tmp_path, monkeypatch):
    table = TABLES["003-table3"]
    cells = documentation.stored_cells(table.name)[:3]
    monkeypatch.setattr(documentation, "stored_cells", lambda name: cells)
    monkeypatch.setattr(documentation, "stored_protocols", lambda: {table.name: table.fingerprint})
    documentation.restore(tmp_path)
    assert table.file_in(tmp_path).read() == cells
    with pytest.raises(SystemExit, match="which exists: try another folder"):
        documentation.restore(tmp_path)
    monkeypatch.setattr(documentation, "stored_protocols", lambda: {table.name: "0" * 12})
    with pytest.raises(SystemExit, match="that followed another protocol"):
        documentation.restore(tmp_path / "other")


# --- how kernels are searched -------------------------------------------------------------------


def test_kernels_that_are_multiples_of_each_other_are_tried_once():
    X = np.random.RandomState(0).standard_normal((30, 4))
    narrow = [RBF(sigma=s) for s in (1e-3, 1e-2)]
    kept = distinct_kernels([*narrow, narrow[0] + Delta(), RBF(sigma=1.0)], X)
    assert [kernel.sigma for kernel in kept] == [1e-3, 1.0]
    assert 5 < len(distinct_kernels(rbf_widths(), X)) < 21


@pytest.mark.slow
def test_leaving_out_multiples_changes_no_choice():
    rng = np.random.RandomState(0)
    X, y = two_clouds(60, rng)
    X_new, _ = two_clouds(40, rng)
    kernels = rbf_widths()[::-1]
    few = SearchedKernel(DNE(), DNE(), kernels).fit(X, y)
    from sklearn.model_selection import StratifiedKFold

    from kernelmetric.kernelized import KernelizedCV

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    every = KernelizedCV(DNE(), kernels, folds).fit(X, y)
    assert few.n_tried_ < len(kernels)
    np.testing.assert_array_equal(few.predict(X_new), every.predict(X_new))


def test_warnings_and_time_of_a_fit_are_kept():
    def warn_twice(value):
        warnings.warn("look here", UserWarning, stacklevel=1)
        warnings.warn("look here", UserWarning, stacklevel=1)
        return value

    found = measured(warn_twice, 0.5)
    assert found.value == 0.5
    assert found.note == "look here"
    assert found.seconds >= 0


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def reproduce(invoke):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    from reproduction.command import reproduce as command

    return partial(invoke, command)


def test_the_command_is_run_by_python(monkeypatch, capsys):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    monkeypatch.setattr(sys, "argv", ["reproduction"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("reproduction", run_name="__main__")
    assert not ended.value.code
    assert "Try: python -m reproduction 000-table1 --smoke" in capsys.readouterr().out


def test_errors_of_the_command_steer_no_terminal(reproduce, tmp_path):
    said = reproduce("no\x1b[2J", "--out", tmp_path).stderr
    assert "\x1b" not in said
    assert "Error: Got 'no" in " ".join(said.split())


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(
    reproduce, tmp_path, monkeypatch
):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    result = reproduce("000-table1", "--smoke", "--out", tmp_path)
    assert result.exit_code == 2
    assert "Permission denied" in " ".join(result.stderr.split())


def test_without_arguments_all_tables_and_figures_are_listed(reproduce):
    result = reproduce()
    assert result.exit_code == 0
    for name in (*TABLES, *FIGURES, *STUDIES):
        assert name in result.stdout


def test_an_unknown_table_is_refused_with_those_that_are_near(reproduce, tmp_path):
    result = reproduce("000-tabel1", "--out", tmp_path)
    assert result.exit_code == 2
    assert "000-table1" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_run_rendered_and_resumed(reproduce, tmp_path):
    names = ("003-table1", "003-table2", "003-table3")
    arguments = (*names, "--smoke", "--out", tmp_path)
    result = reproduce(*arguments)
    assert result.exit_code == 0, result.output
    for name in names:
        assert f"{name}: 2 fits" in result.stdout
    lines = (tmp_path / "003-table3-smoke.jsonl").read_bytes()
    about = json.loads(lines.splitlines()[0])["about"]
    assert about["table"] == "003-table3"
    assert "numpy" in json.loads(lines.splitlines()[1])["made_by"]
    assert "iris" in (tmp_path / "reproduction.html").read_text(encoding="utf-8")
    assert reproduce(*arguments).exit_code == 0
    assert (tmp_path / "003-table3-smoke.jsonl").read_bytes() == lines


def test_a_corrupt_file_ends_the_command_in_a_sentence(reproduce, tmp_path):
    (tmp_path / "003-table3-smoke.jsonl").write_text("no cells\n", encoding="utf-8")
    result = reproduce("003-table3", "--smoke", "--out", tmp_path)
    assert result.exit_code == 1
    assert "line 1" in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert (tmp_path / "003-table3-smoke.jsonl").read_text(encoding="utf-8") == "no cells\n"


@pytest.mark.slow
def test_figures_are_drawn(reproduce, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `plot`")
    result = reproduce("004-fig1", "--smoke", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "004-fig1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [*TABLES, *STUDIES])
def test_every_method_of_a_table_in_small_is_made(name):
    table = (TABLES | STUDIES)[name].smoked()
    assert table.methods
    assert table.n_cells
    for method in table.methods:
        with suppress(MissingMethodError):  # of peers that have an environment of their own
            method.build(table.problems[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tables"), [("all", TABLES), ("studies", STUDIES)], ids=["all", "studies"]
)
def test_all_of_it_runs_in_small(reproduce, no_network, tmp_path, name, tables):
    """With the data that are here; those of scikit-learn always are."""
    result = reproduce(name, "--smoke", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    made = {path.name for path in tmp_path.glob("*.jsonl")}
    planned = {name: plan(table.smoked()) for name, table in tables.items()}
    assert made == {f"{name}-smoke.jsonl" for name, found in planned.items() if found.problems}
    assert len(made) > len(tables) / 2
