"""The benchmarks of many machines, on few points: they run, and what they write can be read."""

import importlib.util
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed comes with the extra `dask`")

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
BLOCKS = ("table", "constants", "model", "large")
KNOWN = {
    "part": "constants",
    "machine": "a machine",
    "seconds_per_task": 1e-3,
    "seconds_there_and_back": 5e-3,
    "bytes_per_second": 5e8,
    "bytes_per_step": 2e7,
    "operations_per_second": 3e10,
}


def load(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    blocks = [f"<!-- {name} -->\nNo run yet.\n<!-- end of {name} -->" for name in BLOCKS]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def run(name, *arguments):
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_one_and_two_workers_and_no_dask_give_the_same_answer(tmp_path, page):
    out = tmp_path / "found.jsonl"
    size = ["--rows", 600, "--features", 6]
    printed = run("many_machines", "--only", "nca", *size, "--out", out, "--page", page)
    record = json.loads(out.read_text(encoding="utf-8"))
    answers = [answer for who in ("plain", "one", "two") for _, answer in record[who]]
    assert answers == pytest.approx([answers[0]] * 3, rel=1e-5)
    assert "NCA, 5 exact steps | 600 × 6 |" in printed
    assert "600 × 6" in page.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").count("No run yet.") == 3


def test_a_part_may_be_measured_in_several_runs(monkeypatch, tmp_path):
    benchmark = load("many_machines", monkeypatch)
    seconds = dict(zip(benchmark.WHO, (2, 3, 4), strict=True))
    runs = {who: lambda *_, n=n: nullcontext(lambda _: (n, 1.0)) for who, n in seconds.items()}
    monkeypatch.setattr(benchmark, "RUNS", runs)
    out = tmp_path / "found.jsonl"
    for who in ("one", "plain,two"):
        arguments = ["--only", "knn", "--rows", "600", "--who", who, "--out", str(out)]
        monkeypatch.setattr(sys, "argv", ["many_machines.py", *arguments])
        benchmark.main()
    last = benchmark.latest(out)["knn"]
    assert [last[who][0][0] for who in benchmark.WHO] == [2, 3, 4]
    assert len(benchmark.table(benchmark.latest(out))) == 3


@pytest.mark.slow
def test_a_table_larger_than_memory_in_small(tmp_path, page):
    size = ["--rows", 8_000, "--rows-per-file", 2_000, "--landmarks", 30, "--kernel", "rbf"]
    run("many_machines_large", *size, "--out", tmp_path / "found.jsonl", "--page", page)
    record = json.loads((tmp_path / "found.jsonl").read_text(encoding="utf-8"))
    kinds = {name.partition(", process")[0] for name in record["peaks"]}
    workers = {f"{kind}worker {k}" for kind in ("", "nanny of ") for k in (0, 1)}
    assert kinds == {"scheduler", "client"} | workers
    assert min(record["peaks"].values()) > 1e6
    assert record["components"] == 10
    assert "8,000 × 50 float32 in 4 files" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_model_says_where_workers_stop_paying(monkeypatch, tmp_path, page):
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `plot`")
    model = load("many_machines_model", monkeypatch)
    steps, chunks = model.curves(KNOWN)
    ends = {name: model.stops_paying(gain) for name, _, _, gain in steps + chunks}
    assert ends["30,000 points"] <= ends["1,000,000 points"] <= 2 * model.GROUPS
    assert ends["10⁶ rows"] < ends["10⁷ rows"] < ends["10⁸ rows"]
    for _, _, _, gain in steps + chunks:
        assert gain[0] == 1.0
        assert np.all(gain <= 1.001 * model.WORKERS)
    model.draw(tmp_path / "model.png", {"constants": KNOWN})
    assert (tmp_path / "model.png").read_bytes().startswith(b"\x89PNG")
    assert sum("exact step" in line for line in model.lines_of({"constants": KNOWN})) == 6


def test_a_slower_network_stops_paying_earlier(monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `plot`")
    model = load("many_machines_model", monkeypatch)
    slow = KNOWN | {"bytes_per_second": 1e7}
    at = [model.step_seconds(known, 30_000, 16, model.as_built) for known in (KNOWN, slow)]
    assert at[1] > 2 * at[0]
