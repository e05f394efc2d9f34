"""What the documentation says about sizes and times: it is there, and the library does it."""

import json
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import check_sizes
import stated_sizes


def test_what_is_checked_still_stands_on_its_page():
    assert check_sizes.missing_words() == []


@pytest.mark.parametrize("fact", stated_sizes.FACTS, ids=lambda fact: fact.words[:40])
def test_numbers_of_rows_are_those_of_the_library(fact):
    if "cli" in fact.page or "command_line" in fact.page:
        pytest.importorskip("click", reason="click comes with the extra `cli`")
    assert check_sizes.wrong_facts([fact]) == []


def test_a_limit_shrinks_with_the_rows_that_are_run():
    run = stated_sizes.Run(
        "README.md", "", lambda n: int, 1_000, 60.0, 4_000.0, rows=100, growth_of_memory=0.5
    )
    assert run.limit(full=True) == (120.0, 8_000.0)
    assert run.limit(full=False) == pytest.approx((12.0, 8_000.0 * 0.1**0.5))


@pytest.mark.parametrize(
    ("seconds", "megabytes", "code", "said"),
    [
        (1.9, 190.0, 0, None),
        (2.1, 190.0, 0, "2.1 s"),
        (1.9, 210.0, 0, "210 MB"),
        (0.0, 0.0, 1, "ValueError: no"),
    ],
    ids=["good", "late", "large", "raised"],
)
def test_a_run_that_raises_or_takes_too_much_is_told(
    monkeypatch, capsys, seconds, megabytes, code, said
):
    row = {"wall": seconds, "cpu": seconds, "megabytes": megabytes}
    ended = SimpleNamespace(returncode=code, stdout=json.dumps(row), stderr="ValueError: no")
    monkeypatch.setattr(check_sizes.subprocess, "run", lambda *args, **options: ended)
    run = stated_sizes.Run("README.md", "so", lambda n: int, 10, 1.0, 100.0, threads=1)
    monkeypatch.setattr(check_sizes, "RUNS", [run])
    fault = check_sizes.outcome(0, full=True)
    assert fault is None if said is None else said in fault


def test_the_work_of_a_run_is_measured(monkeypatch):
    run = stated_sizes.Run("README.md", "so", lambda n: partial(np.ones, (n, 1_000)), 10)
    monkeypatch.setattr(check_sizes, "RUNS", [run])
    row = check_sizes.measure(0, 20)
    assert row["wall"] > 0
    assert row["megabytes"] >= 0
