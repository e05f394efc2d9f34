"""The transcript in the documentation is what the commands print."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = r"-?\d+(?:[.,]\d+)*(?:e-?\d+)?"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("command_line", DOCS / "command_line.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shape_of(text):
    """The text without its numbers, and without the widths that follow from them."""
    text = re.sub(r"[ ─]+", " ", re.sub(NUMBER, "#", text)).replace("apple", "pear")
    return re.sub(r" (?=[],])", "", text)  # NumPy pads short numbers


def scores_of(text):
    return [float(score) for score in re.findall(r"(\d+\.\d)(?: %|±)", text)]


def test_the_table_of_the_page_has_all_that_tables_have(script, tmp_path):
    import pandas as pd

    script.make_orchard(tmp_path)
    frame = pd.read_csv(tmp_path / "orchard.csv")
    assert len(frame) == 1000
    assert frame["unit"].nunique() == 1
    assert frame.isna().sum().sum() == 80
    assert "fruit" not in pd.read_csv(tmp_path / "new.csv")


def test_every_command_of_the_page_has_its_output(script):
    blocks = script.BLOCK.findall(script.PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 6
    for block in blocks:
        lines = block.splitlines()
        assert lines[0].startswith("$ ")
        assert not lines[-1].startswith("$ ")


@pytest.mark.slow
def test_the_commands_print_what_the_page_says(script, tmp_path):
    script.make_orchard(tmp_path)
    for block in script.BLOCK.findall(script.PAGE.read_text(encoding="utf-8")):
        printed = script.transcript(block, tmp_path)
        assert shape_of(printed) == shape_of(block)
        assert scores_of(printed) == pytest.approx(
            scores_of(block), abs=3
        )  # other BLAS, other ends
    assert (tmp_path / "page.html").stat().st_size < 1_000_000


@pytest.mark.slow
def test_fit_with_a_report_takes_less_than_a_minute(script, tmp_path):
    import time

    script.make_orchard(tmp_path)
    begin = time.perf_counter()
    said = script.run("kernelmetric fit orchard.csv --label fruit --report page.html", tmp_path)
    assert "page.html" in said
    assert time.perf_counter() - begin < 60
