"""Graphs over all points, labelled or not: what is near, and what labels or pairs say of it."""

from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute import map_rows, require_memory, take_rows, to_numpy
from kernelmetric.compute.reductions import (
    class_neighbors,
    median_squared_distance,
    squared_distances,
)
from kernelmetric.graphs._pairs import Pairs
from kernelmetric.inputs._parameters import POSITIVE

_ASYMMETRY = 1e-8  # relative: beyond, it is no round-off


def gaussian_graph(X: Any, width: float | None = None) -> np.ndarray:
    """All pairs joined with weights ``exp(-|x_i - x_j|² / width)``, none at the diagonal.

    ``width`` None is a quarter of the median squared distance. n × n numbers: for some thousand
    points.
    """
    X = (X if sparse.issparse(X) else to_numpy(X)).astype(np.float64, copy=False)
    n = X.shape[0]
    if width is None:
        width = median_squared_distance(X) / 4.0
    POSITIVE.require("width", width)
    require_memory(8.0 * 3 * n * n, f"A full graph of {n} points", "take the nearest neighbours.")
    W = map_rows(lambda rows: np.exp(-squared_distances(X[rows], X) / width), n, 8 * 3 * n)
    W = (W + W.T) / 2
    np.fill_diagonal(W, 0.0)
    return W


def label_graphs(X: Any, codes: np.ndarray, k: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The cost graph of labels in its two parts: neighbours of one class, and of different ones.

    Every labelled point (code not negative) gives a weight of one in all to its k nearest labelled
    points of its own class, and one to its k nearest of other classes. Both are symmetrised by the
    mean; their difference is eq. (6) of [1]_.

    .. [1] Li, Yang and Wang, "A transductive framework of distance metric learning by spectral
       dimensionality reduction", ICML 2007, section 3.1.
    """
    labelled = np.flatnonzero(codes >= 0)
    points, known = take_rows(X, labelled), codes[labelled]

    def part(same: bool) -> sparse.csr_array:
        neighbors = class_neighbors(points, known, k, same=same)[0]
        rows, slots = np.nonzero(neighbors >= 0)
        return _averages(labelled[rows], labelled[neighbors[rows, slots]], len(codes))

    return part(same=True), part(same=False)


def pair_graphs(pairs: Pairs) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The cost graph of pairs in its two parts, each point's weights adding up as from labels."""

    def part(rows: np.ndarray) -> sparse.csr_array:
        ends = np.concatenate([rows, rows[:, ::-1]])
        return _averages(ends[:, 0], ends[:, 1], pairs.n_samples)

    return part(pairs.similar), part(pairs.dissimilar)


def check_graph(W: Any, n_samples: int, name: str, *, negative: bool = False) -> Any:
    """Weights that a user gave, in float64 and without the diagonal, dense or CSR.

    Refused unless they are symmetric, finite, of the right shape and, by default, not negative.
    """
    W = sparse.csr_array(W) if sparse.issparse(W) else np.asarray(W)
    if W.shape != (n_samples, n_samples):
        raise ValueError(
            f"Got {name} of shape {W.shape}, but expected ({n_samples}, {n_samples}): one row and "
            "one column per row of X."
        )
    W = W.astype(np.float64)
    values = W.data if sparse.issparse(W) else W
    if not np.all(np.isfinite(values)):
        raise ValueError(f"Got {name} with NaN or infinity, but expected finite weights.")
    if not negative and values.size and values.min() < 0:
        raise ValueError(f"Got {name} with a negative weight, but expected weights >= 0.")
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    if float(abs(W - W.T).max()) > _ASYMMETRY * largest:
        raise ValueError(
            f"Got {name} that is not symmetric, but expected w_ij = w_ji: try (W + W.T) / 2, or "
            "W.maximum(W.T) for neighbours of either side."
        )
    W = 0.5 * (W + W.T)
    if sparse.issparse(W):
        W = sparse.csr_array(W - sparse.diags_array(W.diagonal()))
        W.eliminate_zeros()
    else:
        np.fill_diagonal(W, 0.0)
    return W


def _averages(rows: np.ndarray, columns: np.ndarray, n: int) -> sparse.csr_array:
    """Each row's entries share a weight of one; the mean of that and its transpose."""
    counts = np.maximum(np.bincount(rows, minlength=n), 1)
    A = sparse.csr_array((1.0 / counts[rows], (rows, columns)), shape=(n, n))
    return ((A + A.T) / 2).tocsr()
