"""Linear discriminant analysis, as a metric."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelmetric.compute.lapack import eigh
from kernelmetric.inputs import Weights
from kernelmetric.learners import _spectral
from kernelmetric.learners._base import FromLabels
from kernelmetric.solvers import right_singular

_RANK_TOL = 1e-8  # of singular values, without shrinkage
_LEAST_SHRINKAGE = 1e-8  # below it scatter may be singular, which another solver can do


@dataclass(eq=False, repr=False)
class LDA(_spectral.SpectralLearner):
    r"""Fisher's linear discriminant analysis.

    Directions along which the means of classes vary most, in units of the variation inside
    classes: the leading eigenvectors of

    .. math:: S_b v = \lambda S_w v, \qquad L S_w L^\top = I,

    with the covariance of the means of classes, and that inside classes. The distance is that of
    Mahalanobis with the covariance inside classes, in the at most c - 1 dimensions in which c
    classes differ.

    O(n d² + d³) time.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None, or more than there are, takes all.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in the covariance inside classes, 0 to 1; 'auto' is at most that of
        Ledoit and Wolf. With 0, directions in which no class varies are left out.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    shrinkage_ : float
        The share that was used.
    loss_ : float
        Minus the variance between classes in units of that inside them.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LFDA : For classes of several clusters.
    RCA : From chunks instead of classes.

    References
    ----------
    .. [1] Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelmetric import LDA
    >>> X, y = load_wine(return_X_y=True)
    >>> LDA().fit(X, y).transform(X).shape
    (178, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: Any = "auto"
    class_weight: Any = None

    _passes = 0.0

    fit = FromLabels.fit

    def _fit(self, X: Any, y: Any, gram: Any, weights: Weights | None) -> None:
        X, codes = self._check_training(X, y)
        rank = self._check_n_components(X.shape[1])
        scatter = _spectral.scatter_of(X, codes, self.shrinkage, gram, weights)
        rounding = 1e-14 if scatter.Z is None else 1e-28  # sums of squares on machines lose digits
        if np.trace(scatter.within) <= rounding * np.trace(scatter.total):
            raise ValueError(
                "Got classes of points that coincide, but expected some variation inside classes: "
                "LDA measures distances in units of it. Try RCA, or more points."
            )
        self.shrinkage_ = scatter.shrinkage
        if scatter.Z is None or self.shrinkage_ >= _LEAST_SHRINKAGE:
            V = _shrunk_directions(scatter)
        else:
            V = _whitened_directions(scatter.Z, codes, scatter.shares)
        V = V[:, : int(codes.max())][:, :rank]
        self._store(_spectral.signed(scatter.leave(V.T)), X)
        self.loss_ = float(np.trace(V.T @ (scatter.within - scatter.total) @ V))

    def _streams(self) -> str | None:
        share = self.shrinkage
        return "at need" if isinstance(share, str) or share >= _LEAST_SHRINKAGE else None


def _shrunk_directions(scatter: _spectral.Scatter) -> np.ndarray:
    """Discriminant directions in columns, the best one first."""
    S, share = scatter.within, max(scatter.shrinkage, _LEAST_SHRINKAGE)
    rest = max(1.0 - scatter.shrinkage, _LEAST_SHRINKAGE)
    ridge = share / rest * float(np.trace(S)) / len(S)
    V = eigh(scatter.total - S, S + ridge * np.eye(len(S)))[1]
    return V[:, ::-1] / np.sqrt(rest)


def _whitened_directions(Z: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The same without shrinkage: whiten what varies inside classes, then turn to their means."""
    about, n = _spectral.about_centres(Z, codes, shares), float(np.sum(shares))
    spread = np.sqrt(shares @ about**2 / n)
    spread[spread == 0] = 1.0
    s, Vt = right_singular(np.sqrt(shares / n)[:, None] * about / spread)
    kept = s > _RANK_TOL
    W = (Vt[kept] / spread).T / s[kept]
    means = (Z - about)[np.unique(codes, return_index=True)[1]]
    sizes = np.bincount(codes, weights=shares)
    s, Vt = right_singular(np.sqrt(sizes / n)[:, None] * (means @ W))
    return W @ Vt[s > _RANK_TOL * s[0]].T
