"""The command line in a terminal: always a word, and Ctrl-C at any time."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pty", reason="this system has no pseudo-terminals")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")
pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")

import pandas as pd

from kernelmetric import _pulse

TOOL = Path(__file__).parents[1] / "tools" / "record_terminal.py"


@pytest.fixture(scope="module")
def record():
    spec = importlib.util.spec_from_file_location("record_terminal", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["record_terminal"] = module
    spec.loader.exec_module(module)
    return module.record


def write_table(path, n_rows):
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=n_rows)
    frame = pd.DataFrame(rng.standard_normal((n_rows, 30)).round(4) + y[:, None] % 2)
    frame.columns = [f"x{j}" for j in range(30)]
    frame.assign(kind=np.array(["a", "b", "c"])[y]).to_csv(path, index=False)


def fit(folder, *more):
    program = [sys.executable, "-m", "kernelmetric", "fit", str(folder / "table.csv")]
    files = ["--out", str(folder / "model.km"), "--report", str(folder / "page.html")]
    return [*program, "--label", "kind", *files, *more]


# --- the process beside the command ---------------------------------------------------------------


@pytest.fixture
def pulse():
    command = [sys.executable, "-I", "-S", _pulse.__file__]
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **streams) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_words_are_shown_at_once_and_again_while_the_command_is_silent(pulse):
    pulse.stdin.write(b"Reading\n")
    pulse.stdin.flush()
    shown = b""
    while shown.count(b"Reading") < 2:
        shown += pulse.stderr.read(1)
    pulse.stdin.write(b"\n\x04\n")
    pulse.stdin.close()
    assert pulse.wait(timeout=60) == 0
    assert b"Interrupted" not in pulse.stderr.read()


def test_an_end_without_a_word_is_told_in_a_sentence(pulse):
    pulse.stdin.write(b"Reading\n")
    pulse.stdin.close()
    assert pulse.wait(timeout=60) == 0
    assert b"The command was ended before it was done." in pulse.stderr.read()


def test_only_the_command_in_a_terminal_has_a_process_beside_it(monkeypatch):
    def in_terminal(*arguments, terminal=True, called=("python", "-m", "kernelmetric")):
        monkeypatch.setattr(sys, "argv", [*arguments])
        monkeypatch.setattr(sys, "orig_argv", [*called])
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        return _pulse._is_command()

    assert in_terminal("/usr/bin/kernelmetric", "fit", "a.csv")
    assert in_terminal("-m", "fit", "a.csv")
    assert not in_terminal("/usr/bin/kernelmetric", "fit", "a.csv", terminal=False)
    assert not in_terminal("/usr/bin/kernelmetric", "fit", "a.csv", "--json")
    assert not in_terminal("study.py", called=("python", "study.py"))
    assert not in_terminal("-m", called=("python", "-m", "pytest"))
    assert _pulse._pipe == []


def test_telling_nobody_is_no_error(monkeypatch):
    import os

    monkeypatch.setattr(_pulse, "_pipe", [])
    _pulse.tell("words")
    _pulse.arrived()
    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr(_pulse, "_pipe", [write])
    _pulse.tell("words")  # whoever listened has ended
    assert _pulse._pipe == []
    os.close(write)


# --- a whole fit ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_there_is_always_a_word(record, tmp_path):
    write_table(tmp_path / "table.csv", 50_000)
    found = record(fit(tmp_path))
    assert found.code == 0, found.text[-2_000:]
    assert found.first < 5  # a tenth of a second where nobody else computes
    assert found.longest_silence[0] < 5, found.longest_silence  # one second there
    for words in ("Loading kernelmetric", "Reading table.csv", "takes about", "step 3 of 3"):
        assert words in found.text
    assert "learned from 18,750" in found.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["Loading", "Reading", "step 1 of", "step 2 of", "step 3 of", "Making the page"]
)
def test_ctrl_c_is_obeyed_at_every_stage(record, tmp_path, words):
    write_table(tmp_path / "table.csv", 6_000)
    begun = time.monotonic()
    found = record(fit(tmp_path), at=words)
    assert found.interrupted is not None, time.monotonic() - begun
    assert found.seconds - found.interrupted < 5  # at once, where nobody else computes
    assert found.code in (-2, 130)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
