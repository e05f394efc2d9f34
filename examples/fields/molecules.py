"""
Molecules with rdkit and scikit-fingerprints, and the atoms behind a prediction
===============================================================================

``python molecules.py actives.csv --smiles smiles --label pIC50 --out why.svg`` learns the potency
of molecules twice: by ``kernel="molecules"`` from SMILES, and by a pipeline of scikit-fingerprints
whose last step is :class:`kernelmetric.MetricRegressor`. It prints what both say of every fifth
molecule, which they have not seen.

.. image:: /_static/fields-molecules.png
   :alt: A molecule with some atoms in green and red, and the three nearest with their potencies.

One of these is drawn: atoms that raise the prediction in green, atoms that lower it in red.
Beside it are the nearest molecules with their numbers. Here they are agonists of an opioid
receptor, from ChEMBL as MoleculeACE has them (``CHEMBL237_EC50``).

It needs ``pip install rdkit scikit-fingerprints``.
"""

# sphinx_gallery_thumbnail_path = '_static/fields-molecules.png'

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D
from skfp.fingerprints import ECFPFingerprint
from skfp.preprocessing import MolFromSmilesTransformer
from sklearn.pipeline import Pipeline, make_pipeline

from kernelmetric import MLKR, Kernelized, MetricRegressor
from kernelmetric.inspection import part_shares

SIZE = 280, 200  # of a drawn molecule, in pixels


def from_smiles() -> MetricRegressor:
    """A model of SMILES."""
    return MetricRegressor(Kernelized(MLKR(), kernel="molecules"))


def from_fingerprints() -> Pipeline:
    """A pipeline of scikit-fingerprints: SMILES, molecules, sparse counts, learned distances."""
    counts = ECFPFingerprint(count=True, sparse=True)
    metric = Kernelized(MLKR(), kernel="minmax")
    return make_pipeline(MolFromSmilesTransformer(), counts, MetricRegressor(metric))


def drawing(
    model: MetricRegressor,
    smiles: list[str],
    asked: str,
    n_neighbors: int = 3,
    kind: Any = rdMolDraw2D.MolDraw2DSVG,
) -> Any:
    """A molecule with the shares of its atoms, and its neighbours beside it: SVG, or a PNG."""
    found = part_shares(model, asked)
    largest = float(np.abs(found.shares).max()) or 1.0
    shades = {
        i: (1 - share, 1.0, 1 - share) if share > 0 else (1.0, 1 + share, 1 + share)
        for i, share in enumerate(0.7 * found.shares / largest)
    }
    _, rows = model.kneighbors([asked], n_neighbors)
    drawn = [Chem.MolFromSmiles(text) for text in (asked, *(smiles[i] for i in rows[0]))]
    said = [f"predicted {found.value:.2f}", *(f"{model.targets_[i]:.2f}" for i in rows[0])]
    canvas = kind(SIZE[0] * len(drawn), SIZE[1], *SIZE)
    canvas.drawOptions().drawMolsSameScale = False
    nothing: list[Any] = [{} for _ in rows[0]]
    canvas.DrawMolecules(
        drawn,
        legends=said,
        highlightAtoms=[list(shades), *([] for _ in rows[0])],
        highlightAtomColors=[shades, *nothing],
    )
    canvas.FinishDrawing()
    return canvas.GetDrawingText()


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Learn, predict, draw; the root of the mean squared errors of both models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("table", type=Path)
    parser.add_argument("--smiles", default="smiles", help="column of the molecules")
    parser.add_argument("--label", default="y", help="column of the numbers")
    parser.add_argument("--out", type=Path, default=Path("why.svg"), help=".svg or .png")
    parser.add_argument("--draw", type=int, default=0, help="which of the new molecules is drawn")
    given = parser.parse_args(arguments)
    with given.table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    smiles = [row[given.smiles] for row in rows]
    y = np.array([float(row[given.label]) for row in rows])
    new = np.arange(len(y)) % 5 == 0
    old, asked = ([s for s, own in zip(smiles, part, strict=True) if own] for part in (~new, new))
    errors = {}
    for name, model in (("SMILES", from_smiles()), ("fingerprints", from_fingerprints())):
        said = model.fit(old, y[~new]).predict(asked)
        errors[name] = float(np.sqrt(np.mean((said - y[new]) ** 2)))
        print(f"from {name}: {errors[name]:.2f} off, the mean would be {np.std(y[new]):.2f}")
        if name == "SMILES":
            if given.out.suffix == ".png":
                kind = rdMolDraw2D.MolDraw2DCairo
                given.out.write_bytes(drawing(model, old, asked[given.draw], kind=kind))
            else:
                given.out.write_text(drawing(model, old, asked[given.draw]), encoding="utf-8")
    return errors


if __name__ == "__main__":
    main()
