"""
Cells with AnnData: labels of some cells for all of them
========================================================

``python cells.py cells.h5ad --coordinates X_pca --label cell_type`` learns from the cells that have
a label, by their coordinates in ``obsm``. It writes learned coordinates into ``obsm["X_metric"]``,
where scanpy's ``neighbors`` and ``umap`` take them by ``use_rep="X_metric"``, the label of every
cell into ``obs["label_metric"]``, and its probability into ``obs["probability_metric"]``. Labels
that were given stay.

.. image:: /_static/fields-cells.png
   :alt: 700 blood cells in a plane, before and after; after, cells of one type lie together.

700 blood cells that come with scanpy; every second one has a label. ``--picture cells.png`` draws
t-SNE of the principal components and of the learned coordinates. Large marks have the label that
was predicted, small ones that which was given.

It needs ``pip install anndata matplotlib``.
"""

# sphinx_gallery_thumbnail_path = '_static/fields-cells.png'

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


def draw(cells: anndata.AnnData, coordinates: str, known: np.ndarray, path: Path) -> None:
    """All cells before and after, by the labels that they have now."""
    from matplotlib import pyplot as plt
    from sklearn.manifold import TSNE

    labels = cells.obs["label_metric"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for ax, name in zip(axes, (coordinates, "X_metric"), strict=True):
        x, y = TSNE(random_state=0).fit_transform(np.asarray(cells.obsm[name])).T
        for i, kind in enumerate(labels.cat.categories):
            own = (labels == kind).to_numpy()
            colour = plt.get_cmap("tab10" if len(labels.cat.categories) <= 10 else "tab20")(i)
            ax.scatter(x[own & known], y[own & known], s=6, color=colour, alpha=0.5)
            ax.scatter(x[own & ~known], y[own & ~known], s=22, color=colour, label=kind)
        ax.set(title=f"t-SNE of {name}", xticks=[], yticks=[])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=90)


def main(arguments: list[str] | None = None) -> None:
    """Read, label, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("file", type=Path)
    parser.add_argument("--coordinates", default="X_pca", help="of obsm")
    parser.add_argument("--label", default="cell_type", help="of obs")
    parser.add_argument("--out", type=Path, help="where to write; the same file by default")
    parser.add_argument("--picture", type=Path, help="where to draw the cells before and after")
    given = parser.parse_args(arguments)
    cells = anndata.read_h5ad(given.file)
    known = cells.obs[given.label].notna().to_numpy()
    cells = label_cells(cells, given.coordinates, given.label)
    if given.picture is not None:
        draw(cells, given.coordinates, known, given.picture)
    cells.write_h5ad(given.out or given.file)
    print(cells.obs["label_metric"].value_counts().to_string())


if __name__ == "__main__":
    main()
