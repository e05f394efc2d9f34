"""Neighbours as learners need them: who should be near, who should be far.

:func:`target_neighbors` lists the k nearest points of a point's own class (LMNN);
:func:`discriminant_graph` joins near points with +1 inside a class and -1 across classes (DNE);
:func:`laplacian` turns weights into the quadratic form ``Σ w_ij |z_i - z_j|²``.
"""

from kernelmetric.graphs._labels import discriminant_graph, laplacian, target_neighbors

__all__ = ["discriminant_graph", "laplacian", "target_neighbors"]
