"""Neighbours as learners need them: who should be near, who should be far.

:func:`target_neighbors` lists the k nearest points of a point's own class (LMNN);
:func:`discriminant_graph` joins near points with +1 inside a class and -1 across classes (DNE), and
:func:`patch_graph` likewise with weights (DLA); :func:`heat_graph` joins near points (LPP);
:func:`neighbor_graph` joins the nearest points whatever their labels, and
:func:`component_codes` says which of them hang together (transductive distances);
:func:`laplacian` turns weights into the quadratic form ``Σ w_ij |z_i - z_j|²``;
:class:`Pairs` lists similar and dissimilar pairs, from labels, chunks or a person (idealized
kernels), and :func:`as_pairs` makes them from what a ``fit`` got. Where points have weights,
:func:`neighbor_parts` says what each neighbour of a point counts. :class:`Triplets` and
:class:`Quadruplets` list comparisons of distances. Of all points, labelled or not,
:func:`gaussian_graph` joins every two; :func:`label_graphs` and :func:`pair_graphs` join what
labels or pairs say should be near, or far. :func:`coded_targets` says whether labels are classes
or numbers.
"""

from kernelmetric.graphs._given import (
    are_tuples,
    as_pairs,
    ordered_tuples,
    points_of_tuples,
    signed_pairs,
)
from kernelmetric.graphs._labels import (
    discriminant_graph,
    heat_graph,
    laplacian,
    neighbor_parts,
    patch_graph,
    target_neighbors,
    warn_small_classes,
    warn_unlabelled,
)
from kernelmetric.graphs._neighbors import component_codes, neighbor_graph, union_graph
from kernelmetric.graphs._pair_sources import read_pairs
from kernelmetric.graphs._pairs import Pairs
from kernelmetric.graphs._row_tuples import check_length, check_rows, pair_distances
from kernelmetric.graphs._targets import Targets, coded_targets, rows_by_place, spread_rows
from kernelmetric.graphs._tuples import IndexTuples, Quadruplets, Triplets, count_triplets
from kernelmetric.graphs._weights import (
    check_graph,
    gaussian_graph,
    label_graphs,
    pair_graphs,
)

__all__ = [
    "IndexTuples",
    "Pairs",
    "Quadruplets",
    "Targets",
    "Triplets",
    "are_tuples",
    "as_pairs",
    "check_graph",
    "check_length",
    "check_rows",
    "coded_targets",
    "component_codes",
    "count_triplets",
    "discriminant_graph",
    "gaussian_graph",
    "heat_graph",
    "label_graphs",
    "laplacian",
    "neighbor_graph",
    "neighbor_parts",
    "ordered_tuples",
    "pair_distances",
    "pair_graphs",
    "patch_graph",
    "points_of_tuples",
    "read_pairs",
    "rows_by_place",
    "signed_pairs",
    "spread_rows",
    "target_neighbors",
    "union_graph",
    "warn_small_classes",
    "warn_unlabelled",
]
