"""The README is true: its snippets run, its names exist, its links lead somewhere."""

import re
from pathlib import Path

import pytest

import kernelmetric
from tested_learners import readme_row

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_there_are_snippets():
    assert len(SNIPPETS) > 5


def test_the_snippets_run_in_the_order_of_reading():
    names: dict = {}
    for number, snippet in enumerate(SNIPPETS):
        snippet = snippet.replace("5_000", "1_000").replace("[0.5, 1.0, 2.0]", "[1.0]")
        exec(compile(snippet, f"README snippet {number}", "exec"), names)  # noqa: S102, RUF100
        if number == 0:  # the others fit these points, of which half is enough
            names |= {"X": names["X"][::2], "y": names["y"][::2]}


def test_the_table_of_names_is_the_public_api():
    section = README.partition("## Public names")[2].partition("\n## ")[0]
    short, _, rooms = section.partition("What fewer need")
    named = set(re.findall(r"`(\w+)`", short))
    assert named == set(kernelmetric.__all__) - {"__version__"}
    rows = re.findall(r"^\| `kernelmetric\.(\w+)` \| (.*) \|$", rooms, re.MULTILINE)
    moved = {name: room for room, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert moved == kernelmetric._MOVED


def test_the_row_of_learners_is_made_from_the_registry():
    assert readme_row() in README.splitlines()


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:)([^)#]+)", README))
def test_links_within_the_repository_lead_somewhere(target):
    assert (ROOT / target).exists()
