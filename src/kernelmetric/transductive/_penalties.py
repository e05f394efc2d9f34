"""Penalties of a graph: what was believed of the geometry before any label was seen.

Alone, with no label at all, each is a known method of embedding, the smallest eigenvectors of P.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator
from sklearn.manifold._locally_linear import barycenter_weights

from kernelmetric._warnings import warn
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.learners._checks import LARGEST, check_number
from kernelmetric.spaces import Space


class Geometry(NamedTuple):
    """A penalty on given points.

    Parameters
    ----------
    matrix : sparse array or ndarray of shape (n, n), or (r, r) where there is a basis, or None
        The symmetric matrix P; with a basis, what it has beside K⁺, if anything.
    null : ndarray of shape (n,) or None
        The vector that every embedding must be orthogonal to; None where the basis is already.
    scale : float
        Size of P's diagonal, in which λ is measured.
    basis : ndarray of shape (n, r), default=None
        Orthonormal eigenvectors of K, in whose span embeddings lie; None is the whole space.
    values : ndarray of shape (r,), default=None
        The eigenvalues of K that go with them.
    space : Space, default=None
        The fitted space of the kernel, through which new points are embedded.
    """

    matrix: Any
    null: np.ndarray | None
    scale: float
    basis: np.ndarray | None = None
    values: np.ndarray | None = None
    space: Space | None = None


def coordinates_of(geometry: Geometry, V: np.ndarray) -> np.ndarray:
    """The points that eigenvectors mean: in a basis they are coefficients."""
    return V if geometry.basis is None else geometry.basis @ V


class Penalty(BaseEstimator):
    """What turns points, or a graph over them, into a Geometry; classes define ``_geometry``."""

    uses_graph = False
    _geometry: Any

    def geometry(self, X: Any, W: Any) -> Geometry:
        """The penalty of points and of a graph over them.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points; penalties of a graph alone do not look at them.
        W : sparse array or ndarray of shape (n, n), or None
            Symmetric weights, looked at where ``uses_graph``.

        Returns
        -------
        Geometry
            Sparse where the graph is; of a kernel, in a basis of its range.
        """
        return self._geometry(X, W)


class GraphLaplacian(Penalty):
    """The Laplacian ``L = D - W`` of the graph: alone, Laplacian Eigenmaps.

    Points without neighbours get the mean degree on their diagonal, so that they rest at the
    origin instead of taking an eigenvector each.

    Examples
    --------
    >>> from kernelmetric.graphs import union_graph
    >>> from kernelmetric.transductive import GraphLaplacian
    >>> import numpy as np
    >>> W = union_graph(np.array([[1], [0], [1]]))
    >>> GraphLaplacian().geometry(None, W).matrix.toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """

    uses_graph = True

    def _geometry(self, X: Any, W: Any) -> Geometry:
        degrees = degrees_of(W)
        scale = float(degrees.mean())
        P = sparse.diags_array(np.where(degrees > 0, degrees, scale)) - W
        return Geometry(P, (degrees > 0).astype(np.float64), scale)


class NormalizedLaplacian(Penalty):
    """The Laplacian with every point's degree divided out, ``I - D^-½ W D^-½``.

    Its null vector is ``D^½ e``. Rows of the embedding times ``D^-½`` are those of scikit-learn's
    ``SpectralEmbedding``.

    Examples
    --------
    >>> from kernelmetric.graphs import union_graph
    >>> from kernelmetric.transductive import NormalizedLaplacian
    >>> import numpy as np
    >>> W = union_graph(np.array([[1], [0]]))
    >>> NormalizedLaplacian().geometry(None, W).matrix.toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    uses_graph = True

    def _geometry(self, X: Any, W: Any) -> Geometry:
        degrees = degrees_of(W)
        S = sparse.diags_array(np.where(degrees > 0, degrees, 1.0) ** -0.5)
        return Geometry(sparse.eye_array(len(degrees)) - S @ W @ S, np.sqrt(degrees), 1.0)


class LLEPenalty(Penalty):
    """Locally linear embedding: ``(I - B)ᵀ(I - B)``, each point the barycentre of its neighbours.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each point.
    reg : float, default=1e-3
        Ridge on the local Gram matrices, as a share of their trace.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import LLEPenalty
    >>> X = np.random.RandomState(0).randn(30, 2)
    >>> P = LLEPenalty(n_neighbors=5).geometry(X, None).matrix
    >>> bool(np.allclose(P @ np.ones(30), 0))
    True
    """

    def __init__(self, n_neighbors=10, *, reg=1e-3):
        self.n_neighbors = n_neighbors
        self.reg = reg

    def _geometry(self, X: Any, W: Any) -> Geometry:
        check_number(self, "n_neighbors", Integral, low=1)
        check_number(self, "reg", Real, low=0, high=LARGEST, above=True)
        n = X.shape[0]
        neighbors = nearest_neighbors(X, min(self.n_neighbors, n - 1))[0]
        points = X.astype(np.float64)
        B = barycenter_weights(points, points, neighbors, reg=self.reg)
        rows = np.repeat(np.arange(n), neighbors.shape[1])
        M = sparse.eye_array(n) - sparse.csr_array((B.ravel(), (rows, neighbors.ravel())), (n, n))
        P = (M.T @ M).tocsr()
        return Geometry(P, np.ones(n), float(P.diagonal().mean()))


def degrees_of(W: Any) -> np.ndarray:
    """Sum of the weights of every point."""
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def warn_of_gaps(W: Any) -> None:
    """Warn of points that the graph joins to nothing, or in parts that nothing joins."""
    alone = int(np.sum(degrees_of(W) <= 0))
    if alone:
        warn(
            f"Got a graph in which {alone} point(s) have no neighbour: they are embedded at the "
            "origin. Try more neighbours, or a wider kernel."
        )
    joined = W if sparse.issparse(W) else sparse.csr_array(W > 0)  # SciPy takes 1e-9 for no edge
    parts = connected_components(joined, directed=False, return_labels=False) - alone
    if parts > 1:
        warn(
            f"Got a graph of {parts} connected components: the first {parts - 1} eigenvectors "
            "may only tell these apart. Try a larger n_neighbors."
        )
