"""Few coordinates that tell similar from dissimilar pairs: PairKPCA."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import like, small_steps, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.reductions import laplacian_product
from kernelmetric.graphs import Pairs
from kernelmetric.inputs._parameters import COUNT
from kernelmetric.solvers import column_signs
from kernelmetric.spaces._base import Space
from kernelmetric.spaces._kpca import KPCA

N_DIRECTIONS = 24
_RIDGE = 0.03  # of the mean eigenvalue of the similar pairs' scatter
_RELATIVE_CUT = 1e-10


@dataclass(eq=False, repr=False)
class PairKPCA(Space):
    r"""The directions of a feature space that part dissimilar pairs most and similar pairs least.

    Let δ be the difference of the two points of a pair, in all r kernel principal components. The
    directions are the leading eigenvectors of

    .. math:: G_D v = \mu\, (G_S + \lambda I)\, v, \qquad
              G_D = \sum_D \delta\delta^\top, \quad G_S = \sum_S \delta\delta^\top, \quad
              \lambda = 0.03 \operatorname{tr} G_S / r,

    with sums over the dissimilar pairs D and the similar pairs S. They are made orthonormal, so
    that distances along them are those of the feature space. ``fit`` takes :class:`Pairs
    <kernelmetric.Pairs>` of the training points as y, some of them dissimilar. All pairs count
    alike: ``sample_weight`` is refused. O(n³) time and some n × n arrays for n points.

    Parameters
    ----------
    n_components : int, default=24
        Maximum number of directions.
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width. It sees no labels.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    anchors_ : array of shape (n, d)
        The training points.
    projection_ : array of shape (n, rank_)
        The matrix P of z(x) = k(x)ᵀ P - o.
    offset_ : array of shape (1, rank_)
        The row o.
    eigenvalues_ : ndarray of shape (rank_,)
        n times the variance of the training points along each coordinate, descending.
    rank_ : int
        Number of coordinates: all where they are no more than ``n_components``, else at most as
        many as dissimilar pairs.
    explained_variance_ratio_ : float
        Fraction of the variance in the feature space that they keep.
    basis_gram_ : None
        The basis is orthonormal.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import Pairs
    >>> from kernelmetric.spaces import PairKPCA
    >>> X = np.random.RandomState(0).randn(40, 3)
    >>> pairs = Pairs([[0, 1], [2, 3]], [[0, 2], [1, 3], [4, 5]], len(X))
    >>> PairKPCA().fit(X, pairs).transform(X).shape  # no more than dissimilar pairs
    (40, 3)
    """

    n_components: int = N_DIRECTIONS
    _: KW_ONLY
    kernel: Any = None

    learns_from = "pairs"
    takes_weights = False

    def _with_weights(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        if sample_weight is not None:
            raise ValueError(
                "Got sample_weight, but PairKPCA expected pairs that count alike: try KPCA."
            )
        return X, y

    def _check_parameters(self) -> None:
        COUNT.check(self, "n_components")

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        n = n_samples
        return 8.0 * (6 * n * n + 2 * n * n_features)

    def _begin(self, X: Any, y: Any) -> Any:
        if not isinstance(y, Pairs) or not len(y.dissimilar) or y.n_samples != X.shape[0]:
            kind = f"{y.n_samples} points" if isinstance(y, Pairs) else type(y).__name__
            raise ValueError(
                f"Got y of {kind}, but PairKPCA expected Pairs of the {X.shape[0]} points, some "
                "of them dissimilar: without them try KPCA(24)."
            )
        return super()._begin(X, None)

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        full = KPCA()
        full.kernel_ = self.kernel_
        found = full._learn(X, None)()
        Z = to_numpy(found).astype(np.float64)
        with small_steps(10.0 * Z.shape[1] ** 3):
            B = _directions(Z, y, int(self.n_components))
            values, V = eigh((Z @ B).T @ (Z @ B))
        B = B @ V[:, ::-1]
        B *= column_signs(Z @ B)
        self.eigenvalues_, self.rank_ = np.maximum(values[::-1], 0.0), B.shape[1]
        share = float(np.sum(self.eigenvalues_) / np.sum(full.eigenvalues_))
        self.explained_variance_ratio_ = min(1.0, share * full.explained_variance_ratio_)
        turn = like(B, full.projection_)
        self.anchors_, self.projection_ = full.anchors_, full.projection_ @ turn
        self.offset_ = full.offset_ @ turn
        return lambda: found @ like(B, found)


def _directions(Z: np.ndarray, pairs: Pairs, most: int) -> np.ndarray:
    """Orthonormal columns: what parts dissimilar pairs most beside similar ones."""
    r = Z.shape[1]
    if r <= most:
        return np.eye(r)  # nothing to leave out
    apart, alike = _scatter(Z, pairs.dissimilar), _scatter(Z, pairs.similar)
    level = np.trace(alike) / r
    ridge = _RIDGE * level if level > 0 else max(np.trace(apart) / r, np.finfo(float).tiny)
    alike[np.diag_indices_from(alike)] += ridge
    values, V = eigh(apart, alike, subset=(max(0, r - most), r - 1))
    kept = values > _RELATIVE_CUT * max(values[-1], 0.0)
    if not kept.any():
        kept[-1] = True  # dissimilar pairs of points that coincide: any direction will do
    return linalg.qr(V[:, kept], mode="economic")[0]


def _scatter(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``Σ δδᵀ`` over pairs: Zᵀ times the Laplacian of their graph times Z."""
    S = Z.T @ laplacian_product(rows[:, 0], rows[:, 1], np.ones(len(rows)), Z)
    return 0.5 * (S + S.T)
