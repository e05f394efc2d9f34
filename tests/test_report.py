"""Tables and plots say what the records say."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelmetric.demo import DATASETS, METHODS, Demo, fig2_panels, run_cells
from kernelmetric.report import (
    Cell,
    MissingExtraError,
    csv_text,
    plot_embedding,
    plot_fig2,
    png_bytes,
    rich_table,
    summarize,
    write_atomically,
)

CELLS = [
    Cell("iris", "NCA", 0, 0.90, 0.1),
    Cell("iris", "NCA", 1, 0.94, 0.1),
    Cell("iris", "KNCA", 0, 0.96, 0.2, "a note, with a comma"),
    Cell("iris", "KNCA", 1, 0.96, 0.2),
    Cell("wine", "NCA", 0, 0.96, 0.1),
    Cell("wine", "KNCA", 0, 0.96, 0.1),
]


@pytest.fixture
def pyplot():
    plt = pytest.importorskip("matplotlib.pyplot", reason="comes with the extra `plot`")
    yield plt
    plt.close("all")


def n_points(ax):
    return sum(len(collection.get_offsets()) for collection in ax.collections)


def test_means_and_deviations_are_taken_over_splits():
    summary = summarize(CELLS)["iris"]["NCA"]
    assert summary.mean == pytest.approx(0.92)
    assert summary.std == pytest.approx(0.02)
    assert summary.n_splits == 2


def shown(cells):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    columns = [list(column.cells) for column in rich_table(cells).columns[1:]]
    return [[(cell.plain, "bold" in str(cell.style)) for cell in column] for column in columns]


def test_the_best_is_bold_and_so_is_a_tie():
    iris, wine = shown(CELLS)
    assert iris == [("92.0±2.0", False), ("96.0±0.0", True)]
    assert wine == [("96.0±0.0", True), ("96.0±0.0", True)]


def test_a_method_that_did_not_run_leaves_its_place_empty():
    iris, _ = shown([*CELLS, Cell("wine", "DNE", 0, 0.5, 0.1)])
    assert iris[2] == ("", False)


def test_the_terminal_shows_the_same_numbers():
    console = pytest.importorskip("rich.console", reason="rich comes with the extra `cli`")
    terminal = console.Console(width=80, file=io.StringIO())
    terminal.print(rich_table(CELLS, title="A title"))
    text = terminal.file.getvalue()
    assert "A title" in text
    assert re.search(r"KNCA\s+96.0±0.0\s+96.0±0.0", text)


def test_the_csv_has_a_line_per_cell_and_quotes_commas():
    lines = csv_text(CELLS).splitlines()
    assert len(lines) == 1 + len(CELLS)
    assert lines[3].endswith('"a note, with a comma",0.0')


def test_an_embedding_shows_every_point(pyplot):
    rng = np.random.RandomState(0)
    y = np.array(["a", "b", "c"] * 4)
    ax = plot_embedding(rng.randn(12, 5), y, title="five dimensions")
    assert n_points(ax) == 12
    assert ax.get_title() == "five dimensions"
    assert ax.get_aspect() == 1.0


def test_an_embedding_of_one_dimension_is_a_line(pyplot):
    ax = plot_embedding(np.arange(4.0)[:, None], [0, 1, 0, 1])
    assert np.ptp(np.concatenate([c.get_offsets()[:, 1] for c in ax.collections])) == 0


def test_errors_are_marked_and_every_test_point_is_drawn_once(pyplot):
    rng = np.random.RandomState(0)
    y_test = np.repeat([0, 1], 10)
    y_pred = y_test.copy()
    y_pred[:3] = 1
    ax = plot_embedding(
        rng.randn(6, 2), [0, 1] * 3, Z_test=rng.randn(20, 2), y_pred=y_pred, y_test=y_test
    )
    assert n_points(ax) == 6 + 20
    assert sorted(len(c.get_offsets()) for c in ax.collections) == [3, 3, 3, 17]


def test_test_points_without_predictions_are_refused(pyplot):
    with pytest.raises(ValueError, match="without y_pred"):
        plot_embedding(np.eye(2), [0, 1], Z_test=np.eye(2))


def test_an_embedding_is_drawn_into_given_axes(pyplot):
    ax = pyplot.subplots()[1]
    assert plot_embedding(np.eye(2), [0, 1], ax=ax) is ax


@pytest.mark.slow
def test_fig2_has_a_row_per_data_set_and_a_column_per_map(pyplot):
    panels = fig2_panels(seed=0)
    axes = plot_fig2(panels)
    assert axes.shape == (2, 3)
    assert {n_points(ax) for ax in axes.ravel()} == {40 + 400}
    for panel, ax in zip(panels, axes.ravel(), strict=True):
        assert f"{100 * panel.accuracy:.0f} %" in ax.get_title()
    kernelized = [panel.accuracy for panel in panels if "kernelized" in panel.method]
    others = [panel.accuracy for panel in panels if "kernelized" not in panel.method]
    assert min(kernelized) > 0.95 > max(others)
    image = png_bytes(axes, dpi=40)
    assert image.startswith(b"\x89PNG")
    assert len(image) > 5_000
    assert pyplot.get_fignums() == []


def test_a_missing_matplotlib_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "kernelmetric\[plot\]"'):
        plot_embedding(np.eye(2), [0, 1])


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    write_atomically(tmp_path / "a.txt", "first")
    write_atomically(tmp_path / "a.txt", b"second")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "second")]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_atomically(tmp_path / "a.txt", "old")

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]


def test_warnings_of_a_fit_become_its_note():
    from kernelmetric.learners import NCA

    demo = Demo(datasets=DATASETS[:1], methods={"NCA": lambda kernel: NCA(max_iter=1)}, n_splits=1)
    (cell,) = run_cells(demo)
    assert "max_iter" in cell.note


def test_splits_are_the_outer_loop():
    demo = Demo(datasets=DATASETS[:2], methods={"Euclidean": METHODS["Euclidean"]}, n_splits=2)
    assert [(cell.split, cell.dataset) for cell in run_cells(demo)] == [
        (0, "circles"), (0, "hyperbolas"), (1, "circles"), (1, "hyperbolas"),
    ]  # fmt: skip
