"""What a fit takes at its peak."""

from __future__ import annotations

from typing import Any

from kernelmetric.transductive._geometry import DIMENSIONS, FULL, NEIGHBORS
from kernelmetric.transductive._kernel_penalties import IsomapPenalty, KernelPenalty
from kernelmetric.transductive._parameters import neighbors_among

_DENSE = 1000  # points up to which LAPACK solves the eigenproblem of a graph
_BLOCKS = 2**23  # tiles of distances, and what is too small to count


def peak_bytes(
    penalty: Any, graph: Any, shape: tuple[int, int], n_components: int | None, n_neighbors: Any
) -> int:
    """Bytes that a fit takes besides the data, within a factor of two from 700 points on."""
    n, n_features = shape
    automatic, name = isinstance(n_neighbors, str), graph if isinstance(graph, str) else ""
    d = min(n_components or max(DIMENSIONS), n)
    k = neighbors_among(max(NEIGHBORS) if automatic else n_neighbors, n)
    total = _BLOCKS + 8 * n * (3 * n_features + 10 * d)  # points and eigenvectors
    if penalty.uses_graph:
        full = name == "gaussian" or (name == "auto" and automatic and n <= FULL)
        total += 8 * 4 * n * n if full else 60 * n * k  # with its transpose and penalty
    if isinstance(penalty, IsomapPenalty):
        total += 8 * 5 * n * n
    elif isinstance(penalty, KernelPenalty):
        space = penalty.fresh_space(n)
        rank = min(getattr(space, "n_components", None) or n, n)
        in_range = 8 * rank * (2 * n + 5 * rank)  # the basis of the range, and eq. (7) in it
        total += max(in_range, space.estimate_memory(n, n_features))
    else:
        total += 8 * 4 * n * n if n <= _DENSE else 8 * n * 2 * (d + 74)
    return int(total)
