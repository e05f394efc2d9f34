"""Programs for molecules, series, cells and spectra run where the tools of their field are."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "fields"


def script(name, monkeypatch):
    """A program of the folder; its name may be that of a package, so that is given back."""
    spec = importlib.util.spec_from_file_location(f"field_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_molecules_are_predicted_and_the_atoms_behind_it_drawn(tmp_path, monkeypatch):
    pytest.importorskip("rdkit", reason="needs rdkit")
    pytest.importorskip("skfp", reason="needs scikit-fingerprints")
    rows = [("C" * i + end, i + 3.0 * ("O" in end)) for i in range(1, 26) for end in ("O", "N")]
    text = "\n".join(f"{smiles},{y}" for smiles, y in rows)
    (tmp_path / "a.csv").write_text(f"smiles,y\n{text}\n", encoding="utf-8")
    module, out = script("molecules", monkeypatch), tmp_path / "why.svg"
    errors = module.main([str(tmp_path / "a.csv"), "--out", str(out)])
    assert max(errors.values()) < 0.5 * np.std([y for _, y in rows])
    drawn = out.read_text(encoding="utf-8")
    assert drawn.count("<svg") == 1
    assert "<ellipse" in drawn or "#B2" in drawn  # atoms are marked
    out = tmp_path / "why.png"
    module.main([str(tmp_path / "a.csv"), "--out", str(out), "--draw", "3"])
    assert out.read_bytes().startswith(b"\x89PNG")


def test_series_of_aeon_are_taken_as_they_are(tmp_path, monkeypatch):
    pytest.importorskip("aeon", reason="needs aeon")
    out = tmp_path / "series.png"
    found = script("series", monkeypatch).main(["ItalyPowerDemand", "--picture", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    assert found["learned metric"] > 0.93
    assert found["1-NN, DTW"] > 0.9


def test_cells_without_a_label_are_given_one(tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata", reason="needs anndata")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    rng = np.random.default_rng(0)
    kind = rng.choice(["B cell", "T cell", "monocyte"], 150)
    Z = rng.standard_normal((150, 8)) + 2.5 * (kind[:, None] == np.unique(kind)).repeat(3, 1)[:, :8]
    given = pd.Series(kind, dtype="object").where(rng.random(150) < 0.4)
    obs = pd.DataFrame(
        {"cell_type": pd.Categorical(given)}, index=[f"cell {i}" for i in range(150)]
    )
    path = tmp_path / "a.h5ad"
    anndata.AnnData(np.zeros((150, 1)), obs=obs, obsm={"X_pca": Z}).write_h5ad(path)
    module = script("cells", monkeypatch)
    out = tmp_path / "cells.png"
    module.main([str(path), "--picture", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    cells = anndata.read_h5ad(path)
    said = cells.obs["label_metric"].astype(str).to_numpy()
    known = given.notna().to_numpy()
    assert np.array_equal(said[known], kind[known])
    assert np.mean(said[~known] == kind[~known]) > 0.9
    assert cells.obsm["X_metric"].shape[0] == 150
    assert cells.obs["probability_metric"].between(0, 1).all()
    cells.obs["cell_type"] = None
    with pytest.raises(ValueError, match="Got 0 of 150 cells"):
        module.label_cells(cells, "X_pca", "cell_type")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_spectra_are_regressed_with_intervals(tmp_path, monkeypatch):
    pytest.importorskip("chemotools", reason="needs chemotools")
    pytest.importorskip("ikpls", reason="needs ikpls")
    out = tmp_path / "spectra.png"
    found = script("spectra", monkeypatch).main(["--picture", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    assert found["local regression"] < 4.0
    assert found["inside"] > 0.6
