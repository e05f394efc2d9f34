"""Neighbours as learners need them: who should be near, who should be far.

:func:`target_neighbors` lists the k nearest points of a point's own class (LMNN);
:func:`discriminant_graph` joins near points with +1 inside a class and -1 across classes (DNE);
:func:`laplacian` turns weights into the quadratic form ``Σ w_ij |z_i - z_j|²``;
:class:`Pairs` lists similar and dissimilar pairs, from labels, chunks or a person (idealized
kernels), and :func:`as_pairs` makes them from what a ``fit`` got. Graphs over all points,
labelled or not: :func:`neighbor_graph` and :func:`gaussian_graph` join what is near,
:func:`label_graphs` and :func:`pair_graphs` what labels or pairs say should be near, or far.
"""

from kernelmetric.graphs._labels import discriminant_graph, laplacian, target_neighbors
from kernelmetric.graphs._neighbor_graphs import (
    check_graph,
    gaussian_graph,
    label_graphs,
    neighbor_graph,
    pair_graphs,
)
from kernelmetric.graphs._pair_rows import check_rows, pair_distances
from kernelmetric.graphs._pairs import Pairs, as_pairs

__all__ = [
    "Pairs",
    "as_pairs",
    "check_graph",
    "check_rows",
    "discriminant_graph",
    "gaussian_graph",
    "label_graphs",
    "laplacian",
    "neighbor_graph",
    "pair_distances",
    "pair_graphs",
    "target_neighbors",
]
