"""Neighbours as learners need them: who should be near, who should be far.

:func:`target_neighbors` lists the k nearest points of a point's own class (LMNN);
:func:`discriminant_graph` joins near points with +1 inside a class and -1 across classes (DNE), and
:func:`patch_graph` likewise with weights (DLA); :func:`heat_graph` joins near points (LPP);
:func:`neighbor_graph` joins the nearest points whatever their labels, and
:func:`component_codes` says which of them hang together (transductive distances);
:func:`laplacian` turns weights into the quadratic form ``Σ w_ij |z_i - z_j|²``;
:class:`Pairs` lists similar and dissimilar pairs, from labels, chunks or a person (idealized
kernels), and :func:`as_pairs` makes them from what a ``fit`` got.
"""

from kernelmetric.graphs._labels import (
    discriminant_graph,
    heat_graph,
    laplacian,
    patch_graph,
    target_neighbors,
)
from kernelmetric.graphs._neighbors import component_codes, neighbor_graph
from kernelmetric.graphs._pair_arguments import as_pairs
from kernelmetric.graphs._pair_rows import check_rows, pair_distances, pair_squares
from kernelmetric.graphs._pairs import Pairs

__all__ = [
    "Pairs",
    "as_pairs",
    "check_rows",
    "component_codes",
    "discriminant_graph",
    "heat_graph",
    "laplacian",
    "neighbor_graph",
    "pair_distances",
    "pair_squares",
    "patch_graph",
    "target_neighbors",
]
