"""Penalties that are the inverse of a kernel, so that embeddings lie in its range."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import shortest_path
from sklearn.base import clone

from kernelmetric.compute import require_memory
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.learners._checks import check_number
from kernelmetric.selection import automatic_space
from kernelmetric.spaces import Space
from kernelmetric.transductive._costs import named
from kernelmetric.transductive._penalties import (
    Geometry,
    GraphLaplacian,
    LLEPenalty,
    NormalizedLaplacian,
    Penalty,
)

_RELATIVE_CUT = 1e-10
_OF_A_GRAPH = {"laplacian": GraphLaplacian, "normalized": NormalizedLaplacian, "lle": LLEPenalty}


class KernelPenalty(Penalty):
    """The inverse ``K⁺`` of a centred Gram matrix: alone, kernel PCA.

    Embeddings lie in range(K), so that new points can be embedded and duplicates stay together.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    space : Space, default=None
        Where K is taken apart; None is full-rank :class:`KPCA` up to 2,000 points, KPCA of rank
        256 up to 10,000, landmarks beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import KernelPenalty
    >>> X = np.random.RandomState(0).randn(20, 3)
    >>> geometry = KernelPenalty("linear").geometry(X, None)
    >>> geometry.basis.shape
    (20, 3)
    """

    def __init__(self, kernel=None, *, space=None):
        self.kernel = kernel
        self.space = space

    def _geometry(self, X: Any, W: Any) -> Geometry:
        space = self.fresh_space(X.shape[0]).set_params(kernel=self.kernel)
        Z = np.asarray(space.fit_transform(X), dtype=np.float64)
        values = np.asarray(space.eigenvalues_, dtype=np.float64)
        basis = Z / np.sqrt(values)
        return Geometry(None, None, 1.0 / float(values.mean()), basis, values, space)

    def fresh_space(self, n_samples: int) -> Space:
        """A copy of ``space``, or the automatic one, not yet fitted.

        Parameters
        ----------
        n_samples : int
            Number of points.

        Returns
        -------
        Space
            For so many points.
        """
        if self.space is None:
            return automatic_space(n_samples, 0)
        if not isinstance(self.space, Space):
            raise ValueError(
                f"Got space={self.space!r}, but expected one of this library: try KPCA()."
            )
        return clone(self.space)


class WarpedPenalty(KernelPenalty):
    """Theorem 4: ``K⁺ + HMH``, a kernel warped by another penalty M.

    The norm of the kernel's functions plus M of their values at the points. Eq. (7) of Li, Yang
    and Wang, ICML 2007, is solved in range(K): the embedding is defined at new points too.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    penalty : penalty, default=None
        What M is; None is :class:`GraphLaplacian`.
    space : Space, default=None
        As in :class:`KernelPenalty`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import WarpedPenalty
    >>> from kernelmetric.graphs import gaussian_graph
    >>> X = np.random.RandomState(0).randn(20, 3)
    >>> WarpedPenalty("rbf").geometry(X, gaussian_graph(X)).matrix.shape
    (19, 19)
    """

    uses_graph = True

    def __init__(self, kernel=None, *, penalty=None, space=None):
        super().__init__(kernel, space=space)
        self.penalty = penalty

    def _geometry(self, X: Any, W: Any) -> Geometry:
        alone = super()._geometry(X, W)
        inner = "laplacian" if self.penalty is None else self.penalty
        M = named(inner, _OF_A_GRAPH, "penalty", "geometry").geometry(X, W)
        if M.basis is not None:
            raise ValueError(
                f"Got penalty={self.penalty!r} inside WarpedPenalty, but expected one of a graph."
            )
        U: Any = alone.basis
        inside = U.T @ (M.matrix @ U)  # the basis is centred: no H needed
        return alone._replace(matrix=(inside + inside.T) / 2, scale=M.scale)


class IsomapPenalty(Penalty):
    """The inverse of ``-½ H D² H`` for distances along the neighbour graph: alone, Isomap.

    Embeddings lie in the span of the positive eigenvectors of that matrix. O(n² log n) time,
    n × n numbers.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each point.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import IsomapPenalty
    >>> X = np.random.RandomState(0).randn(30, 2)
    >>> IsomapPenalty().geometry(X, None).basis.shape[0]
    30
    """

    def __init__(self, n_neighbors=10):
        self.n_neighbors = n_neighbors

    def _geometry(self, X: Any, W: Any) -> Geometry:
        check_number(self, "n_neighbors", Integral, low=1)
        n = X.shape[0]
        require_memory(8.0 * 5 * n * n, f"Isomap of {n} points", "try penalty='laplacian'.")
        neighbors, squares = nearest_neighbors(X, min(self.n_neighbors, n - 1))
        columns = neighbors.ravel().astype(np.int32)  # older SciPy searches such graphs only
        rows = np.repeat(np.arange(n, dtype=np.int32), neighbors.shape[1])
        # a path of length zero would be no edge: duplicates keep the least positive number
        lengths = np.maximum(np.sqrt(squares.ravel()), np.finfo(np.float64).tiny)
        graph = sparse.csr_array((lengths, (rows, columns)), shape=(n, n))
        D = shortest_path(graph, directed=False)
        if not np.all(np.isfinite(D)):
            raise ValueError(
                f"Got a graph of {self.n_neighbors} neighbours in several components, but Isomap "
                "expected one: try a larger n_neighbors."
            )
        K = -0.5 * D**2
        K -= K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)
        values, U = linalg.eigh((K + K.T) / 2)
        kept = np.flatnonzero((values > _RELATIVE_CUT * values[-1]) & (values > 0))[::-1]
        if not len(kept):
            raise ValueError(
                "Got points all at no distance along the graph: rescale them with StandardScaler."
            )
        values, U = values[kept], U[:, kept]
        return Geometry(None, None, 1.0 / float(values.mean()), U, values)


def warped_kernel(block: Any, left: Any, right: Any, K: Any, M: Any) -> np.ndarray:
    r"""Lemma 5: the kernel of the warped space, between any points.

    .. math:: \tilde k(x, z) = k(x, z) - k_x^\top (I + MK)^{-1} M k_z

    Parameters
    ----------
    block : array of shape (p, q)
        Kernel values k(x, z).
    left : array of shape (p, n)
        Kernel values k_x of the first points with the training points.
    right : array of shape (q, n)
        Kernel values k_z of the second ones.
    K : array of shape (n, n)
        Gram matrix of the training points.
    M : sparse or dense array of shape (n, n)
        Positive semi-definite penalty.

    Returns
    -------
    ndarray of shape (p, q)
        Between training points, where all of the first four are K: the inverse of ``K⁻¹ + M``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import warped_kernel
    >>> K = M = np.eye(2)
    >>> warped_kernel(K, K, K, K, M)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    K = np.asarray(K, dtype=np.float64)
    inner = np.linalg.solve(np.eye(len(K)) + M @ K, M @ np.asarray(right).T)
    return np.asarray(block) - np.asarray(left) @ inner


def as_penalty(penalty: Any) -> Any:
    """The penalty that a name, or an object, means."""
    of_a_kernel = {"isomap": IsomapPenalty, "kernel": KernelPenalty, "warped": WarpedPenalty}
    return named(penalty, _OF_A_GRAPH | of_a_kernel, "penalty", "geometry")
