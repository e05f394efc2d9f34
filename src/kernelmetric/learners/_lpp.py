"""Locality preserving projections."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.graphs import heat_graph, laplacian
from kernelmetric.inputs import Weights
from kernelmetric.learners._checks import refuse_lone_points
from kernelmetric.learners._spectral import LocalLearner, shrinkage_of, shrunk, signed
from kernelmetric.spaces import Gram, orthonormal


@dataclass(eq=False, repr=False)
class LPP(LocalLearner):
    r"""Locality preserving projections: Laplacian eigenmaps that are linear.

    Directions along which neighbours are alike, as far as the points vary at all [1]_:

    .. math:: \min_L\; \operatorname{tr} L Z^\top (D - W) Z L^\top
              \quad\text{s.t.}\quad L Z^\top D Z L^\top = I

    with :math:`w_{ij} = e^{-\|x_i - x_j\|^2 / t}` between neighbours, D the sums of the rows of W,
    and points Z about their mean in the weights D. With labels, neighbours are of the same class.
    O(n² d + d³) time; a block of rows × n in memory.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None takes every eigenvalue below one, that of noise.
    n_neighbors : int, default=3
        Neighbours of each point.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in ``Zᵀ D Z``, 0 to 1; 'auto' is at most that of Ledoit and Wolf.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    eigenvalues_ : ndarray
        All eigenvalues of the problem, ascending.
    shrinkage_ : float
        The share that was used.
    loss_ : float
        The objective: the sum of the eigenvalues kept.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LFDA : Where all points have labels.
    TransductiveDistance : Where few points have labels.

    References
    ----------
    .. [1] He and Niyogi, "Locality preserving projections", NIPS 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric import LPP
    >>> X, _ = load_digits(return_X_y=True)
    >>> LPP(n_components=2).fit(X[:300]).transform(X).shape
    (1797, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 3
    shrinkage: Any = "auto"

    learns_from = "points"

    def _learn(
        self, X: Any, codes: Any, gram: Gram | None, where: Any, weights: Weights | None
    ) -> None:
        rank = self._check_n_components(X.shape[1])
        coordinates = orthonormal(X, gram)
        where = coordinates.Z if where is None else to_numpy(where)
        W = heat_graph(where, self.n_neighbors, codes, weights)
        degrees = np.asarray(W.sum(axis=1)).ravel()
        refuse_lone_points(degrees.any(), "LPP joins points to neighbours of their own class")
        Z = coordinates.Z - np.average(coordinates.Z, axis=0, weights=degrees)
        points = np.sqrt(degrees / np.mean(degrees))[:, None] * Z
        one = np.zeros(len(points), dtype=np.intp)
        counts = np.ones(len(points)) if weights is None else weights.counts
        once = points / np.sqrt(counts)[:, None]
        self.shrinkage_ = shrinkage_of(once, one, self.shrinkage, counts)
        S = Z.T @ (laplacian(W) @ Z) / np.sum(degrees)
        values, V = eigh(0.5 * (S + S.T), shrunk(points.T @ points / len(Z), self.shrinkage_))
        self.eigenvalues_ = values
        alike = max(int(np.sum(values < 1.0)), 1)
        kept = min(alike if self.n_components is None else rank, len(values))
        self._store(signed(coordinates.leave(V[:, :kept].T)), X)
        self.loss_ = float(np.sum(values[:kept]))
