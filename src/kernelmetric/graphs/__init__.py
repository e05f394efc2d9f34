"""Neighbours as learners need them: who should be near, who should be far.

:func:`target_neighbors` (LMNN), :func:`discriminant_graph` (DNE), :func:`patch_graph` (DLA) and
:func:`heat_graph` (LPP) join near points by labels; :func:`neighbor_graph` and
:func:`gaussian_graph` join them whatever their labels, :func:`label_graphs` and
:func:`pair_graphs` as labels or pairs say. :func:`laplacian` turns weights into
``Σ w_ij |z_i - z_j|²``. :class:`Pairs`, :class:`Triplets` and :class:`Quadruplets` list what is
known of rows of X, :class:`Matches` which rows of two tables belong together.
:func:`coded_targets` says whether labels are classes or numbers.
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
    warn_unlabelled,
)
from kernelmetric.graphs._matches import Matches
from kernelmetric.graphs._neighbors import local_graph, neighbor_graph, union_graph
from kernelmetric.graphs._pair_sources import read_pairs
from kernelmetric.graphs._pairs import Pairs
from kernelmetric.graphs._row_tuples import check_length, check_rows, pair_distances
from kernelmetric.graphs._targets import Targets, coded_targets, rows_by_place, spread_rows
from kernelmetric.graphs._tuples import IndexTuples, Quadruplets, Triplets, count_triplets
from kernelmetric.graphs._weights import check_graph, gaussian_graph, label_graphs, pair_graphs

__all__ = [
    "Matches",
    "Pairs",
    "Quadruplets",
    "Triplets",
    "gaussian_graph",
    "label_graphs",
    "laplacian",
    "neighbor_graph",
    "pair_graphs",
    "union_graph",
]
