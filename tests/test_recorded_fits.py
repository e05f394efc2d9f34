"""The recorded set of fits: it repeats itself, and notices what changes."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "recorded.py"
ONLY = "LDA() on wine"  # in float64 and in float32


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("recorded", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def recorded(script, tmp_path):
    path = tmp_path / "recorded.npz"
    assert script.main(["record", str(path), "--only", ONLY]) == 0
    return path


def test_recorded_fits_come_out_again(script, recorded, capsys):
    assert script.main(["compare", str(recorded), "--only", ONLY]) == 0
    assert "0 of 2 fits differ" in capsys.readouterr().out


@pytest.mark.slow
def test_a_changed_result_is_named(script, recorded, capsys):
    with np.load(recorded) as file:
        kept = dict(file)
    kept["LDA() on wine|distances"] = kept["LDA() on wine|distances"] * (1 + 1e-8)
    np.savez(recorded, **kept)
    assert script.main(["compare", str(recorded), "--only", ONLY]) == 1
    out = capsys.readouterr().out
    assert "1 of 2 fits differ" in out
    assert "LDA() on wine  <- beyond 1e-10, in distances" in out


@pytest.mark.slow
def test_settings_are_compared_with_the_first_one(script, capsys):
    assert script.main(["compare", "--only", ONLY, "--budget", "20MB,1GB"]) == 0
    out = capsys.readouterr().out
    assert "recording with threads=1, budget=20MB" in out
    assert "threads=1, budget=1GB" in out


def test_a_turned_map_is_the_same_metric(script):
    Z = np.random.RandomState(0).standard_normal((9, 2))
    turned = Z @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert script.difference({"transform": turned}, {"transform": Z}) < 1e-14
    assert script.difference({"eigenvalues_": Z}, {"eigenvalues_": 2 * Z}) == 0.5
    assert script.difference({"refused": np.array("ValueError")}, {"transform": Z}) == np.inf


def test_every_recorded_fit_has_a_name_of_its_own(script):
    names = [fit.name for fit in script.fits()]
    assert len(names) == len(set(names))
