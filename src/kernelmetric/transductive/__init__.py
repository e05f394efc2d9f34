"""Distances from few labels and much geometry.

:func:`tangent_distance` and :func:`tangent_neighbors` are a prior geometry for images: distances
that do not notice small shifts, rotations and the like.
"""

from kernelmetric.transductive._tangent import (
    TANGENTS,
    tangent_distance,
    tangent_neighbors,
    tangent_vectors,
)

__all__ = ["TANGENTS", "tangent_distance", "tangent_neighbors", "tangent_vectors"]
