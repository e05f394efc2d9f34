"""Graphs of nearest neighbours, which know nothing of labels."""

from typing import Any

import numpy as np
from scipy import sparse

from kernelmetric.compute import map_rows, to_numpy
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.inputs._parameters import COUNT, require_word
from kernelmetric.inputs._points import as_points

_SYMMETRIZE = {
    "union": lambda A: A.maximum(A.T),
    "mutual": lambda A: A.minimum(A.T),
    "mean": lambda A: (A + A.T) / 2,
}
_WEIGHTS = ("binary", "gaussian")


def neighbor_graph(
    X: Any,
    n_neighbors: int,
    *,
    weights: str = "binary",
    symmetrize: str = "union",
    metric: Any = None,
    neighbors: tuple[Any, Any] | None = None,
) -> sparse.csr_array:
    r"""Symmetric graph of the exact nearest neighbours of every point.

    Point j is joined to point i when it is among the ``n_neighbors`` nearest of i, with the
    weight

    .. math:: a_{ij} = 1 \quad\text{or}\quad a_{ij} = e^{-d_{ij}^2 / m},

    where m is the median of all :math:`d_{ij}^2 > 0` in the graph: the units of the features do
    not matter. Then A is made symmetric.

    Parameters
    ----------
    X : array-like of shape (n, d) or None
        The points. Only needed when ``neighbors`` is None.
    n_neighbors : int
        Neighbours of each point, itself not counted; all others where there are fewer.
    weights : {"binary", "gaussian"}, default="binary"
        The weight of a neighbour.
    symmetrize : {"union", "mutual", "mean"}, default="union"
        max(A, Aᵀ), min(A, Aᵀ), which may leave points alone, or (A + Aᵀ)/2.
    metric : fitted metric, default=None
        Distances are Euclidean in ``metric.transform(X)``; None means in X itself.
    neighbors : tuple of (distances, indices), default=None
        As ``kneighbors`` of scikit-learn and ``tangent_neighbors`` return them, each of shape
        (n, k), nearest first. A point in its own list is passed over; so are negative indices.

    Returns
    -------
    sparse array of shape (n, n)
        CSR, without a diagonal or stored zeros. O(n² d) time, one block of rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.graphs import neighbor_graph
    >>> X = np.array([[0.0], [1.0], [3.0], [3.5]])
    >>> neighbor_graph(X, 1).toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.]])
    """
    COUNT.require("n_neighbors", n_neighbors, hint="try 20")
    require_word("weights", weights, _WEIGHTS)
    require_word("symmetrize", symmetrize, _SYMMETRIZE)
    if neighbors is None:
        Z = as_points(X if metric is None else getattr(metric, "places", metric.transform)(X))
        indices, squared = nearest_neighbors(Z, n_neighbors)
    else:
        squared, indices = _first_others(*neighbors, n_neighbors)
    A = adjacency(indices, squared if weights == "gaussian" else None)
    if weights == "gaussian":
        scale = np.median(A.data[A.data > 0]) if np.any(A.data > 0) else 1.0
        A.data = np.exp(-A.data / scale)
    W = sparse.csr_array(_SYMMETRIZE[symmetrize](A))
    W.eliminate_zeros()
    return W


def adjacency(neighbors: np.ndarray, values: np.ndarray | None = None) -> sparse.csr_array:
    """Ones, or given values, from every point to its neighbours; negative numbers are none."""
    n = len(neighbors)
    rows, slots = np.nonzero((neighbors >= 0) & (neighbors != np.arange(n)[:, None]))
    data = np.ones(len(rows)) if values is None else values[rows, slots]
    return sparse.csr_array((data, (rows, neighbors[rows, slots])), shape=(n, n))


def union_graph(neighbors: np.ndarray) -> sparse.csr_array:
    """Weight one between two points when either is among the neighbours of the other."""
    A = adjacency(neighbors)
    A.data[:] = 1.0  # a neighbour listed twice is one neighbour
    return A.maximum(A.T).tocsr()


def local_graph(neighbors: np.ndarray, squared: np.ndarray) -> sparse.csr_array:
    """``s exp(-4 d² / t)``, t a point's squared distance to its last neighbour, mean of both sides.

    s is the share of neighbours that both have in common.
    """
    last = squared[:, -1:]
    ratio = np.divide(squared, last, out=np.zeros(squared.shape), where=last > 0)
    A = adjacency(neighbors, np.exp(-4.0 * ratio) * _in_common(neighbors))
    return sparse.csr_array((A + A.T) / 2)


def _in_common(neighbors: np.ndarray) -> np.ndarray:
    """``|A ∩ B| / |A ∪ B|`` of the neighbours of each point and of those of each neighbour.

    Everyone is a neighbour of itself.
    """
    own = np.column_stack([np.arange(len(neighbors)), neighbors])

    def shares(rows: slice) -> np.ndarray:
        same = own[neighbors[rows]][..., None] == own[rows, None, None, :]
        n_both = np.count_nonzero(same, axis=(2, 3))
        return n_both / (2 * own.shape[1] - n_both)

    return map_rows(shares, len(own), neighbors.shape[1] * own.shape[1] ** 2)


def _first_others(distances: Any, indices: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances and indices of the first k in each list that are not the point itself."""
    distances = np.asarray(to_numpy(distances), dtype=np.float64)
    indices = np.asarray(to_numpy(indices))
    if distances.ndim != 2 or distances.shape != indices.shape or indices.dtype.kind not in "iu":
        raise ValueError(
            f"Got neighbors of shapes {distances.shape} and {indices.shape} and dtypes "
            f"{distances.dtype} and {indices.dtype}, but expected (distances, integer indices) of "
            "one shape (n, k): swap them if they came as (indices, distances)."
        )
    n = len(indices)
    if indices.size and indices.max() >= n:
        raise ValueError(
            f"Got the neighbour {indices.max()} of {n} points, but expected row numbers below {n}: "
            "neighbours must be searched among the points themselves."
        )
    others = indices != np.arange(n)[:, None]
    available = indices.shape[1] - int(np.max(~others.all(axis=1), initial=False))
    if available < min(k, n - 1):
        raise ValueError(
            f"Got lists of {available} neighbours, but expected n_neighbors={k}: "
            "search for more, or lower n_neighbors."
        )
    kept = others & (np.cumsum(others, axis=1) <= k)
    return distances**2, np.where(kept, indices, -1)
