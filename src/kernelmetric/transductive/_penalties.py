"""Penalties of a graph or a kernel: what was believed of the geometry before any label was seen.

Alone, with no label at all, each is a known method of embedding, the smallest eigenvectors of P.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, clone

from kernelmetric._warnings import warn
from kernelmetric.selection import automatic_space
from kernelmetric.spaces import Space
from kernelmetric.transductive._costs import named


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


_OF_A_GRAPH = {"laplacian": GraphLaplacian, "normalized": NormalizedLaplacian}


@dataclass(eq=False, repr=False)
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

    kernel: Any = None
    _: KW_ONLY
    space: Any = None

    def _geometry(self, X: Any, W: Any) -> Geometry:
        space = self._fresh_space(X.shape[0]).set_params(kernel=self.kernel)
        Z = np.asarray(space.fit_transform(X), dtype=np.float64)
        values = np.asarray(space.eigenvalues_, dtype=np.float64)
        basis = Z / np.sqrt(values)
        return Geometry(None, None, 1.0 / float(values.mean()), basis, values, space)

    def _fresh_space(self, n_samples: int) -> Space:
        """A copy of ``space``, or the automatic one for so many points, not yet fitted."""
        if self.space is None:
            return automatic_space(n_samples, 0)
        if not isinstance(self.space, Space):
            raise ValueError(
                f"Got space={self.space!r}, but expected one of this library: try KPCA()."
            )
        return clone(self.space)


@dataclass(eq=False, repr=False)
class WarpedPenalty(KernelPenalty):
    """Theorem 4: ``K⁺ + HMH``, a kernel warped by another penalty M.

    The norm of the kernel's functions plus M of their values at the points. Eq. (7) of Li, Yang
    and Wang, ICML 2007, is solved in range(K): the embedding is defined at new points too.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    space : Space, default=None
        As in :class:`KernelPenalty`.
    penalty : penalty, default=None
        What M is; None is :class:`GraphLaplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import WarpedPenalty
    >>> from kernelmetric.graphs import gaussian_graph
    >>> X = np.random.RandomState(0).randn(20, 3)
    >>> WarpedPenalty("rbf").geometry(X, gaussian_graph(X)).matrix.shape
    (19, 19)
    """

    penalty: Any = field(default=None, kw_only=True)

    uses_graph = True

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


def as_penalty(penalty: Any) -> Any:
    """The penalty that a name, or an object, means."""
    of_a_kernel = {"kernel": KernelPenalty, "warped": WarpedPenalty}
    return named(penalty, _OF_A_GRAPH | of_a_kernel, "penalty", "geometry")
