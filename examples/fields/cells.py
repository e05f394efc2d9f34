"""Cells with AnnData: a metric learned from coordinates in ``obsm`` and labels in ``obs``.

``python cells.py cells.h5ad --coordinates X_pca --label cell_type`` learns from the cells that have
a label. It writes learned coordinates into ``obsm["X_metric"]``, where scanpy's ``neighbors`` and
``umap`` take them by ``use_rep="X_metric"``, the label of every cell into ``obs["label_metric"]``,
and its probability into ``obs["probability_metric"]``. Labels that were given stay.

It needs ``pip install anndata``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import anndata
import numpy as np
import pandas as pd

from kernelmetric import MetricClassifier


def label_cells(cells: anndata.AnnData, coordinates: str, label: str) -> anndata.AnnData:
    """Learn from labelled cells, and write what follows for all of them."""
    Z = np.asarray(cells.obsm[coordinates], dtype=np.float64)
    known = cells.obs[label].notna().to_numpy()
    if known.all() or not known.any():
        raise ValueError(f"Got {known.sum()} of {len(known)} cells with a label, expected some.")
    labels = cells.obs[label].astype("object")
    model = MetricClassifier().fit(Z[known], labels[known].to_numpy(dtype=str))
    P = model.predict_proba(Z)
    said = pd.Series(model.classes_[P.argmax(axis=1)], index=cells.obs_names, dtype="object")
    cells.obsm["X_metric"] = model.metric_.transform(Z)
    cells.obs["label_metric"] = pd.Categorical(labels.where(known, said))
    cells.obs["probability_metric"] = np.where(known, 1.0, P.max(axis=1))
    return cells


def main(arguments: list[str] | None = None) -> None:
    """Read, label, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--coordinates", default="X_pca", help="of obsm")
    parser.add_argument("--label", default="cell_type", help="of obs")
    parser.add_argument("--out", type=Path, help="where to write; the same file by default")
    given = parser.parse_args(arguments)
    cells = label_cells(anndata.read_h5ad(given.file), given.coordinates, given.label)
    cells.write_h5ad(given.out or given.file)
    print(cells.obs["label_metric"].value_counts().to_string())


if __name__ == "__main__":
    main()
