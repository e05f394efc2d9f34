"""The example that starts a scheduler and two workers as programs of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="distributed comes with the extra `dask`")

import psutil

COMPOSE = Path(__file__).parents[1] / "examples" / "cluster" / "compose.py"
PATIENCE = 600  # seconds, on a busy machine


def programs():
    """Dask's programs that this process or those it started have started."""
    found = [c for c in psutil.Process().children(recursive=True) if c.is_running()]
    lines = [" ".join(child.cmdline()) for child in found]
    return [line for line in lines if "dask" in line and "multiprocessing" not in line]


def compose(*arguments):
    command = [sys.executable, str(COMPOSE), *map(str, arguments)]
    streams = {"capture_output": True, "text": True, "timeout": PATIENCE, "check": False}
    return subprocess.run(command, **streams)


@pytest.mark.slow
def test_a_scheduler_and_two_workers_learn_a_metric_and_stop():
    done = compose()
    assert done.returncode == 0, done.stderr
    scores = dict(re.findall(r"(Euclidean|learned): ([\d.]+) %", done.stdout))
    assert float(scores["learned"]) > float(scores["Euclidean"]) + 5
    assert "2 workers" in done.stdout
    assert done.stdout.rstrip().endswith("all stopped")
    assert programs() == []


def test_a_job_that_fails_stops_them_all_the_same(tmp_path):
    job = tmp_path / "job.py"
    job.write_text("raise SystemExit(3)\n", encoding="utf-8")
    done = compose("--workers", 1, "--job", job)
    assert done.returncode == 3
    assert done.stdout.rstrip().endswith("all stopped")
    assert programs() == []
