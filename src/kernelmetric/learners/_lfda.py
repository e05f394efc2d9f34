"""Local Fisher discriminant analysis."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelmetric import compute
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.reductions import class_neighbors, squared_distances
from kernelmetric.inputs import Weights
from kernelmetric.learners import _spectral
from kernelmetric.learners._base import BLOCK_BYTES
from kernelmetric.spaces import Gram, orthonormal


@dataclass(eq=False, repr=False)
class LFDA(_spectral.LocalLearner):
    r"""Local Fisher discriminant analysis.

    As :class:`LDA`, but far points of one class need not come together, so that a class may be of
    several clusters. With the affinities
    :math:`A_{ij} = e^{-\|x_i - x_j\|^2 / (\sigma_i \sigma_j)}` of points of one class, where
    :math:`\sigma_i` is the distance to the k-th neighbour inside the class, the directions are
    eigenvectors of :math:`S_b v = \lambda S_w v` [1]_:

    .. math:: S_w = \tfrac12 \sum_{y_i = y_j} \frac{A_{ij}}{n_c} \delta_{ij}\delta_{ij}^\top,
              \qquad
              S_b = \tfrac12 \sum_{y_i = y_j} A_{ij} \Bigl(\frac1n - \frac1{n_c}\Bigr)
              \delta_{ij}\delta_{ij}^\top
              + \tfrac12 \sum_{y_i \ne y_j} \frac1n \delta_{ij}\delta_{ij}^\top

    each of them multiplied by :math:`\sqrt\lambda`. O(n_c² d) time for each class, and O(d³).

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None takes every positive eigenvalue.
    n_neighbors : int, default=7
        k: the neighbour inside the class whose distance is the local scale.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in S_w, 0 to 1; 'auto' is at most that of Ledoit and Wolf.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    eigenvalues_ : ndarray
        All eigenvalues λ, descending.
    shrinkage_ : float
        The share that was used.
    loss_ : float
        Minus the sum of the eigenvalues kept.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LDA : For classes of one cluster.

    References
    ----------
    .. [1] Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher
       discriminant analysis", Journal of Machine Learning Research 8 (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelmetric import LFDA
    >>> X, y = load_wine(return_X_y=True)
    >>> LFDA(n_components=2).fit(X, y).transform(X).shape
    (178, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 7
    shrinkage: Any = "auto"
    class_weight: Any = None

    _blocks = 2

    def _learn(
        self, X: Any, codes: np.ndarray, gram: Gram | None, where: Any, weights: Weights | None
    ) -> None:
        rank = self._check_n_components(X.shape[1])
        coordinates = orthonormal(X, gram)
        Z = coordinates.Z if weights is None else coordinates.Z - weights.mean(coordinates.Z)
        shares = np.ones(len(Z)) if weights is None else weights.shares
        where = Z if where is None else compute.to_numpy(where)
        device = compute.in_library_of(Z, X), codes, compute.in_library_of(where, X)
        within, between = local_scatters(*device, min(self.n_neighbors, len(Z)), weights)
        about = _spectral.about_centres(Z, codes, shares)
        self.shrinkage_ = _spectral.shrinkage_of(about, codes, self.shrinkage, shares)
        values, V = eigh(between, _spectral.shrunk(within, self.shrinkage_))
        self.eigenvalues_, V = values[::-1], V[:, ::-1]
        positive = int(np.sum(self.eigenvalues_ > 1e-12 * self.eigenvalues_[0]))
        kept = min(rank, max(positive, 1))
        lengths = np.sqrt(np.maximum(self.eigenvalues_[:kept], 0.0))
        self._store(_spectral.signed(coordinates.leave((V[:, :kept] * lengths).T)), X)
        self.loss_ = -float(np.sum(self.eigenvalues_[:kept]))


def local_scatters(
    Z: Any, codes: np.ndarray, where: Any, k: int, weights: Weights | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean local scatter inside and between classes; the scale is that of k-th neighbours."""
    each = np.ones(Z.shape[0]) if weights is None else weights.shares
    n, shares = float(np.sum(each)), compute.like(each, Z)[:, None]
    distances = class_neighbors(where, codes, k, same=True)[1]
    scales = np.sqrt(np.max(np.where(np.isfinite(distances), distances, 0.0), axis=1))
    within, between = np.zeros((Z.shape[1], Z.shape[1])), compute.to_numpy(Z.T @ (shares * Z))
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        points, share = compute.take_rows(Z, members), compute.take_rows(shares, members)
        size = float(np.sum(each[members]))
        counted = None if weights is None else share
        local = _local_scatter(points, compute.take_rows(where, members), scales[members], counted)
        about = points - compute.namespace(points).sum(share * points, axis=0, keepdims=True) / size
        within += local / size
        # Pairs of different classes are all pairs less those of one class.
        inside = compute.to_numpy(about.T @ (share * about))
        between += local * (1 / n - 1 / size) - (size / n) * inside
    return within / n, between / n


def _local_scatter(Z: Any, where: Any, scales: np.ndarray, share: Any = None) -> np.ndarray:
    """``½ Σ_ij A_ij (z_i - z_j)(z_i - z_j)ᵀ`` of one class, times the shares of both."""
    xp, n = compute.namespace(Z), Z.shape[0]
    tiny = float(np.finfo(np.float64).tiny)
    scale = compute.like(scales, where)

    def part(rows: slice) -> Any:
        A = squared_distances(where[rows, :], where)
        # Repeated points have no scale: their affinity is one with themselves, else none.
        with np.errstate(over="ignore"):  # exp(-inf) is the affinity of none
            A /= xp.clip(scale[rows][:, None] * scale[None, :], tiny, None)
        A = xp.exp(-A)
        if share is not None:
            A = share[rows, :] * A * share.T
        return xp.sum(A, axis=1)[:, None] * Z[rows, :] - A @ Z

    most = max(32, compute.backend_of(Z).tile_bytes(BLOCK_BYTES, Z) // (8 * n))
    S = compute.to_numpy(Z.T @ compute.map_rows(part, n, 4 * 8 * n, most=most))
    return 0.5 * (S + S.T)
